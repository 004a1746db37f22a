/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/poisoned.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "drivers/system/initialised.h"
#include "drivers/system/memcheck.h"

/* The sanitizer's runtime, a part of the program or loaded with it, has these; NULL: there is
 * none. */
extern void *__asan_region_is_poisoned(void *memory, size_t bytes) __attribute__((weak));
extern void __asan_report_load_n(void *memory, long bytes) __attribute__((weak));
extern void __asan_report_store_n(void *memory, long bytes) __attribute__((weak));
extern void __msan_check_mem_is_initialized(const volatile void *memory, size_t bytes)
    __attribute__((weak));

bool memory_watched;

/* A nonic that is itself built for the sanitizer is watched, and does as it does for programs that
 * are not. */
#if defined(__SANITIZE_ADDRESS__)
enum {
    IS_WATCHED_ITSELF = 1
};
#elif defined(__has_feature)
enum {
    IS_WATCHED_ITSELF = __has_feature(address_sanitizer)
};
#else
enum {
    IS_WATCHED_ITSELF = 0
};
#endif

static bool is_under_asan(void)
{
    return !IS_WATCHED_ITSELF && __asan_region_is_poisoned != NULL;
}

bool poison_is_noted(void)
{
    return is_under_asan() || memcheck_is_noted();
}

void memory_begin_watch(void)
{
    memory_watched = poison_is_noted() || initialised_is_noted();
}

/* The report is about the first byte that is not the program's, and what follows it. */
static void report(const struct segment *segment, void *bad, bool writes, const char *why,
                   uint32_t qpn)
{
    void *memory = (void *)(uintptr_t)segment->address;
    const long rest = (long)segment->bytes - ((char *)bad - (char *)memory);
    fprintf(stderr,
            "nonic: the NIC %s %" PRIu32
            " bytes at %p, some of which are not the program's memory: "
            "%s queue pair %" PRIu32 "\n",
            writes ? "writes" : "reads", segment->bytes, memory, why, qpn);
    if (writes) {
        __asan_report_store_n(bad, rest);
    } else {
        __asan_report_load_n(bad, rest);
    }
}

void poison_judge(const struct segment *segments, uint32_t count, bool writes, const char *why,
                  uint32_t qpn)
{
    for (uint32_t i = 0; i < count && memory_is_watched(); i++) {
        const struct segment *segment = &segments[i];
        void *memory = (void *)(uintptr_t)segment->address;
        void *bad = segment->bytes == 0 || !is_under_asan()
                        ? NULL
                        : __asan_region_is_poisoned(memory, segment->bytes);
        memcheck_addressable(memory, segment->bytes);
        if (bad != NULL) {
            report(segment, bad, writes, why, qpn);
        }
    }
}

void undefined_judge(const struct segment *segment)
{
    const void *memory = (const void *)(uintptr_t)segment->address;
    if (__msan_check_mem_is_initialized != NULL) {
        __msan_check_mem_is_initialized(memory, segment->bytes);
    }
    memcheck_defined(memory, segment->bytes);
}
