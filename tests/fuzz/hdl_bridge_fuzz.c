/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No frame of a design and no datagram of a peer makes the bridge read outside of it, or
 *         send what another bridge would not take.
 * Method  libFuzzer gives frames and datagrams, each in a buffer of exactly its size, and which
 *         checksums are made right, which chance would not do. A datagram that leaves comes at a
 *         second design with its payload; a frame that is made of a datagram is one whose answer,
 *         with both ends exchanged, leaves.
 */
#include <stdlib.h>

#include "base/bytes.h"
#include "hdl/bridge.h"
#include "tests/fuzz/input.h"
#include "wire/icrc.h"
#include "wire/roce.h"

enum {
    DESIGN = 0x7f000001,
    PEER = 0x7f000002,
    RIGHT_SOURCE = 1,
    RIGHT_IPV4 = 2,
    RIGHT_UDP = 4,
    RIGHT_ICRC = 8,
    IS_DATAGRAM = 16,
    IS_ROCE = 32,
};

static struct bridge design, peer;

static void mend(uint8_t *frame, uint32_t bytes, uint8_t control)
{
    uint8_t *ip = frame + 14, *udp = ip + INET_IPV4_BYTES;
    if (bytes < BRIDGE_HEADERS_BYTES) {
        return;
    }
    if ((control & RIGHT_SOURCE) != 0) {
        frame[6] &= 0xfe;
        store_be32(ip + 12, DESIGN);
    }
    if ((control & RIGHT_UDP) != 0) {
        store_be16(ip + 2, (uint16_t)(bytes - 14));
        store_be16(udp + 4, (uint16_t)(bytes - 14 - INET_IPV4_BYTES));
        store_be16(udp + 6, 0);
    }
    if ((control & IS_ROCE) != 0) {
        store_be16(udp + 2, ROCE_UDP_PORT);
    }
    if ((control & RIGHT_IPV4) != 0) {
        store_be16(ip + 10, 0);
        store_be16(ip + 10, inet_checksum(inet_sum(0, ip, INET_IPV4_BYTES)));
    }
    if ((control & RIGHT_ICRC) != 0 && bytes >= BRIDGE_HEADERS_BYTES + 16) {
        const struct inet_flow flow = inet_flow_ipv4(load_be32(ip + 12), load_be16(udp),
                                                     load_be32(ip + 16), load_be16(udp + 2));
        const uint32_t covered = bytes - BRIDGE_HEADERS_BYTES - ROCE_ICRC_BYTES;
        store_le32(frame + bytes - ROCE_ICRC_BYTES,
                   icrc_compute(&flow, load_be16(ip + 4), udp + 8, covered, NULL, 0));
    }
}

static void try_frame(const uint8_t *frame, uint32_t bytes)
{
    struct inet_datagram datagram;
    const enum bridge_verdict verdict = bridge_leave(&design, frame, bytes, &datagram);
    CHECK(verdict < BRIDGE_CAME && design.counts[verdict] > 0);
    CHECK(verdict != BRIDGE_ANSWERED || design.frame_bytes <= bytes);
    if (verdict == BRIDGE_LEFT) {
        CHECK(datagram.payload_bytes + BRIDGE_HEADERS_BYTES <= bytes);
        CHECK(datagram.own_port != 0 && datagram.peer_port != 0 && datagram.variant.hop_limit != 0);
        bridge_init(&peer, datagram.peer_ip);
        const struct inet_datagram there = {.peer_ip = DESIGN,
                                            .peer_port = datagram.own_port,
                                            .own_port = datagram.peer_port,
                                            .variant = datagram.variant,
                                            .payload = datagram.payload,
                                            .payload_bytes = datagram.payload_bytes};
        CHECK(bridge_come(&peer, &there) == BRIDGE_CAME);
        CHECK(peer.frame_bytes == BRIDGE_HEADERS_BYTES + datagram.payload_bytes);
        CHECK(memcmp(peer.frame + BRIDGE_HEADERS_BYTES, datagram.payload, datagram.payload_bytes) ==
              0);
    }
}

/* The frame that is made of a datagram has right checksums and lengths: from a design at the peer's
 * address it would leave. */
static void try_datagram(const struct inet_datagram *datagram)
{
    struct inet_datagram again;
    const enum bridge_verdict verdict = bridge_come(&design, datagram);
    CHECK(verdict >= BRIDGE_CAME && verdict < BRIDGE_VERDICT_COUNT);
    if (verdict == BRIDGE_CAME && datagram->peer_port != 0 && datagram->own_port != 0 &&
        datagram->variant.hop_limit != 0) {
        bridge_init(&peer, datagram->peer_ip);
        CHECK(bridge_leave(&peer, design.frame, design.frame_bytes, &again) == BRIDGE_LEFT);
        CHECK(again.payload_bytes == datagram->payload_bytes && again.peer_ip == DESIGN);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    const uint8_t control = take(&input);
    struct inet_datagram datagram = {.peer_ip = PEER};
    bridge_init(&design, DESIGN);
    if ((control & IS_DATAGRAM) != 0) {
        datagram.peer_port = (uint16_t)take_number(&input, 2);
        datagram.own_port =
            (control & IS_ROCE) != 0 ? ROCE_UDP_PORT : (uint16_t)take_number(&input, 2);
        datagram.variant =
            (struct inet_variant){.traffic_class = take(&input), .hop_limit = take(&input)};
    }
    const uint32_t room =
        input.count < HDL_FRAME_BYTES_MAX ? (uint32_t)input.count : HDL_FRAME_BYTES_MAX;
    uint8_t *exact = malloc(room); /* Exactly: ASan sees what is behind. */
    CHECK(exact != NULL);
    take_bytes(&input, exact, room);
    if ((control & IS_DATAGRAM) == 0) {
        mend(exact, room, control);
        try_frame(exact, room);
    } else {
        if ((control & RIGHT_ICRC) != 0 && room >= 16) {
            const struct inet_flow flow =
                inet_flow_ipv4(PEER, datagram.peer_port, DESIGN, datagram.own_port);
            store_le32(exact + room - 4, icrc_compute(&flow, 7, exact, room - 4, NULL, 0));
        }
        datagram.payload = exact;
        datagram.payload_bytes = room;
        try_datagram(&datagram);
    }
    free(exact);
    return 0;
}
