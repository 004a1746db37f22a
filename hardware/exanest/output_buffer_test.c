/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Filled slots leave in the order in which they were allocated, and only those; what memory
 *         could not read never leaves.
 * Method  Made cases; random allocations, words and releases beside a plain list. Behaviours
 *         EXA-25, EXA-26.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/axi.h"
#include "hardware/exanest/output_buffer.h"

static const struct exanest_word word = {1, 2};

static uint32_t allocate(struct exanest_output_buffer *buffer, uint32_t port, uint32_t words)
{
    const struct exanest_header header = {.bytes = (uint16_t)(16 * words)};
    const struct exanest_footer footer = {.tid = (uint16_t)words};
    const uint32_t slot = exanest_buffer_allocate(buffer, port);
    exanest_buffer_describe(buffer, slot, &header, &footer);
    return slot;
}

/* EXA-25: an older slot that is not filled holds nobody up; of the filled ones the oldest wins. */
static void test_order(void **state)
{
    (void)state;
    struct exanest_slot slots[8];
    struct exanest_output_buffer buffer;
    exanest_buffer_init(&buffer, 8, slots);
    uint32_t slot[8];
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(exanest_buffer_has_room(&buffer));
        slot[i] = allocate(&buffer, 3, 1);
    }
    assert_false(exanest_buffer_has_room(&buffer));
    assert_int_equal(exanest_buffer_winner(&buffer, 3), -1);
    assert_int_equal(exanest_buffer_write(&buffer, slot[5], word, 0), EXANEST_FILLED);
    assert_int_equal(exanest_buffer_winner(&buffer, 3), slot[5]);
    assert_int_equal(exanest_buffer_winner(&buffer, 2), -1);
    exanest_buffer_write(&buffer, slot[2], word, 0);
    assert_int_equal(exanest_buffer_winner(&buffer, 3), slot[2]);
    exanest_buffer_latch(&buffer, slot[2]);
    assert_int_equal(exanest_buffer_winner(&buffer, 3), slot[5]);
    exanest_buffer_release(&buffer, slot[2], 0);
    /* The slot is used again, and is now the youngest. */
    assert_int_equal(allocate(&buffer, 3, 1), slot[2]);
    exanest_buffer_write(&buffer, slot[2], word, 0);
    assert_int_equal(exanest_buffer_winner(&buffer, 3), slot[5]);
    exanest_buffer_write(&buffer, slot[0], word, 0);
    assert_int_equal(exanest_buffer_winner(&buffer, 3), slot[0]);
}

/* EXA-26: the whole packet is taken; whichever word said 2 or 3, the slot is free at its end. */
static void test_fault(void **state)
{
    (void)state;
    for (uint32_t bad = 0; bad < 4; bad++) {
        for (uint32_t response = 2; response <= 3; response++) {
            struct exanest_slot slots[2];
            struct exanest_output_buffer buffer;
            exanest_buffer_init(&buffer, 2, slots);
            const uint32_t other = allocate(&buffer, 0, 1);
            const uint32_t slot = allocate(&buffer, 0, 4);
            exanest_buffer_write(&buffer, other, word, 0);
            for (uint32_t i = 0; i < 4; i++) {
                const enum exanest_fill fill =
                    exanest_buffer_write(&buffer, slot, word, i == bad ? response : 0);
                assert_int_equal(fill, i == 3 ? EXANEST_FAULTED : EXANEST_FILLING);
                assert_int_equal(exanest_buffer_has_room(&buffer), i == 3);
            }
            assert_int_equal(slots[slot].footer.tid, 4); /* The former owner's. */
            assert_int_equal(exanest_buffer_winner(&buffer, 0), other);
            assert_int_equal(allocate(&buffer, 0, 1), slot);
            assert_int_equal(exanest_buffer_write(&buffer, slot, word, 0), EXANEST_FILLED);
        }
    }
}

/* EXA-A11's variation: a slot is free only some cycles later. */
static void test_late_release(void **state)
{
    (void)state;
    struct exanest_slot slots[1];
    struct exanest_output_buffer buffer;
    exanest_buffer_init(&buffer, 1, slots);
    const uint32_t slot = allocate(&buffer, 0, 1);
    exanest_buffer_write(&buffer, slot, word, 0);
    exanest_buffer_latch(&buffer, slot);
    exanest_buffer_release(&buffer, slot, 20);
    for (int i = 0; i < 20; i++) {
        assert_false(exanest_buffer_has_room(&buffer));
        exanest_buffer_step(&buffer);
    }
    assert_true(exanest_buffer_has_room(&buffer));
    assert_int_equal(buffer.waiting, 0);
}

/* A used slot, as a list in order of allocation knows it. */
struct entry {
    uint32_t slot, port, left;
    bool faulty, latched;
};

struct model {
    struct entry entries[EXANEST_SLOTS_MAX];
    uint32_t count;
};

static void forget(struct model *model, uint32_t at)
{
    memmove(&model->entries[at], &model->entries[at + 1],
            (--model->count - at) * sizeof(model->entries[0]));
}

static void random_step(struct exanest_output_buffer *buffer, struct model *model,
                        struct prng *prng)
{
    const uint32_t at = (uint32_t)prng_below(prng, EXANEST_SLOTS_MAX);
    struct entry *entry = &model->entries[at];
    if (prng_below(prng, 4) == 0 && exanest_buffer_has_room(buffer)) {
        struct entry *next = &model->entries[model->count++];
        *next = (struct entry){.port = (uint32_t)prng_below(prng, 2),
                               .left = 1 + (uint32_t)prng_below(prng, 4)};
        next->slot = allocate(buffer, next->port, next->left);
    } else if (at < model->count && entry->left != 0) {
        const bool bad = prng_below(prng, 20) == 0;
        entry->faulty |= bad;
        entry->left--;
        const enum exanest_fill fill = exanest_buffer_write(buffer, entry->slot, word, bad ? 2 : 0);
        assert_int_equal(fill, entry->left != 0 ? EXANEST_FILLING
                               : entry->faulty  ? EXANEST_FAULTED
                                                : EXANEST_FILLED);
        if (fill == EXANEST_FAULTED) {
            forget(model, at);
        }
    } else if (at < model->count && entry->latched) {
        exanest_buffer_release(buffer, entry->slot, 0);
        forget(model, at);
    } else if (at < model->count) {
        const int winner = exanest_buffer_winner(buffer, entry->port);
        exanest_buffer_latch(buffer, (uint32_t)winner);
        for (uint32_t i = 0; i < model->count; i++) {
            model->entries[i].latched |= (int)model->entries[i].slot == winner;
        }
    }
}

/* EXA-25, by chance, with two ports in one buffer (EXA-A25's variation). */
static void test_random(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t count = 1; count <= EXANEST_SLOTS_MAX; count++) {
        struct exanest_slot slots[EXANEST_SLOTS_MAX];
        struct exanest_output_buffer buffer;
        struct model model = {.count = 0};
        exanest_buffer_init(&buffer, count, slots);
        for (int round = 0; round < 20000; round++) {
            random_step(&buffer, &model, &prng);
            assert_int_equal(buffer.used_count, model.count);
            for (uint32_t port = 0; port < 2; port++) {
                int expected = -1;
                for (uint32_t i = model.count; i-- > 0;) {
                    const struct entry *entry = &model.entries[i];
                    if (entry->left == 0 && !entry->latched && entry->port == port) {
                        expected = (int)entry->slot;
                    }
                }
                assert_int_equal(exanest_buffer_winner(&buffer, port), expected);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_fault),
        cmocka_unit_test(test_late_release),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
