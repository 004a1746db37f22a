/* SPDX-License-Identifier: BSD-2-Clause
 *
 * meter - the measures of experiments: amounts per time, and how values are spread.
 */
#ifndef SIM_METER_H
#define SIM_METER_H

#include <stddef.h>
#include <stdint.h>

/* Counts from `from_ps` on: everything before belongs to the warm-up. */
struct sim_rate {
    uint64_t from_ps;
    uint64_t first_ps, last_ps; /* When the first and the last amount were counted. */
    uint64_t amount, events;
    uint64_t first_amount; /* The amount at first_ps, which is not part of the interval. */
};

void sim_rate_count(struct sim_rate *rate, uint64_t now_ps, uint64_t amount);
/* Amount per second between the first and the last count; 0 with fewer than two. */
double sim_rate_per_second(const struct sim_rate *rate);

/* Smallest, largest and mean of values; percentiles to within 1/32 of the value. */
#define SIM_SPREAD_BUCKETS (64 * 32)

struct sim_spread {
    uint64_t count, sum, least, most;
    uint32_t buckets[SIM_SPREAD_BUCKETS];
};

void sim_spread_count(struct sim_spread *spread, uint64_t value);
double sim_spread_mean(const struct sim_spread *spread);
/* The value that `share` (0..1) of all do not exceed; 0 without any. */
uint64_t sim_spread_percentile(const struct sim_spread *spread, double share);

/* Jain's fairness index of `count` shares: 1 if all are equal, 1 / count if one has all. */
double sim_fairness(const double *shares, size_t count);

#endif
