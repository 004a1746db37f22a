/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A sender behind the fault injector: the time of a message is exactly that of its hops,
 *         its packets and its repairs. The grid of runs has its rates and seeds, and its sums are
 *         right.
 * Method  Single packets by hand, for each mode and distance, with faults never and always; counts
 *         of the sender against those of the network; small grids against their parts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lant/fabric.h"
#include "lab/lant/fault_runs.h"

enum {
    HOP = LANT_FAULT_HOP_CYCLES,
    CHECK_CYCLES = LANT_FAULT_CHECK_CYCLES,
    SETUP = 69,
    ATTEMPTS = LANT_RETRIES_MAX + 1,
    /* 74.83 behind the setup, which begins in a whole cycle. */
    ENTERS = SETUP + 75,
};

#define PACKET_PS 478933u

static struct lant_fault_pair_config config_of(enum lant_fault_mode mode)
{
    return (struct lant_fault_pair_config){.network = lant_fault_defaults(mode),
                                           .packet_ps = PACKET_PS,
                                           .setup_cycles = SETUP,
                                           .rows = LANT_ROWS};
}

static struct lant_fault_pair *open_pair(const struct lant_fault_pair_config *config)
{
    struct lant_fault_pair *pair = calloc(1, sizeof(*pair));
    assert_non_null(pair);
    lant_fault_pair_open(pair, config);
    return pair;
}

static struct lant_fault_message send(struct lant_fault_pair *pair, uint32_t packets)
{
    struct lant_fault_message message;
    assert_true(lant_fault_pair_send(pair, packets, &message));
    assert_int_equal(message.packets, packets);
    assert_true(lant_fault_idle(&pair->network));
    assert_int_equal(lant_rdma_in_flight(&pair->rdma), 0);
    return message;
}

/* -- One packet ---------------------------------------------------------------------------------*/

/* LNI-82: without errors, there and back; checks add to the way there. */
static void test_one_packet(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LANT_FAULT_MODES * 4; i++) {
        const enum lant_fault_mode mode = (enum lant_fault_mode)(i / 4);
        const uint32_t hops = 2 + i % 4;
        struct lant_fault_pair_config config = config_of(mode);
        lant_fault_fixed(&config.network, hops);
        struct lant_fault_pair *pair = open_pair(&config);
        for (uint32_t again = 0; again < 3; again++) {
            const struct lant_fault_message message = send(pair, 1);
            const uint32_t checks = mode == LANT_FAULT_E2E ? 0 : hops * CHECK_CYCLES;
            assert_int_equal(message.ps, (ENTERS + 2 * hops * HOP + checks) * LANT_CYCLE_PS);
            assert_int_equal(message.again, 0);
        }
        free(pair);
    }
}

/* LNI-82: with an error in each hop E2E takes the whole way each time, LLV turns behind the first
 * hop, and ECC does not notice. */
static void test_one_packet_spoilt(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LANT_FAULT_MODES * 4; i++) {
        const enum lant_fault_mode mode = (enum lant_fault_mode)(i / 4);
        const uint32_t hops = 2 + i % 4;
        struct lant_fault_pair_config config = config_of(mode);
        struct lant_fault_message message;
        lant_fault_fixed(&config.network, hops);
        config.network.threshold = LANT_FAULT_ALWAYS;
        struct lant_fault_pair *pair = open_pair(&config);
        const bool good = lant_fault_pair_send(pair, 1, &message);
        const bool corrects = mode == LANT_FAULT_ECC;
        const uint32_t way = mode == LANT_FAULT_E2E   ? 2 * hops * HOP
                             : mode == LANT_FAULT_LLV ? 2 * HOP + CHECK_CYCLES
                                                      : (2 * HOP + CHECK_CYCLES) * hops;
        assert_int_equal(good, corrects);
        assert_int_equal(message.again, corrects ? 0 : ATTEMPTS - 1);
        assert_int_equal(message.ps, (message.again + 1) * (ENTERS + way) * LANT_CYCLE_PS);
        assert_int_equal(pair->network.counters.nacks, corrects ? 0 : ATTEMPTS);
        free(pair);
    }
}

/* -- Messages -----------------------------------------------------------------------------------*/

