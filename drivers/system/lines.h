/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lines - a text that the kernel writes (/proc), line by line.
 *
 * Purpose    The C library's streams allocate, end a cancelled thread, and have a descriptor that a
 *            program may close meanwhile (descriptor.h). And in our library fopen() is a function
 *            of kernel/ (system.h).
 * Inputs     lines_open, then lines_next until it is false, then lines_close, also if there was
 *            nothing to open.
 * Outputs    Each line with its end, '\n'. A line for which there is no room comes in parts.
 * Ownership  The reader, which is about a KiB, is the caller's.
 * Threads    Any. No cancellation point. errno stays.
 * Source     proc(5). The functions are compiled into their callers, so that the system calls of
 *            each caller can fail on their own (docs/fails.md).
 */
#ifndef DRIVERS_LINES_H
#define DRIVERS_LINES_H

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/check.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"

struct lines {
    int fd;
    int error; /* The errno by which the text could not be read, or not to its end; 0: none. */
    size_t from, to;
    char bytes[1000]; /* Read ahead, from `from` to `to`. */
};

/* `path` begins at the directory `at`, which may be AT_FDCWD. */
static inline void lines_open(struct lines *lines, int at, const char *path)
{
    const int reason = errno;
    lines->fd = descriptor_own(system_open(at, path, O_RDONLY | O_CLOEXEC));
    lines->error = lines->fd < 0 ? errno : 0;
    lines->from = lines->to = 0;
    errno = reason;
}

/* Bytes that were read ahead lie in the reader, and an open reader has no error but a read's. */
static inline void lines_check(const struct lines *lines)
{
    CHECK(lines->from <= lines->to && lines->to <= sizeof(lines->bytes));
    CHECK(lines->fd >= 0 || lines->error != 0);
}

/* Reads ahead. False: there is no more, or it cannot be read. */
static inline bool lines_fill(struct lines *lines)
{
    const int reason = errno;
    ssize_t count;
    if (lines->error != 0) {
        return false;
    }
    do {
        count = system_read(lines->fd, lines->bytes, sizeof(lines->bytes));
    } while (count < 0 && errno == EINTR);
    lines->error = count < 0 ? errno : 0;
    lines->from = 0;
    lines->to = count < 0 ? 0 : (size_t)count;
    errno = reason;
    return count > 0;
}

/* The next line, with a '\0' behind it; `bytes` is not 0. False: there is no more. */
static inline bool lines_next(struct lines *lines, char *line, size_t bytes)
{
    size_t count = 0;
    INVARIANTS(lines_check(lines));
    CHECK(bytes > 0);
    while (count + 1 < bytes && (count == 0 || line[count - 1] != '\n') &&
           (lines->from < lines->to || lines_fill(lines))) {
        line[count++] = lines->bytes[lines->from++];
    }
    line[count] = '\0';
    return count > 0;
}

/* 0, or the errno by which the text could not be read, or not to its end. */
static inline int lines_close(struct lines *lines)
{
    INVARIANTS(lines_check(lines));
    descriptor_close(lines->fd);
    return lines->error;
}

/* Reads all lines, as many bytes as there is room for; "" if the text cannot be read. Returns the
 * same as lines_close. */
static inline int lines_read(int at, const char *path, char *text, size_t bytes)
{
    struct lines lines;
    size_t count = 0;
    lines_open(&lines, at, path);
    while (lines_next(&lines, text + count, bytes - count)) {
        count += strlen(text + count);
    }
    return lines_close(&lines);
}

#endif
