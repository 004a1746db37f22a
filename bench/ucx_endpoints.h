/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Types and functions that the processes of ucx_endpoints share.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PEERS_MAX  16
#define POINTS_MAX 64
#define QPS_MAX    (1u << 20)
#define DEPTH_MAX  (1u << 20)

struct options {
    uint32_t qps[POINTS_MAX], points, peers, depth;
    double seconds, limit_s;
    bool read, allocated, acknowledged, json;
};

/* The memory that processes hold. A page that is mapped k times counts 1/k for each in `bytes`, and
 * whole in `resident`. */
struct usage {
    uint64_t bytes, resident, tables, files, mappings;
};

/* Results, in memory that all processes share: a process that cannot go on ends. */
struct outcome {
    char error[200];
    bool set_up, finished, wrong_data;
    uint32_t connected;
    double rate, latency_us, setup_s;
    struct usage before, after;
};

extern struct options options;
extern struct outcome *outcome;

double now(void);
void set_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The two sides talk over `fd`; neither function returns. */
_Noreturn void run_peer(int fd, uint32_t peer, uint32_t qps);
/* Writes a byte to `doorbell` when all endpoints are set up. */
_Noreturn void run_initiator(const int *peers, uint32_t qps, int doorbell);
