/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_page - index.html in a run's folder: how the run ended, and what it wrote when. A person
 * opens it first.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/html.h"
#include "tools/repeat.h"

enum {
    LINES_SHOWN = 400, /* the last ones */
    COMMAND_BYTES = 8000,
    END_BYTES = 500,
};

static const char head[] =
    "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>nonic repeat</title><style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:80em;margin:2em auto;padding:0 1em;"
    "color:#1c2024;background:#fff}\n"
    "h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em;border-bottom:1px solid #d8dde3}\n"
    "pre,code{background:#f3f4f6}pre{padding:.7em;overflow:auto}code{padding:0 .3em}\n"
    "table{border-collapse:collapse;font-family:monospace;font-size:.9em}\n"
    "td{padding:.05em .7em;vertical-align:top;white-space:pre-wrap}.at{color:#57606a}\n"
    ".ok{color:#1a7f37}.bad,.err{color:#b42318}.bad{font-weight:600}\n"
    "</style></head><body>\n";

/* A file of what the programs wrote, with times. */
struct stream {
    FILE *file;
    const char *class;
    char *line;
    size_t room;
    bool has_line;
    double at;
};

static void next_line(struct stream *stream)
{
    stream->has_line = stream->file != NULL &&
                       getline(&stream->line, &stream->room, stream->file) > 0 &&
                       sscanf(stream->line, "%lf", &stream->at) == 1;
}

static struct stream open_stream(const char *directory, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s%s", directory, name);
    struct stream stream = {.file = fopen(path, "re"), .class = name};
    next_line(&stream);
    return stream;
}

static void close_stream(struct stream *stream)
{
    free(stream->line);
    if (stream->file != NULL) {
        fclose(stream->file);
    }
}

static void write_line(FILE *page, const struct stream *stream)
{
    stream->line[strcspn(stream->line, "\n")] = '\0';
    const char *text = strchr(stream->line, ' ');
    fprintf(page, "<tr class=%s><td class=at>%.9f</td><td>", stream->class, stream->at);
    html_write(page, text == NULL ? "" : text + 1);
    fprintf(page, "</td></tr>\n");
}

/* Both files by time; of all `lines` the last ones. */
static void write_lines(FILE *page, const char *directory, unsigned lines)
{
    struct stream streams[2] = {open_stream(directory, "out"), open_stream(directory, "err")};
    unsigned skipped = lines > LINES_SHOWN ? lines - LINES_SHOWN : 0;
    fprintf(page, "<h2>What the programs wrote</h2>\n<p>Virtual seconds; standard error is red.%s",
            lines == 0 ? " They wrote nothing." : "");
    if (skipped > 0) {
        fprintf(page,
                " The first %u lines are in the files <a href=out>out</a> and "
                "<a href=err>err</a> alone.",
                skipped);
    }
    fprintf(page, "</p>\n<table>\n");
    while (streams[0].has_line || streams[1].has_line) {
        const bool is_second =
            !streams[0].has_line || (streams[1].has_line && streams[1].at < streams[0].at);
        struct stream *stream = &streams[is_second];
        if (skipped == 0) {
            write_line(page, stream);
        }
        skipped -= skipped > 0;
        next_line(stream);
    }
    fprintf(page, "</table>\n");
    close_stream(&streams[0]);
    close_stream(&streams[1]);
}

static void write_end(FILE *page, const struct repeat_run *run)
{
    char end[END_BYTES];
    const struct box_result *result = &run->result;
    repeat_kind(run, end, sizeof(end));
    fprintf(page, "<p class=%s>", repeat_has_failed(run) ? "bad" : "ok");
    html_write(page, end);
    fprintf(page, ", at %.9f s</p>\n", (double)result->virtual_ns / 1e9);
    if (result->report[0] != '\0') {
        fprintf(page, "<pre>");
        html_write(page, result->report);
        fprintf(page, "</pre>\n");
    }
    if (result->held[0] != '\0') {
        fprintf(page, "<p>These were held back:</p><pre>");
        html_write(page, result->held);
        fprintf(page, "</pre>\n");
    }
}

static void write_again(FILE *page, const struct repeat *repeat, uint64_t seed,
                        const char *directory)
{
    char command[COMMAND_BYTES];
    repeat_say_command(repeat, seed, command, sizeof(command));
    fprintf(page, "<h2>The same run again</h2>\n<pre>");
    html_write(page, command);
    fprintf(page, "\nnonic replay ");
    html_write(page, directory);
    fprintf(page, "\nnonic replay --gdb 1ms ");
    html_write(page, directory);
    fprintf(page, "    # gdb, when 1 ms of virtual time is over</pre>\n");
}

static void write_numbers(FILE *page, const struct box_result *result)
{
    fprintf(page,
            "<h2>The run</h2>\n<table>\n<tr><td>virtual time</td><td>%.9f s</td></tr>\n"
            "<tr><td>processes, threads</td><td>%d, %d</td></tr>\n"
            "<tr><td>calls</td><td>%llu</td></tr>\n<tr><td>digest</td><td>%016llx</td></tr>\n"
            "<tr><td>repeatable</td><td>",
            (double)result->virtual_ns / 1e9, result->processes, result->threads,
            (unsigned long long)result->calls, (unsigned long long)result->digest);
    html_write(page, result->unrepeatable[0] == '\0' ? "yes" : result->unrepeatable);
    fprintf(page, "</td></tr>\n</table>\n");
}

static const char files[] =
    "<h2>Files</h2>\n<ul>\n"
    "<li><a href=out>out</a>, <a href=err>err</a>: what the programs wrote, with virtual "
    "times</li>\n"
    "<li><a href=calls>calls</a>: virtual time, thread, call, arguments and result</li>\n"
    "<li><a href=timeline.json>timeline.json</a>: when which thread ran, and what it waited for; "
    "Perfetto shows it</li>\n"
    "<li><a href=run.json>run.json</a>: what <code>nonic replay</code> reads</li>\n"
    "</ul></body></html>\n";

bool repeat_page(const struct repeat *repeat, uint64_t seed, const struct repeat_run *run,
                 const char *directory)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%sindex.html", directory);
    FILE *page = fopen(path, "we");
    if (page == NULL) {
        return false;
    }
    fputs(head, page);
    fprintf(page, "<h1>");
    for (int i = 1; i < repeat->argc; i++) {
        html_write(page, repeat->argv[i]);
        fputc(' ', page);
    }
    fprintf(page, "</h1>\n");
    write_end(page, run);
    write_again(page, repeat, seed, directory);
    write_lines(page, directory, run->lines);
    write_numbers(page, &run->result);
    fputs(files, page);
    return fclose(page) == 0;
}
