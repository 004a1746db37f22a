/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lending - two ordinary programs of one machine: an owner with one thread, and a peer that reaches
 * the owner's memory while the owner does all that could show that its pages were exchanged.
 *
 * Method     The owner is the first process. It says by a socket what the peer should do
 *            (lending_peer.h), and looks in /proc/self/maps whether its memory is one that peers
 *            map ("nonic-region"). A nursery, which knows nothing of verbs, makes a new peer when
 *            one was killed. Usage: PROGRAM CASE FIRST TIMES, under
 *            `nonic run --map-memory now`: turns from FIRST on.
 * Source     docs/decisions/0061.
 */
#ifndef TESTS_CONFORMANCE_LENDING_H
#define TESTS_CONFORMANCE_LENDING_H

#include <sched.h>

#include "tests/conformance/lending_peer.h"

/* -- Making the two -----------------------------------------------------------------------------*/

/* Makes peers until the owner has ended. Each ends with the nursery, that with the owner. */
static void nurse(int end)
{
    line = end;
    for (;;) {
        const pid_t peer = fork();
        EXPECT(peer >= 0);
        if (peer == 0) {
            EXPECT(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
            desk->peer = getpid();
            serve();
            exit(0); /* Its counters are printed. */
        }
        int status;
        EXPECT(waitpid(peer, &status, 0) == peer);
        if (!WIFSIGNALED(status)) {
            _exit(WEXITSTATUS(status));
        }
    }
}

static pid_t nursery;

static void make_two(void)
{
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    desk = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(desk != MAP_FAILED);
    if ((nursery = fork()) == 0) {
        EXPECT(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        close(ends[0]);
        nurse(ends[1]);
    }
    close(ends[1]);
    line = ends[0];
    victim_open(&self);
    EXPECT(ibv_dereg_mr(self.mr) == 0);
}

static uint64_t turn; /* A case may depend on which one it is. */
static uint64_t drawn = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return drawn % below;
}

/* -- The owner ----------------------------------------------------------------------------------*/

static void give_order(struct order order)
{
    desk->stop = false;
    desk->progress = 0;
    EXPECT(send(line, &order, sizeof(order), 0) == sizeof(order));
}

static struct answer hear(void)
{
    struct answer answer;
    ssize_t bytes;
    do {
        bytes = recv(line, &answer, sizeof(answer), 0);
    } while (bytes < 0 && errno == EINTR);
    EXPECT(bytes == sizeof(answer));
    return answer;
}

static struct answer order(struct order order)
{
    give_order(order);
    return hear();
}

static void connect_two(void)
{
    EXPECT(ibv_destroy_qp(self.qp) == 0 && (self.qp = victim_create_qp(&self)) != NULL);
    struct address own = {.qpn = self.qp->qp_num};
    EXPECT(ibv_query_gid(self.context, 1, 0, &own.gid) == 0);
    const struct answer answer = order((struct order){.what = CONNECT, .address = own});
    victim_connect(self.qp, &answer.address, 14, 7);
}

static struct ibv_mr *enrol(void *memory, size_t bytes)
{
    struct ibv_mr *mr = ibv_reg_mr(self.pd, memory, bytes, VICTIM_ACCESS);
    EXPECT(mr != NULL);
    return mr;
}

/* How many of these bytes peers may map, and the inode of the last file behind them. */
static size_t count_lent(const void *memory, size_t bytes, uint64_t *inode)
{
    const uint64_t from = (uintptr_t)memory, to = from + bytes;
    size_t lent = 0;
    struct area area;
    FILE *maps = open_maps();
    *inode = 0;
    while (next_area(maps, &area)) {
        if (area.start < to && area.end > from && area.shared) {
            const uint64_t start = area.start > from ? area.start : from;
            lent += area.is_region ? (area.end < to ? area.end : to) - start : 0;
            *inode = area.inode;
        }
    }
    fclose(maps);
    return lent;
}

static bool is_lent(const void *memory, size_t bytes)
{
    uint64_t inode;
    return count_lent(memory, bytes, &inode) == bytes;
}

static bool is_private(const void *memory, size_t bytes)
{
    uint64_t inode;
    return count_lent(memory, bytes, &inode) == 0;
}

static struct order about(enum what what, const struct ibv_mr *mr, uint64_t value)
{
    struct order made = {.what = what,
                         .memory = (uintptr_t)mr->addr,
                         .bytes = mr->length < BUFFER_BYTES ? (uint32_t)mr->length : BUFFER_BYTES,
                         .key = mr->rkey,
                         .value = value};
    (void)count_lent(mr->addr, mr->length, &made.inode);
    return made;
}

/* The peer has it mapped within this time. */
static bool is_mapped_within(const struct ibv_mr *mr, uint64_t ms)
{
    return order(about(WARM, mr, ms)).result == 1;
}

/* The peer reads and writes all of it, by what it has mapped or by the kernel. */
static void exchange_bytes(const struct ibv_mr *mr, bool mapped)
{
    const uint64_t value = draw(1000);
    fill(mr->addr, mr->length, value);
    struct answer answer = order(about(READ, mr, value));
    EXPECT(answer.result == IBV_WC_SUCCESS && (!mapped || answer.copies == 0));
    answer = order(about(WRITE, mr, value + 1));
    EXPECT(answer.result == IBV_WC_SUCCESS &&
           (!mapped || mr->length > 65536 || answer.copies == 0));
    EXPECT(is_filled(mr->addr, mr->length, value + 1));
}

static void reach_mapped(const struct ibv_mr *mr)
{
    EXPECT(is_lent(mr->addr, mr->length));
    EXPECT(is_mapped_within(mr, 10000));
    exchange_bytes(mr, true);
}

static void reach_unmapped(const struct ibv_mr *mr)
{
    EXPECT(is_private(mr->addr, mr->length));
    EXPECT(!is_mapped_within(mr, 2));
    exchange_bytes(mr, false);
}

/* It is private again, with the same bytes. */
static void release(struct ibv_mr *mr)
{
    void *memory = mr->addr;
    const size_t bytes = mr->length;
    uint8_t *kept = malloc(bytes);
    EXPECT(kept != NULL);
    memcpy(kept, memory, bytes);
    EXPECT(ibv_dereg_mr(mr) == 0);
    EXPECT(is_private(memory, bytes) && memcmp(kept, memory, bytes) == 0);
    free(kept);
}

static uint8_t *pages(size_t bytes)
{
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED);
    return memory;
}

