/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    States of a queue pair are those of IBTA 10.3.1: the transitions, the packets that are
 *         taken in each state, and the attributes that a program may set (docs/ibta.md names each
 *         rule).
 * Method  As in refusals_test.
 */
#include "nic/ibta/test_bench.h"

static void receive(struct bench *bench, uint64_t wr_id, uint32_t key)
{
    const struct sge sge = {0, 8, key};
    assert_int_equal(qp_post_receive(bench->qp, wr_id, &sge, 1), STATUS_OK);
}

static void send(struct bench *bench, uint32_t psn)
{
    deliver(bench, (struct roce_packet){.opcode = ROCE_SEND_ONLY,
                                        .ack_request = true,
                                        .psn = PEER_PSN + psn,
                                        .payload_bytes = 8});
}

static void post_with(struct bench *bench, uint64_t wr_id, uint32_t key)
{
    const struct sge sge = {0, 8, key};
    const struct send_request request = {
        .wr_id = wr_id, .kind = WORK_WRITE, .sges = &sge, .sge_count = 1};
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
}

/* -- SQE ----------------------------------------------------------------------------------------*/

/* A send of UC that fails flushes those behind it and no receive; messages go on coming; the
 * program leads the queue pair back. */
static void test_send_queue_error(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_UC, QP_RTS);
    receive(bench, 9, bench->region.key);
    post_with(bench, 1, bench->region.key + 1);
    post_with(bench, 2, bench->region.key);
    assert_int_equal(pull(bench, NULL), 0);
    assert_int_equal(qp_state_of(bench->qp), QP_SQE);
    expect(bench, 1, COMPLETION_LOCAL_PROTECTION);
    expect(bench, 2, COMPLETION_FLUSHED);
    post_with(bench, 3, bench->region.key);
    expect(bench, 3, COMPLETION_FLUSHED);
    send(bench, 0);
    expect(bench, 9, COMPLETION_SUCCESS);
    modify(bench, QP_RTS, 0);
    assert_int_equal(qp_state_of(bench->qp), QP_RTS);
    post_with(bench, 4, bench->region.key);
    assert_int_equal(pull(bench, NULL), 1);
    expect(bench, 4, COMPLETION_SUCCESS);
    end(bench);
}

/* RC has no such state: a request that fails ends the queue pair. */
static void test_reliable_ones_have_no_such_state(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post_with(bench, 1, bench->region.key + 1);
    assert_int_equal(pull(bench, NULL), 0);
    assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    const struct qp_attributes back = {.state = QP_RTS};
    assert_int_equal(qp_modify(bench->qp, &back, QP_ATTR_STATE, bench->now), STATUS_INVALID);
    end(bench);
}

/* -- RESET --------------------------------------------------------------------------------------*/

/* Completions that nobody polled are removed; requests end without a completion. */
static void test_reset_forgets(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    receive(bench, 1, bench->region.key);
    receive(bench, 2, bench->region.key);
    send(bench, 0); /* Completes the first one. */
    post_with(bench, 3, bench->region.key);
    modify(bench, QP_RESET, 0);
    expect_nothing(bench);
    assert_int_equal(pull(bench, NULL), 0);
    receive_ready(bench);
    receive(bench, 4, bench->region.key);
    send(bench, 0);
    expect(bench, 4, COMPLETION_SUCCESS);
    expect_nothing(bench);
    end(bench);
}

/* From RESET a queue pair goes to INIT only: there is nothing to flush. */
static void test_reset_leads_to_init_only(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    modify(bench, QP_RESET, 0);
    for (enum qp_state to = QP_RTR; to <= QP_ERR; to++) {
        const struct qp_attributes attributes = {.state = (uint8_t)to};
        assert_int_equal(qp_modify(bench->qp, &attributes, QP_ATTR_STATE, bench->now),
                         STATUS_INVALID);
        assert_int_equal(qp_state_of(bench->qp), QP_RESET);
    }
    receive_ready(bench);
    modify(bench, QP_ERR, 0);
    end(bench);
}

/* -- Packets that arrive ------------------------------------------------------------------------*/

/* Requests come from RTR on, answers from RTS on. */
static void test_answers_before_rts(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTR);
    answer(bench, ROCE_ACKNOWLEDGE, 0, FINE, 0);
    assert_int_equal(counted(bench, COUNTER_drop_wrong_state), 1);
    receive(bench, 1, bench->region.key);
    send(bench, 0);
    expect(bench, 1, COMPLETION_SUCCESS);
    end(bench);
}

/* A receive whose memory may not be written locally fails, and so does the SEND. */
static void test_receive_into_memory_that_is_read_only(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    struct region region;
    const struct region_request request = {.address = (uintptr_t)bench->memory, .bytes = MTU};
    assert_int_equal(region_add(nic_regions(bench->nic), &bench->pd, &request, &region), STATUS_OK);
    receive(bench, 1, region.key);
    send(bench, 0);
    struct roce_packet reply;
    assert_int_equal(pull(bench, &reply), 1);
    assert_int_equal(reply.aeth.syndrome, ROCE_NAK_REMOTE_OPERATIONAL);
    expect(bench, 1, COMPLETION_LOCAL_PROTECTION);
    end(bench);
}

