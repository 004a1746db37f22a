/* SPDX-License-Identifier: BSD-2-Clause
 *
 * roce - InfiniBand transport headers as RoCEv2 carries them: bytes <-> one struct.
 *
 * Purpose    Decodes the bytes behind the UDP header, up to but not including the ICRC, and encodes
 *            them.
 * Inputs     roce_decode or roce_decode_split, roce_encode_headers; roce_probe_decode and
 *            roce_probe_encode for what two nonics say to each other.
 * Outputs    A verdict that names what is wrong with bytes nobody should trust.
 * Ownership  A decoded packet points into the bytes it was decoded from.
 * Units      Bytes; PSNs, QPNs and MSNs are 24 bits wide.
 * Limits     Payload of one packet at most ROCE_PAYLOAD_BYTES_MAX.
 * Source     IBTA Vol. 1 chapter 9 (BTH 9.2, ETHs 9.3, opcodes table 38); Annex A14 (XRC);
 *            Annex A17 (RoCEv2); Annex A19 (ATOMIC WRITE, FLUSH).
 */
#ifndef WIRE_ROCE_H
#define WIRE_ROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define ROCE_UDP_PORT             4791
#define ROCE_BTH_BYTES            12
#define ROCE_RETH_BYTES           16
#define ROCE_FETH_BYTES           4
#define ROCE_AETH_BYTES           4
#define ROCE_DETH_BYTES           8
#define ROCE_XRCETH_BYTES         4
#define ROCE_ATOMIC_ETH_BYTES     28
#define ROCE_ATOMIC_ACK_ETH_BYTES 8
#define ROCE_IMMDT_BYTES          4
#define ROCE_IETH_BYTES           4
#define ROCE_ICRC_BYTES           4
#define ROCE_CNP_RESERVED_BYTES   16
/* The longest header: BTH + XRCETH + AtomicETH; every other combination is shorter. */
#define ROCE_HEADERS_BYTES_MAX 44
#define ROCE_PAYLOAD_BYTES_MAX 4096
/* All headers, payload and ICRC, i.e. the largest UDP payload of a RoCEv2 packet. */
#define ROCE_PACKET_BYTES_MAX (ROCE_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX + ROCE_ICRC_BYTES)
#define ROCE_24_BITS          0xffffffu
#define ROCE_DEFAULT_PKEY     0xffff

/* Bits 7..5 of an opcode name the service, bits 4..0 the operation. */
enum roce_service {
    ROCE_SERVICE_RC = 0x00,
    ROCE_SERVICE_UC = 0x20,
    ROCE_SERVICE_RD = 0x40,
    ROCE_SERVICE_UD = 0x60,
    ROCE_SERVICE_CNP = 0x80,
    ROCE_SERVICE_XRC = 0xa0,
};

#define ROCE_OPCODE(service, operation)                                                            \
    ((uint8_t)((unsigned int)(service) | (unsigned int)(operation)))
#define ROCE_OPCODE_CNP 0x81

/* IBTA leaves 0xc0 to 0xff, the services 110 and 111 of table 38, to manufacturers: a receiver that
 * does not know such an opcode drops the packet. Two nonics use these. */
#define ROCE_MANUFACTURER_FIRST 0xc0
enum roce_manufacturer_opcode {
    ROCE_OPCODE_PROBE = 0xc0,  /* Have you taken in all that I sent before this? */
    ROCE_OPCODE_ANSWER = 0xc1, /* Yes. */
};

