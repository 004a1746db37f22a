/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The end of a process that was met is heard of, once for each that met it, however it
 *         ends. A process that lives, stopped or not, and one that was never met, are not said to
 *         be gone.
 * Method  Random meetings, ends and new beginnings of several presences, compared with a table of
 *         meetings; then children that are killed, stopped, or run another program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/presence.h"

#define PARTIES     5
#define STEPS       20000
#define TURNS_MAX   100 /* No more events than this can have happened at once. */
#define PATIENCE_MS 10000
#define NOBODY      65534 /* A user without any rights. */

/* Only this run of the test has these. */
static struct gid gid_of(uint8_t number)
{
    struct gid gid = {{0xfd, 5, number}};
    const pid_t pid = getpid();
    memcpy(gid.bytes + 4, &pid, sizeof(pid));
    return gid;
}

static struct presence *open_presence(const struct gid *gid, uint32_t slot)
{
    struct presence *presence = presence_open(gid, 1, slot);
    assert_non_null(presence);
    return presence;
}

static void serve(struct presence *presence)
{
    struct pollfd waiting = {.fd = presence_fd(presence), .events = POLLIN};
    for (int turns = 0; poll(&waiting, 1, 0) == 1; turns++) {
        assert_true(turns < TURNS_MAX);
        presence_serve(presence);
    }
}

static bool is_gone(const struct presence *presence, const struct gid *gid, uint32_t slot)
{
    struct gid whose;
    uint32_t found;
    const bool gone = presence_gone(presence, &whose, &found);
    assert_true(!gone || (gid_equal(&whose, gid) && found == slot));
    return gone;
}

/* -- A model ------------------------------------------------------------------------------------*/

enum meeting {
    NOT_MET,
    MET,
    GONE
};

/* The first two share an address, and differ by their slots. */
struct party {
    struct gid gid;
    uint32_t slot;
    struct presence *presence; /* NULL: it is not there. */
    enum meeting met[PARTIES];
};

struct model {
    struct prng prng;
    struct party parties[PARTIES];
};

static struct party *draw(struct model *model)
{
    return &model->parties[prng_below(&model->prng, PARTIES)];
}

static void begin(struct party *party)
{
    party->presence = open_presence(&party->gid, party->slot);
    for (int i = 0; i < PARTIES; i++) {
        party->met[i] = NOT_MET;
    }
}

static void end(struct model *model, struct party *party)
{
    presence_close(party->presence);
    party->presence = NULL;
    for (int i = 0; i < PARTIES; i++) {
        enum meeting *met = &model->parties[i].met[party - model->parties];
        *met = *met == MET ? GONE : *met;
    }
}

static void meet(struct model *model, struct party *who, const struct party *whom)
{
    enum meeting *met = &who->met[whom - model->parties];
    presence_meet(who->presence, &whom->gid, whom->slot);
    *met = *met == NOT_MET && whom->presence != NULL ? MET : *met;
}

static void forget(struct model *model, struct party *who, const struct party *whom)
{
    presence_forget(who->presence, &whom->gid, whom->slot);
    who->met[whom - model->parties] = NOT_MET;
}

/* Takes each process that is said to be gone, and checks that no other one is. */
static void compare(struct model *model, struct party *who)
{
    struct gid gid;
    uint32_t slot;
    serve(who->presence);
    while (presence_gone(who->presence, &gid, &slot)) {
        int i = 0;
        while (i < PARTIES &&
               !(gid_equal(&model->parties[i].gid, &gid) && model->parties[i].slot == slot)) {
            i++;
        }
        assert_true(i < PARTIES && who->met[i] == GONE);
        forget(model, who, &model->parties[i]);
    }
    for (int i = 0; i < PARTIES; i++) {
        assert_int_not_equal(who->met[i], GONE);
    }
}

static void step(struct model *model)
{
    struct party *who = draw(model);
    if (who->presence == NULL) {
        begin(who);
        return;
    }
    switch (prng_below(&model->prng, 8)) {
    case 0: end(model, who); break;
    case 1: forget(model, who, draw(model)); break;
    case 2:
    case 3: compare(model, who); break;
    case 4: serve(who->presence); break;
    default: meet(model, who, draw(model)); break;
    }
}

static int descriptors(void)
{
    const int next = dup(0);
    close(next);
    return next;
}

static void test_as_the_model_says(void **state)
{
    (void)state;
    struct model model = {.parties = {{.presence = NULL}}};
    const int before = descriptors();
    prng_init(&model.prng, 1);
    for (uint8_t i = 0; i < PARTIES; i++) {
        model.parties[i].gid = gid_of(i < 2 ? 0 : i);
        model.parties[i].slot = i;
    }
    for (int i = 0; i < STEPS; i++) {
        step(&model);
    }
    for (int i = 0; i < PARTIES; i++) {
        if (model.parties[i].presence != NULL) {
            compare(&model, &model.parties[i]);
        }
    }
    for (int i = 0; i < PARTIES; i++) {
        presence_close(model.parties[i].presence);
    }
    assert_int_equal(descriptors(), before); /* No descriptor was left open. */
}

