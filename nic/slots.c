/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/slots.h"

#include "nic/internal.h"

/* -- Sends --------------------------------------------------------------------------------------*/

/* A polled completion is that of the oldest request that has one; it frees the slots of all
 * requests before it, too. These slots still have their content, since nothing was posted into
 * them. */
static void polled_send(struct qp *qp)
{
    struct send_queue *sends = &qp->sends;
    bool visible = false;
    while (!visible && sends->polled != sends->head) {
        const struct work *work = send_queue_at(sends, sends->polled++);
        visible = qp->signal_all || (work->flags & WORK_SIGNALED) != 0 ||
                  work->status != COMPLETION_SUCCESS;
    }
}

/* -- Receives -----------------------------------------------------------------------------------*/

static void give_back(struct receive_queue *queue, uint32_t receives)
{
    const uint32_t given = receives < queue->unpolled ? receives : queue->unpolled;
    queue->unpolled = (uint16_t)(queue->unpolled - given);
}

/* The queue that a receive was posted to; NULL: it is gone. `srqn` is for XRC only. */
static struct receive_queue *queue_of(struct nic *nic, struct qp *qp, uint32_t srqn)
{
    const bool xrc = qp == NULL || qp->type == QP_XRC_TARGET;
    struct srq *srq = xrc ? nic_find_srq(nic, srqn) : qp_srq(qp);
    if (srq != NULL) {
        return &srq->queue;
    }
    return xrc ? NULL : &qp->receives;
}

static void polled_receive(struct nic *nic, struct qp *qp, const struct completion *completion)
{
    struct receive_queue *queue = queue_of(nic, qp, completion->source_qpn);
    if (queue != NULL) {
        give_back(queue, 1);
    }
}

void slots_give_back(struct qp *qp, uint32_t receives)
{
    struct receive_queue *queue = queue_of(qp->nic, qp, qp->srqn);
    if (queue != NULL) {
        give_back(queue, receives);
    }
}

/* -- Both ---------------------------------------------------------------------------------------*/

void slots_polled(struct nic *nic, const struct completion *completions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct qp *qp = nic_find_qp(nic, completions[i].qpn);
        if (completion_is_receive(&completions[i])) {
            polled_receive(nic, qp, &completions[i]);
        } else if (qp != NULL) {
            polled_send(qp);
        }
    }
}

void slots_reset(struct qp *qp)
{
    qp->sends.polled = qp->sends.tail;
    if (!qp->shares) {
        qp->receives.unpolled = 0;
    }
    if (qp_holds_shared(qp)) {
        slots_give_back(qp, 1);
    }
}
