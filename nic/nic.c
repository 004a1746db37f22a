/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/nic.h"

#include <string.h>

#include "base/align.h"
#include "base/bits.h"
#include "base/bytes.h"
#include "nic/engine.h"
#include "nic/internal.h"

static uint32_t srq_slots(const struct nic_limits *limits)
{
    return (uint32_t)power_of_two(limits->xrc_srqs + 1);
}

/* The entries of the table of queue pairs. Those of SRD's carriers are behind those of programs. */
static size_t qp_slots(const struct nic_limits *limits)
{
    return limits->srd.peers == 0 ? power_of_two(limits->qps + QPN_FIRST)
                                  : power_of_two(256 + limits->srd.peers + 1);
}

size_t nic_bytes(const struct nic_limits *limits)
{
    return line_aligned(sizeof(struct nic)) + line_aligned(qp_slots(limits) * sizeof(struct qp *)) +
           line_aligned(region_table_slots(limits->regions) * sizeof(struct region *)) +
           line_aligned(qp_slots(limits) * sizeof(struct timer_link)) +
           line_aligned(qp_slots(limits) * sizeof(struct qp *)) +
           line_aligned(limits->groups * sizeof(struct multicast_group)) +
           line_aligned(limits->attachments * sizeof(struct multicast_member)) +
           line_aligned(srq_slots(limits) * sizeof(struct srq *)) +
           line_aligned(qp_slots(limits) * sizeof(struct ecn_state)) + engine_nic_bytes(limits);
}

