/* SPDX-License-Identifier: BSD-2-Clause
 *
 * races - a program that touches memory which is its NIC's at that time: ThreadSanitizer says so,
 * and of the right twin it says nothing.
 *
 * Usage: races MISTAKE [right], under `nonic run`
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "tests/hostile/victim.h"

enum {
    BYTES = 64,
    RECEIVED = 1024, /* Where receives are, in B's memory. */
};

static struct victim a, b;
static struct address of_a, of_b;
static bool is_right;

static void post(enum ibv_wr_opcode opcode, char *memory, unsigned int flags)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = BYTES, .lkey = a.mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = flags,
                                   .wr.rdma = {of_b.memory, of_b.rkey}};
    EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
}

static void receive(void)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)b.memory + RECEIVED, .length = BYTES, .lkey = b.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    EXPECT(ibv_post_recv(b.qp, &wr, &bad) == 0);
}

/* It fills the buffer of a message that is not known to be sent. */
static void sent(void)
{
    receive();
    post(IBV_WR_SEND, a.memory, IBV_SEND_SIGNALED);
    if (is_right) {
        EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    }
    a.memory[3] = 1;
}

/* It reads a receive before its completion. */
static void received(void)
{
    receive();
    post(IBV_WR_SEND, a.memory, IBV_SEND_SIGNALED);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    if (is_right) {
        EXPECT(victim_wait(&b) == IBV_WC_SUCCESS);
    }
    EXPECT(b.memory[RECEIVED + 3] == 0);
}

/* It looks at what a READ brings before the READ is complete. */
static void read_target(void)
{
    post(IBV_WR_RDMA_READ, a.memory, IBV_SEND_SIGNALED);
    if (is_right) {
        EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    }
    EXPECT(a.memory[3] == 0);
}

/* The completion of the first message says nothing of the second one's buffer. */
static void order(void)
{
    receive();
    receive();
    post(IBV_WR_SEND, a.memory, IBV_SEND_SIGNALED);
    post(IBV_WR_SEND, a.memory + BYTES, IBV_SEND_SIGNALED);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    a.memory[is_right ? 3 : BYTES + 3] = 1;
}

/* A message that is not signaled is covered by the completion of a later one, not by nothing. */
static void unsignaled(void)
{
    receive();
    receive();
    post(IBV_WR_SEND, a.memory, 0);
    post(IBV_WR_SEND, a.memory + BYTES, is_right ? IBV_SEND_SIGNALED : 0);
    if (is_right) {
        EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    } else {
        EXPECT(victim_wait(&b) == IBV_WC_SUCCESS);
    }
    a.memory[3] = 1;
}

/* Inline data were copied; other data are not. */
static void inlined(void)
{
    receive();
    post(IBV_WR_SEND, a.memory, IBV_SEND_SIGNALED | (is_right ? IBV_SEND_INLINE : 0));
    a.memory[3] = 1;
}

/* A peer's WRITE, seen by a plain loop, and by an acquiring load. */
static void written(void)
{
    uint64_t *flag = (uint64_t *)(void *)(b.memory + BYTES - 8);
    *(uint64_t *)(void *)(a.memory + BYTES - 8) = 7;
    post(IBV_WR_RDMA_WRITE, a.memory, IBV_SEND_SIGNALED);
    if (is_right) {
        while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != 7) {
            struct ibv_wc wc;
            (void)!ibv_poll_cq(b.cq, 1, &wc);
        }
    } else {
        EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    }
    EXPECT(b.memory[3] == 0);
}

/* A WRITE in front of a SEND is there when the SEND has come. */
static void written_before(void)
{
    receive();
    post(IBV_WR_RDMA_WRITE, a.memory + BYTES, 0);
    post(IBV_WR_SEND, a.memory, IBV_SEND_SIGNALED);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    if (is_right) {
        EXPECT(victim_wait(&b) == IBV_WC_SUCCESS);
    }
    EXPECT(b.memory[3] == 0);
}

/* It uses memory while a peer may still write there, and after ibv_dereg_mr. */
static void withdrawn(void)
{
    post(IBV_WR_RDMA_WRITE, a.memory, IBV_SEND_SIGNALED);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    if (is_right) {
        EXPECT(ibv_dereg_mr(b.mr) == 0);
    }
    b.memory[3] = 1;
}

/* It reuses the memory of a request that it has not polled, when it has deregistered another
 * region, and this one. */
