/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Each process listens under the names of its addresses, and a process that is connected with it
 * keeps a connection to one of them. The connection ends with the process, or when it runs another
 * program. But a child that it made without our knowledge may hold a copy of its end of the
 * connection: so we also watch the process itself, by a pidfd. A process that is only stopped ends
 * neither of them.
 */
#include "drivers/system/presence.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/list.h"
#include "drivers/address.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/shortage.h"
#include "drivers/system/system.h"

#define BACKLOG 1024

/* One for each name or process that is watched; both descriptors of a process lead to the same
 * one. */
struct watched {
    struct list node; /* In hosts or guests; a name: in none. */
    enum {
        WATCHED_NAME,
        WATCHED_HOST,  /* A process that we met. */
        WATCHED_GUEST, /* A process that met us, and hears from `socket` that we live. */
    } kind;
    int socket, process; /* -1: none. */
    struct gid gid;
    uint32_t slot;
    bool gone;
};

struct presence {
    int epoll;
    uint32_t names_count;
    struct watched names[ADDRESS_MAX];
    struct list hosts, guests;
};

static bool watch(const struct presence *presence, int fd, struct watched *about)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = about};
    return system_epoll_change(presence->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Closing alone is not enough: a child may hold a copy. */
static void unwatch(const struct presence *presence, struct watched *watched)
{
    int *const fds[] = {&watched->socket, &watched->process};
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        if (*fds[i] >= 0) {
            system_epoll_change(presence->epoll, EPOLL_CTL_DEL, *fds[i], NULL);
            descriptor_close(*fds[i]);
            *fds[i] = -1;
        }
    }
}

static void list_of_watched_check(const struct list *head, int kind)
{
    list_check(head);
    for (const struct list *node = head->next; node != head; node = node->next) {
        const struct watched *watched = CONTAINER_OF_CONST(node, struct watched, node);
        list_check(node);
        CHECK((int)watched->kind == kind);
        /* A process that is gone has no descriptors any more, and each other one has. */
        CHECK(watched->gone == (watched->socket < 0));
        CHECK(!watched->gone || watched->process < 0);
    }
}

static void presence_check(const struct presence *presence)
{
    CHECK(presence->epoll >= 0);
    CHECK(presence->names_count <= ADDRESS_MAX);
    list_of_watched_check(&presence->hosts, WATCHED_HOST);
    list_of_watched_check(&presence->guests, WATCHED_GUEST);
}

struct presence *presence_open(const struct gid *gids, uint32_t count, uint32_t slot)
{
    struct presence *presence = calloc(1, sizeof(*presence));
    if (presence == NULL) {
        return NULL;
    }
    list_init(&presence->hosts);
    list_init(&presence->guests);
    presence->epoll = descriptor_own(system_epoll_create(EPOLL_CLOEXEC));
    if (presence->epoll < 0) {
        free(presence);
        return NULL;
    }
    for (uint32_t i = 0; i < count && i < ADDRESS_MAX; i++) {
        struct watched *name = &presence->names[presence->names_count++];
        const struct local_name at = local_name("lives/", &gids[i], (int)slot);
        *name = (struct watched){.kind = WATCHED_NAME, .process = -1};
        name->socket = local_listen(&at, BACKLOG);
        if (name->socket >= 0 && !watch(presence, name->socket, name)) {
            descriptor_close(name->socket);
            name->socket = -1;
        }
    }
    return presence;
}

static void drop(const struct presence *presence, struct watched *watched)
{
    unwatch(presence, watched);
    list_remove(&watched->node);
    free(watched);
}

void presence_close(struct presence *presence)
{
    if (presence == NULL) {
        return;
    }
    INVARIANTS(presence_check(presence));
    struct list *const lists[] = {&presence->hosts, &presence->guests};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        while (!list_empty(lists[i])) {
            drop(presence, CONTAINER_OF(lists[i]->next, struct watched, node));
        }
    }
    for (uint32_t i = 0; i < presence->names_count; i++) {
        unwatch(presence, &presence->names[i]);
    }
    descriptor_close(presence->epoll);
    free(presence);
}

