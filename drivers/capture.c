/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/capture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/system/clock.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"
#include "wire/pcapng.h"
#include "wire/roce_frame.h"

#define CAPTURE_BUFFER_BYTES (1 << 20)

struct capture {
    int fd;
    bool ended;   /* A write has failed, and nothing more is written. */
    bool is_file; /* It is no pipe and no device. */
    size_t used;
    uint64_t written;
    uint64_t flushed_ns;
    uint8_t buffer[CAPTURE_BUFFER_BYTES];
};

/* A capture that was forgotten (capture_forget) is only closed. */
static void capture_check(const struct capture *capture)
{
    CHECK(capture->used <= sizeof(capture->buffer));
    CHECK(capture->fd >= 0 || capture->used == 0);
}

/* -- The file -----------------------------------------------------------------------------------*/

static void expand(const char *path, char *name, size_t bytes)
{
    const char *mark = strstr(path, "%p");
    if (mark == NULL) {
        snprintf(name, bytes, "%s", path);
    } else {
        snprintf(name, bytes, "%.*s%d%s", (int)(mark - path), path, getpid(), mark + 2);
    }
}

/* "a/b.pcapng" becomes "a/b.PID.pcapng". */
static void insert_pid(char *name, size_t bytes)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof(copy), "%s", name);
    const char *slash = strrchr(copy, '/');
    char *dot = strrchr(copy, '.');
    if (dot == NULL || (slash != NULL && dot < slash)) {
        snprintf(name, bytes, "%.*s.%d", PATH_MAX - 32, copy, getpid());
        return;
    }
    *dot = '\0';
    snprintf(name, bytes, "%.*s.%d.%.*s", PATH_MAX - 64, copy, getpid(), 32, dot + 1);
}

/* The lock ends with the process, so a file that no process writes any more may be replaced. */
static int open_alone(const char *name)
{
    const int fd = descriptor_own(system_create(name, 0, 0644));
    if (fd < 0) {
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || ftruncate(fd, 0) != 0) {
        descriptor_close(fd);
        return -1;
    }
    return fd;
}

struct capture *capture_open(const char *path, char *error, size_t error_bytes)
{
    char name[PATH_MAX];
    expand(path, name, sizeof(name));
    int fd = open_alone(name);
    if (fd < 0 && errno == EWOULDBLOCK) {
        insert_pid(name, sizeof(name));
        fprintf(stderr, "nonic: another program captures into %s; this one writes %s\n", path,
                name);
        fd = open_alone(name);
    }
    struct capture *capture = fd < 0 ? NULL : malloc(sizeof(*capture));
    if (capture == NULL) {
        const int reason = errno;
        descriptor_close(fd);
        snprintf(error, error_bytes, "capture file %s: %s", name, strerror(reason));
        errno = reason;
        return NULL;
    }
    struct stat status;
    capture->fd = fd;
    capture->ended = false;
    capture->is_file = system_status(fd, &status) == 0 && S_ISREG(status.st_mode);
    capture->written = 0;
    capture->flushed_ns = clock_unix_ns();
    static const struct pcapng_interface interface = {"nonic0", PCAPNG_LINK_IP, 9, NULL};
    capture->used = pcapng_encode_header(capture->buffer, "nonic", &interface);
    capture_flush(capture);
    return capture;
}

/* A full disk ends the capture, not the program. A reader finds nothing behind half of a packet, so
 * nothing more is written when there is room again. */
static void end(struct capture *capture, int reason)
{
    char text[128];
    capture->ended = true;
    const int bytes =
        snprintf(text, sizeof(text), "nonic: the capture ends here: %s\n", strerror(reason));
    (void)!system_write(STDERR_FILENO, text, (size_t)bytes);
}

void capture_flush(struct capture *capture)
{
    if (capture == NULL) {
        return;
    }
    INVARIANTS(capture_check(capture));
    size_t written = 0;
    if (capture->is_file && !capture->ended &&
        !descriptor_may_grow_to(capture->written + capture->used)) {
        end(capture, errno);
    }
    while (written < capture->used && !capture->ended) {
        const ssize_t count =
            system_write(capture->fd, capture->buffer + written, capture->used - written);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            end(capture, count == 0 ? ENOSPC : errno);
        }
        written += count > 0 ? (size_t)count : 0;
    }
    CHECK(written <= capture->used);
    capture->written += written;
    capture->used = 0;
}

void capture_forget(struct capture *capture)
{
    if (capture != NULL) {
        capture->fd = -1;
        capture->used = 0;
    }
}

void capture_close(struct capture *capture)
{
    if (capture == NULL) {
        return;
    }
    capture_flush(capture);
    descriptor_close(capture->fd);
    free(capture);
}

/* -- Packets ------------------------------------------------------------------------------------*/

void capture_bytes(struct capture *capture, const struct inet_flow *flow,
                   struct inet_variant variant, const uint8_t *bytes, size_t count)
{
    INVARIANTS(capture_check(capture));
    CHECK(capture->fd >= 0);
    if (capture->used + PCAPNG_PACKET_BYTES_MAX > sizeof(capture->buffer)) {
        capture_flush(capture);
    }
    const uint64_t now_ns = clock_unix_ns();
    capture->used += pcapng_encode_packet(capture->buffer + capture->used, now_ns, flow, variant, 0,
                                          bytes, count);
    INVARIANTS(capture_check(capture));
    if (now_ns - capture->flushed_ns > 1000000000u) {
        capture->flushed_ns = now_ns;
        capture_flush(capture);
    }
}

void capture_pieces(struct capture *capture, const struct inet_flow *flow,
                    struct inet_variant variant, const uint8_t *headers, size_t headers_bytes,
                    const uint8_t *payload, size_t payload_bytes)
{
    uint8_t bytes[BLOCK_PACKET_BYTES_MAX];
    const size_t count =
        roce_frame_join(flow, headers, headers_bytes, payload, payload_bytes, bytes);
    if (count != 0) { /* 0: it is no packet, and the decoder counts it. */
        capture_bytes(capture, flow, variant, bytes, count);
    }
}
