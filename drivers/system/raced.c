/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/raced.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* The sanitizer's runtime, a part of the program or loaded with it, has these; NULL: there is
 * none. */
#define WEAK __attribute__((weak))
extern void *__tsan_create_fiber(unsigned flags) WEAK;
extern void __tsan_set_fiber_name(void *fiber, const char *name) WEAK;
extern void *__tsan_get_current_fiber(void) WEAK;
extern void __tsan_switch_to_fiber(void *fiber, unsigned flags) WEAK;
extern void __tsan_acquire(void *word) WEAK;
extern void __tsan_release(void *word) WEAK;
extern void __tsan_func_entry(void *code) WEAK;
extern void __tsan_func_exit(void *unused) WEAK; /* As gcc declares it by itself. */
extern void __tsan_read_range_pc(void *memory, unsigned long bytes, void *code) WEAK;
extern void __tsan_write_range_pc(void *memory, unsigned long bytes, void *code) WEAK;
extern void __sanitizer_syscall_pre_impl_close(long fd) WEAK; /* Told of a close without libc. */
extern void AnnotateIgnoreSyncBegin(const char *file, int line) WEAK;
extern void AnnotateIgnoreSyncEnd(const char *file, int line) WEAK;
extern void AnnotateIgnoreReadsBegin(const char *file, int line) WEAK;
extern void AnnotateIgnoreReadsEnd(const char *file, int line) WEAK;
extern void AnnotateIgnoreWritesBegin(const char *file, int line) WEAK;
extern void AnnotateIgnoreWritesEnd(const char *file, int line) WEAK;

/* A nonic that is itself built for the sanitizer does as it does for programs that are not. */
#if defined(__SANITIZE_THREAD__)
enum {
    IS_WATCHED_ITSELF = 1
};
#elif defined(__has_feature)
enum {
    IS_WATCHED_ITSELF = __has_feature(thread_sanitizer)
};
#else
enum {
    IS_WATCHED_ITSELF = 0
};
#endif

enum {
    NO_ORDER = 1, /* A switch of fibers orders nothing. */
};

const char race_told;
static void *fibers[RACE_KINDS][RACE_FIBERS];
static const char peer_words[RACE_FIBERS];

bool race_is_noted(void)
{
    return !IS_WATCHED_ITSELF && __tsan_create_fiber != NULL && __tsan_read_range_pc != NULL;
}

void race_enter(void)
{
    if (race_is_noted()) {
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
}

void race_leave(void)
{
    if (race_is_noted()) {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    }
}

static void *word_of(const void *word)
{
    return (void *)(uintptr_t)word;
}

/* -- Edges --------------------------------------------------------------------------------------*/

void race_release(const void *word)
{
    if (race_is_noted()) {
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
        __tsan_release(word_of(word));
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    }
}

void race_acquire(const void *word)
{
    if (race_is_noted()) {
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
        __tsan_acquire(word_of(word));
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    }
}

void race_tell(void)
{
    if (race_is_noted()) {
        __tsan_release(word_of(&race_told));
    }
}

/* -- Descriptors --------------------------------------------------------------------------------*/

/* A close is a write to ThreadSanitizer, which is ignored here, and then the end of its record. */
void race_forget(int fd)
{
    if (race_is_noted() && __sanitizer_syscall_pre_impl_close != NULL) {
        race_enter();
        __sanitizer_syscall_pre_impl_close(fd);
        race_leave();
    }
}

/* -- Accesses -----------------------------------------------------------------------------------*/

static void *fiber_of(enum race_kind kind, uint32_t qpn)
{
    static const char *const what[] = {"send queue", "receive queue", "its peer"};
    void **fiber = &fibers[kind][qpn % RACE_FIBERS];
    if (*fiber == NULL) {
        char name[64];
        *fiber = __tsan_create_fiber(0);
        snprintf(name, sizeof(name), "nonic queue pair %" PRIu32 ": %s", qpn, what[kind]);
        __tsan_set_fiber_name(*fiber, name);
    }
    return *fiber;
}

static void touch(const struct segment *segment, bool writes, void *code)
{
    void *memory = (void *)(uintptr_t)segment->address;
    if (segment->bytes == 0) {
        return;
    }
    if (writes) {
        __tsan_write_range_pc(memory, segment->bytes, code);
    } else {
        __tsan_read_range_pc(memory, segment->bytes, code);
    }
}

void race_touch(const struct race_access *access, const struct segment *segments, uint32_t count)
{
    if (!race_is_noted()) {
        return;
    }
    void *const code = access->call_count > 0 ? access->calls[0] : __builtin_return_address(0);
    void *own = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_of(access->kind, access->qpn), NO_ORDER);
    if (access->after != NULL) {
        __tsan_acquire(word_of(access->after));
    }
    for (int i = access->call_count - 1; i > 0; i--) {
        __tsan_func_entry(access->calls[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        touch(&segments[i], access->writes, code);
    }
    for (int i = access->call_count - 1; i > 0; i--) {
        __tsan_func_exit(NULL);
    }
    if (access->before != NULL) {
        __tsan_release(word_of(access->before));
    }
    __tsan_switch_to_fiber(own, NO_ORDER);
}

const void *race_peer_word(uint32_t qpn)
{
    return &peer_words[qpn % RACE_FIBERS];
}

/* The last bytes that a processor can load at once. A program that waits for a WRITE by an atomic
 * load of them sees all of the WRITE once it sees them, on all hardware that people have. */
static struct segment cut_flag(struct segment *segment)
{
    uint32_t bytes = 8;
    const uint64_t end = segment->address + segment->bytes;
    while (bytes > 1 && (bytes > segment->bytes || end % bytes != 0)) {
        bytes /= 2;
    }
    const struct segment flag = {.address = end - bytes, .bytes = bytes};
    segment->bytes -= bytes;
    return flag;
}

void race_touch_for_peer(uint32_t qpn, bool writes, const struct segment *segments, uint32_t count)
{
    struct race_access access = {.kind = RACE_PEER,
                                 .qpn = qpn,
                                 .writes = writes,
                                 .after = &race_told,
                                 .before = race_peer_word(qpn)};
    for (uint32_t i = 0; i < count; i++) {
        struct segment segment = segments[i];
        if (writes && segment.bytes > 0) {
            const struct segment flag = cut_flag(&segment);
            race_touch(&access, &segment, 1);
            const struct race_access shown = {
                .kind = RACE_PEER, .qpn = qpn, .before = (const void *)(uintptr_t)flag.address};
            race_touch(&shown, NULL, 0);
        } else {
            race_touch(&access, &segment, 1);
        }
    }
}