/* The traits of an opcode. */
enum roce_trait {
    ROCE_HAS_RETH = 1 << 0,
    ROCE_HAS_AETH = 1 << 1,
    ROCE_HAS_DETH = 1 << 2,
    ROCE_HAS_ATOMIC_ETH = 1 << 3,
    ROCE_HAS_ATOMIC_ACK_ETH = 1 << 4,
    ROCE_HAS_IMMDT = 1 << 5,
    ROCE_HAS_IETH = 1 << 6,
    ROCE_HAS_PAYLOAD = 1 << 7, /* May carry payload. */
    ROCE_IS_REQUEST = 1 << 8,  /* Goes to a responder. */
    ROCE_IS_RESPONSE = 1 << 9, /* Goes to a requester. */
    ROCE_IS_FIRST = 1 << 10,   /* First or only packet of a message. */
    ROCE_IS_LAST = 1 << 11,    /* Last or only packet of a message. */
    ROCE_IS_SEND = 1 << 12,
    ROCE_IS_WRITE = 1 << 13,
    ROCE_IS_READ = 1 << 14,          /* READ request or response. */
    ROCE_IS_ATOMIC = 1 << 15,        /* Atomic request. */
    ROCE_HAS_CNP_RESERVED = 1 << 16, /* 16 bytes after a CNP's BTH: sent as 0, not looked at. */
    ROCE_HAS_XRCETH = 1 << 17,
    ROCE_IS_OF_PORTS = 1 << 18, /* Between two ports: no queue pair's, and not for roce_decode. */
    ROCE_HAS_FETH = 1 << 19,
    ROCE_IS_FLUSH = 1 << 20,
};

/* A single-packet message is its own first and last. */
#define ROCE_ONLY (ROCE_IS_FIRST | ROCE_IS_LAST)
/* The traits that the operations of a family have in common. */
#define ROCE_SEND_TRAITS   (ROCE_IS_REQUEST | ROCE_IS_SEND | ROCE_HAS_PAYLOAD)
#define ROCE_WRITE_TRAITS  (ROCE_IS_REQUEST | ROCE_IS_WRITE | ROCE_HAS_PAYLOAD)
#define ROCE_DATA_TRAITS   (ROCE_IS_RESPONSE | ROCE_IS_READ | ROCE_HAS_PAYLOAD)
#define ROCE_ACK_TRAITS    (ROCE_IS_RESPONSE | ROCE_HAS_AETH | ROCE_ONLY)
#define ROCE_ATOMIC_TRAITS (ROCE_IS_REQUEST | ROCE_IS_ATOMIC | ROCE_ONLY)
/* Requests that a response of their own answers, not a plain acknowledgement. */
#define ROCE_IS_ANSWERED (ROCE_IS_READ | ROCE_IS_ATOMIC | ROCE_IS_FLUSH)

/* All operations: X(name, number, text, traits). Which service has which of the three lists, and
 * what every request of a service carries, is in wire/roce.c. */
/* clang-format off */
#define ROCE_DATAGRAM_OPERATIONS(X)                                                                \
    X(SEND_ONLY, 0x04, "SEND Only", ROCE_SEND_TRAITS | ROCE_ONLY)                                  \
    X(SEND_ONLY_IMMEDIATE, 0x05, "SEND Only with Immediate",                                       \
      ROCE_SEND_TRAITS | ROCE_ONLY | ROCE_HAS_IMMDT)

