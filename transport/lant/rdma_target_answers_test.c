/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What is not registered; what is refused, and how; answers, NACKs; notifications of which
 *         none is lost when the local queue is full.
 * Method  Cases by hand; then packets with fields by chance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/test_rdma_target.h"

static struct test_target test;

static void begin(void)
{
    const struct lant_rdma_target_config config = test_config();
    test_target_init(&test, &config);
}

static struct test_operation operation_of(uint32_t number, uint32_t bytes, bool registered)
{
    return (struct test_operation){.source = 3,
                                   .operation = number,
                                   .base = TEST_FIRST + 64,
                                   .bytes = bytes,
                                   .registered = registered,
                                   .pattern = number};
}

static bool next(struct lant_rdma_arrival *arrival)
{
    return lant_rdma_target_next_notification(&test.target, arrival);
}

static enum lant_rdma_target_verdict notify(const struct test_operation *operation)
{
    struct lant_packet packet;
    test_notification(operation, 77, &packet);
    return test_give(&test, &packet);
}

/* LNI-10: an answer repeats what the sender knows its packet by. */
static void test_answer(void **state)
{
    (void)state;
    begin();
    const struct test_operation operation = operation_of(0xfedcb, 1024, true);
    struct lant_packet packet;
    for (uint32_t k = 0; k < 2; k++) {
        test_data(&operation, k, &packet);
        packet.footer.attempt = 5;
        packet.footer.row = 14;
        packet.footer.bus_id = 200;
        packet.header.priority = 2;
        assert_int_equal(test_give(&test, &packet), LANT_RDMA_TARGET_WRITE);
        assert_int_equal(test.answer.header.type, LANT_RDMA_ACK);
        assert_int_equal(test.answer.header.destination, 3);
        assert_int_equal(test.answer.header.payload, 0);
        assert_int_equal(test.answer.header.address, 0);
        assert_int_equal(test.answer.header.priority, 2);
        assert_int_equal(test.answer.footer.source, TEST_NODE);
        assert_int_equal(test.answer.footer.class, LANT_CLASS_RDMA);
        assert_int_equal(test.answer.footer.row, 14);
        assert_int_equal(test.answer.footer.response, LANT_OKAY);
        assert_int_equal(test.answer.footer.bus_id, 200);
        assert_int_equal(lant_operation_of(&test.answer.footer), 0xfedcb);
        assert_int_equal(test.answer.footer.offset, k);
        assert_int_equal(test.answer.footer.attempt, 5);
    }
}

/* Damaged, but the footer is readable. */
static void test_nack(void **state)
{
    (void)state;
    begin();
    struct lant_packet packet, answer;
    const struct test_operation operation = operation_of(1, 1024, true);
    static const uint8_t ours[] = {LANT_RDMA_WRITE, LANT_RDMA_WRITE_REGISTER,
                                   LANT_RDMA_UNREGISTERED, LANT_COMPLETION_NOTIFICATION};
    static const uint8_t others[] = {LANT_AR, LANT_AW,       LANT_R,
                                     LANT_B,  LANT_RDMA_ACK, LANT_ERROR_REPORT};
    test_data(&operation, 1, &packet);
    for (uint32_t i = 0; i < COUNT_OF(ours); i++) {
        packet.header.type = ours[i];
        assert_true(lant_rdma_target_on_damaged(&test.target, &packet, &answer));
        assert_int_equal(answer.header.type, LANT_RDMA_ACK);
        assert_int_equal(answer.header.destination, 3);
        assert_int_equal(answer.footer.response, LANT_NACK_CRC);
        assert_int_equal(answer.footer.offset, 1);
    }
    for (uint32_t i = 0; i < COUNT_OF(others); i++) {
        packet.header.type = others[i];
        assert_false(lant_rdma_target_on_damaged(&test.target, &packet, &answer));
    }
    assert_true(lant_rdma_target_idle(&test.target));
    assert_int_equal(test.target.counters.nacks, COUNT_OF(ours));
}

/* LNI-65: no entry, no escape, no filter; the notification comes with its packet, and only
 * with it (LNI-67). */
