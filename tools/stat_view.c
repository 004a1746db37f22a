/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/stat_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/stat_ask.h"
#include "drivers/stat_server.h"

const char *stat_word(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value == NULL ? "" : value;
}

long long stat_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static bool is_stopped(pid_t process)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", process);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
    }
    const char *state = strrchr(text, ')');
    return state != NULL && (strncmp(state, ") T", 3) == 0 || strncmp(state, ") t", 3) == 0);
}

/* False: the program knows no such question. Takes the text apart. */
static bool read_facts(struct stat_seen *program, char *text)
{
    bool is_known = false;
    char *line;
    while ((line = strsep(&text, "\n")) != NULL) {
        char *rest = strchr(line, ' ');
        if (rest == NULL) {
            continue;
        }
        *rest++ = '\0';
        json_t *pairs = stat_parse_pairs(rest);
        if (strcmp(line, "program") == 0) {
            is_known = true;
            json_object_update(program->facts, pairs);
        } else if (strcmp(line, "qp") == 0) {
            char key[32];
            snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT, stat_number(pairs, "qpn"));
            json_object_set(program->queue_pairs, key, pairs);
        }
        json_decref(pairs);
    }
    return is_known;
}

static void forget_program(struct stat_seen *program)
{
    json_decref(program->facts);
    json_decref(program->queue_pairs);
}

/* Puts a program into the view, which has room for it. */
static void add_program(struct stat_view *view, const struct stat_program *asked)
{
    struct stat_seen *program = &view->programs[view->count];
    *program = (struct stat_seen){.pid = asked->pid,
                                  .user = asked->user,
                                  .is_stopped = is_stopped(asked->process),
                                  .is_silent = asked->outcome == STAT_SILENT,
                                  .facts = json_object(),
                                  .queue_pairs = json_object()};
    stat_command_of(asked->process, program->command, sizeof(program->command));
    if (program->is_silent && program->command[0] == '\0') {
        forget_program(program); /* It ended meanwhile, and nobody waits for it. */
        return;
    }
    const bool is_known = program->is_silent || read_facts(program, asked->text);
    view->count += is_known;
    view->left_out.other += !is_known;
    if (!is_known) {
        forget_program(program);
    }
}

struct stat_view stat_view_look(void)
{
    struct stat_program *asked;
    const size_t count = stat_find(&asked);
    struct stat_view view = {.programs = calloc(count + 1, sizeof(*view.programs))};
    stat_ask(asked, count, true, STAT_WISH_HANG);
    for (size_t i = 0; i < count && view.programs != NULL; i++) {
        view.left_out.foreign += asked[i].outcome == STAT_FOREIGN;
        if (asked[i].outcome == STAT_ANSWERED || asked[i].outcome == STAT_SILENT) {
            add_program(&view, &asked[i]);
        }
    }
    stat_forget(asked, count);
    return view;
}

void stat_view_forget(struct stat_view *view)
{
    for (size_t i = 0; i < view->count; i++) {
        forget_program(&view->programs[i]);
    }
    free(view->programs);
}

const struct stat_seen *stat_view_same(const struct stat_view *view,
                                       const struct stat_seen *program)
{
    for (size_t i = 0; i < view->count; i++) {
        if (view->programs[i].pid == program->pid) {
            return &view->programs[i];
        }
    }
    return NULL;
}

const struct stat_seen *stat_view_peer(const struct stat_view *view, const json_t *queue_pair,
                                       const json_t **peer)
{
    char key[32];
    const char *address = stat_word(queue_pair, "peer");
    const struct stat_seen *found = NULL;
    *peer = NULL;
    snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT, stat_number(queue_pair, "peer_qpn"));
    for (size_t i = 0; i < view->count && address[0] != '\0'; i++) {
        const json_t *one = json_object_get(view->programs[i].queue_pairs, key);
        /* One that is not connected yet has no address but the program's. */
        const json_t *has_own = json_object_get(one, "own") != NULL ? one : view->programs[i].facts;
        if (one != NULL && strcmp(stat_word(has_own, "own"), address) == 0) {
            *peer = one;
            found = &view->programs[i];
        }
    }
    return found;
}
