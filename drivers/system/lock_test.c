/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Only one thread at a time holds the lock. A thread that takes it many times in a row
 *         becomes its bias owner, and ceases to be that as soon as another thread comes.
 * Method  The states by hand, with threads that do one thing each. Then threads that take it in
 *         bursts of random lengths, some long enough to become the bias owner, beside a counter
 *         that only a lock keeps right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"
#include "drivers/system/lock.h"

#define THREADS 4
#define BURSTS  400

struct bench {
    struct lock lock;
    uint64_t count;     /* The lock guards it. */
    uint32_t holders;   /* The lock guards it, too: 1 while a thread is inside. */
    uint64_t biased;    /* How often the lock was held by bias. */
    _Atomic bool there; /* The other thread has come as far as it should. */
    _Atomic bool done;
};

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    lock_init(&bench->lock);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    lock_destroy(&bench->lock);
    free(bench);
    return 0;
}

static void step(struct bench *bench)
{
    CHECK(bench->holders++ == 0);
    bench->count++;
    bench->biased += bench->lock.seat != NULL;
    CHECK(--bench->holders == 0);
}

static void take_often(struct bench *bench, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        lock_take(&bench->lock);
        step(bench);
        lock_release(&bench->lock);
    }
}

static bool is_bias_owner(struct bench *bench)
{
    const struct lock_seat *seat = bench->lock.bias_owner;
    return seat != NULL && seat->thread == lock_self();
}

static void become_bias_owner(struct bench *bench)
{
    if (!bench->lock.may_be_biased) {
        skip(); /* The system has no membarrier. */
    }
    take_often(bench, LOCK_TO_BELIEVE + 1);
    assert_true(is_bias_owner(bench));
}

static void run(void *(*body)(void *), struct bench *bench)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, bench), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *take_once(void *argument)
{
    take_often(argument, 1);
    return NULL;
}

static void *take_once_unbiased(void *argument)
{
    struct bench *bench = argument;
    for (uint32_t i = 0; i < 2 * LOCK_TO_BELIEVE; i++) {
        lock_take_unbiased(&bench->lock);
        step(bench);
        lock_release(&bench->lock);
    }
    /* cmocka's assertions belong to the thread of the test. */
    CHECK(bench->lock.bias_owner == NULL);
    return NULL;
}

/* -- By hand ------------------------------------------------------------------------------------*/

static void test_a_bias_owner_comes_and_goes(void **state)
{
    struct bench *bench = *state;
    become_bias_owner(bench);
    const uint64_t before = bench->biased;
    take_often(bench, 10);
    assert_int_equal(bench->biased - before, 10);
    run(take_once, bench);
    assert_null(bench->lock.bias_owner);
    /* The count begins anew, because another thread took the lock once. */
    take_often(bench, LOCK_TO_BELIEVE - 1);
    assert_false(is_bias_owner(bench));
    take_often(bench, 2);
    assert_true(is_bias_owner(bench));
    run(take_once_unbiased, bench);
    assert_null(bench->lock.bias_owner);
}

/* Two threads take the lock often enough in sum, but never often enough in a row. */
static void test_in_turn_nobody_is(void **state)
{
    struct bench *bench = *state;
    for (int i = 0; i < 4; i++) {
        take_often(bench, LOCK_TO_BELIEVE / 2);
        run(take_once, bench);
    }
    assert_int_equal(bench->biased, 0);
    assert_null(bench->lock.bias_owner);
}

static void *come_in_later(void *argument)
{
    struct bench *bench = argument;
    bench->there = true;
    lock_take(&bench->lock);
    bench->done = true;
    lock_release(&bench->lock);
    return NULL;
}

static void test_the_bias_owner_is_waited_for(void **state)
{
    struct bench *bench = *state;
    become_bias_owner(bench);
    lock_take(&bench->lock);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, come_in_later, bench), 0);
    while (!bench->there || bench->lock.bias_owner != NULL) {
    }
    const struct timespec while_it_waits = {.tv_nsec = 5000000};
    nanosleep(&while_it_waits, NULL);
    assert_false(bench->done);
    lock_release(&bench->lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(bench->done);
    take_often(bench, 10);
}

