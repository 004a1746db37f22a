/* SPDX-License-Identifier: BSD-2-Clause
 *
 * traffic - queue pairs of one process connected to each other: what is sent arrives.
 *
 * A reliable connection bears that a call fails. A datagram may be lost by it; then a counter says
 * so, and the next one arrives.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fails/program.h"
#include "tests/fails/wrap.h"

/* Halves of the memory: what is sent, and where it arrives. */
#define TO       (MEMORY_BYTES / 2)
#define QKEY     0x1234u
#define GRH      40
#define LARGE    100000u
#define CAPACITY 8

struct ibv_qp *make_qp(struct program *p, enum ibv_qp_type type, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr attr = {.send_cq = p->cq,
                                    .recv_cq = p->cq,
                                    .srq = srq,
                                    .cap = {.max_send_wr = CAPACITY,
                                            .max_recv_wr = CAPACITY,
                                            .max_send_sge = 2,
                                            .max_recv_sge = 2,
                                            .max_inline_data = 64},
                                    .qp_type = type};
    return ibv_create_qp(p->pd, &attr);
}

static void to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qkey = QKEY,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC};
    const bool ud = qp->qp_type == IBV_QPT_UD;
    ZERO(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                           (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

static int to_rtr(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer)
{
    const bool rc = qp->qp_type == IBV_QPT_RC, ud = qp->qp_type == IBV_QPT_UD;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = peer,
                               .rq_psn = 7,
                               .max_dest_rd_atomic = 4,
                               .min_rnr_timer = 1,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid}}};
    const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const int reliable = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | (ud ? 0 : connected) | (rc ? reliable : 0));
}

static void to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                               .timeout = 12,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .sq_psn = 7,
                               .max_rd_atomic = 4};
    const int retries =
        IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    const bool rc = qp->qp_type == IBV_QPT_RC;
    ZERO(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (rc ? retries : 0)));
}

void connect_qp(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer)
{
    to_init(qp);
    ZERO(to_rtr(qp, gid, peer));
    to_rts(qp);
}

/* -- Requests -----------------------------------------------------------------------------------*/

static struct ibv_sge part(const struct program *p, size_t offset, uint32_t bytes)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)p->memory + offset, .length = bytes, .lkey = p->mr->lkey};
}

/* The next completion within the time; false: there is none. */
static bool completes(struct program *p, uint64_t patience_ms, struct ibv_wc *wc)
{
    const uint64_t end = now_ms() + patience_ms;
    int count;
    while ((count = ibv_poll_cq(p->cq, 1, wc)) == 0 && now_ms() < end) {
    }
    must(count >= 0, "ibv_poll_cq", count);
    return count == 1;
}

static void expect(struct program *p, const char *what)
{
    struct ibv_wc wc;
    must(completes(p, PATIENCE_MS, &wc), what, 0);
    must(wc.status == IBV_WC_SUCCESS, what, (int)wc.status);
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    wr->num_sge = 1;
    wr->send_flags |= IBV_SEND_SIGNALED;
    ZERO(ibv_post_send(qp, wr, &bad));
}

void complete(struct program *p, struct ibv_qp *qp, struct ibv_send_wr *wr, const char *what)
{
    post(qp, wr);
    expect(p, what);
}

static void post_receive(struct ibv_qp *qp, struct ibv_sge *sge)
{
    struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 1}, *bad;
    ZERO(ibv_post_recv(qp, &wr, &bad));
}

static void fill(struct program *p, uint8_t seed)
{
    for (size_t i = 0; i < TO; i++) {
        p->memory[i] = (uint8_t)(i * 7 + seed);
    }
    memset(p->memory + TO, 0, TO);
}

static bool arrived(const struct program *p, size_t offset, uint32_t bytes)
{
    return memcmp(p->memory, p->memory + TO + offset, bytes) == 0;
}

/* -- Reliable connections -----------------------------------------------------------------------*/

static void send_over(struct program *p, struct ibv_qp *qps[2], uint32_t bytes)
{
    struct ibv_sge from = part(p, 0, bytes), to = part(p, TO, bytes);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &from};
    fill(p, (uint8_t)bytes);
    post_receive(qps[1], &to);
    post(qps[0], &wr);
    expect(p, "SEND");
    expect(p, "SEND");
    must(arrived(p, 0, bytes), "wrong bytes were sent", 0);
}

