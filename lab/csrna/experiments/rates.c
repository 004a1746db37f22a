/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Message rate over connections (figures 1b and 7a).
 */
#include <math.h>

#include "lab/csrna/experiments.h"

/* The connections that other NICs have room for (table 1). */
#define ERNIC_CONNECTIONS 127.0
#define SRNIC_CONNECTIONS 10000.0
#define PEAK              66.4
#define FEW_CLIENTS       3u

const char *const csrna_policies[] = {"latency hiding", "non-blocking", "first come first served"};

uint32_t csrna_sweep(uint32_t clients, uint32_t cores, uint32_t *points)
{
    uint32_t count = 0;
    for (uint32_t each = 1; each <= CSRNA_PER_CORE && count < CSRNA_POINTS_MAX; each *= 2) {
        points[count++] = clients * cores * each;
    }
    return count;
}

double csrna_rate_of(struct lab_run *run, struct csrna_load load, uint32_t qps)
{
    load.qps = qps;
    load.share = load.bytes <= 256 ? CSRNA_PART : CSRNA_PART / 8;
    return csrna_run(run, &load).rate / CSRNA_MILLION;
}

static struct csrna_load load_of(struct lab_run *run)
{
    struct csrna_load load = csrna_load_of(run);
    load.policy = (enum csrna_policy)lab_word(run, "policy");
    load.placement = (enum csrna_placement)lab_word(run, "placement");
    load.framing = (enum csrna_framing)lab_word(run, "framing");
    load.bytes = (uint32_t)lab_value(run, "payload");
    load.oocap = (uint32_t)lab_value(run, "oocap");
    return load;
}

struct rates {
    uint32_t count, points[CSRNA_POINTS_MAX];
    double found[CSRNA_POINTS_MAX];
    double peak, last;
};

/* Rates over connections: every `step`th point of the document's sweep, back from the last. */
static struct rates rates_of(struct lab_run *run, const struct csrna_load *load, uint32_t step)
{
    struct rates rates = {0};
    uint32_t points[CSRNA_POINTS_MAX];
    const uint32_t all = csrna_sweep(load->clients, (uint32_t)lab_value(run, "cores"), points);
    for (uint32_t i = (all - 1) % step; i < all; i += step) {
        const double rate = csrna_rate_of(run, *load, points[i]);
        rates.points[rates.count] = points[i];
        rates.found[rates.count++] = rate;
        rates.peak = fmax(rates.peak, rate);
        rates.last = rate;
    }
    return rates;
}

/* A curve, in units of M/s. */
static void add_curve(struct lab_run *run, const char *name, const struct rates *rates, double unit)
{
    struct lab_series *series = lab_add_curve(run, "%s", name);
    for (uint32_t i = 0; i < rates->count; i++) {
        lab_add_point(series, rates->points[i], rates->found[i] / unit, LAB_NOTHING);
    }
}

/* Figure 7a. */
static void add_scalability(struct lab_run *run)
{
    struct lab_figure *figure = lab_add_figure(run, "7a", "Figure 7a: message rate, normalized",
                                               "connections", "share of the NIC's own peak", true);
    lab_add_mark(figure, ERNIC_CONNECTIONS, 1, "eRNIC takes no more");
    lab_add_mark(figure, SRNIC_CONNECTIONS, 1, "SRNIC takes no more");
    lab_add_mark(figure, 51200, 1, "csRNA: 66.4 M/s");
    struct csrna_load load = load_of(run);
    const struct rates writes = rates_of(run, &load, 1);
    add_curve(run, "csRNA, writes", &writes, writes.peak);
    load.reads = true;
    const struct rates reads = rates_of(run, &load, 1);
    add_curve(run, "csRNA, reads", &reads, reads.peak);
    lab_judge_relative(lab_add_row(run, "CSR-A1", "M/s", "peak message rate, writes"), PEAK,
                       writes.peak, 0.02);
    lab_judge_relative(lab_add_row(run, "CSR-A2", "M/s", "writes, most connections"), PEAK,
                       writes.last, 0.03);
    lab_judge_range(lab_add_row(run, "CSR-A3", "", "of their peak, reads, most connections"), 0.97,
                    LAB_UNBOUNDED, reads.last / reads.peak);
}

/* Figure 1b. */
static void add_blocking(struct lab_run *run)
{
    static const uint32_t points[] = {100, 200, 300, 320, 400, 600, 800, 1600, 6400, 51200};
    struct lab_figure *figure =
        lab_add_figure(run, "1b", "Figure 1b: message rate, first come first served", "connections",
                       "million messages a second", true);
    struct csrna_load load = load_of(run);
    load.policy = CSRNA_FCFS;
    struct lab_series *series = lab_add_curve(run, "first come first served, writes");
    double peak = 0, beyond = 0;
    for (uint32_t i = 0; i < COUNT_OF(points); i++) {
        const double rate = csrna_rate_of(run, load, points[i]);
        lab_add_point(series, points[i], rate, LAB_NOTHING);
        peak = fmax(peak, rate);
        beyond = points[i] == 600 ? rate : beyond;
    }
    lab_add_mark(figure, 300, peak, "the cache's 300 contexts");
    lab_judge_range(
        lab_add_row(run, "CSR-A4", "", "of the peak, first come first served, 600 connections"), 0,
        0.5, beyond / peak);
    /* A visit of (batch + 1) / 2 messages for a round trip of 500 ns and 288 B at 16 B/ns. */
    lab_judge_relative(lab_add_row(run, "CSR-A4.bound", "M/s", "a visit for each round trip"),
                       5.5 / 0.518, beyond, 0.12);
}

