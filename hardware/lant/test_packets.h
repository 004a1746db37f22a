/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_packets - packets by chance, for tests of what moves them.
 *
 * A packet of each length is well formed: one without payload is a load, the others are of a
 * registered operation. `extended` ones are for a keyhole. Without payload they are not well
 * formed, but only a test that judges packets notices that.
 */
#ifndef HARDWARE_LANT_TEST_PACKETS_H
#define HARDWARE_LANT_TEST_PACKETS_H

#include "base/prng.h"
#include "hardware/lant/answers.h"
#include "wire/lant.h"

static inline struct lant_packet test_packet(struct prng *prng, uint32_t payload, bool extended)
{
    const uint8_t type = payload == 0 ? LANT_AR : LANT_RDMA_WRITE;
    struct lant_packet packet = {
        .header = {.destination = (uint32_t)prng_below(prng, LANT_NODES_MAX),
                   .type = type,
                   .payload = (uint8_t)payload,
                   .age = (uint8_t)prng_below(prng, 16),
                   .epoch = (uint8_t)prng_below(prng, 4),
                   .priority = (uint8_t)prng_below(prng, 4),
                   .keyhole = extended,
                   .extended = extended,
                   .address = prng_below(prng, LANT_ADDRESSES),
                   .strobe = (uint8_t)prng_next(prng),
                   .size = 3,
                   .sequence = extended ? (uint32_t)prng_next(prng) : 0,
                   .total = extended ? (uint32_t)prng_below(prng, 1 << 25) : 0},
        .footer = {.source = (uint32_t)prng_below(prng, LANT_NODES_MAX),
                   .class = type == LANT_AR ? LANT_CLASS_SHM : LANT_CLASS_RDMA,
                   .row = (uint16_t)prng_below(prng, 1 << 14),
                   .generation = (uint8_t)prng_next(prng),
                   .bus_id = (uint8_t)prng_next(prng),
                   .operation = (uint16_t)prng_below(prng, 1 << 12),
                   .offset = (uint32_t)prng_below(prng, LANT_OFFSETS),
                   .attempt = (uint8_t)prng_below(prng, 8)}};
    for (uint32_t i = 0; i < payload; i++) {
        packet.payload[i] = prng_next(prng);
    }
    return packet;
}

static inline struct lant_ends test_ends(const struct lant_packet *packet)
{
    return (struct lant_ends){.header = packet->header, .footer = packet->footer};
}

#endif
