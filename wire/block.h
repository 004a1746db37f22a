/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block - the packets of the block transport: bytes <-> one struct.
 *
 * Purpose    Decodes the bytes behind the UDP header, up to but not including the ICRC, encodes
 *            them, and says whether the fields of a packet agree with each other.
 * Inputs     block_decode, block_encode, block_judge; block_is chooses between this and roce.h.
 * Outputs    A verdict that names what is wrong with bytes nobody should trust.
 * Ownership  A decoded packet points into the bytes it was decoded from.
 * Time       Not used; an answer says how long its echo was held.
 * Units      Bytes; BN and RN are 32 bits wide, QPNs and TSNs 24. TSNs have PSNs' arithmetic
 *            (transport/common/psn.h).
 * Limits     Payload of one packet at most ROCE_PAYLOAD_BYTES_MAX, headers BLOCK_HEADERS_BYTES_MAX.
 * Source     docs/block-transport.md; the BTH is IBTA's (Vol. 1, 9.2).
 */
#ifndef WIRE_BLOCK_H
#define WIRE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/roce.h"

#define BLOCK_BXH_BYTES    16 /* Which packet of which block of which message. */
#define BLOCK_SXH_BYTES    12 /* SEND. */
#define BLOCK_WXH_BYTES    24 /* WRITE. */
#define BLOCK_RXH_BYTES    24 /* READ. */
#define BLOCK_AXH_BYTES    32 /* Atomic. */
#define BLOCK_ANH_BYTES    24 /* Answer, in front of its records. */
#define BLOCK_RECORD_BYTES 16
#define BLOCK_HXH_BYTES    32 /* HELLO and WELCOME, in front of their GIDs. */
#define BLOCK_CXH_BYTES    12 /* CHALLENGE and RESPONSE. */
#define BLOCK_GID_BYTES    16

#define BLOCK_RECORDS_MAX     4
#define BLOCK_GIDS_MAX        3
#define BLOCK_POSITIONS       64   /* Packets of a block. */
#define BLOCK_WINDOW_MAX      1024 /* Blocks that may be under way. */
#define BLOCK_PATHS_MAX       16
#define BLOCK_VERSION         1
#define BLOCK_RNR_CODES       32 /* The codes of ibv_qp_attr.min_rnr_timer. */
#define BLOCK_MTU_CODE_LEAST  1  /* enum ibv_mtu: 256 bytes, */
#define BLOCK_MTU_CODE_MAX    5  /* 4096 bytes. */
#define BLOCK_MTU_BYTES(code) (128u << (code))
#define BLOCK_PAYLOAD_STEP    64 /* A payload beyond the MTU is a multiple of this. */

/* The longest headers: an answer with all its records; with payload: a WRITE's. */
#define BLOCK_HEADERS_BYTES_MAX                                                                    \
    (ROCE_BTH_BYTES + BLOCK_ANH_BYTES + BLOCK_RECORDS_MAX * BLOCK_RECORD_BYTES)
#define BLOCK_PAYLOAD_HEADERS_BYTES_MAX (ROCE_BTH_BYTES + BLOCK_BXH_BYTES + BLOCK_WXH_BYTES)
/* A HELLO or WELCOME whose payload_bytes are not 0: zeroes behind its headers. */
#define BLOCK_GREETING_ZEROES(payload_bytes)                                                       \
    ((uint32_t)(BLOCK_PAYLOAD_HEADERS_BYTES_MAX - ROCE_BTH_BYTES - BLOCK_HXH_BYTES) +              \
     (payload_bytes))
/* All headers, payload and ICRC: longer than RoCEv2's packets. */
#define BLOCK_PACKET_BYTES_MAX                                                                     \
    (BLOCK_PAYLOAD_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX + ROCE_ICRC_BYTES)

