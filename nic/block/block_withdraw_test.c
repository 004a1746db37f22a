/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Memory that a program takes away is not touched any more, at any point of a message. Late
 *         and forged packets change nothing. A stream that ends gives back all that it has.
 * Method  Packets by hand: WRITEs and SENDs of three packets that come in part, out of order, held.
 */
#include "nic/block/block_bench.h"

enum {
    PACKETS = 3,
    BYTES = PACKETS * BENCH_MTU,
};

static uint8_t payload[BENCH_MTU]; /* Filled by main; no byte is 0. */

static struct bench *begin(const struct bench_config *config)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    bench_make(bench, config);
    bench_speak_blocks(bench, 0, 0);
    return bench;
}

static void end(struct bench *bench)
{
    bench_end(bench);
    free(bench);
}

static struct block_packet packet_of(const struct bench *bench, enum block_opcode opcode,
                                     uint32_t number, uint8_t position)
{
    return (struct block_packet){
        .opcode = (uint8_t)opcode,
        .session = BENCH_SESSION,
        .number = number,
        .position = position,
        .last_position = PACKETS - 1,
        .last_block = true,
        .early = true,
        .ack_request = true,
        .address = number * 1000,
        .key = bench->region[0].key,
        .message_bytes = BYTES,
        .receive_number = opcode == BLOCK_SEND ? number : 0,
        .payload = payload,
        .payload_bytes = BENCH_MTU,
    };
}

/* A packet comes; the move is not made. */
static bool arrive(struct bench *bench, const struct block_packet *packet, struct nic_move *move)
{
    const struct block_arrival arrival = {.packet = *packet, .at = bench->now};
    const bool moves = block_receive_on_packet(bench->qp, &arrival, bench->now, move);
    block_receive_check(bench->qp);
    return moves;
}

static void finish(struct bench *bench, struct nic_move *move, enum nic_move_result result)
{
    if (result == NIC_MOVED) {
        bench_make_move(move);
    }
    block_receive_on_moved(bench->qp, move, result, bench->now);
    block_receive_check(bench->qp);
}

/* Delivers a packet and makes all moves that follow. Returns their number. */
static uint32_t deliver(struct bench *bench, const struct block_packet *packet)
{
    struct nic_move move;
    uint32_t count = 0;
    for (bool any = arrive(bench, packet, &move); any;
         any = block_receive_next_held(bench->qp, &move)) {
        finish(bench, &move, NIC_MOVED);
        count++;
    }
    return count;
}

static uint32_t deliver_at(struct bench *bench, enum block_opcode opcode, uint32_t number,
                           uint8_t position)
{
    const struct block_packet packet = packet_of(bench, opcode, number, position);
    return deliver(bench, &packet);
}

/* Returns the status of the newest answer; other packets are counted in *data. */
static uint8_t pull(struct bench *bench, uint32_t *data)
{
    struct nic_departure departure;
    uint8_t status = BLOCK_STATUS_NONE;
    while (block_receive_ready(bench->qp) &&
           block_receive_next(bench->qp, bench->now, &departure)) {
        struct block_packet packet;
        assert_int_equal(block_decode(departure.headers, departure.headers_bytes, payload,
                                      departure.payload_bytes + departure.pad_bytes, &packet),
                         BLOCK_GOOD);
        if (packet.opcode == BLOCK_ANSWER) {
            status = packet.answer.status;
        } else if (data != NULL) {
            ++*data;
        }
    }
    return status;
}

static uint32_t base_of(const struct bench *bench)
{
    return block_responder_base(&bench->qp->block->receiver->stream);
}

static uint32_t written(const struct bench *bench)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < BENCH_MEMORY_BYTES; i++) {
        bytes += bench->memory[i] != 0;
    }
    return bytes;
}

static uint32_t contexts_used(const struct bench *bench)
{
    return bench->qp->block->receiver->stream.chain.count;
}

static uint32_t poll_count(struct bench *bench, enum completion_status status)
{
    struct completion completion = {0};
    uint32_t count = 0;
    while (cq_poll(&bench->cq, &completion, 1) == 1) {
        assert_int_equal(completion.status, status);
        count++;
    }
    return count;
}

