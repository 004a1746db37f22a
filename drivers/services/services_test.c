/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A port has one owner among all processes, which each process finds. Once the owner has
 *         let the port go, or has ended in any way, none is found any more.
 * Method  Processes made by fork, each with services of its own, on ports that no other program has
 *         (the port space is the test's). Time is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/services/services_internal.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/user.h"

#define PORT        7000
#define SECOND      UINT64_C(1000000000)
#define PATIENCE_MS 10000
#define NOBODY      65534 /* A user without any rights. */

/* A port space that no program has, because tests may run side by side. */
static uint16_t space;

static const uint8_t any4[16] = {[10] = 0xff, [11] = 0xff};
static const uint8_t any6[16];
static const uint8_t here4[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
static const uint8_t there4[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2};
static const uint8_t here6[16] = {[15] = 1};

static struct gid gid_of(uint8_t number)
{
    return (struct gid){.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = number}};
}

static struct services *open_services(uint8_t number)
{
    struct services *services = calloc(1, sizeof(*services));
    const struct service_owner self = {.gid = gid_of(number)};
    assert_true(services_open(services, &self));
    return services;
}

static void close_services(struct services *services)
{
    services_close(services);
    free(services);
}

static int claim(struct services *services, const uint8_t address[16], uint16_t port,
                 struct service **service)
{
    uint16_t chosen;
    *service = NULL;
    const int failure = services_claim(services, space, address, false, port, &chosen, service);
    assert_true(failure != 0 || chosen == port);
    return failure != 0 ? failure : services_offer(services, *service);
}

/* Serves all of `parties` until the question of the first one is answered. Returns the number of
 * the owner; 0: there is none. */
static int find(struct services *const *parties, size_t count, const uint8_t address[16],
                uint16_t port)
{
    int context = 0;
    void *whose = NULL;
    bool found = false;
    struct service_owner owner;
    if (services_find(parties[0], space, address, port, (struct instant){1}, &context) ==
        SERVICE_NOBODY) {
        return 0;
    }
    for (int ms = 0; !services_next_answer(parties[0], &whose, &found, &owner); ms++) {
        struct pollfd wait = {.fd = parties[0]->fd, .events = POLLIN};
        poll(&wait, 1, 1);
        for (size_t i = 0; i < count; i++) {
            services_serve(parties[i]);
        }
        assert_true(ms < PATIENCE_MS);
    }
    assert_ptr_equal(whose, &context);
    return found ? owner.gid.bytes[15] : 0;
}

static int find_alone(struct services *services, const uint8_t address[16], uint16_t port)
{
    return find(&services, 1, address, port);
}

/* -- One process --------------------------------------------------------------------------------*/

static void test_claim_find_release(void **state)
{
    (void)state;
    struct services *both[] = {open_services(1), open_services(2)};
    struct service *service;
    assert_int_equal(find(both, 2, here4, PORT), 0);
    assert_int_equal(claim(both[1], here4, PORT, &service), 0);
    assert_int_equal(find(both, 2, here4, PORT), 2);
    assert_int_equal(find(both, 2, there4, PORT), 0);
    assert_int_equal(find(both, 2, here4, PORT + 1), 0);
    assert_int_equal(find_alone(both[1], here4, PORT), 2); /* It finds itself. */
    services_release(service);
    assert_int_equal(find(both, 2, here4, PORT), 0);
    assert_int_equal(claim(both[0], here4, PORT, &service), 0);
    assert_int_equal(find(both, 2, here4, PORT), 1);
    close_services(both[0]); /* This lets all ports go. */
    assert_int_equal(find_alone(both[1], here4, PORT), 0);
    close_services(both[1]);
}

/* Claims of one port by two processes are allowed as with TCP, and refused with the errors of
 * Linux' rdma_cm. */
static void test_conflicts(void **state)
{
    (void)state;
    static const struct {
        const uint8_t *first, *second;
        bool first_ipv6_only, second_ipv6_only;
        int result;
    } cases[] = {
        {here4, here4, false, false, EADDRINUSE},
        {here4, there4, false, false, 0},
        {any4, any4, false, false, EADDRNOTAVAIL},
        {any4, here4, false, false, EADDRNOTAVAIL},
        {here4, any4, false, false, EADDRNOTAVAIL},
        {any6, any6, false, false, EADDRNOTAVAIL},
        {any6, any4, false, false, EADDRNOTAVAIL},
        {any4, any6, false, false, EADDRNOTAVAIL},
        {any6, any4, true, false, 0},
        {any4, any6, false, true, 0},
        {any6, any6, true, false, EADDRNOTAVAIL},
        {any6, any6, false, true, EADDRNOTAVAIL},
        {any6, here4, false, false, EADDRNOTAVAIL},
        {here4, any6, false, false, EADDRNOTAVAIL},
        {any6, here4, true, false, 0},
        {here4, any6, false, true, 0},
        {here6, any4, false, false, 0},
        {any4, here6, false, false, 0},
        {here6, any6, false, true, EADDRNOTAVAIL},
        {any6, here6, true, false, EADDRNOTAVAIL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct services *both[] = {open_services(1), open_services(2)};
        struct service *services[2] = {NULL, NULL};
        uint16_t chosen;
        assert_int_equal(services_claim(both[0], space, cases[i].first, cases[i].first_ipv6_only,
                                        PORT, &chosen, &services[0]),
                         0);
        const int result = services_claim(both[1], space, cases[i].second,
                                          cases[i].second_ipv6_only, PORT, &chosen, &services[1]);
        if (result != cases[i].result) {
            fail_msg("case %zu: %d", i, result);
        }
        /* A claim that failed leaves nothing behind. */
        services_release(services[0]);
        if (result != 0) {
            assert_int_equal(services_claim(both[1], space, cases[i].second,
                                            cases[i].second_ipv6_only, PORT, &chosen, &services[1]),
                             0);
        }
        services_release(services[1]);
        close_services(both[0]);
        close_services(both[1]);
    }
}

/* Several owners of one port: the owner of the address is found before the owner of any address,
 * and the owner of any IPv4 address is never found for IPv6. */
static void test_who_is_found(void **state)
{
    (void)state;
    struct services *three[] = {open_services(1), open_services(2), open_services(3)};
    struct service *service;
    uint16_t chosen;
    assert_int_equal(claim(three[1], any4, PORT, &service), 0);
    assert_int_equal(find(three, 3, here4, PORT), 2);
    assert_int_equal(find(three, 3, here6, PORT), 0);
    assert_int_equal(services_claim(three[2], space, any6, true, PORT, &chosen, &service), 0);
    assert_int_equal(find(three, 3, here6, PORT), 0); /* It is bound, but not yet offered. */
    assert_int_equal(services_offer(three[2], service), 0);
    assert_int_equal(find(three, 3, here4, PORT), 2);
    assert_int_equal(find(three, 3, here6, PORT), 3);
    assert_int_equal(claim(three[2], any6, PORT + 1, &service), 0);
    assert_int_equal(find(three, 3, here4, PORT + 1), 3);
    assert_int_equal(find(three, 3, here6, PORT + 1), 3);
    for (int i = 0; i < 3; i++) {
        close_services(three[i]);
    }
}

static void test_free_ports(void **state)
{
    (void)state;
    struct services *services = open_services(1);
    uint16_t ports[50];
    struct service *service;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(services_claim(services, space, any4, false, 0, &ports[i], &service), 0);
        assert_in_range(ports[i], 49152, 65535);
        for (int k = 0; k < i; k++) {
            assert_int_not_equal(ports[i], ports[k]);
        }
    }
    close_services(services);
}

/* A process that asks a little early waits for the owner to listen, though not for long. */
static void test_patience(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct services *services = open_services(1);
        struct service *service;
        uint16_t chosen;
        int context;
        void *whose;
        bool found = !late;
        struct service_owner owner;
        assert_int_equal(services_claim(services, space, here4, false, PORT, &chosen, &service), 0);
        assert_int_equal(
            services_await(services, space, here4, PORT, (struct instant){1}, &context),
            SERVICE_ASKED);
        services_serve(services); /* The process that has bound the port says that it is not
                                     served. */
        services_serve(services);
        const struct instant retry = services_deadline(services);
        assert_in_range(retry.ns, 2, SECOND / 10);
        services_on_time(services, retry);
        assert_false(services_next_answer(services, &whose, &found, &owner));
        if (late) {
            services_serve(services);
            services_serve(services);
            services_on_time(services, (struct instant){SECOND});
            services_serve(services);
            services_serve(services);
        } else {
            services_serve(services);
            services_serve(services);
            assert_int_equal(services_offer(services, service), 0);
            services_on_time(services, services_deadline(services));
            services_serve(services);
            services_serve(services);
        }
        assert_true(services_next_answer(services, &whose, &found, &owner));
        assert_int_equal(found, !late);
        close_services(services);
    }
}