/* As many packets as rows are under way; with one row, one after the other. */
static void test_rows(void **state)
{
    (void)state;
    static const uint16_t ROWS[] = {1, 5, 16};
    for (uint32_t i = 0; i < COUNT_OF(ROWS); i++) {
        struct lant_fault_pair_config config = config_of(LANT_FAULT_E2E);
        config.rows = ROWS[i];
        lant_fault_fixed(&config.network, 5);
        struct lant_fault_pair *pair = open_pair(&config);
        const struct lant_fault_message message = send(pair, 64);
        assert_int_equal(pair->rdma.transactions.used_max, ROWS[i]);
        if (ROWS[i] == 1) {
            /* Each begins with the answer of the one before, in a whole cycle. */
            assert_int_equal(message.ps, (SETUP + 64 * (75 + 10 * HOP)) * LANT_CYCLE_PS);
        }
        free(pair);
    }
}

/* LNI-81: distances as their weights say, within 3 sigma, and the same run from the same seed. */
static void test_distances(void **state)
{
    (void)state;
    for (uint32_t remote = 0; remote < 2; remote++) {
        struct lant_fault_pair_config config = config_of(LANT_FAULT_E2E);
        config.network.threshold = lant_fault_full_threshold(1e-6);
        config.network.seed = 12345;
        if (remote != 0) {
            lant_fault_remote(&config.network);
        }
        struct lant_fault_pair *pair = open_pair(&config), *twin = open_pair(&config);
        for (uint32_t i = 0; i < 20; i++) {
            const struct lant_fault_message one = send(pair, 1000), other = send(twin, 1000);
            assert_memory_equal(&one, &other, sizeof(one));
        }
        const struct lant_fault_counters *counters = &pair->network.counters;
        for (uint32_t hops = 2; hops <= LANT_FAULT_HOPS_MAX; hops++) {
            const double share = config.network.weights[hops] / 15.0;
            const double all = (double)counters->packets, expected = all * share;
            assert_true(fabs((double)counters->hops[hops] - expected) <=
                        3 * sqrt(expected * (1 - share)));
        }
        assert_int_equal(counters->hops[0] + counters->hops[1], 0);
        free(pair);
        free(twin);
    }
}

/* Each NACK is one packet that goes again, whatever else is switched on. */
static void test_repairs(void **state)
{
    (void)state;
    uint64_t again[2] = {0}, ps[2] = {0};
    for (uint32_t variant = 0; variant < 2; variant++) {
        struct lant_fault_pair_config config = config_of(LANT_FAULT_E2E);
        config.network.threshold = lant_fault_full_threshold(1e-6);
        config.pipelined = variant == 1;
        struct lant_fault_pair *pair = open_pair(&config);
        for (uint32_t i = 0; i < 10; i++) {
            const struct lant_fault_message message = send(pair, 2000);
            again[variant] += message.again;
            ps[variant] += message.ps;
        }
        assert_int_equal(pair->network.counters.nacks, again[variant]);
        assert_int_equal(pair->rdma.counters.timeouts, 0);
        assert_in_range(again[variant], 300, 700); /* 2.4 % of 20,000. */
        free(pair);
    }
    /* One at a time, each with its setup and the way there and back: not behind one another. */
    assert_true(ps[0] > ps[1] + 200 * UINT64_C(500) * LANT_CYCLE_PS);
}

/* Go-back-N sends the packets behind a failed one again, too: up to a window of 16. */
static void test_go_back(void **state)
{
    (void)state;
    struct lant_fault_pair_config config = config_of(LANT_FAULT_E2E);
    config.network.threshold = lant_fault_full_threshold(1e-6);
    config.goes_back = true;
    struct lant_fault_pair *pair = open_pair(&config);
    uint64_t again = 0;
    for (uint32_t i = 0; i < 10; i++) {
        again += send(pair, 2000).again;
    }
    assert_true(again > 5 * pair->network.counters.nacks);
    assert_true(again < 16 * pair->network.counters.nacks);
    free(pair);
}

/* -- Grids --------------------------------------------------------------------------------------*/

static struct lab_run *open_run(uint64_t seed)
{
    struct lab_run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    lab_prepare(run, &lant_faults, seed);
    return run;
}

static struct lant_fault_grid *run_grid(uint64_t seed, const struct lant_fault_plan *plan)
{
    struct lant_fault_grid *grid = malloc(sizeof(*grid));
    struct lab_run *run = open_run(seed);
    assert_non_null(grid);
    lant_fault_grid_run(run, grid, plan);
    assert_string_equal(run->failure, "");
    free(run);
    return grid;
}

