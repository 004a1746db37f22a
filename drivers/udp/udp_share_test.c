/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets of other processes leave in handovers, each once and in order, for their owner
 *         alone; the same packets come out of a handover; and each packet is counted once, by its
 *         fate.
 * Method  Random packets are compared with lists of those that each slot has to get. The test takes
 *         the handovers (--wrap), and hands them to the port again as another member would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "drivers/udp/udp_port.h"

#define OWN_SLOT 3
#define SLOTS    5 /* Slots that packets are for; no process has the last one. */
#define LOOKS    300
#define FD_MAIL  1000002

enum {
    LISTENER = 1000001,
    COMMON = 1000003
};

static const struct gid here = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
static const struct gid there = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2}};
static const struct inet_variant variant = {.flow_label = 5, .traffic_class = 6, .hop_limit = 7};

static struct {
    struct share share;
    struct address_set addresses;
    struct udp_port port;
    struct prng prng;
    uint8_t handover_out[SHARE_HANDOVER_BYTES_MAX], received[1 << 16];
    /* The number of the next packet to each slot. */
    uint32_t next[SLOTS];
    uint64_t handed_on, full, nobody;
    enum share_fate fate;
    uint8_t mail[SHARE_HANDOVER_BYTES_MAX]; /* A handover that came; 0 bytes: none. */
    size_t mail_bytes;
    uint32_t handovers, admitted, arrived;
} world;

/* -- The other members --------------------------------------------------------------------------*/

enum share_fate __wrap_share_hand_on(struct share *share, uint32_t slot, const void *handover,
                                     size_t bytes);
size_t __wrap_share_collect(struct share *share, void *handover, size_t bytes_max);
void __wrap_share_admit(const struct share *share);

/* Reads each packet: its length, the BTH that leads to the slot, and its number among those of the
 * slot. */
static uint32_t read_handover(uint32_t slot, const uint8_t *handover, size_t bytes)
{
    struct share_handover head;
    uint32_t packets = 0;
    memcpy(&head, handover, sizeof(head));
    assert_true(share_handover_is_whole(handover, bytes) && bytes <= SHARE_HANDOVER_BYTES_MAX);
    assert_true(gid_equal(&head.source, &there) && head.flow_label == variant.flow_label);
    assert_true(head.traffic_class == variant.traffic_class);
    assert_true(head.hop_limit == variant.hop_limit);
    for (size_t at = sizeof(head); at < bytes; at += 2u + load_be16(handover + at), packets++) {
        assert_int_equal(load_be32(handover + at + 2 + 4), slot * SHARE_QPN_SPAN + 5);
        assert_int_equal(load_be32(handover + at + 2 + ROCE_BTH_BYTES), world.next[slot]++);
    }
    return packets;
}

enum share_fate __wrap_share_hand_on(struct share *share, uint32_t slot, const void *handover,
                                     size_t bytes)
{
    assert_ptr_equal(share, &world.share);
    assert_true(slot < SLOTS && slot != OWN_SLOT);
    const uint32_t packets = read_handover(slot, handover, bytes);
    world.fate = slot == SLOTS - 1 ? SHARE_NOBODY
                                   : (enum share_fate)(prng_below(&world.prng, 2) ? SHARE_HANDED_ON
                                                                                  : SHARE_CROWDED);
    world.handed_on += world.fate == SHARE_HANDED_ON ? packets : 0;
    world.full += world.fate == SHARE_CROWDED ? packets : 0;
    world.nobody += world.fate == SHARE_NOBODY ? packets : 0;
    world.handovers++;
    return world.fate;
}

size_t __wrap_share_collect(struct share *share, void *handover, size_t bytes_max)
{
    const size_t bytes = world.mail_bytes;
    assert_true(share == &world.share && bytes <= bytes_max);
    memcpy(handover, world.mail, bytes);
    world.mail_bytes = 0;
    return bytes;
}

