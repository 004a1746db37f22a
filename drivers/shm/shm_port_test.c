/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets that one shared-memory port sends reach the other one in order, whatever their
 *         sizes; full rings hold packets back, lost peers are noticed, and a hostile producer harms
 *         nobody.
 * Method  Two ports of one process, served by hand. The hostile one writes random bytes all over
 *         the ring that it shares.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "drivers/share.h"
#include "drivers/shm/shm_internal.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "wire/srd.h"

#define MEMORY_BYTES (1 << 16)

static const struct nic_av plain_av = {.hop_limit = INET_HOP_LIMIT};

struct bench {
    struct gid gids[2];
    struct shm_port *a, *b;
    struct link *link; /* From a to b. */
    uint8_t *memory;
    struct prng sending, checking; /* Both draw the same numbers, when packets are sent and when
                                      they are received. */
    uint64_t sent, received;
    uint8_t mads; /* MADs that were received. */
};

static struct shm_port *open_port(const struct gid *gid)
{
    char error[256];
    struct shm_port *port = shm_port_open(gid, LOCAL_NO_SLOT, error, sizeof(error));
    assert_non_null(port);
    return port;
}

static bool readable(const struct shm_port *port)
{
    struct pollfd wait = {.fd = shm_port_fd(port), .events = POLLIN};
    return poll(&wait, 1, 0) == 1;
}

static void serve(struct bench *bench)
{
    for (int i = 0; i < 8; i++) {
        if (bench->a != NULL && readable(bench->a)) {
            shm_port_serve(bench->a);
        }
        if (bench->b != NULL && readable(bench->b)) {
            shm_port_serve(bench->b);
        }
    }
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct prng prng;
    prng_init(&prng, 1);
    /* Each process has GIDs of its own, which no live NIC draws. */
    const uint32_t salt = (uint32_t)getpid();
    for (int i = 0; i < 2; i++) {
        bench->gids[i] = (struct gid){{0xfd, (uint8_t)i}};
        memcpy(bench->gids[i].bytes + 4, &salt, sizeof(salt));
    }
    bench->a = open_port(&bench->gids[0]);
    bench->b = open_port(&bench->gids[1]);
    bench->link = shm_port_link(bench->a, &bench->gids[1], LOCAL_NO_SLOT);
    bench->memory = malloc(MEMORY_BYTES);
    for (int i = 0; i < MEMORY_BYTES; i++) {
        bench->memory[i] = (uint8_t)prng_next(&prng);
    }
    prng_init(&bench->sending, 2);
    prng_init(&bench->checking, 2);
    serve(bench);
    *state = bench;
    return bench->link == NULL;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    if (bench->a != NULL) {
        shm_port_close(bench->a);
    }
    if (bench->b != NULL) {
        shm_port_close(bench->b);
    }
    free(bench->memory);
    free(bench);
    return 0;
}

/* -- Packets ------------------------------------------------------------------------------------*/

struct shape {
    uint32_t headers_bytes, payload_bytes, at;
};

static struct shape draw(struct prng *prng)
{
    const bool small = prng_below(prng, 2) == 0;
    const bool longer = prng_below(prng, 4) == 0; /* Than RoCE's headers. */
    return (struct shape){
        .headers_bytes = ROCE_BTH_BYTES + 4 * (uint32_t)prng_below(prng, longer ? 23 : 5),
        .payload_bytes = (uint32_t)prng_below(prng, small    ? 60
                                                    : longer ? 4076
                                                             : 4097),
        .at = (uint32_t)prng_below(prng, MEMORY_BYTES - 4096),
    };
}

static void transmit(struct bench *bench)
{
    const struct shape shape = draw(&bench->sending);
    struct nic_departure departure = {
        .av = &plain_av,
        .headers_bytes = shape.headers_bytes,
        .payload_bytes = shape.payload_bytes,
        .pad_bytes = roce_pad_bytes(shape.payload_bytes),
        .segment_count = shape.payload_bytes > 0,
        .segments = {{(uintptr_t)(bench->memory + shape.at), shape.payload_bytes, false}},
    };
    memcpy(departure.headers, &bench->sent, sizeof(bench->sent));
    for (uint32_t i = sizeof(bench->sent); i < shape.headers_bytes; i++) {
        departure.headers[i] = (uint8_t)(bench->sent + i);
    }
    assert_true(shm_link_transmit(bench->a, bench->link, &departure));
    bench->sent++;
}

