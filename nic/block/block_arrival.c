/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_arrival - frames of the block transport, and the stream that each one is for.
 *
 * A queue pair that does not speak blocks gets no packets of blocks. One that does gets HELLO and
 * WELCOME, and the packets that its peer sends in the session that both agreed on.
 */
#include "nic/block/block.h"

/* Both ECN bits: congestion was experienced. */
#define ECN_MASK 3u

static enum nic_counter counter_of(enum block_verdict verdict)
{
    switch (verdict) {
    case BLOCK_SHORT: return COUNTER_drop_short;
    case BLOCK_UNKNOWN_OPCODE: return COUNTER_drop_unknown_opcode;
    case BLOCK_WRONG_VERSION: return COUNTER_drop_wrong_version;
    case BLOCK_WRONG_PKEY: return COUNTER_drop_wrong_pkey;
    case BLOCK_WRONG_PAD: return COUNTER_drop_wrong_pad;
    case BLOCK_TOO_LONG: return COUNTER_drop_too_long;
    case BLOCK_WRONG_COUNT: return COUNTER_drop_block_count;
    case BLOCK_RESERVED_BITS: return COUNTER_drop_block_reserved;
    case BLOCK_UNKNOWN_FLAGS: return COUNTER_drop_block_flags;
    case BLOCK_UNKNOWN_VALUE: return COUNTER_drop_block_value;
    case BLOCK_OTHER_VERSION: return COUNTER_drop_block_version;
    case BLOCK_GOOD:
    case BLOCK_VERDICT_COUNT: break;
    }
    UNREACHABLE("no counter for a good packet");
}

static bool decode(struct nic *nic, const struct nic_frame *frame, struct instant now,
                   struct block_arrival *arrival)
{
    const enum block_verdict verdict =
        block_decode(frame->headers, frame->headers_bytes, frame->payload, frame->payload_bytes,
                     &arrival->packet);
    if (verdict != BLOCK_GOOD) {
        return nic_drop(nic, counter_of(verdict));
    }
    arrival->source = frame->source;
    arrival->destination = frame->destination;
    arrival->at = frame->arrived.ns == 0 ? now : frame->arrived;
    arrival->marked = (frame->traffic_class & ECN_MASK) == ECN_MASK;
    return true;
}

static void note_arrived(struct nic *nic, const struct block_arrival *arrival)
{
    if (UNLIKELY(arrival->marked)) {
        nic_count(nic, COUNTER_ecn_marked);
    }
    nic_count(nic, COUNTER_rcvd_pkts);
    nic->counters.values[COUNTER_rcvd_bytes] += arrival->packet.payload_bytes;
}

/* -- Is it the peer's, and of which stream? -----------------------------------------------------*/

/* Packets that come back from the responder of our requests. */
static bool is_reply(const struct block_packet *packet)
{
    return packet->opcode == BLOCK_DATA || packet->opcode == BLOCK_ANSWER ||
           packet->opcode == BLOCK_WELCOME;
}

/* As with RC: requests are taken from RTR on, replies from RTS on. A queue pair that has refused a
 * request takes requests in the error state, too, to repeat the refusal. */
static bool state_admits(const struct qp *qp, const struct block_packet *packet)
{
    const bool sends = qp->state == QP_RTS || qp->state == QP_SQD;
    if (is_reply(packet)) {
        return sends;
    }
    return sends || qp->state == QP_RTR || (qp->state == QP_ERR && qp->last_words);
}

/* The stream of the packet was agreed on. */
static bool has_terms(const struct qp *qp, const struct block_packet *packet)
{
    switch ((enum block_opcode)packet->opcode) {
    case BLOCK_HELLO: return false;
    case BLOCK_WELCOME:
    case BLOCK_DATA:
    case BLOCK_ANSWER: return block_sends(qp);
    case BLOCK_SEND:
    case BLOCK_WRITE:
    case BLOCK_READ:
    case BLOCK_ATOMIC:
    case BLOCK_PROBE: return block_receives(qp);
    case BLOCK_CHALLENGE:
    case BLOCK_RESPONSE: return block_sends(qp) || block_receives(qp);
    }
    UNREACHABLE("an opcode that was decoded");
}

/* Before a stream is agreed on, the peer has one address only. */
static bool comes_from_peer(const struct qp *qp, const struct block_arrival *arrival)
{
    const struct nic_av *av = &qp->attributes.av;
    if (LIKELY(reach_is_peer(&av->destination, &arrival->source))) {
        return true;
    }
    const struct nic_peer *peer = nic_peer_of(qp);
    return peer != NULL && has_terms(qp, &arrival->packet) &&
           nic_routes_connect(&peer->routes, av, &arrival->source, &arrival->destination);
}

static bool is_of_requests(const struct qp *qp, const struct block_packet *packet)
{
    return block_sends(qp) && packet->session == qp->block->ask.nonce;
}

static bool is_of_replies(const struct qp *qp, const struct block_packet *packet)
{
    return block_receives(qp) && packet->session == qp->block->answer.nonce;
}

