/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_resolve - the link that leads to a peer.
 */
#ifndef DRIVERS_LIVE_RESOLVE_H
#define DRIVERS_LIVE_RESOLVE_H

#include "base/status.h"
#include "drivers/link.h"
#include "drivers/system/shortage.h"
#include "nic/nic.h"

struct live;

/* The verdict if no link leads to the peer, by the errno of the last try: there is a shortage that
 * may pass, or the peer is out of reach. */
static inline enum status live_unreachable(int reason)
{
    return shortage_is(reason) ? STATUS_FULL : STATUS_INVALID;
}

/* The way to QP 1 of a process, for one management datagram that is sent at once: answers go to
 * anybody who asks, so nothing is kept, and the link is not held. STATUS_INVALID: no port reaches
 * it. */
MUST_USE enum status live_resolve_management(struct live *live, struct nic_av *av, uint32_t slot);
/* Will none of the wires that we may use ever lead to the peer? Then the user is told why. */
MUST_USE bool live_is_out_of_reach(struct live *live, const struct gid *peer, uint32_t slot);
/* The ring to the process of a carrier's peer (nic_carrier_av), which is not held; NULL: there is
 * none, or `qp` is no carrier. */
struct link *live_ring_for_now(struct live *live, const struct qp *qp);
/* The link to the process that has the queue pair, for one packet of SRD: it is not held. NULL:
 * none; the packet is lost. Packets by other routes than the first never take a ring. */
struct link *live_link_for_now(struct live *live, const struct nic_departure *departure);
/* The link to the process that has the queue pair. */
struct link *live_slot_link(struct live *live, struct link *shared, uint32_t destination_qpn);

#endif
