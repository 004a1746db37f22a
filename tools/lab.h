/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lab - the parts of `nonic lab`.
 */
#ifndef TOOLS_LAB_H
#define TOOLS_LAB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lab/lab.h"

#define LAB_SWEEPS_MAX  8
#define LAB_SETS_MAX    LAB_PARAMETERS_MAX
#define LAB_REPEATS_MAX 10000u

/* -- Values to run (lab_sweep.c) ----------------------------------------------------------------*/

struct lab_sweep {
    uint32_t parameter;
    uint32_t count;
    double *values;
};

struct lab_job {
    const struct lab_experiment *experiment;
    uint64_t seed;
    uint32_t repeats; /* Runs for each point, with as many seeds; at least 1. */
    const char *sets[LAB_SETS_MAX];
    uint32_t set_count;
    struct lab_sweep sweeps[LAB_SWEEPS_MAX];
    uint32_t sweep_count;
    struct lab_text texts[LAB_TEXTS];
    const char *trace_path, *capture_path;
    bool json, csv;
    bool judge; /* Also where the parameters are not the document's. */
    bool stats; /* Memory is printed, too. */
};

/* "name=a,b,c", "name=lo..hi:xF" (each F times the one before) or "name=lo..hi:+S". */
bool lab_sweep_parse(struct lab_job *job, const char *text, char *error, size_t error_bytes);
/* How many combinations of values: the product of the sweeps. */
uint32_t lab_job_points(const struct lab_job *job);
/* Prepares one of the points * repeats runs: the last sweep changes fastest, but for the seed. */
bool lab_job_prepare(const struct lab_job *job, uint32_t index, struct lab_run *run, char *error,
                     size_t error_bytes);
void lab_job_free(struct lab_job *job);

/* -- Networks and traffic from files (lab_texts.c) ----------------------------------------------*/

/* The option's name, without its dashes. */
const char *lab_text_name(enum lab_text_kind kind);
/* Takes a description as it is, which has to stay; otherwise reads the file of this name. False: it
 * cannot be read, and `error` says why. */
bool lab_text_read(struct lab_text *text, enum lab_text_kind kind, const char *name, char *error,
                   size_t error_bytes);
void lab_text_free(struct lab_text *text);
/* Gives a run the texts of its job. False: the experiment takes none, or they are wrong. */
bool lab_texts_judge(const struct lab_job *job, struct lab_run *run, char *error,
                     size_t error_bytes);

/* -- Many runs (lab_cores.c) --------------------------------------------------------------------*/

/* Zeroed runs in memory that child processes share. Aborts without memory. */
struct lab_run *lab_runs_open(uint32_t count);
void lab_runs_close(struct lab_run *runs, uint32_t count);

/* Executes runs that are prepared, on all cores, and on all MPI ranks if there are several.
 * `finished`, which may be NULL, is called for each as it ends, in the process that ran it. False,
 * and why: a run ended early, or this rank is not the first, which has all results (no error). */
bool lab_runs_execute(struct lab_run *runs, uint32_t count,
                      void (*finished)(const struct lab_run *run, uint32_t number, uint32_t count),
                      char *error, size_t error_bytes);

/* -- Repeated runs (lab_repeat.c) ---------------------------------------------------------------*/

/* The mean over runs that differ in the seed, and half of the interval that has the true mean in it
 * with a probability of 95 % (Student's t). Half is 0 if nothing is random, or if there is one run
 * only. */
struct lab_mean {
    double mean, half;
};

struct lab_mean lab_row_mean(const struct lab_run *runs, uint32_t count, uint32_t row);
struct lab_mean lab_reading_mean(const struct lab_run *runs, uint32_t count, uint32_t reading);
struct lab_mean lab_point_mean(const struct lab_run *runs, uint32_t count, uint32_t series,
                               uint32_t point);
/* False, and why: the runs do not have the same rows and points. */
bool lab_repeats_match(const struct lab_run *runs, uint32_t count, char *error, size_t error_bytes);

/* -- Results (lab_output.c, lab_json.c, lab_csv.c) ----------------------------------------------*/

void lab_print_list(FILE *to, const struct lab_experiment *const *experiments, uint32_t count,
                    bool json);
void lab_print_experiment(FILE *to, const struct lab_experiment *experiment);
/* One point: its runs, which differ in the seed. */
void lab_print_runs(FILE *to, const struct lab_job *job, const struct lab_run *runs);
void lab_print_json(FILE *to, const struct lab_job *job, const struct lab_run *runs,
                    uint32_t points);
/* A line of names, and a line for each point: the values that were set, the seed, readings and
 * rows; with repeats the means, and half of each interval beside them. */
void lab_print_csv(FILE *to, const struct lab_job *job, const struct lab_run *runs,
                   uint32_t points);
/* A value, or null where there is none. */
json_t *lab_json_number(double value);
json_t *lab_json_parameters(const struct lab_experiment *experiment);
json_t *lab_json_claims(const struct lab_experiment *experiment);

/* -- Settings that must break rows (lab_falsify.c) ----------------------------------------------*/

/* Runs experiments as they are and without what their rows rest on. Returns the exit status: 0 if
 * every row breaks, or is known not to be reproduced. */
int lab_falsify(const struct lab_experiment *const *experiments, uint32_t count, uint64_t seed,
                bool json);

/* -- The report (lab_report.c, lab_figure.c) ----------------------------------------------------*/

/* Makes the folder if it is not there, and writes an .svg and a .csv for each figure of a run.
 * False, and why, if it cannot. */
bool lab_draw_figures(const char *directory, const struct lab_run *run, char *error,
                      size_t error_bytes);
/* Writes report.html of those runs that are finished, and whose figures are drawn. The file is
 * replaced as a whole. False, and why, if it cannot. */
bool lab_write_report(const char *directory, const struct lab_run *runs, uint32_t count,
                      char *error, size_t error_bytes);
/* The file name of a figure, without folder and suffix. */
void lab_figure_name(const struct lab_run *run, const struct lab_figure *figure, char *name,
                     size_t bytes);
bool lab_draw_figure(const char *directory, const struct lab_run *run, uint32_t figure, char *error,
                     size_t error_bytes);

/* -- MPI ----------------------------------------------------------------------------------------*/

/* Under mpirun: this rank, and the number of ranks; else 0 and 1. */
struct lab_ranks {
    int rank, size;
    /* Before, every rank has the runs with index % size == rank; afterwards rank 0 has all. */
    void (*gather)(struct lab_run *runs, uint32_t count);
    void (*finish)(void);
};

#endif
