/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/nic.h"

#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "nic/internal.h"
#include "transport/common/timing.h"

static size_t aligned(size_t bytes)
{
    return (bytes + 63u) & ~(size_t)63u;
}

static uint32_t srq_slots(const struct nic_limits *limits)
{
    return (uint32_t)power_of_two(limits->xrc_srqs + 1);
}

size_t nic_bytes(const struct nic_limits *limits)
{
    return aligned(sizeof(struct nic)) +
           aligned(power_of_two(limits->qps + QPN_FIRST) * sizeof(struct qp *)) +
           aligned(region_table_slots(limits->regions) * sizeof(struct region *)) +
           aligned(power_of_two(limits->qps + QPN_FIRST) * sizeof(struct timer_link)) +
           aligned(power_of_two(limits->qps + QPN_FIRST) * sizeof(struct qp *)) +
           aligned(limits->groups * sizeof(struct multicast_group)) +
           aligned(limits->attachments * sizeof(struct multicast_member)) +
           aligned(srq_slots(limits) * sizeof(struct srq *));
}

struct nic *nic_init(const struct nic_limits *limits, uint64_t seed, void *memory)
{
    CHECK(limits->sges <= NIC_SGE_MAX);
    CHECK(limits->qps <= 1u << 20);
    CHECK(limits->xrc_srqs <= 1u << 20);
    CHECK(limits->reads_per_qp <= NIC_READS_MAX);
    CHECK(limits->rc.read_packets <= RC_READ_PACKETS_MAX);
    uint8_t *at = memory;
    struct nic *nic = memory;
    nic->limits = *limits;
    prng_init(&nic->prng, seed);
    at += aligned(sizeof(struct nic));
    nic->qp_mask = (uint32_t)power_of_two(limits->qps + QPN_FIRST) - 1;
    nic->qps = (struct qp **)(void *)at;
    at += aligned((nic->qp_mask + 1) * sizeof(struct qp *));
    nic->qpn_span_mask = limits->qpn_span == 0 ? ROCE_24_BITS : limits->qpn_span - 1;
    CHECK((limits->qpn_base & nic->qpn_span_mask) == 0);
    CHECK(limits->qps + QPN_FIRST <= nic->qpn_span_mask + 1);
    /* QPNs start anywhere, so that those of an earlier process are not mistaken for ours. */
    nic->next_qpn = (uint32_t)prng_next(&nic->prng) & nic->qpn_span_mask;
    region_table_init(&nic->regions, limits->regions, (struct region **)(void *)at, &nic->prng);
    at += aligned(region_table_slots(limits->regions) * sizeof(struct region *));
    timer_wheel_init(&nic->timers, (struct timer_link *)(void *)at, nic->qp_mask + 1);
    at += aligned((nic->qp_mask + 1) * sizeof(struct timer_link));
    nic->ready = (struct ready_ring){.slots = (struct qp **)(void *)at, .mask = nic->qp_mask};
    at += aligned((nic->qp_mask + 1) * sizeof(struct qp *));
    nic->multicast = (struct multicast_table){.groups = (struct multicast_group *)(void *)at,
                                              .free = MULTICAST_NOBODY};
    at += aligned(limits->groups * sizeof(struct multicast_group));
    nic->multicast.members = (struct multicast_member *)(void *)at;
    at += aligned(limits->attachments * sizeof(struct multicast_member));
    nic->srqs = (struct srq **)(void *)at;
    nic->srq_mask = srq_slots(limits) - 1;
    nic->next_srqn = nic->next_qpn;
    list_init(&nic->cqs_to_notify);
    list_init(&nic->qps_with_events);
    list_init(&nic->cqs_with_events);
    list_init(&nic->srqs_with_events);
    return nic;
}

const struct nic_limits *nic_limits(const struct nic *nic)
{
    return &nic->limits;
}

struct region_table *nic_regions(struct nic *nic)
{
    return &nic->regions;
}

struct nic_counters *nic_counters(struct nic *nic)
{
    return &nic->counters;
}

void nic_count(struct nic *nic, enum nic_counter counter)
{
    nic->counters.values[counter]++;
}

struct qp *nic_find_qp(const struct nic *nic, uint32_t qpn)
{
    struct qp *qp = nic->qps[qpn & nic->qp_mask];
    return qp != NULL && qp->number == qpn ? qp : NULL;
}

/* -- Who may have something to send -------------------------------------------------------------*/

