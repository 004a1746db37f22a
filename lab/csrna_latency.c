/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Latency over connections (figures 7b, 7c), out-of-order capacity (figure 8), and where contexts
 * live (figure 9).
 */
#include <math.h>
#include <stdio.h>

#include "lab/csrna_experiments.h"

#define MILLION 1e6
/* The part of a round over the connections that is measured: a sixth of 51,200 fills every cache
 * several times over. */
#define PART (1.0 / 6)

static double latency(struct lab_run *run, enum csrna_policy policy, bool reads, uint32_t qps,
                      uint32_t oocap)
{
    struct csrna_load load = csrna_load_of(run);
    load.policy = policy;
    load.reads = reads;
    load.qps = qps;
    load.oocap = oocap;
    load.one_at_a_time = true;
    load.share = PART;
    if (policy == CSRNA_FCFS) {
        load.cache_entries = (uint32_t)lab_value(run, "blocking_cache");
    }
    return csrna_run(run, &load).latency_us;
}

struct latencies {
    double few, many, worst_hidden, most;
    uint32_t disorder; /* Points at which the policies are not in the expected order. */
};

/* -- Policies -----------------------------------------------------------------------------------*/

static const char *const names[] = {"first come first served", "non-blocking", "latency hidden"};

/* All three policies over connections; [policy][point]. */
static uint32_t add_policies(struct lab_run *run, bool reads, uint32_t *points,
                             double found[3][CSRNA_POINTS_MAX])
{
    const uint32_t oocap = (uint32_t)lab_value(run, "oocap");
    const uint32_t count =
        csrna_sweep((uint32_t)lab_value(run, "clients"), (uint32_t)lab_value(run, "cores"), points);
    for (uint32_t p = 0; p < 3; p++) {
        char name[LAB_TEXT_BYTES];
        snprintf(name, sizeof(name), "%s, %s", names[p], reads ? "reads" : "writes");
        struct lab_series *series =
            lab_add_series(run, name, "connections", "latency of a message, us", true);
        for (uint32_t i = 0; i < count; i++) {
            found[p][i] = latency(run, (enum csrna_policy)p, reads, points[i], oocap);
            lab_add_point(series, points[i], found[p][i], LAB_NOTHING);
            lab_progress(run, (reads + (p + (double)(i + 1) / count) / 3) / 2);
        }
    }
    return count;
}

static void latencies(struct lab_run *run)
{
    uint32_t points[CSRNA_POINTS_MAX];
    double found[3][CSRNA_POINTS_MAX];
    const uint32_t cache = (uint32_t)lab_value(run, "cache");
    const uint32_t blocking = (uint32_t)lab_value(run, "blocking_cache");
    const uint32_t oocap = (uint32_t)lab_value(run, "oocap");
    uint32_t count = add_policies(run, false, points, found);
    const double few = found[CSRNA_HIDING][0];
    double hidden = few, most = 0, least_gap = 1e9, most_gap = 0;
    uint32_t disorder = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double gap = found[CSRNA_NB][i] - few;
        if (points[i] > cache && points[i] <= blocking) {
            hidden = fmax(hidden, found[CSRNA_HIDING][i]);
            least_gap = fmin(least_gap, gap);
            most_gap = fmax(most_gap, gap);
        } else if (points[i] > blocking) {
            most = fmax(most, found[CSRNA_HIDING][i]);
            disorder += !(found[CSRNA_HIDING][i] < found[CSRNA_NB][i] &&
                          found[CSRNA_NB][i] < found[CSRNA_FCFS][i]);
        }
    }
    lab_judge_relative(lab_add_row(run, "A5", "us", "latency of a write, few connections"), 3.89,
                       few, 0.03);
    lab_judge_range(lab_add_row(run, "A6", "us", "more when contexts miss, least"), 0.5, 0.55,
                    least_gap);
    lab_judge_range(lab_add_row(run, "A6", "us", "more when contexts miss, most"), 0.5, 0.55,
                    most_gap);
    lab_judge_range(lab_add_row(run, "A7", "us", "hidden, up to %u connections", blocking), 0,
                    few * 1.02, hidden);
    lab_judge_range(lab_add_row(run, "A8", "us", "hidden, beyond: receivers' contexts miss, too"),
                    few, few + 0.55, most);
    lab_judge_absolute(lab_add_row(run, "A8", "points", "beyond, where policies are out of order"),
                       0, disorder, 0);
    lab_judge_range(
        lab_add_row(run, "A9", "us", "first come first served, %u connections", 2 * blocking),
        few + 2, LAB_UNBOUNDED, latency(run, CSRNA_FCFS, false, 2 * blocking, oocap));
    count = add_policies(run, true, points, found);
    disorder = 0;
    for (uint32_t i = 0; i < count; i++) {
        disorder += points[i] > blocking && !(found[CSRNA_HIDING][i] < found[CSRNA_NB][i] &&
                                              found[CSRNA_NB][i] < found[CSRNA_FCFS][i]);
        disorder += points[i] > cache && points[i] <= blocking &&
                    !(found[CSRNA_HIDING][i] < found[CSRNA_NB][i]);
    }
    lab_judge_absolute(lab_add_row(run, "A10", "points", "reads, where policies are out of order"),
                       0, disorder, 0);
}

