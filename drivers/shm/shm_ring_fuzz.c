/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_ring_fuzz - a NIC on a ring whose producer writes anything, also while we read, and on a ring
 * whose consumer does that.
 *
 * Goal    Whatever the other process writes into the rings, and whenever, no assertion fails, the
 *         engines' invariants hold, nothing outside the region is written, a slot is read once, and
 *         the counts of the rings stay right.
 * Method  The input is a sequence of steps: a packet as a producer writes it, any bytes in a slot
 *         or elsewhere, now or after some of our reads (tests/fuzz/hostile_memory.h); rounds of
 *         receiving and sending, time, sleep. Packets arrive by the real live_receive.c; management
 *         datagrams reach the connection manager, whose MADs go nowhere.
 */
#include <stdlib.h>
#include <string.h>

#include "drivers/live/live_bare.h"
#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_receive.h"
#include "drivers/shm/shm_internal.h"
#include "drivers/system/local_socket.h"
#include "tests/fuzz/hostile_memory.h"
#include "tests/fuzz/nic_target.h"

#define SLOT_MASK (SHM_SLOTS - 1)
/* More than one input can fill. */
#define ROUNDS_MAX 4096

static struct {
    struct shm_ring in, out;
    struct shm_board board;
} shared __attribute__((aligned(4096)));

struct target {
    struct nic_target nic;
    struct live *live;
    struct shm_port port;
    struct shm_link link;
    struct shm_inbound inbound, *inbounds[1];
    struct shm_board own; /* Our board, which peers read. */
    uint32_t tail;        /* The next slot of the producer. */
    uint32_t data;
};

static struct target target;

/* Finds no link to a peer: there is none. */
enum status __wrap_live_resolve_management(struct live *live, struct nic_av *av, uint32_t slot);
enum status __wrap_live_resolve_management(struct live *live, struct nic_av *av, uint32_t slot)
{
    (void)live;
    (void)av;
    (void)slot;
    return STATUS_INVALID;
}

static void make_live(void)
{
    target.live = live_bare_make(&target.nic.self, 1);
    live_lock(target.live); /* For all that an input does. */
    target.live->nic = target.nic.nic;
    target.live->shm = &target.port;
    target.live->now = (struct instant){1000};
}

static void make_port(void)
{
    const struct link_name name = {
        .self = &target.nic.self, .peer = &target.nic.peer, .slot = LOCAL_NO_SLOT};
    link_init(&target.link.link, LINK_SHM, &name);
    list_init(&target.link.dirty);
    target.link.socket = -1;
    target.link.ring = &shared.out;
    target.link.board = &shared.board;
    target.inbound = (struct shm_inbound){.watch = SHM_WATCH_INBOUND,
                                          .socket = -1,
                                          .ring = &shared.in,
                                          .source = target.nic.peer,
                                          .slot = LOCAL_NO_SLOT};
    target.inbounds[0] = &target.inbound;
    target.port = (struct shm_port){.self = target.nic.self,
                                    .slot = LOCAL_NO_SLOT,
                                    .listener = -1,
                                    .epoll = -1,
                                    .board_fd = -1,
                                    .board = &target.own,
                                    .inbound = target.inbounds,
                                    .inbound_count = 1,
                                    .inbound_max = 1};
    list_init(&target.port.dirty);
    link_table_init(&target.port.links);
    CHECK(link_table_add(&target.port.links, &target.link.link));
}

static void make(void)
{
    static bool begun;
    if (!begun) {
        begun = true;
        /* data_end is as large as all else and is written before it is read. */
        memset(&target, 0, sizeof(target));
    }
    memset(&target.link, 0, offsetof(struct shm_link, data_end));
    target.link.windows = 0;
    target.link.unplaced = target.link.direct_refused = false;
    target.tail = target.data = 0;
    target.own.asleep = 0;
    nic_target_make(&target.nic, &target.link.link, 0, 0);
    make_live();
    make_port();
    hostile_begin(&shared, sizeof(shared));
}

static void drop(void)
{
    link_table_remove(&target.port.links, &target.link.link);
    link_table_close(&target.port.links);
    live_unlock(target.live);
    live_bare_drop(target.live);
    nic_target_drop(&target.nic);
    hostile_note(0, offsetof(struct shm_ring, slots));
    hostile_note(offsetof(__typeof__(shared), out), offsetof(struct shm_ring, slots));
    const uint32_t filled = target.link.tail < SHM_SLOTS ? target.link.tail : SHM_SLOTS;
    hostile_note(offsetof(__typeof__(shared), out.slots), filled * sizeof(struct shm_slot));
    hostile_end();
}

