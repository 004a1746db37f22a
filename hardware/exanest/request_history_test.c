/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A request that was taken lately is known; no other is taken for it.
 * Method  Random requests, against a list of all in order of arrival.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/request_history.h"

#define REQUESTS 4000u

/* EXA-55: each part of the key counts. */
static void test_key(void **state)
{
    (void)state;
    struct exanest_request_history *history = calloc(1, sizeof(*history));
    const struct exanest_request_key key = {
        .coordinate = 1, .request_id = 2, .channel = 3, .pdid = 4};
    const struct exanest_request_key others[] = {
        {2, 2, 3, 4}, {1, 3, 3, 4}, {1, 2, 4, 4}, {1, 2, 3, 5}, {0, 0, 0, 0}};
    assert_false(exanest_history_has(history, key));
    exanest_history_add(history, key);
    assert_true(exanest_history_has(history, key));
    for (uint32_t i = 0; i < COUNT_OF(others); i++) {
        assert_false(exanest_history_has(history, others[i]));
        exanest_history_add(history, others[i]);
        assert_true(exanest_history_has(history, others[i]));
    }
    exanest_history_forget(history, 4); /* Its number may go to another process. */
    assert_false(exanest_history_has(history, key));
    assert_true(exanest_history_has(history, others[3]));
    free(history);
}

/* EXA-55: 256 requests ago is lately (in sets of 8 by chance); what never came is never known. */
static void test_lately(void **state)
{
    (void)state;
    struct exanest_request_history *history = calloc(1, sizeof(*history));
    static struct exanest_request_key keys[REQUESTS];
    struct prng prng;
    uint32_t forgotten = 0;
    prng_init(&prng, 5);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        keys[i] = (struct exanest_request_key){.coordinate = (uint32_t)prng_below(&prng, 64),
                                               .request_id = i / 16,
                                               .channel = (uint16_t)(i % 16),
                                               .pdid = (uint16_t)prng_below(&prng, 2)};
        assert_false(exanest_history_has(history, keys[i]));
        exanest_history_add(history, keys[i]);
        for (uint32_t back = 0; back < 256 && back <= i; back += 17) {
            forgotten += !exanest_history_has(history, keys[i - back]);
        }
        if (i == REQUESTS / 2) {
            exanest_history_forget(history, 2); /* Nobody's: nothing changes. */
        }
    }
    assert_true(forgotten < REQUESTS * 16 / 1000);
    exanest_history_forget(history, 1);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        assert_true(keys[i].pdid == 0 || !exanest_history_has(history, keys[i]));
    }
    assert_true(exanest_history_has(history, keys[REQUESTS - 1]) || keys[REQUESTS - 1].pdid == 1);
    free(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_lately),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
