/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shmem_pair - what 8 bytes cost between two elements of OpenSHMEM.
 *
 * Usage   oshrun -n 2 shmem_pair NAME... Prints a line for each, its name and microseconds:
 *   put        shmem_long_p, one after another, without waiting
 *   put-quiet  shmem_long_p, and shmem_quiet until it has arrived
 *   get        shmem_long_g
 *   one-way    half of a ping-pong: each element puts a number, and then looks at its memory until
 *              the other one's has come. Between two looks it calls shmem_quiet, which has nothing
 *              to do, so that the program makes no progress for its NIC.
 *
 * Method  Medians of groups: one in which the processor was taken away does not count. Every value
 *         that comes is compared.
 */
#include <shmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    GROUPS = 501,
    WARM_UP = 10,
    EACH = 10, /* Operations of a group. */
};

/* Cells of the other element, each on a line of its own. */
enum {
    PUT,
    GET = 8,
    FLAG = 16,
    CELLS = 24
};

static long *cells;
static int me;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void expect(const char *what, long value, long wanted)
{
    if (value != wanted) {
        fprintf(stderr, "%s: %ld instead of %ld\n", what, value, wanted);
        shmem_global_exit(1);
    }
}

static void put(void)
{
    shmem_long_p(&cells[PUT], 1, 1);
}

static void put_quiet(void)
{
    shmem_long_p(&cells[PUT], 1, 1);
    shmem_quiet();
}

static void get(void)
{
    expect("get", shmem_long_g(&cells[GET], 1), 4711);
}

/* Both elements do it. */
static void ping(void)
{
    static long turn;
    turn++;
    if (me == 0) {
        shmem_long_p(&cells[FLAG], turn, 1);
    }
    while (*(volatile long *)&cells[FLAG] != turn) {
        shmem_quiet();
    }
    if (me == 1) {
        shmem_long_p(&cells[FLAG], turn, 0);
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *what, void (*operation)(void), double parts)
{
    double times[GROUPS];
    for (int group = -WARM_UP; group < GROUPS; group++) {
        const double began = now_us();
        for (int i = 0; i < EACH; i++) {
            operation();
        }
        if (group >= 0) {
            times[group] = (now_us() - began) / EACH / parts;
        }
    }
    shmem_quiet();
    qsort(times, GROUPS, sizeof(times[0]), compare);
    if (me == 0) {
        printf("%s %.3f\n", what, times[GROUPS / 2]);
    }
}

/* One of them: what the first element does, or what both do. */
static const struct {
    const char *name;
    void (*operation)(void);
    bool both;
} ALL[] = {
    {"put", put, false},
    {"put-quiet", put_quiet, false},
    {"get", get, false},
    {"one-way", ping, true},
};

static bool measure_named(const char *name)
{
    for (size_t i = 0; i < sizeof(ALL) / sizeof(ALL[0]); i++) {
        if (strcmp(name, ALL[i].name) == 0) {
            shmem_barrier_all();
            if (me == 0 || ALL[i].both) {
                measure(name, ALL[i].operation, ALL[i].both ? 2 : 1);
            }
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    shmem_init();
    me = shmem_my_pe();
    cells = shmem_calloc(CELLS, sizeof(*cells));
    cells[GET] = 4711;
    bool known = shmem_n_pes() == 2 && argc > 1;
    for (int i = 1; known && i < argc; i++) {
        known = measure_named(argv[i]);
    }
    if (!known) {
        fprintf(stderr, "usage: oshrun -n 2 shmem_pair put|put-quiet|get|one-way...\n");
        shmem_global_exit(2);
    }
    shmem_barrier_all();
    shmem_free(cells);
    shmem_finalize();
    return 0;
}
