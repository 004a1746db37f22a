/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/services.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "drivers/local_socket.h"
#include "drivers/share.h"
#include "wire/inet.h"

#define NAME_FORMAT "nonic/port/%04x/%u/"
#define IPV4_MAPPED "00000000000000000000ffff" /* How the names of IPv4 addresses begin. */
#define BACKLOG     4096
#define MAGIC       UINT64_C(0x6e6f6e6963706f73)

/* Ports given to those who do not care: the range IANA leaves to that. */
#define FREE_PORT_FIRST 49152
#define FREE_PORT_COUNT (65536 - FREE_PORT_FIRST)
#define FREE_PORT_TRIES 4096

/* An owner that is asked by too many at once is asked again soon; one that never answers is taken
 * for none. */
#define RETRY_NS    5000000u
#define ASK_SECONDS 2

#define PATIENCE_NS 60000000000u
#define MOMENT_NS   250000000u
#define LOST_MAX    4

struct answer {
    uint64_t magic;
    struct gid gid;
    int32_t slot;
    uint32_t reserved;
};

struct service {
    struct list node;
    struct services *services;
    int fds[2]; /* Any IPv6 address usually stands for any IPv4 address, too. -1: none. */
};

struct question {
    struct list node;
    void *context;
    uint16_t port_space, port;
    uint8_t address[16];
    int fd; /* -1: to be asked (again) at `retry_at`. */
    struct instant asked_at, retry_at;
    struct instant believed_at; /* From then on nobody is nobody. */
    uint8_t lost;               /* Owners that went without an answer. */
    bool answered, found;
    struct service_owner owner;
};

/* -- Names --------------------------------------------------------------------------------------*/

enum scope {
    SCOPE_ADDRESS,
    SCOPE_ANY_IPV4,
    SCOPE_ANY_IPV6,
};

static enum scope scope_of_any(const uint8_t address[16])
{
    return inet_is_ipv4(address) ? SCOPE_ANY_IPV4 : SCOPE_ANY_IPV6;
}

static socklen_t name_of(enum scope scope, uint16_t port_space, const uint8_t address[16],
                         uint16_t port, struct sockaddr_un *name)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    char *to = name->sun_path + 1;
    to += sprintf(to, NAME_FORMAT, port_space, port);
    if (scope == SCOPE_ADDRESS) {
        for (int i = 0; i < 16; i++) {
            to += sprintf(to, "%02x", address[i]);
        }
    } else {
        to += sprintf(to, scope == SCOPE_ANY_IPV4 ? "any4" : "any6");
    }
    return (socklen_t)(to - (char *)name);
}

/* -- Claims -------------------------------------------------------------------------------------*/

