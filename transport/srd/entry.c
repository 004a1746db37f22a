/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/srd/entry.h"

enum srd_entry_verdict srd_entry_judge(const struct srd_entry *entry, const struct siphash_key *key,
                                       const struct srd_source *source, uint32_t flow, uint64_t tag,
                                       struct instant now)
{
    if (entry->known && entry->flow == flow) {
        return entry->tag == tag ? SRD_ENTRY_KNOWN : SRD_ENTRY_WRONG_TAG;
    }
    const uint64_t ticks = srd_ticks(now);
    uint64_t issued;
    if (!srd_tag_read(key, source, flow, tag, ticks, &issued) || ticks - issued >= SRD_TAG_TICKS ||
        (entry->opened && issued <= entry->issued)) {
        return SRD_ENTRY_STALE;
    }
    return SRD_ENTRY_OPENS;
}

void srd_entry_open(struct srd_entry *entry, uint32_t flow, uint64_t tag, struct instant now)
{
    *entry = (struct srd_entry){.known = true,
                                .opened = true,
                                .flow = flow,
                                .tag = tag,
                                .issued = srd_tag_issued(tag, srd_ticks(now))};
}
