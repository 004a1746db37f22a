/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_forks - fork, exec, and signals that stop, of processes that have SRD queue pairs and talk
 * with others (SRD-35).
 *
 * Usage: efa_forks inherited|anew|ghost|exec, or
 *        efa_forks stopped MS, under `nonic run --nic efa`
 *   inherited   Children do to the objects that they inherited what exit handlers do, or execute
 *               another program; their parent's messages and memory are as before.
 *   anew        A child opens the device itself, and talks with its parent and with its peer, which
 *               talk as before.
 *   ghost       The parent ends. Its child answers nothing in its place.
 *   exec        A process executes a program, which opens the device and talks with its peer.
 *   stopped     A sender, or a receiver, is stopped for MS milliseconds in the middle: each message
 *               is delivered once at most, and once if that is what its sender is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/conformance/efa_peer.h"

enum {
    MESSAGES = 40,
    READ_BYTES = 1 << 16,
    READ_AT = PEER_BYTES / 2,
    CHILDREN = 20,
    PATIENCE_MS = 20000,
    GONE_MS = 10000, /* More than a request waits for one that went. */
    /* Statuses of efa_io_defs.h. */
    ABORTED = 8,
    BAD_QPN = 9,
    UNRESPONSIVE = 13,
};

/* -- Processes ----------------------------------------------------------------------------------*/

/* A child, with a socket to its parent; it ends with it. */
struct child {
    pid_t pid;
    int socket;
};

static struct child child_start(void (*run)(int socket))
{
    int sockets[2];
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0);
    const pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(sockets[0]);
        run(sockets[1]);
        _exit(0);
    }
    close(sockets[1]);
    return (struct child){.pid = pid, .socket = sockets[0]};
}

static void child_end(struct child child)
{
    int status;
    close(child.socket);
    EXPECT(waitpid(child.pid, &status, 0) == child.pid && status == 0);
}

static void tell(int socket, const void *bytes, size_t count)
{
    EXPECT(write(socket, bytes, count) == (ssize_t)count);
}

static void hear(int socket, void *bytes, size_t count)
{
    EXPECT(read(socket, bytes, count) == (ssize_t)count);
}

static void meet(int socket)
{
    char byte = 'm';
    tell(socket, &byte, 1);
    hear(socket, &byte, 1);
}

/* -- Talking ------------------------------------------------------------------------------------*/

static void open_end(struct end *end)
{
    end_open(end);
    end->qp = end_queue_pair(end, 0, 7);
    end_fill(end, end->qp->qp_num);
}

static void post_numbers(struct end *end, struct ibv_ah *ah, const struct address *to)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const struct request send = {
            .opcode = IBV_WR_SEND_WITH_IMM, .wr_id = i, .bytes = 100, .immediate = i};
        EXPECT(end_post(end, ah, to, &send) == 0);
    }
}

static void post_receives(struct end *end, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        end_receive(end, MESSAGES + i, READ_AT + 128 * i, 128);
    }
}

static void expect_good(const struct seen *seen, const char *of)
{
    if (!seen->there || seen->status != IBV_WC_SUCCESS) {
        fprintf(stderr, "%s, process %d: there %d, wr_id %lu, %s, vendor %u\n", of, getpid(),
                seen->there, (unsigned long)seen->wr_id,
                ibv_wc_status_str((enum ibv_wc_status)seen->status), seen->vendor_err);
        _exit(1);
    }
}

/* Numbers both ways: each is sent well, and each arrives once. */
static void exchange(struct end *end, struct ibv_ah *ah, const struct address *to, const char *of)
{
    bool sent[MESSAGES] = {false}, arrived[MESSAGES] = {false};
    post_numbers(end, ah, to);
    for (int i = 0; i < 2 * MESSAGES; i++) {
        const struct seen seen = end_wait(end, PATIENCE_MS);
        expect_good(&seen, of);
        const bool receives = seen.opcode == IBV_WC_RECV;
        bool *done = receives ? &arrived[seen.immediate % MESSAGES] : &sent[seen.wr_id % MESSAGES];
        EXPECT(!*done && (!receives || seen.source_qpn == to->qpn));
        *done = true;
    }
}

