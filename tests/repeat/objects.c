/* SPDX-License-Identifier: BSD-2-Clause
 *
 * objects - what a NIC of the laboratory does with the objects of a process, whose two queue pairs
 * are connected to each other:
 *
 *     objects order     Two WRITEs by one doorbell, and a long one by the next: all complete.
 *     objects region    A region goes while a WRITE comes: no byte comes afterwards.
 *     objects child     A child of fork destroys its copies, after the parent its objects.
 *
 * It exits with 0 if all is as it should be, and with 1 and a line if not.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BYTES = 1 << 20,
};

static struct ibv_context *context;
static struct ibv_cq *cq;
static struct ibv_mr *from, *to;
static struct ibv_qp *qp[2];
static uint8_t source[BYTES], target[BYTES];

static void need(int good, const char *what)
{
    if (!good) {
        printf("failed: %s (%s)\n", what, strerror(errno));
        exit(1);
    }
}

static void lead(struct ibv_qp *which, uint32_t peer, const union ibv_gid *gid)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}}};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 3, .rnr_retry = 3, .max_rd_atomic = 1};
    need(!ibv_modify_qp(which, &init,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
             !ibv_modify_qp(which, &rtr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) &&
             !ibv_modify_qp(which, &rts,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
         "connecting");
}

static void open_all(void)
{
    union ibv_gid gid;
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0] && (context = ibv_open_device(list[0])), "a device");
    struct ibv_pd *pd = ibv_alloc_pd(context);
    need(pd && (cq = ibv_create_cq(context, 64, NULL, NULL, 0)), "domain and queue");
    from = ibv_reg_mr(pd, source, BYTES, 0);
    to = ibv_reg_mr(pd, target, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    need(from && to && !ibv_query_gid(context, 1, 0, &gid), "regions and address");
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};
    for (int i = 0; i < 2; i++) {
        need((qp[i] = ibv_create_qp(pd, &init)) != NULL, "a queue pair");
    }
    lead(qp[0], qp[1]->qp_num, &gid);
    lead(qp[1], qp[0]->qp_num, &gid);
}

/* `count` WRITEs in one list; the last one is signaled. */
static void write_all(int count, uint32_t bytes)
{
    struct ibv_sge sge = {(uintptr_t)source, bytes, from->lkey};
    struct ibv_send_wr wr[2] = {{0}}, *bad;
    for (int i = 0; i < count; i++) {
        wr[i] = (struct ibv_send_wr){.sg_list = &sge,
                                     .num_sge = 1,
                                     .opcode = IBV_WR_RDMA_WRITE,
                                     .next = i + 1 < count ? &wr[i + 1] : NULL,
                                     .send_flags = i + 1 < count ? 0 : IBV_SEND_SIGNALED,
                                     .wr.rdma = {(uintptr_t)target, to->rkey}};
    }
    need(ibv_post_send(qp[0], wr, &bad) == 0, "a WRITE");
}

static int status_of_next(void)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
    }
    return (int)wc.status;
}

static void order(void)
{
    write_all(2, 64);
    write_all(1, BYTES);
    need(status_of_next() == 0 && status_of_next() == 0, "all complete");
    need(memcmp(source, target, BYTES) == 0, "the bytes are there");
}

static void region(void)
{
    const struct timespec millisecond = {0, 1000000};
    const volatile uint8_t *middle = &target[BYTES / 2];
    struct ibv_wc wc;
    write_all(1, BYTES);
    while (*middle == 0 && ibv_poll_cq(cq, 1, &wc) == 0) {
        /* The WRITE is under way, unless the seed held us back here. */
    }
    need(ibv_dereg_mr(to) == 0, "the region goes");
    memset(target, 0, BYTES);
    nanosleep(&millisecond, NULL);
    for (size_t i = 0; i < BYTES; i++) {
        need(target[i] == 0, "no byte comes into a region that is gone");
    }
}

static void child(void)
{
    int to_child[2], status;
    char byte = 0;
    need(pipe(to_child) == 0, "a pipe");
    const pid_t id = fork();
    if (id == 0) {
        need(read(to_child[0], &byte, 1) == 1, "the parent's word");
        need(ibv_destroy_qp(qp[0]) == 0 && ibv_destroy_qp(qp[1]) == 0 && ibv_destroy_cq(cq) == 0,
             "a child destroys its copies");
        exit(0);
    }
    need(ibv_destroy_qp(qp[1]) == 0 && ibv_destroy_qp(qp[0]) == 0 && ibv_destroy_cq(cq) == 0,
         "a parent destroys its objects");
    need(write(to_child[1], &byte, 1) == 1 && waitpid(id, &status, 0) == id && status == 0,
         "the child ends well");
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    memset(source, 7, BYTES);
    open_all();
    if (strcmp(kind, "order") == 0) {
        order();
    } else if (strcmp(kind, "region") == 0) {
        region();
    } else if (strcmp(kind, "child") == 0) {
        child();
    }
    return 0;
}
