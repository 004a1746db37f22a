/* SPDX-License-Identifier: BSD-2-Clause
 *
 * all_to_all - an ordinary verbs program: many processes, each connected to every other one.
 *
 * Goal       Every byte between any two of them is right; a process that is killed is noticed on
 *            its own connections and nowhere else; one that is stopped for longer than all retries
 *            take keeps its connections, and disturbs nobody else.
 * Method     Children exchange addresses through shared memory and write to each other in rounds;
 *            each checks what it got. Then some are killed and some stopped, and the others go on.
 *            A write to a killed one must fail; one to a stopped one ends well, once that is
 *            continued. Usage: all_to_all [--processes N] [--bytes N] [--rounds N] [--kill N]
 *            [--stop N] [--timeout CODE]
 */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 256
#define PHASES        64
#define GIVE_UP_S     120
#define RETRIES       7

static int processes = 64, bytes = 3000, rounds = 3, kills, stops;
/* 0.27 s, as IBTA codes it: others need the processor, too. All retries: 2.1 s. */
static int timeout_code = 16;
static int self = -1;

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        fprintf(stderr, "all_to_all: process %d: ", self);                                         \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fprintf(stderr, "\n");                                                                     \
        exit(1);                                                                                   \
    } while (0)

struct address {
    uint32_t qpn, rkey;
    uint64_t memory;
    union ibv_gid gid;
};

/* Memory that all processes share. */
static struct {
    struct address addresses[PROCESSES_MAX][PROCESSES_MAX]; /* By process, and by its peer. */
    uint64_t memory_kb[PROCESSES_MAX][2];                   /* After set-up, at the end. */
    double set_up_s[PROCESSES_MAX];
    _Atomic int arrived[PHASES];
    _Atomic int refused; /* Writes to killed processes that failed, as they must. */
} * shared;

static struct ibv_context *context;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qps[PROCESSES_MAX];
static struct ibv_mr *mr;
static uint8_t *inbox, *outbox; /* A block for each of the others, and one to read back. */

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static bool is_killed(int process)
{
    return process < kills;
}

static bool is_stopped(int process)
{
    return process >= kills && process < kills + stops;
}

/* Waits until every process that is still there has come here. */
static void meet(int phase, int expected)
{
    const double began = now();
    atomic_fetch_add(&shared->arrived[phase], 1);
    while (atomic_load(&shared->arrived[phase]) < expected) {
        usleep(1000);
        if (now() - began > GIVE_UP_S) {
            FAIL("phase %d: %d of %d came", phase, shared->arrived[phase], expected);
        }
    }
}

static uint8_t pattern(int from, int to, int round, int at)
{
    return (uint8_t)(from * 31 + to * 17 + round * 101 + at * 7 + (at >> 8) * 13);
}

static uint64_t memory_kb(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    unsigned long kb = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "Pss: %lu kB", &kb) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kb;
}

/* -- Set-up -------------------------------------------------------------------------------------*/

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list == NULL || list[0] == NULL ? NULL : ibv_open_device(list[0]);
    if (context == NULL) {
        FAIL("no device");
    }
    ibv_free_device_list(list);
    const size_t all = (size_t)bytes * (size_t)processes;
    inbox = calloc(2, all);
    outbox = inbox + all;
    struct ibv_pd *pd = ibv_alloc_pd(context);
    mr =
        inbox == NULL || pd == NULL
            ? NULL
            : ibv_reg_mr(pd, inbox, 2 * all,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    channel = ibv_create_comp_channel(context);
    cq = channel == NULL ? NULL : ibv_create_cq(context, 4 * processes, NULL, channel, 0);
    if (mr == NULL || cq == NULL) {
        FAIL("no memory region or completion queue");
    }
    for (int i = 0; i < processes; i++) {
        struct ibv_qp_init_attr attr = {.send_cq = cq,
                                        .recv_cq = cq,
                                        .qp_type = IBV_QPT_RC,
                                        .cap = {4, 1, 1, 1, 0},
                                        .sq_sig_all = 1};
        struct address *mine = &shared->addresses[self][i];
        qps[i] = ibv_create_qp(pd, &attr);
        if (qps[i] == NULL || ibv_query_gid(context, 1, 0, &mine->gid) != 0) {
            FAIL("no queue pair");
        }
        mine->qpn = qps[i]->qp_num;
        mine->rkey = mr->rkey;
        mine->memory = (uintptr_t)inbox + (uint64_t)i * (uint64_t)bytes;
    }
}

/* The time for which some processes are stopped: twice as long as all retries last, in whole
 * seconds. */
static unsigned int stopped_s(void)
{
    const uint64_t timeout_ns = UINT64_C(4096) << timeout_code;
    return (unsigned int)(2 * (RETRIES + 1) * timeout_ns / 1000000000 + 1);
}

