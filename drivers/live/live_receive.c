/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_receive - from the ports into the engines.
 */
#include <string.h>

#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_multicast.h"
#include "drivers/live/live_receive.h"
#include "drivers/live/live_stat.h"
#include "wire/roce_frame.h"

/* Takes in a packet of blocks, and then packets that came before their turn, if their turn has
 * come. */
static void block_arrival(struct live *live, const struct nic_frame *frame)
{
    struct nic_move move;
    if (nic_on_packet(live->nic, frame, live->now, &move) == NIC_MOVES) {
        nic_on_moved(live->nic, &move, live_move(live, &move), live->now);
    }
    while (nic_next_held(live->nic, &move)) {
        nic_on_moved(live->nic, &move, live_move(live, &move), live->now);
    }
}

void live_arrival(struct live *live, const struct nic_frame *frame)
{
    struct nic_move move;
    INVARIANTS(live_check_locked(live));
    if (UNLIKELY(block_is(frame->headers[0]))) {
        block_arrival(live, frame);
        return;
    }
    switch (nic_on_packet(live->nic, frame, live->now, &move)) {
    case NIC_DONE: return;
    case NIC_MOVES: nic_on_moved(live->nic, &move, live_move(live, &move), live->now); return;
    case NIC_MANAGEMENT: live_cm_arrival(live, frame, &move); return;
    }
}

static void record(struct live *live, const struct nic_frame *frame)
{
    if (live->capture == NULL) {
        return;
    }
    const struct inet_flow flow = roce_flow(frame->source.bytes, frame->destination.bytes);
    const struct inet_variant variant = {.flow_label = frame->flow_label,
                                         .traffic_class = frame->traffic_class,
                                         .hop_limit = frame->hop_limit};
    capture_pieces(live->capture, &flow, variant, frame->headers, frame->headers_bytes,
                   frame->payload, frame->payload_bytes);
}

/* Faults on arriving packets: they are dropped, or corrupted, which the ICRC finds. The sender
 * delays, repeats and reorders packets. */
static bool lost_on_arrival(struct live *live, uint32_t count)
{
    if (!faults_apply(live->faults, FAULT_RECEIVING)) {
        return false;
    }
    const struct fault_decision fault = faults_decide(live->faults, count);
    if (fault.corrupt) {
        nic_count(live->nic, COUNTER_drop_wrong_icrc);
    }
    return fault.drop || fault.corrupt;
}

/* -- UDP ----------------------------------------------------------------------------------------*/

/* False: the datagram is done with, and there is no frame. */
static bool take_datagram(struct live *live, const struct udp_datagram *datagram,
                          struct nic_frame *frame)
{
    INVARIANTS(CHECK(datagram->count >= ROCE_BTH_BYTES)); /* It was judged. */
    *frame = (struct nic_frame){
        .headers = datagram->bytes,
        .headers_bytes = (uint32_t)datagram->count,
        .source = datagram->source,
        .destination = datagram->destination,
        .arrived = datagram->arrived,
        .traffic_class = datagram->variant.traffic_class,
        .hop_limit = datagram->variant.hop_limit,
        .flow_label = datagram->variant.flow_label,
    };
    record(live, frame);
    return !lost_on_arrival(live, (uint32_t)datagram->count);
}

/* Does the peer of the queue pair send through a ring to us? Then this packet comes from somebody
 * else: on a loopback address, any user of the machine can name the peer's address as the
 * source. */
static inline bool is_beside_ring(struct live *live, const struct nic_frame *frame)
{
    if (live->shm == NULL || !shm_port_has_links(live->shm)) {
        return false;
    }
    const struct link *link = nic_frame_link(live->nic, frame);
    return link != NULL && link->kind == LINK_SHM && shm_link_is_answered_by_ring(live->shm, link);
}

void live_show_variants(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    udp_port_show_variants(&live->udp);
}

/* Serves the datagrams of one call. */
static void on_datagrams(struct live *live, bool of_groups)
{
    const struct udp_datagram *datagram;
    struct nic_frame frame;
    while ((datagram = udp_port_next(&live->udp)) != NULL) {
        if (!take_datagram(live, datagram, &frame)) {
            continue;
        }
        if (UNLIKELY(of_groups)) {
            live_group_arrival(live, &frame);
        } else if (UNLIKELY(is_beside_ring(live, &frame))) {
            nic_count(live->nic, COUNTER_drop_beside_ring);
        } else {
            live_arrival(live, &frame);
        }
    }
}

