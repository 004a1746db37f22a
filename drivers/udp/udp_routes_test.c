/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each route has its source port and pair of addresses, whatever is in a batch; its
 *         packets' ICRC is right; no socket is opened before it is used; a route that the system
 *         does not give costs no packet. A peer cannot guess the number by which it proves that it
 *         is there.
 * Method  Two ports on loopback addresses, of one word and of two; plain sockets that show source
 *         ports and ECN, which a port does not show. Interfaces in a network namespace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "drivers/system/clock.h"
#include "drivers/system/local_socket.h"
#include "drivers/udp/udp_port.h"

#define PORTS 4

struct end {
    struct address_set addresses;
    struct udp_port port;
};

static const struct nic_av plain_av = {.hop_limit = INET_HOP_LIMIT};

struct bench {
    struct end a, b;
    struct link *link; /* From a to b, by the first address of each. */
    struct nic_routes routes;
    struct nic_av av;
    uint8_t memory[4096];
    uint32_t sent, received;
    uint8_t way_of[4096]; /* The route of each packet, by its number; */
    struct nic_route between[4096];
    bool seen[4096];
};

static void open_port(struct end *end)
{
    char error[256];
    assert_true(udp_port_open(&end->port, &end->addresses, error, sizeof(error)));
    udp_port_use_ports(&end->port, PORTS);
}

static void meet(struct bench *bench)
{
    bench->av = (struct nic_av){.source = bench->a.addresses.entries[0].gid,
                                .destination = bench->b.addresses.entries[0].gid};
    const int slot = bench->b.addresses.shared ? (int)bench->b.addresses.slot : LOCAL_NO_SLOT;
    bench->link = udp_port_link(&bench->a.port, &bench->av.source, &bench->av.destination, slot);
    assert_non_null(bench->link);
    assert_true(udp_port_offer_routes(&bench->a.port, bench->link, &bench->routes));
    for (size_t i = 0; i < sizeof(bench->memory); i++) {
        bench->memory[i] = (uint8_t)(i * 31 + i / 256);
    }
}

static int setup_lone(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    char error[256];
    assert_true(address_find(&bench->a.addresses, NULL, error, sizeof(error)));
    assert_true(address_find(&bench->b.addresses, NULL, error, sizeof(error)));
    open_port(&bench->a);
    open_port(&bench->b);
    meet(bench);
    *state = bench;
    return 0;
}

/* Finds two addresses that nobody has, named as a user would. */
static void find_two(struct end *end, struct prng *prng)
{
    char words[64], error[256];
    const unsigned x = (unsigned)prng_below(prng, 200), y = (unsigned)prng_below(prng, 200);
    snprintf(words, sizeof(words), "127.77.%u.%u,127.78.%u.%u", x, y + 1, x, y + 1);
    assert_true(address_find(&end->addresses, words, error, sizeof(error)));
    assert_int_equal(end->addresses.count, 2);
    assert_int_equal(end->addresses.words, 2);
}

static int setup_two_words(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct prng prng;
    prng_init(&prng, (uint64_t)getpid());
    find_two(&bench->a, &prng);
    find_two(&bench->b, &prng);
    open_port(&bench->a);
    open_port(&bench->b);
    meet(bench);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    udp_port_close(&bench->a.port);
    udp_port_close(&bench->b.port);
    address_release(&bench->a.addresses);
    address_release(&bench->b.addresses);
    free(bench);
    return 0;
}

/* The packet's number stands where the PSN would, and the packet is for the process that has the
 * address. */
static void transmit(struct bench *bench, uint8_t route, bool ecn_capable, uint32_t headers_bytes,
                     uint32_t payload_bytes)
{
    struct nic_departure departure = {
        .av = &plain_av, .headers_bytes = headers_bytes, .payload_bytes = payload_bytes};
    for (uint32_t i = ROCE_BTH_BYTES; i < headers_bytes; i++) {
        departure.headers[i] = (uint8_t)(i * 7 + bench->sent);
    }
    departure.headers[0] = 0xc5;
    store_be32(departure.headers + 4, bench->b.addresses.slot * SHARE_QPN_SPAN + 2);
    store_be32(departure.headers + 8, bench->sent);
    departure.segments[0] =
        (struct segment){.address = (uintptr_t)bench->memory, .bytes = payload_bytes};
    departure.segment_count = payload_bytes > 0;
    bench->between[bench->sent] = nic_routes_at(&bench->routes, &bench->av, route);
    bench->way_of[bench->sent++] = route;
    struct link *link = route == 0 && !ecn_capable
                            ? bench->link
                            : udp_port_route(&bench->a.port, bench->link, route,
                                             ecn_capable ? NIC_ECN_CAPABLE : NIC_ECN_NOT);
    assert_true(udp_port_transmit(&bench->a.port, link, &departure));
}

static void compare(struct bench *bench, const struct udp_datagram *datagram)
{
    const uint32_t number = load_be32(datagram->bytes + 8);
    assert_in_range(number, 0, bench->sent - 1);
    assert_false(bench->seen[number]);
    bench->seen[number] = true;
    bench->received++;
    assert_true(gid_equal(&bench->between[number].source, &datagram->source));
    assert_true(gid_equal(&bench->between[number].destination, &datagram->destination));
    const size_t headers = number % 89 + ROCE_BTH_BYTES;
    for (size_t i = ROCE_BTH_BYTES; i < headers; i++) {
        assert_int_equal(datagram->bytes[i], (uint8_t)(i * 7 + number));
    }
    assert_memory_equal(datagram->bytes + headers, bench->memory, datagram->count - headers);
}

