/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The results of runs, for programs.
 */
#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "tools/lab.h"

json_t *lab_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *value_json(const struct lab_parameter *parameter, double value)
{
    char text[48];
    if (parameter->kind != LAB_IS_WORD) {
        return json_real(value);
    }
    lab_value_text(parameter, value, text, sizeof(text));
    return json_string(text);
}

/* -- An experiment ------------------------------------------------------------------------------*/

json_t *lab_json_parameters(const struct lab_experiment *experiment)
{
    static struct lab_run run;
    json_t *parameters = json_array();
    lab_prepare(&run, experiment, 1);
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        const struct lab_parameter *parameter = &experiment->parameters[i];
        char range[160];
        if (!lab_uses(experiment, i)) {
            continue;
        }
        lab_range_text(parameter, range, sizeof(range));
        json_array_append_new(
            parameters,
            json_pack("{s:s, s:o, s:s, s:s, s:b, s:s, s:s, s:s?}", "name", parameter->name, "value",
                      value_json(parameter, run.values[i]), "unit", parameter->unit, "range", range,
                      "whole", parameter->kind == LAB_IS_WHOLE, "what", parameter->what, "source",
                      parameter->source, "fitted_to", parameter->fitted));
    }
    return parameters;
}

json_t *lab_json_claims(const struct lab_experiment *experiment)
{
    json_t *claims = json_array();
    for (uint32_t i = 0; i < experiment->claim_count; i++) {
        const struct lab_claim *claim = &experiment->claims[i];
        json_array_append_new(
            claims, json_pack("{s:s, s:s, s:s, s:s?, s:s, s:s, s:s, s:s?}", "id", claim->id,
                              "reference", lab_reference_text(claim->reference), "ground",
                              lab_ground_text(claim->ground), "given", claim->given, "source",
                              claim->source, "broken_by", claim->broken_by, "because",
                              claim->because, "not_reproduced", claim->not_reproduced));
    }
    return claims;
}

/* -- Runs ---------------------------------------------------------------------------------------*/

static json_t *row_json(const struct lab_run *runs, uint32_t repeats, uint32_t index)
{
    const struct lab_row *row = &runs[0].rows[index];
    const struct lab_claim *claim = lab_claim_of(&runs[0], row);
    const struct lab_mean mean = lab_row_mean(runs, repeats, index);
    char bound[48];
    lab_bound_text(row, bound, sizeof(bound));
    json_t *published = lab_json_number(row->published);
    if (row->kind == LAB_RANGE && row->published != row->upper) {
        published = json_pack("[o, o]", published, lab_json_number(row->upper));
    }
    json_t *object = json_pack(
        "{s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:s?, s:s, s:s, s:o}", "id", row->id, "what",
        row->what, "published", published, "measured", lab_json_number(mean.mean), "unit",
        row->unit, "tolerance", bound, "reference", lab_reference_text(claim->reference), "ground",
        lab_ground_text(claim->ground), "given", claim->given, "broken_by", claim->broken_by,
        "verdict", lab_verdict_text(lab_verdict_of(&runs[0], row)), "tolerance_used",
        lab_json_number(lab_tolerance_used(row)));
    if (claim->not_reproduced != NULL) {
        json_object_set_new(object, "not_reproduced", json_string(claim->not_reproduced));
    }
    if (repeats > 1) {
        json_t *each = json_array();
        for (uint32_t i = 0; i < repeats; i++) {
            json_array_append_new(each, lab_json_number(runs[i].rows[index].measured));
        }
        json_object_set_new(object, "interval", lab_json_number(mean.half));
        json_object_set_new(object, "each", each);
    }
    return object;
}

static json_t *rows_json(const struct lab_run *runs, uint32_t repeats)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < runs[0].row_count; i++) {
        json_array_append_new(rows, row_json(runs, repeats, i));
    }
    return rows;
}

static json_t *readings_json(const struct lab_run *runs, uint32_t repeats)
{
    json_t *readings = json_array();
    for (uint32_t i = 0; i < runs[0].reading_count; i++) {
        const struct lab_reading *reading = &runs[0].readings[i];
        const struct lab_mean mean = lab_reading_mean(runs, repeats, i);
        json_t *object =
            json_pack("{s:s, s:s, s:s, s:o}", "name", reading->name, "what", reading->what, "unit",
                      reading->unit, "value", lab_json_number(mean.mean));
        json_t *each = repeats > 1 ? json_array() : NULL;
        for (uint32_t k = 0; each != NULL && k < repeats; k++) {
            json_array_append_new(each, lab_json_number(runs[k].readings[i].value));
        }
        if (each != NULL) {
            json_object_set_new(object, "interval", lab_json_number(mean.half));
            json_object_set_new(object, "each", each);
        }
        json_array_append_new(readings, object);
    }
    return readings;
}

