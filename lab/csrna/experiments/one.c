/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The results of one set of parameters, and the memory of the chip (table 1, formula 2).
 */
#include <math.h>

#include "hardware/csrna/on_chip.h"
#include "lab/csrna/experiments.h"
#include "lab/reading.h"

#define KILOBYTE 1024.0
#define TABLE    "CSR-A15"

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

struct chip {
    struct on_chip_widths widths;
    uint32_t oocap, cache, context;
    double megabyte; /* In bytes, as table 1 has it. */
};

static struct on_chip_memory memory_of(const struct chip *chip, uint32_t qps)
{
    return on_chip_memory(&chip->widths, chip->oocap, chip->cache, chip->context, qps);
}

/* Memory over connections: csRNA, and NICs that keep every context on the chip. */
static void add_table(struct lab_run *run, const struct chip *chip)
{
    struct lab_figure *figure = lab_add_figure(
        run, "table-1", "Table 1: memory of the chip over connections", "connections", "MB", true);
    lab_add_mark(figure, 127, 32 * KILOBYTE / chip->megabyte, "eRNIC: 32 KB");
    lab_add_mark(figure, 10000, 2.5, "SRNIC: 2.5 MB");
    lab_add_mark(figure, SQ_TABLE_MAX, 2, "ConnectX-5: 2 MB");
    lab_add_mark(figure, SQ_TABLE_MAX, 1.4, "csRNA: 1.4 MB");
    struct lab_series *ours = lab_add_curve(run, "csRNA");
    for (uint32_t qps = 128; qps <= SQ_TABLE_MAX; qps *= 2) {
        lab_add_point(ours, qps, (double)memory_of(chip, qps).total_bytes / chip->megabyte,
                      LAB_NOTHING);
    }
    struct lab_series *all = lab_add_curve(run, "every context on the chip");
    for (uint32_t qps = 128; qps <= 8192; qps *= 2) {
        lab_add_point(all, qps, (double)qps * chip->context / chip->megabyte, LAB_NOTHING);
    }
    lab_add_point(all, 10000, 10000.0 * chip->context / chip->megabyte, LAB_NOTHING);
}

/* Each is judged to the last digit that the document prints. */
static void on_chip(struct lab_run *run)
{
    const struct chip chip = {
        .widths = widths_of(run),
        .oocap = (uint32_t)lab_value(run, "oocap"),
        .cache = (uint32_t)lab_value(run, "cache"),
        .context = (uint32_t)lab_value(run, "context"),
        .megabyte = lab_value(run, "megabyte"),
    };
    const struct on_chip_memory memory = memory_of(&chip, SQ_TABLE_MAX);
    add_table(run, &chip);
    lab_judge_absolute(lab_add_row(run, "CSR-A14", "B", "out-of-order answering, oocap 1"), 40,
                       on_chip_order_bytes(&chip.widths), 0);
    lab_judge_absolute(
        lab_add_row(run, "CSR-A14.half", "KB", "out-of-order answering, oocap %u", chip.oocap), 0.5,
        (double)memory.order_bytes / KILOBYTE, 0.05);
    lab_judge_absolute(lab_add_row(run, "CSR-A14.table", "MB", "all, %u connections, %u contexts",
                                   SQ_TABLE_MAX, chip.cache),
                       1.4, (double)memory.total_bytes / chip.megabyte, 0.05);
    lab_judge_absolute(lab_add_row(run, "CSR-A15", "MB", "SRNIC: contexts of 10,000 connections"),
                       2.5, 10000.0 * chip.context / chip.megabyte, 0.05);
    lab_judge_absolute(lab_add_row(run, "CSR-A15.eRNIC", "KB", "contexts of 127 connections"), 32,
                       127.0 * chip.context / KILOBYTE, 0.5);
}

static const struct lab_claim on_chip_claims[] = {
    {.id = "CSR-A14",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "4.7; formula 2",
     .broken_by = "index_bits=8",
     .because = "an index is as wide in the pending FIFO as in the index FIFO"},
    {.id = "CSR-A14.half",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .source = "5.3",
     .broken_by = "oocap=64",
     .because = "four times the capacity",
     .not_reproduced = "the document's own formula 2 gives 640 B for a capacity of 16, not about "
                       "0.5 KB"},
    {.id = "CSR-A14.table",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = TABLE,
     .source = "table 1",
     .broken_by = "cache=3000 | megabyte=1048576",
     .because = "ten times the contexts; an MB is 2^20 bytes"},
    {.id = TABLE,
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "table 1; 4.7: 256 bytes",
     .broken_by = "context=512 | megabyte=1000000 | megabyte=1048576",
     .because = "contexts are twice as long; an MB is 10^6 or 2^20 bytes"},
    {.id = "CSR-A15.eRNIC",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .source = "table 1; 4.7: 256 bytes",
     .broken_by = "context=512",
     .because = "contexts are twice as long"},
};

