/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets wait, whole, until their operation is registered or their time is over; none is
 *         mixed up, and they come out in the order in which they came.
 * Method  Cases by hand; then calls by chance, held against a plain array of what waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/escape.h"
#include "transport/lant/test_rdma.h"

static struct lant_escape escape;

static struct test_operation operation_of(uint32_t source, uint32_t operation, uint64_t base)
{
    return (struct test_operation){.source = source,
                                   .operation = operation,
                                   .base = base,
                                   .bytes = 4 * 512,
                                   .registered = true,
                                   .pattern = source * 1000 + operation};
}

static void put(uint64_t now, const struct test_operation *operation, uint32_t k)
{
    struct lant_packet packet;
    test_data(operation, k, &packet);
    lant_escape_put(&escape, now, &packet);
}

static uint32_t release(const struct test_operation *operation)
{
    return lant_escape_release(&escape, lant_operation_key(operation->source, operation->operation),
                               operation->base, test_packets(operation));
}

static void assert_next(const struct test_operation *operation, uint32_t k)
{
    struct lant_packet packet, expected;
    test_data(operation, k, &expected);
    assert_true(lant_escape_next_released(&escape, &packet));
    assert_int_equal(packet.header.type, expected.header.type);
    assert_int_equal(packet.header.payload, expected.header.payload);
    assert_int_equal(packet.header.address, expected.header.address);
    assert_int_equal(packet.header.strobe, expected.header.strobe);
    assert_int_equal(packet.footer.source, expected.footer.source);
    assert_int_equal(lant_operation_of(&packet.footer), lant_operation_of(&expected.footer));
    assert_int_equal(packet.footer.offset, k);
    assert_memory_equal(packet.payload, expected.payload, expected.header.payload * 8u);
}

/* LNI-57, LNI-59: 64 packets wait, and are whole when they come out. */
static void test_full(void **state)
{
    (void)state;
    struct lant_packet packet;
    lant_escape_init(&escape, LANT_ESCAPES, 5000);
    for (uint32_t i = 0; i < 64; i++) {
        const struct test_operation operation = operation_of(i / 4 % 3, i / 4, 0x1000);
        assert_false(lant_escape_full(&escape));
        put(i, &operation, i % 4);
    }
    assert_true(lant_escape_full(&escape));
    assert_false(lant_escape_next_released(&escape, &packet));
    for (uint32_t i = 16; i > 0; i--) {
        const struct test_operation operation = operation_of((i - 1) % 3, i - 1, 0x1000);
        assert_int_equal(release(&operation), 4);
        assert_int_equal(release(&operation), 0);
        for (uint32_t k = 0; k < 4; k++) {
            assert_next(&operation, k);
        }
    }
    assert_int_equal(escape.used, 0);
    assert_true(lant_escape_deadline(&escape) == LANT_NEVER);
}

/* Only what lies in the range of the registered operation of the same source. */
static void test_match(void **state)
{
    (void)state;
    lant_escape_init(&escape, 8, 100);
    const struct test_operation mine = operation_of(1, 2, 0x1000);
    const struct test_operation others[] = {operation_of(2, 2, 0x1000), operation_of(1, 3, 0x1000),
                                            operation_of(1, 2, 0x1800), operation_of(1, 2, 0xe00)};
    for (uint32_t i = 0; i < COUNT_OF(others); i++) {
        put(0, &others[i], 0);
    }
    put(0, &mine, 3);
    assert_int_equal(release(&mine), 1);
    assert_next(&mine, 3);
    assert_int_equal(escape.used, 4);
}

/* LNI-58: the time of each packet is its own; what is released may expire, too. */
static void test_time(void **state)
{
    (void)state;
    const struct test_operation operation = operation_of(1, 2, 0);
    lant_escape_init(&escape, 256, 100);
    put(10, &operation, 1);
    put(20, &operation, 2);
    put(20, &operation, 3);
    assert_int_equal(lant_escape_deadline(&escape), 110);
    assert_int_equal(lant_escape_on_time(&escape, 109), 0);
    assert_int_equal(lant_escape_on_time(&escape, 110), 1);
    assert_int_equal(lant_escape_deadline(&escape), 120);
    assert_int_equal(release(&operation), 2);
    assert_next(&operation, 2);
    assert_int_equal(lant_escape_on_time(&escape, 120), 1);
    struct lant_packet packet;
    assert_false(lant_escape_next_released(&escape, &packet));
}

/* -- By chance ----------------------------------------------------------------------------------*/

#define MODEL_MAX 256u

struct waiting {
    struct test_operation operation;
    uint32_t k;
    uint64_t expires;
    bool released;
};

static struct waiting model[MODEL_MAX];
static uint32_t model_count;

static void model_remove(uint32_t at)
{
    model_count--;
    for (uint32_t i = at; i < model_count; i++) {
        model[i] = model[i + 1];
    }
}

static uint32_t model_release(const struct test_operation *operation)
{
    uint32_t released = 0;
    for (uint32_t i = 0; i < model_count; i++) {
        struct waiting *at = &model[i];
        const uint64_t address = at->operation.base + at->k * 512;
        if (!at->released && at->operation.source == operation->source &&
            at->operation.operation == operation->operation && address >= operation->base &&
            address < operation->base + operation->bytes) {
            at->released = true;
            released++;
        }
    }
    return released;
}

static uint32_t model_expire(uint64_t now)
{
    uint32_t dropped = 0;
    while (model_count > 0 && model[0].expires <= now) {
        model_remove(0);
        dropped++;
    }
    return dropped;
}

static void take_next(void)
{
    uint32_t at = 0;
    struct lant_packet packet;
    while (at < model_count && !model[at].released) {
        at++;
    }
    if (at == model_count) {
        assert_false(lant_escape_next_released(&escape, &packet));
        return;
    }
    assert_next(&model[at].operation, model[at].k);
    model_remove(at);
}

static void test_random(void **state)
{
    (void)state;
    uint32_t full = 0, dropped = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct prng prng;
        prng_init(&prng, seed);
        const uint32_t slots = 1 + (uint32_t)prng_below(&prng, seed % 2 == 0 ? 256 : 64);
        lant_escape_init(&escape, slots, 300);
        model_count = 0;
        for (uint64_t now = 0, step = 0; step < 4000; step++) {
            const struct test_operation operation =
                operation_of((uint32_t)prng_below(&prng, 3), (uint32_t)prng_below(&prng, 3),
                             prng_below(&prng, 3) * 1024);
            const uint64_t what = prng_below(&prng, 10);
            now += prng_below(&prng, 4);
            if (what < 6 && model_count < slots) {
                const uint32_t k = (uint32_t)prng_below(&prng, 4);
                put(now, &operation, k);
                model[model_count++] = (struct waiting){operation, k, now + 300, false};
            } else if (what == 6) {
                assert_int_equal(release(&operation), model_release(&operation));
            } else if (what < 9) {
                take_next();
            } else {
                const uint32_t expired = model_expire(now);
                assert_int_equal(lant_escape_on_time(&escape, now), expired);
                dropped += expired;
            }
            full += model_count == slots;
            assert_int_equal(lant_escape_full(&escape), model_count == slots);
            assert_true(lant_escape_deadline(&escape) ==
                        (model_count == 0 ? LANT_NEVER : model[0].expires));
            lant_escape_check(&escape);
        }
    }
    assert_true(full > 1000 && dropped > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
