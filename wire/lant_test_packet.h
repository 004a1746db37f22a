/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lant_test_packet - for tests: any packet of a type, and flits with right codes.
 */
#ifndef WIRE_LANT_TEST_PACKET_H
#define WIRE_LANT_TEST_PACKET_H

#include <string.h>

#include "base/prng.h"
#include "wire/crc32c.h"
#include "wire/lant.h"

static inline uint64_t any_bits(struct prng *prng, uint32_t count)
{
    return prng_next(prng) >> (64 - count);
}

/* Payload, and the other fields that depend on the type. */
static inline void any_shape(struct prng *prng, struct lant_packet *packet)
{
    struct lant_header *header = &packet->header;
    struct lant_footer *footer = &packet->footer;
    const bool nack = lant_response_is_nack(footer->response);

    switch ((enum lant_type)header->type) {
    case LANT_AR:
    case LANT_AW:
    case LANT_R:
    case LANT_B:
        header->payload = header->type == LANT_AW || (header->type == LANT_R && !nack);
        header->lock = any_bits(prng, 1);
        footer->class = LANT_CLASS_SHM;
        break;
    case LANT_RDMA_WRITE_REGISTER: header->packets = (uint16_t)(1 + prng_below(prng, 1024));
    /* Fall through. */
    case LANT_RDMA_WRITE:
    case LANT_RDMA_UNREGISTERED:
        header->payload = (uint8_t)(1 + prng_below(prng, LANT_PAYLOAD_FLITS_MAX));
        header->keyhole = any_bits(prng, 1);
        header->extended = header->keyhole && any_bits(prng, 1);
        footer->class = LANT_CLASS_RDMA;
        break;
    case LANT_RDMA_ACK: footer->class = (uint8_t)(1 + any_bits(prng, 1)); break;
    case LANT_COMPLETION_NOTIFICATION:
        header->payload = 1;
        footer->class = LANT_CLASS_NOTIFICATION;
        break;
    case LANT_ERROR_REPORT:
        header->payload = 2;
        footer->class = (uint8_t)prng_below(prng, 3);
        break;
    case LANT_ATOMIC:
        header->packets = (uint16_t)(1 + prng_below(prng, 3));
        header->payload = header->packets == LANT_COMPARE_SWAP ? 2 : 1;
        footer->class = LANT_CLASS_SHM;
        break;
    case LANT_TYPE_COUNT: UNREACHABLE("type");
    }
}

/* A packet that decodes LANT_WHOLE. */
static inline struct lant_packet any_packet(struct prng *prng, enum lant_type type)
{
    const bool answer = type == LANT_R || type == LANT_B || type == LANT_RDMA_ACK;
    struct lant_packet packet = {
        .header = {.destination = (uint32_t)any_bits(prng, 22),
                   .type = (uint8_t)type,
                   .age = (uint8_t)any_bits(prng, 4),
                   .epoch = (uint8_t)any_bits(prng, 2),
                   .priority = (uint8_t)any_bits(prng, 2),
                   .size = (uint8_t)any_bits(prng, 3),
                   .protection = (uint8_t)any_bits(prng, 3)},
        .footer = {.source = (uint32_t)any_bits(prng, 22),
                   .row = (uint16_t)any_bits(prng, 14),
                   .generation = (uint8_t)any_bits(prng, 8),
                   .bus_id = (uint8_t)any_bits(prng, 8),
                   .operation = (uint16_t)any_bits(prng, 12),
                   .offset = (uint32_t)any_bits(prng, 17),
                   .attempt = (uint8_t)any_bits(prng, 3)},
    };

    if (answer) {
        packet.footer.response = (uint8_t)any_bits(prng, 3);
    } else {
        packet.header.address = any_bits(prng, 42);
        packet.header.strobe = (uint8_t)any_bits(prng, 8);
    }
    any_shape(prng, &packet);
    if (packet.header.extended) {
        packet.header.sequence = (uint32_t)any_bits(prng, 32);
        packet.header.total = (uint32_t)any_bits(prng, 25);
    }
    for (uint32_t i = 0; i < packet.header.payload; i++) {
        packet.payload[i] = prng_next(prng);
    }
    return packet;
}

static inline bool footers_equal(const struct lant_footer *a, const struct lant_footer *b)
{
    return a->source == b->source && a->class == b->class && a->row == b->row &&
           a->response == b->response && a->generation == b->generation && a->bus_id == b->bus_id &&
           a->operation == b->operation && a->offset == b->offset && a->attempt == b->attempt;
}

/* The fields of H1. */
static inline bool heads_equal(const struct lant_header *a, const struct lant_header *b)
{
    return a->destination == b->destination && a->type == b->type && a->payload == b->payload &&
           a->packets == b->packets && a->age == b->age && a->epoch == b->epoch &&
           a->priority == b->priority && a->lock == b->lock && a->keyhole == b->keyhole &&
           a->extended == b->extended;
}

static inline bool packets_equal(const struct lant_packet *a, const struct lant_packet *b)
{
    const struct lant_header *one = &a->header, *other = &b->header;
    return heads_equal(one, other) && one->address == other->address &&
           one->strobe == other->strobe && one->size == other->size &&
           one->protection == other->protection && one->sequence == other->sequence &&
           one->total == other->total && footers_equal(&a->footer, &b->footer) &&
           memcmp(a->payload, b->payload, one->payload * sizeof(a->payload[0])) == 0;
}

/* Makes all codes of a packet right for its bits; `heads` are its flits of header. */
static inline void seal(uint64_t *flits, uint32_t count, uint32_t heads)
{
    uint64_t covered[LANT_PACKET_FLITS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        const bool coded = i < heads || i == count - 2;
        flits[i] = coded ? lant_secded(flits[i]) : flits[i];
        covered[i] = coded ? flits[i] & ~UINT64_C(0x7f) : flits[i];
    }
    covered[0] &= ~UINT64_C(0xf0000);
    covered[count - 1] &= ~UINT64_C(0xffffffff);
    flits[count - 1] = covered[count - 1] | crc32c_words(0, covered, count);
}

#endif
