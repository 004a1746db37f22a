/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/lab.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"

#define PS_PER_US 1e6

/* -- Names --------------------------------------------------------------------------------------*/

/* Levenshtein's distance, up to the length of a name. */
static size_t distance(const char *a, const char *b)
{
    enum {
        NAME_MAX_BYTES = 64
    };
    size_t row[NAME_MAX_BYTES + 1];
    const size_t columns = strnlen(b, NAME_MAX_BYTES);
    for (size_t j = 0; j <= columns; j++) {
        row[j] = j;
    }
    for (size_t i = 0; a[i] != '\0' && i < NAME_MAX_BYTES; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < columns; j++) {
            const size_t changed = diagonal + (a[i] != b[j]);
            const size_t shorter = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = changed < shorter ? changed : shorter;
        }
    }
    return row[columns];
}

const struct lab_experiment *lab_find(const char *name)
{
    for (size_t i = 0; lab_experiments[i] != NULL; i++) {
        if (strcmp(lab_experiments[i]->name, name) == 0) {
            return lab_experiments[i];
        }
    }
    return NULL;
}

/* The distance from the whole name, or from the part behind the document's name. */
static size_t distance_of_experiment(const char *name, const char *experiment)
{
    const char *slash = strchr(experiment, '/');
    const size_t whole = distance(name, experiment);
    const size_t part = slash == NULL ? whole : distance(name, slash + 1);
    return part < whole ? part : whole;
}

const char *lab_nearest_experiment(const char *name)
{
    const char *nearest = lab_experiments[0]->name;
    for (size_t i = 1; lab_experiments[i] != NULL; i++) {
        const char *candidate = lab_experiments[i]->name;
        if (distance_of_experiment(name, candidate) < distance_of_experiment(name, nearest)) {
            nearest = candidate;
        }
    }
    return nearest;
}

int lab_parameter_index(const struct lab_experiment *experiment, const char *name,
                        const char **nearest)
{
    *nearest = experiment->parameters[0].name;
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        const char *candidate = experiment->parameters[i].name;
        if (strcmp(candidate, name) == 0) {
            return (int)i;
        }
        if (distance(name, candidate) < distance(name, *nearest)) {
            *nearest = candidate;
        }
    }
    return -1;
}

/* -- Values -------------------------------------------------------------------------------------*/

bool lab_parse_value(const struct lab_parameter *parameter, const char *text, double *value,
                     char *error, size_t error_bytes)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (end == text || errno != 0 || !isfinite(*value)) {
        snprintf(error, error_bytes, "%s: '%s' is not a number", parameter->name, text);
        return false;
    }
    while (*end == ' ') {
        end++;
    }
    if (*end != '\0' && strcmp(end, parameter->unit) != 0) {
        if (parameter->unit[0] == '\0') {
            snprintf(error, error_bytes, "%s has no unit, '%s' has '%s'", parameter->name, text,
                     end);
        } else {
            snprintf(error, error_bytes, "%s is in %s, not in '%s'", parameter->name,
                     parameter->unit, end);
        }
        return false;
    }
    return true;
}

bool lab_set_value(struct lab_run *run, uint32_t index, double value, char *error,
                   size_t error_bytes)
{
    const struct lab_parameter *parameter = &run->experiment->parameters[index];
    if (value < parameter->least || value > parameter->most) {
        const double nearest = value < parameter->least ? parameter->least : parameter->most;
        snprintf(error, error_bytes, "%s=%g is out of range %g..%g %s; the nearest valid is %g",
                 parameter->name, value, parameter->least, parameter->most, parameter->unit,
                 nearest);
        return false;
    }
    if (parameter->whole && value != floor(value)) {
        snprintf(error, error_bytes, "%s=%g is not a whole number; the nearest valid is %g",
                 parameter->name, value, round(value));
        return false;
    }
    run->values[index] = value;
    run->set[index] = true;
    return true;
}

bool lab_set(struct lab_run *run, const char *assignment, char *error, size_t error_bytes)
{
    char name[64];
    const char *equals = strchr(assignment, '=');
    if (equals == NULL || equals == assignment || (size_t)(equals - assignment) >= sizeof(name)) {
        snprintf(error, error_bytes, "'%s' is not NAME=VALUE", assignment);
        return false;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(equals - assignment), assignment);
    const char *nearest;
    const int index = lab_parameter_index(run->experiment, name, &nearest);
    if (index < 0) {
        snprintf(error, error_bytes, "%s has no parameter '%s'; the nearest is '%s'",
                 run->experiment->name, name, nearest);
        return false;
    }
    double value;
    return lab_parse_value(&run->experiment->parameters[index], equals + 1, &value, error,
                           error_bytes) &&
           lab_set_value(run, (uint32_t)index, value, error, error_bytes);
}

static uint32_t index_of(const struct lab_run *run, const char *name)
{
    const char *nearest;
    const int index = lab_parameter_index(run->experiment, name, &nearest);
    CHECK(index >= 0);
    return (uint32_t)index;
}

double lab_value(struct lab_run *run, const char *name)
{
    const uint32_t index = index_of(run, name);
    run->used[index] = true;
    return run->values[index];
}

uint64_t lab_ps(struct lab_run *run, const char *name)
{
    CHECK(strcmp(run->experiment->parameters[index_of(run, name)].unit, "us") == 0);
    return (uint64_t)(lab_value(run, name) * PS_PER_US);
}

/* -- Runs ---------------------------------------------------------------------------------------*/

