/* SPDX-License-Identifier: BSD-2-Clause
 *
 * virtual_file - virtual files as descriptors and status.
 */
#include "kernel/virtual_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"

/* A descriptor's link in /proc is this and the path. */
#define NAME_PREFIX "nonic:"
#define LINK_PREFIX "/memfd:" NAME_PREFIX
#define LINK_SUFFIX " (deleted)"

static atomic_bool descriptors_made;

bool virtual_descriptors_made(void)
{
    return atomic_load_explicit(&descriptors_made, memory_order_relaxed);
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

/* -- Status -------------------------------------------------------------------------------------*/

static mode_t mode_of(enum sysfs_kind kind)
{
    switch (kind) {
    case SYSFS_DIRECTORY: return S_IFDIR | 0755;
    case SYSFS_LINK: return S_IFLNK | 0777;
    case SYSFS_DEVICE: return S_IFCHR | 0666;
    case SYSFS_FILE: return S_IFREG | 0444;
    case SYSFS_KERNEL:
    case SYSFS_ABSENT: break;
    }
    UNREACHABLE("the status of a node that is not there, or not ours");
}

static ino_t number_of(const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *path != '\0'; path++) {
        hash = (hash ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
    }
    return (ino_t)hash;
}

static dev_t device_number(const struct sysfs_node *node)
{
    char value[SYSFS_VALUE_BYTES];
    unsigned first = 0, second = 0;
    CHECK(sysfs_read(node, value) && sscanf(value, "%u:%u", &first, &second) == 2);
    return makedev(first, second);
}

int virtual_status(const struct sysfs_node *node, struct stat *status)
{
    if (node->kind == SYSFS_ABSENT) {
        return refuse(node->error);
    }
    struct stat above;
    const int before = errno;
    const char *const mounted = strncmp(node->path, "/dev", 4) == 0 ? "/dev" : "/sys";
    if (system_status_of(AT_FDCWD, mounted, &above) != 0) {
        memset(&above, 0, sizeof(above));
        errno = before;
    }
    *status = (struct stat){
        .st_dev = above.st_dev,
        .st_ino = number_of(node->path),
        .st_mode = mode_of(node->kind),
        .st_nlink = node->kind == SYSFS_DIRECTORY ? 2 : 1,
        .st_size = node->kind == SYSFS_FILE ? 4096 : 0,
        .st_blksize = 4096,
        .st_atim = above.st_ctim,
        .st_mtim = above.st_ctim,
        .st_ctim = above.st_ctim,
    };
    if (node->kind == SYSFS_DEVICE) {
        status->st_rdev = device_number(node);
    }
    return 0;
}

int virtual_access(const struct sysfs_node *node, int mode)
{
    if (node->kind == SYSFS_ABSENT) {
        return refuse(node->error);
    }
    CHECK(node->kind != SYSFS_KERNEL);
    const int refused = node->kind == SYSFS_DEVICE      ? X_OK
                        : node->kind == SYSFS_DIRECTORY ? W_OK
                                                        : W_OK | X_OK;
    return (mode & refused) != 0 ? refuse(EACCES) : 0;
}

ssize_t virtual_readlink(const struct sysfs_node *node, char *buffer, size_t bytes)
{
    char target[SYSFS_VALUE_BYTES];
    if (node->kind != SYSFS_LINK) {
        return refuse(node->kind == SYSFS_ABSENT ? node->error : EINVAL);
    }
    if (!sysfs_read(node, target)) {
        return -1;
    }
    const size_t length = strlen(target);
    CHECK(length > 0 && length < SYSFS_VALUE_BYTES);
    const size_t given = length < bytes ? length : bytes;
    memcpy(buffer, target, given);
    return (ssize_t)given;
}

/* -- Descriptors --------------------------------------------------------------------------------*/

/* The kernel's judgement of an open of a node that cannot be written. */
static int judge_open(const struct sysfs_node *node, int flags)
{
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    const bool creates = (flags & O_CREAT) != 0;
    if (node->kind == SYSFS_ABSENT) {
        return creates && node->error == ENOENT ? EACCES : node->error;
    }
    if (creates && (flags & O_EXCL)) {
        return EEXIST;
    }
    if (node->kind == SYSFS_LINK) {
        return ELOOP; /* Only O_NOFOLLOW ends there. */
    }
    if (node->kind == SYSFS_DIRECTORY) {
        return writes || creates ? EISDIR : 0;
    }
    if (flags & O_DIRECTORY) {
        return ENOTDIR;
    }
    CHECK(node->kind == SYSFS_FILE || node->kind == SYSFS_DEVICE);
    if (node->kind == SYSFS_DEVICE) {
        return ENODEV; /* There is no kernel driver to talk to. */
    }
    return writes || (flags & O_TRUNC) ? EACCES : 0;
}

/* A descriptor that can only read the same file; the writable one where /proc is not mounted. */
static int reopen(int fd, int flags)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const int kept = O_CLOEXEC | O_NONBLOCK;
    const int reader = system_open(AT_FDCWD, path, O_RDONLY | (flags & kept));
    if (reader < 0) {
        return fd;
    }
    descriptor_close(fd);
    return reader;
}