/* -- Out-of-order capacity ----------------------------------------------------------------------*/

static const uint32_t capacities[] = {1, 2, 4, 8, 16, 32, 64};

static void add_rates(struct lab_run *run, double *shares)
{
    struct lab_series *series =
        lab_add_series(run, "writes", "out-of-order capacity", "million messages a second", true);
    struct csrna_load load = csrna_load_of(run);
    load.policy = CSRNA_HIDING;
    load.share = PART;
    double peak = 0;
    for (uint32_t i = 0; i < COUNT_OF(capacities); i++) {
        load.oocap = capacities[i];
        shares[i] = csrna_run(run, &load).rate / MILLION;
        lab_add_point(series, capacities[i], shares[i], LAB_NOTHING);
        peak = fmax(peak, shares[i]);
        lab_progress(run, (double)(i + 1) / (2 * COUNT_OF(capacities)));
    }
    for (uint32_t i = 0; i < COUNT_OF(capacities); i++) {
        shares[i] /= peak;
    }
}

/* Latencies at few and many connections; returns by how much the extremes of many differ. */
static double add_latencies(struct lab_run *run, enum csrna_policy policy, uint32_t few,
                            uint32_t many, double *at_few, double *at_many)
{
    const uint32_t qps[] = {few, many};
    double least = 1e9, most = 0;
    for (uint32_t k = 0; k < 2; k++) {
        char name[LAB_TEXT_BYTES];
        snprintf(name, sizeof(name), "%s, %u connections", names[policy], qps[k]);
        struct lab_series *series =
            lab_add_series(run, name, "out-of-order capacity", "latency of a message, us", true);
        for (uint32_t i = 0; i < COUNT_OF(capacities); i++) {
            const double us = latency(run, policy, false, qps[k], capacities[i]);
            (k == 0 ? at_few : at_many)[i] = us;
            lab_add_point(series, capacities[i], us, LAB_NOTHING);
            if (k == 1) {
                least = fmin(least, us);
                most = fmax(most, us);
            }
        }
    }
    return 1 - least / most;
}

static bool falls(const double *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (values[i] > values[i - 1] * 1.001) {
            return false;
        }
    }
    return true;
}

