/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interpose_path - open and its kin, and what a path is.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "verbs/interpose.h"

/* Also where it does not say. */
static bool kernel_has(const char *path)
{
    const int before = errno;
    const bool has =
        syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
    errno = before;
    return has;
}

bool interpose_find(int at, const char **path, bool follow, struct sysfs_node *node)
{
    char joined[2 * SYSFS_PATH_BYTES];
    const char *whole = *path;
    if (whole[0] != '/') {
        if (strlen(whole) >= SYSFS_PATH_BYTES || whole[0] == '\0' ||
            !virtual_descriptor_path(at, joined)) {
            return false;
        }
        strcat(strcat(joined, "/"), whole);
        whole = joined;
    }
    sysfs_find(whole, follow, node);
    if (node->kind == SYSFS_KERNEL && node->path[0] == '\0' && whole == joined) {
        snprintf(node->path, sizeof(node->path), "%s", joined);
    }
    if (node->kind == SYSFS_KERNEL || (sysfs_shared(node) && kernel_has(node->path))) {
        *path = node->path[0] != '\0' ? node->path : *path;
        return false;
    }
    return true;
}

/* -- open ---------------------------------------------------------------------------------------*/

static bool follows(int flags)
{
    return !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
}

static int open_node(const struct sysfs_node *node, int flags)
{
    if (node->kind == SYSFS_DEVICE && strcmp(node->path, "/dev/infiniband/rdma_cm") == 0 &&
        !(flags & O_DIRECTORY)) {
        return interpose_open_cm(flags);
    }
    return virtual_open(node, flags);
}

static bool has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* The argument behind `flags`, if these say that there is one. */
#define READ_MODE(flags, mode)                                                                     \
    do {                                                                                           \
        if (has_mode(flags)) {                                                                     \
            va_list arguments;                                                                     \
            va_start(arguments, flags);                                                            \
            (mode) = va_arg(arguments, mode_t);                                                    \
            va_end(arguments);                                                                     \
        }                                                                                          \
    } while (0)

#define OPEN(name)                                                                                 \
    NEXT(name)                                                                                     \
    EXPORT int name(const char *path, int flags, ...)                                              \
    {                                                                                              \
        struct sysfs_node node;                                                                    \
        mode_t mode = 0;                                                                           \
        READ_MODE(flags, mode);                                                                    \
        if (interpose_answers(AT_FDCWD, &path, follows(flags), &node)) {                           \
            return open_node(&node, flags);                                                        \
        }                                                                                          \
        return next_##name()(path, flags, mode);                                                   \
    }

#define OPENAT(name)                                                                               \
    NEXT(name)                                                                                     \
    EXPORT int name(int at, const char *path, int flags, ...)                                      \
    {                                                                                              \
        struct sysfs_node node;                                                                    \
        mode_t mode = 0;                                                                           \
        READ_MODE(flags, mode);                                                                    \
        if (interpose_answers(at, &path, follows(flags), &node)) {                                 \
            return open_node(&node, flags);                                                        \
        }                                                                                          \
        return next_##name()(at, path, flags, mode);                                               \
    }

/* What open becomes in programs built with _FORTIFY_SOURCE. */
#define OPEN_CHECKED(name)                                                                         \
    EXPORT int name(const char *path, int flags);                                                  \
    NEXT(name)                                                                                     \
    EXPORT int name(const char *path, int flags)                                                   \
    {                                                                                              \
        struct sysfs_node node;                                                                    \
        if (!has_mode(flags) && interpose_answers(AT_FDCWD, &path, follows(flags), &node)) {       \
            return open_node(&node, flags);                                                        \
        }                                                                                          \
        return next_##name()(path, flags);                                                         \
    }

