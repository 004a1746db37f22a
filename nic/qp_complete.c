/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qp_complete - the end of work: completions, errors, flushing (IBTA 9.9, 10.3.1, 11.2.5).
 */
#include "nic/internal.h"
#include "wire/srd.h"

/* A queue pair that loses a completion cannot go on: its program would wait for it for ever. Nor
 * can the others of the completion queue, which is in error (IBTA 11.6.3.2, the affiliated errors
 * of a completion queue). They enter the error state when the events are collected, and not here,
 * where this one may be in the middle of a call. */
static void overrun(struct qp *qp, struct cq *cq)
{
    nic_count(qp->nic, COUNTER_drop_cq_overrun);
    if (!cq->overrun_told) {
        cq->overrun_told = true;
        list_append(&qp->nic->cqs_with_events, &cq->event_link);
        cq->events |= 1u << NIC_EVENT_CQ_ERROR;
    }
    if (qp->state != QP_ERR) {
        qp_raise(qp, NIC_EVENT_QP_FATAL);
    }
}

static void push(struct qp *qp, struct cq *cq, const struct completion *completion)
{
    switch (cq_push(cq, completion, qp->nic->now)) {
    case CQ_PUSHED: break;
    case CQ_PUSHED_NOTIFY:
        list_remove(&cq->notify);
        list_append(&qp->nic->cqs_to_notify, &cq->notify);
        break;
    case CQ_OVERRUN: overrun(qp, cq); break;
    }
}

/* The program may have destroyed the shared queue meanwhile: then no completion is pushed. This is
 * a function of its own, so that other receives need no room for the copy. */
static __attribute__((noinline)) void complete_xrc_receive(struct qp *qp, uint32_t srqn,
                                                           const struct completion *completion)
{
    const struct srq *srq = nic_find_srq(qp->nic, srqn);
    struct completion named = *completion;
    named.source_qpn = srqn;
    if (srq != NULL) {
        push(qp, srq->cq, &named);
    }
}

void qp_complete_receive(struct qp *qp, uint32_t srqn, const struct completion *completion)
{
    if (LIKELY(qp->receive_cq != NULL)) {
        push(qp, qp->receive_cq, completion);
    } else {
        complete_xrc_receive(qp, srqn, completion);
    }
}

void qp_complete_send(struct qp *qp, const struct completion *completion)
{
    push(qp, qp->send_cq, completion);
}

#define COMPLETES_AS(argument, name, number, verbs, completion, traits)                            \
    case WORK_##name: return COMPLETION_##completion;

static enum completion_kind kind_of(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
        WORK_KINDS(COMPLETES_AS, 0)
    }
    UNREACHABLE("a work kind outside its enum");
}

/* Requests of SRD have a status of its own, too (nic/srd.h): what is in the queue is flushed. */
static uint8_t vendor_error_of(const struct qp *qp, enum completion_status status)
{
    CHECK(qp->type != QP_SRD || status == COMPLETION_FLUSHED);
    return qp->type == QP_SRD ? SRD_STATUS_FLUSHED : 0;
}

void qp_complete_work(struct qp *qp, struct work *work, enum completion_status status)
{
    CHECK(work == send_queue_at(&qp->sends, qp->sends.head));
    qp->sends.head++;
    if (status == COMPLETION_SUCCESS && !qp->signal_all && !(work->flags & WORK_SIGNALED)) {
        return;
    }
    const struct completion completion = {
        .wr_id = work->wr_id,
        .bytes = work->bytes,
        .qpn = qp->number,
        .status = (uint8_t)status,
        .vendor_error = vendor_error_of(qp, status),
        .kind = (uint8_t)kind_of(work),
    };
    push(qp, qp->send_cq, &completion);
}

/* The slot keeps the status, by which nic/slots.c sees that the request had a completion. */
static void fail_oldest(struct qp *qp, enum completion_status status)
{
    struct work *work = send_queue_at(&qp->sends, qp->sends.head);
    work->status = (uint8_t)status;
    qp_complete_work(qp, work, status);
}

