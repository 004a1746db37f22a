/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The results of runs as a table: a line for each point, a column for each number.
 *
 * Points of one job have the same columns: those of the first point that has most of them. A run
 * that went wrong may lack some, whose places stay empty.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "tools/lab.h"

/* RFC 4180: a quote inside is doubled. */
static void print_text(FILE *to, const char *text)
{
    fprintf(to, "\"");
    for (; *text != '\0'; text++) {
        fprintf(to, *text == '"' ? "\"\"" : "%c", *text);
    }
    fprintf(to, "\"");
}

static void print_mean(FILE *to, struct lab_mean mean, uint32_t repeats)
{
    if (isfinite(mean.mean)) {
        fprintf(to, ",%.10g", mean.mean);
    } else {
        fprintf(to, ",");
    }
    if (repeats > 1 && isfinite(mean.half)) {
        fprintf(to, ",%.10g", mean.half);
    } else if (repeats > 1) {
        fprintf(to, ",");
    }
}

/* -- The line of names --------------------------------------------------------------------------*/

static void print_name(FILE *to, const char *name, uint32_t repeats)
{
    fprintf(to, repeats > 1 ? ",%s,%s_interval" : ",%s", name, name);
}

static bool is_reading(const struct lab_run *run, const char *name)
{
    for (uint32_t i = 0; i < run->reading_count; i++) {
        if (strcmp(run->readings[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A parameter may have the name of a reading (rate): each column has a name of its own. */
static void print_names(FILE *to, const struct lab_job *job, const struct lab_run *run)
{
    const struct lab_experiment *experiment = run->experiment;
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        if (run->set[i]) {
            const char *name = experiment->parameters[i].name;
            fprintf(to, is_reading(run, name) ? "%s_set," : "%s,", name);
        }
    }
    for (uint32_t i = 0; i < LAB_TEXTS; i++) {
        if (job->texts[i].name != NULL) {
            fprintf(to, "%s_text,", lab_text_name(i));
        }
    }
    fprintf(to, job->repeats > 1 ? "seed,repeats" : "seed");
    for (uint32_t i = 0; i < run->reading_count; i++) {
        print_name(to, run->readings[i].name, job->repeats);
    }
    for (uint32_t i = 0; i < run->row_count; i++) {
        print_name(to, run->rows[i].id, job->repeats);
    }
    fprintf(to, "\n");
}

/* -- The line of a point ------------------------------------------------------------------------*/

static void print_settings(FILE *to, const struct lab_job *job, const struct lab_run *run)
{
    const struct lab_experiment *experiment = run->experiment;
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        char value[48];
        if (run->set[i]) {
            lab_value_text(&experiment->parameters[i], run->values[i], value, sizeof(value));
            fprintf(to, "%s,", value);
        }
    }
    for (uint32_t i = 0; i < LAB_TEXTS; i++) {
        if (job->texts[i].name != NULL) {
            print_text(to, job->texts[i].name);
            fprintf(to, ",");
        }
    }
    fprintf(to, "%" PRIu64, run->seed);
    if (job->repeats > 1) {
        fprintf(to, ",%" PRIu32, job->repeats);
    }
}

static struct lab_mean reading_named(const struct lab_run *runs, uint32_t repeats, const char *name)
{
    for (uint32_t i = 0; i < runs[0].reading_count; i++) {
        if (strcmp(runs[0].readings[i].name, name) == 0) {
            return lab_reading_mean(runs, repeats, i);
        }
    }
    return (struct lab_mean){LAB_NOTHING, LAB_NOTHING};
}

static struct lab_mean row_named(const struct lab_run *runs, uint32_t repeats, const char *id)
{
    for (uint32_t i = 0; i < runs[0].row_count; i++) {
        if (strcmp(runs[0].rows[i].id, id) == 0) {
            return lab_row_mean(runs, repeats, i);
        }
    }
    return (struct lab_mean){LAB_NOTHING, LAB_NOTHING};
}

static void print_point(FILE *to, const struct lab_job *job, const struct lab_run *names,
                        const struct lab_run *runs)
{
    print_settings(to, job, runs);
    for (uint32_t i = 0; i < names->reading_count; i++) {
        print_mean(to, reading_named(runs, job->repeats, names->readings[i].name), job->repeats);
    }
    for (uint32_t i = 0; i < names->row_count; i++) {
        print_mean(to, row_named(runs, job->repeats, names->rows[i].id), job->repeats);
    }
    fprintf(to, "\n");
    for (uint32_t i = 0; i < job->repeats; i++) {
        if (runs[i].failure[0] != '\0') {
            fprintf(stderr, "nonic: FAILED with seed %" PRIu64 ": %s\n", runs[i].seed,
                    runs[i].failure);
        }
    }
}

void lab_print_csv(FILE *to, const struct lab_job *job, const struct lab_run *runs, uint32_t points)
{
    const struct lab_run *names = &runs[0];
    for (uint32_t i = 1; i < points; i++) {
        const struct lab_run *run = &runs[(size_t)i * job->repeats];
        if (run->reading_count + run->row_count > names->reading_count + names->row_count) {
            names = run;
        }
    }
    print_names(to, job, names);
    for (uint32_t i = 0; i < points; i++) {
        print_point(to, job, names, &runs[(size_t)i * job->repeats]);
    }
}
