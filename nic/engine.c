/* SPDX-License-Identifier: BSD-2-Clause
 *
 * engine - the verbs of the seam as rows, with a function of RC, the block transport, UC and UD
 * each.
 */
#include "nic/engine.h"

#include "nic/block/streams.h"
#include "nic/ibta/ecn.h"
#include "nic/ibta/ibta.h"
#include "nic/srd/srd.h"

/* Calls the function of the queue pair's engine. ASK returns its result; TELL is for verbs without
 * one. */
#define ASK(qp, rc, block, uc, ud, srd, flow)                                                      \
    switch ((enum engine)(qp)->engine) {                                                           \
    case ENGINE_RC: return rc;                                                                     \
    case ENGINE_RC_OR_BLOCKS: return block;                                                        \
    case ENGINE_UC: return uc;                                                                     \
    case ENGINE_UD: return ud;                                                                     \
    case ENGINE_SRD: return srd;                                                                   \
    case ENGINE_FLOW: return flow;                                                                 \
    }                                                                                              \
    UNREACHABLE("an engine outside its enum")

#define TELL(qp, rc, block, uc, ud, srd, flow)                                                     \
    switch ((enum engine)(qp)->engine) {                                                           \
    case ENGINE_RC: rc; return;                                                                    \
    case ENGINE_RC_OR_BLOCKS: block; return;                                                       \
    case ENGINE_UC: uc; return;                                                                    \
    case ENGINE_UD: ud; return;                                                                    \
    case ENGINE_SRD: srd; return;                                                                  \
    case ENGINE_FLOW: flow; return;                                                                \
    }                                                                                              \
    UNREACHABLE("an engine outside its enum")

#define NOTHING ((void)0)
/* The NIC never calls this verb of such an engine. */
#define NEVER UNREACHABLE("an engine that does not do this")

enum engine engine_of_type(enum qp_type type)
{
    switch (type) {
    case QP_RC:
    case QP_XRC_INITIATOR:
    case QP_XRC_TARGET: return ENGINE_RC;
    case QP_UC: return ENGINE_UC;
    case QP_UD: return ENGINE_UD;
    case QP_SRD: return ENGINE_SRD;
    }
    UNREACHABLE("a type outside its enum");
}

/* -- Memory -------------------------------------------------------------------------------------*/

size_t engine_nic_bytes(const struct nic_limits *limits)
{
    return rc_nic_bytes(limits) + block_nic_bytes(limits) + srd_nic_bytes(limits);
}

void engine_nic_init(struct nic *nic, void *memory)
{
    rc_nic_init(nic, memory);
    uint8_t *at = (uint8_t *)memory + rc_nic_bytes(&nic->limits);
    block_nic_init(nic, at);
    srd_nic_init(nic, at + block_nic_bytes(&nic->limits));
}

bool engine_make_room(struct qp *qp, uint32_t reads)
{
    ASK(qp, rc_make_room(qp, reads), rc_make_room(qp, reads), (NEVER, false), (NEVER, false),
        (NEVER, false), (NEVER, false));
}

/* -- Life ---------------------------------------------------------------------------------------*/

void engine_start_receiving(struct qp *qp)
{
    if (qp->type == QP_RC) {
        block_start_watching(qp);
    }
    TELL(qp, rc_start_receiving(qp), rc_start_receiving(qp), uc_start_receiving(qp),
         ud_start_receiving(qp), NOTHING, NEVER);
}

void engine_start_sending(struct qp *qp)
{
    TELL(qp, rc_start_sending(qp), rc_start_sending(qp), unreliable_start_sending(qp),
         unreliable_start_sending(qp), NOTHING, NEVER);
}

/* UC and UD read the attributes each time that they need them. */
void engine_retune(struct qp *qp, struct instant now)
{
    TELL(qp, rc_retune(qp, now), block_retune(qp, now), NOTHING, NOTHING, NOTHING, NEVER);
}

bool engine_may_limit(const struct qp *qp, uint32_t reads)
{
    ASK(qp, rc_may_limit(qp, reads), block_may_limit(qp, reads), true, true, true, (NEVER, false));
}

void engine_limit(struct qp *qp, uint32_t reads)
{
    TELL(qp, rc_limit(qp, reads), block_limit(qp, reads), NOTHING, NOTHING, NOTHING, NEVER);
}

void engine_drain(struct qp *qp)
{
    TELL(qp, rc_drain(qp), block_drain(qp), unreliable_drain(qp), unreliable_drain(qp),
         srd_drain(qp), NEVER);
}

/* UC and UD have no memory to give back: a message that came in part is state of the queue pair. */
static void withdraw(struct qp *qp)
{
    TELL(qp, rc_withdraw(qp), block_leave(qp), NOTHING, NOTHING, srd_withdraw(qp), NEVER);
}

void engine_withdraw(struct qp *qp)
{
    qp_forget_congestion(qp);
    qp->watching = WATCH_NOTHING;
    withdraw(qp);
}

