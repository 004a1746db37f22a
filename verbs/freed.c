/* SPDX-License-Identifier: BSD-2-Clause
 *
 * freed - preloaded into a program that is checked: says when the program gives memory back.
 *
 * A library of its own, since free() of nonic's library would stand in front of that of each
 * program that runs on nonic.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

/* nonic's library puts its function here once the program is checked. */
EXPORT void (*nonic_on_freed)(const void *memory, size_t bytes, const void *caller);

static void (*next_free)(void *memory);
static void *(*next_realloc)(void *memory, size_t bytes);
static int (*next_munmap)(void *memory, size_t bytes);

/* The functions that would be called without us. The loader may free something meanwhile, which is
 * lost then. (The only thread does this. It has no variable of its own: before sanitizers have
 * begun, threads cannot reach theirs.) */
__attribute__((constructor)) static void find_next(void)
{
    static int finding;
    if (finding++ == 0) {
        void **const next[] = {(void **)&next_free, (void **)&next_realloc, (void **)&next_munmap};
        const char *const names[] = {"free", "realloc", "munmap"};
        for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
            *next[i] = dlsym(RTLD_NEXT, names[i]);
        }
    }
    finding--;
}

static void tell(const void *memory, size_t bytes, const void *caller)
{
    if (nonic_on_freed != NULL && memory != NULL && bytes > 0) {
        nonic_on_freed(memory, bytes, caller);
    }
}

static size_t usable(void *memory)
{
    return nonic_on_freed == NULL ? 0 : malloc_usable_size(memory);
}

EXPORT void free(void *memory)
{
    if (next_free == NULL) {
        find_next();
    }
    tell(memory, usable(memory), __builtin_return_address(0));
    if (next_free != NULL) {
        next_free(memory);
    }
}

EXPORT void *realloc(void *memory, size_t bytes)
{
    if (next_realloc == NULL) {
        find_next();
    }
    const uintptr_t before = (uintptr_t)memory;
    const size_t old_bytes = usable(memory);
    void *now = next_realloc == NULL ? NULL : next_realloc(memory, bytes);
    if ((now != NULL || bytes == 0) && (uintptr_t)now != before) {
        tell((const void *)before, old_bytes, __builtin_return_address(0));
    }
    return now;
}

EXPORT int munmap(void *memory, size_t bytes)
{
    if (next_munmap == NULL) {
        find_next();
    }
    tell(memory, bytes, __builtin_return_address(0));
    return next_munmap == NULL ? -1 : next_munmap(memory, bytes);
}