static void read_memory(struct end *end, struct ibv_ah *ah, const struct address *to,
                        const char *of)
{
    const struct request read = {
        .opcode = IBV_WR_RDMA_READ, .wr_id = 1, .offset = READ_AT, .bytes = READ_BYTES};
    const struct address from = {
        .qpn = to->qpn, .qkey = to->qkey, .rkey = to->rkey, .memory = to->memory - READ_AT};
    EXPECT(end_post(end, ah, &from, &read) == 0);
    const struct seen seen = end_wait(end, PATIENCE_MS);
    expect_good(&seen, of);
    struct end theirs = {.memory = end->memory + READ_AT};
    EXPECT(end_is_filled(&theirs, to->qpn, READ_BYTES));
}

/* With the process behind the socket, which does the same. */
static void talk(struct end *end, int socket, const char *of)
{
    const struct address own = end_address(end);
    struct address to;
    tell(socket, &own, sizeof(own));
    hear(socket, &to, sizeof(to));
    struct ibv_ah *ah = end_handle(end, &to.gid);
    post_receives(end, MESSAGES);
    meet(socket);
    exchange(end, ah, &to, of);
    read_memory(end, ah, &to, of);
    meet(socket);
    EXPECT(ibv_destroy_ah(ah) == 0);
}

/* A peer that talks as often as it is asked to. */
static void talk_on(int socket)
{
    struct end end = {0};
    char byte;
    open_end(&end);
    while (read(socket, &byte, 1) == 1) {
        talk(&end, socket, "the peer");
    }
}

static void ask(struct end *end, const struct child *peer, const char *of)
{
    tell(peer->socket, "", 1);
    talk(end, peer->socket, of);
}

/* -- inherited ----------------------------------------------------------------------------------*/

static struct end ours;
static struct child peer;
static atomic_bool done;
static atomic_uint talks;

static void *talk_meanwhile(void *unused)
{
    (void)unused;
    while (!done) {
        ask(&ours, &peer, "the parent, while children are born");
        talks++;
    }
    return NULL;
}

/* The calls of programs' exit handlers, and a few more; nobody promises what they return. */
static void clean_up(struct ibv_ah *ah)
{
    const struct address self = end_address(&ours);
    const struct request send = {.opcode = IBV_WR_SEND, .wr_id = 999, .bytes = 100};
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    (void)end_post(&ours, ah, &self, &send);
    (void)end_wait(&ours, 0);
    (void)ibv_modify_qp(ours.qp, &error, IBV_QP_STATE);
    (void)ibv_destroy_ah(ah);
    (void)ibv_dereg_mr(ours.mr);
    (void)ibv_destroy_qp(ours.qp);
    (void)ibv_destroy_cq(ibv_cq_ex_to_cq(ours.cq));
    (void)ibv_dealloc_pd(ours.pd);
    (void)ibv_close_device(ours.context);
}

