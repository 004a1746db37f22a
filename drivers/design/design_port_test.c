/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A design's datagrams leave from their ports with the fields that they have, and those of
 *         peers come likewise; faults strike by the design's time; a refusal is counted (FER-141).
 * Method  Sockets of this process on loopback addresses are the peers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/design/design_port.h"

#define OWN_PORT 5000
#define NOW(us)  ((struct instant){1000u * (us)})

static struct design_port *port;
static struct design_arrival arrival;
static int peer;
static uint16_t peer_port;

/* A loopback address that no other run of this test has. */
static uint32_t own_ip(void)
{
    const uint32_t pid = (uint32_t)getpid();
    return 127u << 24 | (100 + (pid >> 8) % 100) << 16 | (pid & 0xff) << 8 | 9;
}

static void set_up(const char *fault)
{
    char error[256];
    static const uint16_t ports[] = {OWN_PORT};
    const struct design_port_config config = {
        .ip = own_ip(), .ports = ports, .port_count = 1, .fault = fault};
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    socklen_t bytes = sizeof(name);
    port = design_port_open(&config, error, sizeof(error));
    assert_non_null(port);
    peer = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(bind(peer, (const struct sockaddr *)(const void *)&name, sizeof(name)), 0);
    assert_int_equal(getsockname(peer, (struct sockaddr *)(void *)&name, &bytes), 0);
    assert_int_equal(setsockopt(peer, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)), 0);
    assert_int_equal(setsockopt(peer, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on)), 0);
    peer_port = ntohs(name.sin_port);
}

static void tear_down(void)
{
    design_port_close(port);
    close(peer);
}

static struct inet_datagram datagram_of(const void *payload, uint32_t bytes)
{
    return (struct inet_datagram){.peer_ip = INADDR_LOOPBACK,
                                  .peer_port = peer_port,
                                  .own_port = OWN_PORT,
                                  .variant = {.traffic_class = 0x62, .hop_limit = 7},
                                  .payload = payload,
                                  .payload_bytes = bytes};
}

static void send_byte(uint8_t byte, uint32_t us)
{
    const uint8_t payload[100] = {byte};
    const struct inet_datagram datagram = datagram_of(payload, sizeof(payload));
    design_port_send(port, &datagram, NOW(us));
}

/* The first byte of what the peer has; -1: nothing. */
static int peer_hears(void)
{
    uint8_t bytes[100];
    const ssize_t count = recv(peer, bytes, sizeof(bytes), MSG_DONTWAIT);
    return count > 0 ? bytes[0] : -1;
}

static void peer_says(uint8_t byte)
{
    uint8_t bytes[50] = {byte};
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(OWN_PORT), .sin_addr.s_addr = htonl(own_ip())};
    assert_int_equal(sendto(peer, bytes, sizeof(bytes), 0,
                            (const struct sockaddr *)(const void *)&to, sizeof(to)),
                     sizeof(bytes));
}

static int design_hears(uint32_t us)
{
    return design_port_receive(port, NOW(us), &arrival) ? arrival.datagram.payload[0] : -1;
}

static void test_fields(void **state)
{
    (void)state;
    set_up(NULL);
    struct sockaddr_in from;
    uint8_t bytes[100];
    char control[200];
    struct iovec payload = {bytes, sizeof(bytes)};
    struct msghdr message = {.msg_name = &from,
                             .msg_namelen = sizeof(from),
                             .msg_iov = &payload,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    send_byte(9, 0);
    assert_int_equal(recvmsg(peer, &message, MSG_DONTWAIT), 100);
    assert_int_equal(ntohl(from.sin_addr.s_addr), own_ip());
    assert_int_equal(ntohs(from.sin_port), OWN_PORT);
    uint32_t seen = 0;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one != NULL;
         one = CMSG_NXTHDR(&message, one)) {
        assert_int_equal(*CMSG_DATA(one), one->cmsg_type == IP_TOS ? 0x62 : 7);
        seen++;
    }
    assert_int_equal(seen, 2);

    const int tos = 0x28, ttl = 9;
    assert_int_equal(setsockopt(peer, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)), 0);
    assert_int_equal(setsockopt(peer, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)), 0);
    peer_says(3);
    assert_int_equal(design_hears(0), 3);
    assert_int_equal(arrival.datagram.peer_ip, INADDR_LOOPBACK);
    assert_int_equal(arrival.datagram.peer_port, peer_port);
    assert_int_equal(arrival.datagram.own_port, OWN_PORT);
    assert_int_equal(arrival.datagram.payload_bytes, 50);
    assert_int_equal(arrival.datagram.variant.traffic_class, tos);
    assert_int_equal(arrival.datagram.variant.hop_limit, ttl);
    assert_int_equal(design_hears(0), -1);

    /* A port that was never named is bound when it sends, and then receives. */
    struct inet_datagram other = datagram_of(bytes, 0);
    other.own_port = OWN_PORT + 1;
    design_port_send(port, &other, NOW(0));
    assert_int_equal(recvmsg(peer, &message, MSG_DONTWAIT), 0);
    assert_int_equal(ntohs(from.sin_port), OWN_PORT + 1);
    tear_down();
}

