/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A device that is closed while its objects are in use is closed: peers reach nothing of
 *         it, it tells nobody anything, nothing is made on it, and what is left of the objects can
 *         be destroyed.
 * Method  A process with the device open twice: the one's queue pair writes to the other's memory
 *         before and after that is closed.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two devices, each with one queue pair, connected to the other's. */
struct both {
    struct api *stays, *goes;
    struct ibv_comp_channel *channel; /* The channel of the device that is closed. */
    struct ibv_cq *cq;
};

static int setup(void **state)
{
    struct both *both = calloc(1, sizeof(*both));
    api_open((void **)&both->stays);
    api_open((void **)&both->goes);
    struct api *goes = both->goes, *stays = both->stays;
    both->channel = ibv_create_comp_channel(goes->context);
    assert_non_null(both->channel);
    both->cq = ibv_create_cq(goes->context, 16, NULL, both->channel, 0);
    assert_non_null(both->cq);
    goes->qps[0] = api_create_qp(goes, IBV_QPT_RC, both->cq, NULL);
    stays->qps[0] = api_create_qp(stays, IBV_QPT_RC, stays->cqs[0], NULL);
    api_connect(goes, goes->qps[0], stays->qps[0]);
    api_connect(stays, stays->qps[0], goes->qps[0]);
    *state = both;
    return 0;
}

static int teardown(void **state)
{
    struct both *both = *state;
    free(both->goes->memory[0]);
    free(both->goes->memory[1]);
    free(both->goes);
    api_close((void **)&both->stays);
    free(both);
    return 0;
}

static void write_there(struct both *both, enum ibv_wc_status status)
{
    struct api *stays = both->stays, *goes = both->goes;
    assert_int_equal(api_post(stays->qps[0], IBV_WR_RDMA_WRITE, api_sge(stays->mrs[0], 0, 8),
                              (uintptr_t)goes->memory[0], goes->mrs[0]->rkey),
                     0);
    api_expect(stays->cqs[0], status);
}

static void destroy_all(struct both *both)
{
    struct api *goes = both->goes;
    assert_int_equal(ibv_destroy_qp(goes->qps[0]), 0);
    assert_int_equal(ibv_destroy_cq(both->cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(both->channel), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_dereg_mr(goes->mrs[i]), 0);
        assert_int_equal(ibv_destroy_cq(goes->cqs[i]), 0);
    }
    assert_int_equal(ibv_dealloc_pd(goes->pd), 0);
}

static void test_peers_reach_nothing(void **state)
{
    struct both *both = *state;
    memcpy(both->stays->memory[0], "one.....", 8);
    write_there(both, IBV_WC_SUCCESS);
    assert_memory_equal(both->goes->memory[0], "one.....", 8);
    assert_int_equal(ibv_close_device(both->goes->context), 0);
    memcpy(both->stays->memory[0], "two.....", 8);
    write_there(both, IBV_WC_RETRY_EXC_ERR);
    assert_memory_equal(both->goes->memory[0], "one.....", 8);
    destroy_all(both);
}

/* Also what was under way when it was closed. */
static void test_it_tells_nothing(void **state)
{
    struct both *both = *state;
    struct api *goes = both->goes;
    struct ibv_wc wc;
    assert_int_equal(ibv_req_notify_cq(both->cq, 0), 0);
    assert_int_equal(api_post_receive(goes->qps[0], api_sge(goes->mrs[0], 0, 8)), 0);
    assert_int_equal(ibv_close_device(goes->context), 0);
    write_there(both, IBV_WC_RETRY_EXC_ERR);
    struct pollfd wait = {.fd = both->channel->fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 0), 0);
    assert_int_equal(ibv_poll_cq(both->cq, 1, &wc), 0);
    destroy_all(both);
}