struct nic *nic_init(const struct nic_limits *limits, uint64_t seed, void *memory)
{
    CHECK(limits->sges <= NIC_SGE_MAX);
    CHECK(limits->inline_bytes <= UINT16_MAX);
    CHECK(limits->qps <= 1u << 20);
    CHECK(limits->xrc_srqs <= 1u << 20);
    CHECK(limits->reads_per_qp <= NIC_READS_MAX);
    CHECK(limits->rc.read_packets <= RC_READ_PACKETS_MAX);
    uint8_t *at = memory;
    struct nic *nic = memory;
    nic->limits = *limits;
    if (limits->dcqcn.line_rate == 0) {
        nic->limits.dcqcn = dcqcn_policy_default();
    }
    dcqcn_policy_check(&nic->limits.dcqcn);
    prng_init(&nic->prng, seed);
    at += line_aligned(sizeof(struct nic));
    nic->qp_mask = (uint32_t)qp_slots(limits) - 1;
    nic->qps = (struct qp **)(void *)at;
    at += line_aligned((nic->qp_mask + 1) * sizeof(struct qp *));
    nic->qpn_span_mask = limits->qpn_span == 0 ? ROCE_24_BITS : limits->qpn_span - 1;
    CHECK((limits->qpn_base & nic->qpn_span_mask) == 0);
    CHECK(limits->qps + QPN_FIRST <= nic->qpn_span_mask + 1);
    /* The first QPN is random, so that packets for an earlier process hardly ever name ours. */
    nic->next_qpn = (uint32_t)prng_next(&nic->prng) & nic->qpn_span_mask;
    region_table_init(&nic->regions, limits->regions, (struct region **)(void *)at, &nic->prng);
    nic->regions.lkey_bits = limits->lkey_bits;
    if (limits->key_bits != 0) {
        CHECK(limits->regions <= REGION_SHORT_COUNT_MAX);
        nic->regions.key_bits = limits->key_bits;
    }
    at += line_aligned(region_table_slots(limits->regions) * sizeof(struct region *));
    timer_wheel_init(&nic->timers, (struct timer_link *)(void *)at, nic->qp_mask + 1);
    at += line_aligned((nic->qp_mask + 1) * sizeof(struct timer_link));
    nic->ready = (struct ready_ring){.slots = (struct qp **)(void *)at, .mask = nic->qp_mask};
    at += line_aligned((nic->qp_mask + 1) * sizeof(struct qp *));
    nic->multicast = (struct multicast_table){.groups = (struct multicast_group *)(void *)at,
                                              .free = MULTICAST_NOBODY};
    at += line_aligned(limits->groups * sizeof(struct multicast_group));
    nic->multicast.members = (struct multicast_member *)(void *)at;
    at += line_aligned(limits->attachments * sizeof(struct multicast_member));
    nic->srqs = (struct srq **)(void *)at;
    nic->srq_mask = srq_slots(limits) - 1;
    at += line_aligned(srq_slots(limits) * sizeof(struct srq *));
    nic->ecn = (struct ecn_state *)(void *)at;
    at += line_aligned((nic->qp_mask + 1) * sizeof(struct ecn_state));
    engine_nic_init(nic, at);
    nic->next_srqn = nic->next_qpn;
    list_init(&nic->cqs_to_notify);
    list_init(&nic->datagram_qps);
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

void *nic_qp_link(const struct qp *qp)
{
    if (qp->type == QP_UD && qp->sends.next != qp->sends.tail) {
        const struct nic_av *av = send_queue_at(&qp->sends, qp->sends.next)->datagram.av;
        return av->link;
    }
    return qp->attributes.av.link;
}

uint32_t nic_qp_destination(const struct qp *qp)
{
    if (qp->engine == ENGINE_FLOW) {
        return engine_destination(qp);
    }
    return send_queue_at(&qp->sends, qp->sends.next)->datagram.qpn;
}

const struct nic_av *nic_carrier_av(const struct qp *qp)
{
    return qp->engine == ENGINE_FLOW ? engine_carrier_av(qp) : NULL;
}

void nic_carrier_by_ring(struct qp *qp, bool by_ring)
{
    if (nic_carrier_av(qp) != NULL) {
        engine_carrier_by_ring(qp, by_ring);
    }
}

void nic_note_time(struct nic *nic, struct instant now)
{
    nic->now = now;
}

bool nic_next_packet(struct nic *nic, struct qp *qp, struct instant now,
                     struct nic_departure *departure)
{
    INVARIANTS(qp_check_duties(qp));
    nic->now = now;
    departure->qp = qp;
    departure->piggyback.there = false;
    if (!engine_next_packet(qp, now, departure)) {
        if (qp->listing == QP_LISTED_READY) {
            nic_unlist(qp);
        }
        INVARIANTS(qp_check_duties(qp));
        return false;
    }
    departure->more = engine_ready(qp);
    if (!departure->more && qp->listing == QP_LISTED_READY) {
        nic_unlist(qp);
    }
    nic_count(nic, COUNTER_sent_pkts);
    nic->counters.values[COUNTER_sent_bytes] += departure->payload_bytes;
    INVARIANTS(qp_check_duties(qp));
    return true;
}

void nic_park(struct nic *nic, struct qp *qp, struct list *waiting, struct instant now)
{
    (void)nic;
    nic_enlist_waiting(qp, waiting);
    engine_on_blocked(qp, now);
    INVARIANTS(qp_check_duties(qp));
}

void nic_on_gather_failed(const struct nic_departure *departure)
{
    engine_on_gather_failed(departure->qp, departure);
    INVARIANTS(qp_check_duties(departure->qp));
}

bool nic_read_target(const struct nic_departure *departure,
                     struct segment segments[NIC_SEGMENT_MAX], uint32_t *count)
{
    return engine_read_target(departure, segments, count);
}

void nic_on_fetched(const struct nic_departure *departure, struct instant now)
{
    CHECK(departure->alone && departure->direct.kind == NIC_DIRECT_READ);
    departure->qp->nic->now = now;
    engine_on_fetched(departure->qp, now);
    INVARIANTS(qp_check_duties(departure->qp));
}

void nic_on_placed(const struct nic_departure *departure, struct instant now)
{
    CHECK(departure->alone && departure->direct.kind == NIC_DIRECT_WRITE);
    departure->qp->nic->now = now;
    engine_on_placed(departure->qp, now);
    INVARIANTS(qp_check_duties(departure->qp));
}

void nic_wait_to_place(struct qp *qp)
{
    engine_wait_to_place(qp);
}

/* -- Time ---------------------------------------------------------------------------------------*/

struct instant nic_deadline(const struct nic *nic)
{
    return timer_wheel_deadline(&nic->timers);
}

bool nic_next_overdue(struct nic *nic, struct instant now, struct nic_overdue *overdue)
{
    uint32_t id;
    nic->now = now;
    while ((id = timer_wheel_due(&nic->timers, now)) != TIMER_NONE) {
        struct qp *qp = nic->qps[id];
        timer_wheel_remove(&nic->timers, id, &qp->timer);
        if (!instant_reached(now, engine_deadline(qp))) {
            nic_arm_timer(qp, engine_deadline(qp));
        } else if (engine_on_deadline(qp, now, overdue)) {
            overdue->qp = qp;
            return true;
        }
    }
    return false;
}

void nic_on_unread(struct nic *nic, struct qp *qp, struct instant now)
{
    nic_count(nic, COUNTER_timeouts_unread);
    engine_on_unread(qp, now);
    INVARIANTS(qp_check_duties(qp));
}

void nic_on_timeout(struct nic *nic, struct qp *qp, struct instant now)
{
    nic_count(nic, COUNTER_timeouts);
    nic->now = now;
    engine_on_timeout(qp, now);
    INVARIANTS(qp_check_duties(qp));
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
        /* The address may be wrong: a prefetch of memory that is not there does nothing. */
        const uintptr_t address = (uintptr_t)load_be64(headers + ROCE_BTH_BYTES);
        __builtin_prefetch((const void *)address, 1);
    }
}

