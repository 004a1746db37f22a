/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/share_route.h"

#include "base/bytes.h"
#include "drivers/share.h"
#include "drivers/system/local_socket.h"
#include "wire/cm.h"
#include "wire/roce.h"

#define CLASS_CM 0x07

static struct share_route to_slot(uint32_t own_slot, uint32_t slot)
{
    INVARIANTS(CHECK(slot < SHARE_SLOTS && own_slot < SHARE_SLOTS));
    return slot == own_slot ? (struct share_route){.mine = true}
                            : (struct share_route){.slot = slot};
}

int share_slot_of_mad(const uint8_t *mad, size_t bytes)
{
    if (bytes < CM_HEADER_BYTES || mad[1] != CLASS_CM) {
        return LOCAL_NO_SLOT;
    }
    size_t at = CM_HEADER_BYTES;
    switch (load_be16(mad + 16)) {
    case CM_REP:
    case CM_RTU:
    case CM_REJ:
    case CM_MRA:
    case CM_DREQ:
    case CM_DREP: at += 4; break; /* The id stands behind the sender's own. */
    case CM_SIDR_REP: break;
    default: return LOCAL_NO_SLOT;
    }
    const uint32_t id = bytes < at + 4 ? 0 : load_be32(mad + at);
    return id == 0 ? LOCAL_NO_SLOT : (int)(id >> 24);
}

struct share_route share_route_mad(uint32_t own_slot, const uint8_t *mad, size_t bytes)
{
    const int slot = share_slot_of_mad(mad, bytes);
    return slot == LOCAL_NO_SLOT ? (struct share_route){.mine = true}
                                 : to_slot(own_slot, (uint32_t)slot);
}

struct share_route share_route(uint32_t own_slot, const uint8_t *packet, size_t bytes)
{
    const uint32_t qpn = load_be32(packet + 4) & ROCE_24_BITS;
    if (qpn == CM_QPN) {
        const struct roce_opcode *opcode = roce_opcode(packet[0]);
        const size_t headers = opcode->headers_bytes;
        return !roce_is_of_queue_pairs(opcode) || bytes < headers
                   ? (struct share_route){.mine = true}
                   : share_route_mad(own_slot, packet + headers, bytes - headers);
    }
    /* QPN 0 has no meaning on RoCE; a multicast packet is no single process's. The process that
     * read them judges them. */
    if (qpn == 0 || qpn == ROCE_24_BITS) {
        return (struct share_route){.mine = true};
    }
    return to_slot(own_slot, share_slot_of(qpn));
}