static void expect_sum(const struct lant_fault_statistics *cells, uint32_t messages)
{
    const struct lant_fault_statistics *all = &cells[LANT_FAULT_ALL_SEEDS];
    double mean = 0, squares = 0;
    for (uint32_t seed = 0; seed < LANT_FAULT_SEEDS; seed++) {
        assert_int_equal(cells[seed].count, messages);
        mean += cells[seed].mean / LANT_FAULT_SEEDS;
    }
    for (uint32_t seed = 0; seed < LANT_FAULT_SEEDS; seed++) {
        const double apart = cells[seed].mean - mean;
        squares += cells[seed].squares + messages * apart * apart;
    }
    assert_int_equal(all->count, LANT_FAULT_SEEDS * messages);
    assert_true(fabs(all->mean - mean) < 1e-6 * mean);
    assert_true(fabs(all->squares - squares) < 1e-6 * squares);
}

/* LNI-84: eight error rates and three seeds, each of which is a run of its own. */
static void test_grid(void **state)
{
    (void)state;
    static const struct lant_fault_plan plan = {.messages = {300, 0, 0}};
    struct lant_fault_grid *grid = run_grid(1, &plan);
    assert_true(LANT_FAULT_RATES >= 8 && LANT_FAULT_SEEDS >= 3 && lant_fault_rates[0] == 0);
    for (uint32_t i = 0; i < LANT_FAULT_DISTRIBUTIONS * LANT_FAULT_MODES; i++) {
        const uint32_t mode = i % LANT_FAULT_MODES;
        struct lant_fault_statistics(*rates)[LANT_FAULT_SEEDS + 1] =
            grid->cells[LANT_FAULT_4K][i / LANT_FAULT_MODES][mode];
        for (uint32_t rate = 0; rate < LANT_FAULT_RATES; rate++) {
            expect_sum(rates[rate], 300);
            for (uint32_t seed = 0; seed < LANT_FAULT_SEEDS; seed++) {
                const uint32_t next = (seed + 1) % LANT_FAULT_SEEDS;
                assert_true(rates[rate][seed].mean != rates[rate][next].mean);
            }
            if (rate == 0) {
                continue;
            }
            assert_true(lant_fault_rates[rate] > lant_fault_rates[rate - 1]);
            /* ECC is one run. */
            assert_int_equal(rates[rate][0].mean == rates[rate - 1][0].mean,
                             mode == LANT_FAULT_ECC);
            assert_int_equal(rates[rate][LANT_FAULT_ALL_SEEDS].again != 0, mode != LANT_FAULT_ECC);
        }
    }
    assert_int_equal(grid->cells[LANT_FAULT_2M][0][0][0][0].count, 0);
    free(grid);
}

/* LNI-84: LNI-A28a, A28b, A32 and A33 in each of three seeds of another run, in small. */
static void test_crossings(void **state)
{
    (void)state;
    static const struct lant_fault_plan plan = {.messages = {0, 0, 3}, .without_llv = true};
    struct lant_fault_grid *grid = run_grid(77, &plan);
    const uint32_t bytes = lant_fault_bytes[LANT_FAULT_2M];
    for (uint32_t seed = 0; seed < LANT_FAULT_SEEDS; seed++) {
        const double local = lant_fault_crossing(grid, LANT_FAULT_2M, LANT_FAULT_LOCAL, seed);
        const double remote = lant_fault_crossing(grid, LANT_FAULT_2M, LANT_FAULT_REMOTE, seed);
        assert_true(local > 4e-7 && local < 7e-7 && remote > 4e-7 && remote < 7e-7);
        assert_true(remote / local > 0.75 && remote / local < 1.35);
        const double full =
            lant_fault_goodput(&grid->cells[LANT_FAULT_2M][0][LANT_FAULT_E2E][0][seed], bytes);
        const double corrected =
            lant_fault_goodput(&grid->cells[LANT_FAULT_2M][0][LANT_FAULT_ECC][0][seed], bytes);
        const double far =
            lant_fault_goodput(&grid->cells[LANT_FAULT_2M][1][LANT_FAULT_E2E][0][seed], bytes);
        assert_true(full > 8.39 && full < 8.56 && far > 6.7 && far < 7.2);
        assert_true(corrected / full > 0.84 && corrected / full < 0.9);
    }
    free(grid);
}

