/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No bytes make srd_decode read outside them or answer with a packet they do not spell, and
 *         a packet that is good lies within its message, its instance and its window (SRD-20).
 * Method  libFuzzer gives the bytes in a buffer of exactly their size. A packet that is decoded
 *         must account for every byte and encode back to the same headers.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/srd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_fields(const struct srd_packet *packet)
{
    switch (packet->opcode) {
    case SRD_SEND:
    case SRD_WRITE: {
        const uint64_t offset = (uint64_t)packet->index * packet->chunk_bytes;
        CHECK(offset + packet->payload_bytes <= packet->message_bytes);
        CHECK(packet->index <= packet->last && packet->last < SRD_PACKETS);
        CHECK(packet->back < SRD_WINDOW);
        break;
    }
    case SRD_READ:
        CHECK(packet->message_bytes <= SRD_PACKETS * (uint32_t)packet->chunk_bytes);
        CHECK(packet->back < SRD_WINDOW && packet->last == 0);
        break;
    case SRD_ANSWER: CHECK(packet->answer.record_count <= SRD_RECORDS_MAX); break;
    case SRD_PATH_CHALLENGE:
    case SRD_PATH_RESPONSE: CHECK(packet->path_challenge.gid_count <= SRD_GIDS_MAX); break;
    default: break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct srd_packet packet, split;
    uint8_t headers[SRD_HEADERS_BYTES_MAX];

    const enum srd_verdict verdict = srd_decode(bytes, count, NULL, 0, &packet);
    CHECK(srd_verdict_name(verdict) != NULL);
    if (verdict != SRD_GOOD) {
        return 0;
    }
    CHECK(srd_opcode_name(packet.opcode) != NULL);
    const size_t headers_bytes = srd_encode(&packet, headers);
    const uint8_t *payload = bytes + headers_bytes;
    CHECK(headers_bytes + packet.payload_bytes + roce_pad_bytes(packet.payload_bytes) == count);
    CHECK(memcmp(headers, bytes, headers_bytes) == 0);
    CHECK(packet.payload == (packet.payload_bytes == 0 ? NULL : payload));
    CHECK(srd_decode(bytes, headers_bytes, payload, count - headers_bytes, &split) == SRD_GOOD);
    CHECK(split.payload == packet.payload && split.payload_bytes == packet.payload_bytes);
    check_fields(&packet);
    return 0;
}
