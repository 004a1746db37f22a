/* SPDX-License-Identifier: BSD-2-Clause
 *
 * exanest - the formats of ExaNeSt's RDMA engine: packets, descriptors, responses, requests.
 *
 * Purpose    Between fields and the 128-bit words of the datapath, or the 64-bit words of software.
 * Inputs     Words as they stand on the wires, or in memory that software writes.
 * Outputs    Fields, or a verdict that names what is wrong.
 * Units      Bytes; a word is 16 of them. Byte k of a word is bits 8k+7..8k.
 * Limits     EXANEST_PAYLOAD_BYTES_MAX a packet, EXANEST_BLOCK_BYTES_MAX a block.
 * Source     Xirouchakis 3 (addresses, packets), 4.1 (errors), 5.2 (descriptors). Where it is
 *            silent or contradicts itself, all is our choice: the places of the bits, too, but for
 *            those of descriptors and of global virtual addresses.
 */
#ifndef WIRE_EXANEST_H
#define WIRE_EXANEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define EXANEST_WORD_BYTES        16u
#define EXANEST_PAYLOAD_BYTES_MAX 256u
#define EXANEST_PAYLOAD_WORDS_MAX 16u
#define EXANEST_PACKET_WORDS_MAX  (EXANEST_PAYLOAD_WORDS_MAX + 2) /* With header and footer. */
#define EXANEST_BLOCK_BYTES_MAX   16384u
#define EXANEST_BLOCK_PACKETS_MAX (EXANEST_BLOCK_BYTES_MAX / EXANEST_PAYLOAD_BYTES_MAX)
#define EXANEST_TIDS              1024u /* Transaction identifiers: 10 bits. */
#define EXANEST_SEQUENCES         0x4000u
#define EXANEST_PATHS_MAX         32u

/* 128 bits: bits 63..0 and 127..64. */
struct exanest_word {
    uint64_t low, high;
};

/* -- Places -------------------------------------------------------------------------------------*/

/* A node's coordinate: a QFDB of the torus, and one of its four FPGAs, 0 = F1 .. 3 = F4. */
struct exanest_place {
    uint8_t x, y, z; /* 7, 7 and 6 bits. */
    uint8_t fpga;
};

#define EXANEST_COORDINATE_BITS 22
#define EXANEST_VA_BITS         42

uint32_t exanest_coordinate(struct exanest_place place);
struct exanest_place exanest_place(uint32_t coordinate);

/* Coordinate and virtual address in 64 bits: with a PDID, a global virtual address. */
struct exanest_target {
    uint32_t coordinate;
    uint64_t va;
};

static inline uint64_t exanest_target_encode(struct exanest_target target)
{
    return (uint64_t)target.coordinate << EXANEST_VA_BITS |
           (target.va & ((UINT64_C(1) << EXANEST_VA_BITS) - 1));
}

static inline struct exanest_target exanest_target_decode(uint64_t word)
{
    return (struct exanest_target){
        .coordinate = (uint32_t)(word >> EXANEST_VA_BITS),
        .va = word & ((UINT64_C(1) << EXANEST_VA_BITS) - 1),
    };
}

/* The device behind addresses whose bits 41..39 are all 1, by bits 38..32. */
enum exanest_peripheral {
    EXANEST_RT_RESPONSES = 0,
    EXANEST_RT_READ_REQUESTS = 1,
    EXANEST_SYSTEM_MAILBOXES = 2, /* Bits 31..16 of the address: which queue. */
    EXANEST_PACKETIZER = 3,       /* Takes acknowledgements. */
    EXANEST_RECEIVER_DEBUG = 4,
    EXANEST_ZDMA = 5,
    EXANEST_ACCELERATORS = 6, /* And those above. */
};

static inline bool exanest_va_is_peripheral(uint64_t va)
{
    return (va >> 39 & 7) == 7;
}

static inline uint32_t exanest_va_peripheral(uint64_t va)
{
    return (uint32_t)(va >> 32) & 0x7f;
}

static inline uint64_t exanest_peripheral_va(enum exanest_peripheral peripheral, uint32_t low)
{
    return UINT64_C(7) << 39 | (uint64_t)peripheral << 32 | low;
}

/* -- Packets ------------------------------------------------------------------------------------*/

