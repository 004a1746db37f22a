/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Calls that hardware refuses and nonic tolerates are refused with NONIC_STRICT, and one
 *         line for each rule says so; without it the same program runs.
 * Method  Each test breaks one rule, in every way that the calls have, and expects the result of
 *         its mode. Good calls in between succeed in both. Standard error is read at the end.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 16 /* api_create_qp's. */

static bool strict;

/* -- Slots of the send queue --------------------------------------------------------------------*/

/* Posts one request of 8 bytes; 0 or errno. */
typedef int post_function(struct api *api, struct ibv_qp *qp, unsigned int flags);

static int post_write(struct api *api, struct ibv_qp *qp, unsigned int flags)
{
    struct ibv_sge sge = api_sge(api->mrs[0], 0, 8);
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = flags,
                                   .wr.rdma = {(uintptr_t)api->memory[1], api->mrs[1]->rkey}};
    return ibv_post_send(qp, &wr, &bad);
}

static int build_write(struct api *api, struct ibv_qp *qp, unsigned int flags)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(ex);
    ex->wr_flags = flags;
    ibv_wr_rdma_write(ex, api->mrs[1]->rkey, (uintptr_t)api->memory[1]);
    ibv_wr_set_sge(ex, api->mrs[0]->lkey, (uintptr_t)api->memory[0], 8);
    return ibv_wr_complete(ex);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* All slots are in use, though the work may be done, or is soon: which of the two counts? Returns
 * whether the request was taken after all. */
static bool expect_full(struct api *api, struct ibv_qp *qp, post_function *post, unsigned int flags)
{
    const double end = now() + (strict ? 0.05 : 20);
    int reason;
    while ((reason = post(api, qp, flags)) == ENOMEM && now() < end) {
        usleep(1000);
    }
    assert_int_equal(reason, strict ? ENOMEM : 0);
    return reason == 0;
}

/* There is a slot for it: with `strict` at once, else as soon as the work is done. */
static void expect_slot(struct api *api, struct ibv_qp *qp, post_function *post, unsigned int flags)
{
    const double end = now() + (strict ? 0 : 20);
    int reason;
    while ((reason = post(api, qp, flags)) == ENOMEM && now() < end) {
        usleep(1000);
    }
    assert_int_equal(reason, 0);
}

static struct ibv_qp *connected_builder(struct api *api)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = api->cqs[0],
        .recv_cq = api->cqs[0],
        .cap = {.max_send_wr = SLOTS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = api->pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
    struct ibv_qp *qp = ibv_create_qp_ex(api->context, &init);
    assert_non_null(qp);
    api_connect(api, qp, qp);
    return qp;
}

/* One signaled request behind 15 that are not stands for all of them. */
static void use_up_unsignaled(struct api *api, struct ibv_qp *qp, post_function *post)
{
    for (int i = 1; i < SLOTS; i++) {
        assert_int_equal(post(api, qp, 0), 0);
    }
    assert_int_equal(post(api, qp, IBV_SEND_SIGNALED), 0);
    int more = expect_full(api, qp, post, 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    for (; more < SLOTS; more++) {
        expect_slot(api, qp, post, more == SLOTS - 1 ? IBV_SEND_SIGNALED : 0);
    }
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
}

static void test_unsignaled_sends(void **state)
{
    struct api *api = *state;
    use_up_unsignaled(api, api->qps[0], post_write);
    struct ibv_qp *builder = connected_builder(api);
    use_up_unsignaled(api, builder, build_write);
    assert_int_equal(ibv_destroy_qp(builder), 0);
}

/* Each completion that is polled stands for its request and for those before it. */
static void test_signaled_sends(void **state)
{
    struct api *api = *state;
    struct ibv_qp *qp = api->qps[0];
    assert_int_equal(post_write(api, qp, IBV_SEND_SIGNALED), 0);
    assert_int_equal(post_write(api, qp, 0), 0);
    for (int i = 2; i < SLOTS; i++) {
        assert_int_equal(post_write(api, qp, IBV_SEND_SIGNALED), 0);
    }
    expect_full(api, qp, post_write, IBV_SEND_SIGNALED);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    expect_slot(api, qp, post_write, IBV_SEND_SIGNALED);
    expect_full(api, qp, post_write, IBV_SEND_SIGNALED);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    for (int i = 0; i < 2; i++) {
        expect_slot(api, qp, post_write, IBV_SEND_SIGNALED);
    }
    expect_full(api, qp, post_write, IBV_SEND_SIGNALED);
}

/* Requests that fail complete in any case, and those before the first have no completion. */
static void test_failed_sends(void **state)
{
    struct api *api = *state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(post_write(api, api->qps[0], 0), 0);
    }
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 8), 0, 0), 0);
    for (int i = 4; i < SLOTS; i++) {
        const int reason = post_write(api, api->qps[0], 0);
        assert_int_equal(reason, 0);
    }
    expect_full(api, api->qps[0], post_write, 0);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(post_write(api, api->qps[0], 0), 0);
    }
    expect_full(api, api->qps[0], post_write, 0);
    for (int i = 4; i < SLOTS + 4; i++) {
        api_expect(api->cqs[0], IBV_WC_WR_FLUSH_ERR);
    }
    assert_int_equal(post_write(api, api->qps[0], 0), 0);
}

