/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_challenge - does the peer receive at the addresses that it named?
 *
 * All queue pairs of a link share its routes, so any of them may send the challenge that is due.
 * But only a queue pair with a session responds. An answer to a probe of flow control would prove
 * nothing: every nonic sends such answers, also one whose address somebody else has named.
 */
#include "nic/block/block.h"

static void seal(struct qp *qp, enum block_opcode opcode, uint64_t number, uint8_t route,
                 struct nic_departure *departure)
{
    INVARIANTS(CHECK(route < NIC_ROUTES_MAX));
    const struct block_packet packet = {
        .opcode = (uint8_t)opcode,
        .session = block_sends(qp) ? qp->block->ask.nonce : qp->block->answer.nonce,
        .destination_qpn = qp->attributes.destination_qpn,
        .challenge = number,
    };
    block_seal(qp, &packet, departure);
    departure->route = route;
}

static void next_response(struct qp *qp, struct nic_peer *peer, struct nic_departure *departure)
{
    const struct nic_route_challenge response = nic_responses_next(&peer->responses);
    nic_count(qp->nic, COUNTER_challenges_received);
    seal(qp, BLOCK_RESPONSE, response.number, response.route, departure);
}

/* The peer has to know the session before a challenge comes, so HELLO and WELCOME leave first. */
static bool has_session(const struct qp *qp)
{
    const struct block_streams *streams = qp->block;
    return (block_sends(qp) || block_receives(qp)) && !streams->answer.due && !streams->ask.due;
}

bool block_challenge_next(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    struct nic_peer *peer = nic_peer_of(qp);
    if (LIKELY(peer == NULL ||
               (peer->responses.due == 0 && !nic_routes_may_challenge(&peer->routes, now))) ||
        !has_session(qp)) {
        return false;
    }
    if (peer->responses.due != 0) {
        next_response(qp, peer, departure);
        return true;
    }
    struct nic_route_challenge challenge;
    if (!nic_routes_challenge(&peer->routes, now, &challenge)) {
        return false;
    }
    INVARIANTS(block_peer_check(peer));
    INVARIANTS(CHECK(nic_routes_is_named(&peer->routes, challenge.route)));
    nic_count(qp->nic, COUNTER_challenges_sent);
    seal(qp, BLOCK_CHALLENGE, challenge.number, challenge.route, departure);
    return true;
}

void block_challenge_on_challenge(struct qp *qp, const struct block_arrival *arrival)
{
    struct nic_peer *peer = nic_peer_of(qp);
    if (peer == NULL) {
        return;
    }
    INVARIANTS(CHECK(block_sends(qp) || block_receives(qp)));
    nic_routes_owe(&peer->routes, &peer->responses, &qp->attributes.av, &arrival->source,
                   &arrival->destination, arrival->packet.challenge);
    INVARIANTS(block_peer_check(peer));
    nic_schedule(qp);
}

void block_challenge_on_response(struct qp *qp, const struct block_arrival *arrival)
{
    struct nic_peer *peer = nic_peer_of(qp);
    const bool fits =
        peer != NULL && nic_routes_on_response(&peer->routes, arrival->packet.challenge);
    INVARIANTS(peer == NULL ? (void)0 : block_peer_check(peer));
    nic_count(qp->nic, fits ? COUNTER_challenges_proven : COUNTER_drop_stale_response);
}

void block_challenge_heard(const struct qp *qp)
{
    struct nic_peer *peer = nic_peer_of(qp);
    if (peer != NULL) {
        nic_routes_heard(&peer->routes);
    }
}
