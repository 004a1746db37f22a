/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/engine.h"

#include "nic/block/streams.h"
#include "nic/ibta/ecn.h"
#include "nic/ibta/ibta.h"
#include "nic/internal.h"

enum engine engine_of_type(enum qp_type type)
{
    switch (type) {
    case QP_RC:
    case QP_XRC_INITIATOR:
    case QP_XRC_TARGET: return ENGINE_RC;
    case QP_UC: return ENGINE_UC;
    case QP_UD: return ENGINE_UD;
    }
    UNREACHABLE("a type outside its enum");
}

/* -- Life ---------------------------------------------------------------------------------------*/

size_t engine_resources_bytes(uint32_t limit)
{
    return rc_resources_bytes(limit);
}

void engine_start_receiving(struct qp *qp)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: rc_start_receiving(qp); return;
    case ENGINE_BLOCK: block_start_receiving(qp); return;
    case ENGINE_UC: uc_start_receiving(qp); return;
    case ENGINE_UD: ud_start_receiving(qp); return;
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_start_sending(struct qp *qp)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_BLOCK:
    case ENGINE_RC: rc_start_sending(qp); return;
    case ENGINE_UC:
    case ENGINE_UD: unreliable_start_sending(qp); return;
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_retune(struct qp *qp, struct instant now)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: rc_retune(qp, now); return;
    case ENGINE_BLOCK: block_retune(qp, now); return;
    case ENGINE_UC:
    case ENGINE_UD: return; /* They look at the attributes each time. */
    }
    UNREACHABLE("an engine outside its enum");
}

bool engine_may_limit(const struct qp *qp, uint32_t reads)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: return rc_may_limit(qp, reads);
    case ENGINE_BLOCK: return block_may_limit(qp, reads);
    case ENGINE_UC:
    case ENGINE_UD: return true; /* They have neither. */
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_limit(struct qp *qp, uint32_t reads)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: rc_limit(qp, reads); return;
    case ENGINE_BLOCK: block_limit(qp, reads); return;
    case ENGINE_UC:
    case ENGINE_UD: return;
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_drain(struct qp *qp)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: rc_drain(qp); return;
    case ENGINE_BLOCK: block_drain(qp); return;
    case ENGINE_UC:
    case ENGINE_UD: unreliable_drain(qp); return;
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_withdraw(struct qp *qp)
{
    ecn_withdraw(qp);
    switch ((enum engine)qp->engine) {
    case ENGINE_BLOCK: block_withdraw(qp); return;
    case ENGINE_RC:
    case ENGINE_UC:
    case ENGINE_UD: return; /* What is half received lies in the queue pair alone. */
    }
    UNREACHABLE("an engine outside its enum");
}

enum qp_state engine_failed_state(const struct qp *qp)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_BLOCK:
    case ENGINE_RC: return QP_ERR;
    case ENGINE_UC:
    case ENGINE_UD: return QP_SQE;
    }
    UNREACHABLE("an engine outside its enum");
}

/* -- Arrival ------------------------------------------------------------------------------------*/

/* RC that may become blocks: who does not watch pays for a look at one byte. */
static bool rc_watched_on_packet(struct qp *qp, const struct nic_arrival *arrival,
                                 struct instant now, struct nic_move *move)
{
    const bool moves = rc_on_packet(qp, arrival, now, move);
    if (qp->watching != WATCH_NOTHING) {
        block_watch(qp, now);
    }
    return moves;
}

bool engine_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                      struct nic_move *move)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: return rc_watched_on_packet(qp, arrival, now, move);
    case ENGINE_BLOCK: return block_on_packet(qp, arrival, now, move);
    case ENGINE_UC: return uc_on_packet(qp, arrival, now, move);
    case ENGINE_UD: return ud_on_packet(qp, arrival, move);
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_on_cnp(struct qp *qp, const struct nic_arrival *arrival, struct instant now)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_BLOCK: block_on_cnp(qp, arrival, now); return;
    case ENGINE_RC:
    case ENGINE_UC: ecn_on_cnp(qp, arrival, now); return;
    case ENGINE_UD: nic_count(qp->nic, COUNTER_drop_wrong_service); return;
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                     struct instant now)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: rc_on_moved(qp, move, result); return;
    case ENGINE_BLOCK: block_on_moved(qp, move, result, now); return;
    case ENGINE_UC:
    case ENGINE_UD: unreliable_on_moved(qp, move, result); return;
    }
    UNREACHABLE("an engine outside its enum");
}

/* -- Departure ----------------------------------------------------------------------------------*/

bool engine_ready(const struct qp *qp)
{
    if (UNLIKELY(qp->cnp_due)) {
        return true;
    }
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: return rc_ready(qp);
    case ENGINE_BLOCK: return block_ready(qp);
    case ENGINE_UC:
    case ENGINE_UD: return qp_has_sends(qp);
    }
    UNREACHABLE("an engine outside its enum");
}

static bool rc_watched_next_packet(struct qp *qp, struct instant now,
                                   struct nic_departure *departure)
{
    const bool found = rc_next_packet(qp, now, departure);
    if (UNLIKELY(qp->watching == WATCH_ROUND_TRIPS) && found) {
        block_watch_departure(qp, departure, now);
    }
    return found;
}

