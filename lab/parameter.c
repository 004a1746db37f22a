/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Parameters: which ones an experiment has, and what values they take.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "lab/lab.h"
#include "lab/names.h"

#define PS_PER_US   1e6
#define ENTRY_BYTES 64

/* -- Which ones ---------------------------------------------------------------------------------*/

/* Reads an entry "NAME" or "NAME=VALUE" of a list; true if it is about this parameter. */
static bool entry_names(const char *entry, const char *name)
{
    const size_t length = strcspn(entry, "=");
    return strlen(name) == length && memcmp(entry, name, length) == 0;
}

bool lab_uses(const struct lab_experiment *experiment, uint32_t index)
{
    const char *list = experiment->uses;
    char entry[ENTRY_BYTES];
    while (names_next(&list, entry, sizeof(entry))) {
        if (entry_names(entry, experiment->parameters[index].name)) {
            return true;
        }
    }
    return false;
}

int lab_parameter_index(const struct lab_experiment *experiment, const char *name,
                        const char **nearest)
{
    *nearest = "none";
    size_t least = SIZE_MAX;
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        const char *candidate = experiment->parameters[i].name;
        if (!lab_uses(experiment, i)) {
            continue;
        }
        if (strcmp(candidate, name) == 0) {
            return (int)i;
        }
        if (names_distance(name, candidate) < least) {
            least = names_distance(name, candidate);
            *nearest = candidate;
        }
    }
    return -1;
}

/* -- Words --------------------------------------------------------------------------------------*/

static bool parse_word(const struct lab_parameter *parameter, const char *text, double *value,
                       char *error, size_t error_bytes)
{
    const char *list = parameter->words;
    const char *nearest = NULL;
    static const size_t far = SIZE_MAX;
    size_t least = far;
    char word[ENTRY_BYTES];
    char best[ENTRY_BYTES];
    for (uint32_t i = 0; names_next(&list, word, sizeof(word)); i++) {
        if (strcmp(word, text) == 0) {
            *value = i;
            return true;
        }
        if (names_distance(text, word) < least) {
            least = names_distance(text, word);
            memcpy(best, word, sizeof(best));
            nearest = best;
        }
    }
    CHECK(nearest != NULL);
    snprintf(error, error_bytes, "%s=%s: valid are %s; the nearest is %s", parameter->name, text,
             parameter->words, nearest);
    return false;
}

static uint32_t word_count(const struct lab_parameter *parameter)
{
    const char *list = parameter->words;
    char word[ENTRY_BYTES];
    uint32_t count = 0;
    while (names_next(&list, word, sizeof(word))) {
        count++;
    }
    return count;
}

/* -- Values as text -----------------------------------------------------------------------------*/

void lab_value_text(const struct lab_parameter *parameter, double value, char *text, size_t bytes)
{
    if (parameter->kind != LAB_IS_WORD) {
        snprintf(text, bytes, "%.10g", value);
        return;
    }
    const char *list = parameter->words;
    for (uint32_t i = 0; i <= (uint32_t)value; i++) {
        CHECK(names_next(&list, text, bytes));
    }
}

void lab_range_text(const struct lab_parameter *parameter, char *text, size_t bytes)
{
    if (parameter->kind == LAB_IS_WORD) {
        snprintf(text, bytes, "%s", parameter->words);
    } else {
        snprintf(text, bytes, "%.10g..%.10g", parameter->least, parameter->most);
    }
}