/* A child, which does its work within PATIENCE_MS. */
static void give_birth(struct ibv_ah *ah, bool executes)
{
    int status;
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        alarm(PATIENCE_MS / 1000);
    }
    if (child == 0 && executes) {
        execlp("true", "true", NULL);
        _exit(1);
    }
    if (child == 0) {
        clean_up(ah);
        exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static void inherited(void)
{
    pthread_t thread;
    peer = child_start(talk_on);
    open_end(&ours);
    struct ibv_ah *ah = end_handle(&ours, &ours.gid);
    ask(&ours, &peer, "the parent, before");
    /* In the middle of building requests. */
    ibv_wr_start(ibv_qp_to_qp_ex(ours.qp));
    give_birth(ah, false);
    ibv_wr_abort(ibv_qp_to_qp_ex(ours.qp));
    EXPECT(pthread_create(&thread, NULL, talk_meanwhile, NULL) == 0);
    for (int i = 0; i < CHILDREN || talks < CHILDREN; i++) {
        give_birth(ah, i % 2 == 1);
    }
    done = true;
    EXPECT(pthread_join(thread, NULL) == 0);
    ask(&ours, &peer, "the parent, after");
    child_end(peer);
}

/* -- anew ---------------------------------------------------------------------------------------*/

static void talk_anew(int socket)
{
    struct end end = {0};
    open_end(&end);
    talk(&end, socket, "the child");
    ask(&end, &peer, "the child, with the peer");
    meet(socket);
}

static void anew(void)
{
    peer = child_start(talk_on);
    open_end(&ours);
    ask(&ours, &peer, "the parent, before");
    const struct child child = child_start(talk_anew);
    talk(&ours, child.socket, "the parent, with its child");
    meet(child.socket);
    ask(&ours, &peer, "the parent, beside its child");
    child_end(child);
    ask(&ours, &peer, "the parent, after its child");
    child_end(peer);
}

/* -- ghost, exec --------------------------------------------------------------------------------*/

/* A request to one that has gone does not succeed. */
static void send_to_gone(struct end *end, struct ibv_ah *ah, const struct address *to)
{
    const struct request send = {.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = 100};
    EXPECT(end_post(end, ah, to, &send) == 0);
    const struct seen seen = end_wait(end, GONE_MS);
    if (!seen.there || (seen.vendor_err != UNRESPONSIVE && seen.vendor_err != ABORTED &&
                        seen.vendor_err != BAD_QPN)) {
        fprintf(stderr, "to one that has gone: there %d, vendor %u\n", seen.there, seen.vendor_err);
        _exit(1);
    }
}

/* It leaves a child, which has its receives; that one lives as long as the socket. */
static void leave_child(int socket)
{
    struct end end = {0};
    open_end(&end);
    const struct address own = end_address(&end);
    talk(&end, socket, "the parent that will end");
    post_receives(&end, MESSAGES);
    tell(socket, &own, sizeof(own));
    meet(socket);
    const pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        char byte;
        (void)!read(socket, &byte, 1);
        _exit(0);
    }
}

static void ghost(void)
{
    int status;
    struct address gone;
    const struct child parent = child_start(leave_child);
    open_end(&ours);
    talk(&ours, parent.socket, "who remains");
    hear(parent.socket, &gone, sizeof(gone));
    struct ibv_ah *ah = end_handle(&ours, &gone.gid);
    meet(parent.socket);
    EXPECT(waitpid(parent.pid, &status, 0) == parent.pid && status == 0);
    send_to_gone(&ours, ah, &gone);
    close(parent.socket);
}

static const char *own_path;

static void execute(int socket)
{
    struct end end = {0};
    char number[16];
    open_end(&end);
    talk(&end, socket, "before exec");
    const struct address own = end_address(&end);
    tell(socket, &own, sizeof(own));
    meet(socket);
    snprintf(number, sizeof(number), "%d", socket);
    execl(own_path, own_path, "executed", number, NULL);
    _exit(1);
}

static void executed(int socket)
{
    struct end end = {0};
    open_end(&end);
    meet(socket);
    talk(&end, socket, "after exec");
}

/* The first request after exec was for the process of before, even if the new one has its place. */
static void exec(void)
{
    struct address gone;
    const struct child child = child_start(execute);
    open_end(&ours);
    talk(&ours, child.socket, "the peer of one that executes");
    hear(child.socket, &gone, sizeof(gone));
    struct ibv_ah *ah = end_handle(&ours, &gone.gid);
    meet(child.socket); /* That goes. */
    meet(child.socket); /* That came. */
    send_to_gone(&ours, ah, &gone);
    talk(&ours, child.socket, "the peer of one that has executed");
    child_end(child);
}

/* -- stopped ------------------------------------------------------------------------------------*/

/* Statuses, and how often each number arrived. */
struct outcome {
    uint8_t status[MESSAGES], arrivals[MESSAGES];
};

