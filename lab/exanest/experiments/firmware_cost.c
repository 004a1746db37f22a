/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The effect of the R5's time for a block on throughput (row A22); and the what-if in which
 * hardware takes the responses instead as the document proposes.
 */
#include "lab/exanest/experiments.h"

enum {
    BLOCK = 16384,
    BYTES = 24 * BLOCK,
};

#define BLOCK_BITS 131072.0
#define LINK_GBPS  (EXANEST_STREAM_BITS / exanest_aurora_packet_ns(10))
#define KNEE_US    (BLOCK_BITS / 1000 / LINK_GBPS)

/* The cost of responses for a write of one block: one is read and handled; and when the R5 wakes
 * for the write, it reads once and finds none. */
#define ANSWER_US (1.37 + 2 * 0.13)

static const double costs_us[] = {2, 6, 10, 13, 15, 16, 17, 19, 22, 27, 32};
#define COSTS COUNT_OF(costs_us)

static double gbps_of(struct lab_run *run, const struct exanest_machine_config *config,
                      double cost_us)
{
    struct exanest_machine_config some = *config;
    exanest_firmware_set_block_cost(&some.firmware.costs, (uint32_t)llround(1000 * cost_us));
    return exanest_stream_of(run, &some, 0, 1, BYTES, 0, 0).gbps;
}

/* Between two bounds: what the link carries at least cost, and blocks a time at the greatest. */
static double knee_us(double least_gbps, double most_gbps, double most_us)
{
    return most_gbps * most_us / least_gbps;
}

/* -- A22 ----------------------------------------------------------------------------------------*/

static void add_costs(struct lab_run *run, const struct exanest_machine_config *config)
{
    double worst = 0, gbps[COSTS];
    struct lab_series *series = lab_add_curve(run, "as it is");
    for (uint32_t i = 0; i < COSTS; i++) {
        const double expected = fmin(LINK_GBPS, BLOCK_BITS / 1000 / costs_us[i]);
        gbps[i] = gbps_of(run, config, costs_us[i]);
        lab_add_point(series, costs_us[i], gbps[i], expected);
        worst = fmax(worst, fabs(gbps[i] / expected - 1));
    }
    lab_judge_absolute(
        lab_add_row(run, "EXA-A22/bounds", "", "2 to 32 us a block: farthest from the two bounds"),
        0, worst, 0.02);
    lab_judge_relative(
        lab_add_row(run, "EXA-A22/knee", "us", "a block at which link and R5 are even"), KNEE_US,
        knee_us(gbps[0], gbps[COSTS - 1], costs_us[COSTS - 1]), 0.02);
}

static void add_variation(struct lab_run *run, const struct exanest_machine_config *config,
                          const char *name)
{
    struct lab_series *series = lab_add_curve(run, "%s", name);
    for (uint32_t i = 0; i < COSTS; i++) {
        lab_add_point(series, costs_us[i], gbps_of(run, config, costs_us[i]), LAB_NOTHING);
    }
}

static void add_a22(struct lab_run *run, const struct exanest_machine_config *config)
{
    struct lab_figure *figure = lab_add_figure(
        run, "cost", "Throughput over what a block costs the R5", "us a block", "Gb/s", false);
    lab_add_mark(figure, LAB_NOTHING, 8.23, "7: at most 8.23");
    add_costs(run, config);
    struct exanest_machine_config two = *config;
    two.firmware_cores = 2;
    add_variation(run, &two, "two cores");
    struct exanest_machine_config one = *config;
    one.firmware.writes_outstanding = 1;
    add_variation(run, &one, "one block at a time");
}

/* -- The what-if: responses in hardware ---------------------------------------------------------*/

/* The R5's costs of a block, all in the same proportion; with or without those of responses. */
static struct exanest_machine_config slower(const struct exanest_machine_config *config,
                                            double factor, bool hardware)
{
    struct exanest_machine_config some = *config;
    struct exanest_firmware_costs *costs = &some.firmware.costs;
    costs->response_read = (uint32_t)llround(costs->response_read * factor);
    costs->response_handle = (uint32_t)llround(costs->response_handle * factor);
    costs->segment = (uint32_t)llround(costs->segment * factor);
    costs->build = (uint32_t)llround(costs->build * factor);
    costs->store = (uint32_t)llround(costs->store * factor);
    if (hardware) {
        exanest_firmware_set_hardware_responses(costs);
    }
    return some;
}