static void compare(struct bench *bench, const struct shm_record *record)
{
    const struct shape shape = draw(&bench->checking);
    const uint32_t padded = shape.payload_bytes + roce_pad_bytes(shape.payload_bytes);
    assert_true(bench->received < bench->sent);
    assert_int_equal(record->frame.headers_bytes, shape.headers_bytes);
    assert_memory_equal(record->frame.headers, &bench->received, sizeof(bench->received));
    for (uint32_t i = sizeof(bench->received); i < shape.headers_bytes; i++) {
        assert_int_equal(record->frame.headers[i], (uint8_t)(bench->received + i));
    }
    assert_int_equal(record->frame.payload_bytes, padded);
    assert_memory_equal(record->frame.payload, bench->memory + shape.at, shape.payload_bytes);
    assert_memory_equal(&record->frame.source, &bench->gids[0], sizeof(struct gid));
    assert_memory_equal(&record->frame.destination, &bench->gids[1], sizeof(struct gid));
    assert_false(record->frame.placed || record->checked);
    bench->received++;
}

/* All that come in one round, each compared. */
static uint32_t receive_at(struct bench *bench, struct shm_port *port, uint32_t quantum)
{
    const struct shm_record *record;
    uint32_t count = 0;
    while ((record = shm_port_next(port, quantum, NULL)) != NULL) {
        compare(bench, record);
        count++;
    }
    return count;
}

static uint32_t receive(struct bench *bench, uint32_t quantum)
{
    return receive_at(bench, bench->b, quantum);
}

static void test_many_laps(void **state)
{
    struct bench *bench = *state;
    struct prng prng;
    uint32_t full = 0;
    prng_init(&prng, 3);
    while (bench->sent < 100000) {
        const uint64_t burst = prng_below(&prng, 1500);
        for (uint64_t i = 0; i < burst && shm_link_has_room(bench->link); i++) {
            transmit(bench);
        }
        full += !shm_link_has_room(bench->link);
        shm_port_flush(bench->a);
        receive(bench, (uint32_t)prng_below(&prng, 1000));
    }
    while (receive(bench, 1000) > 0) {
    }
    assert_true(bench->received == bench->sent);
    assert_true(full > 10); /* The test has seen full rings. */
}

/* There are more such packets than the ring has room for. */
static void test_payload_that_is_not_there(void **state)
{
    struct bench *bench = *state;
    void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(gone, MAP_FAILED);
    const struct nic_departure departure = {.av = &plain_av,
                                            .headers_bytes = ROCE_BTH_BYTES,
                                            .payload_bytes = 4096,
                                            .segment_count = 1,
                                            .segments = {{(uintptr_t)gone, 4096, true}}};
    for (uint32_t i = 0; i < 2 * SHM_DATA_BYTES / 4096; i++) {
        assert_true(shm_link_has_room(bench->link));
        assert_false(shm_link_transmit(bench->a, bench->link, &departure));
    }
    transmit(bench);
    shm_port_flush(bench->a);
    assert_int_equal(receive(bench, 10), 1);
    munmap(gone, 4096);
}

/* -- Bytes that stand for the IP header ---------------------------------------------------------*/

struct datagram {
    struct inet_variant variant;
    uint32_t payload_bytes, seen;
    const uint8_t *payload;
};

static void compare_datagram(struct datagram *expected, const struct shm_record *record)
{
    const struct inet_variant variant = {.flow_label = record->frame.flow_label,
                                         .traffic_class = record->frame.traffic_class,
                                         .hop_limit = record->frame.hop_limit};
    assert_true(inet_variant_equal(variant, expected->variant));
    assert_int_equal(record->frame.payload_bytes, expected->payload_bytes);
    assert_memory_equal(record->frame.payload, expected->payload, expected->payload_bytes);
    expected->seen++;
}

/* Datagrams of all sizes around the largest that fits into a slot; packets of a connection do not
 * carry it. */