static bool watch(struct services *services, int fd, void *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(services->fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* A child of fork may have a copy of the descriptor, so that closing ours ends neither the socket
 * nor its registration, whose pointer is about to be stale. */
static void let_go(const struct services *services, int *descriptor)
{
    const int fd = *descriptor;
    *descriptor = -1;
    if (fd >= 0) {
        epoll_ctl(services->fd, EPOLL_CTL_DEL, fd, NULL);
        shutdown(fd, SHUT_RDWR);
        close(fd);
    }
}

static void drop_question(struct services *services, struct question *question)
{
    list_remove(&question->node);
    let_go(services, &question->fd);
    free(question);
}

/* -- Children of fork ---------------------------------------------------------------------------*/

/* A port is its owner's alone: what a child inherits would hold it when the owner is gone. */
static struct list opened = {&opened, &opened};

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static void forget_parents(void)
{
    for (struct list *node = opened.next; node != &opened; node = node->next) {
        struct services *services = CONTAINER_OF(node, struct services, node);
        struct list *at;
        for (at = services->claims.next; at != &services->claims; at = at->next) {
            struct service *service = CONTAINER_OF(at, struct service, node);
            close_fd(&service->fds[0]);
            close_fd(&service->fds[1]);
        }
        for (at = services->questions.next; at != &services->questions; at = at->next) {
            close_fd(&CONTAINER_OF(at, struct question, node)->fd);
        }
        close_fd(&services->fd);
    }
    list_init(&opened);
}

static void watch_for_fork(void)
{
    (void)!pthread_atfork(NULL, NULL, forget_parents);
}

bool services_open(struct services *services, const struct service_owner *self)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *services = (struct services){.fd = epoll_create1(EPOLL_CLOEXEC), .self = *self};
    list_init(&services->claims);
    list_init(&services->questions);
    list_init(&services->node);
    if (services->fd < 0) {
        return false;
    }
    pthread_once(&once, watch_for_fork);
    list_append(&opened, &services->node);
    return true;
}

void services_close(struct services *services)
{
    if (services->claims.next == NULL) {
        return;
    }
    while (!list_empty(&services->claims)) {
        services_release(CONTAINER_OF(services->claims.next, struct service, node));
    }
    while (!list_empty(&services->questions)) {
        drop_question(services, CONTAINER_OF(services->questions.next, struct question, node));
    }
    list_remove(&services->node);
    close_fd(&services->fd);
}

/* Does a process hold the name? */
static bool is_held(const struct sockaddr_un *name, socklen_t bytes)
{
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    const bool held = bind(fd, (const struct sockaddr *)name, bytes) != 0 && errno == EADDRINUSE;
    close(fd);
    return held;
}

/* Is the port claimed for an address of this kind? Only the system knows all addresses that are. */
static bool is_held_somewhere(enum scope any, uint16_t port_space, uint16_t port)
{
    char wanted[64], *line = NULL;
    size_t room = 0;
    bool held = false;
    FILE *sockets = fopen("/proc/net/unix", "re");
    sprintf(wanted, "@" NAME_FORMAT, port_space, port);
    while (!held && sockets != NULL && getline(&line, &room, sockets) > 0) {
        const char *found = strstr(line, wanted);
        if (found != NULL) {
            const char *address = found + strlen(wanted);
            const bool ipv4 = strncmp(address, IPV4_MAPPED, strlen(IPV4_MAPPED)) == 0;
            held = strncmp(address, "any", 3) != 0 && ipv4 == (any == SCOPE_ANY_IPV4);
        }
    }
    free(line);
    if (sockets != NULL) {
        fclose(sockets);
    }
    return held;
}

/* A port of any address excludes one of a certain address, and the other way round. */
static bool conflicts(enum scope scope, uint16_t port_space, const uint8_t address[16],
                      uint16_t port)
{
    if (scope != SCOPE_ADDRESS) {
        return is_held_somewhere(scope, port_space, port);
    }
    struct sockaddr_un name;
    const socklen_t bytes = name_of(scope_of_any(address), port_space, address, port, &name);
    return is_held(&name, bytes);
}

/* 0 or an errno. */
static int claim_name(int *fd, enum scope scope, uint16_t port_space, const uint8_t address[16],
                      uint16_t port)
{
    if (conflicts(scope, port_space, address, port)) {
        return EADDRINUSE;
    }
    struct sockaddr_un name;
    const socklen_t bytes = name_of(scope, port_space, address, port, &name);
    *fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return *fd < 0 || bind(*fd, (struct sockaddr *)&name, bytes) != 0 ? errno : 0;
}

static int claim(struct services *services, uint16_t port_space, const uint8_t address[16],
                 bool ipv6_only, uint16_t port, struct service **service)
{
    const enum scope scope = inet_is_any(address) ? scope_of_any(address) : SCOPE_ADDRESS;
    struct service *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return ENOMEM;
    }
    *made = (struct service){.services = services, .fds = {-1, -1}};
    list_append(&services->claims, &made->node);
    int failure = claim_name(&made->fds[0], scope, port_space, address, port);
    if (failure == 0 && scope == SCOPE_ANY_IPV6 && !ipv6_only) {
        failure = claim_name(&made->fds[1], SCOPE_ANY_IPV4, port_space, address, port);
    }
    if (failure != 0) {
        services_release(made);
        return failure;
    }
    *service = made;
    return 0;
}

int services_claim(struct services *services, uint16_t port_space, const uint8_t address[16],
                   bool ipv6_only, uint16_t port, uint16_t *chosen, struct service **service)
{
    if (port != 0) {
        *chosen = port;
        return claim(services, port_space, address, ipv6_only, port, service);
    }
    for (int i = 0; i < FREE_PORT_TRIES; i++) {
        uint32_t random = 0;
        (void)!getrandom(&random, sizeof(random), 0);
        *chosen = (uint16_t)(FREE_PORT_FIRST + random % FREE_PORT_COUNT);
        const int failure = claim(services, port_space, address, ipv6_only, *chosen, service);
        if (failure != EADDRINUSE) {
            return failure;
        }
    }
    return EADDRNOTAVAIL;
}

