/* SPDX-License-Identifier: BSD-2-Clause
 *
 * virtual_directory - streams of virtual directories, after the kernel's entries where it has some.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "kernel/virtual_file.h"

/* A stream of libc's begins with its descriptor, which is never negative. */
#define MARK (-0x6e6f6e69)

struct virtual_directory {
    int mark;
    int fd; /* -1 until somebody asks for it. */
    DIR *kernel;
    uint32_t next; /* Our next entry; "." and ".." count where the kernel has none. */
    struct dirent entry;
    struct sysfs_node node;
};

/* It has a stream of the kernel's, or a descriptor of its own, or neither. */
static void directory_check(const struct virtual_directory *directory)
{
    CHECK(directory->mark == MARK);
    CHECK(directory->kernel == NULL || directory->fd < 0);
    CHECK(directory->node.kind == SYSFS_DIRECTORY && directory->node.entry != NULL);
    CHECK(directory->node.path[0] == '/');
}

bool virtual_directory_is(DIR *stream)
{
    int mark;
    memcpy(&mark, (void *)stream, sizeof(mark));
    return mark == MARK;
}

struct virtual_directory *virtual_directory_open(const struct sysfs_node *node, DIR *kernel, int fd)
{
    struct virtual_directory *directory = malloc(sizeof(*directory));
    if (directory == NULL) {
        if (kernel != NULL) {
            closedir(kernel);
        }
        errno = ENOMEM;
        return NULL;
    }
    directory->mark = MARK;
    directory->fd = fd;
    directory->kernel = kernel;
    directory->next = 0;
    directory->node = *node;
    INVARIANTS(directory_check(directory));
    return directory;
}

int virtual_directory_close(struct virtual_directory *directory)
{
    int result = 0;
    INVARIANTS(directory_check(directory));
    if (directory->kernel != NULL) {
        result = closedir(directory->kernel);
    }
    if (directory->fd >= 0) {
        result |= close(directory->fd);
    }
    directory->mark = 0;
    free(directory);
    return result;
}

/* -- Reading ------------------------------------------------------------------------------------*/

static unsigned char type_of(enum sysfs_kind kind)
{
    switch (kind) {
    case SYSFS_DIRECTORY: return DT_DIR;
    case SYSFS_LINK: return DT_LNK;
    case SYSFS_DEVICE: return DT_CHR;
    case SYSFS_FILE: return DT_REG;
    case SYSFS_KERNEL:
    case SYSFS_ABSENT: break;
    }
    UNREACHABLE("an entry that is not there, or not ours");
}

static bool have(const struct virtual_directory *directory, const char *name)
{
    char ours[SYSFS_NAME_BYTES];
    for (uint32_t i = 0; sysfs_list(&directory->node, i, ours) != SYSFS_ABSENT; i++) {
        if (strcmp(ours, name) == 0) {
            return true;
        }
    }
    return false;
}

/* An entry of the kernel's that none of ours hides. */
static struct dirent *read_kernel(struct virtual_directory *directory)
{
    struct dirent *entry;
    while ((entry = readdir(directory->kernel)) != NULL) {
        if (!have(directory, entry->d_name)) {
            return entry;
        }
    }
    return NULL;
}

static struct dirent *fill(struct virtual_directory *directory, const char *name,
                           enum sysfs_kind kind)
{
    char path[SYSFS_PATH_BYTES + SYSFS_NAME_BYTES];
    struct sysfs_node node;
    struct stat status = {.st_ino = 1};
    const size_t length = strlen(directory->node.path);
    CHECK(length < SYSFS_PATH_BYTES && strlen(name) < SYSFS_NAME_BYTES);
    memcpy(path, directory->node.path, length);
    path[length] = '/';
    strcpy(path + length + 1, name);
    sysfs_find(path, false, &node);
    if (node.kind != SYSFS_KERNEL && node.kind != SYSFS_ABSENT) {
        virtual_status(&node, &status);
    }
    struct dirent *entry = &directory->entry;
    memset(entry, 0, sizeof(*entry));
    entry->d_ino = status.st_ino;
    entry->d_off = (off_t)directory->next;
    entry->d_reclen = sizeof(*entry);
    entry->d_type = type_of(kind);
    strcpy(entry->d_name, name);
    return entry;
}

struct dirent *virtual_directory_read(struct virtual_directory *directory)
{
    INVARIANTS(directory_check(directory));
    if (directory->kernel != NULL && directory->next == 0) {
        const int before = errno;
        errno = 0;
        struct dirent *entry = read_kernel(directory);
        if (entry != NULL || errno != 0) {
            errno = errno == 0 ? before : errno;
            return entry;
        }
        errno = before;
    }
    static const char *const dots[] = {".", ".."};
    const uint32_t own_dots = directory->kernel == NULL ? COUNT_OF(dots) : 0;
    const uint32_t index = directory->next++;
    if (index < own_dots) {
        return fill(directory, dots[index], SYSFS_DIRECTORY);
    }
    char name[SYSFS_NAME_BYTES];
    const enum sysfs_kind kind = sysfs_list(&directory->node, index - own_dots, name);
    if (kind == SYSFS_ABSENT) {
        directory->next--;
        if (directory->next == 0) {
            directory->next = 1; /* Nothing of ours: the kernel's end is the end. */
        }
        return NULL;
    }
    return fill(directory, name, kind);
}

/* -- Positions: the kernel's as they are, ours negative -----------------------------------------*/

long virtual_directory_tell(const struct virtual_directory *directory)
{
    if (directory->kernel != NULL && directory->next == 0) {
        return telldir(directory->kernel);
    }
    return directory->kernel == NULL ? (long)directory->next : -(long)directory->next;
}

void virtual_directory_rewind(struct virtual_directory *directory)
{
    directory->next = 0;
    if (directory->kernel != NULL) {
        rewinddir(directory->kernel);
    }
}

void virtual_directory_seek(struct virtual_directory *directory, long position)
{
    if (directory->kernel == NULL) {
        directory->next = (uint32_t)position;
        return;
    }
    directory->next = position < 0 ? (uint32_t)-position : 0;
    if (position >= 0) {
        seekdir(directory->kernel, position);
    }
}

int virtual_directory_descriptor(struct virtual_directory *directory)
{
    INVARIANTS(directory_check(directory));
    if (directory->kernel != NULL) {
        return dirfd(directory->kernel);
    }
    if (directory->fd < 0) {
        directory->fd = virtual_open(&directory->node, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return directory->fd;
}
