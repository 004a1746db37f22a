/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_check - invariants of the objects of this folder, one function for each kind.
 */
#include "base/align.h"
#include "nic/block/block_receiver.h"

/* -- Streams ------------------------------------------------------------------------------------*/

/* The question whether our requests become blocks. A HELLO that is due has no time to wait for, and
 * it names addresses of the link, so there is one. */
static void ask_check(const struct qp *qp)
{
    const struct hello_ask *ask = &qp->block->ask;
    const bool open = ask->state != HELLO_NOT_ASKED && !ask->confirmed;
    CHECK(ask->state <= HELLO_AGREED);
    CHECK(open || !ask->due);
    CHECK(!open || ask->due == (ask->next.ns == UINT64_MAX));
    CHECK(ask->clock_runs || ask->sent == 0);
    CHECK(ask->state == HELLO_AGREED || !ask->confirmed);
    CHECK(ask->state == HELLO_NOT_ASKED || !qp->block->stays_rc);
    CHECK((ask->state != HELLO_ASKED && !ask->due) || nic_peer_of(qp) != NULL);
    CHECK(ask->state != HELLO_ASKED || rc_requester_drained(&qp->out.rc, &qp->sends));
    CHECK(qp->state != QP_ERR || ask->state == HELLO_NOT_ASKED);
}

/* The terms are those of the session that both ends agreed on. */
static void terms_check(const struct qp *qp, const struct block_terms *terms, uint32_t session)
{
    const struct block_limits *limits = &qp->nic->limits.block;
    CHECK(terms->session == session);
    CHECK(terms->window >= 1 && terms->window <= limits->window);
    CHECK(terms->reads <= limits->reads);
    CHECK(terms->path_count <= limits->paths);
    CHECK(terms->payload_bytes >= qp->mtu_bytes &&
          terms->payload_bytes <= block_payload_most(&qp->nic->limits));
}

/* The peer's session. A refused session still answers in the error state. */
static void answer_check(const struct qp *qp)
{
    const struct block_streams *streams = qp->block;
    const struct hello_answer *answer = &streams->answer;
    const struct block_receiver *receiver = streams->receiver;
    CHECK(answer->session || !answer->due);
    CHECK(!answer->due || nic_peer_of(qp) != NULL);
    CHECK(qp->state != QP_ERR || !answer->session || qp->last_words);
    if (!answer->session) {
        return;
    }
    terms_check(qp, &streams->receiving, answer->nonce);
    CHECK(receiver->stream.session == answer->nonce);
    CHECK(receiver->stream.chain.owner == qp->number);
    CHECK(receiver->path_count == streams->receiving.path_count);
    CHECK(streams->receiving.shared_receives == qp->shares);
}

void block_streams_check(const struct qp *qp)
{
    const struct block_streams *streams = qp->block;
    CHECK(qp->engine == ENGINE_RC_OR_BLOCKS && block_is_spoken(&qp->nic->limits));
    CHECK((uint8_t *)streams->sender == (uint8_t *)qp->block + line_aligned(sizeof(*streams)));
    CHECK((uint8_t *)streams->receiver ==
          (uint8_t *)streams->sender + block_send_bytes(&qp->nic->limits));
    ask_check(qp);
    answer_check(qp);
    if (block_sends(qp)) {
        terms_check(qp, &streams->sending, streams->ask.nonce);
        CHECK(streams->ask.sent > 0 && streams->sending.trip_ns > 0);
    }
}

/* -- The peer's stream --------------------------------------------------------------------------*/

/* The receives that messages have taken from a shared queue: each message has one. */
static void taken_check(const struct qp *qp)
{
    const struct block_receiver *receiver = receiver_of(qp);
    uint32_t open = 0;
    for (uint32_t i = 0; i < BLOCK_OPEN_MAX; i++) {
        const struct block_taken *taken = &receiver->open[i];
        open += taken->used;
        CHECK(!taken->used || !receiver->current || taken->start != receiver->current_start);
    }
    CHECK(open == receiver->open_count && open <= receiver->open_limit);
    CHECK((open == 0 && !receiver->current) || qp->shares);
}