static void test_variants(void **state)
{
    struct bench *bench = *state;
    static const struct nic_av paths[] = {{.hop_limit = INET_HOP_LIMIT},
                                          {.hop_limit = 0},
                                          {.hop_limit = 9},
                                          {.hop_limit = INET_HOP_LIMIT, .traffic_class = 0xff},
                                          {.hop_limit = 255, .flow_label = 0xfffff}};
    for (uint32_t i = 0; i < 2 * 64 * COUNT_OF(paths); i++) {
        const bool datagram = i % 2 == 0;
        const struct nic_av *av = &paths[i / 2 % COUNT_OF(paths)];
        struct nic_departure departure = {.av = av,
                                          .headers_bytes = ROCE_BTH_BYTES + 8,
                                          .payload_bytes = i / 2 / COUNT_OF(paths),
                                          .segment_count = 1};
        departure.headers[0] =
            ROCE_OPCODE(datagram ? ROCE_SERVICE_UD : ROCE_SERVICE_RC, ROCE_SEND_ONLY);
        departure.segments[0] =
            (struct segment){.address = (uintptr_t)bench->memory, .bytes = departure.payload_bytes};
        struct datagram expected = {.variant = datagram ? nic_av_variant(av) : INET_VARIANT_PLAIN,
                                    .payload_bytes = departure.payload_bytes,
                                    .payload = bench->memory};
        assert_true(shm_link_transmit(bench->a, bench->link, &departure));
        const struct shm_record *record;
        while ((record = shm_port_next(bench->b, 10, NULL)) != NULL) {
            compare_datagram(&expected, record);
        }
        assert_int_equal(expected.seen, 1);
    }
}

/* -- Management datagrams -----------------------------------------------------------------------*/

#define MAD_PACKET_BYTES (ROCE_BTH_BYTES + 8 + 256 + ROCE_ICRC_BYTES)

/* The first bytes of each, behind the opcode, have its number. */
static bool transmit_mad(struct bench *bench, uint8_t number)
{
    uint8_t bytes[MAD_PACKET_BYTES];
    memset(bytes, number, sizeof(bytes));
    bytes[0] = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY);
    return shm_link_transmit_raw(bench->a, bench->link, INET_VARIANT_PLAIN, bytes, sizeof(bytes));
}

static void compare_mad(struct bench *bench, const struct shm_record *record)
{
    if (!record->checked) {
        compare(bench, record);
        return;
    }
    assert_int_equal(record->frame.headers_bytes + record->frame.payload_bytes, MAD_PACKET_BYTES);
    assert_true(bench->received == bench->sent); /* It comes behind all others. */
    const uint8_t number = record->frame.headers[1];
    assert_int_equal(number, bench->mads++);
    for (uint32_t i = 0; i < record->frame.payload_bytes; i++) {
        assert_int_equal(record->frame.payload[i], number);
    }
}

static uint32_t receive_mads(struct bench *bench)
{
    const struct shm_record *record;
    uint32_t count = 0;
    while ((record = shm_port_next(bench->b, 1000, NULL)) != NULL) {
        compare_mad(bench, record);
        count++;
    }
    return count;
}

/* A ring that is full of packets of any size has room for some management packets: the message that
 * ends a connection may be the last one of its process. */
static void test_room_for_management(void **state)
{
    struct bench *bench = *state;
    struct prng prng;
    prng_init(&prng, 8);
    for (int lap = 0; lap < 300; lap++) {
        while (shm_link_has_room(bench->link)) {
            transmit(bench);
        }
        uint8_t sent = 0;
        while (sent < 200 && transmit_mad(bench, sent)) {
            sent++;
        }
        assert_in_range(sent, 60, 199);
        assert_false(shm_link_has_room(bench->link));
        const uint32_t read = shm_link_read(bench->link);
        shm_port_flush(bench->a);
        bench->mads = 0;
        uint32_t count, received = 0;
        while ((count = receive_mads(bench)) > 0) {
            received += count;
        }
        assert_int_equal(bench->mads, sent);
        assert_true(shm_link_has_room(bench->link));
        assert_int_equal(shm_link_read(bench->link) - read, received);
        /* The next lap finds the ring in another place. */
        for (uint64_t i = prng_below(&prng, 200); i > 0; i--) {
            transmit(bench);
            receive_mads(bench);
        }
    }
}

/* Packets of SRD that went through the fault injector, each with its longest headers. */
static void test_raw_srd(void **state)
{
    struct bench *bench = *state;
    static const uint32_t heads[] = {52, 68, 68, 36, 92, 76, 44, 44};
    for (uint32_t i = 0; i < COUNT_OF(heads); i++) {
        const uint8_t opcode = (uint8_t)(SRD_OPCODE_FIRST + i);
        const uint32_t payload = (srd_has_payload(opcode) ? 100u : 0u) + ROCE_ICRC_BYTES;
        uint8_t bytes[300];
        for (uint32_t k = 0; k < sizeof(bytes); k++) {
            bytes[k] = k == 0 ? opcode : (uint8_t)(k + i);
        }
        assert_true(shm_link_transmit_raw(bench->a, bench->link, INET_VARIANT_PLAIN, bytes,
                                          heads[i] + payload));
        shm_port_flush(bench->a);
        const struct shm_record *record = shm_port_next(bench->b, 10, NULL);
        assert_non_null(record);
        assert_true(record->checked);
        assert_int_equal(record->frame.headers_bytes, heads[i]);
        assert_memory_equal(record->frame.headers, bytes, heads[i]);
        assert_int_equal(record->frame.payload_bytes, payload);
        assert_memory_equal(record->frame.payload, bytes + heads[i], payload);
        assert_null(shm_port_next(bench->b, 10, NULL));
    }
}

