/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/lab.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lab/names.h"

/* -- Experiments --------------------------------------------------------------------------------*/

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
    const size_t whole = names_distance(name, experiment);
    const size_t part = slash == NULL ? whole : names_distance(name, slash + 1);
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

/* -- Runs ---------------------------------------------------------------------------------------*/

/* A run that gave no number has gone wrong, though nothing is compared with it. */
static void judge_whole(struct lab_run *run)
{
    for (uint32_t i = 0; i < run->row_count; i++) {
        if (!isfinite(run->rows[i].measured)) {
            lab_fail(run, "%s has no value", run->rows[i].id);
        }
    }
    if (run->trace_path != NULL && run->worlds == 0) {
        lab_fail(run, "no machine runs in this experiment, so there is nothing to trace");
    }
}

static void note_text(struct lab_run *run, const char *text)
{
    for (; *text != '\0'; text++) {
        lab_note(run, (unsigned char)*text);
    }
}

/* Results are a part of the digest, as a person reads them: the last bits of a double may depend on
 * the machine's library. */
static void note_results(struct lab_run *run)
{
    char number[32];
    for (uint32_t i = 0; i < run->row_count; i++) {
        snprintf(number, sizeof(number), "%.6g", run->rows[i].measured);
        note_text(run, run->rows[i].id);
        note_text(run, number);
    }
    for (uint32_t i = 0; i < run->series_count; i++) {
        for (uint32_t k = 0; k < run->series[i].count; k++) {
            snprintf(number, sizeof(number), "%.6g", run->series[i].points[k].y);
            note_text(run, number);
        }
    }
    note_text(run, run->failure);
}

bool lab_execute(struct lab_run *run)
{
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    run->experiment->run(run);
    judge_whole(run);
    note_results(run);
    clock_gettime(CLOCK_MONOTONIC, &after);
    run->wall_s =
        (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    run->finished = true;
    return lab_run_good(run);
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

void lab_note(struct lab_run *run, uint64_t what)
{
    run->digest = (run->digest ^ what) * UINT64_C(0x9e3779b97f4a7c15);
    run->digest ^= run->digest >> 31;
}

void lab_world_end(struct lab_run *run, struct sim *sim, struct sim_trace *trace,
                   struct sim_capture *capture)
{
    char error[LAB_TEXT_BYTES];
    const uint64_t pending = sim_pending(sim);
    run->events += sim->events;
    run->pending = pending > run->pending ? pending : run->pending;
    lab_note(run, sim->digest);
    if (trace != NULL && sim_trace_count(trace) == 0) {
        lab_fail(run, "the trace is empty: this machine writes none");
    }
    if (trace != NULL && !sim_trace_close(trace, error, sizeof(error))) {
        lab_fail(run, "%s", error);
    }
    if (capture != NULL && sim_capture_count(capture) == 0) {
        lab_fail(run, "the capture is empty: the run's first world wrote no packets");
    }
    if (capture != NULL && !sim_capture_close(capture, error, sizeof(error))) {
        lab_fail(run, "%s", error);
    }
}
