/* SPDX-License-Identifier: BSD-2-Clause
 *
 * range - local memory that peers may read and write.
 *
 * Purpose    Says whether an access lies inside memory that is offered for it. An access outside is
 *            answered with DECERR.
 * Inputs     A table of ranges; an access.
 * Outputs    Yes or no.
 * Ownership  The caller's table; both targets (SHM, RDMA) only read it.
 * Units      Bytes of the node's local addresses, which have 42 bits.
 * Limits     LANT_RANGES_MAX ranges. An access lies inside one of them: it does not go on into the
 *            next, even if that follows at once.
 * Source     Our choice: the thesis says nothing of rights to memory.
 */
#ifndef TRANSPORT_LANT_RANGE_H
#define TRANSPORT_LANT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/lant.h"

#define LANT_RANGES_MAX 64u

struct lant_range {
    uint64_t base, bytes;
    bool may_read, may_write;
};

struct lant_ranges {
    uint32_t count;
    struct lant_range ranges[LANT_RANGES_MAX];
};

enum lant_access {
    LANT_ACCESS_READ,
    LANT_ACCESS_WRITE,
};

static inline bool lant_range_allows(const struct lant_range *range, uint64_t address,
                                     uint64_t bytes, enum lant_access access)
{
    return (access == LANT_ACCESS_READ ? range->may_read : range->may_write) &&
           address >= range->base && address - range->base <= range->bytes &&
           bytes <= range->bytes - (address - range->base);
}

/* An access has at least one byte. */
static inline bool lant_ranges_allow(const struct lant_ranges *ranges, uint64_t address,
                                     uint64_t bytes, enum lant_access access)
{
    CHECK(ranges->count <= LANT_RANGES_MAX);
    if (bytes == 0 || bytes > LANT_ADDRESSES || address > LANT_ADDRESSES - bytes) {
        return false;
    }
    for (uint32_t i = 0; i < ranges->count; i++) {
        if (lant_range_allows(&ranges->ranges[i], address, bytes, access)) {
            return true;
        }
    }
    return false;
}

#endif
