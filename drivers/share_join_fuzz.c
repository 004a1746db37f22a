/* SPDX-License-Identifier: BSD-2-Clause
 *
 * share_join_fuzz - a process that joins those that share an address, whatever they and the kernel
 * answer.
 *
 * Goal    It has all descriptors and a slot, or none of them and a reason, in time; newcomers are
 *         given its descriptors; each descriptor is closed once.
 * Method  Sockets, the clock and the kernel's list of them are fakes that answer from the input.
 *         The list has each of our sockets, or misses some, or has another program's too.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "drivers/share.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/taken.h"
#include "tests/fuzz/fake_sockets.h"
#include "tests/fuzz/input.h"

#define MS            UINT64_C(1000000)
#define MAGIC         0x32455241485343u /* As in share.c. */
#define DESCRIPTORS   (SHARE_SOCKETS + 2)
#define SECONDS_MAX   6 /* JOIN_MS, and the time of one round. */
#define NEWCOMERS_MAX 40

static struct {
    struct input *input;
    struct share share;
    uint64_t began_ns, now_ns;
    uint32_t callers; /* Callers that wait to be accepted. */
    char list[8192];
    size_t list_read;
    bool running; /* False: the clock and the calls are the fuzzer's own. */
} world;

/* -- The kernel ---------------------------------------------------------------------------------*/

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __wrap_system_bind(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);
int __wrap_ioctl(int fd, unsigned long what, ...);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __real_usleep(useconds_t us);
int __wrap_usleep(useconds_t us);
int __wrap_system_epoll_create(int flags);
int __wrap_system_epoll_change(int epoll, int what, int fd, struct epoll_event *event);
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_descriptor_own(int fd);
int __wrap_local_listen(const struct local_name *name, int backlog);
int __wrap_local_dial(const struct local_name *name, pid_t *pid);
int __wrap_local_accept(int listener);
bool __wrap_local_send(int socket, const void *bytes, size_t count, const int *fds,
                       uint32_t fd_count);
ssize_t __wrap_local_receive(int socket, void *bytes, size_t count, int *fds, uint32_t *fd_count);
void __wrap_descriptor_close(int fd);
bool __wrap_taken_everywhere(char *text, size_t text_bytes);

static struct fake_socket *ours(int fd)
{
    struct fake_socket *socket = fake_socket_of(fd);
    CHECK(socket != NULL && socket->open);
    return socket;
}

/* The kernel refuses rarely, so that most inputs come far. */
static bool refuses(int first)
{
    static const int errors[] = {EADDRINUSE, EMFILE, ENOBUFS, ENOMEM, EACCES, EPERM, EAGAIN};
    const uint8_t choice = take(world.input);
    errno = choice % 2 == 0 ? first : errors[choice / 2 % COUNT_OF(errors)];
    return choice >= 0xe0;
}

int __wrap_system_bind(int fd, const struct sockaddr *address, socklen_t bytes)
{
    (void)address;
    (void)bytes;
    ours(fd);
    return refuses(EADDRINUSE) ? -1 : 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
    (void)level;
    (void)value;
    (void)bytes;
    ours(fd);
    return name == SO_ATTACH_REUSEPORT_CBPF && refuses(ENOMEM) ? -1 : 0;
}

int __wrap_ioctl(int fd, unsigned long what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    int *bytes = va_arg(arguments, int *);
    va_end(arguments);
    ours(fd);
    CHECK(what == FIONREAD);
    *bytes = take(world.input);
    return 0;
}

static void list_one(FILE *list, int inode, const char *rest)
{
    fprintf(list, " 1: 0100007F:12B7 00000000:0000 07 0:0 00:0 0 1000 0 %d%s\n", inode, rest);
}

/* The list mostly has each socket of ours; the choice names the error in it. */
static long open_list(void)
{
    const uint8_t choice = take(world.input);
    FILE *list = fmemopen(world.list, sizeof(world.list), "w");
    CHECK(list != NULL);
    for (uint32_t i = 0; i <= SHARE_SOCKETS; i++) {
        if (choice % 8 != 1 || i != choice >> 3) {
            list_one(list, world.share.sockets[i], "");
        }
    }
    if (choice % 8 == 2) {
        list_one(list, 7, "");
    } else if (choice % 8 == 3) {
        char raw[64] = "";
        take_bytes(world.input, (uint8_t *)raw, sizeof(raw) - 1);
        list_one(list, 7, raw);
    }
    fclose(list);
    world.list_read = 0;
    errno = ENOENT;
    return choice == 0xff ? -1 : fake_open();
}

static long read_list(int fd, void *bytes, size_t count)
{
    const size_t left = strlen(world.list) - world.list_read;
    const size_t read = count < left ? count : left;
    ours(fd);
    memcpy(bytes, world.list + world.list_read, read);
    world.list_read += read;
    return (long)read;
}

static long tell_status(int fd, struct stat *status)
{
    ours(fd);
    memset(status, 0, sizeof(*status));
    status->st_ino = (ino_t)fd;
    return 0;
}

long __wrap_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    const long a = va_arg(arguments, long), b = va_arg(arguments, long),
               c = va_arg(arguments, long), d = va_arg(arguments, long);
    va_end(arguments);
    if (!world.running) {
        return __real_syscall(number, a, b, c, d);
    }
    switch (number) {
    case SYS_socket: return refuses(EMFILE) ? -1 : fake_open();
    case SYS_openat: return open_list();
    case SYS_read: return read_list((int)a, (void *)b, (size_t)c);
    case SYS_newfstatat: return tell_status((int)a, (struct stat *)c);
    default: break;
    }
    UNREACHABLE("a system call without a fake");
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    CHECK(count == 1 && timeout > 0);
    ours(fds->fd);
    if (refuses(EINTR)) {
        world.now_ns += (uint64_t)timeout * MS;
        return take(world.input) % 2 == 0 ? 0 : -1;
    }
    return 1;
}

