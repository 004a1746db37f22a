/* SPDX-License-Identifier: BSD-2-Clause
 *
 * reading - what an experiment for one point measures: the same list for every machine.
 *
 * Purpose    MACHINE/one gives numbers to sweep and to draw. Nobody has published them, so they are
 *            no rows, and nothing judges them.
 * Inputs     A tally that counts messages as they come to their end; what the machine's own
 *            counters say.
 * Outputs    Readings of the run (struct lab_reading).
 * Units      Times in picoseconds, amounts in bytes; readings say their units.
 * Source     Our choice.
 */
#ifndef LAB_READING_H
#define LAB_READING_H

#include "lab/lab.h"
#include "sim/meter.h"

/* Messages that came to their end. Zeroed memory has none. */
struct lab_tally {
    uint64_t bytes;             /* Payload of all of them. */
    uint64_t first_ps, last_ps; /* The first of them began, and the last one ended. */
    struct sim_spread latency;  /* From beginning to end; its `count` is their number. */
};

void lab_tally_count(struct lab_tally *tally, uint64_t began_ps, uint64_t ended_ps, uint64_t bytes);
/* Their payload in Gb/s from the first one's beginning to the last one's end, of all together: so
 * it cannot be more than what the wires carry. And their number, in million a second. */
double lab_tally_gbps(const struct lab_tally *tally);
double lab_tally_rate(const struct lab_tally *tally);

/* The length of a queue, looked at now and then. */
struct lab_lengths {
    uint64_t sum, looks, most;
};

void lab_lengths_count(struct lab_lengths *lengths, uint64_t length);

/* The results of a point of any machine. `..._of` tells in the machine's own words of what a number
 * is; NULL: the machine has nothing of this kind, and there is no reading. */
struct lab_outcome {
    double gbps, rate; /* As lab_tally_gbps, lab_tally_rate. */
    const struct sim_spread *latency;
    const char *latency_of;
    double link, bus; /* The share of the time for which the busiest one was in use. */
    const char *link_of, *bus_of;
    const struct lab_lengths *queue;
    const char *queue_of;
    double hits; /* The share of looks that found what they looked for; LAB_NOTHING: no looks. */
    const char *hits_of;
    uint64_t lost, again; /* Lost by the network, or damaged there; sent once more. */
    const char *lost_of, *again_of;
};

void lab_add_outcome(struct lab_run *run, const struct lab_outcome *outcome);

#endif
