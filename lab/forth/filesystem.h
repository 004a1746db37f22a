/* SPDX-License-Identifier: BSD-2-Clause
 *
 * filesystem - the smallest file system that can keep files: names, extents, pages of 4 KB.
 *
 * It serves workloads that want a file system on a block device of any kind. A file is one run of
 * pages; names are paths. A mounted file system is also in memory, and is written back page by
 * page.
 */
#ifndef LAB_FORTH_FILESYSTEM_H
#define LAB_FORTH_FILESYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILESYSTEM_PAGE_BYTES 4096u
#define FILESYSTEM_NAME_BYTES 44u
#define FILESYSTEM_FILES      4096u

/* The device that keeps it. Both functions return false if the device failed. */
struct filesystem_device {
    bool (*read)(void *owner, uint64_t page, uint32_t pages, void *bytes);
    bool (*write)(void *owner, uint64_t page, uint32_t pages, const void *bytes);
    void *owner;
    uint64_t pages;
    uint32_t request_pages; /* The most pages of one request. */
};

struct filesystem_inode {
    char name[FILESYSTEM_NAME_BYTES]; /* Empty: free. */
    uint32_t bytes;
    uint64_t first_page;
    uint32_t pages;
    uint32_t reserved;
};

struct filesystem {
    struct filesystem_device device;
    struct filesystem_inode *inodes;
    uint8_t *used; /* A bit for each page. */
    bool mounted;
};

bool filesystem_format(const struct filesystem_device *device);
/* False: no file system is there, or it was not unmounted. */
bool filesystem_mount(struct filesystem *fs, const struct filesystem_device *device);
bool filesystem_unmount(struct filesystem *fs);

/* Creates or replaces. False: no room, too long a name, or the device failed. */
bool filesystem_write(struct filesystem *fs, const char *name, const void *bytes, uint32_t count);
/* The size of a file; -1: no such file. */
int64_t filesystem_size(const struct filesystem *fs, const char *name);
/* Reads the whole file into `bytes`, which has room for its size rounded up to pages. */
bool filesystem_read(struct filesystem *fs, const char *name, void *bytes);
bool filesystem_remove(struct filesystem *fs, const char *name);
/* The name of the `index`th file whose name begins with `prefix`; NULL: there are fewer. */
const char *filesystem_list(const struct filesystem *fs, const char *prefix, uint32_t index);

#endif
