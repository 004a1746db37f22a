/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets that one UDP port sends reach another one, byte for byte and in order; a damaged
 *         packet is counted and goes nowhere; a receiver that does not read is not overrun.
 * Method  Two ports on loopback addresses of their own, and plain sockets for peers that are not
 *         nonic. Random batches, with segmentation and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "drivers/system/local_socket.h"
#include "drivers/udp/udp_port.h"

#define EXPECTED_MAX 20000

struct end {
    struct address_set addresses;
    struct udp_port *port;
};

static const struct nic_av plain_av = {.hop_limit = INET_HOP_LIMIT};

struct bench {
    struct end a, b;
    struct link *link; /* From a to b. */
    uint8_t *memory;   /* Payloads. */
    bool on_demand;    /* Payloads are in a region whose pages may be missing. */
    /* The packets that have to come out at b, and how many did. */
    struct expected {
        uint32_t headers_bytes, payload_bytes, pad_bytes;
        uint8_t headers[ROCE_HEADERS_BYTES_MAX];
        const uint8_t *payload;
    } * expected;
    uint32_t sent, received;
};

static void open_end(struct end *end)
{
    char error[256];
    assert_true(address_find(&end->addresses, NULL, error, sizeof(error)));
    end->port = calloc(1, sizeof(*end->port));
    assert_true(udp_port_open(end->port, &end->addresses, error, sizeof(error)));
}

static void close_end(struct end *end)
{
    udp_port_close(end->port);
    address_release(&end->addresses);
    free(end->port);
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct prng prng;
    open_end(&bench->a);
    open_end(&bench->b);
    bench->link = udp_port_link(bench->a.port, &bench->a.addresses.entries[0].gid,
                                &bench->b.addresses.entries[0].gid, LOCAL_NO_SLOT);
    bench->memory = malloc(1 << 16);
    bench->expected = calloc(EXPECTED_MAX, sizeof(*bench->expected));
    prng_init(&prng, 1);
    for (int i = 0; i < 1 << 16; i++) {
        bench->memory[i] = (uint8_t)prng_next(&prng);
    }
    *state = bench;
    return bench->link == NULL;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    close_end(&bench->a);
    close_end(&bench->b);
    free(bench->memory);
    free(bench->expected);
    free(bench);
    return 0;
}

/* Transmits a packet as the engines make it: an opcode, then bytes that nobody here looks at. */
static void transmit(struct bench *bench, struct prng *prng, uint32_t payload_bytes)
{
    assert_true(bench->sent < EXPECTED_MAX);
    struct expected *expected = &bench->expected[bench->sent++];
    struct nic_departure departure = {.av = &plain_av,
                                      .headers_bytes =
                                          ROCE_BTH_BYTES + 4 * (uint32_t)prng_below(prng, 5),
                                      .payload_bytes = payload_bytes,
                                      .pad_bytes = roce_pad_bytes(payload_bytes)};
    for (uint32_t i = 0; i < departure.headers_bytes; i++) {
        departure.headers[i] = (uint8_t)prng_next(prng);
    }
    /* It is not an acknowledgement, which may change places, and not a probe. */
    departure.headers[0] = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY);
    const uint8_t *payload = bench->memory + prng_below(prng, (1 << 16) - 4096);
    uint32_t left = payload_bytes;
    while (left > 0 && departure.segment_count < NIC_SEGMENT_MAX - 1) {
        const uint32_t bytes = 1 + (uint32_t)prng_below(prng, left);
        departure.segments[departure.segment_count++] =
            (struct segment){.address = (uintptr_t)(payload + payload_bytes - left),
                             .bytes = bytes,
                             .may_fault = bench->on_demand};
        left -= bytes;
    }
    if (left > 0) {
        departure.segments[departure.segment_count++] =
            (struct segment){.address = (uintptr_t)(payload + payload_bytes - left),
                             .bytes = left,
                             .may_fault = bench->on_demand};
    }
    *expected = (struct expected){.headers_bytes = departure.headers_bytes,
                                  .payload_bytes = payload_bytes,
                                  .pad_bytes = departure.pad_bytes,
                                  .payload = payload};
    memcpy(expected->headers, departure.headers, sizeof(expected->headers));
    assert_true(udp_port_transmit(bench->a.port, bench->link, &departure));
}