/* EXA-91 */
static void a_region_that_went_is_not_written(void **state)
{
    (void)state;
    const struct bench_config config = {.held = 4};
    for (uint32_t cut = 0; cut < PACKETS; cut++) {
        /* In order, or the last packet first, which is held. */
        for (int backwards = 0; backwards < 2; backwards++) {
            struct bench *bench = begin(&config);
            for (uint32_t i = 0; i < cut; i++) {
                const uint32_t position = backwards ? PACKETS - 1 - i : i;
                (void)deliver_at(bench, BLOCK_WRITE, 0, (uint8_t)position);
            }
            const uint32_t before = written(bench);
            assert_int_equal(region_remove(nic_regions(bench->nic), &bench->region[0]), STATUS_OK);
            for (uint32_t round = 0; round < 2; round++) {
                for (uint32_t i = 0; i < PACKETS; i++) {
                    assert_int_equal(deliver_at(bench, BLOCK_WRITE, 0, (uint8_t)i), 0);
                }
            }
            assert_int_equal(written(bench), before);
            assert_int_equal(bench->qp->state, QP_ERR);
            assert_int_equal(pull(bench, NULL), BLOCK_STATUS_ACCESS);
            assert_int_equal(base_of(bench), 0);
            end(bench);
        }
    }
}

/* EXA-91 EXA-90: an early message is declined; when its turn has come, the key is there again. */
static void what_is_permitted_in_time_succeeds(void **state)
{
    (void)state;
    const struct bench_config config = {.held = 4};
    struct bench *bench = begin(&config);
    const uint32_t access = bench->region[0].access;
    bench->region[0].access = ACCESS_LOCAL_WRITE;
    struct block_packet packet = packet_of(bench, BLOCK_WRITE, 1, 0);
    assert_int_equal(deliver(bench, &packet), 0);
    assert_int_equal(nic_counters(bench->nic)->values[COUNTER_blocks_declined], 1);
    assert_int_equal(bench->qp->state, QP_RTR);
    bench->region[0].access = access;
    for (uint32_t number = 0; number < 2; number++) {
        for (uint8_t position = 0; position < PACKETS; position++) {
            assert_int_equal(deliver_at(bench, BLOCK_WRITE, number, position), 1);
        }
    }
    assert_int_equal(base_of(bench), 2);
    end(bench);
}

/* EXA-91 EXA-89: a READ whose region goes while its data leave. */
static void data_is_judged_as_it_leaves(void **state)
{
    (void)state;
    const struct bench_config config = {.held = 4};
    struct bench *bench = begin(&config);
    struct block_packet packet = packet_of(bench, BLOCK_READ, 0, 0);
    packet.early = false;
    packet.wanted = 7;
    packet.payload_bytes = 0;
    assert_int_equal(deliver(bench, &packet), 0);
    assert_int_equal(base_of(bench), 1);
    struct nic_departure departure;
    assert_true(block_receive_next(bench->qp, bench->now, &departure)); /* The answer, */
    assert_true(block_receive_next(bench->qp, bench->now, &departure)); /* the first packet. */
    assert_int_equal(departure.payload_bytes, BENCH_MTU);
    assert_int_equal(region_remove(nic_regions(bench->nic), &bench->region[0]), STATUS_OK);
    assert_true(block_receive_next(bench->qp, bench->now, &departure));
    struct block_packet answer;
    assert_int_equal(block_decode(departure.headers, departure.headers_bytes, NULL, 0, &answer),
                     BLOCK_GOOD);
    assert_int_equal(answer.opcode, BLOCK_ANSWER);
    assert_int_equal(answer.answer.status, BLOCK_STATUS_ACCESS);
    assert_int_equal(answer.answer.record_count, 1);
    assert_int_equal(answer.answer.records[0].number, 0);
    assert_int_equal(answer.answer.records[0].state, BLOCK_STATE_REFUSED);
    assert_int_equal(block_judge(&answer, BENCH_MTU), BLOCK_CONSISTENT);
    assert_int_equal(bench->qp->state, QP_ERR);
    assert_true(bench->qp->last_words && bench->qp->block->answer.session);
    /* Its program puts it into the error state again: it repeats no refusal any more. */
    const struct qp_attributes error = {.state = QP_ERR};
    assert_int_equal(qp_modify(bench->qp, &error, QP_ATTR_STATE, bench->now), STATUS_OK);
    assert_false(bench->qp->last_words || bench->qp->block->answer.session);
    block_streams_check(bench->qp);
    end(bench);
}