/* A presence has as many names as it has addresses. */
static void test_each_address_is_a_name(void **state)
{
    (void)state;
    const struct gid gids[] = {gid_of(10), gid_of(11), gid_of(12)};
    const struct gid ours = gid_of(13);
    struct presence *host = presence_open(gids, COUNT_OF(gids), 0);
    struct presence *guest = open_presence(&ours, 0);
    assert_non_null(host);
    for (size_t i = 0; i < COUNT_OF(gids); i++) {
        presence_meet(guest, &gids[i], 0);
    }
    serve(host);
    presence_close(host);
    serve(guest);
    for (size_t i = 0; i < COUNT_OF(gids); i++) {
        struct gid gid;
        uint32_t slot;
        assert_true(presence_gone(guest, &gid, &slot));
        presence_forget(guest, &gid, slot);
    }
    assert_false(is_gone(guest, &ours, 0));
    presence_close(guest);
    presence_close(NULL);
}

/* -- Children -----------------------------------------------------------------------------------*/

enum manner {
    WAITS,      /* It waits until it is ended. */
    EXECUTES,   /* It runs another program when it is told to. */
    HAS_A_CHILD /* The child has copies of its descriptors, which nobody noted. */
};

_Noreturn static void live(const struct gid *gid, enum manner manner, int control)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (presence_open(gid, 1, 0) == NULL) {
        _exit(1);
    }
    if (manner == HAS_A_CHILD && syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0) {
        (void)!read(control, &byte, 1); /* Until the test closes its end. */
        _exit(0);
    }
    (void)!write(control, "", 1);
    if (manner == EXECUTES && read(control, &byte, 1) == 1) {
        execl("/bin/sleep", "sleep", "60", (char *)NULL);
    }
    for (;;) {
        pause();
    }
}

/* The child's process number; *control is our end of the pipe that controls it. */
static pid_t begin_child(const struct gid *gid, enum manner manner, int *control)
{
    int pair[2];
    char byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        live(gid, manner, pair[1]);
    }
    close(pair[1]);
    assert_int_equal(read(pair[0], &byte, 1), 1);
    *control = pair[0];
    return child;
}

static void end_child(pid_t child, int control)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(control);
}

static bool wait_for(const struct presence *presence)
{
    struct pollfd waiting = {.fd = presence_fd(presence), .events = POLLIN};
    return poll(&waiting, 1, PATIENCE_MS) == 1;
}

static void expect_gone(struct presence *presence, const struct gid *gid)
{
    while (!is_gone(presence, gid, 0)) {
        assert_true(wait_for(presence));
        presence_serve(presence);
    }
    assert_true(is_gone(presence, gid, 0)); /* It is gone until it is forgotten. */
    presence_forget(presence, gid, 0);
    assert_false(is_gone(presence, gid, 0));
}

static void test_killed(void **state)
{
    (void)state;
    static const enum manner manners[] = {WAITS, HAS_A_CHILD};
    const struct gid gid = gid_of(20), ours = gid_of(21);
    for (size_t i = 0; i < COUNT_OF(manners); i++) {
        struct presence *presence = open_presence(&ours, 0);
        int control;
        const pid_t child = begin_child(&gid, manners[i], &control);
        presence_meet(presence, &gid, 0);
        serve(presence);
        assert_false(is_gone(presence, &gid, 0));
        kill(child, SIGKILL);
        expect_gone(presence, &gid);
        end_child(child, control);
        presence_close(presence);
    }
}

static void test_runs_another_program(void **state)
{
    (void)state;
    const struct gid gid = gid_of(22), ours = gid_of(23);
    struct presence *presence = open_presence(&ours, 0);
    int control;
    const pid_t child = begin_child(&gid, EXECUTES, &control);
    presence_meet(presence, &gid, 0);
    assert_int_equal(write(control, "", 1), 1);
    expect_gone(presence, &gid);
    assert_int_equal(kill(child, 0), 0); /* The number is still there. */
    end_child(child, control);
    presence_close(presence);
}

static void test_stopped(void **state)
{
    (void)state;
    const struct gid gid = gid_of(24), ours = gid_of(25);
    struct presence *presence = open_presence(&ours, 0);
    int control, status;
    const pid_t child = begin_child(&gid, WAITS, &control);
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    presence_meet(presence, &gid, 0); /* It is stopped and cannot accept, but it lives. */
    serve(presence);
    assert_false(is_gone(presence, &gid, 0));
    end_child(child, control);
    expect_gone(presence, &gid);
    presence_close(presence);
}

/* A process of another user is sent away at once. */
static void test_strangers(void **state)
{
    (void)state;
    int status;
    char byte;
    const struct gid ours = gid_of(26);
    if (geteuid() != 0) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
    struct presence *presence = open_presence(&ours, 0);
    const struct local_name name = local_name("lives/", &ours, 0);
    const pid_t child = fork();
    if (child == 0) {
        const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        const bool called = setuid(NOBODY) == 0 &&
                            connect(fd, (const struct sockaddr *)&name.address, name.bytes) == 0;
        _exit(called && recv(fd, &byte, 1, 0) == 0 ? 0 : 1);
    }
    assert_true(wait_for(presence));
    serve(presence);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    presence_close(presence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_model_says),
        cmocka_unit_test(test_each_address_is_a_name),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_runs_another_program),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_strangers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
