/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crc32c - the CRC of iSCSI, which the packets of ExaNeSt's and of Lant's machines have as well.
 *
 * Purpose    CRC-32C: polynomial 0x1edc6f41, the lowest bit of a byte first, complemented at the
 *            beginning and at the end. 0xe3069283 for the digits from 1 to 9.
 * Inputs     Bytes; 0 to begin with, or the CRC of the bytes in front.
 * Outputs    The CRC.
 * Ownership  Nothing is kept.
 * Units      Bytes, or words of eight.
 * Limits     2^31 - 1 bytes a call.
 * Source     RFC 3720, 12.1.
 */
#ifndef WIRE_CRC32C_H
#define WIRE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count);

/* The bytes of `count` words, the highest of each first. */
uint32_t crc32c_words(uint32_t crc, const uint64_t *words, size_t count);

#endif
