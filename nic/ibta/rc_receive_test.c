/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A reliable queue pair believes a response only if its opcode and its AETH fit the request
 *         (IBTA 9.7.5), gives the status of a NAK to the request that was refused and to no other
 *         (9.9.2), and says that communication is established when a packet was found valid.
 * Method  One NIC without a network: each packet of the peer is made by hand, each memory move is
 *         made at once or when the test says so.
 */
#include "nic/ibta/test_bench.h"

/* -- Responses ----------------------------------------------------------------------------------*/

/* The opcode of response number `index` to a READ of `packets` packets. */
static enum roce_operation operation_of(uint32_t index, uint32_t packets)
{
    if (packets == 1) {
        return ROCE_READ_RESPONSE_ONLY;
    }
    return index == 0             ? ROCE_READ_RESPONSE_FIRST
           : index + 1 == packets ? ROCE_READ_RESPONSE_LAST
                                  : ROCE_READ_RESPONSE_MIDDLE;
}

/* Every sequence of opcodes for READs of one to three packets. */
static void test_sequence_of_read_responses(void **state)
{
    (void)state;
    for (uint32_t packets = 1; packets <= 3; packets++) {
        for (uint32_t code = 0; code < 64; code++) {
            struct bench *bench = begin(QP_RC, QP_RTS);
            post(bench, 1, WORK_READ, packets * MTU);
            assert_int_equal(pull(bench, NULL), 1);
            bool right = true;
            for (uint32_t i = 0; right && i < packets; i++) {
                const enum roce_operation operation =
                    ROCE_READ_RESPONSE_FIRST + (code >> (2 * i) & 3);
                right = operation == operation_of(i, packets);
                answer(bench, operation, i, FINE, MTU);
            }
            expect(bench, 1, right ? COMPLETION_SUCCESS : COMPLETION_BAD_RESPONSE);
            assert_int_equal(counted(bench, COUNTER_bad_response_order), !right);
            assert_int_equal(qp_state_of(bench->qp), right ? QP_RTS : QP_ERR);
            end(bench);
        }
    }
}

/* A READ that goes on in the middle is answered from FIRST on, or as by Linux' Soft-RoCE with the
 * opcodes of the original; late originals come between. */
static void test_sequence_after_a_loss(void **state)
{
    (void)state;
    static const enum roce_operation resumed[] = {ROCE_READ_RESPONSE_FIRST,
                                                  ROCE_READ_RESPONSE_MIDDLE};
    for (size_t i = 0; i < COUNT_OF(resumed); i++) {
        struct bench *bench = begin(QP_RC, QP_RTS);
        struct roce_packet request;
        post(bench, 1, WORK_READ, 4 * MTU);
        assert_int_equal(pull(bench, NULL), 1);
        answer(bench, ROCE_READ_RESPONSE_FIRST, 0, FINE, MTU);
        answer(bench, ROCE_READ_RESPONSE_MIDDLE, 2, FINE, MTU); /* 1 is missing. */
        assert_int_equal(pull(bench, &request), 1);
        assert_int_equal(request.psn, (FIRST_PSN + 1) & PSN_MASK);
        answer(bench, resumed[i], 1, FINE, MTU);
        answer(bench, ROCE_READ_RESPONSE_MIDDLE, 2, FINE, MTU);
        answer(bench, ROCE_READ_RESPONSE_LAST, 3, FINE, MTU);
        expect(bench, 1, COMPLETION_SUCCESS);
        end(bench);
    }
    /* A FIRST is taken only where data was asked for again. */
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_READ, 4 * MTU);
    assert_int_equal(pull(bench, NULL), 1);
    answer(bench, ROCE_READ_RESPONSE_FIRST, 0, FINE, MTU);
    answer(bench, ROCE_READ_RESPONSE_MIDDLE, 2, FINE, MTU);
    assert_int_equal(pull(bench, NULL), 1);
    answer(bench, ROCE_READ_RESPONSE_FIRST, 1, FINE, MTU);
    answer(bench, ROCE_READ_RESPONSE_FIRST, 2, FINE, MTU);
    expect(bench, 1, COMPLETION_BAD_RESPONSE);
    end(bench);
}

