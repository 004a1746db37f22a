/* SPDX-License-Identifier: BSD-2-Clause
 *
 * roce - see roce.h.
 */
#include "wire/roce.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/bth.h"

/* -- Extended headers ---------------------------------------------------------------------------
 * X(argument, name, trait, bytes), in the one order in which they stand behind the BTH. Lengths,
 * decoding and encoding all follow this list. */
#define EXTENDED_HEADERS(X, argument)                                                              \
    X(argument, xrceth, ROCE_HAS_XRCETH, ROCE_XRCETH_BYTES)                                        \
    X(argument, deth, ROCE_HAS_DETH, ROCE_DETH_BYTES)                                              \
    X(argument, feth, ROCE_HAS_FETH, ROCE_FETH_BYTES)                                              \
    X(argument, reth, ROCE_HAS_RETH, ROCE_RETH_BYTES)                                              \
    X(argument, atomic_eth, ROCE_HAS_ATOMIC_ETH, ROCE_ATOMIC_ETH_BYTES)                            \
    X(argument, aeth, ROCE_HAS_AETH, ROCE_AETH_BYTES)                                              \
    X(argument, atomic_ack_eth, ROCE_HAS_ATOMIC_ACK_ETH, ROCE_ATOMIC_ACK_ETH_BYTES)                \
    X(argument, immdt, ROCE_HAS_IMMDT, ROCE_IMMDT_BYTES)                                           \
    X(argument, ieth, ROCE_HAS_IETH, ROCE_IETH_BYTES)                                              \
    X(argument, cnp_reserved, ROCE_HAS_CNP_RESERVED, ROCE_CNP_RESERVED_BYTES)

/* -- Opcodes ------------------------------------------------------------------------------------
 * Which service has which operations (IBTA Vol. 1 table 38), and what every request of a service
 * carries; the CNP from A17.9.3. */
#define ADD_BYTES(traits, name, trait, bytes) +(((traits) & (trait)) != 0 ? (bytes) : 0)
#define HEADERS_BYTES(traits)                 (ROCE_BTH_BYTES EXTENDED_HEADERS(ADD_BYTES, traits))