/* -- Damaged packets ----------------------------------------------------------------------------*/

/* The longest packet goes through with any opcode, and so with any headers, that a flipped bit
 * makes: the receiver judges it, and the ring goes on. */
static void test_any_opcode(void **state)
{
    struct bench *bench = *state;
    for (uint32_t opcode = 0; opcode < 256; opcode++) {
        uint8_t bytes[ROCE_PACKET_BYTES_MAX] = {(uint8_t)opcode};
        assert_true(
            shm_link_transmit_raw(bench->a, bench->link, INET_VARIANT_PLAIN, bytes, sizeof(bytes)));
        shm_port_flush(bench->a);
        const struct shm_record *record = shm_port_next(bench->b, 10, NULL);
        assert_non_null(record);
        assert_int_equal(record->frame.headers_bytes + record->frame.payload_bytes,
                         ROCE_PACKET_BYTES_MAX);
        assert_null(shm_port_next(bench->b, 10, NULL));
        serve(bench);
        assert_false(bench->link->lost);
    }
}

/* An acknowledgement travels in the slot of a request, beside as many bytes as fit. */
static void test_piggyback(void **state)
{
    struct bench *bench = *state;
    uint8_t payload[SHM_PIGGYBACK_BYTES];
    memset(payload, 0x5a, sizeof(payload));
    for (uint32_t bytes = 0; bytes <= sizeof(payload); bytes += 4) {
        struct nic_departure departure = {
            .av = &plain_av,
            .headers_bytes = ROCE_BTH_BYTES,
            .payload_bytes = bytes,
            .segments = {{.address = (uintptr_t)payload, .bytes = bytes}},
            .segment_count = bytes != 0,
            .piggyback = {.there = true, .psn = 0x123456, .aeth = 0x1f000000 + bytes},
        };
        assert_true(shm_link_transmit(bench->a, bench->link, &departure));
        departure.piggyback.there = false;
        assert_true(shm_link_transmit(bench->a, bench->link, &departure));
        assert_true(shm_port_flush(bench->a));
        const struct nic_frame *frame = &shm_port_next(bench->b, 10, NULL)->frame;
        assert_true(frame->piggyback.there && frame->piggyback.psn == 0x123456);
        assert_int_equal(frame->piggyback.aeth, 0x1f000000 + bytes);
        assert_int_equal(frame->payload_bytes, bytes);
        assert_memory_equal(frame->payload, payload, bytes);
        assert_false(shm_port_next(bench->b, 10, NULL)->frame.piggyback.there);
        assert_null(shm_port_next(bench->b, 10, NULL));
    }
}

/* -- Sleeping -----------------------------------------------------------------------------------*/

static void test_doorbell(void **state)
{
    struct bench *bench = *state;
    assert_true(shm_port_sleep(bench->b));
    assert_false(shm_link_peer_awake(bench->link));
    assert_false(readable(bench->b));
    transmit(bench);
    shm_port_flush(bench->a);
    assert_true(readable(bench->b)); /* The bell was rung. */
    shm_port_serve(bench->b);
    shm_port_wake(bench->b);
    assert_true(shm_link_peer_awake(bench->link));
    assert_int_equal(receive(bench, 10), 1);
    transmit(bench);
    shm_port_flush(bench->a);
    assert_false(readable(bench->b));       /* The consumer is awake, so there is no system call. */
    assert_false(shm_port_sleep(bench->b)); /* A packet came meanwhile. */
    shm_port_wake(bench->b);
    assert_int_equal(receive(bench, 10), 1);
}

