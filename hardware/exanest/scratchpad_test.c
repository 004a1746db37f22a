/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Programs reach their own page alone; the R5 sees each posted channel once.
 * Method  By hand, and against a set of posted channels that is kept apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/scratchpad.h"

static const struct exanest_transfer some = {
    .source = 0x1234,
    .target = {.coordinate = 7, .va = 0x5678},
    .bytes = 99,
    .notify = true,
    .path = 3,
    .state = EXANEST_TRANSFER_POSTED,
    .address = {.coordinate = 8, .va = 0x9abc},
    .data = {1, 2},
    .doorbell = 3,
};

/* EXA-48: a page belongs to one domain, a domain has one page, and reaches no other. */
static void test_pages(void **state)
{
    (void)state;
    struct exanest_scratchpad *pad = calloc(1, sizeof(*pad));
    uint64_t value = 0;
    assert_int_equal(exanest_scratchpad_store(pad, 5, 2, 0, 1), EXANEST_PAD_FOREIGN);
    assert_true(exanest_scratchpad_bind(pad, 2, 5));
    assert_false(exanest_scratchpad_bind(pad, 2, 6));
    assert_false(exanest_scratchpad_bind(pad, 3, 5));
    assert_false(exanest_scratchpad_bind(pad, 16, 6));
    assert_true(exanest_scratchpad_bind(pad, 3, 6));
    assert_int_equal(exanest_scratchpad_store(pad, 5, 2, 8, 77), EXANEST_PAD_GOOD);
    assert_int_equal(exanest_scratchpad_store(pad, 5, 3, 8, 78), EXANEST_PAD_FOREIGN);
    assert_int_equal(exanest_scratchpad_load(pad, 6, 2, 8, &value), EXANEST_PAD_FOREIGN);
    assert_int_equal(exanest_scratchpad_load(pad, 5, 2, 8, &value), EXANEST_PAD_GOOD);
    assert_int_equal(value, 77);
    assert_int_equal(exanest_scratchpad_store(pad, 5, 2, 4096, 1), EXANEST_PAD_MISPLACED);
    assert_int_equal(exanest_scratchpad_store(pad, 5, 2, 4, 1), EXANEST_PAD_MISPLACED);
    assert_int_equal(exanest_scratchpad_store(pad, 5, 16, 8, 1), EXANEST_PAD_FOREIGN);
    assert_int_equal(exanest_scratchpad_post(pad, 5, 2, 64, &some), EXANEST_PAD_MISPLACED);
    assert_int_equal(exanest_scratchpad_post(pad, 5, 2, 1, &some), EXANEST_PAD_GOOD);
    exanest_scratchpad_unbind(pad, 2); /* The posted transfer is gone with its page, */
    assert_true(exanest_scratchpad_idle(pad));
    assert_true(exanest_scratchpad_bind(pad, 2, 9)); /* and so are the words that stood there. */
    assert_int_equal(exanest_scratchpad_load(pad, 9, 2, 8, &value), EXANEST_PAD_GOOD);
    assert_int_equal(value, 0);
    free(pad);
}

/* EXA-48: only the doorbell with its valid bit posts; the R5's words stand in their places. */
static void test_descriptor(void **state)
{
    (void)state;
    struct exanest_scratchpad *pad = calloc(1, sizeof(*pad));
    uint32_t page = 99;
    assert_true(exanest_scratchpad_bind(pad, 15, 5));
    for (uint32_t word = 0; word < 8; word++) {
        exanest_scratchpad_store(pad, 5, 15, 63 * 64 + 8 * word, word == 7 ? 2 : 1);
    }
    assert_true(exanest_scratchpad_idle(pad));
    exanest_scratchpad_store(pad, 5, 15, 63 * 64 + 56, 3);
    assert_int_equal(exanest_scratchpad_poll(pad, &page), UINT64_C(1) << 63);
    assert_int_equal(page, 15);
    assert_int_equal(exanest_scratchpad_poll(pad, &page), 0);
    exanest_scratchpad_post(pad, 5, 15, 63, &some);
    exanest_scratchpad_update(pad, 15 * 64 + 63,
                              &(struct exanest_progress){.state = EXANEST_TRANSFER_ERROR,
                                                         .retransmissions = 17,
                                                         .last_status = 0x101,
                                                         .acked = 0xfedcba98});
    const struct exanest_transfer got =
        exanest_transfer_decode(exanest_scratchpad_read(pad, 15 * 64 + 63));
    assert_int_equal(got.state, EXANEST_TRANSFER_ERROR);
    assert_int_equal(got.retransmissions, 17);
    assert_int_equal(got.last_status, 0x101);
    assert_int_equal(got.acked, 0xfedcba98);
    assert_int_equal(got.bytes, 99);
    assert_true(got.notify && got.path == 3);
    free(pad);
}

/* Each posted channel is seen once, and no page waits for more than all others. */
static void test_random(void **state)
{
    (void)state;
    struct exanest_scratchpad *pad = calloc(1, sizeof(*pad));
    uint64_t posted[EXANEST_PAGES] = {0};
    uint32_t waits[EXANEST_PAGES] = {0};
    struct prng prng;
    prng_init(&prng, 2);
    for (uint32_t page = 0; page < EXANEST_PAGES; page++) {
        assert_true(exanest_scratchpad_bind(pad, page, (uint16_t)(100 + page)));
    }
    for (int i = 0; i < 100000; i++) {
        const uint32_t page = (uint32_t)prng_below(&prng, 16);
        const uint32_t channel = (uint32_t)prng_below(&prng, 64);
        if (prng_below(&prng, 3) != 0) {
            exanest_scratchpad_post(pad, (uint16_t)(100 + page), page, channel, &some);
            posted[page] |= UINT64_C(1) << channel;
            continue;
        }
        uint32_t polled = 0;
        const uint64_t bits = exanest_scratchpad_poll(pad, &polled);
        for (uint32_t p = 0; p < EXANEST_PAGES; p++) {
            waits[p] = bits != 0 && p != polled && posted[p] != 0 ? waits[p] + 1 : 0;
            assert_true(waits[p] < EXANEST_PAGES);
            assert_true(bits != 0 || posted[p] == 0);
        }
        if (bits != 0) {
            assert_true(bits == posted[polled]);
            posted[polled] = 0;
        }
    }
    exanest_scratchpad_check(pad);
    free(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
