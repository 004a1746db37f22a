/* SPDX-License-Identifier: BSD-2-Clause
 *
 * multicast - groups of UD queue pairs, and a packet for all of them.
 *
 * Purpose    Remembers which queue pairs are attached to which group; delivers a packet to each of
 *            them as if it came for that one alone.
 * Inputs     nic_attach, nic_detach; nic_on_multicast, nic_next_delivery.
 * Outputs    One memory move for each attached queue pair that takes the packet.
 * Ownership  The tables are part of nic_bytes. A queue pair is detached before it is destroyed.
 * Threads    One caller at a time; nothing is attached or detached in the middle of a delivery.
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
    uint32_t members_used; /* Entries from here on were never used. */
    uint32_t free;         /* The list of free entries. */
};

/* Attaches a queue pair, in any state. If it is attached already, nothing changes. STATUS_INVALID:
 * it is not UD, or the GID is no multicast address; STATUS_FULL: a table is full. */
MUST_USE enum status nic_attach(struct nic *nic, const struct gid *group, struct qp *qp);
/* STATUS_INVALID: it is not attached to this group. */
MUST_USE enum status nic_detach(struct nic *nic, const struct gid *group, struct qp *qp);

/* Is any queue pair attached to this group? */
bool nic_has_group(const struct nic *nic, const struct gid *group);
/* Is this queue pair attached to any group? */
bool nic_is_attached(const struct nic *nic, const struct qp *qp);

/* A frame that came for a group, as for nic_on_packet:
 *
 *     if (nic_on_multicast(nic, &frame, &delivery)) {
 *         while (nic_next_delivery(nic, &delivery, now, &move)) {
 *             make the move; nic_on_moved(nic, &move, done, now);
 *         }
 *     }
 *
 * False: the packet was dropped and counted. Each queue pair judges the packet by itself, and
 * each one that drops it increments a counter. */
struct nic_delivery {
    struct nic_arrival arrival;
    uint32_t next;
};
bool nic_on_multicast(struct nic *nic, const struct nic_frame *frame,
                      struct nic_delivery *delivery);
bool nic_next_delivery(struct nic *nic, struct nic_delivery *delivery, struct instant now,
                       struct nic_move *move);

#endif
