/* SPDX-License-Identifier: BSD-2-Clause
 *
 * landing - an ordinary program that looks at every byte of messages, and of what is said of them.
 *
 * Method     look.h. Where the NIC is going to write, there are uninitialised bytes of the
 *            program's own. Both ends of all connections are this process. Usage: landing
 */
#include <stdbool.h>
#include <string.h>

#include "tests/conformance/look.h"

#define BYTES 4096

static struct ibv_pd *pd;
static union ibv_gid gid;

/* -- Two ends -----------------------------------------------------------------------------------*/

struct ends {
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qps[2]; /* The second receives from `srq`. */
    struct ibv_mr *mrs[2];
    uint8_t *memory[2];
};

static void move(struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qkey = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = peer,
                               .max_dest_rd_atomic = 1,
                               .max_rd_atomic = 1,
                               .min_rnr_timer = 1,
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1}};
    const bool rc = qp->qp_type == IBV_QPT_RC;
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    attr.ah_attr.grh.dgid = gid;
    DO(ibv_modify_qp(qp, &attr, init | (rc ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)) == 0);
    attr.qp_state = IBV_QPS_RTR;
    DO(ibv_modify_qp(qp, &attr,
                     !rc ? IBV_QP_STATE
                         : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ==
       0);
    attr.qp_state = IBV_QPS_RTS;
    DO(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_SQ_PSN |
                         (!rc ? 0
                              : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                    IBV_QP_MAX_QP_RD_ATOMIC)) == 0);
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .srq = srq,
                                       .cap = {8, 8, 1, 1, 64},
                                       .qp_type = type,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND};
    init.send_ops_flags |= type == IBV_QPT_RC ? IBV_QP_EX_WITH_RDMA_READ : 0;
    struct ibv_qp *qp;
    DO((qp = ibv_create_qp_ex(context, &init)) != NULL);
    LOOK(init.cap);
    return qp;
}

static void make_ends(struct ends *ends)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
    DO(ibv_query_gid(context, 1, 0, &gid) == 0);
    DO((pd = ibv_alloc_pd(context)) != NULL);
    DO((ends->channel = ibv_create_comp_channel(context)) != NULL);
    DO((ends->cq = ibv_create_cq(context, 64, ends, ends->channel, 0)) != NULL);
    DO((ends->srq = ibv_create_srq(pd, &init)) != NULL);
    for (int i = 0; i < 2; i++) {
        ends->qps[i] = make_qp(IBV_QPT_RC, ends->cq, i == 1 ? ends->srq : NULL);
        ends->memory[i] = malloc(BYTES);
        DO((ends->mrs[i] = ibv_reg_mr(pd, ends->memory[i], BYTES,
                                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)) !=
           NULL);
        LOOK(ends->mrs[i]->lkey);
        LOOK(ends->mrs[i]->length);
    }
    move(ends->qps[0], ends->qps[1]->qp_num);
    move(ends->qps[1], ends->qps[0]->qp_num);
}

/* -- Messages -----------------------------------------------------------------------------------*/

static struct ibv_wc wait_for(struct ibv_cq *cq, enum ibv_wc_status status)
{
    struct ibv_wc wc;
    int found;
    do {
        DO((found = ibv_poll_cq(cq, 1, &wc)) >= 0);
    } while (found == 0);
    LOOK(wc);
    DO(wc.status == status);
    return wc;
}

static int post_to(const struct ends *ends, enum ibv_wr_opcode opcode, struct ibv_sge sge,
                   uint64_t remote, uint32_t rkey)
{
    struct ibv_send_wr *bad, wr = {.opcode = opcode,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr = {.rdma = {remote, rkey}}};
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 1;
    }
    if (opcode == IBV_WR_TSO) {
        DO(ibv_post_send(ends->qps[0], &wr, &bad) != 0);
        LOOK(bad);
        return 0;
    }
    return ibv_post_send(ends->qps[0], &wr, &bad);
}

static int post(const struct ends *ends, enum ibv_wr_opcode opcode, struct ibv_sge sge,
                uint64_t remote)
{
    return post_to(ends, opcode, sge, remote, ends->mrs[1]->rkey);
}

static struct ibv_sge sge_of(const struct ends *ends, int end, uint32_t offset, uint32_t bytes)
{
    return (struct ibv_sge){(uintptr_t)ends->memory[end] + offset, bytes, ends->mrs[end]->lkey};
}

/* Uninitialised bytes of the program's own, where the NIC is going to write others. */
static void soil_memory(uint8_t *memory, size_t bytes)
{
    uint8_t *other = malloc(bytes);
    memcpy(memory, other, bytes);
    free(other);
}