static void test_extended_polling(void **state)
{
    struct api *api = *state;
    struct ibv_cq_init_attr_ex attr = {.cqe = 64};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(api->context, &attr);
    assert_non_null(cq);
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, ibv_cq_ex_to_cq(cq), NULL);
    api_connect(api, qp, qp);
    for (int i = 0; i < SLOTS; i++) {
        expect_slot(api, qp, post_write, IBV_SEND_SIGNALED);
    }
    const int more = expect_full(api, qp, post_write, IBV_SEND_SIGNALED);
    struct ibv_poll_cq_attr none = {0};
    while (ibv_start_poll(cq, &none) == ENOENT) {
    }
    while (ibv_next_poll(cq) == ENOENT) {
    }
    ibv_end_poll(cq);
    for (int i = more; i < 2; i++) {
        expect_slot(api, qp, post_write, IBV_SEND_SIGNALED);
    }
    expect_full(api, qp, post_write, IBV_SEND_SIGNALED);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static struct ibv_mw *window;

static int bind_window(struct api *api, struct ibv_qp *qp, unsigned int flags)
{
    struct ibv_mw_bind bind = {
        .send_flags = flags,
        .bind_info = {api->mrs[0], (uintptr_t)api->memory[0], 64, IBV_ACCESS_REMOTE_WRITE}};
    return ibv_bind_mw(qp, window, &bind);
}

/* A queue pair that is reset has all its slots. */
static void test_binding_and_reset(void **state)
{
    struct api *api = *state;
    window = ibv_alloc_mw(api->pd, IBV_MW_TYPE_1);
    assert_non_null(window);
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(bind_window(api, api->qps[0], 0), 0);
    }
    expect_full(api, api->qps[0], bind_window, 0);
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    assert_int_equal(ibv_modify_qp(api->qps[0], &reset, IBV_QP_STATE), 0);
    api_connect(api, api->qps[0], api->qps[0]);
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(post_write(api, api->qps[0], 0), 0);
    }
    expect_full(api, api->qps[0], post_write, 0);
    assert_int_equal(ibv_dealloc_mw(window), 0);
}

/* -- Slots of receive queues --------------------------------------------------------------------*/

static int post_shared(struct api *api, struct ibv_srq *srq)
{
    struct ibv_sge sge = api_sge(api->mrs[1], 0, 8);
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    return ibv_post_srq_recv(srq, &wr, &bad);
}

static void send_to(struct api *api, struct ibv_qp *qp, int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(api_post(qp, IBV_WR_SEND, api_sge(api->mrs[0], 0, 8), 0, 0), 0);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
    }
}

static void test_receives(void **state)
{
    struct api *api = *state;
    const struct ibv_sge sge = api_sge(api->mrs[1], 0, 8);
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(api_post_receive(api->qps[1], sge), 0);
    }
    assert_int_equal(api_post_receive(api->qps[1], sge), ENOMEM);
    send_to(api, api->qps[0], 3);
    assert_int_equal(api_post_receive(api->qps[1], sge), strict ? ENOMEM : 0);
    api_expect(api->cqs[1], IBV_WC_SUCCESS);
    assert_int_equal(api_post_receive(api->qps[1], sge), 0);
    assert_int_equal(api_post_receive(api->qps[1], sge), strict ? ENOMEM : 0);
}

/* In error each receive is flushed at once, and takes its slot until that was polled. */
static void test_flushed_receives(void **state)
{
    struct api *api = *state;
    const struct ibv_sge sge = api_sge(api->mrs[1], 0, 8);
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(api->qps[1], &error, IBV_QP_STATE), 0);
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(api_post_receive(api->qps[1], sge), 0);
    }
    assert_int_equal(api_post_receive(api->qps[1], sge), strict ? ENOMEM : 0);
    for (int i = 0; i < SLOTS; i++) {
        api_expect(api->cqs[1], IBV_WC_WR_FLUSH_ERR);
    }
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(api_post_receive(api->qps[1], sge), 0);
    }
}

