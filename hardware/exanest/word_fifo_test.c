/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A word is seen at the other side after the cycles that it takes, not before, and in
 *         order. Behaviour EXA-62.
 * Method  Random words and steps that are left out while all is seen; the cycle of each is kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/exanest/word_fifo.h"

/* A word is seen three cycles after it was put in, at once or among others. */
static void test_fall_through(void **state)
{
    (void)state;
    struct exanest_fifo fifo;
    struct prng prng;
    prng_init(&prng, 5);
    for (uint8_t fall = 0; fall <= EXANEST_FIFO_FALL_THROUGH_MAX; fall++) {
        static uint32_t put_at[200000];
        uint32_t put = 0, seen = 0;
        exanest_fifo_init(&fifo, fall);
        for (uint32_t cycle = 0; cycle < 20000; cycle++) {
            if (!exanest_fifo_settled(&fifo) || prng_below(&prng, 2) == 0) {
                exanest_fifo_step(&fifo);
            }
            while (seen < put && put_at[seen] + fall <= cycle) {
                assert_int_equal(exanest_fifo_head(&fifo).word.low, seen);
                exanest_fifo_pop(&fifo);
                seen++;
            }
            assert_int_equal(fifo.visible, 0);
            for (uint64_t i = prng_below(&prng, 3); i > 0 && fifo.used < EXANEST_FIFO_WORDS; i--) {
                const struct exanest_beat beat = {.word = {put, 0}};
                put_at[put++] = cycle;
                exanest_fifo_put(&fifo, &beat);
            }
            exanest_fifo_check(&fifo);
            while (fall == 0 && fifo.visible > 0) {
                exanest_fifo_pop(&fifo);
                seen++;
            }
        }
        assert_true(seen > 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fall_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