static void send_one(const struct ends *ends)
{
    struct ibv_sge sge = sge_of(ends, 1, 0, 64);
    struct ibv_recv_wr *bad, receive = {.sg_list = &sge, .num_sge = 1};
    struct ibv_cq *cq;
    void *cq_context;
    soil_memory(ends->memory[1], 64);
    DO(ibv_post_srq_recv(ends->srq, &receive, &bad) == 0);
    receive.num_sge = 99;
    DO(ibv_post_srq_recv(ends->srq, &receive, &bad) != 0);
    LOOK(bad);
    DO(ibv_req_notify_cq(ends->cq, 0) == 0);
    memset(ends->memory[0], 1, 64);
    DO(post(ends, IBV_WR_TSO, sge_of(ends, 0, 0, 64), 0) == 0); /* Not offered. */
    DO(post(ends, IBV_WR_SEND, sge_of(ends, 0, 0, 64), 0) == 0);
    DO(ibv_get_cq_event(ends->channel, &cq, &cq_context) == 0);
    LOOK(cq);
    LOOK(cq_context);
    ibv_ack_cq_events(cq, 1);
    wait_for(ends->cq, IBV_WC_SUCCESS);
    wait_for(ends->cq, IBV_WC_SUCCESS);
    look(ends->memory[1], 64);
}

static void bring_and_write(const struct ends *ends)
{
    const uint64_t remote = (uintptr_t)ends->memory[1];
    soil_memory(ends->memory[0], 64);
    DO(post(ends, IBV_WR_RDMA_READ, sge_of(ends, 0, 0, 64), remote) == 0);
    wait_for(ends->cq, IBV_WC_SUCCESS);
    look(ends->memory[0], 64);
    soil_memory(ends->memory[0], 64);
    DO(post(ends, IBV_WR_ATOMIC_FETCH_AND_ADD, sge_of(ends, 0, 0, 8), remote) == 0);
    wait_for(ends->cq, IBV_WC_SUCCESS);
    look(ends->memory[0], 8);
    memset(ends->memory[0], 1, 64);
    DO(post(ends, IBV_WR_RDMA_WRITE, sge_of(ends, 0, 0, 64), remote + 1024) == 0);
    while (((volatile uint8_t *)ends->memory[1])[1024 + 63] != 1) {
    }
    look(ends->memory[1] + 1024, 64);
    wait_for(ends->cq, IBV_WC_SUCCESS);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(ends->qps[0]);
    soil_memory(ends->memory[0], 64);
    soil();
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(ex, ends->mrs[1]->rkey, remote);
    ibv_wr_set_sge(ex, ends->mrs[0]->lkey, (uintptr_t)ends->memory[0], 64);
    DO(ibv_wr_complete(ex) == 0);
    wait_for(ends->cq, IBV_WC_SUCCESS);
    look(ends->memory[0], 64);
}

/* A region of the whole address space: memory that is allocated later is registered, too. */
static void receive_on_demand(const struct ends *ends)
{
    struct ibv_mr *whole;
    DO((whole = ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)) !=
       NULL);
    uint8_t *memory = malloc(64);
    DO(post(ends, IBV_WR_RDMA_READ, (struct ibv_sge){(uintptr_t)memory, 64, whole->lkey},
            (uintptr_t)ends->memory[1]) == 0);
    wait_for(ends->cq, IBV_WC_SUCCESS);
    look(memory, 64);
    free(memory);
    DO(ibv_dereg_mr(whole) == 0);
}

static void copy_device_memory(const struct ends *ends)
{
    struct ibv_alloc_dm_attr attr = {.length = 64};
    struct ibv_dm *dm;
    struct ibv_mr *mr;
    uint8_t out[64], *in = malloc(64);
    DO((dm = ibv_alloc_dm(context, &attr)) != NULL);
    DO((mr = ibv_reg_dm_mr(pd, dm, 0, 64,
                           IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
                               IBV_ACCESS_REMOTE_WRITE)) != NULL);
    DO(ibv_memcpy_to_dm(dm, 0, in, 64) == 0);
    free(in);
    DO(post_to(ends, IBV_WR_RDMA_WRITE, sge_of(ends, 0, 0, 64), 0, mr->rkey) == 0);
    wait_for(ends->cq, IBV_WC_SUCCESS);
    DO(ibv_memcpy_from_dm(out, dm, 0, 64) == 0);
    LOOK(out);
    DO(ibv_dereg_mr(mr) == 0 && ibv_free_dm(dm) == 0);
}

