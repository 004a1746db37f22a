/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/ibta/incoming.h"

static enum incoming_kind kind_of(uint32_t traits)
{
    if (traits & ROCE_IS_SEND) {
        return INCOMING_SEND;
    }
    return traits & ROCE_IS_WRITE ? INCOMING_WRITE : INCOMING_NONE;
}

/* SEND and WRITE packets carry a full MTU, but for the last one of a message. The pieces of a WRITE
 * add up to the length in its RETH. */
static bool length_fits(const struct incoming *incoming, const struct roce_packet *packet,
                        uint32_t traits)
{
    const uint32_t bytes = packet->payload_bytes;
    const bool first = traits & ROCE_IS_FIRST;
    const bool last = traits & ROCE_IS_LAST;
    if (bytes > incoming->mtu_bytes || (!last && bytes != incoming->mtu_bytes)) {
        return false;
    }
    if (last && !first && bytes == 0) {
        return false;
    }
    if (traits & ROCE_IS_SEND) {
        return (first ? 0 : incoming->received) + (uint64_t)bytes <= MESSAGE_BYTES_MAX;
    }
    const uint32_t left = first ? packet->reth.bytes : incoming->write_left;
    return last ? bytes == left : bytes < left && left <= MESSAGE_BYTES_MAX;
}

enum incoming_verdict incoming_judge(const struct incoming *incoming,
                                     const struct roce_packet *packet, uint32_t traits)
{
    const enum incoming_kind kind = kind_of(traits);
    if (kind == INCOMING_NONE) {
        return incoming->kind == INCOMING_NONE ? INCOMING_FITS : INCOMING_WRONG_ORDER;
    }
    const enum incoming_kind wanted = traits & ROCE_IS_FIRST ? INCOMING_NONE : kind;
    if (incoming->kind != wanted) {
        return INCOMING_WRONG_ORDER;
    }
    return length_fits(incoming, packet, traits) ? INCOMING_FITS : INCOMING_WRONG_LENGTH;
}

void incoming_accept(struct incoming *incoming, const struct roce_packet *packet, uint32_t traits)
{
    CHECK(traits & (ROCE_IS_SEND | ROCE_IS_WRITE));
    if (traits & ROCE_IS_LAST) {
        incoming->kind = INCOMING_NONE;
        incoming->received = 0;
        return;
    }
    if ((traits & ROCE_IS_WRITE) && (traits & ROCE_IS_FIRST)) {
        incoming->write_address = packet->reth.address;
        incoming->write_key = packet->reth.key;
        incoming->write_left = packet->reth.bytes;
    }
    incoming->kind = (uint8_t)kind_of(traits);
    incoming->received += packet->payload_bytes;
    if (traits & ROCE_IS_WRITE) {
        incoming->write_address += packet->payload_bytes;
        incoming->write_left -= packet->payload_bytes;
    }
}

uint32_t incoming_before(const struct incoming *incoming, uint32_t traits)
{
    return traits & ROCE_IS_FIRST ? 0 : incoming->received;
}

void incoming_check(const struct incoming *incoming)
{
    CHECK(incoming->kind <= INCOMING_WRITE);
    if (incoming->kind == INCOMING_NONE) {
        CHECK(incoming->received == 0);
        return;
    }
    CHECK(incoming->received >= incoming->mtu_bytes);
    CHECK(incoming->received % incoming->mtu_bytes == 0);
    CHECK(incoming->received <= MESSAGE_BYTES_MAX);
    CHECK(incoming->kind == INCOMING_SEND || incoming->write_left > 0);
}

void incoming_target(const struct incoming *incoming, const struct roce_packet *packet,
                     uint32_t traits, uint64_t *address, uint32_t *key)
{
    const bool first = traits & ROCE_IS_FIRST;
    *address = first ? packet->reth.address : incoming->write_address;
    *key = first ? packet->reth.key : incoming->write_key;
}
