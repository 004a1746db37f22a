/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_record - run.json: what a run was, so that it can be made again.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/repeat.h"
#include "tools/repeat_code.h"

extern char **environ;

static json_t *texts(char **from, int count)
{
    json_t *array = json_array();
    for (int i = 0; i != count && from[i] != NULL; i++) {
        json_array_append_new(array, json_stringn_nocheck(from[i], strlen(from[i])));
    }
    return array;
}

static json_t *numbers(const uint64_t *from, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, json_integer((json_int_t)from[i]));
    }
    return array;
}

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

bool record_write(const struct repeat *repeat, const char *directory, uint64_t seed,
                  const struct box_result *result)
{
    static const char *const ends[] = {"ended", "deadlock", "late", "halted", "stopped", "failed"};
    char path[PATH_MAX], here[PATH_MAX], digest[20];
    const struct box_options *box = &repeat->box;
    snprintf(path, sizeof(path), "%srun.json", directory);
    snprintf(digest, sizeof(digest), "%016" PRIx64, result->digest);
    json_t *run = json_object();
    json_object_set_new(run, "command", texts(repeat->argv, repeat->argc));
    json_object_set_new(run, "folder", json_string(getcwd(here, sizeof(here)) == NULL ? "" : here));
    json_object_set_new(run, "environment", texts(environ, -1));
    json_object_set_new(run, "seed", number(seed));
    json_object_set_new(run, "jitter", number(box->jitter));
    json_object_set_new(run, "hold_ns", number(box->hold_ns));
    if (box->holds != NULL) {
        json_object_set_new(run, "holds", numbers(box->holds, box->hold_count));
    }
    json_object_set_new(run, "until_ns", number(box->until_ns));
    if (repeat->machine != NULL) {
        json_object_set_new(run, "machine", json_string(repeat->machine));
        if (repeat->topology != NULL) {
            json_object_set_new(run, "topology", json_string(repeat->topology));
        }
        json_object_set_new(run, "settings",
                            texts((char **)(uintptr_t)repeat->settings, repeat->setting_count));
    }
    json_object_set_new(run, "no_ties", json_boolean(box->no_ties));
    json_object_set_new(run, "memory", json_boolean(box->memory));
    json_object_set_new(run, "end", json_string(ends[result->end]));
    json_object_set_new(run, "status", json_integer(result->status));
    json_object_set_new(run, "virtual_ns", number(result->virtual_ns));
    json_object_set_new(run, "calls", number(result->calls));
    json_object_set_new(run, "digest", json_string(digest));
    json_object_set_new(run, "unrepeatable", json_string(result->unrepeatable));
    json_object_set_new(run, "report", json_string(result->report));
    json_object_set_new(run, "code", repeat_code_files(directory));
    const bool done = json_dump_file(run, path, JSON_INDENT(1)) == 0;
    json_decref(run);
    return done;
}

static uint64_t number_of(const json_t *run, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(run, name));
}

static char **texts_of(const json_t *array, int *count)
{
    char **into = calloc(json_array_size(array) + 1, sizeof(char *));
    CHECK(into != NULL);
    *count = 0;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *text = json_string_value(json_array_get(array, i));
        into[(*count)++] = strdup(text == NULL ? "" : text);
    }
    return into;
}

/* NULL: there is no such array. */
static uint64_t *numbers_of(const json_t *array, size_t *count)
{
    *count = json_array_size(array);
    uint64_t *into = array == NULL ? NULL : calloc(*count + 1, sizeof(*into));
    CHECK(array == NULL || into != NULL);
    for (size_t i = 0; i < *count; i++) {
        into[i] = (uint64_t)json_integer_value(json_array_get(array, i));
    }
    return into;
}

/* A copy; NULL: it is no string. */
static char *text_of(const json_t *value)
{
    const char *text = json_string_value(value);
    char *copy = text == NULL ? NULL : strdup(text);
    CHECK(text == NULL || copy != NULL);
    return copy;
}

bool record_read(const char *directory, struct repeat *repeat, uint64_t *digest)
{
    char path[PATH_MAX];
    json_error_t wrong;
    int count;
    snprintf(path, sizeof(path), "%s/run.json", directory);
    json_t *run = json_load_file(path, 0, &wrong);
    const char *folder = json_string_value(json_object_get(run, "folder"));
    const char *recorded = json_string_value(json_object_get(run, "digest"));
    if (folder == NULL || recorded == NULL || sscanf(recorded, "%" SCNx64, digest) != 1 ||
        json_array_size(json_object_get(run, "command")) < 2) {
        fprintf(stderr,
                "nonic: %s is no record of a run (%s); 'nonic repeat --output DIR' writes one\n",
                path, run == NULL ? wrong.text : "parts of it are missing");
        json_decref(run);
        return false;
    }
    if (chdir(folder) != 0) {
        fprintf(stderr, "nonic: the run was made in %s, which is not there: %s\n", folder,
                strerror(errno));
        json_decref(run);
        return false;
    }
    environ = texts_of(json_object_get(run, "environment"), &count);
    repeat->argv = texts_of(json_object_get(run, "command"), &repeat->argc);
    repeat->box = (struct box_options){.seed = number_of(run, "seed"),
                                       .jitter = (unsigned)number_of(run, "jitter"),
                                       .hold_ns = number_of(run, "hold_ns"),
                                       .until_ns = number_of(run, "until_ns"),
                                       .no_ties = json_is_true(json_object_get(run, "no_ties")),
                                       .memory = json_is_true(json_object_get(run, "memory"))};
    repeat->box.holds = numbers_of(json_object_get(run, "holds"), &repeat->box.hold_count);
    const char *machine = text_of(json_object_get(run, "machine"));
    repeat->topology = text_of(json_object_get(run, "topology"));
    char **settings = texts_of(json_object_get(run, "settings"), &count);
    for (int i = 0; i < count; i++) {
        repeat_note_setting(repeat, settings[i]);
    }
    const bool is_known = machine == NULL || repeat_choose_machine(repeat, machine);
    if (!is_known) {
        fprintf(stderr, "nonic: there is no machine '%s' here\n", machine);
    }
    repeat_tell_other_code(json_object_get(run, "code"));
    json_decref(run);
    return is_known && repeat_judge_machine(repeat);
}
