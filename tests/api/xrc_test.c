/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    XRC as programs see it: a message finds the shared receive queue it names and no other,
 *         what names a wrong one is refused with the right status, and domains and targets live as
 *         long as somebody has them.
 * Method  An ordinary verbs program that is its own peer.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A connection's two halves, of one program. */
struct connection {
    struct ibv_qp *sender, *target;
};

static struct ibv_xrcd *open_xrcd(struct api *api, int fd, int flags)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = flags};
    return ibv_open_xrcd(api->context, &attr);
}

static struct ibv_srq *create_srq(struct api *api, struct ibv_xrcd *xrcd, struct ibv_pd *pd,
                                  struct ibv_cq *cq)
{
    struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 8, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = pd,
                                        .xrcd = xrcd,
                                        .cq = cq};
    struct ibv_srq *srq = ibv_create_srq_ex(api->context, &attr);
    assert_non_null(srq);
    return srq;
}

static uint32_t number_of(struct ibv_srq *srq)
{
    uint32_t number = 0;
    assert_int_equal(ibv_get_srq_num(srq, &number), 0);
    return number;
}

static struct ibv_qp *create_half(struct api *api, enum ibv_qp_type type, struct ibv_xrcd *xrcd)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = api->cqs[0],
                                       .cap = {.max_send_wr = 8, .max_send_sge = 1},
                                       .qp_type = type,
                                       .comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD
                                                                             : IBV_QP_INIT_ATTR_PD,
                                       .pd = api->pd,
                                       .xrcd = xrcd};
    struct ibv_qp *qp = ibv_create_qp_ex(api->context, &attr);
    assert_non_null(qp);
    return qp;
}

static void connect_half(struct api *api, struct ibv_qp *qp, uint32_t peer)
{
    const bool target = qp->qp_type == IBV_QPT_XRC_RECV;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    assert_int_equal(ibv_modify_qp(qp, &attr, init), 0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_256,
        .dest_qp_num = peer,
        .rq_psn = 0xffffff,
        .max_dest_rd_atomic = 2,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .grh = {.dgid = api->gid, .hop_limit = 64}, .port_num = 1},
    };
    const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const int answers = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    assert_int_equal(ibv_modify_qp(qp, &attr, rtr | (target ? answers : 0)), 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = 14,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .sq_psn = 0xffffff,
                                .max_rd_atomic = 2};
    const int asks = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    assert_int_equal(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN | (target ? 0 : asks)),
        0);
}

static struct connection make_connection(struct api *api, struct ibv_xrcd *xrcd)
{
    const struct connection made = {.sender = create_half(api, IBV_QPT_XRC_SEND, NULL),
                                    .target = create_half(api, IBV_QPT_XRC_RECV, xrcd)};
    connect_half(api, made.target, made.sender->qp_num);
    connect_half(api, made.sender, made.target->qp_num);
    return made;
}

static void end_connection(struct connection connection)
{
    assert_int_equal(ibv_destroy_qp(connection.sender), 0);
    assert_int_equal(ibv_destroy_qp(connection.target), 0);
}

