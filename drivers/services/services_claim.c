/* SPDX-License-Identifier: BSD-2-Clause
 *
 * services_claim - claims of ports: the rules for them, and the way by which others find them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "drivers/services/services_internal.h"
#include "drivers/system/clock.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/random.h"
#include "drivers/system/shortage.h"
#include "drivers/system/system.h"
#include "wire/inet.h"

#define NAME_FORMAT "nonic/port/%04x/%u/"
#define BACKLOG     4096

/* Ports for programs that name none: the range that IANA leaves to that. */
#define FREE_PORT_FIRST 49152
#define FREE_PORT_COUNT (65536 - FREE_PORT_FIRST)
#define FREE_PORT_TRIES 4096

/* The time that a process which holds the door may take to give it to us; one that is stopped never
 * does. */
#define GIVE_MS 1000
/* We try again, because the door's last holder may just have gone. */
#define DOOR_TRIES 4

/* -- Names --------------------------------------------------------------------------------------*/

enum scope services_door(const uint8_t address[16])
{
    return inet_is_ipv4(address) ? SCOPE_ANY_IPV4 : SCOPE_ANY_IPV6;
}

struct service_name services_name(enum scope scope, uint16_t port_space, const uint8_t address[16],
                                  uint16_t port)
{
    struct service_name name = {.address = {.sun_family = AF_UNIX}};
    char *to = name.address.sun_path + 1;
    to += sprintf(to, NAME_FORMAT, port_space, port);
    if (scope == SCOPE_ADDRESS) {
        for (int i = 0; i < 16; i++) {
            to += sprintf(to, "%02x", address[i]);
        }
    } else {
        to += sprintf(to, scope == SCOPE_ANY_IPV4 ? "any4" : "any6");
    }
    name.bytes = (socklen_t)(to - (char *)&name.address);
    CHECK(name.bytes <= sizeof(name.address));
    return name;
}

static bool same_name(const struct service_name *a, const struct service_name *b)
{
    return a->bytes == b->bytes && memcmp(&a->address, &b->address, a->bytes) == 0;
}

