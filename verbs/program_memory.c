/* SPDX-License-Identifier: BSD-2-Clause
 *
 * program_memory - is memory that a program registers there, and can it be made persistent?
 */
#include <errno.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "drivers/system/mapping.h"
#include "drivers/system/shortage.h"
#include "drivers/system/system.h"
#include "verbs/internal.h"

/* A region beyond that is perhaps never used as a whole: its pages come when they are touched. */
#define POPULATED_BYTES_MAX ((uint64_t)1 << 28)

/* Is every byte of [address, address + bytes) in a mapping that serves? */
static bool all_served(struct lines *maps, uint64_t address, uint64_t bytes,
                       bool (*serves)(const struct mapping *))
{
    const uint64_t end = address + bytes;
    uint64_t covered = address;
    struct mapping mapping;
    CHECK(end >= address); /* The callers have judged the range. */
    while (covered < end && mapping_read(maps, &mapping)) {
        if (mapping.end <= covered) {
            continue;
        }
        if (mapping.start > covered || !serves(&mapping)) {
            break;
        }
        covered = mapping.end;
    }
    return covered >= end;
}

/* -- Is it there? -------------------------------------------------------------------------------*/

static bool readable(const struct mapping *mapping)
{
    return mapping->readable;
}

static bool writable(const struct mapping *mapping)
{
    return mapping->readable && mapping->writable;
}

static bool memory_mapped(uint64_t address, uint64_t bytes, bool write)
{
    struct lines maps;
    lines_open(&maps, AT_FDCWD, "/proc/self/maps");
    const bool mapped = all_served(&maps, address, bytes, write ? writable : readable);
    return lines_close(&maps) != 0 || mapped; /* No /proc: believe the program. */
}

bool program_memory_is_there(uint64_t address, uint64_t bytes, bool write)
{
    const uint64_t page = system_page_bytes();
    const uint64_t start = address & ~(page - 1);
    CHECK(page != 0 && (page & (page - 1)) == 0);
    if (bytes <= POPULATED_BYTES_MAX) {
        if (madvise((void *)(uintptr_t)start, address + bytes - start,
                    write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0) {
            return true;
        }
        if (errno == EFAULT) {
            return false;
        }
    }
    /* Also of memory, or on a kernel, that knows no such advice; and ENOMEM is said of memory that
     * is not there, and where there is none for its pages. */
    return memory_mapped(address, bytes, write);
}

/* -- Can it be made persistent? -----------------------------------------------------------------*/

/* A file that somebody can open after the machine was without power. One that was deleted has no
 * path. errno is left alone unless nobody could look. */
static bool is_kept(const char *path)
{
    struct stat file;
    struct statfs system;
    if (system_status_of(AT_FDCWD, path, &file) != 0 || !S_ISREG(file.st_mode) ||
        statfs(path, &system) != 0) {
        return false;
    }
    return system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC &&
           system.f_type != HUGETLBFS_MAGIC;
}

static bool persists(const struct mapping *mapping)
{
    return writable(mapping) && mapping->shared && is_kept(mapping->path);
}

int program_memory_persists(uint64_t address, uint64_t bytes)
{
    struct lines maps;
    lines_open(&maps, AT_FDCWD, "/proc/self/maps");
    errno = 0;
    const bool all = all_served(&maps, address, bytes, persists);
    const int reason = shortage_is(errno) ? errno : EINVAL;
    const int unread = lines_close(&maps);
    return all ? 0 : unread != 0 ? unread : reason;
}
