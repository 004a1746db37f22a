/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_transmit - from the engines to the ports, one queue pair after the other.
 */
#include <string.h>

#include "drivers/live/live_cm.h"
#include "drivers/live/live_faults.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_packet.h"
#include "drivers/live/live_resolve.h"
#include "drivers/live/live_transmit.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/poisoned.h"
#include "drivers/system/raced.h"
#include "wire/roce_frame.h"

/* Packets that one queue pair may send before the next one has its turn. */
#define TURN_PACKETS 16

/* Turns before we look at packets that came in meanwhile. */
#define TURNS_MAX 64

/* The number of turns by which the memory of a queue pair is prefetched. */
#define TURNS_AHEAD 3

/* The time between two looks for the peer of a link that was lost. */
#define LOOK_AGAIN_NS 10000000

/* The most bytes that are fetched before we look at packets that came in meanwhile. */
#define FETCHED_MAX (2u << 20)

/* Where several processes share the address, the queue pair number says which one it is. */
static struct link *choose(struct live *live, struct link *link, uint32_t destination_qpn)
{
    return LIKELY(link->kind != LINK_SHARED) ? link : live_slot_link(live, link, destination_qpn);
}

/* Only over UDP there is more than one route. One that was found for now leads by its route. */
static struct link *by_route(struct live *live, struct link *link,
                             const struct nic_departure *departure)
{
    if (LIKELY((departure->route | departure->ecn) == 0) || link->kind != LINK_UDP ||
        departure->av->link == NULL ||
        (departure->route == 0 && udp_link_suits(link, (enum nic_ecn)departure->ecn))) {
        return link;
    }
    return udp_port_route(&live->udp, link, departure->route, (enum nic_ecn)departure->ecn);
}

/* -- The slow way: packets as bytes ------------------------------------------------------------*/

static void transmit_bytes(struct live *live, struct link *link, const struct nic_av *av,
                           uint8_t *bytes, uint32_t count)
{
    CHECK(link->kind != LINK_SHARED); /* Each packet goes to one process. */
    const struct inet_variant variant = nic_av_variant(av);
    if (live->capture != NULL) {
        const struct inet_flow flow = live_flow_of(link, av);
        capture_bytes(live->capture, &flow, variant, bytes, count);
    }
    if (faults_apply(live->faults, FAULT_SENDING)) {
        live_transmit_raw_with_faults(live, link, variant, bytes, count);
    } else {
        live_transmit_raw(live, link, variant, bytes, count);
    }
}

/* The captured bytes are those that leave, because the program may write its memory meanwhile.
 * Returns false if the payload is not there. */
static bool transmit_captured(struct live *live, struct link *link,
                              const struct nic_departure *departure)
{
    uint8_t bytes[BLOCK_PACKET_BYTES_MAX];
    const uint32_t count = live_serialize(link, departure, bytes);
    if (count == 0) {
        return false;
    }
    transmit_bytes(live, link, departure->av, bytes, count);
    return true;
}

void live_transmit_mad(struct live *live, const struct nic_av *av, const uint8_t mad[CM_MAD_BYTES])
{
    const struct roce_packet packet = {
        .opcode = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = CM_QPN,
        .psn = live->manager.psn++ & ROCE_24_BITS,
        .deth = {.qkey = CM_QKEY, .source_qpn = CM_QPN},
    };
    nic_count(live->nic, COUNTER_sent_pkts);
    nic_counters(live->nic)->values[COUNTER_sent_bytes] += CM_MAD_BYTES;
    struct link *link = av->link;
    uint8_t bytes[BLOCK_PACKET_BYTES_MAX];
    uint32_t count = (uint32_t)roce_encode_headers(&packet, bytes);
    memcpy(bytes + count, mad, CM_MAD_BYTES);
    count = live_seal(link, av, bytes, count + CM_MAD_BYTES, 0);
    transmit_bytes(live, link, av, bytes, count);
    if (link->kind != LINK_UDP) {
        live->links.parked |= !shm_port_flush(live->shm);
    }
}

/* -- The fast way -------------------------------------------------------------------------------*/

/* Large WRITEs wait until they can be placed: a stream of them would go by the ring for ever, since
 * there is always one in flight. */
