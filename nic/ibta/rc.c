/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc - a reliable connection's life, time and completions; rc_receive.c has its packets that
 * arrive, rc_send.c those that leave.
 *
 * Source: IBTA Vol. 1, 9.7.6 (retries), 9.9 (errors), 10.3.1 (states).
 */
#include "base/align.h"
#include "nic/ibta/ecn.h"
#include "nic/ibta/ibta.h"
#include "transport/common/timing.h"

static bool sends(const struct qp *qp)
{
    return qp->state == QP_RTS || qp->state == QP_SQD;
}

/* -- Turns and time -----------------------------------------------------------------------------*/

bool rc_ready(const struct qp *qp)
{
    return qp_has_sends(qp) || rc_responder_ready(&qp->in.rc);
}

void rc_schedule_if_due(struct qp *qp)
{
    if (UNLIKELY(qp->engine == ENGINE_RC_OR_BLOCKS)) {
        qp->asks_turn = true; /* Only block.c knows which stream has something. */
    } else if (qp->cnp_due || rc_ready(qp)) {
        nic_schedule(qp);
    }
}

struct instant rc_deadline(const struct qp *qp)
{
    return sends(qp) ? rc_requester_deadline(&qp->out.rc) : INSTANT_NEVER;
}

static bool waits_for_receives(const struct qp *qp)
{
    return qp->type != QP_UC && sends(qp) && rc_requester_pauses(&qp->out.rc);
}

struct instant rc_paced_deadline(const struct qp *qp, struct instant due)
{
    const struct instant paced = ecn_deadline(qp);
    return waits_for_receives(qp) || instant_before(paced, due) ? paced : due;
}

void rc_arm_timer(struct qp *qp)
{
    /* Mostly it is set, and for an earlier time. */
    if (LIKELY(timer_is_set(&qp->timer) && !qp->paused && !rc_requester_pauses(&qp->out.rc) &&
               !instant_before(qp->out.rc.retry_at, qp->timer.at))) {
        return;
    }
    nic_arm_timer(qp, ibta_deadline(qp, rc_deadline(qp)));
}

/* -- Life ---------------------------------------------------------------------------------------*/

/* One piece more than queue pairs: while a queue pair gets a larger piece, it has two. */
static uint64_t reads_of(const struct nic_limits *limits)
{
    return limits->reads != 0
               ? limits->reads
               : (limits->qps + UINT64_C(1)) * rc_resource_entries(limits->reads_per_qp);
}

size_t rc_nic_bytes(const struct nic_limits *limits)
{
    return line_aligned(reads_of(limits) * sizeof(struct rc_resource));
}

void rc_nic_init(struct nic *nic, void *memory)
{
    nic->limits.reads = (uint32_t)reads_of(&nic->limits);
    pool_init(&nic->reads, sizeof(struct rc_resource), memory,
              nic->limits.reads * sizeof(struct rc_resource));
}

/* The order (nic/pool.h) of a responder's piece of memory. */
static uint32_t order_of(uint32_t entries)
{
    return (uint32_t)__builtin_ctz(entries);
}

static uint32_t room_of(const struct rc_responder *responder)
{
    return responder->resources == NULL ? 0 : responder->resource_mask + 1u;
}

static void give_room(struct nic *nic, const struct rc_responder *responder)
{
    if (responder->resources != NULL) {
        pool_give(&nic->reads, order_of(room_of(responder)), responder->resources);
    }
}

bool rc_make_room(struct qp *qp, uint32_t reads)
{
    struct rc_responder *responder = &qp->in.rc;
    const uint32_t entries = rc_resource_entries(reads);
    if (reads == 0 || entries <= room_of(responder)) {
        return true;
    }
    struct rc_resource *more = pool_take(&qp->nic->reads, order_of(entries));
    if (more == NULL) {
        return nic_drop(qp->nic, COUNTER_reads_no_memory);
    }
    const struct rc_responder before = *responder;
    rc_responder_move(responder, reads, more);
    give_room(qp->nic, &before);
    return true;
}

void rc_withdraw(struct qp *qp)
{
    const struct psn expected = qp->in.rc.expected;
    give_room(qp->nic, &qp->in.rc);
    qp->in.rc = (struct rc_responder){.expected = expected, .moved = expected};
}

void rc_start_receiving(struct qp *qp)
{
    const struct qp_attributes *attributes = &qp->attributes;
    qp->mtu_bytes = (uint16_t)path_mtu_bytes((enum path_mtu)attributes->path_mtu);
    rc_responder_init(&qp->in.rc, psn_of(attributes->psn.receive), qp->mtu_bytes,
                      attributes->max_reads_in, qp->in.rc.resources);
}

static struct rc_requester_config config_of(const struct qp *qp)
{
    const struct qp_attributes *attributes = &qp->attributes;
    return (struct rc_requester_config){
        .first_psn = psn_of(attributes->psn.send),
        .mtu_bytes = qp->mtu_bytes,
        .window_bytes = attributes->av.window_bytes,
        .retry_limit = attributes->retry_count,
        .rnr_limit = attributes->rnr_retry,
        .reads_max = attributes->max_reads_out,
        .timeout_code = attributes->timeout,
        .policy = &qp->nic->limits.rc,
    };
}

void rc_start_sending(struct qp *qp)
{
    const struct rc_requester_config config = config_of(qp);
    rc_requester_init(&qp->out.rc, &config);
}

