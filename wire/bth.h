/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bth - the bits of the base transport header, with which RoCE's and the block transport's packets
 * begin alike (IBTA 9.2).
 */
#ifndef WIRE_BTH_H
#define WIRE_BTH_H

#include <stdint.h>

#include "base/bytes.h"
#include "wire/roce.h"

enum {
    BTH_SOLICITED = 0x80, /* Byte 1. */
    BTH_MIGRATION_REQUEST = 0x40,
    BTH_PAD_SHIFT = 4,
    BTH_PAD_MASK = 3,
    BTH_VERSION_MASK = 0x0f,
    BTH_ACK_REQUEST = 0x80, /* Byte 8. */
};

/* A 24-bit field shares a 32-bit word with the byte before it. */
static inline uint32_t load_24(const uint8_t *word)
{
    return load_be32(word) & ROCE_24_BITS;
}

static inline void store_8_24(uint8_t *word, uint8_t first, uint32_t value)
{
    store_be32(word, (uint32_t)first << 24 | (value & ROCE_24_BITS));
}

static inline uint8_t bth_pad(const uint8_t *bth)
{
    return bth[1] >> BTH_PAD_SHIFT & BTH_PAD_MASK;
}

#endif
