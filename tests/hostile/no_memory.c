/* SPDX-License-Identifier: BSD-2-Clause
 *
 * no_memory - a program whose memory is used up while it waits for events: it wakes all the same.
 * No completion event is lost. Asynchronous events come as long as there is room for them; the
 * program is also told that there was none.
 */
#include <errno.h>
#include <poll.h>

#include "tests/hostile/victim.h"

#define PATIENCE_MS 20000
#define QPS         64

static volatile bool used_up;

/* The C library's, which are found behind the program's. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);

void *malloc(size_t bytes)
{
    errno = ENOMEM;
    return used_up ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    errno = ENOMEM;
    return used_up ? NULL : __libc_calloc(count, bytes);
}

static bool is_readable(int fd, int patience_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, patience_ms) == 1;
}

static void wait_for_completion(struct victim *v)
{
    struct ibv_cq *cq;
    void *context;
    const struct address self = victim_address(v);
    victim_connect(v->qp, &self, 14, 7);
    /* The way to the peer takes memory. */
    EXPECT(victim_post(v, IBV_WR_RDMA_WRITE, &self, 8) == 0);
    EXPECT(victim_wait(v) == IBV_WC_SUCCESS);
    EXPECT(ibv_req_notify_cq(v->cq, 0) == 0);
    used_up = true;
    EXPECT(victim_post(v, IBV_WR_RDMA_WRITE, &self, 8) == 0);
    EXPECT(is_readable(v->channel->fd, PATIENCE_MS));
    EXPECT(ibv_get_cq_event(v->channel, &cq, &context) == 0 && cq == v->cq);
    used_up = false;
    ibv_ack_cq_events(cq, 1);
    EXPECT(victim_wait(v) == IBV_WC_SUCCESS);
}

/* Each queue pair of a shared receive queue that fails says so. */
static void wait_for_many(struct victim *v)
{
    struct ibv_qp *qps[QPS];
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(v->pd, &shared);
    EXPECT(srq != NULL);
    for (int i = 0; i < QPS; i++) {
        struct ibv_qp_init_attr made = {
            .send_cq = v->cq, .recv_cq = v->cq, .srq = srq, .qp_type = IBV_QPT_RC};
        EXPECT((qps[i] = ibv_create_qp(v->pd, &made)) != NULL);
        EXPECT(ibv_modify_qp(qps[i], &init,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                 IBV_QP_ACCESS_FLAGS) == 0);
    }
    used_up = true;
    for (int i = 0; i < QPS; i++) {
        EXPECT(ibv_modify_qp(qps[i], &error, IBV_QP_STATE) == 0);
    }
    /* The thread that makes progress next reports the events. */
    struct ibv_wc wc;
    EXPECT(ibv_poll_cq(v->cq, 1, &wc) == 0);
    int told = 0;
    enum ibv_event_type last = IBV_EVENT_QP_LAST_WQE_REACHED;
    while (last != IBV_EVENT_DEVICE_FATAL) {
        struct ibv_async_event event;
        EXPECT(is_readable(v->context->async_fd, PATIENCE_MS));
        EXPECT(ibv_get_async_event(v->context, &event) == 0);
        last = event.event_type;
        told += last == IBV_EVENT_QP_LAST_WQE_REACHED;
        ibv_ack_async_event(&event);
    }
    EXPECT(told > 0 && told < QPS);
    used_up = false;
    EXPECT(!is_readable(v->context->async_fd, 0));
    for (int i = 0; i < QPS; i++) {
        EXPECT(ibv_destroy_qp(qps[i]) == 0);
    }
    EXPECT(ibv_destroy_srq(srq) == 0);
}

int main(void)
{
    struct victim v;
    victim_open(&v);
    wait_for_completion(&v);
    for (int round = 0; round < 3; round++) {
        wait_for_many(&v);
    }
    return 0;
}
