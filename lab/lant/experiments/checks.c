/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Checks and codes at links of a network under load, which 5.3.3 leaves open. All of it is
 * prediction.
 */
#include <math.h>
#include <stdio.h>

#include "lab/lant/batch.h"

enum {
    NODES = 128,
    EACH = 32, /* Messages of a node: one packet each. */
    WINDOW = 32,
    PACKET_FLITS = 68,
    PACKET_BITS = 64 * PACKET_FLITS,
    CHECK = 64, /* 5.3.2.1; parameters do not change it. */
    HUNDRED = 100,
};

#define TOPOLOGY "fat-tree:8:3"

/* Loads of a node's line, which 512 bytes behind 512 bytes fill. */
static const double loads[] = {0.05, 0.3, 0.6};
enum {
    IDLE,
    LIGHT,
    HEAVY,
    LOADS,
};

#define MANY 1e-5 /* Bit error rates. */
#define SOME 5e-6

struct point {
    enum lant_checking checking;
    uint32_t load;
    double bit_errors;
};

static struct lant_batch_outcome measure(struct lab_run *run, const struct point *point)
{
    const struct lant_node_config config = lant_config_of(run);
    const double code = lab_value(run, "code");
    struct lant_fabric_config fabric = lant_line_of(run);
    const uint64_t packet_ps = lant_line_ps(&fabric.node_line, PACKET_FLITS);
    const struct lant_batch_traffic traffic = {
        .nodes = NODES,
        .senders = NODES,
        .each = EACH,
        .bytes = LANT_PAYLOAD_BYTES_MAX,
        .to = LANT_TO_OTHERS,
        .interval_ps = (uint64_t)((double)packet_ps / loads[point->load]),
    };
    struct lab_plan plan;
    (void)snprintf(fabric.topology, sizeof(fabric.topology), TOPOLOGY);
    fabric.switch_cycles = lant_whole(run, "switch");
    fabric.checking = point->checking;
    fabric.check_cycles = lant_whole(run, "check");
    fabric.bit_errors = point->bit_errors;
    if (point->checking == LANT_CHECK_LINKS && lab_word(run, "told_by") != 0) {
        fabric.checking = LANT_CHECK_ENDS;
    }
    if (point->checking == LANT_CHECK_CODE && code > 0) {
        fabric.node_line.code_flits = fabric.switch_line.code_flits =
            (uint32_t)llround(HUNDRED / code);
    }
    lant_batch_plan(&plan, &traffic, run->seed);
    const struct lant_batch_outcome outcome = lant_batch_run(run, &plan, &config, &fabric, WINDOW);
    lab_plan_close(&plan);
    return outcome;
}

/* -- Rows ---------------------------------------------------------------------------------------*/

static void judge_added(struct lab_run *run, struct lant_batch_outcome ends[LOADS])
{
    for (uint32_t load = 0; load < LOADS; load++) {
        char id[LAB_ID_BYTES];
        const struct point point = {LANT_CHECK_ENDS, load, 0};
        const struct point checked = {LANT_CHECK_LINKS, load, 0};
        ends[load] = measure(run, &point);
        const double mean = measure(run, &checked).mean;
        (void)snprintf(id, sizeof(id), "LNI-W-checks.added/%.0f", HUNDRED * loads[load]);
        lab_judge_relative(lab_add_row(run, id, "cycles",
                                       "load %g: what checks at links add to %.0f cycles of a "
                                       "message that passes %.2f switches",
                                       loads[load], ends[load].mean, ends[load].switches),
                           CHECK * ends[load].switches, mean - ends[load].mean, 0.05);
    }
}

/* The links that all copies of a message take, until one comes through: where each link damages
 * the share `damaged` of its packets. */
static double links_taken(uint32_t links, double damaged, bool to_the_end)
{
    const double copies = 1 / pow(1 - damaged, links);
    return to_the_end ? links * copies : (copies - 1) / damaged;
}

/* 3 of the 127 others are 2 links away, 12 are 4, and 112 are 6. */
static double predicted_share(void)
{
    static const double others[] = {3, 12, 112};
    const double damaged = 1 - pow(1 - MANY, PACKET_BITS);
    double some = 0, all = 0;
    for (uint32_t i = 0; i < COUNT_OF(others); i++) {
        some += others[i] * links_taken(2 * (i + 1), damaged, false);
        all += others[i] * links_taken(2 * (i + 1), damaged, true);
    }
    return some / all;
}

