/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A board hears the connection manager also while data comes without end, and no message
 *         before the data that came before it.
 * Method  For each datagram of data that is taken, a new one comes; then a message comes. And data
 *         and a message come right behind a look that has found no data: recvmmsg is this file's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

/* The datagrams that come behind the next look that finds nothing; 0: none. */
static struct {
    int from;
    uint32_t ip;
} arrives;

int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
    const long received = syscall(SYS_recvmmsg, fd, messages, count, flags, timeout);
    const int error = errno;
    if (received < 0 && arrives.ip != 0) {
        const uint32_t ip = arrives.ip;
        arrives.ip = 0;
        send_to(arrives.from, ip, ROCE_UDP_PORT, 20);
        send_to(arrives.from, ip, FEROCE_PORT_CM, FEROCE_CM_BYTES);
    }
    errno = error;
    return (int)received;
}

/* A NAK, and the CLOSE of a host that has sent it, may come between the two looks of a round. */
static void test_data_come_before_their_message(void **state)
{
    (void)state;
    char error[256];
    const struct feroce_port_config config = {.ip = own_ip()};
    struct feroce_port *port = feroce_port_open(&config, error, sizeof(error));
    assert_non_null(port);
    struct feroce_datagram datagram;
    const int from = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(from >= 0);
    for (int i = 0; i < 10; i++) {
        arrives.from = from;
        arrives.ip = config.ip;
        for (int got = 0, looks = 0; got < 2; looks++) {
            assert_true(looks < 10);
            if (feroce_port_receive(port, (struct instant){1}, &datagram)) {
                assert_int_equal(datagram.is_cm, got++);
            }
        }
        /* Some more looks find nothing. */
        for (int look = 0; look < i; look++) {
            assert_false(feroce_port_receive(port, (struct instant){1}, &datagram));
        }
    }
    close(from);
    feroce_port_close(port);
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
        cmocka_unit_test(test_data_come_before_their_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