/* A question is not wanted any more while it is asked, or when it is answered. */
static void test_forget(void **state)
{
    (void)state;
    struct services *both[] = {open_services(1), open_services(2)};
    struct service *service;
    int a, b;
    void *whose;
    bool found;
    struct service_owner owner;
    assert_int_equal(claim(both[1], here4, PORT, &service), 0);
    assert_int_equal(services_find(both[0], space, here4, PORT, (struct instant){1}, &a),
                     SERVICE_ASKED);
    assert_int_equal(services_find(both[0], space, here4, PORT, (struct instant){1}, &b),
                     SERVICE_ASKED);
    services_forget(both[0], &a);
    services_serve(both[1]);
    services_serve(both[0]);
    assert_true(services_next_answer(both[0], &whose, &found, &owner));
    assert_ptr_equal(whose, &b);
    assert_true(found);
    assert_false(services_next_answer(both[0], &whose, &found, &owner));
    assert_int_equal(services_find(both[0], space, here4, PORT, (struct instant){1}, &a),
                     SERVICE_ASKED);
    services_serve(both[1]);
    services_serve(both[0]);
    services_forget(both[0], &a);
    assert_false(services_next_answer(both[0], &whose, &found, &owner));
    assert_true(services_deadline(both[0]).ns == UINT64_MAX);
    close_services(both[0]);
    close_services(both[1]);
}

