/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A request that fails ends in its turn: those before it complete as usual, those behind it
 *         are flushed and never leave (IBTA 9.9.2, 10.8.3). A queue that drains finishes the
 *         requests that have begun, and says so then (10.3.1.5).
 * Method  One queue pair and no network; the peer's answers, and payloads that the world could not
 *         read, are made by hand.
 */
#include "nic/ibta/test_bench.h"

static uint32_t told(struct bench *bench, enum nic_event_kind kind)
{
    struct nic_event event;
    uint32_t count = 0;
    while (nic_next_event(bench->nic, &event)) {
        count += event.kind == kind;
    }
    return count;
}

/* One packet: its PSN counted from FIRST_PSN, and whether it asks for an answer. */
static struct nic_departure leaves(struct bench *bench, uint32_t psn, bool asks)
{
    struct nic_departure departure;
    struct roce_packet packet;
    assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
    assert_int_equal(roce_decode_split(departure.headers, departure.headers_bytes, payload,
                                       departure.payload_bytes + departure.pad_bytes, &packet),
                     ROCE_GOOD);
    assert_int_equal(packet.psn, (FIRST_PSN + psn) & PSN_MASK);
    assert_int_equal(packet.ack_request, asks);
    return departure;
}

static void post_by(struct bench *bench, uint64_t wr_id, uint32_t key, uint32_t bytes)
{
    const struct sge sge = {0, bytes, key};
    const struct send_request request = {
        .wr_id = wr_id, .kind = WORK_WRITE, .sges = &sge, .sge_count = 1};
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
}

static void post_wrong_invalidate(struct bench *bench, uint64_t wr_id)
{
    const struct send_request request = {
        .wr_id = wr_id, .kind = WORK_LOCAL_INVALIDATE, .immediate = 0xdead};
    assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
}

static void acknowledge(struct bench *bench, uint32_t psn)
{
    answer(bench, ROCE_ACKNOWLEDGE, psn, FINE, 0);
}

/* -- Requests in front of one that fails --------------------------------------------------------*/

/* A request does not ask for an ACK, because the one behind it will; but that one never leaves. It
 * is judged when its only packet is gathered, or before the first of several. */
static void test_in_front_of_a_wrong_key(void **state)
{
    (void)state;
    for (uint32_t bytes = 8; bytes <= 2 * MTU + 8; bytes += MTU) {
        struct bench *bench = begin(QP_RC, QP_RTS);
        post(bench, 1, WORK_WRITE, 8);
        post_by(bench, 2, bench->region.key + 1, bytes);
        leaves(bench, 0, false);
        leaves(bench, 0, true);
        assert_int_equal(pull(bench, NULL), 0);
        expect_nothing(bench);
        acknowledge(bench, 0);
        expect(bench, 1, COMPLETION_SUCCESS);
        expect(bench, 2, COMPLETION_LOCAL_PROTECTION);
        assert_int_equal(qp_state_of(bench->qp), QP_ERR);
        end(bench);
    }
}

static void test_behind_failed_local_work(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_WRITE, 8);
    post_wrong_invalidate(bench, 2);
    post(bench, 3, WORK_SEND, 8);
    leaves(bench, 0, false);
    leaves(bench, 0, true);
    assert_int_equal(pull(bench, NULL), 0);
    acknowledge(bench, 0);
    expect(bench, 1, COMPLETION_SUCCESS);
    expect(bench, 2, COMPLETION_WINDOW_BIND);
    expect(bench, 3, COMPLETION_FLUSHED);
    expect_nothing(bench);
    end(bench);
}

/* -- A payload that the world could not read ----------------------------------------------------*/

static void test_unreadable_behind_another(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_WRITE, 8);
    post(bench, 2, WORK_WRITE, 8);
    post(bench, 3, WORK_WRITE, 8);
    leaves(bench, 0, false);
    const struct nic_departure departure = leaves(bench, 1, true); /* But it does not leave. */
    nic_on_gather_failed(&departure);
    expect_nothing(bench);
    leaves(bench, 0, true);
    assert_int_equal(pull(bench, NULL), 0);
    acknowledge(bench, 0);
    expect(bench, 1, COMPLETION_SUCCESS);
    expect(bench, 2, COMPLETION_LOCAL_PROTECTION);
    expect(bench, 3, COMPLETION_FLUSHED);
    end(bench);
}