int presence_fd(const struct presence *presence)
{
    return presence->epoll;
}

static struct watched *find(const struct presence *presence, const struct gid *gid, uint32_t slot)
{
    const struct list *head = &presence->hosts;
    for (struct list *node = head->next; node != head; node = node->next) {
        struct watched *host = CONTAINER_OF(node, struct watched, node);
        if (host->slot == slot && gid_equal(&host->gid, gid)) {
            return host;
        }
    }
    return NULL;
}

/* A pidfd; -1: the system cannot make one, or does not see the process. */
static int open_process(pid_t pid)
{
    return pid > 0 ? descriptor_own((int)syscall(SYS_pidfd_open, pid, 0)) : -1;
}

void presence_meet(struct presence *presence, const struct gid *gid, uint32_t slot)
{
    INVARIANTS(presence_check(presence));
    if (find(presence, gid, slot) != NULL) {
        return;
    }
    pid_t pid;
    const struct local_name name = local_name("lives/", gid, (int)slot);
    const int fd = local_dial(&name, &pid);
    struct watched *host = fd < 0 ? NULL : malloc(sizeof(*host));
    if (host == NULL) {
        descriptor_close(fd);
        return;
    }
    *host = (struct watched){.kind = WATCHED_HOST, .socket = fd, .gid = *gid, .slot = slot};
    list_init(&host->node);
    host->process = open_process(pid);
    list_append(&presence->hosts, &host->node);
    if (!watch(presence, fd, host) ||
        (host->process >= 0 && !watch(presence, host->process, host))) {
        drop(presence, host);
    }
}

/* If the kernel does not tell the user just now, the process counts as no stranger. */
static bool is_stranger(int socket)
{
    errno = 0;
    return local_user(socket) != geteuid() && !shortage_is(errno);
}

/* To close a guest's socket would tell the guest that we have ended. So a guest for whom there is
 * no memory waits to be accepted, and a guest that the system will not watch stays until we
 * close. */
static void accept_guest(struct presence *presence, struct watched *name)
{
    struct watched *guest = malloc(sizeof(*guest));
    const int socket = guest == NULL ? -1 : local_accept_anybody(name->socket);
    if (socket < 0 || is_stranger(socket)) {
        descriptor_close(socket);
        free(guest);
        return;
    }
    *guest = (struct watched){.kind = WATCHED_GUEST, .socket = socket, .process = -1};
    list_init(&guest->node);
    list_append(&presence->guests, &guest->node);
    (void)watch(presence, socket, guest);
}

/* Both descriptors of a host may tell of its end, so the host stays until presence_forget. */
void presence_serve(struct presence *presence)
{
    struct epoll_event events[32];
    INVARIANTS(presence_check(presence));
    const int count = system_epoll(presence->epoll, events, COUNT_OF(events));
    for (int i = 0; i < count; i++) {
        struct watched *watched = events[i].data.ptr;
        switch (watched->kind) {
        case WATCHED_NAME: accept_guest(presence, watched); break;
        case WATCHED_GUEST: drop(presence, watched); break;
        case WATCHED_HOST:
            watched->gone = true;
            unwatch(presence, watched);
            break;
        }
    }
}

bool presence_gone(const struct presence *presence, struct gid *gid, uint32_t *slot)
{
    const struct list *head = &presence->hosts;
    INVARIANTS(presence_check(presence));
    for (const struct list *node = head->next; node != head; node = node->next) {
        const struct watched *host = CONTAINER_OF_CONST(node, struct watched, node);
        if (host->gone) {
            *gid = host->gid;
            *slot = host->slot;
            return true;
        }
    }
    return false;
}

bool presence_is_gone(const struct presence *presence, const struct gid *gid, uint32_t slot)
{
    const struct watched *host = find(presence, gid, slot);
    INVARIANTS(presence_check(presence));
    return host != NULL && host->gone;
}

void presence_forget(struct presence *presence, const struct gid *gid, uint32_t slot)
{
    struct watched *host = find(presence, gid, slot);
    INVARIANTS(presence_check(presence));
    if (host != NULL) {
        drop(presence, host);
    }
}