/* -- The producer -------------------------------------------------------------------------------*/

static size_t slot_at(uint32_t position)
{
    return offsetof(__typeof__(shared), in.slots) +
           (position & SLOT_MASK) * sizeof(struct shm_slot);
}

static void publish(struct shm_slot *slot)
{
    slot->sequence = ++target.tail;
    hostile_write(slot_at(target.tail - 1), slot, sizeof(*slot));
}

/* Writes a packet as shm_link_transmit does: headers in the slot, the payload there or in the
 * data. */
static void lay_packet(struct input *input)
{
    const uint8_t hints = take(input), flags = take(input);
    uint8_t bytes[1024];
    const size_t wanted = take_number(input, 2) % sizeof(bytes);
    const size_t count = take_bytes(input, bytes, wanted);
    struct shm_slot slot = {.flags = (uint8_t)(flags & ~SHM_SLOT_INLINE)};
    struct roce_packet packet;
    size_t head = count < ROCE_BTH_BYTES ? count : ROCE_BTH_BYTES;
    if (roce_decode(bytes, count, &packet) == ROCE_GOOD) {
        nic_target_hint(&target.nic, hints, &packet);
        head = roce_encode_headers(&packet, bytes);
    }
    memcpy(slot.bytes, bytes, head);
    slot.header_bytes = (uint8_t)head;
    slot.payload_bytes = (uint16_t)(count - head);
    if (count <= SHM_INLINE_BYTES && (flags & SHM_SLOT_INLINE)) {
        memcpy(slot.bytes + head, bytes + head, count - head);
        slot.flags |= SHM_SLOT_INLINE;
    } else {
        slot.data_offset = target.data;
        hostile_write(offsetof(__typeof__(shared), in.data) + target.data, bytes + head,
                      count - head);
        target.data = (target.data + 4096) % SHM_DATA_BYTES;
    }
    publish(&slot);
}

static void lay_anything(struct input *input)
{
    struct shm_slot slot = {0};
    uint8_t bytes[sizeof(slot)] = {0};
    take_bytes(input, bytes, sizeof(bytes));
    memcpy(&slot, bytes, sizeof(slot));
    publish(&slot);
}

/* A place that has a meaning, or any place. */
static size_t place(struct input *input)
{
    static const size_t words[] = {
        offsetof(__typeof__(shared), in.consumed),  offsetof(__typeof__(shared), in.window),
        offsetof(__typeof__(shared), in.rung),      offsetof(__typeof__(shared), in.udp_too),
        offsetof(__typeof__(shared), out.consumed), offsetof(__typeof__(shared), out.rung),
        offsetof(__typeof__(shared), board.asleep), offsetof(__typeof__(shared), board.owner),
    };
    const uint8_t kind = take(input);
    switch (kind >> 6) {
    case 0: return slot_at(target.inbound.head + (kind >> 4 & 3)) + take(input) % 64;
    case 1: return words[kind % COUNT_OF(words)];
    case 2:
        return offsetof(__typeof__(shared), in.data) +
               (target.data + SHM_DATA_BYTES - 4096) % SHM_DATA_BYTES + take(input);
    default: return take_number(input, 3) % sizeof(shared);
    }
}

static void change_something(struct input *input)
{
    uint8_t bytes[HOSTILE_WRITE_BYTES_MAX] = {0};
    const size_t offset = place(input);
    const size_t count = take_bytes(input, bytes, 1 + take(input) % sizeof(bytes));
    hostile_write(offset, bytes, count);
}

static void plan_something(struct input *input)
{
    const uint32_t reads = take(input);
    const size_t offset = place(input);
    hostile_plan(offset, reads, input);
}

/* -- We -----------------------------------------------------------------------------------------*/

static void check(void)
{
    const struct shm_link *link = &target.link;
    CHECK(link->tail - link->consumed <= SHM_SLOTS);
    CHECK(link->data_tail - link->data_freed <= SHM_DATA_BYTES);
    CHECK(target.port.counters.rings_broken <= 1 &&
          target.inbound.broken == (target.port.counters.rings_broken == 1));
    nic_target_check(&target.nic);
}