/* -- Completion queues --------------------------------------------------------------------------*/

/* Another queue pair of the bench's, in RTR, which sends to one and receives to the other. */
static struct qp *add_qp(struct bench *bench, struct cq *send_cq, struct cq *receive_cq,
                         void **memory)
{
    struct qp_request request = {.type = QP_UC,
                                 .pd = &bench->pd,
                                 .send_cq = send_cq,
                                 .receive_cq = receive_cq,
                                 .capacity = {.sends = 1, .receives = 4, .receive_sges = 1}};
    struct qp *first = bench->qp, *qp;
    *memory = zeroed(qp_bytes(request.type, &request.capacity, false));
    assert_int_equal(qp_create(bench->nic, &request, *memory, &qp), STATUS_OK);
    bench->qp = qp;
    receive_ready(bench);
    bench->qp = first;
    return qp;
}

/* 11.6.3.2: a completion queue that has lost a completion reports it once, and ends all queue pairs
 * that complete there, also those that lost nothing, and no other ones. */
static void test_overrun_ends_all(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    struct cq other;
    struct completion ring[4];
    void *memory[3];
    cq_init(&other, 4, ring);
    struct qp *const sends = add_qp(bench, &bench->cq, &other, &memory[0]);
    struct qp *const receives = add_qp(bench, &other, &bench->cq, &memory[1]);
    struct qp *const stranger = add_qp(bench, &other, &other, &memory[2]);
    const struct sge sge = {0, 8, bench->region.key};
    assert_int_equal(qp_post_receive(receives, 7, &sge, 1), STATUS_OK);
    bench->cq.capacity = 1;
    for (uint32_t i = 0; i < 2; i++) {
        post(bench, i, WORK_WRITE, 8);
        assert_int_equal(pull(bench, NULL), 1);
        answer(bench, ROCE_ACKNOWLEDGE, i, FINE, 0);
    }
    uint32_t queue_errors = 0, fatal = 0;
    struct nic_event event;
    while (nic_next_event(bench->nic, &event)) {
        assert_true(event.kind != NIC_EVENT_QP_FATAL || queue_errors == 1);
        queue_errors += event.kind == NIC_EVENT_CQ_ERROR;
        fatal += event.kind == NIC_EVENT_QP_FATAL;
        if (event.kind == NIC_EVENT_CQ_ERROR) {
            assert_ptr_equal(event.cq, &bench->cq);
            expect(bench, 0, COMPLETION_SUCCESS);
        }
    }
    assert_int_equal(queue_errors, 1);
    assert_int_equal(fatal, 3);
    assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    assert_int_equal(qp_state_of(sends), QP_ERR);
    assert_int_equal(qp_state_of(receives), QP_ERR);
    assert_int_equal(qp_state_of(stranger), QP_RTR);
    expect(bench, 7, COMPLETION_FLUSHED); /* There was room for it. */
    qp_destroy(sends);
    qp_destroy(receives);
    qp_destroy(stranger);
    for (int i = 0; i < 3; i++) {
        free(memory[i]);
    }
    end(bench);
}

/* -- Attributes that a program may set ----------------------------------------------------------*/

static void test_values(void **state)
{
    (void)state;
    static const struct {
        uint32_t mask;
        struct qp_attributes good, bad;
    } cases[] = {
        {QP_ATTR_TIMEOUT, {.timeout = 31}, {.timeout = 32}},
        {QP_ATTR_RETRY_CNT, {.retry_count = 7}, {.retry_count = 8}},
        {QP_ATTR_RNR_RETRY, {.rnr_retry = 7}, {.rnr_retry = 8}},
        {QP_ATTR_MIN_RNR_TIMER, {.min_rnr_timer = 31}, {.min_rnr_timer = 32}},
        {QP_ATTR_MAX_QP_RD_ATOMIC, {.max_reads_out = 2}, {.max_reads_out = 3}},
        {QP_ATTR_MAX_DEST_RD_ATOMIC, {.max_reads_in = 2}, {.max_reads_in = 3}},
    };
    struct bench *bench = begin(QP_RC, QP_RTS);
    modify(bench, QP_SQD, 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct qp_attributes attributes = cases[i].bad;
        attributes.state = QP_SQD;
        assert_int_equal(
            qp_modify(bench->qp, &attributes, cases[i].mask | QP_ATTR_STATE, bench->now),
            STATUS_INVALID);
        attributes = cases[i].good;
        attributes.state = QP_SQD;
        assert_int_equal(
            qp_modify(bench->qp, &attributes, cases[i].mask | QP_ATTR_STATE, bench->now),
            STATUS_OK);
    }
    end(bench);
}

static void read_request(struct bench *bench, uint32_t psn)
{
    deliver(bench, (struct roce_packet){.opcode = ROCE_READ_REQUEST,
                                        .psn = PEER_PSN + psn,
                                        .reth = {.key = bench->region.key, .bytes = 8}});
}

