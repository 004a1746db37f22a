/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/mapping.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/lines.h"
#include "drivers/system/system.h"

/* Descriptors among which that of a mapping's file is looked for. */
#define OPEN_MAX_LOOKED_AT 1024

/* Reads "7f10000-7f20000 rw-s 00001000 00:01 1234   /path". */
static bool parse(struct mapping *mapping)
{
    unsigned int high, low;
    char rights[5];
    uint64_t inode;
    int path = 0;
    if (sscanf(mapping->line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
               &mapping->start, &mapping->end, rights, &mapping->offset, &high, &low, &inode,
               &path) != 7 ||
        path == 0) {
        return false;
    }
    mapping->line[strcspn(mapping->line, "\n")] = '\0';
    mapping->path = mapping->line + path;
    mapping->device = makedev(high, low);
    mapping->inode = (ino_t)inode;
    mapping->readable = rights[0] == 'r';
    mapping->writable = rights[1] == 'w';
    mapping->shared = rights[3] == 's';
    return true;
}

bool mapping_read(struct lines *maps, struct mapping *mapping)
{
    while (lines_next(maps, mapping->line, sizeof(mapping->line))) {
        if (parse(mapping)) {
            return true;
        }
    }
    return false;
}

static bool find_in(struct lines *maps, uint64_t address, struct mapping *mapping)
{
    while (mapping_read(maps, mapping)) {
        if (address < mapping->end) {
            return address >= mapping->start;
        }
    }
    return false;
}

bool mapping_find(uint64_t address, struct mapping *mapping)
{
    struct lines maps;
    lines_open(&maps, AT_FDCWD, "/proc/self/maps");
    const bool found = find_in(&maps, address, mapping);
    return lines_close(&maps) == 0 && found;
}

bool mapping_read_flags(struct lines *maps, char flags[MAPPING_FLAGS_BYTES])
{
    static const char name[] = "VmFlags: ";
    char line[sizeof(name) + MAPPING_FLAGS_BYTES];
    while (lines_next(maps, line, sizeof(line))) {
        if (strncmp(line, name, sizeof(name) - 1) == 0) {
            line[strcspn(line, "\n")] = '\0';
            memcpy(flags, line + sizeof(name) - 1, strlen(line) - (sizeof(name) - 1) + 1);
            return true;
        }
    }
    return false;
}

bool mapping_has(const struct mapping *mapping, uint64_t address, uint64_t bytes)
{
    return address >= mapping->start && address <= mapping->end && bytes <= mapping->end - address;
}

static bool is_of_file(int fd, const struct mapping *mapping)
{
    struct stat status;
    return system_status(fd, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_ino == mapping->inode && status.st_dev == mapping->device;
}

/* Writable if the mapping is: a file that was opened for writing alone cannot be mapped. */
static bool serves(int fd, const struct mapping *mapping)
{
    const int mode = fcntl(fd, F_GETFL);
    struct statfs system;
    return mode >= 0 &&
           ((mode & O_ACCMODE) == O_RDWR ||
            (!mapping->writable && (mode & O_ACCMODE) == O_RDONLY)) &&
           fstatfs(fd, &system) == 0 && system.f_type != HUGETLBFS_MAGIC;
}

/* The program's own descriptor, once more. */
static int find_open(const struct mapping *mapping)
{
    for (int fd = 0; fd < OPEN_MAX_LOOKED_AT; fd++) {
        if (is_of_file(fd, mapping) && serves(fd, mapping)) {
            return descriptor_own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
        }
    }
    return -1;
}

static int open_again(const char *path, const struct mapping *mapping)
{
    const int flags = (mapping->writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const int fd = descriptor_own(system_open(AT_FDCWD, path, flags));
    if (fd >= 0 && is_of_file(fd, mapping) && serves(fd, mapping)) {
        return fd;
    }
    descriptor_close(fd);
    return -1;
}

int mapping_descriptor(const struct mapping *mapping)
{
    char path[64];
    int fd = mapping->inode == 0 ? -1 : find_open(mapping);
    if (fd < 0 && mapping->path[0] == '/') {
        fd = open_again(mapping->path, mapping);
    }
    if (fd < 0 && mapping->inode != 0) {
        /* For programs that may restore others (CAP_CHECKPOINT_RESTORE), as root's. */
        snprintf(path, sizeof(path), "/proc/self/map_files/%" PRIx64 "-%" PRIx64, mapping->start,
                 mapping->end);
        fd = open_again(path, mapping);
    }
    return fd;
}
