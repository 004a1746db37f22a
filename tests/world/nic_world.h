/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nic_world - two NICs and a bad link between them, in virtual time.
 *
 * Purpose    Runs the shipped engines deterministically: a link with faults, late memory moves and
 *            lazy pulling, all drawn from one seed.
 * Inputs     nic_world_init with settings; the test posts work through nic/queue_pair.h.
 * Outputs    nic_world_step advances to the next event; completions are polled by the test. The
 *            kernel's digest covers every byte that arrived, and when.
 * Ownership  The world owns both NICs; queues and buffers are the test's. The world must not move.
 * Threads    One; a world is a value, two may run side by side.
 * Time       The kernel's picoseconds, advanced by events only; engines are told nanoseconds.
 * Units      Picoseconds.
 * Limits     NIC_WORLD_PACKETS_MAX packets are under way; more are lost (and counted).
 * Source     The contract in nic/nic.h.
 */
#ifndef TESTS_WORLD_NIC_WORLD_H
#define TESTS_WORLD_NIC_WORLD_H

#include "nic/nic.h"
#include "tests/world/link.h"

#define NIC_WORLD_PACKETS_MAX 4096u
/* The number by which a node knows the other one (nic_av.peer), if block_limits.peers is at least
 * 1. */
#define NIC_WORLD_PEER 1u

/* Which address each node names beside its first one. */
enum nic_world_second {
    NIC_WORLD_NONE,
    NIC_WORLD_OWN,
    NIC_WORLD_STOLEN, /* Node 1 names a stranger's. Packets to it are counted and lost. */
};

/* The fault `lazy`: a node does not pull from its NIC at this opportunity. */
struct nic_world_settings {
    struct link_settings link;
    uint64_t move_ps; /* Memory moves finish up to this much later; 0: at once. */
    bool stranger;    /* Node 1 speaks no blocks, although the limits allow them. */
    /* From that time on blocks and answers that a node sends by these of its 16 routes are lost. RC
     * and the negotiation of blocks have one route only, which is spared. */
    uint64_t dead_from_ps;
    uint16_t dead_routes[2];
    enum nic_world_second second;
};

struct nic_node {
    struct nic *nic;
    struct gid gid;
    struct sim_event timer;  /* The NIC's deadline. */
    struct sim_event pull;   /* After it was lazy. */
    uint64_t moves_until_ps; /* Moves of a node finish in order. */
};

struct nic_world {
    struct sim sim;
    struct link link;
    struct sim_pool packets;
    struct sim_pool moves; /* Late ones. */
    uint64_t move_ps;
    uint64_t dead_from_ps;
    uint16_t dead_routes[2];
    uint64_t arrived;   /* Packets. */
    uint64_t died;      /* On dead routes. */
    struct gid gids[4]; /* The first ones of both nodes, then the second ones. */
    bool stolen;        /* The last one is a stranger's. */
    /* Packets between first addresses, or between second ones, are lost. */
    bool dead_pairs[2];
    uint64_t carried[2];     /* Packets between first addresses that left, and all others. */
    uint64_t astray_packets; /* To the stranger, ... */
    uint64_t astray_bytes;   /* ... with the headers of IPv4 and UDP, and the ICRC. */
    uint64_t sent_bytes[2];  /* By each node, likewise. */
    struct nic_node nodes[2];
};

void nic_world_init(struct nic_world *world, uint64_t seed,
                    const struct nic_world_settings *settings, const struct nic_limits *limits);
void nic_world_free(struct nic_world *world);

/* Checks the invariants of all engines, pulls what both NICs want to send, then runs the next
 * event. False: nothing is left to happen. */
bool nic_world_step(struct nic_world *world);

#endif