static void wait_for_progress(uint32_t count)
{
    const uint32_t before = desk->progress;
    const double end = seconds_now() + 20;
    while (desk->progress - before < count) {
        EXPECT(seconds_now() < end);
        sched_yield();
    }
}

static int64_t stop(void)
{
    desk->stop = true;
    return hear().result;
}

/* Until it is gone: it hears nothing any more. */
static void kill_peer(void)
{
    const pid_t peer = desk->peer;
    EXPECT(kill(peer, SIGKILL) == 0);
    while (kill(peer, 0) == 0) {
        sched_yield();
    }
}

static void await_child(pid_t child, int status)
{
    int ended;
    EXPECT(child > 0 && waitpid(child, &ended, 0) == child);
    if (ended != status) {
        fprintf(stderr, "the child ended with 0x%x, not 0x%x\n", ended, status);
    }
    EXPECT(ended == status);
}

/* -- The cases of a program ---------------------------------------------------------------------*/

struct test_case {
    const char *name;
    void (*run)(void);
};

static void list(const struct test_case *cases)
{
    for (; cases->name != NULL; cases++) {
        printf("%s\n", cases->name);
    }
}

/* Without arguments lists the cases. */
static int run_cases(const struct test_case *cases, int argc, char **argv)
{
    if (argc == 1) {
        list(cases);
        return 0;
    }
    EXPECT(argc == 4);
    for (; cases->name != NULL && strcmp(cases->name, argv[1]) != 0; cases++) {
    }
    EXPECT(cases->name != NULL);
    const uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    drawn += first;
    make_two();
    connect_two();
    for (turn = first; turn < first + count; turn++) {
        cases->run();
    }
    close(line);
    await_child(nursery, 0);
    printf("done\n");
    return 0;
}

#endif
