/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/srd/tag.h"

#include "base/bytes.h"

#define CODE_BITS 40
#define CODE_MASK ((UINT64_C(1) << CODE_BITS) - 1)
#define TIME_MASK 0xffffffu

static uint64_t code_of(const struct siphash_key *key, const struct srd_source *source,
                        uint32_t flow, uint64_t ticks)
{
    uint8_t bytes[16 + 1 + 4 + 8];
    memcpy(bytes, source->gid, 16);
    bytes[16] = source->slot;
    store_be32(bytes + 17, flow);
    store_be64(bytes + 21, ticks);
    return siphash(key, bytes, sizeof(bytes)) & CODE_MASK;
}

uint64_t srd_tag_make(const struct siphash_key *key, const struct srd_source *source, uint32_t flow,
                      uint64_t ticks)
{
    return (ticks & TIME_MASK) << CODE_BITS | code_of(key, source, flow, ticks);
}

uint64_t srd_tag_issued(uint64_t tag, uint64_t now_ticks)
{
    return now_ticks - ((now_ticks - (tag >> CODE_BITS)) & TIME_MASK);
}

bool srd_tag_read(const struct siphash_key *key, const struct srd_source *source, uint32_t flow,
                  uint64_t tag, uint64_t now_ticks, uint64_t *issued)
{
    *issued = srd_tag_issued(tag, now_ticks);
    return *issued <= now_ticks && code_of(key, source, flow, *issued) == (tag & CODE_MASK);
}
