/* SPDX-License-Identifier: BSD-2-Clause
 *
 * memory - a digest of all that a process could write, at its end.
 */
#include <stdio.h>
#include <string.h>

#include "box/internal.h"

/* A sanitizer keeps its notes about other memory in a mapping of this size, and touches a little
 * of it. No machine has as much memory. */
#define RESERVED_BYTES (UINT64_C(1) << 40)

static uint64_t range_digest(const struct process *process, uint64_t from, uint64_t to)
{
    static uint64_t words[8192];
    uint64_t digest = 7;
    for (; from < to; from += sizeof(words)) {
        const size_t bytes = to - from < sizeof(words) ? (size_t)(to - from) : sizeof(words);
        if (!tracee_read(process->pid, from, words, bytes)) {
            break;
        }
        for (size_t i = 0; i < bytes / sizeof(words[0]); i++) {
            digest = page_mixed(digest, words[i]);
        }
    }
    return digest;
}

void memory_digest(struct box *box, struct process *process)
{
    char line[600];
    snprintf(line, sizeof(line), "/proc/%d/maps", process->pid);
    FILE *file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        unsigned long from, to;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || rights[1] != 'w' ||
            rights[3] != 'p' || to - from >= RESERVED_BYTES) {
            continue;
        }
        const uint64_t digest = range_digest(process, from, to);
        box->page->digest = page_mixed(box->page->digest, digest);
        if (box->calls != NULL) {
            fprintf(box->calls, "# memory of process %d: %016llx %s", process->pid,
                    (unsigned long long)digest, line);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}
