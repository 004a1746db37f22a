/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Destinations are those that the pattern's name or the matrix say, as often as they say.
 *         Traces are read as written. An error is refused with its line.
 * Method  Maps against models on strings of digits; frequencies of a seed within five standard
 *         deviations; lines by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/pattern.h"
#include "sim/topology.h"
#include "sim/traffic_trace.h"

#define NODES_MAX 4096u

static void open_named(struct pattern *pattern, const char *description, uint32_t nodes,
                       uint64_t seed)
{
    char error[TOPOLOGY_ERROR_BYTES] = "";
    struct prng prng;
    prng_init(&prng, seed);
    if (!pattern_open(pattern, description, nodes, &prng, error, sizeof(error))) {
        fail_msg("%s: %s", description, error);
    }
}

/* Whether `count` out of `tries` is what a probability would give. */
static void check_frequency(uint32_t count, uint32_t tries, double probability)
{
    const double deviation = sqrt(tries * probability * (1 - probability));
    assert_true(fabs(count - tries * probability) <= 5 * deviation);
}

/* -- Maps ---------------------------------------------------------------------------------------*/

#define BITS 6

/* Nodes as strings of bits, the highest first. */
static void write_bits(uint32_t node, char *text)
{
    for (uint32_t i = 0; i < BITS; i++) {
        text[i] = (node >> (BITS - 1 - i) & 1) != 0 ? '1' : '0';
    }
    text[BITS] = '\0';
}

static void model_reverse(const char *from, char *to)
{
    for (uint32_t i = 0; i < BITS; i++) {
        to[i] = from[BITS - 1 - i];
    }
}

static void model_complement(const char *from, char *to)
{
    for (uint32_t i = 0; i < BITS; i++) {
        to[i] = from[i] == '0' ? '1' : '0';
    }
}

static void model_shuffle(const char *from, char *to)
{
    memcpy(to, from + 1, BITS - 1);
    to[BITS - 1] = from[0];
}

static void model_transpose(const char *from, char *to)
{
    memcpy(to, from + BITS / 2, BITS / 2);
    memcpy(to + BITS / 2, from, BITS / 2);
}

static const struct {
    const char *name;
    void (*model)(const char *from, char *to);
} by_bits[] = {
    {"bit-reverse", model_reverse},
    {"bit-complement", model_complement},
    {"shuffle", model_shuffle},
    {"transpose", model_transpose},
};

static void test_maps_of_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(by_bits); i++) {
        struct pattern pattern;
        open_named(&pattern, by_bits[i].name, 1u << BITS, 0);
        for (uint32_t node = 0; node < 1u << BITS; node++) {
            char from[BITS + 1], expected[BITS + 1] = "", found[BITS + 1];
            const uint32_t to = pattern_destination(&pattern, NULL, node);
            write_bits(node, from);
            by_bits[i].model(from, expected);
            write_bits(to == PATTERN_SILENT ? node : to, found);
            assert_string_equal(found, expected);
            assert_true(to != node);
            assert_true(pattern_load(&pattern, node) == (to == PATTERN_SILENT ? 0 : 1));
        }
        assert_int_equal(pattern_bytes(&pattern), 4 << BITS);
        pattern_close(&pattern);
    }
}

static void test_other_maps(void **state)
{
    (void)state;
    struct pattern pattern;
    open_named(&pattern, "transpose", 9, 0);
    assert_int_equal(pattern_destination(&pattern, NULL, 1), 3);
    assert_int_equal(pattern_destination(&pattern, NULL, 5), 7);
    assert_true(pattern_destination(&pattern, NULL, 4) == PATTERN_SILENT);
    pattern_close(&pattern);
    open_named(&pattern, "tornado", 9, 0);
    assert_int_equal(pattern_destination(&pattern, NULL, 7), (7 + 4) % 9);
    pattern_close(&pattern);
    open_named(&pattern, "tornado:8x5x2", 80, 0);
    assert_int_equal(pattern_destination(&pattern, NULL, 6 + 8 * 4 + 40), 1 + 8 * 1 + 40);
    pattern_close(&pattern);
    open_named(&pattern, "neighbour", 10, 0);
    assert_int_equal(pattern_destination(&pattern, NULL, 9), 0);
    pattern_close(&pattern);
    open_named(&pattern, "neighbour:2x5", 10, 0);
    assert_int_equal(pattern_destination(&pattern, NULL, 1 + 2 * 3), 0 + 2 * 4);
    pattern_close(&pattern);
}

