/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A requester hands out each index once, keeps what waits at it, and says when none is
 *         left. Behaviours CSR-09, CSR-10, CSR-11, CSR-12.
 * Method  Random reserving and releasing in any order, beside an array of what is out; the greatest
 *         and the least capacity among them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "hardware/csrna/qpc_requester.h"

struct info {
    uint64_t value[3];
};

static void run(uint32_t oocap)
{
    struct prng prng;
    struct qpc_requester requester;
    uint64_t out[QPC_OOCAP_MAX] = {0}; /* The value that waits; 0: free. */
    uint32_t count = 0;
    prng_init(&prng, oocap);
    void *memory = malloc(qpc_requester_bytes(oocap, sizeof(struct info)));
    qpc_requester_init(&requester, oocap, sizeof(struct info), memory);
    for (uint64_t step = 1; step < 20000; step++) {
        if (prng_below(&prng, 2)) {
            const int index = qpc_requester_reserve(&requester);
            assert_int_equal(index == -1, count == oocap); /* CSR-09, CSR-10 */
            if (index == -1) {
                continue;
            }
            assert_in_range(index, 0, oocap - 1);
            assert_true(out[index] == 0); /* CSR-11 */
            struct info *info = qpc_requester_info(&requester, (uint32_t)index);
            *info = (struct info){{step, step + 1, step + 2}};
            out[index] = step;
            count++;
            continue;
        }
        const uint32_t index = (uint32_t)prng_below(&prng, oocap);
        if (out[index] != 0) {
            const struct info *info = qpc_requester_info(&requester, index);
            assert_true(info->value[0] == out[index] && info->value[2] == out[index] + 2);
            qpc_requester_release(&requester, index); /* CSR-12 */
            out[index] = 0;
            count--;
        }
    }
    free(memory);
}

static void test_random(void **state)
{
    (void)state;
    for (uint32_t oocap = 1; oocap <= QPC_OOCAP_MAX; oocap++) {
        run(oocap);
    }
}

/* CSR-10: a FIFO: an index that is given back is used last. */
static void test_late_reuse(void **state)
{
    (void)state;
    struct qpc_requester requester;
    uint8_t memory[4];
    qpc_requester_init(&requester, 4, 1, memory);
    static const int expected[] = {0, 1, 2, 3, 0, 1};
    for (int i = 0; i < 6; i++) {
        const int index = qpc_requester_reserve(&requester);
        assert_int_equal(index, expected[i]);
        qpc_requester_release(&requester, (uint32_t)index);
    }
}

/* CSR-09: one unit out of indices, another one with all of its own. */
static void test_stalls_alone(void **state)
{
    (void)state;
    struct qpc_requester requesters[2];
    uint8_t memory[2][2];
    for (int i = 0; i < 2; i++) {
        qpc_requester_init(&requesters[i], 2, 1, memory[i]);
    }
    assert_int_equal(qpc_requester_reserve(&requesters[0]), 0);
    assert_int_equal(qpc_requester_reserve(&requesters[0]), 1);
    assert_int_equal(qpc_requester_reserve(&requesters[0]), -1);
    assert_int_equal(qpc_requester_reserve(&requesters[1]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_late_reuse),
        cmocka_unit_test(test_stalls_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
