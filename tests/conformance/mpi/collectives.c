/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Collective operations give every rank what the standard says.
 * Method  Broadcast, reductions, gathers, scatters and all-to-alls over sizes that make libraries
 *         change their algorithm; results are compared with what each rank can compute by itself.
 */
#include <mpi.h>
#include <string.h>

#include "tests/conformance/mpi/pattern.h"

static int rank, ranks;
static uint8_t *out, *in;
static uint64_t compared;

static void broadcast(size_t bytes)
{
    for (int root = 0; root < ranks; root++) {
        memset(in, 0, bytes);
        if (rank == root) {
            pattern_fill(in, bytes, pattern_seed(root, 0, 1));
        }
        MPI_Bcast(in, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        compared += pattern_check(in, bytes, pattern_seed(root, 0, 1), "broadcast", rank);
    }
}

static void gather_and_scatter(size_t bytes)
{
    const int count = (int)bytes;
    for (int root = 0; root < ranks; root++) {
        pattern_fill(out, bytes, pattern_seed(rank, root, 2));
        MPI_Gather(out, count, MPI_BYTE, in, count, MPI_BYTE, root, MPI_COMM_WORLD);
        for (int i = 0; i < ranks && rank == root; i++) {
            compared += pattern_check(in + (size_t)i * bytes, bytes, pattern_seed(i, root, 2),
                                      "gather", rank);
        }
        for (int i = 0; i < ranks && rank == root; i++) {
            pattern_fill(out + (size_t)i * bytes, bytes, pattern_seed(root, i, 3));
        }
        MPI_Scatter(out, count, MPI_BYTE, in, count, MPI_BYTE, root, MPI_COMM_WORLD);
        compared += pattern_check(in, bytes, pattern_seed(root, rank, 3), "scatter", rank);
    }
}

static void all_gather(size_t bytes)
{
    pattern_fill(out, bytes, pattern_seed(rank, 0, 4));
    MPI_Allgather(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        compared +=
            pattern_check(in + (size_t)i * bytes, bytes, pattern_seed(i, 0, 4), "all gather", rank);
    }
}

static void all_to_all(size_t bytes)
{
    for (int i = 0; i < ranks; i++) {
        pattern_fill(out + (size_t)i * bytes, bytes, pattern_seed(rank, i, 5));
    }
    MPI_Alltoall(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        compared += pattern_check(in + (size_t)i * bytes, bytes, pattern_seed(i, rank, 5),
                                  "all to all", rank);
    }
}

/* Blocks of different sizes: rank r sends r + i + 1 units to rank i. */
static void all_to_all_uneven(size_t unit)
{
    int counts[64], places[64], other_counts[64], other_places[64];
    EXPECT(ranks <= 64);
    int at = 0;
    for (int i = 0; i < ranks; i++) {
        counts[i] = other_counts[i] = (rank + i + 1) * (int)unit;
        places[i] = other_places[i] = at;
        pattern_fill(out + at, (size_t)counts[i], pattern_seed(rank, i, 6));
        at += counts[i];
    }
    MPI_Alltoallv(out, counts, places, MPI_BYTE, in, other_counts, other_places, MPI_BYTE,
                  MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        compared += pattern_check(in + other_places[i], (size_t)other_counts[i],
                                  pattern_seed(i, rank, 6), "uneven all to all", rank);
    }
}

static uint64_t term(int of, size_t at)
{
    return (uint64_t)(of + 1) * (at % 1000003 + 7);
}

static void reductions(size_t bytes)
{
    const size_t count = bytes / sizeof(uint64_t);
    uint64_t *mine = (uint64_t *)(void *)out, *result = (uint64_t *)(void *)in;
    const uint64_t people = (uint64_t)ranks * (uint64_t)(ranks + 1) / 2;
    const uint64_t upto = (uint64_t)(rank + 1) * (uint64_t)(rank + 2) / 2;
    for (size_t i = 0; i < count; i++) {
        mine[i] = term(rank, i);
    }
    MPI_Allreduce(mine, result, (int)count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; i++) {
        EXPECT(result[i] == people * term(0, i));
    }
    MPI_Allreduce(mine, result, (int)count, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; i++) {
        EXPECT(result[i] == term(ranks - 1, i));
    }
    MPI_Scan(mine, result, (int)count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; i++) {
        EXPECT(result[i] == upto * term(0, i));
    }
    MPI_Reduce(mine, result, (int)count, MPI_UINT64_T, MPI_SUM, ranks - 1, MPI_COMM_WORLD);
    for (size_t i = 0; i < count && rank == ranks - 1; i++) {
        EXPECT(result[i] == people * term(0, i));
    }
    const size_t share = count / (size_t)ranks;
    MPI_Reduce_scatter_block(mine, result, (int)share, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < share; i++) {
        EXPECT(result[i] == people * term(0, (size_t)rank * share + i));
    }
    compared += 4 * count * sizeof(uint64_t);
}

/* Two at a time, of which one was begun by halves of the ranks. */
static void nonblocking(size_t bytes)
{
    MPI_Request requests[2];
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    pattern_fill(out, bytes, pattern_seed(rank, 0, 8));
    if (rank == 0) {
        pattern_fill(in, bytes, pattern_seed(0, 0, 9));
    }
    uint64_t one = 1, people = 0;
    MPI_Ibcast(in, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(&one, &people, 1, MPI_UINT64_T, MPI_SUM, half, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    compared += pattern_check(in, bytes, pattern_seed(0, 0, 9), "non-blocking broadcast", rank);
    EXPECT(people == (uint64_t)(rank % 2 == 0 ? (ranks + 1) / 2 : ranks / 2));
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const size_t step = pattern_step(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out = pattern_allocate((size_t)ranks * PATTERN_MAX_BYTES);
    in = pattern_allocate((size_t)ranks * PATTERN_MAX_BYTES);
    for (size_t i = 0; i < PATTERN_SIZES; i += step) {
        const size_t bytes = pattern_sizes[i] <= 1000003 ? pattern_sizes[i] : 2000000;
        MPI_Barrier(MPI_COMM_WORLD);
        broadcast(bytes);
        gather_and_scatter(bytes);
        all_gather(bytes);
        all_to_all(bytes);
        all_to_all_uneven(bytes / 8 + 1);
        reductions(bytes);
        nonblocking(bytes);
    }
    uint64_t all = 0;
    MPI_Reduce(&compared, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("collectives: %d ranks, sizes by %zu, %llu bytes compared\n", ranks, step,
               (unsigned long long)all);
    }
    MPI_Finalize();
    return 0;
}
