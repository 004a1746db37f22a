/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue_pair.h"

#include <string.h>

#include "base/align.h"
#include "nic/block/streams.h"
#include "nic/engine.h"
#include "nic/internal.h"
#include "nic/slots.h"

/* What follows a send request in its slot: SGEs or inline bytes, and for UD the path. */
static uint32_t send_tail_bytes(enum qp_type type, const struct qp_capacity *capacity)
{
    const uint32_t sges = capacity->send_sges * (uint32_t)sizeof(struct sge);
    const uint32_t larger = sges > capacity->inline_bytes ? sges : capacity->inline_bytes;
    const uint32_t room = (larger + 7u) & ~7u;
    return type == QP_UD ? room + (uint32_t)sizeof(struct nic_path) : room;
}

/* Inline data takes the room of the SGEs, so a program may have all of either. */
static void grant(struct qp_capacity *capacity)
{
    const uint32_t sges = capacity->send_sges * (uint32_t)sizeof(struct sge);
    if (capacity->inline_bytes < sges) {
        capacity->inline_bytes = sges;
    }
    if (capacity->sends == 0) {
        capacity->sends = 1;
    }
}

static size_t taken_bytes(void)
{
    return line_aligned(sizeof(struct receive) + NIC_SGE_MAX * sizeof(struct sge));
}

size_t qp_bytes(enum qp_type type, struct qp_capacity *capacity, bool has_srq)
{
    grant(capacity);
    has_srq |= type == QP_XRC_TARGET;
    const uint32_t receives = has_srq ? 0 : capacity->receives;
    return line_aligned(sizeof(struct qp)) +
           line_aligned(send_queue_bytes(capacity->sends, send_tail_bytes(type, capacity))) +
           line_aligned(receive_queue_bytes(receives, capacity->receive_sges)) +
           (has_srq ? taken_bytes() : 0);
}

size_t qp_resources_bytes(uint32_t max_reads_in)
{
    return engine_resources_bytes(max_reads_in);
}

void *qp_give_resources(struct qp *qp, void *memory, uint32_t max_reads_in)
{
    CHECK(qp->state == QP_RESET || qp_lacks_resources(qp, max_reads_in));
    struct rc_resource **resources = qp_resources(qp);
    void *before = *resources;
    if (qp->state == QP_SQD) {
        rc_responder_move(&qp->in.rc, max_reads_in, memory);
    }
    *resources = memory;
    qp->resources_room = (uint8_t)max_reads_in;
    return before;
}

bool qp_lacks_resources(const struct qp *qp, uint32_t max_reads_in)
{
    const bool answers = qp->type == QP_RC || qp->type == QP_XRC_TARGET;
    return qp->state == QP_INIT ||
           (qp->state == QP_SQD && answers && max_reads_in > qp->resources_room);
}

void *qp_take_resources(struct qp *qp)
{
    struct rc_resource **at = qp_resources(qp);
    void *resources = *at;
    *at = NULL;
    return resources;
}

struct rc_resource **qp_resources(struct qp *qp)
{
    return qp->engine == ENGINE_BLOCK ? block_resources(qp) : &qp->resources;
}

size_t qp_blocks_bytes(const struct nic *nic, enum qp_type type)
{
    return type != QP_RC || nic->limits.block.transport == NIC_TRANSPORT_RC
               ? 0
               : block_streams_bytes(&nic->limits);
}

void qp_offer_blocks(struct qp *qp)
{
    CHECK(qp->state == QP_RESET || qp->state == QP_INIT);
    CHECK(qp->engine == ENGINE_RC && qp->nic->limits.block.transport == NIC_TRANSPORT_AUTO);
    block_watch_begin(qp);
}

bool qp_lacks_blocks(const struct qp *qp)
{
    return qp->engine == ENGINE_RC && qp->watching != WATCH_NOTHING &&
           (qp->state == QP_RTR || qp->state == QP_RTS || qp->state == QP_SQD);
}

