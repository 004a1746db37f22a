/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/share_route.h"

#include "base/bytes.h"
#include "drivers/share.h"
#include "wire/roce.h"

#define QPN_GSI          1
#define MAD_HEADER_BYTES 24
#define CLASS_CM         0x07

/* Attributes of class CM: what a message is. */
enum {
    CM_REQ = 0x10,
    CM_MRA = 0x11,
    CM_REJ = 0x12,
    CM_REP = 0x13,
    CM_RTU = 0x14,
    CM_DREQ = 0x15,
    CM_DREP = 0x16,
    CM_SIDR_REQ = 0x17,
    CM_SIDR_REP = 0x18,
};

static struct share_route to_slot(uint32_t own_slot, uint32_t slot)
{
    return slot == own_slot ? (struct share_route){.mine = true}
                            : (struct share_route){.slot = slot};
}

/* The seam for connection requests (REQ, SIDR_REQ): they name a service id, and are for the process
 * that listens on it. Who listens where is a registry's to say; without one, whoever read a request
 * judges it. */
static struct share_route route_request(uint32_t own_slot, const uint8_t *mad, size_t bytes)
{
    (void)own_slot;
    (void)mad;
    (void)bytes;
    return (struct share_route){.mine = true};
}

/* Messages that answer name the id their receiver chose, whose upper 8 bits are its slot. */
static struct share_route route_answer(uint32_t own_slot, const uint8_t *mad, size_t bytes,
                                       size_t id_at)
{
    const size_t at = MAD_HEADER_BYTES + id_at;
    return bytes < at + 4 ? (struct share_route){.mine = true}
                          : to_slot(own_slot, load_be32(mad + at) >> 24);
}

struct share_route share_route_mad(uint32_t own_slot, const uint8_t *mad, size_t bytes)
{
    if (bytes < MAD_HEADER_BYTES || mad[1] != CLASS_CM) {
        return (struct share_route){.mine = true};
    }
    switch (load_be16(mad + 16)) {
    case CM_REP:
    case CM_RTU:
    case CM_REJ:
    case CM_MRA:
    case CM_DREQ:
    case CM_DREP: return route_answer(own_slot, mad, bytes, 4); /* Behind the sender's own id. */
    case CM_SIDR_REP: return route_answer(own_slot, mad, bytes, 0);
    case CM_REQ:
    case CM_SIDR_REQ: return route_request(own_slot, mad, bytes);
    default: return (struct share_route){.mine = true};
    }
}

struct share_route share_route(uint32_t own_slot, const uint8_t *packet, size_t bytes)
{
    const uint32_t qpn = load_be32(packet + 4) & ROCE_24_BITS;
    if (qpn == QPN_GSI) {
        const size_t headers = roce_opcode(packet[0])->headers_bytes;
        return headers == 0 || bytes < headers
                   ? (struct share_route){.mine = true}
                   : share_route_mad(own_slot, packet + headers, bytes - headers);
    }
    /* QPN 0 has no meaning on RoCE; a multicast packet is no single process's. Whoever has them
     * judges them. */
    if (qpn == 0 || qpn == ROCE_24_BITS) {
        return (struct share_route){.mine = true};
    }
    return to_slot(own_slot, share_slot_of(qpn));
}
