/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    forth/one measures what its parameters make: a packet alone takes the sum of their times,
 *         nothing is faster than its link or bus, more of a cost is never better.
 * Method  Readings of runs, beside sums and bounds of the same parameters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "lab/forth/experiments.h"
#include "lab/test_one.h"

#define ONE      "forth/one"
#define BYTES_MB (FORTH_MB * 8 / 1e9) /* Gb/s of a MiB/s. */

static double latency(const char *settings)
{
    return one_reading(ONE, settings, "latency_mean");
}

static double rate(const char *settings)
{
    return one_reading(ONE, settings, "rate");
}

/* The sum of a message's parts without a switch, for two clocks and four sizes; the edges of two
 * clocks may cost a cycle each. */
static void test_sum(void **state)
{
    static const uint32_t sizes[] = {16, 64, 496, 4096};
    static const char *const others[] = {"", "memory=400", "link_latency=2000", "to_pci=300"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        for (size_t k = 0; k < COUNT_OF(others); k++) {
            char settings[128];
            (void)snprintf(settings, sizeof(settings),
                           "joined=direct nodes=2 sends=1 call=1.5 interrupt=7 bytes=%u %s",
                           sizes[i], others[k]);
            struct lab_run *run = one_run(ONE, settings);
            const double sum = 1.5 + forth_one_way_ns(run, sizes[i] / FORTH_QWORD_BYTES) / 1e3 + 7;
            if (fabs(one_value(run, "latency_mean") - sum) > 0.04) {
                fail_msg("%s: %g us, not %g", settings, one_value(run, "latency_mean"), sum);
            }
            free(run);
        }
    }
}

/* Each of a time's units counts once in a packet alone. */
static void test_slopes(void **state)
{
    static const struct {
        const char *name;
        double cycle_us;
        double most;
    } slopes[] = {{"post", 0.01, 1},     {"read_overhead", 0.01, 1}, {"memory", 0.01, 1},
                  {"to_net", 0.0128, 1}, {"to_pci", 0.0128, 1},      {"sync", 0.0128, 1},
                  {"decide", 0.0128, 1}, {"inform", 0.0128, 1},      {"link_latency", 0.0128, 2}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(slopes); i++) {
        char less[64], more[64];
        (void)snprintf(less, sizeof(less), "sends=1 %s=20", slopes[i].name);
        (void)snprintf(more, sizeof(more), "sends=1 %s=90", slopes[i].name);
        const double found = (latency(more) - latency(less)) / slopes[i].cycle_us / 70;
        if (fabs(found - slopes[i].most) > 0.05) {
            fail_msg("%s: %g times", slopes[i].name, found);
        }
    }
}

static void test_bounds(void **state)
{
    static const char *const settings[] = {
        "sends=2000", "sends=500 senders=0", "sends=500 senders=0 pattern=uniform",
        "sends=1000 senders=0 pattern=incast", "sends=1000 bytes=64 nodes=8 senders=0"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct lab_run *run = one_run(ONE, settings[i]);
        const uint32_t qwords = (uint32_t)lab_value(run, "bytes") / FORTH_QWORD_BYTES;
        const double nodes = lab_value(run, "nodes");
        const double link = forth_link_rate(run, 1, qwords) * BYTES_MB;
        const double bus = forth_dma_rate(run, qwords) * BYTES_MB;
        assert_true(one_value(run, "rate") <= nodes * fmin(link, bus));
        assert_true(one_value(run, "link_share") <= 1 && one_value(run, "bus_share") <= 1);
        /* A full queue: no request is written twice because its host is asked while it writes. */
        assert_true(run->rows[0].measured == 0 && one_value(run, "queue_max") <= 16);
        if (i == 0) { /* Nothing but the link holds up one sender. */
            assert_true(one_value(run, "rate") > 0.98 * fmin(link, bus));
        }
        free(run);
    }
}

/* Every message comes as it was sent, however many requests pend, in one queue or in several. */
static void test_many_pending(void **state)
{
    static const char *const settings[] = {
        "window=1024 senders=0 pattern=incast sends=1500",
        "window=1024 senders=0 pattern=incast sends=1500 nic_queues=per-destination",
        "window=3 senders=0 nodes=8 pattern=uniform sends=200 nic_queues=per-destination",
        "window=300 senders=0 nodes=8 pattern=hotspot sends=400 nic_queues=per-destination "
        "bytes=8 bytes_most=496",
        "window=300 senders=0 nodes=3 pattern=uniform sends=400 nic_queues=per-destination "
        "bytes=1784",
        "window=64 nodes=64 ports=64 senders=0 pattern=uniform sends=60 "
        "nic_queues=per-destination bytes=496"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct lab_run *run = one_run(ONE, settings[i]);
        if (run->rows[0].measured != 0) {
            fail_msg("%s: %g did not come as sent", settings[i], run->rows[0].measured);
        }
        free(run);
    }
}