static void wait_to_place(const struct link *link, const struct nic_departure *departure)
{
    if (departure->direct.message_bytes >= HABIT_MAPPED_WAITS_BYTES && shm_link_maps(link)) {
        nic_wait_to_place(departure->qp);
    }
}

static bool place(struct live *live, struct link *link, const struct nic_departure *departure)
{
    const struct nic_direct *direct = &departure->direct;
    if (direct->kind != NIC_DIRECT_WRITE) {
        return false;
    }
    if (!departure->alone) {
        wait_to_place(link, departure);
        return false;
    }
    const bool places = habit_places(&live->habit, departure->more_sends, direct->message_bytes);
    const bool pays = places || direct->message_bytes >= HABIT_MAPPED_BYTES;
    if (!pays || !shm_link_place(live->shm, link, departure, !places)) {
        return false;
    }
    habit_note_direct(&live->habit);
    wait_to_place(link, departure);
    return true;
}

static bool worth_fetching(const struct live *live, const struct link *link,
                           const struct nic_departure *departure)
{
    switch (habit_fetches(&live->habit, departure->more_sends, departure->direct.bytes)) {
    case HABIT_FETCH_NEVER: return false;
    case HABIT_FETCH_FROM_SLEEPER: return !shm_link_peer_awake(link);
    case HABIT_FETCH_ALWAYS: break;
    }
    return true;
}

static bool fetch(struct live *live, struct link *link, const struct nic_departure *departure)
{
    const struct nic_direct *direct = &departure->direct;
    if (direct->kind != NIC_DIRECT_READ) {
        return false;
    }
    habit_note_read(&live->habit, direct->bytes);
    const bool fetches = departure->alone && worth_fetching(live, link, departure);
    if (!fetches && !(departure->alone && shm_link_maps(link))) {
        return false;
    }
    struct segment segments[NIC_SEGMENT_MAX];
    uint32_t count;
    if (!nic_read_target(departure, segments, &count) ||
        !shm_link_fetch(live->shm, link, departure, segments, count, !fetches)) {
        return false;
    }
    habit_note_direct(&live->habit);
    live->fetched_bytes += direct->bytes;
    return true;
}

/* Sends a packet in any case: captures, faults and sanitizers do not see accesses that are done
 * directly. Whole packets lie on its stack, and other packets shall have no room for that: a
 * program's thread may have 16 KB. */
static __attribute__((noinline)) bool transmit_watched(struct live *live, struct link *link,
                                                       const struct nic_departure *departure)
{
    poison_judge(departure->segments, departure->segment_count, false, "a packet of",
                 qp_number(departure->qp));
    if (departure->reply) {
        race_touch_for_peer(qp_number(departure->qp), false, departure->segments,
                            departure->segment_count);
    }
    if (live->capture != NULL) {
        return transmit_captured(live, link, departure);
    }
    return faults_apply(live->faults, FAULT_SENDING)
               ? live_transmit_with_faults(live, link, departure)
               : live_transmit_packet(live, link, departure);
}

/* `ring`: where a queue pair without a link of its own is led by now, or NULL. */
static bool transmit(struct live *live, struct link *ring, const struct nic_departure *departure)
{
    struct link *link = departure->av->link != NULL
                            ? choose(live, departure->av->link, departure->destination_qpn)
                        : ring != NULL ? ring
                                       : live_link_for_now(live, departure);
    if (UNLIKELY(link == NULL)) {
        return true; /* There is no memory for it, or no room: the packet is lost. */
    }
    if (live->is_watched) {
        return transmit_watched(live, by_route(live, link, departure), departure);
    }
    INVARIANTS(CHECK(link->kind != LINK_SHARED)); /* Each packet goes to one process. */
    if (link->kind == LINK_UDP) {
        return udp_port_transmit(&live->udp, by_route(live, link, departure), departure);
    }
    if (UNLIKELY(link->kind == LINK_NOWHERE)) {
        return true;
    }
    INVARIANTS(CHECK(link->kind == LINK_SHM && (link->lost || live->shm != NULL)));
    if (place(live, link, departure)) {
        nic_on_placed(departure, live->now);
        return true;
    }
    if (fetch(live, link, departure)) {
        nic_on_fetched(departure, live->now);
        return true;
    }
    return shm_link_transmit(live->shm, link, departure);
}

