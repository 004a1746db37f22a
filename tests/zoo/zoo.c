/* SPDX-License-Identifier: BSD-2-Clause
 *
 * zoo - makes one mistake, or does the same thing right.
 *
 * Usage: zoo MISTAKE [right], under `nonic run --check`; zoo: their names
 */
#include "tests/zoo/zoo.h"

struct victim a, b;
struct address of_a, of_b;

int post(struct message message)
{
    const uint32_t bytes = message.bytes == 0 ? BYTES : message.bytes;
    struct ibv_sge sge = {
        .addr = (uintptr_t)(message.memory == NULL ? a.memory : message.memory),
        .length = bytes,
        .lkey = (message.mr == NULL ? a.mr : message.mr)->lkey,
    };
    struct ibv_send_wr *bad, wr = {.wr_id = 7,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = message.opcode,
                                   .send_flags = message.flags};
    const uint64_t to = message.to == 0 ? of_b.memory : message.to;
    if (message.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = to;
        wr.wr.atomic.rkey = of_b.rkey;
    } else {
        wr.wr.rdma.remote_addr = to;
        wr.wr.rdma.rkey = of_b.rkey;
    }
    return ibv_post_send(message.qp == NULL ? a.qp : message.qp, &wr, &bad);
}

void send_one(struct message message)
{
    EXPECT(post(message) == 0);
}

void receive_one(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)b.memory, .length = BYTES, .lkey = b.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(b.qp, &wr, &bad) == 0);
}

void take(struct ibv_cq *cq, int count)
{
    struct ibv_wc wc;
    while (count > 0) {
        const int found = ibv_poll_cq(cq, 1, &wc);
        EXPECT(found >= 0 && (found == 0 || wc.status == IBV_WC_SUCCESS));
        count -= found;
    }
}

struct ibv_mr *registered(void *memory, size_t bytes, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(a.pd, memory, bytes, access);
    EXPECT(mr != NULL);
    return mr;
}

struct ibv_qp *another_qp(enum ibv_qp_type type, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .cap = {.max_send_wr = SENDS,
                                            .max_recv_wr = RECEIVES,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = INLINE},
                                    .qp_type = type};
    struct ibv_qp *qp = ibv_create_qp(a.pd, &attr);
    EXPECT(qp != NULL);
    return qp;
}

const struct patience usual = {.timeout = 14, .retries = 7, .rnr_retries = 6, .rnr_timer = 12};

void connect_to(struct ibv_qp *qp, const struct ibv_qp *peer, struct patience patience)
{
    struct address address = of_a;
    address.qpn = peer->qp_num;
    victim_connect_with(qp, &address, patience);
}

void join(struct ibv_qp *one, struct ibv_qp *other)
{
    connect_to(one, other, usual);
    if (other != one) {
        connect_to(other, one, usual);
    }
}

struct ibv_ah *datagrams(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) ==
           0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    struct ibv_ah_attr address = {
        .is_global = 1, .grh = {.dgid = of_a.gid, .hop_limit = 1}, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(a.pd, &address);
    EXPECT(ah != NULL);
    return ah;
}

void send_datagram(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qkey)
{
    struct ibv_sge sge = {.addr = (uintptr_t)a.memory, .length = 8, .lkey = a.mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 9,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.ud = {ah, qp->qp_num, qkey}};
    EXPECT(ibv_post_send(qp, &wr, &bad) == 0);
}

void receive_datagram(struct ibv_qp *qp)
{
    struct ibv_sge sge = {.addr = (uintptr_t)a.memory + 1024, .length = 40 + 8, .lkey = a.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 10, .sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(qp, &wr, &bad) == 0);
}

/* B is of A's device, with a protection domain, a queue and memory of its own. */
static void open_b(void)
{
    b = a;
    EXPECT((b.pd = ibv_alloc_pd(b.context)) != NULL);
    EXPECT((b.channel = ibv_create_comp_channel(b.context)) != NULL);
    EXPECT((b.cq = ibv_create_cq(b.context, 64, NULL, b.channel, 0)) != NULL);
    EXPECT((b.memory = calloc(1, VICTIM_BYTES)) != NULL);
    EXPECT((b.mr = ibv_reg_mr(b.pd, b.memory, VICTIM_BYTES,
                              VICTIM_ACCESS | IBV_ACCESS_REMOTE_ATOMIC)) != NULL);
}

static struct ibv_qp *small_qp(const struct victim *v)
{
    struct ibv_pd *before = a.pd;
    a.pd = v->pd;
    struct ibv_qp *qp = another_qp(IBV_QPT_RC, v->cq);
    a.pd = before;
    return qp;
}

static void close_all(void)
{
    for (int i = 0; i < 2; i++) {
        struct victim *v = i == 0 ? &a : &b;
        EXPECT(ibv_destroy_qp(v->qp) == 0);
        EXPECT(ibv_dereg_mr(v->mr) == 0);
        EXPECT(ibv_destroy_cq(v->cq) == 0);
        EXPECT(ibv_destroy_comp_channel(v->channel) == 0);
        EXPECT(ibv_dealloc_pd(v->pd) == 0);
        free(v->memory);
    }
    EXPECT(ibv_close_device(a.context) == 0);
}

static const struct mistake *const families[] = {memory_mistakes, queue_mistakes, post_mistakes,
                                                 object_mistakes};

int main(int argc, char **argv)
{
    const struct mistake *wanted = NULL;
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        for (const struct mistake *one = families[i]; one->name != NULL; one++) {
            if (argc < 2) {
                printf("%s\n", one->name);
            } else if (strcmp(one->name, argv[1]) == 0) {
                wanted = one;
            }
        }
    }
    if (argc < 2) {
        return 0;
    }
    EXPECT(wanted != NULL);
    victim_open(&a);
    ibv_destroy_qp(a.qp);
    open_b();
    a.qp = small_qp(&a);
    b.qp = small_qp(&b);
    of_a = victim_address(&a);
    of_b = victim_address(&b);
    join(a.qp, b.qp);
    wanted->make(argc == 3);
    close_all();
    return 0;
}
