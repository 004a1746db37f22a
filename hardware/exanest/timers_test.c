/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The earliest of 1,024 deadlines is always first, whatever is set, moved or cancelled.
 * Method  Against an array of deadlines that is searched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/timers.h"

/* EXA-46 rests on it: no deadline is forgotten. */
static void test_against_search(void **state)
{
    (void)state;
    struct exanest_timers *timers = calloc(1, sizeof(*timers));
    static uint64_t model[EXANEST_TIDS]; /* 0: no timer. */
    struct prng prng;
    prng_init(&prng, 3);
    for (uint32_t i = 0; i < 30000; i++) {
        /* Few at first, then all, then few again. */
        const uint32_t span = i % 10000 < 5000 ? 16 : EXANEST_TIDS;
        const uint32_t tid = (uint32_t)prng_below(&prng, span);
        if (prng_below(&prng, 3) != 0) {
            model[tid] = 1 + prng_below(&prng, 500);
            exanest_timers_set(timers, tid, model[tid]);
        } else {
            model[tid] = 0;
            exanest_timers_cancel(timers, tid);
        }
        uint64_t earliest = UINT64_MAX;
        for (uint32_t t = 0; t < EXANEST_TIDS; t++) {
            assert_int_equal(exanest_timers_running(timers, t), model[t] != 0);
            earliest = model[t] != 0 && model[t] < earliest ? model[t] : earliest;
        }
        assert_true(exanest_timers_deadline(timers) == earliest);
        if (earliest != UINT64_MAX) {
            assert_true(model[exanest_timers_first(timers)] == earliest);
        }
        if (i % 64 == 0) {
            exanest_timers_check(timers);
        }
    }
    free(timers);
}

/* Taken one by one they come in order. */
static void test_order(void **state)
{
    (void)state;
    struct exanest_timers *timers = calloc(1, sizeof(*timers));
    struct prng prng;
    prng_init(&prng, 4);
    for (uint32_t tid = 0; tid < EXANEST_TIDS; tid++) {
        exanest_timers_set(timers, tid, prng_next(&prng) >> 1);
    }
    uint64_t last = 0;
    for (uint32_t i = 0; i < EXANEST_TIDS; i++) {
        assert_true(exanest_timers_deadline(timers) >= last);
        last = exanest_timers_deadline(timers);
        exanest_timers_cancel(timers, exanest_timers_first(timers));
        exanest_timers_check(timers);
    }
    assert_true(exanest_timers_deadline(timers) == UINT64_MAX);
    free(timers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_search),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