/* There are more questions at once than one look takes in. */
static void test_many_questions(void **state)
{
    (void)state;
    struct services *both[] = {open_services(1), open_services(2)};
    struct service *service;
    int contexts[100];
    assert_int_equal(claim(both[1], any4, PORT, &service), 0);
    for (int i = 0; i < 100; i++) {
        contexts[i] = 0;
        assert_int_equal(
            services_find(both[0], space, here4, PORT, (struct instant){1}, &contexts[i]),
            SERVICE_ASKED);
    }
    for (int i = 0; i < 20; i++) {
        services_serve(both[1]);
        services_serve(both[0]);
    }
    void *whose;
    bool found;
    struct service_owner owner;
    while (services_next_answer(both[0], &whose, &found, &owner)) {
        assert_true(found);
        (*(int *)whose)++;
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(contexts[i], 1);
    }
    close_services(both[0]);
    close_services(both[1]);
}

/* Without descriptors a question is asked later, and a claim says why it fails. */
static void test_no_descriptors(void **state)
{
    (void)state;
    struct services *both[] = {open_services(1), open_services(2)};
    struct service *service, *other;
    struct rlimit before, none = {0, 0};
    int context;
    assert_int_equal(claim(both[1], here4, PORT, &service), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const int failure = claim(both[0], there4, PORT, &other);
    const enum service_answer answer =
        services_find(both[0], space, here4, PORT, (struct instant){1}, &context);
    const struct instant retry = services_deadline(both[0]);
    services_on_time(both[0], retry);
    const struct instant again = services_deadline(both[0]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(failure, EMFILE);
    assert_int_equal(answer, SERVICE_ASKED);
    assert_in_range(retry.ns, 2, SECOND);
    assert_in_range(again.ns, retry.ns + 1, 2 * SECOND);
    services_on_time(both[0], again);
    services_serve(both[1]);
    services_serve(both[0]);
    void *whose;
    bool found = false;
    struct service_owner owner;
    assert_true(services_next_answer(both[0], &whose, &found, &owner));
    assert_true(found);
    close_services(both[0]);
    close_services(both[1]);
}

/* -- Several processes --------------------------------------------------------------------------*/

struct child {
    pid_t pid;
    int ready, go; /* Pipes: the child says when it is ready, and ends when ours is closed. */
};

/* Answers all processes that ask at `listener`, as the owner of a port would. */
static void mislead(int listener, const struct gid *gid)
{
    struct services_answer answer = {.magic = SERVICES_MAGIC_OWNER, .gid = *gid, .slot = -1};
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        (void)!send(fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
        close(fd);
    }
}

static int hold_name(const struct service_name *name)
{
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&name->address, name->bytes), 0);
    assert_int_equal(listen(fd, 100), 0);
    return fd;
}

