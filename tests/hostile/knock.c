/* SPDX-License-Identifier: BSD-2-Clause
 *
 * knock - somebody at the listeners of all nonic programs of this network namespace.
 *
 *     knock take            says the hello of a ring, and a line for each listener: what it gave
 *     knock crowd SECONDS   connects to those of rings and hangs up, as fast as it can
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "drivers/shm/shm_layout.h"

#define LISTENERS_MAX 64
#define IN_A_ROW      2000 /* Calls at one listener, at most. */
#define LOOK_SECONDS  0.01
#define LISTENS       " 00010000 "

struct listener {
    struct sockaddr_un address;
    socklen_t bytes;
};

static uint32_t find_listeners(struct listener *found, const char *prefix)
{
    FILE *list = fopen("/proc/net/unix", "re");
    char line[512];
    uint32_t count = 0;
    while (list != NULL && count < LISTENERS_MAX && fgets(line, sizeof(line), list) != NULL) {
        const char *name = strstr(line, prefix);
        line[strcspn(line, "\n")] = '\0';
        if (name == NULL || strstr(line, LISTENS) == NULL) {
            continue;
        }
        const size_t bytes = strlen(name + 2);
        struct listener *one = &found[count++];
        *one = (struct listener){.address = {.sun_family = AF_UNIX}};
        memcpy(one->address.sun_path + 1, name + 2, bytes);
        one->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
    }
    if (list != NULL) {
        fclose(list);
    }
    return count;
}

static int call(const struct listener *listener)
{
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const void *)&listener->address, listener->bytes) == 0) {
        return fd;
    }
    const int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* -- Taking -------------------------------------------------------------------------------------*/

static struct shm_mark mark_of(size_t bytes)
{
    return (struct shm_mark){SHM_MAGIC, SHM_LAYOUT, (uint32_t)bytes};
}

static int make_ring(void)
{
    const int fd = memfd_create("knock", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const struct shm_mark mark = mark_of(sizeof(struct shm_ring));
    const bool good = fd >= 0 && ftruncate(fd, sizeof(struct shm_ring)) == 0 &&
                      pwrite(fd, &mark, sizeof(mark), 0) == (ssize_t)sizeof(mark) &&
                      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    return good ? fd : -1;
}

static bool say_hello(int fd, int ring)
{
    struct shm_hello hello = {.mark = mark_of(sizeof(hello)), .slot = -1};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec part = {&hello, sizeof(hello)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control)};
    control.align = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.align), &ring, sizeof(ring));
    return sendmsg(fd, &message, MSG_NOSIGNAL) > 0;
}

/* How many descriptors came with the next message; *bytes is its size, or what recv says. */
static uint32_t receive(int fd, char *text, ssize_t *bytes)
{
    union {
        char bytes[CMSG_SPACE(128 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {text, 4096};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control)};
    const struct timeval patience = {.tv_sec = 2};
    fcntl(fd, F_SETFL, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    *bytes = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = *bytes < 0 ? NULL : CMSG_FIRSTHDR(&message);
    return header == NULL ? 0 : (uint32_t)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
}

static int take(const struct listener *listeners, uint32_t count)
{
    const int ring = make_ring();
    for (uint32_t i = 0; i < count; i++) {
        char text[4096];
        ssize_t bytes = -1;
        const int fd = call(&listeners[i]);
        const bool is_ring = strncmp(listeners[i].address.sun_path + 1, "nonic/layout-", 13) == 0;
        const bool said = fd >= 0 && (!is_ring || say_hello(fd, ring));
        const uint32_t given = said ? receive(fd, text, &bytes) : 0;
        printf("%s: %u descriptors, %s\n", listeners[i].address.sun_path + 1, given,
               bytes > 0 ? "words" : "nothing");
        close(fd);
    }
    return count == 0;
}

/* -- Crowding -----------------------------------------------------------------------------------*/

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* At each listener in turn, until its queue is full. */
static int crowd(double seconds)
{
    static struct listener listeners[LISTENERS_MAX];
    const double end = seconds_now() + seconds;
    double looked_at = 0;
    unsigned long full = 0;
    uint32_t count = 0;
    while (seconds_now() < end) {
        if (seconds_now() > looked_at + LOOK_SECONDS) {
            looked_at = seconds_now();
            count = find_listeners(listeners, " @nonic/layout-");
        }
        for (uint32_t i = 0; i < count; i++) {
            int fd = 0;
            for (int calls = 0; calls < IN_A_ROW && fd >= 0; calls++) {
                fd = call(&listeners[i]);
                full += fd < 0 && errno == EAGAIN;
                close(fd);
            }
        }
    }
    printf("%lu times full\n", full);
    return 0;
}

int main(int count, char **words)
{
    static struct listener listeners[LISTENERS_MAX];
    if (count == 2 && strcmp(words[1], "take") == 0) {
        return take(listeners, find_listeners(listeners, " @nonic"));
    }
    if (count == 3 && strcmp(words[1], "crowd") == 0) {
        return crowd(atof(words[2]));
    }
    fprintf(stderr, "knock take | knock crowd SECONDS\n");
    return 2;
}