static void connect_qp(int to)
{
    const struct address *peer = &shared->addresses[to][self];
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qpn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .hop_limit = 64}},
        .timeout = (uint8_t)timeout_code,
        .retry_cnt = RETRIES,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
    };
    int failed = ibv_modify_qp(
        qps[to], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr.qp_state = IBV_QPS_RTR;
    failed = failed != 0 ? failed
                         : ibv_modify_qp(qps[to], &attr,
                                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                             IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    failed = failed != 0
                 ? failed
                 : ibv_modify_qp(qps[to], &attr,
                                 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (failed != 0) {
        FAIL("connecting to %d: %s", to, strerror(failed));
    }
}

/* -- Rounds -------------------------------------------------------------------------------------*/

static void post(int to, enum ibv_wr_opcode opcode)
{
    uint8_t *block = outbox + (size_t)to * (size_t)bytes;
    const struct address *peer = &shared->addresses[to][self];
    struct ibv_sge sge = {(uintptr_t)block, (uint32_t)bytes, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = (uint64_t)to,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .wr.rdma = {.remote_addr = peer->memory, .rkey = peer->rkey}};
    struct ibv_send_wr *bad;
    const int failed = ibv_post_send(qps[to], &wr, &bad);
    if (failed != 0) {
        FAIL("posting to %d: %s", to, strerror(failed));
    }
}

/* Sleeps until there are completions: hundreds of processes cannot all spin. */
static int next_completions(struct ibv_wc *wcs, int max)
{
    for (;;) {
        int count = ibv_poll_cq(cq, max, wcs);
        if (count == 0 && ibv_req_notify_cq(cq, 0) == 0) {
            count = ibv_poll_cq(cq, max, wcs);
        }
        if (count != 0) {
            return count;
        }
        struct pollfd wait = {.fd = channel->fd, .events = POLLIN};
        if (poll(&wait, 1, GIVE_UP_S * 1000) != 1) {
            FAIL("no completion comes");
        }
        struct ibv_cq *of;
        void *its;
        if (ibv_get_cq_event(channel, &of, &its) == 0) {
            ibv_ack_cq_events(of, 1);
        }
    }
}

static void judge(const struct ibv_wc *wc, bool trouble)
{
    const int to = (int)wc->wr_id;
    const bool good = wc->status == IBV_WC_SUCCESS;
    if (trouble && is_killed(to)) {
        if (wc->status != IBV_WC_RETRY_EXC_ERR) {
            FAIL("%d was killed, yet: %s", to, ibv_wc_status_str(wc->status));
        }
        atomic_fetch_add(&shared->refused, 1);
    } else if (!good) {
        FAIL("to %d: %s", to, ibv_wc_status_str(wc->status));
    }
}

static void finish(int count, bool trouble)
{
    struct ibv_wc wcs[32];
    while (count > 0) {
        const int came = next_completions(wcs, 32);
        if (came < 0) {
            FAIL("polling");
        }
        for (int i = 0; i < came; i++) {
            judge(&wcs[i], trouble);
        }
        count -= came;
    }
}

static void expect(const uint8_t *block, int from, int to, int round)
{
    for (int at = 0; at < bytes; at++) {
        if (block[at] != pattern(from, to, round, at)) {
            FAIL("round %d, %d to %d: byte %d is %02x, not %02x", round, from, to, at, block[at],
                 pattern(from, to, round, at));
        }
    }
}

/* Each process writes to all, itself included, checks what it got, and reads back what it wrote. */
static void go_round(int round, int *phase, bool trouble)
{
    const int present = trouble ? processes - kills - stops : processes;
    for (int to = 0; to < processes; to++) {
        for (int at = 0; at < bytes; at++) {
            outbox[(size_t)to * (size_t)bytes + (size_t)at] = pattern(self, to, round, at);
        }
        post(to, IBV_WR_RDMA_WRITE);
    }
    finish(processes, trouble);
    meet((*phase)++, present);
    for (int from = trouble ? kills + stops : 0; from < processes; from++) {
        expect(inbox + (size_t)from * (size_t)bytes, from, self, round);
    }
    const int first = trouble ? kills + stops : 0;
    memset(outbox, 0, (size_t)bytes * (size_t)processes);
    for (int to = first; to < processes; to++) {
        post(to, IBV_WR_RDMA_READ);
    }
    finish(processes - first, trouble);
    for (int to = first; to < processes; to++) {
        expect(outbox + (size_t)to * (size_t)bytes, self, to, round);
    }
    meet((*phase)++, present);
}

static void be_process(void)
{
    int phase = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const double began = now();
    open_device();
    meet(phase++, processes);
    for (int to = 0; to < processes; to++) {
        connect_qp(to);
    }
    meet(phase++, processes);
    shared->set_up_s[self] = now() - began;
    shared->memory_kb[self][0] = memory_kb();
    for (int round = 0; round < rounds; round++) {
        go_round(round, &phase, false);
    }
    shared->memory_kb[self][1] = memory_kb();
    meet(phase++, processes + 1); /* The parent, too: then it kills and stops. */
    if (kills + stops > 0) {
        if (is_killed(self) || is_stopped(self)) {
            pause();
            exit(0);
        }
        meet(phase++, processes - kills - stops + 1);
        go_round(rounds, &phase, true);
    }
    exit(0);
}

/* -- The parent ---------------------------------------------------------------------------------*/

static void make_trouble(const pid_t *pids, int phase)
{
    for (int i = 0; i < kills + stops; i++) {
        int status;
        kill(pids[i], is_killed(i) ? SIGKILL : SIGSTOP);
        if (waitpid(pids[i], &status, WUNTRACED) != pids[i]) {
            FAIL("process %d was gone before", i);
        }
    }
    meet(phase, processes - kills - stops + 1);
    for (int i = kills; stops > 0 && i < kills + stops; i++) {
        sleep(i == kills ? stopped_s() : 0);
        kill(pids[i], SIGCONT);
    }
}

static int collect(const pid_t *pids)
{
    int bad = 0;
    for (int i = kills + stops; i < processes; i++) {
        int status = 0;
        waitpid(pids[i], &status, 0);
        bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    for (int i = kills; i < kills + stops; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    return bad;
}

static void report(void)
{
    double set_up = 0, before = 0, after = 0;
    for (int i = 0; i < processes; i++) {
        set_up = shared->set_up_s[i] > set_up ? shared->set_up_s[i] : set_up;
        before += (double)shared->memory_kb[i][0] / processes;
        after += (double)shared->memory_kb[i][1] / processes;
    }
    printf("%d processes, %d connections: set up in %.2f s; memory of a process %.0f KB, "
           "%.0f KB after %d rounds of %d bytes\n",
           processes, processes * processes, set_up, before, after, rounds, bytes);
    if (kills + stops > 0) {
        printf("%d killed: %d writes to them failed, all; %d stopped for %u s: none failed\n",
               kills, shared->refused, stops, stopped_s());
    }
    for (int i = 0; i < processes; i++) {
        const union ibv_gid *gid = &shared->addresses[i][0].gid;
        if (i == 0 || memcmp(gid, &shared->addresses[i - 1][0].gid, sizeof(*gid)) != 0) {
            printf("gid ");
            for (int at = 0; at < 16; at++) {
                printf("%02x", gid->raw[at]);
            }
            printf("\n");
        }
    }
}

static bool parse(int argc, char **argv)
{
    static const struct option options[] = {{"processes", required_argument, NULL, 'p'},
                                            {"bytes", required_argument, NULL, 'b'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {"kill", required_argument, NULL, 'k'},
                                            {"stop", required_argument, NULL, 's'},
                                            {"timeout", required_argument, NULL, 't'},
                                            {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'p': processes = atoi(optarg); break;
        case 'b': bytes = atoi(optarg); break;
        case 'r': rounds = atoi(optarg); break;
        case 'k': kills = atoi(optarg); break;
        case 's': stops = atoi(optarg); break;
        case 't': timeout_code = atoi(optarg); break;
        default: return false;
        }
    }
    return processes > 0 && processes <= PROCESSES_MAX && bytes > 0 && rounds > 0 &&
           2 * rounds + 8 <= PHASES && kills >= 0 && stops >= 0 && kills + stops < processes &&
           timeout_code >= 1 && timeout_code <= 20;
}

int main(int argc, char **argv)
{
    pid_t pids[PROCESSES_MAX];
    if (!parse(argc, argv)) {
        fprintf(stderr,
                "usage: all_to_all [--processes 1..%d] [--bytes N] [--rounds N] "
                "[--kill N] [--stop N] [--timeout 1..20]\n",
                PROCESSES_MAX);
        return 2;
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        FAIL("no memory");
    }
    for (int i = 0; i < processes; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            self = i;
            be_process();
        }
    }
    const int phase = 2 + 2 * rounds;
    meet(phase, processes + 1);
    if (kills + stops > 0) {
        make_trouble(pids, phase + 1);
    }
    const int bad = collect(pids);
    report();
    const int expected = kills * (processes - kills - stops);
    if (bad > 0 || shared->refused != expected) {
        fprintf(stderr, "all_to_all: %d processes failed; %d of %d writes were refused\n", bad,
                shared->refused, expected);
        return 1;
    }
    return 0;
}