/* One look. Returns how many datagrams it brought. */
static uint32_t receive(struct bench *bench, struct udp_port *port)
{
    const struct udp_datagram *datagram;
    uint32_t count = 0, arrived;
    while ((arrived = udp_port_look(port, 256, NULL)) > 0) {
        count += arrived;
        while ((datagram = udp_port_next(port)) != NULL) {
            compare(bench, datagram);
        }
    }
    return count;
}

/* An identification that the sender's ICRC was not made for would have been solved for, and
 * noted. */
static void expect_all(struct bench *bench)
{
    while (receive(bench, &bench->b.port) > 0) {
    }
    assert_int_equal(bench->received, bench->sent);
    assert_int_equal(udp_port_bad_icrc(&bench->b.port), 0);
    for (size_t i = 0; i < UDP_FLOWS; i++) {
        assert_false(bench->b.port.flows[i].known);
    }
    (void)receive(bench, &bench->a.port); /* Answers to probes. */
}

/* Transmits packets with all lengths of headers, in random orders of routes. */
static void transmit_mix(struct bench *bench, uint64_t seed, uint32_t routes)
{
    struct prng prng;
    prng_init(&prng, seed);
    for (int i = 0; i < 600; i++) {
        const uint8_t route = (uint8_t)prng_below(&prng, routes);
        const uint32_t headers = bench->sent % 89 + ROCE_BTH_BYTES;
        static const uint32_t payloads[] = {0, 64, 256, 1024, 1024};
        transmit(bench, route, prng_below(&prng, 2) == 1, headers,
                 headers > 52 ? 0 : payloads[prng_below(&prng, COUNT_OF(payloads))]);
        if (prng_below(&prng, 60) == 0) {
            udp_port_flush(&bench->a.port);
            expect_all(bench);
        }
    }
    udp_port_flush(&bench->a.port);
}

/* -- Ports --------------------------------------------------------------------------------------*/

/* A plain socket at the RoCE port of an address of its own, which stands for the peer. */
static int become_peer(struct bench *bench)
{
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
    for (uint32_t i = 0;; i++) {
        assert_in_range(i, 0, 1000);
        at.sin_addr.s_addr = htonl(0x7fc80001u + ((uint32_t)getpid() + i) % 60000);
        if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0) {
            break;
        }
    }
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)), 0);
    struct gid gid = {{[10] = 0xff, [11] = 0xff}};
    memcpy(gid.bytes + 12, &at.sin_addr, 4);
    bench->av.destination = gid;
    bench->link =
        udp_port_link(&bench->a.port, &bench->av.source, &bench->av.destination, LOCAL_NO_SLOT);
    assert_true(udp_port_offer_routes(&bench->a.port, bench->link, &bench->routes));
    return fd;
}

/* Reads the next datagram: its number, its source port and its traffic class. False: there is
 * none. */
static bool take(int fd, uint32_t *number, uint16_t *port, uint8_t *traffic_class)
{
    uint8_t bytes[2048];
    _Alignas(struct cmsghdr) char control[64];
    struct sockaddr_in from;
    struct iovec vector = {bytes, sizeof(bytes)};
    struct msghdr message = {.msg_name = &from,
                             .msg_namelen = sizeof(from),
                             .msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    if (recvmsg(fd, &message, MSG_DONTWAIT) < 0) {
        return false;
    }
    *number = load_be32(bytes + 8);
    *port = ntohs(from.sin_port);
    *traffic_class = *(uint8_t *)CMSG_DATA(CMSG_FIRSTHDR(&message));
    return true;
}

/* EXA-100 */
static void test_route_n_leaves_from_port_n(void **state)
{
    struct bench *bench = *state;
    const int fd = become_peer(bench);
    uint16_t ports[PORTS] = {0}, port;
    uint32_t number;
    uint8_t traffic_class;
    for (int i = 0; i < 80; i++) { /* Neighbours in the batch take different routes. */
        transmit(bench, (uint8_t)(i % PORTS), i % 3 == 0, 52, 64);
    }
    udp_port_flush(&bench->a.port);
    uint32_t count = 0;
    for (; take(fd, &number, &port, &traffic_class); count++) {
        const uint8_t route = bench->way_of[number];
        assert_true(ports[route] == 0 || ports[route] == port);
        ports[route] = port;
        assert_int_equal(traffic_class, number % 3 == 0 ? 2 : 0);
        const uint16_t own = route == 0 ? ROCE_UDP_PORT : bench->a.port.senders[0][route].port;
        assert_int_equal(port, own);
    }
    assert_int_equal(count, 80);
    for (int i = 0; i < PORTS; i++) {
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(ports[i], ports[j]);
        }
    }
    close(fd);
}

/* EXA-100 */
static void test_icrc_is_right_by_each_route(void **state)
{
    struct bench *bench = *state;
    transmit_mix(bench, 1, PORTS);
    expect_all(bench);
    bench->a.port.segmenting = false;
    transmit_mix(bench, 2, PORTS);
    expect_all(bench);
}

/* Expects an identification in the next packet from `port` to the RoCE port. */
static void expect_identification(int raw, uint16_t port, uint16_t identification)
{
    uint8_t bytes[2048];
    ssize_t count;
    do {
        count = recv(raw, bytes, sizeof(bytes), MSG_DONTWAIT);
        assert_true(count >= INET_IPV4_BYTES + INET_UDP_BYTES);
    } while (load_be16(bytes + 20) != port || load_be16(bytes + 22) != ROCE_UDP_PORT);
    assert_int_equal(load_be16(bytes + 4), identification);
    assert_int_equal(load_be16(bytes + 6), 0x4000); /* Don't Fragment. */
}

/* The ICRC covers the identification, which two nonics only assume: the kernel must send what
 * docs/decisions/0005 says. Where the test may open a raw socket, it looks. */
