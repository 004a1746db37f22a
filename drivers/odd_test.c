/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Pieces bring what a usual move brings, in any order; words are understood; the same seed
 *         draws the same numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "base/prng.h"
#include "drivers/odd.h"
#include "drivers/system/guard.h"
#include "drivers/system/memory.h"

enum {
    ROOM = 4096,
    ROUNDS = 3000,
};

static char error[400];
static struct sigaction guards_handler;

static void begin(const char *text)
{
    assert_true(odd_begin(text, error, sizeof(error)));
}

/* Over up to four segments of any length, with gaps between them. */
static struct nic_move draw_move(struct prng *prng, uint8_t *room, const uint8_t *payload)
{
    struct nic_move move = {.kind = NIC_MOVE_SCATTER, .payload = payload};
    uint32_t at = 0, bytes = 0;
    move.segment_count = (uint32_t)prng_below(prng, 5);
    for (uint32_t i = 0; i < move.segment_count; i++) {
        at += (uint32_t)prng_below(prng, 8);
        move.segments[i] = (struct segment){.address = (uintptr_t)room + at,
                                            .bytes = (uint32_t)prng_below(prng, ROOM / 4 - 8)};
        at += move.segments[i].bytes;
        bytes += move.segments[i].bytes;
    }
    if (bytes >= NIC_GRH_BYTES && prng_chance(prng, 500000)) {
        move.prefix_bytes = NIC_GRH_BYTES;
        for (uint32_t i = 0; i < NIC_GRH_BYTES; i++) {
            move.prefix[i] = (uint8_t)prng_next(prng);
        }
    }
    return move;
}

static void test_pieces_are_the_whole(void **state)
{
    (void)state;
    static uint8_t payload[ROOM], one[ROOM], other[ROOM];
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < ROOM; i++) {
        payload[i] = (uint8_t)prng_next(&prng);
    }
    begin("7,pieces");
    for (int round = 0; round < ROUNDS; round++) {
        const struct prng before = prng;
        struct nic_move usual = draw_move(&prng, one, payload);
        prng = before;
        struct nic_move odd = draw_move(&prng, other, payload);
        assert_int_equal(memory_move(&usual), NIC_MOVED);
        assert_int_equal(odd_move(&odd), NIC_MOVED);
        assert_memory_equal(one, other, ROOM);
    }
    begin(NULL);
}

/* Behind the first segment a page is missing. A usual move writes all of the first one before it
 * finds out. */
