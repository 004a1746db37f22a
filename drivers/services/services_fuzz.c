/* SPDX-License-Identifier: BSD-2-Clause
 *
 * services_fuzz - questions for the owner of a port, to processes that answer anything, with a
 * kernel that refuses anything.
 *
 * Goal    Whatever processes answer, and whenever, each question is settled once and in time, an
 *         owner is an address of this machine and a slot in range, no assertion fails, and each
 *         descriptor is closed once.
 * Method  Sockets, the clock and the random numbers are fakes (tests/fuzz/fake_sockets.h) that
 *         answer from the input, which is a sequence of steps: questions and claims of ours,
 *         answers to those that wait, askers at our ports, time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "drivers/services/services_internal.h"
#include "drivers/share.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/system.h"
#include "drivers/system/user.h"
#include "tests/fuzz/fake_sockets.h"
#include "tests/fuzz/input.h"

#define CONTEXTS 8
#define CLAIMS   6
#define MS       UINT64_C(1000000)

static struct {
    struct input *input;
    struct services services;
    struct service *claims[CLAIMS];
    bool asked[CONTEXTS];
    char contexts[CONTEXTS];
    struct instant now;
    uid_t users[FAKE_COUNT];
    uint32_t callers;
    bool running; /* False: the clock and descriptors are the fuzzer's own. */
} world;

/* -- The kernel ---------------------------------------------------------------------------------*/

long __wrap_syscall(long number, ...);
int __wrap_system_connect(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_system_bind(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_system_listen(int fd, int backlog);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *bytes);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes);
int __wrap_shutdown(int fd, int how);
int __wrap_fcntl64(int fd, int what, ...);
int __wrap_system_epoll_create(int flags);
int __wrap_system_epoll_change(int epoll, int what, int fd, struct epoll_event *event);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
void __wrap_descriptor_close(int fd);
int __wrap_local_accept_anybody(int listener);
uid_t __wrap_local_user(int socket);
pid_t __wrap_local_peer(int socket);
bool __wrap_local_send(int socket, const void *bytes, size_t count, const int *fds,
                       uint32_t fd_count);
ssize_t __wrap_local_receive(int socket, void *bytes, size_t count, int *fds, uint32_t *fd_count);
bool __wrap_address_is_local(const uint8_t ip[16]);

static bool refuses(int first)
{
    static const int errors[] = {ECONNREFUSED, EAGAIN, EADDRINUSE, EMFILE, ENOMEM};
    const uint8_t choice = take(world.input);
    errno = choice % 8 == 1 ? errors[choice / 8 % COUNT_OF(errors)] : first;
    return choice % 8 < 3 && choice % 8 != 0;
}

static struct fake_socket *ours(int fd)
{
    struct fake_socket *socket = fake_socket_of(fd);
    CHECK(socket != NULL && socket->open);
    return socket;
}

static ssize_t receive(int fd, void *bytes, size_t count, int flags)
{
    struct fake_socket *from = ours(fd);
    if (!from->readable) {
        errno = flags & MSG_DONTWAIT ? EAGAIN : ECONNRESET;
        return from->hung_up ? 0 : -1;
    }
    from->readable = false;
    memcpy(bytes, from->message, from->bytes < count ? from->bytes : count);
    return (ssize_t)from->bytes;
}

static int events_of(struct epoll_event *events, int room)
{
    int count = 0;
    for (int i = 0; i < FAKE_COUNT && count < room; i++) {
        const struct fake_socket *socket = fake_socket_of(FAKE_FIRST + i);
        if (socket->open && socket->watched && (socket->readable || socket->hung_up)) {
            events[count++] = (struct epoll_event){.events = EPOLLIN, .data.ptr = socket->about};
        }
    }
    return count;
}

long __wrap_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    const long a = va_arg(arguments, long), b = va_arg(arguments, long),
               c = va_arg(arguments, long), d = va_arg(arguments, long);
    va_end(arguments);
    switch (number) {
    case SYS_socket: return fake_open();
    case SYS_recvfrom: return receive((int)a, (void *)b, (size_t)c, (int)d);
    case SYSTEM_EPOLL_WAIT: return events_of((struct epoll_event *)b, (int)c);
    default: break;
    }
    UNREACHABLE("a system call without a fake");
}

int __wrap_system_connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    (void)address;
    (void)bytes;
    ours(fd);
    world.users[fd - FAKE_FIRST] = geteuid() + take(world.input) % 2u;
    return refuses(ECONNREFUSED) ? -1 : 0;
}

int __wrap_system_bind(int fd, const struct sockaddr *address, socklen_t bytes)
{
    (void)address;
    (void)bytes;
    ours(fd);
    return refuses(EADDRINUSE) ? -1 : 0;
}

