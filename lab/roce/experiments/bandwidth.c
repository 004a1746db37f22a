/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The payload that one connection carries between two nodes, by size of its messages.
 */
#include <math.h>

#include "lab/roce/experiments.h"

#define SMALL       8u
#define SMALL_DEPTH 1024u
#define LARGE       65536u
/* PCIe of 8 lanes: slower than a line of 100 Gb/s. */
#define SHARE_OF_LANES 2

struct found {
    struct roce_config config;
    double gbps;
};

static struct found measure(struct lab_run *run, enum roce_work work, uint32_t bytes,
                            uint32_t depth, uint64_t pcie_byte_fs)
{
    struct roce_world world;
    const struct roce_load load = {.topology = "star:2",
                                   .work = work,
                                   .bytes = bytes,
                                   .depth = depth,
                                   .warm_ps = lab_ps(run, "warm"),
                                   .stop_ps = lab_ps(run, "duration"),
                                   .pcie_byte_fs = pcie_byte_fs};
    struct found found = {.config = roce_world_config(run, &load)};
    if (!roce_world_open(&world, run, &load, 1)) {
        return found;
    }
    roce_world_flow(&world, 0, 1);
    roce_world_run(&world);
    found.gbps = roce_world_gbps(&world);
    roce_world_close(&world);
    return found;
}

static double bound_of(const struct roce_config *config, uint32_t bytes)
{
    return fmin(roce_line_gbps(config, bytes), roce_pcie_gbps(config, bytes));
}

static void add_curve(struct lab_run *run, const char *name, enum roce_work work)
{
    struct lab_series *series = lab_add_curve(run, "%s", name);
    for (uint32_t bytes = SMALL; bytes <= LARGE; bytes *= 2) {
        const uint32_t depth = bytes < 1024 ? SMALL_DEPTH : (uint32_t)lab_value(run, "depth") * 4;
        const struct found found = measure(run, work, bytes, depth, 0);
        lab_add_point(series, bytes, found.gbps,
                      work == ROCE_WRITE ? bound_of(&found.config, bytes) : LAB_NOTHING);
    }
}

static void judge(struct lab_run *run)
{
    const uint32_t depth = (uint32_t)lab_value(run, "depth");
    const struct found line = measure(run, ROCE_WRITE, LARGE, depth, 0);
    lab_judge_relative(lab_add_row(run, "ROC-B1/write", "Gb/s", "WRITEs of %u B: the line", LARGE),
                       roce_line_gbps(&line.config, LARGE), line.gbps, 0.005);
    const struct found reads = measure(run, ROCE_READ, LARGE, depth, 0);
    lab_judge_relative(lab_add_row(run, "ROC-B1/read", "Gb/s", "READs of %u B: the line", LARGE),
                       roce_line_gbps(&reads.config, LARGE), reads.gbps, 0.005);
    const struct found lanes =
        measure(run, ROCE_WRITE, LARGE, depth, SHARE_OF_LANES * line.config.pcie.byte_fs);
    lab_judge_relative(
        lab_add_row(run, "ROC-B2", "Gb/s", "WRITEs of %u B, half as many lanes: PCIe", LARGE),
        roce_pcie_gbps(&lanes.config, LARGE), lanes.gbps, 0.005);
    const struct found small = measure(run, ROCE_WRITE, SMALL, SMALL_DEPTH, 0);
    lab_judge_relative(lab_add_row(run, "ROC-B3", "M/s", "WRITEs of %u B: PCIe", SMALL),
                       bound_of(&small.config, SMALL) * 1e3 / (8 * SMALL),
                       small.gbps * 1e3 / (8 * SMALL), 0.01);
}

static void bandwidth(struct lab_run *run)
{
    (void)lab_add_figure(run, "bandwidth", "Payload that one connection carries",
                         "bytes of a message", "Gb/s", true);
    add_curve(run, "WRITE", ROCE_WRITE);
    add_curve(run, "READ", ROCE_READ);
    lab_progress(run, 0.8);
    judge(run);
}

static const struct lab_claim claims[] = {
    {.id = "ROC-B1",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: the line's rate times the share of payload",
     .broken_by = "room=1",
     .because = "the next payload is read when the one before is on the line"},
    {.id = "ROC-B2",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: PCIe's rate times the share of payload",
     .broken_by = "room=1",
     .because = "the next payload is read when the one before is on the line"},
    {.id = "ROC-B3",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: a doorbell, a work request and a payload for each",
     .broken_by = "packets=50 | wqe_by=doorbell",
     .because = "the pipeline takes 50 M/s; no work request is read"},
};

const struct lab_experiment roce_bandwidth = {
    ROCE_COMMON,
    ROCE_CLAIMS(claims),
    .name = "roce/bandwidth",
    .what = "payload that one connection carries, by size of its messages",
    .uses = ROCE_USES "cache buffer paths ecn depth duration=300 warm=100",
    .run = bandwidth,
    .explains =
        "Large messages go at the line's rate, or PCIe's if that is less, times the share of "
        "payload in what passes there: at the receiver's PCIe, since a TLP that writes has a "
        "longer header than one that brings what was read. Small ones are bound by PCIe: each "
        "costs a doorbell, a work "
        "request and a payload, with the headers of three TLPs. READs of less than some KB are "
        "bound by the 16 that a connection may have under way.",
};