static void reach_over(struct program *p, struct ibv_qp *qp, enum ibv_wr_opcode opcode,
                       uint32_t bytes, uint32_t rkey)
{
    const bool read = opcode == IBV_WR_RDMA_READ;
    struct ibv_sge here = part(p, read ? TO : 0, bytes);
    struct ibv_send_wr wr = {
        .opcode = opcode,
        .sg_list = &here,
        .wr.rdma = {.remote_addr = (uintptr_t)p->memory + (read ? 0 : TO), .rkey = rkey}};
    fill(p, (uint8_t)(bytes + 1));
    post(qp, &wr);
    expect(p, read ? "READ" : "WRITE");
    must(arrived(p, 0, bytes), read ? "wrong bytes were read" : "wrong bytes were written", 0);
}

static void add_over(struct program *p, struct ibv_qp *qp)
{
    uint64_t *word = (uint64_t *)(void *)(p->memory + TO);
    struct ibv_sge here = part(p, 0, sizeof(*word));
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
        .sg_list = &here,
        .wr.atomic = {.remote_addr = (uintptr_t)word, .compare_add = 5, .rkey = p->mr->rkey}};
    *word = 37;
    post(qp, &wr);
    expect(p, "FETCH AND ADD");
    must(*word == 42, "a wrong number was added", (int)*word);
}

/* A completion that wakes a program. */
static void wake_over(struct program *p, struct ibv_qp *qps[2])
{
    struct ibv_cq *cq;
    void *context;
    struct pollfd wait = {.fd = p->channel->fd, .events = POLLIN};
    ZERO(ibv_req_notify_cq(p->cq, 0));
    struct ibv_sge here = part(p, 0, 8);
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_WRITE,
        .sg_list = &here,
        .wr.rdma = {.remote_addr = (uintptr_t)p->memory + TO, .rkey = p->mr->rkey}};
    post(qps[0], &wr);
    must(poll(&wait, 1, PATIENCE_MS) == 1, "no completion event", 0);
    ZERO(ibv_get_cq_event(p->channel, &cq, &context) == 0 ? 0 : errno);
    ibv_ack_cq_events(cq, 1);
    expect(p, "WRITE with an event");
}

