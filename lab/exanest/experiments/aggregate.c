/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rate at which the four FPGAs of a QFDB send out of it together (row A13).
 */
#include "lab/exanest/experiments.h"

enum {
    SIDE = 4, /* A torus in which a QFDB has four neighbours. */
    MEGABYTE = 1048576,
};

/* FPGA `i` of the QFDB's neighbour `to`. */
static uint32_t neighbour(uint32_t to, uint32_t i)
{
    static const uint32_t qfdbs[EXANEST_FPGAS] = {1, SIDE - 1, SIDE, SIDE * (SIDE - 1)};
    return qfdbs[to] * EXANEST_FPGAS + i;
}

/* The first `senders` FPGAs send to `neighbours` neighbours; in Gb/s, all together. */
static double aggregate_of(struct lab_run *run, bool one_port, uint32_t senders,
                           uint32_t neighbours)
{
    struct exanest_machine_config config = exanest_config_of(run, SIDE, SIDE, 1);
    exanest_set_router(run, &config);
    config.fabric.one_router_port = one_port;
    struct exanest_program_config programs[EXANEST_FPGAS];
    const uint32_t blocks =
        (uint32_t)lab_value(run, "megabytes") * MEGABYTE / senders / EXANEST_BLOCK_BYTES_MAX;
    for (uint32_t i = 0; i < senders; i++) {
        programs[i] = exanest_program_default(i, neighbour(i % neighbours, i), true,
                                              blocks * EXANEST_BLOCK_BYTES_MAX);
    }
    return exanest_flows_of(run, &config, programs, senders).gbps;
}

/* One sender alone has `alone`, whatever there is to share; the others in steps. Returns what all
 * four send. */
static double add_curve(struct lab_run *run, const char *name, double alone, uint32_t step,
                        bool one_port, uint32_t neighbours)
{
    struct lab_series *series = lab_add_curve(run, "%s", name);
    double gbps = alone;
    lab_add_point(series, 1, alone, LAB_NOTHING);
    for (uint32_t senders = 1 + step; senders <= EXANEST_FPGAS; senders += step) {
        gbps = aggregate_of(run, one_port, senders, neighbours);
        lab_add_point(series, senders, gbps, LAB_NOTHING);
        lab_progress(run, (double)senders / EXANEST_FPGAS);
    }
    return gbps;
}

static void aggregate(struct lab_run *run)
{
    const bool one_port = lab_word(run, "router_ports") == 1;
    const bool fair_port = lab_word(run, "fair_ports") == 0;
    struct lab_figure *figure = lab_add_figure(run, "aggregate", "Out of a QFDB, all together",
                                               "FPGAs that send", "Gb/s", false);
    lab_add_mark(figure, LAB_NOTHING, 40, "40: four links, raw");
    lab_add_mark(figure, LAB_NOTHING, 10, "10: one link, raw");
    const uint32_t neighbours = (uint32_t)lab_value(run, "neighbours");
    const double alone = aggregate_of(run, one_port, 1, neighbours);
    const double all = add_curve(run, "each to another neighbour", alone, 1, one_port, neighbours);
    const double fair =
        add_curve(run, "likewise, by one port of the router", alone, 1, fair_port, EXANEST_FPGAS);
    const double one =
        add_curve(run, "all to one neighbour", alone, EXANEST_FPGAS - 1, one_port, 1);
    lab_judge_relative(lab_add_row(run, "EXA-A13", "Gb/s",
                                   "four FPGAs to four neighbours; %.2f if all to one", one),
                       31.9, all, 0.01);
    lab_judge_relative(lab_add_row(run, "EXA-W-one-port", "Gb/s",
                                   "four to four neighbours, by one port of the router"),
                       10.0 * 16 / 18, fair, 0.03);
}

static const struct lab_claim aggregate_claims[] = {
    {.id = "EXA-A13",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "EXA-A4.level",
     .source = "7.1: up to 40 Gb/s, of which a router's gap and headers leave 4 x 7.97",
     .broken_by = "router_ports=one | neighbours=1",
     .because = "all share a port of the router, or a link"},
    {.id = "EXA-W-one-port",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if the crossbar used one path to the router, as 7.1 proposes for fairness",
     .broken_by = "fair_ports=four",
     .because = "each FPGA has its own port of the router"},
};

const struct lab_experiment exanest_aggregate = {
    .name = "exanest/aggregate",
    .what = "what the FPGAs of a QFDB send out of it together",
    EXANEST_COMMON,
    .uses = EXANEST_USES EXANEST_ROUTER_USES "megabytes router_ports neighbours fair_ports",
    EXANEST_CLAIMS(aggregate_claims),
    .run = aggregate,
    .explains =
        "Each FPGA of a QFDB has its own port of the router, so four of them fill four links "
        "together, as the document says that they can. If all send to one neighbour they share "
        "its link. By one port, which the document proposes for a fair comparison with Ethernet, "
        "they get 9.0 Gb/s and not a link's 8: packets go to another link each, so none waits for "
        "the dead time behind the one before. The document measured none of this.",
};
