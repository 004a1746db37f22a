/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The thread gives way to a program that ran while it slept, and does not run since.
 * Method  A table: how long each interval was, and how long the program's thread ran in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "drivers/live/rival.h"

/* The thread sleeps for 1,000 ns and then looks for another 1,000. */
static struct rival woken(uint64_t ran_before_ns, uint64_t ran_asleep_ns)
{
    struct rival rival;
    rival_note_sleep(&rival, (struct instant){7000}, ran_before_ns);
    rival_note_wake(&rival, (struct instant){8000}, ran_before_ns + ran_asleep_ns);
    return rival;
}

static void test_who_waits(void **state)
{
    (void)state;
    static const struct {
        uint64_t ran_asleep_ns, ran_awake_ns;
        bool known, waits;
    } rows[] = {
        {1000, 0, false, true},     /* It spins, and has no other processor than ours. */
        {1000, 1000, false, false}, /* It has one of its own. */
        {0, 0, true, false},        /* It sleeps, or the system does not tell. */
        {500, 0, true, false},      /* It sleeps half of the time. */
        {501, 249, false, true},    {501, 250, false, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rival rival = woken(5, rows[i].ran_asleep_ns);
        assert_int_equal(rival_is_known(&rival), rows[i].known);
        const uint64_t ran_ns = 5 + rows[i].ran_asleep_ns + rows[i].ran_awake_ns;
        assert_int_equal(rival_waits(&rival, (struct instant){9000}, ran_ns), rows[i].waits);
    }
}

/* The clocks are read once for each sleep: later rounds do not ask again. */
static void test_asked_once(void **state)
{
    (void)state;
    struct rival rival = woken(0, 1000);
    assert_false(rival_waits(&rival, (struct instant){9000}, 2000));
    assert_true(rival_is_known(&rival));
    assert_false(rival_waits(&rival, (struct instant){90000}, 2000));
    rival_note_sleep(&rival, (struct instant){90000}, 2000);
    assert_true(rival_is_known(&rival));
    rival_note_wake(&rival, (struct instant){91000}, 3000);
    assert_true(rival_waits(&rival, (struct instant){92000}, 3000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_waits),
        cmocka_unit_test(test_asked_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