/* EXA-91 EXA-89: a READ that is asked for again when it is no longer permitted. Base is past it, so
 * the refusal names it; data of another one that are due leave before. */
static void data_is_judged_when_asked_for_again(void **state)
{
    (void)state;
    for (int right = 0; right < 2; right++) {
        const struct bench_config config = {.held = 4};
        struct bench *bench = begin(&config);
        struct block_packet reads[2];
        uint32_t data = 0;
        for (uint32_t i = 0; i < COUNT_OF(reads); i++) {
            reads[i] = packet_of(bench, BLOCK_READ, i, 0);
            reads[i].early = false;
            reads[i].wanted = 7;
            reads[i].payload_bytes = 0;
            reads[i].key = bench->region[i].key;
        }
        (void)deliver(bench, &reads[0]);
        assert_int_equal(pull(bench, &data), BLOCK_STATUS_NONE);
        assert_int_equal(data, PACKETS);
        (void)deliver(bench, &reads[1]);
        if (right) {
            bench->qp->attributes.access &= (uint16_t)~ACCESS_REMOTE_READ;
        } else {
            assert_int_equal(region_remove(nic_regions(bench->nic), &bench->region[0]), STATUS_OK);
        }
        reads[0].resent = true;
        reads[0].round = 1;
        (void)deliver(bench, &reads[0]);
        assert_int_equal(bench->qp->state, QP_ERR);
        struct nic_departure departure;
        struct block_packet packet;
        for (uint32_t i = 0; i <= PACKETS; i++) {
            assert_true(block_receive_next(bench->qp, bench->now, &departure));
            assert_int_equal(block_decode(departure.headers, departure.headers_bytes, payload,
                                          departure.payload_bytes + departure.pad_bytes, &packet),
                             BLOCK_GOOD);
            assert_int_equal(packet.opcode, i < PACKETS ? BLOCK_DATA : BLOCK_ANSWER);
        }
        assert_int_equal(packet.answer.status, BLOCK_STATUS_ACCESS);
        assert_int_equal(packet.answer.base, 2);
        assert_int_equal(packet.answer.record_count, 1);
        assert_int_equal(packet.answer.records[0].number, 0);
        assert_int_equal(packet.answer.records[0].state, BLOCK_STATE_REFUSED);
        end(bench);
    }
}

static uint64_t duplicates(const struct bench *bench)
{
    const uint64_t count = nic_counters(bench->nic)->values[COUNTER_duplicate_request];
    assert_int_equal(bench->qp->block->receiver->stream.duplicates[0], count);
    return count;
}

/* EXA-84: a READ is asked for in pieces, before its turn or after the first one was executed. All
 * of its data leaves. A packet counts as a copy only if it asks for nothing new, or is marked as
 * sent again. */
static void pieces_of_a_read_are_no_copies(void **state)
{
    (void)state;
    for (int early = 0; early < 2; early++) {
        const struct bench_config config = {.held = 4};
        struct bench *bench = begin(&config);
        struct block_packet read = packet_of(bench, BLOCK_READ, early ? 1 : 0, 0);
        read.early = false;
        read.payload_bytes = 0;
        read.wanted = 1;
        (void)deliver(bench, &read);
        read.wanted = 6;
        (void)deliver(bench, &read);
        assert_int_equal(duplicates(bench), 0);
        read.wanted = 4;
        read.resent = true;
        read.round = 1;
        (void)deliver(bench, &read);
        assert_int_equal(duplicates(bench), 1);
        for (uint8_t position = 0; early && position < PACKETS; position++) {
            assert_int_equal(deliver_at(bench, BLOCK_WRITE, 0, position), 1);
        }
        uint32_t data = 0;
        assert_int_equal(pull(bench, &data), BLOCK_STATUS_NONE);
        assert_int_equal(data, PACKETS);
        assert_int_equal(base_of(bench), early ? 2 : 1);
        end(bench);
    }
}

/* EXA-92 EXA-80: held payloads, taken receives and begun moves go when the queue pair's state
 * changes. */
