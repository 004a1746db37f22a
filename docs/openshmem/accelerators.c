/* SPDX-License-Identifier: BSD-2-Clause
 *
 * accelerators - blocks of data go through elements that act as accelerators.
 *
 * Element 0 has blocks of 1 KB: two matrices A and B of 8 x 8 numbers. It puts each into the memory
 * of element 1, which multiplies: A becomes A x B. Element 1 puts the block into the memory of the
 * next element by itself, without element 0, and so on. The last one puts it back into element 0's
 * memory, where every number is compared with A x B x ... x B.
 *
 * A slot of the receiver's memory is free when it has said so: a block is put, then its number
 * behind it (a fence keeps the order), and the receiver puts that number into the sender's memory
 * when it is done with the slot.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SIDE = 8,
    SLOTS = 16,
    BLOCKS = 2000
};

struct block {
    double a[SIDE][SIDE], b[SIDE][SIDE];
};

static struct block *slots; /* Blocks that have come. */
static long *come;          /* By slot: the number of the block that has come last, from 1 on. */
static long *done;          /* How many blocks the next element is done with. */
static int me, all, next, previous;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Small whole numbers, so that the results are exact. B moves A's columns and turns their signs. */
static void make(struct block *block, long number)
{
    memset(block, 0, sizeof(*block));
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            block->a[i][j] = (double)((number * 31 + i * SIDE + j) % 1000);
        }
        block->b[i][(i + number) % SIDE] = i % 2 == 0 ? 1 : -1;
    }
}

static void multiply(struct block *block)
{
    double product[SIDE][SIDE] = {{0}};
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            for (int k = 0; k < SIDE; k++) {
                product[i][j] += block->a[i][k] * block->b[k][j];
            }
        }
    }
    memcpy(block->a, product, sizeof(product));
}

static void send(const struct block *block, long number)
{
    const long slot = number % SLOTS;
    shmem_long_wait_until(done, SHMEM_CMP_GE, number - SLOTS);
    shmem_putmem(&slots[slot], block, sizeof(*block), next);
    shmem_fence();
    shmem_long_p(&come[slot], number, next);
}

static void receive(struct block *block, long number)
{
    const long slot = number % SLOTS;
    shmem_long_wait_until(&come[slot], SHMEM_CMP_EQ, number);
    *block = slots[slot];
    shmem_long_p(done, number, previous);
}

static void accelerate(void)
{
    struct block block;
    for (long number = 1; number <= BLOCKS; number++) {
        receive(&block, number);
        multiply(&block);
        send(&block, number);
    }
}

static void take(long number)
{
    struct block block, expected;
    receive(&block, number);
    make(&expected, number);
    for (int i = 1; i < all; i++) {
        multiply(&expected);
    }
    if (memcmp(&block, &expected, sizeof(block)) != 0) {
        fprintf(stderr, "block %ld is wrong\n", number);
        shmem_global_exit(1);
    }
}

/* As many blocks are under way as the elements have slots. */
static void feed(void)
{
    struct block block;
    const long ahead = (long)SLOTS * (all - 1);
    const double began = seconds();
    for (long number = 1; number <= BLOCKS + ahead; number++) {
        if (number <= BLOCKS) {
            make(&block, number);
            send(&block, number);
        }
        if (number > ahead) {
            take(number - ahead);
        }
    }
    const double took = seconds() - began;
    printf("%d blocks of %zu B through %d accelerators: %.1f MB/s, %.0f Mflop/s, all compared\n",
           BLOCKS, sizeof(block), all - 1, BLOCKS * (double)sizeof(block) / took / 1e6,
           2.0 * SIDE * SIDE * SIDE * BLOCKS * (all - 1) / took / 1e6);
}

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    next = (me + 1) % all;
    previous = (me + all - 1) % all;
    slots = shmem_calloc(SLOTS, sizeof(*slots));
    come = shmem_calloc(SLOTS, sizeof(*come));
    done = shmem_calloc(1, sizeof(*done));
    shmem_barrier_all();
    if (all < 2) {
        fprintf(stderr, "usage: oshrun -n 2 (or more) accelerators\n");
        shmem_global_exit(2);
    }
    if (me == 0) {
        feed();
    } else {
        accelerate();
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
