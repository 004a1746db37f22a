/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A request that fails ends in its turn: those before it complete for themselves, those
 *         behind it are flushed and never leave (IBTA 9.9.2, 10.8.3). A queue that drains finishes
 *         what was begun, and says so then (10.3.1.5).
 * Method  One queue pair and no network; the peer's answers, and what the world could not read, are
 *         made by hand.
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

static void post_by(struct bench *bench, uint64_t wr_id, uint32_t key)
{
    const struct sge sge = {0, 8, key};
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

/* -- What stands behind a request -----------------------------------------------------------------*/

/* A request without a signal does not ask, because what follows will; but that never leaves. */
static void test_in_front_of_a_wrong_key(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_WRITE, 8);
    post_by(bench, 2, bench->region.key + 1);
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

/* -- A payload that the world could not read ------------------------------------------------------*/

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

/* While it goes again, the one behind it is the one at the cursor. */
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

/* Its last packet completes a request of UC or UD, unless it does not leave. */
static void test_unreadable_and_unreliable(void **state)
{
    (void)state;
    static const enum qp_type types[] = {QP_UC, QP_UD};
    for (size_t i = 0; i < 2 * COUNT_OF(types); i++) {
        struct bench *bench = begin(types[i / 2], QP_RTS);
        const struct nic_path path = {.destination = {{[15] = 1}}};
        const struct sge sge = {0, 8, bench->region.key};
        struct send_request request = {
            .kind = WORK_SEND, .sges = &sge, .sge_count = 1, .path = &path};
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

/* -- Draining -------------------------------------------------------------------------------------*/

static void drain(struct bench *bench)
{
    const struct qp_attributes attributes = {.state = QP_SQD, .notify_when_drained = true};
    assert_int_equal(qp_modify(bench->qp, &attributes,
                               QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY, bench->now),
                     STATUS_OK);
}

/* What was sent did not ask, because more would follow. */
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

/* What was not begun may have its memory registered before RTS. */
static void test_not_judged_while_draining(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    drain(bench);
    post_by(bench, 1, bench->region.key + 1);
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
    assert_int_equal(
        qp_modify(bench->qp, &attributes, QP_ATTR_STATE | QP_ATTR_TIMEOUT, bench->now), STATUS_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_front_of_a_wrong_key),
        cmocka_unit_test(test_behind_failed_local_work),
        cmocka_unit_test(test_unreadable_behind_another),
        cmocka_unit_test(test_unreadable_when_sent_again),
        cmocka_unit_test(test_unreadable_and_unreliable),
        cmocka_unit_test(test_drained_without_a_timeout),
        cmocka_unit_test(test_drained_behind_a_whole_message),
        cmocka_unit_test(test_not_judged_while_draining),
        cmocka_unit_test(test_timer_switched_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
