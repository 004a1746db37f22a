/* SPDX-License-Identifier: BSD-2-Clause
 *
 * queues - mistakes with slots, completions and events.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/zoo/zoo.h"

/* No request is signaled, so that no completion ever frees a slot of the send queue. nonic frees it
 * when the request is done; hardware refuses the fifth one (ENOMEM), and all after it. */
static void never_signaled(bool right)
{
    for (int i = 0; i < 2 * SENDS; i++) {
        const bool signaled = right && i % SENDS == SENDS - 1;
        send_one((struct message){.opcode = IBV_WR_RDMA_WRITE,
                                  .flags = signaled ? IBV_SEND_SIGNALED : 0});
        usleep(20000);
        take(a.cq, signaled);
    }
}

/* It knows by other means that its requests are done, and does not poll their completions. Hardware
 * gives slots back when completions are polled, and refuses the fifth request. */
static void send_slots(bool right)
{
    for (int i = 0; i < 2 * SENDS; i++) {
        send_one((struct message){.opcode = IBV_WR_RDMA_WRITE, .flags = IBV_SEND_SIGNALED});
        usleep(20000);
        take(a.cq, right);
    }
    take(a.cq, right ? 0 : 2 * SENDS);
}

/* Likewise receives. */
static void receive_slots(bool right)
{
    for (int i = 0; i < 2 * RECEIVES; i++) {
        receive_one();
        send_one((struct message){.opcode = IBV_WR_SEND, .flags = IBV_SEND_SIGNALED});
        take(a.cq, 1);
        if (right) {
            take(b.cq, 1);
        }
    }
    take(b.cq, right ? 0 : 2 * RECEIVES);
}

/* Four requests and three receives complete to a completion queue of six entries. It is enough as
 * long as the program polls in time. */
static void cq_room(bool right)
{
    struct ibv_cq *cq = ibv_create_cq(a.context, right ? 16 : 6, NULL, NULL, 0);
    struct ibv_qp *one = another_qp(IBV_QPT_RC, cq), *other = another_qp(IBV_QPT_RC, cq);
    join(one, other);
    for (int i = 0; i < SENDS; i++) {
        send_one((struct message){.qp = one,
                                  .opcode = IBV_WR_RDMA_READ,
                                  .to = (uintptr_t)a.memory + 2 * BYTES,
                                  .flags = IBV_SEND_SIGNALED});
        if (i == 0) {
            for (int j = 0; j < SENDS - 1; j++) {
                struct ibv_sge sge = {.addr = (uintptr_t)a.memory, .length = 8, .lkey = a.mr->lkey};
                struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
                EXPECT(ibv_post_recv(other, &wr, &bad) == 0);
            }
        }
    }
    EXPECT(ibv_destroy_qp(one) == 0 && ibv_destroy_qp(other) == 0 && ibv_destroy_cq(cq) == 0);
}

/* Two requests to a queue pair that has failed end at once, with two completions. */
static struct ibv_qp *complete_two(struct ibv_cq *cq)
{
    struct ibv_qp *qp = another_qp(IBV_QPT_RC, cq);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    join(qp, qp);
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
    for (int i = 0; i < 2; i++) {
        send_one((struct message){.qp = qp, .opcode = IBV_WR_SEND, .flags = IBV_SEND_SIGNALED});
    }
    return qp;
}

/* More completions come than the queue has room for. The queue and its queue pairs have failed, on
 * hardware as here, and ibv_poll_cq says so. */
static void cq_overrun(bool right)
{
    struct ibv_cq *cq = ibv_create_cq(a.context, right ? 2 : 1, NULL, NULL, 0);
    struct ibv_qp *qp = complete_two(cq);
    struct ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) > 0) {
    }
    EXPECT(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
}

/* It goes on polling a queue that has failed, as a loop does that takes -1 for "nothing yet". */
static void poll_failed(bool right)
{
    struct ibv_cq *cq = ibv_create_cq(a.context, 1, NULL, NULL, 0);
    struct ibv_qp *qp = complete_two(cq);
    struct ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) >= 0) {
    }
    if (!right) {
        EXPECT(ibv_poll_cq(cq, 1, &wc) == -1);
    }
    EXPECT(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
}

static void *write_later(void *nothing)
{
    (void)nothing;
    usleep(300000);
    receive_one();
    send_one((struct message){.opcode = IBV_WR_SEND, .flags = IBV_SEND_SIGNALED});
    return NULL;
}

/* It asks for an event, and waits, without looking whether something came in between. If nothing
 * comes after it, the program sleeps for ever; here a second message wakes it. */
