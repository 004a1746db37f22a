/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every packet has one owner: by the slot of its QPN, or by the id that an answer names.
 * Method  All slots; all messages of communication management, whole and cut off.
 */
#include "tests/share_stranger.h"

#include "drivers/share.h"
#include "drivers/share_route.h"
#include "drivers/system/local_socket.h"

static void test_routes(void **state)
{
    (void)state;
    uint8_t packet[MAD_PACKET_BYTES];
    static const uint16_t answers[] = {0x11, 0x12, 0x13, 0x14, 0x15, 0x16};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        put_mad(packet, answers[i], 0x05000001, 0x2a000007);
        struct share_route route = share_route(0x2a, packet, 276);
        assert_true(route.mine && !route.nobody);
        route = share_route(5, packet, 276);
        assert_true(!route.mine && !route.nobody && route.slot == 0x2a);
        /* The MAD is cut off before the id: the process that has it judges it. */
        assert_true(share_route(5, packet, 20 + 31).mine);
    }
    put_mad(packet, 0x18, 0x2a000007, 0);
    assert_int_equal(share_route(5, packet, 276).slot, 0x2a);
    assert_int_equal(share_slot_of_mad(packet + 20, 256), 0x2a);
    /* Slot 0 is one like the others, as no id is 0. */
    put_mad(packet, 0x13, 0x05000001, 0x00000007);
    assert_int_equal(share_slot_of_mad(packet + 20, 256), 0);
    assert_int_equal(share_route(5, packet, 276).slot, 0);
    /* This MAD comes from a peer that gave up before it learned our id. */
    put_mad(packet, 0x12, 0x2a000007, 0);
    assert_true(share_route(5, packet, 276).mine);
    assert_int_equal(share_slot_of_mad(packet + 20, 256), LOCAL_NO_SLOT);
    static const uint16_t others[] = {0x10, 0x17, 0x01, 0xffff};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        put_mad(packet, others[i], 0x2a000007, 0x2a000007);
        assert_true(share_route(5, packet, 276).mine);
    }
    for (uint32_t slot = 0; slot < SHARE_SLOTS; slot++) {
        packet[0] = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY);
        store_be32(packet + 4, slot << 16 | 1234);
        assert_true(share_route(slot, packet, 12).mine);
        assert_int_equal(share_route((slot + 1) % 256, packet, 12).slot, slot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
