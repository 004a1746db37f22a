/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_reply - packets that leave for the peer's stream: answers, data of READs, results of
 * atomics.
 */
#include "base/bytes.h"
#include "nic/block/block_receiver.h"

/* -- Refusals -----------------------------------------------------------------------------------*/

bool block_refuse(struct qp *qp, const struct block_refusal *refusal)
{
    nic_count(qp->nic, refusal->counter);
    block_responder_refuse(&receiver_of(qp)->stream, refusal->status);
    qp->last_words = true;
    CHECK(refusal->status != BLOCK_STATUS_NONE && refusal->status != BLOCK_STATUS_RNR);
    if (refusal->status == BLOCK_STATUS_INVALID_REQUEST) {
        qp_raise(qp, NIC_EVENT_QP_REQUEST_ERROR);
    } else if (refusal->status == BLOCK_STATUS_ACCESS) {
        qp_raise(qp, NIC_EVENT_QP_ACCESS_ERROR);
    }
    block_enter_error(qp);
    nic_schedule(qp);
    return false;
}

bool block_refuse_request(struct qp *qp, enum nic_counter counter)
{
    const struct block_refusal refusal = {BLOCK_STATUS_INVALID_REQUEST, counter,
                                          COMPLETION_SUCCESS};
    return block_refuse(qp, &refusal);
}

void block_refuse_for_now(struct qp *qp)
{
    block_responder_refuse_for_now(&receiver_of(qp)->stream);
    nic_schedule(qp);
}

struct block_refusal block_access_refusal(enum reach_verdict verdict)
{
    return verdict == REACH_NO_RIGHT
               ? (struct block_refusal){BLOCK_STATUS_INVALID_REQUEST, COUNTER_nak_invalid_opcode,
                                        COMPLETION_SUCCESS}
               : (struct block_refusal){BLOCK_STATUS_ACCESS, rc_access_counter(verdict),
                                        COMPLETION_SUCCESS};
}

bool block_refuse_data(struct qp *qp, uint32_t number, enum nic_counter counter)
{
    nic_count(qp->nic, counter);
    block_responder_refuse_read(&receiver_of(qp)->stream, number);
    qp->last_words = true;
    qp_raise(qp, NIC_EVENT_QP_ACCESS_ERROR);
    block_enter_error(qp);
    nic_schedule(qp);
    return false;
}

/* The data of a READ ends in a refusal, as with RC. */
static bool end_data(struct qp *qp, uint32_t number, enum nic_counter counter)
{
    receiver_of(qp)->reads_count = 0;
    return block_refuse_data(qp, number, counter);
}

/* -- Work ---------------------------------------------------------------------------------------*/

static uint32_t read_place(const struct block_receiver *receiver, uint32_t place)
{
    INVARIANTS(CHECK(place < receiver->reads_room || receiver->reads_room == 1));
    return (receiver->reads_head + place) % receiver->reads_room;
}

static struct block_read *read_at(const struct block_receiver *receiver, uint32_t place)
{
    return &receiver->reads[read_place(receiver, place)];
}

/* The place, among the READs to be answered, of one of block `number` or, if `repeated`, of one
 * that was answered before; reads_count: there is none. */
static uint32_t find_read(const struct block_receiver *receiver, uint32_t number, bool repeated)
{
    uint32_t place = 0;
    while (place < receiver->reads_count) {
        const struct block_read *read = &receiver->reads[read_place(receiver, place)];
        if (repeated ? read->repeated : read->number == number) {
            break;
        }
        place++;
    }
    return place;
}

bool block_read_fits(const struct block_receiver *receiver, const struct block_read *read)
{
    if (receiver->reads_limit == 0) {
        return false;
    }
    return receiver->reads_count < receiver->reads_limit ||
           find_read(receiver, read->number, false) != receiver->reads_count ||
           (!read->repeated && find_read(receiver, 0, true) != receiver->reads_count);
}

static void drop_read(struct block_receiver *receiver, uint32_t place)
{
    INVARIANTS(CHECK(place < receiver->reads_count)); /* block_read_fits has found it. */
    for (; place + 1 < receiver->reads_count; place++) {
        *read_at(receiver, place) = *read_at(receiver, place + 1);
    }
    receiver->reads_count--;
}

void block_add_read(struct qp *qp, const struct block_read *read)
{
    struct block_receiver *receiver = receiver_of(qp);
    const uint32_t place = find_read(receiver, read->number, false);
    if (place != receiver->reads_count) {
        struct block_read *due = read_at(receiver, place);
        const bool same = due->address == read->address && due->key == read->key &&
                          due->message_bytes == read->message_bytes && due->index == read->index;
        const uint64_t before = same ? due->wanted : 0;
        const bool repeated = due->repeated;
        *due = *read;
        due->wanted |= before;
        due->repeated = repeated;
        return;
    }
    if (receiver->reads_count >= receiver->reads_limit) {
        drop_read(receiver, find_read(receiver, 0, true));
    }
    *read_at(receiver, receiver->reads_count++) = *read;
    INVARIANTS(block_receiver_check(qp));
    nic_schedule(qp);
}

