/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A block is complete when each of its lines has come, whatever the order, and only then;
 *         older packets count for nothing, newer ones begin anew; a full set refuses.
 * Method  Cases by hand; then packets by chance, held against a plain array of transactions without
 *         sets, beside a count for each set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/exanest/context_table.h"

static struct exanest_context_table new_table(uint32_t sets, uint32_t ways)
{
    struct exanest_context_table table;
    const struct exanest_context_parameters parameters = {
        .sets = (uint16_t)sets, .ways = (uint16_t)ways, .index = EXANEST_SET_FOLD};
    exanest_context_init(&table, &parameters);
    return table;
}

static enum exanest_meaning on(struct exanest_context_table *table, struct exanest_mark mark)
{
    struct exanest_judgement judgement;
    exanest_context_judge(table, &mark, &judgement);
    exanest_context_apply(table, &judgement);
    exanest_context_check(table);
    return (enum exanest_meaning)judgement.meaning;
}

/* Line `line` of a block that has lines `first` to `last`. */
static struct exanest_mark line_of(uint32_t tid, uint32_t sequence, uint32_t line, uint32_t first,
                                   uint32_t last)
{
    return (struct exanest_mark){.source = 4,
                                 .tid = (uint16_t)tid,
                                 .sequence = (uint16_t)sequence,
                                 .line = (uint8_t)line,
                                 .first = line == first,
                                 .last = line == last};
}

static void shuffle(struct prng *prng, uint8_t *items, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t j = (uint32_t)prng_below(prng, i);
        const uint8_t item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}

/* EXA-32, EXA-39, EXA-40: every permutation of small blocks, many of large ones, at any line. */
static void test_permutations(void **state)
{
    (void)state;
    struct prng prng;
    struct exanest_context_table table = new_table(16, 16);
    prng_init(&prng, 1);
    for (uint32_t round = 0; round < 4000; round++) {
        const uint32_t count = round < 2000 ? 1 + round % 5 : 1 + (uint32_t)prng_below(&prng, 64);
        const uint32_t first = (uint32_t)prng_below(&prng, EXANEST_BLOCK_PACKETS_MAX - count + 1);
        uint8_t lines[EXANEST_BLOCK_PACKETS_MAX];
        for (uint32_t i = 0; i < count; i++) {
            lines[i] = (uint8_t)(first + i);
        }
        shuffle(&prng, lines, count);
        for (uint32_t i = 0; i < count; i++) {
            const struct exanest_mark mark =
                line_of(round % 1024, round, lines[i], first, first + count - 1);
            assert_int_equal(on(&table, mark), i + 1 == count ? EXANEST_COMPLETE : EXANEST_MARKED);
        }
        assert_int_equal(table.used, 0);
    }
}

/* EXA-33: duplicates of any packet at any time before the block is complete. */
static void test_duplicates(void **state)
{
    (void)state;
    struct exanest_context_table table = new_table(16, 16);
    for (uint32_t line = 10; line < 20; line++) {
        assert_int_equal(on(&table, line_of(1, 0, line, 10, 19)),
                         line == 19 ? EXANEST_COMPLETE : EXANEST_MARKED);
        for (uint32_t again = 10; again <= line && line < 19; again++) {
            assert_int_equal(on(&table, line_of(1, 0, again, 10, 19)), EXANEST_DUPLICATE);
        }
    }
    assert_int_equal(table.used, 0);
}

/* EXA-34, EXA-35: older is ignored, newer begins anew, and earlier marks are lost. */
static void test_sequences(void **state)
{
    (void)state;
    struct exanest_context_table table = new_table(16, 16);
    assert_int_equal(on(&table, line_of(1, 5, 0, 0, 2)), EXANEST_MARKED);
    assert_int_equal(on(&table, line_of(1, 4, 1, 0, 2)), EXANEST_OLDER);
    assert_int_equal(on(&table, line_of(1, 5, 2, 0, 2)), EXANEST_MARKED);
    assert_int_equal(on(&table, line_of(1, 6, 1, 0, 2)), EXANEST_MARKED);
    assert_int_equal(on(&table, line_of(1, 5, 1, 0, 2)), EXANEST_OLDER);
    assert_int_equal(on(&table, line_of(1, 6, 2, 0, 2)), EXANEST_MARKED);
    assert_int_equal(on(&table, line_of(1, 6, 0, 0, 2)), EXANEST_COMPLETE);
    assert_int_equal(table.used, 0);
}

/* EXA-36: up to half of the numbers ahead is newer, across the end, too. */
static void test_wrap(void **state)
{
    (void)state;
    for (uint32_t from = 0; from < EXANEST_SEQUENCES; from += from < 16 ? 1 : 1021) {
        for (uint32_t ahead = 0; ahead < EXANEST_SEQUENCES; ahead++) {
            assert_int_equal(exanest_sequence_newer((from + ahead) % EXANEST_SEQUENCES, from),
                             ahead >= 1 && ahead <= 0x1fff);
        }
    }
    struct exanest_context_table table = new_table(16, 16);
    assert_int_equal(on(&table, line_of(1, 16383, 0, 0, 1)), EXANEST_MARKED);
    assert_int_equal(on(&table, line_of(1, 0, 0, 0, 1)), EXANEST_MARKED);
    assert_int_equal(on(&table, line_of(1, 16383, 1, 0, 1)), EXANEST_OLDER);
    assert_int_equal(on(&table, line_of(1, 0, 1, 0, 1)), EXANEST_COMPLETE);
}

