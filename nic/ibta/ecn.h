/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ecn - explicit congestion notification of connected queue pairs (RC, XRC, UC); for the files of
 * this folder, nic/engine.c, nic/qp_check.c and the streams of nic/block/ that are RC.
 *
 * Purpose    The notification point (marks in, CNPs out) and the reaction point (CNPs in, pauses).
 * Inputs     ecn_on_marked for a packet that was admitted and has a mark; ecn_on_cnp; ecn_on_sent
 *            for each packet with data, while qp->limited.
 * Outputs    qp->cnp_due: ecn_next_cnp is to be pulled. ecn_holds_back: data waits; qp->paused:
 *            ecn_deadline says how long.
 * Ownership  The state lies in the NIC, by queue pair.
 * Units      Bytes, nanoseconds.
 * Limits     A notification in 50 us for each queue pair, each way (nic_limits.dcqcn).
 * Source     IBTA Annex A17.9; docs/decisions/0036.
 */
#ifndef NIC_IBTA_ECN_H
#define NIC_IBTA_ECN_H

#include "nic/service.h"

/* A router met congestion on the packet's way: both bits of the field (RFC 3168). */
static inline bool ecn_is_marked(const struct nic_arrival *arrival)
{
    return UNLIKELY((arrival->traffic_class & INET_ECN_MASK) == INET_ECN_MASK);
}

void ecn_on_marked(struct qp *qp, const struct nic_arrival *arrival, struct instant now);
void ecn_next_cnp(struct qp *qp, struct nic_departure *departure);

/* A CNP that names `qp`, from anybody: judges the state, the peer, and whether the CNP comes too
 * soon after another one. */
void ecn_on_cnp(struct qp *qp, const struct nic_arrival *arrival, struct instant now);

/* Must data wait? Then the timer is set. To be called only if qp->limited. */
bool ecn_holds_back(struct qp *qp, struct instant now);
/* A packet leaves. To be called only if qp->limited. True: a long pause follows. */
bool ecn_on_sent(struct qp *qp, uint32_t payload_bytes, struct instant now);

/* Both: to be called only if qp->paused. */
struct instant ecn_deadline(const struct qp *qp);
void ecn_on_deadline(struct qp *qp, struct instant now);

/* Bytes a second; 0: not limited. */
uint64_t ecn_rate(const struct qp *qp);

void ecn_check_duties(const struct qp *qp);

#endif