/* READs whose data are due: each lacks something, and of two READs of one block the newer one took
 * the place of the other. */
static void reads_check(const struct block_receiver *receiver)
{
    CHECK(receiver->reads_count <= receiver->reads_limit);
    CHECK(receiver->reads_limit <= receiver->reads_room);
    CHECK(receiver->reads_room == 0 || receiver->reads_head < receiver->reads_room);
    for (uint32_t i = 0; i < receiver->reads_count; i++) {
        const struct block_read *read =
            &receiver->reads[(receiver->reads_head + i) % receiver->reads_room];
        CHECK(read->wanted != 0);
        CHECK(63 - (uint32_t)__builtin_clzll(read->wanted) <= read->last_position);
        CHECK(read->message_bytes <= MESSAGE_BYTES_MAX);
    }
}

/* Results of atomics, in the order of their execution. */
static void results_check(const struct block_receiver *receiver)
{
    uint32_t due = 0;
    CHECK(receiver->results_limit == 0 ? receiver->results_next == 0
                                       : receiver->results_next < receiver->results_limit);
    for (uint32_t i = 0; i < receiver->results_limit; i++) {
        const struct block_result *result = &receiver->results[i];
        CHECK(result->kept || !(result->due || result->answered));
        CHECK(result->kind < BLOCK_ATOMIC_KIND_COUNT);
        due += result->due;
    }
    CHECK(due == receiver->results_due);
}

void block_receiver_check(const struct qp *qp)
{
    const struct block_receiver *receiver = receiver_of(qp);
    const struct block_responder *stream = &receiver->stream;
    CHECK(stream->contexts == &qp->nic->block_shared->contexts);
    CHECK(stream->hold == &qp->nic->block_shared->hold);
    CHECK(receiver->results_limit <= qp->nic->limits.reads_per_qp);
    /* A refusal is the last answer: behind it nothing is executed. */
    CHECK(!stream->refused || qp->state == QP_ERR);
    CHECK(qp->state != QP_ERR || (stream->chain.count == 0 && receiver->open_count == 0 &&
                                  !receiver->current && !stream->moving));
    taken_check(qp);
    reads_check(receiver);
    results_check(receiver);
}

/* A piece lies within its message, at the place that its block and position say. */
void block_piece_check(const struct qp *qp, const struct block_piece *piece)
{
    const struct block_message *message = &piece->message;
    CHECK(message->opcode == BLOCK_SEND || message->opcode == BLOCK_WRITE);
    CHECK(piece->offset + piece->bytes <= message->bytes);
    CHECK(piece->first == (piece->offset == 0));
    const uint32_t full = receiver_of(qp)->stream.mtu_bytes;
    CHECK(piece->offset % full == 0 && piece->bytes <= full);
    CHECK(!piece->last || piece->offset + piece->bytes == message->bytes);
    CHECK(!piece->turn || piece->in_order);
}

/* -- The link -----------------------------------------------------------------------------------*/

void block_peer_check(const struct nic_peer *peer)
{
    nic_routes_check(&peer->routes, &peer->responses);
}

/* -- Packets ------------------------------------------------------------------------------------*/

/* A packet that leaves: the segments that were gathered are its payload. */
void block_departure_check(const struct nic_departure *departure)
{
    uint64_t bytes = 0;
    CHECK(departure->segment_count <= NIC_SEGMENT_MAX);
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        bytes += departure->segments[i].bytes;
    }
    CHECK(bytes == departure->payload_bytes);
    CHECK(departure->headers_bytes <= NIC_HEADERS_BYTES_MAX);
    CHECK((departure->payload_bytes + departure->pad_bytes) % 4 == 0);
    CHECK(departure->destination_qpn <= ROCE_24_BITS && departure->psn <= ROCE_24_BITS);
}
