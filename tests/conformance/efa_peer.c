/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/conformance/efa_peer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* -- Queue pairs --------------------------------------------------------------------------------*/

static void open_cq(struct end *end)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = PEER_COMPLETIONS, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct efa_cq_init_attr direct = {.wc_flags = EFA_WC_WITH_SGID | EFA_WC_WITH_IS_UNSOLICITED};
    end->cq = efadv_create_cq(end->context, &attr, (void *)&direct, sizeof(direct));
    EXPECT(end->cq != NULL);
}

void end_open(struct end *end)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    EXPECT(list != NULL && list[0] != NULL);
    EXPECT((end->context = ibv_open_device(list[0])) != NULL);
    ibv_free_device_list(list);
    EXPECT((end->pd = ibv_alloc_pd(end->context)) != NULL);
    EXPECT((end->memory = aligned_alloc(4096, PEER_BYTES)) != NULL);
    memset(end->memory, 0, PEER_BYTES);
    EXPECT((end->mr = ibv_reg_mr(end->pd, end->memory, PEER_BYTES, ACCESS)) != NULL);
    EXPECT(ibv_query_gid(end->context, 1, 0, &end->gid) == 0);
    open_cq(end);
}

void end_lead(struct ibv_qp *qp, uint8_t rnr_retry)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = PEER_QKEY};
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) ==
           0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
    attr.qp_state = IBV_QPS_RTS;
    attr.rnr_retry = rnr_retry;
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY) == 0);
}

struct ibv_qp *end_queue_pair_of(struct end *end, uint16_t flags, uint32_t sends)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = ibv_cq_ex_to_cq(end->cq),
        .recv_cq = ibv_cq_ex_to_cq(end->cq),
        .cap = {sends, PEER_RECEIVES, 2, 2, 32},
        .qp_type = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = end->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |
                          IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM};
    struct efa_qp_init_attr direct = {.driver_qp_type = EFA_QP_TYPE_SRD, .flags = flags};
    return efadv_create_qp_ex(end->context, &attr, (void *)&direct, sizeof(direct));
}

struct ibv_qp *end_queue_pair(struct end *end, uint16_t flags, uint8_t rnr_retry)
{
    struct ibv_qp *qp = end_queue_pair_of(end, flags, 128);
    EXPECT(qp != NULL);
    end_lead(qp, rnr_retry);
    return qp;
}

struct ibv_ah *end_handle(struct end *end, const union ibv_gid *gid)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid}};
    struct ibv_ah *ah = ibv_create_ah(end->pd, &attr);
    EXPECT(ah != NULL);
    return ah;
}

struct address end_address(const struct end *end)
{
    return (struct address){.gid = end->gid,
                            .qpn = end->qp == NULL ? 0 : end->qp->qp_num,
                            .qkey = PEER_QKEY,
                            .rkey = end->mr == NULL ? 0 : end->mr->rkey,
                            .memory = (uintptr_t)end->memory};
}

/* -- Completions --------------------------------------------------------------------------------*/

static struct seen read_one(struct ibv_cq_ex *cq)
{
    struct efa_cq *direct = (void *)efadv_cq_from_ibv_cq_ex(cq);
    struct seen seen = {.there = true,
                        .wr_id = cq->wr_id,
                        .status = cq->status,
                        .vendor_err = ibv_wc_read_vendor_err(cq),
                        .qpn = ibv_wc_read_qp_num(cq),
                        .opcode = ibv_wc_read_opcode(cq)};
    if (cq->status == IBV_WC_SUCCESS) {
        seen.bytes = ibv_wc_read_byte_len(cq);
        seen.immediate = ibv_wc_read_imm_data(cq);
        seen.flags = ibv_wc_read_wc_flags(cq);
        seen.source_qpn = ibv_wc_read_src_qp(cq);
        seen.slid = ibv_wc_read_slid(cq);
        seen.unsolicited = direct->wc_is_unsolicited((void *)direct);
        seen.sgid_reason = direct->wc_read_sgid((void *)direct, &seen.sgid);
    }
    return seen;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct seen end_wait(struct end *end, int ms)
{
    struct ibv_poll_cq_attr attr = {0};
    const int64_t until = now_ms() + ms;
    do {
        if (ibv_start_poll(end->cq, &attr) == 0) {
            const struct seen seen = read_one(end->cq);
            ibv_end_poll(end->cq);
            return seen;
        }
    } while (now_ms() < until);
    return (struct seen){.there = false};
}

/* -- Requests -----------------------------------------------------------------------------------*/

static void build(struct ibv_qp_ex *qp, const struct address *to, const struct request *request)
{
    const uint64_t at = to->memory + request->offset;
    switch ((uint32_t)request->opcode) {
    case IBV_WR_SEND: ibv_wr_send(qp); break;
    case IBV_WR_SEND_WITH_IMM: ibv_wr_send_imm(qp, request->immediate); break;
    case IBV_WR_RDMA_WRITE: ibv_wr_rdma_write(qp, to->rkey, at); break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(qp, to->rkey, at, request->immediate);
        break;
    case IBV_WR_RDMA_READ: ibv_wr_rdma_read(qp, to->rkey, at); break;
    default: EXPECT(request->opcode == IBV_WR_SEND); /* There are no others. */
    }
}

int end_post(struct end *end, struct ibv_ah *ah, const struct address *to,
             const struct request *request)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);
    uint8_t *at = end->memory + request->offset;
    const uint32_t lkey = request->lkey != 0 ? request->lkey : end->mr->lkey;
    ibv_wr_start(qp);
    qp->wr_id = request->wr_id;
    qp->wr_flags = IBV_SEND_SIGNALED | (request->inlined ? IBV_SEND_INLINE : 0u);
    build(qp, to, request);
    ibv_wr_set_ud_addr(qp, ah, to->qpn, to->qkey);
    if (request->inlined) {
        ibv_wr_set_inline_data(qp, at, request->bytes);
    } else {
        ibv_wr_set_sge(qp, lkey, (uintptr_t)at, request->bytes);
    }
    return ibv_wr_complete(qp);
}