static void out_of_order(struct lab_run *run)
{
    enum {
        COUNT = COUNT_OF(capacities)
    };
    double shares[COUNT], few[2][COUNT], many[2][COUNT];
    const uint32_t qps = (uint32_t)lab_value(run, "qps");
    const uint32_t just_above = (uint32_t)lab_value(run, "cache") * 4 / 3;
    add_rates(run, shares);
    bool monotone = true;
    for (uint32_t i = 1; i < COUNT; i++) {
        monotone &= shares[i] >= shares[i - 1] * 0.995;
    }
    lab_judge_range(lab_add_row(run, "A11", "", "of the peak rate, capacity 16"), 0.97,
                    LAB_UNBOUNDED, shares[4]);
    lab_judge_range(lab_add_row(run, "A11", "", "of the peak rate, capacity 1"), 0, 0.35,
                    shares[0]);
    lab_judge_absolute(lab_add_row(run, "A11", "", "the rate grows with the capacity (1: yes)"), 1,
                       monotone, 0);
    const double spread = add_latencies(run, CSRNA_NB, just_above, qps, few[0], many[0]);
    lab_judge_range(
        lab_add_row(run, "A12", "", "spread of latency over capacity, most connections"), 0, 0.05,
        spread);
    lab_judge_absolute(
        lab_add_row(run, "A12", "", "latency falls with the capacity, %u connections", just_above),
        1, falls(few[0], COUNT), 0);
    add_latencies(run, CSRNA_HIDING, just_above, qps, few[1], many[1]);
    uint32_t above = 0;
    for (uint32_t i = 1; i < COUNT; i++) {
        above += few[1][i] >= few[0][i] || many[1][i] >= many[0][i];
    }
    lab_judge_absolute(
        lab_add_row(run, "A13", "points", "where hiding does not lower latency, capacity > 1"), 0,
        above, 0);
}

/* -- Where contexts live ------------------------------------------------------------------------*/

static void placement(struct lab_run *run)
{
    static const uint32_t sizes[] = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
    struct lab_series *host = lab_add_series(run, "contexts in host memory", "message size, B",
                                             "million messages a second", true);
    struct lab_series *board = lab_add_series(run, "contexts on board", "message size, B",
                                              "million messages a second", true);
    struct csrna_load load = csrna_load_of(run);
    load.policy = CSRNA_HIDING;
    load.share = PART;
    double small = 0, middle = 0, large = 0;
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        load.bytes = sizes[i];
        load.on_board = false;
        const double far = csrna_run(run, &load).rate / MILLION;
        load.on_board = true;
        const double near = csrna_run(run, &load).rate / MILLION;
        const double gap = 1 - far / near;
        lab_add_point(host, sizes[i], far, LAB_NOTHING);
        lab_add_point(board, sizes[i], near, LAB_NOTHING);
        if (sizes[i] <= 64) {
            small = fmax(small, gap);
        } else if (sizes[i] <= 1024) {
            middle = fmax(middle, gap);
        }
        large = gap;
        lab_progress(run, (double)(i + 1) / COUNT_OF(sizes));
    }
    lab_judge_range(lab_add_row(run, "A16", "", "slower from host memory, up to 64 B"),
                    -LAB_UNBOUNDED, 0.02, small);
    lab_judge_range(lab_add_row(run, "A16", "", "slower from host memory, at worst, 128..1024 B"),
                    0.05, LAB_UNBOUNDED, middle);
    lab_judge_range(lab_add_row(run, "A16", "", "slower from host memory, 4 KB"), -LAB_UNBOUNDED,
                    0.03, large);
}

CSRNA_EXPERIMENT(csrna_latency, "csrna/latency", "latency over connections, by policy", latencies,
                 "A missing context costs a PCIe round trip, unless it is read beside the work "
                 "request; a receiver's is never hidden. Blocked, ten cores wait for one another. "
                 "The software's share of the latency is fitted.");
CSRNA_EXPERIMENT(csrna_out_of_order, "csrna/out-of-order", "rate and latency over oocap",
                 out_of_order,
                 "One request at a time waits for each context; sixteen are enough for the round "
                 "trip. With few messages under way, latency hardly depends on it.");
CSRNA_EXPERIMENT(csrna_placement, "csrna/placement", "contexts in host or on-board memory",
                 placement,
                 "Contexts and data share PCIe: small messages are bound by processing, large ones "
                 "carry few contexts.");
