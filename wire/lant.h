/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lant - the packets of Lant's network interface.
 *
 * Purpose    Between fields and the 64-bit flits of a packet: two header flits (a third for keyhole
 *            packets), up to 64 of payload, two footer flits. Header and first footer flit each
 *            carry a SECDED code; a CRC covers the packet.
 * Inputs     Flits as they stand on the datapath; their bit 63 is sent first.
 * Outputs    Fields, or a verdict that names what is wrong.
 * Units      Flits of 8 bytes; bytes. Byte 0 of a payload flit, its bits 7..0, has the lowest
 *            address.
 * Limits     LANT_PAYLOAD_BYTES_MAX a packet, 2^22 nodes of 2^42 bytes each.
 * Source     Lant 3.3.2, Table 3.3 (types), 4.3, D. The document names most of the fields. Our
 *            choice: the places of all bits, the numbers of types and responses, both codes against
 *            errors.
 */
#ifndef WIRE_LANT_H
#define WIRE_LANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define LANT_FLIT_BYTES        8u
#define LANT_PAYLOAD_BYTES_MAX 512u
#define LANT_PAYLOAD_FLITS_MAX 64u
#define LANT_PACKET_FLITS_MIN  4u
#define LANT_PACKET_FLITS_MAX  (LANT_PAYLOAD_FLITS_MAX + 5u)
#define LANT_OFFSETS           (1u << 17) /* Packets of an operation: 64 MB. */
#define LANT_AGE_MAX           15u
#define LANT_RETRIES_MAX       7u /* TRY has 3 bits. */

/* -- Places -------------------------------------------------------------------------------------*/

#define LANT_NODE_BITS    22
#define LANT_NODES_MAX    (1u << LANT_NODE_BITS)
#define LANT_ADDRESS_BITS 42
#define LANT_ADDRESSES    (UINT64_C(1) << LANT_ADDRESS_BITS)

/* A node's number is where it stands (3.4.2): 8, 4 and 10 bits. */
struct lant_place {
    uint16_t cabinet, chassis, daughter;
};

static inline uint32_t lant_node(struct lant_place place)
{
    return (uint32_t)(place.cabinet & 0xff) << 14 | (uint32_t)(place.chassis & 0xf) << 10 |
           (place.daughter & 0x3ffu);
}

static inline struct lant_place lant_place(uint32_t node)
{
    return (struct lant_place){.cabinet = (uint16_t)(node >> 14 & 0xff),
                               .chassis = (uint16_t)(node >> 10 & 0xf),
                               .daughter = (uint16_t)(node & 0x3ff)};
}

/* A global address: the node above, its local address below. */
static inline uint64_t lant_global(uint32_t node, uint64_t address)
{
    return (uint64_t)node << LANT_ADDRESS_BITS | (address & (LANT_ADDRESSES - 1));
}

static inline uint32_t lant_global_node(uint64_t global)
{
    return (uint32_t)(global >> LANT_ADDRESS_BITS);
}

static inline uint64_t lant_global_address(uint64_t global)
{
    return global & (LANT_ADDRESSES - 1);
}

/* -- Packets ------------------------------------------------------------------------------------*/

/* Table 3.3. The other codes are reserved. */
enum lant_type {
    LANT_AR = 1, /* Load. */
    LANT_AW = 2, /* Store of one beat. */
    LANT_R = 3,  /* Answers to these. */
    LANT_B = 4,
    LANT_RDMA_WRITE = 5,          /* Belongs to a registered operation. */
    LANT_RDMA_WRITE_REGISTER = 6, /* Its first packet. */
    LANT_RDMA_UNREGISTERED = 7,
    LANT_RDMA_ACK = 8,                /* Answers 5, 6, 7 and 9; a NACK by its response. */
    LANT_COMPLETION_NOTIFICATION = 9, /* An operation that was not registered is complete. */
    LANT_ERROR_REPORT = 10,           /* From an accelerator, to the CPU in charge. */
    /* Not the document's: its future work (8.2.3). A machine without it answers DECERR. */
    LANT_ATOMIC = 11, /* Answered by R, with the old value of memory. */
    LANT_TYPE_COUNT,
};