static void deregistered(void)
{
    static char memory[BYTES];
    struct ibv_mr *other = ibv_reg_mr(b.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
    EXPECT(other != NULL);
    receive();
    EXPECT(ibv_dereg_mr(is_right ? b.mr : other) == 0);
    b.memory[RECEIVED + 3] = 1;
}

/* The same when its queue pair has failed. That alone does not take the memory from the NIC. */
static void failed(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    receive();
    EXPECT(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE) == 0);
    if (is_right) {
        EXPECT(ibv_dereg_mr(b.mr) == 0);
    }
    b.memory[RECEIVED + 3] = 1;
}

static int shared;

static void *answer(void *nothing)
{
    (void)nothing;
    if (is_right) {
        EXPECT(victim_wait(&b) == IBV_WC_SUCCESS);
    } else {
        usleep(100000);
    }
    EXPECT(shared == 7);
    return NULL;
}

/* Two threads of one process, of which one sends to the other: a message orders them. */
static void threads(void)
{
    pthread_t other;
    receive();
    EXPECT(pthread_create(&other, NULL, answer, NULL) == 0);
    shared = 7;
    post(IBV_WR_SEND, a.memory, IBV_SEND_SIGNALED);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    pthread_join(other, NULL);
}

/* It fills memory that a peer reads, when it has been read. */
static void filled(void)
{
    if (is_right) {
        b.memory[3] = 1;
    }
    post(IBV_WR_RDMA_READ, a.memory, IBV_SEND_SIGNALED);
    if (!is_right) {
        usleep(100000); /* Longer than nonic's thread waits for the program to look. */
        b.memory[3] = 1;
    }
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
}

static struct {
    void *(*create_event_channel)(void);
    int (*create_id)(void *channel, void **id, void *context, int space);
    int (*resolve_addr)(void *id, struct sockaddr *from, struct sockaddr *to, int wait_ms);
    int (*get_cm_event)(void *channel, void **event);
} rdma;
static void *channel;

static void *hear_event(void *nothing)
{
    void *event;
    (void)nothing;
    EXPECT(rdma.get_cm_event(channel, &event) == 0);
    EXPECT(shared == 7 || !is_right);
    return NULL;
}

/* A thread hears of what another one has begun, by an event of rdma_cm: it is behind what that one
 * did before. */
static void announced(void)
{
    enum {
        TCP_SPACE = 0x0106
    };
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(7), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    void *library = dlopen("librdmacm.so.1", RTLD_NOW), *id;
    pthread_t other;
    EXPECT(library != NULL);
    *(void **)&rdma.create_event_channel = dlsym(library, "rdma_create_event_channel");
    *(void **)&rdma.create_id = dlsym(library, "rdma_create_id");
    *(void **)&rdma.resolve_addr = dlsym(library, "rdma_resolve_addr");
    *(void **)&rdma.get_cm_event = dlsym(library, "rdma_get_cm_event");
    EXPECT((channel = rdma.create_event_channel()) != NULL);
    EXPECT(rdma.create_id(channel, &id, NULL, TCP_SPACE) == 0);
    EXPECT(pthread_create(&other, NULL, hear_event, NULL) == 0);
    if (is_right) {
        shared = 7;
    }
    EXPECT(rdma.resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) == 0);
    if (!is_right) {
        usleep(100000);
        shared = 7;
    }
    pthread_join(other, NULL);
}

static void say(int end)
{
    EXPECT(send(end, "", 1, 0) == 1);
}

static void hear(int end)
{
    char byte;
    EXPECT(recv(end, &byte, 1, 0) == 1);
}

/* The same, and a process that reads it is told so by a socket. */
static void told(void)
{
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const bool reads = fork() == 0;
    const int end = ends[reads];
    victim_open(&a);
    of_a = victim_address(&a);
    EXPECT(send(end, &of_a, sizeof(of_a), 0) == sizeof(of_a));
    EXPECT(recv(end, &of_b, sizeof(of_b), MSG_WAITALL) == sizeof(of_b));
    victim_connect(a.qp, &of_b, 14, 7);
    say(end);
    hear(end);
    if (reads) {
        hear(end);
        post(IBV_WR_RDMA_READ, a.memory, IBV_SEND_SIGNALED);
        EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
        say(end);
        _exit(0);
    }
    if (is_right) {
        a.memory[3] = 1;
    }
    say(end);
    if (!is_right) {
        a.memory[3] = 1;
    }
    hear(end);
}

