/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Requests of one destination come out in order, whatever those of others do; a full NIC
 *         refuses, and takes again what room it gets.
 * Method  Random puts and takes against numbers that each destination expects.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "hardware/forth/voqs.h"

static void test_order(void **state)
{
    struct forth_voqs *voqs = calloc(1, sizeof(*voqs));
    uint32_t put[FORTH_PORTS_MAX] = {0}, taken[FORTH_PORTS_MAX] = {0};
    uint32_t in = 0, refused = 0;
    struct prng prng;
    (void)state;
    assert_non_null(voqs);
    prng_init(&prng, 7);
    forth_voqs_init(voqs);
    for (uint32_t i = 0; i < 40000; i++) {
        const uint32_t to = (uint32_t)prng_below(&prng, FORTH_PORTS_MAX);
        /* It fills up, and empties, in turns. */
        if (prng_below(&prng, 10) < (i / 8000 % 2 == 0 ? 8U : 2U)) {
            const struct forth_request request = {.node = (uint8_t)to, .destination = put[to]};
            const bool taken_in = forth_voqs_put(voqs, &request);
            assert_int_equal(taken_in, in < FORTH_QUEUE_REQUESTS);
            put[to] += taken_in;
            in += taken_in;
            refused += !taken_in;
        } else if (voqs->waiting >> to & 1) {
            const struct forth_request *request = forth_voqs_first(voqs, to);
            assert_int_equal(request->node, to);
            assert_int_equal(request->destination, taken[to]++);
            forth_voqs_drop_first(voqs, to);
            in--;
        } else {
            assert_int_equal(put[to], taken[to]);
        }
        assert_int_equal(voqs->count, in);
        assert_int_equal(voqs->to[to].count, put[to] - taken[to]);
    }
    assert_true(refused > 0);
    free(voqs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
