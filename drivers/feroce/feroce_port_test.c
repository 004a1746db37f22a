/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A board hears the connection manager also while data comes without end.
 * Method  For each datagram of data that is taken, a new one comes; then a message comes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/feroce/feroce_port.h"
#include "wire/feroce.h"
#include "wire/roce.h"

#define WAITING 100 /* Datagrams of data, always. */

/* A loopback address that no other run of this test has. */
static uint32_t own_ip(void)
{
    const uint32_t pid = (uint32_t)getpid();
    return 127u << 24 | (100 + (pid >> 8) % 100) << 16 | (pid & 0xff) << 8 | 7;
}

static void send_to(int from, uint32_t ip, uint16_t port, size_t bytes)
{
    static const uint8_t zeros[FEROCE_CM_BYTES];
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
    const ssize_t sent =
        sendto(from, zeros, bytes, 0, (const struct sockaddr *)(const void *)&to, sizeof(to));
    assert_int_equal(sent, bytes);
}

static void test_messages_have_their_turn(void **state)
{
    (void)state;
    char error[256];
    const struct feroce_port_config config = {.ip = own_ip()};
    struct feroce_port *port = feroce_port_open(&config, error, sizeof(error));
    assert_non_null(port);
    const int from = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(from >= 0);
    for (int i = 0; i < WAITING; i++) {
        send_to(from, config.ip, ROCE_UDP_PORT, 20);
    }
    struct feroce_datagram datagram = {.is_cm = false};
    uint32_t before = 0;
    send_to(from, config.ip, FEROCE_PORT_CM, FEROCE_CM_BYTES);
    while (!datagram.is_cm && before < 10 * WAITING) {
        const bool came = feroce_port_receive(port, (struct instant){1}, &datagram);
        assert_true(came);
        if (!datagram.is_cm) {
            before++;
            send_to(from, config.ip, ROCE_UDP_PORT, 20);
        }
    }
    assert_true(datagram.is_cm);
    assert_int_equal(datagram.count, FEROCE_CM_BYTES);
    assert_in_range(before, 1, WAITING);
    /* Data goes on after that. */
    const bool came = feroce_port_receive(port, (struct instant){1}, &datagram);
    assert_true(came && !datagram.is_cm && datagram.count == 20);
    close(from);
    feroce_port_close(port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_have_their_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
