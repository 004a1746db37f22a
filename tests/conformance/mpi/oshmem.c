/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    OpenSHMEM: puts, gets, atomics, locks and collectives on the symmetric heap.
 * Method  Every pair of elements and every size; sums that are known; every byte compared.
 */
#include <shmem.h>
#include <string.h>

#include "tests/conformance/mpi/pattern.h"

static int me, all;
static uint8_t *symmetric, *local;
static uint64_t compared;

static void put(size_t bytes)
{
    for (int shift = 0; shift < all; shift++) {
        const int to = (me + shift) % all, from = (me - shift + all) % all;
        pattern_fill(local, bytes, pattern_seed(me, to, shift));
        shmem_barrier_all();
        shmem_putmem(symmetric, local, bytes, to);
        shmem_barrier_all();
        compared += pattern_check(symmetric, bytes, pattern_seed(from, me, shift), "put", me);
    }
    shmem_barrier_all();
}

static void get(size_t bytes)
{
    pattern_fill(symmetric, bytes, pattern_seed(me, 0, 50));
    shmem_barrier_all();
    for (int shift = 0; shift < all; shift++) {
        const int of = (me + shift) % all;
        memset(local, 0, bytes);
        shmem_getmem(local, symmetric, bytes, of);
        compared += pattern_check(local, bytes, pattern_seed(of, 0, 50), "get", me);
    }
    shmem_barrier_all();
}

/* Without waiting, then a flag: what was put before a fence is there when the flag is. */
static void put_and_flag(long *flag, size_t bytes)
{
    static long round;
    const int to = (me + 1) % all, from = (me - 1 + all) % all;
    round++;
    pattern_fill(local, bytes, pattern_seed(me, to, (int)(100 + round)));
    shmem_barrier_all();
    shmem_putmem_nbi(symmetric, local, bytes, to);
    shmem_fence();
    shmem_long_p(flag, round, to);
    shmem_long_wait_until(flag, SHMEM_CMP_EQ, round);
    compared += pattern_check(symmetric, bytes, pattern_seed(from, me, (int)(100 + round)),
                              "put and flag", me);
    shmem_barrier_all();
}

static void atomics(long *numbers)
{
    enum {
        EACH = 200
    };
    long last = -1;
    for (int i = 0; i < EACH; i++) {
        const long before = shmem_long_atomic_fetch_add(&numbers[0], 1, 0);
        EXPECT(before > last);
        last = before;
        shmem_long_atomic_inc(&numbers[1], (me + 1) % all);
    }
    shmem_barrier_all();
    EXPECT(shmem_long_g(&numbers[0], 0) == (long)all * EACH);
    EXPECT(numbers[1] == EACH);
    /* One wins. */
    const long before = shmem_long_atomic_compare_swap(&numbers[2], 0, me + 1, 0);
    shmem_barrier_all();
    const long winner = shmem_long_g(&numbers[2], 0);
    EXPECT(winner >= 1 && winner <= all && (before == 0) == (winner == me + 1));
    compared += 8 * (EACH + 2);
    shmem_barrier_all();
}

static void locks(long *lock, long *guarded)
{
    enum {
        EACH = 20
    };
    for (int i = 0; i < EACH; i++) {
        shmem_set_lock(lock);
        shmem_long_p(guarded, shmem_long_g(guarded, 0) + 1, 0);
        shmem_quiet();
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    EXPECT(shmem_long_g(guarded, 0) == (long)all * EACH);
    compared += 8;
    shmem_barrier_all();
}

static void collectives(void)
{
    static long sync[SHMEM_REDUCE_SYNC_SIZE > SHMEM_BCAST_SYNC_SIZE ? SHMEM_REDUCE_SYNC_SIZE
                                                                    : SHMEM_BCAST_SYNC_SIZE];
    static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1024], from[1024], to[1024];
    for (size_t i = 0; i < sizeof(sync) / sizeof(sync[0]); i++) {
        sync[i] = SHMEM_SYNC_VALUE;
    }
    for (int i = 0; i < 1024; i++) {
        from[i] = (me + 1) * (i + 1);
    }
    shmem_barrier_all();
    shmem_long_sum_to_all(to, from, 1024, 0, 0, all, work, sync);
    for (int i = 0; i < 1024; i++) {
        EXPECT(to[i] == (long)all * (all + 1) / 2 * (i + 1));
    }
    shmem_barrier_all();
    shmem_broadcast64(to, from, 1024, 0, 0, 0, all, sync);
    for (int i = 0; i < 1024 && me != 0; i++) {
        EXPECT(to[i] == i + 1);
    }
    compared += 2 * sizeof(to);
    shmem_barrier_all();
}

int main(int argc, char **argv)
{
    const size_t step = pattern_step(argc, argv);
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    symmetric = shmem_calloc(1, PATTERN_MAX_BYTES);
    long *numbers = shmem_calloc(8, sizeof(long));
    local = pattern_allocate(PATTERN_MAX_BYTES);
    EXPECT(symmetric != NULL && numbers != NULL);
    for (size_t i = 0; i < PATTERN_SIZES; i += step) {
        put(pattern_sizes[i]);
        get(pattern_sizes[i]);
        put_and_flag(&numbers[5], pattern_sizes[i]);
    }
    atomics(numbers);
    locks(&numbers[3], &numbers[4]);
    collectives();
    printf("oshmem: element %d of %d, sizes by %zu, %llu bytes compared\n", me, all, step,
           (unsigned long long)compared);
    shmem_free(numbers);
    shmem_free(symmetric);
    shmem_finalize();
    return 0;
}
