/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_connect_fuzz - processes that connect to our rings, or that we connect to, and say anything.
 *
 * Goal    Whichever peers call, greet, answer, hang up or go, in whatever order, no assertion
 *         fails, an inbound ring exists for a whole greeting only, each descriptor is closed once,
 *         and each piece of memory is given back once.
 * Method  The sockets are fakes (tests/fuzz/fake_sockets.h), and a peer hands over memory of ours,
 *         whose seals and size the input chooses. The input is a sequence of steps: a call, a
 *         message with descriptors or without, a hang-up, a doorbell; a link of ours, a round of
 *         serving.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/share.h"
#include "drivers/shm/shm_internal.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/system.h"
#include "drivers/system/user.h"
#include "tests/fuzz/fake_sockets.h"
#include "tests/fuzz/input.h"

#define MAPS_MAX 64
#define PEERS    3
#define IDLE_MAX 2

static struct {
    struct input *input;
    struct shm_port *port;
    int listener;
    uint32_t callers; /* Callers that wait to be accepted. */
    void *maps[MAPS_MAX];
    uint32_t made; /* All inbound rings so far: greetings that were whole. */
    bool poor;     /* The kernel has no memory and no descriptors at present. */
} world;

static struct shm_board own_board;

/* -- The kernel ---------------------------------------------------------------------------------*/

int __wrap_local_listen(const struct local_name *name, int backlog);
int __wrap_local_dial(const struct local_name *name, pid_t *pid);
int __wrap_local_accept(int listener);
pid_t __wrap_local_peer(int socket);
bool __wrap_user_is_named(uid_t user);
uid_t __wrap_user_of_process(pid_t process, struct user_process *held);
bool __wrap_local_send(int socket, const void *bytes, size_t count, const int *fds,
                       uint32_t fd_count);
ssize_t __wrap_local_receive(int socket, void *bytes, size_t count, int *fds, uint32_t *fd_count);
void __wrap_descriptor_close(int fd);
int __wrap_descriptor_own(int fd);
int __wrap_system_epoll_create(int flags);
int __wrap_system_epoll_change(int epoll, int what, int fd, struct epoll_event *event);
int __wrap_shutdown(int fd, int how);
long __wrap_syscall(long number, ...);
int __wrap_munmap(void *map, size_t bytes);
int __wrap_shm_memory_make(const char *name, size_t bytes, bool sealed_for_others, void **map);
void *__wrap_shm_memory_map(int fd, size_t bytes, int protection);

int __wrap_local_listen(const struct local_name *name, int backlog)
{
    (void)name;
    (void)backlog;
    world.listener = fake_open();
    return world.listener;
}

int __wrap_local_dial(const struct local_name *name, pid_t *pid)
{
    (void)name;
    const uint8_t choice = take(world.input);
    *pid = choice & 1 ? 12345 : 0;
    errno = choice & 2 ? EPERM : ECONNREFUSED;
    return world.poor || choice & 4 ? -1 : fake_open();
}

int __wrap_local_accept(int listener)
{
    CHECK(listener == world.listener);
    errno = EAGAIN;
    if (world.callers == 0) {
        return -1;
    }
    world.callers--;
    return fake_open();
}

pid_t __wrap_local_peer(int socket)
{
    CHECK(fake_socket_of(socket)->open);
    return 12345;
}

bool __wrap_user_is_named(uid_t user)
{
    return user == geteuid();
}

uid_t __wrap_user_of_process(pid_t process, struct user_process *held)
{
    CHECK(process == 12345);
    if (held != NULL) {
        *held = (struct user_process){fake_open(), fake_open()};
    }
    return take(world.input) % 8 == 7 ? USER_UNKNOWN : geteuid();
}

bool __wrap_local_send(int socket, const void *bytes, size_t count, const int *fds,
                       uint32_t fd_count)
{
    static const int errors[] = {EPIPE, ECONNRESET, ECONNREFUSED, EAGAIN, ENOBUFS};
    CHECK(fake_socket_of(socket)->open);
    for (uint32_t i = 0; i < fd_count; i++) {
        CHECK(fake_socket_of(fds[i]) != NULL && fake_socket_of(fds[i])->open);
    }
    (void)bytes;
    (void)count;
    errno = errors[take(world.input) % COUNT_OF(errors)];
    return !world.poor;
}

ssize_t __wrap_local_receive(int socket, void *bytes, size_t count, int *fds, uint32_t *fd_count)
{
    struct fake_socket *from = fake_socket_of(socket);
    const uint32_t wanted = *fd_count;
    CHECK(from->open);
    *fd_count = 0;
    if (!from->readable) {
        errno = from->error != 0 ? from->error : EAGAIN;
        return from->hung_up ? 0 : -1;
    }
    from->readable = false;
    for (uint32_t i = 0; i < from->fds && i < wanted; i++) {
        fds[i] = fake_open();
        *fd_count += fds[i] >= 0;
    }
    const size_t copied = from->bytes < count ? from->bytes : count;
    memcpy(bytes, from->message, copied);
    return (ssize_t)copied;
}

