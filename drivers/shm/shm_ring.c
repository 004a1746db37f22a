/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_ring - packets that go into our rings, and that come out of our peers' rings.
 *
 * A slot is filled, then its sequence word is published; the consumer polls just that word. The
 * consumer's position is looked at only when the ring seems full, so that in the usual case one
 * cache line travels per small message and nothing travels back.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/align.h"
#include "base/bytes.h"
#include "drivers/shm/shm_internal.h"
#include "drivers/system/guard.h"
#include "drivers/system/memory.h"
#include "drivers/system/system.h"
#include "wire/srd.h"

#define SLOT_MASK (SHM_SLOTS - 1)
/* How far ahead of the consumer slots are prefetched, and packets are looked at. */
#define SLOTS_AHEAD   16
#define PACKETS_AHEAD 6
/* All other packets leave these for raw packets of management: a process that sends a connection's
 * last message may be gone before there is room again, and then nobody repeats the message. */
#define RESERVED_SLOTS 64
#define RESERVED_BYTES (RESERVED_SLOTS * 320)
/* The bits of an opcode that name the service. */
#define SERVICE_MASK 0xe0
/* Placed records that may wait in a ring before their consumer is woken for them. */
#define PLACED_MAX (SHM_SLOTS * 3 / 4)

static struct shm_link *shm_link_of(struct link *link)
{
    return CONTAINER_OF(link, struct shm_link, link);
}

/* Rules of our end of a ring, whatever the ring itself contains: the consumer that we saw is at
 * most a lap behind, and its data too. */
static void shm_link_check(const struct shm_link *link)
{
    CHECK(link->link.lost == (link->ring == NULL));
    CHECK(link->tail - link->consumed <= SHM_SLOTS);
    CHECK(link->data_tail - link->data_freed <= SHM_DATA_BYTES);
    list_check(&link->dirty);
}

static void shm_inbound_check(const struct shm_inbound *inbound)
{
    CHECK(inbound->ring != NULL);
    CHECK(inbound->watch == SHM_WATCH_INBOUND);
    CHECK(inbound->slot >= LOCAL_NO_SLOT);
}

static void shm_inbounds_check(const struct shm_port *port)
{
    CHECK(port->board != NULL);
    CHECK(port->inbound_count <= port->inbound_max);
    for (uint32_t i = 0; i < port->inbound_count; i++) {
        shm_inbound_check(port->inbound[i]);
    }
}

/* -- Producing ----------------------------------------------------------------------------------*/

/* Where the next payload would start: at the tail, or behind the end of the ring if it does not fit
 * in one piece before it. */
static uint64_t next_start(uint64_t tail, uint32_t bytes)
{
    const uint64_t offset = tail % SHM_DATA_BYTES;
    return offset + bytes > SHM_DATA_BYTES ? tail + (SHM_DATA_BYTES - offset) : tail;
}

static bool fits_within(const struct shm_link *link, uint32_t bytes, uint32_t slots,
                        uint64_t data_bytes)
{
    const uint64_t end = next_start(link->data_tail, bytes) + line_aligned(bytes);
    return link->tail - link->consumed < slots && end - link->data_freed <= data_bytes;
}

static bool fits(const struct shm_link *link)
{
    return fits_within(link, SHM_PAYLOAD_BYTES_MAX, SHM_SLOTS - RESERVED_SLOTS,
                       SHM_DATA_BYTES - RESERVED_BYTES);
}

/* Likewise without a look at where the ring ends: then the payload may take twice its bytes. */
static bool fits_surely(const struct shm_link *link)
{
    return link->tail - link->consumed < SHM_SLOTS - RESERVED_SLOTS &&
           link->data_tail - link->data_freed <=
               SHM_DATA_BYTES - RESERVED_BYTES - 2 * (SHM_PAYLOAD_BYTES_MAX + CACHE_LINE_BYTES);
}

/* Reads how much the consumer says that it has consumed; a number that makes no sense is
 * ignored. */
static void look_at_consumer(struct shm_link *link)
{
    const uint32_t consumed = atomic_load_explicit(&link->ring->consumed, memory_order_acquire);
    if (consumed == link->consumed || consumed - link->consumed > link->tail - link->consumed) {
        return;
    }
    link->consumed = consumed;
    link->data_freed = link->data_end[(consumed - 1) & SLOT_MASK];
}

