/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The direct calls of EFA (SRD-1): the fields that each fills, for programs whose
 *         structures are shorter or longer than ours, and how each fails, on an EFA device and on
 *         another.
 * Method  Structures of every length from 0 on, of bytes that are not to be touched. With the
 *         argument "roce" the device is another one: every call refuses.
 */
#include "tests/api/efa_program.h"

#include <errno.h>
#include <string.h>

#include "verbs/efa_newer.h"

/* As libefa has them, with a header that may be older. */
static struct efadv_device_attr *as_device(void *attr)
{
    return attr;
}

static struct efadv_qp_init_attr *as_qp(void *attr)
{
    return attr;
}

static struct efadv_cq_init_attr *as_cq(void *attr)
{
    return attr;
}

/* -- Queries ------------------------------------------------------------------------------------*/

/* The bytes that are filled are those of the whole structure, and 0 behind it. */
static void test_query_device(void **state)
{
    struct efa *efa = *state;
    const struct efa_device_attr whole = {.max_sq_wr = 4096,
                                          .max_rq_wr = 8192,
                                          .max_sq_sge = 2,
                                          .max_rq_sge = 2,
                                          .inline_buf_size = 32,
                                          .inline_buf_size_ex = 32,
                                          .device_caps = 31,
                                          .max_rdma_size = 1u << 30};
    uint8_t expected[64] = {0}, got[65];
    memcpy(expected, &whole, sizeof(whole));
    for (uint32_t inlen = 0; inlen <= 64; inlen++) {
        memset(got, 0x5a, sizeof(got));
        const int reason = efadv_query_device(efa->context, as_device(got), inlen);
        assert_int_equal(reason, inlen < 22 ? EINVAL : 0);
        for (uint32_t i = 0; i < sizeof(got); i++) {
            const bool filled = reason == 0 && i < inlen;
            const bool half_caps = filled && inlen < 28 && i >= 24;
            /* RDMA is told of together with its longest request. */
            const uint8_t without = filled && inlen < 32 && i == 24 ? 9 : 0;
            assert_int_equal(got[i], !filled ? 0x5a : half_caps ? 0 : expected[i] & ~without);
        }
    }
}

static void test_query_ah(void **state)
{
    struct efa *efa = *state;
    struct ibv_ah *ah = efa_handle(efa), *same = efa_handle(efa);
    struct efa_ah_attr attr = {.comp_mask = 7}, other;
    assert_int_equal(efadv_query_ah(ah, (void *)&attr, 9), EINVAL);
    assert_int_equal(attr.comp_mask, 7);
    assert_int_equal(efadv_query_ah(ah, (void *)&attr, sizeof(attr)), 0);
    assert_int_equal(attr.comp_mask, 0);
    assert_int_equal(efadv_query_ah(same, (void *)&other, 10), 0);
    assert_int_equal(attr.ahn, other.ahn);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_ah(same), 0);
}

static void test_query_mr(void **state)
{
    struct efa *efa = *state;
    struct efa_mr_attr attr;
    static const struct efa_mr_attr nothing;
    memset(&attr, 0x5a, sizeof(attr));
    assert_int_equal(efadv_query_mr(efa->mr, (void *)&attr, 15), EINVAL);
    assert_int_equal(efadv_query_mr(efa->mr, (void *)&attr, sizeof(attr)), 0);
    assert_memory_equal(&attr, &nothing, sizeof(attr));
}