/* Between two rates by a straight line; never; from the beginning. */
static void test_crossing(void **state)
{
    (void)state;
    struct lant_fault_grid *grid = calloc(1, sizeof(*grid));
    assert_non_null(grid);
    struct lant_fault_statistics(*e2e)[LANT_FAULT_SEEDS + 1] = grid->cells[0][0][LANT_FAULT_E2E];
    struct lant_fault_statistics(*ecc)[LANT_FAULT_SEEDS + 1] = grid->cells[0][0][LANT_FAULT_ECC];
    for (uint32_t rate = 0; rate < LANT_FAULT_RATES; rate++) {
        ecc[rate][0].mean = 1000;
        e2e[rate][0].mean = rate < 5 ? 970 : 1010; /* From 5e-7 on to 7e-7. */
    }
    assert_true(fabs(lant_fault_crossing(grid, LANT_FAULT_4K, LANT_FAULT_LOCAL, 0) - 6.5e-7) <
                1e-12);
    for (uint32_t rate = 0; rate < LANT_FAULT_RATES; rate++) {
        e2e[rate][0].mean = 1000;
    }
    assert_true(lant_fault_crossing(grid, LANT_FAULT_4K, LANT_FAULT_LOCAL, 0) == 2e-6);
    e2e[0][0].mean = 1001;
    assert_true(lant_fault_crossing(grid, LANT_FAULT_4K, LANT_FAULT_LOCAL, 0) == 0);
    free(grid);
}

static const struct lab_claim *claim_of(const char *id)
{
    static const struct lab_experiment *const experiments[] = {&lant_faults, &lant_crossings,
                                                               &lant_goodput, &lant_jitter};
    for (uint32_t i = 0; i < COUNT_OF(experiments); i++) {
        for (uint32_t k = 0; k < experiments[i]->claim_count; k++) {
            const struct lab_claim *claim = &experiments[i]->claims[k];
            if (strcmp(claim->id, id) == 0) {
                return claim;
            }
        }
    }
    fail_msg("there is no %s", id);
    return NULL;
}

/* LNI-84: what the document prints and the rules do not give says so; all else is claimed. (The
 * rows themselves are held by experiments_test, which also refuses a row that is within its
 * tolerance though its claim says that it is not reproduced.) */
static void test_claims(void **state)
{
    (void)state;
    static const char *const not_reproduced[] = {"LNI-A28c", "LNI-A29", "LNI-A29.order",
                                                 "LNI-A34.LLV", "LNI-AX"};
    static const char *const claimed[] = {
        "LNI-A28a",         "LNI-A28a.R",       "LNI-A28b",       "LNI-A30.LLV",
        "LNI-A30.ECC",      "LNI-A31",          "LNI-A32.L",      "LNI-A32.R",
        "LNI-A33",          "LNI-A34.low",      "LNI-A34.high",   "LNI-A63",
        "LNI-A63.line",     "LNI-A65",          "LNI-A67.E2E",    "LNI-A67.LLV",
        "LNI-A67.ECC",      "LNI-A67.E2E.4K",   "LNI-A67.LLV.4K", "LNI-A67.E2E.rows",
        "LNI-A67.LLV.rows", "LNI-A67.ECC.rows",
    };
    for (uint32_t i = 0; i < COUNT_OF(not_reproduced); i++) {
        assert_non_null(claim_of(not_reproduced[i])->not_reproduced);
    }
    for (uint32_t i = 0; i < COUNT_OF(claimed); i++) {
        assert_null(claim_of(claimed[i])->not_reproduced);
    }
}

/* Each of 4,352 bits may be wrong. */
static void test_threshold(void **state)
{
    (void)state;
    assert_int_equal(lant_fault_full_threshold(0), 0);
    assert_int_equal(lant_fault_threshold(1, 1), LANT_FAULT_ALWAYS);
    assert_int_equal(lant_fault_threshold(0.5, 2), LANT_FAULT_ALWAYS / 4 * 3);
    const double share = 1 - pow(1 - 1e-6, 4352);
    assert_true(fabs((double)lant_fault_full_threshold(1e-6) - share * 0x1p32) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_packet), cmocka_unit_test(test_one_packet_spoilt),
        cmocka_unit_test(test_rows),       cmocka_unit_test(test_distances),
        cmocka_unit_test(test_repairs),    cmocka_unit_test(test_go_back),
        cmocka_unit_test(test_grid),       cmocka_unit_test(test_crossings),
        cmocka_unit_test(test_crossing),   cmocka_unit_test(test_claims),
        cmocka_unit_test(test_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
