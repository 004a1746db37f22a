/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a run found, as a table and as JSON.
 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "tools/lab.h"

bool lab_run_good(const struct lab_run *run)
{
    bool good = run->failure[0] == '\0';
    for (uint32_t i = 0; i < run->row_count; i++) {
        good &= run->rows[i].ok;
    }
    return good;
}

/* -- Lists --------------------------------------------------------------------------------------*/

void lab_print_list(FILE *to, bool json)
{
    json_t *list = json_array();
    for (size_t i = 0; lab_experiments[i] != NULL; i++) {
        const struct lab_experiment *experiment = lab_experiments[i];
        if (json) {
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:s}", "name", experiment->name, "document",
                                            experiment->document, "what", experiment->what));
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

void lab_print_parameters(FILE *to, const struct lab_experiment *experiment)
{
    fprintf(to, "%s: %s\n%s\n\n%-16s %10s %-7s %-22s %s\n", experiment->name, experiment->what,
            experiment->document, "parameter", "value", "unit", "range", "what (source)");
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        const struct lab_parameter *parameter = &experiment->parameters[i];
        char range[48];
        snprintf(range, sizeof(range), "%g..%g", parameter->least, parameter->most);
        fprintf(to, "%-16s %10g %-7s %-22s %s (%s%s)\n", parameter->name, parameter->value,
                parameter->unit, range, parameter->what, parameter->source,
                parameter->fitted ? ", fitted" : "");
    }
}

/* -- The table ----------------------------------------------------------------------------------*/

static void published_text(const struct lab_row *row, char *text, size_t bytes)
{
    if (row->kind != LAB_RANGE) {
        snprintf(text, bytes, "%.4g", row->published);
    } else if (isinf(row->upper)) {
        snprintf(text, bytes, ">= %.4g", row->published);
    } else if (row->published == row->upper) {
        snprintf(text, bytes, "%.4g", row->published);
    } else {
        snprintf(text, bytes, "%.4g..%.4g", row->published, row->upper);
    }
}

static void print_row(FILE *to, const struct lab_row *row)
{
    char published[48];
    char bound[48];
    published_text(row, published, sizeof(published));
    lab_bound_text(row, bound, sizeof(bound));
    /* "±" is two bytes and one column. */
    const int width = 16 + (strstr(bound, "±") != NULL);
    fprintf(to, "%-7s %-64s %12s%s %12.6g %-7s %-*s %s\n", row->id, row->what, published,
            row->predicted ? "*" : " ", row->measured, row->unit, width, bound,
            row->ok ? "ok" : "OUT");
}

void lab_print_run(FILE *to, const struct lab_job *job, const struct lab_run *run)
{
    bool predicted = false;
    fprintf(to, "%s: %s", run->experiment->name, run->experiment->what);
    for (uint32_t i = 0; i < job->sweep_count; i++) {
        const struct lab_parameter *parameter =
            &run->experiment->parameters[job->sweeps[i].parameter];
        fprintf(to, "%s %s=%g", i == 0 ? "  --" : ",", parameter->name,
                run->values[job->sweeps[i].parameter]);
    }
    fprintf(to, "\n%-7s %-64s %12s  %12s %-7s %-16s %s\n", "row", "what", "document", "nonic",
            "unit", "tolerance", "verdict");
    for (uint32_t i = 0; i < run->row_count; i++) {
        print_row(to, &run->rows[i]);
        predicted |= run->rows[i].predicted;
    }
    if (predicted) {
        fprintf(to, "* not measured by the document (or lost with its figures): our derivation\n");
    }
    if (run->failure[0] != '\0') {
        fprintf(to, "FAILED: %s\n", run->failure);
    }
    fprintf(to, "seed %" PRIu64 ", digest %016" PRIx64 ", %" PRIu64 " events in %.2f s\n",
            run->seed, run->digest, run->events, run->wall_s);
}

/* -- JSON ---------------------------------------------------------------------------------------*/

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *rows_json(const struct lab_run *run)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < run->row_count; i++) {
        const struct lab_row *row = &run->rows[i];
        char bound[48];
        lab_bound_text(row, bound, sizeof(bound));
        json_t *published = number(row->published);
        if (row->kind == LAB_RANGE && row->published != row->upper) {
            published = json_pack("[o, o]", published, number(row->upper));
        }
        json_array_append_new(rows,
                              json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:b, s:b}", "id", row->id,
                                        "what", row->what, "published", published, "measured",
                                        number(row->measured), "unit", row->unit, "tolerance",
                                        bound, "ok", row->ok, "predicted", row->predicted));
    }
    return rows;
}

static json_t *series_json(const struct lab_run *run)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < run->series_count; i++) {
        const struct lab_series *series = &run->series[i];
        json_t *points = json_array();
        for (uint32_t k = 0; k < series->count; k++) {
            json_array_append_new(points,
                                  json_pack("{s:o, s:o, s:o}", "x", number(series->points[k].x),
                                            "y", number(series->points[k].y), "expected",
                                            number(series->points[k].expected)));
        }
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:o}", "name", series->name, "x",
                                             series->x, "y", series->y, "points", points));
    }
    return all;
}

static json_t *run_json(const struct lab_run *run)
{
    char digest[20];
    snprintf(digest, sizeof(digest), "%016" PRIx64, run->digest);
    json_t *object = json_pack("{s:s, s:I, s:s, s:I, s:f, s:o, s:o}", "experiment",
                               run->experiment->name, "seed", (json_int_t)run->seed, "digest",
                               digest, "events", (json_int_t)run->events, "wall_s", run->wall_s,
                               "rows", rows_json(run), "series", series_json(run));
    json_t *set = json_object();
    for (uint32_t i = 0; i < run->experiment->parameter_count; i++) {
        if (run->set[i]) {
            json_object_set_new(set, run->experiment->parameters[i].name,
                                json_real(run->values[i]));
        }
    }
    json_object_set_new(object, "set", set);
    if (run->failure[0] != '\0') {
        json_object_set_new(object, "failure", json_string(run->failure));
    }
    return object;
}

void lab_print_json(FILE *to, const struct lab_job *job, const struct lab_run *runs, uint32_t count)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(all, run_json(&runs[i]));
    }
    json_dumpf(job->sweep_count > 0 ? all : json_array_get(all, 0), to, JSON_INDENT(2));
    fprintf(to, "\n");
    json_decref(all);
}