/* An atomic WRITE whose value is not there does not leave either; it would have been answered. */
static void test_unreadable_value(void **state)
{
    (void)state;
    for (uint32_t behind = 0; behind < 2; behind++) {
        struct bench *bench = begin(QP_RC, QP_RTS);
        post(bench, 1, WORK_WRITE, 8);
        post(bench, 2, WORK_ATOMIC_WRITE, 8);
        if (behind) {
            post(bench, 3, WORK_WRITE, 8);
        }
        leaves(bench, 0, false);
        struct nic_departure departure;
        assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
        nic_on_gather_failed(&departure);
        leaves(bench, 0, true);
        acknowledge(bench, 0);
        expect(bench, 1, COMPLETION_SUCCESS);
        expect(bench, 2, COMPLETION_LOCAL_PROTECTION);
        end(bench);
    }
}

/* The answer of a READ is awaited first; then an ACK for the requests behind it has to be asked
 * for. */
static void test_unreadable_behind_a_read(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 0, WORK_WRITE, 8);
    leaves(bench, 0, true);
    acknowledge(bench, 0);
    expect(bench, 0, COMPLETION_SUCCESS);
    post(bench, 1, WORK_READ, 8);
    post(bench, 2, WORK_WRITE, 8);
    post(bench, 3, WORK_WRITE, 8);
    leaves(bench, 1, false);
    leaves(bench, 2, false);
    const struct nic_departure departure = leaves(bench, 3, true);
    nic_on_gather_failed(&departure);
    assert_int_equal(pull(bench, NULL), 0);
    answer(bench, ROCE_READ_RESPONSE_ONLY, 1, FINE, 8);
    expect(bench, 1, COMPLETION_SUCCESS);
    assert_ptr_equal(nic_next_qp(bench->nic), bench->qp);
    leaves(bench, 2, true);
    acknowledge(bench, 2);
    expect(bench, 2, COMPLETION_SUCCESS);
    expect(bench, 3, COMPLETION_LOCAL_PROTECTION);
    end(bench);
}

/* -- A response that has no place ---------------------------------------------------------------*/

/* The response acknowledges the requests before the READ, even if there is no place for its
 * data. */
static void test_response_without_a_place(void **state)
{
    (void)state;
    for (uint32_t slow = 0; slow < 2; slow++) {
        struct bench *bench = begin(QP_RC, QP_RTS);
        bench->slow = slow != 0;
        post(bench, 1, WORK_WRITE, 8);
        post(bench, 2, WORK_READ, 8);
        assert_int_equal(pull(bench, NULL), 2);
        if (!bench->slow) {
            assert_int_equal(region_remove(nic_regions(bench->nic), &bench->region), STATUS_OK);
        }
        answer(bench, ROCE_READ_RESPONSE_ONLY, 1, FINE, 8);
        if (bench->slow) {
            finish_first(bench, NIC_MOVE_FAULTED);
        }
        expect(bench, 1, COMPLETION_SUCCESS);
        expect(bench, 2, COMPLETION_LOCAL_PROTECTION);
        expect_nothing(bench);
        assert_int_equal(qp_state_of(bench->qp), QP_ERR);
        end(bench);
    }
}

/* A key that goes in the middle of a message: the requests before it left it to this message to ask
 * for an ACK. */
static void test_key_that_goes(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    struct region other;
    const struct region_request all = {.address = (uintptr_t)bench->memory,
                                       .bytes = sizeof(bench->memory)};
    assert_int_equal(region_add(nic_regions(bench->nic), &bench->pd, &all, &other), STATUS_OK);
    const struct sge sge = {0, 3 * MTU, other.key};
    const struct send_request write = {
        .wr_id = 2, .kind = WORK_WRITE, .sges = &sge, .sge_count = 1};
    post(bench, 1, WORK_WRITE, 8);
    assert_int_equal(qp_post_send(bench->qp, &write), STATUS_OK);
    leaves(bench, 0, false);
    leaves(bench, 1, true);
    assert_int_equal(region_remove(nic_regions(bench->nic), &other), STATUS_OK);
    leaves(bench, 0, true);
    assert_int_equal(pull(bench, NULL), 0);
    expect_nothing(bench);
    acknowledge(bench, 0);
    expect(bench, 1, COMPLETION_SUCCESS);
    expect(bench, 2, COMPLETION_LOCAL_PROTECTION);
    end(bench);
}

