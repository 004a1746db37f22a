/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define PS_PER_US 1000000

struct track {
    const char *group, *name;
    int number;
    uint32_t bits; /* 0: spans. */
};

struct record {
    uint64_t begin_ps, end_ps; /* A value has both at the same time. */
    uint64_t number;
    const char *what;
    uint32_t track;
    uint32_t order; /* The number of the record, which decides between records of the same time. */
};

struct sim_trace {
    FILE *file;
    bool vcd;
    uint32_t track_count, count;
    uint64_t left_out;
    struct track tracks[SIM_TRACE_TRACKS_MAX];
    struct record *records;
    uint32_t room;
};

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

struct sim_trace *sim_trace_open(const char *path, char *error, size_t error_bytes)
{
    const bool vcd = ends_with(path, ".vcd");
    if (!vcd && !ends_with(path, ".json")) {
        snprintf(error, error_bytes,
                 "'%s': a trace ends in .json (Perfetto, chrome://tracing) or .vcd (GTKWave)",
                 path);
        return NULL;
    }
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        snprintf(error, error_bytes, "cannot write '%s': %s", path, strerror(errno));
        return NULL;
    }
    struct sim_trace *trace = calloc(1, sizeof(*trace));
    CHECK(trace != NULL);
    trace->file = file;
    trace->vcd = vcd;
    return trace;
}

uint32_t sim_trace_track(struct sim_trace *trace, const char *group, int number, const char *name,
                         uint32_t bits)
{
    CHECK(trace->track_count < SIM_TRACE_TRACKS_MAX && bits <= 64);
    trace->tracks[trace->track_count] = (struct track){group, name, number, bits};
    return trace->track_count++;
}

static void record(struct sim_trace *trace, struct record made)
{
    CHECK(made.track < trace->track_count);
    if (trace->count == SIM_TRACE_RECORDS_MAX) {
        trace->left_out++;
        return;
    }
    if (trace->count == trace->room) {
        trace->room = trace->room == 0 ? 4096 : 2 * trace->room;
        trace->records = realloc(trace->records, trace->room * sizeof(trace->records[0]));
        CHECK(trace->records != NULL);
    }
    made.order = trace->count;
    trace->records[trace->count++] = made;
}

void sim_trace_span(struct sim_trace *trace, uint32_t track, const char *what, uint64_t number,
                    uint64_t begin_ps, uint64_t end_ps)
{
    CHECK(begin_ps <= end_ps);
    record(trace, (struct record){.begin_ps = begin_ps,
                                  .end_ps = end_ps,
                                  .number = number,
                                  .what = what,
                                  .track = track});
}

void sim_trace_value(struct sim_trace *trace, uint32_t track, uint64_t at_ps, uint64_t value)
{
    record(trace,
           (struct record){.begin_ps = at_ps, .end_ps = at_ps, .number = value, .track = track});
}

uint32_t sim_trace_count(const struct sim_trace *trace)
{
    return trace->count;
}

/* -- Chrome trace events ------------------------------------------------------------------------*/

static void put_name(FILE *file, const struct track *track)
{
    fprintf(file, "%s", track->group);
    if (track->number >= 0) {
        fprintf(file, " %d", track->number);
    }
}

/* Groups are processes of the viewer, tracks their threads. */
static uint32_t group_of(const struct sim_trace *trace, uint32_t index)
{
    uint32_t first = 0;
    while (strcmp(trace->tracks[first].group, trace->tracks[index].group) != 0 ||
           trace->tracks[first].number != trace->tracks[index].number) {
        first++;
    }
    return first;
}

/* Microseconds, with all their digits. */
static void put_us(FILE *file, uint64_t ps)
{
    fprintf(file, "%" PRIu64 ".%06" PRIu64, ps / PS_PER_US, ps % PS_PER_US);
}

static void write_json(const struct sim_trace *trace)
{
    FILE *file = trace->file;
    fprintf(file, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const struct track *track = &trace->tracks[i];
        fprintf(file,
                "%s\n{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"",
                i == 0 ? "" : ",", group_of(trace, i) + 1);
        put_name(file, track);
        fprintf(file,
                "\"}},\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\","
                "\"args\":{\"name\":\"%s\"}}",
                group_of(trace, i) + 1, i + 1, track->name);
    }
    for (uint32_t i = 0; i < trace->count; i++) {
        const struct record *at = &trace->records[i];
        const struct track *track = &trace->tracks[at->track];
        fprintf(file, ",\n{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u,\"ts\":", track->bits ? 'C' : 'X',
                group_of(trace, at->track) + 1, at->track + 1);
        put_us(file, at->begin_ps);
        if (track->bits != 0) {
            fprintf(file, ",\"name\":\"%s\",\"args\":{\"%s\":%" PRIu64 "}}", track->name,
                    track->name, at->number);
        } else {
            fprintf(file, ",\"dur\":");
            put_us(file, at->end_ps - at->begin_ps);
            fprintf(file, ",\"name\":\"%s %" PRIu64 "\"}", at->what, at->number);
        }
    }
    fprintf(file, "\n]}\n");
}