static void a_stream_that_ends_gives_all_back(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        for (int error = 0; error < 2; error++) {
            const struct bench_config config = {.held = 4, .shared = shared != 0};
            struct bench *bench = begin(&config);
            for (uint32_t i = 0; i < 4; i++) {
                bench_post_receive(bench, i, BYTES, bench->receive_region.key);
            }
            (void)deliver_at(bench, BLOCK_SEND, 2, 0);
            (void)deliver_at(bench, BLOCK_SEND, 1, 1);
            (void)deliver_at(bench, BLOCK_WRITE, 3, PACKETS - 1);
            struct block_packet packet = packet_of(bench, BLOCK_SEND, 0, 0);
            struct nic_move move;
            assert_true(arrive(bench, &packet, &move)); /* Under way when the end comes. */
            assert_int_equal(contexts_used(bench), 4);
            assert_int_equal(bench->nic->block_shared->hold.used, 1);
            const struct qp_attributes attributes = {.state = error ? QP_ERR : QP_RESET};
            assert_int_equal(qp_modify(bench->qp, &attributes, QP_ATTR_STATE, bench->now),
                             STATUS_OK);
            assert_int_equal(contexts_used(bench), 0);
            assert_int_equal(bench->nic->block_shared->contexts.used, 0);
            assert_int_equal(bench->nic->block_shared->hold.used, 0);
            /* Taken receives are flushed, each once; those of the shared queue stay there. */
            const uint32_t flushed = poll_count(bench, COMPLETION_FLUSHED);
            assert_int_equal(flushed, error ? (shared ? 3 : 4) : 0);
            assert_int_equal(receive_queue_count(&bench->srq.queue), shared ? 1 : 0);
            nic_on_moved(bench->nic, &move, NIC_MOVED, bench->now);
            assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), 0);
            end(bench);
        }
    }
}

/* EXA-73 EXA-80: a stream that has taken shared receives is not given up for a late HELLO or a
 * request of RC, or they would be lost: its queue pair lives on. */
static void a_stream_with_receives_stays(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        for (uint32_t number = 0; number < 2; number++) {
            const struct bench_config config = {.held = 4, .shared = shared != 0};
            struct bench *bench = begin(&config);
            bench_post_receive(bench, 0, BYTES, bench->receive_region.key);
            bench_post_receive(bench, 1, BYTES, bench->receive_region.key);
            assert_true(block_receive_untouched(bench->qp));
            assert_int_equal(deliver_at(bench, BLOCK_SEND, number, 0), 1);
            assert_int_equal(block_receive_untouched(bench->qp), !shared);
            end(bench);
        }
    }
}

/* EXA-93 */
static void late_duplicates_change_nothing(void **state)
{
    (void)state;
    const struct bench_config config = {.held = 4};
    struct bench *bench = begin(&config);
    bench_post_receive(bench, 0, BYTES, bench->receive_region.key);
    struct block_packet atomic = packet_of(bench, BLOCK_ATOMIC, 2, 0);
    atomic.last_position = 0;
    atomic.early = false;
    atomic.payload_bytes = 0;
    atomic.atomic.kind = BLOCK_FETCH_ADD;
    atomic.atomic.swap_or_add = 5;
    for (uint8_t position = 0; position < PACKETS; position++) {
        assert_int_equal(deliver_at(bench, BLOCK_SEND, 0, position), 1);
    }
    for (uint8_t position = 0; position < PACKETS; position++) {
        assert_int_equal(deliver_at(bench, BLOCK_WRITE, 1, position), 1);
    }
    assert_int_equal(deliver(bench, &atomic), 1);
    assert_int_equal(base_of(bench), 3);
    assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), 1);
    uint32_t data = 0;
    (void)pull(bench, &data);
    assert_int_equal(data, 1);
    const struct nic_counters before = *nic_counters(bench->nic);
    memset(bench->memory, 0, sizeof(bench->memory));
    for (uint8_t position = 0; position < PACKETS; position++) {
        assert_int_equal(deliver_at(bench, BLOCK_SEND, 0, position), 0);
        assert_int_equal(deliver_at(bench, BLOCK_WRITE, 1, position), 0);
    }
    assert_int_equal(deliver(bench, &atomic), 0);
    assert_int_equal(written(bench), 0);
    assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), 0);
    /* All are answered, the atomic with its result. */
    (void)pull(bench, &data);
    assert_int_equal(data, 2);
    const struct nic_counters *after = nic_counters(bench->nic);
    assert_int_equal(after->values[COUNTER_rdma_recvs], before.values[COUNTER_rdma_recvs]);
    assert_int_equal(after->values[COUNTER_duplicate_request],
                     before.values[COUNTER_duplicate_request] + 2 * PACKETS + 1);
    end(bench);
}