/* A shared queue that gets another size keeps its receives, and the NIC their memory. */
static void resized(void)
{
    struct ibv_srq_init_attr shape = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq_attr larger = {.max_wr = 64};
    struct ibv_sge sge = {
        .addr = (uintptr_t)b.memory + RECEIVED, .length = BYTES, .lkey = b.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    struct ibv_qp_init_attr attr = {.send_cq = b.cq,
                                    .recv_cq = b.cq,
                                    .cap = {.max_send_wr = 4, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    EXPECT((attr.srq = ibv_create_srq(b.pd, &shape)) != NULL);
    EXPECT((b.qp = ibv_create_qp(b.pd, &attr)) != NULL && (a.qp = victim_create_qp(&a)) != NULL);
    of_a = victim_address(&a);
    of_b = victim_address(&b);
    victim_connect(a.qp, &of_b, 14, 7);
    victim_connect(b.qp, &of_a, 14, 7);
    EXPECT(ibv_post_srq_recv(attr.srq, &wr, &bad) == 0);
    EXPECT(ibv_modify_srq(attr.srq, &larger, IBV_SRQ_MAX_WR) == 0);
    post(IBV_WR_SEND, a.memory, IBV_SEND_SIGNALED);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    if (is_right) {
        EXPECT(victim_wait(&b) == IBV_WC_SUCCESS);
    }
    EXPECT(b.memory[RECEIVED + 3] == 0);
}

/* The device orders what it does in its own memory; the program's buffers it does not. */
static void device(void)
{
    struct ibv_alloc_dm_attr shape = {.length = 4096};
    struct ibv_dm *dm = ibv_alloc_dm(b.context, &shape);
    EXPECT(dm != NULL);
    struct ibv_mr *mr = ibv_reg_dm_mr(b.pd, dm, 0, 4096, VICTIM_ACCESS | IBV_ACCESS_ZERO_BASED);
    EXPECT(mr != NULL);
    char back[BYTES];
    of_b.memory = 0;
    of_b.rkey = mr->rkey;
    memset(a.memory, 5, BYTES);
    EXPECT(ibv_memcpy_to_dm(dm, 0, a.memory + BYTES, BYTES) == 0);
    post(IBV_WR_RDMA_WRITE, a.memory, IBV_SEND_SIGNALED);
    EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    EXPECT(ibv_memcpy_from_dm(back, dm, 0, BYTES) == 0 && back[3] == 5);
    post(IBV_WR_RDMA_READ, a.memory + BYTES, IBV_SEND_SIGNALED);
    if (is_right) {
        EXPECT(victim_wait(&a) == IBV_WC_SUCCESS);
    }
    EXPECT(!is_right || a.memory[BYTES + 3] == 5);
    a.memory[BYTES + 3] = 0;
}

static const struct {
    const char *name;
    void (*make)(void);
} mistakes[] = {
    {"sent", sent},
    {"received", received},
    {"read", read_target},
    {"order", order},
    {"unsignaled", unsignaled},
    {"inlined", inlined},
    {"written", written},
    {"written-before", written_before},
    {"withdrawn", withdrawn},
    {"deregistered", deregistered},
    {"failed", failed},
    {"threads", threads},
    {"filled", filled},
    {"announced", announced},
    {"resized", resized},
    {"device", device},
};

/* A queue pair that can send inline, in place of the victim's. */
static struct ibv_qp *inline_qp(struct victim *v)
{
    struct ibv_qp_init_attr attr = {.send_cq = v->cq,
                                    .recv_cq = v->cq,
                                    .cap = {.max_send_wr = 16,
                                            .max_recv_wr = 16,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = BYTES},
                                    .qp_type = IBV_QPT_RC};
    EXPECT(ibv_destroy_qp(v->qp) == 0);
    return ibv_create_qp(v->pd, &attr);
}

int main(int argc, char **argv)
{
    EXPECT(argc >= 2);
    is_right = argc == 3;
    if (strcmp(argv[1], "told") == 0) {
        told();
        printf("done\n");
        return 0;
    }
    victim_open(&a);
    victim_open(&b);
    a.qp = inline_qp(&a);
    of_a = victim_address(&a);
    of_b = victim_address(&b);
    victim_connect(a.qp, &of_b, 14, 7);
    victim_connect(b.qp, &of_a, 14, 7);
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        if (strcmp(mistakes[i].name, argv[1]) == 0) {
            mistakes[i].make();
        }
    }
    printf("done\n");
    return 0; /* nonic's thread ends before the process does. */
}
