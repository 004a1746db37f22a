/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_rdma - RDMA packets for the tests of their receiver.
 */
#ifndef TRANSPORT_LANT_TEST_RDMA_H
#define TRANSPORT_LANT_TEST_RDMA_H

#include <string.h>

#include "wire/lant.h"

#define TEST_NODE 9u /* The target. */

/* An operation, as its sender has it. */
struct test_operation {
    uint32_t source, operation;
    uint64_t base;
    uint32_t bytes;
    bool registered;
    uint64_t pattern; /* Its data follow from it. */
};

static inline uint32_t test_packets(const struct test_operation *operation)
{
    return (operation->bytes + LANT_PAYLOAD_BYTES_MAX - 1) / LANT_PAYLOAD_BYTES_MAX;
}

static inline uint8_t test_byte(const struct test_operation *operation, uint32_t at)
{
    return (uint8_t)((operation->pattern + at) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

/* Packet `k`: the first one registers, if the operation is registered. */
static inline void test_data(const struct test_operation *operation, uint32_t k,
                             struct lant_packet *packet)
{
    const uint32_t from = k * LANT_PAYLOAD_BYTES_MAX;
    const uint32_t left = operation->bytes - from;
    const uint32_t bytes = left < LANT_PAYLOAD_BYTES_MAX ? left : LANT_PAYLOAD_BYTES_MAX;
    const uint32_t last = (bytes - 1) % LANT_FLIT_BYTES + 1;
    *packet = (struct lant_packet){
        .header = {.destination = TEST_NODE,
                   .type = LANT_RDMA_UNREGISTERED,
                   .payload = (uint8_t)((bytes + 7) / LANT_FLIT_BYTES),
                   .address = operation->base + from,
                   .strobe = (uint8_t)((1u << last) - 1),
                   .size = 3},
        .footer = {.source = operation->source,
                   .class = LANT_CLASS_RDMA,
                   .row = (uint16_t)(k % 16),
                   .generation = (uint8_t)(operation->operation >> 12),
                   .operation = (uint16_t)(operation->operation & 0xfff),
                   .offset = k},
    };
    if (operation->registered) {
        packet->header.type = k == 0 ? LANT_RDMA_WRITE_REGISTER : LANT_RDMA_WRITE;
        packet->header.packets = (uint16_t)(k == 0 ? test_packets(operation) : 0);
    }
    /* Bytes behind the last one are not part of the payload. */
    memset(packet->payload, 0xee, sizeof packet->payload);
    for (uint32_t i = 0; i < bytes; i++) {
        const uint32_t shift = i % 8 * 8;
        packet->payload[i / 8] &= ~(UINT64_C(0xff) << shift);
        packet->payload[i / 8] |= (uint64_t)test_byte(operation, from + i) << shift;
    }
}

static inline void test_notification(const struct test_operation *operation, uint32_t tag,
                                     struct lant_packet *packet)
{
    *packet = (struct lant_packet){
        .header = {.destination = TEST_NODE,
                   .type = LANT_COMPLETION_NOTIFICATION,
                   .payload = 1,
                   .address = operation->base},
        .footer = {.source = operation->source,
                   .class = LANT_CLASS_NOTIFICATION,
                   .generation = (uint8_t)(operation->operation >> 12),
                   .operation = (uint16_t)(operation->operation & 0xfff)},
        .payload = {(uint64_t)operation->bytes << 32 |
                    (uint64_t)(operation->operation & 0xfff) << 20 | tag},
    };
}

/* Memory takes the first `bytes` of a payload. */
static inline void test_store(uint8_t *memory, const uint64_t *payload, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        memory[i] = (uint8_t)(payload[i / 8] >> i % 8 * 8);
    }
}

#endif
