/* SPDX-License-Identifier: BSD-2-Clause
 *
 * unmapped - memory that is registered, unmapped without ibv_dereg_mr, and then used: by a peer, or
 * for what this program sends itself. The program lives, and whoever asked is told.
 *
 * The child is the peer whose memory goes; the parent asks. Arguments: one of write, read, swap,
 * add, send, file (a mapping of a file that was cut), local (memory of the parent's own), large and
 * half (a WRITE and a READ of which half is there).
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                         \
            fflush(stdout);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define BYTES 65536
#define ACCESS                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

/* Far from the addresses where the kernel looks for room by itself: unmapped pages there stay
 * unmapped, although a sanitizer or a thread maps memory meanwhile. */
#define PLACE ((void *)UINT64_C(0x200000000000))

struct address {
    uint32_t qpn, rkey;
    uint64_t memory;
    union ibv_gid gid;
};

static struct {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *memory;
    int out, in;
    struct address peer;
} end;

static void *map(int fd)
{
    void *memory = mmap(PLACE, BYTES, PROT_READ | PROT_WRITE,
                        fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    EXPECT(memory != MAP_FAILED);
    memset(memory, 1, BYTES);
    return memory;
}

static void connect_to_peer(void)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};
    EXPECT(ibv_modify_qp(end.qp, &to,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
           0);
    to = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .dest_qp_num = end.peer.qpn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .grh = {.dgid = end.peer.gid}, .port_num = 1}};
    EXPECT(ibv_modify_qp(end.qp, &to,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ==
           0);
    to = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    EXPECT(ibv_modify_qp(end.qp, &to,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void open_end(int out, int in, int fd)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    EXPECT(list != NULL && list[0] != NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    EXPECT(context != NULL);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    end.cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    end.memory = map(fd);
    end.mr = ibv_reg_mr(pd, end.memory, BYTES, ACCESS);
    struct ibv_qp_init_attr attr = {
        .send_cq = end.cq,
        .recv_cq = end.cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    end.qp = ibv_create_qp(pd, &attr);
    EXPECT(end.mr != NULL && end.qp != NULL);
    struct address self = {end.qp->qp_num, end.mr->rkey, (uintptr_t)end.memory, {{0}}};
    EXPECT(ibv_query_gid(context, 1, 0, &self.gid) == 0);
    end.out = out;
    end.in = in;
    EXPECT(write(out, &self, sizeof(self)) == sizeof(self));
    EXPECT(read(in, &end.peer, sizeof(end.peer)) == sizeof(end.peer));
    connect_to_peer();
}

static void meet(void)
{
    char byte = 0;
    EXPECT(write(end.out, &byte, 1) == 1 && read(end.in, &byte, 1) == 1);
}

static struct ibv_wc next_completion(void)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(end.cq, 1, &wc) == 0) {
    }
    return wc;
}

static enum ibv_wc_status ask(enum ibv_wr_opcode opcode, uint32_t bytes)
{
    struct ibv_sge sge = {(uintptr_t)end.memory, bytes, end.mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = end.peer.memory;
        wr.wr.atomic.rkey = end.peer.rkey;
    } else {
        wr.wr.rdma.remote_addr = end.peer.memory;
        wr.wr.rdma.rkey = end.peer.rkey;
    }
    EXPECT(ibv_post_send(end.qp, &wr, &bad) == 0);
    return next_completion().status;
}

static int cut_file(void)
{
    char name[] = "/tmp/unmapped-XXXXXX";
    const int fd = mkstemp(name);
    EXPECT(fd >= 0 && unlink(name) == 0 && ftruncate(fd, BYTES) == 0);
    return fd;
}

static volatile sig_atomic_t own_faults;
static char *guarded_page;

/* The program's own faults are its own handler's, as before. */
static void on_own_fault(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (signal != SIGSEGV || info->si_addr != guarded_page) {
        _exit(77);
    }
    own_faults++;
    mprotect(guarded_page, 4096, PROT_READ | PROT_WRITE);
}

static void fault_on_purpose(void)
{
    guarded_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(volatile char *)guarded_page = 1;
    EXPECT(own_faults == 1);
}

/* The process that loses its memory. */
static void lose_memory(const char *what, int out, int in)
{
    const int fd = strcmp(what, "file") == 0 ? cut_file() : -1;
    const struct sigaction own = {.sa_sigaction = on_own_fault, .sa_flags = SA_SIGINFO};
    EXPECT(sigaction(SIGSEGV, &own, NULL) == 0);
    open_end(out, in, fd);
    if (strcmp(what, "send") == 0) {
        struct ibv_sge sge = {(uintptr_t)end.memory, BYTES, end.mr->lkey};
        struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
        EXPECT(ibv_post_recv(end.qp, &wr, &bad) == 0);
    }
    if (fd >= 0) {
        EXPECT(ftruncate(fd, 0) == 0);
    } else if (strcmp(what, "large") == 0 || strcmp(what, "half") == 0) {
        EXPECT(munmap(end.memory + BYTES / 2, BYTES / 2) == 0);
    } else if (strcmp(what, "local") != 0) {
        EXPECT(munmap(end.memory, BYTES) == 0);
    }
    meet();
    if (strcmp(what, "send") == 0) {
        EXPECT(next_completion().status != IBV_WC_SUCCESS);
    }
    meet();
    fault_on_purpose();
}

static void ask_for_it(const char *what, int out, int in)
{
    open_end(out, in, -1);
    meet();
    enum ibv_wc_status wanted = IBV_WC_REM_OP_ERR, got;
    if (strcmp(what, "read") == 0 || strcmp(what, "half") == 0) {
        got = ask(IBV_WR_RDMA_READ, BYTES);
        wanted = IBV_WC_REM_ACCESS_ERR;
    } else if (strcmp(what, "swap") == 0) {
        got = ask(IBV_WR_ATOMIC_CMP_AND_SWP, 8);
    } else if (strcmp(what, "add") == 0) {
        got = ask(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
    } else if (strcmp(what, "send") == 0) {
        got = ask(IBV_WR_SEND, 5000);
    } else if (strcmp(what, "local") == 0) {
        EXPECT(munmap(end.memory, BYTES) == 0);
        got = ask(IBV_WR_RDMA_WRITE, 5000);
        wanted = IBV_WC_LOC_PROT_ERR;
    } else {
        got = ask(IBV_WR_RDMA_WRITE, strcmp(what, "large") == 0 ? BYTES : 8);
    }
    if (got != wanted) {
        printf("%s: %s instead of %s\n", what, ibv_wc_status_str(got), ibv_wc_status_str(wanted));
    }
    meet();
    EXPECT(got == wanted);
}

int main(int argc, char **argv)
{
    int there[2], back[2], status;
    EXPECT(argc == 2 && pipe(there) == 0 && pipe(back) == 0);
    const pid_t child = fork();
    if (child == 0) {
        lose_memory(argv[1], back[1], there[0]);
        _exit(0);
    }
    close(back[1]);
    close(there[0]);
    signal(SIGPIPE, SIG_IGN);
    ask_for_it(argv[1], there[1], back[0]);
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 0;
}
