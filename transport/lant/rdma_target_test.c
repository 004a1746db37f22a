/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Registered operations at their receiver: in any order, with duplicates, each is notified
 *         once, when all its bytes are in memory, and never written afterwards.
 * Method  Cases by hand; every order of up to 5 packets; for every other number of packets an order
 *         and duplicates by chance, held against the data that were sent.
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

static struct test_operation operation_of(uint32_t number, uint32_t bytes)
{
    return (struct test_operation){.source = 3,
                                   .operation = number,
                                   .base = TEST_FIRST + 64,
                                   .bytes = bytes,
                                   .registered = true,
                                   .pattern = number};
}

static void assert_notified(const struct test_operation *operation)
{
    struct lant_rdma_arrival arrival;
    assert_true(lant_rdma_target_next_notification(&test.target, &arrival));
    assert_int_equal(arrival.registered, operation->registered);
    assert_int_equal(arrival.source, operation->source);
    assert_int_equal(arrival.operation, operation->operation);
    assert_int_equal(arrival.address, operation->base);
    assert_int_equal(arrival.bytes, operation->bytes);
}

static void assert_not_notified(void)
{
    struct lant_rdma_arrival arrival;
    assert_false(lant_rdma_target_next_notification(&test.target, &arrival));
}

/* -- Orders -------------------------------------------------------------------------------------*/

/* The `which`-th order of n packets. */
static void order_of(uint32_t which, uint32_t n, uint32_t *order)
{
    uint32_t left[5] = {0, 1, 2, 3, 4};
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t pick = which % (n - i);
        which /= n - i;
        order[i] = left[pick];
        for (uint32_t j = pick; j + 1 < n - i; j++) {
            left[j] = left[j + 1];
        }
    }
}

/* LNI-56: up to 5 packets in every order; also LNI-57: what comes before the first packet is
 * neither written nor acknowledged until then. */
static void test_every_order(void **state)
{
    (void)state;
    static const uint32_t orders[] = {1, 1, 2, 6, 24, 120};
    for (uint32_t n = 1; n <= 5; n++) {
        for (uint32_t which = 0; which < orders[n]; which++) {
            begin();
            const struct test_operation operation = operation_of(which, 512 * n - 499);
            uint32_t order[5];
            bool registered = false;
            order_of(which, n, order);
            for (uint32_t i = 0; i < n; i++) {
                assert_not_notified();
                registered |= order[i] == 0;
                assert_int_equal(test_give_data(&test, &operation, order[i]),
                                 registered ? LANT_RDMA_TARGET_WRITE : LANT_RDMA_TARGET_ESCAPED);
                assert_int_equal(test.answers, registered ? i + 1 : 0);
            }
            assert_notified(&operation);
            assert_not_notified();
            assert_true(test_is_written(&test, &operation));
            assert_int_equal(test.target.registrations.used, 0);
            assert_int_equal(test.target.escape.used, 0);
        }
    }
}

static void shuffle(struct prng *prng, uint32_t *items, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t j = (uint32_t)prng_below(prng, i);
        const uint32_t item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}

/* Gives all packets by chance, some of them again, until they are notified. A packet that found the
 * escape channel full comes again later. */
static void give_by_chance(struct prng *prng, const struct test_operation *operation)
{
    uint32_t order[LANT_MASK_BITS_MAX];
    const uint32_t n = test_packets(operation);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    while (test.target.arrivals_count == 0) {
        shuffle(prng, order, n);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t k =
                prng_chance(prng, 100000) ? order[prng_below(prng, i + 1)] : order[i];
            (void)test_give_data(&test, operation, k);
        }
    }
}

/* LNI-56, LNI-60: every number of packets of the default mask, and some of the widest. */
static void test_every_number(void **state)
{
    (void)state;
    static const uint32_t widths[] = {32, LANT_MASK_BITS, LANT_MASK_BITS_MAX};
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < COUNT_OF(widths); i++) {
        const uint32_t step = widths[i] > 128 ? 31 : 1;
        struct lant_rdma_target_config config = test_config();
        config.mask_bits = (uint16_t)widths[i];
        config.entries = 2;
        for (uint32_t n = 1; n <= widths[i]; n += step) {
            const struct test_operation operation =
                operation_of(n, (n - 1) * 512 + 1 + (uint32_t)prng_below(&prng, 512));
            test_target_init(&test, &config);
            give_by_chance(&prng, &operation);
            assert_notified(&operation);
            assert_not_notified();
            assert_true(test_is_written(&test, &operation));
            assert_int_equal(test.target.counters.written, n);
            assert_int_equal(test.target.registrations.used, 0);
        }
    }
}

