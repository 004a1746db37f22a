/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A FLUSH is answered when all bytes that came before are in memory and where it wants
 *         them; a FLUSH that cannot be obeyed is refused (docs/ibta.md names each rule); and a
 *         requester sends no more of them than agreed.
 * Method  Requests and answers of the peer are made by hand. Memory moves are done when the test
 *         says so, so that an answer that comes too early is seen.
 */
#include "nic/ibta/test_bench.h"

#define ALL (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_FLUSH_GLOBAL)

static struct roce_packet flush_of(const struct bench *bench, uint32_t psn, uint64_t address,
                                   uint32_t bytes)
{
    return (struct roce_packet){.opcode = ROCE_FLUSH,
                                .psn = PEER_PSN + psn,
                                .reth = {address, bench->region.key, bytes},
                                .feth = {.placement = ROCE_PLACEMENT_GLOBAL}};
}

static void write(struct bench *bench, uint32_t psn)
{
    deliver(bench, (struct roce_packet){.opcode = ROCE_WRITE_ONLY,
                                        .psn = PEER_PSN + psn,
                                        .reth = {0, bench->region.key, 8},
                                        .payload_bytes = 8});
}

/* The one packet that leaves answers a FLUSH, and carries nothing. */
static void expect_answer(struct bench *bench, uint32_t psn)
{
    struct roce_packet reply = {0};
    assert_int_equal(pull(bench, &reply), 1);
    assert_int_equal(reply.opcode, ROCE_READ_RESPONSE_ONLY);
    assert_int_equal(reply.psn, PEER_PSN + psn);
    assert_int_equal(reply.payload_bytes, 0);
    assert_int_equal(reply.aeth.syndrome & ROCE_AETH_KIND_MASK, ROCE_AETH_ACK);
}

/* -- The responder ------------------------------------------------------------------------------*/

/* A19: the bytes that were written before are placed, then the FLUSH is executed, then it is
 * answered. */
static void test_waits_for_what_came_before(void **state)
{
    (void)state;
    struct bench *bench = begin_with(QP_RC, QP_RTS, ALL);
    bench->slow = true;
    write(bench, 0);
    deliver(bench, flush_of(bench, 1, 16, 100));
    write(bench, 2);
    assert_int_equal(bench->move_count, 3);
    const struct nic_move *move = &bench->moves[1];
    assert_int_equal(move->kind, NIC_MOVE_FLUSH);
    assert_true(move->in_order); /* It finishes behind the first WRITE. */
    assert_false(move->flush.persistent);
    assert_ptr_equal((void *)(uintptr_t)move->flush.range.address, bench->memory + 16);
    assert_int_equal(move->flush.range.bytes, 100);
    assert_int_equal(pull(bench, NULL), 0);
    finish_first(bench, NIC_MOVED);
    assert_int_equal(pull(bench, NULL), 0);
    finish_first(bench, NIC_MOVED);
    expect_answer(bench, 1);
    end(bench);
}

/* oA19-14: a duplicate is answered again, and executed once. One that comes before the answer is
 * not answered twice. */
static void test_duplicates(void **state)
{
    (void)state;
    struct bench *bench = begin_with(QP_RC, QP_RTS, ALL);
    bench->slow = true;
    deliver(bench, flush_of(bench, 0, 0, 8));
    deliver(bench, flush_of(bench, 0, 0, 8));
    assert_int_equal(bench->move_count, 1);
    assert_int_equal(pull(bench, NULL), 0);
    finish_first(bench, NIC_MOVED);
    expect_answer(bench, 0);
    for (int i = 0; i < 3; i++) {
        deliver(bench, flush_of(bench, 0, 0, 8));
        assert_int_equal(bench->move_count, 0);
        expect_answer(bench, 0);
    }
    assert_int_equal(counted(bench, COUNTER_duplicate_request), 4);
    end(bench);
}

