/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_connect - the connection by which two processes share rings, from its beginning to its end.
 *
 * Every process listens on an abstract socket named after the layout of its rings, its GID, and its
 * slot if it shares the address: builds of different layouts do not find one another. A process
 * that wants to send makes a ring (a sealed memfd), connects, and sends the ring's descriptor with
 * a hello; it may use the ring at once. The acceptor maps the ring and answers with its board.
 * After that the connection carries doorbells. When the connection ends, for whatever reason, the
 * peer counts as gone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/share.h"
#include "drivers/shm/shm_internal.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/shortage.h"
#include "drivers/system/system.h"
#include "drivers/system/user.h"

#define DIALS 3

/* A hello follows its call at once. So if there are more callers than this, the oldest one sends no
 * hello, and must not hold a descriptor of this process for ever. */
#define CALLERS_MAX 64

/* -- Opening and closing ------------------------------------------------------------------------*/

static bool watch(struct shm_port *port, int fd, enum shm_watch *about)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = about};
    return system_epoll_change(port->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Closing alone is not enough: a child of fork may hold a copy. */
static void unwatch_and_close(const struct shm_port *port, int fd)
{
    system_epoll_change(port->epoll, EPOLL_CTL_DEL, fd, NULL);
    descriptor_close(fd);
}

static bool make_board(struct shm_port *port)
{
    void *map;
    port->board_fd = shm_memory_make("nonic-board", sizeof(struct shm_board), true, &map);
    if (port->board_fd < 0) {
        return false;
    }
    port->board = map;
    shm_board_init(port->board);
    return true;
}

static bool listen_for_peers(struct shm_port *port)
{
    const struct local_name name = shm_name(SHM_LAYOUT, &port->self, port->slot);
    port->listener = local_listen(&name, 1024);
    port->watch = SHM_WATCH_LISTENER;
    return port->listener >= 0 && watch(port, port->listener, &port->watch);
}

/* The reason why there is no memory to share. */
static void explain(char *text, size_t text_bytes, size_t wanted)
{
    if (errno == EFBIG) {
        snprintf(text, text_bytes,
                 "shared memory: the limit on the size of files (ulimit -f) is below the %zu bytes "
                 "that it takes",
                 wanted);
    } else {
        snprintf(text, text_bytes, "shared memory: memfd_create: %s", strerror(errno));
    }
}

/* The reason why we cannot tell peers from strangers. */
static void explain_user(char *text, size_t text_bytes)
{
    snprintf(text, text_bytes,
             "shared memory: this program's user ID, %u, stands for all users that its user "
             "namespace does not name: take another user ID there, or name all users",
             geteuid());
}

struct shm_port *shm_port_open(const struct gid *self, int slot, char *error, size_t error_bytes)
{
    struct shm_port *port = calloc(1, sizeof(*port));
    if (port == NULL) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    port->self = *self;
    port->slot = slot;
    list_init(&port->callers);
    list_init(&port->dirty);
    link_table_init(&port->links);
    port->listener = port->board_fd = -1;
    port->epoll = descriptor_own(system_epoll_create(EPOLL_CLOEXEC));
    if (!user_is_named(geteuid())) {
        explain_user(error, error_bytes);
        shm_port_close(port);
        errno = EPERM;
        return NULL;
    }
    if (!make_board(port)) {
        explain(error, error_bytes, sizeof(struct shm_board));
        shm_port_close(port);
        return NULL;
    }
    if (port->epoll < 0 || !listen_for_peers(port)) {
        snprintf(error, error_bytes, "shared memory: %s",
                 errno == EADDRINUSE ? "another program holds the name that peers look for"
                                     : strerror(errno));
        shm_port_close(port);
        return NULL;
    }
    return port;
}

static void hang_up(struct shm_port *port, struct shm_link *link)
{
    CHECK(link->ring != NULL && link->socket >= 0);
    link->link.lost = true;
    unwatch_and_close(port, link->socket);
    user_process_close(&link->process);
    shm_views_close(link);
    link->socket = -1;
    munmap(link->ring, sizeof(*link->ring));
    link->ring = NULL;
    if (link->board != NULL) {
        munmap((void *)(uintptr_t)link->board, sizeof(*link->board));
        link->board = NULL;
    }
}

void shm_link_lose(struct shm_port *port, struct shm_link *link)
{
    if (!link->link.lost) {
        port->counters.packets_lost += shm_link_unread(link);
        hang_up(port, link);
    }
}

/* The peer reads the packets in its ring before it takes note that we are gone. */
void shm_port_drop(struct shm_port *port, struct link *base)
{
    struct shm_link *link = CONTAINER_OF(base, struct shm_link, link);
    CHECK(base->kind == LINK_SHM && base->lost == (link->ring == NULL));
    link_table_remove(&port->links, base);
    list_remove(&link->dirty);
    if (!base->lost) {
        hang_up(port, link);
    }
    free(link);
}

void shm_inbound_break(struct shm_port *port, struct shm_inbound *inbound)
{
    CHECK(!inbound->broken); /* It is counted once. */
    inbound->broken = true;
    port->counters.rings_broken++;
    shutdown(inbound->socket, SHUT_WR);
}

void shm_inbound_close(struct shm_port *port, uint32_t index)
{
    CHECK(index < port->inbound_count);
    struct shm_inbound *inbound = port->inbound[index];
    unwatch_and_close(port, inbound->socket);
    munmap(inbound->ring, sizeof(*inbound->ring));
    free(inbound);
    port->inbound[index] = port->inbound[--port->inbound_count];
}

/* Processes that have not sent their hello: the oldest goes first when there are too many. */
static void callers_check(const struct shm_port *port)
{
    list_check(&port->callers);
    CHECK(list_empty(&port->callers) == (port->caller_count == 0));
    CHECK(port->caller_count <= CALLERS_MAX);
}

static void drop_caller(struct shm_port *port, struct shm_caller *caller, bool hang_up)
{
    if (hang_up) {
        unwatch_and_close(port, caller->socket);
    }
    list_remove(&caller->node);
    port->caller_count--;
    free(caller);
    INVARIANTS(callers_check(port));
}

void shm_port_close(struct shm_port *port)
{
    while (!list_empty(&port->callers)) {
        drop_caller(port, CONTAINER_OF(port->callers.next, struct shm_caller, node), true);
    }
    struct link *link;
    while ((link = link_table_next(&port->links, NULL)) != NULL) {
        shm_port_drop(port, link);
    }
    link_table_close(&port->links);
    CHECK(list_empty(&port->dirty) && port->caller_count == 0);
    while (port->inbound_count > 0) {
        shm_inbound_close(port, port->inbound_count - 1);
    }
    free(port->inbound);
    shm_extents_close(port);
    descriptor_close(port->listener);
    descriptor_close(port->epoll);
    descriptor_close(port->board_fd);
    if (port->board != NULL) {
        pthread_mutex_destroy(&port->board->owner.mutex);
        munmap(port->board, sizeof(*port->board));
    }
    free(port);
}

void shm_port_forget(struct shm_port *port)
{
    struct link *base = NULL;
    while ((base = link_table_next(&port->links, base)) != NULL) {
        struct shm_link *link = CONTAINER_OF(base, struct shm_link, link);
        base->lost = true;
        link->socket = -1;
        link->process = (struct user_process){-1, -1};
        link->ring = NULL;
        link->board = NULL;
    }
}

const struct shm_counters *shm_port_counters(const struct shm_port *port)
{
    return &port->counters;
}

int shm_port_fd(const struct shm_port *port)
{
    return port->epoll;
}

/* -- Connecting ---------------------------------------------------------------------------------*/

static bool dial(struct shm_port *port, struct shm_link *link, pid_t only)
{
    CHECK(link->link.lost && link->ring == NULL && link->board == NULL);
    link->watch = SHM_WATCH_LINK;
    const struct local_name name = shm_name(SHM_LAYOUT, &link->link.peer, link->link.slot);
    pid_t pid;
    link->socket = local_dial(&name, &pid);
    if (link->socket < 0) {
        return false;
    }
    const bool other = only != 0 && pid != only;
    errno = 0;
    /* A process that listened as our user may have changed its user since. */
    if (other || (pid != 0 && user_of_process(pid, NULL) != geteuid())) {
        descriptor_close(link->socket);
        errno = other ? ECONNREFUSED : shortage_is(errno) ? errno : EPERM;
        return false;
    }
    link->pid = pid;
    void *map;
    const int fd = shm_memory_make("nonic-ring", sizeof(struct shm_ring), false, &map);
    if (fd < 0) {
        descriptor_close(link->socket);
        return false;
    }
    link->ring = map;
    link->ring->mark = shm_mark_of(sizeof(*link->ring));
    link->ring->source = port->self;
    link->ring->destination = link->link.peer;
    atomic_store_explicit(&link->ring->udp_too, link->udp_too, memory_order_relaxed);
    const struct shm_hello hello = {
        .mark = shm_mark_of(sizeof(hello)), .source = port->self, .slot = port->slot};
    const bool sent = local_send(link->socket, &hello, sizeof(hello), &fd, 1) &&
                      watch(port, link->socket, &link->watch);
    descriptor_close(fd);
    if (!sent) {
        descriptor_close(link->socket);
        munmap(map, sizeof(struct shm_ring));
        link->ring = NULL;
        return false;
    }
    link->board = NULL;
    link->process = (struct user_process){-1, -1};
    link->tail = link->consumed = 0;
    link->data_tail = link->data_freed = 0;
    link->direct_refused = false;
    link->revived = only != 0;
    link->link.reading = (struct link_reading){0};
    link->link.lost = false;
    CHECK(link->socket >= 0 && link->ring != NULL);
    return true;
}

/* `only`: the process that the peer has to be; 0: any. A process that listens and hangs up may have
 * been short of something just then. */
static bool shm_connect(struct shm_port *port, struct shm_link *link, pid_t only)
{
    for (int tries = 0; tries < DIALS; tries++) {
        if (dial(port, link, only)) {
            return true;
        }
        if (errno != EPIPE && errno != ECONNRESET) {
            break;
        }
    }
    return false;
}

/* Connections were to the process that was lost, and not to another one that has come to its
 * address. In a PID namespace that is not ours we cannot tell one from the other. */
bool shm_link_revive(struct shm_port *port, struct link *base)
{
    struct shm_link *link = CONTAINER_OF(base, struct shm_link, link);
    return !base->lost || (link->pid != 0 && shm_connect(port, link, link->pid));
}

/* NULL: nobody is there. */
static struct link *make_link(struct shm_port *port, const struct link_name *name)
{
    struct shm_link *link = calloc(1, sizeof(*link));
    if (link == NULL) {
        return NULL;
    }
    link_init(&link->link, LINK_SHM, name);
    link->link.lost = true;
    list_init(&link->dirty);
    if (!link_table_add(&port->links, &link->link)) {
        free(link);
        return NULL;
    }
    if (!shm_connect(port, link, 0)) {
        const int reason = errno;
        shm_port_drop(port, &link->link);
        errno = reason;
        return NULL;
    }
    return &link->link;
}

struct link *shm_port_link(struct shm_port *port, const struct gid *peer, int slot)
{
    const struct link_name name = {.self = &port->self, .peer = peer, .slot = slot};
    struct link *link = link_table_find(&port->links, &name);
    if (link == NULL) {
        link = make_link(port, &name);
    } else if (link->lost && !shm_connect(port, CONTAINER_OF(link, struct shm_link, link), 0)) {
        /* The process may have gone, and no other one has come to its address. */
        return NULL;
    }
    if (link != NULL) {
        link_table_hold(&port->links, link);
    }
    return link;
}

struct link_table *shm_port_links(struct shm_port *port)
{
    return &port->links;
}

/* -- Both ways ----------------------------------------------------------------------------------*/

void shm_link_tell_of_udp(struct link *base)
{
    struct shm_link *link = CONTAINER_OF(base, struct shm_link, link);
    link->udp_too = true;
    if (!base->lost) {
        atomic_store_explicit(&link->ring->udp_too, 1, memory_order_release);
    }
}

bool shm_port_has_links(const struct shm_port *port)
{
    return port->links.count > 0;
}

/* The ring through which that process sends to us; NULL if there is none. */
static const struct shm_inbound *find_inbound(const struct shm_port *port, const struct gid *peer,
                                              int slot)
{
    for (uint32_t i = 0; i < port->inbound_count; i++) {
        const struct shm_inbound *inbound = port->inbound[i];
        if (inbound->slot == slot && !inbound->hung_up && !inbound->broken &&
            gid_equal(&inbound->source, peer)) {
            return inbound;
        }
    }
    return NULL;
}

bool shm_port_knows(const struct shm_port *port, const struct gid *peer, int slot)
{
    const struct link_name name = {.self = &port->self, .peer = peer, .slot = slot};
    const struct link *link = link_table_find(&port->links, &name);
    return (link != NULL && !link->lost) || find_inbound(port, peer, slot) != NULL;
}

bool shm_port_greet(struct shm_port *port)
{
    const uint64_t before = port->greeted;
    /* The first call accepts callers, the second one reads their hellos. */
    shm_port_serve(port);
    shm_port_serve(port);
    return port->greeted != before;
}

bool shm_link_is_answered_by_ring(struct shm_port *port, const struct link *base)
{
    const struct shm_link *link = CONTAINER_OF_CONST(base, struct shm_link, link);
    const struct shm_inbound *inbound = find_inbound(port, &link->link.peer, link->link.slot);
    if (inbound == NULL && !base->lost) {
        (void)shm_port_greet(port);
        inbound = find_inbound(port, &link->link.peer, link->link.slot);
    }
    return inbound != NULL && !base->lost &&
           atomic_load_explicit(&inbound->ring->udp_too, memory_order_acquire) == 0;
}

/* -- Being connected to -------------------------------------------------------------------------*/

#define CALLERS_IN_A_TURN 16

static void add_caller(struct shm_port *port, struct shm_caller *caller)
{
    if (port->caller_count == CALLERS_MAX) {
        drop_caller(port, CONTAINER_OF(port->callers.next, struct shm_caller, node), true);
        port->counters.callers_dropped++;
    }
    list_append(&port->callers, &caller->node);
    port->caller_count++;
    INVARIANTS(callers_check(port));
}

static void take_caller(struct shm_port *port, int fd)
{
    struct shm_caller *caller = malloc(sizeof(*caller));
    if (caller == NULL) {
        descriptor_close(fd);
        return;
    }
    *caller = (struct shm_caller){.watch = SHM_WATCH_CALLER, .socket = fd};
    list_init(&caller->node);
    if (!watch(port, fd, &caller->watch)) {
        descriptor_close(fd);
        free(caller);
        return;
    }
    add_caller(port, caller);
}

/* Callers of other users are not let in: their processes are reached over UDP. */
void shm_port_accept(struct shm_port *port)
{
    int fd;
    for (int i = 0; i < CALLERS_IN_A_TURN && (fd = local_accept(port->listener)) >= 0; i++) {
        take_caller(port, fd);
    }
}

static bool add_inbound(struct shm_port *port, struct shm_inbound *inbound)
{
    if (port->inbound_count == port->inbound_max) {
        const uint32_t max = port->inbound_max == 0 ? 16 : port->inbound_max * 2;
        struct shm_inbound **grown = realloc(port->inbound, max * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        port->inbound = grown;
        port->inbound_max = max;
    }
    CHECK(port->inbound_count < port->inbound_max && inbound->ring != NULL);
    port->inbound[port->inbound_count++] = inbound;
    port->greeted++;
    return true;
}

/* A caller that is gone gets no answer, but the packets that it sent before are still delivered. */
static bool answer(struct shm_port *port, int socket)
{
    const struct shm_mark mark = shm_mark_of(sizeof(mark));
    return local_send(socket, &mark, sizeof(mark), &port->board_fd, 1) || errno == EPIPE ||
           errno == ECONNRESET || errno == ECONNREFUSED;
}

enum greeting {
    GREETING_DONE,
    GREETING_LATER,
    GREETING_REFUSED,
};

/* The caller's hello and its ring: either all of them makes sense, or the caller is sent away. */
static enum greeting greet(struct shm_port *port, int socket)
{
    struct shm_hello hello;
    int fd = -1;
    uint32_t fds = 1;
    const ssize_t received = local_receive(socket, &hello, sizeof(hello), &fd, &fds);
    if (received < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOMEM)) {
        return GREETING_LATER; /* The hello can still be read later. */
    }
    const bool sense = received == (ssize_t)sizeof(hello) &&
                       shm_mark_fits(&hello.mark, sizeof(hello)) && fds == 1 &&
                       hello.slot >= LOCAL_NO_SLOT && hello.slot < SHARE_SLOTS;
    struct shm_ring *ring =
        sense ? shm_memory_map(fd, sizeof(struct shm_ring), PROT_READ | PROT_WRITE) : NULL;
    descriptor_close(fd);
    struct shm_inbound *inbound = ring == NULL ? NULL : malloc(sizeof(*inbound));
    if (inbound == NULL) {
        if (ring != NULL) {
            munmap(ring, sizeof(*ring));
        }
        return GREETING_REFUSED;
    }
    *inbound = (struct shm_inbound){
        .watch = SHM_WATCH_INBOUND,
        .socket = socket,
        .ring = ring,
        .source = hello.source,
        .slot = hello.slot,
        .pid = local_peer(socket),
        /* The caller has not seen the board yet. */
        .settled = port->withdrawals,
        .looked_at = port->withdrawals,
    };
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = &inbound->watch};
    if (system_epoll_change(port->epoll, EPOLL_CTL_MOD, socket, &event) != 0 ||
        !answer(port, socket) || !add_inbound(port, inbound)) {
        munmap(ring, sizeof(*ring));
        free(inbound);
        return GREETING_REFUSED;
    }
    return GREETING_DONE;
}

