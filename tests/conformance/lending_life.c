/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lending_life - memory that peers map, from its registration to its end, in parents and children
 * (lending.h).
 */
#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <sys/time.h>

#include "tests/conformance/lending.h"

/* -- Registering --------------------------------------------------------------------------------*/

/* A region may have any size and place, in pages with other memory. */
static void exchange(void)
{
    const size_t bytes = 1 + (turn % 16 == 0 ? draw(3 << 20) : draw(20000)), at = draw(5000);
    uint8_t *memory = malloc(at + bytes + 5000);
    EXPECT(memory != NULL);
    memset(memory, 0x5a, at + bytes + 5000);
    struct ibv_mr *mr = enrol(memory + at, bytes);
    reach_mapped(mr);
    release(mr);
    for (size_t i = 0; i < at + bytes + 5000; i++) {
        EXPECT(memory[i] == 0x5a || (i >= at && i < at + bytes));
    }
    free(memory);
}

/* Regions of 24 bytes in one page, with memory between them that the program uses meanwhile. */
static void neighbours(void)
{
    enum {
        COUNT = 48
    };
    uint8_t *memory[COUNT];
    struct ibv_mr *mr[COUNT] = {NULL};
    void *pad = malloc(turn * 16 % PAGE); /* They lie across the end of pages, too. */
    for (int i = 0; i < COUNT; i++) {
        EXPECT((memory[i] = malloc(24)) != NULL);
        memset(memory[i], i, 24);
        mr[i] = i % 3 == 0 ? enrol(memory[i], 24) : NULL;
    }
    for (int i = 0; i < COUNT; i += 3) {
        EXPECT(is_lent(memory[i], 24));
        EXPECT(order(about(WRITE, mr[i], (uint64_t)i)).result == IBV_WC_SUCCESS);
        memset(memory[i + 1], i + 100, 24);
        free(memory[i + 2]);
        EXPECT((memory[i + 2] = calloc(1, 24 + draw(9000))) != NULL);
    }
    EXPECT(is_mapped_within(mr[COUNT - 3], 10000));
    for (int i = 0; i < COUNT; i += 3) {
        EXPECT(is_filled(memory[i], 24, (uint64_t)i));
        EXPECT(memory[i + 1][0] == i + 100 && memory[i + 1][23] == i + 100);
        EXPECT(memory[i + 2][0] == 0 && memory[i + 2][23] == 0);
    }
    for (int i = 0; i < COUNT; i += 3) {
        const int j = (i + 3 * (int)(turn % 16)) % COUNT;
        EXPECT(order(about(WRITE, mr[j], 7)).result == IBV_WC_SUCCESS);
        EXPECT(is_filled(memory[j], 24, 7) && ibv_dereg_mr(mr[j]) == 0);
    }
    for (int i = 0; i < COUNT; i++) {
        EXPECT(is_private(memory[i], 24));
        free(memory[i]);
    }
    free(pad);
    malloc_trim(0);
}

/* Two regions overlap; each stays what it is when the other goes. */
static void overlap(void)
{
    uint8_t *memory = pages(8 * PAGE);
    struct ibv_mr *first = enrol(memory + 100, 3 * PAGE), *second = enrol(memory + 200, 6 * PAGE);
    reach_mapped(first);
    reach_mapped(second);
    if (turn % 2 == 0) {
        struct ibv_mr *other = first;
        first = second;
        second = other;
    }
    EXPECT(ibv_dereg_mr(first) == 0);
    exchange_bytes(second, false);
    EXPECT(ibv_dereg_mr(second) == 0);
    EXPECT(is_private(memory, 8 * PAGE));
    EXPECT(munmap(memory, 8 * PAGE) == 0);
}

/* A region over several mappings: of one kind it is exchanged, of two kinds it is not. */
static void mappings(void)
{
    uint8_t *memory = pages(9 * PAGE);
    const bool mixed = turn % 2 == 0;
    if (mixed) {
        EXPECT(mmap(memory + 3 * PAGE, 3 * PAGE, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory + 3 * PAGE);
    } else {
        struct ibv_mr *middle = enrol(memory + 3 * PAGE, 3 * PAGE);
        reach_mapped(middle);
        release(middle);
    }
    struct ibv_mr *mr = enrol(memory + 10, 9 * PAGE - 20);
    if (mixed) {
        EXPECT(is_private(memory, 9 * PAGE));
        exchange_bytes(mr, false);
    } else {
        reach_mapped(mr);
    }
    release(mr);
    EXPECT(munmap(memory, 9 * PAGE) == 0);
}

static void reregister(void)
{
    uint8_t *memory = pages(8 * PAGE);
    struct ibv_mr *mr = enrol(memory, 4 * PAGE);
    reach_mapped(mr);
    EXPECT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + 4 * PAGE, 3 * PAGE,
                        0) == 0);
    EXPECT(is_private(memory, 4 * PAGE));
    reach_mapped(mr);
    EXPECT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ) == 0);
    EXPECT(is_mapped_within(mr, 10000));
    memset(mr->addr, 3, mr->length);
    EXPECT(order(about(WRITE, mr, 1)).result == IBV_WC_REM_ACCESS_ERR);
    connect_two();
    for (size_t i = 0; i < mr->length; i++) {
        EXPECT(memory[4 * PAGE + i] == 3);
    }
    release(mr);
    EXPECT(munmap(memory, 8 * PAGE) == 0);
}

