/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The results of a run: rows and their verdicts, figures, memory.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "lab/lab.h"

/* -- Claims -------------------------------------------------------------------------------------*/

const struct lab_claim *lab_claim_of(const struct lab_run *run, const struct lab_row *row)
{
    return &run->experiment->claims[row->claim];
}

/* The claim of a row: the one named by its id up to the '/'. */
static uint32_t claim_named(const struct lab_experiment *experiment, const char *id)
{
    const size_t length = strcspn(id, "/");
    uint32_t i = 0;
    while (i < experiment->claim_count && (strlen(experiment->claims[i].id) != length ||
                                           memcmp(experiment->claims[i].id, id, length) != 0)) {
        i++;
    }
    CHECK(i < experiment->claim_count);
    return i;
}

const char *lab_reference_text(enum lab_reference reference)
{
    switch (reference) {
    case LAB_PRINTED: return "printed";
    case LAB_DERIVED: return "derived";
    case LAB_IN_WORDS: return "in words";
    case LAB_ELSEWHERE: return "elsewhere";
    case LAB_PREDICTED: return "prediction";
    case LAB_REFERENCES: break;
    }
    CHECK(false);
}

const char *lab_ground_text(enum lab_ground ground)
{
    switch (ground) {
    case LAB_MECHANISM: return "mechanism";
    case LAB_ARITHMETIC: return "arithmetic";
    case LAB_FITTED: return "fitted";
    case LAB_GROUNDS: break;
    }
    CHECK(false);
}

bool lab_is_independent(const struct lab_claim *claim)
{
    return (claim->reference == LAB_PRINTED || claim->reference == LAB_ELSEWHERE) &&
           claim->ground == LAB_MECHANISM && claim->given == NULL;
}

/* -- Verdicts -----------------------------------------------------------------------------------*/

enum lab_verdict lab_verdict_of(const struct lab_run *run, const struct lab_row *row)
{
    if (!run->judged) {
        return LAB_NOT_JUDGED;
    }
    if (lab_claim_of(run, row)->not_reproduced == NULL) {
        return row->within ? LAB_OK : LAB_OUT;
    }
    return row->within ? LAB_UNEXPECTED : LAB_NOT_REPRODUCED;
}

const char *lab_verdict_text(enum lab_verdict verdict)
{
    switch (verdict) {
    case LAB_OK: return "ok";
    case LAB_OUT: return "OUT";
    case LAB_NOT_REPRODUCED: return "not reproduced";
    case LAB_UNEXPECTED: return "UNEXPECTED";
    case LAB_NOT_JUDGED: return "not judged";
    }
    CHECK(false);
}

bool lab_run_good(const struct lab_run *run)
{
    bool good = run->failure[0] == '\0';
    for (uint32_t i = 0; i < run->row_count; i++) {
        const enum lab_verdict verdict = lab_verdict_of(run, &run->rows[i]);
        good &= verdict != LAB_OUT && verdict != LAB_UNEXPECTED;
    }
    return good;
}

/* -- Rows ---------------------------------------------------------------------------------------*/

struct lab_row *lab_add_row(struct lab_run *run, const char *id, const char *unit, const char *what,
                            ...)
{
    CHECK(run->row_count < LAB_ROWS_MAX);
    CHECK(strlen(id) < LAB_ID_BYTES);
    for (uint32_t i = 0; i < run->row_count; i++) {
        CHECK(strcmp(run->rows[i].id, id) != 0);
    }
    struct lab_row *row = &run->rows[run->row_count++];
    *row = (struct lab_row){.claim = claim_named(run->experiment, id)};
    snprintf(row->id, sizeof(row->id), "%s", id);
    snprintf(row->unit, sizeof(row->unit), "%s", unit);
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(row->what, sizeof(row->what), what, arguments);
    va_end(arguments);
    return row;
}

void lab_add_reading(struct lab_run *run, const char *name, const char *unit, double value,
                     const char *what, ...)
{
    CHECK(run->reading_count < LAB_READINGS_MAX);
    CHECK(strlen(name) < LAB_ID_BYTES);
    for (uint32_t i = 0; i < run->reading_count; i++) {
        CHECK(strcmp(run->readings[i].name, name) != 0);
    }
    struct lab_reading *reading = &run->readings[run->reading_count++];
    *reading = (struct lab_reading){.value = value};
    snprintf(reading->name, sizeof(reading->name), "%s", name);
    snprintf(reading->unit, sizeof(reading->unit), "%s", unit);
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(reading->what, sizeof(reading->what), what, arguments);
    va_end(arguments);
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
    row->within = within(measured - published, bound * fabs(published));
}