void __wrap_descriptor_close(int fd)
{
    fake_close(fd);
}

int __wrap_descriptor_own(int fd)
{
    return fd;
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
    CHECK(socket != NULL && socket->open);
    if (what != EPOLL_CTL_DEL && world.poor) {
        errno = ENOMEM;
        return -1;
    }
    CHECK(what != EPOLL_CTL_ADD || !socket->watched);
    socket->watched = what != EPOLL_CTL_DEL;
    socket->about = what != EPOLL_CTL_DEL ? event->data.ptr : NULL;
    return 0;
}

int __wrap_shutdown(int fd, int how)
{
    (void)how;
    CHECK(fake_socket_of(fd)->open);
    return 0;
}

static bool is_ready(int fd, const struct fake_socket *socket)
{
    return socket->open && socket->watched &&
           (socket->readable || socket->hung_up || socket->error != 0 ||
            (fd == world.listener && world.callers > 0));
}

static long wait_for_events(struct epoll_event *events, long room)
{
    long count = 0;
    for (int i = 0; i < FAKE_COUNT && count < room; i++) {
        const struct fake_socket *socket = fake_socket_of(FAKE_FIRST + i);
        if (is_ready(FAKE_FIRST + i, socket)) {
            events[count++] = (struct epoll_event){.events = EPOLLIN, .data.ptr = socket->about};
        }
    }
    return count;
}

/* recvfrom, by which we read doorbells: any message can be one. */
static long read_bell(int fd)
{
    struct fake_socket *socket = fake_socket_of(fd);
    CHECK(socket != NULL && socket->open);
    if (socket->readable) {
        socket->readable = false;
        return socket->bytes > 0 ? 1 : 0;
    }
    errno = socket->error != 0 ? socket->error : EAGAIN;
    return socket->hung_up ? 0 : -1;
}

long __wrap_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    const int fd = (int)va_arg(arguments, long);
    void *pointer = va_arg(arguments, void *);
    const long room = va_arg(arguments, long);
    va_end(arguments);
    CHECK(number == SYSTEM_EPOLL_WAIT || number == SYS_recvfrom || number == SYS_sendto);
    return number == SYSTEM_EPOLL_WAIT ? wait_for_events(pointer, room)
           : number == SYS_recvfrom    ? read_bell(fd)
                                       : 1;
}

/* -- Memory -------------------------------------------------------------------------------------*/

/* Makes the head of a ring or a board, the only part that is looked at here. */
static void *map_something(size_t bytes)
{
    for (uint32_t i = 0; i < MAPS_MAX; i++) {
        if (world.maps[i] == NULL) {
            const size_t head = offsetof(struct shm_ring, slots);
            world.maps[i] = aligned_alloc(4096, bytes < head ? bytes : head);
            CHECK(world.maps[i] != NULL);
            memset(world.maps[i], 0, head);
            return world.maps[i];
        }
    }
    return NULL;
}

int __wrap_munmap(void *map, size_t bytes)
{
    (void)bytes;
    if (map == &own_board) {
        return 0;
    }
    for (uint32_t i = 0; i < MAPS_MAX; i++) {
        if (world.maps[i] == map) {
            free(map);
            world.maps[i] = NULL;
            return 0;
        }
    }
    UNREACHABLE("memory that is not mapped, or no more");
}

int __wrap_shm_memory_make(const char *name, size_t bytes, bool sealed_for_others, void **map)
{
    (void)name;
    if (sealed_for_others) {
        memset(&own_board, 0, offsetof(struct shm_board, regions));
        *map = &own_board;
        return fake_open();
    }
    const int fd = world.poor ? -1 : fake_open();
    *map = fd < 0 ? NULL : map_something(bytes);
    if (*map == NULL) {
        fake_close(fd);
        return -1;
    }
    return fd;
}

void *__wrap_shm_memory_map(int fd, size_t bytes, int protection)
{
    (void)protection;
    CHECK(fake_socket_of(fd) != NULL && fake_socket_of(fd)->open);
    const bool fits = take(world.input) % 4 != 0;
    world.made += fits && bytes == sizeof(struct shm_ring);
    return fits ? map_something(bytes) : NULL;
}

/* -- Peers --------------------------------------------------------------------------------------*/

static struct gid gid_of(uint8_t which)
{
    return (struct gid){.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = which % PEERS}};
}