bool shm_link_has_room(struct link *base)
{
    struct shm_link *link = shm_link_of(base);
    INVARIANTS(shm_link_check(link));
    if (fits_surely(link) || base->lost || fits(link)) {
        return true;
    }
    look_at_consumer(link);
    return fits(link);
}

uint32_t shm_link_unread(struct shm_link *link)
{
    uint32_t unread = 0;
    INVARIANTS(shm_link_check(link));
    look_at_consumer(link);
    for (uint32_t at = link->consumed; at != link->tail; at++) {
        unread += !(link->ring->slots[at & SLOT_MASK].flags & SHM_SLOT_PLACED);
    }
    return unread;
}

uint32_t shm_link_read(const struct link *base)
{
    return CONTAINER_OF_CONST(base, struct shm_link, link)->consumed;
}

/* A raw packet may use the reserved room, too. */
static bool has_raw_room(struct shm_link *link, uint32_t bytes)
{
    if (fits_within(link, bytes, SHM_SLOTS, SHM_DATA_BYTES)) {
        return true;
    }
    look_at_consumer(link);
    return fits_within(link, bytes, SHM_SLOTS, SHM_DATA_BYTES);
}

static struct shm_slot *next_slot(struct shm_link *link)
{
    return &link->ring->slots[link->tail & SLOT_MASK];
}

/* Nothing in the slot is read after it was published: by then the consumer, which polls for it, has
 * the cache line. */
static void publish(struct shm_port *port, struct shm_link *link, struct shm_slot *slot,
                    uint8_t flags)
{
    slot->flags = flags;
    link->data_end[link->tail & SLOT_MASK] = link->data_tail;
    link->tail++;
    atomic_store_explicit(&slot->sequence, link->tail, memory_order_release);
    link->unplaced |= !(flags & SHM_SLOT_PLACED);
    INVARIANTS(shm_link_check(link));
    if (list_empty(&link->dirty)) {
        list_append(&port->dirty, &link->dirty);
    }
}

/* Room in the data ring for a payload; its place is noted in the slot. Payload starts on cache
 * lines, so that a packet's copy shares none with its neighbour's. */
static uint8_t *reserve_data(struct shm_link *link, struct shm_slot *slot, uint32_t bytes)
{
    const uint64_t start = next_start(link->data_tail, bytes);
    link->data_tail = start + line_aligned(bytes);
    slot->data_offset = (uint32_t)(start % SHM_DATA_BYTES);
    return link->ring->data + slot->data_offset;
}

/* RoCE's headers fit into a slot. The CHECK stands behind the copy: with a
 * bound in front of it gcc copies by a loop, and a SEND takes 4 to 8 % longer. */
static inline void put_headers(struct shm_slot *slot, const struct nic_departure *departure)
{
    /* Those of the most frequent packets, which then need no call. */
    switch (departure->headers_bytes) {
    case 12: memcpy(slot->bytes, departure->headers, 12); break;
    case 16: memcpy(slot->bytes, departure->headers, 16); break;
    default: memcpy(slot->bytes, departure->headers, departure->headers_bytes); break;
    }
    CHECK(departure->headers_bytes <= ROCE_HEADERS_BYTES_MAX);
}

/* Only a UD receiver sees the bytes that stand for the IP header, so only UD pays for them. */
static bool tells_variant(const struct nic_departure *departure)
{
    return (departure->headers[0] & SERVICE_MASK) == ROCE_SERVICE_UD &&
           !inet_variant_is_plain(nic_av_variant(departure->av));
}

/* Writes the bytes that stand for the IP header. Returns the flag that says so. */
static uint8_t put_variant(struct shm_slot *slot, struct inet_variant variant)
{
    memcpy(slot->bytes + SHM_VARIANT_AT, &variant, sizeof(variant));
    return SHM_SLOT_VARIANT;
}

static uint8_t put_ack(struct shm_slot *slot, const struct nic_piggyback *piggyback, uint32_t used)
{
    const struct shm_ack ack = {.psn = piggyback->psn, .aeth = piggyback->aeth};
    CHECK(used <= SHM_ACK_AT);
    memcpy(slot->bytes + SHM_ACK_AT, &ack, sizeof(ack));
    return SHM_SLOT_ACK;
}

/* Most packets have one segment, or none. */
static bool gather(const struct nic_departure *departure, uint8_t *to)
{
    const struct segment *segment = &departure->segments[0];
    if (departure->segment_count == 1 && !segment->may_fault) {
        return guard_copy(to, (const uint8_t *)(uintptr_t)segment->address, segment->bytes);
    }
    return departure->segment_count == 0 ||
           memory_gather(departure->segments, departure->segment_count, to);
}

