/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    An entry that was taken off a board is settled once no peer can act on it: not while a
 *         window stays open, but once its process is stopped after its copy, or dead. Peers see at
 *         once that a board's process is gone, also if another process still holds its sockets.
 *         Processes whose rings have another layout never share a ring, and are found.
 * Method  Two ports of one process, served by hand, and windows written by the test; children that
 *         are stopped, killed, or execute another program.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/local_socket.h"

#define COPY_BYTES ((size_t)64 << 20)

struct bench {
    struct gid gids[2];
    struct shm_port *a, *b;
    struct shm_link *link; /* From a to b. */
};

static struct shm_port *open_port(const struct gid *gid)
{
    char error[256];
    struct shm_port *port = shm_port_open(gid, LOCAL_NO_SLOT, error, sizeof(error));
    assert_non_null(port);
    return port;
}

static void serve(struct shm_port *port)
{
    struct pollfd wait = {.fd = shm_port_fd(port), .events = POLLIN};
    while (poll(&wait, 1, 0) == 1) {
        shm_port_serve(port);
    }
}

static void serve_both(struct bench *bench)
{
    for (int i = 0; i < 3; i++) {
        serve(bench->a);
        serve(bench->b);
    }
}

static struct shm_link *link_to(struct shm_port *port, const struct gid *gid)
{
    struct link *link = shm_port_link(port, gid, LOCAL_NO_SLOT);
    assert_non_null(link);
    return CONTAINER_OF(link, struct shm_link, link);
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    const uint32_t salt = (uint32_t)getpid();
    for (int i = 0; i < 2; i++) {
        bench->gids[i] = (struct gid){{0xfd, 7, (uint8_t)i}};
        memcpy(bench->gids[i].bytes + 4, &salt, sizeof(salt));
    }
    bench->a = open_port(&bench->gids[0]);
    bench->b = open_port(&bench->gids[1]);
    bench->link = link_to(bench->a, &bench->gids[1]);
    serve_both(bench);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    shm_port_close(bench->a);
    shm_port_close(bench->b);
    free(bench);
    return 0;
}

/* Takes an entry off the board of b. */
static uint64_t withdraw(struct bench *bench)
{
    const struct region region = {.key = 0x1234567};
    shm_port_withdraw_region(bench->b, &region);
    return shm_port_withdrawals(bench->b);
}

static void set_window(struct bench *bench, shm_window window)
{
    atomic_store(&bench->link->ring->window, window);
}

/* -- Windows ------------------------------------------------------------------------------------*/

static void test_windows(void **state)
{
    struct bench *bench = *state;
    assert_true(shm_port_settled(bench->b, withdraw(bench)));
    set_window(bench, 1ull << 32 | 1);
    const uint64_t first = withdraw(bench);
    assert_false(shm_port_settled(bench->b, first));
    assert_int_equal(shm_port_look_closely(bench->b, first), SHM_WAIT_ON);
    /* The window is opened anew: its thread saw the board without the entries that had been
     * withdrawn before. */
    set_window(bench, 2ull << 32 | 1);
    const uint64_t second = withdraw(bench);
    assert_true(shm_port_settled(bench->b, first));
    assert_false(shm_port_settled(bench->b, second));
    set_window(bench, 3ull << 32 | 1);
    assert_true(shm_port_settled(bench->b, second));
    assert_false(shm_port_settled(bench->b, withdraw(bench)));
    set_window(bench, 0);
    assert_true(shm_port_settled(bench->b, withdraw(bench)));
    /* A window that was closed long ago says nothing about one that is open now. */
    set_window(bench, 3ull << 32 | 1);
    assert_false(shm_port_settled(bench->b, withdraw(bench)));
    set_window(bench, 0);
}

static void test_giving_up(void **state)
{
    struct bench *bench = *state;
    set_window(bench, 1ull << 32 | 1);
    const uint64_t withdrawal = withdraw(bench);
    assert_int_equal(shm_port_look_closely(bench->b, withdrawal), SHM_WAIT_ON);
    assert_int_equal(shm_port_give_up(bench->b, withdrawal), getpid());
    assert_int_equal(shm_port_give_up(bench->b, withdrawal), 0); /* The process is named once. */
    assert_int_equal(shm_port_look_closely(bench->b, withdraw(bench)), SHM_WAIT_IN_VAIN);
    set_window(bench, 2ull << 32 | 1);
    assert_int_equal(shm_port_look_closely(bench->b, withdrawal), SHM_WAIT_OVER);
    assert_int_equal(shm_port_look_closely(bench->b, withdraw(bench)), SHM_WAIT_ON);
    set_window(bench, 0);
}

