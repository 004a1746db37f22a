/* SPDX-License-Identifier: BSD-2-Clause
 *
 * call_io - reads, writes, connections: the kernel is asked without waiting, and the thread waits
 * here.
 *
 * A descriptor that waits is made one that does not, for the time of the call; one thread runs at a
 * time, so nobody sees that.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <unistd.h>

#include "box/calls.h"

enum {
    FIRST_PORT = 20000,
    RANDOM_MAJOR = 1, /* /dev/random and /dev/urandom */
    RANDOM_MINOR = 8,
    URANDOM_MINOR = 9,
    RANDOM_BYTES_MAX = 4096, /* of a read */
    DELIVERY_TURNS_MAX = 100000,
    CONNECTION_TURNS_MAX = 10000,
};

static bool is_output(long number)
{
    switch (number) {
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_connect: return true;
    default: return false;
    }
}

static int message_flags(const struct call *call)
{
    switch (call->number) {
    case SYS_recvmsg:
    case SYS_sendmsg: return (int)call->argument[2];
    case SYS_recvfrom:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmmsg: return (int)call->argument[3];
    default: return 0;
    }
}

static bool is_random(const struct stat *status)
{
    return S_ISCHR(status->st_mode) && major(status->st_rdev) == RANDOM_MAJOR &&
           (minor(status->st_rdev) == RANDOM_MINOR || minor(status->st_rdev) == URANDOM_MINOR);
}

static enum call_next answer_random(struct box *box, struct thread *thread)
{
    uint8_t drawn[RANDOM_BYTES_MAX];
    const uint64_t wanted = thread->call.argument[2];
    const size_t bytes = wanted < sizeof(drawn) ? (size_t)wanted : sizeof(drawn);
    entropy_fill(box, drawn, bytes);
    turn_answer(thread, tracee_write(thread->id, thread->call.argument[1], drawn, bytes)
                            ? (int64_t)bytes
                            : -EFAULT);
    return CALL_ANSWERED;
}

/* A datagram socket that sends before it was bound gets a port, which the kernel would draw. */
static void bind_to_next_port(struct box *box, int socket, struct sockaddr *address,
                              socklen_t bytes, in_port_t *port)
{
    for (int i = 0; i < 10000; i++) {
        if (box->next_port < FIRST_PORT) {
            box->next_port = FIRST_PORT;
        }
        *port = htons(box->next_port++);
        if (bind(socket, address, bytes) == 0 || errno != EADDRINUSE) {
            return;
        }
    }
}

static void bind_unbound(struct box *box, int socket)
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof(address);
    if (getsockname(socket, (struct sockaddr *)&address, &bytes) != 0) {
        return;
    }
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
    if (address.ss_family == AF_INET && v4->sin_port == 0) {
        bind_to_next_port(box, socket, (struct sockaddr *)&address, bytes, &v4->sin_port);
    } else if (address.ss_family == AF_INET6 && v6->sin6_port == 0) {
        bind_to_next_port(box, socket, (struct sockaddr *)&address, bytes, &v6->sin6_port);
    }
}

ENTER(enter_listen)
{
    const int socket = descriptor_borrow(thread, (int)thread->call.argument[0]);
    if (socket >= 0) {
        bind_unbound(box, socket);
        close(socket);
    }
    return CALL_KERNEL;
}