static void test_identification_of_each_socket(void **state)
{
    struct bench *bench = *state;
    const int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP);
    for (uint8_t route = 1; route < PORTS; route++) {
        for (int i = 0; i < 3; i++) {
            transmit(bench, route, false, bench->sent % 89 + ROCE_BTH_BYTES, 0);
            udp_port_flush(&bench->a.port);
        }
        const struct udp_sender *sender = &bench->a.port.senders[0][route];
        struct sockaddr_in peer;
        socklen_t bytes = sizeof(peer);
        int discover = 0;
        assert_int_equal(getpeername(sender->fd, (struct sockaddr *)&peer, &bytes), -1);
        bytes = sizeof(discover);
        assert_int_equal(getsockopt(sender->fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, &bytes), 0);
        assert_int_equal(discover, IP_PMTUDISC_PROBE);
        for (int i = 0; i < 3 && raw >= 0; i++) {
            expect_identification(raw, sender->port, 0);
        }
    }
    expect_all(bench);
    close(raw);
}

static uint32_t open_senders(const struct udp_port *port)
{
    uint32_t count = 0;
    for (size_t i = 0; i < ADDRESS_MAX; i++) {
        for (size_t j = 0; j < NIC_ROUTES_MAX; j++) {
            count += port->senders[i][j].open;
        }
    }
    return count;
}

static void test_sockets_are_opened_when_they_are_used(void **state)
{
    struct bench *bench = *state;
    transmit(bench, 0, false, ROCE_BTH_BYTES, 0);
    transmit(bench, 0, true, ROCE_BTH_BYTES + 1, 0);
    assert_int_equal(open_senders(&bench->a.port), 0);
    transmit(bench, 2, false, ROCE_BTH_BYTES + 2, 0);
    transmit(bench, 2, true, ROCE_BTH_BYTES + 3, 0);
    assert_int_equal(open_senders(&bench->a.port), 1);
    udp_port_flush(&bench->a.port);
    expect_all(bench);
}

/* Packets of SRD that leave by other routes than the first: each has a socket of its own, also when
 * its link has led elsewhere meanwhile. */
static void test_passing_routes(void **state)
{
    struct bench *bench = *state;
    struct udp_port *port = &bench->a.port;
    const struct gid *self = &bench->av.source, *peer = &bench->av.destination;
    uint16_t ports[3];
    for (uint8_t route = 1; route <= 3; route++) {
        struct link *link = udp_port_passing_route(port, self, peer, route);
        assert_true(link == udp_port_passing_route(port, self, peer, route));
        ports[route - 1] = udp_link_flow(link)->source_port;
        assert_int_equal(ports[route - 1], port->senders[0][route - 1].port);
        assert_int_equal(open_senders(port), route);
    }
    assert_true(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2]);
    struct gid other = *peer;
    for (uint32_t i = 0; i < UDP_PASSING_MAX; i++) {
        other.bytes[15]++;
        const struct link *first = udp_port_passing_link(port, self, &other, LOCAL_NO_SLOT);
        assert_int_equal(udp_link_flow(first)->source_port, ROCE_UDP_PORT);
    }
    assert_int_equal(udp_link_flow(udp_port_passing_route(port, self, peer, 2))->source_port,
                     ports[1]);
    assert_int_equal(open_senders(port), 3);
    assert_null(udp_port_passing_route(port, &other, peer, 1)); /* It is none of ours. */
}

