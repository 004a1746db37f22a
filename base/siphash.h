/* SPDX-License-Identifier: BSD-2-Clause
 *
 * siphash - SipHash-2-4: a short code that only who has the key can make of some bytes.
 *
 * Source     J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* The key is 128 bits of which nobody else knows any. */
struct siphash_key {
    uint64_t halves[2];
};

uint64_t siphash(const struct siphash_key *key, const void *bytes, size_t count);

#endif