/* -- One point ----------------------------------------------------------------------------------*/

static void add_readings(struct lab_run *run, const struct csrna_load *load,
                         const struct csrna_result *result)
{
    const struct qpc_counters *server = &result->server;
    const double asked = (double)(server->hits + server->misses + server->type_2);
    const struct lab_outcome outcome = {
        .gbps = 8e-9 * load->bytes * result->rate,
        .rate = result->rate / CSRNA_MILLION,
        .latency = &result->latency,
        .latency_of = "from the post of a batch to its completion",
        .link = result->link,
        .link_of = "of its time, the busiest output of the switch",
        .bus = fmax(result->pcie_in, result->pcie_out),
        .bus_of = "of its time, the server's PCIe, the busier direction",
        .queue = &result->queue,
        .queue_of = "messages before the server's requester",
        .hits = asked > 0 ? (double)server->hits / asked : LAB_NOTHING,
        .hits_of = "requests for a context of the server that found it cached",
        .lost = result->lost,
        .lost_of = "packets that the switch lost",
        .again = result->resent,
        .again_of = "packets that the server sent again",
    };
    lab_add_outcome(run, &outcome);
    lab_add_reading(run, "fetches", "", (double)server->fetches, "contexts that the server read");
    lab_add_reading(run, "pending_mean", "",
                    result->pending.looks == 0
                        ? LAB_NOTHING
                        : (double)result->pending.sum / (double)result->pending.looks,
                    "requests of the server that wait for a context, the mean");
    lab_add_reading(run, "pending_max", "", (double)result->pending.most, "the most of them");
    const double looks = (double)(result->mpt_hits + result->mpt_misses);
    lab_add_reading(run, "region_hits", "",
                    looks > 0 ? (double)result->mpt_hits / looks : LAB_NOTHING,
                    "share of the regions looked up that were on the chip (mpt=)");
    lab_add_reading(run, "page_misses", "", (double)result->mtt_misses, "pages that were not");
    lab_add_reading(run, "pcie_in", "", result->pcie_in, "share of its time, to the NIC");
    lab_add_reading(run, "pcie_out", "", result->pcie_out, "share of its time, from the NIC");
}

static void one(struct lab_run *run)
{
    struct csrna_load load = csrna_load_of(run);
    load.policy = (enum csrna_policy)lab_word(run, "policy");
    load.placement = (enum csrna_placement)lab_word(run, "placement");
    load.framing = (enum csrna_framing)lab_word(run, "framing");
    load.reads = lab_word(run, "work") != 0;
    load.inward = lab_word(run, "direction") != 0;
    load.qps = (uint32_t)lab_value(run, "qps");
    load.bytes = (uint32_t)lab_value(run, "payload");
    load.oocap = (uint32_t)lab_value(run, "oocap");
    const struct csrna_result result = csrna_run(run, &load);
    if (!isfinite(result.rate)) {
        return;
    }
    add_readings(run, &load, &result);
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
    {.id = "CSR-A17.bytes",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC",
     .broken_by = "corrupt=0.001",
     .because = "the switch changes bytes"},
    {.id = "CSR-A17.order",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "4.3.2: the order of one queue pair",
     .broken_by = "loss=0.001",
     .because = "the switch loses packets"},
    {.id = "CSR-A17.state",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC",
     .broken_by = "write_back=off",
     .because = "changed contexts are forgotten when they go"},
};

CSRNA_EXPERIMENT(csrna_on_chip, "csrna/on-chip", "memory of the chip that connections take",
                 "oocap cache context fifo_index_bits qpn_bits channel_bits index_bits count_bits "
                 "megabyte",
                 on_chip_claims, true, on_chip,
                 "Formula 2's 40 bytes are the sum of the fields that the document names. It gives "
                 "the width of one, two others follow, and two were fitted, to 6 bits each. A "
                 "connection's send queue takes 10 bytes, a cached context 256. Table 1's figures "
                 "for eRNIC and SRNIC are 256 bytes for each connection, if an MB is 1,024,000 "
                 "bytes; what ConnectX-5's 2 MB hold is not known.");
CSRNA_EXPERIMENT(
    csrna_one, "csrna/one", "one point, as the parameters say",
    CSRNA_LOAD_USES " " CSRNA_MACHINE_USES " " CSRNA_RATE_USES " " CSRNA_TRANSLATION_USES
                    " " CSRNA_POLICY_USES
                    " mpt policy placement framing work direction qps payload oocap",
    one_claims, true, one,
    "For exploring, with every byte checked, also with loss (loss=0.001); a trace "
    "shows who waits for whose context. Acknowledgements need no context at the sender "
    "(acks=context gives them one), and nobody waits until a changed context is "
    "written.");
