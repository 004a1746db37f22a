/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Many runs of one experiment: the values and the seed of each.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tools/lab.h"

#define VALUES_MAX 10000u

/* -- Values -------------------------------------------------------------------------------------*/

static bool add_value(struct lab_sweep *sweep, double value)
{
    if (sweep->count == VALUES_MAX) {
        return false;
    }
    sweep->values[sweep->count++] = value;
    return true;
}

/* "lo..hi:xF" or "lo..hi:+S". */
static bool parse_range(struct lab_sweep *sweep, const struct lab_parameter *parameter,
                        const char *text, char *error, size_t error_bytes)
{
    char low[64];
    const char *dots = strstr(text, "..");
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon < dots || (colon[1] != 'x' && colon[1] != '+')) {
        snprintf(error, error_bytes, "'%s' is no range: %s=LOW..HIGH:xFACTOR or %s=LOW..HIGH:+STEP",
                 text, parameter->name, parameter->name);
        return false;
    }
    char high[64];
    snprintf(low, sizeof(low), "%.*s", (int)(dots - text), text);
    snprintf(high, sizeof(high), "%.*s", (int)(colon - dots - 2), dots + 2);
    double from;
    double to;
    if (!lab_parse_value(parameter, low, &from, error, error_bytes) ||
        !lab_parse_value(parameter, high, &to, error, error_bytes)) {
        return false;
    }
    char *end;
    const double step = strtod(colon + 2, &end);
    const bool factor = colon[1] == 'x';
    if (*end != '\0' || !isfinite(step) || (factor ? step <= 1 || from <= 0 : step <= 0) ||
        from > to) {
        snprintf(error, error_bytes, "'%s' is no rising range: a factor is above 1, a step above 0",
                 text);
        return false;
    }
    /* The limit lies slightly beyond the end, for steps that are no binary fractions. */
    for (double value = from; value <= to * (1 + 1e-12);
         value = factor ? value * step : value + step) {
        if (!add_value(sweep, value)) {
            snprintf(error, error_bytes, "'%s' has more than %u values", text, VALUES_MAX);
            return false;
        }
    }
    return true;
}

static bool parse_list(struct lab_sweep *sweep, const struct lab_parameter *parameter,
                       const char *text, char *error, size_t error_bytes)
{
    while (true) {
        char one[64];
        const size_t length = strcspn(text, ",");
        double value;
        snprintf(one, sizeof(one), "%.*s", (int)length, text);
        if (!lab_parse_value(parameter, one, &value, error, error_bytes)) {
            return false;
        }
        if (!add_value(sweep, value)) {
            snprintf(error, error_bytes, "%s has more than %u values", parameter->name, VALUES_MAX);
            return false;
        }
        if (text[length] == '\0') {
            return true;
        }
        text += length + 1;
    }
}

bool lab_sweep_parse(struct lab_job *job, const char *text, char *error, size_t error_bytes)
{
    char name[64];
    const char *nearest;
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof(name)) {
        snprintf(error, error_bytes, "'%s' is not NAME=VALUES", text);
        return false;
    }
    if (job->sweep_count == LAB_SWEEPS_MAX) {
        snprintf(error, error_bytes, "more than %d sweeps", LAB_SWEEPS_MAX);
        return false;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
    const int index = lab_parameter_index(job->experiment, name, &nearest);
    if (index < 0) {
        snprintf(error, error_bytes, "%s has no parameter '%s'; the nearest is '%s'",
                 job->experiment->name, name, nearest);
        return false;
    }
    struct lab_sweep *sweep = &job->sweeps[job->sweep_count++];
    const struct lab_parameter *parameter = &job->experiment->parameters[index];
    *sweep = (struct lab_sweep){.parameter = (uint32_t)index};
    sweep->values = calloc(VALUES_MAX, sizeof(sweep->values[0]));
    CHECK(sweep->values != NULL);
    return parameter->kind != LAB_IS_WORD && strstr(equals, "..") != NULL
               ? parse_range(sweep, parameter, equals + 1, error, error_bytes)
               : parse_list(sweep, parameter, equals + 1, error, error_bytes);
}

uint32_t lab_job_points(const struct lab_job *job)
{
    uint32_t points = 1;
    for (uint32_t i = 0; i < job->sweep_count; i++) {
        points *= job->sweeps[i].count;
    }
    return points;
}

bool lab_job_prepare(const struct lab_job *job, uint32_t index, struct lab_run *run, char *error,
                     size_t error_bytes)
{
    uint32_t point = index / job->repeats;
    lab_prepare(run, job->experiment, job->seed + index % job->repeats);
    run->judged = job->judge || job->set_count + job->sweep_count == 0;
    for (uint32_t i = 0; i < LAB_TEXTS; i++) {
        run->judged &= job->judge || job->texts[i].name == NULL;
    }
    for (uint32_t i = 0; i < job->set_count; i++) {
        if (!lab_set(run, job->sets[i], error, error_bytes)) {
            return false;
        }
    }
    for (uint32_t i = job->sweep_count; i > 0; i--) {
        const struct lab_sweep *sweep = &job->sweeps[i - 1];
        if (!lab_set_value(run, sweep->parameter, sweep->values[point % sweep->count], error,
                           error_bytes)) {
            return false;
        }
        point /= sweep->count;
    }
    return lab_texts_judge(job, run, error, error_bytes);
}

void lab_job_free(struct lab_job *job)
{
    for (uint32_t i = 0; i < job->sweep_count; i++) {
        free(job->sweeps[i].values);
    }
    for (uint32_t i = 0; i < LAB_TEXTS; i++) {
        lab_text_free(&job->texts[i]);
    }
}
