/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Messages between any two ranks arrive whole, in order, and where they belong.
 * Method  Every pair, every size: blocking exchange, a window of unexpected messages, synchronous
 *         sends, wildcards, probes, strided types and persistent requests; every byte is compared.
 */
#include <mpi.h>
#include <string.h>

#include "tests/conformance/mpi/pattern.h"

static int rank, ranks;
static uint8_t *out, *in;
static uint64_t compared;

/* Everybody with everybody, both directions at once. */
static void exchange(size_t bytes)
{
    for (int shift = 0; shift < ranks; shift++) {
        const int to = (rank + shift) % ranks, from = (rank - shift + ranks) % ranks;
        pattern_fill(out, bytes, pattern_seed(rank, to, shift));
        memset(in, 0, bytes);
        MPI_Sendrecv(out, (int)bytes, MPI_BYTE, to, 1, in, (int)bytes, MPI_BYTE, from, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compared += pattern_check(in, bytes, pattern_seed(from, rank, shift), "exchange", rank);
    }
}

/* Many at once, received only when all were sent, in the order of their tags backwards. */
static void window(size_t bytes)
{
    enum {
        COUNT = 32
    };
    MPI_Request requests[COUNT];
    const int to = (rank + 1) % ranks, from = (rank - 1 + ranks) % ranks;
    if (bytes * COUNT > PATTERN_MAX_BYTES) {
        return;
    }
    for (int i = 0; i < COUNT; i++) {
        pattern_fill(out + (size_t)i * bytes, bytes, pattern_seed(rank, to, 100 + i));
        MPI_Isend(out + (size_t)i * bytes, (int)bytes, MPI_BYTE, to, 100 + i, MPI_COMM_WORLD,
                  &requests[i]);
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        MPI_Status status;
        int count;
        MPI_Probe(MPI_ANY_SOURCE, 100 + i, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        EXPECT(status.MPI_SOURCE == from && (size_t)count == bytes);
        MPI_Recv(in, count, MPI_BYTE, MPI_ANY_SOURCE, 100 + i, MPI_COMM_WORLD, &status);
        compared += pattern_check(in, bytes, pattern_seed(from, rank, 100 + i), "window", rank);
    }
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Same tag: messages of any sizes must not overtake one another. */
static void order(void)
{
    const int to = (rank + 1) % ranks, from = (rank - 1 + ranks) % ranks;
    MPI_Request request;
    for (int i = 0; i < (int)PATTERN_SIZES * 2; i++) {
        const size_t bytes = pattern_sizes[(size_t)i * 7 % PATTERN_SIZES];
        pattern_fill(out, bytes, pattern_seed(rank, to, 500 + i));
        MPI_Irecv(in, PATTERN_MAX_BYTES, MPI_BYTE, from, 7, MPI_COMM_WORLD, &request);
        if (i % 2 == 0) {
            MPI_Send(out, (int)bytes, MPI_BYTE, to, 7, MPI_COMM_WORLD);
        } else {
            MPI_Ssend(out, (int)bytes, MPI_BYTE, to, 7, MPI_COMM_WORLD);
        }
        MPI_Status status;
        int count;
        MPI_Wait(&request, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        EXPECT((size_t)count == bytes);
        compared += pattern_check(in, bytes, pattern_seed(from, rank, 500 + i), "order", rank);
    }
}

/* A column of a matrix of bytes: what is between must stay. */
static void strided(void)
{
    enum {
        ROWS = 3000,
        WIDTH = 13,
        PITCH = 32
    };
    const int to = (rank + 1) % ranks, from = (rank - 1 + ranks) % ranks;
    MPI_Datatype column;
    MPI_Type_vector(ROWS, WIDTH, PITCH, MPI_BYTE, &column);
    MPI_Type_commit(&column);
    pattern_fill(out, ROWS * PITCH, pattern_seed(rank, to, 900));
    memset(in, 0xee, ROWS * PITCH);
    MPI_Sendrecv(out, 1, column, to, 9, in, 1, column, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < (ROWS - 1) * PITCH + WIDTH; i++) {
        const uint8_t right =
            i % PITCH < WIDTH ? pattern_byte(pattern_seed(from, rank, 900), i) : 0xee;
        EXPECT(in[i] == right);
        compared++;
    }
    MPI_Type_free(&column);
}

static void persistent(size_t bytes)
{
    const int to = (rank + 1) % ranks, from = (rank - 1 + ranks) % ranks;
    MPI_Request requests[2];
    MPI_Send_init(out, (int)bytes, MPI_BYTE, to, 11, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in, (int)bytes, MPI_BYTE, from, 11, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < 10; round++) {
        pattern_fill(out, bytes, pattern_seed(rank, to, 1000 + round));
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        compared +=
            pattern_check(in, bytes, pattern_seed(from, rank, 1000 + round), "persistent", rank);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const size_t step = pattern_step(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out = pattern_allocate(PATTERN_MAX_BYTES);
    in = pattern_allocate(PATTERN_MAX_BYTES);
    for (size_t i = 0; i < PATTERN_SIZES; i += step) {
        exchange(pattern_sizes[i]);
        window(pattern_sizes[i]);
    }
    order();
    strided();
    persistent(100);
    persistent(100000);
    uint64_t all = 0;
    MPI_Reduce(&compared, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("point_to_point: %d ranks, sizes by %zu, %llu bytes compared\n", ranks, step,
               (unsigned long long)all);
    }
    MPI_Finalize();
    return 0;
}
