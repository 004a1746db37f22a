/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How many slots an output buffer needs (row A11).
 */
#include "lab/exanest/experiments.h"

enum {
    BYTES = 1 << 19,
    /* A slot is taken in SLOT's cycle. The cycles of a slot: 3 until the read is taken, 40 in
     * memory, 15 until the last beat, 2 in the shifter, 1 until the header is shown, and 17 until
     * the last word of payload is taken. Then 5.3.5 frees the slot. The sum is 78. Then the
     * scheduler, which looks again every third cycle, comes by 1 cycle later in the mean. */
    RESIDENCE = 79,
    INSIDE = 20, /* Cycles a packet: 18 words and 2 idle cycles. */
};

#define LINK_CYCLES (exanest_aurora_packet_ns(10) * 0.15)

/* The share of the throughput of EXANEST_SLOTS_MAX slots; returns the greatest deviation from
 * what Little's law says. */
static double add_curve(struct lab_run *run, const struct exanest_machine_config *config,
                        uint32_t to, double interval, const char *name)
{
    double gbps[EXANEST_SLOTS_MAX + 1];
    double worst = 0;
    struct lab_series *series = lab_add_curve(run, "%s", name);
    for (uint32_t k = 1; k <= EXANEST_SLOTS_MAX; k++) {
        struct exanest_machine_config some = *config;
        some.fabric.fpga.exadma.slots = k;
        gbps[k] = exanest_stream_of(run, &some, 0, to, BYTES, 0, 0).gbps;
    }
    for (uint32_t k = 1; k <= EXANEST_SLOTS_MAX; k++) {
        const double share = gbps[k] / gbps[EXANEST_SLOTS_MAX];
        const double expected = fmin(1, k * interval / RESIDENCE);
        lab_add_point(series, k, share, expected);
        worst = fmax(worst, fabs(share - expected));
    }
    return worst;
}

static void slots(struct lab_run *run)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    config.fabric.fpga.exadma.hold_cycles = (uint32_t)lab_value(run, "hold");
    config.fabric.fpga.exadma.holds_slot = config.fabric.fpga.exadma.hold_cycles != 0;
    struct lab_figure *figure =
        lab_add_figure(run, "slots", "Throughput over the slots of an output buffer", "slots",
                       "share of the throughput of 16 slots", false);
    lab_add_mark(figure, EXANEST_SLOTS, 1, "5.3.4: eight slots");
    const double link = add_curve(run, &config, 1, LINK_CYCLES, "over a link");
    lab_progress(run, 0.5);
    const double inside = add_curve(run, &config, 0, INSIDE, "inside one FPGA");
    lab_judge_absolute(
        lab_add_row(run, "EXA-A11/link", "", "over a link: 1..16 slots, farthest from the law"), 0,
        link, 0.015);
    lab_judge_absolute(
        lab_add_row(run, "EXA-A11/inside", "", "inside one FPGA, farthest from the law"), 0, inside,
        0.015);
}

static const struct lab_claim slots_claims[] = {
    {.id = "EXA-A11",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.3.4; 5.1; 5.3.5: slots x cycles between packets / 79 cycles in a slot (Little)",
     .broken_by = "read=10 | hold=20 | reads_at_once=1",
     .because = "a slot is in use for a shorter or a longer time, or slots do not overlap"},
};

const struct lab_experiment exanest_slots = {
    .name = "exanest/slots",
    .what = "throughput over the slots of an output buffer",
    EXANEST_COMMON,
    .uses = EXANEST_USES "hold",
    EXANEST_CLAIMS(slots_claims),
    .quick = true,
    .run = slots,
    .explains =
        "A slot is in use from the read of memory until the last word of payload has left: 78 "
        "cycles. So 3 slots keep a link busy and 4 the crossbar. The document's 8 slots are what "
        "its formula gives (40 cycles of memory, a read every 5); no throughput of this model "
        "needs more than half of them. The use of the others (several paths that stall, memory "
        "that takes longer) is not tried here.",
};