/* Nothing is taken from a ring that makes no sense, but its producer may be inside its window. */
static void test_a_broken_ring_has_a_window(void **state)
{
    struct bench *bench = *state;
    bench->link->ring->slots[0].header_bytes = 255;
    atomic_store(&bench->link->ring->slots[0].sequence, 1);
    set_window(bench, 1ull << 32 | 1);
    assert_null(shm_port_next(bench->b, 10, NULL));
    assert_int_equal(bench->b->counters.rings_broken, 1);
    assert_false(shm_port_settled(bench->b, withdraw(bench)));
    serve_both(bench); /* The producer hears that the ring was given up, and leaves. */
    assert_true(bench->link->link.lost);
    assert_int_equal(shm_port_look_closely(bench->b, withdraw(bench)), SHM_WAIT_OVER);
    assert_null(shm_port_next(bench->b, 10, NULL));
    assert_int_equal(bench->b->inbound_count, 0);
}

/* -- Children -----------------------------------------------------------------------------------*/

static char state_of(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    const size_t bytes = file == NULL ? 0 : fread(text, 1, sizeof(text) - 1, file);
    if (file != NULL) {
        fclose(file);
    }
    const char *name_end = bytes == 0 ? NULL : strrchr(text, ')');
    return name_end == NULL ? '?' : name_end[2];
}

