/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A call that cannot be served says so with the errno that verbs documents, and changes
 *         nothing: what is right before still works behind it.
 * Method  Wrong calls of every object. After each test the fixture takes everything down, which
 *         only works if the failed calls left nothing behind.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_protection_domain_in_use(void **state)
{
    struct api *api = *state;
    assert_int_equal(ibv_dealloc_pd(api->pd), EBUSY);
    assert_int_equal(ibv_destroy_cq(api->cqs[0]), EBUSY); /* Queue pairs report here. */
}

static void test_memory_regions(void **state)
{
    struct api *api = *state;
    uint8_t *memory = api->memory[0];
    /* Remote writes and atomics need local write (ibv_reg_mr(3)). */
    errno = 0;
    assert_null(ibv_reg_mr(api->pd, memory, 64, IBV_ACCESS_REMOTE_WRITE));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(ibv_reg_mr(api->pd, memory, 64, IBV_ACCESS_REMOTE_ATOMIC));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(ibv_reg_mr(api->pd, memory, 64, 1 << 15)); /* A flag nobody defined. */
    assert_true(errno == EINVAL || errno == EOPNOTSUPP);
    errno = 0;
    assert_null(ibv_reg_mr(api->pd, (void *)(uintptr_t)0xfffffffffffff000u, 8192, 0));
    assert_true(errno == EINVAL || errno == EFAULT); /* It ends beyond the address space. */
    assert_int_not_equal(ibv_rereg_mr(api->mrs[0], IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                                      IBV_ACCESS_REMOTE_WRITE),
                         0);
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 8),
                              (uintptr_t)api->memory[1], api->mrs[1]->rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS); /* The failed change changed nothing. */
}

static void test_completion_queues(void **state)
{
    struct api *api = *state;
    struct ibv_device_attr device;
    assert_int_equal(ibv_query_device(api->context, &device), 0);
    static const int wrong[] = {0, -1};
    for (size_t i = 0; i < 2; i++) {
        errno = 0;
        assert_null(ibv_create_cq(api->context, wrong[i], NULL, NULL, 0));
        assert_int_equal(errno, EINVAL);
        assert_int_equal(ibv_resize_cq(api->cqs[0], wrong[i]), EINVAL);
    }
    assert_null(ibv_create_cq(api->context, device.max_cqe + 1, NULL, NULL, 0));
    assert_null(ibv_create_cq(api->context, 1, NULL, NULL, 1)); /* There is one vector. */
    struct ibv_cq_init_attr_ex extended = {.cqe = 1, .wc_flags = 1ull << 60};
    errno = 0;
    assert_null(ibv_create_cq_ex(api->context, &extended));
    assert_int_equal(errno, EOPNOTSUPP);
    extended = (struct ibv_cq_init_attr_ex){.cqe = 1, .comp_mask = 1u << 30};
    assert_null(ibv_create_cq_ex(api->context, &extended));
}

