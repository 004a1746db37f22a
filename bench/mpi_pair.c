/* SPDX-License-Identifier: BSD-2-Clause
 *
 * mpi_pair - latency and bandwidth between two MPI ranks, for sizes given as arguments.
 *
 * Method  As the OSU micro-benchmarks do. Latency is half of a ping-pong, 10,000 rounds of small
 *         messages and 1,000 of large ones, here the median of groups of them. Bandwidth is windows
 *         of 64 messages that are acknowledged together. One line a size: bytes, microseconds,
 *         MB/s.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64

static int rank;
static char *buffer;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one way, by the median of groups of rounds: one in which the processor was taken away
 * does not count. */
static double latency(int bytes, int rounds)
{
    enum {
        GROUPS = 41
    };
    double times[GROUPS];
    for (int group = -2; group < GROUPS; group++) {
        const double began = MPI_Wtime();
        for (int i = 0; i < rounds; i++) {
            if (rank == 0) {
                MPI_Send(buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
                MPI_Recv(buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            }
        }
        if (group >= 0) {
            times[group] = (MPI_Wtime() - began) / rounds / 2;
        }
    }
    qsort(times, GROUPS, sizeof(times[0]), compare);
    return times[GROUPS / 2];
}

static double window(int bytes)
{
    MPI_Request requests[WINDOW];
    const double began = MPI_Wtime();
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0) {
            MPI_Isend(buffer, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Irecv(buffer, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    char done = 0;
    if (rank == 0) {
        MPI_Recv(&done, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&done, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - began;
}

/* Bytes a second, by the median of the windows. */
static double bandwidth(int bytes)
{
    enum {
        WINDOWS = 31
    };
    double times[WINDOWS];
    for (int i = -3; i < WINDOWS; i++) {
        const double seconds = window(bytes);
        if (i >= 0) {
            times[i] = seconds;
        }
    }
    qsort(times, WINDOWS, sizeof(times[0]), compare);
    return (double)bytes * WINDOW / times[WINDOWS / 2];
}

int main(int argc, char **argv)
{
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2 || argc < 2) {
        fprintf(stderr, "usage: mpirun -n 2 mpi_pair BYTES...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 1; i < argc; i++) {
        const int bytes = atoi(argv[i]);
        buffer = malloc((size_t)bytes);
        if (bytes <= 0 || buffer == NULL) {
            fprintf(stderr, "%s is no size\n", argv[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        memset(buffer, rank + 1, (size_t)bytes);
        const double seconds = latency(bytes, bytes <= 8192 ? 250 : 25);
        const double rate = bandwidth(bytes);
        if (rank == 0) {
            printf("%d %.3f %.2f\n", bytes, seconds * 1e6, rate / 1e6);
        }
        free(buffer);
    }
    MPI_Finalize();
    return 0;
}
