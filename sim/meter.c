/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/meter.h"

#define STEPS_LOG2    5 /* Buckets in each power of two. */
#define STEPS         (1u << STEPS_LOG2)
#define PS_PER_SECOND 1e12

void sim_rate_count(struct sim_rate *rate, uint64_t now_ps, uint64_t amount)
{
    if (now_ps < rate->from_ps) {
        return;
    }
    if (rate->events == 0) {
        rate->first_ps = now_ps;
        rate->first_amount = amount;
    }
    rate->last_ps = now_ps;
    rate->amount += amount;
    rate->events++;
}

double sim_rate_per_second(const struct sim_rate *rate)
{
    if (rate->last_ps == rate->first_ps) {
        return 0;
    }
    return (double)(rate->amount - rate->first_amount) * PS_PER_SECOND /
           (double)(rate->last_ps - rate->first_ps);
}

/* Values below STEPS have a bucket each; above, the bits behind the leading one tell. */
static uint32_t bucket_of(uint64_t value)
{
    if (value < STEPS) {
        return (uint32_t)value;
    }
    const uint32_t top = 63 - (uint32_t)__builtin_clzll(value);
    return (top - STEPS_LOG2 + 1) * STEPS + ((uint32_t)(value >> (top - STEPS_LOG2)) & (STEPS - 1));
}

static uint64_t value_of(uint32_t bucket)
{
    if (bucket < STEPS) {
        return bucket;
    }
    const uint32_t shift = bucket / STEPS - 1;
    return (uint64_t)(STEPS + bucket % STEPS) << shift;
}

void sim_spread_count(struct sim_spread *spread, uint64_t value)
{
    if (spread->count == 0 || value < spread->least) {
        spread->least = value;
    }
    if (value > spread->most) {
        spread->most = value;
    }
    spread->count++;
    spread->sum += value;
    spread->buckets[bucket_of(value)]++;
}

double sim_spread_mean(const struct sim_spread *spread)
{
    return spread->count == 0 ? 0 : (double)spread->sum / (double)spread->count;
}

uint64_t sim_spread_percentile(const struct sim_spread *spread, double share)
{
    uint64_t below = 0;
    for (uint32_t i = 0; i < SIM_SPREAD_BUCKETS; i++) {
        below += spread->buckets[i];
        if (below > 0 && (double)below >= share * (double)spread->count) {
            return value_of(i);
        }
    }
    return spread->most;
}

double sim_fairness(const double *shares, size_t count)
{
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        sum += shares[i];
        squares += shares[i] * shares[i];
    }
    return squares == 0 ? 1 : sum * sum / ((double)count * squares);
}
