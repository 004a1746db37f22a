/* SPDX-License-Identifier: BSD-2-Clause
 *
 * roce_plain - the BTH of most packets, as three words: of the default partition, with nothing in
 * the fields that nobody uses. roce.h has the general form; a test compares the two.
 *
 * Source     IBTA Vol. 1 chapter 9.2.
 */
#ifndef WIRE_ROCE_PLAIN_H
#define WIRE_ROCE_PLAIN_H

#include "base/bytes.h"
#include "wire/roce.h"

struct roce_plain {
    uint8_t opcode;
    uint8_t pad_bytes;
    bool solicited, ack_request;
    uint32_t destination_qpn, psn; /* 24 bits. */
};

/* Writes the ROCE_BTH_BYTES that roce_encode_headers writes for a packet that was migrated, as all
 * are. */
static inline void roce_plain_put(const struct roce_plain *plain, uint8_t *bth)
{
    const uint32_t first = (uint32_t)plain->opcode << 24 | (uint32_t)plain->solicited << 23 |
                           1u << 22 | (uint32_t)plain->pad_bytes << 20 | ROCE_DEFAULT_PKEY;
    store_be64(bth, (uint64_t)first << 32 | plain->destination_qpn);
    store_be32(bth + 8, (uint32_t)plain->ack_request << 31 | plain->psn);
}

/* Reads a BTH. False: another version, or another partition. */
static inline bool roce_plain_get(const uint8_t *bth, struct roce_plain *plain)
{
    enum {
        VERSION = 0x000f0000,
        PARTITION = 0x7fff, /* Without the bit of membership (A17.4.7). */
    };
    const uint32_t first = load_be32(bth), last = load_be32(bth + 8);
    *plain = (struct roce_plain){
        .opcode = (uint8_t)(first >> 24),
        .pad_bytes = first >> 20 & 3,
        .solicited = (first >> 23 & 1) != 0,
        .ack_request = last >> 31 != 0,
        .destination_qpn = load_be32(bth + 4) & ROCE_24_BITS,
        .psn = last & ROCE_24_BITS,
    };
    return (first & (VERSION | PARTITION)) == (ROCE_DEFAULT_PKEY & PARTITION);
}

#endif
