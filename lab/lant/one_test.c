/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    lant/one measures what its parameters make: a message alone takes the sum of their times,
 *         nothing is faster than its line, more of a cost is never better.
 * Method  Readings of runs, and differences between two of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "lab/lant/bench.h"
#include "lab/test_one.h"

#define ONE      "lant/one"
#define CYCLE_US (LANT_CYCLE_PS / 1e6)

static double latency(const char *settings)
{
    return one_reading(ONE, settings, "latency_mean");
}

static double rate(const char *settings)
{
    return one_reading(ONE, settings, "rate");
}

/* How many cycles later a message alone ends if a parameter is a cycle more; twice the line, once
 * each other time that stands in its way. */
static void test_slopes(void **state)
{
    static const struct {
        const char *work, *name;
        double times;
    } slopes[] = {
        {"work=transfer bytes=64", "call", 1},
        {"work=transfer bytes=64", "look", 1},
        {"work=transfer bytes=64", "mac", 2},
        {"work=transfer bytes=64", "rdma_setup", 1},
        {"work=transfer bytes=64", "ram", 1},
        {"work=transfer bytes=64", "rdma_receive", 1},
        {"work=transfer bytes=64", "rdma_done", 1},
        {"work=transfer bytes=64", "shm_issue", 0},
        {"work=load bytes=8", "call", 1},
        {"work=load bytes=8", "mac", 2},
        {"work=load bytes=8", "shm_issue", 1},
        {"work=load bytes=8", "shm_receive", 1},
        {"work=load bytes=8", "shm_done", 1},
        {"work=store bytes=8 early=off", "shm_receive", 1},
        {"work=store bytes=8 early=on", "mac", 0},
        {"work=load bytes=8 network=torus nodes=8", "switch", 4},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(slopes); i++) {
        char less[160], more[160];
        (void)snprintf(less, sizeof(less), "sends=1 %s %s=20", slopes[i].work, slopes[i].name);
        (void)snprintf(more, sizeof(more), "sends=1 %s %s=520", slopes[i].work, slopes[i].name);
        const double found = (latency(more) - latency(less)) / CYCLE_US / 500;
        if (fabs(found - slopes[i].times) > 0.001) {
            fail_msg("%s %s: %g times", slopes[i].work, slopes[i].name, found);
        }
    }
}

/* A load alone: issue, request, line, memory's answer, line, done; four flits there, five back. The
 * line takes what a packet takes beside its flits behind it. */
static void test_sum(void **state)
{
    (void)state;
    const double load = latency("sends=1 work=load bytes=8 mac=100 shm_issue=11 shm_receive=23 "
                                "shm_done=7");
    const double sum = 11 + 2 * 4 + 2 * 100 + 23 + 5 + 7;
    assert_true(fabs(load / CYCLE_US - sum) <= 4);
}

static void test_bounds(void **state)
{
    static const char *const settings[] = {"bytes=65536 sends=40", "bytes=512 window=16",
                                           "bytes=65536 sends=40 seen=receiver",
                                           "work=store bytes=512 window=16"};
    /* 64 flits of payload in 68, with mac_frame and mac_pause behind them, at 10 Gb/s. */
    const double bound = 10 * 64 / (68 + 4 + 68.0 / 24);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct lab_run *run = one_run(ONE, settings[i]);
        assert_true(one_value(run, "rate") <= bound);
        assert_true(one_value(run, "link_share") <= 1);
        assert_true(run->rows[0].measured == 0 && run->rows[1].measured == 0);
        free(run);
    }
    assert_true(rate(settings[0]) > 0.98 * bound);
}

/* Each setting must be slower than the one before it. */
static void test_directions(void **state)
{
    static const char *const falling[][3] = {
        {"window=4 bytes=512", "window=2 bytes=512", "window=1 bytes=512"},
        {"call=0 bytes=64", "call=500 bytes=64", "call=2000 bytes=64"},
        {"look=0 bytes=64", "look=500 bytes=64", "look=2000 bytes=64"},
        {"mac=59 early=off", "mac=500 early=off", "mac=1500 early=off"},
        {"mac_frame=0 bytes=65536", "mac_frame=8 bytes=65536", "mac_frame=32 bytes=65536"},
        {"loss=0 sends=200", "loss=0.001 sends=200", "loss=0.01 sends=200"},
        {"bit_errors=0 sends=200", "bit_errors=1e-6 sends=200", "bit_errors=1e-5 sends=200"},
        {"loss=0.01 timeout=2000", "loss=0.01 timeout=20000", "loss=0.01 timeout=200000"},
        {"work=store shm_rows=16 early=off bytes=64", "work=store shm_rows=4 early=off bytes=64",
         "work=store shm_rows=1 early=off bytes=64"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(falling); i++) {
        const double first = rate(falling[i][0]), second = rate(falling[i][1]);
        if (!(first > second && second > rate(falling[i][2]))) {
            fail_msg("%s: %g, %s: %g", falling[i][0], first, falling[i][1], second);
        }
    }
}

/* The receiver sees a transfer's end before its sender: the answer's way back is saved. */
static void test_receivers(void **state)
{
    (void)state;
    assert_true(latency("sends=1 seen=receiver") < latency("sends=1 seen=sender"));
    assert_true(latency("sends=1 seen=receiver look=1000") >
                latency("sends=1 seen=receiver look=0") + 999 * CYCLE_US);
}

/* A sender that gives up while its receiver has not looked yet uses the place again behind that. */
static void test_a_look_is_for_its_message(void **state)
{
    (void)state;
    struct lab_run *run = one_run(ONE, "seen=receiver look=1000000 retries=0 loss=0.05 sends=200");
    assert_true(run->rows[0].measured > 0 && run->rows[0].measured < 200);
    assert_true(run->rows[1].measured == 0);
    free(run);
}

static void test_networks(void **state)
{
    static const char *const networks[] = {"torus", "tree", "dragonfly"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(networks); i++) {
        char settings[96];
        (void)snprintf(settings, sizeof(settings),
                       "network=%s senders=0 pattern=uniform sends=16 loss=0.001", networks[i]);
        struct lab_run *run = one_run(ONE, settings);
        assert_true(run->rows[0].measured == 0 && run->rows[1].measured == 0);
        assert_true(one_value(run, "switches") > 1);
        free(run);
    }
    assert_true(one_reading(ONE, "network=torus senders=0 pattern=uniform entries=1", "hit_ratio") <
                0.99);
}

static void test_list(void **state)
{
    (void)state;
    one_has_all(ONE, "");
}

static void test_refused(void **state)
{
    (void)state;
    one_fails(ONE, "work=load seen=receiver", "nobody tells");
    one_fails(ONE, "work=load bytes=4104", "longer than 4096");
    one_fails(ONE, "work=load bytes=4096 window=3", "room for 1024");
    one_fails(ONE, "network=torus nodes=4096 bytes=65536 window=32", "more than 8 GiB");
    one_fails(ONE, "network=torus nodes=27 flow=credits channels=1", "deadlock");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slopes),    cmocka_unit_test(test_sum),
        cmocka_unit_test(test_bounds),    cmocka_unit_test(test_directions),
        cmocka_unit_test(test_receivers), cmocka_unit_test(test_a_look_is_for_its_message),
        cmocka_unit_test(test_networks),  cmocka_unit_test(test_list),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
