/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interpose_library - dlopen and dlmopen: a program that opens libibverbs gets this library, by
 * whatever name. docs/decisions/0044.
 */
#include <stdio.h>
#include <string.h>

#include "kernel/interpose.h"

/* The loader knows a preloaded library by this name, and by no other. */
#define SONAME "libibverbs.so.1"

/* libibverbs.so, libibverbs.so.1, libibverbs.so.1.14.44.0: in any folder or in none. */
static bool is_libibverbs(const char *name)
{
    static const char stem[] = "libibverbs.so";
    const char *slash = doubted(name) == NULL ? NULL : strrchr(name, '/');
    const char *base = slash == NULL ? doubted(name) : slash + 1;
    return base != NULL && strncmp(base, stem, strlen(stem)) == 0 &&
           (base[strlen(stem)] == '\0' || base[strlen(stem)] == '.');
}

NEXT(dlopen)
/* A library that is opened with RTLD_DEEPBIND calls libc's own dlopen. The loader knows a library
 * also by each name that led it to its file: beside ours is a link of the name that programs ask
 * for, and our DT_RPATH leads there first. */
static void name_deeply(int flags)
{
    void *ours =
        (flags & RTLD_DEEPBIND) ? next_dlopen()("libibverbs.so", RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (ours != NULL) {
        dlclose(ours);
    }
}

/* The call has to be the last thing done, so that it becomes a jump: the loader finds the caller,
 * whose search path and namespace count, by the address that it returns to. */
EXPORT void *dlopen(const char *name, int flags)
{
    name_deeply(flags);
    return next_dlopen()(is_libibverbs(name) ? SONAME : name, flags);
}

NEXT(dlmopen)
/* Nothing is preloaded into a new namespace. This library is loaded into it first, once more, for
 * the library to come, whose calls are bound at once if they can be: without a user this one goes
 * again. */
static void *open_apart(const char *name, int flags)
{
    Dl_info here;
    Lmid_t apart;
    void *ours = dladdr((void *)(uintptr_t)open_apart, &here) == 0
                     ? NULL
                     : next_dlmopen()(LM_ID_NEWLM, here.dli_fname, flags);
    if (ours == NULL || dlinfo(ours, RTLD_DI_LMID, &apart) != 0) {
        fprintf(stderr,
                "nonic: %s runs without nonic: its namespace (dlmopen) cannot have one: %s\n", name,
                dlerror());
        return next_dlmopen()(LM_ID_NEWLM, name, flags);
    }
    if (is_libibverbs(name)) {
        return ours;
    }
    void *opened = next_dlmopen()(apart, name, (flags & ~RTLD_LAZY) | RTLD_NOW);
    if (opened == NULL) {
        opened = next_dlmopen()(apart, name, flags);
    }
    dlclose(ours);
    return opened;
}

EXPORT void *dlmopen(Lmid_t namespace, const char *name, int flags)
{
    if (namespace == LM_ID_NEWLM && doubted(name) != NULL) {
        return open_apart(name, flags);
    }
    name_deeply(flags);
    return next_dlmopen()(namespace, is_libibverbs(name) ? SONAME : name, flags);
}