/* A call of its own, so that a poll of a program whose peers have rings is short: gcc then compiles
 * live_receive into it. */
static __attribute__((noinline)) uint32_t receive_datagrams(struct live *live, uint32_t quantum,
                                                            const struct nic *foresight)
{
    uint32_t count = 0, arrived;
    while ((arrived = udp_port_look(&live->udp, quantum, foresight)) > 0) {
        count += arrived;
        on_datagrams(live, false);
    }
    return count;
}

static uint32_t receive_from_groups(struct live *live, uint32_t quantum)
{
    uint32_t count = 0, arrived;
    while ((arrived = udp_port_look_at_groups(&live->udp, quantum)) > 0) {
        count += arrived;
        on_datagrams(live, true);
    }
    return count;
}

bool live_receive_shared(struct live *live, int fd)
{
    INVARIANTS(CHECK(live->addresses.shared));
    const struct address *address = udp_port_shared(&live->udp, fd);
    if (address == NULL) {
        return false;
    }
    while (udp_port_look_at_shared(&live->udp, address, fd)) {
        on_datagrams(live, false);
    }
    live_count_port(live);
    return true;
}

/* -- Shared memory ------------------------------------------------------------------------------*/

static void on_watched(struct live *live, const struct nic_frame *frame)
{
    record(live, frame);
    if (!lost_on_arrival(live, frame->headers_bytes + frame->payload_bytes)) {
        live_arrival(live, frame);
    }
}

/* The peer, which nobody watches, lets an acknowledgement travel with a request: here they are two
 * packets. */
static __attribute__((noinline)) void on_pair(struct live *live, struct nic_frame frame)
{
    uint8_t headers[NIC_ACK_HEADERS_BYTES];
    if (frame.headers_bytes >= ROCE_BTH_BYTES) {
        const struct nic_frame ack = nic_piggyback_frame(&frame, headers);
        on_watched(live, &ack);
    }
    frame.piggyback.there = false;
    on_watched(live, &frame);
}

static void on_frame(struct live *live, const struct nic_frame *frame)
{
    if (LIKELY(!live->is_watched)) {
        live_arrival(live, frame);
    } else if (frame->piggyback.there) {
        on_pair(live, *frame);
    } else {
        on_watched(live, frame);
    }
}

/* A packet that went through the fault injector carries its ICRC. */
static bool icrc_matches(const struct nic_frame *frame)
{
    const struct inet_flow flow = roce_flow(frame->source.bytes, frame->destination.bytes);
    const size_t total = frame->headers_bytes + frame->payload_bytes;
    uint8_t bytes[ROCE_PACKET_BYTES_MAX];
    if (total > sizeof(bytes)) {
        return false;
    }
    memcpy(bytes, frame->headers, frame->headers_bytes);
    memcpy(bytes + frame->headers_bytes, frame->payload, frame->payload_bytes);
    return roce_frame_is_whole(&flow, bytes, total);
}

/* The packet ends with an ICRC. */
static void on_checked(struct live *live, struct nic_frame frame)
{
    if (frame.payload_bytes < ROCE_ICRC_BYTES) {
        nic_count(live->nic, COUNTER_drop_short);
        return;
    }
    if (!icrc_matches(&frame)) {
        nic_count(live->nic, COUNTER_drop_wrong_icrc);
        return;
    }
    frame.payload_bytes -= ROCE_ICRC_BYTES;
    on_frame(live, &frame);
}

/* Returns how many records came, but for placed ones. */
static uint32_t receive_records(struct live *live, uint32_t quantum, const struct nic *foresight)
{
    const struct shm_record *shm;
    uint32_t count = 0;
    while ((shm = shm_port_next(live->shm, quantum, foresight)) != NULL) {
        if (UNLIKELY(shm->checked)) {
            on_checked(live, shm->frame);
        } else {
            on_frame(live, &shm->frame);
        }
        count += !shm->frame.placed;
    }
    return count;
}

uint32_t live_receive(struct live *live, uint32_t quantum, bool look_at_udp)
{
    INVARIANTS(live_check(live));
    const struct nic *foresight = live->config.batch > 1 ? live->nic : NULL;
    uint32_t count = 0;
    if (live->shm != NULL) {
        count += receive_records(live, quantum, foresight);
    }
    if (look_at_udp) {
        count += receive_datagrams(live, quantum, foresight);
        if (live->udp.group_count > 0) {
            count += receive_from_groups(live, quantum);
        }
        live_count_port(live);
    }
    return count;
}
