/* SPDX-License-Identifier: BSD-2-Clause
 *
 * box_address - the addresses of a machine's nodes (`nonic repeat --machine`).
 *
 * Node N has 10.77.H.L, where H and L are the two bytes of N + 1. That is the GID of its first NIC,
 * and its further ones have 10.78.H.L and so on. All of them are IPv4's, mapped.
 */
#ifndef BASE_BOX_ADDRESS_H
#define BASE_BOX_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    BOX_NETWORK = 0x0a4d,    /* 10.77 */
    BOX_FUNCTIONS_MAX = 128, /* NICs of a node */
    BOX_NODES_MAX = 0xfffe,  /* that have addresses */
};

static inline void box_address(uint32_t node, uint32_t function, uint8_t address[16])
{
    memset(address, 0, 10);
    address[10] = address[11] = 0xff;
    store_be16(address + 12, (uint16_t)(BOX_NETWORK + function));
    store_be16(address + 14, (uint16_t)(node + 1));
}

/* False: it is none of a node. */
static inline bool box_address_read(const uint8_t address[16], uint32_t *node, uint32_t *function)
{
    uint8_t expected[16];
    *function = load_be16(address + 12) - (uint32_t)BOX_NETWORK;
    *node = load_be16(address + 14) - 1u;
    if (*function >= BOX_FUNCTIONS_MAX || *node >= BOX_NODES_MAX) {
        return false;
    }
    box_address(*node, *function, expected);
    return memcmp(address, expected, sizeof(expected)) == 0;
}

#endif
