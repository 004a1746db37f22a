/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_check - invariants of a reliable connection between two calls.
 */
#include "nic/ibta/ibta.h"

/* Could the next request be sent? Not if it failed before its first packet, nor if it stands behind
 * such a request, which completes when those before it have completed. */
static bool may_send(const struct qp *qp)
{
    return qp_has_sends(qp) && !departure_is_behind_failure(qp) &&
           send_queue_at(&qp->sends, qp->sends.next)->status == COMPLETION_SUCCESS &&
           rc_requester_ready(&qp->out.rc, &qp->sends, false, (struct instant){0});
}

/* Is a response on its way into memory? Then the requests behind it wait for nic_on_moved. */
static bool awaits_memory(const struct qp *qp)
{
    for (uint32_t at = qp->sends.head; at != qp->sends.tail; at++) {
        const struct work *work = send_queue_at(&qp->sends, at);
        if (!work->started || work->moves_pending > 0) {
            return work->started;
        }
    }
    return false;
}

/* A queue pair that could go on is listed, or it would never be pulled from. Exceptions: the world
 * keeps the turns itself (turns_taken), or a rate makes the queue pair pause (ecn_check_duties). */
static void check_turn(const struct qp *qp)
{
    if (qp->listing != QP_LISTED_NOWHERE || qp->nic->turns_taken || qp->paused) {
        return;
    }
    CHECK(qp->state == QP_ERR || !rc_responder_ready(&qp->in.rc));
    CHECK(qp->state != QP_RTS || !may_send(qp) || awaits_memory(qp));
}

/* Is there a request that leaves when a pause ends? While the queue drains, only one that has
 * begun. */
static bool has_to_go_on(const struct qp *qp)
{
    return qp_has_sends(qp) &&
           (qp->state == QP_RTS || send_queue_at(&qp->sends, qp->sends.next)->started);
}

/* A requester that waits for time to pass has a timer that fires no later. When its pause is over,
 * it is listed instead, and pulled from once: if all was acknowledged meanwhile, nothing is left to
 * wait for. */
static void check_timer(const struct qp *qp)
{
    const struct instant deadline = rc_requester_deadline(&qp->out.rc);
    if (rc_requester_pauses(&qp->out.rc)) {
        CHECK(timer_is_set(&qp->timer) || qp->listing != QP_LISTED_NOWHERE || !has_to_go_on(qp));
    } else if (deadline.ns != UINT64_MAX) {
        CHECK(timer_is_set(&qp->timer));
        CHECK(!instant_before(deadline, qp->timer.at));
    }
}

void rc_check_duties(const struct qp *qp)
{
    if (qp->state < QP_RTR) {
        return;
    }
    check_turn(qp);
    if (qp->state != QP_ERR) {
        CHECK((qp->in.rc.incoming.kind == INCOMING_SEND) == (qp->current != NULL));
    }
    if (qp->state == QP_RTS || qp->state == QP_SQD) {
        check_timer(qp);
    }
}

void rc_check(const struct qp *qp)
{
    if (qp->state < QP_RTR) {
        return;
    }
    rc_responder_check(&qp->in.rc);
    if (qp->state == QP_RTS || qp->state == QP_SQD) {
        rc_requester_check(&qp->out.rc, &qp->sends);
    }
}