/* A queue pair that ends gives back what its completions held. */
static void test_shared_receives(void **state)
{
    struct api *api = *state;
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(api->pd, &attr);
    assert_non_null(srq);
    struct ibv_qp *sharer = api_create_qp(api, IBV_QPT_RC, api->cqs[1], srq);
    struct ibv_qp *sender = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
    api_connect(api, sharer, sender);
    api_connect(api, sender, sharer);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(post_shared(api, srq), 0);
    }
    send_to(api, sender, 4);
    assert_int_equal(post_shared(api, srq), strict ? ENOMEM : 0);
    api_expect(api->cqs[1], IBV_WC_SUCCESS);
    assert_int_equal(post_shared(api, srq), 0);
    assert_int_equal(post_shared(api, srq), strict ? ENOMEM : 0);
    assert_int_equal(ibv_destroy_qp(sharer), 0);
    assert_int_equal(ibv_destroy_qp(sender), 0);
    for (int i = strict ? 1 : 3; i < 4; i++) {
        assert_int_equal(post_shared(api, srq), 0);
    }
    assert_int_equal(post_shared(api, srq), ENOMEM);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* -- Objects of two contexts --------------------------------------------------------------------*/

/* The second of everything. */
struct other {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_comp_channel *channel;
    struct ibv_xrcd *xrcd;
    struct ibv_td *td;
    struct ibv_dm *dm;
};

static struct other open_other(struct api *api)
{
    struct other other = {.context = ibv_open_device(api->context->device)};
    assert_non_null(other.context);
    other.pd = ibv_alloc_pd(other.context);
    other.cq = ibv_create_cq(other.context, 4, NULL, NULL, 0);
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
    other.srq = ibv_create_srq(other.pd, &srq);
    other.channel = ibv_create_comp_channel(other.context);
    struct ibv_xrcd_init_attr xrcd = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
    other.xrcd = ibv_open_xrcd(other.context, &xrcd);
    struct ibv_td_init_attr td = {0};
    other.td = ibv_alloc_td(other.context, &td);
    struct ibv_alloc_dm_attr dm = {.length = 64};
    other.dm = ibv_alloc_dm(other.context, &dm);
    assert_true(other.pd && other.cq && other.srq && other.channel && other.xrcd && other.td &&
                other.dm);
    return other;
}

static void close_other(const struct other *other)
{
    assert_int_equal(ibv_free_dm(other->dm), 0);
    assert_int_equal(ibv_dealloc_td(other->td), 0);
    assert_int_equal(ibv_close_xrcd(other->xrcd), 0);
    assert_int_equal(ibv_destroy_srq(other->srq), 0);
    assert_int_equal(ibv_destroy_cq(other->cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(other->channel), 0);
    assert_int_equal(ibv_dealloc_pd(other->pd), 0);
    assert_int_equal(ibv_close_device(other->context), 0);
}

/* It was made, or refused; true: it is to be destroyed. */
static bool was_made(const void *object)
{
    const int reason = errno;
    assert_int_equal(object == NULL, strict);
    assert_int_equal(object == NULL ? reason : 0, strict ? EINVAL : 0);
    return object != NULL;
}

static void try_qp(struct ibv_pd *pd, struct ibv_cq *send, struct ibv_cq *receive,
                   struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = send, .recv_cq = receive, .srq = srq, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    if (was_made(qp)) {
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
}

static void test_queue_pairs_of_two_contexts(void **state)
{
    struct api *api = *state;
    const struct other other = open_other(api);
    try_qp(api->pd, other.cq, api->cqs[1], NULL);
    try_qp(api->pd, api->cqs[0], other.cq, NULL);
    try_qp(api->pd, other.cq, other.cq, NULL);
    try_qp(api->pd, api->cqs[0], api->cqs[1], other.srq);
    try_qp(other.pd, api->cqs[0], api->cqs[1], NULL);
    struct ibv_qp_init_attr_ex init = {.send_cq = api->cqs[0],
                                       .recv_cq = api->cqs[0],
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = other.pd};
    struct ibv_qp *qp = ibv_create_qp_ex(api->context, &init);
    if (was_made(qp)) {
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
    init = (struct ibv_qp_init_attr_ex){
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = other.xrcd};
    qp = ibv_create_qp_ex(api->context, &init);
    if (was_made(qp)) {
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
    struct ibv_qp *target = ibv_create_qp_ex(other.context, &init);
    assert_non_null(target);
    struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = target->qp_num,
                                    .xrcd = other.xrcd,
                                    .qp_type = IBV_QPT_XRC_RECV};
    qp = ibv_open_qp(api->context, &open);
    if (was_made(qp)) {
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
    assert_int_equal(ibv_destroy_qp(target), 0);
    close_other(&other);
}

static void try_cq(struct ibv_context *context, struct ibv_comp_channel *channel,
                   struct ibv_pd *domain)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 4,
                                       .channel = channel,
                                       .comp_mask = domain ? IBV_CQ_INIT_ATTR_MASK_PD : 0,
                                       .parent_domain = domain};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);
    if (was_made(cq)) {
        assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    }
}

static void try_parent(struct ibv_context *context, struct ibv_pd *pd, struct ibv_td *td)
{
    struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};
    struct ibv_pd *parent = ibv_alloc_parent_domain(context, &attr);
    if (was_made(parent)) {
        assert_int_equal(ibv_dealloc_pd(parent), 0);
    }
}