/* A slot that is taken is read once, and perhaps once more by the look ahead, which believes
 * nothing. Its first word says that it is filled, and may be read again and again. */
static void receive(uint32_t quantum)
{
    const uint32_t head = target.inbound.head;
    const size_t first = slot_at(head);
    hostile_count(first);
    (void)live_receive(target.live, quantum, false);
    if (target.inbound.head - head <= 1) {
        for (size_t i = sizeof(uint32_t); i < sizeof(struct shm_slot); i++) {
            CHECK(hostile_reads_of(first + i) <= 1);
        }
    }
    CHECK(target.inbound.head - head <= quantum);
}

static void send_all(void)
{
    struct nic_departure departure;
    struct qp *qp;
    for (uint32_t i = 0; i < ROUNDS_MAX && (qp = nic_next_qp(target.nic.nic)) != NULL; i++) {
        if (!shm_link_has_room(&target.link.link)) {
            nic_park(target.nic.nic, qp, &target.link.link.parked, target.live->now);
        } else if (nic_next_packet(target.nic.nic, qp, target.live->now, &departure)) {
            (void)!shm_link_transmit(&target.port, &target.link.link, &departure);
            nic_rotate(target.nic.nic, qp);
        }
    }
    CHECK(nic_next_qp(target.nic.nic) == NULL);
    shm_port_flush(&target.port);
}

static void sleep_and_wake(void)
{
    (void)!shm_port_sleep(&target.port);
    shm_port_wake(&target.port);
    if (shm_link_has_room(&target.link.link)) {
        nic_unpark(target.nic.nic, &target.link.link.parked);
    }
    (void)shm_link_is_alive(&target.link.link);
    (void)shm_link_peer_awake(&target.link.link);
    (void)shm_link_has_read(&target.link.link, shm_link_mark(&target.link.link));
    (void)shm_link_is_answered_by_ring(&target.port, &target.link.link);
}

/* Takes an entry off the board, so that we look at the peer's window. */
static void withdraw(void)
{
    shm_note_withdrawal(&target.port);
    const bool settled = shm_port_settled(&target.port, shm_port_withdrawals(&target.port));
    CHECK(target.inbound.settled <= target.port.withdrawals);
    CHECK(!settled || target.inbound.settled == target.port.withdrawals);
}

static void pass_time(uint64_t ns)
{
    target.live->now.ns += ns;
    if (instant_reached(target.live->now, nic_deadline(target.nic.nic))) {
        nic_on_time(target.nic.nic, target.live->now);
    }
    if (instant_reached(target.live->now, target.live->manager.due)) {
        live_cm_on_time(target.live);
    }
}

static void send_raw(struct input *input)
{
    uint8_t bytes[128] = {0};
    const uint32_t count =
        ROCE_BTH_BYTES + take(input) % (uint32_t)(sizeof(bytes) - ROCE_BTH_BYTES);
    take_bytes(input, bytes, count);
    (void)!shm_link_transmit_raw(&target.port, &target.link.link, INET_VARIANT_PLAIN, bytes, count);
    shm_port_flush(&target.port);
}

/* The consumer has taken all packets, or says some other number. */
static void consume(uint8_t behind)
{
    const uint32_t consumed = target.link.tail - behind;
    hostile_write(offsetof(__typeof__(shared), out.consumed), &consumed, sizeof(consumed));
}

static void step(struct input *input)
{
    const uint8_t kind = take(input);
    switch (kind & 15) {
    case 0:
    case 1:
    case 2:
    case 3: lay_packet(input); break;
    case 4: lay_anything(input); break;
    case 5: change_something(input); break;
    case 6:
    case 7: plan_something(input); break;
    case 8:
    case 9: receive(1); break;
    case 10: receive(32); break;
    case 11: send_all(); break;
    case 12: sleep_and_wake(); break;
    case 13: pass_time((uint64_t)take(input) << (kind >> 4) << 4); break;
    case 14: consume(take(input)); break;
    default: kind & 16 ? withdraw() : send_raw(input); break;
    }
    check();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    make();
    while (input.count > 0) {
        step(&input);
    }
    receive(SHM_SLOTS);
    send_all();
    check();
    drop();
    return 0;
}
