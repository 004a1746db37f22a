/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tori, fat trees and dragonflies under load, every node sending to any other: latency, and the
 * carried load. All of it is prediction: the document has average distances only.
 */
#include "lab/lant/load.h"

#include <stdio.h>

#include "lab/lant/experiments.h"
#include "lab/lant/fabric.h"

/* Printed (MAC_CYCLES), or fitted to what is printed; parameters do not change them. */
#define MAC_CYCLES    59.0
#define SWITCH_CYCLES 18.0
#define PACKET_CYCLES (68 + 4 + 68 / 24.0)

/* Packets hardly meet. */
#define IDLE_LOAD    0.001
#define IDLE_PACKETS 60e3
#define WALKS        (1u << 17) /* Pairs of nodes whose distance is measured. */

/* A load that is more than a dragonfly's links between groups carry, and that those in groups do
 * carry. */
#define OVERLOAD 0.3
/* A load that a torus of 65,559 nodes cannot carry, and a dragonfly of as many nodes can. */
#define HEAVY_LOAD 0.22

#define LOADS_MAX 8u

/* The loads of one network. */
struct plan {
    double loads[LOADS_MAX]; /* 0 behind the last. */
    double judged;           /* One of them, which the network carries. */
    double warm_us, stop_us;
    double judged_warm_us, judged_stop_us; /* Where it is judged. */
};

struct sweep {
    const struct lant_size *size;
    const struct plan *plans; /* By kind. */
    struct lant_outcome idle[LANT_KINDS], loaded[LANT_KINDS][LOADS_MAX];
};

/* -- Idle networks ------------------------------------------------------------------------------*/

/* Links, switches, and the packet's own length once. A torus' distance is its links between nodes;
 * elsewhere it is the switches, and there is one link more. */
static double idle_cycles(enum lant_network_kind kind, double distance)
{
    const double links = kind == LANT_TORUS ? distance : distance + 1;
    const double switches = kind == LANT_TORUS ? distance + 1 : distance;
    return links * MAC_CYCLES + switches * SWITCH_CYCLES + PACKET_CYCLES;
}

static struct lant_traffic traffic_of(struct lab_run *run, double load, double warm_us,
                                      double stop_us)
{
    return (struct lant_traffic){
        .load = load,
        .warm_us = warm_us,
        .stop_us = stop_us,
        .one_path = lab_word(run, "paths") != 0,
        .detours = lab_word(run, "ways") != 0,
    };
}

static void run_idle(struct lab_run *run, const char *claim, struct sweep *sweep,
                     enum lant_network_kind kind)
{
    const struct lant_network network = lant_network_of(sweep->size, kind);
    const double packet_us = PACKET_CYCLES * LANT_CYCLE_PS / 1e6;
    const struct lant_traffic traffic =
        traffic_of(run, IDLE_LOAD, 0, IDLE_PACKETS * packet_us / IDLE_LOAD / network.nodes);
    struct prng prng;
    char id[LAB_ID_BYTES];
    prng_init(&prng, run->seed);
    const struct lant_distances distances = lant_some_distances(&network, WALKS, &prng);
    sweep->idle[kind] = lant_load_network(run, sweep->size, kind, &traffic);
    snprintf(id, sizeof(id), "%s.idle/%u-%s", claim, sweep->size->nodes, lant_network_ids[kind]);
    lab_judge_relative(
        lab_add_row(run, id, "cycles",
                    "%s of %u nodes at load %g: %.2f %s by the switch's own routing",
                    lant_network_names[kind], network.nodes, IDLE_LOAD, distances.mean,
                    kind == LANT_TORUS ? "links between switches" : "switches crossed"),
        idle_cycles(kind, distances.mean), sweep->idle[kind].latency, 0.01);
}

/* -- Under load ---------------------------------------------------------------------------------*/

static void run_loads(struct lab_run *run, struct sweep *sweep, enum lant_network_kind kind)
{
    const struct plan *plan = &sweep->plans[kind];
    for (uint32_t i = 0; i < LOADS_MAX && plan->loads[i] > 0; i++) {
        const bool judged = plan->loads[i] == plan->judged;
        const struct lant_traffic traffic =
            traffic_of(run, plan->loads[i], judged ? plan->judged_warm_us : plan->warm_us,
                       judged ? plan->judged_stop_us : plan->stop_us);
        sweep->loaded[kind][i] = lant_load_network(run, sweep->size, kind, &traffic);
    }
}