#define ROW(service, operation, text, traits)                                                      \
    [ROCE_OPCODE(ROCE_SERVICE_##service, operation)] = {#service " " text, (traits),               \
                                                        HEADERS_BYTES(traits)},
#define RC_ROW(name, number, text, traits) ROW(RC, number, text, traits)
#define UC_ROW(name, number, text, traits) ROW(UC, number, text, traits)
#define UD_ROW(name, number, text, traits) ROW(UD, number, text, (traits) | ROCE_HAS_DETH)
#define XRC_ROW(name, number, text, traits)                                                        \
    ROW(XRC, number, text, (traits) | ((ROCE_IS_REQUEST & (traits)) != 0 ? ROCE_HAS_XRCETH : 0))

static const struct roce_opcode opcodes[256] = {
    /* clang-format off */
    ROCE_DATAGRAM_OPERATIONS(RC_ROW)
    ROCE_CONNECTED_OPERATIONS(RC_ROW)
    ROCE_RELIABLE_OPERATIONS(RC_ROW)

    ROCE_DATAGRAM_OPERATIONS(UC_ROW)
    ROCE_CONNECTED_OPERATIONS(UC_ROW)

    ROCE_DATAGRAM_OPERATIONS(UD_ROW)

    ROCE_DATAGRAM_OPERATIONS(XRC_ROW)
    ROCE_CONNECTED_OPERATIONS(XRC_ROW)
    ROCE_RELIABLE_OPERATIONS(XRC_ROW)

    [ROCE_OPCODE_CNP] = {"CNP", ROCE_HAS_CNP_RESERVED, HEADERS_BYTES(ROCE_HAS_CNP_RESERVED)},

    [ROCE_OPCODE_PROBE] = {"nonic Probe", ROCE_IS_OF_PORTS, ROCE_PROBE_BYTES},
    [ROCE_OPCODE_ANSWER] = {"nonic Answer", ROCE_IS_OF_PORTS, ROCE_PROBE_BYTES},
    /* clang-format on */
};

_Static_assert(HEADERS_BYTES(ROCE_HAS_ATOMIC_ETH | ROCE_HAS_XRCETH) == ROCE_HEADERS_BYTES_MAX,
               "the longest header");

const struct roce_opcode *roce_opcode(uint8_t opcode)
{
    return &opcodes[opcode];
}

/* -- Fields -------------------------------------------------------------------------------------
 * One pair of functions for each header. */

static void decode_bth(const uint8_t *at, struct roce_packet *packet)
{
    packet->opcode = at[0];
    packet->solicited = (at[1] & BTH_SOLICITED) != 0;
    packet->migration_request = (at[1] & BTH_MIGRATION_REQUEST) != 0;
    packet->pad_bytes = bth_pad(at);
    packet->version = at[1] & BTH_VERSION_MASK;
    packet->pkey = load_be16(at + 2);
    packet->byte4 = at[4];
    packet->destination_qpn = load_24(at + 4);
    packet->ack_request = (at[8] & BTH_ACK_REQUEST) != 0;
    packet->reserved7 = at[8] & (BTH_ACK_REQUEST - 1);
    packet->psn = load_24(at + 8);
}

static void encode_bth(uint8_t *at, const struct roce_packet *packet)
{
    at[0] = packet->opcode;
    at[1] = (uint8_t)((packet->solicited ? BTH_SOLICITED : 0) |
                      (packet->migration_request ? BTH_MIGRATION_REQUEST : 0) |
                      (packet->pad_bytes & BTH_PAD_MASK) << BTH_PAD_SHIFT |
                      (packet->version & BTH_VERSION_MASK));
    store_be16(at + 2, packet->pkey);
    store_8_24(at + 4, packet->byte4, packet->destination_qpn);
    store_8_24(at + 8,
               (uint8_t)((packet->ack_request ? BTH_ACK_REQUEST : 0) |
                         (packet->reserved7 & (BTH_ACK_REQUEST - 1))),
               packet->psn);
}

static void decode_deth(const uint8_t *at, struct roce_packet *packet)
{
    packet->deth.qkey = load_be32(at);
    packet->deth.reserved = at[4];
    packet->deth.source_qpn = load_24(at + 4);
}

static void encode_deth(uint8_t *at, const struct roce_packet *packet)
{
    store_be32(at, packet->deth.qkey);
    store_8_24(at + 4, packet->deth.reserved, packet->deth.source_qpn);
}

static void decode_xrceth(const uint8_t *at, struct roce_packet *packet)
{
    packet->xrc.reserved = at[0];
    packet->xrc.srqn = load_24(at);
}

static void encode_xrceth(uint8_t *at, const struct roce_packet *packet)
{
    store_8_24(at, packet->xrc.reserved, packet->xrc.srqn);
}

static void decode_reth(const uint8_t *at, struct roce_packet *packet)
{
    packet->reth.address = load_be64(at);
    packet->reth.key = load_be32(at + 8);
    packet->reth.bytes = load_be32(at + 12);
}

static void encode_reth(uint8_t *at, const struct roce_packet *packet)
{
    store_be64(at, packet->reth.address);
    store_be32(at + 8, packet->reth.key);
    store_be32(at + 12, packet->reth.bytes);
}

static void decode_feth(const uint8_t *at, struct roce_packet *packet)
{
    const uint32_t bits = load_be32(at);
    packet->feth.placement = bits & 0xf;
    packet->feth.selectivity = bits >> 4 & 0x3;
    packet->feth.reserved = bits >> 6;
}

static void encode_feth(uint8_t *at, const struct roce_packet *packet)
{
    store_be32(at, packet->feth.reserved << 6 | (packet->feth.selectivity & 0x3u) << 4 |
                       (packet->feth.placement & 0xfu));
}

static void decode_atomic_eth(const uint8_t *at, struct roce_packet *packet)
{
    packet->atomic.address = load_be64(at);
    packet->atomic.key = load_be32(at + 8);
    packet->atomic.swap_or_add = load_be64(at + 12);
    packet->atomic.compare = load_be64(at + 20);
}

static void encode_atomic_eth(uint8_t *at, const struct roce_packet *packet)
{
    store_be64(at, packet->atomic.address);
    store_be32(at + 8, packet->atomic.key);
    store_be64(at + 12, packet->atomic.swap_or_add);
    store_be64(at + 20, packet->atomic.compare);
}

static void decode_aeth(const uint8_t *at, struct roce_packet *packet)
{
    packet->aeth.syndrome = at[0];
    packet->aeth.msn = load_24(at);
}

static void encode_aeth(uint8_t *at, const struct roce_packet *packet)
{
    store_8_24(at, packet->aeth.syndrome, packet->aeth.msn);
}

static void decode_atomic_ack_eth(const uint8_t *at, struct roce_packet *packet)
{
    packet->atomic_original = load_be64(at);
}

static void encode_atomic_ack_eth(uint8_t *at, const struct roce_packet *packet)
{
    store_be64(at, packet->atomic_original);
}

static void decode_immdt(const uint8_t *at, struct roce_packet *packet)
{
    memcpy(&packet->immediate, at, sizeof(packet->immediate));
}

static void encode_immdt(uint8_t *at, const struct roce_packet *packet)
{
    memcpy(at, &packet->immediate, sizeof(packet->immediate));
}

static void decode_ieth(const uint8_t *at, struct roce_packet *packet)
{
    packet->invalidate_key = load_be32(at);
}

static void encode_ieth(uint8_t *at, const struct roce_packet *packet)
{
    store_be32(at, packet->invalidate_key);
}

static void decode_cnp_reserved(const uint8_t *at, struct roce_packet *packet)
{
    (void)at;
    (void)packet;
}

static void encode_cnp_reserved(uint8_t *at, const struct roce_packet *packet)
{
    (void)packet;
    memset(at, 0, ROCE_CNP_RESERVED_BYTES);
}

/* -- Packets ----------------------------------------------------------------------------------- */

const char *roce_verdict_name(enum roce_verdict verdict)
{
    switch (verdict) {
    case ROCE_GOOD: return "good";
    case ROCE_SHORT: return "short";
    case ROCE_UNKNOWN_OPCODE: return "unknown opcode";
    case ROCE_WRONG_VERSION: return "wrong version";
    case ROCE_WRONG_PAD: return "wrong pad";
    case ROCE_TOO_LONG: return "too long";
    case ROCE_VERDICT_COUNT: break;
    }
    UNREACHABLE("a verdict outside its enum");
}

/* Judges the values in the headers. */
static inline enum roce_verdict judge_headers(const uint8_t *headers, size_t count)
{
    if (UNLIKELY(count < ROCE_BTH_BYTES)) {
        return ROCE_SHORT;
    }
    /* The version comes first, because it says how to read the rest. */
    if (UNLIKELY((headers[1] & BTH_VERSION_MASK) != 0)) {
        return ROCE_WRONG_VERSION;
    }
    const struct roce_opcode *opcode = &opcodes[headers[0]];
    if (UNLIKELY(!roce_is_of_queue_pairs(opcode))) {
        return ROCE_UNKNOWN_OPCODE;
    }
    return UNLIKELY(count < opcode->headers_bytes) ? ROCE_SHORT : ROCE_GOOD;
}

/* Judges the bytes behind the headers: payload and pad together are `padded_bytes` long. */
static inline enum roce_verdict judge_payload(uint32_t traits, size_t padded_bytes,
                                              size_t pad_bytes)
{
    if ((traits & ROCE_HAS_PAYLOAD) == 0 && padded_bytes != 0) {
        return ROCE_TOO_LONG;
    }
    if (padded_bytes % 4 != 0 || pad_bytes > padded_bytes) {
        return ROCE_WRONG_PAD;
    }
    return padded_bytes - pad_bytes > ROCE_PAYLOAD_BYTES_MAX ? ROCE_TOO_LONG : ROCE_GOOD;
}

#define DECODE(at, name, trait, bytes)                                                             \
    if ((traits & (trait)) != 0) {                                                                 \
        decode_##name(at, packet);                                                                 \
        at += (bytes);                                                                             \
    }

/* The headers were judged good: judges the payload, then decodes. */
static inline enum roce_verdict decode_judged(const uint8_t *headers, const uint8_t *payload,
                                              size_t padded_bytes, struct roce_packet *packet)
{
    const uint32_t traits = opcodes[headers[0]].traits;
    const enum roce_verdict verdict = judge_payload(traits, padded_bytes, bth_pad(headers));
    if (UNLIKELY(verdict != ROCE_GOOD)) {
        return verdict;
    }
    decode_bth(headers, packet);
    headers += ROCE_BTH_BYTES;
    EXTENDED_HEADERS(DECODE, headers)
    packet->payload_bytes = (uint32_t)padded_bytes - packet->pad_bytes;
    packet->payload = packet->payload_bytes == 0 ? NULL : payload;
    return ROCE_GOOD;
}

enum roce_verdict roce_decode(const uint8_t *bytes, size_t count, struct roce_packet *packet)
{
    const enum roce_verdict verdict = judge_headers(bytes, count);
    if (UNLIKELY(verdict != ROCE_GOOD)) {
        return verdict;
    }
    const size_t headers_bytes = opcodes[bytes[0]].headers_bytes;
    return decode_judged(bytes, bytes + headers_bytes, count - headers_bytes, packet);
}

enum roce_verdict roce_decode_split(const uint8_t *headers, size_t count, const uint8_t *payload,
                                    size_t padded_bytes, struct roce_packet *packet)
{
    const enum roce_verdict verdict = judge_headers(headers, count);
    if (UNLIKELY(verdict != ROCE_GOOD)) {
        return verdict;
    }
    if (UNLIKELY(count != opcodes[headers[0]].headers_bytes)) {
        return ROCE_TOO_LONG;
    }
    return decode_judged(headers, payload, padded_bytes, packet);
}

#define ENCODE(at, name, trait, bytes)                                                             \
    if ((traits & (trait)) != 0) {                                                                 \
        encode_##name(at, packet);                                                                 \
        at += (bytes);                                                                             \
    }

size_t roce_encode_headers(const struct roce_packet *packet, uint8_t *out)
{
    const struct roce_opcode *opcode = &opcodes[packet->opcode];
    const uint32_t traits = opcode->traits;

    CHECK(roce_is_of_queue_pairs(opcode));
    encode_bth(out, packet);
    uint8_t *at = out + ROCE_BTH_BYTES;
    EXTENDED_HEADERS(ENCODE, at)
    return (size_t)(at - out);
}

/* -- Between ports ----------------------------------------------------------------------------- */

void roce_probe_encode(const struct roce_probe *probe, uint8_t out[ROCE_PROBE_BYTES])
{
    const struct roce_packet packet = {.opcode = probe->opcode,
                                       .pkey = ROCE_DEFAULT_PKEY,
                                       .destination_qpn = probe->destination_qpn};
    CHECK(opcodes[probe->opcode].traits & ROCE_IS_OF_PORTS);
    encode_bth(out, &packet);
    store_be64(out + ROCE_BTH_BYTES, probe->sent);
    store_be16(out + ROCE_BTH_BYTES + 8, probe->link_slot);
    store_be16(out + ROCE_BTH_BYTES + 10, probe->sender_slot);
}

bool roce_probe_decode(const uint8_t *bytes, size_t count, struct roce_probe *probe)
{
    if (count != ROCE_PROBE_BYTES || (opcodes[bytes[0]].traits & ROCE_IS_OF_PORTS) == 0) {
        return false;
    }
    *probe = (struct roce_probe){
        .opcode = bytes[0],
        .destination_qpn = load_24(bytes + 4),
        .sent = load_be64(bytes + ROCE_BTH_BYTES),
        .link_slot = load_be16(bytes + ROCE_BTH_BYTES + 8),
        .sender_slot = load_be16(bytes + ROCE_BTH_BYTES + 10),
    };
    return true;
}
