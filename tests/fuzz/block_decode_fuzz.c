/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No bytes make block_decode read outside them or answer with a packet they do not spell,
 *         and block_judge has an answer for every packet at every MTU.
 * Method  libFuzzer gives the bytes in a buffer of exactly their size. A packet that is decoded
 *         must account for every byte and encode back to the same headers; a consistent packet lies
 *         within its message.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/block.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static bool carries(const struct block_packet *packet)
{
    return packet->opcode == BLOCK_SEND || packet->opcode == BLOCK_WRITE;
}

/* Behind a greeting's headers. */
static uint32_t zeroes_of(const struct block_packet *packet)
{
    const bool greets = packet->opcode == BLOCK_HELLO || packet->opcode == BLOCK_WELCOME;
    return greets && packet->hello.payload_bytes != 0 && packet->hello.gid_count == 0
               ? BLOCK_GREETING_ZEROES(packet->hello.payload_bytes)
               : 0;
}

static void judge(const struct block_packet *packet, uint32_t mtu_bytes)
{
    const enum block_judgement judgement = block_judge(packet, mtu_bytes);
    CHECK(block_judgement_name(judgement) != NULL);
    if (judgement == BLOCK_CONSISTENT && carries(packet)) {
        CHECK(block_payload_offset(packet, mtu_bytes) + packet->payload_bytes <=
              packet->message_bytes);
        CHECK(packet->position <= packet->last_position);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct block_packet packet, split;
    uint8_t headers[BLOCK_HEADERS_BYTES_MAX];

    const enum block_verdict verdict = block_decode(bytes, count, NULL, 0, &packet);
    CHECK(block_verdict_name(verdict) != NULL);
    if (verdict != BLOCK_GOOD) {
        return 0;
    }
    CHECK(block_opcode_name(packet.opcode) != NULL);
    const size_t headers_bytes = block_encode(&packet, headers);
    const uint8_t *payload = bytes + headers_bytes;
    CHECK(headers_bytes + packet.payload_bytes + roce_pad_bytes(packet.payload_bytes) +
              zeroes_of(&packet) ==
          count);
    CHECK(memcmp(headers, bytes, headers_bytes) == 0);
    CHECK(packet.payload == (packet.payload_bytes == 0 ? NULL : payload));
    CHECK(block_decode(bytes, headers_bytes, payload, count - headers_bytes, &split) == BLOCK_GOOD);
    CHECK(split.payload == packet.payload && split.payload_bytes == packet.payload_bytes);
    for (uint32_t mtu_bytes = 256; mtu_bytes <= 4096; mtu_bytes *= 2) {
        judge(&packet, mtu_bytes);
    }
    return 0;
}