static json_t *point_json(const struct lab_run *runs, uint32_t repeats, uint32_t series,
                          uint32_t point)
{
    const struct lab_mean mean = lab_point_mean(runs, repeats, series, point);
    json_t *object =
        json_pack("{s:o, s:o, s:o}", "x", lab_json_number(runs[0].series[series].points[point].x),
                  "y", lab_json_number(mean.mean), "expected",
                  lab_json_number(runs[0].series[series].points[point].expected));
    if (repeats > 1) {
        json_object_set_new(object, "interval", lab_json_number(mean.half));
    }
    return object;
}

static json_t *series_json(const struct lab_run *runs, uint32_t repeats)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < runs[0].series_count; i++) {
        const struct lab_series *series = &runs[0].series[i];
        const struct lab_figure *figure = &runs[0].figures[series->figure];
        json_t *points = json_array();
        for (uint32_t k = 0; k < series->count; k++) {
            json_array_append_new(points, point_json(runs, repeats, i, k));
        }
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s, s:o}", "figure", figure->id,
                                             "name", series->name, "x", figure->x, "y", figure->y,
                                             "points", points));
    }
    return all;
}

static json_t *memory_json(const struct lab_run *run)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < run->memory_count; i++) {
        const struct lab_memory *memory = &run->memories[i];
        json_array_append_new(all, json_pack("{s:s, s:I, s:I}", "part", memory->part, "count",
                                             (json_int_t)memory->count, "bytes",
                                             (json_int_t)memory->bytes));
    }
    return json_pack("{s:o, s:I, s:I, s:I}", "parts", all, "pending_events",
                     (json_int_t)run->pending, "event_bytes", (json_int_t)sizeof(struct sim_event),
                     "queue_bytes", (json_int_t)sizeof(struct sim));
}

static json_t *set_json(const struct lab_job *job, const struct lab_run *run)
{
    json_t *set = json_object();
    for (uint32_t i = 0; i < run->experiment->parameter_count; i++) {
        const struct lab_parameter *parameter = &run->experiment->parameters[i];
        if (run->set[i]) {
            json_object_set_new(set, parameter->name, value_json(parameter, run->values[i]));
        }
    }
    for (uint32_t i = 0; i < LAB_TEXTS; i++) {
        if (job->texts[i].name != NULL) {
            json_object_set_new(set, lab_text_name(i), json_string(job->texts[i].name));
        }
    }
    return set;
}

static json_t *point_of_job(const struct lab_job *job, const struct lab_run *runs)
{
    const struct lab_run *run = &runs[0];
    char digest[20];
    snprintf(digest, sizeof(digest), "%016" PRIx64, run->digest);
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:s, s:I, s:f, s:b, s:o, s:o, s:o}", "experiment",
                  run->experiment->name, "seed", (json_int_t)run->seed, "repeats",
                  (json_int_t)job->repeats, "digest", digest, "events", (json_int_t)run->events,
                  "wall_s", run->wall_s, "judged", run->judged, "set", set_json(job, run), "rows",
                  rows_json(runs, job->repeats), "series", series_json(runs, job->repeats));
    if (run->reading_count > 0) {
        json_object_set_new(object, "readings", readings_json(runs, job->repeats));
    }
    if (job->stats) {
        json_object_set_new(object, "memory", memory_json(run));
    }
    for (uint32_t i = 0; i < job->repeats; i++) {
        if (runs[i].failure[0] != '\0') {
            json_object_set_new(object, "failure", json_string(runs[i].failure));
        }
    }
    return object;
}

void lab_print_json(FILE *to, const struct lab_job *job, const struct lab_run *runs,
                    uint32_t points)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < points; i++) {
        json_array_append_new(all, point_of_job(job, &runs[(size_t)i * job->repeats]));
    }
    json_dumpf(job->sweep_count > 0 ? all : json_array_get(all, 0), to, JSON_INDENT(2));
    fprintf(to, "\n");
    json_decref(all);
}