static void try_srq(struct ibv_context *context, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
                    struct ibv_cq *cq)
{
    struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 4, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = pd,
                                        .xrcd = xrcd,
                                        .cq = cq};
    struct ibv_srq *srq = ibv_create_srq_ex(context, &attr);
    if (was_made(srq)) {
        assert_int_equal(ibv_destroy_srq(srq), 0);
    }
}

static void test_others_of_two_contexts(void **state)
{
    struct api *api = *state;
    const struct other other = open_other(api);
    struct ibv_cq *cq = ibv_create_cq(api->context, 4, NULL, other.channel, 0);
    if (was_made(cq)) {
        assert_int_equal(ibv_destroy_cq(cq), 0);
    }
    struct ibv_parent_domain_init_attr attr = {.pd = other.pd};
    struct ibv_pd *parent = ibv_alloc_parent_domain(other.context, &attr);
    assert_non_null(parent);
    try_cq(api->context, other.channel, NULL);
    try_cq(api->context, NULL, parent);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    try_parent(api->context, other.pd, NULL);
    try_parent(api->context, api->pd, other.td);
    try_srq(api->context, other.pd, other.xrcd, other.cq);
    try_srq(other.context, other.pd, other.xrcd, api->cqs[0]);
    try_srq(api->context, api->pd, other.xrcd, api->cqs[0]);
    struct ibv_mr *mr =
        ibv_reg_dm_mr(api->pd, other.dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
    if (was_made(mr)) {
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    uint64_t memory = 0;
    mr = ibv_reg_mr(api->pd, &memory, sizeof(memory), 0);
    const int refused = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other.pd, NULL, 0, 0);
    assert_int_equal(refused != 0, strict);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    close_other(&other);
}

/* Contexts that share a file are one. */
static void test_imported_context(void **state)
{
    struct api *api = *state;
    struct ibv_context *imported = ibv_import_device(dup(api->context->cmd_fd));
    assert_non_null(imported);
    struct ibv_cq *cq = ibv_create_cq(imported, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(api->pd, &init);
    assert_non_null(qp);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_close_device(imported), 0);
}

/* -- Completions that are left behind -----------------------------------------------------------*/

/* Only of the queue pair that goes. */
static void test_completions_of_nobody(void **state)
{
    struct api *api = *state;
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
    api_connect(api, qp, qp);
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
    assert_int_equal(ibv_modify_qp(api->qps[0], &error, IBV_QP_STATE), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(post_write(api, i % 2 ? api->qps[0] : qp, 0), 0);
        assert_int_equal(api_post_receive(i % 2 ? api->qps[0] : qp, api_sge(api->mrs[0], 0, 8)), 0);
    }
    const uint32_t gone = qp->qp_num;
    assert_int_equal(ibv_destroy_qp(qp), 0);
    struct ibv_wc wc[16];
    const int count = ibv_poll_cq(api->cqs[0], 16, wc);
    assert_int_equal(count, strict ? 4 : 10);
    int of_nobody = 0;
    for (int i = 0; i < count; i++) {
        of_nobody += wc[i].qp_num == gone;
    }
    assert_int_equal(of_nobody, strict ? 0 : 6);
}

/* -- Addresses ----------------------------------------------------------------------------------*/

static int connect_to(struct api *api, struct ibv_ah_attr ah)
{
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_UC, api->cqs[0], NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = qp->qp_num,
                                .ah_attr = ah};
    const int reason = ibv_modify_qp(
        qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    return reason;
}

static void expect_address(struct api *api, struct ibv_ah_attr attr, int reason)
{
    assert_int_equal(connect_to(api, attr), reason);
    errno = 0;
    struct ibv_ah *ah = ibv_create_ah(api->pd, &attr);
    assert_int_equal(ah == NULL ? errno : 0, reason);
    if (ah != NULL) {
        assert_int_equal(ibv_destroy_ah(ah), 0);
    }
}

static void test_families(void **state)
{
    struct api *api = *state;
    union ibv_gid gids[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_query_gid(api->context, 1, i, &gids[i]), 0);
    }
    for (uint8_t from = 0; from < 2; from++) {
        for (int to = 0; to < 2; to++) {
            const struct ibv_ah_attr attr = {
                .is_global = 1, .port_num = 1, .grh = {.dgid = gids[to], .sgid_index = from}};
            expect_address(api, attr, strict && from != to ? EINVAL : 0);
        }
    }
}

