/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The results of runs, for people.
 */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "tools/lab.h"

/* -- Lists --------------------------------------------------------------------------------------*/

void lab_print_list(FILE *to, const struct lab_experiment *const *experiments, uint32_t count,
                    bool json)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct lab_experiment *experiment = experiments[i];
        if (json) {
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:s}", "name", experiment->name, "document",
                                            experiment->document->title, "what", experiment->what));
        } else {
            fprintf(to, "%-20s %s\n", experiment->name, experiment->what);
        }
    }
    if (json) {
        json_dumpf(list, to, JSON_INDENT(2));
        fprintf(to, "\n");
    }
    json_decref(list);
}

/* -- An experiment ------------------------------------------------------------------------------*/

static void print_parameters(FILE *to, const struct lab_experiment *experiment)
{
    static struct lab_run run;
    lab_prepare(&run, experiment, 1);
    fprintf(to, "%-16s %12s %-7s %-26s %s\n", "parameter", "value", "unit", "range",
            "what (its source; OC: our choice)");
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        const struct lab_parameter *parameter = &experiment->parameters[i];
        char value[48], range[160];
        if (!lab_uses(experiment, i)) {
            continue;
        }
        lab_value_text(parameter, run.values[i], value, sizeof(value));
        lab_range_text(parameter, range, sizeof(range));
        fprintf(to, "%-16s %12s %-7s %-26s %s (%s%s%s)\n", parameter->name, value, parameter->unit,
                range, parameter->what, parameter->source,
                parameter->fitted != NULL ? ", fitted to " : "",
                parameter->fitted != NULL ? parameter->fitted : "");
    }
}

static void print_claims(FILE *to, const struct lab_experiment *experiment)
{
    fprintf(to, "\n%-20s %-10s %-10s %-28s %s\n", "claim", "figure is", "rests on", "source",
            "broken by");
    for (uint32_t i = 0; i < experiment->claim_count; i++) {
        const struct lab_claim *claim = &experiment->claims[i];
        fprintf(to, "%-20s %-10s %-10s %-28s %s: %s\n", claim->id,
                lab_reference_text(claim->reference), lab_ground_text(claim->ground), claim->source,
                claim->broken_by, claim->because);
        if (claim->given != NULL) {
            fprintf(to, "%-20s given %s\n", "", claim->given);
        }
        if (claim->not_reproduced != NULL) {
            fprintf(to, "%-20s not reproduced: %s\n", "", claim->not_reproduced);
        }
    }
}

/* A source that begins with a number is a section of the document. */
static void print_others(FILE *to, const struct lab_document *document)
{
    for (const char *const *other = document->others; other != NULL && *other != NULL; other++) {
        fprintf(to, "%s%s\n%s", other == document->others ? "Other sources\n" : "", *other,
                other[1] == NULL ? "\n" : "");
    }
}

void lab_print_experiment(FILE *to, const struct lab_experiment *experiment)
{
    fprintf(to, "%s: %s\n%s\n%s\n\n", experiment->name, experiment->what,
            experiment->document->title, experiment->explains);
    if (experiment->document->note != NULL) {
        fprintf(to, "%s\n\n", experiment->document->note);
    }
    print_others(to, experiment->document);
    print_parameters(to, experiment);
    if (experiment->judge_texts != NULL) {
        fprintf(to, "It takes a network and traffic as text: --topology, --pattern, --traffic "
                    "(docs/topologies.md).\n");
    }
    print_claims(to, experiment);
}

/* -- The table ----------------------------------------------------------------------------------*/

/* Pads to `width` columns: "±" is two bytes and one column. */
static void print_padded(FILE *to, const char *text, int width)
{
    fprintf(to, "%-*s ", width + (strstr(text, "±") != NULL), text);
}

/* How many of the runs have this row within its tolerance. */
static uint32_t count_within(const struct lab_run *runs, uint32_t count, uint32_t row)
{
    uint32_t good = 0;
    for (uint32_t i = 0; i < count; i++) {
        good += runs[i].rows[row].within;
    }
    return good;
}

static void print_row(FILE *to, const struct lab_run *runs, uint32_t count, uint32_t index)
{
    const struct lab_row *row = &runs[0].rows[index];
    char published[48], bound[48], interval[48] = "";
    const struct lab_mean mean = lab_row_mean(runs, count, index);
    lab_published_text(row, published, sizeof(published));
    lab_bound_text(row, bound, sizeof(bound));
    fprintf(to, "%-20s %-60s %14s %-10s %12.6g ", row->id, row->what, published,
            lab_reference_text(lab_claim_of(&runs[0], row)->reference), mean.mean);
    if (count > 1) {
        snprintf(interval, sizeof(interval), "±%.3g", mean.half);
        print_padded(to, interval, 9);
    }
    fprintf(to, "%-7s ", row->unit);
    print_padded(to, bound, 16);
    if (count > 1) {
        fprintf(to, "%u of %u within\n", count_within(runs, count, index), count);
    } else {
        fprintf(to, "%s\n", lab_verdict_text(lab_verdict_of(&runs[0], row)));
    }
}