void end_receive(struct end *end, uint64_t wr_id, uint32_t offset, uint32_t bytes)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)end->memory + offset, .length = bytes, .lkey = end->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(end->qp, &wr, &bad) == 0);
}

void end_fill(struct end *end, uint32_t seed)
{
    for (uint32_t i = 0; i < PEER_BYTES; i++) {
        end->memory[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
    }
}

bool end_is_filled(const struct end *end, uint32_t seed, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        if (end->memory[i] != (uint8_t)((i * 2654435761u + seed) >> 13)) {
            return false;
        }
    }
    return true;
}

uint64_t end_sum(const struct end *end)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < PEER_BYTES; i += sizeof(sum)) {
        uint64_t word;
        memcpy(&word, end->memory + i, sizeof(word));
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    }
    return sum;
}

/* -- Targets ------------------------------------------------------------------------------------*/

struct ordered {
    enum order order;
    uint32_t value;
    struct address who;
};

static void obey_life(struct end *end, const struct ordered *ordered)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    switch ((uint32_t)ordered->order) {
    case ORDER_OPEN:
        end_open(end);
        end->qp = end_queue_pair(end, (uint16_t)ordered->value, 0);
        break;
    case ORDER_FORGET_MEMORY:
        EXPECT(ibv_dereg_mr(end->mr) == 0);
        end->mr = NULL;
        break;
    case ORDER_REGISTER:
        end->mr = ibv_reg_mr(end->pd, end->memory, PEER_BYTES, (int)ordered->value);
        EXPECT(end->mr != NULL);
        break;
    case ORDER_FAIL: EXPECT(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE) == 0); break;
    case ORDER_RENEW:
        EXPECT(ibv_destroy_qp(end->qp) == 0);
        end->qp = end_queue_pair(end, (uint16_t)ordered->value, 0);
        break;
    }
}

static struct told obey(struct end *end, struct ibv_ah **ah, const struct ordered *ordered)
{
    struct told told = {0};
    struct efa_ah_attr number = {0};
    obey_life(end, ordered);
    switch ((uint32_t)ordered->order) {
    case ORDER_HANDLE:
        *ah = end_handle(end, &ordered->who.gid);
        EXPECT(efadv_query_ah(*ah, (void *)&number, sizeof(number)) == 0);
        break;
    case ORDER_HANDLE_GONE: EXPECT(ibv_destroy_ah(*ah) == 0); break;
    case ORDER_RECEIVE: end_receive(end, 1000 + ordered->value, 0, ordered->value); break;
    case ORDER_TELL: told.seen = end_wait(end, 10000); break;
    case ORDER_TELL_NONE: told.seen = end_wait(end, 20); break;
    case ORDER_FORGET_MEMORY:
    case ORDER_SUM: told.sum = end_sum(end); break;
    case ORDER_FILL: end_fill(end, ordered->value); break;
    case ORDER_COMPARE: told.alike = end_is_filled(end, ordered->who.qkey, ordered->value); break;
    }
    told.address = end_address(end);
    told.address.ahn = number.ahn;
    return told;
}

static void serve(int socket)
{
    struct end end = {0};
    struct ibv_ah *ah = NULL;
    struct ordered ordered;
    while (read(socket, &ordered, sizeof(ordered)) == sizeof(ordered)) {
        const struct told told = obey(&end, &ah, &ordered);
        EXPECT(write(socket, &told, sizeof(told)) == sizeof(told));
    }
    _exit(0);
}

struct target target_start(void)
{
    int sockets[2];
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
    const pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(sockets[0]);
        serve(sockets[1]);
    }
    close(sockets[1]);
    return (struct target){.pid = pid, .socket = sockets[0]};
}

struct told target_order(struct target *target, enum order order, uint32_t value,
                         const struct address *who)
{
    struct ordered ordered = {.order = order, .value = value};
    struct told told;
    if (who != NULL) {
        ordered.who = *who;
    }
    EXPECT(write(target->socket, &ordered, sizeof(ordered)) == sizeof(ordered));
    EXPECT(read(target->socket, &told, sizeof(told)) == sizeof(told));
    target->address = told.address;
    return told;
}

void target_kill(struct target *target)
{
    EXPECT(kill(target->pid, SIGKILL) == 0);
    EXPECT(waitpid(target->pid, NULL, 0) == target->pid);
    close(target->socket);
}

void target_stop(struct target *target)
{
    int status;
    EXPECT(kill(target->pid, SIGSTOP) == 0);
    EXPECT(waitpid(target->pid, &status, WUNTRACED) == target->pid && WIFSTOPPED(status));
}

void target_continue(struct target *target)
{
    EXPECT(kill(target->pid, SIGCONT) == 0);
}
