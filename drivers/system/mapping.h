/* SPDX-License-Identifier: BSD-2-Clause
 *
 * mapping - what an address of this process is mapped from.
 *
 * Purpose    Memory that is shared already (MAP_SHARED) can be mapped by other processes as well,
 *            if there is a descriptor of its file.
 * Inputs     /proc/self/maps, /proc/self/smaps.
 * Ownership  A descriptor that is returned belongs to the caller, who gives it to descriptor_close.
 * Threads    Any. Other threads of the program may change a mapping that has just been told.
 * Source     proc(5).
 */
#ifndef DRIVERS_MAPPING_H
#define DRIVERS_MAPPING_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/check.h"
#include "drivers/system/lines.h"

/* A line of /proc/self/maps. Addresses and bytes are multiples of a page. */
struct mapping {
    uint64_t start, end;
    uint64_t offset; /* The place of `start` in the file. */
    dev_t device;
    ino_t inode; /* 0: no file. */
    bool readable, writable, shared;
    const char *path; /* In the line: a file, "[heap]" and the like; empty: memory alone. */
    char line[PATH_MAX + 128];
};

/* The next one of a reader of /proc/self/maps or /proc/self/smaps; what is no such line is skipped.
 * False: there is no more. */
MUST_USE bool mapping_read(struct lines *maps, struct mapping *mapping);

/* The mapping that has the address. False: there is none, or /proc cannot be read. */
MUST_USE bool mapping_find(uint64_t address, struct mapping *mapping);

/* The attributes (VmFlags) of the mapping that was read last from /proc/self/smaps: words of two
 * letters. False: there are none. */
#define MAPPING_FLAGS_BYTES 128
MUST_USE bool mapping_read_flags(struct lines *maps, char flags[MAPPING_FLAGS_BYTES]);

/* Does it have all of [address, address + bytes)? */
MUST_USE bool mapping_has(const struct mapping *mapping, uint64_t address, uint64_t bytes);

/* A new descriptor of the file that is mapped; -1: none can be had, since the program has closed
 * and removed it, or it is no file of memory pages (a device, hugetlbfs). */
MUST_USE int mapping_descriptor(const struct mapping *mapping);

#endif
