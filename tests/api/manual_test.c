/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What rdma-core's manual pages say of calls that programs seldom make wrongly, or in an
 *         unusual order: who is woken, what a call leaves as it was, what is not looked at.
 * Method  An ordinary verbs program that is its own peer.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* -- Completions --------------------------------------------------------------------------------*/

/* ibv_req_notify_cq(3): the next completion wakes, also one that comes of posting. */
static void test_receive_in_error_wakes(void **state)
{
    struct api *api = *state;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(api->context);
    struct ibv_cq *cq = ibv_create_cq(api->context, 8, NULL, channel, 0);
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, cq, NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    attr.qp_state = IBV_QPS_ERR;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    assert_int_equal(api_post_receive(qp, api_sge(api->mrs[0], 0, 8)), 0);
    struct pollfd wait = {.fd = channel->fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 10000), 1);
    struct ibv_cq *told;
    void *context;
    assert_int_equal(ibv_get_cq_event(channel, &told, &context), 0);
    ibv_ack_cq_events(told, 1);
    api_expect(cq, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static void *take_events(void *channel)
{
    struct ibv_cq *cq;
    void *context;
    for (;;) {
        if (ibv_get_cq_event(channel, &cq, &context) == 0) {
            ibv_ack_cq_events(cq, 1);
            if (context != NULL) {
                return NULL; /* The last one. */
            }
        }
    }
}

/* For some ten nanoseconds each. */
static void spin(uint32_t turns)
{
    for (volatile uint32_t i = 0; i < turns * 8; i++) {
    }
}

/* Its queue is destroyed a while afterwards. */
static void raise_event(struct api *api, struct ibv_comp_channel *channel, void *context,
                        uint32_t turns)
{
    struct ibv_cq *cq = ibv_create_cq(api->context, 8, context, channel, 0);
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, cq, NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    assert_int_equal(api_post_receive(qp, api_sge(api->mrs[0], 0, 8)), 0);
    attr.qp_state = IBV_QPS_ERR;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    spin(turns);
    if (context != NULL) {
        usleep(100000); /* It shall be taken. */
    }
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* ibv_destroy_cq(3): events that nobody has taken go with their queue, also from under a thread
 * that is about to take one. */
static void test_destroyed_beside_a_reader(void **state)
{
    struct api *api = *state;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(api->context);
    pthread_t reader;
    alarm(120); /* Else two threads wait for each other for ever. */
    assert_int_equal(pthread_create(&reader, NULL, take_events, channel), 0);
    for (uint32_t i = 0; i < 20000; i++) {
        raise_event(api, channel, NULL, i % 1000);
    }
    while (pthread_tryjoin_np(reader, NULL) != 0) {
        raise_event(api, channel, api, 0);
    }
    alarm(0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* ibv_create_cq_ex(3): every completion has a time, and they do not go back. */
static void test_times(void **state)
{
    struct api *api = *state;
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(api->context, &attr);
    assert_non_null(cq);
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, ibv_cq_ex_to_cq(cq), NULL);
    api_connect(api, qp, qp);
    uint64_t before = 1;
    for (int i = 0; i < 3; i++) {
        struct ibv_poll_cq_attr none = {0};
        assert_int_equal(api_post(qp, IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 8),
                                  (uintptr_t)api->memory[1], api->mrs[1]->rkey),
                         0);
        while (ibv_start_poll(cq, &none) != 0) {
        }
        assert_int_equal(cq->status, IBV_WC_SUCCESS);
        assert_true(ibv_wc_read_completion_ts(cq) >= before);
        before = ibv_wc_read_completion_ts(cq);
        ibv_end_poll(cq);
    }
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* Also one that a program posts, after a while, to a queue pair in the error state. */
static void test_time_of_a_flushed_bind(void **state)
{
    struct api *api = *state;
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(api->context, &attr);
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, ibv_cq_ex_to_cq(cq), NULL);
    struct ibv_mw *mw = ibv_alloc_mw(api->pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_poll_cq_attr none = {0};
    struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    api_connect(api, qp, qp);
    assert_int_equal(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
    usleep(100000);
    assert_int_equal(ibv_query_rt_values_ex(api->context, &before), 0);
    assert_int_equal(ibv_bind_mw(qp, mw, &bind), 0);
    assert_int_equal(ibv_start_poll(cq, &none), 0);
    assert_int_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
    const uint64_t raw =
        (uint64_t)before.raw_clock.tv_sec * 1000000000u + (uint64_t)before.raw_clock.tv_nsec;
    assert_true(ibv_wc_read_completion_ts(cq) >= raw);
    ibv_end_poll(cq);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* -- Arguments that stay as they were, or are not looked at -------------------------------------*/

/* ibv_create_qp_ex(3): only `cap` is updated. */
static void test_attributes_stay(void **state)
{
    struct api *api = *state;
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(api->context, &domain);
    assert_non_null(xrcd);
    struct ibv_qp_init_attr_ex attr = {.send_cq = api->cqs[0],
                                       .recv_cq = api->cqs[1],
                                       .qp_type = IBV_QPT_XRC_RECV,
                                       .comp_mask = IBV_QP_INIT_ATTR_XRCD,
                                       .xrcd = xrcd};
    struct ibv_qp *target = ibv_create_qp_ex(api->context, &attr);
    assert_non_null(target);
    assert_ptr_equal(attr.send_cq, api->cqs[0]);
    assert_ptr_equal(attr.recv_cq, api->cqs[1]);
    attr.qp_type = IBV_QPT_XRC_SEND;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr.pd = api->pd;
    attr.cap = (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 1};
    struct ibv_qp *sender = ibv_create_qp_ex(api->context, &attr);
    assert_non_null(sender);
    assert_ptr_equal(attr.recv_cq, api->cqs[1]);
    assert_int_equal(ibv_destroy_qp(sender), 0);
    assert_int_equal(ibv_destroy_qp(target), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* ibv_create_srq(3): srq_limit is irrelevant. */
static void test_no_limit_at_creation(void **state)
{
    struct api *api = *state;
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0xdeadbeef}};
    struct ibv_srq *srq = ibv_create_srq(api->pd, &attr);
    assert_non_null(srq);
    struct ibv_srq_attr now;
    assert_int_equal(ibv_query_srq(srq, &now), 0);
    assert_int_equal(now.srq_limit, 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* ibv_alloc_parent_domain(3): it is as good as the domain that it was made of. */
static void test_window_of_a_parent_domain(void **state)
{
    struct api *api = *state;
    struct ibv_parent_domain_init_attr attr = {.pd = api->pd};
    struct ibv_pd *parent = ibv_alloc_parent_domain(api->context, &attr);
    struct ibv_pd *other = ibv_alloc_pd(api->context);
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
    struct ibv_mr *mr = ibv_reg_mr(parent, api->memory[1], 64, access);
    struct ibv_mr *strange_mr = ibv_reg_mr(other, api->memory[1], 64, access);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {.mr = mr,
                                             .addr = (uintptr_t)api->memory[1],
                                             .length = 50,
                                             .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
    struct ibv_mw *mw = ibv_alloc_mw(parent, IBV_MW_TYPE_1);
    struct ibv_mw *strange = ibv_alloc_mw(other, IBV_MW_TYPE_1);
    assert_int_equal(ibv_bind_mw(api->qps[1], mw, &bind), 0);
    api_expect(api->cqs[1], IBV_WC_SUCCESS);
    bind.bind_info.mr = strange_mr;
    assert_int_equal(ibv_bind_mw(api->qps[1], strange, &bind), EINVAL);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_dealloc_mw(strange), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dereg_mr(strange_mr), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
}

/* -- Refusals -----------------------------------------------------------------------------------*/

/* ibv_advise_mr(3): EFAULT for a key that is invalid, or does not allow to write. */
static void test_advice(void **state)
{
    struct api *api = *state;
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(api->pd, memory, 4096, IBV_ACCESS_ON_DEMAND);
    assert_non_null(mr);
    struct ibv_sge sge = {(uintptr_t)memory, 4096, mr->lkey};
    assert_int_equal(ibv_advise_mr(api->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), 0);
    assert_int_equal(ibv_advise_mr(api->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1),
                     EFAULT);
    sge.lkey ^= 0x5a5a5a;
    assert_int_equal(ibv_advise_mr(api->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EFAULT);
    sge.lkey = api->mrs[0]->lkey; /* Its pages are there. */
    sge.addr = (uintptr_t)api->memory[0];
    assert_int_equal(ibv_advise_mr(api->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EINVAL);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    munmap(memory, 4096);
}

/* ibv_advise_mr(3): EPERM for a key of another domain; EFAULT, if the program waits for it, for
 * memory that is not there. */
static void test_advice_that_fails(void **state)
{
    struct api *api = *state;
    const enum ibv_advise_mr_advice advice = IBV_ADVISE_MR_ADVICE_PREFETCH;
    uint8_t *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_pd *other = ibv_alloc_pd(api->context);
    struct ibv_mr *mr = ibv_reg_mr(api->pd, memory, 8192, IBV_ACCESS_ON_DEMAND);
    struct ibv_mr *strange = ibv_reg_mr(other, memory, 8192, IBV_ACCESS_ON_DEMAND);
    assert_non_null(mr);
    assert_non_null(strange);
    struct ibv_sge sge = {(uintptr_t)memory, 8192, strange->lkey};
    assert_int_equal(ibv_advise_mr(api->pd, advice, 0, &sge, 1), EPERM);
    sge.lkey = mr->lkey;
    assert_int_equal(ibv_advise_mr(api->pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), 0);
    munmap(memory + 4096, 4096);
    assert_int_equal(ibv_advise_mr(api->pd, advice, 0, &sge, 1), 0);
    assert_int_equal(ibv_advise_mr(api->pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), EFAULT);
    assert_int_equal(ibv_dereg_mr(strange), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    munmap(memory, 4096);
}

/* ibv_bind_mw(3): a length of 0 unbinds; the region does not matter. */
static void test_unbinding_takes_no_region(void **state)
{
    struct api *api = *state;
    struct ibv_mr *imported = ibv_import_mr(api->pd, api->mrs[1]->handle);
    struct ibv_mw *mw = ibv_alloc_mw(api->pd, IBV_MW_TYPE_1);
    assert_non_null(imported);
    assert_non_null(mw);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = {.mr = imported}};
    assert_int_equal(ibv_bind_mw(api->qps[0], mw, &bind), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    ibv_unimport_mr(imported);
}

/* ibv_wr_post(3): what is found wrong makes ibv_wr_complete fail. */
static void test_datagram_for_nobody(void **state)
{
    struct api *api = *state;
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = api->cqs[0],
        .recv_cq = api->cqs[0],
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = api->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp *qp = ibv_create_qp_ex(api->context, &attr);
    assert_non_null(qp);
    api_connect(api, qp, qp);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    for (int named = 0; named < 2; named++) {
        ibv_wr_start(ex);
        ibv_wr_send(ex);
        ibv_wr_set_sge(ex, api->mrs[0]->lkey, (uintptr_t)api->memory[0], 8);
        if (named) {
            ibv_wr_set_ud_addr(ex, NULL, 1, 1);
        }
        assert_int_equal(ibv_wr_complete(ex), EINVAL);
    }
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* -- Handles of a target of XRC -----------------------------------------------------------------*/

static void *destroy(void *qp)
{
    return (void *)(intptr_t)ibv_destroy_qp(qp);
}

/* ibv_get_async_event(3): an object stays until its events are acknowledged, also if other handles
 * go. */
static void test_handle_with_an_event(void **state)
{
    struct api *api = *state;
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(api->context, &domain);
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    struct ibv_qp *made = ibv_create_qp_ex(api->context, &attr);
    struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = made->qp_num,
                                    .xrcd = xrcd,
                                    .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp *opened = ibv_open_qp(api->context, &open);
    assert_non_null(opened);
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(made, &to,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    /* Somebody has it, as ibv_get_async_event makes it. */
    struct ibv_async_event event = {.element = {.qp = made}, .event_type = IBV_EVENT_COMM_EST};
    made->events_completed--;
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, destroy, made), 0);
    usleep(50000);
    assert_int_equal(ibv_destroy_qp(opened), 0);
    ibv_ack_async_event(&event);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_receive_in_error_wakes, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_destroyed_beside_a_reader, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_times, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_time_of_a_flushed_bind, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_attributes_stay, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_no_limit_at_creation, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_window_of_a_parent_domain, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_advice, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_advice_that_fails, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_unbinding_takes_no_region, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_datagram_for_nobody, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_handle_with_an_event, api_open, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
