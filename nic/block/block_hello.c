/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_hello - negotiation: a stream asks to become one of blocks, and both ends agree on terms.
 *
 * The two streams of a connection are negotiated separately; the requester of each one asks.
 */
#include "nic/block/block.h"
#include "transport/common/timing.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t path_count(const struct qp *qp)
{
    return smaller(qp->nic->limits.block.paths, nic_routes_count(&nic_peer_of(qp)->routes));
}

/* -- Payloads beyond the path MTU ---------------------------------------------------------------*/

/* HELLOs that ask for them, before one asks for the MTU: a datagram of that length is lost where a
 * router's MTU is smaller, and an older nonic drops it. */
#define FULL_HELLOS 2

static const uint8_t zeroes[ROCE_PAYLOAD_BYTES_MAX];

/* The payload that fills our interface's datagrams; 0: packets carry the MTU. A path by other
 * addresses may take less, and so may one for which the program chose a smaller MTU. */
static uint32_t full_payload(const struct qp *qp)
{
    const struct nic_limits *limits = &qp->nic->limits;
    const struct nic_routes *routes = &nic_peer_of(qp)->routes;
    if (routes->own_count != 0 || qp->attributes.path_mtu != limits->mtu ||
        routes->datagram_bytes <= NIC_ROUTES_AROUND_PAYLOAD) {
        return 0;
    }
    const uint32_t room =
        smaller(routes->datagram_bytes - NIC_ROUTES_AROUND_PAYLOAD, block_payload_most(limits)) /
        BLOCK_PAYLOAD_STEP * BLOCK_PAYLOAD_STEP;
    return room > qp->mtu_bytes ? room : 0;
}

static void lay_zeroes(uint32_t payload_bytes, struct nic_departure *departure)
{
    departure->payload_bytes = BLOCK_GREETING_ZEROES(payload_bytes);
    departure->segments[0] =
        (struct segment){.address = (uintptr_t)zeroes, .bytes = departure->payload_bytes};
    departure->segment_count = 1;
}

/* -- Asking -------------------------------------------------------------------------------------*/

bool block_hello_wants(struct qp *qp, struct instant now)
{
    struct block_streams *streams = qp->block;
    if (streams->stays_rc || qp->state != QP_RTS || !qp_has_sends(qp) || !block_fits(qp)) {
        return false;
    }
    const bool silent = instant_before(now, nic_peer_of(qp)->silent_until);
    switch (qp->nic->limits.block.transport) {
    case NIC_TRANSPORT_RC: return false;
    case NIC_TRANSPORT_AUTO: return qp->watching == WATCH_TROUBLED && block_may_help(qp, now);
    case NIC_TRANSPORT_BLOCK: streams->stays_rc = silent; return !silent;
    }
    UNREACHABLE("a transport outside its enum");
}

/* The time that a request may stay without an answer. */
static uint64_t patience_ns(const struct qp *qp)
{
    const uint64_t timeout_ns = ack_timeout_ns(qp->attributes.timeout);
    const uint64_t tries = qp->attributes.retry_count + UINT64_C(1);
    return timeout_ns > UINT64_MAX / tries ? UINT64_MAX : timeout_ns * tries;
}

void block_hello_begin(struct qp *qp, struct instant now)
{
    (void)now;
    struct nic *nic = qp->nic;
    CHECK(block_fits(qp) && !qp->block->stays_rc);
    const bool insists =
        nic->limits.block.transport == NIC_TRANSPORT_BLOCK && nic_peer_of(qp)->spoken;
    qp->block->offer = (uint16_t)full_payload(qp);
    hello_ask_begin(&qp->block->ask, (uint32_t)prng_next(&nic->prng), rc_flow(qp).next, insists,
                    patience_ns(qp));
    INVARIANTS(block_streams_check(qp));
}

static void seal_hello(struct qp *qp, struct block_packet *packet, struct nic_departure *departure)
{
    packet->hello.sender_qpn = qp->number;
    packet->hello.mtu_code = (uint8_t)qp->attributes.path_mtu;
    packet->hello.shared_receives = qp->shares;
    block_seal(qp, packet, departure);
}

/* A HELLO or WELCOME that begins a session names our addresses. */
static void seal_offer(struct qp *qp, struct block_packet *packet, struct nic_departure *departure)
{
    const struct nic_routes *routes = &nic_peer_of(qp)->routes;
    CHECK(routes->own_count <= BLOCK_GIDS_MAX);
    packet->destination_qpn = qp->attributes.destination_qpn;
    packet->hello.gid_count = routes->own_count;
    __builtin_memcpy(packet->hello.gids, routes->own, routes->own_count * sizeof(struct gid));
    seal_hello(qp, packet, departure);
    if (packet->hello.payload_bytes != 0) {
        lay_zeroes(packet->hello.payload_bytes, departure);
    }
}

