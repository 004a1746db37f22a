/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    exanest/one measures what its parameters make: a message alone takes the sum of their
 *         times, nothing is faster than its wire, more of a cost is never better.
 * Method  Differences of readings between two runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "lab/exanest/experiments.h"
#include "lab/test_one.h"

#define ONE      "exanest/one"
#define ALONE    "sends=1 bytes=64 "
#define CYCLE_US (1 / 150.0)

static double latency(const char *settings)
{
    return one_reading(ONE, settings, "latency_mean");
}

/* The rate of fewer messages than usual, unless the settings say how many. */
static double rate(const char *settings)
{
    char all[160];
    (void)snprintf(all, sizeof(all), "sends=24 %s", settings);
    return one_reading(ONE, all, "rate");
}

/* By how much a message alone is later if a parameter is 2 us more than 1 us, in us. */
static double slope(const char *work, const char *name)
{
    char less[96], more[96];
    (void)snprintf(less, sizeof(less), ALONE "%s %s=1", work, name);
    (void)snprintf(more, sizeof(more), ALONE "%s %s=3", work, name);
    return latency(more) - latency(less);
}

/* How often each of the times stands in the way of a write that is alone, and of a read. A write:
 * the R5 polls the scratchpad, finds the channel, cuts one block, makes a descriptor of four words,
 * reads a response and deals with it, tells the program twice. (How long reads of the mailbox hold
 * it up depends on when they begin: it reads in a loop.) A read: a control packet's three words
 * more, and no response. The edge at which a store meets the hardware may be a cycle off. */
static void test_sums(void **state)
{
    static const struct {
        const char *work, *name;
        double times;
    } sums[] = {
        {"", "call", 1},
        {"", "look", 1},
        {"", "lookup", 1},
        {"", "r5_segment", 1},
        {"", "r5_build", 1},
        {"", "r5_store", 4},
        {"", "r5_response", 1},
        {"", "r5_update", 2},
        {"", "r5_control", 0},
        {"", "wire", 2},
        {"work=read", "call", 1},
        {"work=read", "look", 1},
        {"work=read", "r5_store", 4},
        {"work=read", "r5_control", 3},
        {"work=read", "wire", 2},
        {"work=read", "r5_response", 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sums); i++) {
        const double found = slope(sums[i].work, sums[i].name);
        if (fabs(found - 2 * sums[i].times) > 2 * CYCLE_US) {
            fail_msg("%s %s: %g us of 2 more", sums[i].work, sums[i].name, found);
        }
    }
}

/* Nothing is left but hardware if software costs nothing; and the sum comes back with it. */
static void test_software(void **state)
{
    static const char free_of_charge[] =
        ALONE "call=0 look=0 lookup=0 r5_read=0 r5_segment=0 r5_build=0 r5_store=0 r5_response=0";
    (void)state;
    const double software = 2 * 0.25 + 0.095 + 2 * 0.13 + 0.2 + 0.075 + 4 * 0.075 + 1.37;
    assert_true(fabs(latency(ALONE) - latency(free_of_charge) - software) < 6 * CYCLE_US);
    assert_true(latency(free_of_charge) > 2 * 0.42);
}

/* The bound: a link's share of a stream of the longest packets. */
static void test_bounds(void **state)
{
    static const char *const settings[] = {
        "bytes=1048576 sends=2 window=4", "bytes=65536 window=32 sends=40", "bytes=4096 window=8",
        "bytes=1048576 sends=2 work=read window=4", "bytes=16384 window=4 r5_response=20"};
    const double bound = EXANEST_STREAM_BITS / exanest_aurora_packet_ns(10);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct lab_run *run = one_run(ONE, settings[i]);
        assert_true(one_value(run, "rate") <= bound);
        assert_true(one_value(run, "link_share") <= 1 && one_value(run, "bus_share") <= 1);
        assert_true(one_value(run, "r5_share") <= 1);
        free(run);
    }
    assert_true(rate(settings[0]) > 0.98 * bound);
    /* An R5 that needs 20 us for a block of 131,072 bits. */
    assert_true(rate(settings[4]) < 131.072 / 20);
    assert_true(rate(settings[4]) > 0.9 * 131.072 / 22);
}