static void serve_caller(struct shm_port *port, struct shm_caller *caller)
{
    CHECK(port->caller_count > 0 && caller->socket >= 0);
    const enum greeting greeting = greet(port, caller->socket);
    port->counters.callers_refused += greeting == GREETING_REFUSED;
    if (greeting != GREETING_LATER) {
        drop_caller(port, caller, greeting == GREETING_REFUSED);
    }
}

/* -- The connection's further life --------------------------------------------------------------*/

/* A message of the one who fills a ring: doorbells are dropped. */
static void serve_message(struct shm_port *port, const struct shm_inbound *inbound,
                          const struct shm_ask *message, ssize_t bytes)
{
    if (bytes == (ssize_t)sizeof(*message) && shm_mark_fits(&message->mark, sizeof(*message))) {
        shm_extent_asked(port, inbound, message->key);
    }
}

/* Reads what has come; false: the other side is gone. */
static bool drain(struct shm_port *port, const struct shm_inbound *inbound)
{
    struct shm_ask message;
    for (;;) {
        const ssize_t count = system_recv(inbound->socket, &message, sizeof(message), MSG_DONTWAIT);
        if (count == 0) {
            return false;
        }
        if (count < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        serve_message(port, inbound, &message, count);
    }
}

static void serve_inbound(struct shm_port *port, struct shm_inbound *inbound)
{
    CHECK(inbound->watch == SHM_WATCH_INBOUND && !inbound->hung_up);
    if (!drain(port, inbound)) {
        /* Packets that the peer sent before it went are still delivered. */
        inbound->hung_up = true;
        system_epoll_change(port->epoll, EPOLL_CTL_DEL, inbound->socket, NULL);
    }
}

/* The peer's board comes first; its memory follows if we ask for it. */
static void serve_link(struct shm_port *port, struct shm_link *link)
{
    CHECK(!link->link.lost && link->ring != NULL);
    struct shm_offer message;
    const struct shm_mark *mark = &message.mark;
    int fd = -1;
    uint32_t fds = 1;
    const ssize_t received = local_receive(link->socket, &message, sizeof(message), &fd, &fds);
    if (received == (ssize_t)sizeof(*mark) && shm_mark_fits(mark, sizeof(*mark)) && fds == 1 &&
        link->board == NULL) {
        link->board = shm_memory_map(fd, sizeof(struct shm_board), PROT_READ);
    } else if (received == (ssize_t)sizeof(message) && shm_mark_fits(mark, sizeof(message))) {
        shm_view_offered(link, &message, fds == 1 ? fd : -1);
    } else if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR)) {
        shm_link_lose(port, link);
    }
    descriptor_close(fd);
}

bool shm_port_serve(struct shm_port *port)
{
    struct epoll_event events[32];
    const int count = system_epoll(port->epoll, events, COUNT_OF(events));
    bool called = false;
    for (int i = 0; i < count; i++) {
        enum shm_watch *about = events[i].data.ptr;
        switch (*about) {
        case SHM_WATCH_LISTENER: called = true; break;
        case SHM_WATCH_CALLER:
            serve_caller(port, CONTAINER_OF(about, struct shm_caller, watch));
            break;
        case SHM_WATCH_INBOUND:
            serve_inbound(port, CONTAINER_OF(about, struct shm_inbound, watch));
            break;
        case SHM_WATCH_LINK: serve_link(port, CONTAINER_OF(about, struct shm_link, watch)); break;
        }
    }
    /* This comes last, because a new caller may take the place of another one, which an event may
     * be about. */
    if (called) {
        shm_port_accept(port);
    }
    return count > 0;
}