/* The program may give the queue pair another peer address while nothing is sent (SQD). */
void block_hello_rethink(struct qp *qp)
{
    struct block_streams *streams = qp->block;
    if (nic_peer_of(qp) != NULL) {
        return;
    }
    streams->answer.due = streams->answer.refuses = false;
    if (streams->ask.state == HELLO_AGREED) {
        hello_ask_confirm(&streams->ask);
    } else {
        streams->ask = (struct hello_ask){.state = HELLO_NOT_ASKED};
    }
    INVARIANTS(block_streams_check(qp));
}

bool block_hello_next(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    struct hello_ask *ask = &qp->block->ask;
    const struct block_limits *limits = &qp->nic->limits.block;
    if (!ask->due) {
        return false;
    }
    if (qp->block->offer != 0 && ask->state == HELLO_ASKED && ask->sent >= FULL_HELLOS) {
        qp->block->offer = 0;
        hello_ask_otherwise(ask, (uint32_t)prng_next(&qp->nic->prng));
    }
    CHECK(path_count(qp) >= 1 && limits->window >= 1);
    struct block_packet packet = {
        .opcode = BLOCK_HELLO,
        .hello = {.paths = (uint8_t)path_count(qp),
                  .reads = qp->attributes.max_reads_out,
                  .nonce = ask->nonce,
                  .next_psn = ask->psn.value,
                  .window = (uint16_t)limits->window,
                  .read_queue = (uint16_t)limits->reads,
                  .payload_bytes = qp->block->offer},
    };
    seal_offer(qp, &packet, departure);
    hello_ask_sent(ask, now);
    nic_arm_timer(qp, hello_ask_deadline(ask));
    nic_count(qp->nic, COUNTER_hello_sent);
    return true;
}

void block_hello_on_deadline(struct qp *qp, struct instant now)
{
    struct block_streams *streams = qp->block;
    INVARIANTS(block_streams_check(qp));
    switch (hello_ask_on_time(&streams->ask, now)) {
    case HELLO_GOES_ON: return;
    case HELLO_FALLS_BACK:
        nic_count(qp->nic, COUNTER_hello_unanswered);
        nic_peer_of(qp)->silent_until = instant_after(now, HELLO_SILENCE_NS);
        streams->stays_rc = qp->nic->limits.block.transport == NIC_TRANSPORT_BLOCK;
        block_watch_begin(qp);
        return;
    case HELLO_FAILS:
        nic_count(qp->nic, COUNTER_retry_exceeded_err);
        block_fail_work(qp, send_queue_at(&qp->sends, qp->sends.head), COMPLETION_RETRY_EXCEEDED);
        return;
    }
    UNREACHABLE("an outcome outside its enum");
}

/* When a stream is agreed on, the peer names its other addresses. If one of them is not allowed,
 * all of them are ignored. */
static void learn_routes(struct qp *qp, const struct block_hello *hello)
{
    struct nic_routes *routes = &nic_peer_of(qp)->routes;
    struct gid gids[BLOCK_GIDS_MAX];
    CHECK(hello->gid_count <= BLOCK_GIDS_MAX);
    __builtin_memcpy(gids, hello->gids, sizeof(gids));
    routes->blocks = true;
    if (!nic_routes_learn(routes, &qp->attributes.av, gids, hello->gid_count)) {
        nic_count(qp->nic, COUNTER_hello_routes_refused);
    }
    INVARIANTS(block_peer_check(nic_peer_of(qp)));
}

/* The terms: of each value, the smaller one of both sides. */
static struct block_terms terms_of(const struct qp *qp, const struct block_hello *hello,
                                   bool shared_receives)
{
    const struct block_limits *limits = &qp->nic->limits.block;
    const uint32_t payload_bytes = smaller(full_payload(qp), hello->payload_bytes);
    return (struct block_terms){
        .session = hello->nonce,
        .window = smaller(limits->window, hello->window),
        .reads = smaller(limits->reads, hello->read_queue),
        .path_count = (uint8_t)smaller(path_count(qp), hello->paths),
        .shared_receives = shared_receives,
        .payload_bytes = payload_bytes == 0 ? qp->mtu_bytes : payload_bytes,
    };
}

static void on_refusal(struct qp *qp, const struct block_hello *hello)
{
    if (!hello_ask_on_refusal(&qp->block->ask, hello->nonce, psn_of(hello->next_psn))) {
        nic_count(qp->nic, COUNTER_drop_stale_welcome);
        return;
    }
    nic_count(qp->nic, COUNTER_hello_declined);
    qp->block->stays_rc = true;
    block_watch_begin(qp);
    INVARIANTS(block_streams_check(qp));
}

