/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Address translation over connections: the tables' caches of the public model, which the document
 * does not give room to miss.
 */
#include <math.h>

#include "lab/csrna/experiments.h"

/* The caches of the public model. */
#define REGIONS 40000u
#define SCRIPTS 15360u /* Connections in its scripts, */
#define MOST    51200u /* and in the document. */
/* An entry has to survive the misses of a round. */
#define ROUNDS 1.0

struct translated {
    double rate;  /* Million messages a second. */
    double hits;  /* The share of the regions' look-ups that found them. */
    double reads; /* Entries of regions that were read, for each visit of a connection. */
};

static struct translated translated(struct lab_run *run, uint32_t qps)
{
    struct csrna_load load = csrna_load_of(run);
    load.policy = (enum csrna_policy)lab_word(run, "policy");
    load.placement = (enum csrna_placement)lab_word(run, "placement");
    load.framing = (enum csrna_framing)lab_word(run, "framing");
    load.bytes = (uint32_t)lab_value(run, "payload");
    load.oocap = (uint32_t)lab_value(run, "oocap");
    load.qps = qps;
    load.share = ROUNDS;
    const struct csrna_result result = csrna_run(run, &load);
    const double looks = (double)(result.mpt_hits + result.mpt_misses);
    return (struct translated){
        .rate = result.rate / CSRNA_MILLION,
        .hits = looks > 0 ? (double)result.mpt_hits / looks : 1,
        .reads = (double)result.mpt_misses / qps,
    };
}

/* Connections take turns, and each looks up its regions once a round. A region that was cached in
 * one round is still there in the next one if none of the misses between put it out: their share h
 * satisfies h = (1 - 1/room) ^ ((1 - h) regions). */
static double surviving(double room, double regions)
{
    double share = 0;
    for (int i = 0; i < 200; i++) {
        double stays = 1, each = 1 - 1 / room;
        for (uint32_t misses = (uint32_t)((1 - share) * regions); misses > 0; misses /= 2) {
            stays *= misses % 2 == 1 ? each : 1;
            each *= each;
        }
        share = stays;
    }
    return share;
}

static void draw(struct lab_run *run, const uint32_t *points, const struct translated *found,
                 uint32_t count, double free_rate)
{
    struct lab_figure *figure =
        lab_add_figure(run, "rate", "Address translation: message rate over connections",
                       "connections", "M/s", false);
    lab_add_level(figure, free_rate, "costs nothing");
    struct lab_series *rates = lab_add_curve(run, "regions and pages have to be read");
    for (uint32_t i = 0; i < count; i++) {
        lab_add_point(rates, points[i], found[i].rate, LAB_NOTHING);
    }
    (void)lab_add_figure(run, "hits", "Address translation: regions that are cached", "connections",
                         "share of the look-ups that find them", false);
    struct lab_series *hits = lab_add_curve(run, "regions");
    for (uint32_t i = 0; i < count; i++) {
        lab_add_point(hits, points[i], found[i].hits, LAB_NOTHING);
    }
}

static void translation(struct lab_run *run)
{
    static const uint32_t points[] = {SCRIPTS, 20480, 25600, 38400, MOST};
    enum {
        COUNT = COUNT_OF(points)
    };
    struct translated found[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        found[i] = translated(run, points[i]);
        lab_progress(run, (i + 1.0) / COUNT);
    }
    if (run->failure[0] != '\0') {
        return;
    }
    const struct translated *scripts = &found[0], *most = &found[COUNT - 1];
    lab_judge_range(lab_add_row(run, "CSR-T-fit", "M/s",
                                "with the %u connections of the public scripts, whose regions fit",
                                SCRIPTS),
                    66, LAB_UNBOUNDED, scripts->rate);
    const double missed = 2 * (1 - surviving(REGIONS, 2.0 * MOST));
    lab_judge_relative(lab_add_row(run, "CSR-T-reads", "",
                                   "entries of regions read for each batch of a connection, %u of "
                                   "them",
                                   MOST),
                       missed, most->reads, 0.03);
    const double read_ns = lab_value(run, "read"), batch = (lab_value(run, "batch") + 1) / 2;
    lab_judge_relative(lab_add_row(run, "CSR-T-rate", "M/s",
                                   "with %u connections: each entry of a region and of a page is "
                                   "waited for",
                                   MOST),
                       1000 * batch / (2 * missed * read_ns), most->rate, 0.1);
    draw(run, points, found, COUNT, lab_value(run, "clock") * 1000 / lab_value(run, "processing"));
}

static const struct lab_claim claims[] = {
    {.id = "CSR-T-fit",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "CSR-A1",
     .source = "csRNA-gem5",
     .broken_by = "mpt=10000 | mtt=10000",
     .because = "30,720 regions do not fit any more, or their pages do not"},
    {.id = "CSR-T-reads",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "csRNA-gem5",
     .broken_by = "regions=one | mpt=80000",
     .because = "all connections' data have one entry; the cache is twice as large"},
    {.id = "CSR-T-rate",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "csRNA-gem5",
     .broken_by = "mpt=0 | regions=one",
     .because = "translation costs nothing; half of the entries are needed"},
};

CSRNA_EXPERIMENT(
    csrna_translation, "csrna/translation", "regions and pages whose entries are not cached",
    CSRNA_LOAD_USES " " CSRNA_MACHINE_USES " " CSRNA_RATE_USES " " CSRNA_TRANSLATION_USES
                    " mpt=40000 policy placement framing payload oocap",
    claims, false, translation,
    "Address translation is one of the NIC's four components (4.1), of which the document says no "
    "size and no time. The public model has caches of 40,000 regions and 50,000 pages, which its "
    "scripts' 15,360 connections do not fill. Each connection has a region for its send queue and "
    "one for its data, so the document's 51,200 connections need 102,400 entries, and nearly each "
    "batch misses both: 50,000 connections at the full rate (abstract) need translation that does "
    "not miss, and all other experiments have that (mpt=0). One region for all data (regions=one) "
    "halves what has to be cached. One entry is read at a time, as in the public model; an entry's "
    "bytes are our choice, and the rows do not depend on them. Where a WRITE's bytes go at a "
    "client is not looked up: a client has a tenth of the connections.");