static void stop(pid_t pid)
{
    int status;
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(state_of(pid), 'T');
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* In a child: a producer of b's, whose window is open, copies for ever or does nothing. */
static void reach(struct bench *bench, bool copies, int ready)
{
    struct gid gid = bench->gids[0];
    gid.bytes[3] = 1;
    struct shm_link *link = link_to(open_port(&gid), &bench->gids[1]);
    atomic_store(&link->ring->window, 1ull << 32 | (uint32_t)getpid());
    char *memory = mmap(NULL, 2 * COPY_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    const struct iovec local = {memory, COPY_BYTES}, remote = {memory + COPY_BYTES, COPY_BYTES};
    if (write(ready, "", 1) != 1) {
        _exit(1);
    }
    while (copies) {
        process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    }
    for (;;) {
        pause();
    }
}

static pid_t begin_to_reach(struct bench *bench, bool copies)
{
    int ready[2];
    char word;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        reach(bench, copies, ready[1]);
    }
    assert_int_equal(read(ready[0], &word, 1), 1);
    close(ready[0]);
    close(ready[1]);
    serve(bench->b);
    assert_int_equal(bench->b->inbound_count, 2);
    return pid;
}

static void test_stopped_behind_the_copy(void **state)
{
    struct bench *bench = *state;
    const pid_t pid = begin_to_reach(bench, true);
    const uint64_t withdrawal = withdraw(bench);
    enum shm_wait wait = SHM_WAIT_ON;
    for (int i = 0; i < 100 && wait != SHM_WAIT_OVER; i++) {
        kill(pid, SIGCONT);
        usleep(2000);
        assert_int_equal(shm_port_look_closely(bench->b, withdrawal), SHM_WAIT_ON);
        stop(pid); /* This may hit the time between two copies. */
        wait = shm_port_look_closely(bench->b, withdrawal);
    }
    assert_int_equal(wait, SHM_WAIT_OVER);
    end(pid);
}

static void test_stopped_elsewhere(void **state)
{
    struct bench *bench = *state;
    const pid_t pid = begin_to_reach(bench, false);
    stop(pid);
    const uint64_t withdrawal = withdraw(bench);
    assert_int_equal(shm_port_look_closely(bench->b, withdrawal), SHM_WAIT_ON);
    assert_int_equal(shm_port_give_up(bench->b, withdrawal), pid);
    end(pid);
    assert_int_equal(shm_port_look_closely(bench->b, withdrawal), SHM_WAIT_OVER);
}

/* -- Owners -------------------------------------------------------------------------------------*/

static void *own(void *argument)
{
    struct bench *bench = argument;
    shm_port_own(bench->b);
    const bool owned = shm_board_is_owned(bench->link->board);
    shm_port_disown(bench->b);
    return owned ? bench : NULL;
}

static void test_an_owner_comes_and_goes(void **state)
{
    struct bench *bench = *state;
    pthread_t thread;
    void *result;
    assert_non_null(bench->link->board);
    assert_false(shm_board_is_owned(bench->link->board));
    assert_int_equal(pthread_create(&thread, NULL, own, bench), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, bench);
    assert_false(shm_board_is_owned(bench->link->board));
}

/* In a child: a process that can be reached, with a child of its own that holds its descriptors. It
 * executes another program or ends. */
static void be_reached(struct bench *bench, int control, int life, bool executes)
{
    struct gid gid = bench->gids[1];
    gid.bytes[3] = executes ? 3 : 2;
    struct shm_port *port = open_port(&gid);
    char word;
    shm_port_own(port);
    for (int i = 0; i < 2; i++) {
        if (i == 1 && syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0) {
            (void)!read(life, &word, 1); /* Until the test ends it. */
            _exit(0);
        }
        if (write(control, "", 1) != 1 || read(control, &word, 1) != 1) {
            _exit(1);
        }
        serve(port);
    }
    if (executes) {
        execl("/bin/sleep", "sleep", "60", (char *)NULL);
    }
    _exit(0);
}

static void lose_owner(struct bench *bench, bool executes)
{
    int control[2], life[2];
    char word;
    assert_int_equal(pipe2(life, O_CLOEXEC), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        close(control[0]);
        close(life[1]);
        be_reached(bench, control[1], life[0], executes);
    }
    close(control[1]);
    close(life[0]);
    struct gid gid = bench->gids[1];
    gid.bytes[3] = executes ? 3 : 2;
    assert_int_equal(read(control[0], &word, 1), 1);
    struct shm_link *link = link_to(bench->a, &gid);
    assert_int_equal(write(control[0], "", 1), 1);
    assert_int_equal(read(control[0], &word, 1), 1);
    serve(bench->a);
    assert_non_null(link->board);
    assert_int_equal(link->pid, pid);
    assert_true(shm_board_is_owned(link->board));
    assert_int_equal(write(control[0], "", 1), 1);
    if (executes) {
        char path[64], name[64] = "";
        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        while (strcmp(name, "sleep\n") != 0) {
            FILE *file = fopen(path, "r");
            assert_non_null(file);
            (void)!fgets(name, sizeof(name), file);
            fclose(file);
        }
        assert_int_equal(kill(pid, 0), 0); /* The number is still there. */
    } else {
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    assert_false(shm_board_is_owned(link->board));
    serve(bench->a);
    assert_false(link->link.lost); /* Only the board shows that the process is gone. */
    if (executes) {
        end(pid);
    }
    close(life[1]);
    assert_int_equal(read(control[0], &word, 1), 0); /* The grandchild is gone. */
    close(control[0]);
}

static void test_owners_that_end(void **state)
{
    lose_owner(*state, false);
    lose_owner(*state, true);
}

/* -- Layouts ------------------------------------------------------------------------------------*/

/* The hello of builds whose layout had no number yet, byte for byte. */
struct first_hello {
    uint64_t magic;
    struct gid source;
};

static void expect_sent_away(struct bench *bench, const void *hello, size_t bytes)
{
    struct local_name name = shm_name(SHM_LAYOUT, &bench->gids[1], LOCAL_NO_SLOT);
    pid_t pid;
    const int caller = local_dial(&name, &pid);
    assert_true(caller >= 0);
    const int ring = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(ring, sizeof(struct shm_ring)), 0);
    assert_int_equal(fcntl(ring, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    assert_true(local_send(caller, hello, bytes, &ring, 1));
    const uint32_t before = bench->b->inbound_count;
    serve(bench->b);
    assert_int_equal(bench->b->inbound_count, before);
    char word;
    assert_int_equal(recv(caller, &word, 1, MSG_DONTWAIT), 0); /* The connection was closed. */
    close(ring);
    close(caller);
}

static void test_hellos_of_others(void **state)
{
    struct bench *bench = *state;
    const struct first_hello first = {.magic = 0x43494e4f4e33u, .source = bench->gids[0]};
    expect_sent_away(bench, &first, sizeof(first));
    struct shm_hello hello = {.mark = shm_mark_of(sizeof(hello)), .source = bench->gids[0]};
    expect_sent_away(bench, &hello, sizeof(hello)); /* Its ring has no mark. */
    hello.mark.layout++;
    expect_sent_away(bench, &hello, sizeof(hello));
    expect_sent_away(bench, &hello, sizeof(hello) - 1);
    expect_sent_away(bench, &hello, 1);
}

/* Processes of builds with other layouts cannot be reached, but they are found. */
static void test_other_layouts(void **state)
{
    struct bench *bench = *state;
    static const uint32_t layouts[] = {3, SHM_LAYOUT + 1, 1000};
    for (int slot = LOCAL_NO_SLOT; slot < 2; slot++) {
        const struct gid gid = {{0xfd, 9, (uint8_t)getpid(), (uint8_t)(getpid() >> 8)}};
        assert_int_equal(shm_find_other_layout(&gid, slot), 0);
        for (size_t i = 0; i < COUNT_OF(layouts); i++) {
            const struct local_name name = shm_name(layouts[i], &gid, slot);
            const int listener = local_listen(&name, 10);
            assert_true(listener >= 0);
            assert_null(shm_port_link(bench->a, &gid, slot));
            assert_int_equal(shm_find_other_layout(&gid, slot), getpid());
            assert_int_equal(shm_find_other_layout(&gid, slot + 2), 0);
            /* It may find another process than this one. */
            assert_true(shm_find_any_other_layout() > 0);
            close(listener);
        }
    }
    /* That layout is ours. */
    assert_int_equal(shm_find_other_layout(&bench->gids[1], LOCAL_NO_SLOT), 0);
}

/* -- Both ways ----------------------------------------------------------------------------------*/

/* UDP packets are a stranger's if the peer has a ring to us and does not say that it uses UDP as
 * well. */
static void test_answered_by_ring(void **state)
{
    struct bench *bench = *state;
    /* There is a ring in one direction only. */
    assert_false(shm_link_is_answered_by_ring(bench->a, &bench->link->link));
    struct shm_link *back = link_to(bench->b, &bench->gids[0]);
    /* It has called, and its hello counts although we have not served it yet. */
    assert_true(shm_link_is_answered_by_ring(bench->a, &bench->link->link));
    serve_both(bench);
    assert_true(shm_link_is_answered_by_ring(bench->a, &bench->link->link));
    shm_link_tell_of_udp(&back->link);
    assert_false(shm_link_is_answered_by_ring(bench->a, &bench->link->link));
    assert_true(shm_link_is_answered_by_ring(bench->b, &back->link));
    /* A ring that is made anew says so from the beginning. */
    shm_link_lose(bench->b, back);
    assert_true(shm_link_revive(bench->b, &back->link));
    serve_both(bench);
    serve_both(bench);
    assert_false(shm_link_is_answered_by_ring(bench->a, &bench->link->link));
    /* Without a process number, the process that is there now may be another one. */
    shm_link_lose(bench->b, back);
    back->pid = 0;
    assert_false(shm_link_revive(bench->b, &back->link));
}

/* -- Boards -------------------------------------------------------------------------------------*/

static void test_domains_are_numbers(void **state)
{
    struct bench *bench = *state;
    struct pd domains[2] = {{0}, {0}};
    uint64_t seen[3];
    for (uint32_t i = 0; i < 3; i++) {
        const struct region region = {.kind = REGION_MEMORY,
                                      .pd = &domains[i % 2],
                                      .key = 0x100 + i,
                                      .bytes = 1,
                                      .access = ACCESS_REMOTE_READ};
        shm_port_publish_region(bench->b, &region);
        for (uint32_t k = 0; k < SHM_BOARD_REGIONS; k++) {
            const struct shm_board_region *entry = &bench->link->board->regions[k];
            seen[i] = atomic_load(&entry->key) == region.key ? entry->domain : seen[i];
        }
        assert_in_range(seen[i], 1, 2);
    }
    assert_true(seen[0] == seen[2] && seen[0] != seen[1]);
}

/* There is no signal, but a reason. */
static void test_a_limit_on_files(void **state)
{
    (void)state;
    struct rlimit before;
    char error[256] = "";
    const struct gid gid = {{0xfd, 8, (uint8_t)getpid(), (uint8_t)(getpid() >> 8)}};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {1 << 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_null(shm_port_open(&gid, LOCAL_NO_SLOT, error, sizeof(error)));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(error, "ulimit -f"));
}

#define WINDOW_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WINDOW_TEST(test_windows),
        WINDOW_TEST(test_giving_up),
        WINDOW_TEST(test_a_broken_ring_has_a_window),
        WINDOW_TEST(test_stopped_behind_the_copy),
        WINDOW_TEST(test_stopped_elsewhere),
        WINDOW_TEST(test_an_owner_comes_and_goes),
        WINDOW_TEST(test_owners_that_end),
        WINDOW_TEST(test_hellos_of_others),
        WINDOW_TEST(test_other_layouts),
        WINDOW_TEST(test_answered_by_ring),
        WINDOW_TEST(test_domains_are_numbers),
        cmocka_unit_test(test_a_limit_on_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