static void compare(struct bench *bench, const struct udp_datagram *datagram)
{
    static const uint8_t zeros[3];
    assert_true(bench->received < bench->sent);
    const struct expected *expected = &bench->expected[bench->received++];
    const uint8_t *at = datagram->bytes;
    assert_int_equal(datagram->count,
                     expected->headers_bytes + expected->payload_bytes + expected->pad_bytes);
    assert_memory_equal(at, expected->headers, expected->headers_bytes);
    at += expected->headers_bytes;
    assert_memory_equal(at, expected->payload, expected->payload_bytes);
    assert_memory_equal(at + expected->payload_bytes, zeros, expected->pad_bytes);
    assert_memory_equal(&datagram->source, &bench->a.addresses.entries[0].gid, 16);
    assert_memory_equal(&datagram->destination, &bench->b.addresses.entries[0].gid, 16);
}

/* One look. Returns how many datagrams it brought, and adds those that it handed out. */
static uint32_t look(struct udp_port *port, uint32_t quantum, uint32_t *handed_out)
{
    uint32_t count = 0, arrived;
    while ((arrived = udp_port_look(port, quantum, NULL)) > 0) {
        count += arrived;
        while (udp_port_next(port) != NULL) {
            ++*handed_out;
        }
    }
    return count;
}

/* Looks until nothing comes. Returns how many datagrams were handed out. */
static uint32_t drain(struct udp_port *port)
{
    uint32_t handed_out = 0;
    while (look(port, 32, &handed_out) > 0) {
    }
    return handed_out;
}

static uint32_t look_and_compare(struct bench *bench)
{
    const struct udp_datagram *datagram;
    uint32_t count = 0, arrived;
    while ((arrived = udp_port_look(bench->b.port, 32, NULL)) > 0) {
        count += arrived;
        while ((datagram = udp_port_next(bench->b.port)) != NULL) {
            compare(bench, datagram);
        }
    }
    return count;
}

static void receive_all(struct bench *bench)
{
    while (look_and_compare(bench) > 0) {
    }
    assert_int_equal(drain(bench->a.port), 0); /* Takes in answers to probes. */
}

static void exchange(struct bench *bench, uint64_t seed)
{
    struct prng prng;
    prng_init(&prng, seed);
    for (int round = 0; round < 300; round++) {
        const uint32_t count = 1 + (uint32_t)prng_below(&prng, 40);
        const uint32_t usual = (uint32_t)prng_below(&prng, 2) ? 4096 : 8;
        for (uint32_t i = 0; i < count; i++) {
            const bool odd = prng_below(&prng, 4) == 0;
            transmit(bench, &prng, odd ? (uint32_t)prng_below(&prng, 4097) : usual);
        }
        udp_port_flush(bench->a.port);
        receive_all(bench);
        assert_int_equal(bench->received, bench->sent);
    }
    assert_int_equal(udp_port_bad_icrc(bench->b.port), 0);
}

static void test_segmented(void **state)
{
    struct bench *bench = *state;
    assert_true(bench->a.port->segmenting); /* Any kernel from 4.18 on. */
    exchange(bench, 1);
    assert_true(bench->a.port->counters.send_calls < bench->sent / 4);
}

static void test_without_segmentation(void **state)
{
    struct bench *bench = *state;
    bench->a.port->segmenting = false;
    exchange(bench, 2);
}

/* A backlog of datagrams that nothing coalesces comes by few calls, whatever their sizes. */
static void test_many_messages_a_call(void **state)
{
    struct bench *bench = *state;
    struct prng prng;
    prng_init(&prng, 3);
    bench->a.port->segmenting = false;
    for (int i = 0; i < 300; i++) {
        transmit(bench, &prng, (uint32_t)prng_below(&prng, 257));
    }
    udp_port_flush(bench->a.port);
    receive_all(bench);
    assert_int_equal(bench->received, bench->sent);
    assert_true(bench->b.port->counters.receive_calls < bench->sent / 10);
    /* A segmented call behind them is one message. */
    bench->a.port->segmenting = true;
    for (int i = 0; i < 40; i++) {
        transmit(bench, &prng, 8);
    }
    bench->b.port->fruitful_looks = UINT32_MAX / 2; /* As if others had come right before. */
    udp_port_flush(bench->a.port);
    receive_all(bench);
    assert_int_equal(bench->received, bench->sent);
}

/* -- Several addresses --------------------------------------------------------------------------*/

/* Sends `count` packets of one size, which come together therefore. */
static void send_alike(struct bench *bench, struct link *link, uint32_t count)
{
    struct nic_departure departure = {.av = &plain_av,
                                      .headers_bytes = ROCE_BTH_BYTES,
                                      .payload_bytes = 512,
                                      .segment_count = 1,
                                      .segments = {{(uintptr_t)bench->memory, 512, false}}};
    departure.headers[0] = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(udp_port_transmit(bench->a.port, link, &departure));
    }
    udp_port_flush(bench->a.port);
}

