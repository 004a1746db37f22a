/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cancelled - a program that cancels its threads (pthread_cancel) wherever they are.
 *
 * Each call is made by a thread that has been cancelled already, so that it ends at the first
 * cancellation point it comes to. It may end anywhere in a call: all other threads go on. Posting
 * and polling, which never wait, come back. A thread that waits for an event ends at once.
 */
#include <pthread.h>
#include <signal.h>

#include "tests/hostile/victim.h"

#define PATIENCE_S 20

static struct victim v;
static struct address self;
static const char *doing;
static volatile bool came_back;

static void on_alarm(int signal)
{
    (void)signal;
    fprintf(stderr, "hangs after: %s\n", doing);
    _exit(1);
}

/* -- Calls --------------------------------------------------------------------------------------*/

static void post_and_poll(void)
{
    EXPECT(victim_post(&v, IBV_WR_RDMA_WRITE, &self, 64) == 0);
    EXPECT(victim_wait(&v) == IBV_WC_SUCCESS);
}

static void post_events(void)
{
    EXPECT(ibv_req_notify_cq(v.cq, 0) == 0);
    post_and_poll();
}

static void poll_idle(void)
{
    struct ibv_wc wc;
    for (int i = 0; i < 1000; i++) {
        EXPECT(ibv_poll_cq(v.cq, 1, &wc) == 0);
    }
}

/* To a peer that is not there, so that links come and go. */
static void connect_elsewhere(void)
{
    struct ibv_qp *qp = victim_create_qp(&v);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct address other = self;
    other.gid.raw[15] ^= 3;
    EXPECT(qp != NULL);
    EXPECT(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
           0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = 77,
        .ah_attr = {.is_global = 1, .grh = {.dgid = other.gid, .hop_limit = 1}, .port_num = 1}};
    (void)ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    EXPECT(ibv_destroy_qp(qp) == 0);
}

static void make_and_destroy(void)
{
    struct ibv_cq *cq = ibv_create_cq(v.context, 4, NULL, v.channel, 0);
    struct ibv_qp *qp = victim_create_qp(&v);
    struct ibv_mr *mr = ibv_reg_mr(v.pd, v.memory, 64, VICTIM_ACCESS);
    EXPECT(cq != NULL && qp != NULL && mr != NULL);
    EXPECT(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0);
}

static void open_and_close(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    EXPECT(list != NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    EXPECT(context != NULL);
    ibv_free_device_list(list);
    EXPECT(ibv_close_device(context) == 0);
}

/* The port has a LID that is claimed when it is first asked for. */
static void query_port(void)
{
    struct ibv_port_attr port;
    EXPECT(ibv_query_port(v.context, 1, &port) == 0);
}

static void join_group(void)
{
    const union ibv_gid group = {
        .raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3}};
    struct ibv_qp_init_attr init = {
        .send_cq = v.cq,
        .recv_cq = v.cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp = ibv_create_qp(v.pd, &init);
    EXPECT(qp != NULL);
    EXPECT(ibv_attach_mcast(qp, &group, 0) == 0 && ibv_detach_mcast(qp, &group, 0) == 0);
    EXPECT(ibv_destroy_qp(qp) == 0);
}

/* Its end is cancelled while it waits. */
static void wait_for_event(void)
{
    struct ibv_cq *cq;
    void *context;
    EXPECT(ibv_get_cq_event(v.channel, &cq, &context) == 0);
}

static void wait_for_async_event(void)
{
    struct ibv_async_event event;
    EXPECT(ibv_get_async_event(v.context, &event) == 0);
}

/* -- Threads ------------------------------------------------------------------------------------*/

enum end {
    MAY_END,
    COMES_BACK, /* No cancellation point. */
    ENDS,       /* Waits. */
};

static const struct {
    const char *name;
    void (*call)(void);
    enum end end;
} calls[] = {
    {"posting and polling", post_and_poll, COMES_BACK},
    {"polling", poll_idle, COMES_BACK},
    {"events", post_events, COMES_BACK},
    {"query_port", query_port, MAY_END},
    {"modify_qp", connect_elsewhere, MAY_END},
    {"create and destroy", make_and_destroy, MAY_END},
    {"open and close", open_and_close, MAY_END},
    {"multicast", join_group, MAY_END},
    {"get_cq_event", wait_for_event, ENDS},
    {"get_async_event", wait_for_async_event, ENDS},
};

static void *cancelled(void *index)
{
    pthread_cancel(pthread_self());
    calls[(intptr_t)index].call();
    came_back = true;
    pthread_testcancel();
    return NULL;
}

static void take_event(void)
{
    struct ibv_cq *cq;
    void *context;
    EXPECT(ibv_get_cq_event(v.channel, &cq, &context) == 0);
    ibv_ack_cq_events(cq, 1);
}

static void try(size_t index)
{
    pthread_t thread;
    void *result;
    doing = calls[index].name;
    came_back = false;
    alarm(PATIENCE_S);
    EXPECT(pthread_create(&thread, NULL, cancelled, (void *)(intptr_t)index) == 0);
    EXPECT(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    if (came_back != (calls[index].end == COMES_BACK) && calls[index].end != MAY_END) {
        fprintf(stderr, "%s %s\n", doing, came_back ? "came back" : "was cancelled");
        _exit(1);
    }
    post_and_poll();
    if (calls[index].call == post_events) {
        take_event();
    }
    make_and_destroy();
    usleep(20000); /* Our thread takes over: it is told, by a call that writes, when it is woken. */
}

int main(void)
{
    signal(SIGALRM, on_alarm);
    victim_open(&v);
    self = victim_address(&v);
    victim_connect(v.qp, &self, 14, 7);
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
            try(i);
        }
    }
    return 0;
}
