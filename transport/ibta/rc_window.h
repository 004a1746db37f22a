/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_window - the bytes that a requester has in flight, and those that it may have; for
 * rc_requester.c.
 *
 * Counted in bytes, with the policy's packet_cost for each packet. A path may set a limit (what the
 * peer's receive buffer holds); a loss sets one anywhere.
 */
#ifndef TRANSPORT_IBTA_RC_WINDOW_H
#define TRANSPORT_IBTA_RC_WINDOW_H

#include "transport/ibta/rc_requester.h"

/* The oldest request with an unacknowledged PSN, and where it stands; NULL if nothing is in flight.
 */
struct work *rc_oldest_in_flight(const struct rc_requester *requester,
                                 const struct send_queue *queue, uint32_t *position);

/* Response packets that one READ request of a long READ asks for. */
static inline uint32_t rc_read_chunk(const struct rc_requester *requester)
{
    if (requester->window_max != 0) {
        return RC_READ_CHUNK_PACKETS;
    }
    const uint32_t packets = requester->policy->read_packets;
    return packets == 0 ? RC_READ_PACKETS_MAX : packets;
}

/* Flight bytes of the first `packets` packets of a request. */
uint32_t rc_cost_of(const struct rc_requester *requester, const struct work *work,
                    uint32_t packets);

/* A packet was sent: shuts the window if it is full now. */
void rc_window_update(struct rc_requester *requester, const struct send_queue *queue);

/* Something was acknowledged. Once full, a window admits nothing until a quarter is free again:
 * packets that trickle out as each acknowledgement comes in cost a system call apiece. */
void rc_window_reopen(struct rc_requester *requester, const struct send_queue *queue);

/* A loss halves the bytes that may be in flight, also if the path sets no limit; 16 packets are
 * always allowed. */
void rc_window_shrink(struct rc_requester *requester, const struct send_queue *queue);

/* Progress gives back a quarter of the acknowledged bytes, until no request is held back any
 * more. */
void rc_window_grow(struct rc_requester *requester, uint32_t packets);

#endif