bool engine_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    if (UNLIKELY(qp->cnp_due)) {
        ecn_next_cnp(qp, departure);
        /* Its time may be why it was listed, and it may leave the list now. */
        qp_arm_timer(qp);
        return true;
    }
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: return rc_watched_next_packet(qp, now, departure);
    case ENGINE_BLOCK: return block_next_packet(qp, now, departure);
    case ENGINE_UC: return uc_next_packet(qp, now, departure);
    case ENGINE_UD: return ud_next_packet(qp, departure);
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_on_gather_failed(struct qp *qp, const struct nic_departure *departure)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: rc_on_gather_failed(qp, departure); return;
    case ENGINE_BLOCK: block_on_gather_failed(qp, departure); return;
    case ENGINE_UC:
    case ENGINE_UD: unreliable_on_gather_failed(qp); return;
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_on_blocked(struct qp *qp, struct instant now)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: rc_on_blocked(qp, now); return;
    case ENGINE_BLOCK: block_on_blocked(qp, now); return;
    case ENGINE_UC:
    case ENGINE_UD: return; /* Nobody waits for an answer. */
    }
    UNREACHABLE("an engine outside its enum");
}

bool engine_read_target(const struct nic_departure *departure, struct segment *segments,
                        uint32_t *count)
{
    switch ((enum engine)departure->qp->engine) {
    case ENGINE_BLOCK:
    case ENGINE_RC: return rc_read_target(departure, segments, count);
    case ENGINE_UC:
    case ENGINE_UD: break;
    }
    UNREACHABLE("an engine that sends no READs");
}

void engine_on_fetched(struct qp *qp, struct instant now)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_BLOCK:
    case ENGINE_RC: rc_on_fetched(qp, now); return;
    case ENGINE_UC:
    case ENGINE_UD: break;
    }
    UNREACHABLE("an engine that sends no READs");
}

void engine_on_placed(struct qp *qp, struct instant now)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_BLOCK:
    case ENGINE_RC: rc_on_placed(qp, now); return;
    case ENGINE_UC:
    case ENGINE_UD: break;
    }
    UNREACHABLE("an engine whose WRITEs are not placed");
}

/* -- Time ---------------------------------------------------------------------------------------*/

static struct instant protocol_deadline(const struct qp *qp)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: return rc_deadline(qp);
    case ENGINE_BLOCK: return block_deadline(qp);
    case ENGINE_UC:
    case ENGINE_UD: return INSTANT_NEVER;
    }
    UNREACHABLE("an engine outside its enum");
}

struct instant engine_deadline(const struct qp *qp)
{
    const struct instant due = protocol_deadline(qp);
    if (LIKELY(!qp->paused)) {
        return due;
    }
    const struct instant paced = ecn_deadline(qp);
    /* The end of a wait for the peer's receives sets nothing going while the rate keeps it back. */
    return rc_waits_for_receives(qp) || instant_before(paced, due) ? paced : due;
}

/* The deadline of a queue pair that pauses: the pause may be over. False: that is all there is. */
static bool paused_on_deadline(struct qp *qp, struct instant now)
{
    if (qp->engine == ENGINE_RC || qp->engine == ENGINE_BLOCK) {
        rc_postpone(qp, now);
    }
    ecn_on_deadline(qp, now);
    if (instant_reached(now, protocol_deadline(qp))) {
        return true;
    }
    qp_arm_timer(qp);
    return false;
}

bool engine_on_deadline(struct qp *qp, struct instant now, struct nic_overdue *overdue)
{
    if (UNLIKELY(qp->paused) && !paused_on_deadline(qp, now)) {
        return false;
    }
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: return rc_on_deadline(qp, overdue);
    case ENGINE_BLOCK: return block_on_deadline(qp, now, overdue);
    case ENGINE_UC:
    case ENGINE_UD: break;
    }
    UNREACHABLE("an engine without deadlines");
}

void engine_on_timeout(struct qp *qp, struct instant now)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC:
        rc_on_timeout(qp, now);
        if (qp->watching != WATCH_NOTHING) {
            block_watch(qp, now);
        }
        return;
    case ENGINE_BLOCK: block_on_timeout(qp, now); return;
    case ENGINE_UC:
    case ENGINE_UD: break;
    }
    UNREACHABLE("an engine without deadlines");
}

void engine_on_unread(struct qp *qp, struct instant now)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: rc_on_unread(qp, now); return;
    case ENGINE_BLOCK: block_on_unread(qp, now); return;
    case ENGINE_UC:
    case ENGINE_UD: break;
    }
    UNREACHABLE("an engine without deadlines");
}

/* -- Looking ------------------------------------------------------------------------------------*/

void engine_query(const struct qp *qp, struct qp_attributes *attributes)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_BLOCK:
    case ENGINE_RC: rc_query(qp, attributes); return;
    case ENGINE_UC:
    case ENGINE_UD: return;
    }
    UNREACHABLE("an engine outside its enum");
}

struct qp_flow engine_flow(const struct qp *qp)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_BLOCK:
    case ENGINE_RC: return rc_flow(qp);
    case ENGINE_UC:
    case ENGINE_UD: break;
    }
    UNREACHABLE("an engine without a flow");
}

void engine_report(const struct qp *qp, struct qp_report *report)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC:
        rc_report(qp, report);
        block_watch_report(qp, report);
        return;
    case ENGINE_BLOCK: block_report(qp, report); return;
    case ENGINE_UC:
    case ENGINE_UD: return;
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_check_duties(const struct qp *qp)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: rc_check_duties(qp); return;
    case ENGINE_BLOCK: block_check_duties(qp); return;
    case ENGINE_UC:
    case ENGINE_UD: unreliable_check_duties(qp); return;
    }
    UNREACHABLE("an engine outside its enum");
}

void engine_check(const struct qp *qp)
{
    switch ((enum engine)qp->engine) {
    case ENGINE_RC: rc_check(qp); return;
    case ENGINE_BLOCK: block_check(qp); return;
    case ENGINE_UC:
    case ENGINE_UD: return;
    }
    UNREACHABLE("an engine outside its enum");
}
