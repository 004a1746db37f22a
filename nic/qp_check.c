/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qp_check - invariants of a queue pair, and of a NIC, between two calls.
 */
#include "nic/engine.h"
#include "nic/internal.h"

/* The queue pair is where `listing` says: in the ready ring, on a list of the world's, or
 * nowhere. */
static void check_listing(const struct qp *qp)
{
    const struct ready_ring *ready = &qp->nic->ready;
    CHECK(ready->tail - ready->head <= ready->mask + 1);
    CHECK(ready->head == ready->tail || ready->slots[ready->head & ready->mask] != NULL);
    switch ((enum qp_listing)qp->listing) {
    case QP_LISTED_NOWHERE: CHECK(list_empty(&qp->node)); return;
    case QP_LISTED_READY:
        CHECK(qp->ready_at - ready->head < ready->tail - ready->head);
        CHECK(ready->slots[qp->ready_at & ready->mask] == qp);
        return;
    case QP_LISTED_WAITING: CHECK(!list_empty(&qp->node)); return;
    }
    UNREACHABLE("a listing outside its enum");
}

static void check_queues(const struct qp *qp)
{
    CHECK(send_queue_count(&qp->sends) <= qp->sends.limit);
    CHECK(qp->sends.next - qp->sends.head <= send_queue_count(&qp->sends));
    /* A receive of the queue pair's own queue is still there; a shared one was copied out. */
    if (qp->shares) {
        CHECK(qp->current == NULL || qp->current == qp->shared.taken);
    } else {
        receive_queue_check(&qp->receives);
        CHECK(qp->current == NULL || qp->current == receive_queue_first(&qp->receives));
    }
}

void qp_check_duties(const struct qp *qp)
{
    check_listing(qp);
    check_queues(qp);
    engine_check_duties(qp);
}

void qp_check(const struct qp *qp)
{
    qp_check_duties(qp);
    engine_check(qp);
}

void nic_check(const struct nic *nic)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i <= nic->qp_mask; i++) {
        if (nic->qps[i] != NULL) {
            CHECK((nic->qps[i]->number & nic->qp_mask) == i);
            qp_check(nic->qps[i]);
            count += nic->qps[i]->engine != ENGINE_FLOW;
        }
    }
    CHECK(count == nic->qp_count);
    timer_wheel_check(&nic->timers);
}