int services_offer(struct services *services, struct service *service)
{
    const int *fds = service->fds;
    int failure = 0;
    /* What may fail and can be undone comes first. */
    for (size_t i = 0; failure == 0 && i < COUNT_OF(service->fds); i++) {
        failure = fds[i] < 0 || watch(services, fds[i], service) ? 0 : errno;
    }
    for (size_t i = 0; failure == 0 && i < COUNT_OF(service->fds); i++) {
        failure = fds[i] < 0 || listen(fds[i], BACKLOG) == 0 ? 0 : errno;
    }
    for (size_t i = 0; failure != 0 && i < COUNT_OF(service->fds); i++) {
        epoll_ctl(services->fd, EPOLL_CTL_DEL, fds[i], NULL);
    }
    return failure;
}

void services_release(struct service *service)
{
    list_remove(&service->node);
    let_go(service->services, &service->fds[0]);
    let_go(service->services, &service->fds[1]);
    free(service);
}

/* -- Questions ----------------------------------------------------------------------------------*/

static void settle(struct services *services, struct question *question, bool found)
{
    question->answered = true;
    question->found = found;
    let_go(services, &question->fd);
}

/* Connects to the port's owner: the most special claim first. */
static void put(struct services *services, struct question *question, struct instant now)
{
    const enum scope scopes[] = {SCOPE_ADDRESS, scope_of_any(question->address)};
    for (size_t i = 0; i < COUNT_OF(scopes); i++) {
        struct sockaddr_un name;
        const socklen_t bytes =
            name_of(scopes[i], question->port_space, question->address, question->port, &name);
        const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&name, bytes) == 0 &&
            watch(services, fd, question)) {
            question->fd = fd;
            return;
        }
        const bool later = fd < 0 || errno != ECONNREFUSED;
        if (fd >= 0) {
            close(fd);
        }
        if (later) {
            question->retry_at = instant_after(now, RETRY_NS);
            return;
        }
    }
    if (instant_reached(now, question->believed_at)) {
        settle(services, question, false);
    } else {
        question->retry_at = instant_after(now, RETRY_NS);
    }
}

static enum service_answer ask(struct services *services, uint16_t port_space,
                               const uint8_t address[16], uint16_t port, struct instant now,
                               struct instant believed_at, void *context)
{
    struct question *question = calloc(1, sizeof(*question));
    if (question == NULL) {
        return SERVICE_NOBODY;
    }
    *question = (struct question){.context = context,
                                  .port_space = port_space,
                                  .port = port,
                                  .fd = -1,
                                  .asked_at = now,
                                  .believed_at = believed_at};
    memcpy(question->address, address, 16);
    list_init(&question->node);
    put(services, question, now);
    if (question->answered) {
        drop_question(services, question);
        return SERVICE_NOBODY;
    }
    list_append(&services->questions, &question->node);
    return SERVICE_ASKED;
}

enum service_answer services_find(struct services *services, uint16_t port_space,
                                  const uint8_t address[16], uint16_t port, struct instant now,
                                  void *context)
{
    return ask(services, port_space, address, port, now, now, context);
}

enum service_answer services_await(struct services *services, uint16_t port_space,
                                   const uint8_t address[16], uint16_t port, struct instant now,
                                   void *context)
{
    return ask(services, port_space, address, port, now, instant_after(now, MOMENT_NS), context);
}

void services_forget(struct services *services, const void *context)
{
    struct list *next;
    for (struct list *node = services->questions.next; node != &services->questions; node = next) {
        next = node->next;
        if (CONTAINER_OF(node, struct question, node)->context == context) {
            drop_question(services, CONTAINER_OF(node, struct question, node));
        }
    }
}

bool services_next_answer(struct services *services, void **context, bool *found,
                          struct service_owner *owner)
{
    struct list *head = &services->questions;
    for (struct list *node = head->next; node != head; node = node->next) {
        struct question *question = CONTAINER_OF(node, struct question, node);
        if (question->answered) {
            *context = question->context;
            *found = question->found;
            *owner = question->owner;
            drop_question(services, question);
            return true;
        }
    }
    return false;
}