/* The program asks for any port: the next one is taken, in its name. */
ENTER(enter_bind)
{
    struct sockaddr_storage address = {0};
    const uint64_t *argument = thread->call.argument;
    const socklen_t bytes = (socklen_t)argument[2];
    in_port_t *port = NULL;
    if (argument[2] > sizeof(address) || !tracee_read(thread->id, argument[1], &address, bytes)) {
        return CALL_KERNEL;
    }
    if (address.ss_family == AF_INET && bytes >= sizeof(struct sockaddr_in)) {
        port = &((struct sockaddr_in *)&address)->sin_port;
    } else if (address.ss_family == AF_INET6 && bytes >= sizeof(struct sockaddr_in6)) {
        port = &((struct sockaddr_in6 *)&address)->sin6_port;
    }
    if (port == NULL || *port != 0) {
        return CALL_KERNEL;
    }
    const int socket = descriptor_borrow(thread, (int)argument[0]);
    if (socket < 0) {
        return CALL_KERNEL;
    }
    errno = 0;
    bind_to_next_port(box, socket, (struct sockaddr *)&address, bytes, port);
    const int reason = *port != 0 ? errno : 0;
    struct sockaddr_storage bound;
    socklen_t bound_bytes = sizeof(bound);
    const bool is_bound = getsockname(socket, (struct sockaddr *)&bound, &bound_bytes) == 0 &&
                          ((struct sockaddr_in *)&bound)->sin_port != 0;
    close(socket);
    turn_answer(thread, is_bound ? 0 : -(reason != 0 ? reason : EADDRINUSE));
    return CALL_ANSWERED;
}

ENTER(enter_kernel)
{
    (void)box;
    (void)thread;
    return CALL_KERNEL;
}

LEAVE(leave_seen)
{
    (void)box;
    (void)thread;
    (void)result;
    return CALL_ANSWERED;
}

/* When a call that waits is to give up: SO_RCVTIMEO, SO_SNDTIMEO. */
static uint64_t deadline(const struct box *box, const struct thread *thread)
{
    struct timeval limit = {0};
    socklen_t bytes = sizeof(limit);
    if (thread->first_deadline_ns != NEVER) {
        return thread->first_deadline_ns;
    }
    if (getsockopt(thread->borrowed, SOL_SOCKET,
                   is_output(thread->call.number) ? SO_SNDTIMEO : SO_RCVTIMEO, &limit,
                   &bytes) != 0 ||
        (limit.tv_sec == 0 && limit.tv_usec == 0)) {
        return NEVER;
    }
    return box->page->clock_ns + (uint64_t)limit.tv_sec * 1000000000 +
           (uint64_t)limit.tv_usec * 1000;
}

/* Earlier parts of the call have written these bytes: they are not written again. */
static void skip_done(const struct thread *thread)
{
    registers at;
    if (thread->done > 0 && tracee_registers(thread->id, &at)) {
        at.rsi += thread->done;
        at.rdx -= thread->done;
        tracee_set_registers(thread->id, &at);
    }
}

static bool can_wait(const struct stat *status)
{
    return S_ISFIFO(status->st_mode) || S_ISSOCK(status->st_mode) || S_ISCHR(status->st_mode) ||
           (status->st_mode & S_IFMT) == 0;
}

ENTER(enter_transfer)
{
    struct stat status;
    const long number = thread->call.number;
    thread->borrowed = descriptor_borrow(thread, (int)thread->call.argument[0]);
    if (thread->borrowed < 0) {
        return CALL_KERNEL;
    }
    if (fstat(thread->borrowed, &status) != 0 || !can_wait(&status)) {
        descriptor_return(thread);
        return CALL_KERNEL;
    }
    if (number == SYS_read && is_random(&status)) {
        descriptor_return(thread);
        return answer_random(box, thread);
    }
    if (S_ISSOCK(status.st_mode) &&
        (number == SYS_sendto || number == SYS_sendmsg || number == SYS_sendmmsg)) {
        bind_unbound(box, thread->borrowed);
    }
    thread->is_within = (status.st_mode & S_IFMT) == 0;
    const int flags = fcntl(thread->borrowed, F_GETFL);
    if (!(flags & O_NONBLOCK) && !(message_flags(&thread->call) & MSG_DONTWAIT)) {
        fcntl(thread->borrowed, F_SETFL, flags | O_NONBLOCK);
        thread->is_blocking_borrowed = true;
    }
    skip_done(thread);
    return CALL_KERNEL;
}

