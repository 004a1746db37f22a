/* SPDX-License-Identifier: BSD-2-Clause
 *
 * peers - what is known of the NIC at the other end of a link (nic_av.peer).
 */
#ifndef NIC_PEERS_H
#define NIC_PEERS_H

#include "nic/routes.h"
#include "transport/common/psn.h"

/* Round trips over a link, taken from packets of RC that watch, one at a time (block_watch.c). */
struct peer_trips {
    uint32_t qpn; /* Whose packet `psn` is measured; 0: nobody's. */
    struct psn psn;
    struct instant at; /* When that left, or the last sample ended. */
    uint64_t shortest_ns;
    uint8_t samples;
};

/* A challenge that came and is to be responded to, by the route that it came. */
struct peer_response {
    uint64_t number;
    bool due;
};

struct nic_peer {
    struct peer_trips trips;
    bool answers; /* Probes: it wants what is sent to the address vector's own address. */
    bool spoken;  /* It has welcomed a HELLO. */
    struct instant silent_until; /* It was asked and did not answer: not asked again before. */
    struct nic_routes routes;
    struct peer_response responses[NIC_ROUTE_GIDS_MAX + 1]; /* By the route's pair of addresses. */
    uint8_t responses_due;
};

#endif