void __wrap_share_admit(const struct share *share)
{
    assert_ptr_equal(share, &world.share);
    world.admitted++;
}

/* -- Packets ------------------------------------------------------------------------------------*/

static int setup(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    prng_init(&world.prng, 1);
    world.share = (struct share){.gid = here, .slot = OWN_SLOT, .mail = FD_MAIL};
    world.share.listener = LISTENER;
    world.share.sockets[SHARE_SOCKETS] = COMMON;
    world.addresses = (struct address_set){.count = 1, .shared = true, .slot = OWN_SLOT};
    world.addresses.entries[0] = (struct address){.gid = here, .fd = -1, .share = &world.share};
    world.port.addresses = &world.addresses;
    world.port.handover.bytes = world.handover_out;
    world.port.receive_buffer = world.received;
    return 0;
}

/* Makes a packet, from the BTH on. */
static struct udp_datagram packet_for(uint32_t slot, uint32_t number, uint8_t *bytes, size_t count)
{
    memset(bytes, 0, count);
    bytes[0] = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY);
    store_be32(bytes + 4, slot * SHARE_QPN_SPAN + 5);
    store_be32(bytes + ROCE_BTH_BYTES, number);
    return (struct udp_datagram){
        .source = there, .destination = here, .variant = variant, .bytes = bytes, .count = count};
}

static void compare_counters(uint64_t given)
{
    const struct udp_counters *counters = &world.port.counters;
    assert_int_equal(counters->handed_on, world.handed_on);
    assert_int_equal(counters->process_full, world.full);
    assert_int_equal(counters->no_process, world.nobody);
    assert_int_equal(world.handed_on + world.full + world.nobody, given);
}

/* One look brings many packets of one owner, then of another. At its end no packet is kept back. */
static void test_handovers_that_leave(void **state)
{
    (void)state;
    static uint8_t bytes[BLOCK_PACKET_BYTES_MAX];
    uint32_t made[SLOTS] = {0};
    uint64_t given = 0;
    world.port.look.address = &world.addresses.entries[0];
    for (int look = 0; look < LOOKS; look++) {
        uint32_t slot = 0;
        for (uint64_t left = prng_below(&world.prng, 64); left > 0; left--) {
            slot = prng_below(&world.prng, 8) ? slot : (uint32_t)prng_below(&world.prng, SLOTS);
            const size_t count = 16 + prng_below(&world.prng, sizeof(bytes) - 16 + 1);
            const struct udp_datagram datagram = packet_for(slot, made[slot], bytes, count);
            const bool taken =
                udp_share_hands_on(&world.port, &world.addresses.entries[0], &datagram);
            assert_int_equal(taken, slot != OWN_SLOT);
            made[slot] += taken;
            given += taken;
        }
        udp_end_look(&world.port);
        compare_counters(given);
    }
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        assert_int_equal(world.next[slot], made[slot]);
    }
    assert_in_range(world.handovers, LOOKS, given / 2); /* Several packets a handover. */
}

static void test_one_packet(void **state)
{
    (void)state;
    uint8_t bytes[64];
    uint64_t given = 0;
    for (int i = 0; i < 20; i++) {
        for (uint32_t slot = 0; slot < SLOTS; slot += slot == 2 ? 2 : 1) {
            const struct udp_datagram datagram = packet_for(slot, (uint32_t)i, bytes, 64);
            const bool taken = udp_port_hand_on(&world.port, &here, slot, &datagram);
            assert_int_equal(taken, world.fate != SHARE_NOBODY);
            assert_false(udp_port_hand_on(&world.port, &there, slot, &datagram));
            given += taken;
        }
    }
    world.addresses.shared = false;
    const struct udp_datagram datagram = packet_for(0, 20, bytes, 64);
    assert_false(udp_port_hand_on(&world.port, &here, 0, &datagram));
    assert_int_equal(world.handovers, 20 * (SLOTS - 1));
    world.nobody = 0; /* The caller counts the packets for nobody. */
    compare_counters(given);
    assert_int_equal(world.port.handover.count, 0);
}