static void test_no_grh(void **state)
{
    struct api *api = *state;
    struct ibv_port_attr port;
    assert_int_equal(ibv_query_port(api->context, 1, &port), 0);
    const struct ibv_ah_attr attr = {.port_num = 1, .dlid = port.lid};
    expect_address(api, attr, strict || port.lid == 0 ? EINVAL : 0);
}

static int post_datagram(struct api *api, struct ibv_qp *qp, struct ibv_ah *ah)
{
    struct ibv_sge sge = api_sge(api->mrs[0], 0, 8);
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .wr.ud = {.ah = ah, .remote_qpn = qp->qp_num}};
    return ibv_post_send(qp, &wr, &bad);
}

static int build_datagram(struct api *api, struct ibv_qp *qp, struct ibv_ah *ah)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_ud_addr(ex, ah, qp->qp_num, 0);
    ibv_wr_set_sge(ex, api->mrs[0]->lkey, (uintptr_t)api->memory[0], 8);
    return ibv_wr_complete(ex);
}

static void test_handle_of_another_domain(void **state)
{
    struct api *api = *state;
    struct ibv_qp_init_attr_ex init = {
        .send_cq = api->cqs[0],
        .recv_cq = api->cqs[0],
        .cap = {.max_send_wr = SLOTS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = api->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp *qp = ibv_create_qp_ex(api->context, &init);
    assert_non_null(qp);
    api_connect(api, qp, qp);
    struct ibv_pd *pd = ibv_alloc_pd(api->context);
    struct ibv_ah_attr attr = {.is_global = 1, .grh = {.dgid = api->gid}, .port_num = 1};
    struct ibv_ah *foreign = ibv_create_ah(pd, &attr), *ours = api_address_handle(api);
    assert_non_null(foreign);
    assert_int_equal(post_datagram(api, qp, ours), 0);
    assert_int_equal(build_datagram(api, qp, ours), 0);
    assert_int_equal(post_datagram(api, qp, foreign), strict ? EINVAL : 0);
    assert_int_equal(build_datagram(api, qp, foreign), strict ? EINVAL : 0);
    assert_int_equal(ibv_destroy_ah(ours), 0);
    assert_int_equal(ibv_destroy_ah(foreign), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* -- Lines on standard error --------------------------------------------------------------------*/

static int count_in(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        count++;
    }
    return count;
}

/* One line for each rule, and no other. */
static bool is_told(const char *text)
{
    static const char *const rules[] = {"send-slots", "receive-slots", "srq-slots", "contexts",
                                        "destroyed",  "gid-families",  "grh",       "ah-domain"};
    bool good = count_in(text, "nonic: strict") == (strict ? (int)(sizeof(rules) / 8) : 0);
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules) && strict; i++) {
        char line[64];
        snprintf(line, sizeof(line), "nonic: strict, rule %s: ", rules[i]);
        good = good && count_in(text, line) == 1;
    }
    return good;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unsignaled_sends, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_signaled_sends, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_failed_sends, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_extended_polling, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_binding_and_reset, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_receives, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_flushed_receives, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_shared_receives, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_queue_pairs_of_two_contexts, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_others_of_two_contexts, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_imported_context, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_completions_of_nobody, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_families, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_no_grh, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_handle_of_another_domain, api_open, api_close),
    };
    strict = getenv("NONIC_STRICT") != NULL;
    const int standard_error = dup(2), said = memfd_create("said", 0);
    dup2(said, 2);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char text[16384];
    const ssize_t bytes = pread(said, text, sizeof(text) - 1, 0);
    text[bytes < 0 ? 0 : bytes] = '\0';
    dup2(standard_error, 2);
    fputs(text, stderr);
    if (!is_told(text)) {
        fprintf(stderr, "not one line for each rule\n");
        return 1;
    }
    return failed;
}