static struct rates add_choice(struct lab_run *run, const char *name, const struct csrna_load *load)
{
    const struct rates rates = rates_of(run, load, 3);
    add_curve(run, name, &rates, 1);
    return rates;
}

/* The parts of the model on which the rate rests, and the choices that the document leaves open. */
static void add_choices(struct lab_run *run)
{
    struct lab_figure *figure = lab_add_figure(run, "peak", "csRNA: what the peak rests on",
                                               "connections", "million messages a second", true);
    lab_add_mark(figure, LAB_NOTHING, PEAK, "66.4 M/s");
    struct csrna_load load = load_of(run);
    load.victims = QPC_VICTIM_FIFO;
    const struct rates fifo = add_choice(run, "victims first in, first out", &load);
    load.victims = QPC_VICTIM_RANDOM;
    const struct rates chance = add_choice(run, "victims by chance", &load);
    load = load_of(run);
    load.clients = FEW_CLIENTS;
    const struct rates clients = add_choice(run, "3 clients", &load);
    load = load_of(run);
    load.window_of = CSRNA_WINDOW_OF_NIC;
    const struct rates window = add_choice(run, "one window for the NIC", &load);
    lab_judge_range(
        lab_add_row(run, "CSR-A2.choices/fifo", "", "of the peak, most connections, FIFO victims"),
        0.97, LAB_UNBOUNDED, fifo.last / fifo.peak);
    lab_judge_range(lab_add_row(run, "CSR-A2.choices/random", "",
                                "of the peak, most connections, random victims"),
                    0.97, LAB_UNBOUNDED, chance.last / chance.peak);
    lab_judge_range(
        lab_add_row(run, "CSR-A2.choices/clients", "", "of the peak, most connections, 3 clients"),
        0.97, LAB_UNBOUNDED, clients.last / clients.peak);
    lab_judge_relative(lab_add_row(run, "CSR-A1.window", "M/s", "peak, one window for the NIC"),
                       PEAK, window.peak, 0.02);
}

static void rates(struct lab_run *run)
{
    add_scalability(run);
    lab_progress(run, 0.4);
    add_blocking(run);
    lab_progress(run, 0.5);
    add_choices(run);
}

static const struct lab_claim claims[] = {
    {"CSR-A1", LAB_PRINTED, LAB_FITTED, NULL, "abstract, 5.2", "processing=1",
     "the slowest unit takes a cycle, as in the public model", NULL},
    {"CSR-A2", LAB_PRINTED, LAB_MECHANISM, NULL, "abstract, 5.2", "policy=fcfs",
     "a missing context blocks all others", NULL},
    {"CSR-A3", LAB_PRINTED, LAB_MECHANISM, NULL, "5.2, fig. 7a", "policy=fcfs",
     "a missing context blocks all others", NULL},
    {"CSR-A4", LAB_DERIVED, LAB_MECHANISM, NULL, "3: drops dramatically", "cache=3000",
     "no context is missing", NULL},
    {"CSR-A4.bound", LAB_DERIVED, LAB_MECHANISM, NULL, "5.5 messages for 500 ns and 288 B",
     "placement=board", "contexts come from the board, in 100 ns", NULL},
    {"CSR-A2.choices", LAB_PREDICTED, LAB_MECHANISM, NULL, "none", "policy=fcfs",
     "a missing context blocks all others", NULL},
    {"CSR-A1.window", LAB_PRINTED, LAB_MECHANISM, NULL, "abstract, 5.2", "processing=1",
     "the slowest unit takes a cycle, as in the public model",
     "The public model has one window of 100 packets for the whole NIC: with links of 1 us no more "
     "than 100 packets in 2 us go through. 66.4 M/s would take a window of 134."},
};

CSRNA_EXPERIMENT(csrna_rates, "csrna/rates", "message rate over connections, by policy",
                 CSRNA_LOAD_USES " " CSRNA_MACHINE_USES " " CSRNA_RATE_USES
                                 " policy placement framing payload oocap",
                 claims, false, rates,
                 "The rate stays because a missing context holds up nobody else. The peak itself "
                 "rests on one fitted number, the 15 cycles of the slowest unit. Without them "
                 "(processing=1) PCIe's reads are the bound: 120 M/s with few connections, 76 M/s "
                 "with many, when contexts come the same way. Blocked by each miss, a visit of 5.5 "
                 "messages takes a PCIe round trip. Which context has to go makes no difference "
                 "here. ConnectX-5's curves, and what eRNIC and SRNIC reach, are not in the text "
                 "at hand, only where the latter two end; figure 1a (ConnectX) is not modelled.");
