/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets of keyholes come out once each and in order, one transfer at a time.
 * Method  Any packet at any time, against a count of what came out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/reorder.h"

static struct lant_reorder reorder;

static struct lant_packet packet_of(uint32_t source, uint32_t sequence, uint32_t total)
{
    return (struct lant_packet){
        .header = {.keyhole = true, .extended = true, .sequence = sequence, .total = total},
        .footer = {.source = source, .operation = 5}};
}

static enum lant_reorder_verdict put(uint32_t source, uint32_t sequence, uint32_t total)
{
    const struct lant_packet packet = packet_of(source, sequence, total);
    return lant_reorder_put(&reorder, &packet);
}

/* Packets of one transfer, each as often as chance wants, until the last one has come out. */
static void test_any_order(void **state)
{
    (void)state;
    enum {
        TOTAL = 300,
    };
    struct prng prng;
    uint32_t counts[LANT_REORDER_WRONG + 1] = {0};
    prng_init(&prng, 1);
    for (uint32_t slots = 1; slots <= LANT_REORDER_MAX; slots = slots * 3 + 1) {
        uint32_t next = 0;
        lant_reorder_init(&reorder, slots);
        while (next < TOTAL) {
            const uint32_t behind = next < 4 ? 0 : next - 4;
            const uint32_t number = behind + (uint32_t)prng_below(&prng, 2 * slots + 8);
            struct lant_packet packet;
            if (number < TOTAL) {
                counts[put(9, number, TOTAL)]++;
            }
            while (lant_reorder_next(&reorder, &packet)) {
                assert_int_equal(packet.header.sequence, next++);
            }
        }
        assert_false(reorder.owned);
        assert_int_equal(reorder.held, 0);
        assert_int_equal(put(9, 17, TOTAL), LANT_REORDER_KNOWN);
        assert_false(reorder.owned);
    }
    assert_true(counts[LANT_REORDER_TAKEN] >= TOTAL && counts[LANT_REORDER_KNOWN] > 100 &&
                counts[LANT_REORDER_FAR] > 100);
    assert_int_equal(counts[LANT_REORDER_BUSY] + counts[LANT_REORDER_WRONG], 0);
}

static void test_one_owner(void **state)
{
    (void)state;
    struct lant_packet packet;
    lant_reorder_init(&reorder, 4);
    assert_int_equal(put(1, 1, 2), LANT_REORDER_TAKEN);
    assert_int_equal(put(2, 0, 2), LANT_REORDER_BUSY);
    assert_int_equal(put(1, 1, 3), LANT_REORDER_WRONG);
    assert_int_equal(put(1, 2, 2), LANT_REORDER_WRONG);
    assert_false(lant_reorder_next(&reorder, &packet));
    assert_int_equal(put(1, 0, 2), LANT_REORDER_TAKEN);
    assert_true(lant_reorder_next(&reorder, &packet));
    assert_int_equal(put(2, 0, 2), LANT_REORDER_BUSY);
    assert_true(lant_reorder_next(&reorder, &packet));
    assert_int_equal(packet.header.sequence, 1);
    assert_int_equal(put(2, 0, 2), LANT_REORDER_TAKEN);
    assert_int_equal(put(1, 1, 2), LANT_REORDER_KNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_one_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