/* Numbers that are compared with nothing. */
static void print_readings(FILE *to, const struct lab_run *runs, uint32_t count)
{
    if (runs[0].reading_count > 0) {
        fprintf(to, "%-20s %-60s %12s %s%s\n", "reading", "what", count > 1 ? "mean" : "nonic",
                count > 1 ? "95 %      " : "", "unit");
    }
    for (uint32_t i = 0; i < runs[0].reading_count; i++) {
        const struct lab_reading *reading = &runs[0].readings[i];
        const struct lab_mean mean = lab_reading_mean(runs, count, i);
        char value[32] = "none", interval[48] = "";
        if (isfinite(mean.mean)) {
            snprintf(value, sizeof(value), "%.6g", mean.mean);
        }
        fprintf(to, "%-20s %-60s %12s ", reading->name, reading->what, value);
        if (count > 1) {
            if (isfinite(mean.half)) {
                snprintf(interval, sizeof(interval), "±%.3g", mean.half);
            }
            print_padded(to, interval, 9);
        }
        fprintf(to, "%s\n", reading->unit);
    }
}

static void print_reasons(FILE *to, const struct lab_run *run)
{
    uint32_t last = UINT32_MAX;
    for (uint32_t i = 0; i < run->row_count; i++) {
        const struct lab_row *row = &run->rows[i];
        if (lab_verdict_of(run, row) == LAB_NOT_REPRODUCED && row->claim != last) {
            last = row->claim;
            fprintf(to, "%s is not reproduced: %s\n", lab_claim_of(run, row)->id,
                    lab_claim_of(run, row)->not_reproduced);
        }
    }
}

static void print_memory(FILE *to, const struct lab_run *run)
{
    fprintf(to, "%-24s %12s %14s %12s\n", "memory of", "how many", "bytes", "bytes each");
    for (uint32_t i = 0; i < run->memory_count; i++) {
        const struct lab_memory *memory = &run->memories[i];
        fprintf(to, "%-24s %12" PRIu64 " %14" PRIu64 " %12.1f\n", memory->part, memory->count,
                memory->bytes, (double)memory->bytes / (double)memory->count);
    }
    fprintf(to, "%-24s %12" PRIu64 " %14" PRIu64 " %12zu (inside the parts)\n", "pending event",
            run->pending, run->pending * sizeof(struct sim_event), sizeof(struct sim_event));
    fprintf(to, "%-24s %12d %14zu %12zu\n", "event queue", 1, sizeof(struct sim),
            sizeof(struct sim));
}

static void print_title(FILE *to, const struct lab_job *job, const struct lab_run *run)
{
    fprintf(to, "%s: %s", run->experiment->name, run->experiment->what);
    for (uint32_t i = 0; i < job->sweep_count; i++) {
        const uint32_t index = job->sweeps[i].parameter;
        const struct lab_parameter *parameter = &run->experiment->parameters[index];
        char value[48];
        lab_value_text(parameter, run->values[index], value, sizeof(value));
        fprintf(to, "%s %s=%s", i == 0 ? "  --" : ",", parameter->name, value);
    }
    for (uint32_t i = 0; i < LAB_TEXTS; i++) {
        if (job->texts[i].name != NULL) {
            fprintf(to, "\n%s: %s", lab_text_name(i), job->texts[i].name);
        }
    }
    fprintf(to, "\n%-20s %-60s %14s %-10s %12s %s%-7s %-16s %s\n", "row", "what", "document", "is",
            job->repeats > 1 ? "nonic, mean" : "nonic", job->repeats > 1 ? "95 %      " : "",
            "unit", "tolerance", "verdict");
}

void lab_print_runs(FILE *to, const struct lab_job *job, const struct lab_run *runs)
{
    const struct lab_run *run = &runs[0];
    uint64_t events = 0;
    double wall_s = 0;
    bool chance = false;
    print_title(to, job, run);
    for (uint32_t i = 0; i < run->row_count; i++) {
        print_row(to, runs, job->repeats, i);
    }
    print_reasons(to, run);
    print_readings(to, runs, job->repeats);
    for (uint32_t i = 0; i < job->repeats; i++) {
        if (runs[i].failure[0] != '\0') {
            fprintf(to, "FAILED with seed %" PRIu64 ": %s\n", runs[i].seed, runs[i].failure);
        }
        events += runs[i].events;
        wall_s += runs[i].wall_s;
        chance |= runs[i].digest != run->digest;
    }
    if (!run->judged) {
        fprintf(to, "not judged: the values are not the document's (--judge judges them)\n");
    }
    if (job->stats) {
        print_memory(to, run);
    }
    if (job->repeats > 1) {
        fprintf(to, "seeds %" PRIu64 "..%" PRIu64 "%s, %" PRIu64 " events in %.2f s\n", run->seed,
                run->seed + job->repeats - 1, chance ? "" : ": no chance in it, all runs are alike",
                events, wall_s);
    } else {
        fprintf(to, "seed %" PRIu64 ", digest %016" PRIx64 ", %" PRIu64 " events in %.2f s\n",
                run->seed, run->digest, events, wall_s);
    }
}