/* X(name, number, text, bytes between the BTH and what may repeat) */
/* clang-format off */
#define BLOCK_OPCODES(X)                                                                           \
    X(SEND, 0xc4, "block SEND", BLOCK_BXH_BYTES + BLOCK_SXH_BYTES)                                 \
    X(WRITE, 0xc5, "block WRITE", BLOCK_BXH_BYTES + BLOCK_WXH_BYTES)                               \
    X(READ, 0xc6, "block READ", BLOCK_BXH_BYTES + BLOCK_RXH_BYTES)                                 \
    X(ATOMIC, 0xc7, "block Atomic", BLOCK_BXH_BYTES + BLOCK_AXH_BYTES)                             \
    /* The data that a READ or an atomic asked for. */                                             \
    X(DATA, 0xc8, "block Data", BLOCK_BXH_BYTES)                                                   \
    X(ANSWER, 0xc9, "block Answer", BLOCK_ANH_BYTES)                                               \
    X(PROBE, 0xca, "block Probe", BLOCK_BXH_BYTES)                                                 \
    X(HELLO, 0xcb, "block HELLO", BLOCK_HXH_BYTES)                                                 \
    X(WELCOME, 0xcc, "block WELCOME", BLOCK_HXH_BYTES)                                             \
    /* Does the peer receive at this address? Its response repeats the number. */                  \
    X(CHALLENGE, 0xcd, "block CHALLENGE", BLOCK_CXH_BYTES)                                         \
    X(RESPONSE, 0xce, "block RESPONSE", BLOCK_CXH_BYTES)
/* clang-format on */

#define BLOCK_NUMBER(name, number, text, bytes) BLOCK_##name = (number),
enum block_opcode {
    BLOCK_OPCODES(BLOCK_NUMBER)
};

#define BLOCK_OPCODE_FIRST BLOCK_SEND
#define BLOCK_OPCODE_LAST  BLOCK_RESPONSE

/* Is this an opcode of the block transport? */
static inline bool block_is(uint8_t opcode)
{
    return (uint8_t)(opcode - BLOCK_OPCODE_FIRST) <= BLOCK_OPCODE_LAST - BLOCK_OPCODE_FIRST;
}

/* NULL if the opcode is not one of the block transport. */
const char *block_opcode_name(uint8_t opcode);

enum block_atomic_kind {
    BLOCK_COMPARE_SWAP,
    BLOCK_FETCH_ADD,
    BLOCK_ATOMIC_WRITE,
    BLOCK_ATOMIC_KIND_COUNT,
};

/* The status of the message to which block base belongs. */
enum block_status {
    BLOCK_STATUS_NONE,
    BLOCK_STATUS_RNR,
    BLOCK_STATUS_INVALID_REQUEST,
    BLOCK_STATUS_ACCESS,
    BLOCK_STATUS_OPERATIONAL,
    BLOCK_STATUS_COUNT,
};

enum block_state {
    BLOCK_STATE_INCOMPLETE, /* The bitmap says which positions have come. */
    BLOCK_STATE_NO_CONTEXT, /* There was no room for the block. */
    BLOCK_STATE_ORDER,      /* Not to be re-sent before base has reached its message. */
    BLOCK_STATE_RUN,        /* The bitmap is a count of blocks, from this one on, not known. */
    BLOCK_STATE_REFUSED,    /* A READ whose data may not be read. */
    BLOCK_STATE_COUNT,
};

/* The report of one block in an answer. */
struct block_record {
    uint32_t number; /* BN. */
    uint8_t round;   /* The last one seen. */
    uint8_t state;   /* enum block_state. */
    uint64_t bitmap; /* Bit p: position p. */
};

struct block_answer {
    uint32_t base;
    uint32_t receive_limit;
    bool more;       /* Only blocks below the last record are described. */
    bool limit_void; /* receive_limit says nothing, */
    bool echo_void;  /* nor echo_path, echo_tsn and echo_delay_ns. */
    bool answers_probe;
    uint8_t echo_path;
    uint32_t echo_tsn;
    uint32_t echo_delay_ns;
    uint8_t status;    /* enum block_status. */
    uint8_t rnr_code;  /* Below BLOCK_RNR_CODES; counts with BLOCK_STATUS_RNR only. */
    uint8_t ce_marked; /* Since the last answer, on echo_path; both counts stop at 255. */
    uint8_t duplicates;
    uint8_t record_count;
    struct block_record records[BLOCK_RECORDS_MAX];
};

/* HELLO: the requester's values; WELCOME: the smaller of both sides' values. A WELCOME with a
 * window of 0 refuses. */
