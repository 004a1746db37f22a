/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Latency of a message between two nodes without other load, by size.
 */
#include "lab/roce/experiments.h"

#define SMALL    8u
#define LARGE    (1u << 20)
#define MESSAGES 3 /* The first one brings the contexts. */
#define WORKS    3u

static const char *const works[WORKS] = {"WRITE", "SEND", "READ"};

struct found {
    struct roce_config config;
    uint64_t written_ps; /* From the post until its last byte is visible. */
};

static struct found measure(struct lab_run *run, enum roce_work work, uint32_t bytes, bool inlined)
{
    struct roce_world world;
    const struct roce_load load = {.topology = "star:2",
                                   .work = work,
                                   .inlined = inlined,
                                   .bytes = bytes,
                                   .depth = 1,
                                   .messages = MESSAGES,
                                   .stop_ps = UINT64_MAX};
    struct found found = {.config = roce_world_config(run, &load)};
    if (!roce_world_open(&world, run, &load, 1)) {
        return found;
    }
    roce_world_flow(&world, 0, 1);
    roce_world_run(&world);
    found.written_ps = world.written_ps;
    roce_world_close(&world);
    return found;
}

static void add_curves(struct lab_run *run)
{
    for (enum roce_work work = ROCE_WRITE; work <= ROCE_READ; work++) {
        struct lab_series *series = lab_add_curve(run, "%s", works[work]);
        for (uint32_t bytes = SMALL; bytes <= LARGE; bytes *= 2) {
            const struct found found = measure(run, work, bytes, false);
            lab_add_point(series, bytes, (double)found.written_ps / 1e6,
                          (double)roce_sum_ps(&found.config, work, bytes) / 1e6);
        }
        lab_progress(run, (work + 1.0) / WORKS);
    }
}

static void judge_sum(struct lab_run *run, const char *id, enum roce_work work, uint32_t bytes)
{
    const struct found found = measure(run, work, bytes, false);
    lab_judge_absolute(lab_add_row(run, id, "ps", "%s of %u B, until its last byte is visible",
                                   works[work], bytes),
                       (double)roce_sum_ps(&found.config, work, bytes), (double)found.written_ps,
                       0);
}

static void latencies(struct lab_run *run)
{
    struct lab_figure *figure = lab_add_figure(run, "latency", "Latency of a message, by size",
                                               "bytes of the message", "us", true);
    figure->log_y = true;
    add_curves(run);
    if (run->failure[0] != '\0') {
        return;
    }
    judge_sum(run, "ROC-A1/write", ROCE_WRITE, SMALL);
    judge_sum(run, "ROC-A1/send", ROCE_SEND, SMALL);
    judge_sum(run, "ROC-A1/read", ROCE_READ, SMALL);
    judge_sum(run, "ROC-A2/write", ROCE_WRITE, LARGE);
    judge_sum(run, "ROC-A2/read", ROCE_READ, LARGE);
    const struct found plain = measure(run, ROCE_WRITE, SMALL, false);
    const struct found inlined = measure(run, ROCE_WRITE, SMALL, true);
    lab_judge_absolute(lab_add_row(run, "ROC-A3", "ns", "less for a WRITE of %u B inline", SMALL),
                       (double)plain.config.pcie.read_ps / 1e3,
                       ((double)plain.written_ps - (double)inlined.written_ps) / 1e3, 5);
}

static const struct lab_claim claims[] = {
    {.id = "ROC-A1",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: the sum of the parameters on the way",
     .broken_by = "wqe_by=doorbell",
     .because = "the work request is not read"},
    {.id = "ROC-A2",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: the first packet's parts, and the line's time for the others",
     .broken_by = "room=1",
     .because = "the next payload is read when the one before is on the line"},
    {.id = "ROC-A3",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "mlx5e: an inline request saves the read of the data",
     .broken_by = "tlp_completion=256",
     .because = "the header of a completion takes longer than the bound"},
};

const struct lab_experiment roce_latency = {
    ROCE_COMMON,
    ROCE_CLAIMS(claims),
    .name = "roce/latency",
    .what = "latency of a message between two nodes, by size",
    .uses = ROCE_USES "cache buffer paths ecn",
    .quick = true,
    .run = latencies,
    .explains =
        "A WRITE takes a doorbell, the DMA reads of its work request and its payload, both "
        "pipelines, two lines and a switch, and a DMA write. A SEND takes as long until its bytes "
        "are visible; the completion comes behind them. A READ takes the way twice. Of a large "
        "message the line's time for its frames comes once, as its packets follow one another.",
};
