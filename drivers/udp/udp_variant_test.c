/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each field of an address vector that belongs to the IP header is on the wire, packet by
 *         packet, and comes out at a port that shows it; the ICRC is right for each value; a plain
 *         packet goes to the kernel without control data.
 * Method  Two ports on loopback addresses, address vectors drawn at random. The linker lets the
 *         test look at each message in front of the kernel (--wrap=syscall). In a network of our
 *         own, where that is allowed, a packet socket sees whole frames, whose ICRC is computed by
 *         bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <linux/if_packet.h>
#include <linux/in6.h>
#include <net/ethernet.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "drivers/system/local_socket.h"
#include "drivers/udp/udp_port.h"

enum {
    PACKETS_MAX = 128,
    PAYLOAD_BYTES = 600, /* Some are copied together, some are not. */
    ETHERNET_BYTES = 14,
    QPN = 0x77 /* It is in the range of a slot: each process at a named address has a part of the
                  QPNs. */
};

/* Calls, messages, and control data other than the size of segments. */
static struct {
    uint32_t calls, messages, said;
} kernel;

struct end {
    struct address_set addresses;
    struct udp_port port;
};

static struct {
    struct end a, b;
    struct link *link; /* From a to b. */
    struct prng prng;
    uint8_t memory[PAYLOAD_BYTES];
    struct inet_variant expected[PACKETS_MAX];
    uint32_t sent, received;
} bench;

/* -- A look at messages -------------------------------------------------------------------------*/

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static void look_at(const struct msghdr *message)
{
    struct msghdr copy = *message;
    kernel.messages++;
    for (struct cmsghdr *control = CMSG_FIRSTHDR(&copy); control != NULL;
         control = CMSG_NXTHDR(&copy, control)) {
        kernel.said += control->cmsg_level != IPPROTO_UDP;
    }
}

long __wrap_syscall(long number, ...)
{
    long arguments[6] = {0};
    const size_t count = number == SYS_sendto || number == SYS_recvfrom ? 6 : 5;
    va_list list;
    va_start(list, number);
    for (size_t i = 0; i < count; i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    if (number == SYS_sendmmsg) {
        const struct mmsghdr *messages = (const struct mmsghdr *)(uintptr_t)arguments[1];
        kernel.calls++;
        for (long i = 0; i < arguments[2]; i++) {
            look_at(&messages[i].msg_hdr);
        }
    }
    return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                          arguments[4], arguments[5]);
}

/* -- Two ports ----------------------------------------------------------------------------------*/

static void open_end(struct end *end, const char *device)
{
    char error[256];
    assert_true(address_find(&end->addresses, device, error, sizeof(error)));
    assert_true(udp_port_open(&end->port, &end->addresses, error, sizeof(error)));
}

static void open_bench(const char *a, const char *b)
{
    memset(&bench, 0, sizeof(bench));
    prng_init(&bench.prng, 1);
    open_end(&bench.a, a);
    open_end(&bench.b, b);
    bench.link = udp_port_link(&bench.a.port, &bench.a.addresses.entries[0].gid,
                               &bench.b.addresses.entries[0].gid, LOCAL_NO_SLOT);
    assert_non_null(bench.link);
    for (size_t i = 0; i < sizeof(bench.memory); i++) {
        bench.memory[i] = (uint8_t)prng_next(&bench.prng);
    }
}

static void close_bench(void)
{
    udp_port_close(&bench.a.port);
    udp_port_close(&bench.b.port);
    address_release(&bench.a.addresses);
    address_release(&bench.b.addresses);
}