static void test_unregistered(void **state)
{
    (void)state;
    begin();
    struct lant_rdma_arrival arrival;
    const struct test_operation operation = operation_of(1, 200 * 512 + 9, false);
    for (uint32_t k = 201; k > 0; k--) {
        assert_int_equal(test_give_data(&test, &operation, k - 1), LANT_RDMA_TARGET_WRITE);
        assert_true(lant_rdma_target_idle(&test.target));
    }
    assert_int_equal(test_give_data(&test, &operation, 5), LANT_RDMA_TARGET_WRITE);
    assert_true(test_is_written(&test, &operation));
    assert_false(next(&arrival));
    assert_int_equal(notify(&operation), LANT_RDMA_TARGET_NOTIFIED);
    assert_int_equal(test.answer.footer.class, LANT_CLASS_NOTIFICATION);
    assert_int_equal(test.answers, 203);
    assert_true(next(&arrival));
    assert_false(arrival.registered);
    assert_int_equal(arrival.source, 3);
    assert_int_equal(arrival.address, operation.base);
    assert_int_equal(arrival.bytes, operation.bytes);
    assert_int_equal(arrival.tag, 77);
}

/* LNI-52: a notification that comes twice is acknowledged twice, and delivered once. */
static void test_notified_once(void **state)
{
    (void)state;
    begin();
    struct lant_rdma_arrival arrival;
    const struct test_operation operation = operation_of(1, 512, false);
    assert_int_equal(notify(&operation), LANT_RDMA_TARGET_NOTIFIED);
    assert_int_equal(notify(&operation), LANT_RDMA_TARGET_DUPLICATE);
    assert_true(next(&arrival));
    assert_int_equal(notify(&operation), LANT_RDMA_TARGET_DUPLICATE);
    assert_int_equal(test.answers, 3);
    assert_false(next(&arrival));
    test.now += 60000;
    assert_int_equal(notify(&operation), LANT_RDMA_TARGET_NOTIFIED);
    /* Without the ring it is delivered as often as it comes. */
    struct lant_rdma_target_config config = test_config();
    config.strict_thesis = true;
    test_target_init(&test, &config);
    assert_int_equal(notify(&operation), LANT_RDMA_TARGET_NOTIFIED);
    assert_int_equal(notify(&operation), LANT_RDMA_TARGET_NOTIFIED);
}

/* LNI-67: the notification of a registered operation is there before the sender knows anything. */
static void test_registered_is_first(void **state)
{
    (void)state;
    begin();
    test.slow = true;
    struct lant_rdma_arrival arrival;
    const struct test_operation operation = operation_of(1, 512, true);
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_WRITE);
    assert_false(next(&arrival));
    struct lant_packet ack;
    lant_rdma_target_on_written(&test.target, test.now, &test.slow_writes[0], LANT_OKAY, &ack);
    assert_true(next(&arrival));
    assert_true(arrival.registered);
}

/* While nobody takes notifications, operations that are not registered find 64 places, registered
 * ones keep their entries; nothing is lost. */
static void test_full_queue(void **state)
{
    (void)state;
    begin();
    struct lant_rdma_arrival arrival;
    for (uint32_t i = 0; i <= LANT_ARRIVALS_HELD; i++) {
        const struct test_operation operation = operation_of(i, 512, false);
        assert_int_equal(notify(&operation), i < LANT_ARRIVALS_HELD ? LANT_RDMA_TARGET_NOTIFIED
                                                                    : LANT_RDMA_TARGET_HELD);
    }
    assert_int_equal(test.answers, LANT_ARRIVALS_HELD);
    for (uint32_t i = 0; i <= LANT_REGISTRATIONS; i++) {
        const struct test_operation operation = operation_of(1000 + i, 512, true);
        assert_int_equal(test_give_data(&test, &operation, 0), i < LANT_REGISTRATIONS
                                                                   ? LANT_RDMA_TARGET_WRITE
                                                                   : LANT_RDMA_TARGET_TABLE_FULL);
    }
    /* Nobody's age: the operations are complete. */
    test.now += 200000;
    lant_rdma_target_on_time(&test.target, test.now);
    for (uint32_t i = 0; i < LANT_ARRIVALS_HELD + LANT_REGISTRATIONS; i++) {
        assert_true(next(&arrival));
        assert_int_equal(arrival.registered, i >= LANT_ARRIVALS_HELD);
        assert_int_equal(arrival.operation, i < LANT_ARRIVALS_HELD ? i : 1000 + i - 64);
    }
    assert_false(next(&arrival));
    const struct test_operation operation = operation_of(64, 512, false);
    assert_int_equal(notify(&operation), LANT_RDMA_TARGET_NOTIFIED);
}