/* While the request is sent again, the one behind it is at the cursor. */
static void test_unreadable_when_sent_again(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_WRITE, 8);
    post(bench, 2, WORK_WRITE, 8);
    assert_int_equal(pull(bench, NULL), 2);
    bench->now.ns += UINT64_C(4096) << TIMEOUT_CODE;
    nic_on_time(bench->nic, bench->now);
    const struct nic_departure departure = leaves(bench, 0, false);
    nic_on_gather_failed(&departure);
    expect(bench, 1, COMPLETION_LOCAL_PROTECTION);
    expect(bench, 2, COMPLETION_FLUSHED);
    expect_nothing(bench);
    assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    end(bench);
}

/* A request of UC or UD completes with its last packet, unless that packet cannot leave. */
static void test_unreadable_and_unreliable(void **state)
{
    (void)state;
    static const enum qp_type types[] = {QP_UC, QP_UD};
    for (size_t i = 0; i < 2 * COUNT_OF(types); i++) {
        struct bench *bench = begin(types[i / 2], QP_RTS);
        const struct nic_av av = {.destination = {{[15] = 1}}};
        const struct sge sge = {0, 8, bench->region.key};
        struct send_request request = {.kind = WORK_SEND, .sges = &sge, .sge_count = 1, .av = &av};
        for (request.wr_id = 0; request.wr_id < 3 - i % 2; request.wr_id++) {
            assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
        }
        leaves(bench, 0, false);
        const struct nic_departure departure = leaves(bench, 1, false);
        nic_on_gather_failed(&departure);
        expect(bench, 0, COMPLETION_SUCCESS);
        expect(bench, 1, COMPLETION_LOCAL_PROTECTION);
        if (i % 2 == 0) {
            expect(bench, 2, COMPLETION_FLUSHED);
        }
        expect_nothing(bench);
        assert_int_equal(qp_state_of(bench->qp), QP_SQE);
        end(bench);
    }
}

/* -- Times of completions -----------------------------------------------------------------------*/

/* A completion says when it came to be: by an acknowledgement, or when it was flushed. */
static void test_completions_have_their_time(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    struct completion completion;
    for (uint32_t i = 0; i < 2; i++) {
        post(bench, i, WORK_WRITE, 8);
        assert_int_equal(pull(bench, NULL), 1);
        bench->now.ns += 500;
        acknowledge(bench, i);
        assert_int_equal(cq_poll(&bench->cq, &completion, 1), 1);
        assert_int_equal(completion.at_ns, bench->now.ns);
    }
    post(bench, 2, WORK_WRITE, 8);
    post(bench, 3, WORK_WRITE, 8);
    bench->now.ns += 500;
    modify(bench, QP_ERR, 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(cq_poll(&bench->cq, &completion, 1), 1);
        assert_int_equal(completion.status, COMPLETION_FLUSHED);
        assert_int_equal(completion.at_ns, bench->now.ns);
    }
    end(bench);
}

/* -- Draining -----------------------------------------------------------------------------------*/

static void drain(struct bench *bench)
{
    const struct qp_attributes attributes = {.state = QP_SQD, .notify_when_drained = true};
    assert_int_equal(
        qp_modify(bench->qp, &attributes, QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY, bench->now),
        STATUS_OK);
}

/* The packet that was sent did not ask for an ACK, because more would follow. */
static void test_drained_without_a_timeout(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_WRITE, 8);
    post(bench, 2, WORK_WRITE, 8);
    leaves(bench, 0, false);
    drain(bench);
    leaves(bench, 0, true);
    assert_int_equal(pull(bench, NULL), 0);
    assert_int_equal(told(bench, NIC_EVENT_SQ_DRAINED), 0);
    acknowledge(bench, 0);
    expect(bench, 1, COMPLETION_SUCCESS);
    assert_int_equal(told(bench, NIC_EVENT_SQ_DRAINED), 1);
    end(bench);
}