struct block_hello {
    uint8_t gid_count;
    bool shared_receives; /* The sender's queue pair has a shared receive queue. */
    uint8_t mtu_code;     /* enum ibv_mtu. */
    uint8_t paths;
    uint8_t
        reads; /* READs and atomics at a time: asked by HELLO's sender, answered by WELCOME's. */
    uint32_t nonce;    /* The session, if the responder agrees. */
    uint32_t next_psn; /* The requester's next one in RC. */
    uint32_t sender_qpn;
    uint16_t window;     /* In blocks. */
    uint16_t read_queue; /* READ blocks that may be asked for and not complete. */
    /* A packet's payload, if it is more than the MTU; 0: the MTU. More: zeroes make the datagram as
     * long as the stream's longest, so that it comes where those will, and no GIDs follow. */
    uint16_t payload_bytes;
    uint8_t gids[BLOCK_GIDS_MAX][BLOCK_GID_BYTES];
};

/* One packet. Fields of headers that the opcode does not have are left unset. Values are in host
 * order, except `tag`. Every packet may have SE and A; they count where they mean something. */
struct block_packet {
    uint8_t opcode; /* enum block_opcode. */
    bool solicited;
    bool ack_request; /* A: an answer is wanted. */
    uint32_t destination_qpn;
    uint32_t tsn; /* In an answer: the number of answers of this stream before it. */

    /* BXH, CXH, the answer's header: */
    uint32_t session;
    /* BXH: */
    uint32_t number; /* BN. */
    uint32_t index;  /* The number of blocks of its message before this one. */
    uint8_t position;
    uint8_t last_position;
    bool last_block;    /* M. */
    bool early;         /* D: may be placed before all that precedes it has been. */
    bool has_immediate; /* T. */
    bool invalidates;   /* K. */
    bool resent;        /* R. */
    uint8_t path;
    uint8_t round;

    uint64_t address;        /* WRITE and READ: of the message's first byte; atomic. */
    uint32_t key;            /* Likewise. */
    uint32_t message_bytes;  /* SEND, WRITE, READ. */
    uint32_t receive_number; /* RN. SEND, WRITE. */
    uint32_t tag;            /* Likewise: 4 bytes as on the wire, see block_invalidate_key. */

    union {
        uint64_t wanted; /* READ: bit p for position p. */
        struct {
            uint32_t kind; /* enum block_atomic_kind. */
            uint64_t swap_or_add;
            uint64_t compare;
        } atomic;
        struct block_answer answer;
        struct block_hello hello; /* And WELCOME. */
        uint64_t challenge;       /* And RESPONSE. */
    };

    const uint8_t *payload; /* NULL if payload_bytes is 0 or the payload travels elsewhere. */
    uint32_t payload_bytes; /* Without pad. */
};

/* Programs choose the byte order of immediate data, so a tag is kept as the 4 bytes on the wire. A
 * key is a number. */
static inline uint32_t block_invalidate_key(const struct block_packet *packet)
{
    return load_be32(&packet->tag);
}

static inline void block_set_invalidate_key(struct block_packet *packet, uint32_t key)
{
    store_be32(&packet->tag, key);
}

/* Why bytes are not a packet. */
enum block_verdict {
    BLOCK_GOOD,
    BLOCK_SHORT,          /* Fewer bytes than the headers of its opcode need. */
    BLOCK_UNKNOWN_OPCODE, /* Not one of the block transport's. */
    BLOCK_WRONG_VERSION,  /* The BTH's TVer is not 0. */
    BLOCK_WRONG_PKEY,     /* Not the default one. */
    BLOCK_WRONG_PAD,      /* Pad longer than the payload, or total not a multiple of 4. */
    BLOCK_TOO_LONG,       /* Payload above ROCE_PAYLOAD_BYTES_MAX, or on an opcode that has none. */
    BLOCK_WRONG_COUNT,    /* Not whole records or GIDs, or more, or others than the header says. */
    BLOCK_RESERVED_BITS,  /* Bits that are to be 0 are not, */
    BLOCK_UNKNOWN_FLAGS,  /* or those beside the flags of BXH, of HELLO, of WELCOME. */
    BLOCK_UNKNOWN_VALUE,  /* An unknown status or state, or an RNR timer code that is none. */
    BLOCK_OTHER_VERSION,  /* HELLO or WELCOME of another version of the block transport. */
    BLOCK_VERDICT_COUNT,
};

const char *block_verdict_name(enum block_verdict verdict);