static void test_opcode_that_does_not_answer_the_request(void **state)
{
    (void)state;
    static const struct {
        enum work_kind kind;
        enum roce_operation operation;
        uint32_t bytes;
        bool right;
    } cases[] = {
        {WORK_READ, ROCE_READ_RESPONSE_ONLY, 8, true},
        {WORK_READ, ROCE_ATOMIC_ACKNOWLEDGE, 0, false},
        {WORK_FETCH_ADD, ROCE_ATOMIC_ACKNOWLEDGE, 0, true},
        {WORK_FETCH_ADD, ROCE_READ_RESPONSE_ONLY, 8, false},
        {WORK_ATOMIC_WRITE, ROCE_READ_RESPONSE_ONLY, 0, true},
        {WORK_ATOMIC_WRITE, ROCE_READ_RESPONSE_FIRST, 0, false},
        {WORK_ATOMIC_WRITE, ROCE_ATOMIC_ACKNOWLEDGE, 0, false},
        {WORK_FLUSH, ROCE_READ_RESPONSE_ONLY, 0, true},
        {WORK_FLUSH, ROCE_READ_RESPONSE_LAST, 0, false},
        {WORK_FLUSH, ROCE_ATOMIC_ACKNOWLEDGE, 0, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench *bench = begin(QP_RC, QP_RTS);
        post(bench, 1, cases[i].kind, 8);
        assert_int_equal(pull(bench, NULL), 1);
        answer(bench, cases[i].operation, 0, FINE, cases[i].bytes);
        expect(bench, 1, cases[i].right ? COMPLETION_SUCCESS : COMPLETION_BAD_RESPONSE);
        assert_int_equal(counted(bench, COUNTER_bad_response_order), !cases[i].right);
        end(bench);
    }
}

/* A response does not count for a request that wants none. */
static void test_response_to_nothing(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_WRITE, 8);
    assert_int_equal(pull(bench, NULL), 1);
    answer(bench, ROCE_READ_RESPONSE_ONLY, 0, FINE, 8);
    answer(bench, ROCE_ATOMIC_ACKNOWLEDGE, 0, FINE, 0);
    expect_nothing(bench);
    assert_int_equal(counted(bench, COUNTER_stale_acks), 2);
    answer(bench, ROCE_ACKNOWLEDGE, 0, FINE, 0);
    expect(bench, 1, COMPLETION_SUCCESS);
    end(bench);
}

/* The AETH of a response can only acknowledge; MIDDLE has none. */
static void test_syndrome_of_responses(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < 8; kind++) {
        const uint8_t syndrome = (uint8_t)(kind << 5 | 1);
        const bool right = (syndrome & ROCE_AETH_KIND_MASK) == ROCE_AETH_ACK;
        for (uint32_t at = 0; at < 4; at++) { /* FIRST, MIDDLE, LAST, atomic. */
            struct bench *bench = begin(QP_RC, QP_RTS);
            post(bench, 1, at == 3 ? WORK_FETCH_ADD : WORK_READ, at == 3 ? 8 : 3 * MTU);
            assert_int_equal(pull(bench, NULL), 1);
            for (uint32_t i = 0; i < 3 && at < 3; i++) {
                answer(bench, operation_of(i, 3), i, i == at ? syndrome : FINE, MTU);
            }
            if (at == 3) {
                answer(bench, ROCE_ATOMIC_ACKNOWLEDGE, 0, syndrome, 0);
            }
            const bool good = right || at == 1;
            expect(bench, 1, good ? COMPLETION_SUCCESS : COMPLETION_BAD_RESPONSE);
            assert_int_equal(counted(bench, COUNTER_bad_response_syndrome), !good);
            end(bench);
        }
    }
}

static void test_length_of_responses(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_READ, MTU + 4);
    assert_int_equal(pull(bench, NULL), 1);
    answer(bench, ROCE_READ_RESPONSE_FIRST, 0, FINE, MTU);
    answer(bench, ROCE_READ_RESPONSE_LAST, 1, FINE, 8);
    expect(bench, 1, COMPLETION_BAD_RESPONSE);
    assert_int_equal(counted(bench, COUNTER_bad_response_length), 1);
    end(bench);
}

