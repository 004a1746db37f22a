/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Three stores make a control packet of what they say and what the descriptor says.
 * Method  Made cases with random fields. Behaviour EXA-31 (the packet itself).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/exanest/control_slot.h"

/* EXA-31: the control packet's layout. The destination may have any alignment; the packet has two
 * words. */
static void test_packet(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    struct exanest_control_slot slot = {.ready = false};
    for (int round = 0; round < 1000; round++) {
        const struct exanest_descriptor descriptor = {
            .target = exanest_target_decode(prng_next(&prng)),
            .notify = prng_below(&prng, 2),
            .bytes = (uint16_t)(1 + prng_below(&prng, 16384)),
            .pdid = (uint16_t)prng_next(&prng),
            .sequence = (uint16_t)prng_below(&prng, EXANEST_SEQUENCES),
            .path = 7};
        const uint32_t tid = (uint32_t)prng_below(&prng, EXANEST_TIDS);
        uint64_t stores[3];
        for (uint32_t i = 0; i < 3; i++) {
            stores[i] = prng_next(&prng);
            assert_false(slot.ready);
            assert_int_equal(exanest_control_store(&slot, tid, stores[i], &descriptor, 0x1234, 5),
                             i == 2);
        }
        assert_true(slot.ready);
        assert_int_equal(slot.header.type, EXANEST_CONTROL);
        assert_int_equal(slot.header.bytes, 32);
        assert_int_equal(slot.header.pdid, descriptor.pdid);
        assert_int_equal(slot.header.aux, descriptor.sequence);
        assert_int_equal(slot.header.target.coordinate, descriptor.target.coordinate);
        assert_true(slot.header.target.va == descriptor.target.va / 16 * 16);
        assert_true(slot.header.has_footer && slot.header.priority);
        assert_int_equal(exanest_packet_words(&slot.header), 4);
        assert_true(slot.payload[0].low == stores[0] && slot.payload[0].high == stores[1]);
        assert_true(slot.payload[1].low == stores[2]);
        assert_true(slot.payload[1].high ==
                    (tid | (uint64_t)descriptor.sequence << 10 | (uint64_t)descriptor.bytes << 24));
        assert_int_equal(slot.footer.tid, tid);
        assert_int_equal(slot.footer.source, 0x1234);
        assert_int_equal(slot.footer.sequence, descriptor.sequence);
        assert_int_equal(slot.footer.path, 5);
        assert_int_equal(slot.footer.notify, descriptor.notify);
        assert_true(!slot.footer.first && !slot.footer.last);
        exanest_control_consume(&slot);
    }
    assert_int_equal(slot.restarts, 0);
}

/* A message that software leaves unfinished does not spoil the next one. */
static void test_another_transaction(void **state)
{
    (void)state;
    const struct exanest_descriptor descriptor = {.bytes = 1};
    struct exanest_control_slot slot = {.ready = false};
    for (uint32_t begun = 1; begun < 3; begun++) {
        for (uint32_t i = 0; i < begun; i++) {
            assert_false(exanest_control_store(&slot, 1, 100 + i, &descriptor, 0, 0));
        }
        assert_false(exanest_control_store(&slot, 2, 10, &descriptor, 0, 0));
        assert_false(exanest_control_store(&slot, 2, 11, &descriptor, 0, 0));
        assert_true(exanest_control_store(&slot, 2, 12, &descriptor, 0, 0));
        assert_int_equal(slot.footer.tid, 2);
        assert_true(slot.payload[0].low == 10 && slot.payload[0].high == 11);
        assert_true(slot.payload[1].low == 12);
        assert_int_equal(slot.restarts, begun);
        exanest_control_consume(&slot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packet),
        cmocka_unit_test(test_another_transaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