void qp_give_blocks(struct qp *qp, void *memory)
{
    CHECK(qp->state == QP_RESET || qp->state == QP_INIT || qp_lacks_blocks(qp));
    CHECK(qp->engine == ENGINE_RC);
    struct rc_resource *resources = qp->resources;
    qp->block = block_streams_init(&qp->nic->limits, memory);
    qp->engine = ENGINE_BLOCK;
    *qp_resources(qp) = resources;
    INVARIANTS(qp_check_duties(qp));
}

void *qp_take_blocks(struct qp *qp)
{
    qp->watching = WATCH_NOTHING;
    if (qp->engine != ENGINE_BLOCK) {
        return NULL;
    }
    engine_withdraw(qp);
    void *memory = qp->block;
    qp->resources = *block_resources(qp);
    qp->engine = ENGINE_RC;
    return memory;
}

/* An XRC connection has two halves: one sends, the other receives from shared queues. */
static bool shape_valid(const struct qp_request *request)
{
    if (request->type == QP_XRC_TARGET) {
        return request->xrcd != NULL && request->pd == NULL && request->srq == NULL &&
               request->send_cq == NULL && request->receive_cq == NULL;
    }
    if (request->pd == NULL || request->send_cq == NULL || request->xrcd != NULL) {
        return false;
    }
    return request->type == QP_XRC_INITIATOR
               ? request->receive_cq == NULL && request->srq == NULL &&
                     request->capacity.receives == 0
               : request->receive_cq != NULL;
}

static bool within_limits(const struct nic_limits *limits, const struct qp_request *request)
{
    const struct qp_capacity *capacity = &request->capacity;
    return capacity->sends <= limits->sends_per_qp && capacity->send_sges <= limits->sges &&
           capacity->inline_bytes <= limits->inline_bytes &&
           (request->srq != NULL || (capacity->receives <= limits->receives_per_qp &&
                                     capacity->receive_sges <= limits->sges));
}

/* A QPN whose table entry is free; numbers are used up before one comes again. */
static uint32_t draw_qpn(struct nic *nic)
{
    for (;;) {
        const uint32_t qpn = nic->limits.qpn_base + nic->next_qpn;
        nic->next_qpn = (nic->next_qpn + 1) & nic->qpn_span_mask;
        if (qpn >= QPN_FIRST && qpn != ROCE_24_BITS && nic->qps[qpn & nic->qp_mask] == NULL) {
            return qpn;
        }
    }
}

static void lay_out(struct qp *qp, const struct qp_request *request, uint8_t *at)
{
    const struct qp_capacity *capacity = &qp->capacity;
    const uint32_t tail = send_tail_bytes(request->type, capacity);
    const bool shared = request->srq != NULL || request->type == QP_XRC_TARGET;
    const uint32_t receives = shared ? 0 : capacity->receives;
    at += line_aligned(sizeof(struct qp));
    send_queue_init(&qp->sends, capacity->sends, tail, at);
    at += line_aligned(send_queue_bytes(capacity->sends, tail));
    receive_queue_init(&qp->receives, receives, capacity->receive_sges, at);
    at += line_aligned(receive_queue_bytes(receives, capacity->receive_sges));
    if (shared) {
        qp->taken = (struct receive *)(void *)at;
    }
}

/* One user more (1) or one less (UINT32_MAX) for everything the queue pair has. */
static void count_users(struct qp *qp, uint32_t change)
{
    uint32_t *const counts[] = {
        qp->pd == NULL ? NULL : &qp->pd->users,
        qp->type == QP_XRC_TARGET ? &qp->xrcd->users : &qp->send_cq->users,
        qp->receive_cq == NULL ? NULL : &qp->receive_cq->users,
        qp->srq == NULL ? NULL : &qp->srq->users,
    };
    for (uint32_t i = 0; i < COUNT_OF(counts); i++) {
        if (counts[i] != NULL) {
            *counts[i] += change;
        }
    }
}

