/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lab - the parts of `nonic lab`.
 */
#ifndef TOOLS_LAB_H
#define TOOLS_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lab/lab.h"

#define LAB_SWEEPS_MAX 8
#define LAB_SETS_MAX   LAB_PARAMETERS_MAX

/* -- What to run --------------------------------------------------------------------------------*/

struct lab_sweep {
    uint32_t parameter;
    uint32_t count;
    double *values;
};

struct lab_job {
    const struct lab_experiment *experiment;
    uint64_t seed;
    const char *sets[LAB_SETS_MAX];
    uint32_t set_count;
    struct lab_sweep sweeps[LAB_SWEEPS_MAX];
    uint32_t sweep_count;
    const char *trace_path, *capture_path;
    bool json, quiet;
};

/* "name=a,b,c", "name=lo..hi:xF" (each F times the one before) or "name=lo..hi:+S". */
bool lab_sweep_parse(struct lab_job *job, const char *text, char *error, size_t error_bytes);
/* How many runs: the product of the sweeps. */
uint32_t lab_job_points(const struct lab_job *job);
/* Returns run `point` with its values set, ready to execute; the last sweep changes fastest. */
bool lab_job_prepare(const struct lab_job *job, uint32_t point, struct lab_run *run, char *error,
                     size_t error_bytes);
void lab_job_free(struct lab_job *job);

/* Executes all points on all cores, and on all MPI ranks if there are several; results in order.
 * Returns `points` runs, or NULL on every rank but the first. The caller frees. */
struct lab_run *lab_job_execute(const struct lab_job *job, char *error, size_t error_bytes);

/* -- What came out ------------------------------------------------------------------------------*/

void lab_print_list(FILE *to, bool json);
void lab_print_parameters(FILE *to, const struct lab_experiment *experiment);
void lab_print_run(FILE *to, const struct lab_job *job, const struct lab_run *run);
void lab_print_json(FILE *to, const struct lab_job *job, const struct lab_run *runs,
                    uint32_t count);
bool lab_run_good(const struct lab_run *run);

/* Writes one page of HTML with everything. False, and why, if it cannot be written. */
bool lab_write_report(const char *directory, const struct lab_run *runs, uint32_t count,
                      char *error, size_t error_bytes);

/* -- MPI ----------------------------------------------------------------------------------------*/

/* Under mpirun: this rank, and the number of ranks; else 0 and 1. */
struct lab_ranks {
    int rank, size;
    /* Before, every rank has the runs with index % size == rank; afterwards rank 0 has all. */
    void (*gather)(struct lab_run *runs, uint32_t count);
    void (*finish)(void);
};

bool lab_ranks_open(struct lab_ranks *ranks, char *error, size_t error_bytes);

#endif
