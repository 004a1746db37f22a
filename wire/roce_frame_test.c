/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A frame is headers, payload, pad of zeros and the ICRC of these; any change is seen, but
 *         of the byte that routers may change; bytes that cannot be a packet are refused.
 * Method  Frames of all lengths up to 128 bytes, and of the lengths around the largest, are
 *         compared byte by byte with what went in; their ICRC with the one over the masked headers
 *         and the packet in one step, which the frame's code does not use. Sealed frames lie in
 *         buffers of exactly their size, so that a sanitizer sees one byte too many. Each bit of a
 *         frame is flipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/icrc.h"
#include "wire/roce_frame.h"

static const uint8_t gids[][16] = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
                                   {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2},
                                   {0xfd, [15] = 1},
                                   {0xfd, [15] = 2}};

static struct inet_flow flow_of(bool ipv6)
{
    return roce_flow(gids[2 * ipv6], gids[2 * ipv6 + 1]);
}

static uint8_t *random_bytes(size_t count)
{
    uint8_t *bytes = malloc(count + (count == 0));
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(i * 37 + count);
    }
    return bytes;
}

static uint32_t expected_icrc(const struct inet_flow *flow, const uint8_t *bytes, size_t count)
{
    return icrc_finish(icrc_packet(icrc_prefix(flow, 0, count + 4), bytes, count));
}

static void test_flow(void **state)
{
    (void)state;
    const struct inet_flow flow = roce_flow(gids[0], gids[1]);
    assert_memory_equal(flow.source, gids[0], 16);
    assert_memory_equal(flow.destination, gids[1], 16);
    assert_int_equal(flow.source_port, 4791);
    assert_int_equal(flow.destination_port, 4791);
}

/* A congestion notification, to the bit: the BTH as RoCE hardware sends it (BECN set, for queue
 * pair 0xd2), 16 bytes that are reserved, and the ICRC as another CRC-32 has it. */
static void test_congestion_notification(void **state)
{
    (void)state;
    static const uint8_t from[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
    static const uint8_t to[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2};
    static const uint8_t expected[32] = {0x81, 0x00, 0xff, 0xff, 0x40,        0x00, 0x00, 0xd2,
                                         0x00, 0x00, 0x00, 0x00, [28] = 0xf4, 0x75, 0x74, 0x1e};
    const struct inet_flow flow = roce_flow(from, to);
    const struct roce_packet packet = {.opcode = ROCE_OPCODE_CNP,
                                       .pkey = ROCE_DEFAULT_PKEY,
                                       .byte4 = 0x40,
                                       .destination_qpn = 0xd2};
    uint8_t bytes[ROCE_HEADERS_BYTES_MAX + ROCE_ICRC_BYTES];
    const size_t count = roce_encode_headers(&packet, bytes);
    assert_int_equal(count, 28);
    assert_int_equal(roce_frame_seal(&flow, bytes, count, 0), sizeof(expected));
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void compare_join(bool ipv6, size_t headers_bytes, size_t payload_bytes)
{
    const struct inet_flow flow = flow_of(ipv6);
    const size_t count = headers_bytes + payload_bytes;
    uint8_t *headers = random_bytes(headers_bytes), *payload = random_bytes(payload_bytes);
    uint8_t *frame = malloc(BLOCK_PACKET_BYTES_MAX);
    assert_non_null(frame);
    const size_t bytes = roce_frame_join(&flow, headers, headers_bytes,
                                         payload_bytes == 0 ? NULL : payload, payload_bytes, frame);
    if (count < 12 || count + 4 > 52 + 4096 + 4) {
        assert_int_equal(bytes, 0);
    } else {
        assert_int_equal(bytes, count + 4);
        assert_memory_equal(frame, headers, headers_bytes);
        assert_memory_equal(frame + headers_bytes, payload, payload_bytes);
        assert_int_equal(load_le32(frame + count), expected_icrc(&flow, frame, count));
        assert_true(roce_frame_is_whole(&flow, frame, bytes));
    }
    free(frame);
    free(payload);
    free(headers);
}

static void test_join(void **state)
{
    (void)state;
    for (int ipv6 = 0; ipv6 < 2; ipv6++) {
        for (size_t headers = 0; headers <= 44; headers++) {
            for (size_t payload = 0; payload <= 84; payload++) {
                compare_join(ipv6, headers, payload);
            }
        }
        for (size_t payload = 4090; payload <= 4100; payload++) {
            compare_join(ipv6, 52, payload);
        }
    }
}

/* Pad is zeros, whatever was in the buffer, and the ICRC covers it. */
static void test_seal(void **state)
{
    (void)state;
    for (size_t count = 12; count <= 80; count++) {
        for (uint8_t pad = 0; pad < 4; pad++) {
            const struct inet_flow flow = flow_of(count % 2 == 0);
            uint8_t *before = random_bytes(count), *frame = malloc(count + pad + 4);
            assert_non_null(frame);
            memset(frame, 0x5a, count + pad + 4);
            memcpy(frame, before, count);
            assert_int_equal(roce_frame_seal(&flow, frame, count, pad), count + pad + 4);
            assert_memory_equal(frame, before, count);
            assert_memory_equal(frame + count, ((const uint8_t[]){0, 0, 0}), pad);
            assert_int_equal(load_le32(frame + count + pad),
                             expected_icrc(&flow, frame, count + pad));
            free(frame);
            free(before);
        }
    }
}

/* Byte 4, congestion marks, may change on the way. */
static void test_changes_are_seen(void **state)
{
    (void)state;
    uint8_t frame[12 + 28 + 4];
    for (int ipv6 = 0; ipv6 < 2; ipv6++) {
        const struct inet_flow flow = flow_of(ipv6), other = flow_of(!ipv6);
        memset(frame, 0x17, sizeof(frame));
        roce_frame_seal(&flow, frame, sizeof(frame) - 4, 0);
        for (size_t bit = 0; bit < 8 * sizeof(frame); bit++) {
            frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(roce_frame_is_whole(&flow, frame, sizeof(frame)), bit / 8 == 4);
            frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        assert_true(roce_frame_is_whole(&flow, frame, sizeof(frame)));
        assert_false(roce_frame_is_whole(&other, frame, sizeof(frame)));
        for (size_t count = 0; count < sizeof(frame); count++) {
            uint8_t *shorter = malloc(count + (count == 0));
            assert_non_null(shorter);
            memcpy(shorter, frame, count);
            assert_false(roce_frame_is_whole(&flow, shorter, count));
            free(shorter);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flow),
        cmocka_unit_test(test_congestion_notification),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_seal),
        cmocka_unit_test(test_changes_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
