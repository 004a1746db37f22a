/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/reading.h"

#define PS_PER_US 1e6

/* -- Counting -----------------------------------------------------------------------------------*/

void lab_tally_count(struct lab_tally *tally, uint64_t began_ps, uint64_t ended_ps, uint64_t bytes)
{
    if (tally->latency.count == 0 || began_ps < tally->first_ps) {
        tally->first_ps = began_ps;
    }
    if (ended_ps > tally->last_ps) {
        tally->last_ps = ended_ps;
    }
    tally->bytes += bytes;
    sim_spread_count(&tally->latency, ended_ps - began_ps);
}

/* The part of `amount` that comes in a picosecond; 0 if no time has passed. */
static double per_ps(const struct lab_tally *tally, double amount)
{
    const uint64_t ps = tally->last_ps - tally->first_ps;
    return ps == 0 ? 0 : amount / (double)ps;
}

double lab_tally_gbps(const struct lab_tally *tally)
{
    return per_ps(tally, 8e3 * (double)tally->bytes);
}

double lab_tally_rate(const struct lab_tally *tally)
{
    return per_ps(tally, PS_PER_US * (double)tally->latency.count);
}

void lab_lengths_count(struct lab_lengths *lengths, uint64_t length)
{
    lengths->sum += length;
    lengths->looks++;
    lengths->most = length > lengths->most ? length : lengths->most;
}

/* -- Readings -----------------------------------------------------------------------------------*/

static double us(double ps)
{
    return ps / PS_PER_US;
}

static double percentile_us(const struct sim_spread *spread, double share)
{
    return spread->count == 0 ? LAB_NOTHING : us((double)sim_spread_percentile(spread, share));
}

static void add_latency(struct lab_run *run, const struct sim_spread *spread, const char *of)
{
    const bool any = spread->count > 0;
    lab_add_reading(run, "latency_mean", "us", any ? us(sim_spread_mean(spread)) : LAB_NOTHING,
                    "%s, the mean", of);
    lab_add_reading(run, "latency_p50", "us", percentile_us(spread, 0.50),
                    "half of them within, down to 1/32 less");
    lab_add_reading(run, "latency_p99", "us", percentile_us(spread, 0.99),
                    "99 of 100 within, down to 1/32 less");
    lab_add_reading(run, "latency_max", "us", any ? us((double)spread->most) : LAB_NOTHING,
                    "the longest of %llu", (unsigned long long)spread->count);
}

static void add_queue(struct lab_run *run, const struct lab_lengths *queue, const char *of)
{
    lab_add_reading(run, "queue_mean", "",
                    queue->looks == 0 ? LAB_NOTHING : (double)queue->sum / (double)queue->looks,
                    "%s, the mean", of);
    lab_add_reading(run, "queue_max", "", queue->looks == 0 ? LAB_NOTHING : (double)queue->most,
                    "the longest of them");
}

void lab_add_outcome(struct lab_run *run, const struct lab_outcome *outcome)
{
    lab_add_reading(run, "rate", "Gb/s", outcome->gbps, "payload, of all nodes together");
    lab_add_reading(run, "messages", "M/s", outcome->rate, "million messages a second, of all");
    if (outcome->latency_of != NULL) {
        add_latency(run, outcome->latency, outcome->latency_of);
    }
    if (outcome->link_of != NULL) {
        lab_add_reading(run, "link_share", "", outcome->link, "%s", outcome->link_of);
    }
    if (outcome->bus_of != NULL) {
        lab_add_reading(run, "bus_share", "", outcome->bus, "%s", outcome->bus_of);
    }
    if (outcome->queue_of != NULL) {
        add_queue(run, outcome->queue, outcome->queue_of);
    }
    if (outcome->hits_of != NULL) {
        lab_add_reading(run, "hit_ratio", "", outcome->hits, "%s", outcome->hits_of);
    }
    if (outcome->lost_of != NULL) {
        lab_add_reading(run, "lost", "", (double)outcome->lost, "%s", outcome->lost_of);
    }
    if (outcome->again_of != NULL) {
        lab_add_reading(run, "resent", "", (double)outcome->again, "%s", outcome->again_of);
    }
}
