/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Requests leave although the program that posted them sleeps, and no acknowledgement
 *         comes: more UD messages than the way to the peer holds.
 * Method  A child process has a UD queue pair without receives, and sleeps too. The parent posts
 *         all at once, asks to be told when the last one has left, and waits without polling.
 */
#include "tests/api/api.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGES 4000
#define BYTES    512
#define QKEY     0x11

struct where {
    union ibv_gid gid;
    uint32_t qpn;
};

static struct ibv_qp *ud(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = MESSAGES, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    if (qp == NULL ||
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) !=
            0) {
        return NULL;
    }
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0) {
        return NULL;
    }
    attr.qp_state = IBV_QPS_RTS;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0 ? qp : NULL;
}

static struct ibv_context *open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list == NULL ? NULL : ibv_open_device(list[0]);
    ibv_free_device_list(list);
    return context;
}

/* Says where it is, and stays until the parent closes its end. */
static void receiver(int to_parent, int from_parent)
{
    struct where where = {.qpn = 0};
    char ignored;
    struct ibv_context *context = open_device();
    if (context != NULL) {
        struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
        struct ibv_qp *qp = ud(ibv_alloc_pd(context), cq);
        ibv_query_gid(context, 1, 0, &where.gid);
        where.qpn = qp == NULL ? 0 : qp->qp_num;
    }
    (void)!write(to_parent, &where, sizeof(where));
    (void)!read(from_parent, &ignored, 1);
    _exit(0);
}

static void post_all(struct ibv_qp *qp, struct ibv_mr *mr, struct ibv_ah *ah, uint32_t qpn)
{
    static struct ibv_send_wr requests[MESSAGES];
    struct ibv_sge sge = {(uintptr_t)mr->addr, BYTES, mr->lkey};
    struct ibv_send_wr *bad;
    for (int i = 0; i < MESSAGES; i++) {
        requests[i] = (struct ibv_send_wr){
            .next = i + 1 < MESSAGES ? &requests[i + 1] : NULL,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = IBV_WR_SEND,
            .send_flags = i + 1 < MESSAGES ? 0 : IBV_SEND_SIGNALED,
            .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY},
        };
    }
    assert_int_equal(ibv_post_send(qp, requests, &bad), 0);
}

static void send_and_sleep(const struct where *where)
{
    static uint8_t memory[BYTES];
    struct ibv_context *context = open_device();
    assert_non_null(context);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, channel, 0);
    struct ibv_qp *qp = ud(pd, cq);
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
    attr.grh.dgid = where->gid;
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    assert_non_null(ah);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
        usleep(50000); /* Both threads have gone to sleep. */
        post_all(qp, mr, ah, where->qpn);
        struct pollfd told = {.fd = channel->fd, .events = POLLIN};
        assert_int_equal(poll(&told, 1, 10000), 1);
        struct ibv_cq *which;
        void *unused;
        struct ibv_wc wc;
        assert_int_equal(ibv_get_cq_event(channel, &which, &unused), 0);
        ibv_ack_cq_events(cq, 1);
        assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
    }
    ibv_destroy_ah(ah);
    ibv_dereg_mr(mr);
    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
    ibv_destroy_comp_channel(channel);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
}

static void test_everything_leaves(void **state)
{
    (void)state;
    int up[2], down[2];
    struct where where;
    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(down[1]);
        receiver(up[1], down[0]);
    }
    close(down[0]);
    assert_int_equal(read(up[0], &where, sizeof(where)), sizeof(where));
    assert_int_not_equal(where.qpn, 0);
    send_and_sleep(&where);
    close(down[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_everything_leaves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