/* Each setting must be slower than the one before it. */
static void test_directions(void **state)
{
    static const char *const falling[][3] = {
        {"window=4", "window=2", "window=1"},
        {"link=16 window=4", "link=10 window=4", "link=5 window=4"},
        {"wire=0.42", "wire=2", "wire=10"},
        {"window=4 r5_response=2", "window=4 r5_response=20", "window=4 r5_response=40"},
        {"r5_read=0.1", "r5_read=1", "r5_read=3"},
        {"read=40", "read=200", "read=1000"},
        {"sends=32 loss=0", "sends=32 loss=0.002", "sends=32 loss=0.02"},
        {"sends=16 loss=0.01 timeout=100", "sends=16 loss=0.01 timeout=1000",
         "sends=16 loss=0.01 timeout=4000"},
        {"interval=20 arrivals=regular", "interval=40 arrivals=regular",
         "interval=80 arrivals=regular"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(falling); i++) {
        const double first = rate(falling[i][0]), second = rate(falling[i][1]);
        if (!(first > second && second > rate(falling[i][2]))) {
            fail_msg("%s: %g, %s: %g", falling[i][0], first, falling[i][1], second);
        }
    }
    assert_true(one_reading(ONE, "window=32 bytes=4096", "queue_max") >
                one_reading(ONE, "window=2 bytes=4096", "queue_max"));
}

/* Four FPGAs send more together than one; all to one of them no more than its memory takes. */
static void test_patterns(void **state)
{
    (void)state;
    const double alone = rate("window=4"), all = rate("window=4 senders=0");
    assert_true(fabs(all / alone - 4) < 0.01);
    assert_true(rate("window=4 senders=0 pattern=incast") < 0.5 * all);
    assert_true(latency("window=4 senders=0 pattern=incast") > latency("window=4 senders=0"));
    assert_true(one_reading(ONE, "window=4 senders=0 processes=4", "fairness") > 0.9);
    /* FPGA 7 is in another QFDB. */
    assert_true(latency("x=2 pattern=bit-complement bytes=64") > latency("bytes=64"));
}

static void test_losses(void **state)
{
    (void)state;
    struct lab_run *run = one_run(ONE, "loss=0.002 corrupt=0.002 window=4 senders=0");
    assert_true(one_value(run, "lost") > 0 && one_value(run, "resent") > 0);
    assert_true(run->rows[0].measured == 0);
    free(run);
    run = one_run(ONE, "loss=0.05 retries=0");
    assert_true(run->rows[0].measured > 0);
    free(run);
    assert_true(one_reading(ONE, "loss=0", "lost") == 0);
}

/* Each transfer's bytes are looked at when its end is seen, and not what lies there in the end. */
static void test_bytes(void **state)
{
    static const struct {
        const char *settings;
        bool right;
    } settings[] = {
        {"loss=0.01 window=8 senders=0", true},
        {"work=read window=8 senders=0", true},
        {"work=read bytes=65536", true},
        {"work=read bytes=65536 notification=early", false},
        {"work=read corrupt=0.02 window=8 senders=0", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct lab_run *run = one_run(ONE, settings[i].settings);
        assert_int_equal(run->rows[1].measured == 0, settings[i].right);
        assert_true(run->rows[1].measured < 64);
        free(run);
    }
}

static void test_list(void **state)
{
    (void)state;
    one_has_all(ONE, "");
}

static void test_refused(void **state)
{
    (void)state;
    one_fails(ONE, "window=33", "32 channels");
    one_fails(ONE, "x=16 y=16 z=2", "at most 256 QFDBs");
    one_fails(ONE, "x=4 y=4 bytes=67108864", "more than 8 GiB");
    one_fails(ONE, "x=3 pattern=bit-reverse", "power of two");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),     cmocka_unit_test(test_software),
        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_directions),
        cmocka_unit_test(test_patterns), cmocka_unit_test(test_losses),
        cmocka_unit_test(test_bytes),    cmocka_unit_test(test_list),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
