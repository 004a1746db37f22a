/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Objects do what verbs promises beyond the common path: regions that change, windows,
 *         on-demand memory, limits, drained queues, resized queues, solicited events, GRHs.
 * Method  Each promise once, in one process, over the wire that NONIC_WIRE names.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int write_to(struct api *api, uint32_t bytes, const void *remote, uint32_t rkey)
{
    return api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, bytes),
                    (uintptr_t)remote, rkey);
}

/* An error took both queue pairs down: connects two new ones. */
static void renew(struct api *api)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_destroy_qp(api->qps[i]), 0);
        api->qps[i] = api_create_qp(api, IBV_QPT_RC, api->cqs[i], NULL);
    }
    api_connect(api, api->qps[0], api->qps[1]);
    api_connect(api, api->qps[1], api->qps[0]);
    struct ibv_wc wc;
    for (int i = 0; i < 2; i++) {
        while (ibv_poll_cq(api->cqs[i], 1, &wc) > 0) {
        }
    }
}

/* -- Memory -------------------------------------------------------------------------------------*/

static void test_remote_access_is_judged(void **state)
{
    struct api *api = *state;
    struct ibv_mr *closed = ibv_reg_mr(api->pd, api->memory[1], 4096, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(closed);
    api->memory[1][0] = api->memory[1][4096] = 0;
    memset(api->memory[0], 0xee, 4096);
    /* No remote write, a key of nobody, one byte too far. */
    write_to(api, 8, api->memory[1], closed->rkey);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    renew(api);
    write_to(api, 8, api->memory[1], closed->rkey ^ 0x5500);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    renew(api);
    write_to(api, 2, api->memory[1] + MEMORY_BYTES - 1, api->mrs[1]->rkey);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    renew(api);
    assert_int_equal(api->memory[1][0], 0);
    assert_int_equal(ibv_dereg_mr(closed), 0);
    write_to(api, 8, api->memory[1], api->mrs[1]->rkey);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(api->memory[1][7], 0xee);
}

static void test_rereg(void **state)
{
    struct api *api = *state;
    struct ibv_mr *mr =
        ibv_reg_mr(api->pd, api->memory[1], 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(mr);
    write_to(api, 8, api->memory[1], mr->rkey);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, api->memory[1] + 8192, 4096, 0), 0);
    write_to(api, 8, api->memory[1] + 8192, mr->rkey);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    write_to(api, 8, api->memory[1], mr->rkey); /* Where it was. */
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    renew(api);
    assert_int_equal(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
    write_to(api, 8, api->memory[1] + 8192, mr->rkey);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    renew(api);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* A WRITE that completed is over: its target may take the region away at once and go on. */
static void test_region_taken_away_behind_a_write(void **state)
{
    struct api *api = *state;
    for (int round = 0; round < 300; round++) {
        struct ibv_mr *mr = ibv_reg_mr(api->pd, api->memory[1], 4096,
                                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        assert_non_null(mr);
        write_to(api, 8, api->memory[1], mr->rkey);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
}

static void test_zero_based_region(void **state)
{
    struct api *api = *state;
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED;
    struct ibv_mr *mr = ibv_reg_mr(api->pd, api->memory[1], 4096, access);
    assert_non_null(mr);
    api->memory[0][0] = 0x42;
    assert_int_equal(
        api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 1), 4095, mr->rkey), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(api->memory[1][4095], 0x42);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = ibv_reg_mr_iova(api->pd, api->memory[1], 4096, 0x123456789000,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(mr);
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 1),
                              0x123456789000 + 17, mr->rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(api->memory[1][17], 0x42);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* The whole address space, also what is mapped later; what is not mapped is an error, not the end
 * of the program. */
static size_t pages_present(uint8_t *memory, size_t pages)
{
    unsigned char present[64];
    size_t count = 0;
    assert_true(pages <= sizeof(present));
    assert_int_equal(mincore(memory, pages * 4096, present), 0);
    for (size_t i = 0; i < pages; i++) {
        count += present[i] & 1;
    }
    return count;
}

/* Registration brings the pages in, as pinning them would, or says that they are not there. Of a
 * region so large that it is perhaps never used as a whole, pages come one by one. */
static void test_registered_pages(void **state)
{
    struct api *api = *state;
    const size_t large = ((size_t)1 << 28) + 4096;
    uint8_t *memory = mmap(NULL, large, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(pages_present(memory, 64), 0);
    struct ibv_mr *mr = ibv_reg_mr(api->pd, memory, large, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_int_equal(pages_present(memory, 64), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = ibv_reg_mr(api->pd, memory + 4097, 8192, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_int_equal(pages_present(memory, 64), 3);
    assert_int_equal(ibv_dereg_mr(mr), 0);

    assert_int_equal(munmap(memory + 16 * 4096, 4096), 0);
    assert_int_equal(mprotect(memory + 32 * 4096, 4096, PROT_READ), 0);
    const size_t holes[] = {16, 32};
    for (size_t i = 0; i < 2; i++) {
        errno = 0;
        assert_null(
            ibv_reg_mr(api->pd, memory + (holes[i] - 1) * 4096, 3 * 4096, IBV_ACCESS_LOCAL_WRITE));
        assert_int_equal(errno, EFAULT);
    }
    mr = ibv_reg_mr(api->pd, memory + 31 * 4096, 3 * 4096, 0); /* Only to be read. */
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    munmap(memory, large);
}

static void test_on_demand_region(void **state)
{
    struct api *api = *state;
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                       IBV_ACCESS_ON_DEMAND;
    struct ibv_mr *all = ibv_reg_mr(api->pd, NULL, SIZE_MAX, access);
    assert_non_null(all);
    uint8_t *late = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(late, MAP_FAILED);
    struct ibv_sge advice = {(uintptr_t)late, 8192, all->lkey};
    const int advised = ibv_advise_mr(api->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                                      IBV_ADVISE_MR_FLAG_FLUSH, &advice, 1);
    assert_true(advised == 0 || advised == EOPNOTSUPP);
    memset(api->memory[0], 0x77, 8192);
    write_to(api, 8192, late, all->rkey);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(late[8191], 0x77);
    munmap(late, 8192);
    write_to(api, 8192, late, all->rkey);
    const struct ibv_wc wc = api_wait(api->cqs[0]);
    assert_true(wc.status == IBV_WC_REM_OP_ERR || wc.status == IBV_WC_REM_ACCESS_ERR);
    renew(api);
    /* Likewise at home: sending from what is not there. */
    struct ibv_sge gone = {(uintptr_t)late, 16, all->lkey};
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, gone, (uintptr_t)api->memory[1],
                              api->mrs[1]->rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_LOC_PROT_ERR);
    renew(api);
    assert_int_equal(ibv_dereg_mr(all), 0);
}

static void test_window_type_1(void **state)
{
    struct api *api = *state;
    struct ibv_mw *mw = ibv_alloc_mw(api->pd, IBV_MW_TYPE_1);
    assert_non_null(mw);
    struct ibv_mw_bind bind = {
        .wr_id = 5,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = {.mr = api->mrs[1],
                      .addr = (uintptr_t)api->memory[1] + 100,
                      .length = 50,
                      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE},
    };
    assert_int_equal(ibv_bind_mw(api->qps[1], mw, &bind), 0);
    api_expect(api->cqs[1], IBV_WC_SUCCESS);
    const uint32_t first_key = mw->rkey;
    write_to(api, 50, api->memory[1] + 100, mw->rkey);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    write_to(api, 51, api->memory[1] + 100, mw->rkey); /* Inside the region, not the window. */
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    renew(api);
    assert_int_equal(ibv_dereg_mr(api->mrs[1]), EBUSY); /* A window is bound to it. */
    bind.bind_info.length = 0;                          /* Unbinds. */
    assert_int_equal(ibv_bind_mw(api->qps[1], mw, &bind), 0);
    api_expect(api->cqs[1], IBV_WC_SUCCESS);
    write_to(api, 1, api->memory[1] + 100, first_key);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void test_window_type_2(void **state)
{
    struct api *api = *state;
    struct ibv_mw *mw = ibv_alloc_mw(api->pd, IBV_MW_TYPE_2);
    assert_non_null(mw);
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = api->mrs[1],
                                                     .addr = (uintptr_t)api->memory[1],
                                                     .length = 64,
                                                     .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
    assert_int_equal(ibv_post_send(api->qps[1], &wr, &bad), 0);
    api_expect(api->cqs[1], IBV_WC_SUCCESS);
    write_to(api, 64, api->memory[1], wr.bind_mw.rkey);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    /* The peer takes it away with its message. */
    assert_int_equal(api_post_receive(api->qps[1], api_sge(api->mrs[1], 0, 64)), 0);
    struct ibv_sge sge = api_sge(api->mrs[0], 0, 8);
    struct ibv_send_wr invalidate = {.sg_list = &sge,
                                     .num_sge = 1,
                                     .opcode = IBV_WR_SEND_WITH_INV,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .invalidate_rkey = wr.bind_mw.rkey};
    assert_int_equal(ibv_post_send(api->qps[0], &invalidate, &bad), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    const struct ibv_wc wc = api_expect(api->cqs[1], IBV_WC_SUCCESS);
    assert_true(wc.wc_flags & IBV_WC_WITH_INV);
    assert_int_equal(wc.invalidated_rkey, wr.bind_mw.rkey);
    write_to(api, 64, api->memory[1], wr.bind_mw.rkey);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* -- Queues -------------------------------------------------------------------------------------*/

static void test_srq_limit_event(void **state)
{
    struct api *api = *state;
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(api->pd, &init);
    assert_non_null(srq);
    struct ibv_qp *receiver = api_create_qp(api, IBV_QPT_RC, api->cqs[1], srq);
    struct ibv_qp *sender = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
    api_connect(api, receiver, sender);
    api_connect(api, sender, receiver);
    struct ibv_sge sge = api_sge(api->mrs[1], 0, 8);
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    }
    struct ibv_srq_attr attr = {.srq_limit = 3};
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 3);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(api_post(sender, IBV_WR_SEND, api_sge(api->mrs[0], 0, 8), 0, 0), 0);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        api_expect(api->cqs[1], IBV_WC_SUCCESS);
    }
    api_expect_event(api, IBV_EVENT_SRQ_LIMIT_REACHED);
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 0); /* It fires once. */
    assert_int_equal(ibv_destroy_qp(receiver), 0);
    assert_int_equal(ibv_destroy_qp(sender), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void set_state(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), 0);
}

/* Posts a long WRITE and drains the queue: was it on its way by then, and so complete before the
 * event? A sender may keep a request back, as one with a pace does: that one goes on later. */
static bool drained_behind_write(struct api *api)
{
    struct ibv_wc wc;
    assert_int_equal(write_to(api, MEMORY_BYTES, api->memory[1], api->mrs[1]->rkey), 0);
    set_state(api->qps[0], (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1},
              IBV_QP_EN_SQD_ASYNC_NOTIFY);
    api_expect_event(api, IBV_EVENT_SQ_DRAINED);
    const int count = ibv_poll_cq(api->cqs[0], 1, &wc);
    if (count == 0) {
        set_state(api->qps[0], (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, 0);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        return false;
    }
    assert_int_equal(count, 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    return true;
}

static void test_send_queue_drained(void **state)
{
    struct api *api = *state;
    /* A first request may wait for the peer's word how to talk, and would not have begun. */
    assert_int_equal(write_to(api, 8, api->memory[1], api->mrs[1]->rkey), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    int tries = 0;
    while (!drained_behind_write(api)) {
        assert_true(++tries < 20);
    }
    /* Posted now, sent when the queue pair goes on. */
    assert_int_equal(write_to(api, 8, api->memory[1], api->mrs[1]->rkey), 0);
    struct ibv_wc wc;
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(ibv_poll_cq(api->cqs[0], 1, &wc), 0);
    }
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .timeout = 15, .retry_cnt = 3};
    set_state(api->qps[0], attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT);
    set_state(api->qps[0], (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(api->qps[0], &attr, IBV_QP_TIMEOUT, &init), 0);
    assert_int_equal(attr.timeout, 15);
    assert_int_equal(attr.qp_state, IBV_QPS_RTS);
}

/* EXA-101: drained before its first request is on its way; it completes then or later, once. */
static void test_send_queue_drained_at_once(void **state)
{
    struct api *api = *state;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    assert_int_equal(write_to(api, 8, api->memory[1], api->mrs[1]->rkey), 0);
    assert_int_equal(ibv_modify_qp(api->qps[0], &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
                     0);
    api_expect_event(api, IBV_EVENT_SQ_DRAINED);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(api->qps[0], &attr, IBV_QP_STATE), 0);
    assert_int_equal(write_to(api, 8, api->memory[1], api->mrs[1]->rkey), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
}

static void test_resize_keeps_completions_in_order(void **state)
{
    struct api *api = *state;
    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(write_to(api, 8, api->memory[1], api->mrs[1]->rkey), 0);
    }
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(ibv_resize_cq(api->cqs[0], 1000), 0);
    assert_true(api->cqs[0]->cqe >= 1000);
    for (int i = 1; i < 10; i++) {
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
    }
    assert_int_equal(ibv_resize_cq(api->cqs[0], 16), 0);
    assert_int_equal(write_to(api, 8, api->memory[1], api->mrs[1]->rkey), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

/* A queue too small for what completes: the program is told, nothing is overwritten, and the queue
 * pairs that complete there fail, instead of leaving the program to wait for them. */
static void test_overrun(void **state)
{
    struct api *api = *state;
    struct ibv_cq *small = ibv_create_cq(api->context, 1, NULL, NULL, 0);
    assert_non_null(small);
    struct ibv_qp *sender = api_create_qp(api, IBV_QPT_RC, small, NULL);
    struct ibv_qp *receiver = api_create_qp(api, IBV_QPT_RC, api->cqs[1], NULL);
    struct ibv_qp *idle = api_create_qp(api, IBV_QPT_RC, small, NULL);
    api_connect(api, receiver, sender);
    api_connect(api, sender, receiver);
    api_connect(api, idle, receiver);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(api_post(sender, IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 8),
                                  (uintptr_t)api->memory[1], api->mrs[1]->rkey),
                         0);
    }
    api_expect_event(api, IBV_EVENT_CQ_ERR);
    api_expect_event(api, IBV_EVENT_QP_FATAL);
    api_expect_event(api, IBV_EVENT_QP_FATAL);
    struct pollfd more = {.fd = api->context->async_fd, .events = POLLIN};
    assert_int_equal(poll(&more, 1, 0), 0);
    assert_int_equal(state_of(sender), IBV_QPS_ERR);
    assert_int_equal(state_of(idle), IBV_QPS_ERR);
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(small, 1, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_poll_cq(small, 1, &wc), -1);
    assert_int_equal(state_of(receiver), IBV_QPS_RTS);
    assert_int_equal(ibv_destroy_qp(sender), 0);
    assert_int_equal(ibv_destroy_qp(idle), 0);
    assert_int_equal(ibv_destroy_qp(receiver), 0);
    assert_int_equal(ibv_destroy_cq(small), 0);
}

static bool notified(const struct ibv_comp_channel *channel, int ms)
{
    struct pollfd wait = {.fd = channel->fd, .events = POLLIN};
    return poll(&wait, 1, ms) == 1;
}

static void send_one(struct api *api, struct ibv_qp *sender, struct ibv_qp *receiver, int flags)
{
    struct ibv_sge sge = api_sge(api->mrs[0], 0, 8);
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = (unsigned int)(IBV_SEND_SIGNALED | flags)};
    assert_int_equal(api_post_receive(receiver, api_sge(api->mrs[1], 0, 8)), 0);
    assert_int_equal(ibv_post_send(sender, &wr, &bad), 0);
}

static void test_solicited_events(void **state)
{
    struct api *api = *state;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(api->context);
    assert_non_null(channel);
    struct ibv_cq *cq = ibv_create_cq(api->context, 16, api, channel, 0);
    assert_non_null(cq);
    struct ibv_qp *receiver = api_create_qp(api, IBV_QPT_RC, cq, NULL);
    struct ibv_qp *sender = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
    api_connect(api, receiver, sender);
    api_connect(api, sender, receiver);
    assert_int_equal(ibv_req_notify_cq(cq, 1), 0); /* Only solicited ones, and errors. */
    send_one(api, sender, receiver, 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_false(notified(channel, 50));
    send_one(api, sender, receiver, IBV_SEND_SOLICITED);
    assert_true(notified(channel, 10000));
    struct ibv_cq *which;
    void *context;
    assert_int_equal(ibv_get_cq_event(channel, &which, &context), 0);
    assert_ptr_equal(which, cq);
    assert_ptr_equal(context, api);
    ibv_ack_cq_events(cq, 1);
    for (int i = 0; i < 2; i++) {
        api_expect(cq, IBV_WC_SUCCESS);
    }
    assert_int_equal(ibv_destroy_qp(sender), 0);
    assert_int_equal(ibv_destroy_qp(receiver), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* -- Datagrams ----------------------------------------------------------------------------------*/

static void test_datagram_with_grh(void **state)
{
    struct api *api = *state;
    struct ibv_qp *sender = api_create_qp(api, IBV_QPT_UD, api->cqs[0], NULL);
    struct ibv_qp *receiver = api_create_qp(api, IBV_QPT_UD, api->cqs[1], NULL);
    struct ibv_ah *ah = api_address_handle(api);
    api_connect(api, sender, sender);
    api_connect(api, receiver, receiver);
    memset(api->memory[0], 0x3c, 100);
    memset(api->memory[1], 0, 200);
    assert_int_equal(api_post_receive(receiver, api_sge(api->mrs[1], 0, 140)), 0);
    struct ibv_sge sge = api_sge(api->mrs[0], 0, 100);
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND_WITH_IMM,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .imm_data = 0x44332211};
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = receiver->qp_num;
    wr.wr.ud.remote_qkey = 0x11111111;
    assert_int_equal(ibv_post_send(sender, &wr, &bad), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    const struct ibv_wc wc = api_expect(api->cqs[1], IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, 140);
    assert_int_equal(wc.src_qp, sender->qp_num);
    assert_int_equal(wc.imm_data, 0x44332211);
    assert_true(wc.wc_flags & IBV_WC_GRH);
    assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
    assert_memory_equal(api->memory[1] + 40, api->memory[0], 100);
    /* RoCEv2 over IPv4: the IP header stands in the second half (Annex A17). */
    assert_int_equal(api->memory[1][20], 0x45);
    assert_memory_equal(api->memory[1] + 36, api->gid.raw + 12, 4);
    /* With the wrong key, or to nobody, it is gone without a word. */
    wr.wr.ud.remote_qkey = 0x22222222;
    assert_int_equal(api_post_receive(receiver, api_sge(api->mrs[1], 0, 140)), 0);
    assert_int_equal(ibv_post_send(sender, &wr, &bad), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    wr.wr.ud.remote_qkey = 0x11111111;
    wr.wr.ud.remote_qpn = 0xfffffe;
    assert_int_equal(ibv_post_send(sender, &wr, &bad), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    struct ibv_wc none;
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(ibv_poll_cq(api->cqs[1], 1, &none), 0);
    }
    /* Above the MTU there is no datagram. */
    sge.length = 5000;
    assert_int_equal(ibv_post_send(sender, &wr, &bad), 0);
    api_expect(api->cqs[0], IBV_WC_LOC_LEN_ERR);
    assert_int_equal(ibv_destroy_qp(sender), 0);
    assert_int_equal(ibv_destroy_qp(receiver), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* -- Ordinary errors ----------------------------------------------------------------------------*/

static void test_message_longer_than_its_receive(void **state)
{
    struct api *api = *state;
    assert_int_equal(api_post_receive(api->qps[1], api_sge(api->mrs[1], 0, 8)), 0);
    assert_int_equal(api_post(api->qps[0], IBV_WR_SEND, api_sge(api->mrs[0], 0, 9), 0, 0), 0);
    api_expect(api->cqs[0], IBV_WC_REM_INV_REQ_ERR);
    api_expect(api->cqs[1], IBV_WC_LOC_LEN_ERR);
    /* Both are in error: what is posted now is flushed. */
    assert_int_equal(api_post_receive(api->qps[1], api_sge(api->mrs[1], 0, 8)), 0);
    api_expect(api->cqs[1], IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(write_to(api, 8, api->memory[1], api->mrs[1]->rkey), 0);
    api_expect(api->cqs[0], IBV_WC_WR_FLUSH_ERR);
}

static void test_receiver_never_ready(void **state)
{
    struct api *api = *state;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .rnr_retry = 2};
    assert_int_equal(ibv_modify_qp(api->qps[0], &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_modify_qp(api->qps[0], &attr, IBV_QP_STATE | IBV_QP_RNR_RETRY), 0);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(api->qps[0], &attr, IBV_QP_STATE), 0);
    assert_int_equal(api_post(api->qps[0], IBV_WR_SEND, api_sge(api->mrs[0], 0, 8), 0, 0), 0);
    api_expect(api->cqs[0], IBV_WC_RNR_RETRY_EXC_ERR);
}

static void test_atomic_must_be_aligned(void **state)
{
    struct api *api = *state;
    const uint64_t counter = (uintptr_t)api->memory[1];
    assert_int_equal(api_post(api->qps[0], IBV_WR_ATOMIC_FETCH_AND_ADD, api_sge(api->mrs[0], 0, 8),
                              counter, api->mrs[1]->rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(api_post(api->qps[0], IBV_WR_ATOMIC_FETCH_AND_ADD, api_sge(api->mrs[0], 0, 8),
                              counter + 4, api->mrs[1]->rkey),
                     EINVAL);
}

#define RC_TEST(test) cmocka_unit_test_setup_teardown(test, api_open_rc, api_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RC_TEST(test_remote_access_is_judged),
        RC_TEST(test_rereg),
        RC_TEST(test_region_taken_away_behind_a_write),
        RC_TEST(test_zero_based_region),
        RC_TEST(test_registered_pages),
        RC_TEST(test_on_demand_region),
        RC_TEST(test_window_type_1),
        RC_TEST(test_window_type_2),
        RC_TEST(test_srq_limit_event),
        RC_TEST(test_send_queue_drained),
        RC_TEST(test_send_queue_drained_at_once),
        RC_TEST(test_resize_keeps_completions_in_order),
        RC_TEST(test_overrun),
        RC_TEST(test_solicited_events),
        RC_TEST(test_datagram_with_grh),
        RC_TEST(test_message_longer_than_its_receive),
        RC_TEST(test_receiver_never_ready),
        RC_TEST(test_atomic_must_be_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
