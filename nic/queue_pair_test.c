/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A NIC that is one of several on an address takes QPNs of its own part of the numbers
 *         only, uses each of them once before one comes again, and never uses the special ones. It
 *         makes no queue pair that lacks an object or exceeds a limit.
 * Method  Parts of 256 numbers at both ends and in the middle, filled to the limit and turned over;
 *         a table of requests with one flaw each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic.h"
#include "nic/queue_pair.h"
#include "transport/ibta/rc_responder.h"

#define SPAN 256u
#define QPS  (SPAN - 2)

struct bench {
    struct nic *nic;
    void *memory;
    struct pd pd;
    struct cq cq;
    struct completion ring[16];
    void *qp_memory[SPAN];
    struct qp *qps[SPAN];
};

static void *zeroed(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    assert_non_null(memory);
    return memset(memory, 0, bytes);
}

static void open_nic(struct bench *bench, uint32_t base, uint64_t seed)
{
    const struct nic_limits limits = {.qps = QPS,
                                      .regions = 16,
                                      .sends_per_qp = 16,
                                      .receives_per_qp = 16,
                                      .receives_per_srq = 16,
                                      .sges = 2,
                                      .inline_bytes = 16,
                                      .reads_per_qp = 1,
                                      .cq_entries = 16,
                                      .mtu = PATH_MTU_1024,
                                      .qpn_base = base,
                                      .qpn_span = SPAN};
    memset(bench, 0, sizeof(*bench));
    bench->memory = zeroed(nic_bytes(&limits));
    bench->nic = nic_init(&limits, seed, bench->memory);
    cq_init(&bench->cq, 16, bench->ring);
    list_init(&bench->cq.notify);
    list_init(&bench->cq.event_link);
}

static enum status create(struct bench *bench, uint32_t at)
{
    struct qp_request request = {.type = QP_RC,
                                 .pd = &bench->pd,
                                 .send_cq = &bench->cq,
                                 .receive_cq = &bench->cq,
                                 .capacity = {1, 1, 1, 1, 16}};
    bench->qp_memory[at] = zeroed(qp_bytes(QP_RC, &request.capacity, false));
    return qp_create(bench->nic, &request, bench->qp_memory[at], &bench->qps[at]);
}

static void destroy(struct bench *bench, uint32_t at)
{
    qp_destroy(bench->qps[at]);
    free(bench->qp_memory[at]);
}

static bool is_special(uint32_t number)
{
    return number < 2 || number == ROCE_24_BITS;
}

static void check_part(uint32_t base, uint64_t seed)
{
    struct bench *bench = malloc(sizeof(*bench));
    bool used[SPAN] = {false};
    open_nic(bench, base, seed);
    for (uint32_t i = 0; i < QPS; i++) {
        assert_int_equal(create(bench, i), STATUS_OK);
        const uint32_t number = qp_number(bench->qps[i]);
        assert_true(number >= base && number < base + SPAN && !is_special(number));
        assert_false(used[number - base]);
        used[number - base] = true;
    }
    assert_int_equal(create(bench, QPS), STATUS_FULL);
    free(bench->qp_memory[QPS]);
    /* Any place is found again, wherever the search has got to. */
    for (uint32_t i = 0; i < QPS; i += 7) {
        const uint32_t number = qp_number(bench->qps[i]);
        destroy(bench, i);
        assert_int_equal(create(bench, i), STATUS_OK);
        const uint32_t again = qp_number(bench->qps[i]);
        assert_true(again == number || !used[again - base]);
        used[number - base] = false;
        used[again - base] = true;
    }
    for (uint32_t i = 0; i < QPS; i++) {
        destroy(bench, i);
    }
    free(bench->memory);
    free(bench);
}

static void test_parts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        check_part(0, seed);
        check_part(0x420000, seed);
        check_part(0x1000000 - SPAN, seed);
    }
}

/* A number that was given back comes last. */
static void test_late_reuse(void **state)
{
    (void)state;
    struct bench *bench = malloc(sizeof(*bench));
    open_nic(bench, 0x70000, 3);
    assert_int_equal(create(bench, 0), STATUS_OK);
    const uint32_t first = qp_number(bench->qps[0]);
    destroy(bench, 0);
    for (uint32_t i = 0; i < SPAN - 1; i++) {
        assert_int_equal(create(bench, 0), STATUS_OK);
        assert_int_not_equal(qp_number(bench->qps[0]), first);
        destroy(bench, 0);
    }
    assert_int_equal(create(bench, 0), STATUS_OK);
    assert_int_equal(qp_number(bench->qps[0]), first);
    destroy(bench, 0);
    free(bench->memory);
    free(bench);
}

/* A request that begins a message is in order by its PSN, and behind a whole message. */
static void test_awaits(void **state)
{
    (void)state;
    struct rc_responder responder;
    rc_responder_init(&responder, (struct psn){0x43965f}, 4096, 0, NULL);
    assert_true(qp_awaits((const uint8_t *)&responder, 0x43965f));
    assert_false(qp_awaits((const uint8_t *)&responder, 0x43965e));
    for (int kind = INCOMING_SEND; kind <= INCOMING_WRITE; kind++) {
        responder.incoming.kind = (uint8_t)kind;
        assert_false(qp_awaits((const uint8_t *)&responder, 0x43965f));
    }
}

static void test_refused(void **state)
{
    (void)state;
    struct bench *bench = malloc(sizeof(*bench));
    open_nic(bench, 0, 1);
    const struct qp_request good = {.type = QP_RC,
                                    .pd = &bench->pd,
                                    .send_cq = &bench->cq,
                                    .receive_cq = &bench->cq,
                                    .capacity = {.sends = 16, .receives = 16}};
    struct qp_request bad[] = {good, good, good, good, good};
    bad[0].pd = NULL;
    bad[1].send_cq = NULL;
    bad[2].receive_cq = NULL;
    bad[3].capacity.sends = 17;
    bad[4].capacity.receives = 17;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        /* There is room for the memory that such a queue pair would need. */
        bench->qp_memory[0] = zeroed(65536);
        assert_int_equal(qp_create(bench->nic, &bad[i], bench->qp_memory[0], &bench->qps[0]),
                         STATUS_INVALID);
        free(bench->qp_memory[0]);
    }
    assert_int_equal(bench->pd.users, 0);
    assert_int_equal(bench->cq.users, 0);
    free(bench->memory);
    free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_late_reuse),
        cmocka_unit_test(test_awaits),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