/* -- VCD ----------------------------------------------------------------------------------------*/

/* A change of one signal: a span is a text that comes and goes. */
struct change {
    uint64_t at_ps;
    const struct record *record;
    bool over;
};

static int by_time(const void *left, const void *right)
{
    const struct change *a = left;
    const struct change *b = right;
    if (a->at_ps != b->at_ps) {
        return a->at_ps < b->at_ps ? -1 : 1;
    }
    /* At one time, ends come before beginnings. */
    if (a->over != b->over) {
        return a->over ? -1 : 1;
    }
    return a->record->order < b->record->order ? -1 : a->record->order > b->record->order;
}

/* Printable characters without space, least significant first. */
static void put_code(FILE *file, uint32_t index)
{
    do {
        fputc('!' + (int)(index % 94), file);
        index /= 94;
    } while (index != 0);
}

/* A name of one word. */
static void put_word(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        fputc(*text == ' ' ? '_' : *text, file);
    }
}

static void write_vcd_head(const struct sim_trace *trace)
{
    FILE *file = trace->file;
    fprintf(file, "$version nonic $end\n$timescale 1 ps $end\n");
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const struct track *track = &trace->tracks[i];
        fprintf(file, "$scope module ");
        put_word(file, track->group);
        if (track->number >= 0) {
            fprintf(file, "_%d", track->number);
        }
        fprintf(file, " $end\n$var %s %u ", track->bits ? "wire" : "string",
                track->bits ? track->bits : 1);
        put_code(file, i);
        fputc(' ', file);
        put_word(file, track->name);
        fprintf(file, " $end\n$upscope $end\n");
    }
    fprintf(file, "$enddefinitions $end\n");
}

static void put_change(FILE *file, const struct track *track, const struct change *change)
{
    if (track->bits == 0) {
        fputc('s', file);
        if (!change->over) {
            put_word(file, change->record->what);
            fprintf(file, "_%" PRIu64, change->record->number);
        }
    } else {
        fputc('b', file);
        for (uint32_t bit = track->bits; bit > 0; bit--) {
            fputc('0' + (int)(change->record->number >> (bit - 1) & 1), file);
        }
    }
    fputc(' ', file);
    put_code(file, change->record->track);
    fputc('\n', file);
}

static void write_vcd(const struct sim_trace *trace)
{
    write_vcd_head(trace);
    struct change *changes = calloc(2 * (size_t)trace->count + 1, sizeof(changes[0]));
    CHECK(changes != NULL);
    size_t count = 0;
    for (uint32_t i = 0; i < trace->count; i++) {
        const struct record *at = &trace->records[i];
        changes[count++] = (struct change){at->begin_ps, at, false};
        if (trace->tracks[at->track].bits == 0) {
            changes[count++] = (struct change){at->end_ps, at, true};
        }
    }
    qsort(changes, count, sizeof(changes[0]), by_time);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || changes[i].at_ps != changes[i - 1].at_ps) {
            fprintf(trace->file, "#%" PRIu64 "\n", changes[i].at_ps);
        }
        put_change(trace->file, &trace->tracks[changes[i].record->track], &changes[i]);
    }
    free(changes);
}

bool sim_trace_close(struct sim_trace *trace, char *error, size_t error_bytes)
{
    if (trace->vcd) {
        write_vcd(trace);
    } else {
        write_json(trace);
    }
    if (trace->left_out > 0) {
        fprintf(stderr, "nonic: the trace holds the first %u records; %" PRIu64 " are left out\n",
                SIM_TRACE_RECORDS_MAX, trace->left_out);
    }
    const bool good = !ferror(trace->file);
    const bool closed = fclose(trace->file) == 0;
    if (!good || !closed) {
        snprintf(error, error_bytes, "cannot write the trace: %s", strerror(errno));
    }
    free(trace->records);
    free(trace);
    return good && closed;
}