struct block_result *block_result_room(struct block_receiver *receiver)
{
    if (receiver->results_limit == 0) {
        return NULL;
    }
    struct block_result *result = &receiver->results[receiver->results_next];
    if (result->due && result->answered) {
        /* The requester has this result by now, or it would not send another atomic. */
        result->due = false;
        receiver->results_due--;
    }
    return result->due ? NULL : result;
}

/* Is an atomic on its way to memory? Its result will take the place of the oldest one. */
static bool is_moving(const struct block_responder *stream)
{
    const struct block_context *context =
        block_contexts_find(stream->contexts, &stream->chain, block_responder_base(stream));
    return context != NULL && (context->flags & BLOCK_CONTEXT_BEGUN) != 0;
}

/* The result that was kept `age` atomics ago; the oldest one first. */
static struct block_result *result_of_age(const struct block_receiver *receiver, uint32_t age)
{
    return &receiver->results[(receiver->results_next + age) % receiver->results_limit];
}

bool block_receive_may_limit(const struct qp *qp, uint32_t reads)
{
    const struct block_receiver *receiver = receiver_of(qp);
    const uint32_t wanted = reads + !is_moving(&receiver->stream);
    if (wanted == 0) {
        return false;
    }
    for (uint32_t i = 0; reads == 0 && i < receiver->reads_count; i++) {
        if (!read_at(receiver, i)->repeated) {
            return false;
        }
    }
    for (uint32_t age = 0; age + wanted <= receiver->results_limit; age++) {
        const struct block_result *result = result_of_age(receiver, age);
        if (result->due && !result->answered) {
            return false;
        }
    }
    return true;
}

static void reverse(struct block_result *results, uint32_t from, uint32_t to)
{
    for (; from + 1 < to; from++, to--) {
        const struct block_result first = results[from];
        results[from] = results[to - 1];
        results[to - 1] = first;
    }
}

/* Drops the oldest of the results that are kept for duplicates, as new atomics would. */
void block_receive_limit_results(struct qp *qp, uint32_t reads)
{
    struct block_receiver *receiver = receiver_of(qp);
    struct block_result *results = receiver->results;
    const uint32_t before = receiver->results_limit, next = receiver->results_next;
    CHECK(block_receive_may_limit(qp, reads) && reads <= qp->nic->limits.reads_per_qp);
    /* The oldest to the front. */
    reverse(results, 0, next);
    reverse(results, next, before);
    reverse(results, 0, before);
    const uint32_t gone = before > reads ? before - reads : 0;
    for (uint32_t i = 0; i < gone; i++) {
        receiver->results_due -= results[i].due;
    }
    __builtin_memmove(results, results + gone, (before - gone) * sizeof(*results));
    __builtin_memset(results + (before - gone), 0, gone * sizeof(*results));
    receiver->results_limit = reads;
    receiver->results_next = reads > before ? before : 0;
    INVARIANTS(block_receiver_check(qp));
}

void block_repeat_result(struct qp *qp, const struct block_packet *packet)
{
    struct block_receiver *receiver = receiver_of(qp);
    for (uint32_t i = 0; i < receiver->results_limit; i++) {
        struct block_result *result = &receiver->results[i];
        if (result->kept && result->number == packet->number) {
            receiver->results_due += !result->due;
            result->due = true;
            result->path = packet->path;
            result->round = packet->round;
            INVARIANTS(block_receiver_check(qp));
            nic_schedule(qp);
            return;
        }
    }
}

/* -- Packets ------------------------------------------------------------------------------------*/

static void start(const struct qp *qp, enum block_opcode opcode, struct block_packet *packet,
                  struct nic_departure *departure)
{
    *packet = (struct block_packet){
        .opcode = (uint8_t)opcode,
        .session = receiver_of(qp)->stream.session,
        .destination_qpn = qp->attributes.destination_qpn,
    };
    departure->segment_count = 0;
}

/* A reply takes the route with the number of the path that it replies to. A peer that gets no
 * replies by this route, which may be dead, says so in its probes; then replies take another one.
 * The peer's path and our replies do not change in step, so that each route of the one is tried
 * with each route of the other. */
uint8_t block_route_back(const struct qp *qp, uint8_t path)
{
    const struct block_receiver *receiver = receiver_of(qp);
    return path >= receiver->path_count
               ? 0
               : block_route_of(qp, path, receiver->path_count,
                                receiver->turns[path] + receiver->turns[path] / NIC_ROUTES_MAX);
}

static void seal(struct qp *qp, const struct block_packet *packet, uint8_t path,
                 struct nic_departure *departure)
{
    block_seal(qp, packet, departure);
    departure->route = block_route_back(qp, path);
}

static void seal_data(struct qp *qp, struct block_packet *packet, uint8_t path, uint8_t round,
                      struct nic_departure *departure)
{
    uint32_t *tsn = &receiver_of(qp)->data_tsn[path % BLOCK_PATHS_MAX];
    packet->path = path;
    packet->round = round;
    packet->resent = round != 0;
    packet->tsn = *tsn;
    *tsn = (*tsn + 1) & ROCE_24_BITS;
    seal(qp, packet, path, departure);
}

