/* SPDX-License-Identifier: BSD-2-Clause
 *
 * internal - what the NIC's files ask of one another, and no engine asks of them.
 */
#ifndef NIC_INTERNAL_H
#define NIC_INTERNAL_H

#include "nic/service.h"

/* QPN 0 and 1 are the special queue pairs; user ones start here. */
#define QPN_FIRST 2

/* -- turns.c: out of the ready ring, or off the world's list. */
void nic_unlist(struct qp *qp);
/* From the ready ring to a list of the world's. */
void nic_enlist_waiting(struct qp *qp, struct list *waiting);

/* -- qp_check.c */
/* What a queue pair owes the NIC: its place in line, its timer, its queues. At the end of each call
 * of the world's that changes something. */
void qp_check_duties(const struct qp *qp);
/* That, and all invariants of its engines, which check themselves as well. */
void qp_check(const struct qp *qp);

/* -- arrival.c: a frame that is no packet is counted, and false. */
bool nic_decode(struct nic *nic, const struct nic_frame *frame, struct nic_arrival *arrival);

/* -- qp_complete.c: everything posted ends. */
void qp_flush_sends(struct qp *qp);
void qp_flush_receives(struct qp *qp);

#endif
