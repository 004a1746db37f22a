/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each object of a NIC comes once, and then the end, wherever the object is in its table.
 * Method  One object stays; another one is made and destroyed until it had all other slots.
 */
#include "nic/ibta/test_bench.h"
#include "nic/inventory.h"

enum {
    ROUNDS = 64, /* A table has 16 slots at most. */
};

struct walk {
    const void *found[3];
    uint32_t count;
};

static void note(struct walk *walk, const void *object)
{
    assert_true(walk->count < COUNT_OF(walk->found));
    walk->found[walk->count++] = object;
}

static void expect_both(const struct walk *walk, const void *a, const void *b)
{
    assert_int_equal(walk->count, 2);
    assert_true((walk->found[0] == a && walk->found[1] == b) ||
                (walk->found[0] == b && walk->found[1] == a));
}

static struct qp *create(struct bench *bench, enum qp_type type, void **memory)
{
    struct qp_request request = {.type = type,
                                 .pd = &bench->pd,
                                 .send_cq = &bench->cq,
                                 .receive_cq = &bench->cq,
                                 .capacity = {.sends = 4, .send_sges = 1}};
    struct qp *qp;
    *memory = zeroed(qp_bytes(type, &request.capacity, false));
    assert_int_equal(qp_create(bench->nic, &request, *memory, &qp), STATUS_OK);
    return qp;
}

static void test_queue_pairs(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        void *memory;
        struct qp *const second = create(bench, QP_RC, &memory), *qp;
        struct walk walk = {0};
        for (uint32_t at = 0; (qp = nic_each_qp(bench->nic, &at)) != NULL;) {
            note(&walk, qp);
        }
        expect_both(&walk, bench->qp, second);
        qp_destroy(second);
        free(memory);
    }
    end(bench);
}

static void test_regions(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    struct region second, *region;
    const struct region_request request = {.address = (uintptr_t)bench->memory, .bytes = 1};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        assert_int_equal(region_add(nic_regions(bench->nic), &bench->pd, &request, &second),
                         STATUS_OK);
        struct walk walk = {0};
        for (uint32_t at = 0; (region = nic_each_region(bench->nic, &at)) != NULL;) {
            note(&walk, region);
        }
        expect_both(&walk, &bench->region, &second);
        assert_int_equal(region_remove(nic_regions(bench->nic), &second), STATUS_OK);
    }
    end(bench);
}

static void test_shared_receive_queues(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    struct xrcd xrcd = {0};
    struct srq srqs[2], *srq;
    for (uint32_t i = 0; i < COUNT_OF(srqs); i++) {
        srq_init(&srqs[i], &bench->pd, 0, 0, NULL);
        srqs[i].xrcd = &xrcd;
        srqs[i].cq = &bench->cq;
    }
    uint32_t at = 0;
    assert_null(nic_each_srq(bench->nic, &at));
    assert_int_equal(srq_enter(bench->nic, &srqs[0]), STATUS_OK);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        assert_int_equal(srq_enter(bench->nic, &srqs[1]), STATUS_OK);
        struct walk walk = {0};
        for (at = 0; (srq = nic_each_srq(bench->nic, &at)) != NULL;) {
            note(&walk, srq);
        }
        expect_both(&walk, &srqs[0], &srqs[1]);
        srq_leave(bench->nic, &srqs[1]);
    }
    srq_leave(bench->nic, &srqs[0]);
    end(bench);
}

static void post_to(struct qp *qp, uint8_t host)
{
    const struct nic_av av = {.destination = {{[15] = host}}};
    const struct send_request request = {.kind = WORK_SEND, .av = &av};
    assert_int_equal(qp_post_send(qp, &request), STATUS_OK);
}

/* The last byte of each destination; 0: the end. */
static void expect_datagrams(const struct bench *bench, const uint8_t *hosts)
{
    const struct nic_av *av;
    struct nic_datagram_at at = {0};
    while ((av = nic_each_datagram(bench->nic, &at)) != NULL) {
        assert_int_equal(av->destination.bytes[15], *hosts++);
    }
    assert_int_equal(*hosts, 0);
}

/* A datagram that left no longer counts. */
static void test_datagrams(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_UD, QP_RTS);
    void *memory;
    struct qp *first = bench->qp;
    struct qp *const second = bench->qp = create(bench, QP_UD, &memory);
    receive_ready(bench);
    modify(bench, QP_RTS, QP_ATTR_SQ_PSN);
    bench->qp = first;
    expect_datagrams(bench, (const uint8_t[]){0});
    post_to(second, 4);
    expect_datagrams(bench, (const uint8_t[]){4, 0});
    post_to(first, 2);
    post_to(first, 3);
    expect_datagrams(bench, (const uint8_t[]){2, 3, 4, 0});
    struct nic_departure departure;
    assert_true(nic_next_packet(bench->nic, first, bench->now, &departure));
    expect_datagrams(bench, (const uint8_t[]){3, 4, 0});
    qp_destroy(second);
    expect_datagrams(bench, (const uint8_t[]){3, 0});
    free(memory);
    end(bench);
}

static void expect_account(const struct qp *qp, uint32_t sends, uint32_t receives,
                           uint32_t completions)
{
    const struct nic_account account = nic_account_of(qp);
    assert_int_equal(account.sends, sends);
    assert_int_equal(account.receives, receives);
    assert_int_equal(account.sent.completions, completions);
    assert_int_equal(account.received.completions, completions);
    assert_true(account.is_one_queue);
    assert_true(account.has_receives);
}

static void test_accounts(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_RC, QP_RTS);
    struct nic_departure departure;
    expect_account(bench->qp, 0, 0, 0);
    assert_int_equal(qp_post_receive(bench->qp, 1, NULL, 0), STATUS_OK);
    assert_int_equal(qp_post_receive(bench->qp, 2, NULL, 0), STATUS_OK);
    expect_account(bench->qp, 0, 2, 0);
    post_to(bench->qp, 3);
    post_to(bench->qp, 4);
    assert_true(nic_next_packet(bench->nic, bench->qp, bench->now, &departure));
    expect_account(bench->qp, 2, 2, 0);
    assert_int_equal(nic_account_of(bench->qp).received.arming, CQ_NOT_ARMED);
    cq_arm(&bench->cq, false);
    assert_int_equal(nic_account_of(bench->qp).received.arming, CQ_ARMED_NEXT);
    modify(bench, QP_ERR, 0); /* All are flushed. */
    expect_account(bench->qp, 0, 0, 4);
    assert_int_equal(nic_account_of(bench->qp).sends_done, 2);
    assert_int_equal(nic_account_of(bench->qp).receives_used, 2);
    end(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_pairs),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_shared_receive_queues),
        cmocka_unit_test(test_datagrams),
        cmocka_unit_test(test_accounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
