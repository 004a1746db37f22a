/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The goodput of links with bit errors (Fig. 5.11; rows A32, A33, A63, A65).
 */
#include <stdlib.h>

#include "lab/lant/fault_runs.h"

enum {
    DISTANCE_LEAST = 2,
    DISTANCE_MESSAGES = 7, /* For each seed. */
    RATE_OF_A65 = 6,
    SIZE_LEAST = 512,     /* The smallest message that is drawn, */
    SIZE_BYTES = 1 << 24, /* and the bytes of all of one size. */
};

#define FULL_GBPS 8.56 /* 3.4.3. */

static const struct lant_fault_plan plan = {.messages = {0, 0, 20}, .without_llv = true};

static double goodput_of(const struct lant_fault_grid *grid,
                         enum lant_fault_distribution distribution, enum lant_fault_mode mode,
                         uint32_t seed)
{
    return lant_fault_goodput(&grid->cells[LANT_FAULT_2M][distribution][mode][0][seed],
                              lant_fault_bytes[LANT_FAULT_2M]);
}

/* -- Rows ---------------------------------------------------------------------------------------*/

static void saturation_rows(struct lab_run *run, const struct lant_fault_grid *grid)
{
    double local[LANT_FAULT_SEEDS], remote[LANT_FAULT_SEEDS], code[LANT_FAULT_SEEDS];
    for (uint32_t seed = 0; seed < LANT_FAULT_SEEDS; seed++) {
        local[seed] = goodput_of(grid, LANT_FAULT_LOCAL, LANT_FAULT_E2E, seed);
        remote[seed] = goodput_of(grid, LANT_FAULT_REMOTE, LANT_FAULT_E2E, seed);
        code[seed] = goodput_of(grid, LANT_FAULT_LOCAL, LANT_FAULT_ECC, seed) / local[seed];
    }
    lab_judge_relative(lab_add_row(run, "LNI-A32.L", "Gb/s", "2M, L, no errors; worst of 3 seeds"),
                       FULL_GBPS, lant_fault_furthest(local, FULL_GBPS), 0.01);
    lab_judge_range(lab_add_row(run, "LNI-A32.R", "Gb/s", "2M, R, no errors; worst of 3 seeds"), 0,
                    0.9 * FULL_GBPS, lant_fault_furthest(remote, 0));
    lab_judge_relative(
        lab_add_row(run, "LNI-A32.value", "Gb/s", "2M, R, no errors; worst of 3 seeds"), 6.95,
        lant_fault_furthest(remote, 6.95), 0.03);
    lab_judge_range(
        lab_add_row(run, "LNI-A33", "", "2M, L, no errors: ECC, of E2E; worst of 3 seeds"), 0.84,
        0.9, lant_fault_furthest(code, 0.87));
}

static void resent_row(struct lab_run *run, const struct lant_fault_grid *grid)
{
    double shares[LANT_FAULT_SEEDS];
    for (uint32_t seed = 0; seed < LANT_FAULT_SEEDS; seed++) {
        const struct lant_fault_statistics *cell =
            &grid->cells[LANT_FAULT_2M][LANT_FAULT_LOCAL][LANT_FAULT_E2E][RATE_OF_A65][seed];
        shares[seed] = 100 * (double)cell->again / (double)cell->packets;
    }
    lab_judge_absolute(lab_add_row(run, "LNI-A65", "%",
                                   "2M, L, 1e-6: sent again, of all packets; worst of 3 seeds"),
                       2.4, lant_fault_furthest(shares, 2.4), 0.2);
}

/* A distance that all packets have (Fig. 6.1). */
static void distance_rows(struct lab_run *run)
{
    static const char *const ids[] = {"LNI-A63.line/2", "LNI-A63.line/3", "LNI-A63/4", "LNI-A63/5"};
    static const double expected[] = {8.54, 8.53, 7.71, 6.25};
    lab_add_figure(run, "distance", "Throughput over the distance of all packets, no errors",
                   "links", "payload, Gb/s", false);
    struct lab_series *series = lab_add_curve(run, "2M, E2E");
    for (uint32_t i = 0; i < COUNT_OF(expected); i++) {
        double values[LANT_FAULT_SEEDS];
        for (uint32_t seed = 0; seed < LANT_FAULT_SEEDS; seed++) {
            struct lant_fault_pair_config config = lant_fault_pair_of(run, LANT_FAULT_E2E);
            const uint32_t bytes = lant_fault_bytes[LANT_FAULT_2M];
            lant_fault_fixed(&config.network, DISTANCE_LEAST + i);
            config.network.seed =
                lant_fault_seed(run, UINT64_C(1) << 32 | (i * LANT_FAULT_SEEDS + seed));
            const struct lant_fault_statistics statistics = lant_fault_measure(
                run, &config, lant_fault_packets(run, LANT_FAULT_E2E, bytes), DISTANCE_MESSAGES);
            values[seed] = lant_fault_goodput(&statistics, bytes);
        }
        lab_add_point(series, DISTANCE_LEAST + i, values[0], expected[i]);
        lab_judge_relative(
            lab_add_row(run, ids[i], "Gb/s", "2M, %u links; worst of 3 seeds", DISTANCE_LEAST + i),
            expected[i], lant_fault_furthest(values, expected[i]), 0.02);
    }
}

