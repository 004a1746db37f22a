/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Latency over connections, by policy (figures 7b and 7c).
 */
#include <math.h>

#include "lab/csrna/experiments.h"

#define LATENCY  3.89
#define POLICIES 3u

double csrna_latency_of(struct lab_run *run, struct csrna_load load, uint32_t qps)
{
    load.qps = qps;
    load.one_at_a_time = true;
    load.share = CSRNA_PART;
    if (load.policy == CSRNA_FCFS) {
        load.cache_entries = (uint32_t)lab_value(run, "blocking_cache");
    }
    return csrna_run(run, &load).latency_us;
}

static struct csrna_load load_of(struct lab_run *run)
{
    struct csrna_load load = csrna_load_of(run);
    load.placement = (enum csrna_placement)lab_word(run, "placement");
    load.framing = (enum csrna_framing)lab_word(run, "framing");
    load.bytes = (uint32_t)lab_value(run, "payload");
    load.oocap = (uint32_t)lab_value(run, "oocap");
    return load;
}

struct found {
    uint32_t count, points[CSRNA_POINTS_MAX];
    double us[POLICIES][CSRNA_POINTS_MAX];
};

static void add_random(struct lab_run *run, struct csrna_load load, const struct found *found)
{
    struct lab_series *series = lab_add_curve(run, "latency hiding, victims by chance");
    load.policy = CSRNA_HIDING;
    load.victims = QPC_VICTIM_RANDOM;
    for (uint32_t i = 0; i < found->count; i++) {
        lab_add_point(series, found->points[i], csrna_latency_of(run, load, found->points[i]),
                      LAB_NOTHING);
    }
}

/* All three policies over connections. */
static void add_policies(struct lab_run *run, bool reads, struct found *found)
{
    struct lab_figure *figure =
        reads ? lab_add_figure(run, "7c", "Figure 7c: latency of reads", "connections",
                               "latency of a message, us", true)
              : lab_add_figure(run, "7b", "Figure 7b: latency of writes", "connections",
                               "latency of a message, us", true);
    figure->from_zero = false;
    if (!reads) {
        lab_add_mark(figure, LAB_NOTHING, LATENCY, "3.89 us");
    }
    struct csrna_load load = load_of(run);
    load.reads = reads;
    found->count = csrna_sweep(load.clients, (uint32_t)lab_value(run, "cores"), found->points);
    for (uint32_t p = 0; p < POLICIES; p++) {
        struct lab_series *series = lab_add_curve(run, "%s", csrna_policies[p]);
        load.policy = (enum csrna_policy)p;
        for (uint32_t i = 0; i < found->count; i++) {
            found->us[p][i] = csrna_latency_of(run, load, found->points[i]);
            lab_add_point(series, found->points[i], found->us[p][i], LAB_NOTHING);
        }
        lab_progress(run, (reads + (p + 1.0) / POLICIES) / 2);
    }
    if (!reads) {
        add_random(run, load, found);
    }
}

/* Policies differ by at least this: a fifth of a PCIe round trip. */
#define MARGIN_US 0.1

/* Points beyond `least` connections at which the policies are not in the document's order. */
static uint32_t disorder(const struct found *found, uint32_t least, uint32_t policies)
{
    uint32_t points = 0;
    for (uint32_t i = 0; i < found->count; i++) {
        bool ordered = true;
        for (uint32_t p = 1; p < policies; p++) {
            ordered &= found->us[p - 1][i] + MARGIN_US < found->us[p][i];
        }
        points += found->points[i] > least && !ordered;
    }
    return points;
}

/* Between the sender's cache and the receivers': the least and most of a policy, less the latency
 * with few connections. */
static void gaps(const struct found *found, enum csrna_policy policy, uint32_t cache,
                 uint32_t beyond, double *least, double *most)
{
    const double few = found->us[CSRNA_HIDING][0];
    *least = *most = 0;
    for (uint32_t i = 0, seen = 0; i < found->count; i++) {
        if (found->points[i] > cache && found->points[i] <= beyond) {
            const double gap = found->us[policy][i] - few;
            *least = seen == 0 ? gap : fmin(*least, gap);
            *most = seen == 0 ? gap : fmax(*most, gap);
            seen++;
        }
    }
}

static void judge_receivers(struct lab_run *run, const struct found *found, uint32_t beyond)
{
    const double few = found->us[CSRNA_HIDING][0];
    const double last = found->us[CSRNA_HIDING][found->count - 1] - few;
    uint32_t i = 0;
    while (i + 1 < found->count && found->points[i] <= beyond) {
        i++;
    }
    const double first = found->us[CSRNA_HIDING][i] - few;
    lab_judge_range(lab_add_row(run, "CSR-A8", "us",
                                "more when receivers' contexts miss, %u connections",
                                found->points[found->count - 1]),
                    0.5, 0.55, last);
    lab_judge_range(lab_add_row(run, "CSR-A8.slowly", "",
                                "share of that rise at the first point beyond, %u connections",
                                found->points[i]),
                    0, 0.5, last > 0 ? first / last : 0);
}