/* EXA-93: nor do they 2^16 blocks later. */
static void old_duplicates_change_nothing(void **state)
{
    (void)state;
    const struct bench_config config = {.held = 4};
    struct bench *bench = begin(&config);
    bench_post_receive(bench, 0, BYTES, bench->receive_region.key);
    bench_post_receive(bench, 1, BYTES, bench->receive_region.key);
    static const enum block_opcode opcodes[] = {BLOCK_SEND, BLOCK_WRITE, BLOCK_READ, BLOCK_ATOMIC};
    struct block_packet packets[COUNT_OF(opcodes)];
    for (uint32_t i = 0; i < COUNT_OF(opcodes); i++) {
        packets[i] = packet_of(bench, opcodes[i], i, 0);
        packets[i].last_position = 0;
        packets[i].early = opcodes[i] == BLOCK_SEND || opcodes[i] == BLOCK_WRITE;
        packets[i].message_bytes = BENCH_MTU;
        packets[i].payload_bytes = packets[i].early ? BENCH_MTU : 0;
        packets[i].wanted = 1;
        packets[i].atomic.kind = BLOCK_FETCH_ADD;
        packets[i].atomic.swap_or_add = 5;
        (void)deliver(bench, &packets[i]);
    }
    assert_int_equal(base_of(bench), COUNT_OF(opcodes));
    struct block_packet packet = packets[1];
    packet.address = BENCH_MEMORY_BYTES - BENCH_MTU;
    while (base_of(bench) != COUNT_OF(opcodes) + (1 << 16)) {
        packet.number = base_of(bench);
        assert_int_equal(deliver(bench, &packet), 1);
    }
    assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), 1);
    (void)pull(bench, NULL);
    memset(bench->memory, 0, sizeof(bench->memory));
    uint32_t data = 0;
    for (uint32_t i = 0; i < COUNT_OF(opcodes); i++) {
        assert_int_equal(deliver(bench, &packets[i]), 0);
    }
    (void)pull(bench, &data);
    assert_int_equal(written(bench), 0);
    assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), 0);
    assert_int_equal(receive_queue_count(&bench->qp->receives), 1);
    assert_int_equal(bench->qp->state, QP_RTR);
    assert_int_equal(data, 1); /* The atomic's result, which is still kept. */
    assert_int_equal(nic_counters(bench->nic)->values[COUNTER_drop_before_window], 1);
    end(bench);
}

static void begin_again_after_reset(struct bench *bench)
{
    bench_modify(bench, QP_RESET, 0, 0);
    bench_modify(bench, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS, 0);
    bench_modify(bench, QP_RTR,
                 QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
                     QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
                 0);
    bench_speak_blocks(bench, 0, 0);
}

/* `old` began before the queue pair or its session began anew. Now a block of the same number has a
 * context of the same birth; `packet` is its first. */
static void expect_void(struct bench *bench, const struct block_packet *packet,
                        const struct nic_move *old)
{
    struct nic_move move;
    const bool alone = packet->last_position == 0;
    assert_true(arrive(bench, packet, &move));
    assert_int_equal(move.birth, old->birth);
    block_receive_on_moved(bench->qp, old, NIC_MOVED, bench->now);
    const struct block_responder *stream = &bench->qp->block->receiver->stream;
    assert_int_equal(base_of(bench), 0);
    assert_int_equal(stream->moving, alone);
    assert_int_equal(stream->reserve.placed, 0);
    finish(bench, &move, NIC_MOVED);
    assert_int_equal(alone ? base_of(bench) : stream->reserve.placed, 1);
}

/* EXA-92: a move that began before a reset ends in the next life. */
static void an_old_move_does_not_count(void **state)
{
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        const struct bench_config config = {.held = 4};
        struct bench *bench = begin(&config);
        struct block_packet packet = packet_of(bench, BLOCK_WRITE, 0, 0);
        if (alone) {
            packet.last_position = 0;
            packet.message_bytes = BENCH_MTU;
        }
        struct nic_move old;
        assert_true(arrive(bench, &packet, &old));
        begin_again_after_reset(bench);
        expect_void(bench, &packet, &old);
        end(bench);
    }
}

