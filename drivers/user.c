/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/user.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "drivers/uncancelled.h"

#define OVERFLOW_ID 65534      /* Unless an administrator has chosen another one. */
#define USERS       UINT32_MAX /* All numbers but USER_UNKNOWN. */
#define LINES_MAX   340        /* The kernel takes no more (user_namespaces(7)). */
#define LINE_BYTES  64

/* Whole; false: it cannot be read, or is longer. The caller's errno stays. */
static bool read_file(const char *path, char *text, size_t text_bytes)
{
    const int reason = errno;
    const int cancellation = uncancelled_begin();
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t count = 0;
    ssize_t more = fd < 0 ? -1 : 1;
    while (more > 0 && count < text_bytes - 1) {
        more = uncancelled_read(fd, text + count, text_bytes - 1 - count);
        count += more > 0 ? (size_t)more : 0;
    }
    if (fd >= 0) {
        uncancelled_close(fd);
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
    if (read_file("/proc/sys/kernel/overflowuid", text, sizeof(text))) {
        (void)sscanf(text, "%u", &user);
    }
    return user;
}

/* Ranges of a map do not overlap, and a child's lie within its parent's. */
static bool all_are_named(void)
{
    char text[LINES_MAX * LINE_BYTES];
    uint64_t named = 0;
    if (!read_file("/proc/self/uid_map", text, sizeof(text))) {
        return false;
    }
    for (const char *line = text; line != NULL && *line != '\0';) {
        uint32_t count;
        named += sscanf(line, "%*u %*u %" SCNu32, &count) == 1 ? count : 0;
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return named == USERS;
}

bool user_is_named(uid_t user)
{
    return user != USER_UNKNOWN && (user != overflow_id() || all_are_named());
}

uid_t user_of_process(pid_t process)
{
    char path[32], text[4096];
    uid_t user;
    snprintf(path, sizeof(path), "/proc/%d/status", process);
    if (process <= 0) {
        return USER_UNKNOWN;
    }
    /* The file may be longer; what is asked for stands near its beginning. */
    (void)read_file(path, text, sizeof(text));
    const char *line = strstr(text, "\nUid:");
    return line != NULL && sscanf(line, "\nUid: %*u %u", &user) == 1 && user_is_named(user)
               ? user
               : USER_UNKNOWN;
}
