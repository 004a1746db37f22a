/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Falsification: does each row break without the settings on which its claim rests?
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tools/lab.h"

enum {
    SETTINGS_MAX = 64 /* Different settings that break rows of one experiment. */
};

/* The runs of one experiment: the first as it is, then one for each of the different settings. */
struct trial {
    const struct lab_experiment *experiment;
    char settings[SETTINGS_MAX][LAB_TEXT_BYTES];
    uint32_t setting_count;
    uint32_t first; /* Index of its first run. */
};

enum outcome {
    BREAKS,
    NOT_REPRODUCED, /* Known, and said by its claim: there is nothing to break. */
    SURVIVES,
    MISSING, /* The run without the mechanism does not have the row. */
    NOT_OK,  /* The row is not as its claim says to begin with. */
};

static const char *const outcomes[] = {"breaks", "not reproduced", "SURVIVES", "MISSING", "NOT OK"};

/* -- Trials -------------------------------------------------------------------------------------*/

static uint32_t setting_index(const struct trial *trial, const char *settings)
{
    uint32_t i = 0;
    while (i < trial->setting_count && strcmp(trial->settings[i], settings) != 0) {
        i++;
    }
    return i;
}

static void plan_claim(struct trial *trial, const struct lab_claim *claim)
{
    char settings[LAB_TEXT_BYTES];
    for (const char *left = claim->broken_by;
         lab_next_alternative(&left, settings, sizeof(settings));) {
        if (setting_index(trial, settings) == trial->setting_count) {
            CHECK(trial->setting_count < SETTINGS_MAX);
            memcpy(trial->settings[trial->setting_count++], settings, sizeof(settings));
        }
    }
}

static void plan(struct trial *trial, const struct lab_experiment *experiment, uint32_t first)
{
    *trial = (struct trial){.experiment = experiment, .first = first};
    for (uint32_t i = 0; i < experiment->claim_count; i++) {
        if (experiment->claims[i].not_reproduced == NULL) {
            plan_claim(trial, &experiment->claims[i]);
        }
    }
}

static bool prepare(const struct trial *trial, uint64_t seed, struct lab_run *runs)
{
    char error[2 * LAB_TEXT_BYTES];
    lab_prepare(&runs[trial->first], trial->experiment, seed);
    for (uint32_t i = 0; i < trial->setting_count; i++) {
        struct lab_run *run = &runs[trial->first + 1 + i];
        lab_prepare(run, trial->experiment, seed);
        if (!lab_set_all(run, trial->settings[i], error, sizeof(error))) {
            fprintf(stderr, "nonic: %s: a claim is broken by '%s': %s\n", trial->experiment->name,
                    trial->settings[i], error);
            return false;
        }
    }
    return true;
}

/* -- Results ------------------------------------------------------------------------------------*/

static const struct lab_row *row_named(const struct lab_run *run, const char *id)
{
    for (uint32_t i = 0; i < run->row_count; i++) {
        if (strcmp(run->rows[i].id, id) == 0) {
            return &run->rows[i];
        }
    }
    return NULL;
}

/* `broken` is the row's counterpart in the run without its mechanism, or NULL. */
static enum outcome judge(const struct lab_run *run, const struct lab_row *row,
                          const struct lab_row *broken)
{
    const enum lab_verdict verdict = lab_verdict_of(run, row);
    if (verdict == LAB_NOT_REPRODUCED) {
        return NOT_REPRODUCED;
    }
    if (verdict != LAB_OK) {
        return NOT_OK;
    }
    if (broken == NULL) {
        return MISSING;
    }
    return broken->within ? SURVIVES : BREAKS;
}

static void print_used(double used)
{
    if (isfinite(used)) {
        printf(" %9.0f %%", 100 * used);
    } else {
        printf(" %9s %%", "inf");
    }
}

/* `broken_by` is one alternative of the claim's, or empty. */
static void print_row(const struct lab_run *run, const struct lab_row *row,
                      const struct lab_row *broken, const char *broken_by, enum outcome outcome)
{
    const struct lab_claim *claim = lab_claim_of(run, row);
    char published[48];
    lab_published_text(row, published, sizeof(published));
    printf("%-20s %-10s %14s %12.6g", row->id, lab_ground_text(claim->ground), published,
           row->measured);
    print_used(lab_tolerance_used(row));
    if (broken != NULL) {
        printf(" %12.6g", broken->measured);
        print_used(lab_tolerance_used(broken));
    } else {
        printf(" %12s %11s", "-", "");
    }
    printf("  %-32s %s\n", broken_by, outcomes[outcome]);
}

static json_t *row_json(const struct lab_run *run, const struct lab_row *row,
                        const struct lab_row *broken, const char *broken_by, enum outcome outcome)
{
    const struct lab_claim *claim = lab_claim_of(run, row);
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:s}", "experiment",
                     run->experiment->name, "id", row->id, "ground", lab_ground_text(claim->ground),
                     "broken_by", broken_by, "measured", lab_json_number(row->measured),
                     "tolerance_used", lab_json_number(lab_tolerance_used(row)), "measured_broken",
                     lab_json_number(broken == NULL ? LAB_NOTHING : broken->measured),
                     "tolerance_used_broken",
                     lab_json_number(broken == NULL ? LAB_NOTHING : lab_tolerance_used(broken)),
                     "outcome", outcomes[outcome]);
}

