/* SPDX-License-Identifier: BSD-2-Clause
 *
 * interpose_cwd - the working directory: going there, and asking for it.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/interpose.h"

NEXT(chdir)
EXPORT int chdir(const char *path)
{
    return ANSWER(AT_FDCWD, path, true, -1, virtual_enter(&node), next_chdir()(path));
}

NEXT(fchdir)
EXPORT int fchdir(int fd)
{
    char path[SYSFS_PATH_BYTES];
    struct sysfs_node node;
    int result;
    unchecked_begin();
    if (LIKELY(!virtual_descriptor_path(fd, path))) {
        result = next_fchdir()(fd);
    } else {
        sysfs_find(path, true, &node);
        result = virtual_enter(&node);
    }
    unchecked_end();
    return result;
}

/* The kernel has said that the working directory is not there. */
static char *answer(char *buffer, size_t bytes)
{
    char path[SYSFS_PATH_BYTES];
    if (errno != ENOENT || !virtual_cwd(path)) {
        return NULL;
    }
    const size_t needed = strlen(path) + 1;
    if (buffer != NULL || bytes != 0) {
        if (needed > bytes) {
            errno = ERANGE;
            return NULL;
        }
        buffer = buffer != NULL ? buffer : malloc(bytes);
        return buffer == NULL ? NULL : memcpy(buffer, path, needed);
    }
    return strdup(path);
}

NEXT(getcwd)
EXPORT char *getcwd(char *buffer, size_t bytes)
{
    char *path = next_getcwd()(buffer, bytes);
    return path != NULL ? path : answer(buffer, bytes);
}

EXPORT char *__getcwd_chk(char *buffer, size_t bytes, size_t room);
NEXT(__getcwd_chk)
EXPORT char *__getcwd_chk(char *buffer, size_t bytes, size_t room)
{
    char *path = next___getcwd_chk()(buffer, bytes, room);
    return path != NULL ? path : answer(buffer, bytes);
}

NEXT(get_current_dir_name)
EXPORT char *get_current_dir_name(void)
{
    char *path = next_get_current_dir_name()();
    return path != NULL ? path : answer(NULL, 0);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
NEXT(getwd)
EXPORT char *getwd(char *buffer)
{
    char *path = next_getwd()(buffer);
    return path != NULL ? path : answer(buffer, PATH_MAX);
}
#pragma GCC diagnostic pop