#define ROCE_CONNECTED_OPERATIONS(X)                                                               \
    X(SEND_FIRST, 0x00, "SEND First", ROCE_SEND_TRAITS | ROCE_IS_FIRST)                            \
    X(SEND_MIDDLE, 0x01, "SEND Middle", ROCE_SEND_TRAITS)                                          \
    X(SEND_LAST, 0x02, "SEND Last", ROCE_SEND_TRAITS | ROCE_IS_LAST)                               \
    X(SEND_LAST_IMMEDIATE, 0x03, "SEND Last with Immediate",                                       \
      ROCE_SEND_TRAITS | ROCE_IS_LAST | ROCE_HAS_IMMDT)                                            \
    X(WRITE_FIRST, 0x06, "WRITE First",                                                            \
      ROCE_WRITE_TRAITS | ROCE_IS_FIRST | ROCE_HAS_RETH)                                           \
    X(WRITE_MIDDLE, 0x07, "WRITE Middle", ROCE_WRITE_TRAITS)                                       \
    X(WRITE_LAST, 0x08, "WRITE Last", ROCE_WRITE_TRAITS | ROCE_IS_LAST)                            \
    X(WRITE_LAST_IMMEDIATE, 0x09, "WRITE Last with Immediate",                                     \
      ROCE_WRITE_TRAITS | ROCE_IS_LAST | ROCE_HAS_IMMDT)                                           \
    X(WRITE_ONLY, 0x0a, "WRITE Only", ROCE_WRITE_TRAITS | ROCE_ONLY | ROCE_HAS_RETH)               \
    X(WRITE_ONLY_IMMEDIATE, 0x0b, "WRITE Only with Immediate",                                     \
      ROCE_WRITE_TRAITS | ROCE_ONLY | ROCE_HAS_RETH | ROCE_HAS_IMMDT)

#define ROCE_RELIABLE_OPERATIONS(X)                                                                \
    X(READ_REQUEST, 0x0c, "READ Request",                                                          \
      ROCE_IS_REQUEST | ROCE_IS_READ | ROCE_HAS_RETH | ROCE_ONLY)                                  \
    X(READ_RESPONSE_FIRST, 0x0d, "READ Response First",                                            \
      ROCE_DATA_TRAITS | ROCE_IS_FIRST | ROCE_HAS_AETH)                                            \
    X(READ_RESPONSE_MIDDLE, 0x0e, "READ Response Middle", ROCE_DATA_TRAITS)                        \
    X(READ_RESPONSE_LAST, 0x0f, "READ Response Last",                                              \
      ROCE_DATA_TRAITS | ROCE_IS_LAST | ROCE_HAS_AETH)                                             \
    X(READ_RESPONSE_ONLY, 0x10, "READ Response Only",                                              \
      ROCE_DATA_TRAITS | ROCE_ONLY | ROCE_HAS_AETH)                                                \
    X(ACKNOWLEDGE, 0x11, "Acknowledge", ROCE_ACK_TRAITS)                                           \
    X(ATOMIC_ACKNOWLEDGE, 0x12, "Atomic Acknowledge",                                              \
      ROCE_ACK_TRAITS | ROCE_HAS_ATOMIC_ACK_ETH)                                                   \
    X(COMPARE_SWAP, 0x13, "Compare Swap", ROCE_ATOMIC_TRAITS | ROCE_HAS_ATOMIC_ETH)                \
    X(FETCH_ADD, 0x14, "Fetch Add", ROCE_ATOMIC_TRAITS | ROCE_HAS_ATOMIC_ETH)                      \
    X(SEND_LAST_INVALIDATE, 0x16, "SEND Last with Invalidate",                                     \
      ROCE_SEND_TRAITS | ROCE_IS_LAST | ROCE_HAS_IETH)                                             \
    X(SEND_ONLY_INVALIDATE, 0x17, "SEND Only with Invalidate",                                     \
      ROCE_SEND_TRAITS | ROCE_ONLY | ROCE_HAS_IETH)                                                \
    /* Both answered by a READ Response Only without payload. */                                   \
    X(FLUSH, 0x1c, "Flush",                                                                        \
      ROCE_IS_REQUEST | ROCE_IS_FLUSH | ROCE_HAS_FETH | ROCE_HAS_RETH | ROCE_ONLY)                 \
    X(ATOMIC_WRITE, 0x1d, "Atomic Write",                                                          \
      ROCE_ATOMIC_TRAITS | ROCE_HAS_RETH | ROCE_HAS_PAYLOAD)
/* clang-format on */

