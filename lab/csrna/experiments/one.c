/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The results of one set of parameters, and the memory of the chip (table 1, formula 2).
 */
#include <math.h>

#include "hardware/csrna/on_chip.h"
#include "lab/csrna/experiments.h"

#define KILOBYTE 1024.0
#define MEGABYTE 1048576.0

/* -- Memory of the chip -------------------------------------------------------------------------*/

static struct on_chip_widths widths_of(struct lab_run *run)
{
    return (struct on_chip_widths){
        .fifo_index = (uint32_t)lab_value(run, "fifo_index_bits"),
        .qpn = (uint32_t)lab_value(run, "qpn_bits"),
        .channel = (uint32_t)lab_value(run, "channel_bits"),
        .index = (uint32_t)lab_value(run, "index_bits"),
        .count = (uint32_t)lab_value(run, "count_bits"),
    };
}

/* Memory over connections: csRNA, and NICs that keep every context on the chip. */
static void add_table(struct lab_run *run, const struct on_chip_widths *widths, uint32_t oocap,
                      uint32_t cache, uint32_t context)
{
    struct lab_figure *figure = lab_add_figure(
        run, "table-1", "Table 1: memory of the chip over connections", "connections", "MB", true);
    lab_add_mark(figure, 127, 32 * KILOBYTE / MEGABYTE, "eRNIC");
    lab_add_mark(figure, 10000, 2.5, "SRNIC");
    lab_add_mark(figure, SQ_TABLE_MAX, 2, "ConnectX-5");
    lab_add_mark(figure, SQ_TABLE_MAX, 1.4, "csRNA");
    struct lab_series *ours = lab_add_curve(run, "csRNA");
    for (uint32_t qps = 128; qps <= SQ_TABLE_MAX; qps *= 2) {
        const struct on_chip_memory memory = on_chip_memory(widths, oocap, cache, context, qps);
        lab_add_point(ours, qps, (double)memory.total_bytes / MEGABYTE, LAB_NOTHING);
    }
    struct lab_series *all = lab_add_curve(run, "every context on the chip");
    for (uint32_t qps = 128; qps <= 16384; qps *= 2) {
        lab_add_point(all, qps, (double)qps * context / MEGABYTE, LAB_NOTHING);
    }
}

static void on_chip(struct lab_run *run)
{
    const uint32_t oocap = (uint32_t)lab_value(run, "oocap");
    const uint32_t cache = (uint32_t)lab_value(run, "cache");
    const uint32_t context = (uint32_t)lab_value(run, "context");
    const struct on_chip_widths widths = widths_of(run);
    const struct on_chip_memory memory =
        on_chip_memory(&widths, oocap, cache, context, SQ_TABLE_MAX);
    add_table(run, &widths, oocap, cache, context);
    lab_judge_absolute(lab_add_row(run, "CSR-A14", "B", "out-of-order answering, oocap 1"), 40,
                       on_chip_order_bytes(&widths), 0);
    lab_judge_relative(
        lab_add_row(run, "CSR-A14.half", "B", "out-of-order answering, oocap %u", oocap),
        0.5 * KILOBYTE, (double)memory.order_bytes, 0.1);
    lab_judge_relative(lab_add_row(run, "CSR-A14.table", "MB", "all, %u connections, %u contexts",
                                   SQ_TABLE_MAX, cache),
                       1.4, (double)memory.total_bytes / CSRNA_MILLION, 0.02);
    lab_judge_relative(lab_add_row(run, "CSR-A15/eRNIC", "KB", "contexts of 127 connections"), 32,
                       127.0 * context / KILOBYTE, 0.03);
    lab_judge_relative(lab_add_row(run, "CSR-A15/SRNIC", "MB", "contexts of 10,000 connections"),
                       2.5, 10000.0 * context / MEGABYTE, 0.03);
}

static const struct lab_claim on_chip_claims[] = {
    {"CSR-A14", LAB_PRINTED, LAB_FITTED, NULL, "4.7, formula 2", "index_bits=8",
     "an index is as wide in the pending FIFO as in the index FIFO", NULL},
    {"CSR-A14.half", LAB_PRINTED, LAB_ARITHMETIC, NULL, "5.3", "oocap=64",
     "four times the capacity",
     "The document's own formula gives 640 B for a capacity of 16, not about 0.5 KB."},
    {"CSR-A14.table", LAB_PRINTED, LAB_ARITHMETIC, NULL, "table 1", "cache=3000",
     "ten times the contexts", NULL},
    {"CSR-A15", LAB_PRINTED, LAB_ARITHMETIC, NULL, "table 1, 2.1", "context=512",
     "contexts are twice as long", NULL},
};

/* -- One point ----------------------------------------------------------------------------------*/

static void one(struct lab_run *run)
{
    struct csrna_load load = csrna_load_of(run);
    load.policy = (enum csrna_policy)lab_word(run, "policy");
    load.placement = (enum csrna_placement)lab_word(run, "placement");
    load.framing = (enum csrna_framing)lab_word(run, "framing");
    load.reads = lab_word(run, "work") != 0;
    load.qps = (uint32_t)lab_value(run, "qps");
    load.bytes = (uint32_t)lab_value(run, "payload");
    load.oocap = (uint32_t)lab_value(run, "oocap");
    const struct csrna_result result = csrna_run(run, &load);
    lab_judge_absolute(
        lab_add_row(run, "CSR-A17.bytes", "messages", "with a wrong byte, of %llu at %.4g M/s",
                    (unsigned long long)result.messages, result.rate / CSRNA_MILLION),
        0, (double)result.wrong, 0);
    lab_judge_absolute(lab_add_row(run, "CSR-A17.order", "packets", "out of order or repeated"), 0,
                       (double)result.disorder, 0);
    lab_judge_absolute(
        lab_add_row(run, "CSR-A17.state", "contexts", "cached, and not the engine's state"), 0,
        (double)result.stale, 0);
}

static const struct lab_claim one_claims[] = {
    {"CSR-A17.bytes", LAB_PREDICTED, LAB_MECHANISM, NULL, "none", "corrupt=0.001",
     "the switch changes bytes", NULL},
    {"CSR-A17.order", LAB_PREDICTED, LAB_MECHANISM, NULL, "4.3.2", "loss=0.001",
     "the switch loses packets", NULL},
    {"CSR-A17.state", LAB_PREDICTED, LAB_MECHANISM, NULL, "4.3", "write_back=off",
     "changed contexts are forgotten when they go", NULL},
};

CSRNA_EXPERIMENT(csrna_on_chip, "csrna/on-chip", "memory of the chip that connections take",
                 "oocap cache context fifo_index_bits qpn_bits channel_bits index_bits count_bits",
                 on_chip_claims, true, on_chip,
                 "Formula 2's 40 bytes are the sum of the fields that the document names. It gives "
                 "the width of one, two others follow, and two were fitted, to 6 bits each. A "
                 "connection's send queue takes 10 bytes, a cached context 256. Table 1's figures "
                 "for eRNIC and SRNIC are 256 bytes for each connection; what ConnectX-5's 2 MB "
                 "hold is not known.");
CSRNA_EXPERIMENT(
    csrna_one, "csrna/one", "one point, as the parameters say",
    CSRNA_LOAD_USES " " CSRNA_MACHINE_USES " " CSRNA_RATE_USES
                    " policy placement framing work qps payload oocap",
    one_claims, true, one,
    "For exploring, with every byte checked, also with loss (loss=0.001); a trace "
    "shows who waits for whose context. Acknowledgements need no context at the sender "
    "(acks=context gives them one), and nobody waits until a changed context is "
    "written.");