static void check_permutation(const struct pattern *pattern)
{
    bool reached[NODES_MAX] = {false};
    for (uint32_t node = 0; node < pattern->nodes; node++) {
        const uint32_t to = pattern_destination(pattern, NULL, node);
        assert_true(to < pattern->nodes && to != node && !reached[to]);
        reached[to] = true;
    }
}

static void test_permutations(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 3, 17, NODES_MAX};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct pattern one, again, other;
        open_named(&one, "permutation", sizes[i], 1);
        open_named(&again, "permutation", sizes[i], 1);
        open_named(&other, "permutation", sizes[i], 2);
        check_permutation(&one);
        check_permutation(&other);
        assert_memory_equal(one.map, again.map, sizes[i] * sizeof(one.map[0]));
        if (sizes[i] > 10) {
            assert_memory_not_equal(one.map, other.map, sizes[i] * sizeof(one.map[0]));
        }
        pattern_close(&one);
        pattern_close(&again);
        pattern_close(&other);
    }
}

/* Four nodes have 9 permutations in which nobody sends to itself; each is as likely. */
static void test_permutations_are_fair(void **state)
{
    (void)state;
    enum {
        TRIES = 9000
    };
    uint32_t seen[256] = {0}, kinds = 0;
    for (uint32_t seed = 0; seed < TRIES; seed++) {
        struct pattern pattern;
        uint32_t key = 0;
        open_named(&pattern, "permutation", 4, seed);
        for (uint32_t node = 0; node < 4; node++) {
            key = key << 2 | pattern.map[node];
        }
        seen[key]++;
        pattern_close(&pattern);
    }
    for (uint32_t i = 0; i < 256; i++) {
        kinds += seen[i] > 0;
        if (seen[i] > 0) {
            check_frequency(seen[i], TRIES, 1.0 / 9);
        }
    }
    assert_int_equal(kinds, 9);
}

/* -- Frequencies --------------------------------------------------------------------------------*/

#define DRAWS 100000u

static void draw(const struct pattern *pattern, uint32_t self, uint32_t *counts)
{
    struct prng prng;
    prng_init(&prng, self);
    memset(counts, 0, pattern->nodes * sizeof(counts[0]));
    for (uint32_t i = 0; i < DRAWS; i++) {
        const uint32_t to = pattern_destination(pattern, &prng, self);
        assert_true(to < pattern->nodes);
        counts[to]++;
    }
    assert_int_equal(counts[self], 0);
}

static void test_uniform_and_hotspot(void **state)
{
    (void)state;
    struct pattern pattern;
    uint32_t counts[11];
    open_named(&pattern, "uniform", 11, 0);
    draw(&pattern, 4, counts);
    for (uint32_t to = 0; to < 11; to++) {
        check_frequency(counts[to], DRAWS, to == 4 ? 0 : 0.1);
    }
    open_named(&pattern, "hotspot:0.25,7", 11, 0);
    draw(&pattern, 10, counts);
    for (uint32_t to = 0; to < 10; to++) {
        check_frequency(counts[to], DRAWS, 0.075 + (to == 7 ? 0.25 : 0));
    }
    draw(&pattern, 7, counts);
    for (uint32_t to = 0; to < 11; to++) {
        check_frequency(counts[to], DRAWS, to == 7 ? 0 : 0.1);
    }
    open_named(&pattern, "hotspot:1", 11, 0);
    draw(&pattern, 3, counts);
    assert_int_equal(counts[0], DRAWS);
    assert_true(pattern_load(&pattern, 3) == 1);
    assert_int_equal(pattern_bytes(&pattern), 0);
}

