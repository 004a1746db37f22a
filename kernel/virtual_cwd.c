/* SPDX-License-Identifier: BSD-2-Clause
 *
 * virtual_cwd - a virtual directory as the working directory.
 *
 * As a descriptor of a virtual file is a memfd that is named after it, the working directory is one
 * that is named after it, and that nobody else can find: "/dev/shm/nonic:71.3:!sys!class (deleted)"
 * is what the kernel says of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "drivers/system/system.h"
#include "kernel/virtual_file.h"

#define NAME_PREFIX "nonic:"
#define NAME_SUFFIX " (deleted)"
#define SLASH       '!' /* As the kernel writes it into names of sysfs. */

enum {
    UNKNOWN,
    NEVER,
    POSSIBLE
};
static atomic_int possible;

/* None of libc's, which are our own and come here. */
static bool read_cwd(char path[SYSFS_PATH_BYTES])
{
    /* It is no longer there: that is rare, and quickly known. */
    if (syscall(SYS_getcwd, path, SYSFS_PATH_BYTES) >= 0 || errno != ENOENT) {
        return false;
    }
    const ssize_t bytes = system_read_link(AT_FDCWD, "/proc/self/cwd", path, SYSFS_PATH_BYTES - 1);
    const ssize_t suffix = sizeof(NAME_SUFFIX) - 1;
    if (bytes <= suffix || memcmp(path + bytes - suffix, NAME_SUFFIX, (size_t)suffix) != 0) {
        return false;
    }
    path[bytes - suffix] = '\0';
    const char *name = strrchr(path, '/');
    char *at = name == NULL ? NULL : strchr(name, SLASH);
    if (at == NULL || strncmp(name + 1, NAME_PREFIX, sizeof(NAME_PREFIX) - 1) != 0) {
        return false;
    }
    memmove(path, at, strlen(at) + 1);
    for (; *path != '\0'; path++) {
        *path = *path == SLASH ? '/' : *path;
    }
    return true;
}

bool virtual_cwd(char path[SYSFS_PATH_BYTES])
{
    const int before = errno;
    const bool is_virtual = read_cwd(path);
    errno = before;
    return is_virtual;
}

bool virtual_cwd_possible(void)
{
    int known = atomic_load_explicit(&possible, memory_order_relaxed);
    if (UNLIKELY(known == UNKNOWN)) {
        char path[SYSFS_PATH_BYTES];
        known = virtual_cwd(path) ? POSSIBLE : NEVER;
        CHECK(known == NEVER || path[0] == '/');
        atomic_compare_exchange_strong(&possible, &(int){UNKNOWN}, known);
    }
    return known == POSSIBLE;
}

/* A new directory, which has no name any more when this returns. -1 with errno. */
static int make_nameless(const char *parent, const char *name)
{
    char path[SYSFS_PATH_BYTES + 64];
    CHECK(snprintf(path, sizeof(path), "%s/%s", parent, name) < (int)sizeof(path));
    if (syscall(SYS_mkdirat, AT_FDCWD, path, 0700) != 0) {
        return -1;
    }
    const int fd = system_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int reason = errno;
    syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
    errno = reason;
    return fd;
}

static int enter(const char *name)
{
    static const char *const parents[] = {"/dev/shm", "/tmp", "/var/tmp"};
    int fd = -1;
    for (size_t i = 0; i < COUNT_OF(parents) && fd < 0; i++) {
        fd = make_nameless(parents[i], name);
    }
    if (fd < 0) {
        return -1;
    }
    /* From now on, and before anybody asks. A child of vfork sets it for its parent, which then
     * looks where it need not. */
    atomic_store(&possible, POSSIBLE);
    const int result = (int)syscall(SYS_fchdir, fd);
    const int reason = errno;
    syscall(SYS_close, fd);
    errno = reason;
    return result;
}

int virtual_enter(const struct sysfs_node *node)
{
    static atomic_uint entered;
    char name[SYSFS_PATH_BYTES + 32];
    if (node->kind != SYSFS_DIRECTORY) {
        errno = node->kind == SYSFS_ABSENT ? node->error : ENOTDIR;
        return -1;
    }
    const int bytes = snprintf(name, sizeof(name), NAME_PREFIX "%d.%u:%s", (int)getpid(),
                               atomic_fetch_add(&entered, 1), node->path);
    CHECK(node->path[0] == '/' && bytes < (int)sizeof(name));
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '/' ? SLASH : *at;
    }
    return enter(name);
}