/* The ring is full of holes: closes them. */
static void close_holes(struct ready_ring *ready)
{
    uint32_t to = ready->head;
    for (uint32_t from = ready->head; from != ready->tail; from++) {
        struct qp *qp = ready->slots[from & ready->mask];
        if (qp != NULL) {
            ready->slots[to & ready->mask] = qp;
            qp->ready_at = to++;
        }
    }
    ready->tail = to;
}

static void ready_append(struct ready_ring *ready, struct qp *qp)
{
    if (ready->head == ready->tail) {
        /* From the start, where the ring's memory is warm. */
        ready->head = ready->tail = 0;
    } else if (ready->tail - ready->head > ready->mask) {
        close_holes(ready);
    }
    qp->listing = QP_LISTED_READY;
    qp->ready_at = ready->tail;
    ready->slots[ready->tail++ & ready->mask] = qp;
}

static void skip_holes(struct ready_ring *ready)
{
    while (ready->head != ready->tail && ready->slots[ready->head & ready->mask] == NULL) {
        ready->head++;
    }
}

static void ready_remove(struct ready_ring *ready, const struct qp *qp)
{
    ready->slots[qp->ready_at & ready->mask] = NULL;
    skip_holes(ready);
}

void nic_schedule(struct qp *qp)
{
    if (qp->listing == QP_LISTED_NOWHERE) {
        ready_append(&qp->nic->ready, qp);
    }
}

/* May the next pull yield something? */
static bool qp_has_more(const struct qp *qp)
{
    return qp->sends.next != qp->sends.tail ||
           (qp_is_reliable(qp) && rc_responder_ready(&qp->in.rc));
}

void nic_schedule_if_due(struct qp *qp)
{
    if (qp_has_more(qp)) {
        nic_schedule(qp);
    }
}

void nic_unlist(struct qp *qp)
{
    if (qp->listing == QP_LISTED_READY) {
        ready_remove(&qp->nic->ready, qp);
    } else if (qp->listing == QP_LISTED_WAITING) {
        list_remove(&qp->node);
    }
    qp->listing = QP_LISTED_NOWHERE;
}

struct qp *nic_next_qp(struct nic *nic)
{
    const struct ready_ring *ready = &nic->ready;
    return ready->head == ready->tail ? NULL : ready->slots[ready->head & ready->mask];
}

const struct qp *nic_ready_qp(const struct nic *nic, uint32_t ahead)
{
    const struct ready_ring *ready = &nic->ready;
    return ahead < ready->tail - ready->head ? ready->slots[(ready->head + ahead) & ready->mask]
                                             : NULL;
}

void nic_unready(struct nic *nic, struct qp *qp)
{
    CHECK(qp->listing == QP_LISTED_READY);
    ready_remove(&nic->ready, qp);
    qp->listing = QP_LISTED_NOWHERE;
}

void nic_rotate(struct nic *nic, struct qp *qp)
{
    if (qp->listing == QP_LISTED_READY) {
        ready_remove(&nic->ready, qp);
        ready_append(&nic->ready, qp);
    }
}

void nic_park(struct nic *nic, struct qp *qp, struct list *waiting, struct instant now)
{
    CHECK(qp->listing == QP_LISTED_READY);
    ready_remove(&nic->ready, qp);
    list_append(waiting, &qp->node);
    qp->listing = QP_LISTED_WAITING;
    if (qp_is_reliable(qp) && qp->sends.next != qp->sends.tail &&
        (qp->state == QP_RTS || qp->state == QP_SQD)) {
        rc_requester_blocked(&qp->out.rc, now);
        qp_arm_timer(qp);
    }
}

void nic_unpark(struct nic *nic, struct list *waiting)
{
    struct list *node;
    while ((node = list_pop(waiting)) != NULL) {
        struct qp *qp = CONTAINER_OF(node, struct qp, node);
        ready_append(&nic->ready, qp);
    }
}

void *nic_qp_link(const struct qp *qp)
{
    if (qp->type == QP_UD && qp->sends.next != qp->sends.tail) {
        const struct nic_path *path = send_queue_at(&qp->sends, qp->sends.next)->datagram.path;
        return path->link;
    }
    return qp->attributes.path.link;
}

void *nic_connected_link(const struct nic *nic, uint32_t qpn)
{
    const struct qp *qp = nic_find_qp(nic, qpn);
    return qp == NULL || qp->type == QP_UD ? NULL : qp->attributes.path.link;
}