/* Answers leave in the order of their requests: behind those of READs, before acknowledgements. */
static void test_among_reads(void **state)
{
    (void)state;
    struct bench *bench = begin_with(QP_RC, QP_RTS, ALL);
    bench->slow = true;
    deliver(bench, flush_of(bench, 0, 0, 8));
    deliver(bench, (struct roce_packet){.opcode = ROCE_READ_REQUEST,
                                        .psn = PEER_PSN + 1,
                                        .reth = {0, bench->region.key, 8}});
    assert_int_equal(pull(bench, NULL), 0);
    finish_first(bench, NIC_MOVED);
    struct roce_packet reply = {0};
    assert_int_equal(pull(bench, &reply), 2);
    assert_int_equal(reply.psn, PEER_PSN);
    assert_int_equal(reply.payload_bytes, 0);
    end(bench);
}

struct asked {
    const char *what;
    uint32_t queue_pair, region; /* Rights that are granted. */
    uint32_t placement, selectivity, reserved;
    uint64_t address;
    uint32_t bytes, wrong_key;
    uint8_t syndrome; /* 0: it is executed. */
    enum nic_counter counter;
    uint64_t flushed_from, flushed; /* In the region. */
};

#define GLOBAL     ACCESS_FLUSH_GLOBAL
#define PERSISTENT ACCESS_FLUSH_PERSISTENT
#define BOTH       (ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT)
#define SIZE       (8 * MTU)
#define INVALID    ROCE_NAK_INVALID_REQUEST
#define NO_ACCESS  ROCE_NAK_REMOTE_ACCESS

static const struct asked asked[] = {
    {"a range", BOTH, BOTH, 1, 0, 0, 5, 7, 0, 0, 0, 5, 7},
    {"persistence", BOTH, BOTH, 2, 0, 0, 5, 7, 0, 0, 0, 5, 7},
    {"both", BOTH, BOTH, 3, 0, 0, 0, SIZE, 0, 0, 0, 0, SIZE},
    {"nothing of it", BOTH, BOTH, 1, 0, 0, SIZE, 0, 0, 0, 0, SIZE, 0},
    {"all of it, whatever address and length", BOTH, BOTH, 3, 1, 0, ~UINT64_C(0), ~0u, 0, 0, 0, 0,
     SIZE},
    {"reserved bits beside", BOTH, BOTH, 1, 0, 0x3ffffff, 5, 7, 0, 0, 0, 5, 7},
    {"only what is granted is asked for", GLOBAL, GLOBAL, 1, 0, 0, 5, 7, 0, 0, 0, 5, 7},

    {"no placement", BOTH, BOTH, 0, 0, 0, 5, 7, 0, INVALID, COUNTER_nak_unknown_flush, 0, 0},
    {"a placement that is reserved", BOTH, BOTH, 4, 0, 0, 5, 7, 0, INVALID,
     COUNTER_nak_unknown_flush, 0, 0},
    {"another beside one that is known", BOTH, BOTH, 9, 0, 0, 5, 7, 0, INVALID,
     COUNTER_nak_unknown_flush, 0, 0},
    {"selectivity 2", BOTH, BOTH, 1, 2, 0, 5, 7, 0, INVALID, COUNTER_nak_unknown_flush, 0, 0},
    {"selectivity 3", BOTH, BOTH, 1, 3, 0, 5, 7, 0, INVALID, COUNTER_nak_unknown_flush, 0, 0},
    {"a queue pair that grants nothing", 0, BOTH, 1, 0, 0, 5, 7, 0, INVALID,
     COUNTER_nak_invalid_opcode, 0, 0},
    {"a queue pair that grants the other", PERSISTENT, BOTH, 1, 0, 0, 5, 7, 0, INVALID,
     COUNTER_nak_invalid_opcode, 0, 0},
    {"a queue pair that grants one of two", GLOBAL, BOTH, 3, 0, 0, 5, 7, 0, INVALID,
     COUNTER_nak_invalid_opcode, 0, 0},
    {"a range of 2^31 bytes", BOTH, BOTH, 1, 0, 0, 0, 0x80000000, 0, INVALID,
     COUNTER_nak_invalid_length, 0, 0},
    {"a range of 2^31 - 1 bytes, which is not there", BOTH, BOTH, 1, 0, 0, 0, 0x7fffffff, 0,
     NO_ACCESS, COUNTER_nak_out_of_bounds, 0, 0},
    {"a region that grants nothing", BOTH, 0, 1, 0, 0, 5, 7, 0, NO_ACCESS, COUNTER_nak_forbidden, 0,
     0},
    {"a region that is not persistent", BOTH, GLOBAL, 2, 0, 0, 5, 7, 0, NO_ACCESS,
     COUNTER_nak_forbidden, 0, 0},
    {"all of such a region", BOTH, GLOBAL, 3, 1, 0, 5, 7, 0, NO_ACCESS, COUNTER_nak_forbidden, 0,
     0},
    {"a byte beyond", BOTH, BOTH, 1, 0, 0, 1, SIZE, 0, NO_ACCESS, COUNTER_nak_out_of_bounds, 0, 0},
    {"nothing, beyond", BOTH, BOTH, 1, 0, 0, SIZE + 1, 0, 0, NO_ACCESS, COUNTER_nak_out_of_bounds,
     0, 0},
    {"another key", BOTH, BOTH, 1, 0, 0, 5, 7, 1, NO_ACCESS, COUNTER_nak_unknown_key, 0, 0},
    {"another key, for nothing", BOTH, BOTH, 1, 0, 0, 5, 0, 1, NO_ACCESS, COUNTER_nak_unknown_key,
     0, 0},
    {"all of another key", BOTH, BOTH, 1, 1, 0, 0, 0, 1, NO_ACCESS, COUNTER_nak_unknown_key, 0, 0},
};