static struct ibv_qp_init_attr good_qp(const struct api *api)
{
    return (struct ibv_qp_init_attr){
        .send_cq = api->cqs[0],
        .recv_cq = api->cqs[0],
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
}

static void expect_no_qp(struct api *api, struct ibv_qp_init_attr init)
{
    errno = 0;
    assert_null(ibv_create_qp(api->pd, &init));
    assert_true(errno == EINVAL || errno == EOPNOTSUPP || errno == ENOMEM);
}

static void test_queue_pair_creation(void **state)
{
    struct api *api = *state;
    struct ibv_device_attr device;
    assert_int_equal(ibv_query_device(api->context, &device), 0);
    struct ibv_qp_init_attr init = good_qp(api);
    init.send_cq = NULL;
    expect_no_qp(api, init);
    init = good_qp(api);
    init.cap.max_send_wr = (uint32_t)device.max_qp_wr + 1;
    expect_no_qp(api, init);
    init = good_qp(api);
    init.cap.max_recv_wr = UINT32_MAX;
    expect_no_qp(api, init);
    init = good_qp(api);
    init.cap.max_send_sge = (uint32_t)device.max_sge + 1;
    expect_no_qp(api, init);
    init = good_qp(api);
    init.cap.max_inline_data = 1u << 30;
    expect_no_qp(api, init);
    init = good_qp(api);
    init.qp_type = (enum ibv_qp_type)99;
    expect_no_qp(api, init);
    init = good_qp(api);
    init.qp_type = IBV_QPT_RAW_PACKET;
    expect_no_qp(api, init);
}

static int modify(struct ibv_qp *qp, enum ibv_qp_state to, int mask)
{
    struct ibv_qp_attr attr = {.qp_state = to, .port_num = 1, .path_mtu = IBV_MTU_256};
    return ibv_modify_qp(qp, &attr, mask);
}

static void test_queue_pair_states(void **state)
{
    struct api *api = *state;
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    assert_int_equal(modify(qp, IBV_QPS_RTS, IBV_QP_STATE), EINVAL);  /* Out of order. */
    assert_int_equal(modify(qp, IBV_QPS_ERR, IBV_QP_STATE), EINVAL);  /* Nothing to flush. */
    assert_int_equal(modify(qp, IBV_QPS_INIT, IBV_QP_STATE), EINVAL); /* Attributes are missing. */
    assert_int_equal(modify(qp, IBV_QPS_INIT, init | IBV_QP_SQ_PSN), EINVAL); /* Too many. */
    assert_int_equal(modify(qp, (enum ibv_qp_state)(256 + IBV_QPS_INIT), init), EINVAL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 2};
    assert_int_equal(ibv_modify_qp(qp, &attr, init), EINVAL); /* There is one port. */
    attr.port_num = 1;
    attr.pkey_index = 1;
    assert_int_equal(ibv_modify_qp(qp, &attr, init), EINVAL);
    assert_int_equal(qp->state, IBV_QPS_RESET);
    assert_int_equal(api_post_receive(qp, api_sge(api->mrs[0], 0, 8)), EINVAL);
    assert_int_equal(modify(qp, IBV_QPS_INIT, init), 0);
    assert_int_equal(qp->state, IBV_QPS_INIT);
    assert_int_equal(api_post_receive(qp, api_sge(api->mrs[0], 0, 8)), 0);
    assert_int_equal(api_post(qp, IBV_WR_SEND, api_sge(api->mrs[0], 0, 8), 0, 0), EINVAL);
    /* To RTR with a destination that no port reaches, or an MTU that is none. */
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .ah_attr = {.is_global = 1, .port_num = 1}};
    attr.ah_attr.grh.dgid.raw[0] = 0x20;
    const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    assert_int_not_equal(ibv_modify_qp(qp, &attr, rtr), 0);
    attr.ah_attr.grh.dgid = api->gid;
    attr.path_mtu = (enum ibv_mtu)9;
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
    attr.path_mtu = (enum ibv_mtu)(256 + IBV_MTU_1024);
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
    attr.path_mtu = IBV_MTU_1024;
    attr.ah_attr.is_global = 0; /* RoCE has no other way. */
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
    attr.ah_attr.is_global = 1;
    attr.max_dest_rd_atomic = 255;
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr), EINVAL);
    assert_int_equal(qp->state, IBV_QPS_INIT);
    attr.max_dest_rd_atomic = 1;
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr), 0);
    assert_int_equal(modify(qp, IBV_QPS_INIT, init), EINVAL); /* Never back. */
    assert_int_equal(modify(qp, IBV_QPS_ERR, IBV_QP_STATE), 0);
    api_expect(api->cqs[0], IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(modify(qp, IBV_QPS_RESET, IBV_QP_STATE), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void test_sending(void **state)
{
    struct api *api = *state;
    struct ibv_sge sges[5];
    for (int i = 0; i < 5; i++) {
        sges[i] = api_sge(api->mrs[0], 0, 1);
    }
    struct ibv_send_wr *bad, wr = {.sg_list = sges, .num_sge = 5, .opcode = IBV_WR_SEND};
    assert_int_equal(ibv_post_send(api->qps[0], &wr, &bad), EINVAL); /* More than max_send_sge. */
    wr.num_sge = -1;
    assert_int_equal(ibv_post_send(api->qps[0], &wr, &bad), EINVAL);
    wr.num_sge = 1;
    wr.opcode = (enum ibv_wr_opcode)99;
    assert_int_not_equal(ibv_post_send(api->qps[0], &wr, &bad), 0);
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE;
    sges[0].length = 1000;
    assert_int_equal(ibv_post_send(api->qps[0], &wr, &bad), EINVAL); /* More than max_inline. */
    wr.opcode = IBV_WR_RDMA_READ;
    sges[0].length = 8;
    assert_int_equal(ibv_post_send(api->qps[0], &wr, &bad), EINVAL); /* A READ cannot be inline. */
    wr.send_flags = 0;
    wr.opcode = IBV_WR_SEND;
    sges[0].length = 0x80000000u;
    sges[1].length = 1;
    wr.num_sge = 2;
    assert_int_equal(ibv_post_send(api->qps[0], &wr, &bad), EINVAL); /* Above 2 GiB. */
    sges[0].length = 4;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    assert_int_equal(ibv_post_send(api->qps[0], &wr, &bad), EINVAL); /* Atomics are 8 bytes. */
}

/* A chain stops at the request that is wrong; those before it are posted. */
static void test_chain_stops_at_the_wrong_one(void **state)
{
    struct api *api = *state;
    struct ibv_sge sge = api_sge(api->mrs[0], 0, 8);
    struct ibv_send_wr *bad, wrs[3];
    for (int i = 0; i < 3; i++) {
        wrs[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
                                      .next = i < 2 ? &wrs[i + 1] : NULL,
                                      .sg_list = &sge,
                                      .num_sge = i == 1 ? 99 : 1,
                                      .opcode = IBV_WR_RDMA_WRITE,
                                      .send_flags = IBV_SEND_SIGNALED};
        wrs[i].wr.rdma.remote_addr = (uintptr_t)api->memory[1];
        wrs[i].wr.rdma.rkey = api->mrs[1]->rkey;
    }
    assert_int_equal(ibv_post_send(api->qps[0], wrs, &bad), EINVAL);
    assert_ptr_equal(bad, &wrs[1]);
    assert_int_equal(api_expect(api->cqs[0], IBV_WC_SUCCESS).wr_id, 0);
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(api->cqs[0], 1, &wc), 0);
}

static void test_full_queues(void **state)
{
    struct api *api = *state;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(api->qps[0], &attr, IBV_QP_CAP, &init), 0);
    for (uint32_t i = 0; i < init.cap.max_recv_wr; i++) {
        assert_int_equal(api_post_receive(api->qps[0], api_sge(api->mrs[0], 0, 8)), 0);
    }
    assert_int_equal(api_post_receive(api->qps[0], api_sge(api->mrs[0], 0, 8)), ENOMEM);
    /* Sends without a receive at the peer stay in the queue. */
    for (uint32_t i = 0; i < init.cap.max_send_wr; i++) {
        assert_int_equal(api_post(api->qps[0], IBV_WR_SEND, api_sge(api->mrs[0], 0, 8), 0, 0), 0);
    }
    assert_int_equal(api_post(api->qps[0], IBV_WR_SEND, api_sge(api->mrs[0], 0, 8), 0, 0), ENOMEM);
}

