/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/findings.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/guard.h"
#include "drivers/system/system.h"
#include "verbs/freeing.h"
#include "wire/crc32c.h"

enum {
    FRAMES_MAX = 24,
    POSTED_FRAMES = 8,
    PLACES_MAX = 1024, /* A power of two: places of the program that post. */
    TOLD_MAX = 512,
    LINE_MAX_BYTES = 16384,
};

/* Calls, the innermost first: where each goes on, and the word of the stack that says so (NULL: it
 * is not known). */
struct calls {
    void *codes[POSTED_FRAMES + 8];
    const uint8_t *words[POSTED_FRAMES + 8];
    int count;
};

/* The calls that led to a post. Finding them costs far more than a post, so it is done once for an
 * instruction, a stack pointer and the calls that the stack then names. */
struct place {
    const void *code, *stack;
    void *frames[POSTED_FRAMES];
    const uint8_t *words[POSTED_FRAMES];
    int count;
};

/* A rule that was broken at a place; later ones there are only counted. */
struct told {
    uint64_t name;
    uint64_t count;
};

static struct {
    char path[PATH_MAX];
    struct place places[PLACES_MAX];
    uint32_t place_count;
    struct told told[TOLD_MAX];
    uint32_t told_count;
    struct timespec began;
    uintptr_t own_base, freeing_base; /* Where this library is, and the one of freeing.h. */
    /* Texts under construction: threads of programs may have small stacks. */
    char self[PATH_MAX], line[LINE_MAX_BYTES], posted[LINE_MAX_BYTES / 4],
        freed[LINE_MAX_BYTES / 4], at[LINE_MAX_BYTES / 4];
} state;

/* -- Places -------------------------------------------------------------------------------------*/

static uintptr_t base_of(uintptr_t code, const char **file)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1((void *)code, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) {
        *file = "?";
        return 0;
    }
    *file = map->l_name;
    return map->l_addr;
}

/* A place of the code as FILE+OFFSET; the program itself has no name. */
static size_t put_place(char *text, size_t bytes, uintptr_t code)
{
    const char *file;
    const uintptr_t base = base_of(code, &file);
    if (file[0] == '\0') {
        const ssize_t length =
            system_read_link(AT_FDCWD, "/proc/self/exe", state.self, sizeof(state.self) - 1);
        state.self[length < 0 ? 0 : length] = '\0';
        file = state.self;
    }
    const int written = snprintf(text, bytes, "%s+%#lx", file, (unsigned long)(code - base));
    return written < 0 || (size_t)written >= bytes ? 0 : (size_t)written;
}

/* Does this word of the stack, if it is there, say that a call goes on at `code`? */
static bool names_call(const uint8_t *word, const void *code)
{
    const void *named;
    return guard_copy((uint8_t *)&named, word, sizeof(named)) && named == code;
}

/* The first of these calls that is not nonic's, nor that of a sanitizer which stands in front of
 * backtrace(). */
static int first_of_program(void *const *frames, int count)
{
    int first = 0;
    for (int i = 0; i < count; i++) {
        const char *file;
        const uintptr_t base = base_of((uintptr_t)frames[i], &file);
        if (base == state.own_base || (base != 0 && base == state.freeing_base)) {
            first = i + 1;
        }
    }
    return first;
}

/* The call of the program, and those that led to it: a list with semicolons. */
static void put_calls(char *text, size_t bytes, void *const *frames, int count)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = first_of_program(frames, count); i < count; i++) {
        if (used > 0 && used + 1 < bytes) {
            text[used++] = ';';
        }
        used += put_place(text + used, bytes - used, (uintptr_t)frames[i]);
        text[used] = '\0';
    }
}

/* The unwinder says where the stack of a call ends, and there stands where it goes on. */
static _Unwind_Reason_Code note_call(struct _Unwind_Context *context, void *into)
{
    struct calls *calls = into;
    const uintptr_t code = _Unwind_GetIP(context), end = _Unwind_GetCFA(context);
    const uint8_t *word = (const uint8_t *)end - sizeof(code);
    if (code == 0 || calls->count == COUNT_OF(calls->codes)) {
        return _URC_END_OF_STACK;
    }
    calls->codes[calls->count] = (void *)code;
    calls->words[calls->count++] = names_call(word, (void *)code) ? word : NULL;
    return _URC_NO_REASON;
}

static void note_calls(struct place *place)
{
    struct calls calls = {.count = 0};
    _Unwind_Backtrace(note_call, &calls);
    for (int i = first_of_program(calls.codes, calls.count);
         i < calls.count && place->count < POSTED_FRAMES; i++) {
        place->frames[place->count] = calls.codes[i];
        place->words[place->count++] = calls.words[i];
    }
}

/* A function that posts for others has one stack pointer for all who call it from one place, and
 * only the stack tells them apart. */
static bool is_called_likewise(const struct place *place)
{
    for (int i = 0; i < place->count; i++) {
        if (place->words[i] != NULL && !names_call(place->words[i], place->frames[i])) {
            return false;
        }
    }
    return true;
}

