/* SPDX-License-Identifier: BSD-2-Clause
 *
 * planted - a verbs program of two threads, a sender and a receiver, with one mistake of six:
 *
 *     planted wakeup    The receiver asks for an event after it polled, and does not poll again.
 *     planted credits   Each waits for the other's first word, by reading its memory.
 *     planted count     Both count in one place without a lock, and give way in between.
 *     planted queue     The sender posts on, and never polls for completions.
 *     planted late      The receiver posts its receives when the sender sends, which does not
 *                       wait for that (rnr_retry is 0).
 *     planted reuse     The sender fills its buffer again before the NIC has read it. nonic's live
 *                       NIC reads it when it is posted.
 *
 * With a second word, the program is right. It exits with 0 if all went well, and with 1 and a line
 * if not; some mistakes make it hang.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MESSAGES = 20,
    BYTES = 64,
    QUEUE = 8,
};

struct end {
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct ibv_comp_channel *channel;
    struct ibv_mr *mr;
    volatile uint8_t memory[4096];
};

static struct end ends[2];
static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;
static int is_right;
static volatile int counted;
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;

static void need(int good, const char *what)
{
    if (!good) {
        printf("failed: %s (%s)\n", what, strerror(errno));
        exit(1);
    }
}

static void open_end(struct end *end)
{
    end->channel = ibv_create_comp_channel(context);
    end->cq = ibv_create_cq(context, 64, NULL, end->channel, 0);
    struct ibv_qp_init_attr init = {.send_cq = end->cq,
                                    .recv_cq = end->cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = end == &ends[0] ? QUEUE : 2 * MESSAGES,
                                            .max_recv_wr = MESSAGES,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1}};
    end->qp = ibv_create_qp(pd, &init);
    end->mr = ibv_reg_mr(pd, (void *)(uintptr_t)end->memory, sizeof(end->memory),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    need(end->channel && end->cq && end->qp && end->mr, "objects");
}

static void connect_end(struct end *end, const struct end *peer, int rnr_retry)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    need(!ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "INIT");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qp->qp_num,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}}};
    need(!ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = 14,
                                .retry_cnt = 7,
                                .rnr_retry = (uint8_t)rnr_retry,
                                .max_rd_atomic = 1};
    need(!ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
}

static int post_send(struct end *end, int signaled)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, BYTES, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = signaled ? IBV_SEND_SIGNALED : 0},
                       *bad;
    return ibv_post_send(end->qp, &wr, &bad);
}

static void post_receive_at(struct end *end, unsigned at)
{
    struct ibv_sge sge = {(uintptr_t)end->memory + at, BYTES, end->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    need(!ibv_post_recv(end->qp, &wr, &bad), "a receive");
}

static void post_receive(struct end *end)
{
    post_receive_at(end, 2048);
}

static void write_word(struct end *end, const struct end *peer, int at)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, 1, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)peer->memory + (unsigned)at, peer->mr->rkey}},
                       *bad;
    end->memory[0] = 1;
    need(!ibv_post_send(end->qp, &wr, &bad), "a write");
}

static void reap(struct end *end)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(end->cq, 1, &wc) == 0) {
    }
    need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

/* The next completion of the receiver, which sleeps until there is one. */
static void sleep_for_completion(struct end *end)
{
    struct ibv_wc wc;
    struct ibv_cq *cq;
    void *of_cq;
    while (ibv_poll_cq(end->cq, 1, &wc) == 0) {
        need(!ibv_req_notify_cq(end->cq, 0), "a wish for an event");
        /* A message that came since the poll tells nobody. */
        if (is_right && ibv_poll_cq(end->cq, 1, &wc) == 1) {
            return;
        }
        need(!ibv_get_cq_event(end->channel, &cq, &of_cq), "an event");
        ibv_ack_cq_events(cq, 1);
    }
}

static void *receive_sleeping(void *unused)
{
    for (int i = 0; i < MESSAGES; i++) {
        sleep_for_completion(&ends[1]);
        need(!post_send(&ends[1], 0), "an answer");
    }
    return unused;
}

static void wakeup(void)
{
    pthread_t receiver;
    for (int i = 0; i < MESSAGES; i++) {
        post_receive(&ends[0]);
        post_receive(&ends[1]);
    }
    pthread_create(&receiver, NULL, receive_sleeping, NULL);
    for (int i = 0; i < MESSAGES; i++) {
        need(!post_send(&ends[0], 1), "a send");
        reap(&ends[0]);
        reap(&ends[0]); /* the answer */
        usleep(30);
    }
    pthread_join(receiver, NULL);
}

