/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The RDMA engine and the one before it over hops from router to router: what figure 7-5 drew.
 */
#include "lab/exanest/experiments.h"

#define RING   16u /* As in exanest/hops: 8 hops are half the way round. */
#define FIRST  2u
#define LAST   8u
#define BYTES  16384u
#define COUNT  16u /* Writes of the RDMA engine, posted at once as by osu_bw. */
#define PACKET 64u

/* The document's number for the old engine: parameters change the engine, and not this. */
#define ZDMA_OUTSTANDING 6u

struct rates {
    double engine_gbps, zdma_gbps;
    double round_us; /* A packet of the zDMA, until its answer has come. */
};

static struct rates rates_of(struct lab_run *run, uint32_t hops)
{
    struct exanest_machine_config config = exanest_config_of(run, RING, 1, 1);
    const uint32_t to = hops * EXANEST_FPGAS;
    exanest_set_router(run, &config);
    exanest_set_zdma(run, &config);
    config.fabric.fpga.memory.read_cycles = (uint32_t)lab_value(run, "hit");
    struct exanest_program_config program = exanest_program_default(0, to, true, 2 * BYTES);
    program.count = COUNT;
    program.window = (uint32_t)fmin(lab_value(run, "window"), EXANEST_WRITE_CHANNELS);
    return (struct rates){
        .engine_gbps = exanest_flows_of(run, &config, &program, 1).gbps,
        .zdma_gbps = 8e-3 * BYTES / exanest_zdma_times_of(run, &config, to, BYTES).answered_us,
        .round_us = exanest_zdma_times_of(run, &config, to, PACKET).answered_us,
    };
}

static void zdma_hops(struct lab_run *run)
{
    struct rates rates[LAST + 1];
    for (uint32_t hops = FIRST; hops <= LAST; hops += 2) {
        rates[hops] = rates_of(run, hops);
        lab_progress(run, (double)hops / LAST);
    }
    lab_judge_relative(lab_add_row(run, "EXA-Z-round", "Gb/s",
                                   "the zDMA over %u hops: %u packets of %u bytes in each %.2f us",
                                   LAST, ZDMA_OUTSTANDING, PACKET, rates[LAST].round_us),
                       8e-3 * ZDMA_OUTSTANDING * PACKET / rates[LAST].round_us,
                       rates[LAST].zdma_gbps, 0.03);
    lab_judge_relative(lab_add_row(run, "EXA-Z-engine", "",
                                   "the RDMA engine's writes over %u hops, by those over %u; the "
                                   "zDMA's are %.2f",
                                   LAST, FIRST, rates[LAST].zdma_gbps / rates[FIRST].zdma_gbps),
                       1, rates[LAST].engine_gbps / rates[FIRST].engine_gbps, 0.01);
    lab_add_figure(run, "throughput", "Figure 7-5: both engines by hops",
                   "hops from router to router", "Gb/s", false);
    for (uint32_t old = 0; old < 2; old++) {
        struct lab_series *series = lab_add_curve(run, old ? "zDMA" : "RDMA engine");
        for (uint32_t hops = FIRST; hops <= LAST; hops += 2) {
            lab_add_point(series, hops, old ? rates[hops].zdma_gbps : rates[hops].engine_gbps,
                          LAB_NOTHING);
        }
    }
}

static const struct lab_claim zdma_hops_claims[] = {
    {.id = "EXA-Z-round",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "7: packets of 64 bytes, 6 outstanding ones",
     .broken_by = "zdma_outstanding=12 | zdma_packet=128",
     .because = "more bytes are under way in a round trip"},
    {.id = "EXA-Z-engine",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "7: \"the throughput remains constant as the number of hops increases\"",
     .broken_by = "window=1",
     .because = "one write does not cover the round trip"},
};

const struct lab_experiment exanest_zdma_hops = {
    .name = "exanest/zdma-hops",
    .what = "the RDMA engine and the one before it, over hops from router to router",
    EXANEST_COMMON,
    .uses = EXANEST_USES EXANEST_ROUTER_USES "hit zdma_packet zdma_outstanding window",
    EXANEST_CLAIMS(zdma_hops_claims),
    .quick = true,
    .run = zdma_hops,
    .explains =
        "The document's figure of both engines over hops is lost, and its text says nothing of the "
        "old one's curve. Ours follows from two printed numbers: six packets of 64 bytes are under "
        "way, and then the old engine waits for an answer, so its throughput falls as the way gets "
        "longer. The blocks of the RDMA engine cover the longest way. How long a hop takes is our "
        "choice (exanest/hops), and with it the level of the old engine's curve.",
};