static void test_refusals(void **state)
{
    (void)state;
    set_up(NULL);
    static const uint8_t long_one[65536];
    const struct inet_datagram too_long = datagram_of(long_one, sizeof(long_one));
    const struct design_port_counters *counters = design_port_counters(port);
    design_port_send(port, &too_long, NOW(0));
    assert_int_equal(counters->refused, 1);
    assert_int_equal(counters->refused_why, EMSGSIZE);

    char error[256];
    const uint16_t taken = OWN_PORT;
    const struct design_port_config config = {.ip = own_ip(), .ports = &taken, .port_count = 1};
    assert_null(design_port_open(&config, error, sizeof(error)));
    assert_non_null(strstr(error, "Address already in use"));
    const struct design_port_config foreign = {
        .ip = 0xcb007107, .ports = &taken, .port_count = 1}; /* 203.0.113.7. */
    assert_null(design_port_open(&foreign, error, sizeof(error)));
    assert_non_null(strstr(error, "must be one of this machine's"));
    tear_down();
}

/* A socket that is full loses datagrams, and says how many. */
static void test_losses(void **state)
{
    (void)state;
    set_up(NULL);
    enum {
        SENT = 40000
    };
    uint32_t came = 0;
    for (int i = 0; i < SENT; i++) {
        peer_says(1);
    }
    while (design_hears(0) >= 0) {
        came++;
    }
    peer_says(2); /* The number comes with a later datagram. */
    assert_int_equal(design_hears(0), 2);
    assert_in_range(came, 1, SENT - 1);
    assert_int_equal(design_port_counters(port)->lost, SENT - came);
    tear_down();
}

static void test_faults(void **state)
{
    (void)state;
    set_up("delay=50us:#1,drop=#2,dup=#3,corrupt=#4,dir=both");
    for (uint8_t i = 1; i <= 4; i++) {
        send_byte(i, i);
        peer_says(i);
    }
    assert_int_equal(peer_hears(), 3);
    assert_int_equal(peer_hears(), 3);
    uint8_t struck[100];
    assert_int_equal(recv(peer, struck, sizeof(struck), MSG_DONTWAIT), 100);
    uint32_t bits = 0;
    for (uint32_t i = 0; i < sizeof(struck); i++) {
        bits += (uint32_t)__builtin_popcount(struck[i] ^ (i == 0 ? 4u : 0u));
    }
    assert_int_equal(bits, 1);
    assert_int_equal(peer_hears(), -1);
    /* Time has to go on until the delayed one may leave. */
    assert_true(design_port_release(port, NOW(50)));
    assert_int_equal(peer_hears(), -1);

    assert_int_equal(design_hears(10), 3);
    assert_int_equal(design_hears(10), 3);
    assert_int_equal(design_hears(10), 4);
    assert_true(arrival.corrupt && arrival.corrupt_bit < 8 * 50);
    assert_int_equal(design_hears(59), -1);

    assert_true(design_port_release(port, NOW(51)));
    assert_int_equal(peer_hears(), 1);
    assert_int_equal(design_hears(60), 1);
    assert_int_equal(arrival.datagram.peer_port, peer_port);
    assert_int_equal(arrival.datagram.payload_bytes, 50);
    assert_false(arrival.corrupt);
    assert_false(design_port_release(port, NOW(61)));
    const struct design_port_counters *counters = design_port_counters(port);
    assert_int_equal(counters->dropped_out, 1);
    assert_int_equal(counters->dropped_in, 1);
    assert_int_equal(counters->held_out, 1);
    assert_int_equal(counters->held_in, 1);
    tear_down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