uint32_t nic_qp_destination(const struct qp *qp)
{
    return send_queue_at(&qp->sends, qp->sends.next)->datagram.qpn;
}

bool nic_next_packet(struct nic *nic, struct qp *qp, struct instant now,
                     struct nic_departure *departure)
{
    bool found = false;
    departure->qp = qp;
    departure->packet = &nic->departing;
    switch ((enum qp_type)qp->type) {
    case QP_RC:
    case QP_XRC_INITIATOR:
    case QP_XRC_TARGET: found = rc_next_packet(qp, now, departure); break;
    case QP_UC: found = uc_next_packet(qp, now, departure); break;
    case QP_UD: found = ud_next_packet(qp, now, departure); break;
    }
    if (!found) {
        if (qp->listing == QP_LISTED_READY) {
            nic_unlist(qp);
        }
        return false;
    }
    departure->more = qp_has_more(qp);
    if (!departure->more && qp->listing == QP_LISTED_READY) {
        nic_unlist(qp);
    }
    departure->headers_bytes = (uint32_t)roce_encode_headers(&nic->departing, departure->headers);
    nic_count(nic, COUNTER_sent_pkts);
    nic->counters.values[COUNTER_sent_bytes] += departure->payload_bytes;
    return true;
}

/* -- Time ---------------------------------------------------------------------------------------*/

/* When the requester wants to be told the time. */
static struct instant qp_deadline(const struct qp *qp)
{
    if (!qp_is_reliable(qp) || (qp->state != QP_RTS && qp->state != QP_SQD)) {
        return INSTANT_NEVER;
    }
    return qp->out.rc.mode == RC_REQUESTER_WAITING_RNR ? qp->out.rc.resume_at : qp->out.rc.retry_at;
}

/* An acknowledgement moves the deadline later with every packet; the wheel is told only when it
 * fires, so that the usual case costs a comparison. */
void qp_arm_timer(struct qp *qp)
{
    const struct instant deadline = qp_deadline(qp);
    if (deadline.ns == UINT64_MAX) {
        return;
    }
    if (!timer_is_set(&qp->timer) || instant_before(deadline, qp->timer.at)) {
        timer_wheel_set(&qp->nic->timers, qp_timer_id(qp), &qp->timer, deadline);
    }
}

struct instant nic_deadline(const struct nic *nic)
{
    return timer_wheel_deadline(&nic->timers);
}

/* The timer fired: has its requester waited in vain? */
static bool is_overdue(struct qp *qp, struct instant now)
{
    const struct instant deadline = qp_deadline(qp);
    if (!instant_reached(now, deadline)) {
        qp_arm_timer(qp);
        return false;
    }
    if (qp->out.rc.mode == RC_REQUESTER_WAITING_RNR) {
        nic_schedule(qp);
        return false;
    }
    return true;
}

bool nic_next_overdue(struct nic *nic, struct instant now, struct nic_overdue *overdue)
{
    uint32_t id;
    while ((id = timer_wheel_due(&nic->timers, now)) != TIMER_NONE) {
        struct qp *qp = nic->qps[id];
        timer_wheel_remove(&nic->timers, id, &qp->timer);
        if (is_overdue(qp, now)) {
            const struct rc_requester *requester = &qp->out.rc;
            const uint64_t timeout_ns = ack_timeout_ns(requester->timeout_code);
            const uint64_t at_ns = requester->retry_at.ns;
            *overdue = (struct nic_overdue){
                .qp = qp,
                .since = {at_ns > timeout_ns ? at_ns - timeout_ns : 0},
                .last = requester->retries_left == 0,
            };
            return true;
        }
    }
    return false;
}

void nic_on_unread(struct nic *nic, struct qp *qp, struct instant now)
{
    nic_count(nic, COUNTER_timeouts_unread);
    rc_requester_wait_on(&qp->out.rc, now);
    qp_arm_timer(qp);
}

void nic_on_timeout(struct nic *nic, struct qp *qp, struct instant now)
{
    nic_count(nic, COUNTER_timeouts);
    const struct rc_progress progress = rc_requester_on_time(&qp->out.rc, &qp->sends, now);
    if (progress.verdict == RC_FAILED) {
        nic_count(nic, COUNTER_retry_exceeded_err);
        qp_fail_in_turn(qp, progress.work, progress.status, now);
        return;
    }
    nic_count(nic, COUNTER_completer_retry_err);
    nic_schedule(qp);
    qp_arm_timer(qp);
}