/* Counts a packet that is sent to nobody. In a child of fork there is no port. */
static bool swallow(struct shm_port *port)
{
    if (port != NULL) {
        port->counters.packets_lost++;
    }
    return true;
}

/* Headers that do not fit into the slot: the rest stands in front of the payload, of which there is
 * room for. Returns the place behind it. */
static uint8_t *put_long_headers(struct shm_link *link, struct shm_slot *slot,
                                 const uint8_t *headers, uint32_t header_bytes,
                                 uint32_t payload_bytes)
{
    const uint32_t more = header_bytes - SHM_MORE_AT;
    uint8_t *to = reserve_data(link, slot, more + payload_bytes);
    CHECK(header_bytes <= NIC_HEADERS_BYTES_MAX && more + payload_bytes <= SHM_PAYLOAD_BYTES_MAX);
    memcpy(slot->bytes, headers, SHM_MORE_AT);
    slot->bytes[SHM_MORE_AT] = (uint8_t)more;
    memcpy(to, headers + SHM_MORE_AT, more);
    slot->header_bytes = SHM_MORE_AT;
    slot->payload_bytes = (uint16_t)(more + payload_bytes);
    return to + more;
}

/* The packet of an engine whose headers are longer than RoCE's: SRD's. */
static __attribute__((noinline)) bool transmit_long(struct shm_port *port, struct shm_link *link,
                                                    const struct nic_departure *departure)
{
    struct shm_slot *slot = next_slot(link);
    const uint64_t data_tail = link->data_tail;
    const uint32_t payload_bytes = departure->payload_bytes + departure->pad_bytes;
    uint8_t *to =
        put_long_headers(link, slot, departure->headers, departure->headers_bytes, payload_bytes);
    if (!gather(departure, to)) {
        link->data_tail = data_tail;
        return false;
    }
    memset(to + departure->payload_bytes, 0, departure->pad_bytes);
    publish(port, link, slot, SHM_SLOT_LONG);
    return true;
}

bool shm_link_transmit(struct shm_port *port, struct link *base,
                       const struct nic_departure *departure)
{
    struct shm_link *link = shm_link_of(base);
    INVARIANTS(shm_link_check(link));
    if (base->lost) {
        return swallow(port);
    }
    if (UNLIKELY(departure->headers_bytes > ROCE_HEADERS_BYTES_MAX)) {
        return transmit_long(port, link, departure);
    }
    struct shm_slot *slot = next_slot(link);
    const uint64_t data_tail = link->data_tail;
    const uint32_t header_bytes = departure->headers_bytes;
    const uint32_t payload_bytes = departure->payload_bytes + departure->pad_bytes;
    const bool told = UNLIKELY(tells_variant(departure));
    const bool inlined = header_bytes + payload_bytes <= (told ? SHM_VARIANT_AT : SHM_INLINE_BYTES);
    uint8_t *to = inlined ? slot->bytes + header_bytes : reserve_data(link, slot, payload_bytes);
    put_headers(slot, departure);
    if (!gather(departure, to)) {
        link->data_tail = data_tail; /* No consumer would ever free it. */
        return false;
    }
    if (UNLIKELY(departure->pad_bytes != 0)) {
        memset(to + departure->payload_bytes, 0, departure->pad_bytes);
    }
    slot->header_bytes = (uint8_t)header_bytes;
    slot->payload_bytes = (uint16_t)payload_bytes;
    uint8_t flags = inlined ? SHM_SLOT_INLINE : 0;
    if (departure->piggyback.there) {
        flags |= put_ack(slot, &departure->piggyback, header_bytes + payload_bytes);
    }
    if (UNLIKELY(told)) {
        flags |= put_variant(slot, nic_av_variant(departure->av));
    }
    publish(port, link, slot, flags);
    return true;
}

/* A corrupted opcode may name other headers than it left with; only the first byte has to decide,
 * here as at the receiver. The headers of SRD's packets without a payload end with the packet. */
static uint32_t raw_head(const uint8_t *bytes, uint32_t count)
{
    const struct roce_opcode *opcode = roce_opcode(bytes[0]);
    uint32_t head = roce_is_of_queue_pairs(opcode) ? opcode->headers_bytes : ROCE_BTH_BYTES;
    if (srd_is(bytes[0])) {
        head = srd_has_payload(bytes[0]) ? (uint32_t)srd_headers_bytes(bytes[0])
                                         : count - ROCE_ICRC_BYTES;
    }
    return head <= NIC_HEADERS_BYTES_MAX && head <= count - ROCE_ICRC_BYTES ? head : ROCE_BTH_BYTES;
}