static void lost_wakeup(bool right)
{
    struct ibv_cq *cq;
    void *context;
    pthread_t later;
    receive_one();
    send_one((struct message){.opcode = IBV_WR_SEND, .flags = IBV_SEND_SIGNALED});
    take(a.cq, 1);
    EXPECT(ibv_req_notify_cq(b.cq, 0) == 0);
    if (right) {
        take(b.cq, 1);
    }
    EXPECT(pthread_create(&later, NULL, write_later, NULL) == 0);
    EXPECT(ibv_get_cq_event(b.channel, &cq, &context) == 0);
    ibv_ack_cq_events(cq, 1);
    take(b.cq, right ? 1 : 2);
    pthread_join(later, NULL);
    take(a.cq, 1);
}

static void *acknowledge_later(void *nothing)
{
    (void)nothing;
    usleep(1500000);
    ibv_ack_cq_events(b.cq, 1);
    return NULL;
}

/* It never acknowledges an event: ibv_destroy_cq waits for ever. Here somebody helps it, so that
 * the test ends. */
static void events_unacked(bool right)
{
    struct ibv_cq *cq;
    void *context;
    pthread_t later;
    receive_one();
    EXPECT(ibv_req_notify_cq(b.cq, 0) == 0);
    send_one((struct message){.opcode = IBV_WR_SEND, .flags = IBV_SEND_SIGNALED});
    EXPECT(ibv_get_cq_event(b.channel, &cq, &context) == 0);
    take(a.cq, 1);
    take(b.cq, 1);
    if (right) {
        ibv_ack_cq_events(cq, 1);
        return;
    }
    EXPECT(ibv_destroy_qp(b.qp) == 0);
    EXPECT(pthread_create(&later, NULL, acknowledge_later, NULL) == 0);
    EXPECT(ibv_destroy_cq(b.cq) == 0);
    pthread_join(later, NULL);
    _exit(0);
}

/* It acknowledges events that it did not take: ibv_destroy_cq waits for ever. */
static void events_overacked(bool right)
{
    ibv_ack_cq_events(b.cq, right ? 0 : 1);
    if (!right) {
        _exit(0);
    }
}

static void *arm_later(void *nothing)
{
    usleep(100000);
    EXPECT(ibv_req_notify_cq(a.cq, 0) == 0);
    send_one((struct message){.opcode = IBV_WR_RDMA_WRITE, .flags = IBV_SEND_SIGNALED});
    return nothing;
}

/* It waits for an event that it has not asked for: for ever, unless another thread asks. */
static void not_armed(bool right)
{
    struct ibv_cq *cq;
    void *context;
    pthread_t later;
    if (right) {
        EXPECT(ibv_req_notify_cq(a.cq, 0) == 0);
    }
    EXPECT(pthread_create(&later, NULL, arm_later, NULL) == 0);
    EXPECT(ibv_get_cq_event(a.channel, &cq, &context) == 0);
    pthread_join(later, NULL);
    take(a.cq, 1);
    ibv_ack_cq_events(cq, 1);
}

static struct ibv_async_event event;

static void *acknowledge_async_later(void *nothing)
{
    usleep(1500000);
    ibv_ack_async_event(&event);
    return nothing;
}

/* It does not acknowledge the event that its queue pair takes no more receives of the shared queue,
 * and waits for ever when it destroys it. */