/* Credits count in a response as in an acknowledgement (9.7.7.2). */
static void test_credits_of_responses(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    post(bench, 1, WORK_READ, 8);
    post(bench, 2, WORK_WRITE, 8);
    assert_int_equal(pull(bench, NULL), 2);
    deliver(bench, (struct roce_packet){.opcode = ROCE_READ_RESPONSE_ONLY,
                                        .psn = FIRST_PSN,
                                        .aeth = {.syndrome = ROCE_AETH_ACK | 1, .msn = 1},
                                        .payload_bytes = 8});
    expect(bench, 1, COMPLETION_SUCCESS);
    post(bench, 3, WORK_SEND, 8); /* The third message, and credit is for the second. */
    assert_int_equal(pull(bench, NULL), 0);
    answer(bench, ROCE_ACKNOWLEDGE, 1, FINE, 0);
    assert_int_equal(pull(bench, NULL), 1);
    end(bench);
}

/* -- NAKs ---------------------------------------------------------------------------------------*/

/* The refused request gets the status; the READ before it is asked for again and gets its data, or
 * runs out of retries. */
static void refuse_behind_a_read(struct bench *bench)
{
    post(bench, 1, WORK_READ, 2 * MTU);
    post(bench, 2, WORK_WRITE, 8);
    post(bench, 3, WORK_WRITE, 8);
    post(bench, 4, WORK_WRITE, 8);
    assert_int_equal(pull(bench, NULL), 4);
    answer(bench, ROCE_READ_RESPONSE_FIRST, 0, FINE, MTU);
    answer(bench, ROCE_ACKNOWLEDGE, 3, ROCE_NAK_REMOTE_ACCESS, 0); /* 1 is missing. */
    expect_nothing(bench);
    assert_int_equal(counted(bench, COUNTER_implied_naks), 1);
    struct roce_packet request;
    assert_int_equal(pull(bench, &request), 2); /* The READ's rest and the WRITE before. */
    assert_int_equal(request.opcode, ROCE_READ_REQUEST);
    assert_int_equal(request.psn, (FIRST_PSN + 1) & PSN_MASK);
    assert_int_equal(request.reth.bytes, MTU);
}

static void test_nak_behind_a_lost_response(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    refuse_behind_a_read(bench);
    answer(bench, ROCE_READ_RESPONSE_ONLY, 1, FINE, MTU);
    expect(bench, 1, COMPLETION_SUCCESS);
    expect(bench, 2, COMPLETION_SUCCESS);
    expect(bench, 3, COMPLETION_REMOTE_ACCESS);
    expect(bench, 4, COMPLETION_FLUSHED);
    assert_int_equal(qp_state_of(bench->qp), QP_ERR);
    end(bench);
}

/* A late acknowledgement does not change a refusal. */
static void test_refused_stays_refused(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    bench->slow = true;
    refuse_behind_a_read(bench);
    answer(bench, ROCE_READ_RESPONSE_LAST, 1, FINE, MTU);
    answer(bench, ROCE_ACKNOWLEDGE, 4, FINE, 0);
    finish_moves(bench);
    expect(bench, 1, COMPLETION_SUCCESS);
    expect(bench, 2, COMPLETION_SUCCESS);
    expect(bench, 3, COMPLETION_REMOTE_ACCESS);
    expect(bench, 4, COMPLETION_FLUSHED);
    end(bench);
}

static void test_lost_response_that_never_comes(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    refuse_behind_a_read(bench);
    for (int i = 0; i < 3; i++) {
        bench->now.ns += UINT64_C(8192) << TIMEOUT_CODE;
        nic_on_time(bench->nic, bench->now);
        pull(bench, NULL);
    }
    expect(bench, 1, COMPLETION_RETRY_EXCEEDED);
    expect(bench, 2, COMPLETION_FLUSHED);
    expect(bench, 3, COMPLETION_FLUSHED);
    expect(bench, 4, COMPLETION_FLUSHED);
    end(bench);
}

/* Retries can end with a NAK as well as with a timer, and are counted as such; a request that is
 * refused had no retries. */
