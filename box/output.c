/* SPDX-License-Identifier: BSD-2-Clause
 *
 * output - what the programs write, handed on, and kept with the virtual time at which it came.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box/internal.h"

bool output_open(struct box *box, int ends[2])
{
    static const char *const names[2] = {"out", "err"};
    for (int i = 0; i < 2; i++) {
        int both[2];
        if (pipe2(both, O_CLOEXEC) != 0) {
            return false;
        }
        fcntl(both[0], F_SETFL, O_NONBLOCK);
        box->output[i] = both[0];
        ends[i] = both[1];
        if (box->options.directory != NULL) {
            char path[4096];
            snprintf(path, sizeof(path), "%s%s", box->options.directory, names[i]);
            box->output_file[i] = fopen(path, "we");
        }
    }
    return true;
}

static void end_line(struct box *box, int which)
{
    char *line = box->line[which];
    line[box->line_bytes[which]] = '\0';
    box->line_bytes[which] = 0;
    if (box->output_file[which] != NULL) {
        fprintf(box->output_file[which], "%llu.%09llu %s\n",
                (unsigned long long)(box->now_ns / 1000000000),
                (unsigned long long)(box->now_ns % 1000000000), line);
    }
    if (box->options.on_line != NULL) {
        box->options.on_line(box->options.context, which, line);
    }
}

static void take(struct box *box, int which, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] != '\n') {
            box->line[which][box->line_bytes[which]++] = text[i];
        }
        if (text[i] == '\n' || box->line_bytes[which] == sizeof(box->line[which]) - 1) {
            end_line(box, which);
        }
    }
}

void output_drain(struct box *box)
{
    char text[4096];
    for (int i = 0; i < 2; i++) {
        ssize_t got;
        while ((got = read(box->output[i], text, sizeof(text))) > 0) {
            take(box, i, text, (size_t)got);
            if (!box->options.quiet) {
                (void)!write(i == 0 ? STDOUT_FILENO : STDERR_FILENO, text, (size_t)got);
            }
            box->progress++;
            box->deeds++;
        }
    }
}

void output_end(struct box *box)
{
    output_drain(box);
    for (int i = 0; i < 2; i++) {
        if (box->line_bytes[i] > 0) {
            end_line(box, i);
        }
        if (box->output_file[i] != NULL) {
            fclose(box->output_file[i]);
        }
    }
}
