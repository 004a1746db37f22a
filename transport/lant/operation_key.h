/* SPDX-License-Identifier: BSD-2-Clause
 *
 * operation_key - an RDMA operation as its receiver knows it.
 *
 * Purpose    One number for an operation: which source, and which of its operations; a hash of it.
 * Inputs     The source's node, the operation's 20 bits (lant_operation_of).
 * Outputs    42 bits, and a number for tables.
 * Units      Bits.
 * Limits     Tables of up to 2^32.
 * Source     Our choice: the thesis compares source and address alone (6.2.1).
 */
#ifndef TRANSPORT_LANT_OPERATION_KEY_H
#define TRANSPORT_LANT_OPERATION_KEY_H

#include <stdint.h>

#include "transport/lant/ticks.h"
#include "wire/lant.h"

#define LANT_OPERATION_IDS (1u << 20)

static inline uint64_t lant_operation_key(uint32_t source, uint32_t operation)
{
    CHECK(source < LANT_NODES_MAX && operation < LANT_OPERATION_IDS);
    return (uint64_t)source << 20 | operation;
}

/* Below 2^bits; `bits` is 1 to 32. */
static inline uint32_t lant_operation_hash(uint64_t key, uint32_t bits)
{
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

#endif