/* The kernel had no memory for the bell: it is rung later, though nothing more is sent. */
static void test_doorbell_that_is_refused(void **state)
{
    struct bench *bench = *state;
    struct shm_link *link = CONTAINER_OF(bench->link, struct shm_link, link);
    const int socket = link->socket;
    for (int nudged = 0; nudged < 2; nudged++) {
        assert_true(shm_port_sleep(bench->b));
        transmit(bench);
        link->socket = -1;
        assert_false(shm_port_flush(bench->a));
        assert_false(readable(bench->b));
        assert_true(shm_port_has_waiting(bench->a));
        link->socket = socket;
        if (nudged) {
            shm_link_nudge(bench->link);
        } else {
            shm_port_flush(bench->a);
        }
        assert_true(readable(bench->b));
        shm_port_serve(bench->b);
        shm_port_wake(bench->b);
        assert_int_equal(receive(bench, 10), 1);
        assert_true(shm_port_flush(bench->a));
        assert_false(readable(bench->b) || shm_port_has_waiting(bench->a));
    }
}

/* -- Marks --------------------------------------------------------------------------------------*/

/* A mark may be any number of packets old (less than 2^32), and the counts may be anywhere. */
static void test_old_marks(void **state)
{
    struct bench *bench = *state;
    struct shm_link *link = CONTAINER_OF(bench->link, struct shm_link, link);
    static const uint32_t packets[] = {0, 1, 1u << 30, 1u << 31, 3u << 30, UINT32_MAX - SHM_SLOTS};
    const uint32_t begin = link->tail, unread = 5;
    for (size_t i = 0; i < COUNT_OF(packets); i++) {
        const uint32_t mark = shm_link_mark(bench->link);
        link->tail += packets[i];
        atomic_store(&link->ring->consumed, link->tail);
        assert_true(shm_link_has_read(bench->link, mark));
        link->tail += unread;
        assert_true(shm_link_has_read(bench->link, mark));
        assert_true(shm_link_has_read(bench->link, link->tail - unread));
        assert_false(shm_link_has_read(bench->link, link->tail - unread + 1));
        assert_false(shm_link_has_read(bench->link, link->tail));
        atomic_store(&link->ring->consumed, link->tail);
        assert_true(shm_link_has_read(bench->link, link->tail));
    }
    link->tail = begin;
    atomic_store(&link->ring->consumed, begin);
}

/* -- Peers that go ------------------------------------------------------------------------------*/

static void test_lost_peer_swallows(void **state)
{
    struct bench *bench = *state;
    shm_port_close(bench->b);
    bench->b = NULL;
    serve(bench);
    assert_true(bench->link->lost);
    for (int i = 0; i < 5000; i++) {
        assert_true(shm_link_has_room(bench->link)); /* It must never block a queue pair. */
        transmit(bench);
    }
    shm_port_flush(bench->a);
    assert_null(shm_port_link(bench->a, &bench->gids[1], LOCAL_NO_SLOT));
    /* Another process comes to its address: the link is found again. */
    bench->b = open_port(&bench->gids[1]);
    assert_ptr_equal(shm_port_link(bench->a, &bench->gids[1], LOCAL_NO_SLOT), bench->link);
    serve(bench);
    bench->sent = bench->received = 0;
    prng_init(&bench->sending, 5);
    prng_init(&bench->checking, 5);
    transmit(bench);
    shm_port_flush(bench->a);
    assert_int_equal(receive(bench, 10), 1);
}

/* Packets that the peer left in the ring, and packets that were sent to nobody, are counted as
 * lost. */
static void test_lost_packets_are_counted(void **state)
{
    struct bench *bench = *state;
    for (int i = 0; i < 10; i++) {
        transmit(bench);
    }
    shm_port_flush(bench->a);
    assert_int_equal(receive(bench, 3), 3);
    shm_port_close(bench->b);
    bench->b = NULL;
    serve(bench);
    assert_true(shm_port_counters(bench->a)->packets_lost == 7);
    transmit(bench);
    assert_true(transmit_mad(bench, 0));
    assert_true(shm_port_counters(bench->a)->packets_lost == 9);
}

/* The last packets of a peer arrive, also if it was gone before it was greeted. */
static void test_last_words(void **state)
{
    struct bench *bench = *state;
    for (int greeted = 1; greeted >= 0; greeted--) {
        for (int i = 0; i < 100; i++) {
            transmit(bench);
        }
        shm_port_flush(bench->a);
        shm_port_close(bench->a);
        bench->a = NULL;
        serve(bench);
        assert_int_equal(receive(bench, 1000), 100);
        assert_int_equal(receive(bench, 1000), 0);
        serve(bench);
        assert_false(readable(bench->b));
        bench->a = open_port(&bench->gids[0]);
        bench->link = shm_port_link(bench->a, &bench->gids[1], LOCAL_NO_SLOT);
        assert_non_null(bench->link);
    }
}

