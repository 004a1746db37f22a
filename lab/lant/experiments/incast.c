/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Many senders to one receiver, whose registration table fills: what 6.4 leaves open. All of it is
 * prediction.
 */
#include <stdio.h>

#include "lab/lant/batch.h"

enum {
    NODES = 250,
    EACH = 8, /* Messages of a sender, one after the other. */
    SENDERS = 24,
    BYTES = 2048,
    FEW_ENTRIES = 2,
    /* Packets that wait at the receiver's line for as long as a timer, less the way there and
     * back, are between these two: (10000 - 418) / 74.8 = 128. */
    IN_TIME = 104,
    TOO_MANY = 136,
};

#define TOPOLOGY "fat-tree:10:3"

/* Node 0 gets what `senders` others send. */
static struct lant_batch_outcome meet(struct lab_run *run, uint32_t senders, uint32_t bytes,
                                      uint32_t entries, bool registers)
{
    const struct lant_batch_traffic traffic = {
        .nodes = NODES, .first = 1, .senders = senders, .each = EACH, .bytes = bytes};
    struct lant_node_config config = lant_config_of(run);
    struct lant_fabric_config fabric = lant_line_of(run);
    struct lab_plan plan;
    (void)snprintf(fabric.topology, sizeof(fabric.topology), TOPOLOGY);
    fabric.switch_cycles = lant_whole(run, "switch");
    config.rdma.registers.off = !registers || lab_word(run, "recv") == 0;
    config.rdma_target.entries = (uint16_t)entries;
    lant_batch_plan(&plan, &traffic, run->seed);
    const struct lant_batch_outcome outcome = lant_batch_run(run, &plan, &config, &fabric, 1);
    lab_plan_close(&plan);
    return outcome;
}

static void judge_table(struct lab_run *run)
{
    const uint32_t entries = lant_whole(run, "entries");
    const struct lant_batch_outcome told = meet(run, SENDERS, BYTES, entries, false);
    const struct lant_batch_outcome fits = meet(run, SENDERS, BYTES, entries, true);
    const struct lant_batch_outcome full = meet(run, SENDERS, BYTES, FEW_ENTRIES, true);
    lab_judge_absolute(lab_add_row(run, "LNI-W-incast.fits", "packets",
                                   "refused, if %u nodes send 2 KB to one with %u entries", SENDERS,
                                   entries),
                       0, (double)fits.refused, 0.5);
    lab_judge_range(lab_add_row(run, "LNI-W-incast.gain", "cycles",
                                "what registration saves of %.0f until a receiver knows",
                                told.mean),
                    200, LAB_UNBOUNDED, told.mean - fits.mean);
    lab_judge_range(
        lab_add_row(run, "LNI-W-incast.full", "",
                    "the slowest message with %u entries, of that without registration; "
                    "the mean: %.2f; %llu packets refused",
                    FEW_ENTRIES, lant_batch_share(full.mean, told.mean),
                    (unsigned long long)full.refused),
        1.3, LAB_UNBOUNDED, lant_batch_share(full.worst, told.worst));
}

static void judge_timers(struct lab_run *run)
{
    const uint32_t entries = lant_whole(run, "entries");
    const struct lant_batch_outcome in_time =
        meet(run, IN_TIME, LANT_PAYLOAD_BYTES_MAX, entries, true);
    const struct lant_batch_outcome too_many =
        meet(run, TOO_MANY, LANT_PAYLOAD_BYTES_MAX, entries, true);
    lab_judge_absolute(lab_add_row(run, "LNI-W-incast.in-time", "packets",
                                   "that went again, of %u senders of one packet at a time",
                                   IN_TIME),
                       0, (double)in_time.again, 0.5);
    lab_judge_range(lab_add_row(run, "LNI-W-incast.late", "packets",
                                "that went again, of %u senders; none was lost", TOO_MANY),
                    TOO_MANY, LAB_UNBOUNDED, (double)too_many.again);
}

static void incast(struct lab_run *run)
{
    judge_table(run);
    judge_timers(run);
}

static const struct lab_claim incast_claims[] = {
    {.id = "LNI-W-incast.fits",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.4: entries are short-lived; OC: no more than senders that are served in turn",
     .broken_by = "entries=8",
     .because = "the table fills"},
    {.id = "LNI-W-incast.gain",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.4: how far the benefits go in a large system; OC: the bound",
     .broken_by = "recv=unregistered",
     .because = "nothing is registered"},
    {.id = "LNI-W-incast.full",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.4: a full table drops packets; OC: the bound",
     .broken_by = "recv=unregistered",
     .because = "nothing needs an entry"},
    {.id = "LNI-W-incast.in-time",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.2.2.1: 10000 cycles; OC: 74.8 a packet, and the way there and back",
     .broken_by = "timeout=8000",
     .because = "timers end before the receiver's line has carried all"},
    {.id = "LNI-W-incast.late",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.2.2.1: 10000 cycles; OC: 74.8 a packet, and the way there and back",
     .broken_by = "timeout=12000",
     .because = "timers outlast the queue at the receiver's line"},
};

const struct lab_experiment lant_incast = {
    LANT_COMMON,
    .name = "lant/incast",
    .what = "many senders to one receiver: its registration table, and their timers",
    .uses = LANT_LINE_USES
    "switch rdma_setup ram rdma_receive rdma_done ack rows operations timers early_timer early "
    "t_gen engine_window timeout receiver cam entries escapes escape_time retries=7 "
    "recv=registered",
    LANT_CLAIMS(incast_claims),
    .quick = true,
    .run = incast,
    .explains =
        "Entries of the table are short-lived, as the document hopes: senders that the receiver's "
        "line serves in turn need few of them, and 24 senders with 2 entries have 150 packets of "
        "768 refused. Even then the mean is no worse than without registration, since what is "
        "refused makes room for the others; but a refused packet waits for its timer, and the "
        "slowest message takes 8 times as long. Timers come first: 128 packets at the receiver's "
        "line are 64 us, and from then on all senders send again what was not lost.",
};
