/* SPDX-License-Identifier: BSD-2-Clause
 *
 * stream - an ordinary verbs program that writes to a peer, and says how it went as time passed.
 *
 * Usage: stream [--clients N] PORT            the peer of N clients, which all begin together
 *        stream [--size BYTES] [--depth N] [--seconds S] [--events] HOST PORT
 * A client has --depth RDMA WRITEs of --size bytes under way on one RC queue pair. It prints one
 * line of JSON: the time of its begin, in seconds of CLOCK_MONOTONIC; the bytes that completed in
 * each 10 ms since then; the times of messages from ibv_post_send to their completion, in
 * microseconds; and the error that ended it, or null. With --events it sleeps while nothing
 * completes, as many senders on few processors must. perftest does not show such a course of time,
 * and it halves the time of a message.
 */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 64
#define DEPTH_MAX   256
#define SIZE_MAX_B  (16u << 20)
#define SLOT_S      0.01
#define SLOTS       6000 /* A minute. */
#define TIMES_MAX   (1 << 20)

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        fprintf(stderr, "stream: " __VA_ARGS__);                                                   \
        fprintf(stderr, "\n");                                                                     \
        exit(1);                                                                                   \
    } while (0)

/* Each side sends this to the other one. */
struct address {
    uint32_t qpn, rkey;
    uint64_t memory;
    union ibv_gid gid;
    uint32_t mtu, size;
};

struct connection {
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_cq *cq;
    struct ibv_comp_channel *channel;
    struct address ours, theirs;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static uint32_t size = 65536, depth = 64;
static double seconds = 1;
static bool events;
static uint64_t slots[SLOTS]; /* Bytes that completed in each. */
static float *times_us;
static uint32_t times;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* -- Connections --------------------------------------------------------------------------------*/

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (list == NULL || list[0] == NULL || (context = ibv_open_device(list[0])) == NULL) {
        FAIL("no device");
    }
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    if (pd == NULL) {
        FAIL("ibv_alloc_pd");
    }
}

static void make_connection(struct connection *c, uint32_t bytes)
{
    uint8_t *memory = aligned_alloc(4096, (bytes + 4095u) / 4096 * 4096);
    struct ibv_port_attr port;
    c->channel = events ? ibv_create_comp_channel(context) : NULL;
    c->cq = ibv_create_cq(context, DEPTH_MAX, NULL, c->channel, 0);
    if (memory == NULL || c->cq == NULL || ibv_query_port(context, 1, &port) != 0) {
        FAIL("no memory or no port");
    }
    memset(memory, 0x5a, bytes);
    c->mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_qp_init_attr init = {
        .send_cq = c->cq,
        .recv_cq = c->cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = DEPTH_MAX, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    c->qp = ibv_create_qp(pd, &init);
    if (c->mr == NULL || c->qp == NULL) {
        FAIL("no queue pair: %s", strerror(errno));
    }
    c->ours = (struct address){.qpn = c->qp->qp_num,
                               .rkey = c->mr->rkey,
                               .memory = (uintptr_t)memory,
                               .mtu = port.active_mtu,
                               .size = bytes};
    if (ibv_query_gid(context, 1, 0, &c->ours.gid) != 0) {
        FAIL("ibv_query_gid");
    }
}

/* Timeout and retries are perftest's. */
static void connect_pair(struct connection *c)
{
    const uint32_t mtu = c->ours.mtu < c->theirs.mtu ? c->ours.mtu : c->theirs.mtu;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    int bad = ibv_modify_qp(c->qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = (enum ibv_mtu)mtu,
                                .dest_qp_num = c->theirs.qpn,
                                .max_dest_rd_atomic = 1,
                                .min_rnr_timer = 12,
                                .ah_attr = {.is_global = 1,
                                            .port_num = 1,
                                            .grh = {.dgid = c->theirs.gid, .hop_limit = 64}}};
    bad |= ibv_modify_qp(c->qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    bad |= ibv_modify_qp(c->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (bad) {
        FAIL("ibv_modify_qp");
    }
}

static void tell(int fd, const void *what, size_t bytes)
{
    if (write(fd, what, bytes) != (ssize_t)bytes) {
        FAIL("the peer is gone");
    }
}

static void hear(int fd, void *what, size_t bytes)
{
    if (recv(fd, what, bytes, MSG_WAITALL) != (ssize_t)bytes) {
        FAIL("the peer is gone");
    }
}

/* -- The peer of all clients --------------------------------------------------------------------*/

static int listening(const char *port)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, (const struct sockaddr *)&any, sizeof(any)) != 0 || listen(fd, CLIENTS_MAX) != 0) {
        FAIL("port %s: %s", port, strerror(errno));
    }
    return fd;
}

static void serve(const char *port, int clients)
{
    struct connection c[CLIENTS_MAX];
    int fds[CLIENTS_MAX];
    const int fd = listening(port);
    for (int i = 0; i < clients; i++) {
        fds[i] = accept(fd, NULL, NULL);
        hear(fds[i], &c[i].theirs, sizeof(c[i].theirs));
        make_connection(&c[i], c[i].theirs.size);
        connect_pair(&c[i]);
        tell(fds[i], &c[i].ours, sizeof(c[i].ours));
    }
    for (int i = 0; i < clients; i++) {
        tell(fds[i], "go", 2);
    }
    for (int i = 0; i < clients; i++) {
        char nothing;
        while (read(fds[i], &nothing, 1) > 0) {
        }
    }
}