/* Its ring stays until all in it was read, by another round; the record that is looked at, too. */
static void test_peer_that_goes_during_a_look(void **state)
{
    struct bench *bench = *state;
    transmit(bench);
    transmit(bench);
    shm_port_flush(bench->a);
    compare(bench, shm_port_next(bench->b, 10, NULL));
    const struct shm_record *record = shm_port_next(bench->b, 10, NULL);
    shm_port_close(bench->a);
    bench->a = NULL;
    serve(bench);
    compare(bench, record);
    assert_null(shm_port_next(bench->b, 10, NULL));
    assert_int_equal(bench->b->inbound_count, 1);
    assert_null(shm_port_next(bench->b, 10, NULL));
    assert_int_equal(bench->b->inbound_count, 0);
}

/* Two peers, of whom the second calls while the first one's packets are looked at: it has its turn
 * in the same round. The first one has its room back when its turn is over, and not before. */
static void test_peer_that_comes_during_a_look(void **state)
{
    struct bench *bench = *state;
    struct gid gid = bench->gids[0];
    gid.bytes[1] = 2;
    transmit(bench);
    transmit(bench);
    shm_port_flush(bench->a);
    compare(bench, shm_port_next(bench->b, 2, NULL));
    struct shm_port *second = open_port(&gid);
    struct link *link = shm_port_link(second, &bench->gids[1], LOCAL_NO_SLOT);
    assert_non_null(link);
    const uint8_t bytes[ROCE_BTH_BYTES] = {ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY)};
    assert_true(shm_link_transmit_raw(second, link, INET_VARIANT_PLAIN, bytes, sizeof(bytes)));
    serve(bench);
    compare(bench, shm_port_next(bench->b, 2, NULL));
    assert_int_equal(bench->b->inbound_count, 2);
    assert_false(shm_link_has_read(bench->link, 1));
    const struct shm_record *record = shm_port_next(bench->b, 2, NULL);
    assert_memory_equal(&record->frame.source, &gid, sizeof(gid));
    assert_true(shm_link_has_read(bench->link, 2));
    assert_null(shm_port_next(bench->b, 2, NULL));
    shm_port_close(second);
}

static void test_nobody_there(void **state)
{
    struct bench *bench = *state;
    const struct gid nobody = {{0xfd, 0xff, 0xff}};
    assert_null(shm_port_link(bench->a, &nobody, LOCAL_NO_SLOT));
    char error[256] = "";
    /* The name is taken. */
    assert_null(shm_port_open(&bench->gids[0], LOCAL_NO_SLOT, error, sizeof(error)));
    assert_true(strlen(error) > 0);
}

/* Two processes that share an address are two peers. */
static void test_slots(void **state)
{
    struct bench *bench = *state;
    char error[256] = "";
    struct shm_port *ports[2];
    struct link *links[2];
    for (int slot = 0; slot < 2; slot++) {
        assert_null(shm_port_link(bench->a, &bench->gids[1], slot));
        ports[slot] = shm_port_open(&bench->gids[1], slot, error, sizeof(error));
        assert_non_null(ports[slot]);
        links[slot] = shm_port_link(bench->a, &bench->gids[1], slot);
        assert_non_null(links[slot]);
        shm_port_serve(ports[slot]);
        shm_port_serve(ports[slot]);
    }
    assert_ptr_not_equal(links[0], links[1]);
    for (int slot = 0; slot < 2; slot++) {
        bench->link = links[slot];
        transmit(bench);
        shm_port_flush(bench->a);
        assert_int_equal(receive(bench, 10), 0);
        assert_int_equal(receive_at(bench, ports[!slot], 10), 0);
        assert_int_equal(receive_at(bench, ports[slot], 10), 1);
    }
    /* One goes; the other one stays. */
    shm_port_close(ports[0]);
    serve(bench);
    assert_true(links[0]->lost && !links[1]->lost);
    shm_port_close(ports[1]);
}

/* -- Callers ------------------------------------------------------------------------------------*/

static int call_b(struct bench *bench)
{
    const struct local_name name = shm_name(SHM_LAYOUT, &bench->gids[1], LOCAL_NO_SLOT);
    pid_t pid;
    const int caller = local_dial(&name, &pid);
    assert_true(caller >= 0);
    serve(bench);
    return caller;
}

static bool is_hung_up(int caller)
{
    char word;
    return recv(caller, &word, sizeof(word), MSG_DONTWAIT) == 0;
}

