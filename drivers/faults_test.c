/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A fault specification does what it says: parsing, decisions, and packets that are held.
 * Method  Tables of good and bad specifications; frequencies over many packets; a seed run twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "drivers/faults.h"
#include "wire/roce.h"

static struct faults *open_spec(const char *spec)
{
    char error[512];
    struct faults *faults = faults_open(spec, error, sizeof(error));
    assert_non_null(faults);
    return faults;
}

static void test_refuses_what_it_does_not_understand(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "drop",       "drop=",      "drop=2",         "drop=-0.1",  "drop=x",         "drop=nan",
        "drop=0.1x",  "drop=#0",    "drop=#",         "drop=#1x",   "lose=0.1",       "delay=0.1",
        "delay=5us",  "delay=5:.1", "delay=5us:2",    "seed=x",     "dir=up",         "",
        "drop=0.1,,", "drop=0.1,x", "delay=-1us:0.1", "delay=1h:1", "dup=0.1;seed=1",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char error[512] = "";
        assert_null(faults_open(bad[i], error, sizeof(error)));
        assert_non_null(strstr(error, "valid: drop=P")); /* It says what would be right. */
    }
    char longest[2000], error[512];
    memset(longest, '1', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_null(faults_open(longest, error, sizeof(error)));
}

static void test_probabilities(void **state)
{
    (void)state;
    struct faults *faults =
        open_spec("drop=0.1,dup=0.2,reorder=0.3,corrupt=0.05,delay=3ms:0.01,seed=0x10");
    uint32_t drop = 0, duplicate = 0, reorder = 0, corrupt = 0, delay = 0;
    for (int i = 0; i < 100000; i++) {
        const struct fault_decision decision = faults_decide(faults, 100);
        drop += decision.drop;
        duplicate += decision.duplicate;
        reorder += decision.reorder;
        corrupt += decision.corrupt;
        delay += decision.delay_ns == 3000000;
        assert_true(decision.corrupt_bit < 800);
        assert_true(decision.delay_ns == 0 || decision.delay_ns == 3000000);
    }
    assert_in_range(drop, 9500, 10500);
    assert_in_range(duplicate, 19500, 20500);
    assert_in_range(reorder, 29500, 30500);
    assert_in_range(corrupt, 4700, 5300);
    assert_in_range(delay, 850, 1150);
    faults_close(faults);
}

static void test_same_seed_same_faults(void **state)
{
    (void)state;
    static const char spec[] = "drop=0.5,dup=0.5,corrupt=0.5,seed=9";
    struct faults *a = open_spec(spec), *b = open_spec(spec), *c = open_spec("drop=0.5,seed=10");
    uint32_t different = 0;
    for (int i = 0; i < 1000; i++) {
        const struct fault_decision x = faults_decide(a, 64), y = faults_decide(b, 64);
        assert_int_equal(x.drop, y.drop);
        assert_int_equal(x.duplicate, y.duplicate);
        assert_int_equal(x.corrupt, y.corrupt);
        assert_int_equal(x.corrupt_bit, y.corrupt_bit);
        different += faults_decide(c, 64).drop != x.drop;
    }
    assert_in_range(different, 300, 700);
    faults_close(a);
    faults_close(b);
    faults_close(c);
}

static void test_positions_and_directions(void **state)
{
    (void)state;
    struct faults *faults = open_spec("drop=#3,drop=#5,dup=#1");
    for (int i = 1; i <= 10; i++) {
        const struct fault_decision decision = faults_decide(faults, 64);
        assert_int_equal(decision.drop, i == 3 || i == 5);
        assert_int_equal(decision.duplicate, i == 1);
    }
    assert_true(faults_apply(faults, FAULT_SENDING)); /* The default. */
    assert_false(faults_apply(faults, FAULT_RECEIVING));
    faults_close(faults);
    faults = open_spec("drop=1,dir=both");
    assert_true(faults_apply(faults, FAULT_SENDING) && faults_apply(faults, FAULT_RECEIVING));
    faults_close(faults);
    assert_false(faults_apply(NULL, FAULT_SENDING));
    faults_close(NULL);
}

static bool hold(struct faults *faults, uint8_t mark, struct fault_decision decision, uint64_t now)
{
    static struct link link;
    return faults_hold(faults, &link, &mark, 1, (struct instant){now}, &decision);
}

static bool release(struct faults *faults, uint64_t now, uint8_t *mark)
{
    struct link *link;
    uint8_t bytes[ROCE_PACKET_BYTES_MAX];
    const uint32_t count = faults_release(faults, (struct instant){now}, &link, bytes);
    *mark = bytes[0];
    return count == 1;
}

static void test_delay_and_reorder(void **state)
{
    (void)state;
    struct faults *faults = open_spec("delay=50us:1");
    uint8_t mark;
    assert_true(hold(faults, 7, (struct fault_decision){.delay_ns = 50000}, 1000));
    assert_false(release(faults, 50999, &mark));
    assert_true(release(faults, 51000, &mark));
    assert_int_equal(mark, 7);
    /* A reordered packet comes after one to three others, ... */
    for (int i = 0; i < 100; i++) {
        uint32_t after = 0;
        assert_true(hold(faults, 8, (struct fault_decision){.reorder = true}, 0));
        while (!release(faults, 0, &mark)) {
            faults_decide(faults, 1);
            after++;
        }
        assert_in_range(after, 1, 3);
    }
    /* ... or, when none follows, after a while. */
    assert_true(hold(faults, 9, (struct fault_decision){.reorder = true}, 0));
    assert_true(release(faults, 1000000, &mark));
    assert_int_equal(faults_held(faults), 0);
    faults_close(faults);
}

static void test_holds_so_many(void **state)
{
    (void)state;
    struct faults *faults = open_spec("reorder=1");
    const struct fault_decision decision = {.delay_ns = 1};
    uint8_t mark;
    for (int i = 0; i < FAULTS_HELD_MAX; i++) {
        assert_true(hold(faults, 1, decision, 0));
    }
    assert_false(hold(faults, 1, decision, 0)); /* The packet is still the caller's. */
    assert_true(release(faults, 1, &mark));
    assert_true(hold(faults, 1, decision, 0));
    faults_close(faults); /* With packets held: nothing leaks. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses_what_it_does_not_understand),
        cmocka_unit_test(test_probabilities),
        cmocka_unit_test(test_same_seed_same_faults),
        cmocka_unit_test(test_positions_and_directions),
        cmocka_unit_test(test_delay_and_reorder),
        cmocka_unit_test(test_holds_so_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
