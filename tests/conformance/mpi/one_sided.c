/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Windows: what is put, got and accumulated is what the target's memory holds.
 * Method  Fences, locks and flushes over all sizes; atomics whose sum is known; every byte is
 *         compared.
 */
#include <mpi.h>
#include <string.h>

#include "tests/conformance/mpi/pattern.h"

static int rank, ranks;
static uint8_t *window_memory, *local;
static MPI_Win window;
static uint64_t compared;

static void put_between_fences(size_t bytes)
{
    const int to = (rank + 1) % ranks, from = (rank - 1 + ranks) % ranks;
    pattern_fill(local, bytes, pattern_seed(rank, to, 1));
    MPI_Win_fence(0, window);
    MPI_Put(local, (int)bytes, MPI_BYTE, to, 0, (int)bytes, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    compared += pattern_check(window_memory, bytes, pattern_seed(from, rank, 1), "put", rank);
}

static void get_under_lock(size_t bytes)
{
    for (int shift = 0; shift < 2; shift++) {
        const int of = (rank + shift) % ranks;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
        pattern_fill(window_memory, bytes, pattern_seed(rank, shift, 2));
        MPI_Win_unlock(rank, window);
        MPI_Barrier(MPI_COMM_WORLD);
        memset(local, 0, bytes);
        MPI_Win_lock(MPI_LOCK_SHARED, of, 0, window);
        MPI_Get(local, (int)bytes, MPI_BYTE, of, 0, (int)bytes, MPI_BYTE, window);
        MPI_Win_unlock(of, window);
        compared += pattern_check(local, bytes, pattern_seed(of, shift, 2), "get", rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Everybody writes a share of everybody's window, with one flush for all. */
static void flush_all(size_t bytes)
{
    const size_t share = bytes / (size_t)ranks;
    if (share == 0) {
        return;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int to = 0; to < ranks; to++) {
        uint8_t *from = local + (size_t)to * share;
        pattern_fill(from, share, pattern_seed(rank, to, 3));
        MPI_Put(from, (int)share, MPI_BYTE, to, (MPI_Aint)((size_t)rank * share), (int)share,
                MPI_BYTE, window);
    }
    MPI_Win_flush_all(window);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++) {
        compared += pattern_check(window_memory + (size_t)from * share, share,
                                  pattern_seed(from, rank, 3), "flush", rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Every number handed out once: a ticket counter on rank 0. */
static void fetch_and_add(void)
{
    enum {
        EACH = 200
    };
    const uint64_t one = 1, zero = 0;
    uint64_t sum = 0, all = 0, before = 0, last = 0;
    memset(window_memory, 0, 64);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < EACH; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, 0, 0, MPI_SUM, window);
        MPI_Win_flush(0, window);
        EXPECT(i == 0 || before > last);
        last = before;
        sum += before;
    }
    MPI_Win_unlock_all(window);
    MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    const uint64_t tickets = (uint64_t)ranks * EACH;
    EXPECT(all == tickets * (tickets - 1) / 2);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Fetch_and_op(&zero, &before, MPI_UINT64_T, 0, 0, MPI_NO_OP, window);
    MPI_Win_unlock(0, window);
    EXPECT(before == tickets);
    compared += 8 * EACH;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* UCX does 32 and 64 bit atomics in software when a NIC has only one of the two: the target's
 * progress carries them out. A rank that compares and swaps its own memory makes no progress.
 * Without this, a rank that waits for a lock of its own starves the rank that is to release it,
 * over TCP as well. */
static void make_progress(void)
{
    int any;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
}

/* A lock made of compare-and-swap guards a counter that is read and written without atomics. */
static void compare_and_swap(void)
{
    enum {
        EACH = 20
    };
    const uint64_t me = (uint64_t)rank + 1, nobody = 0;
    uint64_t holder, counter;
    memset(window_memory, 0, 64);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < EACH; i++) {
        do {
            make_progress();
            MPI_Compare_and_swap(&me, &nobody, &holder, MPI_UINT64_T, 0, 0, window);
            MPI_Win_flush(0, window);
        } while (holder != nobody);
        MPI_Get(&counter, 1, MPI_UINT64_T, 0, 8, 1, MPI_UINT64_T, window);
        MPI_Win_flush(0, window);
        counter++;
        MPI_Put(&counter, 1, MPI_UINT64_T, 0, 8, 1, MPI_UINT64_T, window);
        MPI_Win_flush(0, window);
        MPI_Compare_and_swap(&nobody, &me, &holder, MPI_UINT64_T, 0, 0, window);
        MPI_Win_flush(0, window);
        EXPECT(holder == me);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(&counter, 1, MPI_UINT64_T, 0, 8, 1, MPI_UINT64_T, window);
    MPI_Win_unlock(0, window);
    EXPECT(counter == (uint64_t)ranks * EACH);
    compared += 8;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void accumulate(size_t bytes)
{
    const size_t count = bytes / sizeof(uint64_t);
    uint64_t *mine = (uint64_t *)(void *)local, *sums = (uint64_t *)(void *)window_memory;
    for (size_t i = 0; i < count; i++) {
        sums[i] = i;
        mine[i] = (uint64_t)(rank + 1) * (i + 3);
    }
    MPI_Win_fence(0, window);
    for (int to = 0; to < ranks; to++) {
        MPI_Accumulate(mine, (int)count, MPI_UINT64_T, to, 0, (int)count, MPI_UINT64_T, MPI_SUM,
                       window);
    }
    MPI_Win_fence(0, window);
    const uint64_t people = (uint64_t)ranks * (uint64_t)(ranks + 1) / 2;
    for (size_t i = 0; i < count; i++) {
        EXPECT(sums[i] == i + people * (i + 3));
    }
    compared += count * sizeof(uint64_t);
    MPI_Win_fence(0, window);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const size_t step = pattern_step(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    local = pattern_allocate(PATTERN_MAX_BYTES);
    MPI_Win_allocate(PATTERN_MAX_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&window_memory,
                     &window);
    for (size_t i = 0; i < PATTERN_SIZES; i += step) {
        put_between_fences(pattern_sizes[i]);
        get_under_lock(pattern_sizes[i]);
        flush_all(pattern_sizes[i]);
        if (pattern_sizes[i] <= 65537) {
            accumulate(pattern_sizes[i]);
        }
    }
    fetch_and_add();
    compare_and_swap();
    uint64_t all = 0;
    MPI_Reduce(&compared, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Win_free(&window);
    if (rank == 0) {
        printf("one_sided: %d ranks, sizes by %zu, %llu bytes compared\n", ranks, step,
               (unsigned long long)all);
    }
    MPI_Finalize();
    return 0;
}