/* The number of the packet stands where its PSN would. */
static void transmit(const struct nic_av *av, uint32_t bytes)
{
    struct nic_departure departure = {
        .av = av,
        .headers_bytes = ROCE_BTH_BYTES + 8,
        .payload_bytes = bytes,
        .pad_bytes = roce_pad_bytes(bytes),
        .segment_count = bytes > 0,
        .segments = {{.address = (uintptr_t)bench.memory, .bytes = bytes}},
    };
    departure.headers[0] = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY);
    store_be32(departure.headers + 4, bench.b.addresses.slot * SHARE_QPN_SPAN + QPN);
    store_be32(departure.headers + 8, bench.sent);
    assert_true(bench.sent < PACKETS_MAX);
    struct inet_variant *expected = &bench.expected[bench.sent++];
    *expected = nic_av_variant(av);
    if (inet_is_ipv4(bench.link->peer.bytes)) {
        expected->flow_label = 0;
    }
    assert_true(udp_port_transmit(&bench.a.port, bench.link, &departure));
}

static struct nic_av draw_path(void)
{
    struct nic_av av = {.hop_limit = INET_HOP_LIMIT};
    if (prng_below(&bench.prng, 2) == 0) {
        av.traffic_class = (uint8_t)prng_next(&bench.prng);
    }
    if (prng_below(&bench.prng, 2) == 0) {
        av.hop_limit = (uint8_t)prng_next(&bench.prng);
    }
    if (prng_below(&bench.prng, 2) == 0) {
        av.flow_label = 1 + (uint32_t)prng_below(&bench.prng, INET_LABEL_MASK);
    }
    return av;
}

/* A label of 0 says that the kernel chooses one. */
static void expect(const struct inet_variant *variant, uint32_t number)
{
    assert_true(number < bench.sent);
    const struct inet_variant *expected = &bench.expected[number];
    assert_int_equal(variant->traffic_class, expected->traffic_class);
    assert_int_equal(variant->hop_limit, expected->hop_limit);
    if (expected->flow_label != 0 || inet_is_ipv4(bench.link->peer.bytes)) {
        assert_int_equal(variant->flow_label, expected->flow_label);
    }
}

static void receive(void)
{
    const struct udp_datagram *datagram;
    uint32_t before;
    do {
        before = bench.received;
        while (udp_port_look(&bench.b.port, 256, NULL) > 0) {
            while ((datagram = udp_port_next(&bench.b.port)) != NULL) {
                expect(&datagram->variant, load_be32(datagram->bytes + 8));
                bench.received++;
            }
        }
    } while (bench.received != before);
    assert_int_equal(udp_port_bad_icrc(&bench.b.port), 0);
    assert_int_equal(bench.received, bench.sent);
}

static void check_random_paths(void)
{
    udp_port_show_variants(&bench.b.port);
    while (bench.sent < PACKETS_MAX) {
        const struct nic_av av = draw_path();
        /* Several packets with one address vector are segments of one call, and others lie between
         * them. */
        for (uint64_t i = prng_below(&bench.prng, 4); i > 0 && bench.sent < PACKETS_MAX; i--) {
            transmit(&av, prng_below(&bench.prng, 2) == 0 ? 100 : PAYLOAD_BYTES);
        }
        if (prng_below(&bench.prng, 10) == 0) {
            udp_port_flush(&bench.a.port);
        }
    }
    udp_port_flush(&bench.a.port);
    receive();
}

/* -- Tests --------------------------------------------------------------------------------------*/

static void test_random_paths(void **state)
{
    (void)state;
    open_bench(NULL, NULL);
    check_random_paths();
    close_bench();
}

/* Hop limits of 0 and 1 stand for the usual one; the bits of congestion notification do not come
 * from the address vector. */
static void test_what_a_path_may_say(void **state)
{
    (void)state;
    static const struct {
        uint8_t traffic_class, hop_limit, class_sent, hops_sent;
    } rows[] = {{0, 0, 0, 64},      {0, 1, 0, 64},  {0, 2, 0, 2},      {0, 255, 0, 255},
                {106, 64, 104, 64}, {3, 64, 0, 64}, {0xff, 5, 0xfc, 5}};
    open_bench(NULL, NULL);
    udp_port_show_variants(&bench.b.port);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct nic_av av = {.hop_limit = rows[i].hop_limit,
                                  .traffic_class = rows[i].traffic_class};
        const struct inet_variant variant = nic_av_variant(&av);
        assert_int_equal(variant.traffic_class, rows[i].class_sent);
        assert_int_equal(variant.hop_limit, rows[i].hops_sent);
        transmit(&av, 100);
    }
    udp_port_flush(&bench.a.port);
    receive();
    close_bench();
}

