/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "drivers/services/services_internal.h"
#include "drivers/share.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/shortage.h"
#include "drivers/system/socket_address.h"
#include "drivers/system/system.h"
#include "drivers/system/user.h"
#include "wire/inet.h"

/* An owner that is asked by too many at once is asked again soon, and so is a port that nobody
 * serves yet, at growing pauses; an owner that never answers counts as none. */
#define RETRY_NS     5000000u
#define RETRY_NS_MAX 40000000u
#define ASK_SECONDS  2

#define PATIENCE_NS 60000000000u
#define MOMENT_NS   250000000u
#define LOST_MAX    4

/* Connections that are accepted in one turn: other sockets and our programs want to be served,
 * too. */
#define ACCEPTS_MAX 32

struct question {
    struct list node;
    void *context;
    uint16_t port_space, port;
    uint8_t address[16];
    int fd; /* -1: to be asked (again) at `retry_at`. */
    struct instant asked_at, put_at, retry_at;
    uint64_t pause_ns;          /* The pause before the next try, if nobody serves the port. */
    struct instant believed_at; /* From then on "nobody" is believed. */
    uint8_t lost;               /* Owners that hung up without an answer. */
    bool answered, found;
    struct service_owner owner;
};

/* An owner is being asked (`fd`), or will be asked again, or the question is answered. */
static void question_check(const struct question *question)
{
    CHECK(question->fd < 0 || !question->answered);
    CHECK(question->answered || !question->found);
    CHECK(question->pause_ns >= RETRY_NS && question->pause_ns <= RETRY_NS_MAX);
    CHECK(question->lost <= LOST_MAX);
    CHECK(!instant_before(question->believed_at, question->asked_at));
    list_check(&question->node);
}

static void drop_question(struct services *services, struct question *question)
{
    INVARIANTS(question_check(question));
    list_remove(&question->node);
    services_let_go(services, &question->fd, true);
    free(question);
}

/* -- Children of fork ---------------------------------------------------------------------------*/

/* A port belongs to its owner alone: descriptors that a child inherits would hold it when the owner
 * is gone. */
struct list services_opened = {&services_opened, &services_opened};
pthread_mutex_t services_lock = PTHREAD_MUTEX_INITIALIZER;

/* The lock is not held over fork: a thread that claims has its NIC's lock already, and the thread
 * that forks holds that lock by then (kernel/process.c). So the list is whole, but for a claim that
 * another NIC of the parent was just making. The descriptors may be closed already, and their
 * numbers another file's: so they are not closed by number, but with all that were noted. */
static void forget_parents(void)
{
    descriptors_close_all();
    for (struct list *node = services_opened.next; node != &services_opened; node = node->next) {
        struct services *services = CONTAINER_OF(node, struct services, node);
        struct list *at;
        for (at = services->claims.next; at != &services->claims; at = at->next) {
            struct service *service = CONTAINER_OF(at, struct service, node);
            service->own = service->doors[0] = service->doors[1] = -1;
        }
        for (at = services->questions.next; at != &services->questions; at = at->next) {
            CONTAINER_OF(at, struct question, node)->fd = -1;
        }
        services->fd = -1;
    }
    list_init(&services_opened);
    pthread_mutex_init(&services_lock, NULL);
}

/* Done once in a process; if there is no memory for it now, it is done the next time. False with
 * errno. The caller holds services_lock. */
static bool watch_for_fork(void)
{
    static bool watching;
    const int failure = watching ? 0 : pthread_atfork(NULL, NULL, forget_parents);
    if (failure != 0) {
        errno = failure;
        return false;
    }
    watching = true;
    return true;
}

bool services_open(struct services *services, const struct service_owner *self)
{
    pthread_mutex_lock(&services_lock);
    *services = (struct services){
        .fd = watch_for_fork() ? descriptor_own(system_epoll_create(EPOLL_CLOEXEC)) : -1,
        .self = *self};
    list_init(&services->claims);
    list_init(&services->questions);
    list_init(&services->node);
    const bool opened = services->fd >= 0;
    if (opened) {
        list_append(&services_opened, &services->node);
    }
    pthread_mutex_unlock(&services_lock);
    return opened;
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
    pthread_mutex_lock(&services_lock);
    list_remove(&services->node);
    pthread_mutex_unlock(&services_lock);
    descriptor_close(services->fd);
    services->fd = -1;
}

/* -- Questions ----------------------------------------------------------------------------------*/

static void settle(struct services *services, struct question *question, bool found)
{
    question->answered = true;
    question->found = found;
    services_let_go(services, &question->fd, true);
    INVARIANTS(question_check(question));
}

