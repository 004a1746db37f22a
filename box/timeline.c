/* SPDX-License-Identifier: BSD-2-Clause
 *
 * timeline - when which thread ran, and what it waited for else, as trace events in JSON: a file
 * that Perfetto and other viewers show. Its times are virtual, in microseconds.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "box/calls.h"

enum {
    EVENTS_MAX = 1000000, /* a file that viewers still open */
};

static void event(struct box *box, const struct thread *thread, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void event(struct box *box, const struct thread *thread, const char *format, ...)
{
    va_list values;
    if (box->timeline == NULL || box->events > EVENTS_MAX) {
        return;
    }
    fprintf(box->timeline, "%s\n{\"pid\":%d,\"tid\":%d,", box->events++ == 0 ? "" : ",",
            thread->process->pid, thread->number);
    va_start(values, format);
    vfprintf(box->timeline, format, values);
    va_end(values);
    fputc('}', box->timeline);
}

static double us(uint64_t ns)
{
    return (double)ns / 1e3;
}

static const char *reason(const struct thread *thread)
{
    switch (thread->wait.kind) {
    case WAIT_LOOP: return "waits for memory";
    case WAIT_POLLS: return "polls";
    case WAIT_NEWS: return "waits for its NIC";
    case WAIT_SLEEP:
    case WAIT_FUTEX:
    case WAIT_DESCRIPTORS:
    case WAIT_PROGRESS:
    case WAIT_VFORK:
    case WAIT_SIGNAL: break;
    }
    return thread->row == NULL ? "waits" : thread->row->name;
}

void timeline_open(struct box *box, const char *directory)
{
    char path[4096];
    snprintf(path, sizeof(path), "%stimeline.json", directory);
    box->timeline = fopen(path, "we");
    if (box->timeline != NULL) {
        fputc('[', box->timeline);
    }
}

static void name_process(struct box *box, struct thread *thread)
{
    char name[64];
    process_name(thread->process->pid, name, sizeof(name));
    for (char *at = name; *at != '\0'; at++) {
        *at = *at < ' ' || *at > '~' || *at == '"' || *at == '\\' ? '?' : *at;
    }
    event(box, thread, "\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}", name);
    thread->is_named = true;
}

static void slice(struct box *box, const struct thread *thread, const char *name, uint64_t from_ns,
                  uint64_t to_ns)
{
    if (name != NULL && to_ns > from_ns) {
        event(box, thread, "\"ph\":\"X\",\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f", name,
              us(from_ns), us(to_ns - from_ns));
    }
}

void timeline_turn(struct box *box, struct thread *thread, uint64_t from_ns)
{
    if (box->timeline == NULL) {
        return;
    }
    if (!thread->is_named) {
        name_process(box, thread);
    }
    slice(box, thread, thread->waits_for, thread->ran_until_ns, from_ns);
    slice(box, thread, "runs", from_ns, thread->clock_ns);
    thread->ran_until_ns = thread->clock_ns;
    thread->waits_for = thread->state == THREAD_WAITS ? reason(thread) : NULL;
}

void timeline_hold(struct box *box, const struct thread *thread, uint64_t held_ns)
{
    slice(box, thread, "is held back", box->page->clock_ns - held_ns, box->page->clock_ns);
}

void timeline_close(struct box *box)
{
    if (box->timeline == NULL) {
        return;
    }
    for (int i = 0; i < box->threads; i++) {
        const struct thread *thread = box->thread[i];
        if (thread->state == THREAD_WAITS) {
            slice(box, thread, thread->waits_for, thread->ran_until_ns, box->now_ns);
        }
    }
    fputs("\n]\n", box->timeline);
    fclose(box->timeline);
}
