/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_extent_test - two ports of this process: one maps what the other one lends, finds nothing
 * there that was taken back, and believes nothing that makes no sense.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/mapping.h"

#define PAGE   UINT64_C(4096)
#define REMOTE (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ)

struct bench {
    struct shm_port *peer, *owner;
    struct shm_link *link;
    struct pd pd;
    uint32_t keys;
};

static struct shm_port *open_port(uint8_t number)
{
    char error[256];
    const pid_t pid = getpid();
    struct gid gid = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 99, 9, number}};
    memcpy(gid.bytes + 4, &pid, sizeof(pid));
    struct shm_port *port = shm_port_open(&gid, LOCAL_NO_SLOT, error, sizeof(error));
    assert_non_null(port);
    shm_port_set_lending(port, true);
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
        serve(bench->owner);
        serve(bench->peer);
    }
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->peer = open_port(1);
    bench->owner = open_port(2);
    struct link *link = shm_port_link(bench->peer, &bench->owner->self, LOCAL_NO_SLOT);
    assert_non_null(link);
    bench->link = CONTAINER_OF(link, struct shm_link, link);
    serve_both(bench);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    shm_port_close(bench->peer);
    shm_port_close(bench->owner);
    free(bench);
    return 0;
}

static uint8_t *make(uint64_t pages, int flags)
{
    uint8_t *memory =
        mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    memset(memory, 1, pages * PAGE);
    return memory;
}