static void post_receive(struct ibv_srq *srq, const struct ibv_mr *mr, uint32_t offset)
{
    struct ibv_sge sge = api_sge(mr, offset, 4096);
    struct ibv_recv_wr *bad, wr = {.wr_id = offset, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void post(struct api *api, struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t srqn)
{
    struct ibv_sge sge = api_sge(api->mrs[0], 0, 1000);
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .qp_type.xrc.remote_srqn = srqn};
    wr.wr.rdma.remote_addr = (uintptr_t)api->memory[1] + 32768;
    wr.wr.rdma.rkey = api->mrs[1]->rkey;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

/* Two connections, two queues of one domain: the request chooses, not the connection. */
static void test_requests_choose_their_queue(void **state)
{
    struct api *api = *state;
    struct ibv_xrcd *xrcd = open_xrcd(api, -1, 0);
    assert_non_null(xrcd);
    struct ibv_srq *srqs[2];
    struct connection connections[2];
    for (int i = 0; i < 2; i++) {
        srqs[i] = create_srq(api, xrcd, api->pd, api->cqs[1]);
        connections[i] = make_connection(api, xrcd);
    }
    memset(api->memory[0], 0x5a, 1000);
    for (uint32_t round = 0; round < 16; round++) {
        const uint32_t offset = round % 8 * 4096;
        struct ibv_srq *srq = srqs[round / 2 % 2];
        const struct ibv_qp *target = connections[round % 2].target;
        memset(api->memory[1] + offset, 0, 1000);
        post_receive(srq, api->mrs[1], offset);
        post(api, connections[round % 2].sender, IBV_WR_SEND, number_of(srq));
        const struct ibv_wc wc = api_expect(api->cqs[1], IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, offset);
        assert_int_equal(wc.byte_len, 1000);
        assert_int_equal(wc.qp_num, target->qp_num);
        assert_memory_equal(api->memory[1] + offset, api->memory[0], 1000);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
    }
    assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
    for (int i = 0; i < 2; i++) {
        end_connection(connections[i]);
        assert_int_equal(ibv_destroy_srq(srqs[i]), 0);
    }
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* A queue keeps its name, and what is posted, when it is resized. */
static void test_resized_queue(void **state)
{
    struct api *api = *state;
    struct ibv_xrcd *xrcd = open_xrcd(api, -1, 0);
    struct ibv_srq *srq = create_srq(api, xrcd, api->pd, api->cqs[1]);
    const struct connection connection = make_connection(api, xrcd);
    const uint32_t number = number_of(srq);
    for (uint32_t i = 0; i < 8; i++) {
        post_receive(srq, api->mrs[1], i * 4096);
    }
    struct ibv_srq_attr attr = {.max_wr = 100};
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
    assert_int_equal(number_of(srq), number);
    post_receive(srq, api->mrs[1], 8 * 4096);
    attr.max_wr = 8;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
    for (uint32_t i = 0; i < 9; i++) {
        post(api, connection.sender, IBV_WR_SEND, number);
        assert_int_equal(api_expect(api->cqs[1], IBV_WC_SUCCESS).wr_id, i * 4096);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
    }
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
    end_connection(connection);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* Keys are judged in the domain of the queue that the request names. */
static void test_keys_belong_to_the_domain_of_the_queue(void **state)
{
    struct api *api = *state;
    struct ibv_xrcd *xrcd = open_xrcd(api, -1, 0);
    struct ibv_pd *other = ibv_alloc_pd(api->context);
    struct ibv_srq *ours = create_srq(api, xrcd, api->pd, api->cqs[1]);
    struct ibv_srq *theirs = create_srq(api, xrcd, other, api->cqs[1]);
    const struct connection connection = make_connection(api, xrcd);
    post(api, connection.sender, IBV_WR_RDMA_WRITE, number_of(ours));
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    post(api, connection.sender, IBV_WR_RDMA_READ, number_of(ours));
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    post(api, connection.sender, IBV_WR_RDMA_WRITE, number_of(theirs));
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    end_connection(connection);
    assert_int_equal(ibv_destroy_srq(ours), 0);
    assert_int_equal(ibv_destroy_srq(theirs), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void test_wrong_queues_are_refused(void **state)
{
    struct api *api = *state;
    struct ibv_xrcd *xrcd = open_xrcd(api, -1, 0), *other = open_xrcd(api, -1, 0);
    struct ibv_srq *stranger = create_srq(api, other, api->pd, api->cqs[1]);
    struct ibv_srq *gone = create_srq(api, xrcd, api->pd, api->cqs[1]);
    const uint32_t number = number_of(gone);
    assert_int_equal(ibv_destroy_srq(gone), 0);

    struct connection connection = make_connection(api, xrcd);
    post(api, connection.sender, IBV_WR_SEND, number);
    api_expect(api->cqs[0], IBV_WC_REM_INV_REQ_ERR);
    end_connection(connection);

    connection = make_connection(api, xrcd);
    post(api, connection.sender, IBV_WR_SEND, number_of(stranger));
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    end_connection(connection);

    assert_int_equal(ibv_destroy_srq(stranger), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    assert_int_equal(ibv_close_xrcd(other), 0);
}

static void test_halves_take_no_other_half_work(void **state)
{
    struct api *api = *state;
    struct ibv_xrcd *xrcd = open_xrcd(api, -1, 0);
    const struct connection connection = make_connection(api, xrcd);
    struct ibv_sge sge = api_sge(api->mrs[0], 0, 8);
    struct ibv_recv_wr *bad_receive, receive = {.sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr *bad_send, send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    assert_int_equal(ibv_post_recv(connection.sender, &receive, &bad_receive), EINVAL);
    assert_int_equal(ibv_post_recv(connection.target, &receive, &bad_receive), EINVAL);
    assert_int_equal(ibv_post_send(connection.target, &send, &bad_send), EINVAL);
    end_connection(connection);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* A domain belongs to its file, not to the program that opens it. */
static void test_domains_and_files(void **state)
{
    struct api *api = *state;
    char path[] = "/tmp/nonic-xrcd-XXXXXX";
    const int fd = mkstemp(path), again = open(path, O_RDONLY);
    assert_true(fd >= 0 && again >= 0);
    errno = 0;
    assert_null(open_xrcd(api, fd, 0));
    assert_int_equal(errno, EAGAIN);
    struct ibv_xrcd *first = open_xrcd(api, fd, O_CREAT);
    assert_non_null(first);
    errno = 0;
    assert_null(open_xrcd(api, again, O_CREAT | O_EXCL));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(open_xrcd(api, 9999, O_CREAT));
    assert_int_equal(errno, EBADF);
    struct ibv_xrcd *second = open_xrcd(api, again, 0);
    assert_non_null(second);

    struct ibv_srq *srq = create_srq(api, first, api->pd, api->cqs[1]);
    const struct connection connection = make_connection(api, second);
    post_receive(srq, api->mrs[1], 0);
    post(api, connection.sender, IBV_WR_SEND, number_of(srq));
    api_expect(api->cqs[1], IBV_WC_SUCCESS);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(ibv_close_xrcd(first), 0);
    assert_int_equal(ibv_close_xrcd(second), EBUSY);
    end_connection(connection);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_close_xrcd(second), 0);
    close(fd);
    close(again);
    unlink(path);
}

/* A target lives as long as its last handle, and every handle gets its events. */
static void test_open_qp(void **state)
{
    struct api *api = *state;
    struct ibv_xrcd *xrcd = open_xrcd(api, -1, 0);
    struct ibv_srq *srq = create_srq(api, xrcd, api->pd, api->cqs[1]);
    const struct connection connection = make_connection(api, xrcd);
    struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT,
                                    .qp_num = connection.target->qp_num,
                                    .xrcd = xrcd,
                                    .qp_context = &attr,
                                    .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp *opened = ibv_open_qp(api->context, &attr);
    assert_non_null(opened);
    assert_int_equal(opened->qp_num, connection.target->qp_num);
    assert_ptr_equal(opened->qp_context, &attr);
    assert_int_equal(opened->state, IBV_QPS_RTS);
    attr.qp_num++;
    errno = 0;
    assert_null(ibv_open_qp(api->context, &attr));
    assert_int_equal(errno, EINVAL);

    assert_int_equal(ibv_destroy_qp(connection.target), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
    post_receive(srq, api->mrs[1], 0);
    post(api, connection.sender, IBV_WR_SEND, number_of(srq));
    api_expect(api->cqs[1], IBV_WC_SUCCESS);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    post(api, connection.sender, IBV_WR_SEND, number_of(srq) + 1);
    api_expect(api->cqs[0], IBV_WC_REM_INV_REQ_ERR);
    api_expect_event(api, IBV_EVENT_QP_REQ_ERR);
    assert_int_equal(ibv_destroy_qp(opened), 0);
    assert_int_equal(ibv_destroy_qp(connection.sender), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* A target shows the protection domain that it was made with, as on hardware, where librdmacm takes
 * it from there; but it does not hold it. */
static void test_a_target_shows_its_domain(void **state)
{
    struct api *api = *state;
    struct ibv_xrcd *xrcd = open_xrcd(api, -1, 0);
    struct ibv_pd *pd = ibv_alloc_pd(api->context);
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
                                       .comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD,
                                       .pd = pd,
                                       .xrcd = xrcd};
    struct ibv_qp *target = ibv_create_qp_ex(api->context, &attr);
    assert_non_null(target);
    assert_ptr_equal(target->pd, pd);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_destroy_qp(target), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, api_open, api_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_requests_choose_their_queue),
        TEST(test_keys_belong_to_the_domain_of_the_queue),
        TEST(test_resized_queue),
        TEST(test_wrong_queues_are_refused),
        TEST(test_halves_take_no_other_half_work),
        TEST(test_domains_and_files),
        TEST(test_open_qp),
        TEST(test_a_target_shows_its_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
