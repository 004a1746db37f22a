/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requester_room - may it leave? Order, receives, and the windows of blocks, link and paths.
 */
#include "transport/block/requester_blocks.h"

uint32_t block_cost_of(const struct block_requester *requester, const struct work *work,
                       uint32_t index, uint64_t positions)
{
    if (positions == 0) {
        return 0;
    }
    const uint32_t count = (uint32_t)__builtin_popcountll(positions);
    const uint32_t highest = 63 - (uint32_t)__builtin_clzll(positions);
    uint32_t cost = count * (requester->mtu_bytes + requester->packet_cost);
    if (index * BLOCK_POSITIONS + highest + 1 == work->packets) {
        cost -= requester->mtu_bytes;
        cost += work->bytes - (work->packets - 1) * requester->mtu_bytes;
    }
    return cost;
}

/* Bytes in flight on all paths. */
static uint32_t block_flight(const struct block_requester *requester)
{
    uint32_t flight = 0;
    for (uint32_t i = 0; i < requester->paths.count; i++) {
        flight += path_flight(paths_at(&requester->paths, i));
    }
    return flight;
}

/* Not at once: the caller has just heard that there is nothing to send. */
#define WAKE_LEAST_NS 1000

void block_wake_at(struct block_requester *requester, struct instant at, struct instant now)
{
    const struct instant least = instant_after(now, WAKE_LEAST_NS);
    const struct instant wake = instant_before(at, least) ? least : at;
    if (instant_before(wake, requester->wake_at)) {
        requester->wake_at = wake;
    }
}

struct block_range block_range_of(const struct work *work)
{
    return (struct block_range){work->remote_address, work->bytes, work->remote_key};
}

/* The D bit of a message that begins now. A WRITE of one packet is placed in its turn, with or
 * without D; the responder compares the receives of SENDs. */
bool block_is_early(const struct block_requester *requester, const struct work *work)
{
    if (work_is(work, WORK_IS_SEND)) {
        return true;
    }
    const struct block_range range = block_range_of(work);
    return work_is(work, WORK_IS_WRITE) && work->bytes > requester->mtu_bytes &&
           block_ranges_clear_of(&requester->ranges, &range);
}

/* Without a receive that is known of, one message may still be under way, to learn of new ones. */
static bool has_receive(const struct block_requester *requester)
{
    return !requester->receives_limited ||
           block_number_before(requester->receive_number, requester->receive_limit) ||
           !requester->receive_taken;
}

/* May the message begin that is next in the queue? Fence, initiator depth, receives, order. */
bool block_may_begin(const struct block_requester *requester, const struct work *work)
{
    if (work->status != COMPLETION_SUCCESS) {
        return false; /* It waits for its turn to fail. */
    }
    if ((work->flags & WORK_FENCE) && requester->reads_out > 0) {
        return false;
    }
    if (work_is_local(work)) {
        return true;
    }
    if (work_wants_response(work)) {
        return requester->reads_out < requester->reads_max &&
               (!work_is_atomic(work) || requester->atomics_open < requester->reads_max);
    }
    if (work_takes_receive(work) && !has_receive(requester)) {
        return false;
    }
    /* A request that must wait for its turn may wait at the peer, unless the peer has no room. */
    return !requester->declined || work->bytes <= requester->mtu_bytes ||
           block_is_early(requester, work);
}

/* May one more block be under way? */
bool block_window_has_room(const struct block_requester *requester, const struct work *work)
{
    return requester->next - requester->oldest < requester->window &&
           (work->kind != WORK_READ || requester->blocks_read < requester->blocks_read_max);
}

/* The bytes of this stream that the link can hold; 0: no limit. */
static uint32_t link_window(const struct block_requester *requester)
{
    const uint32_t near = requester->link_window, far = requester->far_window;
    return near != 0 && requester->far && far > near ? far : near;
}

void block_note_distance(struct block_requester *requester)
{
    uint32_t least_ns = UINT32_MAX;
    for (uint32_t i = 0; i < requester->paths.count; i++) {
        const uint32_t path_ns = rtt_least_ns(&paths_at(&requester->paths, i)->rtt);
        least_ns = path_ns != 0 && path_ns < least_ns ? path_ns : least_ns;
    }
    requester->far = least_ns != UINT32_MAX && least_ns >= BLOCK_FAR_NS;
}

/* Once full, a window admits nothing until a quarter is free: packets that trickle out as each
 * answer comes in cost a system call apiece. */
bool block_link_has_room(struct block_requester *requester, uint32_t asked_bytes)
{
    const uint32_t reads = requester->read_flight, window = link_window(requester);
    if (asked_bytes != 0 && requester->read_window != 0 && reads != 0 &&
        reads + asked_bytes > requester->read_window) {
        return false;
    }
    if (window == 0) {
        return true;
    }
    const uint32_t sent = block_flight(requester);
    if (asked_bytes == 0 && sent == 0) {
        return true; /* Data may be waiting for a block that is half sent before them. */
    }
    const uint32_t flight = sent + reads;
    if (requester->link_shut && flight > window - window / (requester->far ? 16 : 4)) {
        return false;
    }
    requester->link_shut = flight != 0 && flight + asked_bytes >= window;
    return !requester->link_shut;
}

/* May a packet leave on this path? If not now, time may tell. */
bool block_path_has_room(struct block_requester *requester, uint8_t path, struct instant now)
{
    if (path_room(block_path_of(requester, path), now) > 0) {
        return true;
    }
    block_wake_at(requester, path_room_at(block_path_of(requester, path), now), now);
    return false;
}

/* Positions are asked for in pieces that leave the link's window room for others. */
uint32_t block_read_positions(const struct block_requester *requester)
{
    const uint32_t packet = requester->mtu_bytes + requester->packet_cost;
    uint32_t window = link_window(requester);
    if (requester->read_window != 0 && (window == 0 || requester->read_window < window)) {
        window = requester->read_window;
    }
    const uint32_t positions = window == 0 ? BLOCK_POSITIONS : window / 4 / packet;
    return positions == 0 ? 1 : positions > BLOCK_POSITIONS ? BLOCK_POSITIONS : positions;
}