static void run_sweep(struct lab_run *run, const char *claim, struct sweep *sweep)
{
    for (uint32_t kind = 0; kind < LANT_KINDS; kind++) {
        run_idle(run, claim, sweep, kind);
        run_loads(run, sweep, kind);
    }
}

static const struct lant_outcome *outcome_at(const struct sweep *sweep, enum lant_network_kind kind,
                                             double load)
{
    uint32_t i = 0;
    while (sweep->plans[kind].loads[i] != load) {
        CHECK(++i < LOADS_MAX);
    }
    return &sweep->loaded[kind][i];
}

static void judge_carried(struct lab_run *run, const char *claim, const struct sweep *sweep,
                          enum lant_network_kind kind)
{
    char id[LAB_ID_BYTES];
    const double load = sweep->plans[kind].judged;
    const struct lant_outcome *outcome = outcome_at(sweep, kind, load);
    snprintf(id, sizeof(id), "%s.%s/%u", claim, lant_network_ids[kind], sweep->size->nodes);
    lab_judge_absolute(lab_add_row(run, id, "",
                                   "%s at load %g: delivered of what was offered; %.0f cycles",
                                   lant_network_names[kind], load, outcome->latency),
                       1, outcome->share, 0.02);
}

/* Karol, Hluchyj, Morgan (1987): packets wait at an output for those of N inputs as in M/D/1, but
 * for the share 1/N that came by their own input. At a tree's switches N is half the radix, and
 * all links have the same load. */
static void judge_wait(struct lab_run *run, const char *claim, const struct sweep *sweep)
{
    char id[LAB_ID_BYTES];
    const double load = sweep->plans[LANT_FAT_TREE].judged, inputs = sweep->size->radix / 2.0;
    const double wait = load / (2 * (1 - load)) * PACKET_CYCLES;
    const struct lant_network network = lant_network_of(sweep->size, LANT_FAT_TREE);
    struct prng prng;
    prng_init(&prng, run->seed);
    const double switches = lant_some_distances(&network, WALKS, &prng).mean;
    snprintf(id, sizeof(id), "%s.wait/%u", claim, sweep->size->nodes);
    lab_judge_relative(lab_add_row(run, id, "cycles", "fat tree at load %g: mean latency", load),
                       idle_cycles(LANT_FAT_TREE, switches) +
                           wait * (1 + switches * (1 - 1 / inputs)),
                       outcome_at(sweep, LANT_FAT_TREE, load)->latency, 0.03);
}

/* Packets for the same group arrive, and as many for other groups as its links take. */
static void judge_overload(struct lab_run *run, const struct sweep *sweep)
{
    const double nodes = lant_network_of(sweep->size, LANT_DRAGONFLY).nodes;
    const double links = LANT_GROUP_ROUTERS * sweep->size->globals;
    lab_judge_relative(lab_add_row(run, "LNI-W-load.over", "",
                                   "dragonfly of %.0f nodes at load %g: load carried", nodes,
                                   OVERLOAD),
                       OVERLOAD * (LANT_GROUP_HOSTS - 1) / (nodes - 1) + links / LANT_GROUP_HOSTS,
                       outcome_at(sweep, LANT_DRAGONFLY, OVERLOAD)->carried, 0.03);
}

static void judge_order(struct lab_run *run, const struct sweep *sweep)
{
    const double torus = outcome_at(sweep, LANT_TORUS, HEAVY_LOAD)->share;
    const double dragonfly = outcome_at(sweep, LANT_DRAGONFLY, HEAVY_LOAD)->share;
    lab_judge_range(lab_add_row(run, "LNI-W-large.order", "",
                                "at load %g, %u nodes: the share that a dragonfly delivers, less a "
                                "torus'",
                                HEAVY_LOAD, sweep->size->nodes),
                    0.2, 1, dragonfly - torus);
}

/* -- Figures ------------------------------------------------------------------------------------*/