void rc_retune(struct qp *qp, struct instant now)
{
    const struct rc_requester_config config = config_of(qp);
    rc_requester_retune(&qp->out.rc, &config);
    /* If the timeout was off, the packets in flight have no timer yet. */
    const struct rc_standing standing = rc_requester_standing(&qp->out.rc);
    if (!psn_equal(standing.unacked, standing.next)) {
        rc_requester_blocked(&qp->out.rc, now);
    }
    rc_arm_timer(qp);
}

bool rc_may_limit(const struct qp *qp, uint32_t reads)
{
    return rc_responder_may_limit(&qp->in.rc, reads);
}

void rc_limit(struct qp *qp, uint32_t reads)
{
    rc_responder_set_limit(&qp->in.rc, reads);
}

/* -- Departure ----------------------------------------------------------------------------------*/

/* Is a request in flight, or does one wait to leave? While the queue drains, only requests that
 * have begun count: the connection does not give up because of the others. */
static bool waits(const struct qp *qp)
{
    const struct rc_standing standing = rc_requester_standing(&qp->out.rc);
    return !psn_equal(standing.unacked, standing.next) ||
           (qp_has_sends(qp) &&
            (qp->state == QP_RTS || send_queue_at(&qp->sends, qp->sends.next)->started));
}

void rc_on_blocked(struct qp *qp, struct instant now)
{
    if (qp_has_sends(qp) && sends(qp) && waits(qp)) {
        rc_requester_blocked(&qp->out.rc, now);
        rc_arm_timer(qp);
    }
}

/* -- Time ---------------------------------------------------------------------------------------*/

bool rc_on_deadline(struct qp *qp, struct nic_overdue *overdue)
{
    struct rc_requester *requester = &qp->out.rc;
    if (rc_requester_pauses(requester)) {
        nic_schedule(qp);
        return false;
    }
    if (!waits(qp)) {
        /* The timer began when the link had no room for a request that may not begin now. */
        rc_requester_relax(requester);
        return false;
    }
    overdue->since = rc_requester_waits_since(requester);
    overdue->last = rc_requester_last_try(requester);
    return true;
}

void rc_postpone(struct qp *qp, struct instant now)
{
    if (sends(qp)) {
        rc_requester_postpone(&qp->out.rc, now);
    }
}

void rc_on_unread(struct qp *qp, struct instant now)
{
    rc_requester_wait_on(&qp->out.rc, now);
    rc_arm_timer(qp);
}

void rc_on_timeout(struct qp *qp, struct instant now)
{
    const struct rc_progress progress = rc_requester_on_time(&qp->out.rc, &qp->sends, now);
    if (progress.verdict == RC_FAILED) {
        nic_count(qp->nic, COUNTER_retry_exceeded_err);
        rc_fail_in_turn(qp, progress.work, progress.status);
        return;
    }
    nic_count(qp->nic, COUNTER_completer_retry_err);
    nic_schedule(qp);
    rc_arm_timer(qp);
}

/* -- Completing ---------------------------------------------------------------------------------*/

void rc_fail_in_turn(struct qp *qp, struct work *work, enum completion_status status)
{
    if (work == NULL) {
        qp_fail_work(qp, NULL, status);
        return;
    }
    work->status = (uint8_t)status;
    rc_collect(qp);
}

void rc_collect(struct qp *qp)
{
    struct work *work;
    while ((work = rc_requester_completed(&qp->out.rc, &qp->sends)) != NULL &&
           work->status == COMPLETION_SUCCESS) {
        qp_complete_work(qp, work, COMPLETION_SUCCESS);
    }
    if (!qp_fail_oldest(qp) && qp->state == QP_SQD &&
        rc_requester_drained(&qp->out.rc, &qp->sends)) {
        qp_note_drained(qp);
    }
}

void rc_drain(struct qp *qp)
{
    rc_collect(qp);
    if (qp->state == QP_SQD && rc_requester_ask(&qp->out.rc, &qp->sends)) {
        nic_schedule(qp);
    }
}

void rc_go_on(struct qp *qp)
{
    rc_collect(qp);
    if (qp->state != QP_ERR) {
        rc_arm_timer(qp);
        rc_schedule_if_due(qp);
    }
}

/* -- Reports and checks -------------------------------------------------------------------------*/

void rc_query(const struct qp *qp, struct qp_attributes *attributes)
{
    if (qp->state < QP_RTR || qp->state == QP_ERR) {
        return;
    }
    attributes->psn.receive = rc_responder_expected(&qp->in.rc).value;
    if (qp->state != QP_RTR) {
        attributes->psn.send = rc_requester_standing(&qp->out.rc).next.value;
    }
}

void rc_report(const struct qp *qp, struct qp_report *report)
{
    if (sends(qp)) {
        const struct rc_load load = rc_requester_load(&qp->out.rc, &qp->sends);
        report->window_bytes = load.window_bytes;
        report->flight_bytes = load.flight_bytes;
        report->pauses = rc_requester_standing(&qp->out.rc).pauses;
    }
}

struct qp_flow rc_flow(const struct qp *qp)
{
    const struct rc_standing standing = rc_requester_standing(&qp->out.rc);
    return (struct qp_flow){
        .next = standing.next,
        .unacked = standing.unacked,
        .expected = rc_responder_expected(&qp->in.rc),
        .resending = standing.resending,
    };
}