int __wrap_usleep(useconds_t us)
{
    if (!world.running) {
        return __real_usleep(us);
    }
    world.now_ns += us * (MS / 1000) * (1 + take(world.input));
    return 0;
}

int __wrap_system_epoll_create(int flags)
{
    (void)flags;
    return refuses(EMFILE) ? -1 : fake_open();
}

int __wrap_system_epoll_change(int epoll, int what, int fd, struct epoll_event *event)
{
    (void)what;
    (void)event;
    ours(epoll);
    ours(fd);
    return refuses(ENOMEM) ? -1 : 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags)
{
    (void)flags;
    take_bytes(world.input, bytes, count);
    return (ssize_t)count;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!world.running) {
        return __real_clock_gettime(clock, time);
    }
    *time = (struct timespec){.tv_sec = (time_t)(world.now_ns / (1000 * MS)),
                              .tv_nsec = (long)(world.now_ns % (1000 * MS))};
    return 0;
}

int __wrap_descriptor_own(int fd)
{
    return fd;
}

bool __wrap_taken_everywhere(char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "taken");
    return take(world.input) % 2 == 0;
}

/* -- The members --------------------------------------------------------------------------------*/

int __wrap_local_listen(const struct local_name *name, int backlog)
{
    (void)name;
    (void)backlog;
    return refuses(EADDRINUSE) ? -1 : fake_open();
}

int __wrap_local_dial(const struct local_name *name, pid_t *pid)
{
    static const int errors[] = {ECONNREFUSED, ECONNREFUSED, EPERM, EAGAIN, EMFILE, EACCES};
    const uint8_t choice = take(world.input);
    (void)name;
    *pid = 77;
    if (choice % 2 == 0) {
        errno = errors[choice / 2 % COUNT_OF(errors)];
        return -1;
    }
    return fake_open();
}

int __wrap_local_accept(int listener)
{
    ours(listener);
    errno = EAGAIN;
    if (world.callers == 0) {
        return -1;
    }
    world.callers--;
    return fake_open();
}

/* A newcomer gets all descriptors. */
bool __wrap_local_send(int socket, const void *bytes, size_t count, const int *fds,
                       uint32_t fd_count)
{
    uint64_t magic;
    ours(socket);
    CHECK(count == sizeof(magic) && fd_count == DESCRIPTORS);
    memcpy(&magic, bytes, sizeof(magic));
    CHECK(magic == MAGIC);
    for (uint32_t i = 0; i < fd_count; i++) {
        ours(fds[i]);
    }
    return !refuses(EAGAIN);
}

/* Mostly all descriptors that a member gives; or fewer, or another version's number, or the end. */
ssize_t __wrap_local_receive(int socket, void *bytes, size_t count, int *fds, uint32_t *fd_count)
{
    const uint8_t choice = take(world.input);
    const uint64_t magic = MAGIC - (choice % 8 == 1);
    const uint32_t given = choice % 8 == 2 ? choice >> 3 : *fd_count;
    ours(socket);
    CHECK(count == sizeof(magic) && *fd_count == DESCRIPTORS);
    *fd_count = 0;
    if (choice % 8 == 3) {
        errno = ECONNRESET;
        return choice & 8 ? 0 : -1;
    }
    for (uint32_t i = 0; i < given; i++) {
        fds[i] = fake_open();
        *fd_count += fds[i] >= 0;
    }
    memcpy(bytes, &magic, sizeof(magic));
    return choice % 8 == 4 ? choice >> 5 : (ssize_t)sizeof(magic);
}

void __wrap_descriptor_close(int fd)
{
    fake_close(fd);
}

/* -- The one that joins -------------------------------------------------------------------------*/

static void check_descriptors(const struct share *share)
{
    ours(share->listener);
    for (uint32_t i = 0; i <= SHARE_SOCKETS; i++) {
        ours(share->sockets[i]);
        CHECK(share->sockets[i] != share->listener);
        CHECK(i == 0 || share->sockets[i] != share->sockets[i - 1]);
    }
    CHECK(fake_open_count() == DESCRIPTORS);
}

static void use(struct share *share)
{
    struct share *const shares[] = {share};
    char error[256] = "";
    world.callers = take(world.input) % NEWCOMERS_MAX;
    share_admit(share);
    check_descriptors(share);
    if (share_claim_slot(shares, 1, error, sizeof(error))) {
        CHECK(share->slot < SHARE_SLOTS);
        ours(share->slot_listener);
        ours(share->mail);
        (void)share_has_unread(share, share->slot);
        (void)share_has_slot(&share->gid, take(world.input));
    } else {
        CHECK(error[0] != '\0');
    }
}

static void join(struct share *share)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(4791), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct gid gid = {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    char error[256] = "";
    const bool joined = share_join(share, (const struct sockaddr *)(const void *)&address,
                                   sizeof(address), &gid, "127.0.0.1", error, sizeof(error));
    CHECK(world.now_ns - world.began_ns <= SECONDS_MAX * 1000 * MS);
    if (joined) {
        check_descriptors(share);
        use(share);
        share_leave(share);
    } else {
        CHECK(error[0] != '\0' && errno != 0);
    }
    CHECK(fake_open_count() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    memset(&world, 0, sizeof(world));
    world.input = &input;
    world.began_ns = world.now_ns = 1000 * MS;
    world.running = true;
    fake_begin();
    join(&world.share);
    world.running = false;
    return 0;
}
