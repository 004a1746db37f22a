/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_watch - is there trouble? What NIC_TRANSPORT_AUTO looks for in a stream of RC.
 *
 * Tens of thousands of connections are RC for all their lives. So they have no memory for blocks
 * until there is a use for it, and what is looked at for each packet lies where RC looks anyway.
 */
#include "nic/block/block.h"

/* A round trip is believed to be long when the shortest of so many was. */
#define SAMPLES 8

/* -- What was seen ------------------------------------------------------------------------------*/

void block_watch_begin(struct qp *qp)
{
    const bool measures = qp->nic->limits.block.auto_round_trip_ns != 0;
    qp->watch = (struct block_watch){.shortest_ns = UINT64_MAX};
    qp->watching = measures ? WATCH_ROUND_TRIPS : WATCH_LOSSES;
    qp->resending = false;
}

/* The newest packet is measured, one at a time; what is sent again says nothing of the round trip,
 * and of what was sent before it, one does not know which copy is acknowledged. */
void block_watch_departure(struct qp *qp, const struct nic_departure *departure, struct instant now)
{
    struct block_watch *watch = &qp->watch;
    const struct psn psn = psn_of(departure->psn);
    if (!departure->reply && !watch->measuring && !qp->resending &&
        psn_equal(psn_after(psn, 1), rc_requester_standing(&qp->out.rc).next)) {
        watch->measuring = true;
        watch->psn = psn;
        watch->at = now;
    }
}

static void end_sample(struct qp *qp, struct instant now)
{
    struct block_watch *watch = &qp->watch;
    const uint64_t took_ns = now.ns - watch->at.ns;
    watch->measuring = false;
    if (took_ns < watch->shortest_ns) {
        watch->shortest_ns = took_ns;
    }
    if (++watch->samples == SAMPLES) {
        const bool is_long = watch->shortest_ns >= qp->nic->limits.block.auto_round_trip_ns;
        qp->watching = is_long ? WATCH_TROUBLED : WATCH_LOSSES;
    }
}

static void note_loss(struct qp *qp)
{
    const uint32_t limit = qp->nic->limits.block.auto_losses;
    qp->watch.measuring = false;
    if (++qp->watch.losses >= limit && limit != 0) {
        qp->watching = WATCH_TROUBLED;
    }
}

/* -- What follows from it -----------------------------------------------------------------------*/

/* Who asks gets memory for blocks first. */
static void ask_for_memory(struct qp *qp, struct instant now)
{
    if (qp->engine == ENGINE_RC && block_hello_may_help(qp, now)) {
        qp_raise(qp, NIC_EVENT_WANTS_BLOCKS);
    }
}

void block_watch(struct qp *qp, struct instant now)
{
    if (qp->state != QP_RTS && qp->state != QP_SQD) {
        return;
    }
    const struct rc_standing standing = rc_requester_standing(&qp->out.rc);
    if (LIKELY(qp->watching == WATCH_LOSSES && standing.resending == qp->resending)) {
        return;
    }
    if (standing.resending && !qp->resending) {
        note_loss(qp);
    }
    qp->resending = standing.resending;
    if (qp->watching == WATCH_ROUND_TRIPS && qp->watch.measuring &&
        psn_distance(qp->watch.psn, standing.unacked) > 0) {
        end_sample(qp, now);
    }
    if (qp->watching == WATCH_TROUBLED) {
        ask_for_memory(qp, now);
    }
}