static void check(const struct asked *asks)
{
    struct bench *bench = begin_with(QP_RC, QP_RTS, ACCESS_REMOTE_WRITE | asks->queue_pair);
    struct region region;
    const struct region_request request = {.address = (uintptr_t)bench->memory,
                                           .start = 0,
                                           .bytes = SIZE,
                                           .access = ACCESS_LOCAL_WRITE | asks->region};
    assert_int_equal(region_add(nic_regions(bench->nic), &bench->pd, &request, &region), STATUS_OK);
    bench->slow = true;
    struct roce_packet packet = flush_of(bench, 0, asks->address, asks->bytes);
    packet.reth.key = region.key ^ asks->wrong_key;
    packet.feth.placement = (uint8_t)asks->placement;
    packet.feth.selectivity = (uint8_t)asks->selectivity;
    packet.feth.reserved = asks->reserved;
    deliver(bench, packet);
    if (asks->syndrome == 0) {
        assert_int_equal(bench->move_count, 1);
        const struct nic_move *move = &bench->moves[0];
        assert_int_equal(move->flush.persistent, asks->placement >> 1 & 1);
        assert_int_equal(move->flush.range.address - (uintptr_t)bench->memory, asks->flushed_from);
        assert_int_equal(move->flush.range.bytes, asks->flushed);
        finish_first(bench, NIC_MOVED);
        expect_answer(bench, 0);
        assert_int_equal(qp_state_of(bench->qp), QP_RTS);
    } else {
        struct roce_packet reply = {0};
        assert_int_equal(bench->move_count, 0);
        assert_int_equal(pull(bench, &reply), 1);
        assert_int_equal(reply.opcode, ROCE_ACKNOWLEDGE);
        assert_int_equal(reply.aeth.syndrome, asks->syndrome);
        assert_int_equal(counted(bench, asks->counter), 1);
        assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    }
    end(bench);
}

static void test_what_is_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        print_message("%s\n", asked[i].what);
        check(&asked[i]);
    }
}