/* Each look at the first address brings as many packets as one round takes. */
static void test_a_busy_address_does_not_starve_others(void **state)
{
    struct bench *bench = *state;
    struct end second;
    char error[256];
    open_end(&second);
    struct address_set both = bench->b.addresses;
    both.entries[both.count++] = second.addresses.entries[0];
    struct udp_port *port = calloc(1, sizeof(*port));
    assert_true(udp_port_open(port, &both, error, sizeof(error)));
    struct link *quiet = udp_port_link(bench->a.port, &bench->a.addresses.entries[0].gid,
                                       &both.entries[1].gid, LOCAL_NO_SLOT);
    assert_non_null(quiet);
    for (int round = 0; round < 10; round++) {
        send_alike(bench, bench->link, 2 * UDP_SEGMENTS_MAX);
        send_alike(bench, quiet, 1);
        uint32_t handed_out = 0;
        const uint32_t count = look(port, 32, &handed_out);
        assert_in_range(count, 33,
                        2 * UDP_SEGMENTS_MAX); /* Some packets of the first address are left. */
        const struct gid *last = &port->look.datagram.destination;
        assert_memory_equal(last, &both.entries[1].gid, sizeof(*last));
        assert_int_equal(handed_out + drain(port), 2 * UDP_SEGMENTS_MAX + 1);
    }
    udp_port_close(port);
    free(port);
    close_end(&second);
}

/* -- Bad packets --------------------------------------------------------------------------------*/

/* An RC SEND Only with `payload` bytes from `flow`, its ICRC made for `identification`. */
static uint32_t forge(uint8_t *bytes, const struct inet_flow *flow, uint16_t identification,
                      uint32_t payload)
{
    memset(bytes, 0, ROCE_BTH_BYTES + payload);
    bytes[0] = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY);
    memset(bytes + ROCE_BTH_BYTES, 0x5a, payload);
    const uint32_t covered = ROCE_BTH_BYTES + payload, total = covered + ROCE_ICRC_BYTES;
    const uint32_t crc = icrc_packet(icrc_prefix(flow, identification, total), bytes, covered);
    store_le32(bytes + covered, icrc_finish(crc));
    return total;
}

static void test_every_flipped_bit_is_found(void **state)
{
    struct bench *bench = *state;
    const struct udp_link *link = CONTAINER_OF_CONST(bench->link, struct udp_link, link);
    uint8_t bytes[128];
    const uint32_t total = forge(bytes, &link->flow, 0, 24);
    for (uint32_t bit = 0; bit < total * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        udp_port_transmit_raw(bench->a.port, bench->link, INET_VARIANT_PLAIN, bytes, total);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        /* BTH byte 4 (FECN, BECN) is the network's to change. */
        assert_int_equal(drain(bench->b.port), bit / 8 == 4);
    }
    assert_int_equal(udp_port_bad_icrc(bench->b.port), (total - 1) * 8);
}

static void test_too_short(void **state)
{
    struct bench *bench = *state;
    const uint8_t bytes[15] = {0};
    for (uint32_t count = 1; count < ROCE_BTH_BYTES + ROCE_ICRC_BYTES; count++) {
        udp_port_transmit_raw(bench->a.port, bench->link, INET_VARIANT_PLAIN, bytes, count);
        assert_int_equal(drain(bench->b.port), 0);
    }
    assert_int_equal(bench->b.port->counters.too_short, 15);
}

/* -- Peers that are not nonic -------------------------------------------------------------------*/

struct stranger {
    int fd;
    struct inet_flow flow;
    struct sockaddr_in to;
};

static struct stranger strange(const struct bench *bench)
{
    struct stranger stranger = {.fd = socket(AF_INET, SOCK_DGRAM, 0)};
    struct sockaddr_in self = {.sin_family = AF_INET};
    socklen_t bytes = sizeof(self);
    self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(stranger.fd, (const struct sockaddr *)&self, sizeof(self)), 0);
    assert_int_equal(getsockname(stranger.fd, (struct sockaddr *)&self, &bytes), 0);
    const uint8_t *to = bench->b.addresses.entries[0].gid.bytes;
    stranger.flow = (struct inet_flow){.source = {[10] = 0xff, 0xff, 127, 0, 0, 1},
                                       .source_port = ntohs(self.sin_port),
                                       .destination_port = ROCE_UDP_PORT};
    memcpy(stranger.flow.destination, to, 16);
    stranger.to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
    memcpy(&stranger.to.sin_addr, to + 12, 4);
    return stranger;
}