static void judge_errors(struct lab_run *run)
{
    const struct point at_ends = {LANT_CHECK_ENDS, HEAVY, MANY};
    const struct point at_links = {LANT_CHECK_LINKS, HEAVY, MANY};
    const struct lant_batch_outcome ends = measure(run, &at_ends), links = measure(run, &at_links);
    lab_judge_relative(lab_add_row(run, "LNI-W-checks.spared", "",
                                   "load %g, errors %g: time that lines are in use with checks at "
                                   "links, of that without",
                                   loads[HEAVY], MANY),
                       predicted_share(),
                       lant_batch_share((double)links.busy_ps, (double)ends.busy_ps), 0.02);
    lab_judge_range(lab_add_row(run, "LNI-W-checks.slower", "",
                                "load %g, errors %g: a message's time with checks at links, of "
                                "that without",
                                loads[HEAVY], MANY),
                    1, LAB_UNBOUNDED, lant_batch_share(links.mean, ends.mean));
}

/* A message's time with a code at links, of that without. */
static double code_share(struct lab_run *run, uint32_t load)
{
    const struct point ends = {LANT_CHECK_ENDS, load, SOME}, code = {LANT_CHECK_CODE, load, SOME};
    const double coded = measure(run, &code).mean;
    return lant_batch_share(coded, measure(run, &ends).mean);
}

static void judge_code(struct lab_run *run)
{
    const double idle = code_share(run, IDLE), heavy = code_share(run, HEAVY);
    lab_judge_range(lab_add_row(run, "LNI-W-checks.idle", "",
                                "load %g, errors %g: a message's time with a code at links, of "
                                "that without",
                                loads[IDLE], SOME),
                    1.05, LAB_UNBOUNDED, idle);
    lab_judge_range(lab_add_row(run, "LNI-W-checks.gains", "",
                                "errors %g: by how much that is less at load %g", SOME,
                                loads[HEAVY]),
                    0.08, LAB_UNBOUNDED, idle - heavy);
}

static void checks(struct lab_run *run)
{
    struct lant_batch_outcome ends[LOADS];
    judge_added(run, ends);
    judge_errors(run);
    judge_code(run);
}

static const struct lab_claim checks_claims[] = {
    {.id = "LNI-W-checks.added",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.3.2.1: 64 cycles; 5.3.3: load may mask them; OC: it does not",
     .broken_by = "check=48 | told_by=ends",
     .because = "checks take another time, or none"},
    {.id = "LNI-W-checks.spared",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.3.2.1: a NACK from where an error is found; OC: by the links to there alone",
     .broken_by = "told_by=ends",
     .because = "damaged packets go all the way"},
    {.id = "LNI-W-checks.slower",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.3.3: checks at links may outperform under load; OC: they do not at 1e-5",
     .broken_by = "check=0",
     .because = "an earlier NACK costs nothing"},
    {.id = "LNI-W-checks.idle",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.3.2.2: a check at each link, and a code; OC: the bound",
     .broken_by = "check=0",
     .because = "correction is free where lines are idle"},
    {.id = "LNI-W-checks.gains",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.3.3: a code may outperform under load; OC: the bound",
     .broken_by = "code=50",
     .because = "a longer code fills the lines"},
};

const struct lab_experiment lant_checks = {
    LANT_COMMON,
    .name = "lant/checks",
    .what = "checks and codes at the links of a network under load",
    .uses = LANT_LINE_USES
    "switch rdma_setup ram rdma_receive rdma_done ack operations=64 early_timer early t_gen "
    "engine_window timeout receiver cam entries escapes escape_time register check code told_by "
    "rows=64 timers=64 retries=7",
    LANT_CLAIMS(checks_claims),
    .quick = true,
    .run = checks,
    .explains =
        "The document supposes that load hides what checks at links take, since a packet that "
        "waits is whole before it goes on. It does not: a check delays all packets alike, so the "
        "first one of a queue leaves later, and all behind it. Messages take 302 cycles more at "
        "any load. At errors of 1e-5 such switches spare a tenth of the lines' time, since "
        "damaged packets go no further, and are slower all the same. A code gains by load, since "
        "what goes again waits in the same queues: at errors of 5e-6 it costs 19 % of a message's "
        "time in an idle network and 3 % at load 0.6. Nodes have 64 rows here, so that rows do "
        "not bound what is under way; with 16 (--set rows=16 timers=16) checks cost more under "
        "load.",
};