/* Likewise in the session after one that was dropped, also if there was a reset, too. */
static void a_move_of_a_dropped_session_does_not_count(void **state)
{
    (void)state;
    for (int reset = 0; reset < 2; reset++) {
        const struct bench_config config = {.held = 4};
        struct bench *bench = begin(&config);
        const struct block_packet packet = packet_of(bench, BLOCK_WRITE, 0, 0);
        const struct block_terms terms = bench->qp->block->receiving;
        struct nic_move old;
        assert_true(arrive(bench, &packet, &old));
        block_hello_drop_session(bench->qp);
        if (reset) {
            begin_again_after_reset(bench);
        } else {
            bench->qp->block->answer =
                (struct hello_answer){.session = true, .nonce = BENCH_SESSION};
            block_receive_begin(bench->qp, &terms);
        }
        expect_void(bench, &packet, &old);
        end(bench);
    }
}

/* A payload that is being moved out of the hold pool stays there while its queue pair is reset. */
static void a_held_payload_is_moved_late(void **state)
{
    (void)state;
    const struct bench_config config = {.held = 4, .place = BLOCK_PLACE_HOLD};
    struct bench *bench = begin(&config);
    const struct block_packet last = packet_of(bench, BLOCK_WRITE, 0, PACKETS - 1);
    struct nic_move move;
    assert_false(arrive(bench, &last, &move));
    for (uint8_t position = 0; position < PACKETS - 1; position++) {
        const struct block_packet packet = packet_of(bench, BLOCK_WRITE, 0, position);
        assert_true(arrive(bench, &packet, &move));
        finish(bench, &move, NIC_MOVED);
    }
    assert_true(block_receive_next_held(bench->qp, &move));
    bench_modify(bench, QP_RESET, 0, 0);
    assert_int_equal(bench->nic->block_shared->hold.used, 1);
    nic_on_moved(bench->nic, &move, NIC_MOVED, bench->now);
    assert_int_equal(bench->nic->block_shared->hold.used, 0);
    end(bench);
}

/* EXA-104: packets that come in order keep no context of the table, and a message of one packet
 * needs none. */
static void in_order_nothing_is_kept(void **state)
{
    (void)state;
    const struct bench_config config = {.held = 4};
    struct bench *bench = begin(&config);
    for (uint32_t number = 0; number < 8; number++) {
        for (uint8_t position = 0; position < PACKETS; position++) {
            assert_int_equal(deliver_at(bench, BLOCK_WRITE, number, position), 1);
            assert_int_equal(bench->nic->block_shared->contexts.used, 0);
            assert_int_equal(bench->nic->block_shared->hold.used, 0);
        }
    }
    struct block_packet packet = packet_of(bench, BLOCK_WRITE, 8, 0);
    packet.last_position = 0;
    packet.message_bytes = BENCH_MTU;
    struct nic_move move;
    assert_true(arrive(bench, &packet, &move));
    assert_int_equal(contexts_used(bench), 0);
    /* An answer that left before the payload was in memory is sent again afterwards. */
    (void)pull(bench, NULL);
    finish(bench, &move, NIC_MOVED);
    assert_true(block_receive_ready(bench->qp));
    assert_int_equal(base_of(bench), 9);
    end(bench);
}

/* EXA-111: early messages have all receives of the shared queue; the one they wait for gets its
 * receive from the last of them, which comes again. */
static void early_messages_give_back_their_receives(void **state)
{
    (void)state;
    const struct bench_config config = {.held = 4, .shared = true};
    struct bench *bench = begin(&config);
    for (uint32_t i = 0; i < BENCH_RECEIVES; i++) {
        bench_post_receive(bench, i, BYTES, bench->receive_region.key);
    }
    for (uint32_t number = 1; number <= BENCH_RECEIVES + 1; number++) {
        for (uint8_t position = 0; position < PACKETS; position++) {
            assert_int_equal(deliver_at(bench, BLOCK_SEND, number, position),
                             number <= BENCH_RECEIVES);
        }
    }
    assert_int_equal(receive_queue_count(&bench->srq.queue), 0);
    assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), 0);
    for (uint8_t position = 0; position < PACKETS; position++) {
        assert_int_equal(deliver_at(bench, BLOCK_SEND, 0, position), 1);
    }
    assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), BENCH_RECEIVES);
    assert_int_equal(base_of(bench), BENCH_RECEIVES);
    assert_int_equal(nic_counters(bench->nic)->values[COUNTER_blocks_reneged], 1);
    /* Without a receive the last one waits, and is told so. */
    assert_int_equal(deliver_at(bench, BLOCK_SEND, BENCH_RECEIVES, 0), 0);
    assert_int_equal(pull(bench, NULL), BLOCK_STATUS_RNR);
    bench_post_receive(bench, 0, BYTES, bench->receive_region.key);
    for (uint8_t position = 0; position < PACKETS; position++) {
        assert_int_equal(deliver_at(bench, BLOCK_SEND, BENCH_RECEIVES, position), 1);
    }
    assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), 1);
    end(bench);
}