/* A FLUSH that the world could not make persistent is refused. */
static void test_world_that_fails(void **state)
{
    (void)state;
    struct bench *bench = begin_with(QP_RC, QP_RTS, ALL);
    bench->slow = true;
    deliver(bench, flush_of(bench, 0, 0, 8));
    finish_first(bench, NIC_MOVE_FAULTED);
    struct roce_packet reply = {0};
    assert_int_equal(pull(bench, &reply), 1);
    assert_int_equal(reply.aeth.syndrome, ROCE_NAK_REMOTE_OPERATIONAL);
    assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    end(bench);
}

/* A FLUSH takes a responder resource, as READs and atomics do (max_dest_rd_atomic, here 2). */
static void test_more_than_agreed(void **state)
{
    (void)state;
    struct bench *bench = begin_with(QP_RC, QP_RTS, ALL);
    bench->slow = true;
    for (uint32_t i = 0; i < 3; i++) {
        deliver(bench, flush_of(bench, i, 0, 8));
    }
    assert_int_equal(counted(bench, COUNTER_nak_no_resources), 1);
    assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    end(bench);
}

/* A FLUSH in the middle of a message is refused. */
static void test_in_the_middle_of_a_write(void **state)
{
    (void)state;
    struct bench *bench = begin_with(QP_RC, QP_RTS, ALL);
    deliver(bench, (struct roce_packet){.opcode = ROCE_WRITE_FIRST,
                                        .psn = PEER_PSN,
                                        .reth = {0, bench->region.key, 2 * MTU},
                                        .payload_bytes = MTU});
    deliver(bench, flush_of(bench, 1, 0, 8));
    struct roce_packet reply = {0};
    assert_int_equal(pull(bench, &reply), 1);
    assert_int_equal(reply.aeth.syndrome, INVALID);
    end(bench);
}

/* -- The requester ------------------------------------------------------------------------------*/

static enum status try(struct bench *bench, uint32_t placement, uint32_t selectivity,
                       uint32_t bytes)
{
    const struct send_request request = {.wr_id = 9,
                                         .kind = WORK_FLUSH,
                                         .remote_address = 0x1122334455667788,
                                         .remote_key = 0xaabbccdd,
                                         .flush = {.bytes = bytes,
                                                   .placement = (uint8_t)placement,
                                                   .selectivity = (uint8_t)selectivity}};
    return qp_post_send(bench->qp, &request);
}

static void test_what_it_asks_for(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t placement = 1 + i % 3, selectivity = i / 3;
        struct bench *bench = begin(QP_RC, QP_RTS);
        struct roce_packet packet;
        assert_int_equal(try(bench, placement, selectivity, 0x7fffffff), STATUS_OK);
        assert_int_equal(pull(bench, &packet), 1);
        assert_int_equal(packet.opcode, ROCE_FLUSH);
        assert_int_equal(packet.psn, FIRST_PSN);
        assert_int_equal(packet.feth.placement, placement);
        assert_int_equal(packet.feth.selectivity, selectivity);
        assert_int_equal(packet.feth.reserved, 0);
        assert_true(packet.reth.address == 0x1122334455667788);
        assert_int_equal(packet.reth.key, 0xaabbccdd);
        assert_int_equal(packet.reth.bytes, 0x7fffffff);
        assert_int_equal(packet.payload_bytes, 0);
        expect_nothing(bench);
        answer(bench, ROCE_READ_RESPONSE_ONLY, 0, FINE, 0);
        struct completion completion;
        assert_int_equal(cq_poll(&bench->cq, &completion, 1), 1);
        assert_int_equal(completion.kind, COMPLETION_FLUSH);
        assert_int_equal(completion.status, COMPLETION_SUCCESS);
        assert_int_equal(counted(bench, COUNTER_rdma_flushes), 1);
        end(bench);
    }
}

