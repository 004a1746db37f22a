/* SPDX-License-Identifier: BSD-2-Clause
 *
 * peers - state of the NIC at the other end of a link (nic_av.peer).
 */
#ifndef NIC_PEERS_H
#define NIC_PEERS_H

#include "nic/routes.h"
#include "transport/common/psn.h"

/* Round trips over a link, measured on packets of queue pairs that watch, one packet at a time
 * (block_watch.c). */
struct peer_trips {
    uint32_t qpn; /* The queue pair whose packet `psn` is measured; 0: none. */
    struct psn psn;
    struct instant at; /* When the packet left, or the last sample ended. */
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
    bool answers;                /* It answers probes at the address vector's own address. */
    bool spoken;                 /* It has welcomed a HELLO. */
    struct instant silent_until; /* It did not answer a HELLO: no other one leaves before. */
    struct nic_routes routes;
    struct peer_response responses[NIC_ROUTE_GIDS_MAX + 1]; /* By the route's pair of addresses. */
    uint8_t responses_due;
};

#endif
