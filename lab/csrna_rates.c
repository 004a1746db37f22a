/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Message rate over connections (figures 1b and 7a), and what one set of parameters gives.
 */
#include <math.h>

#include "lab/csrna_experiments.h"
#include "nic/csrna/on_chip.h"

#define MILLION 1e6
/* A run slower than this stands still. */
#define LEAST_RATE 10.0
/* The connections that other NICs have room for (table 1). */
#define ERNIC_CONNECTIONS 127u
#define SRNIC_CONNECTIONS 10000u

uint32_t csrna_sweep(uint32_t clients, uint32_t cores, uint32_t *points)
{
    uint32_t count = 0;
    for (uint32_t each = 1; each <= CSRNA_PER_CORE && count < CSRNA_POINTS_MAX; each *= 2) {
        points[count++] = clients * cores * each;
    }
    return count;
}

struct curve {
    const char *name;
    enum csrna_policy policy;
    bool reads;
    uint32_t clients; /* 0: as many as the run's parameters say. */
    bool hash_victims;
};

/* Rates over connections as a series; returns the one at the last point, and the first in *peak. */
static double add_curve(struct lab_run *run, const struct curve *curve, double *peak)
{
    struct lab_series *series =
        lab_add_series(run, curve->name, "connections", "million messages a second", true);
    struct csrna_load load = csrna_load_of(run);
    uint32_t points[CSRNA_POINTS_MAX];
    load.policy = curve->policy;
    load.reads = curve->reads;
    load.hash_victims |= curve->hash_victims;
    load.clients = curve->clients != 0 ? curve->clients : load.clients;
    const uint32_t count = csrna_sweep(load.clients, (uint32_t)lab_value(run, "cores"), points);
    double rate = 0;
    for (uint32_t i = 0; i < count; i++) {
        load.qps = points[i];
        rate = csrna_run(run, &load).rate / MILLION;
        lab_add_point(series, points[i], rate, LAB_NOTHING);
        *peak = i == 0 ? rate : fmax(*peak, rate);
        lab_progress(run, (double)(i + 1) / count);
    }
    return rate;
}

/* Other NICs keep the connections that fit their memory, and refuse the rest (table 1: an input,
 * not a result). */
static void add_fixed(struct lab_run *run, const char *name, uint32_t capacity, double peak)
{
    struct lab_series *series =
        lab_add_series(run, name, "connections", "million messages a second", true);
    uint32_t points[CSRNA_POINTS_MAX];
    const uint32_t count =
        csrna_sweep((uint32_t)lab_value(run, "clients"), (uint32_t)lab_value(run, "cores"), points);
    for (uint32_t i = 0; i < count; i++) {
        lab_add_point(series, points[i], points[i] <= capacity ? peak : 0, LAB_NOTHING);
    }
}

/* The rate of the first curve, at its first point with more connections than `capacity`; 0: there
 * is no such point. */
static double rate_beyond(const struct lab_run *run, uint32_t capacity)
{
    const struct lab_series *series = &run->series[0];
    for (uint32_t i = 0; i < series->count; i++) {
        if (series->points[i].x > capacity) {
            return series->points[i].y;
        }
    }
    return 0;
}

static void rates(struct lab_run *run)
{
    static const struct curve curves[] = {
        {"csRNA, writes", CSRNA_HIDING, false, 0, false},
        {"csRNA, reads", CSRNA_HIDING, true, 0, false},
        {"first come first served, writes", CSRNA_FCFS, false, 0, false},
        {"csRNA, writes, 3 clients", CSRNA_HIDING, false, 3, false},
        {"csRNA, writes, victims as in the public model", CSRNA_HIDING, false, 0, true},
    };
    double peaks[COUNT_OF(curves)], last[COUNT_OF(curves)];
    for (uint32_t i = 0; i < COUNT_OF(curves); i++) {
        last[i] = add_curve(run, &curves[i], &peaks[i]);
    }
    add_fixed(run, "eRNIC, 127 connections (normalized, input)", ERNIC_CONNECTIONS, peaks[0]);
    add_fixed(run, "SRNIC, 10,000 connections (normalized, input)", SRNIC_CONNECTIONS, peaks[0]);
    lab_judge_relative(lab_add_row(run, "A1", "M/s", "peak message rate, writes"), 66.4, peaks[0],
                       0.02);
    lab_judge_range(lab_add_row(run, "A2", "", "of the peak, writes, most connections"), 0.97,
                    LAB_UNBOUNDED, last[0] / peaks[0]);
    lab_judge_range(lab_add_row(run, "A3", "", "of the peak, reads, most connections"), 0.97,
                    LAB_UNBOUNDED, last[1] / peaks[1]);
    struct csrna_load blocking = csrna_load_of(run);
    blocking.policy = CSRNA_FCFS;
    blocking.qps = 2 * blocking.cache_entries;
    lab_judge_range(lab_add_row(run, "A4", "",
                                "of the peak, first come first served, %u connections",
                                blocking.qps),
                    0, 0.5, csrna_run(run, &blocking).rate / MILLION / peaks[2]);
    lab_judge_range(lab_add_row(run, "A2", "", "of the peak, 3 clients, most connections"), 0.97,
                    LAB_UNBOUNDED, last[3] / peaks[3]);
    lab_judge_range(
        lab_add_row(run, "A15", "", "of the peak, where SRNIC takes no more connections"), 0.97,
        LAB_UNBOUNDED, rate_beyond(run, SRNIC_CONNECTIONS) / peaks[0]);
}