bool shm_link_transmit_raw(struct shm_port *port, struct link *base, struct inet_variant variant,
                           const uint8_t *bytes, uint32_t count)
{
    struct shm_link *link = shm_link_of(base);
    const uint32_t head = raw_head(bytes, count);
    INVARIANTS(shm_link_check(link));
    CHECK(count >= ROCE_BTH_BYTES && count - head <= SHM_PAYLOAD_BYTES_MAX);
    if (base->lost) {
        return swallow(port);
    }
    if (!has_raw_room(link, count - head)) {
        return false;
    }
    struct shm_slot *slot = next_slot(link);
    if (head > SHM_MORE_AT) {
        memcpy(put_long_headers(link, slot, bytes, head, count - head), bytes + head, count - head);
        publish(port, link, slot, SHM_SLOT_CHECKED | SHM_SLOT_LONG);
        return true;
    }
    memcpy(slot->bytes, bytes, head);
    memcpy(reserve_data(link, slot, count - head), bytes + head, count - head);
    slot->header_bytes = (uint8_t)head;
    slot->payload_bytes = (uint16_t)(count - head);
    publish(port, link, slot, SHM_SLOT_CHECKED | put_variant(slot, variant));
    return true;
}

/* shm_direct.c calls this: the record has headers only, because the payload is in place. */
void shm_link_note_placed(struct shm_port *port, struct shm_link *link,
                          const struct nic_departure *departure)
{
    struct shm_slot *slot = next_slot(link);
    INVARIANTS(shm_link_check(link));
    put_headers(slot, departure);
    /* The writer has its acknowledgement already: AckReq, bit 7 of BTH byte 8, is cleared. */
    slot->bytes[8] &= 0x7f;
    slot->header_bytes = (uint8_t)departure->headers_bytes;
    slot->payload_bytes = (uint16_t)(departure->payload_bytes + departure->pad_bytes);
    slot->data_offset = 0; /* It names no bytes, but has to be in range like any other offset. */
    publish(port, link, slot, SHM_SLOT_PLACED);
}

/* False: the kernel did not take the bell. The consumer may go on sleeping, so the bell has to be
 * rung again. */