#define OPENAT_CHECKED(name)                                                                       \
    EXPORT int name(int at, const char *path, int flags);                                          \
    NEXT(name)                                                                                     \
    EXPORT int name(int at, const char *path, int flags)                                           \
    {                                                                                              \
        struct sysfs_node node;                                                                    \
        if (!has_mode(flags) && interpose_answers(at, &path, follows(flags), &node)) {             \
            return open_node(&node, flags);                                                        \
        }                                                                                          \
        return next_##name()(at, path, flags);                                                     \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
OPEN_CHECKED(__open_2)
OPEN_CHECKED(__open64_2)
OPENAT_CHECKED(__openat_2)
OPENAT_CHECKED(__openat64_2)

/* -- fopen --------------------------------------------------------------------------------------*/

static int flags_of(const char *mode)
{
    int flags = mode[0] == 'r'   ? O_RDONLY
                : mode[0] == 'w' ? O_WRONLY | O_CREAT | O_TRUNC
                                 : O_WRONLY | O_CREAT | O_APPEND;
    for (const char *m = mode + (mode[0] != '\0'); *m != '\0' && *m != ','; m++) {
        flags = *m == '+' ? (flags & ~O_ACCMODE) | O_RDWR : flags;
        flags |= *m == 'e' ? O_CLOEXEC : *m == 'x' ? O_EXCL : 0;
    }
    return flags;
}

static FILE *open_stream(const struct sysfs_node *node, const char *mode)
{
    const int fd = open_node(node, flags_of(mode));
    if (fd < 0) {
        return NULL;
    }
    FILE *stream = fdopen(fd, mode);
    if (stream == NULL) {
        const int reason = errno;
        close(fd);
        errno = reason;
    }
    return stream;
}

#define FOPEN(name)                                                                                \
    NEXT(name)                                                                                     \
    EXPORT FILE *name(const char *path, const char *mode)                                          \
    {                                                                                              \
        struct sysfs_node node;                                                                    \
        if (interpose_answers(AT_FDCWD, &path, true, &node)) {                                     \
            return open_stream(&node, mode);                                                       \
        }                                                                                          \
        return next_##name()(path, mode);                                                          \
    }

FOPEN(fopen)
FOPEN(fopen64)

/* -- access -------------------------------------------------------------------------------------*/

#define ACCESS(name)                                                                               \
    NEXT(name)                                                                                     \
    EXPORT int name(const char *path, int mode)                                                    \
    {                                                                                              \
        struct sysfs_node node;                                                                    \
        if (interpose_answers(AT_FDCWD, &path, true, &node)) {                                     \
            return virtual_access(&node, mode);                                                    \
        }                                                                                          \
        return next_##name()(path, mode);                                                          \
    }

ACCESS(access)
ACCESS(euidaccess)
ACCESS(eaccess)

NEXT(faccessat)
EXPORT int faccessat(int at, const char *path, int mode, int flags)
{
    struct sysfs_node node;
    if (interpose_answers(at, &path, !(flags & AT_SYMLINK_NOFOLLOW), &node)) {
        return virtual_access(&node, mode);
    }
    return next_faccessat()(at, path, mode, flags);
}

/* -- Links --------------------------------------------------------------------------------------*/

NEXT(readlink)
EXPORT ssize_t readlink(const char *path, char *buffer, size_t bytes)
{
    struct sysfs_node node;
    if (interpose_answers(AT_FDCWD, &path, false, &node)) {
        return virtual_readlink(&node, buffer, bytes);
    }
    return next_readlink()(path, buffer, bytes);
}

NEXT(readlinkat)
EXPORT ssize_t readlinkat(int at, const char *path, char *buffer, size_t bytes)
{
    struct sysfs_node node;
    if (interpose_answers(at, &path, false, &node)) {
        return virtual_readlink(&node, buffer, bytes);
    }
    return next_readlinkat()(at, path, buffer, bytes);
}

EXPORT ssize_t __readlink_chk(const char *path, char *buffer, size_t bytes, size_t room);
EXPORT ssize_t __readlinkat_chk(int at, const char *path, char *buffer, size_t bytes, size_t room);
NEXT(__readlink_chk)
NEXT(__readlinkat_chk)

EXPORT ssize_t __readlink_chk(const char *path, char *buffer, size_t bytes, size_t room)
{
    struct sysfs_node node;
    if (bytes <= room && interpose_answers(AT_FDCWD, &path, false, &node)) {
        return virtual_readlink(&node, buffer, bytes);
    }
    return next___readlink_chk()(path, buffer, bytes, room);
}

EXPORT ssize_t __readlinkat_chk(int at, const char *path, char *buffer, size_t bytes, size_t room)
{
    struct sysfs_node node;
    if (bytes <= room && interpose_answers(at, &path, false, &node)) {
        return virtual_readlink(&node, buffer, bytes);
    }
    return next___readlinkat_chk()(at, path, buffer, bytes, room);
}

static char *resolved(const struct sysfs_node *node, char *buffer)
{
    if (node->kind == SYSFS_ABSENT) {
        errno = node->error;
        return NULL;
    }
    return buffer == NULL ? strdup(node->path) : strcpy(buffer, node->path);
}

NEXT(realpath)
EXPORT char *realpath(const char *path, char *buffer)
{
    struct sysfs_node node;
    if (interpose_answers(AT_FDCWD, &path, true, &node)) {
        return resolved(&node, buffer);
    }
    return next_realpath()(path, buffer);
}

EXPORT char *__realpath_chk(const char *path, char *buffer, size_t room);
NEXT(__realpath_chk)
EXPORT char *__realpath_chk(const char *path, char *buffer, size_t room)
{
    struct sysfs_node node;
    if (room >= PATH_MAX && interpose_answers(AT_FDCWD, &path, true, &node)) {
        return resolved(&node, buffer);
    }
    return next___realpath_chk()(path, buffer, room);
}

NEXT(canonicalize_file_name)
EXPORT char *canonicalize_file_name(const char *path)
{
    struct sysfs_node node;
    if (interpose_answers(AT_FDCWD, &path, true, &node)) {
        return resolved(&node, NULL);
    }
    return next_canonicalize_file_name()(path);
}

/* -- Extended attributes: sysfs has none, which `ls -l` asks about ------------------------------*/

static ssize_t no_attributes(const struct sysfs_node *node)
{
    errno = node->kind == SYSFS_ABSENT ? node->error : EOPNOTSUPP;
    return -1;
}

#define GETXATTR(name, follow)                                                                     \
    NEXT(name)                                                                                     \
    EXPORT ssize_t name(const char *path, const char *attribute, void *value, size_t bytes)        \
    {                                                                                              \
        struct sysfs_node node;                                                                    \
        if (interpose_answers(AT_FDCWD, &path, follow, &node)) {                                   \
            return no_attributes(&node);                                                           \
        }                                                                                          \
        return next_##name()(path, attribute, value, bytes);                                       \
    }

#define LISTXATTR(name, follow)                                                                    \
    NEXT(name)                                                                                     \
    EXPORT ssize_t name(const char *path, char *list, size_t bytes)                                \
    {                                                                                              \
        struct sysfs_node node;                                                                    \
        if (interpose_answers(AT_FDCWD, &path, follow, &node)) {                                   \
            return no_attributes(&node);                                                           \
        }                                                                                          \
        return next_##name()(path, list, bytes);                                                   \
    }

GETXATTR(getxattr, true)
GETXATTR(lgetxattr, false)
LISTXATTR(listxattr, true)
LISTXATTR(llistxattr, false)
