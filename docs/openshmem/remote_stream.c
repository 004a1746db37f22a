/* SPDX-License-Identifier: BSD-2-Clause
 *
 * remote_stream - the STREAM benchmark on memory of another element.
 *
 * Element 0 works on the arrays a, b, c of the last element: single loads and stores first, then
 * pieces that are got, worked on and put back. Prints MB/s as STREAM counts them: the bytes of all
 * arrays that an operation reads and writes. Every number is compared at the end.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    NUMBERS = 1 << 15, /* In each array: 256 KB. */
    ARRAYS = 3,
    OPERATIONS = 4
};

static const double SCALAR = 3;
static const char *const NAMES[OPERATIONS] = {"Copy", "Scale", "Add", "Triad"};
static const int TOUCHED[OPERATIONS] = {2, 2, 3, 3}; /* Arrays. */

static double *arrays[ARRAYS]; /* a, b, c, on the symmetric heap. */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* c = a; b = SCALAR * c; c = a + b; a = b + SCALAR * c: for `count` numbers from `at` on. */
static void operate(int operation, int at, int count, int element)
{
    static double x[NUMBERS], y[NUMBERS];
    static const int FIRST[OPERATIONS] = {0, 2, 0, 1}, SECOND[OPERATIONS] = {-1, -1, 1, 2},
                     RESULT[OPERATIONS] = {2, 1, 2, 0};
    const double factor = operation == 1 ? SCALAR : 1, other = operation == 3 ? SCALAR : 1;
    shmem_double_get(x, arrays[FIRST[operation]] + at, (size_t)count, element);
    if (SECOND[operation] >= 0) {
        shmem_double_get(y, arrays[SECOND[operation]] + at, (size_t)count, element);
    }
    for (int i = 0; i < count; i++) {
        x[i] = factor * x[i] + (SECOND[operation] >= 0 ? other * y[i] : 0);
    }
    shmem_double_put(arrays[RESULT[operation]] + at, x, (size_t)count, element);
}

/* MB/s of an operation on `numbers` numbers, `piece` of them at a time. */
static double rate(int operation, int numbers, int piece, int element)
{
    const double began = seconds();
    for (int at = 0; at < numbers; at += piece) {
        operate(operation, at, piece, element);
    }
    shmem_quiet();
    const double bytes = (double)TOUCHED[operation] * numbers * sizeof(double);
    return bytes / (seconds() - began) / 1e6;
}

/* Each number of the three arrays is to have its array's value. */
static void compare(const double *values)
{
    for (int array = 0; array < ARRAYS; array++) {
        for (int i = 0; i < NUMBERS; i++) {
            const double value = shmem_double_g(arrays[array] + i, shmem_n_pes() - 1);
            if (value != values[array]) {
                fprintf(stderr, "array %d, number %d: %g instead of %g\n", array, i, value,
                        values[array]);
                shmem_global_exit(1);
            }
        }
    }
}

static void stream(int element)
{
    /* Single loads and stores are slow, and tell the same of fewer numbers. */
    static const int PIECES[] = {1, 128, 8192};
    double values[ARRAYS] = {1, 2, 0};
    printf("%-8s %12s %12s %12s   MB/s in memory of element %d\n", "", "8 B", "1 KB", "64 KB",
           element);
    for (int operation = 0; operation < OPERATIONS; operation++) {
        printf("%-8s", NAMES[operation]);
        for (size_t i = 0; i < sizeof(PIECES) / sizeof(PIECES[0]); i++) {
            printf(" %12.1f", rate(operation, i == 0 ? 8192 : NUMBERS, PIECES[i], element));
        }
        puts("");
    }
    /* As STREAM's own check: the same operations on one number of each array. */
    values[2] = values[0];
    values[1] = SCALAR * values[2];
    values[2] = values[0] + values[1];
    values[0] = values[1] + SCALAR * values[2];
    compare(values);
    printf("%d numbers compared\n", ARRAYS * NUMBERS);
}

int main(void)
{
    shmem_init();
    for (int array = 0; array < ARRAYS; array++) {
        arrays[array] = shmem_malloc(NUMBERS * sizeof(double));
        for (int i = 0; i < NUMBERS; i++) {
            arrays[array][i] = array == 0 ? 1 : array == 1 ? 2 : 0;
        }
    }
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        stream(shmem_n_pes() - 1);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