/* LNI-43: the last flit is exact. */
static void test_lengths(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {1, 7, 8, 9, 511, 512, 513, 1023, 65535};
    for (uint32_t i = 0; i < COUNT_OF(lengths); i++) {
        for (uint32_t registered = 0; registered < 2; registered++) {
            struct test_operation operation = operation_of(i, lengths[i]);
            struct lant_packet packet;
            operation.registered = registered;
            begin();
            for (uint32_t k = 0; k < test_packets(&operation); k++) {
                assert_int_equal(test_give_data(&test, &operation, k), LANT_RDMA_TARGET_WRITE);
            }
            if (!registered) {
                assert_not_notified();
                test_notification(&operation, 0x12345, &packet);
                assert_int_equal(test_give(&test, &packet), LANT_RDMA_TARGET_NOTIFIED);
            }
            assert_notified(&operation);
            assert_true(test_is_written(&test, &operation));
        }
    }
}

/* -- The escape channel -------------------------------------------------------------------------*/

/* LNI-58: dropped without a word after T_esc; what the sender sends again arrives. */
static void test_escape_time(void **state)
{
    (void)state;
    begin();
    const struct test_operation operation = operation_of(1, 1024);
    assert_int_equal(test_give_data(&test, &operation, 1), LANT_RDMA_TARGET_ESCAPED);
    assert_int_equal(lant_rdma_target_deadline(&test.target), 6000);
    test.now = 6000;
    lant_rdma_target_on_time(&test.target, test.now);
    assert_int_equal(test.target.counters.expired, 1);
    assert_true(lant_rdma_target_idle(&test.target));
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_WRITE);
    assert_int_equal(test.answers, 1);
    assert_not_notified();
    assert_int_equal(test_give_data(&test, &operation, 1), LANT_RDMA_TARGET_WRITE);
    assert_notified(&operation);
    assert_true(test_is_written(&test, &operation));
}

/* LNI-59: the 65th packet is dropped, and comes again. */
static void test_escape_full(void **state)
{
    (void)state;
    begin();
    const struct test_operation operation = operation_of(1, 66 * 512);
    for (uint32_t k = 1; k < 66; k++) {
        assert_int_equal(test_give_data(&test, &operation, k),
                         k < 65 ? LANT_RDMA_TARGET_ESCAPED : LANT_RDMA_TARGET_ESCAPE_FULL);
    }
    assert_int_equal(test.answers, 0);
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_WRITE);
    assert_int_equal(test.answers, 65);
    assert_not_notified();
    assert_int_equal(test_give_data(&test, &operation, 65), LANT_RDMA_TARGET_WRITE);
    assert_notified(&operation);
}

/* Two copies of a packet wait; one of them is written. */
static void test_escape_twice(void **state)
{
    (void)state;
    begin();
    const struct test_operation operation = operation_of(1, 1024);
    assert_int_equal(test_give_data(&test, &operation, 1), LANT_RDMA_TARGET_ESCAPED);
    assert_int_equal(test_give_data(&test, &operation, 1), LANT_RDMA_TARGET_ESCAPED);
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_WRITE);
    assert_int_equal(test.target.counters.written, 2);
    assert_int_equal(test.target.counters.verdicts[LANT_RDMA_TARGET_DUPLICATE], 1);
    assert_int_equal(test.answers, 3);
    assert_notified(&operation);
    assert_not_notified();
}

/* -- Duplicates ---------------------------------------------------------------------------------*/

/* LNI-60: the mask is unchanged, memory untouched, the answer is given again. */
static void test_duplicate_active(void **state)
{
    (void)state;
    begin();
    const struct test_operation operation = operation_of(1, 3 * 512);
    (void)test_give_data(&test, &operation, 0);
    (void)test_give_data(&test, &operation, 2);
    const uint64_t mask = lant_registrations_taken(&test.target.registrations, 0, 0);
    memset(test.memory, 0, sizeof test.memory);
    for (uint32_t k = 0; k < 3; k += 2) {
        assert_int_equal(test_give_data(&test, &operation, k), LANT_RDMA_TARGET_DUPLICATE);
        assert_true(test.action.answers);
        assert_int_equal(test.answer.footer.offset, k);
        assert_int_equal(test.answer.footer.response, LANT_OKAY);
    }
    assert_true(lant_registrations_taken(&test.target.registrations, 0, 0) == mask);
    assert_int_equal(test.memory[64], 0);
    assert_int_equal(test.target.counters.written, 2);
}