/* 0 or an errno. */
static int bind_name(int *fd, const struct service_name *name)
{
    *fd = descriptor_own(system_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (*fd >= 0 && system_bind(*fd, (const struct sockaddr *)&name->address, name->bytes) == 0) {
        return 0;
    }
    const int failure = errno;
    descriptor_close(*fd);
    *fd = -1;
    return failure;
}

/* -- Doors --------------------------------------------------------------------------------------*/

/* A claim of this process that holds the door; NULL: none. */
static const struct service *holder_here(const struct service_name *name, int *fd)
{
    struct list *node, *at;
    for (node = services_opened.next; node != &services_opened; node = node->next) {
        struct services *services = CONTAINER_OF(node, struct services, node);
        for (at = services->claims.next; at != &services->claims; at = at->next) {
            const struct service *service = CONTAINER_OF_CONST(at, struct service, node);
            for (size_t i = 0; i < COUNT_OF(service->doors); i++) {
                if (service->doors[i] >= 0 && same_name(&service->names[i], name)) {
                    *fd = service->doors[i];
                    return service;
                }
            }
        }
    }
    return NULL;
}

/* Is it a socket of that name? */
static bool has_name(int fd, const struct service_name *name)
{
    struct service_name found = {.bytes = sizeof(found.address)};
    return getsockname(fd, (struct sockaddr *)&found.address, &found.bytes) == 0 &&
           same_name(&found, name);
}

/* The process that holds the door may be asking for a door of ours, so we serve meanwhile. */
static bool wait_for_holder(struct services *services, int asked)
{
    const struct instant end = instant_after(clock_now(), UINT64_C(1000000) * GIVE_MS);
    struct pollfd waits[] = {{.fd = asked, .events = POLLIN},
                             {.fd = services->fd, .events = POLLIN}};
    struct instant now;
    while (waits[0].revents == 0 && !instant_reached(now = clock_now(), end)) {
        const int ms = (int)((end.ns - now.ns) / 1000000) + 1;
        if (poll(waits, COUNT_OF(waits), ms) > 0 && waits[1].revents != 0) {
            services_serve(services);
        }
    }
    return waits[0].revents != 0;
}

/* Gets the door from a process of our user that holds it. 0; EAGAIN: that one is gone, or many are
 * asking it; or another errno, such as EADDRINUSE. */
static int take_door(struct services *services, int *door, const struct service_name *name)
{
    uid_t user;
    const int asked = services_dial(name, &user);
    if (asked < 0) {
        return errno == ECONNREFUSED ? EAGAIN : errno;
    }
    struct services_answer answer = {.magic = 0};
    uint32_t count = 1;
    int failure = EADDRINUSE;
    if (user == geteuid() && wait_for_holder(services, asked)) {
        const ssize_t received = local_receive(asked, &answer, sizeof(answer), door, &count);
        const bool answered = received == (ssize_t)sizeof(answer) && count == 1 &&
                              answer.magic == SERVICES_MAGIC_DOOR;
        errno = 0;
        const bool given = answered && has_name(*door, name);
        const bool any =
            received == (ssize_t)sizeof(answer) && answer.magic == SERVICES_MAGIC_OWNER;
        failure = given                ? 0
                  : any                ? EADDRNOTAVAIL
                  : received <= 0      ? EAGAIN
                  : shortage_is(errno) ? errno
                                       : EADDRINUSE;
        if (!given && count == 1) {
            descriptor_close(*door);
            *door = -1; /* The claim closes the door that it has. */
        }
    }
    descriptor_close(asked);
    return failure;
}

/* Holds the door together with all claims of our user that are of one address. 0 or an errno. */
static int hold_together(struct services *services, int *door, const struct service_name *name)
{
    int fd, failure = EADDRINUSE;
    CHECK(*door < 0); /* An open one would be lost. */
    const struct service *holder = holder_here(name, &fd);
    if (holder != NULL) {
        *door = holder->any ? -1 : descriptor_own(fcntl(fd, F_DUPFD_CLOEXEC, 0));
        return holder->any ? EADDRNOTAVAIL : *door < 0 ? EMFILE : 0;
    }
    for (int i = 0; i < DOOR_TRIES && (failure == EADDRINUSE || failure == EAGAIN); i++) {
        failure = bind_name(door, name);
        if (failure == 0) {
            return system_listen(*door, BACKLOG) == 0 ? 0 : errno;
        }
        if (failure == EADDRINUSE) {
            failure = take_door(services, door, name);
            if (failure != EAGAIN) {
                break;
            }
        }
    }
    /* A claim of any address that does not answer. */
    return failure == EAGAIN ? EADDRNOTAVAIL : failure;
}

/* A claim of any address has no name of its own, a claim of one address has a single door, and a
 * door has the name that others look for. */
static void service_check(const struct service *service)
{
    CHECK(service->services != NULL);
    CHECK(!service->any || service->own < 0);
    CHECK(service->any || service->doors[1] < 0);
    CHECK(!service->offered || service->any || service->own >= 0);
    CHECK(service->doors[1] < 0 || service->doors[0] >= 0);
    list_check(&service->node);
}

/* -- Claims -------------------------------------------------------------------------------------*/

bool services_watch(struct services *services, int fd, void *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    return system_epoll_change(services->fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* A child of fork may have a copy of the descriptor, so that closing ours ends neither the socket
 * nor its registration, whose pointer is about to be stale. */
void services_let_go(const struct services *services, int *descriptor, bool ours)
{
    const int fd = *descriptor;
    *descriptor = -1;
    if (fd >= 0) {
        system_epoll_change(services->fd, EPOLL_CTL_DEL, fd, NULL);
        if (ours) {
            shutdown(fd, SHUT_RDWR);
        }
        descriptor_close(fd);
    }
}

static int claim_any(struct service *service, enum scope scope, bool ipv6_only, uint16_t port_space,
                     uint16_t port)
{
    static const uint8_t any[16];
    const bool both = scope == SCOPE_ANY_IPV6 && !ipv6_only;
    service->any = true;
    service->names[0] = services_name(scope, port_space, any, port);
    service->names[1] = services_name(SCOPE_ANY_IPV4, port_space, any, port);
    int failure = bind_name(&service->doors[0], &service->names[0]);
    if (failure == 0 && both) {
        failure = bind_name(&service->doors[1], &service->names[1]);
    }
    return failure == EADDRINUSE ? EADDRNOTAVAIL : failure;
}

static int claim_one(struct service *service, const uint8_t address[16], uint16_t port_space,
                     uint16_t port)
{
    const struct service_name own = services_name(SCOPE_ADDRESS, port_space, address, port);
    service->names[0] = services_name(services_door(address), port_space, address, port);
    int failure = hold_together(service->services, &service->doors[0], &service->names[0]);
    if (failure == 0 && !services_watch(service->services, service->doors[0], service)) {
        failure = errno;
    }
    return failure != 0 ? failure : bind_name(&service->own, &own);
}

static void release(struct service *service)
{
    INVARIANTS(service_check(service));
    list_remove(&service->node);
    services_let_go(service->services, &service->own, true);
    for (size_t i = 0; i < COUNT_OF(service->doors); i++) {
        services_let_go(service->services, &service->doors[i], service->any);
    }
    free(service);
}

static int claim_locked(struct services *services, uint16_t port_space, const uint8_t address[16],
                        bool ipv6_only, uint16_t port, struct service **service)
{
    struct service *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return ENOMEM;
    }
    *made = (struct service){.services = services, .doors = {-1, -1}, .own = -1};
    list_init(&made->node);
    const int failure = inet_is_any(address)
                            ? claim_any(made, services_door(address), ipv6_only, port_space, port)
                            : claim_one(made, address, port_space, port);
    list_append(&services->claims, &made->node);
    INVARIANTS(service_check(made));
    if (failure != 0) {
        release(made);
        return failure;
    }
    *service = made;
    return 0;
}

/* Another NIC of this process may be about to claim, or to give back, the same port of another
 * address: it holds the door together with us. */
static int claim(struct services *services, uint16_t port_space, const uint8_t address[16],
                 bool ipv6_only, uint16_t port, struct service **service)
{
    pthread_mutex_lock(&services_lock);
    const int failure = claim_locked(services, port_space, address, ipv6_only, port, service);
    pthread_mutex_unlock(&services_lock);
    return failure;
}

int services_claim(struct services *services, uint16_t port_space, const uint8_t address[16],
                   bool ipv6_only, uint16_t port, uint16_t *chosen, struct service **service)
{
    INVARIANTS(list_check(&services->claims));
    if (port != 0) {
        *chosen = port;
        return claim(services, port_space, address, ipv6_only, port, service);
    }
    for (int i = 0; i < FREE_PORT_TRIES; i++) {
        uint32_t random;
        random_draw(&random, sizeof(random));
        *chosen = (uint16_t)(FREE_PORT_FIRST + random % FREE_PORT_COUNT);
        const int failure = claim(services, port_space, address, ipv6_only, *chosen, service);
        if (failure != EADDRINUSE && failure != EADDRNOTAVAIL) {
            return failure;
        }
    }
    return EADDRNOTAVAIL;
}

/* The sockets that answer that we serve the port. */
static void answering(const struct service *service, int fds[2])
{
    fds[0] = service->any ? service->doors[0] : service->own;
    fds[1] = service->any ? service->doors[1] : -1;
}

int services_offer(struct services *services, struct service *service)
{
    int fds[2], failure = 0;
    INVARIANTS(service_check(service));
    CHECK(service->services == services);
    if (service->offered) {
        return 0;
    }
    answering(service, fds);
    /* Steps that may fail and can be undone come first. */
    for (size_t i = 0; failure == 0 && i < COUNT_OF(fds); i++) {
        failure = fds[i] < 0 || services_watch(services, fds[i], service) ? 0 : errno;
    }
    for (size_t i = 0; failure == 0 && i < COUNT_OF(fds); i++) {
        failure = fds[i] < 0 || system_listen(fds[i], BACKLOG) == 0 ? 0 : errno;
    }
    for (size_t i = 0; failure != 0 && i < COUNT_OF(fds); i++) {
        system_epoll_change(services->fd, EPOLL_CTL_DEL, fds[i], NULL);
    }
    service->offered = failure == 0;
    INVARIANTS(service_check(service));
    return failure;
}

void services_release(struct service *service)
{
    pthread_mutex_lock(&services_lock);
    release(service);
    pthread_mutex_unlock(&services_lock);
}
