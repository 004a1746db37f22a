/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_policy - facts about a world's network and memory that the protocol does not know.
 *
 * A reliable connection's requester asks it. Zeroes are the policy of a world that has nothing to
 * say.
 */
#ifndef TRANSPORT_IBTA_RC_POLICY_H
#define TRANSPORT_IBTA_RC_POLICY_H

#include <stdint.h>

/* No READ request asks for more: all that is in flight stays within half of all PSNs (9.7.2). */
#define RC_READ_PACKETS_MAX 0x8000u

struct rc_policy {
    uint32_t packet_cost;  /* The bytes that a packet counts for in a window beside its payload. */
    uint32_t read_packets; /* Response packets that one READ request asks for at most, where the
                              path sets no limit; 0: RC_READ_PACKETS_MAX. */
    /* Once a READ was fetched (rc_requester_on_fetched), READs of this many bytes or more wait
     * until nothing is in flight, so that they can be fetched, too; 0: none waits. */
    uint32_t read_waits_bytes;
};

#endif