static void test_matrix(void **state)
{
    (void)state;
    static const char text[] = "# FROM TO SHARE\n"
                               "3 0 6\n"
                               "1 2 0.5\n"
                               "1 4 1.25\n"
                               "3 4 2\n"
                               "1 0 0.25\n";
    struct pattern pattern;
    char error[TOPOLOGY_ERROR_BYTES];
    uint32_t counts[5];
    assert_true(pattern_parse(&pattern, text, sizeof(text) - 1, 5, error, sizeof(error)));
    draw(&pattern, 1, counts);
    check_frequency(counts[0], DRAWS, 0.125);
    check_frequency(counts[2], DRAWS, 0.25);
    check_frequency(counts[3], DRAWS, 0);
    check_frequency(counts[4], DRAWS, 0.625);
    draw(&pattern, 3, counts);
    check_frequency(counts[0], DRAWS, 0.75);
    check_frequency(counts[4], DRAWS, 0.25);
    for (uint32_t node = 0; node < 5; node++) {
        const bool sends = node == 1 || node == 3;
        assert_true(pattern_load(&pattern, node) == (node == 1 ? 0.25 : node == 3 ? 1 : 0));
        assert_true(sends || pattern_destination(&pattern, NULL, node) == PATTERN_SILENT);
    }
    assert_int_equal(pattern_bytes(&pattern), 6 * 4 + 5 * sizeof(struct pattern_flow));
    pattern_close(&pattern);
}

/* The smallest shares there are: a share too many would show. */
static void test_smallest_shares(void **state)
{
    (void)state;
    static const char text[] = "0 1 0.001\n0 2 0.002\n0 3 0.001";
    struct pattern pattern;
    char error[TOPOLOGY_ERROR_BYTES];
    uint32_t counts[4];
    assert_true(pattern_parse(&pattern, text, sizeof(text) - 1, 4, error, sizeof(error)));
    draw(&pattern, 0, counts);
    check_frequency(counts[1], DRAWS, 0.25);
    check_frequency(counts[2], DRAWS, 0.5);
    check_frequency(counts[3], DRAWS, 0.25);
    pattern_close(&pattern);
}

/* -- Traces -------------------------------------------------------------------------------------*/

static void test_trace(void **state)
{
    (void)state;
    static const char text[] = "0 0 1 4096\n"
                               "12.5 1 2 1 # a byte\n"
                               "12.5 2 0 1099511627776\n";
    struct traffic_trace trace;
    char error[TOPOLOGY_ERROR_BYTES];
    assert_true(traffic_trace_parse(&trace, text, sizeof(text) - 1, 3, error, sizeof(error)));
    assert_int_equal(trace.count, 3);
    assert_int_equal(trace.messages[0].at_ps, 0);
    assert_int_equal(trace.messages[0].bytes, 4096);
    assert_int_equal(trace.messages[1].at_ps, 12500);
    assert_int_equal(trace.messages[1].from, 1);
    assert_int_equal(trace.messages[1].to, 2);
    assert_true(trace.messages[2].bytes == UINT64_C(1) << 40);
    traffic_trace_close(&trace);
}

/* -- Refusals -----------------------------------------------------------------------------------*/