/* Decodes a packet. Without a separate `payload` (NULL), `headers` holds all of it, up to the ICRC,
 * and padded_bytes is not looked at. Else `headers` holds exactly the headers, and padded_bytes of
 * payload with pad are elsewhere; they are not read. Writes *packet only when the answer is
 * BLOCK_GOOD. block_judge judges the packet's fields. */
MUST_USE enum block_verdict block_decode(const uint8_t *headers, size_t headers_bytes,
                                         const uint8_t *payload, size_t padded_bytes,
                                         struct block_packet *packet);

/* Encodes all but the payload into `out`, which has room for BLOCK_HEADERS_BYTES_MAX, with the pad
 * that payload_bytes needs. Returns the number of bytes written. A field is cut to its width on the
 * wire, so a value too wide never reaches its neighbour. */
size_t block_encode(const struct block_packet *packet, uint8_t *out);

/* How a packet contradicts itself. */
enum block_judgement {
    BLOCK_CONSISTENT,
    BLOCK_WRONG_POSITION, /* Behind the block's last one, or not 0 where there is only one. */
    BLOCK_WRONG_LAST,     /* M or the last position do not follow from the message's length. */
    BLOCK_WRONG_INDEX,    /* The message has no such block. */
    BLOCK_WRONG_PAYLOAD,  /* As many bytes as that place of the message does not have. */
    BLOCK_WRONG_FLAGS,    /* A flag, or a round, where it means nothing. */
    BLOCK_WRONG_TAG,      /* A tag or T or K not in the last packet, T with K, K of a WRITE. */
    BLOCK_WRONG_WANTED,   /* A READ of no position, or of one that the block does not have. */
    BLOCK_WRONG_KIND,     /* Not a kind of atomic. */
    BLOCK_WRONG_RECORD,   /* Not in BN order, or outside the window. */
    BLOCK_WRONG_OFFER,    /* HELLO, WELCOME: a window, a number of paths, an MTU that cannot be. */
    BLOCK_JUDGEMENT_COUNT,
};

const char *block_judgement_name(enum block_judgement judgement);

/* Judges a decoded packet by itself, given the stream's MTU. Whether it agrees with its block's
 * context is another question. Fields beside session, number, index and TSN are to be used only of
 * a consistent packet. */
MUST_USE enum block_judgement block_judge(const struct block_packet *packet, uint32_t mtu_bytes);

/* -- Numbers ------------------------------------------------------------------------------------
 * BN and RN wrap: half of the numbers are ahead of each, the other half behind it. */

/* How far `to` is ahead of `from`: -2^31 .. 2^31-1. */
static inline int32_t block_number_distance(uint32_t from, uint32_t to)
{
    return (int32_t)(to - from);
}

static inline bool block_number_before(uint32_t a, uint32_t b)
{
    return block_number_distance(b, a) < 0;
}

/* -- Places ------------------------------------------------------------------------------------ */

/* How many packets a message has: 1 .. 2^24. */
static inline uint32_t block_message_packets(uint32_t message_bytes, uint32_t mtu_bytes)
{
    return message_bytes == 0 ? 1
                              : (uint32_t)(((uint64_t)message_bytes + mtu_bytes - 1) / mtu_bytes);
}

static inline uint32_t block_message_blocks(uint32_t message_packets)
{
    return (message_packets + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS;
}

/* The last position of one of the message's blocks. */
static inline uint8_t block_last_position(uint32_t message_packets, uint32_t index)
{
    const uint32_t rest = message_packets - index * BLOCK_POSITIONS;
    return (uint8_t)((rest < BLOCK_POSITIONS ? rest : BLOCK_POSITIONS) - 1);
}

/* Where a packet's payload begins in its message. */
static inline uint64_t block_payload_offset(const struct block_packet *packet, uint32_t mtu_bytes)
{
    return ((uint64_t)packet->index * BLOCK_POSITIONS + packet->position) * mtu_bytes;
}

/* Is it the last packet of its message? */
static inline bool block_is_last(const struct block_packet *packet)
{
    return packet->last_block && packet->position == packet->last_position;
}

/* One bit for each position up to the last one. */
static inline uint64_t block_positions(uint8_t last_position)
{
    return UINT64_MAX >> (BLOCK_POSITIONS - 1 - last_position);
}

#endif