ENTER(enter_connect)
{
    const enum call_next next = enter_transfer(box, thread);
    if (thread->borrowed >= 0) {
        bind_unbound(box, thread->borrowed);
    }
    return next;
}

static enum call_next wait_for(struct box *box, struct thread *thread)
{
    const struct pollfd wanted = {(int)thread->call.argument[0],
                                  is_output(thread->call.number) ? POLLOUT : POLLIN, 0};
    const uint64_t deadline_ns = deadline(box, thread);
    thread->first_deadline_ns = deadline_ns;
    descriptor_return(thread);
    thread->wait =
        (struct wait){.kind = WAIT_DESCRIPTORS, .deadline_ns = deadline_ns, .late = -EAGAIN};
    descriptors_watch(thread, &wanted, 1);
    /* The peer may see a beginning of it: a connection to accept, a part of what is written. */
    box->progress += is_output(thread->call.number);
    return CALL_WAITS;
}

static int domain_of(int socket)
{
    int domain = 0;
    socklen_t bytes = sizeof(domain);
    return socket >= 0 && getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 ? domain
                                                                                          : 0;
}

static bool is_under_way(int socket, int kind)
{
    struct tcp_info state;
    socklen_t bytes = sizeof(state);
    int left = 0;
    if (kind == SOCK_DGRAM) {
        return ioctl(socket, SIOCOUTQ, &left) == 0 && left > 0;
    }
    /* Bytes for which the reader has no room are not sent. */
    return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &state, &bytes) == 0 && state.tcpi_unacked > 0;
}

/* The kernel delivers on loopback while the sender sends. Under load it may leave that to a thread
 * of its own: then a datagram still counts for the sender's socket, and bytes of TCP are not
 * acknowledged (loopback.c). */
static void await_delivery(struct box *box, struct thread *thread)
{
    int kind = 0;
    socklen_t bytes = sizeof(kind);
    if (thread->borrowed < 0 ||
        getsockopt(thread->borrowed, SOL_SOCKET, SO_TYPE, &kind, &bytes) != 0) {
        return;
    }
    const int domain = domain_of(thread->borrowed);
    if (domain != AF_INET && domain != AF_INET6) {
        return;
    }
    for (int i = 0; i < DELIVERY_TURNS_MAX; i++) {
        if (!is_under_way(thread->borrowed, kind)) {
            return;
        }
        sched_yield();
    }
    box_doubt(box, "the kernel kept back what thread %d sent by %s", thread->number,
              thread->row->name);
}

/* Likewise a connection over loopback is made, or refused, at once, unless its listener has no room
 * for it. */
static void await_connection(const struct thread *thread)
{
    struct pollfd made = {thread->borrowed, POLLOUT, 0};
    const int domain = domain_of(thread->borrowed);
    for (int i = 0; (domain == AF_INET || domain == AF_INET6) && i < CONNECTION_TURNS_MAX; i++) {
        if (poll(&made, 1, 0) > 0) {
            return;
        }
        sched_yield();
    }
}

LEAVE(leave_transfer)
{
    const long number = thread->call.number;
    const bool waits = thread->is_blocking_borrowed;
    if (number == SYS_connect && *result == -EINPROGRESS) {
        await_connection(thread);
    }
    if (waits && (*result == -EAGAIN || *result == -EINPROGRESS ||
                  (number == SYS_connect && *result == -EALREADY))) {
        return wait_for(box, thread);
    }
    if (waits && *result > 0 && (number == SYS_write || number == SYS_sendto)) {
        thread->done += (uint64_t)*result;
        if (thread->done < thread->call.argument[2]) {
            return wait_for(box, thread);
        }
        *result = (int64_t)thread->done;
    }
    if (is_output(number) && *result > 0) {
        await_delivery(box, thread);
    }
    if (*result > 0 && (number == SYS_recvmsg || number == SYS_recvfrom) &&
        domain_of(thread->borrowed) == AF_NETLINK) {
        netlink_clear(thread, *result);
    }
    return CALL_ANSWERED;
}