/* Looks for the peer of a lost link again, now and then: otherwise a connection would end because
 * its peer once had no memory for a ring. */
static void look_again(struct live *live, struct link *link)
{
    /* A link that a child of fork inherits has no port, and leads nowhere. */
    if (link->kind == LINK_SHM && live->shm != NULL && instant_reached(live->now, link->look_at)) {
        link->look_at = instant_after(live->now, LOOK_AGAIN_NS);
        (void)!shm_link_revive(live->shm, link);
    }
}

/* Parks a queue pair until the link has room. */
static void park(struct live *live, struct qp *qp, struct link *link)
{
    INVARIANTS(CHECK(!link->lost)); /* A lost link always has room. */
    nic_park(live->nic, qp, &link->parked, live->now);
    if (list_empty(&link->waiting)) {
        list_append(&live->links.waiting, &link->waiting);
    }
    live->links.parked = true;
}

/* Queue pairs parked on links that have room again become ready. */
static void unpark(struct live *live)
{
    struct list *next;
    for (struct list *node = live->links.waiting.next; node != &live->links.waiting; node = next) {
        struct link *link = CONTAINER_OF(node, struct link, waiting);
        next = node->next;
        INVARIANTS(list_check(node));
        if (list_empty(&link->parked) || live_has_room(live, link)) {
            list_remove(node);
            nic_unpark(live->nic, &link->parked);
        }
    }
}

/* A carrier has no link of its own, but there may be a ring to its peer. */
static struct link *ring_of(struct live *live, struct qp *qp)
{
    struct link *ring = live_ring_for_now(live, qp);
    nic_carrier_by_ring(qp, ring != NULL);
    if (ring == NULL && nic_carrier_av(qp) != NULL) {
        udp_port_draw(srd_own_routes(live->nic));
    }
    return ring;
}

/* One queue pair's turn. Returns how many packets it sent. */
static uint32_t serve(struct live *live, struct qp *qp)
{
    INVARIANTS(live_check_locked(live));
    struct nic_departure departure;
    struct link *ring = NULL;
    const uint32_t turns = live->config.batch < TURN_PACKETS ? live->config.batch : TURN_PACKETS;
    uint32_t turn = 0;
    while (turn < turns && live->fetched_bytes < FETCHED_MAX) {
        struct link *link = nic_qp_link(qp);
        if (UNLIKELY(link != NULL && link->kind == LINK_SHARED)) {
            link = live_slot_link(live, link, nic_qp_destination(qp));
        } else if (UNLIKELY(link == NULL)) {
            link = ring = turn == 0 ? ring_of(live, qp) : ring;
        }
        if (UNLIKELY(link != NULL && link->lost)) {
            look_again(live, link);
        }
        if (link != NULL && !live_has_room(live, link)) {
            park(live, qp, link);
            return turn;
        }
        if (!nic_next_packet(live->nic, qp, live->now, &departure)) {
            return turn;
        }
        if (!transmit(live, ring, &departure)) {
            nic_on_gather_failed(&departure);
        }
        turn++;
        if (!departure.more) {
            return turn;
        }
    }
    nic_rotate(live->nic, qp);
    return turn;
}

static void prefetch_turn(const struct live *live)
{
    const struct qp *qp = nic_ready_qp(live->nic, TURNS_AHEAD);
    if (qp != NULL) {
        nic_prefetch_qp(qp);
    }
}

uint32_t live_transmit(struct live *live)
{
    INVARIANTS(live_check(live));
    habit_note_sending(&live->habit);
    live->fetched_bytes = 0;
    const bool one_by_one = live->config.batch == 1;
    unpark(live);
    struct qp *qp;
    uint32_t sent = 0;
    for (uint32_t turns = 0; turns < TURNS_MAX && live->fetched_bytes < FETCHED_MAX &&
                             (qp = nic_next_qp(live->nic)) != NULL;
         turns++) {
        if (one_by_one) {
            sent += serve(live, qp);
            live_flush_ports(live);
        } else {
            prefetch_turn(live);
            sent += serve(live, qp);
        }
    }
    if (live->faults != NULL) {
        return sent + live_flush_with_faults(live);
    }
    live_flush_ports(live);
    INVARIANTS(live_check(live));
    return sent;
}
