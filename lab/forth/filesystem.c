/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Page 0 names the format; inodes follow, then the bitmap of used pages, then the files.
 */
#include "lab/forth/filesystem.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define MAGIC         UINT64_C(0x6e6f6e6963667331)
#define INODES_A_PAGE (FILESYSTEM_PAGE_BYTES / sizeof(struct filesystem_inode))
#define INODE_PAGES   ((uint32_t)(FILESYSTEM_FILES / INODES_A_PAGE))
#define BITS_A_PAGE   (8u * FILESYSTEM_PAGE_BYTES)

_Static_assert(sizeof(struct filesystem_inode) == 64, "inodes fill pages");

struct super {
    uint64_t magic, pages, mounted;
};

static uint32_t bitmap_pages(uint64_t pages)
{
    return (uint32_t)((pages + BITS_A_PAGE - 1) / BITS_A_PAGE);
}

static uint64_t first_data_page(uint64_t pages)
{
    return 1 + INODE_PAGES + bitmap_pages(pages);
}

static uint32_t pages_of(uint64_t bytes)
{
    return (uint32_t)((bytes + FILESYSTEM_PAGE_BYTES - 1) / FILESYSTEM_PAGE_BYTES);
}

/* -- The device ---------------------------------------------------------------------------------*/

static bool move(const struct filesystem_device *device, bool write, uint64_t page, uint32_t pages,
                 uint8_t *bytes)
{
    while (pages > 0) {
        const uint32_t some = pages < device->request_pages ? pages : device->request_pages;
        if (!(write ? device->write(device->owner, page, some, bytes)
                    : device->read(device->owner, page, some, bytes))) {
            return false;
        }
        page += some;
        pages -= some;
        bytes += (size_t)some * FILESYSTEM_PAGE_BYTES;
    }
    return true;
}

static bool write_super(const struct filesystem_device *device, bool mounted)
{
    uint8_t page[FILESYSTEM_PAGE_BYTES] = {0};
    const struct super super = {.magic = MAGIC, .pages = device->pages, .mounted = mounted};
    memcpy(page, &super, sizeof(super));
    return move(device, true, 0, 1, page);
}

bool filesystem_format(const struct filesystem_device *device)
{
    uint8_t *zeros = calloc(INODE_PAGES + bitmap_pages(device->pages), FILESYSTEM_PAGE_BYTES);
    CHECK(zeros != NULL);
    const bool good = move(device, true, 1, INODE_PAGES + bitmap_pages(device->pages), zeros) &&
                      write_super(device, false);
    free(zeros);
    return good;
}

bool filesystem_mount(struct filesystem *fs, const struct filesystem_device *device)
{
    uint8_t page[FILESYSTEM_PAGE_BYTES];
    struct super super;
    *fs = (struct filesystem){.device = *device};
    if (!move(device, false, 0, 1, page)) {
        return false;
    }
    memcpy(&super, page, sizeof(super));
    if (super.magic != MAGIC || super.pages != device->pages || super.mounted != 0) {
        return false;
    }
    fs->inodes = calloc(INODE_PAGES, FILESYSTEM_PAGE_BYTES);
    fs->used = calloc(bitmap_pages(device->pages), FILESYSTEM_PAGE_BYTES);
    CHECK(fs->inodes != NULL && fs->used != NULL);
    fs->mounted = move(device, false, 1, INODE_PAGES, (uint8_t *)fs->inodes) &&
                  move(device, false, 1 + INODE_PAGES, bitmap_pages(device->pages), fs->used) &&
                  write_super(device, true);
    return fs->mounted;
}

bool filesystem_unmount(struct filesystem *fs)
{
    const struct filesystem_device *device = &fs->device;
    const bool good =
        fs->mounted && move(device, true, 1 + INODE_PAGES, bitmap_pages(device->pages), fs->used) &&
        move(device, true, 1, INODE_PAGES, (uint8_t *)fs->inodes) && write_super(device, false);
    free(fs->inodes);
    free(fs->used);
    *fs = (struct filesystem){.mounted = false};
    return good;
}

