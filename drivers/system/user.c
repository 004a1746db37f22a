/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/user.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/lines.h"
#include "drivers/system/system.h"

#define OVERFLOW_ID 65534      /* The administrator may have chosen another one. */
#define USERS       UINT32_MAX /* All user numbers but USER_UNKNOWN. */
#define LINE_BYTES  64

static uid_t overflow_id(void)
{
    char text[32];
    uid_t user = OVERFLOW_ID;
    (void)lines_read(AT_FDCWD, "/proc/sys/kernel/overflowuid", text, sizeof(text));
    (void)sscanf(text, "%u", &user);
    return user;
}

/* Ranges of a map do not overlap, and a child's lie within its parent's. */
static bool all_are_named(void)
{
    struct lines map;
    char line[LINE_BYTES];
    uint64_t named = 0;
    lines_open(&map, AT_FDCWD, "/proc/self/uid_map");
    while (lines_next(&map, line, sizeof(line))) {
        uint32_t count;
        named += sscanf(line, "%*u %*u %" SCNu32, &count) == 1 ? count : 0;
    }
    return lines_close(&map) == 0 && named == USERS;
}

bool user_is_named(uid_t user)
{
    return user != USER_UNKNOWN && (user != overflow_id() || all_are_named());
}

/* The directory belongs to the process, and not to another one that gets its number later. */
static uid_t user_in(int directory)
{
    char text[512]; /* A program's threads may have small stacks. */
    uid_t user;
    /* The file is longer, but the line that we need stands near its beginning. */
    const int reason = lines_read(directory, "status", text, sizeof(text));
    errno = reason != 0 ? reason : errno;
    const char *line = strstr(text, "\nUid:");
    return line != NULL && sscanf(line, "\nUid: %*u %u", &user) == 1 && user_is_named(user)
               ? user
               : USER_UNKNOWN;
}

/* Opens the process's memory in its directory, and a pidfd by its number. The number is still its
 * own if the process is there after the call. */
static struct user_process hold(int directory, pid_t process)
{
    if (directory < 0) {
        return (struct user_process){-1, -1};
    }
    return (struct user_process){
        .memory = descriptor_own(system_open(directory, "mem", O_RDWR | O_CLOEXEC)),
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
    const int directory =
        process > 0 ? descriptor_own(system_open(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC))
                    : -1;
    uid_t user = USER_UNKNOWN;
    if (held != NULL) {
        *held = hold(directory, process);
    }
    if (directory >= 0) {
        /* This comes last: the process of that memory is there, and of this user, now. */
        user = user_in(directory);
        descriptor_close(directory);
    }
    return user;
}

bool user_may_trace_others(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    /* A permitted capability may become effective at any time. */
    return syscall(SYS_capget, &header, data) != 0 ||
           (data[CAP_TO_INDEX(CAP_SYS_PTRACE)].permitted & CAP_TO_MASK(CAP_SYS_PTRACE)) != 0;
}
