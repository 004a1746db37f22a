/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How often a receiver has no context left for a block, with how many active (A23).
 */
#include "lab/exanest/experiments.h"

#include "hardware/exanest/context_table.h"

#define ROW_TRIALS   20000u
#define CURVE_TRIALS 1000u
#define PROBES       16u /* New blocks that are tried with each set of active ones. */
#define WINDOW       4u  /* Blocks of a source, if TIDs are given out in order. */

enum tids {
    TIDS_RANDOM,
    TIDS_IN_ORDER,
};

struct crowd {
    struct exanest_context_parameters contexts;
    enum tids tids;
};

static struct exanest_context_parameters table_of(uint32_t word, uint32_t hash)
{
    static const uint16_t sets[] = {16, 32, 1};
    return (struct exanest_context_parameters){
        .sets = sets[word],
        .ways = (uint16_t)(EXANEST_CONTEXTS_MAX / sets[word]),
        .index = hash == 0 ? EXANEST_SET_FOLD : EXANEST_SET_MODULO};
}

/* Any of 1,024 FPGAs. */
static uint32_t any_source(struct prng *prng)
{
    return exanest_coordinate((struct exanest_place){.x = (uint8_t)prng_below(prng, 8),
                                                     .y = (uint8_t)prng_below(prng, 8),
                                                     .z = (uint8_t)prng_below(prng, 4),
                                                     .fpga = (uint8_t)prng_below(prng, 4)});
}

/* The first packet of a block that the table does not know; the block that comes i-th. */
static struct exanest_mark new_block(const struct crowd *crowd,
                                     const struct exanest_context_table *table, uint32_t *source,
                                     uint32_t i, struct prng *prng)
{
    const bool ordered = crowd->tids == TIDS_IN_ORDER;
    struct exanest_mark mark = {.sequence = 1, .first = true};
    do {
        if (!ordered || i % WINDOW == 0) {
            *source = any_source(prng);
        }
        mark.source = *source;
        mark.tid = (uint16_t)(ordered ? i % WINDOW : prng_below(prng, EXANEST_TIDS));
    } while (exanest_context_find(table, mark.source, mark.tid) != NULL &&
             (!ordered || i % WINDOW == 0));
    return mark;
}

/* With `active` blocks under way: the share of new ones that are refused. */
static double refused(struct sim *sim, const struct crowd *crowd, uint32_t active, uint32_t trials)
{
    struct exanest_context_table table;
    struct exanest_judgement judgement;
    uint64_t count = 0;
    for (uint32_t trial = 0; trial < trials; trial++) {
        uint32_t source = 0;
        exanest_context_init(&table, &crowd->contexts);
        for (uint32_t i = 0; i < active; i++) {
            const struct exanest_mark mark = new_block(crowd, &table, &source, i, &sim->prng);
            exanest_context_judge(&table, &mark, &judgement);
            exanest_context_apply(&table, &judgement);
        }
        for (uint32_t i = 0; i < PROBES; i++) {
            const struct exanest_mark mark = new_block(crowd, &table, &source, i, &sim->prng);
            exanest_context_judge(&table, &mark, &judgement);
            count += judgement.meaning == EXANEST_NO_CONTEXT;
        }
    }
    sim_note(sim, count);
    return (double)count / trials / PROBES;
}

/* P(Bin(n, 1 / sets) >= ways), term by term: the same bits everywhere. */
static double binomial(uint32_t n, uint32_t sets, uint32_t ways)
{
    const double p = 1.0 / sets;
    if (sets == 1) {
        return n >= ways ? 1 : 0;
    }
    double term = 1, below = 0;
    for (uint32_t i = 0; i < n; i++) {
        term *= 1 - p;
    }
    for (uint32_t k = 0; k < ways && k <= n; k++) {
        below += term;
        term *= (double)(n - k) / (k + 1) * p / (1 - p);
    }
    return 1 - below;
}