/* A plain packet costs no control data, and another one costs no further call. */
static void test_cost(void **state)
{
    (void)state;
    open_bench(NULL, NULL);
    struct nic_av av = {.hop_limit = INET_HOP_LIMIT};
    memset(&kernel, 0, sizeof(kernel));
    for (uint32_t i = 0; i < 20; i++) {
        transmit(&av, 100);
    }
    udp_port_flush(&bench.a.port);
    assert_int_equal(kernel.calls, 1);
    assert_int_equal(kernel.messages, 1);
    assert_int_equal(kernel.said, 0);
    av.traffic_class = 0x20;
    av.hop_limit = 9;
    memset(&kernel, 0, sizeof(kernel));
    for (uint32_t i = 0; i < 20; i++) {
        transmit(&av, 100);
    }
    udp_port_flush(&bench.a.port);
    assert_int_equal(kernel.calls, 1);
    assert_int_equal(kernel.messages, 1);
    assert_int_equal(kernel.said, 2);
    close_bench();
}

/* A port that does not show the fields takes all packets for plain. */
static void test_not_shown(void **state)
{
    (void)state;
    open_bench(NULL, NULL);
    const struct nic_av av = {.hop_limit = 7, .traffic_class = 0x40};
    transmit(&av, 100);
    udp_port_flush(&bench.a.port);
    assert_int_equal(udp_port_look(&bench.b.port, 256, NULL), 1);
    const struct udp_datagram *datagram = udp_port_next(&bench.b.port);
    assert_non_null(datagram);
    assert_true(inet_variant_is_plain(datagram->variant));
    assert_null(udp_port_next(&bench.b.port));
    assert_int_equal(udp_port_look(&bench.b.port, 256, NULL), 0);
    close_bench();
}

/* -- Whole frames -------------------------------------------------------------------------------*/

static bool in_private_network;

static bool move_to_private_network(void)
{
    in_private_network =
        (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
        system("ip link set lo up && ip addr add fd77::1/128 dev lo nodad && "
               "ip addr add fd77::2/128 dev lo nodad") == 0;
    return in_private_network;
}

/* CRC-32, a bit at a time. */
static uint32_t crc_of(uint32_t crc, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    }
    return crc;
}

/* IBTA A17.3.3 on a whole frame: ones in place of the fields that vary, and eight bytes of ones in
 * front. */
static uint32_t icrc_of_frame(const uint8_t *ip, size_t bytes, bool ipv4)
{
    static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const size_t ipv4_varies[] = {1, 8, 10, 11, 26, 27, 32};
    static const size_t ipv6_varies[] = {1, 2, 3, 7, 46, 47, 52};
    uint8_t copy[2048];
    assert_true(bytes <= sizeof(copy));
    memcpy(copy, ip, bytes);
    for (size_t i = 0; i < COUNT_OF(ipv4_varies); i++) {
        copy[(ipv4 ? ipv4_varies : ipv6_varies)[i]] = 0xff;
    }
    copy[0] |= ipv4 ? 0 : 0x0f;
    return ~crc_of(crc_of(UINT32_MAX, ones, sizeof(ones)), copy, bytes - ROCE_ICRC_BYTES);
}

static struct inet_variant variant_of_frame(const uint8_t *ip, bool ipv4)
{
    const uint32_t first = load_be32(ip);
    return ipv4 ? (struct inet_variant){.traffic_class = ip[1], .hop_limit = ip[8]}
                : (struct inet_variant){.flow_label = first & 0xfffff,
                                        .traffic_class = (uint8_t)(first >> 20),
                                        .hop_limit = ip[7]};
}

