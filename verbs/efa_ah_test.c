/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    One number for each GID that there are address handles to, counted; another GID has it
 *         only when the last one is gone; there are 65,535 of them (SRD-8).
 * Method  Random handles to a few GIDs beside a model that is an array of counts; then as many GIDs
 *         as there are numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "verbs/efa_ah.h"

enum {
    GIDS = 200,
    STEPS = 200000
};

static struct gid gid_of(uint32_t index)
{
    struct gid gid = {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127}};
    memcpy(gid.bytes + 13, &index, 3);
    return gid;
}

/* No two GIDs with handles have the same number. */
static void check_all(const uint32_t holders[GIDS], const uint16_t numbers[GIDS])
{
    static bool used[EFA_AH_NONE];
    memset(used, 0, sizeof(used));
    for (uint32_t i = 0; i < GIDS; i++) {
        const struct gid gid = gid_of(i);
        const uint16_t number = efa_ah_number(&gid);
        assert_int_equal(number, holders[i] == 0 ? EFA_AH_NONE : numbers[i]);
        if (holders[i] != 0) {
            assert_false(used[number]);
            used[number] = true;
        }
    }
}

static void test_against_model(void **state)
{
    (void)state;
    static uint32_t holders[GIDS];
    static uint16_t numbers[GIDS];
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t step = 0; step < STEPS; step++) {
        const uint32_t i = (uint32_t)prng_below(&prng, GIDS);
        const struct gid gid = gid_of(i);
        uint16_t number;
        if (holders[i] > 0 && prng_below(&prng, 2) == 0) {
            efa_ah_let_go(numbers[i]);
            holders[i]--;
            continue;
        }
        assert_true(efa_ah_hold(&gid, &number));
        assert_true(holders[i] == 0 || number == numbers[i]);
        assert_true(number < GIDS); /* Those that are free are used again. */
        numbers[i] = number;
        holders[i]++;
        if (step % 1000 == 0) {
            check_all(holders, numbers);
        }
    }
    for (uint32_t i = 0; i < GIDS; i++) {
        for (; holders[i] > 0; holders[i]--) {
            efa_ah_let_go(numbers[i]);
        }
    }
    check_all(holders, numbers);
}

static void test_all_numbers(void **state)
{
    (void)state;
    static uint16_t numbers[EFA_AH_NONE];
    static bool used[EFA_AH_NONE];
    uint16_t number;
    for (uint32_t i = 0; i < EFA_AH_NONE; i++) {
        const struct gid gid = gid_of(i);
        assert_true(efa_ah_hold(&gid, &numbers[i]));
        assert_false(used[numbers[i]]);
        used[numbers[i]] = true;
    }
    const struct gid beyond = gid_of(EFA_AH_NONE), known = gid_of(7);
    assert_false(efa_ah_hold(&beyond, &number));
    assert_true(efa_ah_hold(&known, &number));
    assert_int_equal(number, numbers[7]);
    efa_ah_let_go(number);
    efa_ah_let_go(numbers[1000]);
    assert_true(efa_ah_hold(&beyond, &number));
    assert_int_equal(number, numbers[1000]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_all_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