static int make_descriptor(const char *path, const char *content, int flags)
{
    char name[249 + 1];    /* The longest name of a memfd. */
    CHECK(path[0] == '/'); /* By which virtual_descriptor_path finds it again. */
    if ((size_t)snprintf(name, sizeof(name), NAME_PREFIX "%s", path) >= sizeof(name)) {
        return refuse(ENAMETOOLONG);
    }
    const size_t length = strlen(content);
    if (!descriptor_may_grow_to(length)) {
        return refuse(EFBIG); /* The write below would end the program (SIGXFSZ). */
    }
    atomic_store_explicit(&descriptors_made, true, memory_order_relaxed);
    const int fd = memfd_create(name, MFD_ALLOW_SEALING | (flags & O_CLOEXEC ? MFD_CLOEXEC : 0u));
    if (fd < 0) {
        return -1;
    }
    errno = EIO; /* The error of a write that is too short. */
    if (system_write(fd, content, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) != 0 ||
        fchmod(fd, 0444) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
        descriptor_close(fd);
        return -1;
    }
    return reopen(fd, flags);
}

int virtual_open(const struct sysfs_node *node, int flags)
{
    const int error = judge_open(node, flags);
    if (error != 0) {
        return refuse(error);
    }
    char value[SYSFS_VALUE_BYTES] = "";
    if (node->kind == SYSFS_FILE && !sysfs_read(node, value)) {
        /* The file exists and cannot be read: a read of an epoll descriptor fails with the same
         * errno. */
        return errno == EINVAL ? system_epoll_create(flags & O_CLOEXEC ? EPOLL_CLOEXEC : 0) : -1;
    }
    const int before = errno;
    const int fd = make_descriptor(node->path, value, flags);
    if (fd >= 0) {
        errno = before;
    }
    return fd;
}

/* The path of any virtual file that is open as `fd`. */
static bool descriptor_path(int fd, char path[SYSFS_PATH_BYTES])
{
    char link[64], target[SYSFS_PATH_BYTES];
    const int before = errno;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t length = system_read_link(AT_FDCWD, link, target, sizeof(target) - 1);
    errno = before;
    const size_t prefix = sizeof(LINK_PREFIX) - 1, suffix = sizeof(LINK_SUFFIX) - 1;
    if (length < (ssize_t)(prefix + suffix) || memcmp(target, LINK_PREFIX, prefix) != 0) {
        return false;
    }
    target[(size_t)length - suffix] = '\0';
    strcpy(path, target + prefix);
    return true;
}

void virtual_descriptor_status(int fd, struct stat *status)
{
    char path[SYSFS_PATH_BYTES];
    struct sysfs_node node;
    if (!virtual_descriptors_made() || status->st_nlink != 0 ||
        status->st_mode != (S_IFREG | 0444) || !descriptor_path(fd, path)) {
        return;
    }
    const off_t size = status->st_size;
    sysfs_find(path, false, &node);
    if (node.kind == SYSFS_FILE || node.kind == SYSFS_DIRECTORY) {
        virtual_status(&node, status);
        status->st_size = node.kind == SYSFS_FILE ? size : 0;
    }
}

bool virtual_descriptor_path(int fd, char path[SYSFS_PATH_BYTES])
{
    return fd >= 0 && virtual_descriptors_made() && descriptor_path(fd, path);
}