/* Memory that is not offered. */
static void test_illegal(void **state)
{
    (void)state;
    static const uint64_t bases[] = {
        TEST_FIRST - 8,       TEST_FIRST + TEST_MEMORY / 2 - 504, TEST_FIRST + TEST_MEMORY / 2, 0,
        LANT_ADDRESSES - 512,
    };
    for (uint32_t i = 0; i < COUNT_OF(bases); i++) {
        for (uint32_t registered = 0; registered < 2; registered++) {
            begin();
            struct test_operation operation = operation_of(1, 512, registered);
            operation.base = bases[i];
            assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_ILLEGAL);
            assert_int_equal(test.answer.footer.response, LANT_DECERR);
            assert_int_equal(test.answers, 1);
            assert_true(lant_rdma_target_idle(&test.target));
        }
    }
    /* The end of the operation is outside: no entry. So is a packet for which nothing waits. */
    struct test_operation operation = operation_of(1, 513, true);
    operation.base = TEST_FIRST + TEST_MEMORY / 2 - 512;
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_ILLEGAL);
    assert_int_equal(test_give_data(&test, &operation, 1), LANT_RDMA_TARGET_ILLEGAL);
    assert_true(lant_rdma_target_idle(&test.target));
}

/* A complete operation is known, though its memory is offered no more; an incomplete one is
 * refused. */
static void test_withdrawn(void **state)
{
    (void)state;
    begin();
    const struct test_operation operation = operation_of(1, 1024, true);
    const struct test_operation other = operation_of(2, 1024, true);
    (void)test_give_data(&test, &operation, 0);
    (void)test_give_data(&test, &operation, 1);
    (void)test_give_data(&test, &other, 0);
    test.ranges.count = 0;
    assert_int_equal(test_give_data(&test, &operation, 1), LANT_RDMA_TARGET_DUPLICATE);
    assert_int_equal(test_give_data(&test, &other, 0), LANT_RDMA_TARGET_DUPLICATE);
    assert_int_equal(test_give_data(&test, &other, 1), LANT_RDMA_TARGET_ILLEGAL);
}

static void assert_refused(const struct lant_packet *packet, enum lant_rdma_target_verdict verdict)
{
    const uint64_t written = test.target.counters.written;
    assert_int_equal(test_give(&test, packet), verdict);
    assert_true(test.action.answers);
    assert_int_equal(test.answer.footer.response, LANT_SLVERR);
    assert_int_equal(test.target.counters.written, written);
}

/* Each field that does not fit, alone. */
static void test_inconsistent(void **state)
{
    (void)state;
    begin();
    const struct test_operation operation = operation_of(1, 3 * 512, true);
    struct lant_packet good, bad;
    for (uint32_t k = 0; k < 2; k++) {
        test_data(&operation, k, &good);
        bad = good, bad.header.strobe = 0xef, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
        bad = good, bad.header.strobe = 0, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
        bad = good, bad.header.payload = 0, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
        bad = good, bad.header.payload = 65, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
        bad = good, bad.header.address += 4, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
        bad = good, bad.footer.offset += 1, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
        /* Only the last packet is short. */
        bad = good, bad.header.payload = 63, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
        bad = good, bad.header.strobe = 0x7f, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
        if (k == 1) {
            bad = good, bad.header.address += 8;
            assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
        } else {
            bad = good, bad.header.packets = 0, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
            bad = good, bad.header.packets = 129, assert_refused(&bad, LANT_RDMA_TARGET_TOO_LONG);
            assert_true(lant_rdma_target_idle(&test.target));
        }
        assert_int_equal(test_give(&test, &good), LANT_RDMA_TARGET_WRITE);
    }
    test_data(&operation, 0, &bad);
    bad.header.packets = 4;
    assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
    const struct test_operation other = operation_of(2, 512, false);
    test_notification(&other, 0, &good);
    bad = good, bad.payload[0] &= 0xffffffff, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
    bad = good, bad.payload[0] |= UINT64_C(1) << 58;
    assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
    bad = good, bad.payload[0] ^= 1u << 20, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
    bad = good, bad.header.payload = 2, assert_refused(&bad, LANT_RDMA_TARGET_INCONSISTENT);
}

