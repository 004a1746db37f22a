/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lending_order - what a program sees of a peer's WRITEs in memory that the peer maps, and what its
 * signal handlers and threads do there (lending.h).
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>

#include "tests/conformance/lending.h"

/* -- Order --------------------------------------------------------------------------------------*/

/* When the last byte is there, all are. */
static void last_byte(void)
{
    const size_t bytes = turn % 2 == 0 ? 1 + draw(65000) : 1 + draw(600), at = draw(PAGE);
    uint8_t *memory = pages(32 * PAGE);
    struct ibv_mr *mr = enrol(memory + at, bytes);
    reach_mapped(mr);
    memset(mr->addr, 0, bytes);
    for (uint64_t value = 1; value <= 20; value++) {
        const volatile uint8_t *seen = mr->addr;
        give_order(about(ORDERED, mr, value));
        while (seen[bytes - 1] != value) {
        }
        for (size_t i = bytes; i-- > 0;) { /* The one before the last is the last to come. */
            EXPECT(seen[i] == value);
        }
        const struct answer answer = hear();
        EXPECT(answer.result == IBV_WC_SUCCESS && answer.copies == 0);
    }
    release(mr);
    EXPECT(munmap(memory, 32 * PAGE) == 0);
}

/* Words of 8 bytes are those of one WRITE. */
static void words(void)
{
    const size_t count = 1 + draw(500);
    uint64_t *memory = (uint64_t *)(void *)pages(PAGE);
    struct ibv_mr *mr = enrol(memory, count * 8);
    reach_mapped(mr);
    memset(memory, 0, PAGE);
    give_order(about(ORDERED, mr, 0));
    EXPECT(hear().result == IBV_WC_SUCCESS);
    give_order(about(STREAM, mr, 0));
    uint64_t before = 0;
    for (uint32_t i = 0; i < 1000000; i++) {
        const uint64_t number = NUMBER_OF(((volatile uint64_t *)memory)[count - 1]);
        EXPECT(number >= before && number < before + (UINT64_C(1) << 32));
        before = number;
    }
    EXPECT(stop() == IBV_WC_SUCCESS);
    release(mr);
    EXPECT(munmap(memory, PAGE) == 0);
}

/* -- Handlers of signals ------------------------------------------------------------------------*/

#define COUNTERS (8 * PAGE / 8)

static volatile uint64_t *counted;
static volatile uint64_t counts;

static void count_all(int number)
{
    (void)number;
    for (size_t i = 0; i < COUNTERS; i += 64) {
        counted[i]++;
    }
    counts++;
}

/* A handler counts in the memory while it is exchanged, and back: nothing is lost. */
static void handlers(void)
{
    const struct itimerval often = {{0, 50}, {0, 50}};
    counted = (uint64_t *)(void *)pages(8 * PAGE);
    counts = 0;
    EXPECT(signal(SIGALRM, count_all) != SIG_ERR && setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        struct ibv_mr *mr = enrol((void *)(uintptr_t)counted, 8 * PAGE);
        EXPECT(is_lent((void *)(uintptr_t)counted, 8 * PAGE));
        EXPECT(ibv_dereg_mr(mr) == 0);
        EXPECT(is_private((void *)(uintptr_t)counted, 8 * PAGE));
    }
    EXPECT(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0);
    EXPECT(signal(SIGALRM, SIG_IGN) != SIG_ERR && counts > 0);
    for (size_t i = 0; i < COUNTERS; i += 64) {
        EXPECT(counted[i] == counts);
    }
    EXPECT(munmap((void *)(uintptr_t)counted, 8 * PAGE) == 0);
}

/* -- Threads ------------------------------------------------------------------------------------*/

static atomic_bool threads_end;
static uint8_t *threads_memory;

static void *count_up(void *nothing)
{
    atomic_uint *words = (atomic_uint *)(void *)threads_memory;
    uint32_t rounds = 0;
    (void)nothing;
    do {
        for (size_t i = 0; i < 4 * PAGE / 4; i += 256) {
            words[i]++;
        }
        rounds++;
    } while (!threads_end);
    return (void *)(uintptr_t)rounds;
}

static int count_up_too(void *nothing)
{
    return (int)(uintptr_t)count_up(nothing);
}