/* EXA-108: if each use of a TID begins with 0 again, a late packet of an earlier block
 * completes a new one, of which a packet was lost. With sequences that go on it does not. */
static void test_strict_hazard(void **state)
{
    (void)state;
    for (uint32_t next = 0; next < 2; next++) {
        struct exanest_context_table table = new_table(16, 16);
        const struct exanest_mark late = line_of(1, 0, 2, 0, 2);
        for (uint32_t line = 0; line < 3; line++) {
            (void)on(&table, line_of(1, 0, line, 0, 2));
        }
        assert_int_equal(table.used, 0);
        assert_int_equal(on(&table, line_of(1, next, 0, 0, 2)), EXANEST_MARKED);
        assert_int_equal(on(&table, line_of(1, next, 1, 0, 2)), EXANEST_MARKED);
        assert_int_equal(on(&table, late), next == 0 ? EXANEST_COMPLETE : EXANEST_OLDER);
    }
}

/* EXA-37: the 17th block of a set is refused until one of the 16 is complete. */
static void test_full_set(void **state)
{
    (void)state;
    struct exanest_context_table table = new_table(16, 16);
    const uint32_t set = exanest_context_set(&table, 4, 0);
    uint32_t tids[17], count = 0;
    for (uint32_t tid = 0; count < 17; tid++) {
        if (exanest_context_set(&table, 4, tid) == set) {
            tids[count++] = tid;
        }
    }
    for (uint32_t i = 0; i < 16; i++) {
        assert_int_equal(on(&table, line_of(tids[i], 0, 0, 0, 1)), EXANEST_MARKED);
    }
    assert_int_equal(on(&table, line_of(tids[16], 0, 0, 0, 1)), EXANEST_NO_CONTEXT);
    assert_int_equal(on(&table, line_of(tids[16], 0, 1, 0, 1)), EXANEST_NO_CONTEXT);
    assert_int_equal(on(&table, line_of(tids[3], 0, 1, 0, 1)), EXANEST_COMPLETE);
    assert_int_equal(on(&table, line_of(tids[16], 1, 0, 0, 1)), EXANEST_MARKED);
    assert_int_equal(table.used_max, 16);
}

/* EXA-41: all 256 contexts at once, for every shape of the table; each can be read. */
static void test_all_contexts(void **state)
{
    (void)state;
    for (uint32_t sets = 1; sets <= 256; sets *= 2) {
        struct exanest_context_table table = new_table(sets, 256 / sets);
        uint32_t marked = 0;
        for (uint32_t tid = 0; tid < EXANEST_TIDS; tid++) {
            struct exanest_mark mark = line_of(tid, tid, tid % 64, 0, 63);
            marked += on(&table, mark) == EXANEST_MARKED;
        }
        assert_int_equal(marked, 256);
        assert_int_equal(table.used, 256);
        for (uint32_t i = 0; i < 256; i++) {
            const struct exanest_context *context = exanest_context_at(&table, i);
            assert_true(context->valid);
            assert_int_equal(context->source, 4);
            assert_int_equal(context->sequence, context->tid);
            assert_int_equal(context->bitmap, UINT64_C(1) << context->tid % 64);
        }
    }
}

/* EXA-42: the same TID of two sources. */
static void test_sources(void **state)
{
    (void)state;
    struct exanest_context_table table = new_table(16, 16);
    struct exanest_mark other = line_of(1, 7, 0, 0, 1);
    other.source = 5;
    assert_int_equal(on(&table, line_of(1, 3, 0, 0, 1)), EXANEST_MARKED);
    assert_int_equal(on(&table, other), EXANEST_MARKED);
    assert_int_equal(on(&table, line_of(1, 3, 1, 0, 1)), EXANEST_COMPLETE);
    other.line = 1;
    other.first = false;
    other.last = true;
    assert_int_equal(on(&table, other), EXANEST_COMPLETE);
}