static void bind_over(struct program *p, struct ibv_qp *qps[2])
{
    struct ibv_mw *window = POINTER(ibv_alloc_mw(p->pd, IBV_MW_TYPE_1));
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {.mr = p->mr,
                                             .addr = (uintptr_t)p->memory,
                                             .length = MEMORY_BYTES,
                                             .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
    ZERO(ibv_bind_mw(qps[1], window, &bind));
    expect(p, "BIND");
    reach_over(p, qps[0], IBV_WR_RDMA_WRITE, 64, window->rkey);
    ZERO(ibv_dealloc_mw(window));
}

/* By keys of an on-demand region: its pages come when they are touched. */
static void page_over(struct program *p, struct ibv_qp *qps[2])
{
    struct ibv_mr *ordinary = p->mr;
    p->mr = POINTER(ibv_reg_mr(p->pd, p->memory, MEMORY_BYTES, ACCESS_ALL | IBV_ACCESS_ON_DEMAND));
    send_over(p, qps, 500);
    reach_over(p, qps[0], IBV_WR_RDMA_WRITE, 3000, p->mr->rkey);
    add_over(p, qps[0]);
    ZERO(ibv_dereg_mr(p->mr));
    p->mr = ordinary;
}

static void connect_both(struct program *p, struct ibv_qp *qps[2])
{
    connect_qp(qps[0], &p->gid, qps[1]->qp_num);
    connect_qp(qps[1], &p->gid, qps[0]->qp_num);
}

static void use_rc(struct program *p)
{
    struct ibv_qp *qps[2] = {POINTER(make_qp(p, IBV_QPT_RC, NULL)),
                             POINTER(make_qp(p, IBV_QPT_RC, NULL))};
    connect_both(p, qps);
    send_over(p, qps, 16);
    send_over(p, qps, LARGE);
    reach_over(p, qps[0], IBV_WR_RDMA_WRITE, 16, p->mr->rkey);
    reach_over(p, qps[0], IBV_WR_RDMA_WRITE, LARGE, p->mr->rkey);
    reach_over(p, qps[0], IBV_WR_RDMA_READ, 16, p->mr->rkey);
    reach_over(p, qps[0], IBV_WR_RDMA_READ, LARGE, p->mr->rkey);
    add_over(p, qps[0]);
    wake_over(p, qps);
    bind_over(p, qps);
    page_over(p, qps);
    ZERO(ibv_destroy_qp(qps[0]));
    ZERO(ibv_destroy_qp(qps[1]));
}

/* -- Datagrams that may be lost -----------------------------------------------------------------*/

/* Sends until something is received at `to`; each loss is counted somewhere, and had a reason. */
static void send_until_it_arrives(struct program *p, struct ibv_qp *from, struct ibv_qp *to,
                                  struct ibv_send_wr *wr, size_t offset, const char *what)
{
    struct ibv_wc wc;
    struct ibv_sge room = part(p, TO, 2048);
    bool here = false;
    fill(p, 3);
    post_receive(to, &room);
    for (int tries = 0; !here && tries < 3; tries++) {
        post(from, wr);
        bool sent = false;
        while ((!sent || !here) && completes(p, DATAGRAM_MS, &wc)) {
            must(wc.status == IBV_WC_SUCCESS, what, (int)wc.status);
            here = here || (wc.opcode & IBV_WC_RECV) != 0;
            sent = sent || (wc.opcode & IBV_WC_RECV) == 0;
        }
        must(sent, what, 0);
        must(here || fails_struck() > 0, what, 0);
        must(here || losses_counted(), "a loss that nobody counts", 0);
    }
    must(here, what, -1);
    must(arrived(p, offset, 512), what, -2);
}

static void use_uc(struct program *p)
{
    struct ibv_qp *qps[2] = {POINTER(make_qp(p, IBV_QPT_UC, NULL)),
                             POINTER(make_qp(p, IBV_QPT_UC, NULL))};
    struct ibv_sge from = part(p, 0, 512);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &from};
    connect_both(p, qps);
    send_until_it_arrives(p, qps[0], qps[1], &wr, 0, "SEND over UC");
    ZERO(ibv_destroy_qp(qps[0]));
    ZERO(ibv_destroy_qp(qps[1]));
}

static struct ibv_ah *make_handle(struct program *p, const union ibv_gid *gid)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 1}};
    return ibv_create_ah(p->pd, &attr);
}

static void use_group(struct program *p, struct ibv_qp *qps[2], struct ibv_send_wr *wr)
{
    static const union ibv_gid group4 = {.raw = {[10] = 0xff, 0xff, 239, 7, 7, 7}};
    static const union ibv_gid group6 = {.raw = {0xff, 0x15, [14] = 7, 7}};
    const union ibv_gid group = has_ipv4(p) ? group4 : group6;
    ZERO(ibv_attach_mcast(qps[1], &group, 0));
    struct ibv_ah *ah = POINTER(make_handle(p, &group));
    wr->wr.ud.ah = ah;
    wr->wr.ud.remote_qpn = 0xffffff;
    send_until_it_arrives(p, qps[0], qps[1], wr, GRH, "SEND to a group");
    ZERO(ibv_detach_mcast(qps[1], &group, 0));
    ZERO(ibv_destroy_ah(ah));
}

static void use_ud(struct program *p)
{
    struct ibv_qp *qps[2] = {POINTER(make_qp(p, IBV_QPT_UD, NULL)),
                             POINTER(make_qp(p, IBV_QPT_UD, NULL))};
    struct ibv_sge from = part(p, 0, 512);
    connect_qp(qps[0], &p->gid, 0);
    connect_qp(qps[1], &p->gid, 0);
    struct ibv_ah *ah = POINTER(make_handle(p, &p->gid));
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_SEND,
        .sg_list = &from,
        .wr.ud = {.ah = ah, .remote_qpn = qps[1]->qp_num, .remote_qkey = QKEY}};
    send_until_it_arrives(p, qps[0], qps[1], &wr, GRH, "SEND over UD");
    if (has_groups(p)) {
        use_group(p, qps, &wr);
    }
    ZERO(ibv_destroy_ah(ah));
    ZERO(ibv_destroy_qp(qps[0]));
    ZERO(ibv_destroy_qp(qps[1]));
}