/* The same memory again and again, beside another region that a peer never leaves. */
static void again(void)
{
    uint8_t *memory = pages(4 * PAGE), *other = pages(16 * PAGE);
    struct ibv_mr *kept = enrol(other, 16 * PAGE);
    give_order(about(turn % 2 ? STREAM : FETCH, kept, 0));
    for (int i = 0; i < 8; i++) {
        struct ibv_mr *mr = enrol(memory, 4 * PAGE);
        fill(memory, 4 * PAGE, (uint64_t)i);
        EXPECT(ibv_dereg_mr(mr) == 0);
        EXPECT(is_private(memory, 4 * PAGE) && is_filled(memory, 4 * PAGE, (uint64_t)i));
    }
    wait_for_progress(2);
    EXPECT(stop() == IBV_WC_SUCCESS);
    release(kept);
    EXPECT(munmap(memory, 4 * PAGE) == 0 && munmap(other, 16 * PAGE) == 0);
}

/* -- Children -----------------------------------------------------------------------------------*/

#define FORKED (16 * PAGE)

static uint8_t *forked;
static bool streamed;
static struct ibv_mr *forked_mr;

static void begin_forks(enum what what)
{
    streamed = what == STREAM;
    forked = pages(FORKED);
    forked_mr = enrol(forked, FORKED);
    reach_mapped(forked_mr);
    give_order(about(what, forked_mr, 0));
    wait_for_progress(3);
}

/* The last WRITE that the peer knows to be done is there. */
static void end_forks(void)
{
    EXPECT(stop() == IBV_WC_SUCCESS);
    for (size_t i = 0; i < FORKED / 8; i++) {
        EXPECT(!streamed || ((uint64_t *)(void *)forked)[i] == WORDS_OF((uint64_t)desk->progress));
    }
    exchange_bytes(forked_mr, false);
    release(forked_mr);
    EXPECT(munmap(forked, FORKED) == 0);
}

/* In a child: what it sees does not change while the peer goes on, and what it writes stays. */
static void live_as_child(void)
{
    static uint8_t seen[FORKED];
    memcpy(seen, forked, FORKED);
    wait_for_progress(20);
    EXPECT(memcmp(seen, forked, FORKED) == 0);
    memset(forked, 0xee, FORKED);
    wait_for_progress(20);
    for (size_t i = 0; i < FORKED; i++) {
        EXPECT(forked[i] == 0xee);
    }
}

static void fork_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        live_as_child();
        const pid_t grandchild = turn % 4 == 0 ? fork() : -1;
        if (grandchild == 0) {
            live_as_child();
        } else if (grandchild > 0) {
            await_child(grandchild, 0);
        }
        _exit(0);
    }
    /* The parent writes meanwhile, which the child does not see. */
    for (int i = 0; i < 20 && turn % 2 == 0; i++) {
        forked[i * 8] = (uint8_t)i;
    }
    await_child(child, 0);
    for (int i = 0; i < 20 && turn % 2 == 0; i++) {
        EXPECT(forked[i * 8] == i);
    }
}

/* The peer writes or reads all the time. */
static void forks(void)
{
    begin_forks(turn % 2 ? STREAM : FETCH);
    for (int i = 0; i < 3; i++) {
        fork_child();
    }
    end_forks();
}

static void wake_peer(int number)
{
    (void)number;
    kill(desk->peer, SIGCONT);
}

/* The peer is stopped, perhaps in the midst of the memory, and goes on after a while. */
static void stop_peer(void)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    wait_for_progress(1 + (uint32_t)draw(5));
    EXPECT(kill(desk->peer, SIGSTOP) == 0);
    EXPECT(signal(SIGALRM, wake_peer) != SIG_ERR && setitimer(ITIMER_REAL, &soon, NULL) == 0);
}

static void forks_stopped(void)
{
    begin_forks(turn % 2 ? STREAM : FETCH);
    stop_peer();
    fork_child();
    end_forks();
}

