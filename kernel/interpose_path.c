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
#include <sys/xattr.h>
#include <unistd.h>

#include "drivers/system/system.h"
#include "kernel/interpose.h"

#define LINKS_MAX 40 /* As the kernel has it. */

/* Also where it does not say. */
static bool kernel_has(const char *path)
{
    const int before = errno;
    const bool has = system_has(path) || (errno != ENOENT && errno != ENOTDIR);
    errno = before;
    return has;
}

bool interpose_find(int at, const char **path, bool follow, struct sysfs_node *node)
{
    char joined[2 * SYSFS_PATH_BYTES];
    const char *whole = *path;
    if (whole[0] != '/') {
        if (strlen(whole) >= SYSFS_PATH_BYTES || whole[0] == '\0' ||
            !(at == AT_FDCWD ? virtual_cwd(joined) : virtual_descriptor_path(at, joined))) {
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

/* -- Where the kernel's paths lead --------------------------------------------------------------*/

static ssize_t read_link(int at, const char *path, char target[SYSFS_PATH_BYTES])
{
    const ssize_t bytes = system_read_link(at, path, target, SYSFS_PATH_BYTES - 1);
    if (bytes >= 0) {
        target[bytes] = '\0';
    }
    return bytes;
}

static bool find_device(int at, const char *path, dev_t *device)
{
    struct stat status;
    const bool found = system_status_of(at, path, &status) == 0;
    *device = found ? status.st_dev : 0;
    return found;
}

/* Is it one of the file systems at /sys and /dev? They stay. */
static bool has_ours(dev_t device)
{
    static const char *const mounted[] = {"/sys", "/dev"};
    static _Atomic dev_t known[COUNT_OF(mounted)];
    for (size_t i = 0; i < COUNT_OF(mounted); i++) {
        dev_t own = atomic_load_explicit(&known[i], memory_order_relaxed);
        if (UNLIKELY(own == 0) && find_device(AT_FDCWD, mounted[i], &own)) {
            atomic_store_explicit(&known[i], own, memory_order_relaxed);
        }
        if (own == device) {
            return true;
        }
    }
    return false;
}

/* Mostly the directory is there, in a file system in which we have nothing, and there is no link of
 * that name in it. */
static bool leads_nowhere(int at, const char *path)
{
    char directory[SYSFS_PATH_BYTES], target[SYSFS_PATH_BYTES];
    dev_t device;
    const char *last = strrchr(path, '/');
    snprintf(directory, sizeof(directory), "%.*s/", last == NULL ? 1 : (int)(last - path),
             last == NULL ? "." : path);
    return find_device(at, directory, &device) && !has_ours(device) &&
           read_link(at, path, target) < 0;
}

/* The directory that a relative path begins at. */
static bool base_of(int at, char base[SYSFS_PATH_BYTES])
{
    char link[64] = "/proc/self/cwd";
    if (at != AT_FDCWD) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
    }
    return read_link(AT_FDCWD, link, base) > 0 && base[0] == '/';
}

/* Puts `first` in front of `rest`, from which the first `used` bytes are taken away. */
static bool prepend(const char *first, char rest[SYSFS_PATH_BYTES], size_t used)
{
    const size_t length = strlen(first), left = strlen(rest + used);
    if (length + left >= SYSFS_PATH_BYTES) {
        return false;
    }
    memmove(rest + length, rest + used, left + 1);
    memcpy(rest, first, length);
    return true;
}

/* Takes the first component of `rest` to the end of `whole`. False: there is no such entry, or no
 * component left; then `rest` is the path behind `whole`. */
static bool step(char whole[SYSFS_PATH_BYTES], char rest[SYSFS_PATH_BYTES], unsigned *links)
{
    char target[SYSFS_PATH_BYTES];
    const size_t before = strspn(rest, "/"), length = strcspn(rest + before, "/");
    const char *name = rest + before;
    const size_t at = strlen(whole);
    if (length == 0 || at + 1 + length >= SYSFS_PATH_BYTES) {
        return false;
    }
    if (length <= 2 && strncmp(name, "..", length) == 0) {
        char *last = length == 2 ? strrchr(whole, '/') : NULL;
        if (last != NULL) {
            *last = '\0';
        }
        return prepend("", rest, before + length);
    }
    whole[at] = '/';
    memcpy(whole + at + 1, name, length);
    whole[at + 1 + length] = '\0';
    const bool link = read_link(AT_FDCWD, whole, target) >= 0;
    if (!link && errno != EINVAL) {
        whole[at] = '\0';
        return false;
    }
    whole[!link ? at + 1 + length : target[0] == '/' ? 0 : at] = '\0';
    return prepend(link ? target : "", rest, before + length) && (*links += link) <= LINKS_MAX;
}

bool interpose_leads(int at, const char **path, char whole[SYSFS_PATH_BYTES])
{
    char rest[SYSFS_PATH_BYTES];
    unsigned links = 0;
    const int before = errno;
    const size_t length = strlen(*path);
    bool leads = length > 0 && length < sizeof(rest) && !leads_nowhere(at, *path);
    if (leads) {
        memcpy(rest, *path, length + 1);
        whole[0] = '\0';
        leads = rest[0] == '/' || base_of(at, whole);
    }
    if (leads) {
        while (step(whole, rest, &links)) {
        }
        INVARIANTS(CHECK(links <= LINKS_MAX + 1 && strlen(whole) < SYSFS_PATH_BYTES));
        leads =
            prepend("/", rest, strspn(rest, "/")) && strlen(whole) + strlen(rest) < sizeof(rest);
    }
    if (leads) {
        strcat(whole, rest);
        leads = sysfs_plausible(whole) && strcmp(whole, *path) != 0;
    }
    *path = leads ? whole : *path;
    errno = before;
    return leads;
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
        mode_t mode = 0;                                                                           \
        READ_MODE(flags, mode);                                                                    \
        return ANSWER(AT_FDCWD, path, follows(flags), -1, open_node(&node, flags),                 \
                      next_##name()(path, flags, mode));                                           \
    }

#define OPENAT(name)                                                                               \
    NEXT(name)                                                                                     \
    EXPORT int name(int at, const char *path, int flags, ...)                                      \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
        READ_MODE(flags, mode);                                                                    \
        return ANSWER(at, path, follows(flags), -1, open_node(&node, flags),                       \
                      next_##name()(at, path, flags, mode));                                       \
    }

/* The names of open in programs that are built with _FORTIFY_SOURCE. */
#define OPEN_CHECKED(name)                                                                         \
    EXPORT int name(const char *path, int flags);                                                  \
    NEXT(name)                                                                                     \
    EXPORT int name(const char *path, int flags)                                                   \
    {                                                                                              \
        return ANSWER(AT_FDCWD, path, follows(flags), -1,                                          \
                      !has_mode(flags) ? open_node(&node, flags) : next_##name()(path, flags),     \
                      next_##name()(path, flags));                                                 \
    }

#define OPENAT_CHECKED(name)                                                                       \
    EXPORT int name(int at, const char *path, int flags);                                          \
    NEXT(name)                                                                                     \
    EXPORT int name(int at, const char *path, int flags)                                           \
    {                                                                                              \
        return ANSWER(at, path, follows(flags), -1,                                                \
                      !has_mode(flags) ? open_node(&node, flags) : next_##name()(at, path, flags), \
                      next_##name()(at, path, flags));                                             \
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
        return ANSWER(AT_FDCWD, path, true, NULL, open_stream(&node, mode),                        \
                      next_##name()(path, mode));                                                  \
    }

FOPEN(fopen)
FOPEN(fopen64)

/* -- access -------------------------------------------------------------------------------------*/

#define ACCESS(name)                                                                               \
    NEXT(name)                                                                                     \
    EXPORT int name(const char *path, int mode)                                                    \
    {                                                                                              \
        return ANSWER(AT_FDCWD, path, true, -1, virtual_access(&node, mode),                       \
                      next_##name()(path, mode));                                                  \
    }

ACCESS(access)
ACCESS(euidaccess)
ACCESS(eaccess)

NEXT(faccessat)
EXPORT int faccessat(int at, const char *path, int mode, int flags)
{
    return ANSWER(at, path, !(flags & AT_SYMLINK_NOFOLLOW), -1, virtual_access(&node, mode),
                  next_faccessat()(at, path, mode, flags));
}

/* -- Links --------------------------------------------------------------------------------------*/

NEXT(readlink)
EXPORT ssize_t readlink(const char *path, char *buffer, size_t bytes)
{
    return ANSWER(AT_FDCWD, path, false, -1, virtual_readlink(&node, buffer, bytes),
                  next_readlink()(path, buffer, bytes));
}

NEXT(readlinkat)
EXPORT ssize_t readlinkat(int at, const char *path, char *buffer, size_t bytes)
{
    return ANSWER(at, path, false, -1, virtual_readlink(&node, buffer, bytes),
                  next_readlinkat()(at, path, buffer, bytes));
}

EXPORT ssize_t __readlink_chk(const char *path, char *buffer, size_t bytes, size_t room);
EXPORT ssize_t __readlinkat_chk(int at, const char *path, char *buffer, size_t bytes, size_t room);
NEXT(__readlink_chk)
NEXT(__readlinkat_chk)

EXPORT ssize_t __readlink_chk(const char *path, char *buffer, size_t bytes, size_t room)
{
    return ANSWER(AT_FDCWD, path, false, -1,
                  bytes <= room ? virtual_readlink(&node, buffer, bytes)
                                : next___readlink_chk()(path, buffer, bytes, room),
                  next___readlink_chk()(path, buffer, bytes, room));
}

EXPORT ssize_t __readlinkat_chk(int at, const char *path, char *buffer, size_t bytes, size_t room)
{
    return ANSWER(at, path, false, -1,
                  bytes <= room ? virtual_readlink(&node, buffer, bytes)
                                : next___readlinkat_chk()(at, path, buffer, bytes, room),
                  next___readlinkat_chk()(at, path, buffer, bytes, room));
}

static char *resolved(const struct sysfs_node *node, char *buffer)
{
    if (node->kind == SYSFS_ABSENT) {
        errno = node->error;
        return NULL;
    }
    _Static_assert(SYSFS_PATH_BYTES <= PATH_MAX, "a program's buffer has room for a path of ours");
    CHECK(node->path[0] == '/');
    return buffer == NULL ? strdup(node->path) : strcpy(buffer, node->path);
}

NEXT(realpath)
EXPORT char *realpath(const char *path, char *buffer)
{
    return ANSWER(AT_FDCWD, path, true, NULL, resolved(&node, buffer),
                  next_realpath()(path, buffer));
}

EXPORT char *__realpath_chk(const char *path, char *buffer, size_t room);
NEXT(__realpath_chk)
EXPORT char *__realpath_chk(const char *path, char *buffer, size_t room)
{
    return ANSWER(AT_FDCWD, path, true, NULL,
                  room >= PATH_MAX ? resolved(&node, buffer)
                                   : next___realpath_chk()(path, buffer, room),
                  next___realpath_chk()(path, buffer, room));
}

NEXT(canonicalize_file_name)
EXPORT char *canonicalize_file_name(const char *path)
{
    return ANSWER(AT_FDCWD, path, true, NULL, resolved(&node, NULL),
                  next_canonicalize_file_name()(path));
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
        return ANSWER(AT_FDCWD, path, follow, -1, no_attributes(&node),                            \
                      next_##name()(path, attribute, value, bytes));                               \
    }

#define LISTXATTR(name, follow)                                                                    \
    NEXT(name)                                                                                     \
    EXPORT ssize_t name(const char *path, char *list, size_t bytes)                                \
    {                                                                                              \
        return ANSWER(AT_FDCWD, path, follow, -1, no_attributes(&node),                            \
                      next_##name()(path, list, bytes));                                           \
    }

GETXATTR(getxattr, true)
GETXATTR(lgetxattr, false)
LISTXATTR(listxattr, true)
LISTXATTR(llistxattr, false)