/* -- Memory of the chip -------------------------------------------------------------------------*/

static void on_chip(struct lab_run *run)
{
    const uint32_t oocap = (uint32_t)lab_value(run, "oocap");
    const uint32_t cache = (uint32_t)lab_value(run, "cache");
    const struct on_chip_memory memory = on_chip_memory(oocap, cache, SQ_TABLE_MAX);
    lab_judge_absolute(lab_add_row(run, "A14", "B", "out-of-order answering, oocap %u", oocap),
                       40.0 * oocap, (double)memory.order_bytes, 0);
    lab_judge_absolute(lab_add_row(run, "A14", "B", "%u connections' send queues", SQ_TABLE_MAX),
                       10.0 * SQ_TABLE_MAX, (double)memory.sq_table_bytes, 0);
    lab_judge_relative(lab_add_row(run, "A14", "MB", "all, 131,072 connections, 300 contexts"), 1.4,
                       (double)memory.total_bytes / MILLION, 0.02);
}

/* -- One point ----------------------------------------------------------------------------------*/

static void one(struct lab_run *run)
{
    const struct csrna_load load = csrna_load_of(run);
    const struct csrna_result result = csrna_run(run, &load);
    const struct qpc_counters *seen = &result.server;
    /* The share is that of a finite run, and so differs a little from that of a steady state. */
    lab_judge_range(lab_add_row(run, "A17", "M/s", "%u connections, policy %u; least and bound",
                                load.qps, (uint32_t)load.policy),
                    LEAST_RATE / MILLION, 1.01 * result.most / MILLION, result.rate / MILLION);
    lab_judge_absolute(lab_add_row(run, "A17", "messages", "with a wrong byte"), 0,
                       (double)result.wrong, 0);
    lab_judge_absolute(lab_add_row(run, "A17", "packets", "out of order or repeated, none lost"), 0,
                       (double)result.disorder, 0);
    lab_judge_absolute(lab_add_row(run, "A17", "contexts", "cached, and not the engine's state"), 0,
                       (double)result.stale, 0);
    lab_judge_absolute(lab_add_row(run, "CSR-50", "", "contexts read: misses, prefetches, again"),
                       (double)(seen->misses + seen->prefetches - seen->prefetch_hits -
                                seen->prefetch_pendings + seen->conversions),
                       (double)seen->fetches, 0);
    lab_judge_range(lab_add_row(run, "A17", "", "PCIe of the server in use, share of the time"), 0,
                    1, result.pcie);
}

CSRNA_EXPERIMENT(csrna_rates, "csrna/rates", "message rate over connections, by policy", rates,
                 "The rate stays because a missing context holds up nobody else: what the "
                 "slowest unit does is the bound, with ten connections or fifty thousand. Blocked "
                 "by each miss, a visit of 5.5 messages costs a PCIe round trip. Peak and "
                 "processing time are one fitted number.");
CSRNA_EXPERIMENT(csrna_on_chip, "csrna/on-chip", "memory of the chip that connections take",
                 on_chip,
                 "40 bytes for each of the out-of-order capacity, 10 for each connection's send "
                 "queue, 256 for each cached context. The text's \"about 0.5 KB\" is 640 bytes.");
CSRNA_EXPERIMENT(csrna_one, "csrna/one", "one point, as the parameters say", one,
                 "For exploring: every byte is checked, also with loss (loss=0.001), and a trace "
                 "shows who waits for whose context.");
