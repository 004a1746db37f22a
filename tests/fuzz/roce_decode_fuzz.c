/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No bytes make roce_decode read outside them or answer with a packet they do not spell.
 * Method  libFuzzer gives the bytes in a buffer of exactly their size. A packet that is decoded
 *         must account for every byte and encode back to the same headers.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/roce.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct roce_packet packet, split;
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];

    const enum roce_verdict verdict = roce_decode(bytes, count, &packet);
    CHECK(roce_verdict_name(verdict) != NULL);
    if (verdict != ROCE_GOOD) {
        return 0;
    }
    const struct roce_opcode *opcode = roce_opcode(bytes[0]);
    const size_t headers_bytes = roce_encode_headers(&packet, headers);
    const uint8_t *payload = bytes + headers_bytes;
    CHECK(headers_bytes == opcode->headers_bytes);
    CHECK(headers_bytes + packet.payload_bytes + packet.pad_bytes == count);
    CHECK(packet.payload == (packet.payload_bytes == 0 ? NULL : payload));
    CHECK(roce_decode_split(bytes, headers_bytes, payload, count - headers_bytes, &split) ==
          ROCE_GOOD);
    CHECK(split.payload == packet.payload && split.payload_bytes == packet.payload_bytes);

    /* The reserved bytes of a CNP are sent as 0; received ones may have any value. */
    const bool reserved = (opcode->traits & ROCE_HAS_CNP_RESERVED) != 0;
    CHECK(memcmp(headers, bytes, reserved ? ROCE_BTH_BYTES : headers_bytes) == 0);
    return 0;
}