/* A child that gets a copy without our knowledge ends at once when it touches the memory. */
static void clones(void)
{
    begin_forks(STREAM);
    const pid_t child = (pid_t)call(SYS_fork, (const long[6]){0});
    if (child == 0) {
        *(volatile uint8_t *)forked = 1;
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    end_forks();
}

/* Children that begin another program see the memory until then, or never. */
static void spawns(void)
{
    extern char **environ;
    char *const words[] = {"/bin/true", NULL};
    pid_t child;
    begin_forks(STREAM);
    if (turn % 3 == 0) {
        if ((child = vfork()) == 0) {
            _exit(*(volatile uint8_t *)forked == 0xee);
        }
        await_child(child, 0);
    } else if (turn % 3 == 1) {
        EXPECT(posix_spawn(&child, words[0], NULL, NULL, words, environ) == 0);
        await_child(child, 0);
    } else {
        EXPECT(system("true") == 0);
    }
    end_forks();
}

/* -- The end of a region ------------------------------------------------------------------------*/

/* A peer that writes on through what it once mapped changes nothing any more. */
static void revoked(void)
{
    uint8_t *memory = pages(16 * PAGE);
    struct ibv_mr *mr = enrol(memory, 16 * PAGE);
    reach_mapped(mr);
    give_order(about(HAMMER, mr, 0xa0 + turn % 16));
    wait_for_progress(2);
    EXPECT(memory[0] == 0xa0 + turn % 16 && memory[16 * PAGE - 1] == 0xa0 + turn % 16);
    EXPECT(ibv_dereg_mr(mr) == 0);
    fill(memory, 16 * PAGE, turn);
    wait_for_progress(3);
    EXPECT(is_private(memory, 16 * PAGE) && is_filled(memory, 16 * PAGE, turn));
    EXPECT(stop() >= 1);
    EXPECT(munmap(memory, 16 * PAGE) == 0);
}

/* A peer that is stopped within the memory, or outside of it. ibv_dereg_mr waits for it. */
static void stopped(void)
{
    uint8_t *memory = pages(16 * PAGE);
    struct ibv_mr *mr = enrol(memory, 16 * PAGE);
    reach_mapped(mr);
    give_order(about(turn % 2 ? STREAM : FETCH, mr, 0));
    stop_peer();
    EXPECT(ibv_dereg_mr(mr) == 0);
    fill(memory, 16 * PAGE, turn);
    EXPECT(is_private(memory, 16 * PAGE));
    EXPECT(hear().result == IBV_WC_REM_ACCESS_ERR);
    EXPECT(is_filled(memory, 16 * PAGE, turn));
    connect_two();
    EXPECT(munmap(memory, 16 * PAGE) == 0);
}

/* A peer that is killed there. The next one finds the owner as it was. */
static void killed(void)
{
    uint8_t *memory = pages(16 * PAGE);
    struct ibv_mr *mr = enrol(memory, 16 * PAGE);
    reach_mapped(mr);
    give_order(about(turn % 2 ? STREAM : FETCH, mr, 0));
    wait_for_progress(1 + (uint32_t)draw(5));
    EXPECT(kill(desk->peer, SIGKILL) == 0);
    EXPECT(ibv_dereg_mr(mr) == 0);
    fill(memory, 16 * PAGE, turn);
    EXPECT(is_private(memory, 16 * PAGE) && is_filled(memory, 16 * PAGE, turn));
    connect_two();
    mr = enrol(memory, 16 * PAGE);
    reach_mapped(mr);
    release(mr);
    EXPECT(munmap(memory, 16 * PAGE) == 0);
}

/* Memory that the program unmaps while it is registered: what is there then, is nobody's. */
static void unmapped(void)
{
    uint8_t *memory = pages(8 * PAGE);
    struct ibv_mr *mr = enrol(memory, 8 * PAGE);
    reach_mapped(mr);
    give_order(about(HAMMER, mr, 0xb0));
    wait_for_progress(2);
    EXPECT(munmap(memory + 2 * PAGE, 4 * PAGE) == 0);
    EXPECT(mmap(memory + 2 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory + 2 * PAGE);
    fill(memory + 2 * PAGE, 4 * PAGE, turn);
    wait_for_progress(2);
    EXPECT(ibv_dereg_mr(mr) == 0);
    EXPECT(is_private(memory, 8 * PAGE) && is_filled(memory + 2 * PAGE, 4 * PAGE, turn));
    EXPECT(memory[0] == 0xb0 && memory[8 * PAGE - 1] == 0xb0);
    fill(memory, 8 * PAGE, turn);
    wait_for_progress(2);
    EXPECT(is_filled(memory, 8 * PAGE, turn));
    EXPECT(stop() >= 1);
    EXPECT(munmap(memory, 8 * PAGE) == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"exchange", exchange},
        {"neighbours", neighbours},
        {"overlap", overlap},
        {"mappings", mappings},
        {"reregister", reregister},
        {"again", again},
        {"forks", forks},
        {"forks-stopped", forks_stopped},
        {"clones", clones},
        {"spawns", spawns},
        {"revoked", revoked},
        {"stopped", stopped},
        {"killed", killed},
        {"unmapped", unmapped},
        {NULL, NULL},
    };
    return run_cases(cases, argc, argv);
}
