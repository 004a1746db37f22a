/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    One holder of an address at a time, who alone may store to it exclusively; locks end with
 *         the store, or by their age.
 * Method  Cases by hand; then accesses by chance against a table with a place for every address.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/exclusive.h"

#define LIFETIME 100

static struct lant_exclusive_access by(uint32_t node, uint8_t bus_id, uint64_t address, bool store)
{
    return (struct lant_exclusive_access){
        .address = address, .node = node, .bus_id = bus_id, .store = store};
}

static enum lant_exclusive_verdict apply(struct lant_exclusive *exclusive,
                                         struct lant_exclusive_access access, uint64_t now)
{
    return lant_exclusive_apply(exclusive, &access, now);
}

static void written(struct lant_exclusive *exclusive, struct lant_exclusive_access access)
{
    lant_exclusive_written(exclusive, &access);
}

/* LNI-36: B is refused while A holds; after A's exclusive store B succeeds. */
static void test_pair(void **state)
{
    (void)state;
    struct lant_exclusive exclusive;
    lant_exclusive_init(&exclusive, LIFETIME);
    assert_int_equal(apply(&exclusive, by(1, 0, 64, true), 0), LANT_EXCLUSIVE_NONE);
    assert_int_equal(apply(&exclusive, by(1, 0, 64, false), 0), LANT_EXCLUSIVE_LOCKS);
    assert_int_equal(apply(&exclusive, by(2, 1, 68, false), 1), LANT_EXCLUSIVE_HELD);
    assert_int_equal(apply(&exclusive, by(2, 1, 64, true), 1), LANT_EXCLUSIVE_HELD);
    assert_int_equal(apply(&exclusive, by(2, 1, 72, false), 1), LANT_EXCLUSIVE_LOCKS);
    assert_int_equal(apply(&exclusive, by(1, 0, 64, true), 2), LANT_EXCLUSIVE_WRITES);
    assert_int_equal(apply(&exclusive, by(2, 1, 64, false), 3), LANT_EXCLUSIVE_HELD);
    written(&exclusive, by(1, 0, 64, true));
    assert_int_equal(apply(&exclusive, by(2, 1, 64, false), 4), LANT_EXCLUSIVE_LOCKS);
    assert_int_equal(apply(&exclusive, by(1, 0, 64, true), 5), LANT_EXCLUSIVE_HELD);
}

/* LNI-37: the same bus ID of two nodes, and two bus IDs of a node. */
static void test_key(void **state)
{
    (void)state;
    struct lant_exclusive exclusive;
    lant_exclusive_init(&exclusive, LIFETIME);
    assert_int_equal(apply(&exclusive, by(1, 5, 8, false), 0), LANT_EXCLUSIVE_LOCKS);
    assert_int_equal(apply(&exclusive, by(2, 5, 8, false), 0), LANT_EXCLUSIVE_HELD);
    assert_int_equal(apply(&exclusive, by(2, 5, 8, true), 0), LANT_EXCLUSIVE_HELD);
    assert_int_equal(apply(&exclusive, by(1, 6, 8, true), 0), LANT_EXCLUSIVE_HELD);
    assert_int_equal(apply(&exclusive, by(1, 5, 8, false), 0), LANT_EXCLUSIVE_RENEWS);
}

/* LNI-40: a dead holder's lock ends by its age; one that is being written does not. */
static void test_expiry(void **state)
{
    (void)state;
    struct lant_exclusive exclusive;
    lant_exclusive_init(&exclusive, LIFETIME);
    (void)apply(&exclusive, by(1, 5, 8, false), 10);
    (void)apply(&exclusive, by(1, 5, 16, false), 20);
    (void)apply(&exclusive, by(1, 5, 16, true), 21);
    assert_int_equal(lant_exclusive_deadline(&exclusive), 110);
    assert_int_equal(apply(&exclusive, by(2, 5, 8, false), 109), LANT_EXCLUSIVE_HELD);
    assert_int_equal(apply(&exclusive, by(1, 5, 8, true), 110), LANT_EXCLUSIVE_NONE);
    assert_int_equal(apply(&exclusive, by(2, 5, 8, false), 110), LANT_EXCLUSIVE_LOCKS);
    assert_int_equal(exclusive.counters.expired, 1);
    lant_exclusive_on_time(&exclusive, 1000);
    assert_int_equal(lant_exclusive_count(&exclusive), 1);
    assert_int_equal(lant_exclusive_deadline(&exclusive), LANT_NEVER);
    written(&exclusive, by(1, 5, 16, true));
    assert_int_equal(lant_exclusive_count(&exclusive), 0);
}

