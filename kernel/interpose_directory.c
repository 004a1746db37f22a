/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interpose_directory - directory streams.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/system/system.h"
#include "kernel/interpose.h"

_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64),
               "one form of dirent on 64-bit machines");

/* How many streams of ours are open: while there are none, nobody has to look for them. */
static atomic_uint streams;

static struct virtual_directory *ours(DIR *stream)
{
    return UNLIKELY(atomic_load_explicit(&streams, memory_order_relaxed) != 0) && stream != NULL &&
                   virtual_directory_is(stream)
               ? (struct virtual_directory *)(void *)stream
               : NULL;
}

static DIR *opened(struct virtual_directory *directory)
{
    if (directory != NULL) {
        atomic_fetch_add_explicit(&streams, 1, memory_order_relaxed);
    }
    return (DIR *)(void *)directory;
}

static DIR *refused(int error)
{
    errno = error;
    return NULL;
}

NEXT(dirfd)

static DIR *open_node(const struct sysfs_node *node)
{
    if (node->kind != SYSFS_DIRECTORY) {
        return refused(node->kind == SYSFS_ABSENT ? node->error : ENOTDIR);
    }
    return opened(virtual_directory_open(node, NULL, -1));
}

/* A directory of the kernel's, in which we may have entries of our own, by whatever name it was
 * opened. */
static DIR *merged(DIR *kernel)
{
    char link[64], path[SYSFS_PATH_BYTES];
    struct sysfs_node node;
    if (kernel == NULL) {
        return NULL;
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", next_dirfd()(kernel));
    const ssize_t bytes = system_read_link(AT_FDCWD, link, path, sizeof(path) - 1);
    path[bytes < 0 ? 0 : bytes] = '\0';
    if (LIKELY(!sysfs_plausible(path))) {
        return kernel;
    }
    sysfs_find(path, true, &node);
    return sysfs_shared(&node) ? opened(virtual_directory_open(&node, kernel, -1)) : kernel;
}

NEXT(opendir)
EXPORT DIR *opendir(const char *path)
{
    const int before = errno;
    DIR *stream =
        ANSWER(AT_FDCWD, path, true, NULL, open_node(&node), merged(next_opendir()(path)));
    errno = stream != NULL ? before : errno;
    return stream;
}

NEXT(fdopendir)
EXPORT DIR *fdopendir(int fd)
{
    char path[SYSFS_PATH_BYTES];
    struct sysfs_node node;
    if (LIKELY(!virtual_descriptor_path(fd, path))) {
        return merged(next_fdopendir()(fd));
    }
    sysfs_find(path, true, &node);
    if (node.kind != SYSFS_DIRECTORY) {
        return refused(ENOTDIR);
    }
    return opened(virtual_directory_open(&node, NULL, fd));
}

NEXT(closedir)
EXPORT int closedir(DIR *stream)
{
    struct virtual_directory *directory = ours(doubted((const char *)stream) ? stream : NULL);
    if (LIKELY(directory == NULL)) {
        return next_closedir()(stream);
    }
    atomic_fetch_sub_explicit(&streams, 1, memory_order_relaxed);
    return virtual_directory_close(directory);
}

/* -- Reading ------------------------------------------------------------------------------------*/

#define READDIR(name, type)                                                                        \
    NEXT(name)                                                                                     \
    EXPORT struct type *name(DIR *stream)                                                          \
    {                                                                                              \
        struct virtual_directory *directory = ours(stream);                                        \
        return LIKELY(directory == NULL)                                                           \
                   ? next_##name()(stream)                                                         \
                   : (struct type *)(void *)virtual_directory_read(directory);                     \
    }

READDIR(readdir, dirent)
READDIR(readdir64, dirent64)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define READDIR_R(name, type)                                                                      \
    NEXT(name)                                                                                     \
    EXPORT int name(DIR *stream, struct type *entry, struct type **result)                         \
    {                                                                                              \
        struct virtual_directory *directory = ours(stream);                                        \
        if (LIKELY(directory == NULL)) {                                                           \
            return next_##name()(stream, entry, result);                                           \
        }                                                                                          \
        const int before = errno;                                                                  \
        errno = 0;                                                                                 \
        const struct dirent *found = virtual_directory_read(directory);                            \
        const int error = found == NULL                       ? errno                              \
                          : found->d_reclen <= sizeof(*entry) ? 0                                  \
                                                              : ENAMETOOLONG;                      \
        errno = before;                                                                            \
        *result = found != NULL && error == 0 ? entry : NULL;                                      \
        if (*result != NULL) {                                                                     \
            memcpy(entry, found, found->d_reclen);                                                 \
        }                                                                                          \
        return error;                                                                              \
    }

READDIR_R(readdir_r, dirent)
READDIR_R(readdir64_r, dirent64)
#pragma GCC diagnostic pop

NEXT(rewinddir)
EXPORT void rewinddir(DIR *stream)
{
    struct virtual_directory *directory = ours(stream);
    if (LIKELY(directory == NULL)) {
        next_rewinddir()(stream);
    } else {
        virtual_directory_rewind(directory);
    }
}

NEXT(telldir)
EXPORT long telldir(DIR *stream)
{
    struct virtual_directory *directory = ours(stream);
    return LIKELY(directory == NULL) ? next_telldir()(stream) : virtual_directory_tell(directory);
}

NEXT(seekdir)
EXPORT void seekdir(DIR *stream, long position)
{
    struct virtual_directory *directory = ours(stream);
    if (LIKELY(directory == NULL)) {
        next_seekdir()(stream, position);
    } else {
        virtual_directory_seek(directory, position);
    }
}

EXPORT int dirfd(DIR *stream)
{
    struct virtual_directory *directory = ours(stream);
    return LIKELY(directory == NULL) ? next_dirfd()(stream)
                                     : virtual_directory_descriptor(directory);
}

/* -- Whole directories --------------------------------------------------------------------------*/

typedef int filter(const struct dirent *entry);
typedef int comparison(const struct dirent **a, const struct dirent **b);
typedef void any_function(void);
typedef int plain_comparison(const void *a, const void *b);

static void free_all(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++) {
        free(entries[i]);
    }
    free(entries);
}