int __wrap_system_listen(int fd, int backlog)
{
    (void)backlog;
    ours(fd);
    return refuses(ENOMEM) ? -1 : 0;
}

/* A door that was handed over has the name that we asked for, or another one. */
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *bytes)
{
    static const uint8_t any[16];
    const struct service_name name = services_name(SCOPE_ANY_IPV4, 0x106, any, 7);
    ours(fd);
    const uint8_t choice = take(world.input);
    memcpy(address, &name.address, *bytes < sizeof(name.address) ? *bytes : sizeof(name.address));
    *bytes = choice % 4 == 3 ? 200 : choice % 4 == 2 ? 2 : name.bytes;
    return choice % 4 == 1 ? -1 : 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
    (void)level;
    (void)name;
    (void)value;
    (void)bytes;
    ours(fd);
    return refuses(ENOMEM) ? -1 : 0;
}

/* Reads the message that waits; its length may exceed the room for it (MSG_TRUNC). */
int __wrap_shutdown(int fd, int how)
{
    (void)how;
    ours(fd);
    return 0;
}

void __wrap_descriptor_close(int fd)
{
    fake_close(fd);
}

/* F_DUPFD_CLOEXEC. */
int __wrap_fcntl64(int fd, int what, ...)
{
    CHECK(what == F_DUPFD_CLOEXEC);
    ours(fd);
    return refuses(EMFILE) ? -1 : fake_open();
}

int __wrap_system_epoll_create(int flags)
{
    (void)flags;
    return fake_open();
}

int __wrap_system_epoll_change(int epoll, int what, int fd, struct epoll_event *event)
{
    struct fake_socket *socket = fake_socket_of(fd);
    (void)epoll;
    CHECK(what == EPOLL_CTL_DEL || (socket != NULL && socket->open));
    if (socket == NULL || (what == EPOLL_CTL_ADD && refuses(ENOMEM))) {
        return -1;
    }
    socket->watched = what != EPOLL_CTL_DEL;
    socket->about = what != EPOLL_CTL_DEL ? event->data.ptr : NULL;
    return 0;
}

/* Time passes while somebody waits. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    (void)timeout;
    const uint8_t choice = take(world.input);
    world.now.ns += 300 * MS;
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = choice >> i & 1 ? POLLIN : 0;
    }
    return (choice & 3) != 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags)
{
    (void)flags;
    memset(bytes, 0, count);
    take_bytes(world.input, bytes, count);
    return (ssize_t)count;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!world.running) {
        return __real_clock_gettime(clock, time);
    }
    world.now.ns += 10 * MS;
    *time = (struct timespec){.tv_sec = (time_t)(world.now.ns / (1000 * MS)),
                              .tv_nsec = (long)(world.now.ns % (1000 * MS))};
    return 0;
}

int __wrap_local_accept_anybody(int listener)
{
    ours(listener);
    if (world.callers == 0) {
        return -1;
    }
    world.callers--;
    const int fd = fake_open();
    if (fd >= 0) {
        world.users[fd - FAKE_FIRST] = geteuid() + take(world.input) % 2u;
    }
    return fd;
}

uid_t __wrap_local_user(int socket)
{
    ours(socket);
    return refuses(ENOTCONN) ? USER_UNKNOWN : world.users[socket - FAKE_FIRST];
}

pid_t __wrap_local_peer(int socket)
{
    ours(socket);
    return 77;
}

/* Nobody but our own user is given a door. */
bool __wrap_local_send(int socket, const void *bytes, size_t count, const int *fds,
                       uint32_t fd_count)
{
    ours(socket);
    struct services_answer answer;
    CHECK(count == sizeof(answer));
    memcpy(&answer, bytes, sizeof(answer));
    CHECK(fd_count == 0 || world.users[socket - FAKE_FIRST] == geteuid());
    CHECK(fd_count == 0 || (answer.magic == SERVICES_MAGIC_DOOR && ours(fds[0])->open));
    return true;
}

ssize_t __wrap_local_receive(int socket, void *bytes, size_t count, int *fds, uint32_t *fd_count)
{
    const uint8_t choice = take(world.input);
    ours(socket);
    struct services_answer answer = {.magic = SERVICES_MAGIC_DOOR + (choice & 1)};
    const uint32_t wanted = *fd_count;
    CHECK(count == sizeof(answer) && wanted == 1);
    *fd_count = 0;
    if (choice & 2) {
        fds[0] = fake_open();
        *fd_count = fds[0] >= 0;
    }
    memcpy(bytes, &answer, sizeof(answer));
    return choice & 4 ? 0 : choice & 8 ? 3 : (ssize_t)sizeof(answer);
}

bool __wrap_address_is_local(const uint8_t ip[16])
{
    return ip[12] == 127;
}

/* -- Steps --------------------------------------------------------------------------------------*/