uint32_t findings_place(const void *code, const void *stack)
{
    const void *const key[] = {code, stack};
    uint32_t at = crc32c(0, key, sizeof(key));
    for (;; at++) {
        struct place *place = &state.places[at % PLACES_MAX];
        if (place->code == code && place->stack == stack && is_called_likewise(place)) {
            return at % PLACES_MAX + 1;
        }
        if (place->code == NULL) {
            if (state.place_count == PLACES_MAX / 2) {
                return 0;
            }
            state.place_count++;
            *place = (struct place){.code = code, .stack = stack};
            note_calls(place);
            return at % PLACES_MAX + 1;
        }
    }
}

int findings_calls(uint32_t place, void *const **calls)
{
    *calls = place == 0 ? NULL : state.places[place - 1].frames;
    return place == 0 ? 0 : state.places[place - 1].count;
}

static void put_place_calls(char *text, size_t bytes, uint32_t place)
{
    void *const *calls;
    const int count = findings_calls(place, &calls);
    put_calls(text, bytes, calls, count);
}

/* -- Lines --------------------------------------------------------------------------------------*/

bool findings_are_wanted(void)
{
    return state.path[0] != '\0';
}

/* A name for the rule, the calls that led there, and those that posted the request. */
static uint64_t name_finding(const struct checker_finding *finding, void *const *frames, int count)
{
    void *const *posted;
    const int posted_count = findings_calls(finding->posted, &posted);
    const uint32_t words[] = {(uint32_t)finding->rule,
                              crc32c(0, posted, (size_t)posted_count * sizeof(*posted))};
    const uint32_t calls = crc32c(0, frames, (size_t)count * sizeof(*frames));
    return (uint64_t)crc32c(calls, words, sizeof(words)) << 32 | calls;
}

/* Counts it. Is it the first, and is there room to count more? */
static bool is_first(uint64_t name)
{
    for (uint32_t i = 0; i < state.told_count; i++) {
        if (state.told[i].name == name) {
            state.told[i].count++;
            return false;
        }
    }
    if (state.told_count == TOLD_MAX) {
        return false;
    }
    state.told[state.told_count++] = (struct told){.name = name, .count = 1};
    return true;
}

/* One call, so that lines of several processes do not mix. */
static void write_line(const char *line, size_t bytes)
{
    if (!findings_are_wanted()) {
        return;
    }
    const int file =
        descriptor_own(system_open(AT_FDCWD, state.path, O_WRONLY | O_APPEND | O_CLOEXEC));
    if (file >= 0) {
        (void)!system_write(file, line, bytes);
        descriptor_close(file);
    }
}

static double seconds_since_begin(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - state.began.tv_sec) +
           (double)(now.tv_nsec - state.began.tv_nsec) / 1e9;
}

void findings_write(const struct checker_finding *finding)
{
    void *frames[FRAMES_MAX];
    const int count = backtrace(frames, FRAMES_MAX);
    const uint64_t name = name_finding(finding, frames, count);
    if (!is_first(name)) {
        return;
    }
    put_place_calls(state.posted, sizeof(state.posted), finding->posted);
    put_place_calls(state.freed, sizeof(state.freed), finding->freed);
    put_calls(state.at, sizeof(state.at), frames, count);
    const int bytes = snprintf(
        state.line, sizeof(state.line),
        "found\trule=%s\tpid=%d\tplace=%016llx\tqp=%u\tseconds=%.6f\ttext=%s\t"
        "posted=%s\tfreed=%s\tat=%s\n",
        checker_rules[finding->rule].name, getpid(), (unsigned long long)name, finding->qpn,
        seconds_since_begin(), finding->text, state.posted, state.freed, state.at);
    const size_t most = sizeof(state.line) - 1;
    if (bytes > 0) {
        state.line[most - 1] = '\n'; /* The end of one that is cut. */
        write_line(state.line, (size_t)bytes < most ? (size_t)bytes : most);
    }
}

void findings_write_counts(void)
{
    for (uint32_t i = 0; i < state.told_count; i++) {
        char line[128];
        const struct told *told = &state.told[i];
        if (told->count > 1) {
            const int bytes =
                snprintf(line, sizeof(line), "counted\tpid=%d\tplace=%016llx\tcount=%llu\n",
                         getpid(), (unsigned long long)told->name, (unsigned long long)told->count);
            write_line(line, (size_t)bytes);
        }
    }
}

/* -- Begin --------------------------------------------------------------------------------------*/

void findings_begin(const char *path)
{
    void *frames[1];
    const char *file;
    char line[64];
    backtrace(frames, 1); /* The first time, it loads a library. */
    state.own_base = base_of((uintptr_t)findings_begin, &file);
    state.freeing_base = base_of((uintptr_t)freeing_library(), &file);
    snprintf(state.path, sizeof(state.path), "%s", path);
    clock_gettime(CLOCK_MONOTONIC, &state.began);
    const int bytes = snprintf(line, sizeof(line), "process\tpid=%d\n", getpid());
    write_line(line, (size_t)bytes);
}

void findings_in_child(void)
{
    state.told_count = 0;
}