/* The codes are the numbers of the document's list. */
enum exanest_type {
    EXANEST_WRITE = 1,
    EXANEST_READ_REQUEST = 2,
    EXANEST_CONTROL = 3,
    EXANEST_NOTIFICATION = 4,
    EXANEST_ZDMA_READ = 5,
    EXANEST_ZDMA_WRITE = 6,
    EXANEST_ZDMA_RESPONSE = 7,
    EXANEST_ACKNOWLEDGEMENT = 8,
    EXANEST_RELEASE = 9,
    EXANEST_FLOW_RATE = 10,
};

/* The status in an acknowledgement. */
enum exanest_status {
    EXANEST_ACK = 0,
    EXANEST_NACK_PAGE_FAULT = 1, /* At the destination. */
    EXANEST_NACK_NO_CONTEXT = 2,
    EXANEST_NACK_CRC = 3,
    EXANEST_NACK_DECODE = 4, /* AXI decode error. */
    EXANEST_NACK_FULL = 5,   /* The mailbox is. */
    EXANEST_STATUS_COUNT,
};

/* A header word. */
struct exanest_header {
    struct exanest_target target;
    uint16_t pdid;
    uint8_t type;    /* enum exanest_type. */
    uint16_t bytes;  /* The payload: 0..256. */
    bool has_footer; /* Packets without one have no payload either. */
    bool priority;   /* Control packets and responses. */
    uint8_t channel; /* The virtual channel: 2 bits. */
    uint16_t
        aux; /* 14 bits: the sequence; without a footer: status (13..10) and what for (9..0). */
};

/* A footer word. */
struct exanest_footer {
    uint32_t payload_crc; /* 0 without payload. */
    uint16_t tid;
    uint32_t source; /* The coordinate of the sender. */
    uint16_t sequence;
    bool first, last, notify;
    uint8_t path;   /* 5 bits. */
    uint8_t status; /* enum exanest_status, in responses. */
};

enum exanest_verdict {
    EXANEST_GOOD,
    EXANEST_WRONG_EDC,     /* The header's error code. */
    EXANEST_WRONG_CRC8,    /* The footer's. */
    EXANEST_UNKNOWN_TYPE,  /* Not one of enum exanest_type. */
    EXANEST_WRONG_LENGTH,  /* More than 256 bytes, or more than 16 words, or no footer. */
    EXANEST_RESERVED_BITS, /* Bits that are to be 0 are not. */
    EXANEST_VERDICT_COUNT,
};

const char *exanest_verdict_name(enum exanest_verdict verdict);

/* Words of payload: the 16-byte lines that the bytes touch at the target's place. */
static inline uint32_t exanest_payload_words(uint64_t va, uint32_t bytes)
{
    return bytes == 0 ? 0
                      : (uint32_t)((va % EXANEST_WORD_BYTES) + bytes + EXANEST_WORD_BYTES - 1) /
                            EXANEST_WORD_BYTES;
}

/* Header, payload and footer together. */
static inline uint32_t exanest_packet_words(const struct exanest_header *header)
{
    return 1 + exanest_payload_words(header->target.va, header->bytes) + header->has_footer;
}

/* The header's fields must be within their limits; the error code is added. */
struct exanest_word exanest_header_encode(const struct exanest_header *header);
/* Writes *header only when the answer is EXANEST_GOOD. The error code is judged first. */
MUST_USE enum exanest_verdict exanest_header_decode(struct exanest_word word,
                                                    struct exanest_header *header);

/* CRC-32C of payload words as they are sent, pad lanes included. Starts at 0, can be continued. */
uint32_t exanest_payload_crc(uint32_t crc, struct exanest_word word);

/* The footer's CRC-8 is added. Decoding does not judge the payload's CRC: the code that sums the
 * payload does. */
struct exanest_word exanest_footer_encode(const struct exanest_footer *footer);
MUST_USE enum exanest_verdict exanest_footer_decode(struct exanest_word word,
                                                    struct exanest_footer *footer);

/* The value of `aux` in a packet without footer. */
static inline uint16_t exanest_aux(enum exanest_status status, uint32_t channel)
{
    return (uint16_t)((uint32_t)status << 10 | (channel & 0x3ff));
}

/* `count` bytes of two of the three codes (wire/crc32c.h); the first call starts at 0, CRC-16 at
 * 0xffff. */
uint16_t exanest_crc16(uint16_t crc, const uint8_t *bytes, size_t count);
uint8_t exanest_crc8(uint8_t crc, const uint8_t *bytes, size_t count);

/* -- Words between software and the send unit ---------------------------------------------------*/