/* Nobody serves the port: the question is settled, or is asked again later. */
static void note_nobody(struct services *services, struct question *question)
{
    services_let_go(services, &question->fd, true);
    if (instant_reached(question->put_at, question->believed_at)) {
        settle(services, question, false);
        return;
    }
    const struct instant next = instant_after(question->put_at, question->pause_ns);
    const uint64_t longer_ns = 2 * question->pause_ns;
    question->pause_ns = longer_ns < RETRY_NS_MAX ? longer_ns : RETRY_NS_MAX;
    question->retry_at = instant_before(next, question->believed_at) ? next : question->believed_at;
    INVARIANTS(question_check(question));
}

int services_dial(const struct service_name *name, uid_t *user)
{
    const int fd =
        descriptor_own(system_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd >= 0 && system_connect(fd, (const struct sockaddr *)&name->address, name->bytes) == 0) {
        errno = 0;
        *user = local_user(fd);
        if (*user != USER_UNKNOWN || !shortage_is(errno)) {
            return fd;
        }
    }
    descriptor_close(fd);
    return -1;
}

/* A claim of one address is believed if its user holds the port's door: names have no permissions,
 * so anybody can bind the more special one. Where nobody answers at the door, the claim may be that
 * of a build of nonic that knew no doors. The port's user, who may not listen just now, loses
 * nothing if we then believe root and our own user, who decides about this process anyway. */
static bool may_be_believed(uid_t owner, bool has_door, uid_t door_user)
{
    return owner != USER_UNKNOWN &&
           (has_door ? owner == door_user : owner == geteuid() || owner == 0);
}

/* Connects to the port's owner: -1 with errno, ECONNREFUSED if there is none. A claim of exactly
 * this address comes before a claim of any address. */
static int dial_owner(const struct question *question)
{
    const uint16_t port_space = question->port_space, port = question->port;
    const struct service_name names[2] = {
        services_name(services_door(question->address), port_space, question->address, port),
        services_name(SCOPE_ADDRESS, port_space, question->address, port)};
    uid_t users[2] = {0, 0};
    const int door = services_dial(&names[0], &users[0]);
    if (door < 0 && errno != ECONNREFUSED) {
        return -1;
    }
    const int own = services_dial(&names[1], &users[1]);
    const bool later = own < 0 && errno != ECONNREFUSED;
    const bool special = own >= 0 && may_be_believed(users[1], door >= 0, users[0]);
    const int reason = own < 0 ? errno : ECONNREFUSED;
    descriptor_close(special || later ? door : own);
    errno = reason;
    return later ? -1 : special ? own : door;
}