static void test_order_is_not_promised(void **state)
{
    (void)state;
    static uint8_t payload[ROOM];
    int early = 0;
    memset(payload, 1, sizeof(payload));
    sigaction(SIGSEGV, &guards_handler, NULL);
    uint8_t *room =
        mmap(NULL, (size_t)2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(room != MAP_FAILED);
    assert_int_equal(mprotect(room + ROOM, ROOM, PROT_NONE), 0);
    begin("7,pieces");
    for (int round = 0; round < 50; round++) {
        struct nic_move move = {.kind = NIC_MOVE_SCATTER,
                                .payload = payload,
                                .segment_count = 2,
                                .segments = {{.address = (uintptr_t)room, .bytes = 640},
                                             {.address = (uintptr_t)room + ROOM, .bytes = 640}}};
        memset(room, 0, ROOM);
        assert_int_equal(odd_move(&move), NIC_MOVE_FAULTED);
        early += memchr(room, 0, 640) != NULL;
    }
    assert_int_not_equal(early, 0);
    begin(NULL);
    munmap(room, (size_t)2 * ROOM);
}

static void test_header(void **state)
{
    (void)state;
    uint8_t room[64] = {0};
    struct nic_move move = {.kind = NIC_MOVE_SCATTER,
                            .segment_count = 1,
                            .segments = {{.address = (uintptr_t)room, .bytes = NIC_GRH_BYTES}},
                            .prefix_bytes = NIC_GRH_BYTES};
    static const uint8_t nothing[20];
    memset(move.prefix + 20, 0x45, 20);
    begin("7,pieces");
    assert_int_equal(odd_move(&move), NIC_MOVED);
    assert_memory_equal(room, nothing, 20);
    begin("7,grh");
    assert_int_equal(odd_move(&move), NIC_MOVED);
    assert_memory_not_equal(room, nothing, 20);
    assert_memory_equal(room + 20, move.prefix + 20, 20);
    memset(move.prefix, 0x60, NIC_GRH_BYTES); /* IPv6: all of it is defined. */
    assert_int_equal(odd_move(&move), NIC_MOVED);
    assert_memory_equal(room, move.prefix, NIC_GRH_BYTES);
    begin(NULL);
}

/* An atomic in two steps brings what a usual one brings, where nobody is beside it. */
static void test_atomics(void **state)
{
    (void)state;
    static const enum nic_atomic kinds[] = {NIC_COMPARE_SWAP, NIC_FETCH_ADD, NIC_STORE};
    uint64_t one = 5, other = 5;
    struct prng prng;
    prng_init(&prng, 3);
    begin("7,atomics");
    for (int round = 0; round < 200; round++) {
        struct nic_move usual = {.kind = NIC_MOVE_ATOMIC,
                                 .atomic = kinds[prng_below(&prng, COUNT_OF(kinds))],
                                 .compare = prng_below(&prng, 2) == 0 ? one : 1,
                                 .swap_or_add = prng_next(&prng),
                                 .segment_count = 1};
        struct nic_move odd = usual;
        usual.segments[0] = (struct segment){.address = (uintptr_t)&one, .bytes = 8};
        odd.segments[0] = (struct segment){.address = (uintptr_t)&other, .bytes = 8};
        assert_int_equal(memory_move(&usual), NIC_MOVED);
        assert_int_equal(odd_move(&odd), NIC_MOVED);
        assert_int_equal(one, other);
        assert_int_equal(usual.original, odd.original);
    }
    sigaction(SIGSEGV, &guards_handler, NULL);
    struct nic_move nowhere = {
        .kind = NIC_MOVE_ATOMIC, .segment_count = 1, .segments = {{.address = 4096, .bytes = 8}}};
    assert_int_equal(odd_move(&nowhere), NIC_MOVE_FAULTED);
    begin(NULL);
}

static void test_words(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "x", "late", "1,", "1,lat", "1,2", "1,-", "-1", "1 "};
    begin("1");
    assert_int_equal(odd_wanted, (1u << ODD_COUNT) - 1);
    begin("1,late,grh");
    assert_int_equal(odd_wanted, 1u << ODD_LATE | 1u << ODD_GRH);
    begin("1,-late");
    assert_int_equal(odd_wanted, ((1u << ODD_COUNT) - 1) & ~(1u << ODD_LATE));
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        error[0] = '\0';
        assert_false(odd_begin(wrong[i], error, sizeof(error)));
        assert_non_null(strstr(error, "pieces"));
        assert_false(is_odd(ODD_LATE)); /* As before. */
    }
    begin(NULL);
    assert_int_equal(odd_wanted, 0);
}

/* However many numbers another word has drawn in between. */
static void test_draws_repeat(void **state)
{
    (void)state;
    uint32_t drawn[2][100];
    for (int turn = 0; turn < 2; turn++) {
        begin("99");
        for (int i = 0; i < 100; i++) {
            drawn[turn][i] = odd_draw(ODD_FIELDS, 1000);
            assert_true(drawn[turn][i] < 1000);
            if (turn == 0) {
                (void)odd_draw(ODD_EVENTS, 3);
            }
        }
    }
    assert_memory_equal(drawn[0], drawn[1], sizeof(drawn[0]));
    begin(NULL);
}

int main(void)
{
    guard_install();
    sigaction(SIGSEGV, NULL, &guards_handler);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_the_whole),
        cmocka_unit_test(test_order_is_not_promised),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_draws_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
