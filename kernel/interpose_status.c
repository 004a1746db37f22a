/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interpose_status - stat in all its forms.
 */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "kernel/interpose.h"

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one form of stat on 64-bit machines");

/* The kernel's status of a descriptor, which may be of a virtual file. */
static int corrected(int fd, int result, struct stat *status)
{
    struct sysfs_node node;
    if (result != 0) {
        return result;
    }
    unchecked_begin();
    if (interpose_is_cm(fd)) {
        sysfs_find("/dev/infiniband/rdma_cm", true, &node);
        result = virtual_status(&node, status);
    } else {
        virtual_descriptor_status(fd, status);
    }
    unchecked_end();
    return result;
}

#define STAT(name, type, follow)                                                                   \
    NEXT(name)                                                                                     \
    EXPORT int name(const char *path, struct type *status)                                         \
    {                                                                                              \
        return ANSWER(AT_FDCWD, path, follow, -1,                                                  \
                      virtual_status(&node, (struct stat *)(void *)status),                        \
                      next_##name()(path, status));                                                \
    }

STAT(stat, stat, true)
STAT(stat64, stat64, true)
STAT(lstat, stat, false)
STAT(lstat64, stat64, false)

#define FSTAT(name, type)                                                                          \
    NEXT(name)                                                                                     \
    EXPORT int name(int fd, struct type *status)                                                   \
    {                                                                                              \
        return corrected(fd, next_##name()(fd, status), (struct stat *)(void *)status);            \
    }

FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

#define FSTATAT(name, type)                                                                        \
    NEXT(name)                                                                                     \
    EXPORT int name(int at, const char *path, struct type *status, int flags)                      \
    {                                                                                              \
        const int result = ANSWER(at, path, !(flags & AT_SYMLINK_NOFOLLOW), -1,                    \
                                  virtual_status(&node, (struct stat *)(void *)status),            \
                                  next_##name()(at, path, status, flags));                         \
        return at >= 0 && (flags & AT_EMPTY_PATH) && path[0] == '\0'                               \
                   ? corrected(at, result, (struct stat *)(void *)status)                          \
                   : result;                                                                       \
    }

FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)

/* -- Programs linked before glibc 2.33 ----------------------------------------------------------*/

/* They say which struct they mean: 0 and 1 are the only one there ever was on this machine. */
#define XSTAT(name, type, plain)                                                                   \
    EXPORT int name(int version, const char *path, struct type *status);                           \
    EXPORT int name(int version, const char *path, struct type *status)                            \
    {                                                                                              \
        if (version < 0 || version > 1) {                                                          \
            errno = EINVAL;                                                                        \
            return -1;                                                                             \
        }                                                                                          \
        return plain(path, status);                                                                \
    }

XSTAT(__xstat, stat, stat)
XSTAT(__xstat64, stat64, stat64)
XSTAT(__lxstat, stat, lstat)
XSTAT(__lxstat64, stat64, lstat64)

#define FXSTAT(name, type, plain)                                                                  \
    EXPORT int name(int version, int fd, struct type *status);                                     \
    EXPORT int name(int version, int fd, struct type *status)                                      \
    {                                                                                              \
        if (version < 0 || version > 1) {                                                          \
            errno = EINVAL;                                                                        \
            return -1;                                                                             \
        }                                                                                          \
        return plain(fd, status);                                                                  \
    }

FXSTAT(__fxstat, stat, fstat)
FXSTAT(__fxstat64, stat64, fstat64)

#define FXSTATAT(name, type, plain)                                                                \
    EXPORT int name(int version, int at, const char *path, struct type *status, int flags);        \
    EXPORT int name(int version, int at, const char *path, struct type *status, int flags)         \
    {                                                                                              \
        if (version < 0 || version > 1) {                                                          \
            errno = EINVAL;                                                                        \
            return -1;                                                                             \
        }                                                                                          \
        return plain(at, path, status, flags);                                                     \
    }

FXSTATAT(__fxstatat, stat, fstatat)
FXSTATAT(__fxstatat64, stat64, fstatat64)

/* -- statx --------------------------------------------------------------------------------------*/

static struct statx_timestamp timestamp(struct timespec time)
{
    return (struct statx_timestamp){.tv_sec = time.tv_sec, .tv_nsec = (uint32_t)time.tv_nsec};
}

static void extend(const struct stat *from, struct statx *to)
{
    memset(to, 0, sizeof(*to));
    to->stx_mask = STATX_BASIC_STATS;
    to->stx_blksize = (uint32_t)from->st_blksize;
    to->stx_nlink = (uint32_t)from->st_nlink;
    to->stx_mode = (uint16_t)from->st_mode;
    to->stx_ino = from->st_ino;
    to->stx_size = (uint64_t)from->st_size;
    to->stx_atime = timestamp(from->st_atim);
    to->stx_mtime = timestamp(from->st_mtim);
    to->stx_ctime = timestamp(from->st_ctim);
    to->stx_rdev_major = major(from->st_rdev);
    to->stx_rdev_minor = minor(from->st_rdev);
    to->stx_dev_major = major(from->st_dev);
    to->stx_dev_minor = minor(from->st_dev);
}

static int extended(const struct sysfs_node *node, struct statx *status)
{
    struct stat plain;
    const int result = virtual_status(node, &plain);
    if (result == 0) {
        extend(&plain, status);
    }
    return result;
}

NEXT(statx)
EXPORT int statx(int at, const char *path, int flags, unsigned int mask, struct statx *status)
{
    struct stat plain;
    const int result = ANSWER(at, path, !(flags & AT_SYMLINK_NOFOLLOW), -1, extended(&node, status),
                              next_statx()(at, path, flags, mask, status));
    if (result == 0 && at >= 0 && (flags & AT_EMPTY_PATH) && path[0] == '\0' &&
        (virtual_descriptors_made() || interpose_is_cm(at)) && fstat(at, &plain) == 0 &&
        (plain.st_ino != status->stx_ino || plain.st_mode != status->stx_mode)) {
        extend(&plain, status);
    }
    return result;
}