#define ROCE_NUMBER(name, number, text, traits) ROCE_##name = (number),
enum roce_operation {
    /* clang-format off */
    ROCE_DATAGRAM_OPERATIONS(ROCE_NUMBER)
    ROCE_CONNECTED_OPERATIONS(ROCE_NUMBER)
    ROCE_RELIABLE_OPERATIONS(ROCE_NUMBER)
    ROCE_OPERATION_COUNT = 0x20,
    /* clang-format on */
};

struct roce_opcode {
    const char *name;      /* "RC SEND Only"; NULL if the opcode is not one of ours. */
    uint32_t traits;       /* enum roce_trait bits. */
    uint8_t headers_bytes; /* BTH and every extended header. */
};

/* Never NULL; an unknown opcode has a NULL name and no traits. */
const struct roce_opcode *roce_opcode(uint8_t opcode);

/* Do queue pairs speak this opcode, and do we? */
static inline bool roce_is_of_queue_pairs(const struct roce_opcode *opcode)
{
    return (opcode->traits & ~(uint32_t)ROCE_IS_OF_PORTS) != 0;
}

/* One packet. Extended headers are valid only where the opcode's traits say so. Values are in host
 * order, except `immediate`, which travels untouched: programs choose its byte order (ibv_send_wr
 * imm_data is big-endian by convention), so it is kept as the 4 bytes on the wire. */
struct roce_packet {
    uint8_t opcode;
    bool solicited;
    bool migration_request; /* MigReq: 1 in most hardware, 0 in Soft-RoCE. Ignored on arrival. */
    uint8_t pad_bytes;      /* 0..3, so that payload + pad is a multiple of 4. */
    uint8_t version;        /* TVer, 0. */
    uint8_t byte4; /* FECN (bit 7), BECN (bit 6), 6 reserved bits: not covered by the ICRC. */
    bool ack_request;
    uint8_t reserved7; /* The 7 bits beside ack_request: covered by the ICRC, 0 when we send. */
    uint16_t pkey;
    uint32_t destination_qpn;
    uint32_t psn;

    struct {
        uint64_t address;
        uint32_t key;
        uint32_t bytes;
    } reth;
    struct {
        uint8_t placement;   /* PLT, 4 bits: enum roce_placement. */
        uint8_t selectivity; /* SEL, 2 bits: enum roce_selectivity. */
        uint32_t reserved;   /* 26 bits. */
    } feth;
    struct {
        uint8_t syndrome;
        uint32_t msn;
    } aeth;
    struct {
        uint32_t qkey;
        uint32_t source_qpn;
        uint8_t reserved;
    } deth;
    struct {
        uint64_t address;
        uint32_t key;
        uint64_t swap_or_add;
        uint64_t compare;
    } atomic;
    uint64_t atomic_original;
    uint32_t immediate;
    uint32_t invalidate_key;
    struct {
        uint32_t srqn; /* The request is for the domain of this shared receive queue. */
        uint8_t reserved;
    } xrc;

    const uint8_t *payload; /* NULL if payload_bytes is 0 or the payload travels elsewhere. */
    uint32_t payload_bytes; /* Without pad. */
};

/* The effect that a FLUSH asks for (A19.4.1), on the memory that its RETH names: bits of the
 * placement type; the two above them are reserved. */
enum roce_placement {
    ROCE_PLACEMENT_GLOBAL = 1 << 0,     /* Earlier writes are visible to all. */
    ROCE_PLACEMENT_PERSISTENT = 1 << 1, /* It outlives a loss of power. */
    ROCE_PLACEMENT_KNOWN = ROCE_PLACEMENT_GLOBAL | ROCE_PLACEMENT_PERSISTENT,
};

/* ... and the part of that memory; 2 and 3 are reserved. */
enum roce_selectivity {
    ROCE_SELECT_RANGE = 0,  /* The range of address and length. */
    ROCE_SELECT_REGION = 1, /* All that the key opens: neither address nor length is looked at. */
};

/* The longest range of a FLUSH (A19.4.1). */
#define ROCE_FLUSH_BYTES_MAX 0x7fffffffu

