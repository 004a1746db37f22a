/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Random traffic on the switch alone: saturation over load, and a soak with everything that goes
 * wrong on links.
 */
#include <math.h>

#include "lab/forth_experiments.h"

#define SWITCH_PORTS 8u
#define PS_PER_US    1e6
#define QWORDS_LEAST 1u
#define QWORDS_MOST  62u

static void sum(const struct forth_yard *yard, uint64_t *qwords)
{
    *qwords = 0;
    for (uint32_t i = 0; i < yard->count; i++) {
        *qwords += yard->stations[i].warm_qwords;
    }
}

/* -- Saturation (FNX-47) ------------------------------------------------------------------------*/

/* Payload QWords a port and microsecond. */
static double throughput(struct lab_run *run, uint32_t ports, double load, double unbalance,
                         bool one_queue)
{
    struct forth_yard yard;
    uint64_t qwords;
    forth_yard_open(&yard, run, ports);
    for (uint32_t i = 0; i < ports; i++) {
        struct station_config config = forth_station_config(run, i, ports);
        config.load = load;
        config.least = QWORDS_LEAST;
        config.most = QWORDS_MOST;
        config.unbalance = unbalance;
        config.one_queue = one_queue;
        config.warm_ps = forth_warm_ps(run);
        forth_yard_station(&yard, &config);
    }
    sim_run_until(yard.sim, lab_ps(run, "duration"));
    sum(&yard, &qwords);
    forth_yard_check(&yard);
    forth_yard_close(&yard);
    return (double)qwords / ports /
           ((double)(lab_ps(run, "duration") - forth_warm_ps(run)) / PS_PER_US);
}

/* Load 1 is the rate of a pair of ports alone. It is a little less than that of a link that carries
 * packets only, because the credits of each packet travel, too. */
static double share_of_link(struct lab_run *run, double alone)
{
    const double cycle_us = (double)sim_clock_at(forth_net_clock(run, 0), 1) / 1e6;
    const uint32_t mean = (QWORDS_LEAST + QWORDS_MOST) / 2;
    return alone * forth_frame_words(mean) * cycle_us / ((QWORDS_LEAST + QWORDS_MOST) / 2.0);
}

static void add_curve(struct lab_run *run, const char *name, double alone, double unbalance,
                      bool one_queue)
{
    struct lab_series *series = lab_add_series(run, name, "offered load", "carried load", false);
    const double share = share_of_link(run, alone);
    for (uint32_t tenths = 1; tenths <= 10; tenths++) {
        const double load = tenths / 10.0;
        const double offered = tenths == 10 ? 1 : load * share;
        lab_add_point(series, load,
                      throughput(run, SWITCH_PORTS, offered, unbalance, one_queue) / alone, load);
        lab_progress(run, load);
    }
}

static double last(struct lab_run *run, uint32_t series)
{
    return run->series[series].points[run->series[series].count - 1].y;
}

static void saturation(struct lab_run *run)
{
    /* The rate of a pair of ports when no other port sends. */
    const double alone = throughput(run, 2, 1, 0, false);
    if (alone <= 0) {
        lab_fail(run, "nothing arrives in the time that is measured");
        return;
    }
    add_curve(run, "uniform, virtual output queues", alone, 0, false);
    add_curve(run, "uniform, one outgoing FIFO", alone, 0, true);
    add_curve(run, "half to one destination, virtual output queues", alone, 0.5, false);
    lab_judge_range(
        lab_add_row(run, "FNX-47", "", "saturation, uniform, 8 ports, virtual output queues"), 0.95,
        LAB_UNBOUNDED, last(run, 0));
    lab_judge_range(lab_add_row(run, "FNX-47", "", "saturation with one FIFO: its head blocks"),
                    0.5, last(run, 0), last(run, 1));
}

/* -- Soak (FNX-67) ------------------------------------------------------------------------------*/

static bool all_done(const struct forth_yard *yard)
{
    for (uint32_t i = 0; i < yard->count; i++) {
        if (!station_done(&yard->stations[i])) {
            return false;
        }
    }
    return sim_pool_taken(&yard->fabric.packets) == 0;
}

struct totals {
    double made, good, flagged, discarded, wrong, again, flips, lost_credits, unrepaired, peak;
    double bad_bodies, bad_heads, bits; /* Ground truth from the links. */
};

static void add_link(struct totals *totals, const struct forth_link *link)
{
    totals->flips += (double)link->errors.flipped;
    totals->lost_credits += (double)link->lost_credits;
    totals->bad_bodies += (double)link->bad_bodies;
    totals->bad_heads += (double)(link->bad_headers + link->bad_sops);
    totals->bits += 32 * (5.0 * (double)link->packets + 2.0 * (double)link->qwords) +
                    64 * (double)link->credits;
}