static void *credit_of_peer(void *unused)
{
    if (!is_right) {
        while (!ends[1].memory[100]) {
        }
    }
    write_word(&ends[1], &ends[0], 100);
    while (!ends[1].memory[100]) {
    }
    return unused;
}

static void credits(void)
{
    pthread_t peer;
    pthread_create(&peer, NULL, credit_of_peer, NULL);
    while (!ends[0].memory[100]) {
    }
    write_word(&ends[0], &ends[1], 100);
    pthread_join(peer, NULL);
}

static void *count_twenty(void *of)
{
    struct end *end = of;
    for (int i = 0; i < MESSAGES; i++) {
        if (is_right) {
            pthread_mutex_lock(&count_lock);
        }
        const int before = counted;
        if (i % 4 == 0) {
            need(!post_send(end, 1), "a send");
        }
        counted = before + 1;
        if (is_right) {
            pthread_mutex_unlock(&count_lock);
        }
        if (i % 4 == 0) {
            reap(end);
        }
    }
    return NULL;
}

static void *receive_polling(void *of)
{
    for (int i = 0; i < MESSAGES / 4; i++) {
        post_receive(of);
    }
    return NULL;
}

/* Each end sends by its own queue pair, so each has completions of receives as well. */
static void count(void)
{
    pthread_t other;
    receive_polling(&ends[0]);
    receive_polling(&ends[1]);
    pthread_create(&other, NULL, count_twenty, &ends[1]);
    count_twenty(&ends[0]);
    pthread_join(other, NULL);
    if (counted != 2 * MESSAGES) {
        printf("failed: %d of %d were counted\n", counted, 2 * MESSAGES);
        exit(1);
    }
}

static void queue(void)
{
    for (int i = 0; i < MESSAGES; i++) {
        post_receive(&ends[1]);
    }
    for (int i = 0; i < MESSAGES; i++) {
        const int full = post_send(&ends[0], is_right);
        if (full) {
            printf("failed: send %d: %s\n", i, strerror(full));
            exit(1);
        }
        if (is_right) {
            reap(&ends[0]);
        }
    }
}

static void *receive_late(void *unused)
{
    for (int i = 0; i < MESSAGES; i++) {
        post_receive(&ends[1]);
    }
    return unused;
}

static void late(void)
{
    pthread_t receiver;
    pthread_create(&receiver, NULL, receive_late, NULL);
    if (is_right) {
        pthread_join(receiver, NULL);
    }
    usleep(20);
    for (int i = 0; i < MESSAGES; i++) {
        need(!post_send(&ends[0], 1), "a send");
        reap(&ends[0]);
    }
    if (!is_right) {
        pthread_join(receiver, NULL);
    }
}

static void reuse(void)
{
    for (unsigned i = 0; i < QUEUE; i++) {
        post_receive_at(&ends[1], 2048 + i * BYTES);
    }
    for (int i = 0; i < QUEUE; i++) {
        memset((void *)(uintptr_t)ends[0].memory, i + 1, BYTES);
        need(!post_send(&ends[0], 1), "a send");
        if (is_right) {
            reap(&ends[0]);
        }
    }
    for (int i = 0; i < QUEUE; i++) {
        reap(&ends[1]);
        for (int byte = 0; byte < BYTES; byte++) {
            if (ends[1].memory[2048 + i * BYTES + byte] != i + 1) {
                printf("failed: message %d has bytes of a later one\n", i);
                exit(1);
            }
        }
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} kinds[] = {{"wakeup", wakeup}, {"credits", credits}, {"count", count},
             {"queue", queue},   {"late", late},       {"reuse", reuse}};

int main(int argc, char **argv)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    need(devices != NULL && devices[0] != NULL, "a device");
    context = ibv_open_device(devices[0]);
    need(context != NULL && !ibv_query_gid(context, 1, 0, &gid), "a context");
    pd = ibv_alloc_pd(context);
    is_right = argc > 2;
    open_end(&ends[0]);
    open_end(&ends[1]);
    const int rnr_retry = argc > 1 && strcmp(argv[1], "late") == 0 ? 0 : 7;
    connect_end(&ends[0], &ends[1], rnr_retry);
    connect_end(&ends[1], &ends[0], rnr_retry);
    for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].run();
            puts("all is well");
            return 0;
        }
    }
    puts("usage: planted wakeup|credits|count|queue|late|reuse [right]");
    return 2;
}
