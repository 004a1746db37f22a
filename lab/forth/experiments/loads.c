/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Random traffic on the switch alone: saturation over load, and a soak with everything that goes
 * wrong on links.
 */
#include <math.h>

#include "lab/forth/experiments.h"

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

/* Returns the load that is carried when everybody always has packets. */
static double add_load_curve(struct lab_run *run, const char *name, double alone, double unbalance,
                             bool one_queue)
{
    struct lab_series *series = lab_add_curve(run, "%s", name);
    const double share = share_of_link(run, alone);
    double carried = 0;
    for (uint32_t tenths = 1; tenths <= 10; tenths++) {
        const double load = tenths / 10.0;
        const double offered = tenths == 10 ? 1 : load * share;
        carried = throughput(run, SWITCH_PORTS, offered, unbalance, one_queue) / alone;
        lab_add_point(series, load, carried, load);
        lab_progress(run, load);
    }
    return carried;
}

static void saturation(struct lab_run *run)
{
    /* The rate of a pair of ports when no other port sends. */
    const double alone = throughput(run, 2, 1, 0, false);
    if (alone <= 0) {
        lab_fail(run, "nothing arrives in the time that is measured");
        return;
    }
    struct lab_figure *figure =
        lab_add_figure(run, "saturation", "Random traffic through an 8x8 buffered crossbar",
                       "offered load", "carried load", false);
    /* Packets of one size, 8 ports. */
    lab_add_level(figure, 0.6184, "one FIFO, no buffers: Karol");
    const bool one_queue = lab_word(run, "queues") != 0;
    const double voq = add_load_curve(run, "uniform, virtual output queues", alone, 0, one_queue);
    const double fifo = add_load_curve(run, "uniform, one outgoing FIFO", alone, 0, true);
    (void)add_load_curve(run, "half to one destination, virtual output queues", alone, 0.5, false);
    lab_judge_relative(
        lab_add_row(run, "FNX-47.voq", "", "saturation, uniform, 8 ports, virtual output queues"),
        0.973, voq, 0.005);
    lab_judge_relative(lab_add_row(run, "FNX-47.fifo", "", "saturation with one outgoing FIFO"),
                       0.92, fifo, 0.03);
}

static const struct lab_claim saturation_claims[] = {
    {.id = "FNX-47.voq",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FNX-A4.sum",
     .source = "4.2: the next step; OC",
     .broken_by = "queues=one",
     .because = "the packet at the head of the queue holds up those for other outputs"},
    {.id = "FNX-47.fifo",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "4.2: the next step; OC",
     .broken_by = "crosspoint=128",
     .because = "a crosspoint holds two packets of the largest size, not four"},
};

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
    double made, good, flagged, discarded, wrong, lost_credits, unrepaired, peak;
    double bad_bodies, bad_heads; /* Packets, as the links know. */
};

static void add_link(struct totals *totals, const struct forth_link *link)
{
    totals->lost_credits += (double)link->lost_credits;
    /* A packet whose body was wrong already has been counted by the link before. */
    totals->bad_bodies += (double)link->bad_bodies - (double)link->bad_before;
    totals->bad_heads += (double)(link->bad_headers + link->bad_sops);
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

static void add_rows(struct lab_run *run, const struct totals *totals, double lacking)
{
    lab_judge_absolute(lab_add_row(run, "FNX-67.unaccounted", "packets",
                                   "of %.0f neither delivered, flagged nor discarded",
                                   totals->made),
                       0, totals->made - totals->good - totals->flagged - totals->discarded, 0);
    lab_judge_absolute(
        lab_add_row(run, "FNX-67.wrong", "packets", "delivered wrong and not flagged"), 0,
        totals->wrong, 0);
    lab_judge_absolute(lab_add_row(run, "FNX-21", "packets", "delivered and flagged (body CRC)"),
                       totals->bad_bodies, totals->flagged, 0);
    lab_judge_absolute(lab_add_row(run, "FNX-20", "packets", "discarded (header CRC, no start)"),
                       totals->bad_heads, totals->discarded, 0);
    /* A header with two flipped bits does not tell whose words it carried. */
    lab_judge_range(lab_add_row(run, "FNX-33", "windows", "not healed of %.0f lost credits",
                                totals->lost_credits),
                    0, totals->unrepaired, lacking);
    lab_judge_range(lab_add_row(run, "FNX-32", "QWords", "most ever in a crosspoint"), 0,
                    lab_value(run, "crosspoint"), totals->peak);
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
    add_rows(run, &totals, windows_lacking(&yard, lab_ps(run, "refresh")));
    forth_yard_check(&yard);
    forth_yard_close(&yard);
}

static const struct lab_claim soak_claims[] = {
    {.id = "FNX-67.unaccounted",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "3.1.6.1: what is wrong is discarded, or flagged",
     .broken_by = "crc=ignored",
     .because = "receivers take wrong packets for good ones"},
    {.id = "FNX-67.wrong",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "3.1.6: the body's CRC",
     .broken_by = "crc=ignored",
     .because = "receivers take wrong packets for good ones"},
    {.id = "FNX-21",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "3.1.6: the body's CRC",
     .broken_by = "crc=ignored",
     .because = "receivers take wrong packets for good ones"},
    {.id = "FNX-20",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "3.1.6: the header's CRC",
     .broken_by = "crc=ignored",
     .because = "receivers take wrong packets for good ones"},
    {.id = "FNX-33",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "3.2.4: unmodified values compensate for losses",
     .broken_by = "repeat=off",
     .because = "a credit that was lost is not sent again"},
    {.id = "FNX-32",
     .reference = LAB_DERIVED,
     .ground = LAB_MECHANISM,
     .source = "3.2.2: 2 Kbyte",
     .broken_by = "flow_control=off",
     .because = "senders do not wait for credit"},
};

/* -- Their names --------------------------------------------------------------------------------*/

const struct lab_experiment forth_saturation = {
    FORTH_COMMON,
    .name = "forth/saturation",
    .what = "random traffic through an 8x8 crossbar, over load",
    .uses = FORTH_USES_YARD FORTH_USES_ERRORS FORTH_USES_TIME "queues",
    .quick = true,
    FORTH_CLAIMS(saturation_claims),
    .run = saturation,
    .explains =
        "The document announces this measurement and does not have it: the rows are predictions. "
        "Load 1 is what a pair of ports carries when no other port sends. Stations with a queue "
        "for each output, which the document's NIC has not yet, come close to it; most of what is "
        "missing are the 3 cycles between packets of different crosspoints. With one FIFO the "
        "packet at its head holds others up. Buffers at the crosspoints make that cost far less "
        "than in a switch without them, and the larger they are the less.",
};

const struct lab_experiment forth_soak = {
    FORTH_COMMON,
    .name = "forth/soak",
    .what = "random packets with bit errors, lost credits and drift",
    .uses = FORTH_USES_YARD "bit_errors=1e-6 lost_credits=0.1 drift=100 ports packets",
    FORTH_CLAIMS(soak_claims),
    .quick = true,
    .run = soak,
    .explains =
        "The document reports billions of packets without an error, and does not say how many "
        "errors its links made. Ours flip one bit in a million, lose one credit in ten, and have "
        "clocks that differ by 100 ppm: packets that are wrong are flagged or discarded, and what "
        "credits were lost is repaired.",
};