static struct totals add_up(const struct forth_yard *yard)
{
    struct totals totals = {.made = 0};
    for (uint32_t i = 0; i < yard->count; i++) {
        const struct station *station = &yard->stations[i];
        const struct crossbar_port *port = &yard->crossbar.ports[i];
        totals.made += (double)station->made;
        totals.flagged += (double)station->flagged;
        totals.discarded += (double)(station->header_errors + port->discarded);
        totals.unrepaired += (double)port->unrepaired;
        add_link(&totals, &yard->up[i]);
        add_link(&totals, &yard->down[i]);
        for (uint32_t k = 0; k < yard->count; k++) {
            totals.good += (double)station->sinks[k].good;
            totals.wrong += (double)station->sinks[k].wrong_bytes;
            totals.again += (double)station->sinks[k].earlier;
            totals.peak = fmax(totals.peak, crossbar_point(&yard->crossbar, i, k)->peak);
        }
    }
    return totals;
}

static void heal(struct sim_errors *errors)
{
    errors->bit_error_rate = 0;
    errors->loss_millionths = 0;
}

/* Counts the windows that still lack words after links have stopped failing and every credit was
 * repeated. */
static double windows_lacking(struct forth_yard *yard, uint64_t refresh_ps)
{
    double lacking = 0;
    for (uint32_t i = 0; i < yard->count; i++) {
        heal(&yard->up[i].errors);
        heal(&yard->down[i].errors);
    }
    sim_run_until(yard->sim, yard->sim->now_ps + 4 * (yard->count + 1) * refresh_ps);
    for (uint32_t i = 0; i < yard->count; i++) {
        forth_link_collect(&yard->down[i]);
        for (uint32_t to = 0; to < yard->count; to++) {
            const struct forth_window *window = &yard->stations[i].flows[to].window;
            const uint32_t out = (uint32_t)(window->sent - window->forwarded) & FORTH_COUNTER_MASK;
            lacking += out >= 1u << FORTH_CREDIT_SHIFT;
        }
    }
    return lacking;
}

static void soak(struct lab_run *run)
{
    const uint32_t ports = (uint32_t)lab_value(run, "ports");
    const uint64_t each = (uint64_t)lab_value(run, "packets") / ports;
    struct forth_yard yard;
    forth_yard_open(&yard, run, ports);
    for (uint32_t i = 0; i < ports; i++) {
        struct station_config config = forth_station_config(run, i, ports);
        config.packets = each;
        forth_yard_station(&yard, &config);
    }
    /* A packet takes less than 2 us; after twenty times that the world stands still. */
    const uint64_t step_ps = each * 2000000 / 100 + 1000000;
    uint32_t steps = 0;
    while (!all_done(&yard) && steps++ < 2000) {
        sim_run_until(yard.sim, yard.sim->now_ps + step_ps);
        uint64_t made = 0;
        for (uint32_t i = 0; i < ports; i++) {
            made += yard.stations[i].made;
        }
        lab_progress(run, (double)made / (double)(each * ports));
    }
    const struct totals totals = add_up(&yard);
    const double lacking = windows_lacking(&yard, lab_ps(run, "refresh"));
    lab_judge_absolute(lab_add_row(run, "FNX-67", "packets", "sent"), (double)(each * ports),
                       totals.made, 0);
    lab_judge_absolute(lab_add_row(run, "FNX-67", "packets", "neither delivered nor accounted for"),
                       0, totals.made - totals.good - totals.flagged - totals.discarded, 0);
    lab_judge_absolute(lab_add_row(run, "FNX-67", "packets", "delivered wrong and not flagged"), 0,
                       totals.wrong, 0);
    lab_judge_absolute(lab_add_row(run, "FNX-42", "packets", "out of order, or twice"), 0,
                       totals.again, 0);
    /* A packet may be hit on both of its links, or be hit and then discarded. */
    lab_judge_range(lab_add_row(run, "FNX-21", "packets", "delivered and flagged (body CRC)"),
                    fmax(0, (totals.bad_bodies - totals.discarded) / 2), totals.bad_bodies,
                    totals.flagged);
    lab_judge_absolute(lab_add_row(run, "FNX-20", "packets", "discarded (header CRC, no start)"),
                       totals.bad_heads, totals.discarded, 0);
    /* A header with two flipped bits does not tell whose words it carried. */
    lab_judge_range(lab_add_row(run, "FNX-33", "windows", "not healed of %.0f lost credits",
                                totals.lost_credits),
                    0, totals.unrepaired, lacking);
    lab_judge_range(lab_add_row(run, "FNX-32", "QWords", "most ever in a crosspoint"), 0,
                    lab_value(run, "crosspoint"), totals.peak);
    const double flips = totals.bits * lab_value(run, "bit_errors");
    lab_judge_absolute(lab_add_row(run, "FNX-67", "bits", "flipped on links, of %.3g", totals.bits),
                       flips, totals.flips, 5 * sqrt(flips) + flips / 100);
    forth_yard_check(&yard);
    forth_yard_close(&yard);
}

FORTH_EXPERIMENT(forth_saturation, "forth/saturation",
                 "random traffic through an 8x8 crossbar, over load", saturation,
                 "Not measured by the document, which announces it. Small buffers at the "
                 "crosspoints carry what virtual output queues offer; one FIFO for all does not.");
FORTH_EXPERIMENT(forth_soak, "forth/soak", "random packets with bit errors, lost credits and drift",
                 soak,
                 "The document reports billions of packets without an error. With errors "
                 "injected (bit_errors=1e-6, lost_credits=0.01, drift=100) only flagged "
                 "packets are wrong, and what is lost is accounted for.");