/* -- Pages --------------------------------------------------------------------------------------*/

static bool is_used(const struct filesystem *fs, uint64_t page)
{
    return fs->used[page / 8] >> page % 8 & 1;
}

static void mark(struct filesystem *fs, uint64_t page, uint32_t pages, bool used)
{
    for (uint32_t i = 0; i < pages; i++) {
        const uint8_t bit = (uint8_t)(1u << (page + i) % 8);
        uint8_t *byte = &fs->used[(page + i) / 8];
        *byte = (uint8_t)(used ? *byte | bit : *byte & ~bit);
    }
}

/* The first run of free pages that is long enough; 0: none. */
static uint64_t find_run(const struct filesystem *fs, uint32_t pages)
{
    uint64_t start = first_data_page(fs->device.pages);
    for (uint64_t at = start; at < fs->device.pages; at++) {
        if (is_used(fs, at)) {
            start = at + 1;
        } else if (at - start + 1 >= pages) {
            return start;
        }
    }
    return 0;
}

/* -- Files --------------------------------------------------------------------------------------*/

static struct filesystem_inode *find(const struct filesystem *fs, const char *name)
{
    for (uint32_t i = 0; i < FILESYSTEM_FILES; i++) {
        if (strcmp(fs->inodes[i].name, name) == 0) {
            return &fs->inodes[i];
        }
    }
    return NULL;
}

static bool write_inode(struct filesystem *fs, const struct filesystem_inode *inode)
{
    const uint32_t page = (uint32_t)((size_t)(inode - fs->inodes) / INODES_A_PAGE);
    return move(&fs->device, true, 1 + page, 1, (uint8_t *)&fs->inodes[page * INODES_A_PAGE]);
}

bool filesystem_write(struct filesystem *fs, const char *name, const void *bytes, uint32_t count)
{
    const uint32_t pages = pages_of(count);
    if (name[0] == '\0' || strlen(name) >= FILESYSTEM_NAME_BYTES) {
        return false;
    }
    if (find(fs, name) != NULL && !filesystem_remove(fs, name)) {
        return false;
    }
    struct filesystem_inode *inode = find(fs, "");
    const uint64_t first = find_run(fs, pages);
    if (inode == NULL || first == 0) {
        return false;
    }
    uint8_t *padded = calloc(pages + 1u, FILESYSTEM_PAGE_BYTES);
    CHECK(padded != NULL);
    memcpy(padded, bytes, count);
    *inode = (struct filesystem_inode){.bytes = count, .first_page = first, .pages = pages};
    memcpy(inode->name, name, strlen(name) + 1);
    mark(fs, first, pages, true);
    const bool good = move(&fs->device, true, first, pages, padded) && write_inode(fs, inode);
    free(padded);
    return good;
}

int64_t filesystem_size(const struct filesystem *fs, const char *name)
{
    const struct filesystem_inode *inode = find(fs, name);
    return inode == NULL ? -1 : (int64_t)inode->bytes;
}

bool filesystem_read(struct filesystem *fs, const char *name, void *bytes)
{
    const struct filesystem_inode *inode = find(fs, name);
    return inode != NULL && move(&fs->device, false, inode->first_page, inode->pages, bytes);
}

bool filesystem_remove(struct filesystem *fs, const char *name)
{
    struct filesystem_inode *inode = find(fs, name);
    if (inode == NULL) {
        return false;
    }
    mark(fs, inode->first_page, inode->pages, false);
    *inode = (struct filesystem_inode){.bytes = 0};
    return write_inode(fs, inode);
}

const char *filesystem_list(const struct filesystem *fs, const char *prefix, uint32_t index)
{
    for (uint32_t i = 0; i < FILESYSTEM_FILES; i++) {
        const char *name = fs->inodes[i].name;
        if (name[0] != '\0' && strncmp(name, prefix, strlen(prefix)) == 0 && index-- == 0) {
            return name;
        }
    }
    return NULL;
}