/* Nothing that a stranger sends to such a port is kept. */
static void test_senders_take_nothing_in(void **state)
{
    struct bench *bench = *state;
    transmit(bench, 1, false, ROCE_BTH_BYTES, 0);
    udp_port_flush(&bench->a.port);
    const struct udp_sender *sender = &bench->a.port.senders[0][1];
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(sender->port)};
    memcpy(&to.sin_addr, bench->av.source.bytes + 12, 4);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(sendto(fd, "hello", 5, 0, (const struct sockaddr *)&to, sizeof(to)), 5);
    }
    char bytes[8];
    assert_int_equal(recv(sender->fd, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
    close(fd);
}

static void test_no_descriptor_left(void **state)
{
    struct bench *bench = *state;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    transmit(bench, 3, true, ROCE_BTH_BYTES, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(bench->a.port.counters.routes_missed, 1);
    udp_port_flush(&bench->a.port);
    expect_all(bench);
}

/* Packets by all routes arrive at one socket, whose buffer is counted; a probe takes the same route
 * as the packet in front of it. */
static void test_all_routes_share_a_window(void **state)
{
    struct bench *bench = *state;
    const int fd = become_peer(bench);
    const struct instant now = {1};
    bench->a.port.receive_bytes = 1 << 16;
    uint32_t number, probes = 0;
    uint16_t port;
    uint8_t traffic_class;
    while (udp_link_has_room(&bench->a.port, bench->link, now)) {
        transmit(bench, 2, false, 52, 64);
        assert_in_range(bench->sent, 1, 1000);
    }
    udp_port_flush(&bench->a.port);
    while (take(fd, &number, &port, &traffic_class)) {
        assert_int_equal(port, bench->a.port.senders[0][2].port);
        probes++;
    }
    assert_int_equal(probes, bench->sent + bench->a.port.counters.probes_sent);
    assert_true(bench->a.port.counters.probes_sent > 0);
    close(fd);
}

/* A peer that has not heard of us asks, by a probe, whether we have read its packets. */
static void ask(const struct bench *bench, int fd, uint64_t sent)
{
    uint8_t bytes[ROCE_PROBE_BYTES + ROCE_ICRC_BYTES];
    const struct roce_probe probe = {.opcode = ROCE_OPCODE_PROBE,
                                     .destination_qpn =
                                         bench->a.addresses.slot * SHARE_QPN_SPAN + 2,
                                     .sent = sent,
                                     .link_slot = UINT16_MAX,
                                     .sender_slot = UINT16_MAX};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
    struct inet_flow flow = {.source_port = ROCE_UDP_PORT, .destination_port = ROCE_UDP_PORT};
    memcpy(&to.sin_addr, bench->av.source.bytes + 12, 4);
    memcpy(flow.source, bench->av.destination.bytes, 16);
    memcpy(flow.destination, bench->av.source.bytes, 16);
    roce_probe_encode(&probe, bytes);
    store_le32(
        bytes + ROCE_PROBE_BYTES,
        icrc_finish(icrc_packet(icrc_prefix(&flow, 0, sizeof(bytes)), bytes, ROCE_PROBE_BYTES)));
    assert_int_equal(sendto(fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)&to, sizeof(to)),
                     sizeof(bytes));
}

/* The number of our port from which the next packet comes to the peer. */
static uint32_t way_taken(const struct bench *bench, int fd)
{
    uint32_t number;
    uint16_t port;
    uint8_t traffic_class;
    assert_true(take(fd, &number, &port, &traffic_class));
    for (uint32_t route = 1; route < PORTS; route++) {
        if (port == bench->a.port.senders[0][route].port) {
            return route;
        }
    }
    assert_int_equal(port, ROCE_UDP_PORT);
    return 0;
}

/* Packets from one of our ports may be lost for ever. Blocks stop using such a port, and answers
 * follow them. */
static void test_answers_leave_as_the_newest_packet(void **state)
{
    struct bench *bench = *state;
    const int fd = become_peer(bench);
    static const uint8_t routes[] = {0, 3, 1, 0, 2};
    udp_forbid_fragments(fd, true);
    for (uint32_t i = 0; i < COUNT_OF(routes); i++) {
        transmit(bench, routes[i], i % 2, 52, 64);
        ask(bench, fd, i);
        while (receive(bench, &bench->a.port) > 0) {
        }
        udp_port_flush(&bench->a.port);
        assert_int_equal(way_taken(bench, fd), routes[i]);
        assert_int_equal(way_taken(bench, fd), routes[i]);
    }
    close(fd);
}

/* A probe may be lost, or its route dead: while no answer comes another one asks, by the route that
 * is in use then, until the peer is believed to be none. */
static void test_whoever_waits_for_room_asks_again(void **state)
{
    struct bench *bench = *state;
    const int fd = become_peer(bench);
    struct instant now = {1};
    udp_forbid_fragments(fd, true);
    bench->a.port.receive_bytes = 1 << 16;
    while (udp_link_has_room(&bench->a.port, bench->link, now)) {
        transmit(bench, 1, false, ROCE_BTH_BYTES, 1024);
        assert_in_range(bench->sent, 1, 1000);
    }
    udp_port_flush(&bench->a.port);
    const uint64_t before = bench->a.port.counters.probes_sent;
    for (uint32_t ms = 1; ms < 20; ms++) {
        now.ns = 1 + ms * UINT64_C(1000000);
        assert_false(udp_link_has_room(&bench->a.port, bench->link, now));
        assert_false(udp_link_has_room(&bench->a.port, bench->link, now));
        assert_int_equal(bench->a.port.counters.probes_sent - before, ms / 2);
    }
    now.ns += 1000000;
    assert_true(udp_link_has_room(&bench->a.port, bench->link, now));
    close(fd);
}

/* -- Peers that are there -----------------------------------------------------------------------*/

/* The NIC challenges addresses with numbers of ours; each number that it uses is followed by
 * another one. */
static void test_numbers_are_drawn(void **state)
{
    struct bench *bench = *state;
    const struct instant now = {1};
    uint64_t before = 0;
    assert_true(udp_link_has_room(&bench->a.port, bench->link, now));
    assert_int_equal(bench->routes.random, 0); /* There is no stream of blocks. */
    bench->routes.blocks = true;
    for (int i = 0; i < 3; i++) {
        bench->routes.random = 0;
        assert_true(udp_link_has_room(&bench->a.port, bench->link, now));
        assert_true(bench->routes.random > UINT32_MAX && bench->routes.random != before);
        before = bench->routes.random;
        assert_true(udp_link_has_room(&bench->a.port, bench->link, now));
        assert_int_equal(bench->routes.random, before);
    }
}

static uint64_t probes_at(int fd)
{
    uint32_t number;
    uint16_t port;
    uint8_t traffic_class;
    uint64_t count = 0;
    while (take(fd, &number, &port, &traffic_class)) {
        count++;
    }
    return count;
}

/* A peer that wants data of READs is probed, once for each time that the NIC asks for it, with a
 * number that cannot be guessed. */
static void test_who_is_doubted_is_asked(void **state)
{
    struct bench *bench = *state;
    const struct instant now = {1};
    const int fd = become_peer(bench);
    const struct udp_link *link = CONTAINER_OF(bench->link, struct udp_link, link);
    assert_true(link->sent > UINT32_MAX && link->sent == link->confirmed);
    for (uint64_t i = 0; i < 3; i++) {
        bench->routes.doubts = true;
        for (int again = 0; again < 5; again++) {
            assert_true(udp_link_has_room(&bench->a.port, bench->link, now));
        }
        udp_port_flush(&bench->a.port);
        assert_int_equal(probes_at(fd), 1);
    }
    assert_false(udp_link_answers(bench->link));
    close(fd);
}

/* A peer that has answered is believed to be there until it has been silent for 5 s of sending. */
static void test_who_falls_silent_is_doubted(void **state)
{
    struct bench *bench = *state;
    struct instant now = {1};
    bench->routes.doubts = true;
    assert_true(udp_link_has_room(&bench->a.port, bench->link, now));
    udp_port_flush(&bench->a.port);
    expect_all(bench);
    assert_true(udp_link_answers(bench->link));
    struct udp_link *link = CONTAINER_OF(bench->link, struct udp_link, link);
    for (uint32_t windows = 0; windows < 250; windows++) {
        assert_true(udp_link_answers(bench->link));
        link->sent += UINT32_MAX; /* These bytes were lost. */
        assert_false(udp_link_has_room(&bench->a.port, bench->link, now));
        now.ns += 20000000;
        assert_true(udp_link_has_room(&bench->a.port, bench->link, now));
    }
    assert_false(udp_link_answers(bench->link));
    bench->routes.doubts = true;
    assert_true(udp_link_has_room(&bench->a.port, bench->link, now));
    udp_port_flush(&bench->a.port);
    expect_all(bench);
    assert_true(udp_link_answers(bench->link));
}

/* -- Facts about arrivals -----------------------------------------------------------------------*/

/* The last of the datagrams, of this number, that one look brings to b. */
static struct udp_datagram last_datagram(struct bench *bench, uint32_t count)
{
    const struct udp_datagram *datagram;
    struct udp_datagram last = {0};
    while (udp_port_look(&bench->b.port, count, NULL) > 0) {
        while ((datagram = udp_port_next(&bench->b.port)) != NULL) {
            last = *datagram;
            count--;
        }
    }
    assert_int_equal(count, 0);
    return last;
}

static struct udp_datagram next_datagram(struct bench *bench)
{
    return last_datagram(bench, 1);
}

static void send_one(struct bench *bench, uint8_t route, bool ecn_capable)
{
    transmit(bench, route, ecn_capable, ROCE_BTH_BYTES, 0);
    udp_port_flush(&bench->a.port);
}

static void test_who_does_not_ask_is_told_nothing(void **state)
{
    struct bench *bench = *state;
    send_one(bench, 1, true);
    const struct udp_datagram datagram = next_datagram(bench);
    assert_int_equal(datagram.arrived.ns, 0);
    assert_int_equal(datagram.variant.traffic_class, 0);
}

/* The time of arrival is when a datagram was sent, not when we look at it. */
static void test_when_it_arrived(void **state)
{
    struct bench *bench = *state;
    udp_port_observe(&bench->b.port);
    usleep(100000); /* The kernel begins to stamp some time after it was asked first. */
    for (uint8_t route = 0; route < PORTS; route++) {
        const struct instant before = clock_now();
        send_one(bench, route, route % 2 == 0);
        const struct instant after = clock_now();
        usleep(50000);
        const struct udp_datagram datagram = next_datagram(bench);
        assert_in_range(datagram.arrived.ns, before.ns - 10000000, after.ns + 10000000);
        assert_true(datagram.arrived.ns < clock_now().ns - 30000000);
        assert_int_equal(datagram.variant.traffic_class, route % 2 == 0 ? 2 : 0);
    }
}

/* Datagrams that were coalesced have the same facts. */
static void test_coalesced_arrivals_tell_the_same(void **state)
{
    struct bench *bench = *state;
    udp_port_observe(&bench->b.port);
    for (int i = 0; i < 100; i++) {
        transmit(bench, 3, true, bench->sent % 89 + ROCE_BTH_BYTES, 0);
    }
    udp_port_flush(&bench->a.port);
    expect_all(bench);
    for (int i = 0; i < 20; i++) {
        transmit(bench, 3, true, 40, 1024);
    }
    udp_port_flush(&bench->a.port);
    const struct udp_datagram last = last_datagram(bench, 20);
    assert_int_equal(last.variant.traffic_class, 2);
    assert_int_not_equal(last.arrived.ns, 0);
}

/* Sends a packet by route 0 or 1, as an engine asks for it; returns the traffic class that
 * arrives. */
static uint8_t class_of(struct bench *bench, uint8_t route, enum nic_ecn ecn, uint8_t traffic_class)
{
    const struct nic_av av = {.hop_limit = INET_HOP_LIMIT, .traffic_class = traffic_class};
    struct nic_departure departure = {.av = &av, .headers_bytes = ROCE_BTH_BYTES};
    departure.headers[0] = 0xc5;
    store_be32(departure.headers + 4, bench->b.addresses.slot * SHARE_QPN_SPAN + 2);
    struct link *link = route == 0 && udp_link_suits(bench->link, ecn)
                            ? bench->link
                            : udp_port_route(&bench->a.port, bench->link, route, ecn);
    assert_true(udp_port_transmit(&bench->a.port, link, &departure));
    udp_port_flush(&bench->a.port);
    const struct udp_datagram datagram = next_datagram(bench);
    assert_int_equal(datagram.arrived.ns, 0);
    return datagram.variant.traffic_class;
}

/* Packets of a connection may be marked if they leave from an address that routers lead to, unless
 * they ask for something else; at such an address we see marks. */
static void test_connections_may_be_marked(void **state)
{
    struct bench *bench = *state;
    bench->b.addresses.entries[0].loopback = false;
    udp_port_serve_connections(&bench->b.port, &bench->av.destination);
    udp_port_serve_connections(&bench->a.port, &bench->av.source); /* A loopback address. */
    assert_int_equal(class_of(bench, 0, NIC_ECN_OF_PATH, 0), 0);
    assert_int_equal(class_of(bench, 0, NIC_ECN_NOT, 0), 0);
    assert_int_equal(class_of(bench, 0, NIC_ECN_CAPABLE, 0), 2);
    assert_int_equal(class_of(bench, 0, NIC_ECN_OF_PATH, 0xbb), 0xb8);
    bench->a.addresses.entries[0].loopback = false;
    for (int times = 0; times < 2; times++) {
        udp_port_serve_connections(&bench->a.port, &bench->av.source);
        assert_int_equal(class_of(bench, 0, NIC_ECN_OF_PATH, 0), 2);
        assert_int_equal(class_of(bench, 0, NIC_ECN_NOT, 0), 0);
        assert_int_equal(class_of(bench, 0, NIC_ECN_CAPABLE, 0), 2);
        assert_int_equal(class_of(bench, 0, NIC_ECN_OF_PATH, 0xb8), 0xba);
        assert_int_equal(class_of(bench, 0, NIC_ECN_NOT, 0xb8), 0xb8);
        for (uint8_t route = 1; route < PORTS; route++) {
            assert_int_equal(class_of(bench, route, NIC_ECN_CAPABLE, 0), 2);
            assert_int_equal(class_of(bench, route, NIC_ECN_NOT, 0), 0);
        }
    }
    /* The same holds for a peer that we meet later. */
    bench->link = udp_port_link(&bench->a.port, &bench->av.source, &bench->av.destination, 7);
    assert_int_equal(class_of(bench, 0, NIC_ECN_OF_PATH, 0), 2);
    assert_int_equal(class_of(bench, 0, NIC_ECN_NOT, 0), 0);
}

/* We see a router's mark, also beside a DSCP. */
static void test_marks_are_seen(void **state)
{
    struct bench *bench = *state;
    udp_port_observe(&bench->b.port);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), marked = 26 << 2 | 3;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)}, from;
    memcpy(&to.sin_addr, bench->av.destination.bytes + 12, 4);
    assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_TOS, &marked, sizeof(marked)), 0);
    udp_forbid_fragments(fd, true);
    from = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
    socklen_t bytes = sizeof(from);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &bytes), 0);
    struct inet_flow flow = {.source = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1},
                             .source_port = ntohs(from.sin_port),
                             .destination_port = ROCE_UDP_PORT};
    memcpy(flow.destination, bench->av.destination.bytes, 16);
    uint8_t packet[ROCE_BTH_BYTES + ROCE_ICRC_BYTES] = {[0] = 4};
    const uint32_t prefix = icrc_prefix(&flow, 0, sizeof(packet));
    store_le32(packet + ROCE_BTH_BYTES, icrc_finish(icrc_packet(prefix, packet, ROCE_BTH_BYTES)));
    assert_int_equal(
        sendto(fd, packet, sizeof(packet), 0, (const struct sockaddr *)&to, sizeof(to)),
        sizeof(packet));
    assert_int_equal(next_datagram(bench).variant.traffic_class, marked);
    close(fd);
}