/* Fig. 5.11 has the size of a message on its axis, E2E and ECC, and no LLV. */
static void draw_sizes(struct lab_run *run)
{
    struct lab_figure *figure =
        lab_add_figure(run, "sizes", "Fig. 5.11: throughput over the size of a message, no errors",
                       "bytes of a message", "payload, Gb/s", true);
    lab_add_mark(figure, LAB_NOTHING, FULL_GBPS, "3.4.3: 8.56");
    for (uint32_t i = 0; i < 4; i++) {
        const enum lant_fault_mode mode = i % 2 == 0 ? LANT_FAULT_E2E : LANT_FAULT_ECC;
        struct lab_series *series =
            lab_add_curve(run, "%s, %s", i < 2 ? "L" : "R", lant_fault_mode_names[mode]);
        for (uint32_t bytes = SIZE_LEAST; bytes <= lant_fault_bytes[LANT_FAULT_2M]; bytes *= 4) {
            struct lant_fault_pair_config config = lant_fault_pair_of(run, mode);
            if (i >= 2) {
                lant_fault_remote(&config.network);
            }
            config.network.seed =
                lant_fault_seed(run, UINT64_C(2) << 32 | (uint64_t)i << 28 | bytes);
            const struct lant_fault_statistics statistics = lant_fault_measure(
                run, &config, lant_fault_packets(run, mode, bytes), SIZE_BYTES / bytes);
            lab_add_point(series, bytes, lant_fault_goodput(&statistics, bytes), LAB_NOTHING);
        }
    }
}

static void draw_rates(struct lab_run *run, const struct lant_fault_grid *grid)
{
    struct lab_figure *figure = lab_add_figure(run, "rates", "Throughput of messages of 2 MB",
                                               "bit error rate", "payload, Gb/s", false);
    lab_add_mark(figure, LAB_NOTHING, FULL_GBPS, "3.4.3: 8.56");
    lant_fault_draw(run, grid, &plan, LANT_FAULT_2M, LANT_FAULT_LOCAL, lant_fault_goodput, NULL);
    lant_fault_draw(run, grid, &plan, LANT_FAULT_2M, LANT_FAULT_REMOTE, lant_fault_goodput, NULL);
}

static void goodput(struct lab_run *run)
{
    struct lant_fault_grid *grid = malloc(sizeof(*grid));
    CHECK(grid != NULL);
    lant_fault_grid_run(run, grid, &plan);
    if (run->failure[0] == '\0') {
        draw_sizes(run);
        draw_rates(run, grid);
        saturation_rows(run, grid);
        resent_row(run, grid);
        distance_rows(run);
    }
    free(grid);
}

static const struct lab_claim goodput_claims[] = {
    {.id = "LNI-A32.L",
     .reference = LAB_DERIVED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A11",
     .source = "5.3.3: at the level of 3.4.3; 3.4.3: 8.56 Gb/s",
     .broken_by = "fault_rows=8 | hop=312",
     .because = "the packets that may be under way do not cover the way"},
    {.id = "LNI-A32.R",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "5.3.3: not when extended out; OC: a tenth less at least",
     .broken_by = "fault_rows=32",
     .because = "enough packets may be under way"},
    {.id = "LNI-A32.value",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 16 rows of 2 x 4.267 x 156 cycles and a packet, less what the line holds up",
     .broken_by = "fault_rows=15 | fault_rows=17 | fault_rows=32",
     .because = "other numbers of packets are under way"},
    {.id = "LNI-A33",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "5.3.3: a negative effect of ECC; 5.3.2.2: 12.5 %; OC: the bounds",
     .broken_by = "code=0",
     .because = "correction takes no packets"},
    {.id = "LNI-A65",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A28a",
     .source = "5.2.3: only what failed goes again; OC: 1 - (1 - p)^(2 hops)",
     .broken_by = "resend=all | spoilt=data",
     .because = "what was sent behind it goes again, too; or half of the ways is safe"},
    {.id = "LNI-A63",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source =
         "Fig. 6.1: a limit of outstanding operations; OC: 16 packets in 2 x 156 x links + 74.8",
     .broken_by = "fault_rows=32",
     .because = "twice the packets cover the way"},
    {.id = "LNI-A63.line",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "Fig. 6.1: a limit of outstanding operations; OC: a packet in 74.8 cycles",
     .broken_by = "fault_rows=8",
     .because = "half of the packets do not cover the way"},
};

const struct lab_experiment lant_goodput = {
    LANT_COMMON,
    .name = "lant/goodput",
    .what = "what links with bit errors carry (Fig. 5.11), and over which distance (Fig. 6.1)",
    .uses = LANT_FAULT_USES,
    LANT_CLAIMS(goodput_claims),
    .run = goodput,
    .explains =
        "Sixteen packets under way cover two links there and back, but not five: the local "
        "distribution fills the line, the remote one does not. Distances count links. Chapter 5 "
        "has no early acknowledgement, which would not help, since it has as few timers. A "
        "message's throughput is that of one message at a time, so small ones stay far below.",
};