/* EXA-38: one NACK per context and sequence; the context is kept for the next instance. */
static void test_errors(void **state)
{
    (void)state;
    struct exanest_context_table table = new_table(16, 16);
    struct exanest_mark bad = line_of(1, 3, 1, 0, 2);
    bad.error = EXANEST_NACK_CRC;
    assert_int_equal(on(&table, bad), EXANEST_REFUSED);
    assert_int_equal(on(&table, bad), EXANEST_REFUSED_BEFORE); /* Even if nothing else has come. */
    assert_int_equal(table.used, 1);
    assert_int_equal(on(&table, line_of(1, 3, 0, 0, 2)), EXANEST_MARKED);
    assert_int_equal(on(&table, bad), EXANEST_REFUSED_BEFORE);
    bad.error = EXANEST_NACK_PAGE_FAULT;
    assert_int_equal(on(&table, bad), EXANEST_REFUSED_BEFORE);
    assert_int_equal(on(&table, line_of(1, 3, 2, 0, 2)), EXANEST_MARKED);
    bad.sequence = 4;
    assert_int_equal(on(&table, bad), EXANEST_REFUSED);
    bad.sequence = 3;
    assert_int_equal(on(&table, bad), EXANEST_OLDER);
    for (uint32_t line = 0; line < 3; line++) {
        assert_int_equal(on(&table, line_of(1, 4, line, 0, 2)),
                         line == 2 ? EXANEST_COMPLETE : EXANEST_MARKED);
    }
}

/* EXA-57: the control packet at any place among the data; the same result. */
static void test_control(void **state)
{
    (void)state;
    for (uint32_t at = 0; at <= 4; at++) {
        struct exanest_context_table table = new_table(16, 16);
        const struct exanest_mark control = {.source = 4,
                                             .tid = 1,
                                             .sequence = 9,
                                             .is_control = true,
                                             .pdid = 6,
                                             .control = {.data = {1, 2}}};
        for (uint32_t i = 0, line = 0; i <= 4; i++) {
            struct exanest_mark mark = control;
            if (i != at) {
                mark = line_of(1, 9, line, 0, 3);
                mark.notify = true;
                line++;
            }
            struct exanest_judgement judgement;
            exanest_context_judge(&table, &mark, &judgement);
            assert_int_equal(judgement.meaning, i == 4 ? EXANEST_COMPLETE : EXANEST_MARKED);
            exanest_context_apply(&table, &judgement);
            assert_int_equal(on(&table, mark), i == 4 ? EXANEST_MARKED : EXANEST_DUPLICATE);
            if (i == 4) {
                assert_true(judgement.after.notify && judgement.after.control_seen);
                assert_int_equal(judgement.after.control.data[1], 2);
                assert_int_equal(judgement.after.pdid, 6);
            }
        }
        assert_int_equal(table.used, 1); /* A duplicate behind the end begins a context anew. */
    }
}

/* All packets carry the flag; one that does is enough. */
static void test_notify_once(void **state)
{
    (void)state;
    struct exanest_context_table table = new_table(16, 16);
    for (uint32_t line = 0; line < 3; line++) {
        struct exanest_mark mark = line_of(1, 0, line, 0, 2);
        mark.notify = line == 1;
        assert_int_equal(on(&table, mark), EXANEST_MARKED);
    }
    const struct exanest_mark control = {.source = 4, .tid = 1, .is_control = true};
    assert_int_equal(on(&table, control), EXANEST_COMPLETE);
}

/* A block whose first packet stands behind its last one is never complete. */
static void test_first_behind_last(void **state)
{
    (void)state;
    struct exanest_context_table table = new_table(16, 16);
    for (uint32_t line = 0; line < 64; line++) {
        assert_int_equal(on(&table, line_of(1, 0, line, 40, 20)), EXANEST_MARKED);
    }
}

/* The fold spreads the TIDs of any source evenly; for 16 sets it is written out once more. */
static void test_sets(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);
    const struct exanest_context_table table = new_table(16, 16);
    for (uint32_t round = 0; round < 50; round++) {
        const uint32_t source = (uint32_t)prng_below(&prng, 1u << EXANEST_COORDINATE_BITS);
        uint32_t counts[16] = {0}, fold = 0;
        for (uint32_t shift = 0; shift < 24; shift += 4) {
            fold ^= source >> shift & 15;
        }
        for (uint32_t tid = 0; tid < EXANEST_TIDS; tid++) {
            const uint32_t set = exanest_context_set(&table, source, tid);
            assert_int_equal(set, (tid & 15) ^ (tid >> 4 & 15) ^ fold);
            counts[set]++;
        }
        for (uint32_t i = 0; i < 16; i++) {
            assert_int_equal(counts[i], EXANEST_TIDS / 16);
        }
    }
    struct exanest_context_table modulo;
    const struct exanest_context_parameters parameters = {
        .sets = 16, .ways = 16, .index = EXANEST_SET_MODULO};
    exanest_context_init(&modulo, &parameters);
    assert_int_equal(exanest_context_set(&modulo, 12345, 1023), 15);
    assert_int_equal(exanest_context_set(&modulo, 54321, 16), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutations),  cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_sequences),     cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_strict_hazard), cmocka_unit_test(test_full_set),
        cmocka_unit_test(test_all_contexts),  cmocka_unit_test(test_sources),
        cmocka_unit_test(test_errors),        cmocka_unit_test(test_control),
        cmocka_unit_test(test_notify_once),   cmocka_unit_test(test_first_behind_last),
        cmocka_unit_test(test_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