/* One look. Returns how many datagrams it brought. */
static uint32_t count_marked(struct udp_port *port, uint32_t *marked)
{
    const struct udp_datagram *datagram;
    uint32_t count = 0, arrived;
    while ((arrived = udp_port_look(port, 64, NULL)) > 0) {
        count += arrived;
        while ((datagram = udp_port_next(port)) != NULL) {
            *marked += datagram->variant.traffic_class == 2 && datagram->arrived.ns != 0;
        }
    }
    return count;
}

/* From ::1 to itself, because there is no second one. Arrivals are observed once there are blocks:
 * before that, all connections would pay for it. */
static void test_ipv6(void **state)
{
    (void)state;
    struct end *end = calloc(1, sizeof(*end));
    char error[256];
    if (!address_find(&end->addresses, "::1", error, sizeof(error))) {
        free(end);
        skip();
    }
    open_port(end);
    const struct gid *self = &end->addresses.entries[0].gid;
    struct nic_routes routes = {0};
    struct link *link = udp_port_link(&end->port, self, self, (int)end->addresses.slot);
    assert_true(udp_port_offer_routes(&end->port, link, &routes));
    assert_int_equal(routes.datagram_bytes, end->addresses.entries[0].interface_bytes - 48);
    struct nic_departure departure = {.av = &plain_av, .headers_bytes = 52};
    store_be32(departure.headers + 4, end->addresses.slot * SHARE_QPN_SPAN + 2);
    assert_true(udp_link_has_room(&end->port, link, clock_now()) && !end->port.observing);
    routes.blocks = true;
    assert_true(udp_link_has_room(&end->port, link, clock_now()) && end->port.observing);
    for (uint8_t i = 0; i < 40; i++) {
        struct link *route = udp_port_route(&end->port, link, i % PORTS, true);
        assert_true(udp_port_transmit(&end->port, route, &departure));
    }
    udp_port_flush(&end->port);
    uint32_t marked = 0;
    while (count_marked(&end->port, &marked) > 0) {
    }
    assert_int_equal(marked, 40);
    assert_int_equal(end->port.counters.routes_missed, 0);
    udp_port_close(&end->port);
    address_release(&end->addresses);
    free(end);
}