/* Calls as a process of that slot, with a ring that is right. True: it is let in. */
static bool is_welcome(struct bench *bench, int32_t slot)
{
    void *map;
    const int ring = shm_memory_make("test", sizeof(struct shm_ring), false, &map);
    const uint32_t before = bench->b->inbound_count;
    struct shm_ring *made = map;
    const struct shm_hello hello = {
        .mark = shm_mark_of(sizeof(hello)), .source = bench->gids[0], .slot = slot};
    assert_true(ring >= 0);
    made->mark = shm_mark_of(sizeof(*made));
    const int caller = call_b(bench);
    assert_true(local_send(caller, &hello, sizeof(hello), &ring, 1));
    serve(bench);
    const bool welcome = bench->b->inbound_count > before;
    assert_true(welcome != is_hung_up(caller));
    descriptor_close(caller);
    descriptor_close(ring);
    munmap(map, sizeof(*made));
    serve(bench);
    return welcome;
}

static void test_slots_of_callers(void **state)
{
    struct bench *bench = *state;
    assert_true(is_welcome(bench, LOCAL_NO_SLOT) && is_welcome(bench, 0) &&
                is_welcome(bench, SHARE_SLOTS - 1));
    assert_false(is_welcome(bench, LOCAL_NO_SLOT - 1) || is_welcome(bench, SHARE_SLOTS) ||
                 is_welcome(bench, INT32_MAX) || is_welcome(bench, INT32_MIN));
}

/* When the port closes, the connection of a caller that said nothing is closed, too, and its memory
 * is freed. */
static void test_silent_caller(void **state)
{
    struct bench *bench = *state;
    const int caller = call_b(bench);
    assert_false(list_empty(&bench->b->callers));
    assert_false(is_hung_up(caller));
    shm_port_close(bench->b);
    bench->b = NULL;
    assert_true(is_hung_up(caller));
    descriptor_close(caller);
}

/* A process that calls again and again does not take all our descriptors, nor the places of callers
 * that send a hello. */
static void test_many_silent_callers(void **state)
{
    struct bench *bench = *state;
    int callers[200];
    for (uint32_t i = 0; i < COUNT_OF(callers); i++) {
        callers[i] = call_b(bench);
    }
    const uint32_t kept = bench->b->caller_count;
    assert_in_range(kept, 32, 100);
    assert_true(bench->b->counters.callers_dropped == COUNT_OF(callers) - kept);
    for (uint32_t i = 0; i < COUNT_OF(callers); i++) {
        assert_int_equal(is_hung_up(callers[i]), i < COUNT_OF(callers) - kept);
    }
    assert_true(is_welcome(bench, 0));
    for (uint32_t i = 0; i < COUNT_OF(callers); i++) {
        descriptor_close(callers[i]);
    }
    for (int i = 0; i < 16; i++) { /* 32 are served at a time. */
        serve(bench);
    }
    assert_true(list_empty(&bench->b->callers));
    assert_int_equal(bench->b->caller_count, 0);
}

/* -- Hostile producers --------------------------------------------------------------------------*/

/* A record lies inside the ring and is no longer than a packet, whatever the ring contains. */
static void inspect(const struct shm_record *record, uint32_t *sum)
{
    assert_true(record->frame.headers_bytes <= NIC_HEADERS_BYTES_MAX);
    assert_true(record->frame.payload_bytes <= SHM_PAYLOAD_BYTES_MAX);
    for (uint32_t i = 0; i < record->frame.headers_bytes; i++) {
        *sum += record->frame.headers[i];
    }
    for (uint32_t i = 0; i < record->frame.payload_bytes && !record->frame.placed; i++) {
        *sum += record->frame.payload[i]; /* A sanitizer finds a byte outside. */
    }
}

static uint32_t inspect_all(struct shm_port *port, uint32_t *sum)
{
    const struct shm_record *record;
    uint32_t count = 0;
    for (int i = 0; i < 20; i++) {
        while ((record = shm_port_next(port, 64, NULL)) != NULL) {
            inspect(record, sum);
            count++;
        }
    }
    return count;
}