void block_hello_on_welcome(struct qp *qp, const struct block_arrival *arrival, struct instant now)
{
    struct block_streams *streams = qp->block;
    const struct block_hello *hello = &arrival->packet.hello;
    INVARIANTS(block_streams_check(qp));
    if (hello->window == 0) {
        on_refusal(qp, hello);
        return;
    }
    if (hello->sender_qpn != qp->attributes.destination_qpn ||
        hello->mtu_code != qp->attributes.path_mtu || hello->payload_bytes > streams->offer ||
        !hello_ask_on_welcome(&streams->ask, hello->nonce, psn_of(hello->next_psn))) {
        nic_count(qp->nic, COUNTER_drop_stale_welcome);
        return;
    }
    nic_peer_of(qp)->spoken = true;
    learn_routes(qp, hello);
    streams->sending = terms_of(qp, hello, hello->shared_receives);
    streams->sending.trip_ns = hello_ask_trip_ns(&streams->ask, now);
    nic_count(qp->nic, COUNTER_block_streams);
    block_send_begin(qp, &streams->sending, now);
    INVARIANTS(block_streams_check(qp));
}

/* -- Answering ----------------------------------------------------------------------------------*/

static struct hello_standing standing_of(const struct qp *qp)
{
    const struct rc_responder *rc = &qp->in.rc;
    return (struct hello_standing){
        .serves =
            (qp->state == QP_RTR || qp->state == QP_RTS || qp->state == QP_SQD) && block_fits(qp),
        .between = rc->incoming.kind == INCOMING_NONE && psn_equal(rc->moved, rc->expected),
        .executed = block_receives(qp) && !block_receive_untouched(qp),
        .expected = rc_responder_expected(rc),
        .peer_qpn = qp->attributes.destination_qpn,
        .mtu_code = (uint8_t)qp->attributes.path_mtu,
        .reads = qp->attributes.max_reads_in,
    };
}

/* Moves that the session has begun are void when they finish. */
void block_hello_drop_session(struct qp *qp)
{
    CHECK(block_receives(qp) && block_receive_untouched(qp)); /* No program sees that it goes. */
    block_receive_withdraw(qp);
    hello_drop(&qp->block->answer);
    qp->epoch++;
}

void block_hello_on_hello(struct qp *qp, const struct block_arrival *arrival)
{
    struct block_streams *streams = qp->block;
    const struct block_hello *hello = &arrival->packet.hello;
    const struct hello_question question = {
        .nonce = hello->nonce,
        .psn = psn_of(hello->next_psn),
        .sender_qpn = hello->sender_qpn,
        .mtu_code = hello->mtu_code,
        .reads = hello->reads,
    };
    const struct hello_standing standing = standing_of(qp);
    INVARIANTS(block_streams_check(qp));
    switch (hello_judge(&streams->answer, &question, &standing)) {
    case HELLO_NEW:
        if (block_receives(qp)) {
            block_hello_drop_session(qp);
        }
        ibta_note_established(qp);
        learn_routes(qp, hello);
        streams->receiving = terms_of(qp, hello, qp->shares);
        block_receive_begin(qp, &streams->receiving);
        break;
    case HELLO_AGAIN: break;
    case HELLO_WRONG_STATE: nic_count(qp->nic, COUNTER_hello_refused); return;
    case HELLO_WRONG_QPN:
    case HELLO_WRONG_MTU:
    case HELLO_WRONG_PSN:
    case HELLO_WRONG_READS:
    case HELLO_MIDST:
    case HELLO_EXECUTED:
        nic_count(qp->nic, COUNTER_hello_refused);
        hello_refuse(&streams->answer, &question);
        nic_schedule(qp);
        return;
    }
    hello_accept(&streams->answer, &question);
    nic_schedule(qp);
    INVARIANTS(block_streams_check(qp));
}

static void next_refusal(struct qp *qp, struct nic_departure *departure)
{
    const struct hello_question *refused = &qp->block->answer.refused;
    struct block_packet packet = {
        .opcode = BLOCK_WELCOME,
        .destination_qpn = refused->sender_qpn,
        .hello = {.paths = 1,
                  .reads = qp->attributes.max_reads_in,
                  .nonce = refused->nonce,
                  .next_psn = refused->psn.value},
    };
    qp->block->answer.refuses = false;
    seal_hello(qp, &packet, departure);
}

bool block_hello_next_welcome(struct qp *qp, struct nic_departure *departure)
{
    struct block_streams *streams = qp->block;
    if (streams->answer.refuses) {
        next_refusal(qp, departure);
        return true;
    }
    if (!streams->answer.due) {
        return false;
    }
    streams->answer.due = false;
    const bool beyond = streams->receiving.payload_bytes > qp->mtu_bytes;
    struct block_packet packet = {
        .opcode = BLOCK_WELCOME,
        .hello = {.paths = streams->receiving.path_count,
                  .reads = qp->attributes.max_reads_in,
                  .nonce = streams->answer.nonce,
                  .next_psn = streams->answer.psn.value,
                  .window = (uint16_t)streams->receiving.window,
                  .read_queue = (uint16_t)streams->receiving.reads,
                  .payload_bytes = (uint16_t)(beyond ? streams->receiving.payload_bytes : 0)},
    };
    seal_offer(qp, &packet, departure);
    nic_count(qp->nic, COUNTER_hello_welcomed);
    return true;
}