/* The next process with that slot does not get the facts that its predecessor asked for. */
static void test_successor_is_told_nothing(void **state)
{
    struct bench *bench = *state;
    udp_port_observe(&bench->b.port);
    udp_port_close(&bench->b.port);
    open_port(&bench->b);
    send_one(bench, 0, true);
    const struct udp_datagram datagram = next_datagram(bench);
    assert_int_equal(datagram.arrived.ns, 0);
    assert_int_equal(datagram.variant.traffic_class, 0);
}

/* -- Addresses ----------------------------------------------------------------------------------*/

static void learn(struct bench *bench, const struct gid *gids, uint32_t count)
{
    assert_true(nic_routes_learn(&bench->routes, &bench->av, gids, count));
}

/* EXA-100 */
static void test_pairs_of_addresses(void **state)
{
    struct bench *bench = *state;
    assert_int_equal(bench->routes.own_count, 1);
    assert_int_equal(nic_routes_count(&bench->routes), 2 * PORTS);
    /* The peer has named no other address: all packets go to its one address. */
    transmit_mix(bench, 3, 2 * PORTS);
    expect_all(bench);
    learn(bench, &bench->b.addresses.entries[1].gid, 1);
    transmit_mix(bench, 4, 2 * PORTS);
    expect_all(bench);
    /* It leaves by the route that it was meant for. */
    transmit(bench, 1, false, bench->sent % 89 + ROCE_BTH_BYTES, 0);
    learn(bench, NULL, 0);
    transmit_mix(bench, 5, 2 * PORTS);
    expect_all(bench);
    assert_int_equal(bench->a.port.counters.routes_missed, 0);
}