static void test_naks_use_up_retries(void **state)
{
    (void)state;
    static const uint8_t syndromes[] = {ROCE_NAK_PSN_SEQUENCE, ROCE_NAK_REMOTE_ACCESS};
    static const enum completion_status statuses[] = {COMPLETION_RETRY_EXCEEDED,
                                                      COMPLETION_REMOTE_ACCESS};
    for (size_t i = 0; i < COUNT_OF(syndromes); i++) {
        struct bench *bench = begin(QP_RC, QP_RTS);
        post(bench, 1, WORK_WRITE, 8);
        while (pull(bench, NULL) == 1) {
            answer(bench, ROCE_ACKNOWLEDGE, 0, syndromes[i], 0);
        }
        expect(bench, 1, statuses[i]);
        assert_int_equal(counted(bench, COUNTER_retry_exceeded_err), i == 0);
        assert_int_equal(counted(bench, COUNTER_retry_rnr_exceeded_err), 0);
        end(bench);
    }
}

/* The data is there but not in memory yet. */
static void test_nak_behind_a_slow_move(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    bench->slow = true;
    post(bench, 1, WORK_READ, 8);
    post(bench, 2, WORK_WRITE, 8);
    post(bench, 3, WORK_WRITE, 8);
    assert_int_equal(pull(bench, NULL), 3);
    answer(bench, ROCE_READ_RESPONSE_ONLY, 0, FINE, 8);
    answer(bench, ROCE_ACKNOWLEDGE, 1, ROCE_NAK_REMOTE_OPERATIONAL, 0);
    expect_nothing(bench);
    assert_int_equal(pull(bench, NULL), 0);
    finish_moves(bench);
    expect(bench, 1, COMPLETION_SUCCESS);
    expect(bench, 2, COMPLETION_REMOTE_OPERATION);
    expect(bench, 3, COMPLETION_FLUSHED);
    end(bench);
}

/* Local work that fails says so, also when nothing else is under way. */
static void test_failing_local_work(void **state)
{
    (void)state;
    for (int busy = 0; busy < 2; busy++) {
        struct bench *bench = begin(QP_RC, QP_RTS);
        if (busy) {
            post(bench, 1, WORK_WRITE, 8);
        }
        const struct send_request request = {
            .wr_id = 2, .kind = WORK_LOCAL_INVALIDATE, .immediate = 0xdead};
        assert_int_equal(qp_post_send(bench->qp, &request), STATUS_OK);
        pull(bench, NULL);
        if (busy) {
            expect_nothing(bench);
            answer(bench, ROCE_ACKNOWLEDGE, 0, FINE, 0);
            expect(bench, 1, COMPLETION_SUCCESS);
        }
        expect(bench, 2, COMPLETION_WINDOW_BIND);
        end(bench);
    }
}

/* -- Time ---------------------------------------------------------------------------------------*/

/* While the peer has not read the packet that it is to answer, no retry is spent and nothing is
 * sent again, however long that lasts; then all retries are there. */
static void test_unread(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    const uint64_t timeout_ns = UINT64_C(4096) << TIMEOUT_CODE;
    struct nic_overdue overdue;
    post(bench, 1, WORK_WRITE, 8);
    assert_int_equal(pull(bench, NULL), 1);
    assert_false(nic_next_overdue(bench->nic, bench->now, &overdue));
    for (int i = 0; i < 1000; i++) {
        const struct instant since = bench->now;
        bench->now.ns += timeout_ns;
        assert_true(nic_next_overdue(bench->nic, bench->now, &overdue));
        assert_ptr_equal(overdue.qp, bench->qp);
        assert_int_equal(overdue.since.ns, since.ns);
        assert_false(overdue.last);
        nic_on_unread(bench->nic, bench->qp, bench->now);
        assert_false(nic_next_overdue(bench->nic, bench->now, &overdue));
        assert_int_equal(pull(bench, NULL), 0);
    }
    for (int i = 0; i < 3; i++) {
        expect_nothing(bench);
        bench->now.ns += timeout_ns;
        assert_true(nic_next_overdue(bench->nic, bench->now, &overdue));
        assert_int_equal(overdue.last, i == 2);
        nic_on_timeout(bench->nic, bench->qp, bench->now);
        assert_int_equal(pull(bench, NULL), i < 2);
    }
    expect(bench, 1, COMPLETION_RETRY_EXCEEDED);
    assert_int_equal(counted(bench, COUNTER_timeouts_unread), 1000);
    assert_int_equal(counted(bench, COUNTER_timeouts), 3);
    end(bench);
}

static void set_timeout(struct bench *bench, uint8_t code)
{
    const struct qp_attributes attributes = {.state = QP_SQD, .timeout = code};
    assert_int_equal(qp_modify(bench->qp, &attributes, QP_ATTR_STATE | QP_ATTR_TIMEOUT, bench->now),
                     STATUS_OK);
}