/* Like start_owner, for that user: misleads all processes that ask at the name. */
static struct child start_misleader(const struct service_name *name, const struct gid *gid,
                                    uid_t user)
{
    int ready[2], go[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ready[0]);
        close(go[1]);
        assert_int_equal(setuid(user), 0);
        const int listener = hold_name(name);
        const char result = 0;
        (void)!write(ready[1], &result, 1);
        struct pollfd waits[] = {{.fd = go[0], .events = POLLIN},
                                 {.fd = listener, .events = POLLIN}};
        while (poll(waits, 2, -1) >= 0 && waits[0].revents == 0) {
            mislead(listener, gid);
        }
        _exit(0);
    }
    close(ready[1]);
    close(go[0]);
    char result = 1;
    assert_int_equal(read(ready[0], &result, 1), 1);
    return (struct child){pid, ready[0], go[1]};
}

/* A process of another user, which root can become. */
static struct child start_stranger(const struct service_name *name, const struct gid *gid)
{
    return start_misleader(name, gid, NOBODY);
}

/* A process of `user` (0: ours) that owns PORT at the address and serves it, if it `serves`. */
static struct services *holder;

static struct child start_owner_of(const uint8_t address[16], uid_t user, uint8_t number,
                                   bool serves)
{
    int ready[2], go[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ready[0]);
        close(go[1]);
        assert_int_equal(user == 0 ? 0 : setuid(user), 0);
        struct services *services = open_services(number);
        struct service *service;
        const char result = (char)claim(services, address, PORT, &service);
        (void)!write(ready[1], &result, 1);
        struct pollfd waits[] = {{.fd = go[0], .events = POLLIN},
                                 {.fd = serves ? services->fd : -1, .events = POLLIN}};
        while (poll(waits, 2, -1) >= 0 && waits[0].revents == 0) {
            services_serve(services);
        }
        _exit(0);
    }
    close(ready[1]);
    close(go[0]);
    char result = 0;
    struct pollfd waits[] = {{.fd = ready[0], .events = POLLIN},
                             {.fd = holder == NULL ? -1 : holder->fd, .events = POLLIN}};
    while (poll(waits, 2, PATIENCE_MS) > 0 && waits[0].revents == 0) {
        services_serve(holder); /* The child may want the door that we hold. */
    }
    assert_int_equal(read(ready[0], &result, 1), 1);
    assert_int_equal(result, 0);
    return (struct child){pid, ready[0], go[1]};
}

static struct child start_owner(uint8_t number, bool serves)
{
    return start_owner_of(any4, 0, number, serves);
}

static void reap(struct child *child)
{
    int status;
    close(child->go);
    close(child->ready);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
}

/* The kernel cannot tell who is at the other end, for want of memory. */
uid_t __real_local_user(int socket);
uid_t __wrap_local_user(int socket);

static bool nobody_told;

uid_t __wrap_local_user(int socket)
{
    errno = nobody_told ? ENOBUFS : errno;
    return nobody_told ? USER_UNKNOWN : __real_local_user(socket);
}