static void test_address_handles(void **state)
{
    struct api *api = *state;
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 2};
    attr.grh.dgid = api->gid;
    errno = 0;
    assert_null(ibv_create_ah(api->pd, &attr));
    assert_int_equal(errno, EINVAL);
    attr.port_num = 1;
    attr.is_global = 0;
    assert_null(ibv_create_ah(api->pd, &attr));
    attr.is_global = 1;
    attr.grh.sgid_index = 99;
    assert_null(ibv_create_ah(api->pd, &attr));
}

static void test_shared_receive_queues(void **state)
{
    struct api *api = *state;
    struct ibv_srq_init_attr init = {.attr = {.max_wr = UINT32_MAX, .max_sge = 1}};
    errno = 0;
    assert_null(ibv_create_srq(api->pd, &init));
    assert_int_equal(errno, EINVAL);
    init.attr.max_wr = 4;
    init.attr.max_sge = 10000;
    assert_null(ibv_create_srq(api->pd, &init));
    init.attr.max_sge = 1;
    struct ibv_srq *srq = ibv_create_srq(api->pd, &init);
    assert_non_null(srq);
    struct ibv_srq_attr attr = {.srq_limit = 1000000};
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, api->cqs[0], srq);
    assert_int_equal(ibv_destroy_srq(srq), EBUSY);
    assert_int_equal(api_post_receive(qp, api_sge(api->mrs[0], 0, 8)), EINVAL); /* It has an SRQ. */
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void test_queries(void **state)
{
    struct api *api = *state;
    struct ibv_port_attr port;
    union ibv_gid gid;
    __be16 pkey;
    assert_int_equal(ibv_query_port(api->context, 2, &port), EINVAL);
    assert_int_not_equal(ibv_query_gid(api->context, 1, 1000, &gid), 0);
    assert_int_not_equal(ibv_query_gid(api->context, 2, 0, &gid), 0);
    assert_int_not_equal(ibv_query_gid(api->context, 1, -1, &gid), 0);
    assert_int_not_equal(ibv_query_pkey(api->context, 1, 1, &pkey), 0);
}