/* A transaction descriptor. */
struct exanest_descriptor {
    uint64_t source;              /* W1: virtual address, any alignment. */
    struct exanest_target target; /* W2. */
    bool waits;                   /* W3: DB; another transaction will enqueue this one. */
    bool error;                   /* The source could not be read. */
    bool notify;
    bool no_first;      /* A part of a block, without its first packet, */
    bool no_last;       /* without its last one: our use of the two bits that have none. */
    bool acked;         /* Reserved. */
    bool done;          /* All packets were sent. */
    uint16_t sent;      /* Bytes: 0..16384. */
    uint16_t successor; /* "Dependency ID": the TID that is enqueued behind this one, if chained. */
    bool chained;
    uint16_t bytes; /* 1..16384. */
    uint16_t pdid;
    uint16_t sequence; /* W4. */
    uint8_t path;
};

#define EXANEST_DESCRIPTOR_WORDS 4 /* W1 to W4, 64 bits each. */

void exanest_descriptor_encode(const struct exanest_descriptor *descriptor,
                               uint64_t words[EXANEST_DESCRIPTOR_WORDS]);
/* Takes any bits: the send unit has to cope with all values that software stores. */
struct exanest_descriptor exanest_descriptor_decode(const uint64_t words[EXANEST_DESCRIPTOR_WORDS]);

/* The payload of a control packet: three words that software stores, and the word that hardware
 * adds. */
struct exanest_control {
    struct exanest_target address; /* The notification's. */
    uint64_t data[2];              /* The notification. */
    uint16_t tid, sequence, bytes; /* The transaction's. */
};

void exanest_control_encode(const struct exanest_control *control, struct exanest_word words[2]);
struct exanest_control exanest_control_decode(const struct exanest_word words[2]);

/* -- Words that the R5 reads --------------------------------------------------------------------*/

/* A word of the RT mailbox's response FIFO. */
struct exanest_response {
    bool valid;
    bool requests_wait; /* The other FIFO is not empty. */
    uint8_t status;     /* enum exanest_status. */
    uint16_t tid, sequence;
};

uint32_t exanest_response_encode(const struct exanest_response *response);
struct exanest_response exanest_response_decode(uint32_t word);

/* A read request: three words of payload. The mailbox overwrites the fields that a user
 * could forge. */
#define EXANEST_READ_REQUEST_WORDS 3
struct exanest_read_request {
    uint64_t source;               /* At the owner. */
    struct exanest_target target;  /* At the requester. */
    struct exanest_target address; /* The notification's. */
    uint64_t data;                 /* The notification. */
    uint32_t bytes, request_id;
    uint16_t pdid;       /* Made by the mailbox: the header's. */
    uint32_t coordinate; /* ... the footer's source. */
    uint16_t channel;    /* ... the footer's TID: the packetizer's channel. */
};

void exanest_read_request_encode(const struct exanest_read_request *request,
                                 struct exanest_word words[EXANEST_READ_REQUEST_WORDS]);
struct exanest_read_request exanest_read_request_decode(
    const struct exanest_word words[EXANEST_READ_REQUEST_WORDS]);

/* -- Transfers that a program posts -------------------------------------------------------------*/

enum exanest_transfer_state {
    EXANEST_TRANSFER_FREE,
    EXANEST_TRANSFER_POSTED,
    EXANEST_TRANSFER_ACTIVE,
    EXANEST_TRANSFER_DONE,
    EXANEST_TRANSFER_ERROR,
};

/* A transfer descriptor of the scratchpad: 64 bytes. */
#define EXANEST_TRANSFER_WORDS 8
struct exanest_transfer {
    uint64_t source;
    struct exanest_target target;
    uint32_t bytes; /* Not 0. */
    bool notify, read, chain;
    uint8_t path;
    uint16_t state;                /* enum exanest_transfer_state. */
    struct exanest_target address; /* The notification's. */
    uint64_t data[2];
    uint32_t acked; /* Bytes. */
    uint16_t retransmissions, last_status;
    uint64_t doorbell; /* Bit 0: valid; above it a generation. Written last. */
};

void exanest_transfer_encode(const struct exanest_transfer *transfer,
                             uint64_t words[EXANEST_TRANSFER_WORDS]);
/* Reserved bits are ignored: the driver's users write them. */
struct exanest_transfer exanest_transfer_decode(const uint64_t words[EXANEST_TRANSFER_WORDS]);

#endif