void engine_enter_error(struct qp *qp)
{
    TELL(qp, qp_enter_error(qp), block_enter_error(qp), qp_enter_error(qp), qp_enter_error(qp),
         srd_enter_error(qp), NEVER);
}

/* -- Arrival ------------------------------------------------------------------------------------*/

/* RC that may become blocks: a queue pair that does not watch pays for a look at one byte. */
static bool rc_watched_on_packet(struct qp *qp, const struct nic_arrival *arrival,
                                 struct instant now, struct nic_move *move)
{
    const bool moves = rc_on_packet(qp, arrival, now, move);
    if (qp->watching != WATCH_NOTHING) {
        block_watch(qp, now);
    }
    return moves;
}

/* A packet of RoCE that names a queue pair of SRD. */
static bool wrong_service(struct qp *qp)
{
    return nic_drop(qp->nic, COUNTER_drop_wrong_service);
}

bool engine_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                      struct nic_move *move)
{
    ASK(qp, rc_watched_on_packet(qp, arrival, now, move), block_on_packet(qp, arrival, now, move),
        uc_on_packet(qp, arrival, now, move), ud_on_packet(qp, arrival, move), wrong_service(qp),
        wrong_service(qp));
}

bool engine_on_plain_frame(struct nic *nic, const struct nic_frame *frame, struct instant now,
                           struct nic_move *move, bool *moves)
{
    return rc_short_on_packet(nic, frame, now, move, moves);
}

bool engine_on_piggyback(struct nic *nic, const struct nic_frame *frame, struct instant now)
{
    return rc_short_on_piggyback(nic, frame, now);
}

enum nic_arrived engine_on_frame(struct nic *nic, const struct nic_frame *frame, struct instant now,
                                 struct nic_move *move)
{
    return block_on_frame(nic, frame, now, move);
}

enum nic_arrived engine_on_srd_frame(struct nic *nic, const struct nic_frame *frame,
                                     struct instant now, struct nic_move *move)
{
    return srd_on_frame(nic, frame, now, move);
}

void engine_on_cnp(struct qp *qp, const struct nic_arrival *arrival, struct instant now)
{
    TELL(qp, ecn_on_cnp(qp, arrival, now), block_on_cnp(qp, arrival, now),
         ecn_on_cnp(qp, arrival, now), nic_count(qp->nic, COUNTER_drop_wrong_service),
         (void)wrong_service(qp), (void)wrong_service(qp));
}

/* A move of blocks may finish after its queue pair was reset and speaks no blocks any more. */
static void rc_or_voided_on_moved(struct qp *qp, const struct nic_move *move,
                                  enum nic_move_result result)
{
    if (UNLIKELY(move->epoch != qp->epoch)) {
        block_void_move(qp->nic, move);
    }
    rc_on_moved(qp, move, result);
}

void engine_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                     struct instant now)
{
    TELL(qp, rc_or_voided_on_moved(qp, move, result), block_on_moved(qp, move, result, now),
         unreliable_on_moved(qp, move, result), unreliable_on_moved(qp, move, result), NEVER,
         srd_on_moved(qp, move, result, now));
}

bool engine_next_held(struct qp *qp, struct nic_move *move)
{
    ASK(qp, false, block_next_held(qp, move), false, false, false, false);
}

/* -- Departure ----------------------------------------------------------------------------------*/

static bool ready(const struct qp *qp)
{
    ASK(qp, rc_ready(qp), block_ready(qp), qp_has_sends(qp), qp_has_sends(qp), srd_has_posts(qp),
        srd_flow_ready(qp));
}

bool engine_ready(const struct qp *qp)
{
    return UNLIKELY(qp->cnp_due) || ready(qp);
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

/* Its carriers send. */
static bool hand_over(struct qp *qp, struct instant now)
{
    srd_hand_over(qp, now);
    return false;
}

uint32_t engine_destination(const struct qp *qp)
{
    return SRD_PORT_OF(CONTAINER_OF_CONST(qp, struct srd_peer, qp)->source.slot);
}

/* The port's challenges go to an address each. */
const struct nic_av *engine_carrier_av(const struct qp *qp)
{
    return srd_is_port(qp) ? NULL : &qp->attributes.av;
}

void engine_carrier_by_ring(struct qp *qp, bool by_ring)
{
    const struct srd_shared *shared = qp->nic->srd;
    srd_sender_use(&CONTAINER_OF(qp, struct srd_peer, qp)->sender,
                   by_ring ? &shared->ring_policy : &shared->policy);
}

bool engine_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    if (UNLIKELY(qp->cnp_due)) {
        ecn_next_cnp(qp, departure);
        /* It may be listed because its deadline had passed, and may leave the list now. */
        nic_arm_timer(qp, engine_deadline(qp));
        return true;
    }
    ASK(qp, rc_watched_next_packet(qp, now, departure), block_next_packet(qp, now, departure),
        uc_next_packet(qp, now, departure), ud_next_packet(qp, departure), hand_over(qp, now),
        srd_flow_next(qp, now, departure));
}