/* That is no reason to call a port taken, or to believe that nobody has it. */
static void test_user_not_told(void **state)
{
    (void)state;
    struct services *services = open_services(1);
    struct service *service;
    struct child owner = start_owner_of(here4, 0, 9, true);
    nobody_told = true;
    assert_int_equal(claim(services, there4, PORT, &service), ENOBUFS);
    nobody_told = false;
    assert_int_equal(claim(services, there4, PORT, &service), 0);
    int context = 0;
    struct service_owner found;
    void *whose;
    bool is_there = false;
    nobody_told = true;
    assert_int_equal(services_find(services, space, here4, PORT, (struct instant){1}, &context),
                     SERVICE_ASKED);
    assert_false(services_next_answer(services, &whose, &is_there, &found));
    nobody_told = false;
    for (int ms = 1; !services_next_answer(services, &whose, &is_there, &found); ms++) {
        struct pollfd wait = {.fd = services->fd, .events = POLLIN};
        poll(&wait, 1, 1);
        services_on_time(services, (struct instant){UINT64_C(1000000) * (uint64_t)ms});
        services_serve(services);
        assert_true(ms < PATIENCE_MS);
    }
    assert_true(is_there);
    assert_int_equal(found.gid.bytes[15], 9);
    reap(&owner);
    close_services(services);
}

static void test_owner_in_another_process(void **state)
{
    (void)state;
    struct services *services = open_services(1);
    struct service *service;
    struct child owner = start_owner(9, true);
    assert_int_equal(find_alone(services, here4, PORT), 9);
    assert_int_equal(claim(services, any4, PORT, &service), EADDRNOTAVAIL);
    assert_int_equal(claim(services, here4, PORT, &service), EADDRNOTAVAIL);
    reap(&owner);
    assert_int_equal(find_alone(services, here4, PORT), 0);
    assert_int_equal(claim(services, any4, PORT, &service), 0);
    close_services(services);
}

/* Processes of one user hold one port at an address each, in whichever order they come and go; as
 * long as one does, nobody has the port at all addresses. */
static void test_owners_of_one_address_each(void **state)
{
    (void)state;
    struct services *services = open_services(1);
    struct service *there, *any;
    struct child owner = start_owner_of(here4, 0, 9, true);
    assert_int_equal(claim(services, any4, PORT, &any), EADDRNOTAVAIL);
    assert_int_equal(claim(services, here4, PORT, &there), EADDRINUSE);
    assert_int_equal(claim(services, there4, PORT, &there), 0);
    assert_int_equal(find_alone(services, here4, PORT), 9);
    assert_int_equal(find_alone(services, there4, PORT), 1);
    reap(&owner);
    assert_int_equal(find_alone(services, here4, PORT), 0);
    assert_int_equal(find_alone(services, there4, PORT), 1);
    /* A door that was handed on is handed on once more. */
    holder = services;
    struct child later = start_owner_of(here4, 0, 8, true);
    holder = NULL;
    assert_int_equal(find_alone(services, here4, PORT), 8);
    services_release(there);
    assert_int_equal(claim(services, any4, PORT, &any), EADDRNOTAVAIL);
    reap(&later);
    assert_int_equal(claim(services, any4, PORT, &any), 0);
    close_services(services);
}

/* A process that holds a port at its address and is stopped cannot give the door to others: they
 * are told soon that the port is in use. */
static void test_holder_stopped(void **state)
{
    (void)state;
    struct services *services = open_services(1);
    struct service *there;
    struct child owner = start_owner_of(here4, 0, 9, true);
    int status;
    kill(owner.pid, SIGSTOP);
    assert_int_equal(waitpid(owner.pid, &status, WUNTRACED), owner.pid);
    assert_int_equal(claim(services, there4, PORT, &there), EADDRINUSE);
    kill(owner.pid, SIGCONT);
    assert_int_equal(claim(services, there4, PORT, &there), 0);
    reap(&owner);
    close_services(services);
}

/* -- A holder that gives something else --------------------------------------------------------*/

void __real_descriptor_close(int fd);
void __wrap_descriptor_close(int fd);

static int closed_twice;

void __wrap_descriptor_close(int fd)
{
    closed_twice += fd >= 0 && fcntl(fd, F_GETFD) < 0;
    __real_descriptor_close(fd);
}

/* In a child of fork, kernel/process.c closes all descriptors of the parent first. The child closes
 * each once: a file that it has opened in between may have got the number. */