static void address_of(struct input *input, uint8_t address[16])
{
    const uint8_t choice = take(input);
    memset(address, 0, 16);
    if (choice & 1) {
        address[10] = address[11] = 0xff;
        address[12] = choice & 2 ? 127 : 10;
        address[15] = choice >> 4;
    } else if (choice & 2) {
        address[0] = 0xfd;
        address[15] = choice >> 4;
    }
}

static void ask(struct input *input)
{
    const uint8_t which = take(input) % CONTEXTS;
    uint8_t address[16];
    address_of(input, address);
    if (world.asked[which]) {
        services_forget(&world.services, &world.contexts[which]);
        world.asked[which] = false;
    } else if (take(input) & 1) {
        world.asked[which] = services_find(&world.services, 0x106, address, 7, world.now,
                                           &world.contexts[which]) == SERVICE_ASKED;
    } else {
        world.asked[which] = services_await(&world.services, 0x106, address, 7, world.now,
                                            &world.contexts[which]) == SERVICE_ASKED;
    }
}

static void claim(struct input *input)
{
    const uint8_t which = take(input) % CLAIMS;
    uint8_t address[16];
    address_of(input, address);
    if (world.claims[which] != NULL) {
        if (take(input) & 1) {
            (void)services_offer(&world.services, world.claims[which]);
            return;
        }
        services_release(world.claims[which]);
        world.claims[which] = NULL;
        return;
    }
    uint16_t chosen = 0;
    const uint8_t choice = take(input);
    struct service *made = NULL;
    /* Port 0, for any free port, is not used here: it leads to thousands of tries. */
    if (services_claim(&world.services, 0x106, address, choice & 1, 7, &chosen, &made) == 0) {
        CHECK(made != NULL && chosen == 7);
        world.claims[which] = made;
    }
}

static void say(struct input *input)
{
    struct fake_socket *socket = fake_socket_of(fake_choose(take(input)));
    const uint8_t kind = take(input);
    if (socket == NULL) {
        return;
    }
    struct services_answer answer = {.magic = kind & 1 ? SERVICES_MAGIC_OWNER : SERVICES_MAGIC_DOOR,
                                     .slot = (int32_t)(take_number(input, 1 + (kind >> 6)) - 2)};
    answer.gid.bytes[10] = answer.gid.bytes[11] = 0xff;
    answer.gid.bytes[12] = kind & 2 ? 127 : take(input);
    answer.gid.bytes[15] = take(input);
    memcpy(socket->message, &answer, sizeof(answer));
    socket->bytes = kind & 32 ? take(input) % FAKE_MESSAGE : sizeof(answer);
    if (kind & 4) {
        take_bytes(input, socket->message, 8);
    }
    socket->readable = (kind & 8) == 0;
    socket->hung_up = (kind & 8) != 0;
}

static void collect(void)
{
    void *context;
    bool found;
    struct service_owner owner;
    while (services_next_answer(&world.services, &context, &found, &owner)) {
        const ptrdiff_t which = (char *)context - world.contexts;
        CHECK(which >= 0 && which < CONTEXTS && world.asked[which]);
        world.asked[which] = false;
        CHECK(!found || (owner.gid.bytes[12] == 127 && owner.slot >= LOCAL_NO_SLOT &&
                         owner.slot < SHARE_SLOTS));
    }
}

static void step(struct input *input)
{
    const uint8_t kind = take(input);
    struct service_owner owner;
    switch (kind & 7) {
    case 0: ask(input); break;
    case 1: claim(input); break;
    case 2:
    case 3: say(input); break;
    case 4:
        world.now.ns += (uint64_t)take(input) << (kind >> 3);
        services_on_time(&world.services, world.now);
        break;
    case 5:
        world.callers++;
        say(input);
        break;
    case 6: collect(); break;
    default:
        if (kind & 8 && services_ask(0, kind, &owner)) {
            CHECK(owner.gid.bytes[12] == 127 && owner.slot < SHARE_SLOTS);
        }
        services_serve(&world.services);
        break;
    }
}

/* All questions are over in time, whatever is answered. */
static void end(void)
{
    world.now.ns += UINT64_C(61000) * MS;
    services_on_time(&world.services, world.now);
    collect();
    for (int i = 0; i < CONTEXTS; i++) {
        CHECK(!world.asked[i]);
    }
    services_close(&world.services);
    CHECK(fake_open_count() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    const struct service_owner self = {.slot = LOCAL_NO_SLOT};
    memset(&world, 0, sizeof(world));
    world.input = &input;
    world.now.ns = UINT64_C(1000000) * MS;
    world.running = true;
    fake_begin();
    CHECK(services_open(&world.services, &self));
    while (input.count > 0) {
        step(&input);
    }
    end();
    world.running = false;
    return 0;
}
