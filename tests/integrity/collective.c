/* SPDX-License-Identifier: BSD-2-Clause
 *
 * collective - moves messages between two processes as a library for collectives of GPUs does.
 *
 * Goal       Such a library finds the device, and its order of calls leaves every byte right.
 * Method     It opens libibverbs.so and looks every function up. A receiver posts receives without
 *            memory, and writes where a message may go into a ring in the sender's memory, which
 *            the sender polls. The sender spreads the message over its queue pairs by WRITE, and
 *            ends each part by a WRITE with immediate of no bytes. The receiver then reads one byte
 *            through a queue pair that is connected to itself, and compares. A thread of each
 *            sleeps for events all the time. Usage: collective QPS
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define QPS_MAX  8
#define SLOTS    4 /* Messages under way. */
#define MESSAGES 200
#define BYTES    (1 << 18)
#define ALL      (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

#define REQUIRE(true)                                                                              \
    do {                                                                                           \
        if (!(true)) {                                                                             \
            printf("collective: line %d: " #true "\n", __LINE__);                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Functions, and the nodes that they are looked up at. */
#define FUNCTIONS(f)                                                                               \
    f(ibv_fork_init) f(ibv_get_device_list) f(ibv_open_device) f(ibv_get_async_event)              \
        f(ibv_query_gid) f(ibv_alloc_pd) f(ibv_create_cq) f(ibv_create_qp) f(ibv_modify_qp)        \
            f(ibv_destroy_qp) f(ibv_destroy_cq) f(ibv_dereg_mr) f(ibv_dealloc_pd)
#define DECLARE(name) static __typeof__(name) *p_##name;
FUNCTIONS(DECLARE)
#undef ibv_reg_mr
static struct ibv_mr *(*p_ibv_reg_mr)(struct ibv_pd *pd, void *memory, size_t bytes, int access);

/* Where a message may go; `number` counts from 1. */
struct place {
    uint64_t address;
    uint32_t rkey, number;
};

/* The address that each side tells the other. */
struct address {
    union ibv_gid gid;
    uint32_t qpns[QPS_MAX];
    uint64_t ring;
    uint32_t ring_rkey;
};

static int qps;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp[QPS_MAX], *to_itself;
static struct ibv_mr *data_mr, *ring_mr;
static struct address mine, peer;
static struct place ring[SLOTS];
static uint8_t data[SLOTS][BYTES], flushed[1];
static unsigned parts[SLOTS]; /* The completions that the message there still lacks. */

static void load(void)
{
    void *library = dlopen("libibverbs.so", RTLD_NOW);
    REQUIRE(library != NULL);
#define LOOK_UP(name)                                                                              \
    *(void **)&p_##name = dlvsym(library, #name, "IBVERBS_1.1");                                   \
    REQUIRE(p_##name != NULL);
    FUNCTIONS(LOOK_UP)
    LOOK_UP(ibv_reg_mr)
}

static void *sleep_for_events(void *unused)
{
    struct ibv_async_event event;
    p_ibv_get_async_event(context, &event);
    REQUIRE(context == NULL); /* No event comes. */
    return unused;
}

static struct ibv_qp *make_qp(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 4 * SLOTS, .max_recv_wr = SLOTS, .max_send_sge = 1}};
    struct ibv_qp *made = p_ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL};
    REQUIRE(made != NULL);
    REQUIRE(p_ibv_modify_qp(made, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
            0);
    return made;
}

static void connect_qp(struct ibv_qp *one, union ibv_gid gid, uint32_t qpn)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qpn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 255}}};
    REQUIRE(p_ibv_modify_qp(one, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ==
            0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    REQUIRE(p_ibv_modify_qp(one, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void open_all(void)
{
    int count;
    REQUIRE(p_ibv_fork_init() == 0);
    struct ibv_device **list = p_ibv_get_device_list(&count);
    REQUIRE(list != NULL && count == 1);
    context = p_ibv_open_device(list[0]);
    REQUIRE(context != NULL);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, sleep_for_events, NULL) == 0);
    pd = p_ibv_alloc_pd(context);
    cq = p_ibv_create_cq(context, 8 * SLOTS * qps, NULL, NULL, 0);
    data_mr = p_ibv_reg_mr(pd, data, sizeof(data), ALL);
    ring_mr = p_ibv_reg_mr(pd, ring, sizeof(ring), ALL);
    REQUIRE(data_mr != NULL && ring_mr != NULL);
    REQUIRE(p_ibv_query_gid(context, 1, 0, &mine.gid) == 0);
    mine.ring = (uintptr_t)ring;
    mine.ring_rkey = ring_mr->rkey;
    for (int i = 0; i < qps; i++) {
        qp[i] = make_qp();
        mine.qpns[i] = qp[i]->qp_num;
    }
    to_itself = make_qp();
    connect_qp(to_itself, mine.gid, to_itself->qp_num);
}

static void post(struct ibv_qp *one, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    REQUIRE(ibv_post_send(one, wr, &bad) == 0);
}

/* -- Messages -----------------------------------------------------------------------------------*/

static uint32_t bytes_of(uint32_t number)
{
    return number % 7 == 0 ? 0 : number * 7919 % BYTES;
}

static uint8_t byte_of(uint32_t number, uint32_t at)
{
    return (uint8_t)(number * 31 + at * 7 + (at >> 8));
}

/* Whether there is a place for it. */
static bool send_message(uint32_t number)
{
    const uint32_t slot = number % SLOTS, bytes = bytes_of(number);
    if (*(volatile uint32_t *)&ring[slot].number != number) {
        return false;
    }
    atomic_thread_fence(memory_order_acquire);
    for (uint32_t at = 0; at < bytes; at++) {
        data[slot][at] = byte_of(number, at);
    }
    const uint32_t each = (bytes / (uint32_t)qps + 128) / 128 * 128;
    for (uint32_t i = 0, at = 0; i < (uint32_t)qps; i++) {
        const uint32_t count = bytes - at < each ? bytes - at : each;
        struct ibv_sge sge = {(uintptr_t)&data[slot][at], count, data_mr->lkey};
        struct ibv_send_wr last = {.wr_id = slot,
                                   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .imm_data = number};
        struct ibv_send_wr bulk = {.next = &last,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .wr.rdma = {ring[slot].address + at, ring[slot].rkey}};
        post(qp[i], &bulk);
        at += count;
    }
    parts[slot] = (unsigned)qps;
    return true;
}

static bool receive_message(uint32_t number)
{
    const uint32_t slot = number % SLOTS;
    struct ibv_recv_wr receive = {.wr_id = slot}, *bad;
    for (int i = 0; i < qps; i++) {
        REQUIRE(ibv_post_recv(qp[i], &receive, &bad) == 0);
    }
    parts[slot] = (unsigned)qps;
    ring[slot] = (struct place){(uintptr_t)data[slot], data_mr->rkey, number};
    struct ibv_sge sge = {(uintptr_t)&ring[slot], sizeof(ring[slot]), ring_mr->lkey};
    struct ibv_send_wr wr = {.wr_id = SLOTS,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {peer.ring + slot * sizeof(ring[0]), peer.ring_rkey}};
    post(qp[number % (uint32_t)qps], &wr);
    return true;
}

static void poll(void)
{
    struct ibv_wc wc;
    const int count = ibv_poll_cq(cq, 1, &wc);
    REQUIRE(count >= 0);
    if (count == 1) {
        REQUIRE(wc.status == IBV_WC_SUCCESS);
        parts[wc.wr_id % SLOTS] -= wc.wr_id < SLOTS;
    }
}

/* A message is looked at only after a READ of the receiver's own memory has been answered. */
static void check_message(uint32_t number)
{
    const uint32_t slot = number % SLOTS;
    struct ibv_mr *mr = p_ibv_reg_mr(pd, flushed, 1, ALL);
    struct ibv_sge sge = {(uintptr_t)flushed, 1, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = slot,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)data[slot], data_mr->rkey}};
    parts[slot] = 1;
    post(to_itself, &wr);
    while (parts[slot] != 0) {
        poll();
    }
    REQUIRE(flushed[0] == data[slot][0] && p_ibv_dereg_mr(mr) == 0);
    for (uint32_t at = 0; at < bytes_of(number); at++) {
        REQUIRE(data[slot][at] == byte_of(number, at));
    }
}