/* Each setting must be slower than the one before it. */
static void test_directions(void **state)
{
    static const char *const falling[][3] = {
        {"call=0", "call=4", "call=20"},
        {"interrupt=0", "interrupt=4", "interrupt=20"},
        {"net_clock=100", "net_clock=50", "net_clock=25"},
        {"pci_clock=133", "pci_clock=66", "pci_clock=33"},
        {"sends=500 memory=100", "sends=500 memory=300", "sends=500 memory=900"},
        {"sends=500 bytes=496", "sends=500 bytes=64", "sends=500 bytes=8"},
        {"sends=500 link_latency=100", "sends=500 link_latency=300", "sends=500 link_latency=900"},
        {"interval=5 arrivals=regular", "interval=10 arrivals=regular",
         "interval=20 arrivals=regular"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(falling); i++) {
        const double first = rate(falling[i][0]), second = rate(falling[i][1]);
        if (!(first > second && second > rate(falling[i][2]))) {
            fail_msg("%s: %g, %s: %g", falling[i][0], first, falling[i][1], second);
        }
    }
}

/* An interrupt for each packet: no more packets a second than the processor can learn of. */
static void test_processor(void **state)
{
    (void)state;
    struct lab_run *run = one_run(ONE, "sends=1000 interrupt=5");
    assert_true(one_value(run, "messages") <= 1.0 / 5);
    assert_true(one_value(run, "messages") > 0.99 / 5);
    assert_true(one_value(run, "host_share") > 0.98);
    free(run);
}

/* Three to one fills crosspoints and makes senders wait, as forth/three-to-one has it. */
static void test_incast(void **state)
{
    (void)state;
    struct lab_run *run = one_run(ONE, "sends=1000 senders=3 pattern=incast");
    assert_true(fabs(one_value(run, "rate") / BYTES_MB - 279) < 3);
    assert_true(fabs(one_value(run, "held") - 2.0 / 3) < 0.05);
    assert_true(one_value(run, "crosspoint_max") > 128 && one_value(run, "crosspoint_max") <= 256);
    assert_true(one_value(run, "fairness") > 0.999);
    free(run);
    assert_true(one_reading(ONE, "sends=1000 senders=3 pattern=incast arbiter=fixed", "fairness") <
                0.99);
}

/* Each arbiter by its word. With weight 4 input 0 has four packets for one of each other, so its
 * messages come first; the longest crosspoint's turn is as fair as round robin if all are full. */
static void test_arbiters(void **state)
{
    static const char incast[] = "sends=1000 senders=3 pattern=incast ";
    char settings[96];
    (void)state;
    (void)snprintf(settings, sizeof(settings), "%s arbiter=weighted weight=4", incast);
    struct lab_run *run = one_run(ONE, settings);
    /* Input 0 has 4/6 of the output until it is through; the others are through with the last. */
    const double rates[] = {4.0 / 6, 1.0 / 3, 1.0 / 3};
    assert_true(fabs(one_value(run, "fairness") - sim_fairness(rates, 3)) < 0.005);
    free(run);
    (void)snprintf(settings, sizeof(settings), "%s arbiter=longest", incast);
    assert_true(one_reading(ONE, settings, "fairness") > 0.99);
}

static void test_losses(void **state)
{
    (void)state;
    struct lab_run *run = one_run(ONE, "sends=1000 bit_errors=1e-6 senders=0");
    assert_true(one_value(run, "lost") > 0);
    assert_true(run->rows[0].measured == one_value(run, "lost"));
    free(run);
}

static void test_list(void **state)
{
    (void)state;
    one_has_all(ONE, "");
}

static void test_refused(void **state)
{
    (void)state;
    one_fails(ONE, "joined=direct", "joins two nodes, not 4");
    one_fails(ONE, "nodes=9", "do not fit");
    one_fails(ONE, "bytes=4096", "longer than 1784");
    one_fails(ONE, "nodes=3 pattern=bit-reverse", "power of two");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),        cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_many_pending),
        cmocka_unit_test(test_directions), cmocka_unit_test(test_processor),
        cmocka_unit_test(test_incast),     cmocka_unit_test(test_arbiters),
        cmocka_unit_test(test_losses),     cmocka_unit_test(test_list),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
