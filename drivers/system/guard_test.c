/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Copies of all lengths around each change of instructions, at odd addresses, are compared with
 * memcpy; and each of them again with a page missing at the end of its source or target. Sums are
 * compared with those of bytes that differ a little.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "drivers/system/guard.h"

#define PAGE 4096u
#define ROOM (2 * PAGE)
/* Around GUARD_STRING_BYTES, which only x86-64 has. */
#define LEAST (2048u - 70)
#define MOST  (2048u + 70)

static struct sigaction guards_handler;

/* For each test, cmocka puts a handler of its own in front of ours. */
static void take_faults(void)
{
    sigaction(SIGSEGV, &guards_handler, NULL);
}

/* Makes memory that ends at a page that is not there. */
static uint8_t *room_make(void)
{
    uint8_t *room =
        mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(room != MAP_FAILED);
    assert_int_equal(mprotect(room + ROOM, PAGE, PROT_NONE), 0);
    return room;
}

static void fill(uint8_t *bytes, uint32_t count, uint32_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
    }
}

/* The source ends where its room ends, so that no byte too many is read. */
static void check_copy(uint8_t *from_room, uint8_t *to_room, uint32_t bytes, uint32_t offset)
{
    static uint8_t wanted[ROOM];
    const uint8_t *from = from_room + ROOM - bytes;
    fill(to_room, ROOM, bytes);
    memcpy(wanted, to_room, ROOM);
    memcpy(wanted + offset, from, bytes);
    assert_true(guard_copy(to_room + offset, from, bytes));
    assert_memory_equal(to_room, wanted, ROOM);
}

/* The last bytes are not there: bytes behind the copy stay as they were, and no byte is
 * invented. */
static void check_fault(uint8_t *from_room, uint8_t *to_room, uint32_t bytes, uint32_t missing)
{
    static uint8_t before[ROOM];
    const uint8_t *from = from_room + ROOM - (bytes - missing);
    fill(to_room, ROOM, bytes);
    memcpy(before, to_room, ROOM);
    assert_false(guard_copy(to_room, from, bytes));
    uint32_t copied = 0;
    while (copied < bytes - missing && to_room[copied] == from[copied]) {
        copied++;
    }
    assert_memory_equal(to_room + copied, before + copied, ROOM - copied);

    uint8_t *to = to_room + ROOM - (bytes - missing);
    memcpy(before, to_room, ROOM);
    assert_false(guard_copy(to, from_room, bytes));
    assert_memory_equal(to_room, before, ROOM - (bytes - missing));
}

static void check_all(bool fast_strings)
{
    take_faults();
    guard_fast_strings = fast_strings;
    uint8_t *from = room_make(), *to = room_make();
    fill(from, ROOM, 7);
    for (uint32_t bytes = 0; bytes <= MOST; bytes = bytes == 200 ? LEAST : bytes + 1) {
        for (uint32_t offset = 0; offset < 20; offset += 3) {
            check_copy(from, to, bytes, offset);
        }
        for (uint32_t missing = 1; missing <= bytes && missing < 130; missing += 9) {
            check_fault(from, to, bytes, missing);
        }
    }
    munmap(from, ROOM + PAGE);
    munmap(to, ROOM + PAGE);
}

static void test_without_fast_strings(void **state)
{
    (void)state;
    check_all(false);
}

/* Where the processor has no fast string instructions, the copies are slower, but right. */
static void test_with_fast_strings(void **state)
{
    (void)state;
    check_all(true);
}

static void test_words_that_are_not_there(void **state)
{
    (void)state;
    take_faults();
    uint8_t *room = room_make();
    uint64_t *gone = (uint64_t *)(void *)(room + ROOM), value = 5;
    assert_true(guard_touch(room + ROOM - 1));
    assert_false(guard_touch(room + ROOM));
    assert_false(guard_compare_swap(gone, &value, 6));
    assert_int_equal(value, 5);
    munmap(room, ROOM + PAGE);
}

static uint32_t sum_of(const uint8_t *from, uint32_t bytes)
{
    uint32_t sum = 0;
    assert_true(guard_sum(from, bytes, &sum));
    return sum;
}

/* One bit that differs is seen wherever it is, and so are two highest bits of words a block apart,
 * which a multiplication by itself would leave where they are. */
static void test_sums(void **state)
{
    (void)state;
    take_faults();
    uint8_t *room = room_make();
    for (uint32_t bytes = 1; bytes < 150; bytes++) {
        uint8_t *from = room + ROOM - bytes;
        fill(from, bytes, bytes);
        const uint32_t sum = sum_of(from, bytes);
        assert_int_not_equal(sum, sum_of(from - 1, bytes + 1));
        for (uint32_t bit = 0; bit < 8 * bytes; bit++) {
            from[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_not_equal(sum, sum_of(from, bytes));
            if (bit % 64 == 63 && bit / 8 >= 32) {
                from[bit / 8 - 32] ^= 0x80;
                assert_int_not_equal(sum, sum_of(from, bytes));
                from[bit / 8 - 32] ^= 0x80;
            }
            from[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        uint32_t gone = 0;
        assert_int_equal(sum, sum_of(from, bytes));
        assert_false(guard_sum(from + 1, bytes, &gone));
    }
    munmap(room, ROOM + PAGE);
}

int main(void)
{
    guard_install();
    sigaction(SIGSEGV, NULL, &guards_handler);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_fast_strings),
        cmocka_unit_test(test_with_fast_strings),
        cmocka_unit_test(test_words_that_are_not_there),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