/* A request went out without a timer; then the program, draining, switches the timer on. */
static void test_timer_switched_on(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    modify(bench, QP_SQD, 0);
    set_timeout(bench, 0);
    modify(bench, QP_RTS, 0);
    post(bench, 1, WORK_WRITE, 8);
    assert_int_equal(pull(bench, NULL), 1);
    assert_true(nic_deadline(bench->nic).ns == UINT64_MAX);
    modify(bench, QP_SQD, 0);
    set_timeout(bench, TIMEOUT_CODE);
    assert_true(nic_deadline(bench->nic).ns != UINT64_MAX);
    bench->now.ns += UINT64_C(4096) << TIMEOUT_CODE;
    nic_on_time(bench->nic, bench->now);
    assert_int_equal(counted(bench, COUNTER_timeouts), 1);
    assert_int_equal(pull(bench, NULL), 1);
    end(bench);
}

/* -- Communication established ------------------------------------------------------------------*/

static bool is_established(struct bench *bench)
{
    struct nic_event event;
    bool told = false;
    while (nic_next_event(bench->nic, &event)) {
        told |= event.kind == NIC_EVENT_COMMUNICATION_ESTABLISHED;
    }
    return told;
}

static void request(struct bench *bench, enum roce_operation operation, uint32_t psn,
                    uint32_t bytes)
{
    deliver(bench,
            (struct roce_packet){.opcode = (uint8_t)operation,
                                 .psn = psn,
                                 .reth = {.address = 0, .key = bench->region.key, .bytes = 8},
                                 .payload_bytes = bytes});
}

static void test_established_by_what_is_valid(void **state)
{
    (void)state;
    static const enum qp_type types[] = {QP_RC, QP_UC};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct bench *bench = begin(types[i], QP_RTR);
        request(bench, ROCE_WRITE_MIDDLE, PEER_PSN - 1, MTU); /* A duplicate, or a gap. */
        request(bench, ROCE_WRITE_MIDDLE, PEER_PSN + 3, MTU); /* A gap. */
        assert_false(is_established(bench));
        request(bench, ROCE_WRITE_ONLY, PEER_PSN, 8);
        assert_true(is_established(bench));
        request(bench, ROCE_WRITE_ONLY, PEER_PSN + 1, 8);
        assert_false(is_established(bench));
        end(bench);
    }
}

static void test_not_established_by_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        enum roce_operation operation;
        uint32_t bytes;
    } cases[] = {
        {ROCE_WRITE_MIDDLE, MTU},
        {ROCE_WRITE_ONLY, 12},
        {ROCE_READ_REQUEST, 0}, /* Not permitted. */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench *bench = begin(QP_RC, QP_RTR);
        request(bench, cases[i].operation, PEER_PSN, cases[i].bytes);
        assert_false(is_established(bench));
        assert_int_equal(qp_state_of(bench->qp), QP_ERR);
        end(bench);
    }
}

/* A SEND without a receive is valid: it is asked to come again. */
static void test_established_by_a_send_that_waits(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTR);
    request(bench, ROCE_SEND_ONLY, PEER_PSN, 8);
    assert_true(is_established(bench));
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequence_of_read_responses),
        cmocka_unit_test(test_sequence_after_a_loss),
        cmocka_unit_test(test_opcode_that_does_not_answer_the_request),
        cmocka_unit_test(test_response_to_nothing),
        cmocka_unit_test(test_syndrome_of_responses),
        cmocka_unit_test(test_length_of_responses),
        cmocka_unit_test(test_credits_of_responses),
        cmocka_unit_test(test_nak_behind_a_lost_response),
        cmocka_unit_test(test_refused_stays_refused),
        cmocka_unit_test(test_lost_response_that_never_comes),
        cmocka_unit_test(test_naks_use_up_retries),
        cmocka_unit_test(test_nak_behind_a_slow_move),
        cmocka_unit_test(test_failing_local_work),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_timer_switched_on),
        cmocka_unit_test(test_established_by_what_is_valid),
        cmocka_unit_test(test_not_established_by_what_is_refused),
        cmocka_unit_test(test_established_by_a_send_that_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
