/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The data that a crowd of nodes exchanges come right and once while bits are flipped, on
 *         each kind of network. One seed is one run. The judgement sees each kind of error.
 * Method  The exchanges of `lant/crowd`, with few nodes: as they are, and with each mechanism off.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "lab/lant/crowd.h"

enum {
    SEEDS = 3,
};

static struct lab_run *prepare(uint64_t seed, const char *settings)
{
    char error[300] = "";
    struct lab_run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    lab_prepare(run, &lant_crowd, seed);
    if (!lab_set_all(run, settings, error, sizeof(error))) {
        fail_msg("%s", error);
    }
    return run;
}

static struct lant_crowd_outcome act(bool halo, enum lant_network_kind kind, uint64_t seed,
                                     const char *settings, uint64_t *digest)
{
    struct lab_run *run = prepare(seed, settings);
    const struct lant_crowd_outcome outcome =
        halo ? lant_crowd_halo(run, kind) : lant_crowd_exchange(run, kind);
    assert_string_equal(run->failure, "");
    *digest = run->digest;
    free(run);
    return outcome;
}

/* LNI-78 LNI-86: all is right, on each network, and happens again with the same seed. */
static void test_right(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 6 * SEEDS; i++) {
        uint64_t digest, second, other;
        const bool halo = i % 2 != 0;
        const enum lant_network_kind kind = (enum lant_network_kind)(i / 2 % 3);
        const uint64_t seed = 1 + i / 6;
        const char *const settings = i / 6 == 0   ? "crowd=27"
                                     : i / 6 == 1 ? "crowd=12 bit_errors=4e-6 early=off"
                                                  : "crowd=30 entries=2 escapes=1 cam=1";
        const struct lant_crowd_outcome outcome = act(halo, kind, seed, settings, &digest);
        assert_int_equal(outcome.wrong, 0);
        assert_int_equal(outcome.miscounted, 0);
        assert_int_equal(outcome.failed, 0);
        assert_int_equal(outcome.kept, 0);
        assert_true(outcome.repaired > 0 && outcome.nacks > 0);
        if (i < 6) {
            (void)act(halo, kind, seed, settings, &second);
            (void)act(halo, kind, seed + 1, settings, &other);
            assert_int_equal(second, digest);
            assert_int_not_equal(other, digest);
        }
    }
}

/* Without retries operations fail, and say so; with any CRC good, bytes are wrong. */
static void test_judgement(void **state)
{
    (void)state;
    for (uint32_t halo = 0; halo < 2; halo++) {
        uint64_t digest;
        const struct lant_crowd_outcome given_up =
            act(halo, LANT_TORUS, 1, "crowd=27 retries=0", &digest);
        assert_true(given_up.wrong > 0 && given_up.failed > 0);
        const struct lant_crowd_outcome believed =
            act(halo, LANT_TORUS, 1, "crowd=64 crc=believed", &digest);
        assert_true(believed.wrong > 0);
        const struct lant_crowd_outcome forgetful =
            act(halo, LANT_TORUS, 1, "crowd=64 rings=off", &digest);
        assert_true(forgetful.miscounted + forgetful.failed + forgetful.kept > 0);
    }
    uint64_t digest;
    assert_true(act(true, LANT_TORUS, 1, "crowd=64 fence=off", &digest).wrong > 0);
    assert_int_equal(act(true, LANT_TORUS, 1, "crowd=64 bit_errors=0", &digest).nacks, 0);
}

static void test_grid(void **state)
{
    (void)state;
    static const uint32_t grids[][4] = {
        {1024, 16, 8, 8}, {64, 4, 4, 4}, {30, 5, 3, 2}, {7, 7, 1, 1}, {2, 2, 1, 1}};
    for (uint32_t i = 0; i < COUNT_OF(grids); i++) {
        uint32_t grid[3];
        lant_crowd_grid(grids[i][0], grid);
        assert_memory_equal(grid, &grids[i][1], sizeof(grid));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_judgement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