struct instant services_deadline(const struct services *services)
{
    struct instant earliest = INSTANT_NEVER;
    const struct list *head = &services->questions;
    for (const struct list *node = head->next; node != head; node = node->next) {
        const struct question *question = CONTAINER_OF_CONST(node, struct question, node);
        const struct instant at =
            question->fd < 0 ? question->retry_at : instant_after(question->asked_at, PATIENCE_NS);
        earliest = instant_before(at, earliest) ? at : earliest;
    }
    return earliest;
}

void services_on_time(struct services *services, struct instant now)
{
    struct list *head = &services->questions;
    for (struct list *node = head->next; node != head; node = node->next) {
        struct question *question = CONTAINER_OF(node, struct question, node);
        if (question->answered) {
            continue;
        }
        if (instant_reached(now, instant_after(question->asked_at, PATIENCE_NS))) {
            settle(services, question, false);
        } else if (question->fd < 0 && instant_reached(now, question->retry_at)) {
            put(services, question, now);
        }
    }
}

/* -- Serving ------------------------------------------------------------------------------------*/

static void answer_all(const struct services *services, const struct service *service)
{
    const struct answer answer = {
        .magic = MAGIC, .gid = services->self.gid, .slot = services->self.slot};
    for (size_t i = 0; i < COUNT_OF(service->fds); i++) {
        int fd;
        while ((fd = local_accept_anybody(service->fds[i])) >= 0) {
            (void)!send(fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
            close(fd);
        }
    }
}

static bool read_answer(int fd, struct service_owner *owner, int flags)
{
    struct answer answer;
    const ssize_t count = recv(fd, &answer, sizeof(answer), flags);
    if (count != (ssize_t)sizeof(answer) || answer.magic != MAGIC || answer.slot < LOCAL_NO_SLOT ||
        answer.slot >= SHARE_SLOTS) {
        return false;
    }
    *owner = (struct service_owner){.gid = answer.gid, .slot = answer.slot};
    return true;
}

bool services_ask(uint16_t port_space, uint16_t port, struct service_owner *owner)
{
    struct sockaddr_un name;
    static const uint8_t any[16];
    const socklen_t bytes = name_of(SCOPE_ANY_IPV6, port_space, any, port, &name);
    const struct timeval patience = {.tv_sec = ASK_SECONDS};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    const bool answered =
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
        connect(fd, (struct sockaddr *)&name, bytes) == 0 && read_answer(fd, owner, 0);
    close(fd);
    return answered;
}

static void take_answer(struct services *services, struct question *question)
{
    /* Readable: there is an answer, or the owner is gone. */
    if (read_answer(question->fd, &question->owner, MSG_DONTWAIT)) {
        settle(services, question, true);
    } else if (question->believed_at.ns == question->asked_at.ns || ++question->lost == LOST_MAX) {
        settle(services, question, false);
    } else {
        let_go(services, &question->fd);
        question->retry_at = question->asked_at; /* Perhaps there is another one by now. */
    }
}

void services_serve(struct services *services)
{
    struct epoll_event events[16];
    const int count = epoll_wait(services->fd, events, COUNT_OF(events), 0);
    for (int i = 0; i < count; i++) {
        bool is_claim = false;
        for (struct list *node = services->claims.next; node != &services->claims;
             node = node->next) {
            is_claim |= events[i].data.ptr == CONTAINER_OF(node, struct service, node);
        }
        if (is_claim) {
            answer_all(services, events[i].data.ptr);
        } else {
            take_answer(services, events[i].data.ptr);
        }
    }
}

/* -- Addresses ----------------------------------------------------------------------------------*/

/* Only an address of this machine can be bound. */
bool address_is_local(const uint8_t ip[16])
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.any.sa_family = inet_is_ipv4(ip) ? AF_INET : AF_INET6};
    socklen_t bytes = sizeof(address.v6);
    if (address.any.sa_family == AF_INET) {
        memcpy(&address.v4.sin_addr, ip + 12, 4);
        bytes = sizeof(address.v4);
    } else {
        memcpy(&address.v6.sin6_addr, ip, 16);
    }
    const int fd = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    const bool local = bind(fd, &address.any, bytes) == 0;
    close(fd);
    return local;
}
