/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Queue pairs of an EFA device are made and changed as its library and its driver have it,
 *         each refusal with its errno: SRD-4 (creation), SRD-5 (states and attributes, of UD and
 *         of SRD), SRD-8 (numbers).
 * Method  Each check of creation is broken alone. From each state to each, every mask that differs
 *         from a right one in one bit, beside a table of what IBTA and the driver of EFA allow.
 */
#include "tests/api/efa_program.h"

#include <errno.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* -- Creation -----------------------------------------------------------------------------------*/

static struct ibv_qp_init_attr_ex right(struct efa *efa)
{
    return (struct ibv_qp_init_attr_ex){
        .send_cq = efa->cq,
        .recv_cq = efa->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = efa->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
}

static void refused(struct efa *efa, struct ibv_qp_init_attr_ex attr, int reason)
{
    assert_refused(ibv_create_qp_ex(efa->context, &attr), reason);
}

static void test_creation_refused(void **state)
{
    struct efa *efa = *state;
    struct ibv_srq srq = {.context = efa->context};
    struct ibv_qp_init_attr_ex attr = right(efa);
#define WITH(change, reason)                                                                       \
    attr = right(efa);                                                                             \
    attr.change;                                                                                   \
    refused(efa, attr, reason)
    WITH(qp_type = IBV_QPT_DRIVER, EOPNOTSUPP);
    WITH(comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS, EOPNOTSUPP);
    WITH(comp_mask |= IBV_QP_INIT_ATTR_XRCD, EOPNOTSUPP);
    WITH(comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, EINVAL);
    WITH(send_ops_flags = IBV_QP_EX_WITH_RDMA_READ, EOPNOTSUPP);
    WITH(send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE, EOPNOTSUPP);
    WITH(send_ops_flags |= IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, EOPNOTSUPP);
    WITH(send_cq = NULL, EINVAL);
    WITH(recv_cq = NULL, EINVAL);
    WITH(srq = &srq, EINVAL);
    WITH(cap.max_send_sge = 3, EINVAL);
    WITH(cap.max_recv_sge = 3, EINVAL);
    WITH(cap.max_send_wr = 4097, EINVAL);
    WITH(cap.max_recv_wr = 8193, EINVAL);
    WITH(cap.max_inline_data = 33, EINVAL);
    attr = right(efa);
    attr.cap.max_recv_sge = 2;
    attr.cap.max_recv_wr = 4097;
    refused(efa, attr, EINVAL);
}

/* Capacities are rounded, and the program is told. */
static void test_creation_rounds(void **state)
{
    struct efa *efa = *state;
    static const struct {
        struct ibv_qp_cap asked, granted;
    } rows[] = {
        {{5, 5, 1, 1, 16}, {8, 8, 1, 1, 16}},
        {{4096, 8192, 2, 1, 32}, {4096, 8192, 2, 1, 32}},
        {{3, 3, 2, 2, 32}, {4, 4, 2, 2, 32}},
        {{100, 4096, 1, 2, 16}, {128, 4096, 1, 2, 16}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ibv_qp_init_attr attr = {
            .send_cq = efa->cq, .recv_cq = efa->cq, .cap = rows[i].asked, .qp_type = IBV_QPT_UD};
        struct ibv_qp *qp = ibv_create_qp(efa->pd, &attr);
        assert_non_null(qp);
        assert_memory_equal(&attr.cap, &rows[i].granted, sizeof(attr.cap));
        struct ibv_qp_attr queried;
        struct ibv_qp_init_attr init;
        assert_int_equal(ibv_query_qp(qp, &queried, IBV_QP_CAP, &init), 0);
        assert_memory_equal(&init.cap, &rows[i].granted, sizeof(attr.cap));
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
}

/* Programs look queue pairs up by the number modulo the number of queue pairs, rounded up to a
 * power of two. */
static void test_numbers(void **state)
{
    struct efa *efa = *state;
    struct ibv_qp *qps[250];
    bool seen[256] = {false};
    for (size_t i = 0; i < COUNT(qps); i++) {
        qps[i] = efa_queue_pair(efa, efa->cq);
        assert_true(qps[i]->qp_num < 1 << 16);
        assert_false(seen[qps[i]->qp_num & 255]);
        seen[qps[i]->qp_num & 255] = true;
    }
    struct ibv_qp_init_attr_ex attr = right(efa);
    refused(efa, attr, ENOMEM);
    for (size_t i = 0; i < COUNT(qps); i++) {
        assert_int_equal(ibv_destroy_qp(qps[i]), 0);
    }
}

/* -- States -------------------------------------------------------------------------------------*/

#define STATES (IBV_QPS_ERR + 1)

/* IBTA 11.2.5.2, for UD. The driver has a table for SRD: the same, but for one attribute. */
static const struct {
    bool valid;
    int needed, allowed;
} changes[STATES][STATES] = {
    [IBV_QPS_RESET] = {[IBV_QPS_RESET] = {true, 0, 0},
                       [IBV_QPS_INIT] = {true, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0}},
    [IBV_QPS_INIT] = {[IBV_QPS_RESET] = {true, 0, 0},
                      [IBV_QPS_INIT] = {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
                      [IBV_QPS_RTR] = {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
                      [IBV_QPS_ERR] = {true, 0, 0}},
    [IBV_QPS_RTR] = {[IBV_QPS_RESET] = {true, 0, 0},
                     [IBV_QPS_RTS] = {true, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
                     [IBV_QPS_ERR] = {true, 0, 0}},
    [IBV_QPS_RTS] = {[IBV_QPS_RESET] = {true, 0, 0},
                     [IBV_QPS_RTS] = {true, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
                     [IBV_QPS_SQD] = {true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
                     [IBV_QPS_ERR] = {true, 0, 0}},
    [IBV_QPS_SQD] = {[IBV_QPS_RESET] = {true, 0, 0},
                     [IBV_QPS_RTS] = {true, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
                     [IBV_QPS_SQD] = {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
                     [IBV_QPS_ERR] = {true, 0, 0}},
    [IBV_QPS_SQE] = {[IBV_QPS_RESET] = {true, 0, 0},
                     [IBV_QPS_RTS] = {true, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
                     [IBV_QPS_ERR] = {true, 0, 0}},
    [IBV_QPS_ERR] = {[IBV_QPS_RESET] = {true, 0, 0}, [IBV_QPS_ERR] = {true, 0, 0}},
};

/* The attributes that the driver has a place for. */
#define KNOWN                                                                                      \
    (IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_PKEY_INDEX |            \
     IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY)

static int expected(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    const int needed = changes[from][to].needed;
    const bool retries = type == IBV_QPT_DRIVER && from == IBV_QPS_RTR && to == IBV_QPS_RTS;
    const int allowed = changes[from][to].allowed | (retries ? IBV_QP_RNR_RETRY : 0);
    if (mask & ~KNOWN) {
        return EOPNOTSUPP;
    }
    return changes[from][to].valid && (mask & needed) == needed &&
                   !(mask & ~(needed | allowed | IBV_QP_STATE))
               ? 0
               : EINVAL;
}

/* A send of UD whose memory may not be read leads to SQE; nothing does so with SRD. */
static struct ibv_qp *queue_pair_in(struct efa *efa, enum ibv_qp_type type, enum ibv_qp_state state)
{
    struct ibv_qp *qp =
        type == IBV_QPT_UD ? efa_queue_pair(efa, efa->cq) : efa_queue_pair_srd(efa, efa->cq);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    if (state != IBV_QPS_SQE) {
        efa_lead(qp, state);
        return qp;
    }
    efa_lead(qp, IBV_QPS_RTS);
    struct ibv_ah *ah = efa_handle(efa);
    const uint32_t lkey = efa->mr->lkey;
    efa->mr->lkey = lkey + 1;
    assert_int_equal(efa_send(efa, qp, qp, ah, 8, IBV_SEND_SIGNALED), 0);
    efa->mr->lkey = lkey;
    assert_int_equal(efa_wait(efa->cq).status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_SQE);
    return qp;
}

static void attempt(struct efa *efa, enum ibv_qp_type type, enum ibv_qp_state from,
                    enum ibv_qp_state to, int mask)
{
    struct ibv_qp *qp = queue_pair_in(efa, type, from);
    const int reason = efa_modify(qp, to, mask), due = expected(type, from, to, mask);
    if (reason != due) {
        fail_msg("type %d, from %d to %d with 0x%x: %d and not %d", type, from, to, mask, reason,
                 due);
    }
    assert_int_equal(qp->state, reason == 0 ? to : from);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void every_bit(struct efa *efa, enum ibv_qp_type type, enum ibv_qp_state from,
                      enum ibv_qp_state to)
{
    const int needed = changes[from][to].needed | IBV_QP_STATE;
    attempt(efa, type, from, to, needed);
    for (int bit = 1; bit < 1 << 26; bit <<= 1) {
        if (bit != IBV_QP_STATE) {
            attempt(efa, type, from, to, needed ^ bit);
        }
        if (from == to) { /* Also without a state: it stays. */
            attempt(efa, type, from, to, bit);
        }
    }
}

static void every_state(struct efa *efa, enum ibv_qp_type type)
{
    for (enum ibv_qp_state from = IBV_QPS_RESET; from < STATES; from++) {
        for (enum ibv_qp_state to = IBV_QPS_RESET; to < STATES; to++) {
            if (type == IBV_QPT_UD || from != IBV_QPS_SQE) {
                every_bit(efa, type, from, to);
            }
        }
    }
}

static void test_states(void **state)
{
    every_state(*state, IBV_QPT_UD);
    every_state(*state, IBV_QPT_DRIVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_creation_refused),
        cmocka_unit_test(test_creation_rounds),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_states),
    };
    return cmocka_run_group_tests(tests, efa_open, efa_close);
}