static uint32_t say(struct bench *bench, const struct stranger *stranger, uint16_t identification)
{
    uint8_t bytes[128];
    const uint32_t total = forge(bytes, &stranger->flow, identification, 40);
    assert_int_equal(sendto(stranger->fd, bytes, total, 0, (const struct sockaddr *)&stranger->to,
                            sizeof(stranger->to)),
                     total);
    return drain(bench->b.port);
}

/* The identifications of a kernel count up, and we recover them. A packet with one that does not
 * continue them counts as corrupt, until a second one confirms it. */
static void test_hidden_identifications(void **state)
{
    struct bench *bench = *state;
    const struct stranger stranger = strange(bench);
    for (uint32_t i = 0; i < 1000; i++) {
        /* This passes the wrap of the numbers. */
        assert_int_equal(say(bench, &stranger, (uint16_t)(65000 + i * 3)), 1);
    }
    assert_int_equal(say(bench, &stranger, 40000), 0);
    assert_int_equal(bench->b.port->counters.implausible_identification, 1);
    assert_int_equal(say(bench, &stranger, (uint16_t)(65000 + 3003)), 1);
    assert_int_equal(say(bench, &stranger, 20000), 0);
    assert_int_equal(say(bench, &stranger, 20001), 1); /* The peer was rebooted, so to say. */
    close(stranger.fd);
}

/* Sends the probe that a nonic sends every now and then (udp_flow.c); `slot` says which process of
 * its address it is. */
static void send_probe(const struct stranger *stranger, uint64_t value, uint16_t slot)
{
    uint8_t bytes[28] = {[0] = 0xc0, [2] = 0xff, [3] = 0xff};
    store_be64(bytes + ROCE_BTH_BYTES, value);
    store_be16(bytes + ROCE_BTH_BYTES + 8, 0xffff);
    store_be16(bytes + ROCE_BTH_BYTES + 10, slot);
    const uint32_t crc = icrc_packet(icrc_prefix(&stranger->flow, 0, sizeof(bytes)), bytes, 24);
    store_le32(bytes + 24, icrc_finish(crc));
    assert_int_equal(sendto(stranger->fd, bytes, sizeof(bytes), 0,
                            (const struct sockaddr *)&stranger->to, sizeof(stranger->to)),
                     sizeof(bytes));
}

/* Expects the answers to those slots, in their order, with the values that were sent. */
static void expect_answers(int fd, uint64_t value, uint32_t count)
{
    uint8_t bytes[64];
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), 28);
        assert_int_equal(bytes[0], 0xc1);
        assert_int_equal(load_be64(bytes + ROCE_BTH_BYTES), value + i);
        assert_int_equal(load_be32(bytes + 4), i % 256 * SHARE_QPN_SPAN + 2);
    }
    assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
}

/* Anybody can ask, with any source address and slot. All are answered, and none is remembered:
 * packets that come in make no links. */
static void test_probes_of_strangers_are_answered_and_forgotten(void **state)
{
    struct bench *bench = *state;
    const uint32_t before = bench->b.port->links.count;
    const struct stranger stranger = strange(bench);
    /* Answers go to the RoCE port of the address that asks. */
    const int answers = socket(AF_INET, SOCK_DGRAM, 0);
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons(ROCE_UDP_PORT),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const bool bound = bind(answers, (const struct sockaddr *)&at, sizeof(at)) == 0;
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t slot = 0; slot < 256; slot++) {
            send_probe(&stranger, round * 256 + slot, (uint16_t)slot);
        }
        assert_int_equal(drain(bench->b.port), 0);
        if (bound) {
            expect_answers(answers, round * 256, 256);
        }
    }
    assert_int_equal(bench->b.port->counters.datagrams_sent, 1024);
    assert_int_equal(bench->b.port->links.count, before);
    close(answers);
    close(stranger.fd);
}

/* -- Flow control -------------------------------------------------------------------------------*/

/* A user that may exceed net.core.rmem_max gets the larger buffer. */
static void test_receive_buffer_is_as_large_as_may_be(void **state)
{
    struct bench *bench = *state;
    const int fd = udp_port_fd(bench->b.port, 0);
    int granted, forced;
    socklen_t bytes = sizeof(granted);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &bytes), 0);
    const int wanted = 8 << 20;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof(wanted)) != 0) {
        skip();
    }
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &forced, &bytes), 0);
    assert_int_equal(granted, forced);
}

/* Gives the receive buffer the size of an ordinary machine. */
static void shrink_receive_buffer(struct bench *bench)
{
    const int wanted = 212992, fd = udp_port_fd(bench->b.port, 0);
    int granted;
    socklen_t bytes = sizeof(granted);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted)), 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &bytes), 0);
    bench->a.port->receive_bytes = (uint32_t)granted;
}