/* The operation of an ATOMIC on 8 bytes of memory. Its first flit of payload is the operand. Its
 * second flit, of COMPARE_SWAP alone, is the value that memory has to hold. */
enum lant_atomic {
    LANT_NO_ATOMIC = 0,
    LANT_FETCH_ADD = 1,
    LANT_SWAP = 2,
    LANT_COMPARE_SWAP = 3,
};

/* In requests: LANT_OKAY. */
enum lant_response {
    LANT_OKAY = 0,
    LANT_EXOKAY = 1,
    LANT_SLVERR = 2,
    LANT_DECERR = 3,
    LANT_NACK_CRC = 4, /* The NACKs: the initiator tries again by itself. */
    LANT_NACK_LINK = 5,
    LANT_LOCKED = 6, /* Somebody else has the lock. */
    LANT_NACK_BUSY = 7,
};

static inline bool lant_response_is_nack(enum lant_response response)
{
    return response == LANT_NACK_CRC || response == LANT_NACK_LINK || response == LANT_NACK_BUSY;
}

/* The strobe of all bytes of an access of 2^size bytes, at most 8, that does not cross a beat. */
static inline uint8_t lant_strobe_of(uint32_t size, uint64_t address)
{
    return (uint8_t)(((1u << (1u << size)) - 1u) << (address & 7));
}

/* The bits of a beat whose bytes a strobe names. */
static inline uint64_t lant_strobe_bits(uint8_t strobe)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 8; i++) {
        bits |= strobe >> i & 1 ? UINT64_C(0xff) << 8 * i : 0;
    }
    return bits;
}

/* The table to which a transaction's row belongs. */
enum lant_class {
    LANT_CLASS_SHM = 0,
    LANT_CLASS_RDMA = 1,
    LANT_CLASS_NOTIFICATION = 2,
};

/* H1 and H2, and H3 if `extended`. */
struct lant_header {
    uint32_t destination; /* A node. */
    uint8_t type;         /* enum lant_type. */
    uint8_t payload;      /* Flits: 0..64. */
    uint16_t packets;     /* The operation's: 1..1024 in RDMA_WRITE_REGISTER. In ATOMIC the kind of
                           * change, enum lant_atomic. Else 0. */
    uint8_t age;          /* Hops so far; switches change it. */
    uint8_t epoch;        /* 2 bits. */
    uint8_t priority;     /* 2 bits: 0 is bulk. */
    bool lock;            /* An exclusive access. */
    bool keyhole;         /* All data of the operation go to one address. */
    bool extended;
    uint64_t address; /* Local to the destination, 42 bits; 0 in answers. */
    uint8_t strobe;   /* Bytes of the beat, or of the last flit of payload; 0 in answers. */
    uint8_t size;     /* Binary logarithm of the bytes a beat. */
    uint8_t protection;
    uint32_t sequence; /* H3: which packet of the keyhole, */
    uint32_t total;    /* of how many: 25 bits. */
};

/* F1 and F2. An answer repeats `class` to `attempt` of its request. */
struct lant_footer {
    uint32_t source;    /* The node that sent this packet. */
    uint8_t class;      /* enum lant_class. */
    uint16_t row;       /* 14 bits. */
    uint8_t response;   /* enum lant_response. */
    uint8_t generation; /* SHM: of the row. RDMA: upper bits of the operation's. */
    uint8_t bus_id;     /* The initiator's, on its bus (AXID). */
    uint16_t operation; /* 12 bits: slot (3..0), generation (11..4). SHM: upper bits of SEQ. */
    uint32_t offset;    /* 17 bits: in packets of 512 bytes. SHM: lower bits of SEQ. */
    uint8_t attempt;    /* 3 bits: 0 is the first. */
};

/* An operation is told apart by 20 bits: its number and the generation above. */
static inline uint32_t lant_operation_of(const struct lant_footer *footer)
{
    return (uint32_t)footer->generation << 12 | footer->operation;
}

/* An SHM request's number: 29 bits. */
#define LANT_SEQUENCES (1u << 29)

static inline uint32_t lant_sequence_of(const struct lant_footer *footer)
{
    return (uint32_t)footer->operation << 17 | footer->offset;
}

struct lant_packet {
    struct lant_header header;
    struct lant_footer footer;
    uint64_t payload[LANT_PAYLOAD_FLITS_MAX];
};