static void test_full(void **state)
{
    (void)state;
    struct lant_exclusive exclusive;
    lant_exclusive_init(&exclusive, LIFETIME);
    for (uint64_t i = 0; i < LANT_EXCLUSIVES_MAX; i++) {
        assert_int_equal(apply(&exclusive, by(1, 0, 8 * i, false), i), LANT_EXCLUSIVE_LOCKS);
    }
    assert_int_equal(apply(&exclusive, by(1, 0, 8 * 99, false), 50), LANT_EXCLUSIVE_FULL);
    assert_int_equal(apply(&exclusive, by(1, 0, 8 * 99, false), 100), LANT_EXCLUSIVE_LOCKS);
    assert_int_equal(apply(&exclusive, by(1, 0, 0, true), 100), LANT_EXCLUSIVE_NONE);
}

/* The model has a place for each of 24 addresses, so that it never searches. */
struct model_lock {
    bool held, writing;
    uint32_t node;
    uint64_t expires;
};

static enum lant_exclusive_verdict model_verdict(const struct model_lock *locks, uint32_t at,
                                                 const struct lant_exclusive_access *access,
                                                 uint64_t now)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < 24; i++) {
        held += locks[i].held && (locks[i].writing || now < locks[i].expires);
    }
    const struct model_lock *lock = &locks[at];
    if (!lock->held || (!lock->writing && now >= lock->expires)) {
        return access->store                 ? LANT_EXCLUSIVE_NONE
               : held == LANT_EXCLUSIVES_MAX ? LANT_EXCLUSIVE_FULL
                                             : LANT_EXCLUSIVE_LOCKS;
    }
    if (lock->node != access->node || lock->writing) {
        return LANT_EXCLUSIVE_HELD;
    }
    return access->store ? LANT_EXCLUSIVE_WRITES : LANT_EXCLUSIVE_RENEWS;
}

static void test_random(void **state)
{
    (void)state;
    uint32_t seen[LANT_EXCLUSIVE_NONE + 1] = {0};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct prng prng;
        struct lant_exclusive exclusive;
        struct model_lock locks[24] = {0};
        uint64_t now = 0;
        prng_init(&prng, seed);
        lant_exclusive_init(&exclusive, LIFETIME);
        for (uint32_t i = 0; i < 5000; i++) {
            const uint32_t at = (uint32_t)prng_below(&prng, 24);
            const struct lant_exclusive_access access =
                by((uint32_t)prng_below(&prng, 2), 3, 8 * at + prng_below(&prng, 8),
                   prng_chance(&prng, 300000));
            struct model_lock *lock = &locks[at];
            now += prng_below(&prng, 8);
            if (lock->writing && prng_chance(&prng, 500000)) {
                written(&exclusive, by(lock->node, 3, 8 * at, true));
                *lock = (struct model_lock){0};
            }
            const enum lant_exclusive_verdict expected = model_verdict(locks, at, &access, now);
            assert_int_equal(lant_exclusive_apply(&exclusive, &access, now), expected);
            seen[expected]++;
            if (expected == LANT_EXCLUSIVE_LOCKS || expected == LANT_EXCLUSIVE_RENEWS) {
                *lock = (struct model_lock){
                    .held = true, .node = access.node, .expires = now + LIFETIME};
            }
            lock->writing = lock->writing || expected == LANT_EXCLUSIVE_WRITES;
        }
    }
    for (uint32_t i = 0; i < COUNT_OF(seen); i++) {
        assert_true(seen[i] > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair), cmocka_unit_test(test_key),    cmocka_unit_test(test_expiry),
        cmocka_unit_test(test_full), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
