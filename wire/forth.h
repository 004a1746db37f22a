/* SPDX-License-Identifier: BSD-2-Clause
 *
 * forth - the formats of FORTH's 2006 NIC: DMA requests, packet headers, credits, and their CRCs.
 *
 * Purpose    Between fields and the 64-bit words that queue, FIFO and link carry.
 * Inputs     Words, bit 63 first on the link.
 * Outputs    Fields, or a verdict that names what is wrong.
 * Units      Payload in QWords of 8 bytes.
 * Limits     FORTH_WORDS_MAX QWords a packet, FORTH_NODES nodes.
 * Source     TR376 3.1.3 (request), 3.1.5, 3.3 (header, CRCs), 3.3.1 (credit). Where it is silent
 *            or contradicts itself, all is our choice.
 */
#ifndef WIRE_FORTH_H
#define WIRE_FORTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define FORTH_WORDS_MAX 512 /* QWords of one operation: 4,096 bytes. */
#define FORTH_NODES     128

enum forth_verdict {
    FORTH_GOOD,
    FORTH_WRONG_LENGTH,  /* No words, or more than FORTH_WORDS_MAX. */
    FORTH_RESERVED_BITS, /* Bits that are to be 0 (or, in a header, bit 51: 1) are not. */
    FORTH_NOT_A_HEADER,  /* Bit 63 says that this is a credit. */
    FORTH_NOT_A_CREDIT,  /* Bit 15 says that this is a header. */
    FORTH_WRONG_PARITY,
    FORTH_VERDICT_COUNT,
};

/* The notifications that an operation asks for; its packets carry them along. */
struct forth_flags {
    bool remote_notification;
    bool local_notification;
    bool remote_interrupt;
};

/* An entry of the DMA request queue. */
struct forth_request {
    uint64_t source;      /* PCI address. */
    uint32_t destination; /* PCI address at the receiver: below 4 GB. */
    uint16_t words;       /* 1..FORTH_WORDS_MAX. */
    uint8_t node;         /* Destination, below FORTH_NODES; its place is our choice. */
    bool start;           /* Releases everything up to and including this request. */
    struct forth_flags flags;
};

/* The two QWords of a request whose fields are within their limits. */
void forth_request_encode(const struct forth_request *request, uint64_t words[2]);
/* Writes *request only when the answer is FORTH_GOOD. */
MUST_USE enum forth_verdict forth_request_decode(const uint64_t words[2],
                                                 struct forth_request *request);

/* A packet's header. */
struct forth_header {
    uint8_t node;
    uint16_t words;
    uint32_t destination;
    struct forth_flags flags;
};

uint64_t forth_header_encode(const struct forth_header *header);
MUST_USE enum forth_verdict forth_header_decode(uint64_t word, struct forth_header *header);

/* x^16 + x^12 + x^5 + 1 from all ones, bit 63 first. */
uint16_t forth_header_crc(uint64_t header);

/* Do header and CRC differ in one bit from a pair that fits? Then *header becomes the one that was
 * sent. The code tells two flipped bits from one. This serves accounting only: such a packet is not
 * delivered. */
bool forth_header_repair(uint64_t *header, uint16_t crc);

/* CRC-32 of Ethernet's polynomial from all ones, first byte's first bit first, neither reflected
 * nor complemented, which is our choice. Starts at FORTH_BODY_CRC_BEGIN and can be continued. A
 * payload's bytes stand as on the link: the first of a QWord is its bits 63..56. */
#define FORTH_BODY_CRC_BEGIN 0xffffffffu
uint32_t forth_body_crc(uint32_t crc, const uint8_t *payload, size_t bytes);

/* A credit: bits 11..5 of the number of words of a flow that were ever taken out. */
struct forth_credit {
    uint8_t flow;  /* 7 bits. */
    uint8_t value; /* 7 bits. */
};

uint16_t forth_credit_encode(struct forth_credit credit);
MUST_USE enum forth_verdict forth_credit_decode(uint16_t word, struct forth_credit *credit);

#endif