void move_data(struct program *p)
{
    use_rc(p);
    use_uc(p);
    use_ud(p);
}

/* At an address where nobody is: that it was sent is all that is known; or, of shared memory alone,
 * that nobody is there. */
void call_nobody(struct program *p)
{
    union ibv_gid nobody = p->gid;
    struct ibv_qp *qp = POINTER(make_qp(p, IBV_QPT_UC, NULL));
    struct ibv_sge from = part(p, 0, 64);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &from};
    nobody.raw[15] ^= 0x54;
    to_init(qp);
    int answer;
    while ((answer = to_rtr(qp, &nobody, 77)) != 0 && answer != EINVAL) {
        judge("a queue pair towards nobody", answer);
    }
    if (answer == 0) {
        to_rts(qp);
        complete(p, qp, &wr, "SEND to nobody");
    }
    ZERO(ibv_destroy_qp(qp));
}

/* -- Events -------------------------------------------------------------------------------------*/

static int next_event(struct program *p, struct ibv_async_event *event)
{
    return ibv_get_async_event(p->context, event);
}

static void expect_event(struct program *p, enum ibv_event_type type)
{
    struct ibv_async_event event;
    struct pollfd wait = {.fd = p->context->async_fd, .events = POLLIN};
    must(poll(&wait, 1, PATIENCE_MS) == 1, "no event", (int)type);
    (void)NUMBER(next_event(p, &event));
    must(event.event_type == type, "another event", (int)event.event_type);
    ibv_ack_async_event(&event);
}

/* A shared queue below its limit, and then no more of its receives for a queue pair that fails. */
void take_events(struct program *p)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = POINTER(ibv_create_srq(p->pd, &attr));
    struct ibv_qp *qps[2] = {POINTER(make_qp(p, IBV_QPT_RC, NULL)),
                             POINTER(make_qp(p, IBV_QPT_RC, srq))};
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_sge from = part(p, 0, 64), to = part(p, TO, 64);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &from};
    struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad;
    connect_both(p, qps);
    ZERO(ibv_post_srq_recv(srq, &receive, &bad));
    attr.attr.srq_limit = 1;
    ZERO(ibv_modify_srq(srq, &attr.attr, IBV_SRQ_LIMIT));
    post(qps[0], &wr);
    expect(p, "SEND to a shared queue");
    expect(p, "SEND to a shared queue");
    expect_event(p, IBV_EVENT_SRQ_LIMIT_REACHED);
    ZERO(ibv_modify_qp(qps[1], &error, IBV_QP_STATE));
    expect_event(p, IBV_EVENT_QP_LAST_WQE_REACHED);
    ZERO(ibv_destroy_qp(qps[0]));
    ZERO(ibv_destroy_qp(qps[1]));
    ZERO(ibv_destroy_srq(srq));
}

/* Events that nobody takes go with what they tell of. */
void leave_events(struct program *p)
{
    struct program own = *p;
    struct pollfd wait = {.events = POLLIN};
    struct ibv_wc wc;
    own.channel = POINTER(ibv_create_comp_channel(p->context));
    own.cq = POINTER(ibv_create_cq(p->context, 16, NULL, own.channel, 0));
    struct ibv_qp *qp = POINTER(make_qp(&own, IBV_QPT_RC, NULL));
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_sge to = part(p, TO, 64);
    connect_qp(qp, &p->gid, qp->qp_num);
    ZERO(ibv_req_notify_cq(own.cq, 0));
    post_receive(qp, &to);
    ZERO(ibv_modify_qp(qp, &error, IBV_QP_STATE));
    wait.fd = own.channel->fd;
    must(poll(&wait, 1, PATIENCE_MS) == 1, "no completion event to leave", 0);
    must(completes(&own, PATIENCE_MS, &wc) && wc.status == IBV_WC_WR_FLUSH_ERR, "no flush", 0);
    ZERO(ibv_destroy_qp(qp));
    ZERO(ibv_destroy_cq(own.cq));
    ZERO(ibv_destroy_comp_channel(own.channel));
}