/* Writes values near the limits, so that many records pass and many do not. */
static void scribble(struct prng *prng, struct shm_slot *slot, uint32_t position)
{
    slot->header_bytes = (uint8_t)prng_below(prng, ROCE_HEADERS_BYTES_MAX + 2);
    slot->payload_bytes = (uint16_t)prng_below(prng, SHM_PAYLOAD_BYTES_MAX + 10);
    slot->data_offset = (uint32_t)prng_below(prng, SHM_DATA_BYTES);
    slot->flags = (uint8_t)prng_next(prng);
    if ((slot->flags & SHM_SLOT_INLINE) && prng_below(prng, 8) != 0) {
        slot->payload_bytes %= 16;
    }
    for (uint32_t i = 0; i < SHM_INLINE_BYTES; i++) {
        slot->bytes[i] = (uint8_t)prng_next(prng);
    }
    if ((slot->flags & SHM_SLOT_LONG) && prng_below(prng, 64) != 0) {
        slot->flags &= (uint8_t)~SHM_SLOT_INLINE;
        slot->header_bytes = SHM_MORE_AT;
        slot->payload_bytes |= 64;
        slot->bytes[SHM_MORE_AT] = (uint8_t)prng_below(prng, prng_below(prng, 64) ? 57 : 70);
    }
    const bool wrong = prng_below(prng, 50) == 0;
    atomic_store(&slot->sequence, wrong ? (uint32_t)prng_next(prng) : position + 1);
}

/* A ring with an impossible record is given up, and its connection closed; its producer may call
 * again. */
static void test_garbage_in_the_ring(void **state)
{
    struct bench *bench = *state;
    struct prng prng;
    uint32_t sum = 0, taken = 0, lost = 0;
    prng_init(&prng, 6);
    for (int lap = 0; lap < 300; lap++) {
        assert_ptr_equal(shm_port_link(bench->a, &bench->gids[1], LOCAL_NO_SLOT), bench->link);
        serve(bench);
        struct shm_link *link = CONTAINER_OF(bench->link, struct shm_link, link);
        for (uint32_t i = 0; i < SHM_SLOTS; i++) {
            scribble(&prng, &link->ring->slots[i], i);
        }
        taken += inspect_all(bench->b, &sum);
        atomic_store(&link->ring->consumed, (uint32_t)prng_next(&prng));
        if (shm_link_has_room(bench->link)) {
            transmit(bench);
        }
        serve(bench);
        lost += bench->link->lost;
        if (!bench->link->lost) { /* The ring waits for a sequence number that never comes. */
            shm_port_close(bench->b);
            bench->b = open_port(&bench->gids[1]);
            serve(bench);
        }
    }
    assert_true(taken > 1000 && lost > 100);
}

/* A link that nobody holds goes, and its ring with it once the packets in it were read. The next
 * caller gets a new link. */
static void test_link_that_goes(void **state)
{
    struct bench *bench = *state;
    struct link_table *links = shm_port_links(bench->a);
    for (int lap = 0; lap < 100; lap++) {
        transmit(bench);
        link_table_release(links, bench->link);
        assert_int_equal(links->idle_count, 1);
        shm_port_drop(bench->a, bench->link); /* No bell is needed: the hang-up wakes. */
        assert_int_equal(links->count, 0);
        assert_false(shm_port_has_waiting(bench->a));
        serve(bench);
        assert_int_equal(bench->b->inbound_count, 1);
        while (receive(bench, 64) > 0) {
        }
        assert_int_equal(bench->received, bench->sent);
        assert_int_equal(bench->b->inbound_count, 0);
        bench->link = shm_port_link(bench->a, &bench->gids[1], LOCAL_NO_SLOT);
        assert_non_null(bench->link);
        serve(bench);
    }
    assert_int_equal(shm_port_counters(bench->a)->packets_lost, 0);
}

#define SHM_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHM_TEST(test_variants),
        SHM_TEST(test_many_laps),
        SHM_TEST(test_payload_that_is_not_there),
        SHM_TEST(test_room_for_management),
        SHM_TEST(test_any_opcode),
        SHM_TEST(test_raw_srd),
        SHM_TEST(test_piggyback),
        SHM_TEST(test_doorbell),
        SHM_TEST(test_doorbell_that_is_refused),
        SHM_TEST(test_old_marks),
        SHM_TEST(test_lost_peer_swallows),
        SHM_TEST(test_last_words),
        SHM_TEST(test_peer_that_goes_during_a_look),
        SHM_TEST(test_peer_that_comes_during_a_look),
        SHM_TEST(test_nobody_there),
        SHM_TEST(test_slots),
        SHM_TEST(test_slots_of_callers),
        SHM_TEST(test_silent_caller),
        SHM_TEST(test_many_silent_callers),
        SHM_TEST(test_lost_packets_are_counted),
        SHM_TEST(test_garbage_in_the_ring),
        SHM_TEST(test_link_that_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
