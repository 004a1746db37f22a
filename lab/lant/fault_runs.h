/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fault_runs - the messages of chapter 5: over error rates, sizes, distributions, modes and seeds.
 *
 * Purpose    One grid of measurements for all experiments on faults, so that each of their rows is
 *            held against eight error rates and three seeds (LNI-84).
 * Inputs     The run's parameters and seed; how many messages of which size.
 * Outputs    Means, standard deviations and errors of a message's time; where two modes cross.
 * Time       Cycles of 6.4 ns.
 * Units      Error rates are of bits.
 * Limits     A message of which a packet failed eight times fails the run.
 * Source     Lant 5.3.
 *
 * With ECC nothing is spoilt at any error rate: it is measured once, and holds for all of them.
 */
#ifndef LAB_LANT_FAULT_RUNS_H
#define LAB_LANT_FAULT_RUNS_H

#include "lab/lant/experiments.h"
#include "lab/lant/faults.h"

#define LANT_FAULT_RATES 8u
#define LANT_FAULT_SEEDS 3u
#define LANT_FAULT_MODES 3u /* enum lant_fault_mode. */

enum lant_fault_size {
    LANT_FAULT_4K,
    LANT_FAULT_64K,
    LANT_FAULT_2M,
    LANT_FAULT_SIZES,
};

enum lant_fault_distribution {
    LANT_FAULT_LOCAL,  /* 8:4:2:1 for 2 to 5 hops. */
    LANT_FAULT_REMOTE, /* 1:2:4:8. */
    LANT_FAULT_DISTRIBUTIONS,
};

extern const double lant_fault_rates[LANT_FAULT_RATES]; /* They rise from 0 on. */
extern const uint32_t lant_fault_bytes[LANT_FAULT_SIZES];
extern const char *const lant_fault_size_names[LANT_FAULT_SIZES];
extern const char *const lant_fault_mode_names[LANT_FAULT_MODES];
extern const char *const lant_fault_distribution_names[LANT_FAULT_DISTRIBUTIONS];

/* Messages of one kind. */
struct lant_fault_statistics {
    uint64_t count, packets, again;
    double mean;    /* A message's time, in cycles. */
    double squares; /* The sum of squared distances from it. */
};

struct lant_fault_grid {
    /* The last index: seeds, and behind them all of these together. */
    struct lant_fault_statistics cells[LANT_FAULT_SIZES][LANT_FAULT_DISTRIBUTIONS][LANT_FAULT_MODES]
                                      [LANT_FAULT_RATES][LANT_FAULT_SEEDS + 1];
};

#define LANT_FAULT_ALL_SEEDS LANT_FAULT_SEEDS

/* The measurements to make. */
struct lant_fault_plan {
    uint32_t messages[LANT_FAULT_SIZES]; /* For each seed; 0: none of this size. */
    bool without_llv;
};

/* The parameters that decide about a pair. */
#define LANT_FAULT_USES                                                                            \
    "mac_frame mac_pause setup hop check code service spoilt checks resend fault_rows messages "

/* Fills the grid. If it fails, so does the run. */
void lant_fault_grid_run(struct lab_run *run, struct lant_fault_grid *grid,
                         const struct lant_fault_plan *plan);

/* A pair as the run's parameters say; its distribution, threshold and seed are the caller's. */
struct lant_fault_pair_config lant_fault_pair_of(struct lab_run *run, enum lant_fault_mode mode);
/* Packets of a message of `bytes` bytes: with ECC more. */
uint32_t lant_fault_packets(struct lab_run *run, enum lant_fault_mode mode, uint32_t bytes);
/* Sends `messages` messages, one after the other: or the share of them that the parameter
 * `messages` says, two at least. */
struct lant_fault_statistics lant_fault_measure(struct lab_run *run,
                                                const struct lant_fault_pair_config *config,
                                                uint32_t packets, uint32_t messages);
/* A register's seed, from the run's and from a number that no other measurement has. */
uint32_t lant_fault_seed(const struct lab_run *run, uint64_t number);
/* For packets of full size. */
uint64_t lant_fault_full_threshold(double bit_error_rate);

double lant_fault_deviation(const struct lant_fault_statistics *statistics);
/* By how many standard errors of the difference b's mean is above a's. */
double lant_fault_above(const struct lant_fault_statistics *a,
                        const struct lant_fault_statistics *b);
/* The seed's value that is furthest from `from`: if it is in a tolerance around it, all are. */
double lant_fault_furthest(const double values[LANT_FAULT_SEEDS], double from);
/* Payload, in Gb/s. */
double lant_fault_goodput(const struct lant_fault_statistics *statistics, uint32_t bytes);

/* The error rate from which on ECC is faster than E2E, between two measured rates by a straight
 * line; the highest rate if it never is. `seed` may be LANT_FAULT_ALL_SEEDS. */
double lant_fault_crossing(const struct lant_fault_grid *grid, enum lant_fault_size size,
                           enum lant_fault_distribution distribution, uint32_t seed);

/* Draws a curve for each mode of the plan: `value` over the error rate, of one size and
 * distribution. */
typedef double (*lant_fault_value)(const struct lant_fault_statistics *statistics, uint32_t bytes);
/* Results of other implementations; LAB_NOTHING: none. May be NULL. */
typedef double (*lant_fault_expected)(enum lant_fault_size size,
                                      enum lant_fault_distribution distribution,
                                      enum lant_fault_mode mode, double rate);
void lant_fault_draw(struct lab_run *run, const struct lant_fault_grid *grid,
                     const struct lant_fault_plan *plan, enum lant_fault_size size,
                     enum lant_fault_distribution distribution, lant_fault_value value,
                     lant_fault_expected expected);

#endif
