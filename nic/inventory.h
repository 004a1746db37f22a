/* SPDX-License-Identifier: BSD-2-Clause
 *
 * inventory - the objects of a NIC, one after the other: to close a device with objects in use, and
 * to find the links that are still in use.
 *
 * Purpose    A kernel that closes a device destroys all objects that were made on it. Programs of
 *            ours may still hold such objects, so these are only made useless, and go when the
 *            programs destroy them.
 * Inputs     A position, which starts at 0 ({0}); each call moves it on.
 * Outputs    The next object; NULL: there are no more.
 * Threads    One caller at a time; nothing is made or destroyed between two calls.
 */
#ifndef NIC_INVENTORY_H
#define NIC_INVENTORY_H

#include "nic/nic.h"

/* That of a QPN; NULL: there is none. */
struct qp *nic_find_qp(const struct nic *nic, uint32_t qpn);

struct qp *nic_each_qp(const struct nic *nic, uint32_t *at);
/* Memory regions and windows. */
struct region *nic_each_region(const struct nic *nic, uint32_t *at);
/* Shared receive queues that XRC requests can name. */
struct srq *nic_each_srq(const struct nic *nic, uint32_t *at);

/* The address vectors of the datagrams that wait in send queues: each has a copy, because its
 * address handle may be gone. */
struct nic_datagram_at {
    const struct qp *qp; /* NULL: the start. */
    uint32_t position;
};
const struct nic_av *nic_each_datagram(const struct nic *nic, struct nic_datagram_at *at);

/* Work that is not done yet, of a queue pair. */
struct nic_account {
    uint32_t sends;    /* Posted, and not complete. */
    uint32_t receives; /* Posted, and not used; those of its shared queue, if it has one. */
    bool has_receives; /* It can have any. */
    uint32_t sends_done, receives_used; /* They count on: a queue pair whose do not stands still. */
    /* Its completion queues, which may be one: what the program has not taken. */
    struct nic_cq_account {
        uint32_t completions;
        enum cq_arming arming;
    } sent, received;
    bool is_one_queue;
};
struct nic_account nic_account_of(const struct qp *qp);

/* A multicast group that the queue pair is attached to; NULL: none. */
const struct gid *nic_group_of(const struct nic *nic, const struct qp *qp);

#endif