void nic_on_time(struct nic *nic, struct instant now)
{
    struct nic_overdue overdue;
    while (nic_next_overdue(nic, now, &overdue)) {
        nic_on_timeout(nic, overdue.qp, now);
    }
}

/* -- Prefetching --------------------------------------------------------------------------------*/

void nic_prefetch_qp(const struct qp *qp)
{
    const char *at = (const char *)qp;
    for (uint32_t i = 0; i < QP_HOT_BYTES; i += 64) {
        __builtin_prefetch(at + i, 1);
    }
}

void nic_prefetch_packet(const struct nic *nic, const uint8_t *headers)
{
    const uint32_t qpn = load_be32(headers + 4) & ROCE_24_BITS;
    const struct qp *qp = nic->qps[qpn & nic->qp_mask];
    if (qp != NULL) {
        nic_prefetch_qp(qp);
    }
    if (roce_opcode(headers[0])->traits & ROCE_HAS_RETH) {
        /* Whatever address this is: a prefetch of what is not there does nothing. */
        const uintptr_t address = (uintptr_t)load_be64(headers + ROCE_BTH_BYTES);
        __builtin_prefetch((const void *)address, 1);
    }
}

void nic_foresee(struct nic *nic, struct qp *qp)
{
    if (nic->last_posted == qp) {
        return; /* What it takes is warm. */
    }
    if (nic->last_posted != NULL && nic->last_posted->successor != qp->number) {
        nic->last_posted->successor = qp->number;
    }
    nic->last_posted = qp;
    const struct qp *next = nic_find_qp(nic, qp->successor);
    if (next == NULL) {
        return;
    }
    /* Its first line was asked for the last time: where its next request goes is known. */
    const char *slot = (const char *)send_queue_at(&next->sends, next->sends.tail);
    __builtin_prefetch(slot, 1);
    __builtin_prefetch(slot + 64, 1);
    __builtin_prefetch(next->context, 1);
    const struct qp *after = nic->qps[next->successor & nic->qp_mask];
    if (after != NULL) {
        nic_prefetch_qp(after);
    }
}

/* -- What programs are told ---------------------------------------------------------------------*/

void qp_raise(struct qp *qp, enum nic_event_kind kind)
{
    if (qp->events == 0) {
        list_append(&qp->nic->qps_with_events, &qp->event_link);
    }
    qp->events |= 1u << kind;
}

/* Takes the lowest event off a set; the object leaves its list when the set is empty. */
static enum nic_event_kind take_event(uint32_t *events, struct list *link)
{
    const int kind = __builtin_ctz(*events);
    *events &= *events - 1;
    if (*events == 0) {
        list_remove(link);
    }
    return (enum nic_event_kind)kind;
}

bool nic_next_event(struct nic *nic, struct nic_event *event)
{
    *event = (struct nic_event){0};
    /* Causes come before effects. */
    if (!list_empty(&nic->cqs_with_events)) {
        event->cq = CONTAINER_OF(nic->cqs_with_events.next, struct cq, event_link);
        event->kind = take_event(&event->cq->events, &event->cq->event_link);
        return true;
    }
    if (!list_empty(&nic->qps_with_events)) {
        event->qp = CONTAINER_OF(nic->qps_with_events.next, struct qp, event_link);
        event->kind = take_event(&event->qp->events, &event->qp->event_link);
        if (event->kind == NIC_EVENT_QP_FATAL && event->qp->state != QP_RESET) {
            qp_enter_error(event->qp);
        }
        return true;
    }
    if (!list_empty(&nic->srqs_with_events)) {
        event->srq = CONTAINER_OF(nic->srqs_with_events.next, struct srq, event_link);
        event->kind = take_event(&event->srq->events, &event->srq->event_link);
        return true;
    }
    return false;
}

struct cq *nic_next_notification(struct nic *nic)
{
    struct list *node = list_pop(&nic->cqs_to_notify);
    return node == NULL ? NULL : CONTAINER_OF(node, struct cq, notify);
}

void nic_forget_cq(struct cq *cq)
{
    list_remove(&cq->notify);
    list_remove(&cq->event_link);
    cq->events = 0;
}

void nic_forget_srq(struct srq *srq)
{
    list_remove(&srq->event_link);
    srq->events = 0;
}

enum status srq_post_receive(struct srq *srq, uint64_t wr_id, const struct sge *sges,
                             uint32_t sge_count)
{
    return receive_queue_post(&srq->queue, wr_id, sges, sge_count);
}
