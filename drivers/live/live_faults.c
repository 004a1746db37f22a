/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_faults - a bad network between the engines and the ports.
 *
 * A packet that no fault strikes leaves as it would without faults, and so does one that was
 * delayed when its time has come: in batches, its ICRC computed when the batch is laid out. Only
 * corrupted packets, and packets that are captured, go whole and alone.
 */
#include <string.h>

#include "drivers/live/live_faults.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_packet.h"
#include "drivers/system/clock.h"
#include "drivers/system/memory.h"
#include "drivers/system/system.h"

/* The time that a packet which is due, and others behind it, wait for a peer that reads nothing
 * from its full ring: a peer that is stopped must not keep them for ever. A peer that waits for a
 * processor may take a tenth of a second. */
#define ROOM_NS 300000000
/* The most time that counts between two looks at the peer: in a longer one, we slept ourselves. */
#define ROOM_LOOK_NS 10000000
/* A packet on its way arrives though its sender has ended. A packet that is due later than this
 * leaves at once when its sender ends. */
#define LAST_DELAY_NS 200000000
#define LAST_LOOK_NS  100000

/* -- Packets that were held ---------------------------------------------------------------------*/

/* The peer's ring is full, and nothing was read from it for too long. How long the packet has been
 * due says nothing: we may not have run ourselves. */
static bool is_given_up(struct live *live, const struct link *link)
{
    if (link->kind != LINK_SHM) {
        return false;
    }
    const uint32_t read = shm_link_read(link);
    if (live->full.link != link || live->full.read != read) {
        live->full.link = link;
        live->full.read = read;
        live->full.waited_ns = 0;
    } else {
        const uint64_t passed = live->now.ns - live->full.looked.ns;
        live->full.waited_ns += passed < ROOM_LOOK_NS ? passed : ROOM_LOOK_NS;
    }
    live->full.looked = live->now;
    return live->full.waited_ns >= ROOM_NS;
}

/* Sends a packet from its copy, which stays until the port is flushed. False: not now. */
static bool release_one(struct live *live, const struct faults_packet *packet,
                        struct nic_departure *departure)
{
    if (packet->whole) {
        live_transmit_raw(live, packet->link, packet->variant, packet->bytes,
                          packet->payload_bytes);
        return true;
    }
    if (!live_has_room(live, packet->link)) {
        if (is_given_up(live, packet->link)) {
            nic_count(live->nic, COUNTER_drop_fault_full);
            return true;
        }
        live->links.parked = true;
        return false;
    }
    const struct nic_av av = {.flow_label = packet->variant.flow_label,
                              .traffic_class = packet->variant.traffic_class,
                              .hop_limit = packet->variant.hop_limit};
    departure->av = &av;
    CHECK(packet->headers_bytes <= sizeof(departure->headers));
    memcpy(departure->headers, packet->bytes, packet->headers_bytes);
    departure->headers_bytes = packet->headers_bytes;
    departure->payload_bytes = packet->payload_bytes;
    departure->pad_bytes = packet->pad_bytes;
    departure->segment_count = packet->payload_bytes > 0;
    departure->segments[0] =
        (struct segment){.address = (uintptr_t)(packet->bytes + packet->headers_bytes),
                         .bytes = packet->payload_bytes};
    CHECK(live_transmit_packet(live, packet->link, departure));
    departure->av = NULL;
    return true;
}

static uint32_t release_held(struct live *live)
{
    const struct faults_packet *packet = faults_due(live->faults, live->now);
    if (LIKELY(packet == NULL)) {
        return 0;
    }
    struct nic_departure departure = {0};
    uint32_t released = 0;
    while (packet != NULL && release_one(live, packet, &departure)) {
        faults_take(live->faults);
        released++;
        packet = faults_due(live->faults, live->now);
    }
    return released;
}

/* -- Packets that leave -------------------------------------------------------------------------*/

static uint32_t total_bytes(const struct nic_departure *departure)
{
    return departure->headers_bytes + departure->payload_bytes + departure->pad_bytes +
           ROCE_ICRC_BYTES;
}

/* The number of copies that leave now. A packet that cannot be held leaves now if it was to be
 * reordered; if it was to be delayed, it is lost, because it would overtake others. */
