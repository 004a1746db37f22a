/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A complete operation is known again until its time is over, and not longer; when the ring
 *         is full, the oldest goes, and that is counted.
 * Method  Cases by hand; then operations by chance, with few numbers so that they often meet, held
 *         against a plain list that is searched from end to end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/tombstones.h"

static uint64_t memory[(LANT_TOMBSTONES_MAX * (sizeof(struct lant_tombstone) + 4)) / 8];

static struct lant_buried registered(uint32_t source, uint32_t operation, uint64_t base,
                                     uint16_t packets)
{
    return (struct lant_buried){
        .source = source, .operation = operation, .base = base, .packets = packets};
}

/* Source, operation, base and number of packets; each packet's address, and no other. */
static void test_what_is_known(void **state)
{
    (void)state;
    struct lant_tombstones stones;
    lant_tombstones_init(&stones, 4, 100, memory);
    struct lant_buried operation = registered(7, 0xabcde, 0x1000, 3);
    lant_tombstones_plant(&stones, 10, &operation);
    assert_true(lant_tombstones_has_register(&stones, 10, &operation));
    operation.base = 0x1200;
    assert_false(lant_tombstones_has_register(&stones, 10, &operation));
    operation = registered(7, 0xabcde, 0x1000, 2);
    assert_false(lant_tombstones_has_register(&stones, 10, &operation));
    for (uint64_t address = 0xe00; address < 0x1900; address += 8) {
        const bool part = address == 0x1000 || address == 0x1200 || address == 0x1400;
        assert_int_equal(lant_tombstones_has_packet(&stones, 10, 7, 0xabcde, address), part);
        assert_false(lant_tombstones_has_packet(&stones, 10, 8, 0xabcde, address));
        assert_false(lant_tombstones_has_packet(&stones, 10, 7, 0xabcdf, address));
    }
    assert_false(lant_tombstones_has_notification(&stones, 10, 7, 0xabcde));
    operation = registered(7, 0xabcde, 0x1000, 0);
    lant_tombstones_plant(&stones, 10, &operation);
    assert_true(lant_tombstones_has_notification(&stones, 10, 7, 0xabcde));
    assert_false(lant_tombstones_has_notification(&stones, 10, 6, 0xabcde));
    lant_tombstones_check(&stones);
}

/* The source may use a number again after a lifetime: from then on it is not known, be it removed
 * or not. */
static void test_lifetime(void **state)
{
    (void)state;
    struct lant_tombstones stones;
    const struct lant_buried operation = registered(1, 2, 0, 1);
    lant_tombstones_init(&stones, 2, 100, memory);
    assert_true(lant_tombstones_deadline(&stones) == LANT_NEVER);
    lant_tombstones_plant(&stones, 10, &operation);
    assert_int_equal(lant_tombstones_deadline(&stones), 110);
    assert_true(lant_tombstones_has_register(&stones, 109, &operation));
    assert_false(lant_tombstones_has_register(&stones, 110, &operation));
    assert_false(lant_tombstones_has_packet(&stones, 110, 1, 2, 0));
    lant_tombstones_on_time(&stones, 109);
    assert_int_equal(stones.count, 1);
    lant_tombstones_on_time(&stones, 110);
    assert_int_equal(stones.count, 0);
    assert_true(lant_tombstones_deadline(&stones) == LANT_NEVER);
    lant_tombstones_init(&stones, 2, LANT_NEVER, memory);
    lant_tombstones_plant(&stones, 10, &operation);
    assert_true(lant_tombstones_deadline(&stones) == LANT_NEVER);
    assert_true(lant_tombstones_has_register(&stones, LANT_NEVER - 1, &operation));
}

/* Only what makes room before its time is a loss. */
static void test_eviction(void **state)
{
    (void)state;
    static const uint32_t capacities[] = {1, 3, LANT_TOMBSTONES, LANT_TOMBSTONES_MAX};
    for (uint32_t i = 0; i < COUNT_OF(capacities); i++) {
        struct lant_tombstones stones;
        assert_true(lant_tombstones_bytes(capacities[i]) <= sizeof memory);
        lant_tombstones_init(&stones, capacities[i], 1000, memory);
        for (uint32_t n = 0; n < 2 * capacities[i]; n++) {
            const struct lant_buried operation = registered(n >> 16, n & 0xffff, n * 512, 1);
            lant_tombstones_plant(&stones, 0, &operation);
        }
        assert_int_equal(stones.count, capacities[i]);
        assert_int_equal(stones.evicted, capacities[i]);
        for (uint32_t n = 0; n < 2 * capacities[i]; n++) {
            const struct lant_buried operation = registered(n >> 16, n & 0xffff, n * 512, 1);
            assert_int_equal(lant_tombstones_has_register(&stones, 999, &operation),
                             n >= capacities[i]);
        }
        const struct lant_buried late = registered(9, 9, 0, 1);
        lant_tombstones_plant(&stones, 1000, &late);
        assert_int_equal(stones.evicted, capacities[i]);
        lant_tombstones_check(&stones);
    }
}

