/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_watch - is there trouble? NIC_TRANSPORT_AUTO looks for losses and long round trips of RC.
 *
 * Tens of thousands of connections may speak RC all their lives. So a connection takes no memory
 * for blocks before there is a use for it, and the fields that are read for each packet lie where
 * RC reads anyway. Round trips are measured for a link, not for each queue pair, so that few are
 * measured.
 */
#include "nic/block/block.h"

/* A link is long when the shortest of SAMPLES round trips was; this is believed for STALE_NS. */
#define SAMPLES  8
#define STALE_NS UINT64_C(10000000000)
/* After VAIN_NS without an acknowledgement, another packet is measured, perhaps of another queue
 * pair: the first one is gone, or in trouble. */
#define VAIN_NS UINT64_C(1000000000)

/* A packet is measured as long as samples are missing; the shortest is known once there is one. */
static void trips_check(const struct peer_trips *trips)
{
    CHECK(trips->samples <= SAMPLES);
    CHECK(trips->samples < SAMPLES || trips->qpn == 0);
    CHECK(trips->samples > 0 || trips->shortest_ns == 0);
}

/* -- Observations -------------------------------------------------------------------------------*/

void block_watch_begin(struct qp *qp)
{
    const bool measures = qp->nic->limits.block.auto_round_trip_ns != 0;
    CHECK(qp->type == QP_RC && block_is_spoken(&qp->nic->limits));
    qp->watching = measures ? WATCH_ROUND_TRIPS : WATCH_LOSSES;
    qp->losses = 0;
    qp->resending = false;
}

static bool is_over(struct instant since, uint64_t ns, struct instant now)
{
    return instant_reached(now, instant_after(since, ns));
}

/* Only a new packet is measured. If packets were sent again, an acknowledgement does not say which
 * copy it is for. */
void block_watch_departure(struct qp *qp, const struct nic_departure *departure, struct instant now)
{
    struct nic_peer *peer = nic_peer_of(qp);
    const struct psn psn = psn_of(departure->psn);
    if (peer == NULL || departure->reply || qp->resending ||
        !psn_equal(psn_after(psn, 1), rc_requester_standing(&qp->out.rc).next)) {
        return;
    }
    struct peer_trips *trips = &peer->trips;
    if (trips->samples == SAMPLES && is_over(trips->at, STALE_NS, now)) {
        *trips = (struct peer_trips){0};
    }
    if (trips->samples < SAMPLES && (trips->qpn == 0 || is_over(trips->at, VAIN_NS, now))) {
        trips->qpn = qp->number;
        trips->psn = psn;
        trips->at = now;
    }
    INVARIANTS(trips_check(trips));
}

static void end_sample(struct peer_trips *trips, struct instant now)
{
    const uint64_t took_ns = now.ns - trips->at.ns;
    INVARIANTS(CHECK(trips->qpn != 0 && !instant_before(now, trips->at)));
    trips->shortest_ns =
        trips->samples == 0 || took_ns < trips->shortest_ns ? took_ns : trips->shortest_ns;
    trips->samples++;
    trips->qpn = 0;
    trips->at = now;
    INVARIANTS(trips_check(trips));
}

static void look_at_trips(struct qp *qp, struct psn unacked, struct instant now)
{
    struct nic_peer *peer = nic_peer_of(qp);
    if (peer == NULL) {
        return;
    }
    struct peer_trips *trips = &peer->trips;
    if (trips->qpn == qp->number && psn_distance(trips->psn, unacked) > 0) {
        end_sample(trips, now);
    }
    if (trips->samples == SAMPLES && !is_over(trips->at, STALE_NS, now)) {
        const bool is_long = trips->shortest_ns >= qp->nic->limits.block.auto_round_trip_ns;
        qp->watching = is_long ? WATCH_TROUBLED : WATCH_LOSSES;
    }
}

static void note_loss(struct qp *qp)
{
    const uint32_t limit = qp->nic->limits.block.auto_losses;
    struct nic_peer *peer = nic_peer_of(qp);
    if (peer != NULL && peer->trips.qpn == qp->number) {
        peer->trips.qpn = 0;
    }
    if (++qp->losses >= limit && limit != 0) {
        qp->watching = WATCH_TROUBLED;
    }
}

/* -- Consequences -------------------------------------------------------------------------------*/

bool block_fits(const struct qp *qp)
{
    const struct nic_peer *peer = nic_peer_of(qp);
    return peer != NULL && nic_routes_fit(&peer->routes, qp->mtu_bytes);
}

bool block_may_help(const struct qp *qp, struct instant now)
{
    const struct nic_peer *peer = nic_peer_of(qp);
    return block_fits(qp) && peer->answers && !instant_before(now, peer->silent_until);
}

void block_watch(struct qp *qp, struct instant now)
{
    INVARIANTS(CHECK(qp->watching != WATCH_NOTHING)); /* Else it costs no call. */
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
    if (qp->watching == WATCH_ROUND_TRIPS) {
        look_at_trips(qp, standing.unacked, now);
    }
    if (qp->watching == WATCH_TROUBLED && qp->engine == ENGINE_RC && block_may_help(qp, now)) {
        (void)block_join(qp);
    }
}

void block_watch_report(const struct qp *qp, struct qp_report *report)
{
    if (qp->watching == WATCH_NOTHING) {
        return;
    }
    const struct nic_peer *peer = nic_peer_of(qp);
    report->losses = qp->losses;
    report->round_trip_ns = peer == NULL ? 0 : peer->trips.shortest_ns;
}