enum status qp_create(struct nic *nic, const struct qp_request *request, void *memory,
                      struct qp **result)
{
    if (!shape_valid(request) || !within_limits(&nic->limits, request)) {
        return STATUS_INVALID;
    }
    if (nic->qp_count == nic->limits.qps) {
        return STATUS_FULL;
    }
    struct qp *qp = memory;
    qp->nic = nic;
    qp->type = (uint8_t)request->type;
    qp->engine = (uint8_t)engine_of_type(request->type);
    qp->state = QP_RESET;
    qp->pd = request->pd;
    if (request->type == QP_XRC_TARGET) {
        qp->xrcd = request->xrcd;
    } else {
        qp->send_cq = request->send_cq;
    }
    qp->receive_cq = request->receive_cq;
    qp->srq = request->srq;
    qp->signal_all = request->signal_all;
    qp->context = request->context;
    qp->capacity = request->capacity;
    grant(&qp->capacity);
    list_init(&qp->node);
    list_init(&qp->event_link);
    lay_out(qp, request, memory);
    qp->number = draw_qpn(nic);
    nic->qps[qp->number & nic->qp_mask] = qp;
    nic->qp_count++;
    if (qp->type == QP_UD) {
        list_append(&nic->datagram_qps, &qp->in.ud);
    }
    count_users(qp, 1);
    *result = qp;
    return STATUS_OK;
}

void qp_destroy(struct qp *qp)
{
    struct nic *nic = qp->nic;
    CHECK(!nic_is_attached(nic, qp));
    nic_unlist(qp);
    engine_withdraw(qp);
    timer_wheel_remove(&nic->timers, qp_timer_id(qp), &qp->timer);
    if (nic->last_posted == qp) {
        nic->last_posted = NULL;
    }
    list_remove(&qp->event_link);
    if (qp->type == QP_UD) {
        list_remove(&qp->in.ud);
    }
    slots_reset(qp);
    window_forget_owner(&nic->regions, qp);
    nic->qps[qp->number & nic->qp_mask] = NULL;
    nic->qp_count--;
    count_users(qp, UINT32_MAX);
}

/* -- Posting ------------------------------------------------------------------------------------*/

uint32_t qp_kinds(enum qp_type type)
{
    switch (type) {
    case QP_RC: return work_kinds(WORK_ON_RC);
    case QP_UC: return work_kinds(WORK_ON_UC);
    case QP_UD: return work_kinds(WORK_ON_UD);
    case QP_XRC_INITIATOR: return work_kinds(WORK_ON_XRC);
    case QP_XRC_TARGET: break;
    }
    return 0;
}

/* A queue pair whose requests may become blocks has no FLUSH, or it would depend on the network
 * whether it has (docs/decisions/0033). */