struct tally {
    uint32_t outcomes[COUNT_OF(outcomes)]; /* Rows; one that breaks does so in each of its ways. */
    uint32_t ways, failures;
};

/* One way to break a row was tried, or there is none: `settings` is empty. */
static enum outcome report_way(const struct lab_run *run, const struct lab_row *row,
                               const struct lab_row *broken, const char *settings, json_t *list)
{
    const enum outcome outcome = judge(run, row, broken);
    if (list == NULL) {
        print_row(run, row, broken, settings, outcome);
    } else {
        json_array_append_new(list, row_json(run, row, broken, settings, outcome));
    }
    return outcome;
}

static void report_row(const struct trial *trial, const struct lab_run *run,
                       const struct lab_row *row, struct tally *tally, json_t *list)
{
    const struct lab_claim *claim = lab_claim_of(run, row);
    enum outcome worst = BREAKS;
    char settings[LAB_TEXT_BYTES];
    if (claim->not_reproduced != NULL) {
        worst = report_way(run, row, NULL, "", list);
    } else {
        for (const char *left = claim->broken_by;
             lab_next_alternative(&left, settings, sizeof(settings));) {
            const struct lab_run *changed = &run[1 + setting_index(trial, settings)];
            const enum outcome outcome =
                report_way(run, row, row_named(changed, row->id), settings, list);
            worst = outcome == BREAKS ? worst : outcome;
            tally->ways++;
        }
    }
    tally->outcomes[worst]++;
}

static void report(const struct trial *trial, const struct lab_run *runs, struct tally *tally,
                   json_t *list)
{
    const struct lab_run *run = &runs[trial->first];
    if (list == NULL) {
        printf("\n%s: %s\n%-20s %-10s %14s %12s %11s %12s %11s  %-32s %s\n", run->experiment->name,
               run->experiment->what, "row", "rests on", "document", "nonic", "tolerance", "broken",
               "tolerance", "by", "outcome");
    }
    for (uint32_t i = 0; i < run->row_count; i++) {
        report_row(trial, run, &run->rows[i], tally, list);
    }
    if (run->failure[0] != '\0') {
        tally->failures++;
        fprintf(stderr, "nonic: %s: %s\n", run->experiment->name, run->failure);
    }
}

static void print_tally(const struct tally *tally)
{
    printf("\nTolerance: the share of it that is used up; a row is out above 100 %%.\n"
           "%u ways to break a row were tried, each alone: "
           "%u rows break, %u are not reproduced, %u survive, %u are missing, %u are not ok\n",
           tally->ways, tally->outcomes[BREAKS], tally->outcomes[NOT_REPRODUCED],
           tally->outcomes[SURVIVES], tally->outcomes[MISSING], tally->outcomes[NOT_OK]);
}

/* -- All of it ----------------------------------------------------------------------------------*/

static void say_finished(const struct lab_run *run, uint32_t number, uint32_t count)
{
    char changes[LAB_TEXT_BYTES] = "";
    for (uint32_t i = 0; i < run->experiment->parameter_count; i++) {
        const size_t length = strlen(changes);
        char value[48];
        if (run->set[i]) {
            lab_value_text(&run->experiment->parameters[i], run->values[i], value, sizeof(value));
            snprintf(changes + length, sizeof(changes) - length, " %s=%s",
                     run->experiment->parameters[i].name, value);
        }
    }
    fprintf(stderr, "[%u/%u] %s%s, %.1f s\n", number, count, run->experiment->name, changes,
            run->wall_s);
}

static int conclude(const struct trial *trials, uint32_t count, const struct lab_run *runs,
                    bool json)
{
    struct tally tally = {.failures = 0};
    json_t *list = json ? json_array() : NULL;
    for (uint32_t i = 0; i < count; i++) {
        report(&trials[i], runs, &tally, list);
    }
    if (json) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        printf("\n");
        json_decref(list);
    } else {
        print_tally(&tally);
    }
    return tally.outcomes[SURVIVES] + tally.outcomes[MISSING] + tally.outcomes[NOT_OK] +
                       tally.failures ==
                   0
               ? 0
               : 1;
}

int lab_falsify(const struct lab_experiment *const *experiments, uint32_t count, uint64_t seed,
                bool json)
{
    char error[LAB_TEXT_BYTES];
    uint32_t total = 0;
    int status = 1;
    struct trial *trials = calloc(count, sizeof(*trials));
    CHECK(trials != NULL);
    for (uint32_t i = 0; i < count; i++) {
        plan(&trials[i], experiments[i], total);
        total += 1 + trials[i].setting_count;
    }
    struct lab_run *runs = lab_runs_open(total);
    bool good = true;
    for (uint32_t i = 0; i < count && good; i++) {
        good = prepare(&trials[i], seed, runs);
    }
    if (good && lab_runs_execute(runs, total, say_finished, error, sizeof(error))) {
        status = conclude(trials, count, runs, json);
    } else if (good && error[0] != '\0') {
        fprintf(stderr, "nonic: %s\n", error);
    }
    lab_runs_close(runs, total);
    free(trials);
    return status;
}