static enum status set_reads_in(struct bench *bench, uint8_t reads)
{
    const struct qp_attributes attributes = {.state = QP_SQD, .max_reads_in = reads};
    return qp_modify(bench->qp, &attributes, QP_ATTR_STATE | QP_ATTR_MAX_DEST_RD_ATOMIC,
                     bench->now);
}

/* In SQD the responder's room for READs and atomics changes, and not only what a query tells. */
static void test_responder_resources(void **state)
{
    (void)state;
    for (uint8_t limit = 0; limit <= 2; limit++) {
        struct bench *bench = begin_with(QP_RC, QP_RTS, ACCESS_REMOTE_READ);
        modify(bench, QP_SQD, 0);
        assert_int_equal(set_reads_in(bench, limit), STATUS_OK);
        modify(bench, QP_RTS, 0);
        for (uint32_t i = 0; i <= limit; i++) {
            assert_int_equal(counted(bench, COUNTER_nak_no_resources), 0);
            read_request(bench, i);
        }
        assert_int_equal(counted(bench, COUNTER_nak_no_resources), 1);
        end(bench);
    }
}

/* Takes all the memory that there is for more than one READ; returns the last piece of it. */
static void *take_all(struct bench *bench)
{
    void *piece, *last = NULL;
    while ((piece = pool_take(&bench->nic->reads, 1)) != NULL) {
        last = piece;
    }
    return last;
}

/* The limit cannot exceed the memory that there is, and cannot go below the number that the peer
 * waits for. */
static void test_responder_resources_in_use(void **state)
{
    (void)state;
    struct bench *bench = begin_with(QP_RC, QP_RTS, ACCESS_REMOTE_READ);
    modify(bench, QP_RESET, 0);
    bench->reads_in = 1;
    receive_ready(bench);
    modify(bench, QP_RTS,
           QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
               QP_ATTR_MAX_QP_RD_ATOMIC);
    read_request(bench, 0);
    modify(bench, QP_SQD, 0);
    void *last = take_all(bench);
    assert_int_equal(set_reads_in(bench, 2), STATUS_FULL);
    assert_int_equal(counted(bench, COUNTER_reads_no_memory), 1);
    pool_give(&bench->nic->reads, 1, last);
    assert_int_equal(set_reads_in(bench, 2), STATUS_OK);
    read_request(bench, 1);
    assert_int_equal(set_reads_in(bench, 1), STATUS_BUSY);
    struct qp_attributes attributes;
    qp_query(bench->qp, &attributes);
    assert_int_equal(attributes.max_reads_in, 2);
    assert_int_equal(pull(bench, NULL), 2);
    assert_int_equal(set_reads_in(bench, 1), STATUS_OK);
    assert_int_equal(counted(bench, COUNTER_nak_no_resources), 0);
    end(bench);
}

/* A lack of memory is found before anything changes; with fewer READs, or when there is memory, the
 * queue pair goes on. */
static void test_no_memory_for_responder_resources(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    modify(bench, QP_RESET, 0);
    void *last = take_all(bench);
    modify(bench, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    const struct qp_attributes attributes = {
        .state = QP_RTR, .path_mtu = PATH_MTU_256, .max_reads_in = 2};
    const uint32_t mask = QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                          QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
    struct qp_attributes before, after;
    qp_query(bench->qp, &before);
    assert_int_equal(qp_modify(bench->qp, &attributes, mask, bench->now), STATUS_FULL);
    qp_query(bench->qp, &after);
    assert_memory_equal(&before, &after, sizeof(before));
    assert_int_equal(counted(bench, COUNTER_reads_no_memory), 1);
    pool_give(&bench->nic->reads, 1, last);
    assert_int_equal(qp_modify(bench->qp, &attributes, mask, bench->now), STATUS_OK);
    end(bench);
}

/* A queue pair that is reset gives back its memory, each time. */
static void test_responder_resources_come_back(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    for (uint32_t i = 0; i < 100; i++) {
        modify(bench, QP_RESET, 0);
        bench->reads_in = (uint8_t)(1 + i % 2);
        receive_ready(bench);
    }
    modify(bench, QP_ERR, 0);
    qp_destroy(bench->qp);
    uint32_t units = 0;
    for (uint32_t order = 0; order < 2; order++) {
        while (pool_take(&bench->nic->reads, order) != NULL) {
            units += 1u << order;
        }
    }
    assert_int_equal(units, bench->nic->limits.reads);
    free(bench->qp_memory);
    free(bench->nic);
    free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_send_queue_error),
        cmocka_unit_test(test_reliable_ones_have_no_such_state),
        cmocka_unit_test(test_reset_forgets),
        cmocka_unit_test(test_reset_leads_to_init_only),
        cmocka_unit_test(test_answers_before_rts),
        cmocka_unit_test(test_receive_into_memory_that_is_read_only),
        cmocka_unit_test(test_overrun_ends_all),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_responder_resources),
        cmocka_unit_test(test_responder_resources_in_use),
        cmocka_unit_test(test_no_memory_for_responder_resources),
        cmocka_unit_test(test_responder_resources_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
