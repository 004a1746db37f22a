/* SPDX-License-Identifier: BSD-2-Clause
 *
 * reach - two processes of one user, connected by an RC queue pair: a target with memory, and a
 * requester that reaches into it. Each tells on standard output what it is and what it sees.
 *
 *     reach read      the requester reads for ever; the target registers and deregisters for ever
 *     reach stale     the target ends while a child of its holds its descriptors, another process
 *                     gets its number, and the requester goes on
 *     reach liar      likewise, and that child says on the target's board that the target lives;
 *                     the other process is another user's. A second word: the user of the ends
 *     reach listen    the target waits for one message; the requester sends none
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drivers/shm/shm_layout.h"

#define NOBODY 65534
#define MEMORY ((char *)0x600000000000) /* In each process that has memory to reach. */
#define BYTES  ((size_t)4 << 20)
#define PSN    0x1234
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct about {
    uint32_t qpn, key;
    union ibv_gid gid;
};

struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct about self, peer;
};

static void fail(const char *what)
{
    printf("failed: %s\n", what);
    _exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void map_memory(void)
{
    if (mmap(MEMORY, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED) {
        fail("mmap");
    }
    memset(MEMORY, 0, BYTES);
}

static void open_end(struct end *end)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (list == NULL || list[0] == NULL || (end->context = ibv_open_device(list[0])) == NULL) {
        fail("no device");
    }
    map_memory();
    end->pd = ibv_alloc_pd(end->context);
    end->cq = ibv_create_cq(end->context, 64, NULL, NULL, 0);
    end->mr = ibv_reg_mr(end->pd, MEMORY, BYTES, ACCESS);
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq, .recv_cq = end->cq, .cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    end->qp = ibv_create_qp(end->pd, &init);
    if (end->mr == NULL || end->qp == NULL) {
        fail("objects");
    }
    end->self = (struct about){.qpn = end->qp->qp_num, .key = end->mr->rkey};
    ibv_query_gid(end->context, 1, 0, &end->self.gid);
}

static void connect_end(struct end *end)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};
    struct ibv_qp_attr receive = {.qp_state = IBV_QPS_RTR,
                                  .path_mtu = IBV_MTU_4096,
                                  .dest_qp_num = end->peer.qpn,
                                  .rq_psn = PSN,
                                  .max_dest_rd_atomic = 4,
                                  .min_rnr_timer = 1,
                                  .ah_attr = {.is_global = 1,
                                              .grh = {.dgid = end->peer.gid, .hop_limit = 64},
                                              .port_num = 1}};
    struct ibv_qp_attr send = {.qp_state = IBV_QPS_RTS,
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .sq_psn = PSN,
                               .max_rd_atomic = 4};
    if (ibv_modify_qp(end->qp, &init,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
        ibv_modify_qp(end->qp, &receive,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ||
        ibv_modify_qp(end->qp, &send,
                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)) {
        fail("connect");
    }
}

/* Tells the peer our address, gets the peer's, and connects. */
static void meet(struct end *end, const int pipes[2])
{
    open_end(end);
    if (write(pipes[1], &end->self, sizeof(end->self)) != sizeof(end->self) ||
        read(pipes[0], &end->peer, sizeof(end->peer)) != sizeof(end->peer)) {
        fail("the other end");
    }
    connect_end(end);
    char ready = 'r';
    if (write(pipes[1], &ready, 1) != 1 || read(pipes[0], &ready, 1) != 1) {
        fail("the other end");
    }
}

static enum ibv_wc_status complete(struct end *end, struct ibv_wc *wc)
{
    while (ibv_poll_cq(end->cq, 1, wc) == 0) {
    }
    return wc->status;
}

static enum ibv_wc_status request(struct end *end, enum ibv_wr_opcode opcode, uint32_t bytes)
{
    struct ibv_wc wc;
    struct ibv_sge sge = {(uintptr_t)MEMORY, bytes, end->mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)MEMORY, end->peer.key}};
    if (ibv_post_send(end->qp, &wr, &bad) != 0) {
        fail("post");
    }
    return complete(end, &wc);
}

/* -- read ---------------------------------------------------------------------------------------*/

static void read_for_ever(struct end *end, int go)
{
    (void)go;
    printf("requester %d\n", getpid());
    while (request(end, IBV_WR_RDMA_READ, BYTES) == IBV_WC_SUCCESS) {
    }
    printf("requester: a READ failed\n");
}

static void register_for_ever(struct end *end, int go)
{
    (void)go;
    static char memory[4096];
    printf("target %d\n", getpid());
    for (unsigned round = 1;; round++) {
        struct ibv_mr *mr = ibv_reg_mr(end->pd, memory, sizeof(memory), ACCESS);
        const double began = now();
        const int refused = ibv_dereg_mr(mr);
        printf("round %u: %s after %.3f s\n", round, refused == 0 ? "gone" : strerror(refused),
               now() - began);
        while (refused != 0 && ibv_dereg_mr(mr) != 0) {
            usleep(10000);
        }
        usleep(1000);
    }
}

/* -- stale --------------------------------------------------------------------------------------*/

/* A child that holds our descriptors. It is not made by fork(), because libraries are told of
 * fork(). */
static void leave_a_ghost(struct end *end, int go)
{
    (void)end;
    (void)go;
    if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0) {
        sleep(60);
        _exit(0);
    }
    pause();
}

/* The word by which a board says that its process lives. The ghost writes it when that is no longer
 * so: it has a copy of the mapping, which a child of fork() would not get. */
