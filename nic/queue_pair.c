/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/queue_pair.h"

#include "base/align.h"
#include "nic/engine.h"
#include "nic/internal.h"
#include "nic/slots.h"

/* The bytes behind a send request in its slot: SGEs or inline bytes, and for UD the address
 * vector. */
static uint32_t send_tail_bytes(enum qp_type type, const struct qp_capacity *capacity)
{
    const uint32_t sges = capacity->send_sges * (uint32_t)sizeof(struct sge);
    const uint32_t larger = sges > capacity->inline_bytes ? sges : capacity->inline_bytes;
    const uint32_t room = (larger + 7u) & ~7u;
    return type == QP_UD || type == QP_SRD ? room + (uint32_t)sizeof(struct nic_av) : room;
}

/* Inline data and SGEs share their room, so a program may use all of it for either. */
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

bool qp_places_early(const struct qp *qp)
{
    return qp->watching != WATCH_NOTHING && qp->nic->limits.block.place == BLOCK_PLACE_EARLY;
}

static bool fits_srd(const struct qp_capacity *capacity)
{
    return capacity->send_sges <= SRD_SGES_MAX && capacity->receive_sges <= SRD_SGES_MAX &&
           capacity->inline_bytes <= SRD_INLINE_MAX;
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
    if (request->type == QP_SRD && (request->srq != NULL || !fits_srd(&request->capacity))) {
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

/* A NIC with SRD has QPNs of its own, and entries of the table for them. */
static bool is_for_programs(const struct nic *nic, uint32_t qpn)
{
    return nic->srd == NULL || (qpn & 0xffff) < QPN_FIRST + SRD_QPS_MAX;
}

/* A QPN whose table entry is free; numbers are used up before one comes again. */
static uint32_t draw_qpn(struct nic *nic)
{
    for (;;) {
        const uint32_t qpn = nic->limits.qpn_base + nic->next_qpn;
        nic->next_qpn = (nic->next_qpn + 1) & nic->qpn_span_mask;
        if (qpn >= QPN_FIRST && qpn != ROCE_24_BITS && is_for_programs(nic, qpn) &&
            nic->qps[qpn & nic->qp_mask] == NULL) {
            return qpn;
        }
    }
}

static void lay_out(struct qp *qp, const struct qp_request *request, uint8_t *at)
{
    struct qp_capacity capacity = request->capacity;
    grant(&capacity);
    const uint32_t tail = send_tail_bytes(request->type, &capacity);
    at += line_aligned(sizeof(struct qp));
    send_queue_init(&qp->sends, capacity.sends, tail, at);
    qp->sends.sge_max = (uint8_t)capacity.send_sges;
    qp->sends.inline_max = (uint16_t)capacity.inline_bytes;
    at += line_aligned(send_queue_bytes(capacity.sends, tail));
    qp->shares = request->srq != NULL || request->type == QP_XRC_TARGET;
    if (qp->shares) {
        qp->shared.srq = request->srq;
        qp->shared.taken = (struct receive *)(void *)at;
    } else {
        receive_queue_init(&qp->receives, capacity.receives, capacity.receive_sges, at);
    }
}

/* One user more (1) or one less (UINT32_MAX) for everything the queue pair has. */
static void count_users(struct qp *qp, uint32_t change)
{
    uint32_t *const counts[] = {
        qp->pd == NULL ? NULL : &qp->pd->users,
        qp->type == QP_XRC_TARGET ? &qp->xrcd->users : &qp->send_cq->users,
        qp->receive_cq == NULL ? NULL : &qp->receive_cq->users,
        qp_srq(qp) == NULL ? NULL : &qp->shared.srq->users,
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
    if (!shape_valid(request) || !within_limits(&nic->limits, request) ||
        (request->type == QP_SRD && nic->srd == NULL)) {
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
    qp->signal_all = request->signal_all || request->type == QP_SRD;
    qp->unsolicited = request->unsolicited;
    qp->context = request->context;
    list_init(&qp->node);
    list_init(&qp->event_link);
    lay_out(qp, request, memory);
    qp->number = draw_qpn(nic);
    nic->qps[qp->number & nic->qp_mask] = qp;
    nic->qp_count++;
    if (qp->type == QP_UD) {
        list_append(&nic->datagram_qps, &qp->in.ud);
    } else if (qp->type == QP_SRD) {
        list_init(&qp->in.srd.incoming);
        list_init(&qp->out.srd.requests);
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

/* -- Reports ------------------------------------------------------------------------------------*/

void qp_query(const struct qp *qp, struct qp_attributes *attributes)
{
    *attributes = qp->attributes;
    attributes->state = qp->state;
    attributes->current_state = qp->state;
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

struct qp_progress qp_progress_of(const struct qp *qp)
{
    struct qp_progress progress = {
        .posted = qp->sends.tail, .passed = qp->sends.next, .done = qp->sends.head};
    if (qp->type != QP_XRC_TARGET) {
        progress.completions = qp->send_cq->tail;
    }
    if (qp->receive_cq != NULL && (qp->type == QP_XRC_TARGET || qp->receive_cq != qp->send_cq)) {
        progress.completions += qp->receive_cq->tail;
    }
    return progress;
}

uint32_t qp_request_bytes(const struct qp *qp, uint32_t position)
{
    return send_queue_at(&qp->sends, position)->bytes;
}

const void *qp_link(const struct qp *qp)
{
    return qp->attributes.av.link;
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

const struct nic_av *qp_av(const struct qp *qp)
{
    return &qp->attributes.av;
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
        .peer = qp->attributes.av.destination,
        .peer_number = qp->attributes.destination_qpn & ROCE_24_BITS,
        .terms = {qp->mtu_bytes, qp->attributes.max_reads_in},
    };
}

struct reach_terms qp_terms(const struct qp *qp)
{
    return (struct reach_terms){qp->mtu_bytes, qp->attributes.max_reads_out};
}

bool qp_waits_for_psn(const struct qp *qp, uint32_t *first, uint32_t *came)
{
    struct psn psn = {.value = 0};
    *first = qp->attributes.psn.receive;
    const bool waits = (qp->type == QP_RC || qp->type == QP_XRC_TARGET) &&
                       rc_responder_waits(&qp->in.rc, psn_of(*first), &psn);
    *came = psn.value;
    return waits;
}

uintptr_t qp_awaited(const struct qp *qp)
{
    CHECK(qp->type == QP_RC);
    return (uintptr_t)&qp->in.rc;
}

bool qp_awaits(const uint8_t bytes[QP_AWAITED_BYTES], uint32_t psn)
{
    struct rc_responder seen;
    _Static_assert(offsetof(struct rc_responder, expected) < QP_AWAITED_BYTES &&
                       offsetof(struct rc_responder, incoming.kind) < QP_AWAITED_BYTES &&
                       sizeof(seen) >= QP_AWAITED_BYTES,
                   "it is in these bytes");
    memcpy(&seen, bytes, QP_AWAITED_BYTES);
    return seen.expected.value == psn && seen.incoming.kind == INCOMING_NONE;
}

void qp_note_agreed(struct qp *qp, uint32_t state)
{
    qp->agreed = state;
}

uint32_t qp_agreed(const struct qp *qp)
{
    return qp->agreed;
}

struct qp_capacity qp_capacity_of(const struct qp *qp)
{
    return (struct qp_capacity){
        .sends = qp->sends.limit,
        .receives = qp->shares ? 0 : qp->receives.limit,
        .send_sges = qp->sends.sge_max,
        .receive_sges = qp->shares ? 0 : qp->receives.sge_max,
        .inline_bytes = qp->sends.inline_max,
    };
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
