/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev_others - objects and counts of other nonic programs of this user.
 *
 * They answer with text. The process may be of another build or, if root asks, of another user. So
 * every line is judged, and a line that is not understood is ignored.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/stat_ask.h"
#include "kernel/nldev_objects.h"
#include "kernel/process.h"

/* A reader would take what it sees for all there is. */
static void complain_of_silence(const struct stat_program *programs, size_t count)
{
    size_t silent = 0;
    char text[80];
    for (size_t i = 0; i < count; i++) {
        silent += programs[i].outcome == STAT_SILENT;
    }
    if (silent > 0) {
        snprintf(text, sizeof(text), "left out: %zu programs that did not answer", silent);
        process_complain(text);
    }
}

/* Asks all others; the caller owns *programs. */
static size_t ask(const char *wish, struct stat_program **programs)
{
    size_t count = stat_find(programs), kept = 0;
    for (size_t i = 0; i < count; i++) {
        if ((*programs)[i].pid != getpid()) {
            (*programs)[kept++] = (*programs)[i];
        }
    }
    stat_ask(*programs, kept, wish != NULL, wish);
    complain_of_silence(*programs, kept);
    return kept;
}

/* The next line of `*text`, which moves on and is taken apart. NULL: there are no more. */
static char *next_line(char **text)
{
    return *text == NULL || **text == '\0' ? NULL : strsep(text, "\n");
}

/* The number behind a name in a line "NAME NUMBER". False: it is another line. */
static bool read_count(const char *line, const char *name, uint64_t *count)
{
    const size_t length = strlen(name);
    char *end;
    if (strncmp(line, name, length) != 0 || line[length] != ' ' || line[length + 1] < '0' ||
        line[length + 1] > '9') {
        return false;
    }
    *count = strtoull(line + length + 1, &end, 10);
    return *end == '\0';
}

static bool read_total(const char *line, enum nldev_kind kind, uint64_t *count)
{
    const size_t word = sizeof(NLDEV_TOTAL " ") - 1;
    return strncmp(line, NLDEV_TOTAL " ", word) == 0 &&
           read_count(line + word, nldev_kind_name(kind), count);
}

uint64_t others_collect(enum nldev_kind kind, struct nldev_resource *to, size_t *room)
{
    struct stat_program *programs;
    const size_t count = ask(nldev_kind_name(kind), &programs);
    struct nldev_resource *place = to + NLDEV_OBJECTS_MAX - *room;
    uint64_t total = 0, one;
    CHECK(*room <= NLDEV_OBJECTS_MAX);
    for (size_t i = 0; i < count; i++) {
        char *text = programs[i].text, *line;
        while (programs[i].outcome == STAT_ANSWERED && (line = next_line(&text)) != NULL) {
            if (read_total(line, kind, &one)) {
                total += one;
            } else if (*room > 0 && nldev_parse(line, place)) {
                place->pid = (uint32_t)programs[i].process;
                place++;
                (*room)--;
            }
        }
    }
    stat_forget(programs, count);
    return total;
}

void others_total(uint64_t totals[NLDEV_KINDS])
{
    struct stat_program *programs;
    const size_t count = ask(NLDEV_WISH_TOTALS, &programs);
    for (size_t i = 0; i < count; i++) {
        char *text = programs[i].text, *line;
        uint64_t one;
        while (programs[i].outcome == STAT_ANSWERED && (line = next_line(&text)) != NULL) {
            for (enum nldev_kind kind = 0; kind < NLDEV_KINDS; kind++) {
                totals[kind] += read_total(line, kind, &one) ? one : 0;
            }
        }
    }
    stat_forget(programs, count);
}

void others_count(struct nldev_counter *counters, size_t count)
{
    struct stat_program *programs;
    const size_t program_count = ask(NULL, &programs);
    for (size_t i = 0; i < program_count; i++) {
        char *text = programs[i].text, *line;
        uint64_t one;
        while (programs[i].outcome == STAT_ANSWERED && (line = next_line(&text)) != NULL) {
            for (size_t k = 0; k < count; k++) {
                counters[k].value += read_count(line, counters[k].name, &one) ? one : 0;
            }
        }
    }
    stat_forget(programs, program_count);
}