static uint8_t *make_file(uint64_t pages, int *fd)
{
    *fd = memfd_create("memory", MFD_CLOEXEC);
    assert_int_equal(ftruncate(*fd, (off_t)(pages * PAGE)), 0);
    uint8_t *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static struct region publish(struct bench *bench, const uint8_t *memory, uint64_t bytes)
{
    const struct region region = {.pd = &bench->pd,
                                  .key = ++bench->keys << 8,
                                  .start = 0x1000,
                                  .bytes = bytes,
                                  .memory = (uintptr_t)memory,
                                  .access = REMOTE};
    shm_port_publish_region(bench->owner, &region);
    assert_non_null(shm_board_region(bench->owner->board, region.key));
    return region;
}

/* The board's answer to a peer that may reach `offset` of the region. */
static struct shm_grant grant_of(const struct bench *bench, const struct region *region,
                                 uint64_t offset)
{
    const struct shm_board_region *entry = shm_board_region(bench->owner->board, region->key);
    return (struct shm_grant){
        .memory = region->memory + offset, .extent = entry->extent, .bytes = region->bytes};
}

static uint8_t *view_of(const struct bench *bench, const struct region *region, uint64_t offset,
                        uint32_t bytes)
{
    const struct shm_grant grant = grant_of(bench, region, offset);
    return shm_view_at(bench->link, &grant, bytes, true);
}

/* Accesses of 8 bytes through the kernel, until the peer asks. Returns how many there were. */
static uint32_t charge(struct bench *bench, const struct region *region)
{
    const struct pollfd wait = {.fd = shm_port_fd(bench->owner), .events = POLLIN};
    const struct shm_grant grant = grant_of(bench, region, 0);
    for (uint32_t count = 1;; count++) {
        struct pollfd asked = wait;
        shm_view_charge(bench->link, &grant, region->key, 8, 1);
        if (poll(&asked, 1, 0) == 1) {
            return count;
        }
        assert_true(count < 1000000);
    }
}

static void lend(struct bench *bench, const struct region *region)
{
    shm_port_lend(bench->owner, region->key, true);
    (void)charge(bench, region);
    serve_both(bench);
}

static bool is_shared(const void *memory)
{
    struct mapping mapping;
    assert_true(mapping_find((uintptr_t)memory, &mapping));
    return mapping.shared;
}

static bool take_back_idle(struct bench *bench)
{
    return shm_port_take_back(bench->owner, 0, UINT64_MAX, true);
}

/* -- Memory that is lent ------------------------------------------------------------------------*/

/* A mapping is asked for when accesses have cost as much; in vain, it is twice as dear. */
static void test_the_bill(void **state)
{
    struct bench *bench = *state;
    uint8_t *memory = make(4, MAP_PRIVATE);
    const struct region small = publish(bench, memory, 8);
    const uint32_t first = charge(bench, &small);
    assert_true(first > 10 && first < 100);
    serve_both(bench);
    assert_int_equal(shm_port_wanted(bench->owner), small.key);
    const uint32_t second = charge(bench, &small);
    assert_in_range(second, 2 * first - 2, 2 * first + 2);
    serve_both(bench);
    const struct region large = publish(bench, memory, 4 * PAGE);
    assert_true(charge(bench, &large) > first);
    munmap(memory, 4 * PAGE);
}

/* Memory that is shared needs nobody to wait for. */
static void test_shared_memory(void **state)
{
    struct bench *bench = *state;
    int fd;
    uint8_t *memory = make_file(4, &fd);
    const struct region region = publish(bench, memory + 100, 2 * PAGE);
    assert_null(view_of(bench, &region, 0, 8));
    (void)charge(bench, &region);
    serve_both(bench);
    assert_int_equal(shm_port_wanted(bench->owner), 0);
    uint8_t *view = view_of(bench, &region, 8, 8);
    assert_non_null(view);
    assert_ptr_not_equal(view, memory + 108);
    memcpy(view, "received", 8);
    assert_memory_equal(memory + 108, "received", 8);
    /* Another region of that memory is at hand as soon as it is asked for. */
    const struct region other = publish(bench, memory, 8);
    (void)charge(bench, &other);
    serve_both(bench);
    assert_ptr_equal(view_of(bench, &other, 0, 8), view - 108);
    assert_int_equal(shm_port_extents(bench->owner)->shared, 1);
    /* With the last region the extent goes, at the peer's, too. */
    const struct shm_grant grant = grant_of(bench, &other, 0);
    shm_port_withdraw_region(bench->owner, &region);
    serve_both(bench);
    assert_non_null(shm_view_at(bench->link, &grant, 8, true));
    shm_port_withdraw_region(bench->owner, &other);
    serve_both(bench);
    assert_null(shm_view_at(bench->link, &grant, 8, true));
    assert_int_equal(bench->owner->extent_count, 0);
    close(fd);
    munmap(memory, 4 * PAGE);
}

static void test_private_memory(void **state)
{
    struct bench *bench = *state;
    uint8_t *memory = make(4, MAP_PRIVATE);
    const struct region region = publish(bench, memory + PAGE + 50, PAGE);
    (void)charge(bench, &region);
    serve_both(bench);
    assert_false(is_shared(memory + PAGE));
    lend(bench, &region);
    uint8_t *view = view_of(bench, &region, 0, (uint32_t)PAGE);
    assert_non_null(view);
    assert_true(is_shared(memory + PAGE) && !is_shared(memory) && !is_shared(memory + 3 * PAGE));
    view[0] = 9;
    assert_int_equal(memory[PAGE + 50], 9);
    assert_null(view_of(bench, &region, 1, (uint32_t)(2 * PAGE))); /* Beyond its end. */
    /* It is the region's as long as there is one. */
    assert_true(take_back_idle(bench));
    assert_true(is_shared(memory + PAGE));
    shm_port_withdraw_region(bench->owner, &region);
    assert_true(take_back_idle(bench));
    assert_false(is_shared(memory + PAGE) || shm_port_has_lent(bench->owner));
    view[1] = 77; /* A peer that is late, or lies, changes nothing. */
    assert_int_equal(memory[PAGE + 51], 1);
    serve_both(bench);
    assert_int_equal(shm_port_extents(bench->owner)->returned, 1);
    munmap(memory, 4 * PAGE);
}

/* The program may end it earlier: its regions go on through the kernel. */
static void test_taken_back_early(void **state)
{
    struct bench *bench = *state;
    uint8_t *memory = make(4, MAP_PRIVATE);
    const struct region region = publish(bench, memory, 8), same = publish(bench, memory + 8, 8);
    lend(bench, &region);
    assert_non_null(view_of(bench, &region, 0, 8));
    assert_true(shm_port_take_back(bench->owner, (uintptr_t)memory + PAGE, PAGE, false));
    assert_true(is_shared(memory));
    assert_true(shm_port_take_back(bench->owner, (uintptr_t)memory + 100, 1, false));
    assert_false(is_shared(memory));
    assert_int_equal(grant_of(bench, &region, 0).extent, 0);
    assert_int_equal(grant_of(bench, &same, 0).extent, 0);
    assert_null(view_of(bench, &region, 0, 8));
    lend(bench, &region); /* And once more. */
    assert_non_null(view_of(bench, &region, 0, 8));
    munmap(memory, 4 * PAGE);
}

/* Regions in the same pages come along. Pages that are exchanged already are exchanged once more
 * with those of a region that lies across their end. */
static void test_neighbours(void **state)
{
    struct bench *bench = *state;
    uint8_t *memory = make(4, MAP_PRIVATE);
    const struct region a = publish(bench, memory + 8, 8), b = publish(bench, memory + 100, 8),
                        across = publish(bench, memory + PAGE - 4, 8);
    lend(bench, &a);
    const uint64_t first = grant_of(bench, &a, 0).extent;
    assert_int_equal(grant_of(bench, &b, 0).extent, first);
    assert_int_equal(grant_of(bench, &across, 0).extent, 0);
    shm_port_lend(bench->owner, across.key, true);
    assert_int_not_equal(grant_of(bench, &across, 0).extent, first);
    assert_int_equal(grant_of(bench, &a, 0).extent, grant_of(bench, &across, 0).extent);
    assert_int_equal(grant_of(bench, &b, 0).extent, grant_of(bench, &across, 0).extent);
    assert_true(is_shared(memory) && is_shared(memory + PAGE));
    shm_port_withdraw_region(bench->owner, &a);
    shm_port_withdraw_region(bench->owner, &across);
    assert_true(take_back_idle(bench) && is_shared(memory));
    shm_port_withdraw_region(bench->owner, &b);
    assert_true(take_back_idle(bench) && !is_shared(memory) && !is_shared(memory + PAGE));
    munmap(memory, 4 * PAGE);
}

/* A peer that is in the memory keeps it as it is, and finds its region there afterwards. */
static void test_a_peer_is_inside(void **state)
{
    struct bench *bench = *state;
    uint8_t *memory = make(1, MAP_PRIVATE);
    const struct region region = publish(bench, memory, 8);
    atomic_store(&bench->link->ring->window, UINT64_C(1) << 32 | 1);
    shm_port_lend(bench->owner, region.key, true);
    assert_int_equal(shm_port_extents(bench->owner)->refused[SHM_REFUSED_BUSY], 1);
    assert_false(is_shared(memory));
    (void)grant_of(bench, &region, 0);
    atomic_store(&bench->link->ring->window, 0);
    lend(bench, &region);
    assert_true(is_shared(memory));
    atomic_store(&bench->link->ring->window, UINT64_C(2) << 32 | 1);
    assert_false(shm_port_take_back(bench->owner, 0, UINT64_MAX, false));
    assert_true(is_shared(memory) && grant_of(bench, &region, 0).extent != 0);
    atomic_store(&bench->link->ring->window, 0);
    assert_true(shm_port_take_back(bench->owner, 0, UINT64_MAX, false));
    assert_false(is_shared(memory));
    munmap(memory, PAGE);
}

static void test_what_is_refused(void **state)
{
    struct bench *bench = *state;
    const uint64_t *refused = shm_port_extents(bench->owner)->refused;
    uint8_t *memory = make(1, MAP_PRIVATE), *nameless = make(1, MAP_SHARED);
    const struct region region = publish(bench, memory, 8);
    shm_port_lend(bench->owner, region.key, false);
    assert_int_equal(refused[SHM_REFUSED_THREADS], 1);
    assert_false(is_shared(memory));
    if (geteuid() != 0) { /* Root finds its file. */
        const struct region without = publish(bench, nameless, 8);
        shm_port_lend(bench->owner, without.key, true);
        assert_int_equal(refused[SHM_REFUSED_KIND], 1);
    }
    shm_port_set_lending(bench->owner, false);
    shm_port_lend(bench->owner, region.key, true);
    assert_false(is_shared(memory));
    shm_port_lend(bench->owner, 0, true);
    shm_port_lend(bench->owner, 0x999900, true);
    munmap(memory, PAGE);
    munmap(nameless, PAGE);
}

/* -- Messages without sense ---------------------------------------------------------------------*/

static void ask(struct bench *bench, uint32_t key, size_t bytes)
{
    struct shm_ask message = {.mark = shm_mark_of(sizeof(message)), .key = key};
    assert_true(local_send(bench->link->socket, &message, bytes, NULL, 0));
    serve_both(bench);
}

static void test_asking_for_nothing(void **state)
{
    struct bench *bench = *state;
    int fd;
    uint8_t *memory = make_file(1, &fd);
    const struct region region = publish(bench, memory, 8);
    ask(bench, 0, sizeof(struct shm_ask));
    ask(bench, 0x777700, sizeof(struct shm_ask));
    ask(bench, region.key, sizeof(struct shm_ask) - 1);
    assert_int_equal(shm_port_extents(bench->owner)->offered, 0);
    ask(bench, region.key, sizeof(struct shm_ask));
    ask(bench, region.key, sizeof(struct shm_ask));
    assert_int_equal(shm_port_extents(bench->owner)->offered, 2);
    assert_int_equal(bench->owner->extent_count, 1);
    close(fd);
    munmap(memory, PAGE);
}

static void offer(struct bench *bench, uint64_t extent, uint64_t start, uint64_t bytes,
                  uint64_t offset, int fd)
{
    const struct shm_offer message = {.mark = shm_mark_of(sizeof(message)),
                                      .extent = extent,
                                      .start = start,
                                      .bytes = bytes,
                                      .offset = offset};
    assert_int_equal(bench->owner->inbound_count, 1);
    assert_true(
        local_send(bench->owner->inbound[0]->socket, &message, sizeof(message), &fd, fd >= 0));
    serve_both(bench);
}

static bool knows(const struct bench *bench, uint64_t extent)
{
    const struct shm_grant grant = {.memory = 0x10000, .extent = extent, .bytes = 8};
    return shm_view_at(bench->link, &grant, 8, false) != NULL;
}

static void test_offers_of_nothing(void **state)
{
    struct bench *bench = *state;
    int fd, pipes[2];
    uint8_t *memory = make_file(4, &fd);
    const struct region region = publish(bench, memory, 8);
    offer(bench, 1, 0x10000, PAGE, 0, fd); /* Nobody has asked. */
    assert_false(knows(bench, 1));
    (void)charge(bench, &region);
    assert_int_equal(pipe(pipes), 0);
    offer(bench, 2, 0x10000, PAGE, 0, -1);
    offer(bench, 3, 0x10000, PAGE, 0, pipes[0]);
    offer(bench, 4, 0x10000, 5 * PAGE, 0, fd);
    offer(bench, 5, 0x10000, PAGE, 4 * PAGE, fd);
    offer(bench, 6, 0x10000, PAGE, UINT64_MAX - PAGE + 1, fd);
    offer(bench, 7, 0x10000, 100, 0, fd);
    offer(bench, 8, 0x10001, PAGE, 0, fd);
    offer(bench, 9, 0x10000, PAGE, 8, fd);
    offer(bench, 10, 0x10000, UINT64_MAX & ~(PAGE - 1), 0, fd);
    offer(bench, 0, 0x10000, PAGE, 0, fd);
    for (uint64_t extent = 0; extent <= 10; extent++) {
        assert_false(knows(bench, extent));
    }
    offer(bench, 11, 0x10000, PAGE, 0, fd);
    offer(bench, 11, 0x20000, PAGE, 0, fd); /* Known already. */
    assert_true(knows(bench, 11));
    /* The oldest makes room. */
    for (uint64_t extent = 12; extent < 12 + 16; extent++) {
        offer(bench, extent, 0x10000, PAGE, 0, fd);
        assert_true(knows(bench, extent));
    }
    assert_false(knows(bench, 11));
    offer(bench, 27, 0, 0, 0, -1);
    assert_false(knows(bench, 27));
    close(pipes[0]);
    close(pipes[1]);
    close(fd);
    munmap(memory, 4 * PAGE);
}

/* A peer maps for reading what it gets for reading. */
static void test_a_file_for_reading(void **state)
{
    struct bench *bench = *state;
    char path[] = "/dev/shm/nonic-extent-XXXXXX";
    const int fd = mkostemp(path, O_CLOEXEC), reader = open(path, O_RDONLY | O_CLOEXEC);
    unlink(path);
    assert_true(fd >= 0 && reader >= 0 && ftruncate(fd, (off_t)PAGE) == 0);
    uint8_t *memory = make(1, MAP_PRIVATE);
    const struct region region = publish(bench, memory, 8);
    (void)charge(bench, &region);
    offer(bench, 5, 0x10000, PAGE, 0, reader);
    const struct shm_grant grant = {.memory = 0x10000, .extent = 5, .bytes = 8};
    assert_non_null(shm_view_at(bench->link, &grant, 8, false));
    assert_null(shm_view_at(bench->link, &grant, 8, true));
    close(fd);
    close(reader);
    munmap(memory, PAGE);
}

#define EXTENT_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXTENT_TEST(test_the_bill),          EXTENT_TEST(test_shared_memory),
        EXTENT_TEST(test_private_memory),    EXTENT_TEST(test_taken_back_early),
        EXTENT_TEST(test_neighbours),        EXTENT_TEST(test_a_peer_is_inside),
        EXTENT_TEST(test_what_is_refused),   EXTENT_TEST(test_asking_for_nothing),
        EXTENT_TEST(test_offers_of_nothing), EXTENT_TEST(test_a_file_for_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