static void tell(int socket)
{
    REQUIRE(write(socket, &mine, sizeof(mine)) == sizeof(mine));
    REQUIRE(recv(socket, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
}

static void take_part(int socket, bool sends)
{
    load();
    open_all();
    tell(socket);
    for (int i = 0; i < qps; i++) {
        connect_qp(qp[i], peer.gid, peer.qpns[i]);
    }
    tell(socket);
    for (uint32_t begun = 1, done = 1; done <= MESSAGES; poll()) {
        if (begun <= MESSAGES && begun - done < SLOTS) {
            begun += sends ? send_message(begun) : receive_message(begun);
        }
        if (done < begun && parts[done % SLOTS] == 0) {
            if (!sends) {
                check_message(done);
            }
            done++;
        }
    }
    tell(socket);
    for (int i = 0; i < qps; i++) {
        REQUIRE(p_ibv_destroy_qp(qp[i]) == 0);
    }
    REQUIRE(p_ibv_destroy_qp(to_itself) == 0 && p_ibv_destroy_cq(cq) == 0);
    REQUIRE(p_ibv_dereg_mr(data_mr) == 0 && p_ibv_dereg_mr(ring_mr) == 0);
    REQUIRE(p_ibv_dealloc_pd(pd) == 0);
}

int main(int argc, char **argv)
{
    int sockets[2], status;
    qps = argc == 2 ? atoi(argv[1]) : 0;
    REQUIRE(qps > 0 && qps <= QPS_MAX && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        take_part(sockets[1], true);
        exit(0);
    }
    close(sockets[1]);
    take_part(sockets[0], false);
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    printf("collective: %d messages over %d queue pairs, all bytes right\n", MESSAGES, qps);
    return 0;
}