static bool ring_doorbell(struct shm_link *link)
{
    const bool asleep = link->board == NULL ||
                        atomic_load_explicit(&link->board->asleep, memory_order_relaxed) != 0;
    if (!asleep || atomic_exchange_explicit(&link->ring->rung, 1, memory_order_acq_rel) != 0) {
        return true;
    }
    const char bell = 1;
    /* If there is no room for one more bell, the consumer has not read the earlier ones yet. */
    if (system_send(link->socket, &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno == EAGAIN) {
        return true;
    }
    atomic_store_explicit(&link->ring->rung, 0, memory_order_relaxed);
    return false;
}

bool shm_link_is_alive(const struct link *base)
{
    const struct shm_link *link = CONTAINER_OF_CONST(base, struct shm_link, link);
    if (base->lost) {
        return false;
    }
    /* The process number may name another process by now, so we ask for it only before the peer's
     * board came. Its socket, which its children may still hold, takes a second greeting from us in
     * any case: then only the board shows that the process lives. */
    return link->board != NULL
               ? shm_board_is_owned(link->board)
               : !link->revived && (link->pid == 0 || kill(link->pid, 0) == 0 || errno != ESRCH);
}

uint32_t shm_link_mark(const struct link *base)
{
    return CONTAINER_OF_CONST(base, struct shm_link, link)->tail;
}

bool shm_link_has_read(const struct link *base, uint32_t mark)
{
    const struct shm_link *link = CONTAINER_OF_CONST(base, struct shm_link, link);
    if (base->lost) {
        return true;
    }
    const uint32_t consumed = atomic_load_explicit(&link->ring->consumed, memory_order_acquire);
    /* We count back from the tail, since a mark may be older than half of all numbers. */
    return link->tail - consumed <= link->tail - mark;
}

void shm_link_nudge(struct link *base)
{
    struct shm_link *link = shm_link_of(base);
    if (!base->lost) {
        (void)ring_doorbell(link);
    }
}

/* Is it urgent to wake the consumer? Not for placed records: nobody waits for them until the ring
 * fills up. */
static bool urgent(struct shm_link *link)
{
    if (link->unplaced) {
        return true;
    }
    if (link->tail - link->consumed <= PLACED_MAX) {
        return false;
    }
    look_at_consumer(link);
    return link->tail - link->consumed > PLACED_MAX;
}

bool shm_port_flush(struct shm_port *port)
{
    if (list_empty(&port->dirty)) {
        return true;
    }
    /* Pairs with the fence in shm_port_sleep: either we see that the consumer sleeps, or it sees
     * the slots that we published. */
    atomic_thread_fence(memory_order_seq_cst);
    struct list *next;
    for (struct list *node = port->dirty.next; node != &port->dirty; node = next) {
        struct shm_link *link = CONTAINER_OF(node, struct shm_link, dirty);
        next = node->next;
        INVARIANTS(shm_link_check(link));
        if (link->link.lost || !urgent(link) || ring_doorbell(link)) {
            link->unplaced = false;
            list_remove(&link->dirty);
        }
    }
    return list_empty(&port->dirty);
}

bool shm_link_peer_awake(const struct link *base)
{
    const struct shm_link *link = CONTAINER_OF_CONST(base, struct shm_link, link);
    return link->board != NULL &&
           atomic_load_explicit(&link->board->asleep, memory_order_relaxed) == 0;
}

bool shm_port_has_waiting(const struct shm_port *port)
{
    return !list_empty(&port->dirty);
}

/* -- Consuming ----------------------------------------------------------------------------------*/

static bool slot_ready(const struct shm_inbound *inbound)
{
    const struct shm_slot *slot = &inbound->ring->slots[inbound->head & SLOT_MASK];
    return atomic_load_explicit(&slot->sequence, memory_order_acquire) == inbound->head + 1;
}

static struct inet_variant variant_in(const struct shm_slot *slot)
{
    struct inet_variant variant = INET_VARIANT_PLAIN;
    if (UNLIKELY(slot->flags & SHM_SLOT_VARIANT)) {
        memcpy(&variant, slot->bytes + SHM_VARIANT_AT, sizeof(variant));
        variant.flow_label &= INET_LABEL_MASK;
    }
    return variant;
}

static struct nic_piggyback piggyback_in(const struct shm_slot *slot)
{
    struct shm_ack ack = {0};
    if ((slot->flags & SHM_SLOT_ACK) == 0) {
        return (struct nic_piggyback){0};
    }
    memcpy(&ack, slot->bytes + SHM_ACK_AT, sizeof(ack));
    return (struct nic_piggyback){.there = true, .psn = ack.psn, .aeth = ack.aeth};
}

/* The record of what stands in turn.slot, field by field: the frame is as large as the slot, and
 * what is not written here is 0 for ever. */
static void note_record(struct shm_port *port, const struct shm_inbound *inbound, bool inlined)
{
    const struct shm_slot *slot = &port->turn.slot;
    const struct inet_variant variant = variant_in(slot);
    struct shm_record *record = &port->turn.record;
    struct nic_frame *frame = &record->frame;
    frame->headers = slot->bytes;
    frame->headers_bytes = slot->header_bytes;
    frame->payload =
        inlined ? slot->bytes + slot->header_bytes : inbound->ring->data + slot->data_offset;
    frame->payload_bytes = slot->payload_bytes;
    frame->source = inbound->source;
    frame->destination = port->self;
    frame->traffic_class = variant.traffic_class;
    frame->hop_limit = variant.hop_limit;
    frame->flow_label = variant.flow_label;
    frame->piggyback = piggyback_in(slot);
    frame->placed = slot->flags & SHM_SLOT_PLACED;
    record->checked = slot->flags & SHM_SLOT_CHECKED;
}

/* The rest of long headers is copied, as the slot is, and judged then. False: there is no such
 * rest. */
static __attribute__((noinline)) bool note_long_headers(struct shm_port *port)
{
    struct shm_turn *turn = &port->turn;
    struct nic_frame *frame = &turn->record.frame;
    const uint32_t more = turn->slot.bytes[SHM_MORE_AT];
    if (turn->slot.header_bytes != SHM_MORE_AT || more > NIC_HEADERS_BYTES_MAX - SHM_MORE_AT ||
        more > frame->payload_bytes || (turn->slot.flags & SHM_SLOT_INLINE) != 0) {
        return false;
    }
    memcpy(turn->long_headers, turn->slot.bytes, SHM_MORE_AT);
    memcpy(turn->long_headers + SHM_MORE_AT, frame->payload, more);
    frame->headers = turn->long_headers;
    frame->headers_bytes = SHM_MORE_AT + more;
    frame->payload += more;
    frame->payload_bytes -= more;
    return true;
}

/* Takes the next packet; false: the slot contains no packet. */
static bool take(struct shm_port *port, struct shm_inbound *inbound)
{
    struct shm_slot *slot = &port->turn.slot;
    /* We judge a copy: the producer could change the slot between our judgement and our use of
     * it. */
    memcpy(slot, &inbound->ring->slots[inbound->head & SLOT_MASK], sizeof(*slot));
    const bool inlined = slot->flags & SHM_SLOT_INLINE;
    const uint32_t header_bytes = slot->header_bytes;
    const uint32_t payload_bytes = slot->payload_bytes;
    const uint32_t room = slot->flags & SHM_SLOT_ACK ? SHM_ACK_AT : SHM_INLINE_BYTES;
    if (header_bytes > ROCE_HEADERS_BYTES_MAX || payload_bytes > SHM_PAYLOAD_BYTES_MAX ||
        (inlined ? header_bytes + payload_bytes > room
                 : slot->data_offset > SHM_DATA_BYTES - payload_bytes)) {
        return false;
    }
    note_record(port, inbound, inlined);
    return LIKELY((slot->flags & SHM_SLOT_LONG) == 0) || note_long_headers(port);
}

/* Prefetches the slots behind the next one, and the memory for the packets in them. This is a hint
 * only: nothing that these slots contain is believed. */
static void look_ahead(const struct shm_inbound *inbound, const struct nic *nic)
{
    __builtin_prefetch(&inbound->ring->slots[(inbound->head + SLOTS_AHEAD) & SLOT_MASK]);
    const uint32_t position = inbound->head + PACKETS_AHEAD;
    const struct shm_slot *slot = &inbound->ring->slots[position & SLOT_MASK];
    if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) == position + 1) {
        nic_prefetch_packet(nic, slot->bytes);
    }
}