static void test_child_closes_once(void **state)
{
    (void)state;
    struct services *services = open_services(1);
    struct service *service;
    int status;
    assert_int_equal(claim(services, here4, PORT, &service), 0);
    closed_twice = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(closed_twice);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close_services(services);
}

/* Starts a process that holds the door, and gives another descriptor to all that ask. */
static struct child start_impostor(void)
{
    int ready[2], go[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct services_answer answer = {.magic = SERVICES_MAGIC_DOOR};
        const struct service_name name = services_name(SCOPE_ANY_IPV4, space, here4, PORT);
        close(go[1]);
        const int listener = hold_name(&name);
        (void)!write(ready[1], &byte, 1);
        struct pollfd waits[] = {{.fd = go[0], .events = POLLIN},
                                 {.fd = listener, .events = POLLIN}};
        while (poll(waits, 2, -1) >= 0 && waits[0].revents == 0) {
            const int asker = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            (void)!local_send(asker, &answer, sizeof(answer), &go[0], 1);
            close(asker);
        }
        _exit(0);
    }
    close(go[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    return (struct child){pid, ready[0], go[1]};
}

/* A descriptor that came instead of the door is closed once: another thread may get its number at
 * once. */
static void test_another_descriptor_for_a_door(void **state)
{
    (void)state;
    struct services *services = open_services(1);
    struct service *service;
    struct child impostor = start_impostor();
    closed_twice = 0;
    assert_int_equal(claim(services, here4, PORT, &service), EADDRINUSE);
    assert_int_equal(closed_twice, 0);
    reap(&impostor);
    assert_int_equal(claim(services, here4, PORT, &service), 0);
    close_services(services);
}

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
}

/* Another user binds a name that is more special than a claim of ours, and answers all questions:
 * no process is led there, since the port is ours. */
static void test_stranger_at_a_more_special_name(void **state)
{
    (void)state;
    need_root();
    struct services *services = open_services(1);
    struct service *service;
    const struct service_name special = services_name(SCOPE_ADDRESS, space, here4, PORT);
    const struct gid gid = gid_of(66);
    assert_int_equal(claim(services, any4, PORT, &service), 0);
    struct child stranger = start_stranger(&special, &gid);
    assert_int_equal(find_alone(services, here4, PORT), 1);
    services_release(service);
    assert_int_equal(find_alone(services, here4, PORT), 0);
    reap(&stranger);
    close_services(services);
}

/* A port of another user is that user's: we cannot have it at any address, and what its owner says
 * is believed, unless it sends us to another machine. */
static void test_port_of_another_user(void **state)
{
    (void)state;
    need_root();
    const uint8_t *addresses[] = {any4, here4};
    for (int i = 0; i < 2; i++) {
        struct services *services = open_services(1);
        struct service *service;
        struct child owner = start_owner_of(addresses[i], NOBODY, 9, true);
        assert_int_equal(find_alone(services, here4, PORT), 9);
        assert_int_equal(find_alone(services, there4, PORT), i == 0 ? 9 : 0);
        assert_int_equal(claim(services, any4, PORT, &service), EADDRNOTAVAIL);
        assert_int_equal(claim(services, there4, PORT, &service), EADDRINUSE);
        assert_int_equal(claim(services, here4, PORT, &service), EADDRINUSE);
        reap(&owner);
        close_services(services);
    }
}

/* Builds before doors claimed one address by its name alone. Such a claim is believed if it is of
 * our user and nobody answers at the door: another user could take our clients by it. */
static void test_claim_without_a_door(void **state)
{
    (void)state;
    struct services *services = open_services(1);
    struct service *service;
    const struct service_name special = services_name(SCOPE_ADDRESS, space, here4, PORT);
    const struct gid gid = gid_of(66);
    struct child owner = start_misleader(&special, &gid, geteuid());
    assert_int_equal(find_alone(services, here4, PORT), 66);
    assert_int_equal(find_alone(services, there4, PORT), 0);
    assert_int_equal(claim(services, here4, PORT, &service), EADDRINUSE);
    reap(&owner);
    assert_int_equal(find_alone(services, here4, PORT), 0);
    if (geteuid() == 0) {
        owner = start_misleader(&special, &gid, NOBODY);
        assert_int_equal(find_alone(services, here4, PORT), 0);
        reap(&owner);
    }
    close_services(services);
}

/* An answer of another version is no answer, but its process is noted, for people. */
static void test_answer_of_another_version(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
        bool noted;
    } answers[] = {
        {"9opcinon", 8, true},
        {"9opcinon, and much more than any answer that this build knows has", 65, true},
        {"sopcinon", 8, false},
        {"9opcino", 7, false},
        {"anything", 8, false},
    };
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct services *services = open_services(1);
        const struct service_name door = services_name(SCOPE_ANY_IPV4, space, any4, PORT);
        const int listener = hold_name(&door);
        int context = 0;
        assert_int_equal(services_find(services, space, here4, PORT, (struct instant){1}, &context),
                         SERVICE_ASKED);
        const int fd = accept4(listener, NULL, NULL, 0);
        assert_int_equal(send(fd, answers[i].bytes, answers[i].count, MSG_NOSIGNAL),
                         answers[i].count);
        services_serve(services);
        void *whose;
        bool found = true;
        struct service_owner owner;
        assert_true(services_next_answer(services, &whose, &found, &owner));
        assert_false(found);
        assert_int_equal(services->other_version, answers[i].noted ? getpid() : 0);
        close(fd);
        close(listener);
        close_services(services);
    }
}