/* A child has a copy of the lock as it was, and threads of its own that take it. */
static void test_behind_a_fork(void **state)
{
    struct bench *bench = *state;
    become_bias_owner(bench);
    const pid_t child = fork();
    if (child == 0) {
        take_often(bench, 10);
        pthread_t thread;
        const bool good =
            pthread_create(&thread, NULL, take_once, bench) == 0 && pthread_join(thread, NULL) == 0;
        take_often(bench, 10);
        _exit(good && bench->lock.bias_owner == NULL ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(is_bias_owner(bench));
}

/* A signal handler asks this of the thread that it interrupts. */
static void test_who_holds_it(void **state)
{
    struct bench *bench = *state;
    assert_false(lock_is_held_here(&bench->lock));
    lock_take(&bench->lock);
    assert_true(lock_is_held_here(&bench->lock));
    lock_release(&bench->lock);
    assert_false(lock_is_held_here(&bench->lock));
    become_bias_owner(bench);
    assert_false(lock_is_held_here(&bench->lock));
    lock_take(&bench->lock);
    assert_non_null(bench->lock.seat);
    assert_true(lock_is_held_here(&bench->lock));
    lock_release(&bench->lock);
    lock_take_unbiased(&bench->lock);
    assert_true(lock_is_held_here(&bench->lock));
    lock_release(&bench->lock);
    assert_false(lock_is_held_here(&bench->lock));
}

struct visitor {
    struct bench *bench;
    pthread_t thread;
    bool seated;
};

static void *visit(void *argument)
{
    struct visitor *visitor = argument;
    struct bench *bench = visitor->bench;
    take_often(bench, LOCK_TO_BELIEVE + 1);
    visitor->seated = is_bias_owner(bench);
    bench->there = true;
    while (!bench->done) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Threads that live at the same time do not share a seat: one of them would mark it empty while the
 * other is inside. */
static void test_seats_are_limited(void **state)
{
    struct bench *bench = *state;
    struct visitor visitors[LOCK_SEATS + 2];
    become_bias_owner(bench);
    for (int i = 0; i < LOCK_SEATS + 2; i++) {
        visitors[i] = (struct visitor){.bench = bench};
        bench->there = false;
        assert_int_equal(pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]), 0);
        while (!bench->there) {
            const struct timespec pause = {.tv_nsec = 1000000};
            nanosleep(&pause, NULL);
        }
    }
    bench->done = true;
    for (int i = 0; i < LOCK_SEATS + 2; i++) {
        assert_int_equal(pthread_join(visitors[i].thread, NULL), 0);
        assert_int_equal(visitors[i].seated, i < LOCK_SEATS - 1);
    }
    become_bias_owner(bench);
}

static void test_without_membarrier(void **state)
{
    struct bench *bench = *state;
    bench->lock.may_be_biased = false;
    take_often(bench, 3 * LOCK_TO_BELIEVE);
    assert_int_equal(bench->biased, 0);
}

/* -- All at once --------------------------------------------------------------------------------*/

struct worker {
    struct bench *bench;
    uint64_t seed, taken;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct prng prng;
    prng_init(&prng, worker->seed);
    for (int burst = 0; burst < BURSTS; burst++) {
        const bool is_long = prng_below(&prng, 8) == 0;
        const uint32_t times =
            (uint32_t)prng_below(&prng, is_long ? 4 * LOCK_TO_BELIEVE : LOCK_TO_BELIEVE / 16);
        take_often(worker->bench, times);
        worker->taken += times;
        const struct timespec pause = {.tv_nsec = (long)prng_below(&prng, 200000)};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void test_bursts(void **state)
{
    struct bench *bench = *state;
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    uint64_t total = 0;
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.bench = bench, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        total += workers[i].taken;
    }
    assert_int_equal(bench->count, total);
    /* The lock was held both by bias and by the mutex, or this was no test. */
    assert_true(bench->biased < total);
    assert_true(bench->biased > 0 || !bench->lock.may_be_biased);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_bias_owner_comes_and_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_turn_nobody_is, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_bias_owner_is_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_behind_a_fork, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_holds_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_seats_are_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_membarrier, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bursts, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
