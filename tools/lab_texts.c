/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Networks and their traffic, as files that are named on the command line (docs/topologies.md).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/pattern.h"
#include "sim/topology.h"
#include "sim/traffic_trace.h"
#include "tools/lab.h"

#define FIRST_BYTES 65536u

static const struct {
    const char *name;
    bool (*is_description)(const char *text); /* NULL: it is always a file. */
    const char *descriptions;
    size_t bytes_max;
} kinds[LAB_TEXTS] = {
    [LAB_TOPOLOGY] = {"topology", topology_is_named, TOPOLOGY_NAMES, TOPOLOGY_TEXT_MAX},
    [LAB_PATTERN] = {"pattern", pattern_is_named, PATTERN_NAMES, PATTERN_TEXT_MAX},
    [LAB_TRAFFIC] = {"traffic", NULL, NULL, TRAFFIC_TRACE_TEXT_MAX},
};

const char *lab_text_name(enum lab_text_kind kind)
{
    return kinds[kind].name;
}

/* Reads to the end of the file, which may be a pipe. NULL and errno: it cannot be read, or has more
 * than `most` bytes (EFBIG). To be freed. */
static char *read_all(FILE *file, size_t most, size_t *bytes)
{
    size_t room = FIRST_BYTES, used = 0;
    char *text = malloc(room);
    CHECK(text != NULL);
    errno = 0;
    while (true) {
        used += fread(text + used, 1, room - used, file);
        if (used < room || used > most) {
            break;
        }
        room *= 2;
        text = realloc(text, room);
        CHECK(text != NULL);
    }
    const int reason = ferror(file) ? errno : used > most ? EFBIG : 0;
    if (reason != 0) {
        free(text);
        errno = reason;
        return NULL;
    }
    *bytes = used;
    return text;
}

/* Without a file of that name, it may have been meant as a description. */
static void say_why(enum lab_text_kind kind, const char *name, char *error, size_t error_bytes)
{
    if (errno == ENOENT && kinds[kind].descriptions != NULL) {
        snprintf(error, error_bytes, "--%s: there is no file '%s', and it is not %s",
                 kinds[kind].name, name, kinds[kind].descriptions);
    } else if (errno == EFBIG) {
        snprintf(error, error_bytes, "--%s: %s has more than %zu bytes", kinds[kind].name, name,
                 kinds[kind].bytes_max);
    } else {
        snprintf(error, error_bytes, "--%s: %s: %s", kinds[kind].name, name, strerror(errno));
    }
}

bool lab_text_read(struct lab_text *text, enum lab_text_kind kind, const char *name, char *error,
                   size_t error_bytes)
{
    char *all = NULL;
    lab_text_free(text);
    text->name = name;
    if (kinds[kind].is_description != NULL && kinds[kind].is_description(name)) {
        return true;
    }
    FILE *file = fopen(name, "r");
    if (file != NULL) {
        all = read_all(file, kinds[kind].bytes_max, &text->bytes);
        const int reason = errno;
        fclose(file);
        errno = reason;
    }
    if (all == NULL) {
        say_why(kind, name, error, error_bytes);
    }
    text->text = all;
    return all != NULL;
}

void lab_text_free(struct lab_text *text)
{
    free((char *)(uintptr_t)text->text);
    *text = (struct lab_text){.name = NULL};
}

bool lab_texts_judge(const struct lab_job *job, struct lab_run *run, char *error,
                     size_t error_bytes)
{
    const struct lab_experiment *experiment = job->experiment;
    for (uint32_t i = 0; i < LAB_TEXTS; i++) {
        if (job->texts[i].name != NULL && experiment->judge_texts == NULL) {
            snprintf(error, error_bytes,
                     "%s takes no --%s; network/random does (docs/topologies.md has the others)",
                     experiment->name, kinds[i].name);
            return false;
        }
        run->texts[i] = job->texts[i];
    }
    if (experiment->judge_texts != NULL) {
        experiment->judge_texts(run);
        snprintf(error, error_bytes, "%s", run->failure);
    }
    return run->failure[0] == '\0';
}