static uint32_t copies_now(struct live *live, const struct faults_packet *packet,
                           const struct fault_decision *fault)
{
    const uint32_t copies = (uint32_t)fault->duplicate + !fault->drop;
    if (!fault_holds(fault)) {
        return copies;
    }
    CHECK(copies > 0); /* A packet that is dropped is not held. */
    if (faults_hold(live->faults, packet, live->now, fault)) {
        return copies - 1;
    }
    if (fault->delay_ns != 0) {
        nic_count(live->nic, COUNTER_drop_fault_full);
        return copies - 1;
    }
    return copies;
}

static void transmit_whole(struct live *live, struct link *link, struct inet_variant variant,
                           uint8_t *bytes, uint32_t count, const struct fault_decision *fault)
{
    CHECK(count <= BLOCK_PACKET_BYTES_MAX && link->kind != LINK_SHARED);
    if (fault->corrupt) {
        CHECK(fault->corrupt_bit / 8 < count);
        bytes[fault->corrupt_bit / 8] ^= (uint8_t)(1u << fault->corrupt_bit % 8);
    }
    const struct faults_packet packet = {.link = link,
                                         .bytes = bytes,
                                         .variant = variant,
                                         .whole = true,
                                         .payload_bytes = (uint16_t)count};
    for (uint32_t copies = copies_now(live, &packet, fault); copies > 0; copies--) {
        live_transmit_raw(live, link, variant, bytes, count);
    }
}

void live_transmit_raw_with_faults(struct live *live, struct link *link,
                                   struct inet_variant variant, uint8_t *bytes, uint32_t count)
{
    const struct fault_decision fault = faults_decide(live->faults, count);
    transmit_whole(live, link, variant, bytes, count, &fault);
    (void)release_held(live);
}

/* Transmits a packet that a fault strikes but does not corrupt: copies that leave now are sent from
 * where the payload lies. False: the payload is not there. */
static bool transmit_struck(struct live *live, struct link *link,
                            const struct nic_departure *departure,
                            const struct fault_decision *fault)
{
    uint8_t bytes[BLOCK_PACKET_BYTES_MAX];
    const struct faults_packet packet = {
        .link = link,
        .bytes = bytes,
        .variant = nic_av_variant(departure->av),
        .pad_bytes = (uint8_t)departure->pad_bytes,
        .headers_bytes = (uint16_t)departure->headers_bytes,
        .payload_bytes = (uint16_t)departure->payload_bytes,
    };
    CHECK(!fault->corrupt && departure->headers_bytes + departure->payload_bytes <= sizeof(bytes));
    if (fault_holds(fault)) {
        memcpy(bytes, departure->headers, departure->headers_bytes);
        if (!memory_gather(departure->segments, departure->segment_count,
                           bytes + departure->headers_bytes)) {
            return false;
        }
    }
    bool there = true;
    uint32_t copies = copies_now(live, &packet, fault);
    for (; there && copies > 0 && live_has_room(live, link); copies--) {
        there = live_transmit_packet(live, link, departure);
    }
    return there;
}

bool live_transmit_with_faults(struct live *live, struct link *link,
                               const struct nic_departure *departure)
{
    const struct fault_decision fault = faults_decide(live->faults, total_bytes(departure));
    bool there = true;
    if (LIKELY(!fault_strikes(&fault))) {
        there = live_transmit_packet(live, link, departure);
    } else if (!fault.corrupt) {
        there = transmit_struck(live, link, departure, &fault);
    } else {
        uint8_t bytes[BLOCK_PACKET_BYTES_MAX];
        const uint32_t count = live_serialize(link, departure, bytes);
        there = count != 0;
        if (there) {
            transmit_whole(live, link, nic_av_variant(departure->av), bytes, count, &fault);
        }
    }
    (void)release_held(live);
    return there;
}

uint32_t live_flush_with_faults(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    const uint32_t released = release_held(live);
    live_flush_ports(live);
    faults_settle(live->faults);
    return released;
}

void live_drain_held(struct live *live)
{
    if (live->faults == NULL) {
        return;
    }
    live->now = clock_now();
    const struct instant end = instant_after(live->now, LAST_DELAY_NS);
    while (faults_held(live->faults) > 0 && !instant_reached(live->now, end)) {
        (void)live_flush_with_faults(live);
        if (faults_held(live->faults) > 0) {
            system_sleep(LAST_LOOK_NS);
        }
        live->now = clock_now();
    }
    live->now = INSTANT_NEVER;
    (void)live_flush_with_faults(live);
    live->now = clock_now();
}
