/* SPDX-License-Identifier: BSD-2-Clause
 *
 * seeds - the worlds that a scenario test runs, and the way to run a failed one again.
 *
 * Purpose    One command line for all of them:
 *                --seed N                     one world
 *                --seeds FIRST LAST           these
 *                --seconds S [--from SEED]    as many as the time allows, from SEED (1) on
 *                --minutes M [--from SEED]    likewise
 *            and nothing: the usual ones, the same at every run.
 * Outputs    seeds_next; on failure, also by a CHECK or a sanitizer, the command line that runs the
 *            world again; how many worlds were run in the time.
 * Threads    One; there is one such set in a program.
 */
#ifndef TESTS_SCENARIOS_SEEDS_H
#define TESTS_SCENARIOS_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

struct seeds {
    const char *program;
    uint64_t first, last;
    uint64_t seconds; /* 0: all up to `last`. */
    uint64_t next, count, deadline_ns;
};

/* Ends the program with a message if the arguments are wrong. `usual`: how many worlds without any,
 * from 1 on. */
struct seeds seeds_from_arguments(int argc, char **argv, uint64_t usual);

/* The next world to run. False: that was all. */
bool seeds_next(struct seeds *seeds, uint64_t *seed);

/* The exit status of a program whose tests returned `failures`. */
int seeds_finish(const struct seeds *seeds, int failures);

#endif