/* -- By chance ----------------------------------------------------------------------------------*/

#define MODEL_MAX 64u

struct model {
    uint32_t count, capacity;
    struct lant_buried buried[MODEL_MAX];
    uint64_t expires[MODEL_MAX];
    uint64_t evicted;
};

static void model_remove_first(struct model *model)
{
    for (uint32_t i = 1; i < model->count; i++) {
        model->buried[i - 1] = model->buried[i];
        model->expires[i - 1] = model->expires[i];
    }
    model->count--;
}

static void model_plant(struct model *model, uint64_t now, uint64_t expires,
                        const struct lant_buried *buried)
{
    if (model->count == model->capacity) {
        model->evicted += model->expires[0] > now;
        model_remove_first(model);
    }
    model->buried[model->count] = *buried;
    model->expires[model->count++] = expires;
}

static void compare(const struct model *model, const struct lant_tombstones *stones, uint64_t now,
                    const struct lant_buried *probe, uint64_t address)
{
    bool registers = false, packet = false, notified = false;
    for (uint32_t i = 0; i < model->count; i++) {
        const struct lant_buried *buried = &model->buried[i];
        if (model->expires[i] <= now || buried->source != probe->source ||
            buried->operation != probe->operation) {
            continue;
        }
        notified |= buried->packets == 0;
        registers |= buried->packets == probe->packets && buried->base == probe->base;
        for (uint32_t k = 0; k < buried->packets; k++) {
            packet |= address == buried->base + k * 512;
        }
    }
    if (probe->packets != 0) {
        assert_int_equal(lant_tombstones_has_register(stones, now, probe), registers);
    }
    assert_int_equal(
        lant_tombstones_has_packet(stones, now, probe->source, probe->operation, address), packet);
    assert_int_equal(lant_tombstones_has_notification(stones, now, probe->source, probe->operation),
                     notified);
    assert_int_equal(stones->count, model->count);
    assert_int_equal(stones->evicted, model->evicted);
    assert_true(lant_tombstones_deadline(stones) ==
                (model->count == 0 ? LANT_NEVER : model->expires[0]));
}

static struct lant_buried draw(struct prng *prng)
{
    return registered((uint32_t)prng_below(prng, 3), (uint32_t)prng_below(prng, 4),
                      prng_below(prng, 4) * 512, (uint16_t)prng_below(prng, 4));
}

static void test_random(void **state)
{
    (void)state;
    uint32_t hits = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct prng prng;
        struct lant_tombstones stones;
        prng_init(&prng, seed);
        struct model model = {.capacity = 1 + (uint32_t)prng_below(&prng, MODEL_MAX)};
        const uint64_t lifetime = 1 + prng_below(&prng, 200);
        lant_tombstones_init(&stones, model.capacity, lifetime, memory);
        uint64_t now = 0;
        for (uint32_t step = 0; step < 1000; step++) {
            const struct lant_buried buried = draw(&prng);
            now += prng_below(&prng, 8);
            if (prng_chance(&prng, 500000)) {
                lant_tombstones_plant(&stones, now, &buried);
                model_plant(&model, now, now + lifetime, &buried);
            } else if (prng_chance(&prng, 200000)) {
                lant_tombstones_on_time(&stones, now);
                while (model.count > 0 && model.expires[0] <= now) {
                    model_remove_first(&model);
                }
            }
            const struct lant_buried probe = draw(&prng);
            const uint64_t address = prng_below(&prng, 24) * 128;
            compare(&model, &stones, now, &probe, address);
            lant_tombstones_check(&stones);
            hits +=
                lant_tombstones_has_packet(&stones, now, probe.source, probe.operation, address);
        }
    }
    assert_true(hits > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_known),
        cmocka_unit_test(test_lifetime),
        cmocka_unit_test(test_eviction),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