static void test_depths(void **state)
{
    struct efa *efa = *state;
    static const struct {
        struct efa_sq_depth_attr attr;
        int depth;
    } rows[] = {{{.max_send_sge = 2, .max_rdma_sge = 1, .max_inline_data = 32}, 4096},
                {{.flags = EFA_SQ_INLINE_WRITE}, 2048},
                {{.max_send_sge = 3}, -EINVAL},
                {{.max_rdma_sge = 2}, -EINVAL},
                {{.max_inline_data = 33}, -EINVAL},
                {{.comp_mask = 1}, -EINVAL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct efa_sq_depth_attr attr = rows[i].attr;
        assert_int_equal(efadv_get_max_sq_depth(efa->context, (void *)&attr, sizeof(attr)),
                         rows[i].depth);
        assert_int_equal(efadv_get_max_sq_depth(efa->context, (void *)&attr, 23), -EINVAL);
    }
    for (uint32_t sges = 0; sges <= 3; sges++) {
        static const int depths[] = {8192, 8192, 4096, -EINVAL};
        struct efa_rq_depth_attr attr = {.max_recv_sge = sges};
        assert_int_equal(efadv_get_max_rq_depth(efa->context, (void *)&attr, 12), depths[sges]);
        assert_int_equal(efadv_get_max_rq_depth(efa->context, (void *)&attr, 11), -EINVAL);
        attr.comp_mask = 1;
        assert_int_equal(efadv_get_max_rq_depth(efa->context, (void *)&attr, 12), -EINVAL);
    }
}

/* -- Completion queues --------------------------------------------------------------------------*/

static void test_create_cq_refused(void **state)
{
    struct efa *efa = *state;
    struct ibv_cq_init_attr_ex cq = {.cqe = 4};
    uint8_t longer[sizeof(struct efa_cq_init_attr) + 8] = {0};
    struct efa_cq_init_attr attr = {0};
    assert_refused(efadv_create_cq(efa->context, &cq, as_cq(&attr), 15), EINVAL);
    attr.comp_mask = 1;
    assert_refused(efadv_create_cq(efa->context, &cq, as_cq(&attr), sizeof(attr)), EINVAL);
    attr = (struct efa_cq_init_attr){.wc_flags = 4};
    assert_refused(efadv_create_cq(efa->context, &cq, as_cq(&attr), sizeof(attr)), EOPNOTSUPP);
    attr = (struct efa_cq_init_attr){.flags = 1};
    assert_refused(efadv_create_cq(efa->context, &cq, as_cq(&attr), sizeof(attr)), EOPNOTSUPP);
    longer[sizeof(longer) - 1] = 1;
    assert_refused(efadv_create_cq(efa->context, &cq, as_cq(longer), sizeof(longer)), EINVAL);
    attr = (struct efa_cq_init_attr){0};
    cq.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    assert_refused(efadv_create_cq(efa->context, &cq, as_cq(&attr), sizeof(attr)), EOPNOTSUPP);
    longer[sizeof(longer) - 1] = 0;
    cq.wc_flags = IBV_WC_STANDARD_FLAGS;
    struct ibv_cq_ex *ex = efadv_create_cq(efa->context, &cq, as_cq(longer), sizeof(longer));
    assert_non_null(ex);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

/* The GID of a sender that the program has no handle to; and no other. */
static void test_sgid(void **state)
{
    struct efa *efa = *state;
    struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct efa_cq_init_attr direct = {.wc_flags = EFA_WC_WITH_SGID};
    struct ibv_poll_cq_attr poll = {0};
    struct ibv_cq_ex *ex = efadv_create_cq(efa->context, &attr, as_cq(&direct), 16);
    assert_non_null(ex);
    struct efa_cq *cq = (void *)efadv_cq_from_ibv_cq_ex(ex);
    struct ibv_qp *to = efa_queue_pair(efa, ibv_cq_ex_to_cq(ex));
    struct ibv_qp *from = efa_queue_pair(efa, efa->cq);
    efa_lead(from, IBV_QPS_RTS);
    efa_lead(to, IBV_QPS_RTS);
    for (int known = 0; known < 2; known++) {
        struct ibv_ah *ah = efa_handle(efa);
        assert_int_equal(efa_receive(efa, to, 4096, EFA_GRH_BYTES + 8), 0);
        assert_int_equal(efa_send(efa, from, to, ah, 8, IBV_SEND_SIGNALED), 0);
        struct efa_ah_attr number;
        assert_int_equal(efadv_query_ah(ah, (void *)&number, sizeof(number)), 0);
        if (!known) {
            assert_int_equal(ibv_destroy_ah(ah), 0);
        }
        assert_int_equal(efa_wait(efa->cq).status, IBV_WC_SUCCESS);
        while (ibv_start_poll(ex, &poll) == ENOENT) {
        }
        union ibv_gid gid = {.raw = {0}};
        assert_int_equal(ex->status, IBV_WC_SUCCESS);
        assert_int_equal(ex->wr_id, 88);
        assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
        assert_int_equal(ibv_wc_read_byte_len(ex), EFA_GRH_BYTES + 8);
        assert_int_equal(ibv_wc_read_src_qp(ex), from->qp_num);
        assert_int_equal(ibv_wc_read_qp_num(ex), to->qp_num);
        assert_int_equal(ibv_wc_read_slid(ex), known ? number.ahn : 0xffff);
        assert_int_equal(cq->wc_read_sgid((void *)cq, &gid), known ? -ENOENT : 0);
        assert_true(known || memcmp(&gid, &efa->gid, sizeof(gid)) == 0);
        assert_int_equal(ibv_next_poll(ex), ENOENT);
        ibv_end_poll(ex);
        if (known) {
            assert_int_equal(ibv_destroy_ah(ah), 0);
        }
    }
    assert_int_equal(ibv_destroy_qp(from), 0);
    assert_int_equal(ibv_destroy_qp(to), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

/* -- Queue pairs --------------------------------------------------------------------------------*/

/* Every check of the direct calls, alone. */
static void test_create_qp_refused(void **state)
{
    struct efa *efa = *state;
    const struct ibv_qp_init_attr_ex right = {
        .send_cq = efa->cq,
        .recv_cq = efa->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = efa->pd};
    struct ibv_qp_init_attr_ex attr = right;
    struct efa_qp_init_attr direct = {0};
    uint8_t longer[sizeof(direct) + 8] = {0};
    longer[sizeof(longer) - 1] = 1;
    assert_refused(efadv_create_qp_ex(efa->context, &attr, as_qp(longer), sizeof(longer)), EINVAL);
    assert_refused(efadv_create_qp_ex(efa->context, &attr, as_qp(&direct), 11), EINVAL);
#define DIRECT(change, reason)                                                                     \
    attr = right;                                                                                  \
    direct = (struct efa_qp_init_attr){0};                                                         \
    change;                                                                                        \
    assert_refused(efadv_create_qp_ex(efa->context, &attr, as_qp(&direct), sizeof(direct)), reason)
    DIRECT(attr.qp_type = IBV_QPT_UD, EINVAL);
    DIRECT(direct.comp_mask = 1, EINVAL);
    DIRECT(direct.reserved = 1, EINVAL);
    DIRECT(direct.driver_qp_type = 1, EOPNOTSUPP);
    DIRECT(direct.flags = 4, EOPNOTSUPP);
    DIRECT(attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
           attr.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, EOPNOTSUPP);
    DIRECT(direct.wr_flags = 2, EOPNOTSUPP);
    DIRECT(attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS, EOPNOTSUPP);
    DIRECT(attr.comp_mask = 0, EINVAL);
    DIRECT(attr.send_cq = NULL, EINVAL);
    DIRECT(attr.cap.max_send_sge = 3, EINVAL);
    struct ibv_qp_init_attr plain = {.send_cq = efa->cq, .recv_cq = efa->cq, .cap = right.cap};
    plain.qp_type = IBV_QPT_UD;
    assert_refused(efadv_create_driver_qp(efa->pd, &plain, EFA_QP_TYPE_SRD), EINVAL);
    plain.qp_type = IBV_QPT_DRIVER;
    assert_refused(efadv_create_driver_qp(efa->pd, &plain, 1), EOPNOTSUPP);
}

/* A queue pair that passes all checks is made, where there is SRD. */
static void test_create_qp(void **state)
{
    struct efa *efa = *state;
    struct ibv_qp_init_attr attr = {
        .send_cq = efa->cq, .recv_cq = efa->cq, .cap = {3, 3, 1, 2, 16}, .qp_type = IBV_QPT_DRIVER};
    struct ibv_qp_init_attr_ex ex = {
        .send_cq = efa->cq,
        .recv_cq = efa->cq,
        .cap = {3, 3, 1, 2, 16},
        .qp_type = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = efa->pd,
        .send_ops_flags =
            IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM};
    struct efa_qp_init_attr direct = {.flags = 3, .sl = 1, .wr_flags = EFA_WR_WITH_HINTS};
    struct ibv_qp *qp = efadv_create_driver_qp(efa->pd, &attr, EFA_QP_TYPE_SRD);
    assert_non_null(qp);
    assert_int_equal(attr.cap.max_send_wr, 4);
    assert_int_equal(attr.cap.max_recv_wr, 4);
    assert_true(qp->qp_num < 1 << 16);
    struct ibv_ah *ah = efa_handle(efa);
    efa_lead(qp, IBV_QPS_RTS);
    assert_int_equal(efa_send(efa, qp, qp, ah, 8, 0), EINVAL); /* SRD-6: not signaled. */
    assert_int_equal(efa_receive(efa, qp, 4096, 8), 0);
    assert_int_equal(efa_send(efa, qp, qp, ah, 8, IBV_SEND_SIGNALED), 0);
    for (int i = 0; i < 2; i++) {
        const struct ibv_wc wc = efa_wait(efa->cq);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_true(wc.opcode == IBV_WC_SEND || (wc.byte_len == 8 && wc.src_qp == qp->qp_num));
    }
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    qp = efadv_create_qp_ex(efa->context, &ex, as_qp(&direct), 24);
    assert_non_null(qp);
    assert_non_null(ibv_qp_to_qp_ex(qp));
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void test_hints(void **state)
{
    struct efa *efa = *state;
    struct ibv_qp *qp = efa_queue_pair_ex(efa, efa->cq);
    struct efa_qp *direct = (void *)efadv_qp_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp));
    assert_int_equal(direct->comp_mask, 0);
    direct->wr_set_processing_hints((void *)direct, 1);
    assert_refused(efadv_qp_from_ibv_qp_ex(NULL), EINVAL);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* -- Refusals -----------------------------------------------------------------------------------*/

static void test_hardware_refused(void **state)
{
    struct efa *efa = *state;
    struct ibv_qp *qp = efa_queue_pair(efa, efa->cq);
    assert_int_equal(efadv_query_cq(efa->cq, NULL, 0), EOPNOTSUPP);
    assert_int_equal(efadv_query_qp_wqs(qp, NULL, NULL, 0), EOPNOTSUPP);
    assert_refused(efadv_create_comp_cntr(efa->context, NULL, NULL, 0), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void test_other_device(void **state)
{
    struct efa *efa = *state;
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = 4};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(efa->context, &cq_attr);
    struct ibv_qp *qp = efa_queue_pair_ex(efa, efa->cq);
    struct ibv_ah *ah = efa_handle(efa);
    struct ibv_qp_init_attr plain = {.qp_type = IBV_QPT_DRIVER};
    struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_QPT_DRIVER};
    uint8_t attr[64] = {0};
    assert_int_equal(efadv_query_device(efa->context, as_device(attr), 32), EOPNOTSUPP);
    assert_int_equal(efadv_query_ah(ah, (void *)attr, 16), EOPNOTSUPP);
    assert_int_equal(efadv_query_mr(efa->mr, (void *)attr, 16), EOPNOTSUPP);
    assert_int_equal(efadv_query_cq(efa->cq, (void *)attr, 32), EOPNOTSUPP);
    assert_int_equal(efadv_query_qp_wqs(qp, (void *)attr, (void *)attr, 40), EOPNOTSUPP);
    assert_int_equal(efadv_get_max_sq_depth(efa->context, (void *)attr, 24), -EOPNOTSUPP);
    assert_int_equal(efadv_get_max_rq_depth(efa->context, (void *)attr, 16), -EOPNOTSUPP);
    assert_refused(efadv_create_driver_qp(efa->pd, &plain, 0), EOPNOTSUPP);
    assert_refused(efadv_create_qp_ex(efa->context, &ex, as_qp(attr), 16), EOPNOTSUPP);
    assert_refused(efadv_create_cq(efa->context, &cq_attr, as_cq(attr), 16), EOPNOTSUPP);
    assert_refused(efadv_cq_from_ibv_cq_ex(cq), EOPNOTSUPP);
    assert_refused(efadv_qp_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp)), EOPNOTSUPP);
    assert_refused(efadv_create_comp_cntr(efa->context, NULL, NULL, 0), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query_device),
        cmocka_unit_test(test_query_ah),
        cmocka_unit_test(test_query_mr),
        cmocka_unit_test(test_depths),
        cmocka_unit_test(test_create_cq_refused),
        cmocka_unit_test(test_sgid),
        cmocka_unit_test(test_create_qp_refused),
        cmocka_unit_test(test_create_qp),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_hardware_refused),
    };
    const struct CMUnitTest others[] = {cmocka_unit_test(test_other_device)};
    return argc > 1 && strcmp(argv[1], "roce") == 0
               ? cmocka_run_group_tests(others, efa_open, efa_close)
               : cmocka_run_group_tests(tests, efa_open, efa_close);
}
