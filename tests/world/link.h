/* SPDX-License-Identifier: BSD-2-Clause
 *
 * link - the way of datagrams between the ends of a simulated world, as bad as the test wants it.
 *
 * Purpose    Carries datagrams from end to end in virtual time, and misuses them: loses, repeats,
 *            delays, damages and marks them, or is cut for a while, which loses what both ends
 *            send.
 * Inputs     link_init with a latency and the probabilities of faults; link_send.
 * Outputs    `arrived` is called for each datagram that arrives; counters.
 * Ownership  The pool is the caller's; one world after the other may use it. The link takes
 *            datagrams from it; whoever is told of an arrival gives the datagram back (link_give).
 * Threads    One; the link belongs to the world of its kernel.
 * Units      Picoseconds; probabilities in millionths, drawn from the kernel's generator.
 * Limits     What the pool has no room for is lost, and counted as crowded.
 * Source     sim/faults.h.
 */
#ifndef TESTS_WORLD_LINK_H
#define TESTS_WORLD_LINK_H

#include "sim/faults.h"
#include "sim/kernel.h"
#include "sim/pool.h"

struct link_settings {
    struct sim_faults faults;
    uint64_t latency_ps;
    uint64_t reorder_ps, late_ps; /* The most that a reordered, or late, datagram takes longer. */
    uint64_t cut_ps;              /* A cut is over at the latest after this time. */
    uint32_t damage_bytes;        /* A damaged one has a bit flipped in its first bytes. */
};

struct link {
    struct sim *sim;
    struct link_settings settings; /* Its faults count what struck. */
    sim_action arrived;
    struct sim_pool *pool;
    uint64_t cut_until_ps;
    uint64_t sent, lost, crowded; /* Copies count; what is crowded out is lost as well. */
};

struct datagram {
    struct sim_event event; /* The arrival. */
    struct link *link;
    uint32_t from, to; /* The test's numbers of the ends. */
    uint32_t count;
    bool marked; /* It met congestion. */
    uint8_t bytes[];
};

/* Opens a pool of datagrams, each of up to `bytes_max` bytes. */
void link_pool_open(struct sim_pool *pool, uint32_t count, uint32_t bytes_max);

/* `arrived` gets the event of a datagram (link_datagram). */
void link_init(struct link *link, struct sim *sim, struct sim_pool *pool,
               const struct link_settings *settings, sim_action arrived);

/* Copies `count` bytes, at most as many as the pool's datagrams have. */
void link_send(struct link *link, uint32_t from, uint32_t to, const uint8_t *bytes, uint32_t count);
/* The same for a datagram that may arrive with a congestion mark. */
void link_send_markable(struct link *link, uint32_t from, uint32_t to, const uint8_t *bytes,
                        uint32_t count);

static inline struct datagram *link_datagram(struct sim_event *event)
{
    return CONTAINER_OF(event, struct datagram, event);
}

static inline void link_give(struct datagram *datagram)
{
    sim_pool_give(datagram->link->pool, datagram);
}

#endif