static void test_what_cannot_be_posted(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    assert_int_equal(try(bench, 0, 0, 8), STATUS_INVALID);
    assert_int_equal(try(bench, 4, 0, 8), STATUS_INVALID);
    assert_int_equal(try(bench, 5, 0, 8), STATUS_INVALID);
    assert_int_equal(try(bench, 1, 2, 8), STATUS_INVALID);
    assert_int_equal(try(bench, 1, 0, 0x80000000), STATUS_INVALID);
    const struct sge sge = {0, 8, bench->region.key};
    const struct send_request request = {
        .kind = WORK_FLUSH, .sges = &sge, .sge_count = 1, .flush.placement = ROCE_PLACEMENT_GLOBAL};
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_INVALID);
    assert_int_equal(try(bench, 1, 0, 8), STATUS_OK);
    end(bench);
    bench = begin(QP_UC, QP_RTS);
    assert_int_equal(try(bench, 1, 0, 8), STATUS_INVALID);
    end(bench);
}

/* No more are outstanding than the queue pair may have (max_rd_atomic, here 2), READs included. */
static void test_no_more_than_agreed(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_FLUSH, 8);
    post(bench, 2, WORK_READ, 8);
    post(bench, 3, WORK_FLUSH, 8);
    assert_int_equal(pull(bench, NULL), 2);
    answer(bench, ROCE_READ_RESPONSE_ONLY, 0, FINE, 0);
    assert_int_equal(pull(bench, NULL), 1);
    answer(bench, ROCE_READ_RESPONSE_ONLY, 1, FINE, 8);
    answer(bench, ROCE_READ_RESPONSE_ONLY, 2, FINE, 0);
    for (uint64_t i = 1; i <= 3; i++) {
        expect(bench, i, COMPLETION_SUCCESS);
    }
    end(bench);
}

/* A plain acknowledgement of a later request is no answer: it shows that the answer was lost, and
 * the FLUSH is sent again. */
static void test_lost_answer(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_FLUSH, 8);
    post(bench, 2, WORK_WRITE, 8);
    assert_int_equal(pull(bench, NULL), 2);
    answer(bench, ROCE_ACKNOWLEDGE, 1, FINE, 0);
    expect_nothing(bench);
    struct roce_packet packet;
    assert_int_equal(pull(bench, &packet), 2);
    assert_int_equal(packet.opcode, ROCE_FLUSH);
    answer(bench, ROCE_READ_RESPONSE_ONLY, 0, FINE, 0);
    answer(bench, ROCE_ACKNOWLEDGE, 1, FINE, 0);
    expect(bench, 1, COMPLETION_SUCCESS);
    expect(bench, 2, COMPLETION_SUCCESS);
    end(bench);
}

static void test_answer_with_payload(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_FLUSH, 8);
    assert_int_equal(pull(bench, NULL), 1);
    answer(bench, ROCE_READ_RESPONSE_ONLY, 0, FINE, 8);
    expect(bench, 1, COMPLETION_BAD_RESPONSE);
    assert_int_equal(counted(bench, COUNTER_bad_response_length), 1);
    end(bench);
}

/* A peer that does not know FLUSH: the requests before it are done, the rest is flushed. */
static void test_peer_that_does_not_know_it(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_WRITE, 8);
    post(bench, 2, WORK_FLUSH, 8);
    post(bench, 3, WORK_WRITE, 8);
    assert_int_equal(pull(bench, NULL), 3);
    answer(bench, ROCE_ACKNOWLEDGE, 1, INVALID, 0);
    expect(bench, 1, COMPLETION_SUCCESS);
    expect(bench, 2, COMPLETION_REMOTE_INVALID_REQUEST);
    expect(bench, 3, COMPLETION_FLUSHED);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_what_came_before),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_among_reads),
        cmocka_unit_test(test_what_is_judged),
        cmocka_unit_test(test_world_that_fails),
        cmocka_unit_test(test_more_than_agreed),
        cmocka_unit_test(test_in_the_middle_of_a_write),
        cmocka_unit_test(test_what_it_asks_for),
        cmocka_unit_test(test_what_cannot_be_posted),
        cmocka_unit_test(test_no_more_than_agreed),
        cmocka_unit_test(test_lost_answer),
        cmocka_unit_test(test_answer_with_payload),
        cmocka_unit_test(test_peer_that_does_not_know_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