static void put(struct services *services, struct question *question, struct instant now)
{
    CHECK(question->fd < 0 && !question->answered); /* It is asked once at a time. */
    question->put_at = now;
    const int fd = dial_owner(question);
    if (fd >= 0 && services_watch(services, fd, question)) {
        question->fd = fd;
    } else if (fd < 0 && errno == ECONNREFUSED) {
        note_nobody(services, question);
    } else {
        descriptor_close(fd);
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
                                  .pause_ns = RETRY_NS,
                                  .believed_at = believed_at};
    memcpy(question->address, address, 16);
    list_init(&question->node);
    put(services, question, now);
    if (question->answered) {
        drop_question(services, question);
        return SERVICE_NOBODY;
    }
    list_append(&services->questions, &question->node);
    INVARIANTS(question_check(question));
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
            INVARIANTS(question_check(question));
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
    INVARIANTS(list_check(&services->questions));
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

/* Answers at a door that processes of a user hold together: a process of our user gets the door,
 * too. */
static void answer_at_door(int door, int asker)
{
    const struct services_answer answer = {.magic = SERVICES_MAGIC_DOOR};
    const bool ours = local_user(asker) == geteuid();
    (void)!local_send(asker, &answer, sizeof(answer), &door, ours ? 1 : 0);
}

static void answer_as_owner(const struct services *services, int asker)
{
    const struct services_answer answer = {
        .magic = SERVICES_MAGIC_OWNER, .gid = services->self.gid, .slot = services->self.slot};
    (void)!local_send(asker, &answer, sizeof(answer), NULL, 0);
}

static void answer_at(const struct services *services, int listener, bool owner)
{
    int fd;
    for (int i = 0; i < ACCEPTS_MAX && (fd = local_accept_anybody(listener)) >= 0; i++) {
        if (owner) {
            answer_as_owner(services, fd);
        } else {
            answer_at_door(listener, fd);
        }
        descriptor_close(fd);
    }
}

static void answer_all(const struct services *services, const struct service *service)
{
    CHECK(service->services == services);
    for (size_t i = 0; i < COUNT_OF(service->doors); i++) {
        if (service->doors[i] >= 0) {
            answer_at(services, service->doors[i], service->any);
        }
    }
    if (service->own >= 0) {
        answer_at(services, service->own, true);
    }
}

enum reply {
    REPLY_OWNER,
    REPLY_NOBODY,   /* There is no claim of any address. */
    REPLY_NONSENSE, /* Or there is no answer at all. */
    REPLY_VERSION,  /* From another version of nonic: its layout is not ours. */
    REPLY_LATER,    /* It cannot be judged just now. */
};

/* A message that begins like all answers of nonic is an answer, though we cannot read it. */
static enum reply judge_unknown(const struct services_answer *answer, ssize_t count)
{
    const bool named = count >= (ssize_t)sizeof(answer->magic) &&
                       answer->magic >> SERVICES_KIND_BITS == SERVICES_MAGIC_FAMILY;
    return named && answer->magic != SERVICES_MAGIC_OWNER && answer->magic != SERVICES_MAGIC_DOOR
               ? REPLY_VERSION
               : REPLY_NONSENSE;
}

/* An owner is a process of this machine: a process that answers with another address wants to send
 * us to a stranger. */
static enum reply read_answer(int fd, struct service_owner *owner, int flags)
{
    struct services_answer answer;
    const ssize_t count = system_recv(fd, &answer, sizeof(answer), flags | MSG_TRUNC);
    if (count != (ssize_t)sizeof(answer) ||
        (answer.magic != SERVICES_MAGIC_DOOR && answer.magic != SERVICES_MAGIC_OWNER)) {
        return judge_unknown(&answer, count);
    }
    if (answer.magic == SERVICES_MAGIC_DOOR) {
        return REPLY_NOBODY;
    }
    if (answer.slot < LOCAL_NO_SLOT || answer.slot >= SHARE_SLOTS ||
        inet_is_any(answer.gid.bytes) || inet_is_multicast(answer.gid.bytes)) {
        return REPLY_NONSENSE;
    }
    if (!address_is_local(answer.gid.bytes)) {
        return errno != 0 ? REPLY_LATER : REPLY_NONSENSE;
    }
    *owner = (struct service_owner){.gid = answer.gid, .slot = answer.slot};
    return REPLY_OWNER;
}

/* errno 0: there was no answer, but neither an error. */
static bool ask_once(const struct service_name *name, struct service_owner *owner)
{
    const struct timeval patience = {.tv_sec = ASK_SECONDS};
    const int fd = descriptor_own(system_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return false;
    }
    errno = 0;
    const bool answered =
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
        system_connect(fd, (const struct sockaddr *)&name->address, name->bytes) == 0 &&
        read_answer(fd, owner, 0) == REPLY_OWNER;
    descriptor_close(fd);
    return answered;
}

bool services_ask(uint16_t port_space, uint16_t port, struct service_owner *owner)
{
    static const uint8_t any[16];
    const struct service_name name = services_name(SCOPE_ANY_IPV6, port_space, any, port);
    /* An owner that had no memory for its answer hung up, and may have memory by now. */
    for (int tries = 0; tries < LOST_MAX; tries++) {
        if (ask_once(&name, owner)) {
            return true;
        }
        if (errno != 0 && errno != EINTR) {
            break;
        }
    }
    return false;
}

static void take_answer(struct services *services, struct question *question)
{
    CHECK(question->fd >= 0);
    INVARIANTS(question_check(question));
    /* The socket is readable: there is an answer, or the owner is gone. */
    const enum reply reply = read_answer(question->fd, &question->owner, MSG_DONTWAIT);
    if (reply == REPLY_OWNER) {
        settle(services, question, true);
    } else if (reply == REPLY_NOBODY) {
        note_nobody(services, question);
    } else if (reply == REPLY_VERSION) {
        services->other_version = local_peer(question->fd);
        settle(services, question, false);
    } else if (reply == REPLY_LATER) {
        services_let_go(services, &question->fd, true);
        question->retry_at = instant_after(question->put_at, RETRY_NS);
    } else if (question->believed_at.ns == question->asked_at.ns || ++question->lost == LOST_MAX) {
        settle(services, question, false);
    } else {
        services_let_go(services, &question->fd, true);
        question->retry_at = question->asked_at; /* There may be another owner by now. */
    }
}

void services_serve(struct services *services)
{
    struct epoll_event events[16];
    INVARIANTS(list_check(&services->claims));
    INVARIANTS(list_check(&services->questions));
    const int count = system_epoll(services->fd, events, COUNT_OF(events));
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
