/* SPDX-License-Identifier: BSD-2-Clause
 *
 * xrc - extended reliable connections: requests that name the shared receive queue they are for.
 *
 * A target is a connection's responder without memory, receives or completions of its own. Each
 * request says in its XRCETH which shared receive queue of the target's XRC domain it is for; the
 * protection domain, the receives and the completion queue are those of that queue. All else is
 * done by the engine of reliable connections.
 *
 * Source: IBTA Vol. 1 Annex A14.
 */
#include "nic/ibta/ibta.h"

const struct pd *xrc_domain_of(const struct nic *nic, uint32_t srqn)
{
    const struct srq *srq = nic_find_srq(nic, srqn);
    return srq == NULL ? NULL : srq->pd;
}

/* -- Requests -----------------------------------------------------------------------------------*/

enum xrc_verdict {
    XRC_ADMITTED,
    XRC_UNKNOWN_SRQ, /* No such shared receive queue, or another one than the message began with. */
    XRC_WRONG_DOMAIN, /* It is not of the target's XRC domain. */
};

static enum xrc_verdict judge(const struct qp *qp, const struct srq *srq,
                              const struct roce_packet *packet)
{
    const bool first = roce_opcode(packet->opcode)->traits & ROCE_IS_FIRST;
    if (srq == NULL || (!first && packet->xrc.srqn != qp->srqn)) {
        return XRC_UNKNOWN_SRQ;
    }
    return srq->xrcd == qp->xrcd ? XRC_ADMITTED : XRC_WRONG_DOMAIN;
}

/* Only the next request in order is refused because of the queue that it names. A duplicate was
 * executed when that queue was there, and is acknowledged again. */
static bool refuse(struct qp *qp, const struct roce_packet *packet, enum xrc_verdict verdict)
{
    return verdict == XRC_WRONG_DOMAIN
               ? rc_refuse(qp, packet->psn, ROCE_NAK_REMOTE_ACCESS, COUNTER_nak_wrong_xrcd)
               : rc_refuse(qp, packet->psn, ROCE_NAK_INVALID_REQUEST, COUNTER_nak_unknown_srq);
}

bool xrc_on_request(struct qp *qp, const struct nic_arrival *arrival, struct nic_move *move)
{
    const struct roce_packet *packet = &arrival->packet;
    struct srq *srq = nic_find_srq(qp->nic, packet->xrc.srqn);
    const enum xrc_verdict verdict = judge(qp, srq, packet);
    const bool in_order = rc_responder_is_next(&qp->in.rc, packet);
    if (verdict != XRC_ADMITTED) {
        if (in_order && rc_responder_judge(&qp->in.rc, packet) == RC_VERDICT_EXECUTE) {
            return refuse(qp, packet, verdict);
        }
        return rc_on_request(qp, arrival, move);
    }
    if (in_order && qp->current == NULL) { /* A receive in use stays that of its queue. */
        qp->srqn = packet->xrc.srqn;
    }
    qp->shared.srq = srq;
    qp->pd = srq->pd;
    const bool moves = rc_on_request(qp, arrival, move);
    qp->shared.srq = NULL;
    qp->pd = NULL;
    return moves;
}