static inline uint32_t lant_packet_flits(const struct lant_header *header)
{
    return LANT_PACKET_FLITS_MIN + (header->extended ? 1 : 0) + header->payload;
}

/* Writes the packet with its codes; returns its flits. A value that exceeds a field's bits is our
 * error. */
uint32_t lant_encode(const struct lant_packet *packet, uint64_t flits[LANT_PACKET_FLITS_MAX]);

/* The verdict on a packet that came as `count` flits. */
enum lant_verdict {
    LANT_WHOLE,
    LANT_CRC_WRONG,    /* Header 2 or 3, payload or F2 is damaged; F1 is readable: a NACK. */
    LANT_TYPE_UNKNOWN, /* The CRC is right: DECERR. */
    /* From here on nobody can be answered. */
    LANT_SHORT,        /* Fewer flits than a packet has. */
    LANT_HEAD_DAMAGED, /* H1 is beyond repair. */
    LANT_LENGTH_WRONG, /* The payload exceeds 64 flits, or its length is not that of the header. */
    LANT_FOOT_DAMAGED, /* F1 is beyond repair. */
    LANT_MALFORMED,    /* The CRC is right, but not the fields: reserved bits, or the length that
                          the type does not have. */
    LANT_VERDICT_COUNT,
};

/* `repaired` counts the flits in which one bit was wrong, which is mended. With LANT_WHOLE all of
 * `packet` is good, with LANT_CRC_WRONG and LANT_TYPE_UNKNOWN its `footer` and the header's H1. But
 * with LANT_CRC_WRONG `operation`, `offset` and `attempt` may be damaged: then a NACK with them
 * matches nothing. */
MUST_USE enum lant_verdict lant_decode(const uint64_t *flits, uint32_t count,
                                       struct lant_packet *packet, uint32_t *repaired);

/* -- Codes --------------------------------------------------------------------------------------*/

enum lant_secded {
    LANT_CLEAN,
    LANT_REPAIRED,
    LANT_DAMAGED, /* Two bits, or more. */
};

/* The flit with its check bits, 6..0, which hold anything before: extended Hamming. */
uint64_t lant_secded(uint64_t flit);
/* Mends one wrong bit. */
enum lant_secded lant_secded_check(uint64_t *flit);

/* -- Flit by flit -------------------------------------------------------------------------------*/

/* The parts of a packet in their order: one flit each, but the body, which has the payload's; some
 * packets have no HEAD3, or no BODY. */
enum lant_part {
    LANT_HEAD1,
    LANT_HEAD2,
    LANT_HEAD3,
    LANT_BODY,
    LANT_FOOT1,
    LANT_FOOT2,
};

/* The part after a flit of `part`, if `left` flits of payload are still to come; not for FOOT2. */
static inline enum lant_part lant_part_next(const struct lant_header *header, enum lant_part part,
                                            uint32_t left)
{
    CHECK(part != LANT_FOOT2);
    if (part == LANT_HEAD1 || part == LANT_FOOT1) {
        return (enum lant_part)(part + 1);
    }
    if (part == LANT_HEAD2 && header->extended) {
        return LANT_HEAD3;
    }
    return left > 0 ? LANT_BODY : LANT_FOOT1;
}

#define LANT_CRC_START 0u

/* The CRC of the flits up to this one; `crc` is that of those before it. */
uint32_t lant_crc_flit(uint32_t crc, enum lant_part part, uint64_t flit);
/* The flit of any part but the body. FOOT2 needs the CRC of all flits before it. */
uint64_t lant_flit_encode(const struct lant_header *header, const struct lant_footer *footer,
                          enum lant_part part, uint32_t crc);
/* Adds the fields of H2 to the header. With LANT_DAMAGED, `header` is untouched. */
enum lant_secded lant_address_decode(uint64_t flit, struct lant_header *header);

/* -- For switches -------------------------------------------------------------------------------*/

/* Reads H1, which is all that routing needs. With LANT_DAMAGED, `header` is untouched. */
enum lant_secded lant_head_decode(uint64_t flit, struct lant_header *header);
/* H1, which is sound, one hop older; its age is below LANT_AGE_MAX. The CRC stays right. */
uint64_t lant_head_aged(uint64_t flit);

#endif