/* Two copies of each packet at once on their way into memory count once, and only what is there is
 * acknowledged; no notification before the last byte. */
static void test_under_way(void **state)
{
    (void)state;
    begin();
    test.slow = true;
    const struct test_operation operation = operation_of(1, 1024);
    for (uint32_t k = 0; k < 2; k++) {
        assert_int_equal(test_give_data(&test, &operation, k), LANT_RDMA_TARGET_WRITE);
        assert_int_equal(test_give_data(&test, &operation, k), LANT_RDMA_TARGET_UNDER_WAY);
    }
    assert_int_equal(test.answers, 0);
    assert_not_notified();
    test_land_one(&test);
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_DUPLICATE);
    assert_int_equal(test_give_data(&test, &operation, 1), LANT_RDMA_TARGET_UNDER_WAY);
    assert_int_equal(test.answers, 2);
    assert_not_notified();
    test_land_one(&test);
    assert_int_equal(test.answers, 3);
    assert_int_equal(test.slow_count, 0);
    assert_notified(&operation);
    assert_true(test_is_written(&test, &operation));
}

/* LNI-61, LNI-62: after the end, be the notification taken or not, no packet is written, none opens
 * an entry, each is acknowledged again; until the lifetime is over. */
static void test_duplicate_complete(void **state)
{
    (void)state;
    begin();
    const struct test_operation operation = operation_of(1, 3 * 512);
    for (uint32_t k = 0; k < 3; k++) {
        (void)test_give_data(&test, &operation, k);
    }
    memset(test.memory, 0, sizeof test.memory);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t k = 0; k < 3; k++) {
            assert_int_equal(test_give_data(&test, &operation, k), LANT_RDMA_TARGET_DUPLICATE);
        }
        assert_int_equal(test.answers, 6 + 3 * round);
        if (round == 0) {
            assert_notified(&operation);
        }
        assert_int_equal(test.target.registrations.used, 0);
        assert_int_equal(test.target.escape.used, 0);
    }
    assert_int_equal(test.memory[64], 0);
    assert_not_notified();
    /* LNI-54: then nothing is known of anybody. */
    assert_int_equal(lant_rdma_target_deadline(&test.target), 61000);
    test.now = 61000;
    lant_rdma_target_on_time(&test.target, test.now);
    assert_true(lant_rdma_target_idle(&test.target));
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_WRITE);
}

/* The hazards of the thesis without the rings: there is no acknowledgement for a duplicate, so the
 * sender fails in vain; a late first packet overwrites memory and opens an entry that nothing
 * completes. */
static void test_strict_thesis(void **state)
{
    (void)state;
    struct lant_rdma_target_config config = test_config();
    config.strict_thesis = true;
    test_target_init(&test, &config);
    const struct test_operation operation = operation_of(1, 1024);
    (void)test_give_data(&test, &operation, 0);
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_DUPLICATE);
    assert_int_equal(test.answers, 1);
    (void)test_give_data(&test, &operation, 1);
    assert_notified(&operation);
    assert_int_equal(test.answers, 2);
    assert_int_equal(test_give_data(&test, &operation, 1), LANT_RDMA_TARGET_ESCAPED);
    assert_int_equal(test.answers, 2);
    test.now += 5000;
    lant_rdma_target_on_time(&test.target, test.now);
    memset(test.memory, 0, sizeof test.memory);
    assert_int_equal(test_give_data(&test, &operation, 0), LANT_RDMA_TARGET_WRITE);
    assert_int_equal(test.memory[64], test_byte(&operation, 0));
    assert_int_equal(test.target.registrations.used, 1);
    test.now += 50000;
    lant_rdma_target_on_time(&test.target, test.now);
    assert_true(lant_rdma_target_idle(&test.target));
}

/* -- The table ----------------------------------------------------------------------------------*/

/* LNI-63: one range from two nodes. */
static void test_two_sources(void **state)
{
    (void)state;
    begin();
    struct test_operation a = operation_of(1, 1024), b = a;
    b.source = 4;
    for (uint32_t k = 0; k < 2; k++) {
        assert_int_equal(test_give_data(&test, &a, k), LANT_RDMA_TARGET_WRITE);
        assert_int_equal(test_give_data(&test, &b, k), LANT_RDMA_TARGET_WRITE);
    }
    assert_notified(&a);
    assert_notified(&b);
    assert_not_notified();
}

