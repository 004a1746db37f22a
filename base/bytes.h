/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bytes - loads and stores in network order, and in little-endian order, at any alignment.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint16_t load_be16(const void *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof(value));
    return __builtin_bswap16(value);
}

static inline uint32_t load_be32(const void *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    return __builtin_bswap32(value);
}

static inline uint64_t load_be64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return __builtin_bswap64(value);
}

static inline uint16_t load_le16(const void *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static inline uint64_t load_le64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static inline uint32_t load_le32(const void *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static inline void store_be16(void *to, uint16_t value)
{
    value = __builtin_bswap16(value);
    memcpy(to, &value, sizeof(value));
}

static inline void store_be32(void *to, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(to, &value, sizeof(value));
}

static inline void store_be64(void *to, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(to, &value, sizeof(value));
}

static inline void store_le16(void *to, uint16_t value)
{
    memcpy(to, &value, sizeof(value));
}

static inline void store_le64(void *to, uint64_t value)
{
    memcpy(to, &value, sizeof(value));
}

static inline void store_le32(void *to, uint32_t value)
{
    memcpy(to, &value, sizeof(value));
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bytes.h swaps for little-endian hosts");

#endif
