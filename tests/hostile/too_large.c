/* SPDX-License-Identifier: BSD-2-Clause
 *
 * too_large - asks for packets that are larger than the port's active MTU. Prints what is not as on
 * hardware; the only argument is the active MTU that is expected.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define QKEY 0x11111111

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char memory[8192];
static union ibv_gid gid;

static struct ibv_qp *create_qp(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    EXPECT(qp != NULL);
    EXPECT(ibv_modify_qp(qp, &to,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                             (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0);
    return qp;
}

static int enter_rtr(struct ibv_qp *qp, enum ibv_mtu mtu)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_RTR,
                             .path_mtu = mtu,
                             .dest_qp_num = qp->qp_num,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 1,
                             .ah_attr = {.is_global = 1, .grh = {.dgid = gid}, .port_num = 1}};
    return ibv_modify_qp(qp, &to,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static void connected(enum ibv_mtu active)
{
    for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
        struct ibv_qp *qp = create_qp(IBV_QPT_RC);
        EXPECT(enter_rtr(qp, (enum ibv_mtu)mtu) == ((int)active < mtu ? EINVAL : 0));
        EXPECT(ibv_destroy_qp(qp) == 0);
    }
}

static enum ibv_wc_status send_datagram(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t bytes)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = bytes, .lkey = mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge,
              .num_sge = 1,
              .opcode = IBV_WR_SEND,
              .send_flags = IBV_SEND_SIGNALED,
              .wr.ud = {.ah = ah, .remote_qpn = qp->qp_num, .remote_qkey = QKEY}};
    struct ibv_wc wc;
    EXPECT(ibv_post_send(qp, &wr, &bad) == 0);
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
    }
    return wc.status;
}

static void datagrams(enum ibv_mtu active)
{
    struct ibv_qp *qp = create_qp(IBV_QPT_UD);
    struct ibv_ah_attr where = {.is_global = 1, .grh = {.dgid = gid}, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(pd, &where);
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_RTR};
    const uint32_t most = 128u << active;
    EXPECT(ah != NULL);
    EXPECT(ibv_modify_qp(qp, &to, IBV_QP_STATE) == 0);
    to.qp_state = IBV_QPS_RTS;
    EXPECT(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    EXPECT(send_datagram(qp, ah, most) == IBV_WC_SUCCESS);
    EXPECT(send_datagram(qp, ah, most + 1) == IBV_WC_LOC_LEN_ERR);
    EXPECT(ibv_destroy_qp(qp) == 0);
    EXPECT(ibv_destroy_ah(ah) == 0);
}

int main(int argc, char **argv)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_port_attr port;
    EXPECT(argc == 2 && list != NULL && list[0] != NULL);
    context = ibv_open_device(list[0]);
    EXPECT(context != NULL);
    EXPECT(ibv_query_port(context, 1, &port) == 0);
    EXPECT(128 << port.active_mtu == atoi(argv[1]));
    EXPECT(ibv_query_gid(context, 1, 0, &gid) == 0);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    EXPECT(pd != NULL && cq != NULL && mr != NULL);
    connected(port.active_mtu);
    datagrams(port.active_mtu);
    return 0;
}
