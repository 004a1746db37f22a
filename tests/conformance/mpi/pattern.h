/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pattern - bytes that say who sent them to whom, when, and where in the message they belong.
 *
 * Limits     A test's programs and nothing else: what is wrong ends the program.
 */
#ifndef TESTS_CONFORMANCE_MPI_PATTERN_H
#define TESTS_CONFORMANCE_MPI_PATTERN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Sizes around the borders of protocols and packets: inline, MTU, eager, rendezvous. */
static const size_t pattern_sizes[] = {1,     2,     7,     8,     63,     64,      65,     255,
                                       1000,  4095,  4096,  4097,  8191,   8256,    8257,   16384,
                                       32768, 65535, 65536, 65537, 262144, 1000003, 4194304};
#define PATTERN_SIZES     (sizeof(pattern_sizes) / sizeof(pattern_sizes[0]))
#define PATTERN_MAX_BYTES 4194304

/* A program's only argument, n: it takes every n-th of the sizes. */
static inline size_t pattern_step(int argc, char **argv)
{
    const int step = argc > 1 ? atoi(argv[1]) : 1;
    return step > 0 ? (size_t)step : 1;
}

static inline uint8_t pattern_byte(uint64_t seed, size_t at)
{
    uint64_t x = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ at * UINT64_C(0xc2b2ae3d27d4eb4f);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (uint8_t)(x >> 56);
}

static inline uint64_t pattern_seed(int from, int to, int round)
{
    return (uint64_t)from * 1000003 + (uint64_t)to * 1009 + (uint64_t)round;
}

static inline void pattern_fill(uint8_t *bytes, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = pattern_byte(seed, i);
    }
}

/* Ends the program unless every byte is right. Returns how many were compared. */
static inline size_t pattern_check(const uint8_t *bytes, size_t count, uint64_t seed,
                                   const char *what, int rank)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != pattern_byte(seed, i)) {
            fprintf(stderr, "%s, rank %d: byte %zu of %zu is %02x, not %02x\n", what, rank, i,
                    count, bytes[i], pattern_byte(seed, i));
            exit(1);
        }
    }
    return count;
}

static inline void *pattern_allocate(size_t count)
{
    void *memory = calloc(1, count);
    if (memory == NULL) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return memory;
}

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
