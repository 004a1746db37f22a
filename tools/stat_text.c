/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/stat_text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "drivers/stat_server.h"
#include "tools/feroce_text.h"

#define NAME_CHARACTERS_MAX 64
#define CONNECTION_NAME     "connection"

bool stat_parse_pids(struct stat_named *named, int count, char **words)
{
    *named = (struct stat_named){0};
    named->pids = calloc((size_t)count + 1, sizeof(*named->pids));
    for (int i = 0; i < count && named->pids != NULL; i++) {
        uint64_t pid;
        if (!text_number(words[i], 1, INT32_MAX, &pid)) {
            fprintf(stderr, "nonic: '%s' is not a process number\n", words[i]);
            free(named->pids);
            return false;
        }
        named->pids[named->count++] = (int)pid;
    }
    return named->pids != NULL;
}

void stat_clean(char *text)
{
    for (; *text != '\0'; text++) {
        *text = *text >= ' ' && *text <= '~' ? *text : '?';
    }
}

void stat_command_of(pid_t process, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", process);
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    if (file != NULL) {
        if (fgets(text, (int)bytes, file) != NULL) {
            text[strcspn(text, "\n")] = '\0';
            stat_clean(text);
        }
        fclose(file);
    }
}

static bool is_counter_name(const char *text)
{
    const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length <= NAME_CHARACTERS_MAX && text[length] == '\0';
}

static bool parse_count(const char *text, json_int_t *count)
{
    char *end;
    errno = 0;
    *count = strtoll(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

json_t *stat_parse_pairs(char *text)
{
    json_t *pairs = json_object();
    char *pair;
    while ((pair = strsep(&text, " ")) != NULL) {
        char *value = strchr(pair, '=');
        json_int_t count;
        if (value == NULL) {
            continue;
        }
        *value++ = '\0';
        stat_clean(value);
        if (is_counter_name(pair)) {
            json_object_set_new(
                pairs, pair, parse_count(value, &count) ? json_integer(count) : json_string(value));
        }
    }
    return pairs;
}

json_t *stat_parse_counters(char *text, json_t *connections)
{
    json_t *counters = json_object();
    json_int_t count, version = STAT_VERSION;
    char *line;
    while ((line = strsep(&text, "\n")) != NULL) {
        char *value = strchr(line, ' ');
        if (value == NULL) {
            continue;
        }
        *value++ = '\0';
        if (strcmp(line, "device") == 0) {
            stat_clean(value);
            json_object_set_new(counters, line, json_string(value));
        } else if (strcmp(line, STAT_VERSION_NAME) == 0) {
            version = parse_count(value, &count) ? count : STAT_VERSION + 1;
        } else if (strcmp(line, CONNECTION_NAME) == 0) {
            json_array_append_new(connections, stat_parse_pairs(value));
        } else if (is_counter_name(line) && parse_count(value, &count)) {
            json_object_set_new(counters, line, json_integer(count));
        }
    }
    if (version > STAT_VERSION) {
        json_decref(counters);
        return NULL;
    }
    return counters;
}

void stat_say_left_out(struct left_out *said, const struct left_out *now)
{
    const struct {
        size_t count;
        const char *what;
    } parts[] = {
        {now->foreign, "of other users"},
        {now->silent, "that did not answer"},
        {now->newer, "of a later version of nonic"},
        {now->other, "of another version of nonic"},
    };
    const char *before = "";
    if (memcmp(said, now, sizeof(*now)) == 0) {
        return;
    }
    *said = *now;
    fprintf(stderr, "nonic: left out:");
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (parts[i].count > 0) {
            fprintf(stderr, "%s %zu %s", before, parts[i].count, parts[i].what);
            before = ",";
        }
    }
    fprintf(stderr, "%s\n", before[0] == '\0' ? " nothing any more" : "");
}