/* Why bytes are not a packet. Each has a counter of its own in the NIC. */
enum roce_verdict {
    ROCE_GOOD,
    ROCE_SHORT,          /* Fewer bytes than the headers of its opcode need. */
    ROCE_UNKNOWN_OPCODE, /* An opcode we do not speak, or one that is no queue pair's. */
    ROCE_WRONG_VERSION,  /* TVer is not 0. */
    ROCE_WRONG_PAD,      /* Pad longer than the payload, or total not a multiple of 4. */
    ROCE_TOO_LONG,       /* Payload above ROCE_PAYLOAD_BYTES_MAX, or on an opcode that has none. */
    ROCE_VERDICT_COUNT,
};

const char *roce_verdict_name(enum roce_verdict verdict);

/* Decodes `count` bytes that start at the BTH and end before the ICRC. Writes *packet only when
 * the answer is ROCE_GOOD. Fields of headers the opcode does not have are left unset. */
MUST_USE enum roce_verdict roce_decode(const uint8_t *bytes, size_t count,
                                       struct roce_packet *packet);

/* Likewise for a packet in two places: exactly the headers of its opcode (more is ROCE_TOO_LONG),
 * and its payload with pad, which packet->payload will point to; it is not read here. */
MUST_USE enum roce_verdict roce_decode_split(const uint8_t *headers, size_t count,
                                             const uint8_t *payload, size_t padded_bytes,
                                             struct roce_packet *packet);

/* Encodes BTH and extended headers (not the payload) into `out`, which has room for
 * ROCE_HEADERS_BYTES_MAX. Returns the number of bytes written. The opcode must be a queue pair's. A
 * field is cut to its width on the wire, so a value too wide never reaches its neighbour. */
size_t roce_encode_headers(const struct roce_packet *packet, uint8_t *out);

/* A probe between two ports (drivers/udp/udp_flow.c), or its answer, which repeats the probe's
 * fields. */
#define ROCE_PROBE_BYTES (ROCE_BTH_BYTES + 8 + 2 + 2)
struct roce_probe {
    uint8_t opcode;           /* ROCE_OPCODE_PROBE, ROCE_OPCODE_ANSWER. */
    uint32_t destination_qpn; /* Leads to a process of those that share an address. */
    uint64_t sent;            /* The bytes that were sent before the probe. */
    uint16_t link_slot;       /* The process that the sender's link leads to. */
    uint16_t sender_slot;     /* The sender's process. */
};

void roce_probe_encode(const struct roce_probe *probe, uint8_t out[ROCE_PROBE_BYTES]);
/* False: not a probe or an answer, or not as long as one. Nothing else of the BTH is judged. */
MUST_USE bool roce_probe_decode(const uint8_t *bytes, size_t count, struct roce_probe *probe);

/* The pad that `payload_bytes` needs: 0..3. */
static inline uint8_t roce_pad_bytes(uint32_t payload_bytes)
{
    return (uint8_t)(-payload_bytes & 3u);
}

/* AETH syndromes (IBTA 9.7.5.2.1, table 47): kind in bits 6..5, value in bits 4..0. */
enum roce_aeth_kind {
    ROCE_AETH_ACK = 0x00,
    ROCE_AETH_RNR_NAK = 0x20,
    ROCE_AETH_NAK = 0x60,
    ROCE_AETH_KIND_MASK = 0xe0,
    ROCE_AETH_VALUE_MASK = 0x1f,
};

/* "Credit count not valid": the responder does not limit. */
#define ROCE_AETH_CREDITS_UNLIMITED 0x1f

enum roce_nak {
    ROCE_NAK_PSN_SEQUENCE = 0x60,
    ROCE_NAK_INVALID_REQUEST = 0x61,
    ROCE_NAK_REMOTE_ACCESS = 0x62,
    ROCE_NAK_REMOTE_OPERATIONAL = 0x63,
};

#endif