void engine_on_gather_failed(struct qp *qp, const struct nic_departure *departure)
{
    TELL(qp, rc_on_gather_failed(qp, departure), block_on_gather_failed(qp, departure),
         unreliable_on_gather_failed(qp), unreliable_on_gather_failed(qp), NEVER,
         srd_flow_on_gather_failed(qp, departure));
}

/* Nobody waits for an answer to UC and UD. */
void engine_on_blocked(struct qp *qp, struct instant now)
{
    TELL(qp, rc_on_blocked(qp, now), block_on_blocked(qp, now), NOTHING, NOTHING, NOTHING, NOTHING);
}

bool engine_read_target(const struct nic_departure *departure, struct segment *segments,
                        uint32_t *count)
{
    ASK(departure->qp, rc_read_target(departure, segments, count),
        rc_read_target(departure, segments, count), (NEVER, false), (NEVER, false), (NEVER, false),
        (NEVER, false));
}

void engine_on_fetched(struct qp *qp, struct instant now)
{
    TELL(qp, rc_on_fetched(qp, now), block_on_fetched(qp, now), NEVER, NEVER, NEVER, NEVER);
}

void engine_on_placed(struct qp *qp, struct instant now)
{
    TELL(qp, rc_on_placed(qp, now), block_on_placed(qp, now), NEVER, NEVER, NEVER, NEVER);
}

void engine_wait_to_place(struct qp *qp)
{
    TELL(qp, rc_wait_to_place(qp), NOTHING, NEVER, NEVER, NEVER, NEVER);
}

/* -- Time ---------------------------------------------------------------------------------------*/

static struct instant protocol_deadline(const struct qp *qp)
{
    ASK(qp, rc_deadline(qp), block_deadline(qp), INSTANT_NEVER, INSTANT_NEVER, INSTANT_NEVER,
        srd_flow_deadline(qp));
}

struct instant engine_deadline(const struct qp *qp)
{
    return ibta_deadline(qp, protocol_deadline(qp));
}

/* The deadline of a queue pair that pauses: the pause may be over. False: the protocol's own
 * deadline has not come. */
static bool paused_on_deadline(struct qp *qp, struct instant now)
{
    if (qp->engine == ENGINE_RC || qp->engine == ENGINE_RC_OR_BLOCKS) {
        rc_postpone(qp, now);
    }
    ecn_on_deadline(qp, now);
    if (instant_reached(now, protocol_deadline(qp))) {
        return true;
    }
    nic_arm_timer(qp, engine_deadline(qp));
    return false;
}

static bool flow_on_deadline(struct qp *qp, struct instant now)
{
    srd_flow_on_deadline(qp, now);
    return false;
}

bool engine_on_deadline(struct qp *qp, struct instant now, struct nic_overdue *overdue)
{
    if (UNLIKELY(qp->paused) && !paused_on_deadline(qp, now)) {
        return false;
    }
    ASK(qp, rc_on_deadline(qp, overdue), block_on_deadline(qp, now, overdue), (NEVER, false),
        (NEVER, false), (NEVER, false), flow_on_deadline(qp, now));
}

static void rc_watched_on_timeout(struct qp *qp, struct instant now)
{
    rc_on_timeout(qp, now);
    if (qp->watching != WATCH_NOTHING) {
        block_watch(qp, now);
    }
}

void engine_on_timeout(struct qp *qp, struct instant now)
{
    TELL(qp, rc_watched_on_timeout(qp, now), block_on_timeout(qp, now), NEVER, NEVER, NEVER, NEVER);
}

void engine_on_unread(struct qp *qp, struct instant now)
{
    TELL(qp, rc_on_unread(qp, now), block_on_unread(qp, now), NEVER, NEVER, NEVER, NEVER);
}

/* -- Reports and checks -------------------------------------------------------------------------*/

void engine_query(const struct qp *qp, struct qp_attributes *attributes)
{
    TELL(qp, rc_query(qp, attributes), rc_query(qp, attributes), NOTHING, NOTHING, NOTHING, NEVER);
}

struct qp_flow engine_flow(const struct qp *qp)
{
    ASK(qp, rc_flow(qp), rc_flow(qp), (NEVER, (struct qp_flow){0}), (NEVER, (struct qp_flow){0}),
        (NEVER, (struct qp_flow){0}), (NEVER, (struct qp_flow){0}));
}

static void rc_watched_report(const struct qp *qp, struct qp_report *report)
{
    rc_report(qp, report);
    block_watch_report(qp, report);
}

void engine_report(const struct qp *qp, struct qp_report *report)
{
    TELL(qp, rc_watched_report(qp, report), block_report(qp, report), NOTHING, NOTHING, NOTHING,
         NEVER);
}

void engine_check_duties(const struct qp *qp)
{
    ecn_check_duties(qp);
    TELL(qp, rc_check_duties(qp), block_check_duties(qp), unreliable_check_duties(qp),
         unreliable_check_duties(qp), srd_check_duties(qp), NOTHING);
}

void engine_check(const struct qp *qp)
{
    TELL(qp, rc_check(qp), block_check(qp), NOTHING, NOTHING, NOTHING, srd_flow_check(qp));
}