static void draw_curve(struct lab_run *run, const struct sweep *sweep, enum lant_network_kind kind,
                       bool latency)
{
    const struct plan *plan = &sweep->plans[kind];
    const struct lant_outcome *idle = &sweep->idle[kind];
    struct lab_series *series = lab_add_curve(run, "%s, %u nodes", lant_network_names[kind],
                                              lant_network_of(sweep->size, kind).nodes);
    if (latency) {
        lab_add_point(series, IDLE_LOAD, idle->latency, LAB_NOTHING);
    }
    for (uint32_t i = 0; i < LOADS_MAX && plan->loads[i] > 0; i++) {
        const struct lant_outcome *outcome = &sweep->loaded[kind][i];
        lab_add_point(series, plan->loads[i], latency ? outcome->latency : outcome->carried,
                      LAB_NOTHING);
    }
}

static void draw(struct lab_run *run, const struct sweep *sweeps, uint32_t count)
{
    struct lab_figure *figure = lab_add_figure(
        run, "latency", "512 bytes for any other node (where too much is offered: latency so far)",
        "load of a node's line", "mean latency, cycles", false);
    figure->log_y = true;
    for (uint32_t i = 0; i < count * LANT_KINDS; i++) {
        draw_curve(run, &sweeps[i / LANT_KINDS], i % LANT_KINDS, true);
    }
    lab_add_figure(run, "carried", "512 bytes for any other node", "load of a node's line",
                   "load carried", false);
    for (uint32_t i = 0; i < count * LANT_KINDS; i++) {
        draw_curve(run, &sweeps[i / LANT_KINDS], i % LANT_KINDS, false);
    }
}

/* -- 1,024 nodes --------------------------------------------------------------------------------*/

static void load(struct lab_run *run)
{
    static const char claim[] = "LNI-W-load";
    static const struct plan plans[LANT_KINDS] = {
        {{0.1, 0.3, 0.5, 0.6, 0.7, 0.9}, 0.6, 60, 120, 60, 120},
        {{0.1, 0.3, 0.5, 0.7, 0.9}, 0.7, 60, 120, 60, 120},
        {{0.01, 0.02, 0.04, 0.05, 0.06, 0.1, 0.2, OVERLOAD}, 0.05, 60, 120, 60, 240}};
    struct sweep sweep = {.size = &lant_size_1k, .plans = plans};
    run_sweep(run, claim, &sweep);
    for (uint32_t kind = 0; kind < LANT_KINDS; kind++) {
        judge_carried(run, claim, &sweep, kind);
    }
    judge_wait(run, claim, &sweep);
    judge_overload(run, &sweep);
    draw(run, &sweep, 1);
}

#define IDLE_SOURCE  "Table 3.6: 59 cycles a link; OC: 18 a switch, 74.8 a packet"
#define WAIT_SOURCE  "Karol1987: (N - 1) / N of the wait of M/D/1 at an output, N is half the radix"
#define WAIT_BECAUSE "with a path for each destination, packets that met once do not meet again"

static const struct lab_claim load_claims[] = {
    {.id = "LNI-W-load.idle",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A7",
     .source = IDLE_SOURCE,
     .broken_by = "forwards=packet",
     .because = "a packet's length counts at every switch"},
    {.id = "LNI-W-load.torus",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: rings of 10 are full at load 8 / 10",
     .broken_by = "torus=power | queues=inputs",
     .because = "rings of 16 are full at 0.5; heads of queues hold up the others"},
    {.id = "LNI-W-load.tree",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: as many links up as down, and packets spread over all of them",
     .broken_by = "queues=inputs",
     .because = "heads of queues hold up the others"},
    {.id = "LNI-W-load.wait",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A7",
     .source = WAIT_SOURCE,
     .broken_by = "paths=one | queues=inputs",
     .because = WAIT_BECAUSE "; heads of queues hold up the others"},
    {.id = "LNI-W-load.fly",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: a group's 8 links are full at load 8 x 1151 / (128 x 1024) = 0.07",
     .broken_by = "ways=valiant",
     .because = "detours take two of these links"},
    {.id = "LNI-W-load.over",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 127 of 1151 others are in the group, and 8 full links for 128 hosts",
     .broken_by = "ways=valiant",
     .because = "detours take two of these links"},
};

/* -- 8,192 and 65,536 nodes ---------------------------------------------------------------------*/

