/* SPDX-License-Identifier: BSD-2-Clause
 *
 * multicast - groups of UD queue pairs, and a packet for all of them.
 *
 * Purpose    Remembers who is attached to which group; delivers to each, as if it were alone.
 * Inputs     nic_attach, nic_detach; nic_on_multicast, nic_next_delivery.
 * Outputs    One memory move for each attached queue pair that takes the packet.
 * Ownership  The tables are part of nic_bytes. A queue pair is detached before it is destroyed.
 * Threads    One caller at a time; nothing is attached or detached in the middle of a delivery.
 * Time       Passed in.
 * Units      Groups, attachments.
 * Limits     nic_limits.groups and .attachments; both 0: there is no multicast.
 * Source     IBTA Vol. 1, 10.5 (multicast) and 9.6.1 (QPN 0xFFFFFF); docs/decisions/0011.
 */
#ifndef NIC_MULTICAST_H
#define NIC_MULTICAST_H

#include "nic/arrival.h"
#include "nic/nic.h"

#define MULTICAST_QPN    0xffffffu
#define MULTICAST_NOBODY UINT32_MAX

struct multicast_group {
    struct gid gid;
    uint32_t first; /* The first member. */
};

struct multicast_member {
    struct qp *qp;
    uint32_t next; /* In the group, or among the free; MULTICAST_NOBODY: none. */
};

struct multicast_table {
    struct multicast_group *groups; /* In no order. */
    struct multicast_member *members;
    uint32_t group_count;
    uint32_t members_used; /* From here on nobody ever was. */
    uint32_t free;         /* Members that left. */
};

/* Attaches a queue pair, in any state. One that is attached already stays so, once. STATUS_INVALID:
 * it is not UD, or the GID is no multicast address; STATUS_FULL: a table is. */
MUST_USE enum status nic_attach(struct nic *nic, const struct gid *group, struct qp *qp);
/* STATUS_INVALID: it is not attached to this group. */
MUST_USE enum status nic_detach(struct nic *nic, const struct gid *group, struct qp *qp);

/* Anybody at all in this group? */
bool nic_has_group(const struct nic *nic, const struct gid *group);
/* ... and is this queue pair in any? */
bool nic_is_attached(const struct nic *nic, const struct qp *qp);

/* A frame that came for a group, as for nic_on_packet:
 *
 *     if (nic_on_multicast(nic, &frame, &delivery)) {
 *         while (nic_next_delivery(nic, &delivery, now, &move)) {
 *             make the move; nic_on_moved(nic, &move, done, now);
 *         }
 *     }
 *
 * False: the packet is done with (dropped and counted). Each queue pair judges it by itself, and
 * counts for itself if it drops it: the packet is nobody's and everybody's. */
struct nic_delivery {
    struct nic_arrival arrival;
    uint32_t next;
};
bool nic_on_multicast(struct nic *nic, const struct nic_frame *frame,
                      struct nic_delivery *delivery);
bool nic_next_delivery(struct nic *nic, struct nic_delivery *delivery, struct instant now,
                       struct nic_move *move);

#endif
