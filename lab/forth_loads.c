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

/* Load 1 is what a pair of ports carries alone. Of a link that carries packets only it is a little
 * less, because each packet's credits travel too. */
static double share_of_link(const struct lab_run *run, double alone)
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

static double last(const struct lab_run *run, uint32_t series)
{
    return run->series[series].points[run->series[series].count - 1].y;
}

static void saturation(struct lab_run *run)
{
    /* What a pair of ports carries with nobody in its way. */
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
};

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
        totals.flips += (double)(yard->up[i].errors.flipped + yard->down[i].errors.flipped);
        totals.lost_credits += (double)(yard->up[i].lost_credits + yard->down[i].lost_credits);
        for (uint32_t k = 0; k < yard->count; k++) {
            totals.good += (double)station->sinks[k].good;
            totals.wrong += (double)station->sinks[k].wrong_bytes;
            totals.again += (double)station->sinks[k].earlier;
            totals.peak = fmax(totals.peak, crossbar_point(&yard->crossbar, i, k)->peak);
        }
    }
    return totals;
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
    /* A packet takes less than 2 us; twenty times that is standing still. */
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
    lab_judge_range(lab_add_row(run, "FNX-67", "packets", "sent"), 1, LAB_UNBOUNDED, totals.made);
    lab_judge_absolute(lab_add_row(run, "FNX-67", "packets", "neither delivered nor accounted for"),
                       0, totals.made - totals.good - totals.flagged - totals.discarded, 0);
    lab_judge_absolute(lab_add_row(run, "FNX-67", "packets", "delivered wrong and not flagged"), 0,
                       totals.wrong, 0);
    lab_judge_absolute(lab_add_row(run, "FNX-42", "packets", "out of order, or twice"), 0,
                       totals.again, 0);
    lab_judge_range(lab_add_row(run, "FNX-21", "packets", "delivered and flagged (body CRC)"), 0,
                    LAB_UNBOUNDED, totals.flagged);
    lab_judge_range(lab_add_row(run, "FNX-20", "packets", "discarded (header CRC, no start)"), 0,
                    LAB_UNBOUNDED, totals.discarded);
    lab_judge_range(lab_add_row(run, "FNX-33", "credits", "lost on links, and healed"), 0,
                    LAB_UNBOUNDED, totals.lost_credits);
    lab_judge_range(lab_add_row(run, "FNX-32", "QWords", "most ever in a crosspoint"), 0,
                    lab_value(run, "crosspoint"), totals.peak);
    lab_judge_range(lab_add_row(run, "FNX-67", "bits", "flipped on links"), 0, LAB_UNBOUNDED,
                    totals.flips);
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
                 "injected (--set bit_errors=1e-6 lost_credits=0.01 drift=100) only flagged "
                 "packets are wrong, and what is lost is accounted for.");