void lab_prepare(struct lab_run *run, const struct lab_experiment *experiment, uint64_t seed)
{
    CHECK(experiment->parameter_count <= LAB_PARAMETERS_MAX);
    *run = (struct lab_run){.experiment = experiment, .seed = seed};
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        run->values[i] = experiment->parameters[i].value;
    }
}

bool lab_execute(struct lab_run *run)
{
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    run->experiment->run(run);
    clock_gettime(CLOCK_MONOTONIC, &after);
    run->wall_s =
        (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    bool good = run->failure[0] == '\0';
    for (uint32_t i = 0; i < run->row_count; i++) {
        good &= run->rows[i].ok;
    }
    return good;
}

void lab_fail(struct lab_run *run, const char *format, ...)
{
    if (run->failure[0] != '\0') {
        return; /* The first failure explains the others. */
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->failure, sizeof(run->failure), format, arguments);
    va_end(arguments);
}

void lab_progress(const struct lab_run *run, double share)
{
    if (run->progress != NULL) {
        run->progress(run, share);
    }
}

void lab_world_begin(struct lab_run *run, struct sim *sim, struct sim_trace **trace,
                     struct sim_capture **capture, enum pcapng_link link)
{
    sim_init(sim, run->seed);
    *trace = NULL;
    *capture = NULL;
    if (run->worlds++ > 0) {
        return;
    }
    char error[LAB_TEXT_BYTES];
    if (run->trace_path != NULL) {
        *trace = sim_trace_open(run->trace_path, error, sizeof(error));
        if (*trace == NULL) {
            lab_fail(run, "%s", error);
        }
    }
    if (run->capture_path != NULL) {
        *capture = sim_capture_open(run->capture_path, link, error, sizeof(error));
        if (*capture == NULL) {
            lab_fail(run, "%s", error);
        }
    }
}

void lab_world_end(struct lab_run *run, struct sim *sim, struct sim_trace *trace,
                   struct sim_capture *capture)
{
    char error[LAB_TEXT_BYTES];
    run->events += sim->events;
    run->digest = (run->digest ^ sim->digest) * UINT64_C(0x9e3779b97f4a7c15);
    run->digest ^= run->digest >> 31;
    if (trace != NULL && !sim_trace_close(trace, error, sizeof(error))) {
        lab_fail(run, "%s", error);
    }
    if (capture != NULL && !sim_capture_close(capture, error, sizeof(error))) {
        lab_fail(run, "%s", error);
    }
}

/* -- Rows and series ----------------------------------------------------------------------------*/

struct lab_row *lab_add_row(struct lab_run *run, const char *id, const char *unit, const char *what,
                            ...)
{
    CHECK(run->row_count < LAB_ROWS_MAX);
    struct lab_row *row = &run->rows[run->row_count++];
    *row = (struct lab_row){.ok = false};
    snprintf(row->id, sizeof(row->id), "%s", id);
    snprintf(row->unit, sizeof(row->unit), "%s", unit);
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(row->what, sizeof(row->what), what, arguments);
    va_end(arguments);
    return row;
}

/* A result in virtual time is exact, but the published figures are decimal. */
static bool within(double difference, double bound)
{
    return fabs(difference) <= bound + 1e-9 * fabs(bound) + 1e-12;
}

void lab_judge_relative(struct lab_row *row, double published, double measured, double bound)
{
    row->kind = LAB_RELATIVE;
    row->published = published;
    row->measured = measured;
    row->bound = bound;
    row->ok = within(measured - published, bound * fabs(published));
}

void lab_judge_absolute(struct lab_row *row, double published, double measured, double bound)
{
    row->kind = LAB_ABSOLUTE;
    row->published = published;
    row->measured = measured;
    row->bound = bound;
    row->ok = within(measured - published, bound);
}

void lab_judge_range(struct lab_row *row, double least, double most, double measured)
{
    row->kind = LAB_RANGE;
    row->published = least;
    row->upper = most;
    row->measured = measured;
    row->ok = measured >= least && measured <= most;
}

void lab_bound_text(const struct lab_row *row, char *text, size_t bytes)
{
    switch (row->kind) {
    case LAB_RELATIVE: snprintf(text, bytes, "±%g %%", row->bound * 100); break;
    case LAB_ABSOLUTE:
        if (row->bound == 0) {
            snprintf(text, bytes, "exact");
        } else {
            snprintf(text, bytes, "±%g %s", row->bound, row->unit);
        }
        break;
    case LAB_RANGE:
        if (isinf(row->upper)) {
            snprintf(text, bytes, "at least %g", row->published);
        } else if (isinf(row->published)) {
            snprintf(text, bytes, "at most %g", row->upper);
        } else {
            snprintf(text, bytes, "%g..%g", row->published, row->upper);
        }
        break;
    }
}

struct lab_series *lab_add_series(struct lab_run *run, const char *name, const char *x,
                                  const char *y, bool logarithmic)
{
    CHECK(run->series_count < LAB_SERIES_MAX);
    struct lab_series *series = &run->series[run->series_count++];
    *series = (struct lab_series){.logarithmic = logarithmic};
    snprintf(series->name, sizeof(series->name), "%s", name);
    snprintf(series->x, sizeof(series->x), "%s", x);
    snprintf(series->y, sizeof(series->y), "%s", y);
    return series;
}

void lab_add_point(struct lab_series *series, double x, double y, double expected)
{
    CHECK(series->count < LAB_POINTS_MAX);
    series->points[series->count].x = x;
    series->points[series->count].y = y;
    series->points[series->count].expected = expected;
    series->count++;
}