static void draw(struct lab_run *run, struct sim *sim)
{
    static const struct {
        const char *name;
        uint32_t table, hash;
        enum tids tids;
        bool uniform;
    } curves[] = {
        {"16 sets of 16 ways", 0, 0, TIDS_RANDOM, true},
        {"32 sets of 8 ways", 1, 0, TIDS_RANDOM, true},
        {"one set of 256 ways", 2, 0, TIDS_RANDOM, true},
        {"16 x 16, four TIDs of each source", 0, 0, TIDS_IN_ORDER, true},
        {"16 x 16, the same, set = TID modulo 16", 0, 1, TIDS_IN_ORDER, false},
    };
    lab_add_figure(run, "share", "Blocks for which there is no context", "active blocks",
                   "share of new blocks", false);
    for (uint32_t c = 0; c < COUNT_OF(curves); c++) {
        const struct crowd crowd = {table_of(curves[c].table, curves[c].hash), curves[c].tids};
        struct lab_series *series = lab_add_curve(run, "%s", curves[c].name);
        for (uint32_t n = 32; n <= 256; n += 16) {
            /* Chance has no part in it if there is one set. */
            const uint32_t trials = crowd.contexts.sets == 1 ? 1 : CURVE_TRIALS;
            lab_add_point(series, n, refused(sim, &crowd, n, trials),
                          curves[c].uniform ? binomial(n, crowd.contexts.sets, crowd.contexts.ways)
                                            : LAB_NOTHING);
        }
        lab_progress(run, 0.5 + 0.1 * c);
    }
}

static void contexts(struct lab_run *run)
{
    static const struct {
        const char *row;
        uint32_t active;
        double bound; /* Three standard errors. */
    } judged[] = {
        {"EXA-A23/128", 128, 0.1}, {"EXA-A23/160", 160, 0.03}, {"EXA-A23/192", 192, 0.03}};
    const struct crowd crowd = {table_of(lab_word(run, "table"), lab_word(run, "hash")),
                                (enum tids)lab_word(run, "tids")};
    struct sim sim;
    struct sim_trace *trace;
    struct sim_capture *capture;
    lab_world_begin(run, &sim, &trace, &capture, PCAPNG_LINK_EXANEST);
    for (uint32_t i = 0; i < COUNT_OF(judged); i++) {
        const uint32_t n = judged[i].active;
        lab_judge_relative(lab_add_row(run, judged[i].row, "%", "refused with %u active blocks", n),
                           100 * binomial(n, EXANEST_CONTEXT_SETS, EXANEST_CONTEXT_WAYS),
                           100 * refused(&sim, &crowd, n, ROW_TRIALS), judged[i].bound);
    }
    lab_progress(run, 0.5);
    draw(run, &sim);
    lab_world_end(run, &sim, trace, capture);
}

static const struct lab_claim contexts_claims[] = {
    {.id = "EXA-A23",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "6.1: 256 contexts in 16 ways: P(Bin(n, 1/16) >= 16)",
     .broken_by = "table=32x8 | table=1x256 | hash=modulo tids=order",
     .because = "sets are smaller, or there is one only, or blocks crowd in few of them"},
};

const struct lab_experiment exanest_contexts = {
    .name = "exanest/contexts",
    .what = "blocks for which a receiver has no context",
    EXANEST_COMMON,
    .uses = "table hash tids",
    EXANEST_CLAIMS(contexts_claims),
    .run = contexts,
    .explains =
        "The document gives 256 contexts in 16 ways, and not how a set is chosen. With our hash, "
        "blocks of many sources fall as if by chance, so 128 active blocks, half of the places, "
        "already refuse one new block of 160. The four neighbouring TIDs that a young source gives "
        "to its blocks never share a set, which makes it better than chance. If the TID alone "
        "chose the set, sources that begin with TID 0 would crowd in four of 16 sets. A sender "
        "that is refused waits 20 us at first and tries again. Each figure is from the context "
        "table itself, not from a machine with as many senders; the standard error of the first "
        "row is 3 %, of the others less than 1 %.",
};