/* Keyholes (Lant 4.4): refused, or told apart from memory. */
static void test_keyhole(void **state)
{
    (void)state;
    begin();
    struct test_operation operation = operation_of(1, 512, false);
    struct lant_packet packet;
    test_data(&operation, 0, &packet);
    packet.header.keyhole = true;
    assert_refused(&packet, LANT_RDMA_TARGET_KEYHOLE);
    struct lant_rdma_target_config config = test_config();
    config.keyhole = true;
    test_target_init(&test, &config);
    test.slow = true;
    assert_int_equal(test_give(&test, &packet), LANT_RDMA_TARGET_WRITE);
    assert_true(test.action.write.fixed);
    assert_int_equal(test.action.write.bytes, 512);
    packet.header.address = TEST_FIRST + TEST_MEMORY / 2;
    assert_int_equal(test_give(&test, &packet), LANT_RDMA_TARGET_ILLEGAL);
    packet.header.address -= 8;
    assert_int_equal(test_give(&test, &packet), LANT_RDMA_TARGET_WRITE);
    operation.registered = true;
    test_data(&operation, 0, &packet);
    packet.header.keyhole = true;
    assert_refused(&packet, LANT_RDMA_TARGET_KEYHOLE);
}

/* Memory refuses: the packet has not come; its next copy is written. */
static void test_write_failure(void **state)
{
    (void)state;
    begin();
    test.slow = true;
    struct lant_packet answer;
    struct lant_rdma_arrival arrival;
    const struct test_operation operation = operation_of(1, 100, true);
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_WRITE);
    lant_rdma_target_on_written(&test.target, test.now, &test.slow_writes[0], LANT_SLVERR, &answer);
    assert_int_equal(answer.footer.response, LANT_SLVERR);
    assert_false(next(&arrival));
    test.slow = false;
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_WRITE);
    assert_true(next(&arrival));
    assert_int_equal(test.target.counters.write_failures, 1);
}

/* Any fields that a packet can have; mostly few values, so that packets meet. */
static struct lant_packet draw(struct prng *prng)
{
    static const uint8_t types[] = {LANT_RDMA_WRITE, LANT_RDMA_WRITE, LANT_RDMA_WRITE_REGISTER,
                                    LANT_RDMA_UNREGISTERED, LANT_COMPLETION_NOTIFICATION};
    const uint64_t any = prng_next(prng);
    const bool wild = prng_chance(prng, 100000);
    const uint8_t type = types[prng_below(prng, COUNT_OF(types))];
    const uint32_t operation = any >> 20 & 3, k = type == LANT_RDMA_WRITE ? any >> 32 & 3 : 0;
    struct lant_packet packet = {
        .header = {.destination = any >> 59 == 0 ? 0 : TEST_NODE,
                   .type = type,
                   .payload = (uint8_t)(wild ? any % 65 : 64),
                   .packets = (uint16_t)(prng_chance(prng, 50000) ? any % 2048 : 1 + operation),
                   .keyhole = any % 64 == 0,
                   .address = TEST_FIRST + TEST_MEMORY / 2 - 4096 + operation * 1024 + k * 512,
                   .strobe = (uint8_t)(wild ? any >> 8 : 0xff)},
        .footer = {.source = any >> 16 & 1,
                   .operation = (uint16_t)operation,
                   .offset = wild ? any >> 40 & 3 : k},
    };
    if (packet.header.type == LANT_COMPLETION_NOTIFICATION) {
        packet.header.payload = 1;
        packet.payload[0] = (any % 3) << 32 | (uint64_t)packet.footer.operation << 20;
    } else if (wild) {
        packet.header.address = any >> 22;
    }
    return packet;
}