/* The next ring's turn. One that is drained, and whose producer has gone, goes: another one is in
 * its place then. */
static void next_ring(struct shm_port *port, struct shm_inbound *inbound)
{
    if (port->turn.taken > 0) {
        atomic_store_explicit(&inbound->ring->consumed, inbound->head, memory_order_release);
        port->turn.taken = 0;
    } else if (UNLIKELY(inbound->hung_up)) {
        shm_inbound_close(port, port->turn.ring);
        return;
    }
    port->turn.ring++;
}

const struct shm_record *shm_port_next(struct shm_port *port, uint32_t quantum,
                                       const struct nic *nic)
{
    struct shm_turn *turn = &port->turn;
    while (turn->ring < port->inbound_count) {
        struct shm_inbound *inbound = port->inbound[turn->ring];
        INVARIANTS(shm_inbound_check(inbound));
        if (turn->taken < quantum && slot_ready(inbound) && !inbound->broken) {
            if (nic != NULL) {
                look_ahead(inbound, nic);
            }
            if (take(port, inbound)) {
                inbound->head++;
                turn->taken++;
                return &turn->record;
            }
            shm_inbound_break(port, inbound);
        }
        next_ring(port, inbound);
    }
    turn->ring = 0;
    return NULL;
}

/* Does anything but placed records wait? */
static bool has_urgent(const struct shm_inbound *inbound)
{
    if (inbound->broken) {
        return false;
    }
    for (uint32_t i = 0; i < SHM_SLOTS; i++) {
        const uint32_t position = inbound->head + i;
        const struct shm_slot *slot = &inbound->ring->slots[position & SLOT_MASK];
        if (atomic_load_explicit(&slot->sequence, memory_order_acquire) != position + 1) {
            return i > PLACED_MAX;
        }
        if (!(slot->flags & SHM_SLOT_PLACED)) {
            return true;
        }
    }
    return true;
}

bool shm_port_sleep(struct shm_port *port)
{
    INVARIANTS(shm_inbounds_check(port));
    for (uint32_t i = 0; i < port->inbound_count; i++) {
        atomic_store_explicit(&port->inbound[i]->ring->rung, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&port->board->asleep, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < port->inbound_count; i++) {
        if (has_urgent(port->inbound[i])) {
            return false;
        }
    }
    return true;
}

void shm_port_wake(struct shm_port *port)
{
    atomic_store_explicit(&port->board->asleep, 0, memory_order_release);
}
