/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/freeing.h"

#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

/* The library freed.c has it; NULL: it is not loaded. */
extern freeing_hook *nonic_on_freed __attribute__((weak));

enum {
    QUIET_MAX = 4,
};

/* The code of nonic, the C library, the loader and the compiler's library. No request names what
 * they free; and they may do so for a thread that has nonic's locks. */
static struct {
    uintptr_t begin, end;
} quiet[QUIET_MAX];
static int quiet_count;

bool freeing_is_the_programs(const void *caller)
{
    const uintptr_t code = (uintptr_t)caller;
    int i = 0;
    while (i < quiet_count && (code < quiet[i].begin || code >= quiet[i].end)) {
        i++;
    }
    return i == quiet_count;
}

static int note_object(struct dl_phdr_info *object, size_t bytes, void *nothing)
{
    (void)bytes, (void)nothing;
    const uintptr_t marks[] = {(uintptr_t)note_object, (uintptr_t)fflush};
    uintptr_t begin = UINTPTR_MAX, end = 0;
    bool is_one = strstr(object->dlpi_name, "/ld-linux") != NULL ||
                  strstr(object->dlpi_name, "/libgcc_s.") != NULL;
    for (uint32_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
            begin = start < begin ? start : begin;
            end = start + part->p_memsz > end ? start + part->p_memsz : end;
        }
    }
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        is_one |= marks[i] >= begin && marks[i] < end;
    }
    if (is_one && quiet_count < QUIET_MAX) {
        quiet[quiet_count].begin = begin;
        quiet[quiet_count++].end = end;
    }
    return 0;
}

const void *freeing_library(void)
{
    return &nonic_on_freed;
}

void freeing_begin(freeing_hook *hook)
{
    if (&nonic_on_freed != NULL && nonic_on_freed == NULL) {
        dl_iterate_phdr(note_object, NULL);
        nonic_on_freed = hook;
    }
}