/* A peer may name an address that no route leads to. */
static void test_pair_without_a_route(void **state)
{
    struct bench *bench = *state;
    const struct gid nowhere = {{[10] = 0xff, [11] = 0xff, 203, 0, 113, 1}};
    learn(bench, &nowhere, 1);
    transmit(bench, 1, false, ROCE_BTH_BYTES, 0);
    bench->between[0] = nic_routes_at(&bench->routes, &bench->av, 0);
    udp_port_flush(&bench->a.port);
    assert_int_equal(receive(bench, &bench->b.port), 1);
    assert_int_equal(bench->a.port.counters.routes_missed, 1);
}

static uint32_t drop_idle(struct udp_port *port)
{
    struct link *link = link_table_first_idle(&port->links), *next;
    for (; link != NULL; link = next) {
        next = link_table_next(&port->links, link);
        link->lost = true; /* As one of too many. */
        if (link_table_spares(&port->links, link)) {
            udp_port_drop(port, link);
        }
    }
    return port->links.count;
}

/* Two links that are routes of each other stay as long as one of them is held, and go together. */
static void test_links_that_are_routes_go(void **state)
{
    struct bench *bench = *state;
    struct udp_port *port = &bench->a.port;
    struct nic_routes other_routes = {0};
    const struct gid *other_self = &bench->a.addresses.entries[1].gid;
    const struct gid *other_peer = &bench->b.addresses.entries[1].gid;
    struct link *other = udp_port_link(port, other_self, other_peer, bench->link->slot);
    const struct nic_av other_av = {.source = *other_self, .destination = *other_peer};
    assert_true(udp_port_offer_routes(port, other, &other_routes));
    learn(bench, other_peer, 1);
    assert_true(nic_routes_learn(&other_routes, &other_av, &bench->av.destination, 1));
    for (int lap = 0; lap < 3; lap++) {
        /* This packet leaves by the other link. */
        transmit(bench, 1, false, bench->sent % 89 + ROCE_BTH_BYTES, 100);
        (void)udp_port_route(port, other, 1, NIC_ECN_NOT);
        assert_int_equal(bench->link->routes + other->routes, 2);
        udp_port_release(port, bench->link);
        assert_int_equal(drop_idle(port), 2); /* The other one leads by it. */
        bench->link =
            udp_port_link(port, &bench->av.source, &bench->av.destination, bench->link->slot);
    }
    udp_port_flush(port);
    expect_all(bench);
    udp_port_release(port, other);
    udp_port_release(port, bench->link);
    assert_int_equal(drop_idle(port), 0);
}

/* Each address of the peer is a socket with a buffer of its own; when one is full, no link has
 * room, because the next packet might go there. */
static void test_each_pair_has_a_window(void **state)
{
    struct bench *bench = *state;
    const struct instant now = {1};
    learn(bench, &bench->b.addresses.entries[1].gid, 1);
    bench->a.port.receive_bytes = 1 << 16;
    while (udp_link_has_room(&bench->a.port, bench->link, now)) {
        transmit(bench, 1, false, bench->sent % 89 + ROCE_BTH_BYTES, 0);
        assert_in_range(bench->sent, 1, 1000);
    }
    udp_port_flush(&bench->a.port);
    expect_all(bench);
    expect_all(bench);
    assert_true(udp_link_has_room(&bench->a.port, bench->link, now));
    assert_true(bench->a.port.counters.probes_answered > 0);
}

/* Makes two interfaces in one subnet, in a network namespace of its own, and a neighbour that both
 * lead to. */