static const struct {
    const char *description;
    uint32_t nodes;
    const char *error;
} no_patterns[] = {
    {"", 4, "\"\" is not uniform"},
    {"Uniform", 4, "\"Uniform\" is not uniform"},
    {"uniform:", 4, "\"uniform\" is not uniform"},
    {"permutation:3", 4, "\"permutation\" is not uniform"},
    {"shuffle", 12, "shuffle needs a power of two of nodes, not 12"},
    {"bit-reverse", 3, "bit-reverse needs a power of two"},
    {"bit-complement", 6, "bit-complement needs a power of two"},
    {"shuffle:4", 4, "\"shuffle\" is not"},
    {"transpose", 8, "transpose needs a square number of nodes, not 8"},
    {"tornado:", 8, "\"tornado\" is not"},
    {"tornado:2x3", 8, "the dimensions"},
    {"tornado:2x4x", 8, "the dimensions"},
    {"tornado:0x8", 8, "the dimensions"},
    {"neighbour:8x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", 8, "the dimensions"},
    {"hotspot", 4, "\"hotspot\" is not"},
    {"hotspot:", 4, "hotspot:SHARE[,NODE] needs"},
    {"hotspot:1.001", 4, "hotspot:SHARE[,NODE] needs"},
    {"hotspot:0.1,4", 4, "hotspot:SHARE[,NODE] needs"},
    {"hotspot:0.1,", 4, "hotspot:SHARE[,NODE] needs"},
};

static const struct {
    const char *text, *error;
} no_matrices[] = {
    {"", "there is no line FROM TO SHARE"},
    {"0 1\n", "line 1: this is not FROM"},
    {"0 1 1 1\n", "line 1: this is not FROM"},
    {"0 1 1\n0 4 1\n", "line 2: nodes have numbers from 0 to 3"},
    {"-1 0 1\n", "line 1: nodes have numbers"},
    {"2 2 1\n", "line 1: node 2 sends to itself"},
    {"0 1 0\n", "line 1: a share is"},
    {"0 1 1e3\n", "line 1: a share is"},
    {"0 1 1000000000.001\n", "line 1: a share is"},
    {"0 1 1\n0 2 1\n0 1 2\n", "line 3: line 1 gives a share from 0 to 1 already"},
};

static const struct {
    const char *text, *error;
} no_traces[] = {
    {"#\n", "there is no line TIME_NS"},
    {"0 0 1\n", "line 1: this is not TIME_NS"},
    {"0 0 1 1 1\n", "line 1: this is not TIME_NS"},
    {"1 0 1 1\n\n0.999 0 1 1\n", "line 3: this is earlier"},
    {"1.0001 0 1 1\n", "line 1: a time is"},
    {"4611686018427388 0 1 1\n", "line 1: a time is"},
    {"0 4 1 1\n", "line 1: nodes have numbers from 0 to 3"},
    {"0 1 1 1\n", "line 1: node 1 sends to itself"},
    {"0 0 1 0\n", "line 1: a message has"},
    {"0 0 1 1099511627777\n", "line 1: a message has"},
};

static void check_refused(bool opened, const char *what, const char *error, const char *expected)
{
    if (opened || strncmp(error, expected, strlen(expected)) != 0) {
        fail_msg("%s: \"%s\"", what, error);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    char error[TOPOLOGY_ERROR_BYTES];
    struct pattern pattern;
    struct traffic_trace trace;
    for (size_t i = 0; i < COUNT_OF(no_patterns); i++) {
        check_refused(pattern_open(&pattern, no_patterns[i].description, no_patterns[i].nodes, NULL,
                                   error, sizeof(error)),
                      no_patterns[i].description, error, no_patterns[i].error);
    }
    for (size_t i = 0; i < COUNT_OF(no_matrices); i++) {
        const char *const text = no_matrices[i].text;
        check_refused(pattern_parse(&pattern, text, strlen(text), 4, error, sizeof(error)), text,
                      error, no_matrices[i].error);
    }
    for (size_t i = 0; i < COUNT_OF(no_traces); i++) {
        const char *const text = no_traces[i].text;
        check_refused(traffic_trace_parse(&trace, text, strlen(text), 4, error, sizeof(error)),
                      text, error, no_traces[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_of_bits),
        cmocka_unit_test(test_other_maps),
        cmocka_unit_test(test_permutations),
        cmocka_unit_test(test_permutations_are_fair),
        cmocka_unit_test(test_uniform_and_hotspot),
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_smallest_shares),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
