/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The parts that machines are made of do what their headers say.
 * Method  Each against a count by hand or a model that is simpler.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "sim/errors.h"
#include "sim/faults.h"
#include "sim/memory.h"
#include "sim/meter.h"
#include "sim/number.h"
#include "sim/pool.h"
#include "sim/trace.h"
#include "sim/traffic.h"

/* -- Pool ---------------------------------------------------------------------------------------*/

static void test_pool(void **state)
{
    (void)state;
    struct sim_pool pool;
    void *taken[3];
    sim_pool_open(&pool, 3, 100);
    for (int i = 0; i < 3; i++) {
        taken[i] = sim_pool_take(&pool);
        assert_non_null(taken[i]);
        memset(taken[i], i, 100);
    }
    assert_null(sim_pool_take(&pool));
    assert_int_equal(*(uint8_t *)taken[0], 0);
    assert_int_equal(*(uint8_t *)taken[1], 1);
    sim_pool_give(&pool, taken[1]);
    assert_int_equal(sim_pool_taken(&pool), 2);
    assert_ptr_equal(sim_pool_take(&pool), taken[1]);
    assert_int_equal(pool.used, 3);
    sim_pool_close(&pool);
}

/* -- Memory -------------------------------------------------------------------------------------*/

static void test_memory(void **state)
{
    (void)state;
    struct sim_memory memory;
    uint8_t *at;
    sim_memory_open(&memory, 3 * SIM_PAGE_BYTES - 5);
    assert_int_equal(memory.size, 3 * SIM_PAGE_BYTES);
    assert_int_equal(sim_memory_at(&memory, 0, memory.size, &at), SIM_MEMORY_GOOD);
    assert_int_equal(sim_memory_at(&memory, 1, memory.size, &at), SIM_MEMORY_OUTSIDE);
    assert_int_equal(sim_memory_at(&memory, UINT64_MAX - 3, 8, &at), SIM_MEMORY_OUTSIDE);
    assert_int_equal(sim_memory_at(&memory, memory.size - 8, 8, &at), SIM_MEMORY_GOOD);
    assert_ptr_equal(at, memory.bytes + memory.size - 8);
    assert_int_equal(sim_memory_at(&memory, memory.size - 8, 9, &at), SIM_MEMORY_OUTSIDE);
    sim_memory_close(&memory);
}

/* -- Errors -------------------------------------------------------------------------------------*/

static void test_errors(void **state)
{
    (void)state;
    struct sim_errors errors;
    sim_errors_init(&errors, 3, 1e-3, 250000);
    uint64_t flips = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        if (sim_errors_pass(&errors, 1000)) {
            continue;
        }
        uint64_t last = 0;
        uint64_t at = sim_errors_next(&errors, 0, 1000);
        assert_true(at < 1000);
        while (at < 1000) {
            assert_true(flips == 0 || at >= last);
            last = at + 1;
            flips++;
            at = sim_errors_next(&errors, at + 1, 1000);
        }
    }
    assert_int_equal(errors.flipped, flips);
    assert_in_range(flips, 9600, 10400); /* 10,000 expected, four deviations of 100. */
    uint32_t lost = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        lost += sim_errors_loses(&errors);
    }
    assert_in_range(lost, 2300, 2700);
    const struct sim_errors none = {.lost = 0};
    errors = none;
    assert_true(sim_errors_pass(&errors, UINT64_MAX));
    assert_false(sim_errors_loses(&errors));
}

/* Each fault strikes as often as its own probability says, and is counted under its own name; one
 * that never strikes draws nothing, so that it leaves the world as it was. */
static void test_faults(void **state)
{
    (void)state;
    struct prng prng, untouched;
    prng_init(&prng, 5);
    untouched = prng;
    struct sim_faults faults = {
        .millionths = {[SIM_FAULT_late] = 250000, [SIM_FAULT_cut] = 1000000}};
    uint64_t late = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        assert_false(sim_fault_strikes(&faults, SIM_FAULT_drop, &prng));
    }
    assert_memory_equal(&prng, &untouched, sizeof(prng));
    for (uint32_t i = 0; i < 10000; i++) {
        late += sim_fault_strikes(&faults, SIM_FAULT_late, &prng);
        assert_true(sim_fault_strikes(&faults, SIM_FAULT_cut, &prng));
    }
    assert_in_range(late, 2300, 2700); /* 2,500 expected, more than four deviations of 43. */
    for (uint32_t fault = 0; fault < SIM_FAULT_COUNT; fault++) {
        const uint64_t expected = fault == SIM_FAULT_late  ? late
                                  : fault == SIM_FAULT_cut ? 10000
                                                           : 0;
        assert_int_equal(faults.struck[fault], expected);
    }
    assert_string_equal(sim_fault_name(SIM_FAULT_drop), "drop");
    assert_string_equal(sim_fault_name(SIM_FAULT_lazy), "lazy");
}

static void test_numbers(void **state)
{
    (void)state;
    for (double value = 1; value > 1e-300; value *= 0.37) {
        assert_true(fabs(sim_log(value) - log(value)) <= 4e-16 * fabs(log(value)));
    }
    for (double x = 0.9; x > 1e-12; x /= 3) {
        assert_true(fabs(sim_log_of_1_plus(-x) - log1p(-x)) <= 1e-14 * fabs(log1p(-x)));
    }
}

/* -- Traffic ------------------------------------------------------------------------------------*/