/* -- Handovers that came ------------------------------------------------------------------------*/

static void arrive(const struct udp_datagram *datagram)
{
    assert_true(gid_equal(&datagram->source, &there) && gid_equal(&datagram->destination, &here));
    assert_memory_equal(&datagram->variant, &variant, sizeof(variant));
    assert_int_equal(load_be32(datagram->bytes + ROCE_BTH_BYTES), world.arrived++);
    assert_int_equal(datagram->count, 16 + 10 * world.arrived);
}

/* `fd` is readable. */
static void serve(int fd)
{
    const struct address *address = udp_port_shared(&world.port, fd);
    const struct udp_datagram *datagram;
    assert_ptr_equal(address, &world.addresses.entries[0]);
    while (udp_port_look_at_shared(&world.port, address, fd)) {
        while ((datagram = udp_port_next(&world.port)) != NULL) {
            arrive(datagram);
        }
    }
}

static void add(uint32_t slot, uint32_t number, size_t count)
{
    uint8_t *at = world.mail + world.mail_bytes;
    store_be16(at, (uint16_t)count);
    (void)packet_for(slot, number, at + 2, count < 16 ? 16 : count);
    world.mail_bytes += 2 + count;
}

/* Packets that are ours reach the engines; packets of others, and those that are shorter than a
 * BTH, go nowhere. */
static void test_handovers_that_come(void **state)
{
    (void)state;
    const struct share_handover head = {.magic = SHARE_MAGIC_HANDOVER,
                                        .source = there,
                                        .flow_label = variant.flow_label,
                                        .traffic_class = variant.traffic_class,
                                        .hop_limit = variant.hop_limit};
    memcpy(world.mail, &head, sizeof(head));
    world.mail_bytes = sizeof(head);
    add(OWN_SLOT, 0, 26);
    add(1, 9, 30);
    add(OWN_SLOT, 9, ROCE_BTH_BYTES - 1);
    add(OWN_SLOT, 1, 36);
    add(OWN_SLOT, 2, 46);
    serve(FD_MAIL);
    assert_int_equal(world.arrived, 3);
    assert_int_equal(world.port.counters.handed_to_us, 3);
    assert_int_equal(world.port.counters.no_process, 2);
    assert_int_equal(world.handovers, 0); /* No handover is handed on. */
}

static void test_events(void **state)
{
    (void)state;
    serve(LISTENER);
    assert_int_equal(world.admitted, 1);
    serve(COMMON); /* It is no socket. */
    assert_null(udp_port_shared(&world.port, 0));
    world.addresses.shared = false;
    assert_null(udp_port_shared(&world.port, LISTENER));
    assert_int_equal(world.admitted, 1);
    assert_int_equal(world.arrived, 0);
    assert_int_equal(world.port.counters.receive_calls, 1);
}

static void test_watching(void **state)
{
    (void)state;
    int *const fds[] = {&world.share.listener, &world.share.sockets[SHARE_SOCKETS],
                        &world.share.mail};
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        *fds[i] = eventfd(1, EFD_CLOEXEC);
    }
    assert_true(udp_port_watch_shared(&world.port, epoll));
    assert_false(udp_port_watch_shared(&world.port, epoll)); /* They are watched already. */
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        struct epoll_event event;
        uint64_t count;
        assert_int_equal(epoll_wait(epoll, &event, 1, 0), 1);
        assert_int_equal(read(event.data.fd, &count, sizeof(count)), sizeof(count));
    }
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        close(*fds[i]);
    }
    close(epoll);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_handovers_that_leave, setup),
        cmocka_unit_test_setup(test_one_packet, setup),
        cmocka_unit_test_setup(test_handovers_that_come, setup),
        cmocka_unit_test_setup(test_events, setup),
        cmocka_unit_test_setup(test_watching, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
