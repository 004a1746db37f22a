/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Atomic moves: the result of each kind, and many of them at once with the program's own atomics on
 * the same number. Flushes: the kernel's state of pages of a file before and after.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/system/guard.h"
#include "drivers/system/memory.h"

#define TURNS 200000

static struct sigaction guards_handler;

static struct nic_move atomic_on(uint64_t *number, enum nic_atomic atomic, uint64_t compare,
                                 uint64_t swap_or_add)
{
    return (struct nic_move){
        .kind = NIC_MOVE_ATOMIC,
        .segment_count = 1,
        .segments = {{.address = (uintptr_t)number, .bytes = 8}},
        .atomic = atomic,
        .compare = compare,
        .swap_or_add = swap_or_add,
    };
}

static void check_atomic(enum nic_atomic atomic, uint64_t before, uint64_t compare,
                         uint64_t swap_or_add, uint64_t after)
{
    uint64_t numbers[3] = {11, before, 13};
    struct nic_move move = atomic_on(&numbers[1], atomic, compare, swap_or_add);
    assert_int_equal(memory_move(&move), NIC_MOVED);
    assert_int_equal(numbers[1], after);
    assert_int_equal(move.original, before);
    assert_int_equal(numbers[0], 11);
    assert_int_equal(numbers[2], 13);
}

static void test_each_kind(void **state)
{
    (void)state;
    check_atomic(NIC_COMPARE_SWAP, 5, 5, 9, 9);
    check_atomic(NIC_COMPARE_SWAP, 5, 6, 9, 5);
    check_atomic(NIC_COMPARE_SWAP, 0, 0, UINT64_MAX, UINT64_MAX);
    check_atomic(NIC_FETCH_ADD, 0, 0, 7, 7);
    check_atomic(NIC_FETCH_ADD, 5, 0, 7, 12);
    check_atomic(NIC_FETCH_ADD, UINT64_MAX, 0, 2, 1);
    check_atomic(NIC_STORE, 0, 0, 3, 3);
    check_atomic(NIC_STORE, 0x0123456789abcdef, 0, 3, 3);
    check_atomic(NIC_STORE, 3, 0, 3, 3);
}

static void *add_ones(void *number)
{
    for (uint32_t i = 0; i < TURNS; i++) {
        __atomic_fetch_add((uint64_t *)number, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* No change of the program is lost between the NIC's read and its write. */
static void test_beside_the_program(void **state)
{
    (void)state;
    uint64_t number = 0, least = 0;
    pthread_t program;
    assert_int_equal(pthread_create(&program, NULL, add_ones, &number), 0);
    for (uint32_t i = 0; i < TURNS; i++) {
        struct nic_move move = atomic_on(&number, NIC_FETCH_ADD, 0, UINT64_C(1) << 32);
        assert_int_equal(memory_move(&move), NIC_MOVED);
        assert_int_equal(move.original >> 32, i);
        assert_true((uint32_t)move.original >= least);
        least = (uint32_t)move.original;
    }
    pthread_join(program, NULL);
    assert_int_equal(number, (uint64_t)TURNS << 32 | TURNS);
}

static void test_memory_that_is_gone(void **state)
{
    (void)state;
    sigaction(SIGSEGV, &guards_handler, NULL); /* cmocka puts its own in front. */
    uint64_t *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(gone != MAP_FAILED);
    for (uint32_t atomic = NIC_COMPARE_SWAP; atomic <= NIC_STORE; atomic++) {
        struct nic_move move = atomic_on(gone, (enum nic_atomic)atomic, 0, 1);
        assert_int_equal(memory_move(&move), NIC_MOVE_FAULTED);
    }
    munmap(gone, 4096);
}

/* -- Flushes ------------------------------------------------------------------------------------*/

enum {
    PAGE = 4096,
    PAGES = 4,
};

/* Kilobytes of the mapping at `address` that are not on their medium yet. */
static unsigned dirty_kb(const void *address)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    assert_non_null(maps);
    char line[512];
    bool here = false;
    unsigned sum = 0, kb;
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            here = from == (unsigned long)(uintptr_t)address;
        } else if (here && (sscanf(line, "Shared_Dirty: %u kB", &kb) == 1 ||
                            sscanf(line, "Private_Dirty: %u kB", &kb) == 1)) {
            sum += kb;
        }
    }
    fclose(maps);
    return sum;
}

static struct nic_move flush_of(const void *at, uint64_t bytes, bool persistent)
{
    return (struct nic_move){
        .kind = NIC_MOVE_FLUSH,
        .flush = {.range = {(uintptr_t)at, bytes}, .persistent = persistent},
    };
}

static uint8_t *map_file(int *file)
{
    char path[] = "memory_test.XXXXXX";
    *file = mkstemp(path);
    assert_true(*file >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ftruncate(*file, PAGES * PAGE), 0);
    uint8_t *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

/* Only memory that is to be persistent goes to its file, in whole pages; the kernel may write
 * more. */
static void test_flushes(void **state)
{
    (void)state;
    int file;
    uint8_t *memory = map_file(&file);
    memset(memory, 0x5a, PAGES * PAGE);
    assert_int_equal(fsync(file), 0);
    if (dirty_kb(memory) != 0) {
        skip(); /* A file system without a medium, such as tmpfs. */
    }
    for (uint32_t i = 0; i < PAGES; i++) {
        memory[i * PAGE] = 1;
    }
    const unsigned all = PAGES * PAGE / 1024;
    assert_int_equal(dirty_kb(memory), all);

    struct nic_move move = flush_of(memory, PAGES * PAGE, false);
    assert_int_equal(memory_move(&move), NIC_MOVED);
    move = flush_of(memory + PAGE, 0, true);
    assert_int_equal(memory_move(&move), NIC_MOVED);
    assert_int_equal(dirty_kb(memory), all);
    move = flush_of(memory + PAGE + 100, 1, true);
    assert_int_equal(memory_move(&move), NIC_MOVED);
    assert_true(dirty_kb(memory) <= all - 4);
    move = flush_of(memory + 2 * PAGE - 1, 2, true); /* The end of one and the begin of another. */
    assert_int_equal(memory_move(&move), NIC_MOVED);
    assert_true(dirty_kb(memory) <= all - 8);
    move = flush_of(memory, PAGES * PAGE, true);
    assert_int_equal(memory_move(&move), NIC_MOVED);
    assert_int_equal(dirty_kb(memory), 0);

    assert_int_equal(munmap(memory, PAGES * PAGE), 0);
    assert_int_equal(memory_move(&move), NIC_MOVE_FAULTED);
    close(file);
}

int main(void)
{
    guard_install();
    sigaction(SIGSEGV, NULL, &guards_handler);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind),
        cmocka_unit_test(test_beside_the_program),
        cmocka_unit_test(test_memory_that_is_gone),
        cmocka_unit_test(test_flushes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
