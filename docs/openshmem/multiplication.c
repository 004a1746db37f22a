/* SPDX-License-Identifier: BSD-2-Clause
 *
 * multiplication - a matrix multiplication whose matrices are spread over all elements.
 *
 * Each element has the same number of rows of A, B and C = A x B. It needs all of B, and gets the
 * others' rows one element after another: while it works on those that it has, the next ones are on
 * their way. Every number of C is compared with what the formula of A and B says.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    SIDE = 240
};

static double *b; /* Our rows of B, on the symmetric heap. */
static int me, all, rows;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Small whole numbers, so that sums are exact. */
static double a_at(int row, int column)
{
    return (row * 7 + column * 3) % 11 - 5;
}

static double b_at(int row, int column)
{
    return (row * 5 + column * 13) % 17 - 8;
}

/* Adds to our rows of C what the rows of B that `element` has give. */
static void work(double *c, const double *theirs, int element)
{
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < rows; k++) {
            const double factor = a_at(me * rows + i, element * rows + k);
            for (int j = 0; j < SIDE; j++) {
                c[i * SIDE + j] += factor * theirs[k * SIDE + j];
            }
        }
    }
}

static void compare(const double *c)
{
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < SIDE; j++) {
            double sum = 0;
            for (int k = 0; k < SIDE; k++) {
                sum += a_at(me * rows + i, k) * b_at(k, j);
            }
            if (c[i * SIDE + j] != sum) {
                fprintf(stderr, "C[%d][%d] is %g instead of %g\n", me * rows + i, j,
                        c[i * SIDE + j], sum);
                shmem_global_exit(1);
            }
        }
    }
}

static void multiply(double *c)
{
    const size_t bytes = (size_t)rows * SIDE * sizeof(double);
    double *pieces[2] = {malloc(bytes), malloc(bytes)};
    shmem_getmem(pieces[0], b, bytes, me);
    for (int step = 0; step < all; step++) {
        if (step + 1 < all) {
            shmem_getmem_nbi(pieces[(step + 1) % 2], b, bytes, (me + step + 1) % all);
        }
        work(c, pieces[step % 2], (me + step) % all);
        shmem_quiet();
    }
    free(pieces[0]);
    free(pieces[1]);
}

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    rows = SIDE / all;
    if (rows * all != SIDE) {
        fprintf(stderr, "usage: oshrun -n N multiplication, where N divides %d\n", SIDE);
        shmem_global_exit(2);
    }
    b = shmem_malloc((size_t)rows * SIDE * sizeof(double));
    double *c = calloc((size_t)rows * SIDE, sizeof(double));
    for (int i = 0; i < rows * SIDE; i++) {
        b[i] = b_at(me * rows + i / SIDE, i % SIDE);
    }
    shmem_barrier_all();
    const double began = seconds();
    multiply(c);
    shmem_barrier_all();
    const double took = seconds() - began;
    compare(c);
    shmem_barrier_all();
    if (me == 0) {
        printf("%d x %d on %d elements: %.0f Mflop/s, all compared\n", SIDE, SIDE, all,
               2.0 * SIDE * SIDE * SIDE / took / 1e6);
    }
    free(c);
    shmem_free(b);
    shmem_finalize();
    return 0;
}