static void load_large(struct lab_run *run)
{
    static const char claim[] = "LNI-W-large";
    static const struct plan plans[2][LANT_KINDS] = {
        {{{0.1, 0.2, 0.3, 0.36}, 0.3, 40, 80, 40, 100},
         {{0.1, 0.4, 0.7, 0.9}, 0.7, 30, 60, 40, 100},
         {{0.05, 0.1, 0.19, 0.22}, 0.19, 30, 60, 40, 100}},
        {{{0.05, 0.15, HEAVY_LOAD}, 0.15, 40, 60, 70, 110},
         {{0.1, 0.4, 0.7}, 0.7, 20, 40, 30, 60},
         {{0.05, 0.1, 0.19, HEAVY_LOAD}, 0.19, 20, 40, 30, 60}}};
    struct sweep sweeps[] = {{.size = &lant_size_8k, .plans = plans[0]},
                             {.size = &lant_size_64k, .plans = plans[1]}};
    for (uint32_t i = 0; i < COUNT_OF(sweeps); i++) {
        run_sweep(run, claim, &sweeps[i]);
        judge_carried(run, claim, &sweeps[i], LANT_TORUS);
        judge_carried(run, claim, &sweeps[i], LANT_DRAGONFLY);
        judge_wait(run, claim, &sweeps[i]);
    }
    judge_order(run, &sweeps[1]);
    draw(run, sweeps, COUNT_OF(sweeps));
}

static const struct lab_claim large_claims[] = {
    {.id = "LNI-W-large.idle",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A7",
     .source = IDLE_SOURCE,
     .broken_by = "forwards=packet",
     .because = "a packet's length counts at every switch"},
    {.id = "LNI-W-large.torus",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: rings of 20 are full at load 8 / 20, rings of 41 at 0.195",
     .broken_by = "torus=power",
     .because = "rings of 32 are full at 0.25, rings of 64 at 0.125"},
    {.id = "LNI-W-large.wait",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A7",
     .source = WAIT_SOURCE,
     .broken_by = "paths=one",
     .because = WAIT_BECAUSE},
    {.id = "LNI-W-large.fly",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A55",
     .source = "OC: links in a group are full at load 1/4: 16 hosts, 8 ways out, and as much in",
     .broken_by = "group=4x32",
     .because = "32 hosts have 4 ways out: full at 1/16"},
    {.id = "LNI-W-large.order",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A55",
     .source = "OC: rings of 41 are full at load 0.195, a dragonfly's groups at 0.25",
     .broken_by = "group=4x32",
     .because = "the links of such groups are full at 1/16"},
};

#define LOAD_USES LANT_LOAD_USES "ways paths"

const struct lab_experiment lant_load = {
    LANT_COMMON,
    .name = "lant/load",
    .what = "networks of 1,024 nodes under load: latency, and what they carry",
    .uses = LOAD_USES,
    LANT_CLAIMS(load_claims),
    .quick = true,
    .run = load,
    .explains =
        "In an idle network a packet takes what its links, its switches and its own length take: "
        "671 cycles in a torus, 508 in a fat tree, 407 in a dragonfly, in the order of Table 3.1. "
        "Under load the order is another one: the tree carries all that its nodes can send, the "
        "torus 0.8 of it, and the dragonfly 0.07. Groups of 128 hosts, which Table 3.1's distances "
        "need, have one link to each other group, and there are only 8 others. Links and switches "
        "are Lant's; the sizes of the tree's switches, queues at outputs and without a bound, and "
        "the arrangement of a dragonfly's links are ours. For these destinations a random "
        "choice costs something in a tree: with a path for each destination packets wait less, 820 "
        "cycles in all instead of 950 at load 0.7. For others it is worth that (lant/adverse).",
};

const struct lab_experiment lant_load_large = {
    LANT_COMMON,
    .name = "lant/load-large",
    .what = "networks of 8,192 and 65,536 nodes under load",
    .uses = LOAD_USES,
    LANT_CLAIMS(large_claims),
    .run = load_large,
    .explains =
        "The time of one packet grows with the torus' sides, 1250 and 2410 cycles, and hardly "
        "with the others, whose distances do not grow. The carried load follows the links: those "
        "of a ring of 20 are full at 0.4, of 41 at 0.195; those inside a dragonfly's groups at "
        "0.25, whatever its size, since there are enough between groups now. So at 65,536 nodes "
        "the dragonfly carries more than the torus, and at 1,024 a tenth of it.",
};
