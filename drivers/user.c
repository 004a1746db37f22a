/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/user.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/descriptor.h"
#include "drivers/system.h"

#define OVERFLOW_ID 65534      /* Unless an administrator has chosen another one. */
#define USERS       UINT32_MAX /* All numbers but USER_UNKNOWN. */
#define LINES_MAX   340        /* The kernel takes no more (user_namespaces(7)). */
#define LINE_BYTES  64

/* Whole; false: it cannot be read, or is longer. The caller's errno stays. */
static bool read_file(int at, const char *path, char *text, size_t text_bytes)
{
    const int reason = errno;
    const int cancellation = uncancelled_begin();
    const int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
    size_t count = 0;
    ssize_t more = fd < 0 ? -1 : 1;
    while (more > 0 && count < text_bytes - 1) {
        more = system_read(fd, text + count, text_bytes - 1 - count);
        count += more > 0 ? (size_t)more : 0;
    }
    if (fd >= 0) {
        system_close(fd);
    }
    text[count] = '\0';
    uncancelled_end(cancellation);
    errno = reason;
    return more == 0;
}

static uid_t overflow_id(void)
{
    char text[32];
    uid_t user = OVERFLOW_ID;
    if (read_file(AT_FDCWD, "/proc/sys/kernel/overflowuid", text, sizeof(text))) {
        (void)sscanf(text, "%u", &user);
    }
    return user;
}

/* Ranges of a map do not overlap, and a child's lie within its parent's. */
static uint64_t count_named(const char *map)
{
    uint64_t named = 0;
    for (const char *line = map; line != NULL && *line != '\0';) {
        uint32_t count;
        named += sscanf(line, "%*u %*u %" SCNu32, &count) == 1 ? count : 0;
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return named;
}

/* Not on the stack, which may be small. */
static bool all_are_named(void)
{
    const size_t bytes = LINES_MAX * LINE_BYTES;
    char *map = malloc(bytes);
    const bool all = map != NULL && read_file(AT_FDCWD, "/proc/self/uid_map", map, bytes) &&
                     count_named(map) == USERS;
    free(map);
    return all;
}

bool user_is_named(uid_t user)
{
    return user != USER_UNKNOWN && (user != overflow_id() || all_are_named());
}

/* The directory is the process's, and nobody else's who comes to its number. */
static uid_t user_in(int directory)
{
    char text[512]; /* A program's threads may have small stacks. */
    uid_t user;
    /* The file is longer; what is asked for stands near its beginning. */
    (void)read_file(directory, "status", text, sizeof(text));
    const char *line = strstr(text, "\nUid:");
    return line != NULL && sscanf(line, "\nUid: %*u %u", &user) == 1 && user_is_named(user)
               ? user
               : USER_UNKNOWN;
}

/* In its directory, which is the process's. The number is its own, too, if the process is there
 * behind the call. */
static struct user_process hold(int directory, pid_t process)
{
    if (directory < 0) {
        return (struct user_process){-1, -1};
    }
    return (struct user_process){
        .memory = descriptor_own(openat(directory, "mem", O_RDWR | O_CLOEXEC)),
        .end = descriptor_own((int)syscall(SYS_pidfd_open, process, 0)),
    };
}

bool user_process_is_there(const struct user_process *held)
{
    struct pollfd end = {.fd = held->end, .events = POLLIN};
    return held->end >= 0 && system_poll(&end, 1, 0) == 0;
}

void user_process_close(struct user_process *held)
{
    descriptor_close(held->memory);
    descriptor_close(held->end);
    held->memory = held->end = -1;
}

uid_t user_of_process(pid_t process, struct user_process *held)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d", process);
    const int cancellation = uncancelled_begin();
    const int directory = process > 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    uid_t user = USER_UNKNOWN;
    if (held != NULL) {
        *held = hold(directory, process);
    }
    if (directory >= 0) {
        /* Last: whosever memory that is, its process is there, and of this user, now. */
        user = user_in(directory);
        system_close(directory);
    }
    uncancelled_end(cancellation);
    return user;
}

bool user_may_trace_others(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    /* What is permitted may become effective at any time. */
    return syscall(SYS_capget, &header, data) != 0 ||
           (data[CAP_TO_INDEX(CAP_SYS_PTRACE)].permitted & CAP_TO_MASK(CAP_SYS_PTRACE)) != 0;
}