/* LNI-64: no free entry: dropped without an answer; later it succeeds. */
static void test_table_full(void **state)
{
    (void)state;
    struct lant_rdma_target_config config = test_config();
    config.entries = 2;
    test_target_init(&test, &config);
    const struct test_operation a = operation_of(1, 1024), b = operation_of(2, 1024),
                                c = operation_of(3, 1024);
    (void)test_give_data(&test, &a, 0);
    (void)test_give_data(&test, &b, 0);
    assert_int_equal(test_give_data(&test, &c, 0), LANT_RDMA_TARGET_TABLE_FULL);
    assert_int_equal(test.answers, 2);
    assert_int_equal(test.target.counters.verdicts[LANT_RDMA_TARGET_TABLE_FULL], 1);
    (void)test_give_data(&test, &a, 1);
    assert_notified(&a);
    assert_int_equal(test_give_data(&test, &c, 0), LANT_RDMA_TARGET_WRITE);
    (void)test_give_data(&test, &c, 1);
    assert_notified(&c);
}

/* LNI-66: the entry of a dead sender is freed; not before, and not while memory still writes. */
static void test_age(void **state)
{
    (void)state;
    begin();
    const struct test_operation operation = operation_of(1, 3 * 512), other = operation_of(2, 1024);
    (void)test_give_data(&test, &operation, 0);
    test.now = 1010;
    test.slow = true;
    (void)test_give_data(&test, &other, 0);
    test.now = 41000;
    (void)test_give_data(&test, &operation, 0);
    test.now = 51010;
    assert_int_equal(lant_rdma_target_deadline(&test.target), 51010);
    lant_rdma_target_on_time(&test.target, test.now);
    assert_int_equal(test.target.registrations.used, 2);
    test.now = 60000;
    test_land_one(&test);
    assert_int_equal(lant_rdma_target_deadline(&test.target), 91000);
    test.now = 90999;
    lant_rdma_target_on_time(&test.target, test.now);
    assert_int_equal(test.target.registrations.used, 2);
    test.now = 91000;
    lant_rdma_target_on_time(&test.target, test.now);
    assert_int_equal(test.target.registrations.used, 1);
    assert_int_equal(lant_rdma_target_deadline(&test.target), 110000);
    test.now = 110000;
    lant_rdma_target_on_time(&test.target, test.now);
    assert_int_equal(test.target.counters.aged, 2);
    assert_true(lant_rdma_target_idle(&test.target));
    assert_not_notified();
}

/* An operation is known until its lifetime is over, whether its notification was taken or
 * not; from then on the sender may use the identifier again, and the new operation is written. */
static void test_notification_that_nobody_takes(void **state)
{
    (void)state;
    for (uint32_t taken = 0; taken < 2; taken++) {
        begin();
        const struct test_operation first = operation_of(1, 100);
        struct test_operation second = first;
        second.pattern = 2;
        assert_int_equal(test_give_data(&test, &first, 0), LANT_RDMA_TARGET_WRITE);
        test.now += test.target.config.lifetime_ticks - 1;
        lant_rdma_target_on_time(&test.target, test.now);
        if (taken) {
            assert_notified(&first);
        }
        assert_int_equal(test_give_data(&test, &first, 0), LANT_RDMA_TARGET_DUPLICATE);
        test.now++;
        lant_rdma_target_on_time(&test.target, test.now);
        assert_int_equal(test_give_data(&test, &second, 0), LANT_RDMA_TARGET_WRITE);
        assert_true(test_is_written(&test, &second));
        if (!taken) {
            assert_notified(&first);
        }
        assert_notified(&second);
        assert_not_notified();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notification_that_nobody_takes),
        cmocka_unit_test(test_every_order),
        cmocka_unit_test(test_every_number),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_escape_time),
        cmocka_unit_test(test_escape_full),
        cmocka_unit_test(test_escape_twice),
        cmocka_unit_test(test_duplicate_active),
        cmocka_unit_test(test_under_way),
        cmocka_unit_test(test_duplicate_complete),
        cmocka_unit_test(test_strict_thesis),
        cmocka_unit_test(test_two_sources),
        cmocka_unit_test(test_table_full),
        cmocka_unit_test(test_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
