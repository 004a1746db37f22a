/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_mapped - queues that a program writes and reads itself, or a process to which it leaves them.
 *
 * Usage: efa_mapped chain ROUNDS    A block of numbers comes in, is squared, and goes back by a
 *                                   WRITE, all by a child that makes no call of verbs: it stands
 *                                   for an accelerator. The queue pair's owner sleeps meanwhile.
 *        efa_mapped owner ROUNDS    The owner does the same by calls, for comparison.
 *        efa_mapped all             Each kind of descriptor, and each mistake.
 *        efa_mapped refused         Without --map-queues.
 * under `nonic run --nic efa --map-queues`
 */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/conformance/efa_peer.h"
#include "wire/efa_test_entries.h"

enum {
    NUMBERS = 256,
    BLOCK = NUMBERS * sizeof(uint32_t),
    RESULT = 1 << 16, /* Where results lie in each end's memory. */
    RECEIVES = 16,
    HELLO = 99,
};

/* -- Mapped queues, as their user sees them -----------------------------------------------------*/

struct queue {
    struct efa_wq_attr at;
    uint16_t count; /* Entries that were ever written. */
};

struct completions {
    struct efa_cq_attr at;
    uint32_t count; /* Entries that were ever read. */
};

static struct {
    struct queue sends, receives;
    struct completions completions;
} mapped;

static int call(const char *name, void *object, void *first, void *second, size_t bytes)
{
    union {
        void *address;
        int (*one)(void *, void *, uint32_t);
        int (*two)(void *, void *, void *, uint32_t);
    } found = {.address = dlsym(RTLD_DEFAULT, name)}; /* Newer than the headers here. */
    EXPECT(found.address != NULL);
    return second == NULL ? found.one(object, first, (uint32_t)bytes)
                          : found.two(object, first, second, (uint32_t)bytes);
}

static int query_cq(struct end *end)
{
    mapped.completions = (struct completions){.count = 0};
    return call("efadv_query_cq", ibv_cq_ex_to_cq(end->cq), &mapped.completions.at, NULL,
                sizeof(mapped.completions.at));
}

static int query_qp(struct end *end)
{
    mapped.sends = mapped.receives = (struct queue){.count = 0};
    return call("efadv_query_qp_wqs", end->qp, &mapped.sends.at, &mapped.receives.at,
                sizeof(mapped.sends.at));
}

static void ring(const struct queue *queue)
{
    atomic_store_explicit((_Atomic uint32_t *)queue->at.doorbell, queue->count,
                          memory_order_release);
}

static void write_send(struct tx_entry entry)
{
    struct queue *queue = &mapped.sends;
    entry.ctrl2 = (uint8_t)(entry.ctrl2 | 0x1c | (queue->count / queue->at.num_entries & 1));
    memcpy(queue->at.buffer + queue->count % queue->at.num_entries * sizeof(entry), &entry,
           sizeof(entry));
    queue->count++;
}