/* Threads count in one half of the memory while a peer writes into the other one. */
static void check_counts(uint32_t rounds)
{
    for (size_t i = 0; i < 4 * PAGE / 4; i += 256) {
        EXPECT(((uint32_t *)(void *)threads_memory)[i] == rounds);
    }
}

static uint32_t count_threads(void)
{
    uint32_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    EXPECT(tasks != NULL);
    while (readdir(tasks) != NULL) {
        count++;
    }
    closedir(tasks);
    return count;
}

/* The C library's join is over before the thread has gone from the kernel. */
static void wait_for_threads(uint32_t count)
{
    while (count_threads() > count) {
        sched_yield();
    }
}

static uint32_t run_threads(struct ibv_mr *rest)
{
    pthread_t first;
    thrd_t second;
    void *rounds;
    int more;
    if (turn % 2) {
        EXPECT(pthread_create(&first, NULL, count_up, NULL) == 0);
        EXPECT(is_private(threads_memory, 8 * PAGE));
        EXPECT(thrd_create(&second, count_up_too, NULL) == thrd_success);
    } else {
        EXPECT(thrd_create(&second, count_up_too, NULL) == thrd_success);
        EXPECT(is_private(threads_memory, 8 * PAGE));
        EXPECT(pthread_create(&first, NULL, count_up, NULL) == 0);
    }
    uint8_t *other = pages(2 * PAGE);
    struct ibv_mr *mr = enrol(other, 2 * PAGE); /* With several threads nothing is exchanged. */
    EXPECT(is_private(other, 2 * PAGE) && is_private(threads_memory, 8 * PAGE));
    exchange_bytes(mr, false);
    exchange_bytes(rest, false);
    release(mr);
    EXPECT(munmap(other, 2 * PAGE) == 0);
    threads_end = true;
    EXPECT(pthread_join(first, &rounds) == 0 && thrd_join(second, &more) == thrd_success);
    return (uint32_t)(uintptr_t)rounds + (uint32_t)more;
}

/* A program that gets threads, and is alone again afterwards. */
static void threads(void)
{
    const uint32_t before = count_threads();
    threads_end = false;
    threads_memory = pages(8 * PAGE);
    struct ibv_mr *mr = enrol(threads_memory, 8 * PAGE);
    struct ibv_mr *rest = enrol(threads_memory + 4 * PAGE, 4 * PAGE);
    reach_mapped(mr);
    memset(threads_memory, 0, 4 * PAGE);
    give_order(about(FETCH, mr, 0));
    wait_for_progress(2);
    EXPECT(stop() == IBV_WC_SUCCESS);
    check_counts(run_threads(rest));
    wait_for_threads(before);
    release(rest);
    release(mr);
    mr = enrol(threads_memory, 8 * PAGE);
    reach_mapped(mr);
    release(mr);
    EXPECT(munmap(threads_memory, 8 * PAGE) == 0);
}

/* The thread begins while the peer is in the memory. */
static void threads_in_time(void)
{
    const uint32_t before = count_threads();
    pthread_t thread;
    threads_end = false;
    threads_memory = pages(16 * PAGE);
    struct ibv_mr *mr = enrol(threads_memory + 4 * PAGE, 12 * PAGE);
    reach_mapped(mr);
    struct ibv_mr *whole = enrol(threads_memory, 16 * PAGE);
    give_order(about(turn % 2 ? STREAM : FETCH, mr, 0));
    wait_for_progress(2);
    EXPECT(pthread_create(&thread, NULL, count_up, NULL) == 0);
    EXPECT(is_private(threads_memory, 16 * PAGE));
    wait_for_progress(5);
    EXPECT(stop() == IBV_WC_SUCCESS);
    threads_end = true;
    void *rounds;
    EXPECT(pthread_join(thread, &rounds) == 0);
    wait_for_threads(before);
    check_counts((uint32_t)(uintptr_t)rounds);
    release(whole);
    release(mr);
    EXPECT(munmap(threads_memory, 16 * PAGE) == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"last-byte", last_byte},
        {"words", words},
        {"handlers", handlers},
        {"threads", threads},
        {"threads-in-time", threads_in_time},
        {NULL, NULL},
    };
    return run_cases(cases, argc, argv);
}
