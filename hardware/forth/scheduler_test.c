/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Inputs and credits take their turns: equal shares of packets, nobody waits longer than a
 *         round, changed credits first, and what credits say adds up to what left.
 * Method  Random arrivals against a search from port to port; backlogged inputs counted. Behaviours
 *         FNX-43, FNX-44.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/forth/scheduler.h"

static void test_round_robin(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (int round = 0; round < 100000; round++) {
        const uint32_t ports = 1 + (uint32_t)prng_below(&prng, 64);
        const uint32_t last = (uint32_t)prng_below(&prng, ports);
        const uint64_t mask = ports == 64 ? UINT64_MAX : (UINT64_C(1) << ports) - 1;
        const uint64_t eligible = prng_next(&prng) & prng_next(&prng) & prng_next(&prng) & mask;
        int expected = -1;
        for (uint32_t i = 1; i <= ports && expected < 0; i++) {
            if (eligible >> (last + i) % ports & 1) {
                expected = (int)((last + i) % ports);
            }
        }
        assert_int_equal(forth_round_robin(eligible, last, ports), expected);
    }
}

/* Backlogged inputs get equal shares; one that comes anew waits for the others once at most. */
static void test_shares(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {3, 4, 8};
    for (int n = 0; n < 3; n++) {
        struct forth_output_scheduler scheduler;
        uint32_t served[FORTH_PORTS_MAX] = {0};
        forth_output_init(&scheduler, 8);
        for (uint32_t round = 0; round < 300 * sizes[n]; round++) {
            for (uint32_t i = 0; i < sizes[n]; i++) {
                if (scheduler.waiting[i] == 0) {
                    forth_output_arrived(&scheduler, i);
                }
            }
            served[forth_output_next(&scheduler)]++;
        }
        for (uint32_t i = 0; i < sizes[n]; i++) {
            assert_int_equal(served[i], 300);
        }
    }
    struct forth_output_scheduler scheduler;
    forth_output_init(&scheduler, 4);
    assert_int_equal(forth_output_next(&scheduler), -1);
    for (int i = 0; i < 50; i++) {
        forth_output_arrived(&scheduler, 0);
        forth_output_arrived(&scheduler, 1);
        forth_output_arrived(&scheduler, 2);
    }
    forth_output_next(&scheduler);
    forth_output_arrived(&scheduler, 3);
    int waited = 0;
    while (forth_output_next(&scheduler) != 3) {
        waited++;
    }
    assert_true(waited <= 3);
}

/* The fixed arbiter takes the lowest input as long as it has packets. */
static void test_fixed(void **state)
{
    (void)state;
    struct forth_output_scheduler scheduler;
    forth_output_init(&scheduler, 4);
    scheduler.arbiter = FORTH_ARBITER_fixed;
    forth_output_arrived(&scheduler, 3);
    forth_output_arrived(&scheduler, 1);
    forth_output_arrived(&scheduler, 1);
    assert_int_equal(forth_output_likely(&scheduler), 1);
    assert_int_equal(forth_output_next(&scheduler), 1);
    assert_int_equal(forth_output_next(&scheduler), 1);
    assert_int_equal(forth_output_next(&scheduler), 3);
    assert_int_equal(forth_output_next(&scheduler), -1);
}

/* Inputs 1, 2 and 3 have 1, 3 and 3 packets: those that have most, in turn. */
static void test_longest(void **state)
{
    (void)state;
    static const int expected[] = {2, 3, 2, 3, 1, 2, 3, -1};
    struct forth_output_scheduler scheduler;
    forth_output_init(&scheduler, 4);
    scheduler.arbiter = FORTH_ARBITER_longest;
    for (uint32_t i = 0; i < 3; i++) {
        forth_output_arrived(&scheduler, 2);
        forth_output_arrived(&scheduler, 3);
    }
    forth_output_arrived(&scheduler, 1);
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_int_equal(forth_output_next(&scheduler), expected[i]);
    }
}

/* Input 0 has three turns in a row, others one; and none for which it has no packet. */
static void test_weighted(void **state)
{
    (void)state;
    static const int expected[] = {0, 0, 0, 1, 2, 0, 0, 1, 2, 1, -1};
    struct forth_output_scheduler scheduler;
    forth_output_init(&scheduler, 4);
    scheduler.arbiter = FORTH_ARBITER_weighted;
    scheduler.weight = 3;
    for (uint32_t i = 0; i < 5; i++) {
        forth_output_arrived(&scheduler, 0);
        if (i < 3) {
            forth_output_arrived(&scheduler, 1);
        }
        if (i < 2) {
            forth_output_arrived(&scheduler, 2);
        }
    }
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_int_equal(forth_output_next(&scheduler), expected[i]);
    }
}

/* FNX-43: changed credits first and in turn, then the others, and those only to refresh. */
static void test_credit_order(void **state)
{
    (void)state;
    struct forth_credit_scheduler scheduler;
    struct forth_credit credit;
    forth_credits_init(&scheduler, 4);
    assert_false(forth_credits_next(&scheduler, false, &credit));
    forth_credits_departed(&scheduler, 2, 40);
    forth_credits_departed(&scheduler, 0, 64);
    forth_credits_departed(&scheduler, 1, 31); /* Not enough for another value. */
    static const uint8_t flows[] = {0, 2, 0, 1, 2, 3, 0};
    for (size_t i = 0; i < sizeof(flows); i++) {
        assert_true(forth_credits_next(&scheduler, true, &credit));
        assert_int_equal(credit.flow, flows[i]);
    }
    forth_credits_departed(&scheduler, 1, 1);
    assert_true(forth_credits_next(&scheduler, false, &credit));
    assert_int_equal(credit.flow, 1);
    assert_int_equal(credit.value, 1);
    assert_false(forth_credits_next(&scheduler, false, &credit));
}

/* FNX-44: whatever is sent when, the values are those of all the words that left. */
static void test_credits_add_up(void **state)
{
    (void)state;
    struct prng prng;
    struct forth_credit_scheduler scheduler;
    uint64_t left[8] = {0};
    uint8_t told[8] = {0};
    prng_init(&prng, 2);
    forth_credits_init(&scheduler, 8);
    for (int round = 0; round < 100000; round++) {
        struct forth_credit credit;
        const uint32_t output = (uint32_t)prng_below(&prng, 8);
        const uint32_t words = 3 + (uint32_t)prng_below(&prng, 62);
        left[output] += words;
        forth_credits_departed(&scheduler, output, words);
        while (prng_below(&prng, 2) && forth_credits_next(&scheduler, false, &credit)) {
            told[credit.flow] = credit.value;
            assert_int_equal(credit.value, left[credit.flow] / 32 % 128);
        }
    }
    struct forth_credit credit;
    while (forth_credits_next(&scheduler, false, &credit)) {
        told[credit.flow] = credit.value;
    }
    for (int i = 0; i < 8; i++) {
        assert_int_equal(told[i], left[i] / 32 % 128);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_robin),    cmocka_unit_test(test_shares),
        cmocka_unit_test(test_fixed),          cmocka_unit_test(test_longest),
        cmocka_unit_test(test_weighted),       cmocka_unit_test(test_credit_order),
        cmocka_unit_test(test_credits_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