void nic_foresee(struct nic *nic, struct qp *qp)
{
    if (nic->last_posted == qp) {
        return; /* Its memory is in a cache already. */
    }
    if (nic->last_posted != NULL && nic->last_posted->successor != qp->number) {
        nic->last_posted->successor = qp->number;
    }
    nic->last_posted = qp;
    const struct qp *next = nic_find_qp(nic, qp->successor);
    if (next == NULL) {
        return;
    }
    /* The call before this one prefetched its first line, so the place of its next request can be
     * read at once. */
    const char *slot = (const char *)send_queue_at(&next->sends, next->sends.tail);
    __builtin_prefetch(slot, 1);
    __builtin_prefetch(slot + 64, 1);
    __builtin_prefetch(next->context, 1);
    const struct qp *after = nic->qps[next->successor & nic->qp_mask];
    if (after != NULL) {
        nic_prefetch_qp(after);
    }
}

/* -- Events and notifications -------------------------------------------------------------------*/

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

/* An XRC target completes to the queues of all SRQs that its messages name, so this cannot tell:
 * the target ends when a completion of its own is lost. */
static bool completes_to(const struct qp *qp, const struct cq *cq)
{
    return qp->receive_cq == cq || (qp->type != QP_XRC_TARGET && qp->send_cq == cq);
}

/* A program cannot rely on a completion queue that has lost a completion, so all queue pairs that
 * complete there end (IBTA 11.6.3.2). Their flushed requests still complete as far as there is
 * room. */
static void end_users(struct nic *nic, const struct cq *cq)
{
    for (uint32_t i = 0; i <= nic->qp_mask; i++) {
        struct qp *qp = nic->qps[i];
        if (qp != NULL && completes_to(qp, cq) && qp->state != QP_RESET && qp->state != QP_ERR) {
            qp_raise(qp, NIC_EVENT_QP_FATAL);
        }
    }
}

bool nic_next_event(struct nic *nic, struct nic_event *event)
{
    *event = (struct nic_event){0};
    /* Errors of completion queues come first, because they cause errors of queue pairs. */
    if (!list_empty(&nic->cqs_with_events)) {
        event->cq = CONTAINER_OF(nic->cqs_with_events.next, struct cq, event_link);
        event->kind = take_event(&event->cq->events, &event->cq->event_link);
        if (event->kind == NIC_EVENT_CQ_ERROR) {
            end_users(nic, event->cq);
        }
        return true;
    }
    if (!list_empty(&nic->qps_with_events)) {
        event->qp = CONTAINER_OF(nic->qps_with_events.next, struct qp, event_link);
        event->kind = take_event(&event->qp->events, &event->qp->event_link);
        if (event->kind == NIC_EVENT_QP_FATAL && event->qp->state != QP_RESET) {
            engine_enter_error(event->qp);
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

bool nic_has_news(const struct nic *nic)
{
    return !list_empty(&nic->cqs_to_notify) || !list_empty(&nic->qps_with_events) ||
           !list_empty(&nic->cqs_with_events) || !list_empty(&nic->srqs_with_events);
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
