/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ecn - congestion notification of connected queue pairs: a queue pair that receives packets with a
 * router's mark answers with a CNP, and one that receives a CNP sends more slowly.
 *
 * The state for this lies in struct nic, not in the queue pair, because most queue pairs never need
 * it: a packet without a mark, of a queue pair that is not limited, costs a look at one bit.
 *
 * Source: IBTA Annex A17.9 (RoCEv2's congestion management); docs/decisions/0036.
 */
#include "nic/ibta/ecn.h"

#include "nic/ibta/ibta.h"
#include "nic/reach.h"

/* The BTH's BECN bit. The annex has receivers ignore it; RoCE hardware sets it in CNPs. */
#define BTH_BECN 0x40

/* The bytes that a packet has on the wire beside its payload, roughly: Ethernet 38, IP 20, UDP 8,
 * BTH 12, ICRC 4. */
#define PACKET_BYTES 82

/* Before a pause of at least this length, a packet asks for an acknowledgement, because the
 * transport timer runs during the pause. Of shorter pauses, many packets share one request for an
 * acknowledgement (rc_requester). */
#define LONG_PAUSE_NS 20000

static struct ecn_state *state_of(const struct qp *qp)
{
    return &qp->nic->ecn[qp_timer_id(qp)];
}

static const struct dcqcn_policy *policy_of(const struct qp *qp)
{
    return &qp->nic->limits.dcqcn;
}

/* -- Notification point -------------------------------------------------------------------------*/

/* A packet that is smaller than a CNP gets none: a forged packet must not make us send more bytes
 * than it has, and such small packets are no congestion. */
static bool is_smaller_than_cnp(const struct roce_packet *packet)
{
    return roce_opcode(packet->opcode)->headers_bytes + packet->payload_bytes + packet->pad_bytes <
           roce_opcode(ROCE_OPCODE_CNP)->headers_bytes;
}

void ecn_on_marked(struct qp *qp, const struct nic_arrival *arrival, struct instant now)
{
    struct ecn_state *state = state_of(qp);
    nic_count(qp->nic, COUNTER_np_ecn_marked_roce_packets);
    if (!instant_reached(now, state->cnp_allowed_at) || is_smaller_than_cnp(&arrival->packet)) {
        return;
    }
    state->cnp_allowed_at = instant_after(now, policy_of(qp)->cnp_ns);
    qp->cnp_due = true;
    nic_schedule(qp);
}

void ecn_next_cnp(struct qp *qp, struct nic_departure *departure)
{
    struct roce_packet *packet = &qp->nic->departing;
    qp->cnp_due = false;
    departure_start(qp, departure, ROCE_OPCODE_CNP, psn_of(0));
    packet->migration_request = false;
    packet->byte4 = BTH_BECN;
    packet->destination_qpn = qp->attributes.destination_qpn;
    departure->av = &qp->attributes.av;
    departure->ecn = NIC_ECN_NOT;
    departure_seal(qp, departure);
    nic_count(qp->nic, COUNTER_np_cnp_sent);
}

/* -- Reaction point -----------------------------------------------------------------------------*/

void ecn_on_cnp(struct qp *qp, const struct nic_arrival *arrival, struct instant now)
{
    if (!reach_state_serves((enum qp_state)qp->state)) {
        nic_count(qp->nic, COUNTER_drop_wrong_state);
    } else if (!reach_is_peer(&qp->attributes.av.destination, &arrival->source)) {
        nic_count(qp->nic, COUNTER_drop_wrong_peer);
    } else if (!dcqcn_on_cnp(&state_of(qp)->limiter, policy_of(qp), now)) {
        nic_count(qp->nic, COUNTER_rp_cnp_ignored);
    } else {
        nic_count(qp->nic, COUNTER_rp_cnp_handled);
        qp->limited = true;
        if (qp->paused) { /* The end of the pause may have changed. */
            qp->paused = false;
            nic_schedule(qp);
        }
    }
}

bool ecn_holds_back(struct qp *qp, struct instant now)
{
    struct dcqcn *limiter = &state_of(qp)->limiter;
    qp->limited = dcqcn_limits(limiter, policy_of(qp), now);
    qp->paused = qp->limited && !instant_reached(now, dcqcn_due(limiter));
    if (qp->paused) {
        nic_arm_timer(qp, ecn_deadline(qp));
    }
    return qp->paused;
}

bool ecn_on_sent(struct qp *qp, uint32_t payload_bytes, struct instant now)
{
    struct dcqcn *limiter = &state_of(qp)->limiter;
    dcqcn_on_sent(limiter, policy_of(qp), payload_bytes + PACKET_BYTES, now);
    qp->limited = dcqcn_rate(limiter) != 0;
    return qp->limited && !instant_reached(instant_after(now, LONG_PAUSE_NS), dcqcn_due(limiter));
}

struct instant ecn_deadline(const struct qp *qp)
{
    return dcqcn_due(&state_of(qp)->limiter);
}

void ecn_on_deadline(struct qp *qp, struct instant now)
{
    if (instant_reached(now, ecn_deadline(qp))) {
        qp->paused = false;
        nic_schedule(qp);
    }
}

/* -- Both ---------------------------------------------------------------------------------------*/

uint64_t ecn_rate(const struct qp *qp)
{
    return qp->limited ? dcqcn_rate(&state_of(qp)->limiter) : 0;
}

/* A queue pair that owes a CNP is listed. One that pauses is listed, or has a timer that fires no
 * later than the end of the pause. */
void ecn_check_duties(const struct qp *qp)
{
    const bool listed = qp->listing != QP_LISTED_NOWHERE || qp->nic->turns_taken;
    CHECK(!qp->cnp_due || listed);
    CHECK(!qp->cnp_due || reach_state_serves((enum qp_state)qp->state));
    CHECK(!qp->paused || qp->limited);
    if (qp->limited) {
        const struct dcqcn *limiter = &state_of(qp)->limiter;
        CHECK(reach_state_serves((enum qp_state)qp->state));
        CHECK(dcqcn_rate(limiter) != 0);
        dcqcn_check(limiter, policy_of(qp));
        CHECK(!qp->paused || listed ||
              (timer_is_set(&qp->timer) && !instant_before(dcqcn_due(limiter), qp->timer.at)));
    }
}
