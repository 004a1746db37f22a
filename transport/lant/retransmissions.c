/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/retransmissions.h"

void lant_retransmissions_init(struct lant_retransmissions *retransmissions, uint32_t depth)
{
    CHECK(depth >= 1 && depth <= LANT_PARTIALS_MAX);
    *retransmissions = (struct lant_retransmissions){.depth = (uint16_t)depth};
}

static struct lant_partial *place(struct lant_retransmissions *retransmissions, uint32_t i)
{
    return &retransmissions->ring[(retransmissions->head + i) % retransmissions->depth];
}

void lant_retransmissions_put(struct lant_retransmissions *retransmissions,
                              struct lant_partial partial)
{
    CHECK(retransmissions->count < retransmissions->depth);
    *place(retransmissions, retransmissions->count) = partial;
    retransmissions->count++;
    if (retransmissions->count > retransmissions->count_max) {
        retransmissions->count_max = retransmissions->count;
    }
}

struct lant_partial lant_retransmissions_take(struct lant_retransmissions *retransmissions)
{
    CHECK(retransmissions->count != 0);
    const struct lant_partial partial = *place(retransmissions, 0);
    retransmissions->head = (uint16_t)((retransmissions->head + 1u) % retransmissions->depth);
    retransmissions->count--;
    return partial;
}

uint32_t lant_retransmissions_forget(struct lant_retransmissions *retransmissions,
                                     uint32_t identifier)
{
    uint32_t kept = 0;
    const uint32_t before = retransmissions->count;
    for (uint32_t i = 0; i < before; i++) {
        const struct lant_partial partial = *place(retransmissions, i);
        if (partial.identifier != identifier) {
            *place(retransmissions, kept) = partial;
            kept++;
        }
    }
    retransmissions->count = (uint16_t)kept;
    return before - kept;
}