static int scan(DIR *stream, struct dirent ***result, filter *wanted, comparison *compare)
{
    struct dirent **entries = NULL;
    const struct dirent *entry;
    int count = 0;
    errno = 0;
    while ((entry = readdir(stream)) != NULL) {
        if (wanted != NULL && wanted(entry) == 0) {
            errno = 0;
            continue;
        }
        struct dirent **more = realloc(entries, (size_t)(count + 1) * sizeof(struct dirent *));
        struct dirent *copy = malloc(entry->d_reclen);
        entries = more != NULL ? more : entries;
        if (more == NULL || copy == NULL) {
            free(copy);
            free_all(entries, count);
            errno = ENOMEM;
            return -1;
        }
        /* The kernel's entries are as long as their names: also longer than the struct. */
        memcpy(copy, entry, entry->d_reclen);
        entries[count++] = copy;
        errno = 0;
    }
    if (errno != 0) {
        const int reason = errno;
        free_all(entries, count);
        errno = reason;
        return -1;
    }
    if (compare != NULL && count > 0) {
        qsort(entries, (size_t)count, sizeof(struct dirent *),
              (plain_comparison *)(any_function *)compare);
    }
    *result = entries;
    return count;
}

static int scan_path(const char *path, struct dirent ***result, filter *wanted, comparison *compare)
{
    const int before = errno;
    DIR *stream = opendir(path);
    if (stream == NULL) {
        return -1;
    }
    const int count = scan(stream, result, wanted, compare);
    const int reason = errno;
    closedir(stream);
    errno = count < 0 ? reason : before;
    return count;
}

EXPORT int scandir(const char *path, struct dirent ***result,
                   int (*wanted)(const struct dirent *entry),
                   int (*compare)(const struct dirent **a, const struct dirent **b))
{
    return scan_path(path, result, wanted, compare);
}

EXPORT int scandir64(const char *path, struct dirent64 ***result,
                     int (*wanted)(const struct dirent64 *entry),
                     int (*compare)(const struct dirent64 **a, const struct dirent64 **b))
{
    return scan_path(path, (struct dirent ***)(void *)result, (filter *)(any_function *)wanted,
                     (comparison *)(any_function *)compare);
}

/* libc's own glob lets its caller say how directories are read. */
static void *glob_opendir(const char *path)
{
    return opendir(path);
}

static void glob_closedir(void *stream)
{
    closedir(stream);
}

#define GLOB(name, type, status_type, plain_stat, plain_lstat, entry_type, plain_readdir)          \
    static struct entry_type *name##_readdir(void *stream)                                         \
    {                                                                                              \
        return plain_readdir(stream);                                                              \
    }                                                                                              \
    NEXT(name)                                                                                     \
    EXPORT int name(const char *pattern, int flags, int (*on_error)(const char *path, int error),  \
                    type *result)                                                                  \
    {                                                                                              \
        if (flags & GLOB_ALTDIRFUNC) {                                                             \
            return next_##name()(pattern, flags, on_error, result);                                \
        }                                                                                          \
        result->gl_opendir = glob_opendir;                                                         \
        result->gl_closedir = glob_closedir;                                                       \
        result->gl_readdir = name##_readdir;                                                       \
        result->gl_stat = plain_stat;                                                              \
        result->gl_lstat = plain_lstat;                                                            \
        const int status = next_##name()(pattern, flags | GLOB_ALTDIRFUNC, on_error, result);      \
        result->gl_flags &= ~GLOB_ALTDIRFUNC;                                                      \
        return status;                                                                             \
    }

GLOB(glob, glob_t, stat, stat, lstat, dirent, readdir)
GLOB(glob64, glob64_t, stat64, stat64, lstat64, dirent64, readdir64)
