/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bus - one shared bus: who holds it, for how long, and who must let go.
 *
 * Purpose    Users ask for the bus; it grants one at a time, round robin, on an edge of its clock.
 * Inputs     forth_bus_request; what a user says of its tenure when it is granted.
 * Outputs    The user's `granted` and `ended`.
 * Ownership  A user lies in the struct that uses the bus; the bus links them.
 * Units      A data cycle moves one bus width.
 * Limits     FORTH_BUS_USERS_MAX users.
 * Source     The arbitration and latency timer of PCI-X, as far as they cost time. A split
 *            transaction is two tenures of one user: it asks again when its answer is there.
 */
#ifndef LAB_FORTH_BUS_H
#define LAB_FORTH_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/clock.h"
#include "sim/kernel.h"
#include "sim/trace.h"

#define FORTH_BUS_USERS_MAX 8

struct forth_bus;
struct forth_bus_user;

/* A user's time on the bus: cycles in which no data moves, then data cycles. */
struct forth_bus_tenure {
    uint32_t overhead, data;
};

struct forth_bus_user {
    /* The bus is granted: what for? Called once for each grant. */
    struct forth_bus_tenure (*granted)(struct forth_bus_user *user);
    /* The tenure is over and moved `moved` data cycles; fewer than wanted mean a disconnect. */
    void (*ended)(struct forth_bus_user *user, uint32_t moved);
    const char *name; /* The name in a trace. */
    uint32_t index;   /* Set by the bus. */
};

struct forth_bus {
    struct sim *sim;
    struct sim_clock clock;
    struct sim_event event; /* The end of a tenure, or the edge at which to grant. */
    struct forth_bus_user *users[FORTH_BUS_USERS_MAX];
    uint32_t count, last;
    uint32_t waiting;               /* Bit i: user i wants the bus. */
    struct forth_bus_user *holder;  /* NULL: free. */
    struct forth_bus_tenure tenure; /* The tenure of the holder. */
    uint64_t began;                 /* Cycle of the grant. */
    uint32_t latency_timer;         /* Cycles from the first data cycle on; 0: none. */
    uint64_t busy_cycles, tenures, disconnects;
    struct sim_trace *trace; /* NULL: nobody looks. */
    uint32_t track;
};

void forth_bus_init(struct forth_bus *bus, struct sim *sim, struct sim_clock clock);
void forth_bus_attach(struct forth_bus *bus, struct forth_bus_user *user);

/* Asks for the bus; asking again changes nothing. */
void forth_bus_request(struct forth_bus *bus, struct forth_bus_user *user);
void forth_bus_withdraw(struct forth_bus *bus, struct forth_bus_user *user);

/* The present cycle, rounded up to the next edge. */
uint64_t forth_bus_cycle(const struct forth_bus *bus);

#endif
