/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A run whose bytes are not as sent fails, gives no figure, and has another digest.
 * Method  Streams and a ping-pong over links that flip bits. FNX-56.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lab/forth/experiments.h"

#define QWORDS 62u

static struct lab_run *prepare(const char *name, const char *settings)
{
    struct lab_run *run = malloc(sizeof(*run));
    char error[200];
    assert_non_null(run);
    lab_prepare(run, lab_find(name), 1);
    assert_true(lab_set_all(run, settings, error, sizeof(error)));
    return run;
}

/* The digest of a world in which `packets` packets go from the first node to the second. */
static uint64_t send(struct lab_run *run, uint64_t packets, uint64_t *judged, uint64_t *flagged)
{
    struct forth_machine machine;
    struct forth_stream streams[2];
    forth_machine_open(&machine, run, 2, false);
    for (uint32_t i = 0; i < 2; i++) {
        forth_stream_open(&streams[i], &machine, i, QWORDS, 0);
    }
    streams[0].limit = packets;
    forth_stream_to(&streams[0], 1);
    sim_run_until(&machine.sim, 1000000000);
    *judged = streams[1].sinks[0].good;
    *flagged = streams[1].flagged;
    forth_stream_check(&streams[1], run);
    const uint64_t digest = machine.sim.digest;
    forth_machine_close(&machine);
    return digest;
}

static void test_all_right(void **state)
{
    (void)state;
    struct lab_run *run = prepare("forth/direct", "");
    uint64_t judged, flagged;
    (void)send(run, 50, &judged, &flagged);
    assert_int_equal(judged, 50);
    assert_int_equal(flagged, 0);
    assert_string_equal(run->failure, "");
    free(run);
}

/* The headers are the same in both worlds: what differs is whether a packet came as it was sent. */
static void test_flagged(void **state)
{
    (void)state;
    struct lab_run *good = prepare("forth/direct", "");
    struct lab_run *bad = prepare("forth/direct", "bit_errors=2e-5");
    uint64_t judged, flagged;
    const uint64_t digest = send(good, 50, &judged, &flagged);
    assert_int_not_equal(send(bad, 50, &judged, &flagged), digest);
    assert_int_equal(judged + flagged, 50);
    assert_true(flagged > 0);
    assert_non_null(strstr(bad->failure, "flagged"));
    free(good);
    free(bad);
}

/* The NIC's own verdict is in the digest, too: here no program looks at what comes. */
static void test_unseen(void **state)
{
    (void)state;
    static const char *const settings[] = {"", "bit_errors=2e-5"};
    uint64_t digests[2], flagged[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct lab_run *run = prepare("forth/direct", settings[i]);
        struct forth_machine machine;
        struct forth_stream stream;
        forth_machine_open(&machine, run, 2, false);
        forth_stream_open(&stream, &machine, 0, QWORDS, 0);
        stream.limit = 50;
        forth_stream_to(&stream, 1);
        sim_run_until(&machine.sim, 1000000000);
        assert_int_equal(machine.nodes[1].truth.delivered, 50);
        flagged[i] = machine.nodes[1].truth.flagged;
        digests[i] = machine.sim.digest;
        forth_machine_close(&machine);
        free(run);
    }
    assert_int_equal(flagged[0], 0);
    assert_true(flagged[1] > 0);
    assert_int_not_equal(digests[0], digests[1]);
}

/* No sink misses the only packet there is. */
static void test_nothing_came(void **state)
{
    (void)state;
    uint64_t lost = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct lab_run *run = prepare("forth/direct", "bit_errors=5e-3 repeat=off");
        uint64_t judged, flagged;
        run->seed = seed;
        (void)send(run, 1, &judged, &flagged);
        assert_true(judged == 1 || run->failure[0] != '\0');
        lost += judged + flagged == 0;
        free(run);
    }
    assert_true(lost > 0);
}

static void test_ping_pong(void **state)
{
    (void)state;
    struct lab_run *run = prepare("forth/ping-pong", "");
    assert_true(forth_ping_pong_ns(run, FORTH_SWITCHED_NODES, true, QWORDS) > 0);
    assert_string_equal(run->failure, "");
    free(run);
    run = prepare("forth/ping-pong", "bit_errors=1e-5");
    const double ns = forth_ping_pong_ns(run, FORTH_SWITCHED_NODES, true, QWORDS);
    assert_true(isnan(ns) != 0);
    assert_string_not_equal(run->failure, "");
    free(run);
}

/* A run that fails has no rows of figures that it did not measure. */
static void test_no_figure(void **state)
{
    (void)state;
    static const char *const names[] = {"forth/ping-pong", "forth/cut-through", "forth/xdd"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct lab_run *run = prepare(names[i], "bit_errors=1e-2");
        assert_false(lab_execute(run));
        for (uint32_t k = 0; k < run->row_count; k++) {
            assert_string_equal(run->rows[k].id, "FNX-56");
            assert_true(run->rows[k].measured == 0);
        }
        free(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_right), cmocka_unit_test(test_flagged),
        cmocka_unit_test(test_unseen),    cmocka_unit_test(test_nothing_came),
        cmocka_unit_test(test_ping_pong), cmocka_unit_test(test_no_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