static void test_payloads(void **state)
{
    (void)state;
    uint64_t payload[20];
    struct sim_sink sink = {.expected = 0};
    for (uint64_t i = 0; i < 3; i++) {
        sim_payload_fill(payload, 20, 77, i);
        assert_int_equal(sim_sink_judge(&sink, payload, 20, 77), SIM_PAYLOAD_GOOD);
    }
    assert_int_equal(sim_sink_judge(&sink, payload, 20, 77), SIM_PAYLOAD_EARLIER);
    assert_int_equal(sim_sink_judge(&sink, payload, 20, 78), SIM_PAYLOAD_WRONG_BYTES);
    sim_payload_fill(payload, 20, 77, 5);
    for (uint32_t bit = 0; bit < 20 * 64; bit++) { /* Every bit counts. */
        struct sim_sink probe = sink;
        payload[bit / 64] ^= UINT64_C(1) << bit % 64;
        const enum sim_payload_verdict verdict = sim_sink_judge(&probe, payload, 20, 77);
        assert_int_equal(verdict, SIM_PAYLOAD_WRONG_BYTES);
        payload[bit / 64] ^= UINT64_C(1) << bit % 64;
    }
    assert_int_equal(sim_sink_judge(&sink, payload, 20, 77), SIM_PAYLOAD_LATER);
    assert_int_equal(sink.missing, 2);
    assert_int_equal(sink.expected, 6);
}

static void test_arrivals(void **state)
{
    (void)state;
    struct prng prng;
    uint64_t sum = 0;
    uint32_t counts[8] = {0};
    prng_init(&prng, 9);
    for (uint32_t i = 0; i < 100000; i++) {
        sum += sim_poisson_gap(&prng, 1000000);
        counts[sim_destination(&prng, 3, 8, 0)]++;
    }
    assert_in_range(sum / 100000, 985000, 1015000);
    assert_int_equal(counts[3], 0);
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(i == 3 || (counts[i] > 13800 && counts[i] < 14800));
    }
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(sim_destination(&prng, 3, 8, 1), 7);
    }
}

/* -- Meters -------------------------------------------------------------------------------------*/

static void test_meters(void **state)
{
    (void)state;
    struct sim_rate rate = {.from_ps = 1000};
    sim_rate_count(&rate, 500, 100); /* Warming up. */
    for (uint64_t i = 0; i <= 10; i++) {
        sim_rate_count(&rate, 1000 + i * 1000, 8);
    }
    assert_true(fabs(sim_rate_per_second(&rate) - 8e9) < 1);
    struct sim_spread *spread = calloc(1, sizeof(*spread));
    assert_non_null(spread);
    for (uint64_t i = 1; i <= 1000; i++) {
        sim_spread_count(spread, i * 100);
    }
    assert_int_equal(spread->least, 100);
    assert_int_equal(spread->most, 100000);
    assert_true(fabs(sim_spread_mean(spread) - 50050) < 1e-6);
    const uint64_t half = sim_spread_percentile(spread, 0.5);
    assert_in_range(half, 50000 - 50000 / 32, 50000);
    free(spread);
    const double equal[] = {3, 3, 3, 3};
    const double one[] = {5, 0, 0, 0};
    assert_true(sim_fairness(equal, 4) > 0.999999);
    assert_true(fabs(sim_fairness(one, 4) - 0.25) < 1e-9);
}

/* -- Traces -------------------------------------------------------------------------------------*/

static char *trace_text(const char *end)
{
    char path[64];
    char error[200];
    snprintf(path, sizeof(path), "/tmp/nonic-trace-%d%s", getpid(), end);
    struct sim_trace *trace = sim_trace_open(path, error, sizeof(error));
    assert_non_null(trace);
    const uint32_t spans = sim_trace_track(trace, "node", 3, "link out", 0);
    const uint32_t level = sim_trace_track(trace, "node", 3, "words", 4);
    sim_trace_span(trace, spans, "packet", 7, 2500000, 3000001);
    sim_trace_value(trace, level, 2600000, 9);
    sim_trace_span(trace, spans, "packet", 8, 1000000, 2500000); /* Out of order. */
    assert_true(sim_trace_close(trace, error, sizeof(error)));
    char *text = calloc(1, 4096);
    FILE *file = fopen(path, "r");
    assert_non_null(text);
    assert_non_null(file);
    assert_true(fread(text, 1, 4095, file) > 0);
    fclose(file);
    unlink(path);
    return text;
}

static void test_traces(void **state)
{
    (void)state;
    char error[200];
    assert_null(sim_trace_open("trace.txt", error, sizeof(error)));
    assert_non_null(strstr(error, ".vcd"));
    assert_null(sim_trace_open("/nowhere/at/all.json", error, sizeof(error)));
    char *json = trace_text(".json");
    assert_non_null(strstr(json, "\"ts\":2.500000,\"dur\":0.500001,\"name\":\"packet 7\""));
    assert_non_null(strstr(json, "\"ph\":\"C\""));
    assert_non_null(strstr(json, "\"name\":\"node 3\""));
    free(json);
    char *vcd = trace_text(".vcd");
    assert_non_null(strstr(vcd, "$timescale 1 ps $end"));
    assert_non_null(strstr(vcd, "$scope module node_3 $end"));
    /* In order; the first packet ends where the second begins. */
    assert_non_null(strstr(vcd, "#1000000\nspacket_8 !\n#2500000\ns !\nspacket_7 !\n#2600000\n"
                                "b1001 \"\n#3000001\ns !\n"));
    free(vcd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool),     cmocka_unit_test(test_memory),
        cmocka_unit_test(test_errors),   cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_payloads), cmocka_unit_test(test_arrivals),
        cmocka_unit_test(test_meters),   cmocka_unit_test(test_traces),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