static void latencies(struct lab_run *run)
{
    struct found writes, reads;
    add_policies(run, false, &writes);
    add_policies(run, true, &reads);
    const struct csrna_load load = load_of(run);
    /* All receivers together have room for this many connections. */
    const uint32_t beyond = load.cache_entries * load.clients;
    double least, most;
    lab_judge_relative(lab_add_row(run, "CSR-A5", "us", "latency of a write, few connections"),
                       LATENCY, writes.us[CSRNA_HIDING][0], 0.03);
    gaps(&writes, CSRNA_NB, load.cache_entries, beyond, &least, &most);
    lab_judge_range(lab_add_row(run, "CSR-A6/least", "us", "more when contexts miss, least"), 0.5,
                    0.55, least);
    lab_judge_range(lab_add_row(run, "CSR-A6/most", "us", "more when contexts miss, most"), 0.5,
                    0.55, most);
    gaps(&writes, CSRNA_HIDING, load.cache_entries, beyond, &least, &most);
    lab_judge_range(lab_add_row(run, "CSR-A7", "us", "more with hiding, most"), -LAB_UNBOUNDED,
                    0.02 * LATENCY, most);
    judge_receivers(run, &writes, beyond);
    lab_judge_absolute(lab_add_row(run, "CSR-A8.order", "points", "policies out of order, writes"),
                       0, disorder(&writes, beyond, POLICIES), 0);
    const uint32_t twice = 6000;
    struct csrna_load fcfs = load;
    fcfs.policy = CSRNA_FCFS;
    lab_judge_range(lab_add_row(run, "CSR-A9", "us",
                                "more with first come first served, %u connections", twice),
                    2, LAB_UNBOUNDED,
                    csrna_latency_of(run, fcfs, twice) - writes.us[CSRNA_HIDING][0]);
    lab_judge_absolute(lab_add_row(run, "CSR-A10/all", "points", "policies out of order, reads"), 0,
                       disorder(&reads, beyond, POLICIES), 0);
    lab_judge_absolute(
        lab_add_row(run, "CSR-A10/hiding", "points", "hiding not below non-blocking, reads"), 0,
        disorder(&reads, load.cache_entries, 2), 0);
}

static const struct lab_claim claims[] = {
    {"CSR-A5", LAB_PRINTED, LAB_FITTED, NULL, "abstract, 5.2", "software=0",
     "the software takes no time", NULL},
    {"CSR-A6", LAB_DERIVED, LAB_MECHANISM, NULL, "5.2: one PCIe round trip", "placement=board",
     "contexts come from the board, in 100 ns", NULL},
    {"CSR-A7", LAB_DERIVED, LAB_MECHANISM, NULL, "5.2: the original latency", "prefetch=off",
     "the context is asked for when the work request has come", NULL},
    {"CSR-A8", LAB_DERIVED, LAB_MECHANISM, NULL, "5.2, 5.3: two contexts a message", "cache=6000",
     "no receiver's context is missing", NULL},
    {"CSR-A8.slowly", LAB_DERIVED, LAB_MECHANISM, NULL, "5.2: starts to rise slowly", "cache=6000",
     "no receiver's context is missing",
     "Connections take their turns, so the least recently used context is always the one that is "
     "needed next: as soon as one is too many, all are missing. With random victims the rise at "
     "the "
     "first point is a fifth of the whole (the curve in figure 7b)."},
    {"CSR-A8.order", LAB_DERIVED, LAB_MECHANISM, NULL, "5.2, fig. 7b", "prefetch=off",
     "the context is asked for when the work request has come", NULL},
    {"CSR-A9", LAB_PREDICTED, LAB_MECHANISM, NULL, "5.2: increases dramatically",
     "blocking_cache=32768", "no context is missing", NULL},
    {"CSR-A10", LAB_DERIVED, LAB_MECHANISM, NULL, "5.2, fig. 7c", "prefetch=off",
     "the context is asked for when the work request has come", NULL},
};

CSRNA_EXPERIMENT(
    csrna_latency, "csrna/latency", "latency over connections, by policy",
    CSRNA_LOAD_USES " " CSRNA_MACHINE_USES " " CSRNA_LATENCY_USES
                    " placement framing payload oocap blocking_cache",
    claims, false, latencies,
    "A write takes 250 ns for the doorbell, 500 each for its work request and its payload, 1000 on "
    "each way of the wire, 250 for the completion, and 390 of software, which are fitted. The "
    "document gives 3.89 us for 50,000 connections in its abstract, but says in 5.2 that latency "
    "rises beyond 3,000: the row takes few connections. A missing context costs a PCIe round trip "
    "and the time of its bytes, unless it is read beside the work request; a receiver's is never "
    "hidden. Blocked, ten cores wait for one another. That the software takes longer now and "
    "shorter then is our choice; it leaves the means as they are. Figure 1c (datagrams on "
    "ConnectX-5) is not modelled.");
