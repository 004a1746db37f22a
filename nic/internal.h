/* SPDX-License-Identifier: BSD-2-Clause
 *
 * internal - functions that the NIC's own files call, and no engine.
 */
#ifndef NIC_INTERNAL_H
#define NIC_INTERNAL_H

#include "nic/service.h"

/* QPN 0 and 1 are the special queue pairs; user ones start here. */
#define QPN_FIRST 2

/* Does each of its requests name its target? */
static inline bool qp_is_datagram(const struct qp *qp)
{
    return qp->type == QP_UD || qp->type == QP_SRD;
}

/* -- turns.c: takes a queue pair out of the ready ring, or off the world's list. */
void nic_unlist(struct qp *qp);
/* Moves it from the ready ring to a list of the world's. */
void nic_enlist_waiting(struct qp *qp, struct list *waiting);

/* -- qp_check.c */
/* Checks a queue pair's listing, its timer and its queues; at the end of each call of the world's
 * that changes something. */
void qp_check_duties(const struct qp *qp);
/* Checks the same, and all invariants of its engine, which also checks itself. */
void qp_check(const struct qp *qp);

/* -- arrival.c: decodes a frame. False: it is no packet, which is counted. */
bool nic_decode(struct nic *nic, const struct nic_frame *frame, struct nic_arrival *arrival);

/* -- qp_complete.c: all posted requests complete as flushed. */
void qp_flush_sends(struct qp *qp);
void qp_flush_receives(struct qp *qp);

#endif
