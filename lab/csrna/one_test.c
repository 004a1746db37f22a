/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    csrna/one measures what its parameters make: no rate is above that of the slowest unit,
 *         of PCIe or of a link; a larger cache hits more often; more of a cost is never better.
 * Method  Readings of runs with few connections.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "lab/csrna/experiments.h"
#include "lab/test_one.h"

#define ONE "csrna/one"
#define FEW "qps=400 "

static double reading(const char *settings, const char *name)
{
    return one_reading(ONE, settings, name);
}

static void test_bounds(void **state)
{
    static const char *const settings[] = {FEW, FEW "policy=fcfs", FEW "payload=4096",
                                           FEW "processing=1", FEW "work=read payload=1024"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct lab_run *run = one_run(ONE, settings[i]);
        assert_true(one_value(run, "messages") <= 1e3 / lab_value(run, "processing") * 1.0001);
        /* Payload crosses the server's PCIe; in the public model's framing it takes no time of the
         * server's own link. */
        assert_true(one_value(run, "rate") <= 128);
        assert_true(one_value(run, "bus_share") <= 1 && one_value(run, "link_share") <= 1);
        assert_true(one_value(run, "hit_ratio") >= 0 && one_value(run, "hit_ratio") <= 1);
        free(run);
    }
    assert_true(reading(FEW "payload=4096 framing=rocev2", "rate") <= 100);
    /* The slowest unit is the bound as it is. */
    assert_true(reading(FEW, "messages") > 0.999 * 1e3 / 15);
}

/* Each setting must be slower than the one before it. */
static void test_directions(void **state)
{
    static const char *const falling[][3] = {
        {FEW "processing=15", FEW "processing=30", FEW "processing=60"},
        {FEW "policy=hiding", FEW "policy=non-blocking", FEW "policy=fcfs"},
        {FEW "policy=fcfs read=200", FEW "policy=fcfs read=500", FEW "policy=fcfs read=2000"},
        {FEW "pcie=64", FEW "pcie=32", FEW "pcie=16"},
        {FEW "mpt=0", FEW "mpt=600", FEW "mpt=200"},
        {FEW "mpt=600 regions=one", FEW "mpt=600", FEW "mpt=600 mtt=200"},
        {FEW "mpt=600 read=200", FEW "mpt=600 read=500", FEW "mpt=600 read=1000"},
        {FEW "direction=in oocap=64", FEW "direction=in", FEW "direction=in oocap=4"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(falling); i++) {
        const double first = reading(falling[i][0], "messages");
        const double second = reading(falling[i][1], "messages");
        if (!(first > second && second > reading(falling[i][2], "messages"))) {
            fail_msg("%s: %g, %s: %g", falling[i][0], first, falling[i][1], second);
        }
    }
}

/* The blocking NIC with a cache of a half, three quarters, and all of its connections. */
static void test_hits(void **state)
{
    (void)state;
    const double half = reading(FEW "policy=fcfs cache=200", "hit_ratio");
    const double most = reading(FEW "policy=fcfs cache=300", "hit_ratio");
    assert_true(half <= most && most < 1);
    assert_true(reading(FEW "policy=fcfs cache=400", "hit_ratio") > 0.99);
    assert_true(reading(FEW "policy=fcfs cache=400", "fetches") <= 400);
    assert_true(reading(FEW, "pending_max") > 0);
}

/* Caches with room for the two regions of each connection read each of them once, at the most. */
static void test_translation(void **state)
{
    (void)state;
    assert_true(reading(FEW "mpt=1000", "region_hits") == 1);
    assert_true(reading(FEW "mpt=1000 mtt=1000", "page_misses") == 0);
    const double few = reading(FEW "mpt=200", "region_hits");
    assert_true(few > 0 && few < reading(FEW "mpt=600", "region_hits"));
}

/* The server's link is the bound of what comes in; every byte is checked. */
static void test_incast(void **state)
{
    (void)state;
    struct lab_run *run = one_run(ONE, "qps=200 direction=in");
    assert_true(one_value(run, "rate") > 99 && one_value(run, "rate") <= 100.01);
    assert_true(one_value(run, "link_share") > 0.9 && one_value(run, "link_share") <= 1);
    assert_true(run->rows[0].measured == 0 && run->rows[1].measured == 0);
    free(run);
    assert_true(reading("qps=200 direction=in work=read", "rate") > 0);
}

/* A link that is far too slow is booked long beyond the end of a run, and has waited for the first
 * packet: it was busy nearly always, and not always. */
static void test_booked(void **state)
{
    (void)state;
    const double share = reading("qps=200 direction=in ethernet=40", "link_share");
    assert_true(share > 0.99 && share < 1);
}

static void test_losses(void **state)
{
    (void)state;
    struct lab_run *run = one_run(ONE, FEW "loss=0.001");
    assert_true(one_value(run, "lost") > 0 && one_value(run, "resent") > 0);
    free(run);
    assert_true(reading(FEW, "lost") == 0);
}

static void test_list(void **state)
{
    (void)state;
    one_has_all(ONE, FEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),      cmocka_unit_test(test_directions),
        cmocka_unit_test(test_hits),        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_translation), cmocka_unit_test(test_incast),
        cmocka_unit_test(test_list),        cmocka_unit_test(test_booked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