void qp_flush_sends(struct qp *qp)
{
    qp->send_epoch++;
    while (qp->sends.head != qp->sends.tail) {
        fail_oldest(qp, COMPLETION_FLUSHED);
    }
    qp->sends.next = qp->sends.tail;
}

void qp_spoil_receive(struct qp *qp, enum completion_status status)
{
    const struct completion completion = {
        .wr_id = qp->current->wr_id,
        .qpn = qp->number,
        .status = (uint8_t)status,
        .kind = COMPLETION_RECEIVE,
    };
    qp_release_receive(qp);
    qp_complete_receive(qp, qp->srqn, &completion);
}

void qp_finish_receive(struct qp *qp, const struct nic_move *move, bool there)
{
    struct completion completion = move->completion;
    if (!there) {
        completion.status =
            move->purpose == NIC_FOR_RECEIVE ? COMPLETION_LOCAL_PROTECTION : COMPLETION_FLUSHED;
    } else if (qp->spoilt) {
        completion.status = COMPLETION_FLUSHED;
    }
    qp->spoilt |= !there;
    if (move->completes) {
        qp_complete_receive(qp, move->srqn, &completion);
    } else if (!there && move->purpose == NIC_FOR_RECEIVE && qp->current != NULL) {
        qp_spoil_receive(qp, COMPLETION_LOCAL_PROTECTION);
    }
}

static void flush_receive(struct qp *qp, uint64_t wr_id)
{
    const struct completion completion = {
        .wr_id = wr_id,
        .qpn = qp->number,
        .status = COMPLETION_FLUSHED,
        .kind = COMPLETION_RECEIVE,
    };
    qp_complete_receive(qp, qp->srqn, &completion);
}

void qp_flush_receives(struct qp *qp)
{
    if (qp_holds_shared(qp)) {
        flush_receive(qp, qp->current->wr_id);
    }
    qp->current = NULL;
    const struct receive *receive;
    while (!qp->shares && (receive = receive_queue_first(&qp->receives)) != NULL) {
        flush_receive(qp, receive->wr_id);
        receive_queue_drop(&qp->receives);
    }
}

void qp_enter_error(struct qp *qp)
{
    if (qp->state == QP_ERR) {
        return;
    }
    qp->state = QP_ERR;
    qp_raise(qp, NIC_EVENT_ENTERED_ERROR);
    qp_flush_sends(qp);
    qp_flush_receives(qp);
    qp_forget_congestion(qp);
    if (qp->shares && qp->type != QP_XRC_TARGET) {
        qp_raise(qp, NIC_EVENT_LAST_WQE_REACHED);
    }
}

void qp_fail_work(struct qp *qp, struct work *work, enum completion_status status)
{
    nic_count(qp->nic, COUNTER_send_err);
    /* Requests before the failed one have no verdict of their own: they are flushed in order. */
    while (work != NULL && qp->sends.head != qp->sends.tail) {
        const struct work *oldest = send_queue_at(&qp->sends, qp->sends.head);
        fail_oldest(qp, oldest == work ? status : COMPLETION_FLUSHED);
        if (oldest == work) {
            break;
        }
    }
    if (qp->type == QP_UC || qp->type == QP_UD) {
        qp->state = QP_SQE;
        qp_flush_sends(qp);
    } else {
        qp_enter_error(qp);
    }
}

bool qp_fail_oldest(struct qp *qp)
{
    if (qp->sends.head == qp->sends.tail) {
        return false;
    }
    struct work *work = send_queue_at(&qp->sends, qp->sends.head);
    if (work->status == COMPLETION_SUCCESS) {
        return false;
    }
    qp_fail_work(qp, work, (enum completion_status)work->status);
    return true;
}

/* IBTA 10.3.1.5. */
void qp_note_drained(struct qp *qp)
{
    if (qp->drained) {
        return;
    }
    qp->drained = true;
    if (qp->attributes.notify_when_drained) {
        qp_raise(qp, NIC_EVENT_SQ_DRAINED);
    }
}