/* Returns the knee. */
static double add_slower(struct lab_run *run, const struct exanest_machine_config *config,
                         bool hardware, const char *name)
{
    static const double points[] = {2, 16, 32, 48, 64, 80, 96};
    double gbps[COUNT_OF(points)];
    const double block_us = lab_value(run, "block_cost");
    struct lab_series *series = lab_add_curve(run, "%s", name);
    for (uint32_t i = 0; i < COUNT_OF(points); i++) {
        const double factor = block_us > 0 ? points[i] / block_us : 1;
        const struct exanest_machine_config some = slower(config, factor, hardware);
        gbps[i] = exanest_stream_of(run, &some, 0, 1, BYTES / 2, 0, 0).gbps;
        lab_add_point(series, points[i], gbps[i], LAB_NOTHING);
    }
    return knee_us(gbps[0], gbps[COUNT_OF(points) - 1], points[COUNT_OF(points) - 1]);
}

static void add_answers(struct lab_run *run, const struct exanest_machine_config *config)
{
    const bool hardware = lab_word(run, "answers") == 0;
    const struct exanest_machine_config other = slower(config, 1, hardware);
    struct exanest_machine_config alone = other;
    alone.firmware.writes_outstanding = 1;
    lab_judge_relative(lab_add_row(run, "EXA-W-answers/alone", "Gb/s", "one block at a time"),
                       KNEE_US / (KNEE_US + 0.7 + 0.7 + 0.5) * LINK_GBPS,
                       exanest_stream_of(run, &alone, 0, 1, BYTES, 0, 0).gbps, 0.03);
    const double before_us = exanest_stream_of(run, config, 0, 1, BLOCK, 0, 0).us;
    const double after_us = exanest_stream_of(run, &other, 0, 1, BLOCK, 0, 0).us;
    lab_judge_absolute(lab_add_row(run, "EXA-W-answers/done", "us",
                                   "earlier is a write of 16 KB done, after %.2f", after_us),
                       ANSWER_US, before_us - after_us, 0.05);
    lab_add_figure(run, "answers", "What if hardware took the responses?",
                   "us that a block costs the R5 with responses", "Gb/s", false);
    add_slower(run, config, false, "responses in firmware");
    lab_judge_relative(
        lab_add_row(run, "EXA-W-answers/knee", "us", "a block at which link and R5 are even"),
        4 * KNEE_US, add_slower(run, config, hardware, "responses in hardware"), 0.03);
}

static void firmware_cost(struct lab_run *run)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    config.firmware_cores = (uint32_t)lab_value(run, "cores");
    add_a22(run, &config);
    lab_progress(run, 0.7);
    add_answers(run, &config);
}

static const struct lab_claim firmware_cost_claims[] = {
    {.id = "EXA-A22",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "4: the R5 has the time of many packets; OC: 131,072 bits a block over a link",
     .broken_by = "cores=2 | write_blocks=1",
     .because = "two cores share the blocks; or nothing goes on while a block is under way"},
    {.id = "EXA-W-answers",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "8: hardware might receive acknowledgments; OC: 1.5 of a block's 2 us are theirs",
     .broken_by = "answers=firmware",
     .because = "responses cost the R5 what they did before"},
};

const struct lab_experiment exanest_firmware_cost = {
    .name = "exanest/firmware",
    .what = "what the R5's time for a block makes of throughput",
    EXANEST_COMMON,
    .uses = EXANEST_USES "cores answers",
    EXANEST_CLAIMS(firmware_cost_claims),
    .quick = true,
    .run = firmware_cost,
    .explains =
        "A block of 16 KB is 16 us on the wire, and an R5 that needs less for its response and its "
        "successor never holds up a link: this is the document's reason why software can do it. "
        "Its real times are not printed, but for latencies; 2 us is our choice, and so is "
        "the share of 3/4 of it that responses have. With these, responses in hardware would "
        "allow one R5 to feed four times as many links, and finish a write 1.6 us earlier.",
};