/* -- Datagrams, polled by a queue of the extended kind ------------------------------------------*/

static void look_at_current(struct ibv_cq_ex *cq)
{
    LOOK(cq->status);
    LOOK(cq->wr_id);
    const uint64_t read[] = {ibv_wc_read_opcode(cq),
                             ibv_wc_read_vendor_err(cq),
                             ibv_wc_read_byte_len(cq),
                             ibv_wc_read_imm_data(cq),
                             ibv_wc_read_qp_num(cq),
                             ibv_wc_read_src_qp(cq),
                             ibv_wc_read_wc_flags(cq),
                             ibv_wc_read_slid(cq),
                             ibv_wc_read_sl(cq),
                             ibv_wc_read_dlid_path_bits(cq),
                             ibv_wc_read_completion_ts(cq),
                             ibv_wc_read_completion_wallclock_ns(cq)};
    LOOK(read);
    ibv_end_poll(cq);
}

/* The receive is the second to complete. */
static void answer_datagram(struct ibv_cq_ex *cq, struct ibv_grh *grh)
{
    struct ibv_poll_cq_attr none = {0};
    for (int polled = 0; polled < 2;) {
        soil();
        if (ibv_start_poll(cq, &none) == 0) {
            look_at_current(cq);
            polled++;
        }
    }
    struct ibv_ah_attr attr;
    struct ibv_ah *ah;
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    look(grh, sizeof(*grh));
    DO(ibv_init_ah_from_wc(context, 1, &wc, grh, &attr) == 0);
    LOOK(attr);
    DO((ah = ibv_create_ah_from_wc(pd, &wc, grh, 1)) != NULL);
    DO(ibv_destroy_ah(ah) == 0);
}

static void send_datagram(const struct ends *ends)
{
    struct ibv_cq_init_attr_ex init = {.cqe = 16,
                                       .wc_flags = IBV_WC_STANDARD_FLAGS |
                                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
    struct ibv_cq_ex *cq;
    struct ibv_ah *ah;
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid}};
    DO((cq = ibv_create_cq_ex(context, &init)) != NULL);
    struct ibv_qp *qp = make_qp(IBV_QPT_UD, ibv_cq_ex_to_cq(cq), NULL);
    move(qp, 0);
    DO((ah = ibv_create_ah(pd, &attr)) != NULL);
    struct ibv_sge to = sge_of(ends, 1, 2048, 128), from = sge_of(ends, 0, 0, 16);
    struct ibv_recv_wr *bad_receive, receive = {.sg_list = &to, .num_sge = 1};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND,
                                   .sg_list = &from,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.ud = {ah, qp->qp_num, 1}};
    soil_memory(ends->memory[1] + 2048, 128);
    DO(ibv_post_recv(qp, &receive, &bad_receive) == 0);
    DO(ibv_post_send(qp, &wr, &bad) == 0);
    answer_datagram(cq, (struct ibv_grh *)(void *)(ends->memory[1] + 2048));
    look(ends->memory[1] + 2048, 56);
    DO(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(qp) == 0);
    DO(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

/* -- The end ------------------------------------------------------------------------------------*/

/* A WRITE where the peer has no memory ends the connection, and the peer is told by an event. */
static void break_connection(const struct ends *ends)
{
    struct ibv_async_event event;
    DO(post(ends, IBV_WR_RDMA_WRITE, sge_of(ends, 0, 0, 8), 1) == 0);
    wait_for(ends->cq, IBV_WC_REM_ACCESS_ERR);
    DO(ibv_get_async_event(context, &event) == 0);
    LOOK(event);
    ibv_ack_async_event(&event);
}

static void unmake(struct ends *ends)
{
    for (int i = 0; i < 2; i++) {
        DO(ibv_destroy_qp(ends->qps[i]) == 0 && ibv_dereg_mr(ends->mrs[i]) == 0);
        free(ends->memory[i]);
    }
    DO(ibv_destroy_srq(ends->srq) == 0 && ibv_destroy_cq(ends->cq) == 0);
    DO(ibv_destroy_comp_channel(ends->channel) == 0 && ibv_dealloc_pd(pd) == 0);
    DO(ibv_close_device(context) == 0);
}

int main(void)
{
    struct ends ends;
    open_device();
    make_ends(&ends);
    send_one(&ends);
    bring_and_write(&ends);
    receive_on_demand(&ends);
    copy_device_memory(&ends);
    send_datagram(&ends);
    break_connection(&ends);
    unmake(&ends);
    return printf("landing: %u bytes were not zero\n", set) < 0;
}
