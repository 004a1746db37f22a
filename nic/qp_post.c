/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qp_post - posting: requests of programs are judged, and copied into the queues.
 */
#include <string.h>

#include "nic/internal.h"

uint32_t qp_kinds(enum qp_type type)
{
    switch (type) {
    case QP_RC: return work_kinds(WORK_ON_RC);
    case QP_UC: return work_kinds(WORK_ON_UC);
    case QP_UD: return work_kinds(WORK_ON_UD);
    case QP_SRD: return work_kinds(WORK_ON_SRD);
    case QP_XRC_INITIATOR: return work_kinds(WORK_ON_XRC);
    case QP_XRC_TARGET: break;
    }
    return 0;
}

/* A queue pair whose requests may become blocks takes no FLUSH: else it would depend on the network
 * whether it does (docs/decisions/0033). */
static enum status judge_flush(const struct qp *qp, const struct send_request *request,
                               uint64_t bytes)
{
    const uint8_t placement = request->flush.placement;
    if (qp->watching != WATCH_NOTHING) {
        return STATUS_UNSUPPORTED;
    }
    return bytes == 0 && request->flush.bytes <= ROCE_FLUSH_BYTES_MAX && placement != 0 &&
                   (placement & ~ROCE_PLACEMENT_KNOWN) == 0 &&
                   request->flush.selectivity <= ROCE_SELECT_REGION
               ? STATUS_OK
               : STATUS_INVALID;
}

static enum status judge_send(const struct qp *qp, const struct send_request *request,
                              uint64_t bytes)
{
    if (qp->state != QP_RTS && qp->state != QP_SQD && qp->state != QP_SQE && qp->state != QP_ERR) {
        return STATUS_INVALID;
    }
    if (!work_kind_in(qp_kinds((enum qp_type)qp->type), request->kind) ||
        (qp_is_datagram(qp) && request->av == NULL)) {
        return STATUS_INVALID;
    }
    const bool inlined = request->flags & WORK_INLINE;
    if (inlined) {
        if (work_kind_in(work_kinds(WORK_BRINGS_DATA), request->kind) ||
            bytes > qp->sends.inline_max) {
            return STATUS_INVALID;
        }
    } else if (request->sge_count > qp->sends.sge_max) {
        return STATUS_INVALID;
    }
    if (bytes > MESSAGE_BYTES_MAX) {
        return STATUS_INVALID;
    }
    if (work_kind_in(work_kinds(WORK_IS_ATOMIC), request->kind) &&
        (bytes != 8 || request->remote_address % 8 != 0)) {
        return STATUS_INVALID;
    }
    return request->kind == WORK_FLUSH ? judge_flush(qp, request, bytes) : STATUS_OK;
}

static uint64_t sges_bytes(const struct sge *sges, uint32_t sge_count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < sge_count; i++) {
        bytes += sges[i].bytes;
    }
    return bytes;
}

static void copy_inline(struct work *work, const struct send_request *request)
{
    uint8_t *to = work_inline(work);
    for (uint32_t i = 0; i < request->sge_count; i++) {
        const struct sge *sge = &request->sges[i];
        if (sge->bytes > 0) { /* An empty one may have NULL for its address. */
            memcpy(to, (const void *)(uintptr_t)sge->address, sge->bytes);
            to += sge->bytes;
        }
    }
    work->sge_count = 0;
}

static void copy_details(const struct qp *qp, struct work *work, const struct send_request *request)
{
    if (qp_is_datagram(qp)) {
        struct nic_av *av =
            (struct nic_av *)(void *)((uint8_t *)work + qp->sends.slot_bytes - sizeof(*av));
        *av = *request->av;
        if (qp->type == QP_SRD) {
            av->link = NULL; /* The handle may go before the carrier: the world finds it anew. */
        }
        work->datagram.av = av;
        work->datagram.qpn = request->destination_qpn & ROCE_24_BITS;
        work->datagram.qkey = request->destination_qkey;
    } else if (work_is(work, WORK_HAS_OPERANDS)) {
        work->atomic.compare_or_add = request->compare_or_add;
        work->atomic.swap = request->swap;
    } else if (work->kind == WORK_FLUSH) {
        work->flush.bytes = request->flush.bytes;
        work->flush.placement = request->flush.placement;
        work->flush.selectivity = request->flush.selectivity;
    } else if (work->kind == WORK_BIND_WINDOW) {
        work->remote_address = request->bind.address;
        work->bind.window = request->bind.window->key;
        work->bind.region = request->bind.region == NULL ? 0 : request->bind.region->key;
        work->bind.bytes = request->bind.bytes;
        work->bind.access = request->bind.access;
        work->bind.key = request->bind.key;
    }
}