static void write_receive(uint16_t id, uint64_t address, uint16_t length, uint32_t lkey,
                          uint32_t flags)
{
    struct queue *queue = &mapped.receives;
    const struct rx_entry entry = {(uint32_t)address, (uint32_t)(address >> 32), id, length,
                                   lkey | flags};
    memcpy(queue->at.buffer + queue->count % queue->at.num_entries * sizeof(entry), &entry,
           sizeof(entry));
    queue->count++;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct completion_entry wait_done(void)
{
    struct completions *completions = &mapped.completions;
    const struct completion_entry *entry =
        (const struct completion_entry *)(const void *)completions->at.buffer +
        completions->count % completions->at.num_entries;
    const uint32_t phase = (completions->count / completions->at.num_entries & 1) == 0;
    const double began = seconds();
    while ((atomic_load_explicit((const _Atomic uint8_t *)&entry->flags, memory_order_acquire) &
            1) != phase) {
        EXPECT(seconds() - began < 10);
        sched_yield(); /* An accelerator would have a processor of its own. */
    }
    completions->count++;
    return *entry;
}

/* -- Two ends -----------------------------------------------------------------------------------*/

static struct tx_buffer buffer(uint64_t address, uint32_t bytes, uint32_t key)
{
    return (struct tx_buffer){bytes, key, (uint32_t)address, (uint32_t)(address >> 32)};
}

static void open_shared(struct end *end)
{
    end_open(end);
    EXPECT(ibv_dereg_mr(end->mr) == 0);
    free(end->memory);
    end->memory = mmap(NULL, PEER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(end->memory != MAP_FAILED);
    end->mr = ibv_reg_mr(end->pd, end->memory, PEER_BYTES,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    EXPECT(end->mr != NULL);
    end->qp = end_queue_pair(end, 0, 7);
}

static void close_memory(struct end *end)
{
    EXPECT(ibv_dereg_mr(end->mr) == 0 && munmap(end->memory, PEER_BYTES) == 0);
}

static struct address exchange(struct end *end, int socket)
{
    const struct address own = end_address(end);
    struct address other;
    EXPECT(write(socket, &own, sizeof(own)) == sizeof(own));
    EXPECT(read(socket, &other, sizeof(other)) == sizeof(other));
    return other;
}

static uint16_t number_of(struct ibv_ah *ah)
{
    struct efa_ah_attr attr = {0};
    EXPECT(efadv_query_ah(ah, (void *)&attr, sizeof(attr)) == 0);
    return attr.ahn;
}

static uint32_t number(uint32_t round, uint32_t i)
{
    return round * 1000003 + i;
}

/* Sends blocks, and looks for their squares. */
static void run_peer(int socket, uint32_t rounds)
{
    struct end end = {0};
    open_shared(&end);
    const struct address to = exchange(&end, socket);
    struct ibv_ah *ah = end_handle(&end, &to.gid);
    uint32_t *block = (uint32_t *)(void *)end.memory;
    const uint32_t *squares = (const uint32_t *)(const void *)(end.memory + RESULT);
    char go;
    EXPECT(read(socket, &go, 1) == 1);
    const double began = seconds();
    for (uint32_t round = 0; round < rounds; round++) {
        const struct request request = {.opcode = IBV_WR_SEND, .wr_id = 1, .bytes = BLOCK};
        end_receive(&end, 2, 0, 0);
        for (uint32_t i = 0; i < NUMBERS; i++) {
            block[i] = number(round, i);
        }
        EXPECT(end_post(&end, ah, &to, &request) == 0);
        for (int i = 0; i < 2; i++) {
            const struct seen seen = end_wait(&end, 10000);
            EXPECT(seen.there && seen.status == IBV_WC_SUCCESS);
            EXPECT(seen.wr_id == 1 || seen.immediate == htobe32(round));
        }
        for (uint32_t i = 0; i < NUMBERS; i++) {
            EXPECT(squares[i] == number(round, i) * number(round, i));
        }
    }
    printf("%u rounds, %.2f us each\n", rounds, (seconds() - began) * 1e6 / rounds);
    exit(0);
}

static void square(const uint8_t *from, uint8_t *to)
{
    for (uint32_t i = 0; i < NUMBERS; i++) {
        const uint32_t one = ((const uint32_t *)(const void *)from)[i];
        ((uint32_t *)(void *)to)[i] = one * one;
    }
}

/* The accelerator: memory is all that it touches. */
static void accelerate(const struct end *end, const struct address *to, uint16_t ahn, int socket,
                       uint32_t rounds)
{
    const uint64_t base = (uintptr_t)end->memory;
    const uint32_t lkey = end->mr->lkey;
    for (uint16_t i = 0; i < RECEIVES; i++) {
        write_receive(i, base + i * BLOCK, BLOCK, lkey, 3u << 30);
    }
    ring(&mapped.receives);
    EXPECT(write(socket, "g", 1) == 1);
    for (uint32_t round = 0; round < rounds;) {
        const struct completion_entry done = wait_done();
        EXPECT(done.status == 0);
        if ((done.flags >> 1 & 3) == 1) {
            continue; /* A WRITE of an earlier round. */
        }
        EXPECT(done.length == BLOCK && done.qp_num == end->qp->qp_num);
        square(end->memory + done.req_id * BLOCK, end->memory + RESULT);
        write_send((struct tx_entry){.req_id = HELLO,
                                     .ctrl1 = 0x80 | 0x10 | 2,
                                     .dest_qp_num = (uint16_t)to->qpn,
                                     .length = 1,
                                     .immediate_data = round,
                                     .ah = ahn,
                                     .qkey = to->qkey,
                                     .sgl = {buffer(to->memory + RESULT, BLOCK, to->rkey),
                                             buffer(base + RESULT, BLOCK, lkey)}});
        ring(&mapped.sends);
        write_receive(done.req_id, base + done.req_id * BLOCK, BLOCK, lkey, 3u << 30);
        ring(&mapped.receives);
        round++;
    }
    for (;;) { /* The last WRITE's. */
        const struct completion_entry done = wait_done();
        if ((done.flags >> 1 & 3) == 1 && mapped.completions.count == 2 * rounds) {
            _exit(done.status);
        }
    }
}

/* The same by calls. */
static void serve_by_calls(struct end *end, const struct address *to, struct ibv_ah *ah, int socket,
                           uint32_t rounds)
{
    for (uint32_t i = 0; i < RECEIVES; i++) {
        end_receive(end, i, i * BLOCK, BLOCK);
    }
    EXPECT(write(socket, "g", 1) == 1);
    for (uint32_t round = 0, ended = 0; ended < rounds;) {
        const struct seen seen = end_wait(end, 10000);
        EXPECT(seen.there && seen.status == IBV_WC_SUCCESS);
        if (seen.opcode == IBV_WC_RDMA_WRITE) {
            ended++;
            continue;
        }
        square(end->memory + seen.wr_id * BLOCK, end->memory + RESULT);
        const struct request request = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                        .wr_id = HELLO,
                                        .offset = RESULT,
                                        .bytes = BLOCK,
                                        .immediate = htobe32(round++)};
        EXPECT(end_post(end, ah, to, &request) == 0);
        end_receive(end, seen.wr_id, (uint32_t)seen.wr_id * BLOCK, BLOCK);
    }
}

static void expect_end(pid_t pid)
{
    int status;
    EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void run_chain(uint32_t rounds, bool by_calls)
{
    struct end end = {0};
    int sockets[2];
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0);
    const pid_t peer = fork();
    EXPECT(peer >= 0);
    if (peer == 0) {
        run_peer(sockets[1], rounds);
    }
    open_shared(&end);
    const struct address to = exchange(&end, sockets[0]);
    struct ibv_ah *ah = end_handle(&end, &to.gid);
    const uint16_t ahn = number_of(ah);
    if (by_calls) {
        serve_by_calls(&end, &to, ah, sockets[0], rounds);
        expect_end(peer);
        close_memory(&end);
        return;
    }
    EXPECT(query_qp(&end) == EINVAL); /* Its completion queue is not mapped. */
    EXPECT(query_cq(&end) == 0 && query_qp(&end) == 0);
    const pid_t accelerator = fork();
    EXPECT(accelerator >= 0);
    if (accelerator == 0) {
        accelerate(&end, &to, ahn, sockets[0], rounds);
    }
    expect_end(accelerator);
    expect_end(peer);
    EXPECT(ibv_destroy_ah(ah) == 0);
    EXPECT(ibv_destroy_qp(end.qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(end.cq)) == 0);
    close_memory(&end);
}

/* -- Each descriptor, and each mistake ----------------------------------------------------------*/

/* A queue pair that sends to itself. */
static struct tx_entry to_self(const struct end *end, uint16_t ahn, uint8_t operation)
{
    return (struct tx_entry){.req_id = 1000,
                             .ctrl1 = 0x80 | operation,
                             .dest_qp_num = (uint16_t)end->qp->qp_num,
                             .length = 1,
                             .ah = ahn,
                             .qkey = PEER_QKEY,
                             .sgl = {buffer((uintptr_t)end->memory, 100, end->mr->lkey)}};
}

static struct completion_entry ended(struct tx_entry entry, uint32_t completions)
{
    struct completion_entry done = {0}, one;
    write_send(entry);
    ring(&mapped.sends);
    for (uint32_t i = 0; i < completions; i++) {
        one = wait_done();
        if ((one.flags >> 1 & 3) == 1) {
            done = one;
        } else {
            EXPECT(one.status == 0);
        }
    }
    EXPECT(done.req_id == entry.req_id);
    return done;
}

static void reopen(struct end *end)
{
    EXPECT(ibv_destroy_qp(end->qp) == 0);
    end->qp = end_queue_pair(end, 0, 0);
    EXPECT(query_qp(end) == 0);
}

static void receive_one(const struct end *end)
{
    const uint64_t at = (uintptr_t)end->memory + RESULT;
    write_receive(5, at, 60, end->mr->lkey, 1u << 30);
    write_receive(77, at + 60, 200, end->mr->lkey, 1u << 31);
    ring(&mapped.receives);
}

static void try_kinds(struct end *end, uint16_t ahn)
{
    end_fill(end, 3);
    receive_one(end); /* In two pieces. */
    EXPECT(ended(to_self(end, ahn, 0), 2).status == 0);
    EXPECT(memcmp(end->memory, end->memory + RESULT, 100) == 0);
    receive_one(end);
    struct tx_entry entry = to_self(end, ahn, 0);
    entry.ctrl1 |= 0x30; /* Inline, with an immediate value. */
    entry.immediate_data = 0x12345678;
    entry.length = 32;
    memset(entry.inline_data, 9, 32);
    EXPECT(ended(entry, 2).status == 0);
    EXPECT(end->memory[RESULT] == 9 && end->memory[RESULT + 31] == 9);
    entry = to_self(end, ahn, 1);
    entry.sgl[1] = buffer((uintptr_t)end->memory + RESULT, 100, end->mr->lkey);
    EXPECT(ended(entry, 1).status == 0); /* READ. */
    EXPECT(memcmp(end->memory, end->memory + RESULT, 100) == 0);
    for (uint32_t i = 0; i < 3 * mapped.sends.at.num_entries; i++) { /* Rounds of both queues. */
        entry = to_self(end, ahn, 2);
        entry.req_id = (uint16_t)i;
        entry.sgl[0] = buffer((uintptr_t)end->memory + RESULT, 4, end->mr->rkey);
        entry.sgl[1] = buffer((uintptr_t)end->memory + i, 4, end->mr->lkey);
        EXPECT(ended(entry, 1).status == 0);
        EXPECT(memcmp(end->memory + RESULT, end->memory + i, 4) == 0);
    }
}

static void try_mistakes(struct end *end, uint16_t ahn)
{
    struct tx_entry entry = to_self(end, ahn, 3);
    EXPECT(ended(entry, 1).status == 3);
    entry = to_self(end, (uint16_t)(ahn + 1), 0);
    EXPECT(ended(entry, 1).status == 4);
    entry = to_self(end, ahn, 0);
    entry.sgl[0].lkey ^= 1;
    EXPECT(ended(entry, 1).status == 5);
    entry = to_self(end, ahn, 0);
    entry.length = 3;
    EXPECT(ended(entry, 1).status == 6);
    EXPECT(ended(to_self(end, ahn, 0), 1).status == 10); /* No receive. */
}

/* The queue pair fails, and nothing else: another one goes on. */
static void try_breaches(struct end *end, uint16_t ahn)
{
    for (int breach = 0; breach < 4; breach++) {
        struct tx_entry entry = to_self(end, ahn, 0);
        switch (breach) {
        case 0: /* More than the queue has. */
            mapped.sends.count = (uint16_t)(mapped.sends.count + mapped.sends.at.num_entries + 1);
            ring(&mapped.sends);
            break;
        case 1:
            mapped.receives.count =
                (uint16_t)(mapped.receives.count + mapped.receives.at.num_entries + 1);
            ring(&mapped.receives);
            break;
        case 2: /* As if it had not been written yet. */
            entry.ctrl2 = 1;
            EXPECT(ended(entry, 1).status == 2);
            break;
        case 3: /* The second piece of no receive. */
            write_receive(1, (uintptr_t)end->memory, 10, end->mr->lkey, 1u << 31);
            ring(&mapped.receives);
            break;
        }
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
        struct ibv_qp_init_attr init;
        const double began = seconds();
        while (attr.qp_state != IBV_QPS_ERR) {
            EXPECT(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init) == 0);
            EXPECT(seconds() - began < 10);
        }
        reopen(end);
        receive_one(end);
        EXPECT(ended(to_self(end, ahn, 0), 2).status == 0);
    }
}

static void run_all(void)
{
    struct end end = {0};
    open_shared(&end);
    struct ibv_ah *ah = end_handle(&end, &end.gid);
    EXPECT(end.mr->lkey >> 24 == 0); /* A descriptor has no more. */
    EXPECT(query_cq(&end) == 0);
    reopen(&end);
    try_kinds(&end, number_of(ah));
    try_mistakes(&end, number_of(ah));
    try_breaches(&end, number_of(ah));
    EXPECT(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(end.qp) == 0);
    EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(end.cq)) == 0);
    close_memory(&end);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000;
    if (strcmp(what, "refused") == 0) {
        struct end end = {0};
        open_shared(&end);
        EXPECT(query_cq(&end) == EOPNOTSUPP && query_qp(&end) == EOPNOTSUPP);
        close_memory(&end);
    } else if (strcmp(what, "all") == 0) {
        run_all();
    } else {
        EXPECT(strcmp(what, "chain") == 0 || strcmp(what, "owner") == 0);
        run_chain(rounds, strcmp(what, "owner") == 0);
    }
    return 0;
}