static enum status judge_flush(const struct qp *qp, const struct send_request *request,
                               uint64_t bytes)
{
    const uint8_t placement = request->flush.placement;
    if (qp->engine == ENGINE_BLOCK || qp->watching != WATCH_NOTHING) {
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
        (qp->type == QP_UD && request->path == NULL)) {
        return STATUS_INVALID;
    }
    const bool inlined = request->flags & WORK_INLINE;
    if (inlined) {
        if (work_kind_in(work_kinds(WORK_BRINGS_DATA), request->kind) ||
            bytes > qp->capacity.inline_bytes) {
            return STATUS_INVALID;
        }
    } else if (request->sge_count > qp->capacity.send_sges) {
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
    if (qp->type == QP_UD) {
        struct nic_path *path =
            (struct nic_path *)(void *)((uint8_t *)(work + 1) + qp->sends.tail_bytes -
                                        sizeof(struct nic_path));
        *path = *request->path;
        work->datagram.path = path;
        work->datagram.qpn = request->destination_qpn;
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

enum status qp_post_sends(struct qp *qp, const struct send_request *requests, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const enum status verdict =
            judge_send(qp, &requests[i], sges_bytes(requests[i].sges, requests[i].sge_count));
        if (verdict != STATUS_OK) {
            return verdict;
        }
    }
    if (count > qp->sends.limit - send_queue_count(&qp->sends)) {
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
    if (qp->state == QP_RESET || qp->taken != NULL || qp->type == QP_XRC_INITIATOR) {
        return STATUS_INVALID;
    }
    const enum status status = receive_queue_post(&qp->receives, wr_id, sges, sge_count);
    if (status == STATUS_OK && qp->state == QP_ERR) {
        qp_flush_receives(qp);
    }
    INVARIANTS(qp_check_duties(qp));
    return status;
}

/* -- Looking ------------------------------------------------------------------------------------*/

void qp_query(const struct qp *qp, struct qp_attributes *attributes)
{
    *attributes = qp->attributes;
    attributes->state = (enum qp_state)qp->state;
    attributes->current_state = (enum qp_state)qp->state;
    attributes->draining = qp->state == QP_SQD && !qp->drained;
    engine_query(qp, attributes);
}

uint32_t qp_newest_payload(const struct qp *qp)
{
    const struct send_queue *queue = &qp->sends;
    if (queue->head == queue->tail) {
        return 0;
    }
    const struct work *work = send_queue_at(queue, queue->tail - 1);
    return work_wants_data(work) ? 0 : work->bytes;
}

uint32_t qp_number(const struct qp *qp)
{
    return qp->number;
}

enum qp_type qp_type_of(const struct qp *qp)
{
    return (enum qp_type)qp->type;
}

enum qp_state qp_state_of(const struct qp *qp)
{
    return (enum qp_state)qp->state;
}

void *qp_context(const struct qp *qp)
{
    return qp->context;
}

const struct nic_path *qp_path(const struct qp *qp)
{
    return &qp->attributes.path;
}

struct pd *qp_pd(const struct qp *qp)
{
    return qp->pd;
}

/* Without responder resources a queue pair refuses every READ, atomic and FLUSH; only reliable ones
 * have any. */
static uint32_t granted_by(const struct qp *qp)
{
    const bool answers = qp->attributes.max_reads_in != 0;
    const uint32_t answered = ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH;
    return qp->attributes.access & ~(answers ? 0u : answered);
}

struct reach_qp qp_view(const struct qp *qp)
{
    return (struct reach_qp){
        .type = (enum qp_type)qp->type,
        .state = (enum qp_state)qp->state,
        .granted = granted_by(qp),
        .user = {.domain = (uintptr_t)qp->pd, .name = (uintptr_t)qp},
        .peer = qp->attributes.path.destination,
        .peer_number = qp->attributes.destination_qpn & ROCE_24_BITS,
        .terms = {qp->mtu_bytes, qp->attributes.max_reads_in},
    };
}

struct reach_terms qp_terms(const struct qp *qp)
{
    return (struct reach_terms){qp->mtu_bytes, qp->attributes.max_reads_out};
}

const uint32_t *qp_expected_psn(const struct qp *qp)
{
    CHECK(qp->type == QP_RC);
    return &qp->in.rc.expected.value;
}

void qp_note_agreed(struct qp *qp, uint32_t state)
{
    qp->attributes.agreed = state;
}

uint32_t qp_agreed(const struct qp *qp)
{
    return qp->attributes.agreed;
}

const struct qp_capacity *qp_capacity_of(const struct qp *qp)
{
    return &qp->capacity;
}

bool qp_signals_all(const struct qp *qp)
{
    return qp->signal_all;
}

void qp_report_of(const struct qp *qp, struct qp_report *report)
{
    *report = (struct qp_report){.paths = 1};
    engine_report(qp, report);
}

struct qp_flow qp_flow_of(const struct qp *qp)
{
    return engine_flow(qp);
}