/* A request that was judged good. */
static void add_work(struct qp *qp, const struct send_request *request)
{
    struct work *work = send_queue_at(&qp->sends, qp->sends.tail);
    work->wr_id = request->wr_id;
    work->remote_address = request->remote_address;
    work->remote_key = request->remote_key;
    work->bytes = (uint32_t)sges_bytes(request->sges, request->sge_count);
    work->immediate = request->immediate;
    work->srqn = request->srqn;
    work->kind = (uint8_t)request->kind;
    work->flags = (uint8_t)request->flags;
    work->status = COMPLETION_SUCCESS;
    work->started = false;
    work->moves_pending = 0;
    work->packets = 0;
    if (request->flags & WORK_INLINE) {
        copy_inline(work, request);
    } else {
        work->sge_count = (uint8_t)request->sge_count;
        for (uint32_t i = 0; i < request->sge_count; i++) {
            work_sges(work)[i] = request->sges[i];
        }
    }
    copy_details(qp, work, request);
    qp->sends.tail++;
}

/* Requests of SRD that have left the queue, and count until they complete. */
static uint32_t lent_sends(const struct qp *qp)
{
    return qp->engine == ENGINE_SRD ? qp->out.srd.lent : 0;
}

enum status qp_post_sends(struct qp *qp, const struct send_request *requests, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const enum status verdict =
            judge_send(qp, &requests[i], sges_bytes(requests[i].sges, requests[i].sge_count));
        if (verdict != STATUS_OK) {
            return verdict;
        }
    }
    if (count > qp->sends.limit - send_queue_count(&qp->sends) - lent_sends(qp)) {
        return STATUS_FULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        add_work(qp, &requests[i]);
    }
    if (qp->state == QP_ERR || qp->state == QP_SQE) {
        qp_flush_sends(qp);
    } else {
        nic_schedule(qp);
    }
    INVARIANTS(qp_check_duties(qp));
    return STATUS_OK;
}

enum status qp_post_send(struct qp *qp, const struct send_request *request)
{
    return qp_post_sends(qp, request, 1);
}

enum status qp_post_receive(struct qp *qp, uint64_t wr_id, const struct sge *sges,
                            uint32_t sge_count)
{
    if (qp->state == QP_RESET || qp->shares || qp->type == QP_XRC_INITIATOR) {
        return STATUS_INVALID;
    }
    if (qp->engine == ENGINE_SRD &&
        receive_queue_count(&qp->receives) + qp->in.srd.lent >= qp->receives.limit) {
        return STATUS_FULL; /* Messages that came in part may give theirs back. */
    }
    const enum status status = receive_queue_post(&qp->receives, wr_id, sges, sge_count);
    if (status == STATUS_OK && qp->state == QP_ERR) {
        qp_flush_receives(qp);
    }
    INVARIANTS(qp_check_duties(qp));
    return status;
}

/* -- As hardware has slots (nic/slots.h) --------------------------------------------------------*/

enum status slots_post_sends(struct qp *qp, const struct send_request *requests, uint32_t count)
{
    const struct send_queue *sends = &qp->sends;
    return count > sends->limit - (sends->tail - sends->polled)
               ? STATUS_FULL
               : qp_post_sends(qp, requests, count);
}

/* A queue without slots (limit 0) is never full here: posting refuses it for its own reason. */
static bool is_full(const struct receive_queue *queue)
{
    CHECK(queue->limit <= UINT16_MAX);
    return queue->limit != 0 && queue->unpolled >= queue->limit;
}

static void note_posted(struct receive_queue *queue, enum status status)
{
    if (status == STATUS_OK) {
        queue->unpolled++;
    }
}

enum status slots_post_receive(struct qp *qp, uint64_t wr_id, const struct sge *sges,
                               uint32_t sge_count)
{
    if (!qp->shares && is_full(&qp->receives)) {
        return STATUS_FULL;
    }
    const enum status status = qp_post_receive(qp, wr_id, sges, sge_count);
    note_posted(&qp->receives, status);
    return status;
}

enum status slots_post_shared(struct srq *srq, uint64_t wr_id, const struct sge *sges,
                              uint32_t sge_count)
{
    if (is_full(&srq->queue)) {
        return STATUS_FULL;
    }
    const enum status status = srq_post_receive(srq, wr_id, sges, sge_count);
    note_posted(&srq->queue, status);
    return status;
}