static _Atomic uint32_t *find_word(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long start, end;
        if (strstr(line, "nonic-board") != NULL && strstr(line, " rw-s ") != NULL &&
            sscanf(line, "%lx-%lx", &start, &end) == 2 &&
            madvise((void *)start, end - start, MADV_DOFORK) == 0) {
            return &((struct shm_board *)start)->owner.word;
        }
    }
    fail("no board");
    return NULL;
}

static void leave_a_liar(struct end *end, int go)
{
    (void)end;
    (void)go;
    _Atomic uint32_t *word = find_word();
    const pid_t target = getpid();
    if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0) {
        while (syscall(SYS_getppid) == target) {
            usleep(1000);
        }
        for (int i = 0; i < 60000; i++) {
            atomic_store(word, (uint32_t)target);
            usleep(1000);
        }
        _exit(0);
    }
    pause();
}

static void go_on(struct end *end, int go)
{
    for (int i = 0; i < 3; i++) {
        strcpy(MEMORY, "before");
        if (request(end, IBV_WR_RDMA_WRITE, 64) != IBV_WC_SUCCESS) {
            fail("a WRITE to the living");
        }
    }
    char word;
    if (write(go, "", 1) != 1 || read(go, &word, 1) != 1) {
        fail("no word");
    }
    strcpy(MEMORY, "written by a stranger");
    usleep(100000); /* For the liar to have written. */
    alarm(4);       /* It is waited for, as one that is stopped would be. */
    printf("WRITE: %s\n", ibv_wc_status_str(request(end, IBV_WR_RDMA_WRITE, 64)));
}

/* The number of a process that is gone; 0: not allowed to ask for one. */
static pid_t clone_as(pid_t pid)
{
    struct clone_args arguments = {
        .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
    return (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
}

/* -- listen -------------------------------------------------------------------------------------*/

static void print_address(const char *name, const struct about *about)
{
    printf("%s %d.%d.%d.%d qpn %u psn %d\n", name, about->gid.raw[12], about->gid.raw[13],
           about->gid.raw[14], about->gid.raw[15], about->qpn, PSN);
}

static void listen_for_one(struct end *end, int go)
{
    (void)go;
    struct ibv_wc wc;
    struct ibv_sge sge = {(uintptr_t)MEMORY, 4096, end->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    if (ibv_post_recv(end->qp, &wr, &bad) != 0) {
        fail("post");
    }
    print_address("requester", &end->peer);
    print_address("target", &end->self);
    complete(end, &wc);
    printf("received: %s\n", ibv_wc_status_str(wc.status));
}

static void stay(struct end *end, int go)
{
    (void)end;
    (void)go;
    sleep(60);
}

/* -- Both ---------------------------------------------------------------------------------------*/

struct roles {
    void (*target)(struct end *end, int go), (*requester)(struct end *end, int go);
};

static pid_t begin(void (*body)(struct end *end, int go), int from, int to, int go, uid_t user)
{
    const pid_t pid = fork();
    if (pid == 0) {
        struct end end = {0};
        /* Others of its user may trace it, as those of a program that never was another user's. */
        if (user != getuid() &&
            (setgid(user) != 0 || setuid(user) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)) {
            fail("becoming another user");
        }
        meet(&end, (const int[2]){from, to});
        body(&end, go);
        _exit(0);
    }
    return pid;
}

/* The target is gone: somebody else comes in its place, and then the requester goes on. */
static void replace(pid_t target, pid_t requester, int go, bool of_another_user)
{
    char word, path[64], seen[64] = "";
    if (read(go, &word, 1) != 1 || kill(target, SIGTERM) != 0) {
        fail("no word");
    }
    waitpid(target, NULL, 0);
    const pid_t other = clone_as(target);
    if (other < 0) {
        printf("may not choose a process number\n");
        return;
    }
    if (other == 0) {
        map_memory();
        strcpy(MEMORY, "of another program");
        if ((of_another_user && setuid(NOBODY) != 0) || write(go, "", 1) != 1) {
            fail("no word");
        }
        pause();
    }
    waitpid(requester, NULL, 0);
    snprintf(path, sizeof(path), "/proc/%d/mem", other);
    const int memory = open(path, O_RDONLY);
    if (memory < 0 || pread(memory, seen, sizeof(seen) - 1, (off_t)MEMORY) <= 0) {
        fail("no look at the other process");
    }
    printf("memory of process %d: %s\n", other, seen);
}

int main(int count, char **arguments)
{
    int to_target[2], to_requester[2], go[2];
    setvbuf(stdout, NULL, _IONBF, 0);
    setpgid(0, 0);
    const char *mode = count >= 2 ? arguments[1] : "";
    const uid_t user = count == 3 ? (uid_t)atoi(arguments[2]) : getuid();
    const bool liar = strcmp(mode, "liar") == 0, stale = liar || strcmp(mode, "stale") == 0;
    const struct roles roles = liar    ? (struct roles){leave_a_liar, go_on}
                               : stale ? (struct roles){leave_a_ghost, go_on}
                               : strcmp(mode, "listen") == 0
                                   ? (struct roles){listen_for_one, stay}
                                   : (struct roles){register_for_ever, read_for_ever};
    if (pipe(to_target) != 0 || pipe(to_requester) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, go) != 0) {
        fail("pipes");
    }
    const pid_t target = begin(roles.target, to_target[0], to_requester[1], -1, user);
    const pid_t requester = begin(roles.requester, to_requester[0], to_target[1], go[1], user);
    if (stale) {
        replace(target, requester, go[0], liar);
    } else {
        waitpid(target, NULL, 0);
    }
    /* Ends all processes that are left. */
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    return 0;
}