/* -- A client -----------------------------------------------------------------------------------*/

static int reach(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (getaddrinfo(host, port, &hints, &found) != 0) {
        FAIL("no such host: %s", host);
    }
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        FAIL("%s port %s: %s", host, port, strerror(errno));
    }
    freeaddrinfo(found);
    return fd;
}

static void post(struct connection *c, double *posted, uint32_t index)
{
    struct ibv_sge sge = {c->ours.memory, size, c->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = index,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .wr.rdma = {.remote_addr = c->theirs.memory, .rkey = c->theirs.rkey}},
                       *bad;
    posted[index] = now();
    const int reason = ibv_post_send(c->qp, &wr, &bad);
    if (reason != 0) {
        FAIL("ibv_post_send: %s", strerror(reason));
    }
}

static void note(double began, double posted, double at)
{
    const size_t slot = (size_t)((at - began) / SLOT_S);
    slots[slot < SLOTS ? slot : SLOTS - 1] += size;
    if (times < TIMES_MAX) {
        times_us[times++] = (float)((at - posted) * 1e6);
    }
}

/* A completion that comes after this wakes us. Earlier ones are polled before we sleep. */
static void sleep_until_one(struct connection *c)
{
    struct ibv_cq *cq;
    void *unused;
    if (ibv_get_cq_event(c->channel, &cq, &unused) != 0 || ibv_req_notify_cq(c->cq, 0) != 0) {
        FAIL("no event");
    }
    ibv_ack_cq_events(cq, 1);
}

/* Until the time is over, whatever is still under way. Returns the status of the first completion
 * that has failed, or IBV_WC_SUCCESS. */
static enum ibv_wc_status stream(struct connection *c, double began)
{
    double posted[DEPTH_MAX];
    if (events && ibv_req_notify_cq(c->cq, 0) != 0) {
        FAIL("no events");
    }
    for (uint32_t i = 0; i < depth; i++) {
        post(c, posted, i);
    }
    for (double at = now(); at - began < seconds;) {
        struct ibv_wc wcs[16];
        const int count = ibv_poll_cq(c->cq, 16, wcs);
        at = now();
        if (count < 0) {
            FAIL("ibv_poll_cq");
        }
        if (count == 0 && events) {
            sleep_until_one(c);
        }
        for (int i = 0; i < count; i++) {
            if (wcs[i].status != IBV_WC_SUCCESS) {
                return wcs[i].status;
            }
            note(began, posted[wcs[i].wr_id], at);
            post(c, posted, (uint32_t)wcs[i].wr_id);
        }
    }
    return IBV_WC_SUCCESS;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double quantile(double share)
{
    return times == 0 ? 0 : (double)times_us[(uint32_t)(share * (double)(times - 1))];
}

static void print_result(double began, enum ibv_wc_status status)
{
    qsort(times_us, times, sizeof(*times_us), by_value);
    printf(
        "{\"began\": %.6f, \"slot_s\": %.3f, \"messages\": %u, \"p50_us\": %.2f, \"p99_us\": %.2f, "
        "\"p999_us\": %.2f, \"max_us\": %.2f, \"bytes\": [",
        began, SLOT_S, times, quantile(0.5), quantile(0.99), quantile(0.999), quantile(1));
    size_t last = (size_t)(seconds / SLOT_S);
    for (size_t i = 0; i < last && i < SLOTS; i++) {
        printf("%s%" PRIu64, i == 0 ? "" : ",", slots[i]);
    }
    if (status == IBV_WC_SUCCESS) {
        printf("], \"error\": null}\n");
    } else {
        printf("], \"error\": \"%s\"}\n", ibv_wc_status_str(status));
    }
}

static int write_to(const char *host, const char *port)
{
    struct connection c;
    char go[2];
    times_us = malloc(TIMES_MAX * sizeof(*times_us));
    if (times_us == NULL) {
        FAIL("no memory");
    }
    make_connection(&c, size);
    const int fd = reach(host, port);
    tell(fd, &c.ours, sizeof(c.ours));
    hear(fd, &c.theirs, sizeof(c.theirs));
    connect_pair(&c);
    hear(fd, go, sizeof(go));
    const double began = now();
    const enum ibv_wc_status status = stream(&c, began);
    print_result(began, status);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"clients", required_argument, NULL, 'c'}, {"size", required_argument, NULL, 's'},
        {"depth", required_argument, NULL, 'd'},   {"seconds", required_argument, NULL, 't'},
        {"events", no_argument, NULL, 'e'},        {NULL, 0, NULL, 0}};
    int clients = 1, option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c': clients = atoi(optarg); break;
        case 's': size = (uint32_t)strtoul(optarg, NULL, 10); break;
        case 'd': depth = (uint32_t)strtoul(optarg, NULL, 10); break;
        case 't': seconds = atof(optarg); break;
        case 'e': events = true; break;
        default: return 2;
        }
    }
    if (clients < 1 || clients > CLIENTS_MAX || size < 1 || size > SIZE_MAX_B || depth < 1 ||
        depth > DEPTH_MAX || seconds <= 0 || seconds > SLOTS * SLOT_S || argc - optind < 1) {
        fprintf(stderr, "usage: stream [--clients N] PORT, or stream [--size BYTES] [--depth N] "
                        "[--seconds S] [--events] HOST PORT\n");
        return 2;
    }
    open_device();
    if (argc - optind == 1) {
        serve(argv[optind], clients);
        return 0;
    }
    return write_to(argv[optind], argv[optind + 1]);
}