/* When it began to drain, an answer was under way, but not one to what was sent last. */
static void test_drained_behind_an_answer(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    const struct sge sge = {0, 8, bench->region.key};
    const struct send_request signaled = {
        .wr_id = 3, .kind = WORK_WRITE, .flags = WORK_SIGNALED, .sges = &sge, .sge_count = 1};
    post(bench, 1, WORK_WRITE, 2 * MTU);
    assert_int_equal(pull(bench, NULL), 2);
    acknowledge(bench, 1);
    expect(bench, 1, COMPLETION_SUCCESS);
    assert_int_equal(qp_post_send(bench->qp, &signaled), STATUS_OK);
    post(bench, 4, WORK_WRITE, 8);
    post(bench, 5, WORK_WRITE, 8);
    leaves(bench, 2, true);
    leaves(bench, 3, false);
    drain(bench);
    assert_int_equal(pull(bench, NULL), 0);
    acknowledge(bench, 2);
    expect(bench, 3, COMPLETION_SUCCESS);
    leaves(bench, 3, true);
    acknowledge(bench, 3);
    expect(bench, 4, COMPLETION_SUCCESS);
    assert_int_equal(told(bench, NIC_EVENT_SQ_DRAINED), 1);
    end(bench);
}

static void test_drained_behind_a_whole_message(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_UC, QP_RTS);
    post(bench, 1, WORK_WRITE, 3 * MTU);
    leaves(bench, 0, false);
    drain(bench);
    leaves(bench, 1, false);
    assert_int_equal(told(bench, NIC_EVENT_SQ_DRAINED), 0);
    leaves(bench, 2, false);
    expect(bench, 1, COMPLETION_SUCCESS);
    assert_int_equal(told(bench, NIC_EVENT_SQ_DRAINED), 1);
    end(bench);
}

/* The program may still register the memory of a request that has not begun, before RTS. */
static void test_not_judged_while_draining(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    drain(bench);
    post_by(bench, 1, bench->region.key + 1, 8);
    assert_int_equal(pull(bench, NULL), 0);
    expect_nothing(bench);
    assert_int_equal(qp_state_of(bench->qp), QP_SQD);
    modify(bench, QP_RTS, 0);
    assert_int_equal(pull(bench, NULL), 0);
    expect(bench, 1, COMPLETION_LOCAL_PROTECTION);
    end(bench);
}

/* A timer that is switched off in SQD is off for what is in flight as well. */
static void test_timer_switched_off(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_WRITE, 8);
    assert_int_equal(pull(bench, NULL), 1);
    drain(bench);
    const struct qp_attributes attributes = {.state = QP_SQD, .timeout = 0};
    assert_int_equal(qp_modify(bench->qp, &attributes, QP_ATTR_STATE | QP_ATTR_TIMEOUT, bench->now),
                     STATUS_OK);
    for (int i = 0; i < 8; i++) {
        bench->now.ns += UINT64_C(4096) << TIMEOUT_CODE;
        nic_on_time(bench->nic, bench->now);
    }
    assert_int_equal(counted(bench, COUNTER_timeouts), 0);
    assert_int_equal(pull(bench, NULL), 0);
    acknowledge(bench, 0);
    expect(bench, 1, COMPLETION_SUCCESS);
    end(bench);
}

/* Requests are counted by their kind. */
static void test_requests_are_counted(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_WRITE, 8);
    post(bench, 2, WORK_SEND, 8);
    post(bench, 3, WORK_WRITE, 8);
    while (pull(bench, NULL) != 0) {
    }
    assert_int_equal(counted(bench, COUNTER_rdma_writes), 2);
    assert_int_equal(counted(bench, COUNTER_rdma_sends), 1);
    assert_int_equal(counted(bench, COUNTER_rdma_reads), 0);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_front_of_a_wrong_key),
        cmocka_unit_test(test_behind_failed_local_work),
        cmocka_unit_test(test_unreadable_behind_another),
        cmocka_unit_test(test_unreadable_value),
        cmocka_unit_test(test_unreadable_behind_a_read),
        cmocka_unit_test(test_response_without_a_place),
        cmocka_unit_test(test_key_that_goes),
        cmocka_unit_test(test_unreadable_when_sent_again),
        cmocka_unit_test(test_unreadable_and_unreliable),
        cmocka_unit_test(test_completions_have_their_time),
        cmocka_unit_test(test_drained_without_a_timeout),
        cmocka_unit_test(test_drained_behind_an_answer),
        cmocka_unit_test(test_drained_behind_a_whole_message),
        cmocka_unit_test(test_not_judged_while_draining),
        cmocka_unit_test(test_timer_switched_off),
        cmocka_unit_test(test_requests_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
