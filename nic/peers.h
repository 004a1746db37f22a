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

struct nic_peer {
    struct peer_trips trips;
    bool answers;                /* It answers probes at the address vector's own address. */
    bool spoken;                 /* It has welcomed a HELLO. */
    struct instant silent_until; /* It did not answer a HELLO: no other one leaves before. */
    struct nic_routes routes;
    struct nic_responses responses;
};

#endif