/* Sends numbers whenever it is asked to, and tells what became of them. */
static void send_on(int socket)
{
    struct end end = {0};
    struct address to;
    struct outcome outcome = {0};
    open_end(&end);
    hear(socket, &to, sizeof(to));
    struct ibv_ah *ah = end_handle(&end, &to.gid);
    while (recv(socket, &outcome, sizeof(outcome), 0) > 0) {
        tell(socket, "", 1); /* Now. */
        post_numbers(&end, ah, &to);
        for (int i = 0; i < MESSAGES; i++) {
            const struct seen seen = end_wait(&end, PATIENCE_MS);
            EXPECT(seen.there && seen.wr_id < MESSAGES);
            outcome.status[seen.wr_id] = (uint8_t)seen.vendor_err;
        }
        tell(socket, &outcome, sizeof(outcome));
    }
}

/* Tells what has arrived since it was asked before, when no more comes. */
static void receive_on(int socket)
{
    struct end end = {0};
    struct outcome outcome;
    open_end(&end);
    const struct address own = end_address(&end);
    post_receives(&end, MESSAGES);
    tell(socket, &own, sizeof(own));
    while (recv(socket, &outcome, sizeof(outcome), 0) > 0) {
        memset(&outcome, 0, sizeof(outcome));
        uint32_t count = 0;
        for (struct seen seen; (seen = end_wait(&end, 100)).there; count++) {
            expect_good(&seen, "the receiver");
            outcome.arrivals[seen.immediate % MESSAGES]++;
        }
        post_receives(&end, count);
        tell(socket, &outcome, sizeof(outcome));
    }
}

/* Is all that was said to have arrived there once, and the rest at most once? How many arrived? */
static int judge(const struct outcome *sent, const struct outcome *received, bool all)
{
    int arrived = 0;
    for (int i = 0; i < MESSAGES; i++) {
        const uint8_t status = sent->status[i], arrivals = received->arrivals[i];
        if (arrivals > 1 || (status == 0 && arrivals == 0) ||
            (status != 0 && (all || status != UNRESPONSIVE))) {
            fprintf(stderr, "message %d: status %u, arrived %u times\n", i, status, arrivals);
            _exit(1);
        }
        arrived += arrivals;
    }
    return arrived;
}

/* One of them is stopped for a time, in milliseconds, after some microseconds; -1: nobody is. */
static void round_of(const struct child *sender, const struct child *receiver,
                     const struct child *stopped, int ms, unsigned int after_us)
{
    struct outcome sent, received;
    char now;
    int status;
    tell(sender->socket, "", 1);
    hear(sender->socket, &now, 1);
    if (ms >= 0) {
        usleep(after_us);
        EXPECT(kill(stopped->pid, SIGSTOP) == 0);
        EXPECT(waitpid(stopped->pid, &status, WUNTRACED) == stopped->pid && WIFSTOPPED(status));
        usleep((useconds_t)ms * 1000);
        EXPECT(kill(stopped->pid, SIGCONT) == 0);
    }
    hear(sender->socket, &sent, sizeof(sent));
    tell(receiver->socket, "", 1);
    hear(receiver->socket, &received, sizeof(received));
    const int arrived = judge(&sent, &received, ms < 3000);
    if (ms >= 0) {
        printf("%s was stopped for %d ms: %d of %d arrived\n",
               stopped == sender ? "the sender" : "the receiver", ms, arrived, MESSAGES);
    }
}

static void stopped(int ms)
{
    const struct child receiver = child_start(receive_on), sender = child_start(send_on);
    struct address to;
    hear(receiver.socket, &to, sizeof(to));
    tell(sender.socket, &to, sizeof(to));
    round_of(&sender, &receiver, NULL, -1, 0);
    for (int i = 0; i < 2; i++) {
        const struct child *one = i == 0 ? &sender : &receiver;
        round_of(&sender, &receiver, one, ms, (unsigned int)getpid() % 256);
        round_of(&sender, &receiver, NULL, -1, 0);
    }
    child_end(sender);
    child_end(receiver);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"inherited", inherited}, {"anew", anew}, {"ghost", ghost}, {"exec", exec}};
    own_path = argv[0];
    if (argc == 3 && strcmp(argv[1], "executed") == 0) {
        executed(atoi(argv[2]));
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "stopped") == 0) {
        stopped(atoi(argv[2]));
        return 0;
    }
    for (size_t i = 0; argc == 2 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run();
            printf("%s: ok\n", argv[1]);
            return 0;
        }
    }
    return 2;
}