/* The next frame of ours that loopback delivers. False: there is none. */
static bool next_frame(int fd, uint8_t *frame, size_t *bytes)
{
    struct sockaddr_ll from;
    socklen_t from_bytes = sizeof(from);
    ssize_t count;
    do {
        count = recvfrom(fd, frame, 2048, MSG_DONTWAIT, (struct sockaddr *)&from, &from_bytes);
    } while (count > 0 && from.sll_pkttype != PACKET_HOST);
    *bytes = count > 0 ? (size_t)count - ETHERNET_BYTES : 0;
    return count > 0;
}

static void check_frames(const char *a, const char *b, bool ipv4)
{
    const int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    uint8_t frame[2048];
    size_t bytes;
    uint32_t plain_labels = 0;
    assert_true(fd >= 0);
    open_bench(a, b);
    while (bench.sent < PACKETS_MAX) {
        const struct nic_av av = draw_path();
        transmit(&av, prng_below(&bench.prng, 2) == 0 ? 100 : PAYLOAD_BYTES);
        udp_port_flush(&bench.a.port); /* Otherwise a frame would be a whole call. */
        assert_true(next_frame(fd, frame, &bytes));
        const uint8_t *ip = frame + ETHERNET_BYTES;
        const struct inet_variant variant = variant_of_frame(ip, ipv4);
        assert_int_equal(ip[0] >> 4, ipv4 ? 4 : 6);
        expect(&variant, bench.sent - 1);
        plain_labels += bench.expected[bench.sent - 1].flow_label == 0;
        assert_int_equal(load_le32(ip + bytes - ROCE_ICRC_BYTES), icrc_of_frame(ip, bytes, ipv4));
        assert_false(next_frame(fd, frame, &bytes));
    }
    assert_true(ipv4 || (plain_labels > 10 && plain_labels < PACKETS_MAX - 10));
    close_bench();
    close(fd);
}

static void test_on_the_wire(void **state)
{
    (void)state;
    if (!move_to_private_network()) {
        skip();
    }
    check_frames(NULL, NULL, true);
    check_frames("fd77::1", "fd77::2", false);
    open_bench("fd77::1", "fd77::2");
    check_random_paths();
    close_bench();
}

/* If a program has a flow label for itself alone, Linux refuses all labels that nobody leased:
 * packets leave all the same. */
static void test_refused_labels(void **state)
{
    (void)state;
    struct in6_flowlabel_req lease = {.flr_label = htonl(0x777),
                                      .flr_action = IPV6_FL_A_GET,
                                      .flr_share = IPV6_FL_S_EXCL,
                                      .flr_flags = IPV6_FL_F_CREATE};
    lease.flr_dst.s6_addr[15] = 1;
    const int holder = socket(AF_INET6, SOCK_DGRAM, 0);
    if (!in_private_network ||
        setsockopt(holder, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &lease, sizeof(lease)) != 0) {
        close(holder);
        skip();
    }
    open_bench("fd77::1", "fd77::2");
    udp_port_show_variants(&bench.b.port);
    const struct nic_av av = {.hop_limit = 9, .traffic_class = 0x20, .flow_label = 0x12345};
    for (uint32_t i = 0; i < 20; i++) {
        transmit(&av, 100);
        bench.expected[i].flow_label = 0;
    }
    udp_port_flush(&bench.a.port);
    receive();
    assert_true(bench.a.port.labels_refused && bench.a.port.segmenting);
    assert_int_equal(bench.a.port.counters.send_failed, 0);
    close_bench();
    close(holder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_paths),   cmocka_unit_test(test_what_a_path_may_say),
        cmocka_unit_test(test_cost),           cmocka_unit_test(test_not_shown),
        cmocka_unit_test(test_on_the_wire),    /* It leaves this network, */
        cmocka_unit_test(test_refused_labels), /* and this stays away, too. */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