bool lab_parse_value(const struct lab_parameter *parameter, const char *text, double *value,
                     char *error, size_t error_bytes)
{
    if (parameter->kind == LAB_IS_WORD) {
        return parse_word(parameter, text, value, error, error_bytes);
    }
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

/* -- Values of a run ----------------------------------------------------------------------------*/

bool lab_judge_value(const struct lab_parameter *parameter, double value, char *error,
                     size_t error_bytes)
{
    if (parameter->kind == LAB_IS_WORD) {
        CHECK(value >= 0 && value < word_count(parameter));
        return true;
    }
    if (value < parameter->least || value > parameter->most) {
        const double nearest = value < parameter->least ? parameter->least : parameter->most;
        snprintf(error, error_bytes, "%s=%g is out of range %g..%g %s; the nearest valid is %g",
                 parameter->name, value, parameter->least, parameter->most, parameter->unit,
                 nearest);
        return false;
    }
    if (parameter->kind == LAB_IS_WHOLE && value != floor(value)) {
        snprintf(error, error_bytes, "%s=%g is not a whole number; the nearest valid is %g",
                 parameter->name, value, round(value));
        return false;
    }
    return true;
}

bool lab_set_value(struct lab_run *run, uint32_t index, double value, char *error,
                   size_t error_bytes)
{
    if (!lab_judge_value(&run->experiment->parameters[index], value, error, error_bytes)) {
        return false;
    }
    run->values[index] = value;
    run->set[index] = true;
    return true;
}

bool lab_set(struct lab_run *run, const char *assignment, char *error, size_t error_bytes)
{
    char name[ENTRY_BYTES];
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

bool lab_set_all(struct lab_run *run, const char *assignments, char *error, size_t error_bytes)
{
    char assignment[ENTRY_BYTES];
    while (names_next(&assignments, assignment, sizeof(assignment))) {
        if (!lab_set(run, assignment, error, error_bytes)) {
            return false;
        }
    }
    return true;
}

bool lab_next_alternative(const char **left, char *settings, size_t bytes)
{
    if (**left == '\0') {
        return false;
    }
    const char *bar = strchr(*left, '|');
    size_t length = bar == NULL ? strlen(*left) : (size_t)(bar - *left);
    const char *behind = *left + length;
    while (length > 0 && (*left)[length - 1] == ' ') {
        length--;
    }
    CHECK(length > 0 && length < bytes);
    memcpy(settings, *left, length);
    settings[length] = '\0';
    *left = behind + (bar == NULL ? 0 : strspn(behind, "| "));
    return true;
}

void lab_prepare(struct lab_run *run, const struct lab_experiment *experiment, uint64_t seed)
{
    char error[2 * LAB_TEXT_BYTES];
    char entry[ENTRY_BYTES];
    CHECK(experiment->parameter_count <= LAB_PARAMETERS_MAX);
    *run = (struct lab_run){.experiment = experiment, .seed = seed, .judged = true};
    for (uint32_t i = 0; i < experiment->parameter_count; i++) {
        run->values[i] = experiment->parameters[i].value;
    }
    for (const char *list = experiment->uses; names_next(&list, entry, sizeof(entry));) {
        if (strchr(entry, '=') != NULL) {
            CHECK(lab_set(run, entry, error, sizeof(error)));
        }
    }
    memset(run->set, 0, sizeof(run->set));
}

/* -- For experiments ----------------------------------------------------------------------------*/

static uint32_t index_of(const struct lab_run *run, const char *name)
{
    uint32_t i = 0;
    while (i < run->experiment->parameter_count &&
           strcmp(run->experiment->parameters[i].name, name) != 0) {
        i++;
    }
    CHECK(i < run->experiment->parameter_count);
    return i;
}

bool lab_is_set(const struct lab_run *run, const char *name)
{
    return run->set[index_of(run, name)];
}

/* The parameter must be one of the experiment's: the experiment asks for it. */
double lab_value(struct lab_run *run, const char *name)
{
    const uint32_t index = index_of(run, name);
    CHECK(run->used[index] || lab_uses(run->experiment, index));
    run->used[index] = true;
    return run->values[index];
}

double lab_value_or_default(struct lab_run *run, const char *name)
{
    const uint32_t index = index_of(run, name);
    run->used[index] |= lab_uses(run->experiment, index);
    return run->values[index];
}

uint64_t lab_ps(struct lab_run *run, const char *name)
{
    CHECK(strcmp(run->experiment->parameters[index_of(run, name)].unit, "us") == 0);
    return (uint64_t)(lab_value(run, name) * PS_PER_US);
}

uint32_t lab_word(struct lab_run *run, const char *name)
{
    CHECK(run->experiment->parameters[index_of(run, name)].kind == LAB_IS_WORD);
    return (uint32_t)lab_value(run, name);
}
