/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Frames that pass as they are lose no bit and are never dropped but for their length,
 *         whatever they are, while RoCEv2's ICRCs are judged as those of a datagram are (FER-170).
 * Method  Packets with right ICRCs, and the same ones with any bit flipped, are given to both
 *         judgements: bridge_test.c proves the one of datagrams.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "hdl/bridge.h"
#include "wire/icrc.h"
#include "wire/roce.h"

#define DESIGN 0x7f000014u
#define PEER   0x0a0b0c0du

enum {
    PAYLOAD_BYTES = 40,
    FRAME_BYTES = BRIDGE_HEADERS_BYTES + PAYLOAD_BYTES
};

static struct bridge strict, whole;

static int set_up(void **state)
{
    (void)state;
    bridge_init(&strict, DESIGN);
    bridge_init(&whole, 0);
    return 0;
}

/* A packet of RoCEv2 of the design; any payload is one. */
static void lay_out(uint8_t *frame, struct prng *prng)
{
    uint8_t payload[PAYLOAD_BYTES];
    const struct inet_flow flow = inet_flow_ipv4(DESIGN, 0x8657, PEER, ROCE_UDP_PORT);
    const uint16_t identification = (uint16_t)prng_next(prng);
    const uint32_t covered = PAYLOAD_BYTES - ROCE_ICRC_BYTES;
    for (uint32_t i = 0; i < covered; i++) {
        payload[i] = (uint8_t)prng_next(prng);
    }
    store_le32(payload + covered, icrc_compute(&flow, identification, payload, covered, NULL, 0));
    memset(frame, 2, 12);
    store_be16(frame + 12, 0x0800);
    inet_encode(frame + 14, &flow, identification, payload, PAYLOAD_BYTES);
    memcpy(frame + BRIDGE_HEADERS_BYTES, payload, PAYLOAD_BYTES);
}

static void test_icrcs(void **state)
{
    (void)state;
    struct prng prng;
    struct inet_datagram datagram;
    uint8_t frame[FRAME_BYTES], before[FRAME_BYTES];
    uint64_t wrong = 0;
    prng_init(&prng, 3);
    for (uint32_t bit = 0; bit <= 8 * FRAME_BYTES; bit++) {
        lay_out(frame, &prng);
        if (bit > 0) {
            frame[(bit - 1) / 8] ^= (uint8_t)(1u << (bit - 1) % 8);
        }
        memcpy(before, frame, sizeof(frame));
        const bool is_wrong = bridge_leave(&strict, frame, sizeof(frame), &datagram) == BRIDGE_ICRC;
        wrong += is_wrong;
        assert_int_equal(bridge_leave_whole(&whole, frame, sizeof(frame)),
                         is_wrong ? BRIDGE_ICRC : BRIDGE_LEFT);
        assert_int_equal(whole.icrc.found, strict.icrc.found);
        assert_int_equal(whole.icrc.expected, strict.icrc.expected);
        assert_int_equal(bridge_come_whole(&whole, frame, sizeof(frame)), BRIDGE_CAME);
        assert_int_equal(whole.frame_bytes, sizeof(frame));
        assert_memory_equal(whole.frame, before, sizeof(frame));
        assert_memory_equal(frame, before, sizeof(frame));
    }
    assert_in_range(wrong, 8 * (PAYLOAD_BYTES - 1), 8 * FRAME_BYTES);
    assert_int_equal(whole.counts[BRIDGE_ICRC], wrong);
    assert_int_equal(whole.counts[BRIDGE_CAME_ICRC], wrong);
    assert_int_equal(whole.roce_left, strict.roce_left);
    assert_int_equal(whole.roce_came, strict.roce_left);
}

/* The design's address is its own affair, and so are frames that no socket could send. */
static void test_anything(void **state)
{
    (void)state;
    struct prng prng;
    static uint8_t frame[HDL_FRAME_BYTES_MAX + 1];
    prng_init(&prng, 4);
    for (uint32_t turn = 0; turn < 20000; turn++) {
        const uint32_t bytes = 14 + (uint32_t)prng_below(&prng, 200);
        for (uint32_t i = 0; i < bytes; i++) {
            frame[i] = (uint8_t)prng_next(&prng);
        }
        assert_int_equal(bridge_leave_whole(&whole, frame, bytes), BRIDGE_LEFT);
        assert_int_equal(bridge_come_whole(&whole, frame, bytes), BRIDGE_CAME);
        assert_memory_equal(whole.frame, frame, bytes);
    }
    lay_out(frame, &prng);
    store_be32(frame + 26, PEER); /* The ICRC is wrong now; the checksum is not. */
    store_be32(frame + 30, DESIGN);
    assert_int_equal(bridge_leave_whole(&whole, frame, FRAME_BYTES), BRIDGE_ICRC);
    assert_int_equal(bridge_come_whole(&whole, frame, HDL_FRAME_BYTES_MAX), BRIDGE_CAME);
    assert_int_equal(bridge_come_whole(&whole, frame, HDL_FRAME_BYTES_MAX + 1), BRIDGE_CAME_LONG);
    assert_int_equal(whole.counts[BRIDGE_CAME_LONG], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_icrcs, set_up),
        cmocka_unit_test_setup(test_anything, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
