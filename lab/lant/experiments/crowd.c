/* SPDX-License-Identifier: BSD-2-Clause
 *
 * An all-to-all and a halo exchange of 1,024 nodes, where bits are flipped: every byte is right,
 * and each operation is reported once. All of it is prediction: the thesis had a handful of boards.
 */
#include <stdio.h>

#include "lab/lant/crowd.h"
#include "lab/lant/load.h"

/* Judges a count that must be 0. */
static void judge_none(struct lab_run *run, const char *claim, enum lant_network_kind kind,
                       const char *unit, uint64_t measured, const char *what)
{
    char id[LAB_ID_BYTES];
    (void)snprintf(id, sizeof(id), "%s/%s", claim, lant_network_ids[kind]);
    lab_judge_absolute(lab_add_row(run, id, unit, "%s of %u nodes: %s", lant_network_names[kind],
                                   lant_whole(run, "crowd"), what),
                       0, (double)measured, 0);
}

/* Judges that something has happened; chance decides how often. */
static void judge_some(struct lab_run *run, const char *which, enum lant_network_kind kind,
                       uint64_t measured, const char *what)
{
    char id[LAB_ID_BYTES];
    (void)snprintf(id, sizeof(id), "LNI-W-struck/%s-%s", which, lant_network_ids[kind]);
    lab_judge_range(lab_add_row(run, id, "", "%s: %s", lant_network_names[kind], what), 1,
                    LAB_UNBOUNDED, (double)measured);
}

/* The worlds note what came; this is what became of it. */
static void note(struct lab_run *run, const struct lant_crowd_outcome *outcome)
{
    lab_note(run, outcome->bytes);
    lab_note(run, outcome->wrong);
    lab_note(run, outcome->miscounted);
    lab_note(run, outcome->failed);
    lab_note(run, outcome->kept);
}

static void crowd(struct lab_run *run)
{
    for (uint32_t i = 0; i < LANT_KINDS; i++) {
        const enum lant_network_kind kind = (enum lant_network_kind)i;
        const struct lant_crowd_outcome all = lant_crowd_exchange(run, kind);
        lab_progress(run, (2.0 * i + 1) / (2 * LANT_KINDS));
        const struct lant_crowd_outcome halo = lant_crowd_halo(run, kind);
        lab_progress(run, (2.0 * i + 2) / (2 * LANT_KINDS));
        note(run, &all);
        note(run, &halo);
        judge_none(run, "LNI-W-all", kind, "bytes", all.wrong, "wrong bytes behind an all-to-all");
        judge_none(run, "LNI-W-all-once", kind, "", all.miscounted + all.failed + all.kept,
                   "transfers told of not just once, or not forgotten");
        judge_none(run, "LNI-W-halo", kind, "bytes", halo.wrong, "wrong bytes behind halos");
        judge_none(run, "LNI-W-halo-once", kind, "", halo.miscounted + halo.failed + halo.kept,
                   "accesses and transfers done or told of not just once");
        judge_some(run, "repaired", kind, all.repaired + halo.repaired, "flits repaired");
        judge_some(run, "refused", kind, all.nacks + halo.nacks, "packets refused for their CRC");
        judge_some(run, "again", kind, all.again + halo.again,
                   "requests that came again, since their answer was lost");
    }
}

static const struct lab_claim crowd_claims[] = {
    {.id = "LNI-W-all",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.2.1.1: no data are written before a CRC; 5.2.3: what fails goes again",
     .broken_by = "crowd=216 crc=believed | crowd=216 retries=0",
     .because = "damaged packets go to memory, or are given up"},
    {.id = "LNI-W-all-once",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.2: a notification at the receiver; 5.2.3: and at the sender; OC: once",
     .broken_by = "crowd=216 rings=off | crowd=216 ring=8 | crowd=216 retries=0",
     .because = "what comes again is taken for new, or is given up"},
    {.id = "LNI-W-halo",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.2.1.1: no data are written before a CRC; 4.1.4.1: programs wait for their stores",
     .broken_by = "crowd=216 crc=believed | crowd=216 retries=0 | crowd=216 fence=off",
     .because = "as above; or a flag is seen before what it stands for"},
    {.id = "LNI-W-halo-once",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "4.5: duplicates of what is complete must not be written; OC: each is done once",
     .broken_by = "crowd=216 rings=off | crowd=216 ring=8 | crowd=216 retries=0",
     .because = "a store that comes again is done again, or is given up"},
    {.id = "LNI-W-struck",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: so many bits are flipped that some hit",
     .broken_by = "crowd=216 bit_errors=0",
     .because = "then nothing is damaged"},
};

const struct lab_experiment lant_crowd = {
    LANT_COMMON,
    .name = "lant/crowd",
    .what = "all-to-all and halos of 1,024 nodes with bit errors: every byte right, all told once",
    .uses = LANT_CROWD_USES LANT_HALO_USES "retries=7 ring=1024",
    LANT_CLAIMS(crowd_claims),
    .run = crowd,
    .explains =
        "Every node sends a block to every other, in an order of its own; then the nodes are a "
        "grid whose cells are computed step by step from their neighbours', which are transferred "
        "in one dimension, stored behind a fence in the next and loaded in the third. Bits are "
        "flipped on every line, far more often than the document measures. A model without a "
        "network computes what all memory must hold in the end. Receivers remember 1,024 stores "
        "and "
        "operations instead of 256: as fast as stores come here, 256 are forgotten before a sender "
        "whose answer was lost sends again. With 512 nodes and 256 (--set crowd=512 ring=256) one "
        "thing in 800,000 is done or told of twice.",
};