static void test_nothing_is_made(void **state)
{
    struct both *both = *state;
    struct api *goes = both->goes;
    struct ibv_qp_init_attr init = {
        .send_cq = both->cq, .recv_cq = both->cq, .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_ah_attr ah = {
        .is_global = 1, .grh = {.dgid = goes->gid, .hop_limit = 1}, .port_num = 1};
    assert_int_equal(ibv_close_device(goes->context), 0);
    errno = 0;
    assert_null(ibv_create_qp(goes->pd, &init));
    assert_int_equal(errno, EBADF);
    assert_null(ibv_alloc_pd(goes->context));
    assert_null(ibv_create_cq(goes->context, 4, NULL, NULL, 0));
    assert_null(ibv_create_comp_channel(goes->context));
    assert_null(ibv_reg_mr(goes->pd, goes->memory[0], 8, IBV_ACCESS_LOCAL_WRITE));
    assert_null(ibv_create_ah(goes->pd, &ah));
    assert_null(ibv_alloc_mw(goes->pd, IBV_MW_TYPE_1));
    assert_int_equal(
        ibv_modify_qp(goes->qps[0], &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        EBADF);
    assert_int_not_equal(
        ibv_rereg_mr(goes->mrs[0], IBV_REREG_MR_CHANGE_TRANSLATION, NULL, goes->memory[0], 8, 0),
        0);
    assert_int_not_equal(api_post(goes->qps[0], IBV_WR_SEND, api_sge(goes->mrs[0], 0, 8), 0, 0), 0);
    destroy_all(both);
}

/* Windows, groups, shared queues that requests can name. */
static void test_all_kinds(void **state)
{
    struct both *both = *state;
    struct api *goes = both->goes;
    const union ibv_gid group = {
        .raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 9, [14] = 8, [15] = 7}};
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(goes->context, &domain);
    assert_non_null(xrcd);
    struct ibv_srq_init_attr_ex shared = {.attr = {.max_wr = 4, .max_sge = 1},
                                          .comp_mask =
                                              IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                              IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                          .srq_type = IBV_SRQT_XRC,
                                          .pd = goes->pd,
                                          .xrcd = xrcd,
                                          .cq = goes->cqs[0]};
    struct ibv_srq *srq = ibv_create_srq_ex(goes->context, &shared);
    assert_non_null(srq);
    struct ibv_qp_init_attr_ex target = {
        .comp_mask = IBV_QP_INIT_ATTR_XRCD, .qp_type = IBV_QPT_XRC_RECV, .xrcd = xrcd};
    struct ibv_qp *receiver = ibv_create_qp_ex(goes->context, &target);
    assert_non_null(receiver);
    struct ibv_qp *ud = api_create_qp(goes, IBV_QPT_UD, goes->cqs[0], NULL);
    assert_int_equal(ibv_attach_mcast(ud, &group, 0), 0);
    struct ibv_mw *mw = ibv_alloc_mw(goes->pd, IBV_MW_TYPE_1);
    assert_non_null(mw);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {.mr = goes->mrs[0],
                                             .addr = (uintptr_t)goes->memory[0],
                                             .length = 64,
                                             .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
    assert_int_equal(ibv_bind_mw(goes->qps[0], mw, &bind), 0);
    api_expect(both->cq, IBV_WC_SUCCESS);
    assert_int_equal(ibv_close_device(goes->context), 0);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_destroy_qp(ud), 0);
    assert_int_equal(ibv_destroy_qp(receiver), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    destroy_all(both);
}

/* An imported context keeps the objects, as a second descriptor of the file does. */
static void test_imported(void **state)
{
    struct both *both = *state;
    struct api *goes = both->goes;
    struct ibv_context *second = ibv_import_device(dup(goes->context->cmd_fd));
    assert_non_null(second);
    assert_int_equal(ibv_close_device(goes->context), 0);
    memcpy(both->stays->memory[0], "one.....", 8);
    write_there(both, IBV_WC_SUCCESS);
    assert_memory_equal(goes->memory[0], "one.....", 8);
    assert_int_equal(ibv_close_device(second), 0);
    write_there(both, IBV_WC_RETRY_EXC_ERR);
    destroy_all(both);
}

/* -- Others' objects ----------------------------------------------------------------------------*/

static void *open_and_close(void *device)
{
    for (int i = 0; i < 300; i++) {
        struct ibv_context *context = ibv_open_device(device);
        if (context != NULL) {
            ibv_close_device(context);
        }
    }
    return NULL;
}

/* A close looks at all objects of the NIC: at those that another thread just makes, too. */
static void test_others_are_being_made(void **state)
{
    struct both *both = *state;
    struct api *api = both->stays;
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(api->context, &domain);
    struct ibv_srq_init_attr_ex shared = {.attr = {.max_wr = 4, .max_sge = 1},
                                          .comp_mask =
                                              IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                              IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                          .srq_type = IBV_SRQT_XRC,
                                          .pd = api->pd,
                                          .xrcd = xrcd,
                                          .cq = api->cqs[0]};
    pthread_t closer;
    assert_non_null(xrcd);
    assert_int_equal(pthread_create(&closer, NULL, open_and_close, api->context->device), 0);
    for (int i = 0; i < 3000; i++) {
        struct ibv_mw *mw = ibv_alloc_mw(api->pd, IBV_MW_TYPE_1);
        struct ibv_srq *srq = ibv_create_srq_ex(api->context, &shared);
        assert_non_null(mw);
        assert_non_null(srq);
        assert_int_equal(ibv_dealloc_mw(mw), 0);
        assert_int_equal(ibv_destroy_srq(srq), 0);
    }
    assert_int_equal(pthread_join(closer, NULL), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    assert_int_equal(ibv_close_device(both->goes->context), 0);
    destroy_all(both);
}

int main(void)
{
#define CLOSING_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CLOSING_TEST(test_peers_reach_nothing),
        CLOSING_TEST(test_it_tells_nothing),
        CLOSING_TEST(test_nothing_is_made),
        CLOSING_TEST(test_all_kinds),
        CLOSING_TEST(test_imported),
        CLOSING_TEST(test_others_are_being_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