/* While `act` is done, `words` are written to stderr this number of times. */
static void expect_said(void (*act)(struct api *), struct api *api, const char *words, size_t times)
{
    static char said[4096];
    FILE *file = tmpfile();
    const int before = dup(STDERR_FILENO);
    assert_true(file != NULL && before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    act(api);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(file);
    said[fread(said, 1, sizeof(said) - 1, file)] = 0;
    fclose(file);
    for (const char *at = said; (at = strstr(at, words)) != NULL; at++) {
        times--;
    }
    if (times != 0) {
        fail_msg("stderr: %s", said);
    }
}

/* A WRITE, then what a queue pair with max_rd_atomic 0 can never send, then a WRITE again. */
static void ask_in_vain(struct api *api, enum ibv_wr_opcode opcode)
{
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
    struct ibv_qp *peer = api_create_qp(api, IBV_QPT_RC, api->cqs[1], NULL);
    const uint64_t remote = (uintptr_t)api->memory[1];
    api->asks_nothing = true;
    api_connect(api, qp, peer);
    api_connect(api, peer, qp);
    static const enum ibv_wc_status expected[] = {IBV_WC_SUCCESS, IBV_WC_LOC_QP_OP_ERR,
                                                  IBV_WC_WR_FLUSH_ERR};
    for (int i = 0; i < 3; i++) {
        const enum ibv_wr_opcode asked = i == 1 ? opcode : IBV_WR_RDMA_WRITE;
        assert_int_equal(api_post(qp, asked, api_sge(api->mrs[0], 0, 8), remote, api->mrs[1]->rkey),
                         0);
    }
    for (int i = 0; i < 3; i++) {
        (void)api_expect(api->cqs[0], expected[i]);
    }
    assert_int_equal(ibv_destroy_qp(qp) | ibv_destroy_qp(peer), 0);
}

static void ask_all_in_vain(struct api *api)
{
    ask_in_vain(api, IBV_WR_RDMA_READ);
    ask_in_vain(api, IBV_WR_ATOMIC_FETCH_AND_ADD);
    ask_in_vain(api, IBV_WR_ATOMIC_CMP_AND_SWP);
}

/* It used to wait for ever, and nobody said why. */
static void test_requests_without_a_depth(void **state)
{
    expect_said(ask_all_in_vain, *state, "max_rd_atomic is 0", 1);
}

/* Calls for things that nonic does not have are refused, never pretended. */
static void test_what_is_not_there(void **state)
{
    struct api *api = *state;
    struct ibv_flow_attr flow = {.type = IBV_FLOW_ATTR_NORMAL, .port = 1};
    errno = 0;
    assert_null(ibv_create_flow(api->qps[0], &flow));
    assert_int_equal(errno, EOPNOTSUPP);
    errno = 0;
    assert_null(ibv_reg_dmabuf_mr(api->pd, 0, 64, 0, -1, 0));
    assert_int_equal(errno, EOPNOTSUPP);
}

#define RC_TEST(test) cmocka_unit_test_setup_teardown(test, api_open_rc, api_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RC_TEST(test_protection_domain_in_use),
        RC_TEST(test_memory_regions),
        RC_TEST(test_completion_queues),
        RC_TEST(test_queue_pair_creation),
        RC_TEST(test_queue_pair_states),
        RC_TEST(test_sending),
        RC_TEST(test_chain_stops_at_the_wrong_one),
        RC_TEST(test_full_queues),
        RC_TEST(test_address_handles),
        RC_TEST(test_shared_receive_queues),
        RC_TEST(test_queries),
        RC_TEST(test_what_is_not_there),
        RC_TEST(test_requests_without_a_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