static void say_hello(struct fake_socket *socket, struct input *input)
{
    const uint8_t choice = take(input);
    const struct shm_hello hello = {.mark = {.magic = SHM_MAGIC - (choice >> 7),
                                             .layout = SHM_LAYOUT + (choice >> 6 & 1),
                                             .bytes = sizeof(hello) + (choice >> 5 & 1)},
                                    .source = gid_of(take(input)),
                                    .slot = (int32_t)(take_number(input, 1 + choice % 4) - 2)};
    memcpy(socket->message, &hello, sizeof(hello));
    socket->bytes = sizeof(hello);
}

static void say_mark(struct fake_socket *socket, struct input *input)
{
    const uint8_t choice = take(input);
    const struct shm_mark mark = {.magic = SHM_MAGIC + (choice & 1),
                                  .layout = SHM_LAYOUT + (choice >> 1 & 1),
                                  .bytes = sizeof(mark) + (choice >> 2 & 1)};
    memcpy(socket->message, &mark, sizeof(mark));
    socket->bytes = sizeof(mark);
}

static void speak(struct input *input)
{
    struct fake_socket *socket = fake_socket_of(fake_choose(take(input)));
    const uint8_t kind = take(input);
    if (socket == NULL || fake_descriptor_of(socket) == world.listener) {
        return;
    }
    memset(socket->message, 0, sizeof(socket->message));
    switch (kind & 7) {
    case 0:
    case 1: say_hello(socket, input); break;
    case 2: say_mark(socket, input); break;
    case 3: socket->bytes = take_bytes(input, socket->message, take(input) % FAKE_MESSAGE); break;
    case 4: socket->hung_up = true; return;
    case 5: socket->error = kind & 8 ? ECONNRESET : EINTR; return;
    default: socket->bytes = 1; break;
    }
    socket->readable = true;
    socket->fds = kind >> 4 & 3;
}

/* -- We -----------------------------------------------------------------------------------------*/

static void check(void)
{
    struct shm_port *port = world.port;
    CHECK(port->inbound_count <= world.made);
    for (uint32_t i = 0; i < port->inbound_count; i++) {
        const struct shm_inbound *inbound = port->inbound[i];
        CHECK(fake_socket_of(inbound->socket)->open && inbound->ring != NULL);
        CHECK(inbound->slot >= LOCAL_NO_SLOT && inbound->slot < SHARE_SLOTS);
    }
    struct link *base = NULL;
    while ((base = link_table_next(&port->links, base)) != NULL) {
        const struct shm_link *link = CONTAINER_OF_CONST(base, struct shm_link, link);
        CHECK(link->link.lost == (link->ring == NULL));
        CHECK(link->link.lost || fake_socket_of(link->socket)->open);
        CHECK(!link->link.lost || link->board == NULL);
    }
}

static void close_inbound(uint8_t which)
{
    if (world.port->inbound_count > 0) {
        shm_inbound_close(world.port, which % world.port->inbound_count);
    }
}

/* Only a few idle links stay. */
static void release(struct link *link)
{
    link_table_release(&world.port->links, link);
    struct link *idle = link_table_first_idle(&world.port->links);
    if (world.port->links.idle_count > IDLE_MAX) {
        shm_port_drop(world.port, idle);
    }
}

static void step(struct input *input)
{
    const uint8_t kind = take(input);
    world.poor = kind >> 4 == 15;
    switch (kind & 7) {
    case 0: world.callers++; break;
    case 1:
    case 2: speak(input); break;
    case 3: {
        const struct gid peer = gid_of(take(input));
        struct link *link = shm_port_link(world.port, &peer, (int)(kind >> 4 & 1) - 1);
        CHECK(link == NULL || !link->lost);
        if (link != NULL) {
            shm_link_tell_of_udp(link);
            (void)shm_link_is_answered_by_ring(world.port, link);
            release(link);
        }
        break;
    }
    case 4: close_inbound(kind >> 3); break;
    default: shm_port_serve(world.port); break;
    }
    check();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    const struct gid self = gid_of(0);
    char error[256];
    memset(&world, 0, sizeof(world));
    world.input = &input;
    fake_begin();
    world.port = shm_port_open(&self, LOCAL_NO_SLOT, error, sizeof(error));
    CHECK(world.port != NULL);
    while (input.count > 0) {
        step(&input);
    }
    /* All peers go, or we go while they are there. */
    for (uint32_t i = 0; i < FAKE_COUNT && (count & 1) != 0; i++) {
        struct fake_socket *socket = fake_socket_of(FAKE_FIRST + (int)i);
        socket->hung_up = socket->open;
        socket->readable = false;
        socket->error = 0;
    }
    world.callers = 0;
    for (int rounds = 0; rounds < 2 * FAKE_COUNT / 32; rounds++) {
        shm_port_serve(world.port);
    }
    check();
    shm_port_close(world.port);
    CHECK(fake_open_count() == 0);
    for (uint32_t i = 0; i < MAPS_MAX; i++) {
        CHECK(world.maps[i] == NULL);
    }
    return 0;
}