static void async_unacked(bool right)
{
    pthread_t later;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_srq_init_attr shape = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(a.pd, &shape);
    EXPECT(srq != NULL);
    struct ibv_qp_init_attr request = {.send_cq = a.cq,
                                       .recv_cq = a.cq,
                                       .srq = srq,
                                       .cap = {.max_send_wr = SENDS, .max_send_sge = 1},
                                       .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(a.pd, &request);
    EXPECT(qp != NULL);
    join(qp, qp);
    EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
    EXPECT(ibv_get_async_event(a.context, &event) == 0);
    EXPECT(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
    if (right) {
        ibv_ack_async_event(&event);
    } else {
        EXPECT(pthread_create(&later, NULL, acknowledge_async_later, NULL) == 0);
    }
    EXPECT(ibv_destroy_qp(qp) == 0 && ibv_destroy_srq(srq) == 0);
    if (!right) {
        pthread_join(later, NULL);
    }
}

/* Each request is signaled, though several are posted at a time: hardware writes a completion for
 * each, and the program polls it. */
static void signal_each(bool right)
{
    for (int i = 1; i <= 1200; i++) {
        const bool last = i % SENDS == 0;
        send_one((struct message){.opcode = IBV_WR_RDMA_WRITE,
                                  .flags = !right || last ? IBV_SEND_SIGNALED : 0});
        if (last) {
            take(a.cq, right ? 1 : SENDS);
        }
    }
}

/* Each event is acknowledged by a call of its own, which takes a mutex. */
static void ack_each(bool right)
{
    struct ibv_cq *cq;
    void *context;
    for (int i = 1; i <= 1100; i++) {
        EXPECT(ibv_req_notify_cq(a.cq, 0) == 0);
        send_one((struct message){.opcode = IBV_WR_RDMA_WRITE, .flags = IBV_SEND_SIGNALED});
        EXPECT(ibv_get_cq_event(a.channel, &cq, &context) == 0);
        take(a.cq, 1);
        if (!right || i % 100 == 0) {
            ibv_ack_cq_events(a.cq, right ? 100 : 1);
        }
    }
}

static void *receive_later(void *nothing)
{
    (void)nothing;
    usleep(100000);
    receive_one();
    return NULL;
}

/* The peer posts its receive after the message. It is sent again after a pause; with rnr_retry 0 on
 * hardware the connection would have ended. */
static void rnr_seen(bool right)
{
    pthread_t later;
    struct ibv_qp_attr attr = {.min_rnr_timer = 24}; /* 41 ms */
    EXPECT(ibv_modify_qp(b.qp, &attr, IBV_QP_MIN_RNR_TIMER) == 0);
    if (right) {
        receive_one();
    } else {
        EXPECT(pthread_create(&later, NULL, receive_later, NULL) == 0);
    }
    send_one((struct message){.opcode = IBV_WR_SEND, .flags = IBV_SEND_SIGNALED});
    take(a.cq, 1);
    take(b.cq, 1);
    if (!right) {
        pthread_join(later, NULL);
    }
}

static void send_to_itself(bool with_receive, uint32_t qkey)
{
    struct ibv_cq *cq = ibv_create_cq(a.context, 16, NULL, NULL, 0);
    struct ibv_qp *qp = another_qp(IBV_QPT_UD, cq);
    struct ibv_ah *ah = datagrams(qp);
    if (with_receive) {
        receive_datagram(qp);
    }
    send_datagram(qp, ah, qkey);
    take(cq, with_receive && qkey == 1 ? 2 : 1);
    usleep(50000);
    EXPECT(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_destroy_ah(ah) == 0);
}

/* The datagram has another Q_Key than the queue pair that it goes to: it is dropped, and nobody is
 * told, on hardware as here. */
static void qkey(bool right)
{
    send_to_itself(true, right ? 1 : 2);
}

/* A datagram comes when no receive is posted: it is dropped, and nobody is told. */
static void no_receive(bool right)
{
    send_to_itself(right, 1);
}

/* Two threads poll one queue. */
static struct {
    struct ibv_cq *cq;
    bool takes_turns;
    pthread_mutex_t turn;
    atomic_bool over;
} shared = {.turn = PTHREAD_MUTEX_INITIALIZER};

static void *one_thread(void *nothing)
{
    struct ibv_wc wc;
    while (!shared.over) {
        if (shared.takes_turns) {
            pthread_mutex_lock(&shared.turn);
        }
        (void)!ibv_poll_cq(shared.cq, 1, &wc);
        if (shared.takes_turns) {
            pthread_mutex_unlock(&shared.turn);
        }
    }
    return nothing;
}

/* The queue is made for a single thread, so that hardware's driver takes no lock: two threads get
 * one completion twice, or lose one. */
static void two_threads(bool right)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 4,
                                       .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
                                       .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(a.context, &attr);
    pthread_t threads[2];
    EXPECT(cq != NULL);
    shared.cq = ibv_cq_ex_to_cq(cq);
    shared.takes_turns = right;
    for (int i = 0; i < 2; i++) {
        EXPECT(pthread_create(&threads[i], NULL, one_thread, NULL) == 0);
    }
    usleep(200000);
    shared.over = true;
    for (int i = 0; i < 2; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
    EXPECT(ibv_destroy_cq(shared.cq) == 0);
}

const struct mistake queue_mistakes[] = {
    {"never-signaled", never_signaled},
    {"send-slots", send_slots},
    {"receive-slots", receive_slots},
    {"cq-room", cq_room},
    {"cq-overrun", cq_overrun},
    {"poll-failed", poll_failed},
    {"lost-wakeup", lost_wakeup},
    {"events-unacked", events_unacked},
    {"events-overacked", events_overacked},
    {"not-armed", not_armed},
    {"async-unacked", async_unacked},
    {"signal-each", signal_each},
    {"ack-each", ack_each},
    {"rnr-seen", rnr_seen},
    {"rnr-sent", rnr_seen},
    {"one-thread", two_threads},
    {"qkey", qkey},
    {"no-receive", no_receive},
    {NULL, NULL},
};