/* HELLO and WELCOME begin sessions, so they need none. */
static bool session_matches(const struct qp *qp, const struct block_packet *packet)
{
    switch ((enum block_opcode)packet->opcode) {
    case BLOCK_HELLO:
    case BLOCK_WELCOME: return true;
    case BLOCK_DATA:
    case BLOCK_ANSWER: return is_of_requests(qp, packet);
    case BLOCK_SEND:
    case BLOCK_WRITE:
    case BLOCK_READ:
    case BLOCK_ATOMIC:
    case BLOCK_PROBE: return is_of_replies(qp, packet);
    case BLOCK_CHALLENGE:
    case BLOCK_RESPONSE: return is_of_requests(qp, packet) || is_of_replies(qp, packet);
    }
    UNREACHABLE("an opcode that was decoded");
}

static bool admits(const struct qp *qp, const struct block_arrival *arrival)
{
    struct nic *nic = qp->nic;
    if (!state_admits(qp, &arrival->packet)) {
        return nic_drop(nic, COUNTER_drop_wrong_state);
    }
    if (!comes_from_peer(qp, arrival)) {
        return nic_drop(nic, COUNTER_drop_wrong_peer);
    }
    return LIKELY(session_matches(qp, &arrival->packet)) ||
           nic_drop(nic, COUNTER_drop_wrong_session);
}

/* A request that contradicts itself is refused when its turn comes (block_receive.c); other packets
 * that contradict themselves are dropped. */
static bool agrees_with_itself(const struct qp *qp, const struct block_packet *packet)
{
    const uint32_t payload_bytes =
        packet->opcode == BLOCK_DATA ? qp->block->sending.payload_bytes : qp->mtu_bytes;
    return block_judge(packet, payload_bytes) == BLOCK_CONSISTENT ||
           nic_drop(qp->nic, COUNTER_drop_block_contradiction);
}

/* -- Arrival ------------------------------------------------------------------------------------*/

static bool deliver(struct qp *qp, const struct block_arrival *arrival, struct instant now,
                    struct nic_move *move)
{
    const struct block_packet *packet = &arrival->packet;
    bool moves = false;
    switch ((enum block_opcode)packet->opcode) {
    case BLOCK_SEND:
    case BLOCK_WRITE:
    case BLOCK_READ:
    case BLOCK_ATOMIC:
    case BLOCK_PROBE:
        if (packet->position == 0) {
            block_challenge_heard(qp);
        }
        moves = block_receive_on_packet(qp, arrival, now, move);
        break;
    case BLOCK_DATA:
        if (agrees_with_itself(qp, packet)) {
            hello_ask_confirm(&qp->block->ask);
            moves = block_send_on_data(qp, arrival, now, move);
        }
        break;
    case BLOCK_ANSWER:
        if (agrees_with_itself(qp, packet)) {
            /* Before a block is executed, a late HELLO may still end the session. */
            if (packet->answer.base != 0) {
                hello_ask_confirm(&qp->block->ask);
            }
            block_challenge_heard(qp);
            block_send_on_answer(qp, arrival, now);
        }
        break;
    case BLOCK_HELLO:
        if (agrees_with_itself(qp, packet)) {
            block_hello_on_hello(qp, arrival);
        }
        break;
    case BLOCK_WELCOME:
        if (agrees_with_itself(qp, packet)) {
            block_hello_on_welcome(qp, arrival, now);
        }
        break;
    case BLOCK_CHALLENGE: block_challenge_on_challenge(qp, arrival); break;
    case BLOCK_RESPONSE: block_challenge_on_response(qp, arrival); break;
    }
    block_went_on(qp, now);
    return moves;
}

/* A HELLO of the peer to a queue pair that could have memory for blocks and has none yet. */
static bool needs_memory(const struct qp *qp, const struct block_arrival *arrival)
{
    return arrival->packet.opcode == BLOCK_HELLO && qp->engine == ENGINE_RC &&
           qp->watching != WATCH_NOTHING && reach_state_serves((enum qp_state)qp->state) &&
           arrival->packet.hello.sender_qpn == qp->attributes.destination_qpn &&
           comes_from_peer(qp, arrival);
}

enum nic_arrived block_on_frame(struct nic *nic, const struct nic_frame *frame, struct instant now,
                                struct nic_move *move)
{
    struct block_arrival arrival;
    if (!decode(nic, frame, now, &arrival)) {
        return NIC_DONE;
    }
    struct qp *qp = nic_find_qp(nic, arrival.packet.destination_qpn);
    note_arrived(nic, &arrival);
    if (qp != NULL && UNLIKELY(needs_memory(qp, &arrival))) {
        (void)block_join(qp);
    }
    if (qp == NULL || qp->engine != ENGINE_RC_OR_BLOCKS) {
        nic_count(nic, qp == NULL ? COUNTER_drop_unknown_qp : COUNTER_drop_unwanted_block);
        return NIC_DONE;
    }
    const bool moves = admits(qp, &arrival) && deliver(qp, &arrival, now, move);
    nic->holder = qp;
    return moves ? NIC_MOVES : NIC_DONE;
}