static void next_result(struct qp *qp, struct nic_departure *departure)
{
    struct block_receiver *receiver = receiver_of(qp);
    struct block_result *result = receiver->results;
    INVARIANTS(block_receiver_check(qp)); /* One is due, or the loop would not end. */
    while (!result->due) {
        result++;
    }
    struct block_packet packet;
    start(qp, BLOCK_DATA, &packet, departure);
    packet.number = result->number;
    packet.last_block = true;
    if (result->kind != BLOCK_ATOMIC_WRITE) {
        packet.payload_bytes = sizeof(result->original);
        departure->segments[0] = (struct segment){.address = (uintptr_t)result->original,
                                                  .bytes = sizeof(result->original)};
        departure->segment_count = 1;
    }
    result->due = false;
    result->answered = true;
    receiver->results_due--;
    seal_data(qp, &packet, result->path, result->round, departure);
}

/* The key is judged again, since the program may have taken the region away. */
static bool next_data(struct qp *qp, struct nic_departure *departure)
{
    struct block_receiver *receiver = receiver_of(qp);
    struct block_read *read = read_at(receiver, 0);
    struct block_packet packet;
    start(qp, BLOCK_DATA, &packet, departure);
    packet.number = read->number;
    packet.index = read->index;
    packet.position = (uint8_t)__builtin_ctzll(read->wanted);
    packet.last_position = read->last_position;
    packet.last_block = read->last_block;
    const uint64_t offset = block_payload_offset(&packet, receiver->stream.mtu_bytes);
    const uint64_t left = read->message_bytes - offset;
    INVARIANTS(CHECK(offset <= read->message_bytes)); /* Its packet was judged. */
    packet.payload_bytes =
        left < receiver->stream.mtu_bytes ? (uint32_t)left : receiver->stream.mtu_bytes;
    if (packet.payload_bytes != 0) {
        departure->segment_count = 1;
        if (region_judge(&qp->nic->regions, read->key, qp->pd, qp, read->address + offset,
                         packet.payload_bytes, ACCESS_REMOTE_READ,
                         &departure->segments[0]) != REACH_ALLOWED) {
            return end_data(qp, read->number, COUNTER_nak_unknown_key);
        }
    }
    const uint8_t path = read->path, round = read->round;
    read->wanted &= read->wanted - 1;
    if (read->wanted == 0) {
        receiver->reads_head = read_place(receiver, 1);
        receiver->reads_count--;
    }
    seal_data(qp, &packet, path, round, departure);
    return true;
}

static void next_answer(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    struct block_responder *stream = &receiver_of(qp)->stream;
    struct block_packet packet;
    start(qp, BLOCK_ANSWER, &packet, departure);
    packet.tsn = stream->answers & ROCE_24_BITS;
    block_responder_answer(stream, now, &packet.answer);
    packet.answer.rnr_code = packet.answer.status == BLOCK_STATUS_RNR
                                 ? (uint8_t)(qp->attributes.min_rnr_timer % BLOCK_RNR_CODES)
                                 : 0;
    packet.answer.limit_void = qp->shares;
    packet.answer.receive_limit = qp->shares ? 0 : block_receive_limit(qp);
    nic_count(qp->nic, COUNTER_block_answers_sent);
    if (packet.answer.status == BLOCK_STATUS_RNR) {
        nic_count(qp->nic, COUNTER_send_rnr_err);
    }
    seal(qp, &packet, packet.answer.echo_path, departure);
}

bool block_receive_ready(const struct qp *qp)
{
    const struct block_receiver *receiver = receiver_of(qp);
    if (qp->state == QP_ERR && !qp->last_words) {
        return false;
    }
    return receiver->stream.answer_due || receiver->reads_count != 0 || receiver->results_due != 0;
}

bool block_receive_next(struct qp *qp, struct instant now, struct nic_departure *departure)
{
    const struct block_receiver *receiver = receiver_of(qp);
    INVARIANTS(block_receiver_check(qp));
    if (!block_receive_ready(qp)) {
        return false;
    }
    const bool waits = receiver->reads_count != 0 || receiver->results_due != 0;
    /* As with RC, a refusal waits for the data of all READs and atomics that were executed
     * before. */
    if (receiver->stream.answer_due && !(waits && receiver->stream.refused)) {
        next_answer(qp, now, departure);
        return true;
    }
    if (receiver->results_due != 0) {
        next_result(qp, departure);
        return true;
    }
    if (receiver->reads_count == 0) {
        return false;
    }
    if (!next_data(qp, departure)) {
        next_answer(qp, now, departure);
    }
    return true;
}

void block_receive_on_gather_failed(struct qp *qp, const struct nic_departure *departure)
{
    struct block_packet packet;
    CHECK(block_decode(departure->headers, departure->headers_bytes, departure->headers,
                       departure->payload_bytes + departure->pad_bytes, &packet) == BLOCK_GOOD);
    (void)end_data(qp, packet.number, COUNTER_nak_operational);
}
