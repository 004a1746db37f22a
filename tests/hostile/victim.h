/* SPDX-License-Identifier: BSD-2-Clause
 *
 * victim - the common part of the victims of tests/hostile: a device, and a queue pair connected to
 * itself or to another process.
 */
#ifndef TESTS_HOSTILE_VICTIM_H
#define TESTS_HOSTILE_VICTIM_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VICTIM_BYTES  4096
#define VICTIM_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* The address that the other side has to know. */
struct address {
    uint32_t qpn, rkey;
    uint64_t memory;
    union ibv_gid gid;
};

struct victim {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    char *memory;
};

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline struct ibv_qp *victim_create_qp(struct victim *v)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = v->cq,
        .recv_cq = v->cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    return ibv_create_qp(v->pd, &attr);
}

static inline void victim_open(struct victim *v)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    EXPECT(list != NULL && list[0] != NULL);
    EXPECT((v->context = ibv_open_device(list[0])) != NULL);
    ibv_free_device_list(list);
    EXPECT((v->pd = ibv_alloc_pd(v->context)) != NULL);
    EXPECT((v->channel = ibv_create_comp_channel(v->context)) != NULL);
    EXPECT((v->cq = ibv_create_cq(v->context, 64, NULL, v->channel, 0)) != NULL);
    EXPECT((v->memory = calloc(1, VICTIM_BYTES)) != NULL);
    EXPECT((v->mr = ibv_reg_mr(v->pd, v->memory, VICTIM_BYTES, VICTIM_ACCESS)) != NULL);
    EXPECT((v->qp = victim_create_qp(v)) != NULL);
}

static inline struct address victim_address(const struct victim *v)
{
    struct address own = {
        .qpn = v->qp->qp_num, .rkey = v->mr->rkey, .memory = (uintptr_t)v->memory};
    EXPECT(ibv_query_gid(v->context, 1, 0, &own.gid) == 0);
    return own;
}

/* How long a connection waits for its peer: attributes of ibv_modify_qp. */
struct patience {
    uint8_t timeout, retries, rnr_retries, rnr_timer;
    uint32_t first_psn; /* The PSN of its first request; its peer's is 0. */
};

/* From RESET up to RTS. */
static inline void victim_connect_with(struct ibv_qp *qp, const struct address *peer,
                                       struct patience patience)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = VICTIM_ACCESS};
    EXPECT(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
           0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qpn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = patience.rnr_timer,
        .ah_attr = {.is_global = 1, .grh = {.dgid = peer->gid, .hop_limit = 1}, .port_num = 1}};
    EXPECT(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ==
           0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = patience.timeout,
                                .retry_cnt = patience.retries,
                                .sq_psn = patience.first_psn,
                                .rnr_retry = patience.rnr_retries,
                                .max_rd_atomic = 1};
    EXPECT(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static inline void victim_connect(struct ibv_qp *qp, const struct address *peer, uint8_t timeout,
                                  uint8_t retries)
{
    victim_connect_with(
        qp, peer, (struct patience){.timeout = timeout, .retries = retries, .rnr_retries = 7});
}

/* One signaled request about the first `bytes` of both sides' memory. */
static inline int victim_post(struct victim *v, enum ibv_wr_opcode opcode,
                              const struct address *peer, uint32_t bytes)
{
    struct ibv_sge sge = {.addr = (uintptr_t)v->memory, .length = bytes, .lkey = v->mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {peer->memory, peer->rkey}};
    return ibv_post_send(v->qp, &wr, &bad);
}

/* The status of the next completion. */
static inline enum ibv_wc_status victim_wait(struct victim *v)
{
    struct ibv_wc wc;
    int found;
    while ((found = ibv_poll_cq(v->cq, 1, &wc)) == 0) {
    }
    EXPECT(found == 1);
    return wc.status;
}

#endif