/* Packets of the sizes whose slabs waste the most memory; payloads that are read in place, and
 * payloads that have to be copied first. */
static void test_receiver_that_does_not_read_is_not_overrun(void **state)
{
    struct bench *bench = *state;
    static const uint32_t sizes[] = {0, 8, 130, 640, 1680, 3730, 4096};
    struct prng prng;
    struct instant now = {1};
    prng_init(&prng, 3);
    shrink_receive_buffer(bench);
    for (size_t i = 0; i < 2 * COUNT_OF(sizes); i++) {
        bench->on_demand = i >= COUNT_OF(sizes);
        while (udp_link_has_room(bench->a.port, bench->link, now)) {
            transmit(bench, &prng, sizes[i % COUNT_OF(sizes)]);
            /* Each packet is a datagram of its own, which costs the most memory. */
            udp_port_flush(bench->a.port);
        }
        receive_all(bench);
        receive_all(bench);
        assert_int_equal(bench->received, bench->sent); /* None was lost in a full buffer. */
        assert_true(udp_link_has_room(bench->a.port, bench->link, now));
    }
    assert_true(bench->a.port->counters.probes_answered > 0);
}

/* The same holds for packets that go as they are, as on a network with faults. */
static void test_ready_packets_are_held_back_too(void **state)
{
    struct bench *bench = *state;
    const struct udp_link *link = CONTAINER_OF_CONST(bench->link, struct udp_link, link);
    const struct instant now = {1};
    uint8_t bytes[ROCE_BTH_BYTES + 1024 + ROCE_ICRC_BYTES];
    const uint32_t total = forge(bytes, &link->flow, 0, 1024);
    uint32_t sent = 0;
    shrink_receive_buffer(bench);
    while (udp_link_has_room(bench->a.port, bench->link, now)) {
        udp_port_transmit_raw(bench->a.port, bench->link, INET_VARIANT_PLAIN, bytes, total);
        assert_true(++sent < EXPECTED_MAX);
    }
    assert_int_equal(drain(bench->b.port), sent);
    assert_int_equal(drain(bench->a.port), 0); /* Answers. */
    assert_true(udp_link_has_room(bench->a.port, bench->link, now));
}

/* A peer that answers no probe is not a nonic: after a while nothing is held back any more. */
static void test_peer_that_never_answers_is_not_limited(void **state)
{
    struct bench *bench = *state;
    const struct gid nobody = {{[10] = 0xff, 0xff, 127, 99, 98, 97}};
    struct prng prng;
    struct instant now = {1};
    prng_init(&prng, 4);
    bench->link =
        udp_port_link(bench->a.port, &bench->a.addresses.entries[0].gid, &nobody, LOCAL_NO_SLOT);
    assert_non_null(bench->link);
    while (udp_link_has_room(bench->a.port, bench->link, now)) {
        transmit(bench, &prng, 4096);
        udp_port_flush(bench->a.port);
    }
    now.ns += 10000000000u;
    for (int i = 0; i < 1000; i++) {
        assert_true(udp_link_has_room(bench->a.port, bench->link, now));
        transmit(bench, &prng, 4096);
        udp_port_flush(bench->a.port);
    }
}

static void test_links(void **state)
{
    struct bench *bench = *state;
    const struct gid *self = &bench->a.addresses.entries[0].gid;
    const struct gid v6 = {{0xfd, [15] = 1}};
    assert_ptr_equal(
        udp_port_link(bench->a.port, self, &bench->b.addresses.entries[0].gid, LOCAL_NO_SLOT),
        bench->link);
    assert_null(udp_port_link(bench->a.port, self, &v6, LOCAL_NO_SLOT)); /* Families do not mix. */
    assert_null(
        udp_port_link(bench->a.port, &v6, self, LOCAL_NO_SLOT)); /* Not an address of ours. */
}

#define UDP_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UDP_TEST(test_segmented),
        UDP_TEST(test_without_segmentation),
        UDP_TEST(test_many_messages_a_call),
        UDP_TEST(test_a_busy_address_does_not_starve_others),
        UDP_TEST(test_every_flipped_bit_is_found),
        UDP_TEST(test_too_short),
        UDP_TEST(test_hidden_identifications),
        UDP_TEST(test_probes_of_strangers_are_answered_and_forgotten),
        UDP_TEST(test_receive_buffer_is_as_large_as_may_be),
        UDP_TEST(test_receiver_that_does_not_read_is_not_overrun),
        UDP_TEST(test_ready_packets_are_held_back_too),
        UDP_TEST(test_peer_that_never_answers_is_not_limited),
        UDP_TEST(test_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