static bool move_to_private_network(void)
{
    static const char commands[] =
        "set -e; for n in 0 1; do"
        " ip link add nonic$n type veth peer name there$n; ip link set there$n up;"
        " ip link set nonic$n mtu $((2200 - 700 * n)) up;"
        " ip address add 10.99.0.1$n/24 dev nonic$n;"
        " ip address add fd99::1$n/64 dev nonic$n nodad;"
        " ip neigh add 10.99.0.77 lladdr 02:00:00:00:00:77 dev nonic$n;"
        " ip neigh add fd99::77 lladdr 02:00:00:00:00:77 dev nonic$n;"
        " done";
    return (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
           system(commands) == 0;
}

static unsigned long packets_sent(const char *interface)
{
    FILE *list = fopen("/proc/thread-self/net/dev", "re");
    assert_non_null(list);
    char line[512], name[32];
    unsigned long packets = 0, found = 0;
    while (fgets(line, sizeof(line), list) != NULL) {
        if (sscanf(line, " %31[^:]: %*u %*u %*u %*u %*u %*u %*u %*u %*u %lu", name, &packets) ==
                2 &&
            strcmp(name, interface) == 0) {
            found = packets;
        }
    }
    fclose(list);
    return found;
}

/* The kernel sends a few packets by itself. */
static void expect_to_leave_by(struct end *end, struct link *link, uint8_t route,
                               const char *interface, const char *other)
{
    const unsigned long before = packets_sent(interface), others = packets_sent(other);
    struct nic_departure departure = {.av = &plain_av, .headers_bytes = 52};
    end->port.segmenting = false;
    for (int i = 0; i < 100; i++) {
        struct link *by = udp_port_route(&end->port, link, route, true);
        assert_true(udp_port_transmit(&end->port, by, &departure));
    }
    udp_port_flush(&end->port);
    assert_true(packets_sent(interface) - before >= 100);
    assert_true(packets_sent(other) - others < 50);
}

static void try_interfaces(struct end *end, uint32_t first, const struct gid *peer, uint32_t bytes)
{
    struct nic_routes routes = {0};
    struct link *link =
        udp_port_link(&end->port, &end->addresses.entries[first].gid, peer, LOCAL_NO_SLOT);
    assert_true(udp_port_offer_routes(&end->port, link, &routes));
    assert_int_equal(nic_routes_count(&routes), 2 * PORTS);
    assert_int_equal(routes.datagram_bytes, bytes); /* The size that fits the smaller interface. */
    for (uint8_t route = 1; route < 2 * PORTS; route++) {
        expect_to_leave_by(end, link, route, route % 2 == 0 ? "nonic0" : "nonic1",
                           route % 2 == 0 ? "nonic1" : "nonic0");
    }
    assert_int_equal(end->port.counters.routes_missed, 0);
    assert_int_equal(end->port.counters.send_failed, 0);
}

/* EXA-100 */
static void test_each_address_sends_by_its_interface(void **state)
{
    (void)state;
    if (!move_to_private_network()) {
        skip();
    }
    struct end *end = calloc(1, sizeof(*end));
    char error[256];
    assert_true(address_find(&end->addresses, "nonic0,nonic1", error, sizeof(error)));
    assert_int_equal(end->addresses.count, 4);
    assert_int_equal(end->addresses.mtu, PATH_MTU_1024);
    open_port(end);
    const struct gid ipv4 = {{[10] = 0xff, [11] = 0xff, 10, 99, 0, 77}};
    const struct gid ipv6 = {{0xfd, 0x99, [15] = 0x77}};
    try_interfaces(end, 0, &ipv4, 1500 - 28);
    try_interfaces(end, 1, &ipv6, 1500 - 48);
    udp_port_close(&end->port);
    address_release(&end->addresses);
    free(end);
}

/* `format`: a device whose addresses begin in a way that no other process's do. */
static void expect_refusal(const char *format, const char *word)
{
    struct address_set set = {0};
    char device[256] = "", error[256] = "", alike[32];
    snprintf(alike, sizeof(alike), "127.79.%d", getpid() % 256);
    for (const char *at = format; *at != '\0'; at++) {
        const size_t used = strlen(device);
        snprintf(device + used, sizeof(device) - used, "%.*s", *at == '@' ? 32 : 1,
                 *at == '@' ? alike : at);
    }
    assert_false(address_find(&set, device, error, sizeof(error)));
    assert_non_null(strstr(error, word));
    assert_int_equal(set.count, 0);
}

static void test_devices_that_are_none(void **state)
{
    (void)state;
    expect_refusal("@.1,@.1", "twice");
    expect_refusal("@.1,", "neither");
    expect_refusal(",@.1", "neither");
    expect_refusal("@.1,no-such-device", "no-such-device");
    expect_refusal("@.1,@.2,@.3,@.4,@.5", "more than 4");
}

/* -- Threads that are cancelled -----------------------------------------------------------------*/

static struct link *link_found;

static void *find_route_cancelled(void *context)
{
    struct bench *bench = context;
    pthread_cancel(pthread_self());
    link_found = udp_port_route(&bench->a.port, bench->link, PORTS - 1, NIC_ECN_NOT);
    pthread_testcancel();
    return NULL;
}

/* A thread that posts or polls opens sockets here, while it holds the NIC's lock. */
static void test_no_thread_is_cancelled_inside(void **state)
{
    pthread_t thread;
    void *result;
    link_found = NULL;
    assert_int_equal(pthread_create(&thread, NULL, find_route_cancelled, *state), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_non_null(link_found);
}

#define ROUTES_TEST(test) cmocka_unit_test_setup_teardown(test, setup_lone, teardown)
#define PAIR_TEST(test)   cmocka_unit_test_setup_teardown(test, setup_two_words, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROUTES_TEST(test_route_n_leaves_from_port_n),
        ROUTES_TEST(test_icrc_is_right_by_each_route),
        ROUTES_TEST(test_identification_of_each_socket),
        ROUTES_TEST(test_sockets_are_opened_when_they_are_used),
        ROUTES_TEST(test_passing_routes),
        ROUTES_TEST(test_senders_take_nothing_in),
        ROUTES_TEST(test_no_descriptor_left),
        ROUTES_TEST(test_all_routes_share_a_window),
        ROUTES_TEST(test_answers_leave_as_the_newest_packet),
        ROUTES_TEST(test_whoever_waits_for_room_asks_again),
        ROUTES_TEST(test_numbers_are_drawn),
        ROUTES_TEST(test_who_is_doubted_is_asked),
        ROUTES_TEST(test_who_falls_silent_is_doubted),
        ROUTES_TEST(test_who_does_not_ask_is_told_nothing),
        ROUTES_TEST(test_when_it_arrived),
        ROUTES_TEST(test_coalesced_arrivals_tell_the_same),
        ROUTES_TEST(test_marks_are_seen),
        ROUTES_TEST(test_connections_may_be_marked),
        ROUTES_TEST(test_no_thread_is_cancelled_inside),
        PAIR_TEST(test_no_thread_is_cancelled_inside),
        cmocka_unit_test(test_ipv6),
        PAIR_TEST(test_successor_is_told_nothing),
        PAIR_TEST(test_pairs_of_addresses),
        PAIR_TEST(test_pair_without_a_route),
        PAIR_TEST(test_each_pair_has_a_window),
        PAIR_TEST(test_links_that_are_routes_go),
        cmocka_unit_test(test_devices_that_are_none),
        cmocka_unit_test(test_each_address_sends_by_its_interface), /* It leaves this network. */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
