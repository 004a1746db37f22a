/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lab - experiments: what they are called, what can be set, what they found.
 *
 * Purpose    An experiment reproduces a row or figure of a document; it is a function of its
 *            parameters and a seed, and gives rows to compare and series to plot.
 * Inputs     Parameters by name, a seed, files for traces.
 * Outputs    Rows with verdicts, series, a digest that repeats.
 * Ownership  A run owns what it found.
 * Threads    A run belongs to one thread; several may go on side by side.
 * Time       Virtual; only the run's wall time is real, and it is nobody's result.
 * Units      Each parameter, row and series says.
 * Limits     LAB_ROWS_MAX rows, LAB_SERIES_MAX series of LAB_POINTS_MAX points.
 * Source     The documents' specifications, by section.
 */
#ifndef LAB_LAB_H
#define LAB_LAB_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/capture.h"
#include "sim/kernel.h"
#include "sim/trace.h"

/* Stands for a value or a bound that does not exist. */
#define LAB_NOTHING   ((double)NAN)
#define LAB_UNBOUNDED ((double)INFINITY)

#define LAB_PARAMETERS_MAX 48
#define LAB_ROWS_MAX       128
#define LAB_SERIES_MAX     32
#define LAB_POINTS_MAX     128
#define LAB_TEXT_BYTES     160

/* -- Parameters ---------------------------------------------------------------------------------*/

struct lab_parameter {
    const char *name;
    const char *unit; /* As printed, and as accepted behind a value; "" for a number. */
    double value, least, most;
    bool whole;         /* Whole numbers only. */
    bool fitted;        /* The value was fitted to a measurement, not taken from the document. */
    const char *source; /* Section of the document, or "OC": our choice. */
    const char *what;
};

/* -- Results ------------------------------------------------------------------------------------*/

enum lab_bound {
    LAB_RELATIVE, /* |measured - published| <= bound * |published|. */
    LAB_ABSOLUTE, /* |measured - published| <= bound. */
    LAB_RANGE,    /* published <= measured <= upper. */
};

struct lab_row {
    char id[16], what[LAB_TEXT_BYTES], unit[24];
    double published, upper, measured, bound;
    enum lab_bound kind;
    bool predicted; /* "Published" is our derivation: the document's own figure is lost. */
    bool ok;
};

struct lab_series {
    char name[LAB_TEXT_BYTES], x[LAB_TEXT_BYTES], y[LAB_TEXT_BYTES];
    bool logarithmic;
    uint32_t count;
    struct {
        double x, y, expected; /* `expected` is LAB_NOTHING where nothing is expected. */
    } points[LAB_POINTS_MAX];
};

struct lab_experiment;

struct lab_run {
    const struct lab_experiment *experiment;
    uint64_t seed;
    double values[LAB_PARAMETERS_MAX]; /* The values, by index in the experiment's parameters. */
    bool set[LAB_PARAMETERS_MAX];
    bool used[LAB_PARAMETERS_MAX]; /* The experiment asked for the value of this parameter. */
    const char *trace_path, *capture_path; /* Files for the first world; NULL: none. */
    /* Called now and then with the progress of the run, 0..1; may be NULL. */
    void (*progress)(const struct lab_run *run, double share);
    struct lab_row rows[LAB_ROWS_MAX];
    struct lab_series series[LAB_SERIES_MAX];
    uint32_t row_count, series_count;
    uint64_t digest, events;
    uint32_t worlds;
    double wall_s;
    char failure[LAB_TEXT_BYTES]; /* If not empty, the run itself went wrong, and this says how. */
};

struct lab_experiment {
    const char *name, *document, *what;
    const struct lab_parameter *parameters;
    uint32_t parameter_count;
    void (*run)(struct lab_run *run);
    const char *explains; /* What the model explains about the document, and what it does not. */
};

/* All experiments; the last entry has no name. */
extern const struct lab_experiment *const lab_experiments[];
const struct lab_experiment *lab_find(const char *name);

/* A run with the experiment's own values. */
void lab_prepare(struct lab_run *run, const struct lab_experiment *experiment, uint64_t seed);
/* "name=value" or "name=valueUNIT". False, and why with the nearest valid name or range. */
bool lab_set(struct lab_run *run, const char *assignment, char *error, size_t error_bytes);
bool lab_set_value(struct lab_run *run, uint32_t index, double value, char *error,
                   size_t error_bytes);
/* The index of a parameter; -1, and the nearest name in `nearest` (never NULL). */
int lab_parameter_index(const struct lab_experiment *experiment, const char *name,
                        const char **nearest);
/* Reads a value with or without its unit. */
bool lab_parse_value(const struct lab_parameter *parameter, const char *text, double *value,
                     char *error, size_t error_bytes);
const char *lab_nearest_experiment(const char *name);

/* Runs it; true if every row is within its tolerance. */
bool lab_execute(struct lab_run *run);

/* -- For experiments ----------------------------------------------------------------------------*/

double lab_value(struct lab_run *run, const char *name);
uint64_t lab_ps(struct lab_run *run,
                const char *name); /* The value of a parameter in us, as picoseconds. */

struct lab_row *lab_add_row(struct lab_run *run, const char *id, const char *unit, const char *what,
                            ...) __attribute__((format(printf, 4, 5)));
void lab_judge_relative(struct lab_row *row, double published, double measured, double bound);
void lab_judge_absolute(struct lab_row *row, double published, double measured, double bound);
void lab_judge_range(struct lab_row *row, double least, double most, double measured);
/* Prints the bound: "±2 %". */
void lab_bound_text(const struct lab_row *row, char *text, size_t bytes);

struct lab_series *lab_add_series(struct lab_run *run, const char *name, const char *x,
                                  const char *y, bool logarithmic);
void lab_add_point(struct lab_series *series, double x, double y, double expected);

/* A world of the run begins (for the first one trace and capture are opened); a world has ended. */
void lab_world_begin(struct lab_run *run, struct sim *sim, struct sim_trace **trace,
                     struct sim_capture **capture, enum pcapng_link link);
void lab_world_end(struct lab_run *run, struct sim *sim, struct sim_trace *trace,
                   struct sim_capture *capture);
void lab_fail(struct lab_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lab_progress(const struct lab_run *run, double share);

#endif
