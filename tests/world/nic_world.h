/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nic_world - two NICs and a bad network between them, in virtual time.
 *
 * Purpose    Runs the shipped engines deterministically: loss, duplication, reordering, late memory
 *            moves and lazy pulling, all drawn from one seed.
 * Inputs     nic_world_init with faults; the test posts work through nic/queue_pair.h.
 * Outputs    nic_world_step advances to the next event; completions are polled by the test.
 * Ownership  The world owns both NICs; queues and buffers are the test's.
 * Threads    One; a world is a value, two may run side by side.
 * Time       Integer nanoseconds, advanced by events only.
 * Units      Probabilities in millionths.
 * Limits     NIC_WORLD_PACKETS_MAX packets in flight; more are lost (and counted).
 * Source     docs/decisions; the contract in nic/nic.h.
 */
#ifndef TESTS_WORLD_NIC_WORLD_H
#define TESTS_WORLD_NIC_WORLD_H

#include "base/prng.h"
#include "nic/nic.h"

#define NIC_WORLD_PACKETS_MAX 4096

struct nic_world_faults {
    uint32_t drop, duplicate, reorder; /* Millionths of packets. */
    uint64_t latency_ns;
    uint64_t move_ns; /* Memory moves finish up to this much later; 0: at once. */
    uint32_t lazy;    /* Millionths: the world does not pull at this opportunity. */
    bool cut;         /* Nothing arrives any more. */
};

struct nic_world_event {
    uint64_t at_ns, order;
    bool is_move;
    uint8_t node; /* Who receives, or whose memory moves. */
    uint32_t count;
    struct nic_move *move;
    uint8_t bytes[ROCE_PACKET_BYTES_MAX];
};

struct nic_world {
    struct prng prng;
    struct nic_world_faults faults;
    uint64_t now_ns, next_order;
    uint64_t lost, delivered, digest;
    struct nic *nics[2];
    struct gid gids[2];
    uint64_t move_done_ns[2]; /* Moves of a node finish in order. */
    uint32_t event_count;
    struct nic_world_event *events[NIC_WORLD_PACKETS_MAX]; /* A heap by (at_ns, order). */
};

void nic_world_init(struct nic_world *world, uint64_t seed, const struct nic_world_faults *faults,
                    const struct nic_limits *limits);
void nic_world_free(struct nic_world *world);

/* Checks the invariants of all engines, pulls what both NICs want to send, then handles the next
 * event or timer. False: nothing is left to happen. */
bool nic_world_step(struct nic_world *world);

struct instant nic_world_now(const struct nic_world *world);

#endif