static void test_answers_that_lead_elsewhere(void **state)
{
    (void)state;
    need_root();
    static const struct gid gids[] = {
        {{[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1}}, /* TEST-NET-1 */
        {{[10] = 0xff, [11] = 0xff, [12] = 224, [15] = 1}},
        {{[10] = 0xff, [11] = 0xff}},
        {{0}},
        {{0x20, 0x01, 0x0d, 0xb8, [15] = 1}},
    };
    for (size_t i = 0; i < COUNT_OF(gids); i++) {
        struct services *services = open_services(1);
        const struct service_name door = services_name(SCOPE_ANY_IPV4, space, here4, PORT);
        struct child stranger = start_stranger(&door, &gids[i]);
        assert_int_equal(find_alone(services, here4, PORT), 0);
        reap(&stranger);
        close_services(services);
    }
}

/* The owner is killed before it answers: nobody serves the port, and we know it at once. */
static void test_owner_dies_while_it_is_asked(void **state)
{
    (void)state;
    struct services *services = open_services(1);
    struct child owner = start_owner(9, false);
    int context;
    void *whose;
    bool found = true;
    struct service_owner gid;
    assert_int_equal(services_find(services, space, here4, PORT, (struct instant){1}, &context),
                     SERVICE_ASKED);
    services_serve(services);
    assert_false(services_next_answer(services, &whose, &found, &gid));
    kill(owner.pid, SIGKILL);
    reap(&owner);
    struct pollfd wait = {.fd = services->fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    services_serve(services);
    assert_true(services_next_answer(services, &whose, &found, &gid));
    assert_false(found);
    close_services(services);
}

/* The owner is stopped: we wait for it, but not for ever; if it goes on in time, it answers. */
static void test_owner_stopped(void **state)
{
    (void)state;
    struct services *services = open_services(1);
    struct child owner = start_owner(9, true);
    int context;
    void *whose;
    bool found = true;
    struct service_owner gid;
    kill(owner.pid, SIGSTOP);
    int status;
    assert_int_equal(waitpid(owner.pid, &status, WUNTRACED), owner.pid);
    assert_int_equal(services_find(services, space, here4, PORT, (struct instant){1}, &context),
                     SERVICE_ASKED);
    const struct instant deadline = services_deadline(services);
    assert_in_range(deadline.ns, 5 * SECOND, 200 * SECOND);
    services_on_time(services, (struct instant){deadline.ns - 1});
    services_serve(services);
    assert_false(services_next_answer(services, &whose, &found, &gid));
    services_on_time(services, deadline);
    assert_true(services_next_answer(services, &whose, &found, &gid));
    assert_false(found);
    assert_int_equal(services_find(services, space, here4, PORT, (struct instant){1}, &context),
                     SERVICE_ASKED);
    kill(owner.pid, SIGCONT);
    struct pollfd wait = {.fd = services->fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    services_serve(services);
    assert_true(services_next_answer(services, &whose, &found, &gid));
    assert_true(found);
    assert_int_equal(gid.gid.bytes[15], 9);
    reap(&owner);
    close_services(services);
}

/* A child that lives on holds none of its parent's ports, and its copies of descriptors bring no
 * questions about ports that the parent has let go. */
static void test_child_of_an_owner(void **state)
{
    (void)state;
    struct services *services = open_services(1), *other = open_services(2);
    struct service *kept, *gone;
    int go[2], born[2], context;
    char byte = 0;
    void *whose;
    bool found;
    struct service_owner owner;
    assert_int_equal(claim(services, here4, PORT, &kept), 0);
    assert_int_equal(claim(services, here4, PORT + 1, &gone), 0);
    /* A question is under way when the child is born. */
    assert_int_equal(services_find(services, space, here4, PORT, (struct instant){1}, &context),
                     SERVICE_ASKED);
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(born), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        (void)!write(born[1], &byte, 1);
        (void)!read(go[0], &byte, 1);
        _exit(0);
    }
    close(go[0]);
    assert_int_equal(read(born[0], &byte, 1), 1);
    services_serve(services);
    services_serve(services);
    assert_true(services_next_answer(services, &whose, &found, &owner));
    assert_true(found);
    services_release(gone);
    struct services *both[] = {other, services};
    assert_int_equal(find(both, 2, here4, PORT + 1), 0);
    assert_int_equal(find(both, 2, here4, PORT), 1);
    struct pollfd idle = {.fd = services->fd, .events = POLLIN};
    assert_int_equal(poll(&idle, 1, 0), 0);
    assert_int_equal(claim(other, here4, PORT + 1, &gone), 0);
    close_services(services);
    assert_int_equal(find_alone(other, here4, PORT), 0);
    assert_int_equal(claim(other, here4, PORT, &kept), 0);
    close(go[1]);
    close(born[0]);
    close(born[1]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close_services(other);
}

/* An owner lets the port go before it has answered. */
static void test_release_while_it_is_asked(void **state)
{
    (void)state;
    struct services *both[] = {open_services(1), open_services(2)};
    struct service *service;
    assert_int_equal(claim(both[1], here4, PORT, &service), 0);
    int context;
    void *whose;
    bool found = true;
    struct service_owner owner;
    assert_int_equal(services_find(both[0], space, here4, PORT, (struct instant){1}, &context),
                     SERVICE_ASKED);
    services_release(service);
    services_serve(both[0]);
    assert_true(services_next_answer(both[0], &whose, &found, &owner));
    assert_false(found);
    close_services(both[0]);
    close_services(both[1]);
}

int main(void)
{
    if (pthread_atfork(NULL, NULL, descriptors_close_all) != 0) {
        return 1;
    }
    space = (uint16_t)(0x8000 | (getpid() & 0x7fff));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claim_find_release),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_who_is_found),
        cmocka_unit_test(test_free_ports),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_forget),
        cmocka_unit_test(test_many_questions),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_user_not_told),
        cmocka_unit_test(test_owner_in_another_process),
        cmocka_unit_test(test_owners_of_one_address_each),
        cmocka_unit_test(test_holder_stopped),
        cmocka_unit_test(test_another_descriptor_for_a_door),
        cmocka_unit_test(test_stranger_at_a_more_special_name),
        cmocka_unit_test(test_port_of_another_user),
        cmocka_unit_test(test_claim_without_a_door),
        cmocka_unit_test(test_answer_of_another_version),
        cmocka_unit_test(test_answers_that_lead_elsewhere),
        cmocka_unit_test(test_owner_dies_while_it_is_asked),
        cmocka_unit_test(test_owner_stopped),
        cmocka_unit_test(test_child_of_an_owner),
        cmocka_unit_test(test_release_while_it_is_asked),
        cmocka_unit_test(test_child_closes_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
