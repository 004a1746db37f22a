/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A datagram for QP 1 is let through exactly if it is one of the management: its P_Key, its
 *         opcode and its Q_Key are right, judged in this order. Every other one increments the
 *         counter of its flaw and no other, and all count as received.
 * Method  All combinations of opcodes with P_Keys and Q_Keys that differ from the right ones by a
 *         bit, beside a model of three lines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "nic/nic.h"
#include "wire/cm.h"

static struct nic *make_nic(void)
{
    const struct nic_limits limits = {.qps = 4,
                                      .regions = 4,
                                      .sends_per_qp = 4,
                                      .receives_per_qp = 4,
                                      .sges = 1,
                                      .inline_bytes = 64,
                                      .cq_entries = 4,
                                      .mtu = PATH_MTU_1024};
    const size_t bytes = (nic_bytes(&limits) + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, bytes);
    memset(memory, 0, bytes);
    return nic_init(&limits, 1, memory);
}

/* The counter that a packet increments beside rcvd_pkts; COUNTER_COUNT: none, it is let through. */
static enum nic_counter expected(const struct roce_packet *packet)
{
    return packet->pkey != 0xffff && packet->pkey != 0x7fff ? COUNTER_drop_wrong_pkey
           : packet->opcode != 0x64                         ? COUNTER_drop_wrong_service
           : packet->deth.qkey != 0x80010000                ? COUNTER_drop_wrong_qkey
                                                            : COUNTER_COUNT;
}

static void judge(struct nic *nic, const struct roce_packet *packet)
{
    static const uint8_t mad[CM_MAD_BYTES];
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    const bool carries = roce_opcode(packet->opcode)->traits & ROCE_HAS_PAYLOAD;
    const struct nic_frame frame = {
        .headers = headers,
        .payload = mad,
        .headers_bytes = (uint32_t)roce_encode_headers(packet, headers),
        .payload_bytes = carries ? CM_MAD_BYTES : 0,
    };
    struct nic_move move;
    const enum nic_counter counter = expected(packet);
    struct nic_counters model = *nic_counters(nic);
    model.values[COUNTER_rcvd_pkts]++;
    model.values[COUNTER_rcvd_bytes] += frame.payload_bytes;
    if (counter != COUNTER_COUNT) {
        model.values[counter]++;
    }
    assert_int_equal(nic_on_packet(nic, &frame, (struct instant){1}, &move),
                     counter == COUNTER_COUNT ? NIC_MANAGEMENT : NIC_DONE);
    if (counter == COUNTER_COUNT) {
        assert_ptr_equal(move.payload, mad);
        assert_int_equal(move.payload_bytes, CM_MAD_BYTES);
    }
    assert_memory_equal(nic_counters(nic), &model, sizeof(model));
}

static void test_management(void **state)
{
    (void)state;
    struct nic *nic = make_nic();
    static const uint8_t opcodes[] = {
        ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
        ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY_IMMEDIATE),
        ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY),
        ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE),
        ROCE_OPCODE(ROCE_SERVICE_UC, ROCE_SEND_ONLY),
        ROCE_OPCODE_CNP,
    };
    for (size_t i = 0; i < COUNT_OF(opcodes); i++) {
        for (uint32_t pkey_bit = 0; pkey_bit <= 16; pkey_bit++) {
            for (uint32_t qkey_bit = 0; qkey_bit <= 32; qkey_bit++) {
                /* A bit beyond the last changes nothing. */
                const struct roce_packet packet = {
                    .opcode = opcodes[i],
                    .pkey = (uint16_t)(ROCE_DEFAULT_PKEY ^ 1u << pkey_bit),
                    .destination_qpn = CM_QPN,
                    .deth = {.qkey = (uint32_t)(CM_QKEY ^ UINT64_C(1) << qkey_bit),
                             .source_qpn = CM_QPN}};
                judge(nic, &packet);
            }
        }
    }
    const struct nic_counters *counters = nic_counters(nic);
    assert_int_equal(counters->values[COUNTER_rcvd_pkts], COUNT_OF(opcodes) * 17 * 33);
    /* 0xffff and 0x7fff of 17 P_Keys are right, and one of 33 Q_Keys. */
    assert_int_equal(counters->values[COUNTER_drop_wrong_pkey], 6 * 15 * 33);
    assert_int_equal(counters->values[COUNTER_drop_wrong_qkey], 2 * 32);
    free(nic);
}

/* A17.6: QP 0 does not exist, so every packet for it is dropped. */
static void test_queue_pair_0(void **state)
{
    (void)state;
    struct nic *nic = make_nic();
    uint32_t sent = 0;
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const struct roce_packet packet = {.opcode = (uint8_t)opcode,
                                           .pkey = ROCE_DEFAULT_PKEY,
                                           .deth = {.qkey = CM_QKEY, .source_qpn = CM_QPN}};
        if (!roce_is_of_queue_pairs(roce_opcode((uint8_t)opcode)) || opcode == ROCE_OPCODE_CNP) {
            continue;
        }
        uint8_t headers[ROCE_HEADERS_BYTES_MAX];
        const struct nic_frame frame = {
            .headers = headers, .headers_bytes = (uint32_t)roce_encode_headers(&packet, headers)};
        struct nic_move move;
        assert_int_equal(nic_on_packet(nic, &frame, (struct instant){1}, &move), NIC_DONE);
        assert_int_equal(nic_counters(nic)->values[COUNTER_drop_unknown_qp], ++sent);
    }
    assert_true(sent > 50);
    free(nic);
}

/* Bytes that are no packet are counted by their flaw, and not as received. */
static void test_no_packets(void **state)
{
    (void)state;
    struct nic *nic = make_nic();
    static const struct {
        uint8_t bytes[16];
        uint32_t count;
        enum nic_counter counter;
    } cases[] = {
        {{ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY)}, 11, COUNTER_drop_short},
        {{ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE)}, 12, COUNTER_drop_short},
        {{0xff}, 16, COUNTER_drop_unknown_opcode},
        {{ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY), 0x01}, 12, COUNTER_drop_wrong_version},
        {{ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY), 0x10}, 12, COUNTER_drop_wrong_pad},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct nic_frame frame = {.headers = cases[i].bytes, .headers_bytes = cases[i].count};
        const struct nic_counters before = *nic_counters(nic);
        struct nic_move move;
        assert_int_equal(nic_on_packet(nic, &frame, (struct instant){1}, &move), NIC_DONE);
        assert_int_equal(nic_counters(nic)->values[cases[i].counter],
                         before.values[cases[i].counter] + 1);
        assert_null(nic_frame_link(nic, &frame));
    }
    assert_int_equal(nic_counters(nic)->values[COUNTER_rcvd_pkts], 0);
    free(nic);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_management),
                                       cmocka_unit_test(test_queue_pair_0),
                                       cmocka_unit_test(test_no_packets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
