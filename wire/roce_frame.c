/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/roce_frame.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/icrc.h"

struct inet_flow roce_flow(const uint8_t source[16], const uint8_t destination[16])
{
    struct inet_flow flow = {.source_port = ROCE_UDP_PORT, .destination_port = ROCE_UDP_PORT};
    memcpy(flow.source, source, sizeof(flow.source));
    memcpy(flow.destination, destination, sizeof(flow.destination));
    return flow;
}

size_t roce_frame_seal(const struct inet_flow *flow, uint8_t *bytes, size_t count, size_t pad_bytes)
{
    CHECK(pad_bytes < 4);
    memset(bytes + count, 0, pad_bytes);
    count += pad_bytes;
    store_le32(bytes + count, icrc_compute(flow, 0, bytes, count, NULL, 0));
    return count + ROCE_ICRC_BYTES;
}

size_t roce_frame_join(const struct inet_flow *flow, const uint8_t *headers, size_t headers_bytes,
                       const uint8_t *payload, size_t payload_bytes,
                       uint8_t bytes[BLOCK_PACKET_BYTES_MAX])
{
    const size_t count = headers_bytes + payload_bytes;
    if (count < ROCE_BTH_BYTES || count + ROCE_ICRC_BYTES > BLOCK_PACKET_BYTES_MAX) {
        return 0;
    }
    memcpy(bytes, headers, headers_bytes);
    if (payload_bytes > 0) {
        memcpy(bytes + headers_bytes, payload, payload_bytes);
    }
    return roce_frame_seal(flow, bytes, count, 0);
}

bool roce_frame_is_whole(const struct inet_flow *flow, const uint8_t *bytes, size_t count)
{
    if (count < ROCE_BTH_BYTES + ROCE_ICRC_BYTES) {
        return false;
    }
    const size_t covered = count - ROCE_ICRC_BYTES;
    return icrc_compute(flow, 0, bytes, covered, NULL, 0) == load_le32(bytes + covered);
}