void lab_judge_absolute(struct lab_row *row, double published, double measured, double bound)
{
    row->kind = LAB_ABSOLUTE;
    row->published = published;
    row->measured = measured;
    row->bound = bound;
    row->within = within(measured - published, bound);
}

void lab_judge_range(struct lab_row *row, double least, double most, double measured)
{
    row->kind = LAB_RANGE;
    row->published = least;
    row->upper = most;
    row->measured = measured;
    row->within = measured >= least && measured <= most;
}

/* How far `measured` lies from `middle`, in units of `half`; an exact bound has no middle way. */
static double share(double measured, double middle, double half)
{
    const double off = fabs(measured - middle);
    return half > 0 ? off / half : off > 1e-12 ? LAB_UNBOUNDED : 0;
}

double lab_tolerance_used(const struct lab_row *row)
{
    switch (row->kind) {
    case LAB_RELATIVE:
        return share(row->measured, row->published, row->bound * fabs(row->published));
    case LAB_ABSOLUTE: return share(row->measured, row->published, row->bound);
    case LAB_RANGE: break;
    }
    if (isfinite(row->published) && isfinite(row->upper)) {
        return share(row->measured, (row->published + row->upper) / 2,
                     (row->upper - row->published) / 2);
    }
    const double bound = isfinite(row->upper) ? row->upper : row->published;
    const double beyond = isfinite(row->upper) ? row->measured - bound : bound - row->measured;
    return fmax(0, 1 + beyond / (bound != 0 ? fabs(bound) : 1));
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
    case LAB_RANGE: lab_published_text(row, text, bytes); break;
    }
}

void lab_published_text(const struct lab_row *row, char *text, size_t bytes)
{
    if (row->kind != LAB_RANGE || row->published == row->upper) {
        snprintf(text, bytes, "%.4g", row->published);
    } else if (isinf(row->upper)) {
        snprintf(text, bytes, ">= %.4g", row->published);
    } else if (isinf(row->published)) {
        snprintf(text, bytes, "<= %.4g", row->upper);
    } else {
        snprintf(text, bytes, "%.4g..%.4g", row->published, row->upper);
    }
}

/* -- Figures ------------------------------------------------------------------------------------*/

struct lab_figure *lab_add_figure(struct lab_run *run, const char *id, const char *title,
                                  const char *x, const char *y, bool log_x)
{
    CHECK(run->figure_count < LAB_FIGURES_MAX);
    struct lab_figure *figure = &run->figures[run->figure_count++];
    *figure = (struct lab_figure){.log_x = log_x, .from_zero = true};
    snprintf(figure->id, sizeof(figure->id), "%s", id);
    snprintf(figure->title, sizeof(figure->title), "%s", title);
    snprintf(figure->x, sizeof(figure->x), "%s", x);
    snprintf(figure->y, sizeof(figure->y), "%s", y);
    return figure;
}

static void add_mark(struct lab_figure *figure, double x, double y, bool printed, const char *text)
{
    CHECK(figure->mark_count < LAB_MARKS_MAX);
    figure->marks[figure->mark_count].printed = printed;
    figure->marks[figure->mark_count].x = x;
    figure->marks[figure->mark_count].y = y;
    snprintf(figure->marks[figure->mark_count].text, sizeof(figure->marks[0].text), "%s", text);
    figure->mark_count++;
}

void lab_add_mark(struct lab_figure *figure, double x, double y, const char *text)
{
    add_mark(figure, x, y, true, text);
}

void lab_add_level(struct lab_figure *figure, double y, const char *text)
{
    add_mark(figure, LAB_NOTHING, y, false, text);
}

struct lab_series *lab_add_curve(struct lab_run *run, const char *name, ...)
{
    CHECK(run->figure_count > 0 && run->series_count < LAB_SERIES_MAX);
    struct lab_series *series = &run->series[run->series_count++];
    *series = (struct lab_series){.figure = run->figure_count - 1};
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(series->name, sizeof(series->name), name, arguments);
    va_end(arguments);
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

/* -- Memory -------------------------------------------------------------------------------------*/

void lab_add_memory(struct lab_run *run, const char *part, uint64_t count, uint64_t bytes)
{
    uint32_t i = 0;
    while (i < run->memory_count && strcmp(run->memories[i].part, part) != 0) {
        i++;
    }
    CHECK(i < LAB_MEMORIES_MAX);
    struct lab_memory *memory = &run->memories[i];
    if (i == run->memory_count) {
        run->memory_count++;
        snprintf(memory->part, sizeof(memory->part), "%s", part);
    }
    if (bytes > memory->bytes) {
        memory->count = count;
        memory->bytes = bytes;
    }
}