/* LNI-92: nothing outside the ranges is written (test_land looks), and in the end all is free. */
static void test_any_packets(void **state)
{
    (void)state;
    struct lant_rdma_target_config config = test_config();
    uint64_t struck[LANT_RDMA_TARGET_VERDICT_COUNT] = {0};
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct prng prng;
        prng_init(&prng, seed);
        config.entries = (uint16_t)(1 + prng_below(&prng, 4));
        config.escapes = (uint16_t)(1 + prng_below(&prng, 4));
        config.tombstones = 1 + (uint32_t)prng_below(&prng, 4);
        config.lifetime_ticks = 1000;
        test_target_init(&test, &config);
        for (uint32_t step = 0; step < 2000; step++) {
            struct lant_rdma_arrival arrival;
            const struct lant_packet packet = draw(&prng);
            test.slow = test.slow_count < TEST_SLOW / 2 && prng_chance(&prng, 700000);
            struck[test_give(&test, &packet)]++;
            if (test.slow_count > 0 && prng_chance(&prng, 200000)) {
                test_land_one(&test);
            }
            (void)(prng_chance(&prng, seed % 4 == 0 ? 0 : 50000) && next(&arrival));
            test.now += prng_below(&prng, prng_chance(&prng, 5000) ? 30000 : 100);
            lant_rdma_target_on_time(&test.target, test.now);
        }
        while (test.slow_count > 0) {
            test_land_one(&test);
        }
        struct lant_rdma_arrival arrival;
        while (next(&arrival)) {
        }
        lant_rdma_target_on_time(&test.target, test.now + 100000);
        assert_true(lant_rdma_target_idle(&test.target));
    }
    for (uint32_t i = 0; i < LANT_RDMA_TARGET_VERDICT_COUNT; i++) {
        assert_true(struck[i] > 20);
    }
}

/* The check that both targets share. */
static void test_ranges(void **state)
{
    (void)state;
    const struct lant_ranges ranges = {
        .count = 3,
        .ranges = {{1000, 100, true, false}, {1100, 50, true, true}, {0, 8, false, true}}};
    const uint64_t top = LANT_ADDRESSES;
    assert_true(lant_ranges_allow(&ranges, 1000, 100, LANT_ACCESS_READ));
    assert_false(lant_ranges_allow(&ranges, 1000, 100, LANT_ACCESS_WRITE));
    assert_false(lant_ranges_allow(&ranges, 1000, 101, LANT_ACCESS_READ));
    assert_false(lant_ranges_allow(&ranges, 999, 1, LANT_ACCESS_READ));
    assert_true(lant_ranges_allow(&ranges, 1149, 1, LANT_ACCESS_WRITE));
    assert_false(lant_ranges_allow(&ranges, 1150, 1, LANT_ACCESS_WRITE));
    assert_false(lant_ranges_allow(&ranges, 1150, 0, LANT_ACCESS_WRITE));
    assert_true(lant_ranges_allow(&ranges, 0, 8, LANT_ACCESS_WRITE));
    assert_false(lant_ranges_allow(&ranges, 0, 8, LANT_ACCESS_READ));
    assert_false(lant_ranges_allow(&ranges, UINT64_MAX - 3, 8, LANT_ACCESS_WRITE));
    assert_false(lant_ranges_allow(&ranges, 4, UINT64_MAX, LANT_ACCESS_WRITE));
    const struct lant_ranges all = {.count = 1, .ranges = {{0, UINT64_MAX, true, true}}};
    assert_true(lant_ranges_allow(&all, top - 8, 8, LANT_ACCESS_READ));
    assert_false(lant_ranges_allow(&all, top - 8, 9, LANT_ACCESS_READ));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_nack),
        cmocka_unit_test(test_unregistered),
        cmocka_unit_test(test_notified_once),
        cmocka_unit_test(test_registered_is_first),
        cmocka_unit_test(test_full_queue),
        cmocka_unit_test(test_illegal),
        cmocka_unit_test(test_withdrawn),
        cmocka_unit_test(test_inconsistent),
        cmocka_unit_test(test_keyhole),
        cmocka_unit_test(test_write_failure),
        cmocka_unit_test(test_any_packets),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