/* Memory of an on-demand region that is not there: refused in its turn, else asked for again. */
static void faults_are_refused_in_order(void **state)
{
    (void)state;
    const struct bench_config config = {.held = 4};
    struct bench *bench = begin(&config);
    struct nic_move move;
    struct block_packet packet = packet_of(bench, BLOCK_WRITE, 0, 1);
    assert_true(arrive(bench, &packet, &move));
    finish(bench, &move, NIC_MOVE_FAULTED);
    assert_int_equal(bench->qp->state, QP_RTR);
    assert_int_equal(deliver_at(bench, BLOCK_WRITE, 0, 0), 1);
    assert_true(arrive(bench, &packet, &move)); /* It came again. */
    finish(bench, &move, NIC_MOVE_FAULTED);
    assert_int_equal(bench->qp->state, QP_ERR);
    assert_int_equal(pull(bench, NULL), BLOCK_STATUS_OPERATIONAL);
    end(bench);
}

static void expect(struct bench *bench, uint64_t wr_id, enum completion_status status)
{
    struct completion completion;
    assert_int_equal(cq_poll(&bench->cq, &completion, 1), 1);
    assert_int_equal(completion.wr_id, wr_id);
    assert_int_equal(completion.status, status);
    assert_int_equal(completion.kind, COMPLETION_RECEIVE);
}

/* EXA-89: a receive whose memory is not there says so, as by RC; those behind it are flushed. The
 * message has one packet or several; the receives are the queue pair's own or shared. */
static void receives_that_are_not_there(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool shared = (i & 1) != 0, several = (i & 2) != 0;
        const struct bench_config config = {.held = 4, .shared = shared};
        struct bench *bench = begin(&config);
        for (uint32_t receive = 0; receive < 3; receive++) {
            bench_post_receive(bench, receive, BYTES, bench->receive_region.key);
        }
        struct nic_move move;
        struct block_packet packet = packet_of(bench, BLOCK_SEND, 0, several);
        if (several) {
            assert_int_equal(deliver_at(bench, BLOCK_SEND, 0, 0), 1);
        } else {
            packet.last_position = 0;
            packet.message_bytes = BENCH_MTU;
        }
        assert_true(arrive(bench, &packet, &move));
        assert_int_equal(deliver_at(bench, BLOCK_SEND, 1, 0), 1); /* It takes the second one. */
        finish(bench, &move, NIC_MOVE_FAULTED);
        assert_int_equal(bench->qp->state, QP_ERR);
        assert_int_equal(pull(bench, NULL), BLOCK_STATUS_OPERATIONAL);
        expect(bench, 0, COMPLETION_LOCAL_PROTECTION);
        expect(bench, 1, COMPLETION_FLUSHED);
        if (!shared) {
            expect(bench, 2, COMPLETION_FLUSHED);
        }
        assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), 0);
        assert_int_equal(receive_queue_count(&bench->srq.queue), shared ? 1 : 0);
        end(bench);
    }
}

/* EXA-103: the end of a message came early, into its receive; then the message turns out to be a
 * shorter one, which uses that receive up. */
static void receives_that_were_used_before(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        const struct bench_config config = {.held = 4, .shared = shared != 0};
        struct bench *bench = begin(&config);
        bench_post_receive(bench, 7, BENCH_RECEIVE_BYTES, bench->receive_region.key);
        struct nic_move move;
        struct block_packet packet = packet_of(bench, BLOCK_SEND, 1, 0);
        packet.receive_number = 0;
        packet.index = 1;
        packet.last_position = 0;
        packet.message_bytes = (BLOCK_POSITIONS + 1) * BENCH_MTU;
        assert_int_equal(block_judge(&packet, BENCH_MTU), BLOCK_CONSISTENT);
        assert_true(arrive(bench, &packet, &move));
        for (uint8_t position = 0; position < PACKETS; position++) {
            assert_int_equal(deliver_at(bench, BLOCK_SEND, 0, position), 1);
        }
        expect(bench, 7, COMPLETION_SUCCESS);
        finish(bench, &move, NIC_MOVE_FAULTED);
        assert_int_equal(bench->qp->state, QP_ERR);
        assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), 0);
        end(bench);
    }
}

/* EXA-103: contradictions are refused in order, else not believed. */
static void contradictions_are_refused(void **state)
{
    (void)state;
    enum {
        LENGTH,
        LAST,
        RECEIVE,
        KEY,
        FUTURE,
        CASES
    };
    for (int what = 0; what < CASES; what++) {
        const struct bench_config config = {.held = 4};
        struct bench *bench = begin(&config);
        for (uint32_t i = 0; i < 4; i++) {
            bench_post_receive(bench, i, BYTES, bench->receive_region.key);
        }
        const enum block_opcode opcode = what == KEY ? BLOCK_WRITE : BLOCK_SEND;
        assert_int_equal(deliver_at(bench, opcode, 0, 0), 1);
        struct block_packet packet = packet_of(bench, opcode, what == FUTURE, 1);
        packet.payload_bytes -= what == LENGTH || what == FUTURE;
        packet.last_position = what == LAST ? PACKETS - 2 : PACKETS - 1;
        packet.receive_number += what == RECEIVE;
        packet.key = what == KEY ? bench->region[1].key : packet.key;
        assert_int_equal(deliver(bench, &packet), 0);
        assert_int_equal(bench->qp->state, what == FUTURE ? QP_RTR : QP_ERR);
        assert_int_equal(pull(bench, NULL),
                         what == FUTURE ? BLOCK_STATUS_NONE : BLOCK_STATUS_INVALID_REQUEST);
        end(bench);
    }
}

/* EXA-103: a last packet that comes again may say something else. The copy that was judged counts,
 * so that no receive is used that was not looked for. */
static void the_end_of_a_message_may_change(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        for (int other = 0; other < 2; other++) {
            const struct bench_config config = {.held = 4, .shared = shared != 0};
            struct bench *bench = begin(&config);
            struct block_packet last = packet_of(bench, BLOCK_WRITE, 0, PACKETS - 1);
            last.has_immediate = true;
            assert_int_equal(deliver(bench, &last), 0); /* Held. */
            assert_int_equal(deliver_at(bench, BLOCK_WRITE, 0, 0), 1);
            assert_int_equal(deliver_at(bench, BLOCK_WRITE, 0, 1), 1);
            assert_int_equal(pull(bench, NULL), BLOCK_STATUS_RNR);
            last.has_immediate = other != 0;
            assert_int_equal(deliver(bench, &last), !other);
            assert_int_equal(base_of(bench), !other);
            assert_int_equal(poll_count(bench, COMPLETION_SUCCESS), 0);
            end(bench);
        }
    }
}

int main(void)
{
    memset(payload, 0xab, sizeof(payload));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_that_went_is_not_written),
        cmocka_unit_test(what_is_permitted_in_time_succeeds),
        cmocka_unit_test(data_is_judged_as_it_leaves),
        cmocka_unit_test(data_is_judged_when_asked_for_again),
        cmocka_unit_test(pieces_of_a_read_are_no_copies),
        cmocka_unit_test(a_stream_that_ends_gives_all_back),
        cmocka_unit_test(a_stream_with_receives_stays),
        cmocka_unit_test(late_duplicates_change_nothing),
        cmocka_unit_test(old_duplicates_change_nothing),
        cmocka_unit_test(an_old_move_does_not_count),
        cmocka_unit_test(a_move_of_a_dropped_session_does_not_count),
        cmocka_unit_test(in_order_nothing_is_kept),
        cmocka_unit_test(early_messages_give_back_their_receives),
        cmocka_unit_test(faults_are_refused_in_order),
        cmocka_unit_test(receives_that_are_not_there),
        cmocka_unit_test(receives_that_were_used_before),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(the_end_of_a_message_may_change),
        cmocka_unit_test(a_held_payload_is_moved_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
