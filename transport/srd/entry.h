/* SPDX-License-Identifier: BSD-2-Clause
 *
 * entry - which flows a process takes from a source.
 *
 * Purpose    A source has one flow here at a time. A packet of another flow opens that one, if its
 *            tag proves that the source was challenged not long ago, and later than for any flow
 *            that was opened before: so no flow is ever opened twice.
 * Inputs     A request or probe, and what is kept of its source.
 * Outputs    A verdict.
 * Time       `now` is an argument and never goes back.
 * Source     Our choice.
 *
 * All that is kept of a source may be forgotten SRD_FORGET_NS after its last packet: by then, all
 * tags that it had are too old to open a flow.
 */
#ifndef TRANSPORT_SRD_ENTRY_H
#define TRANSPORT_SRD_ENTRY_H

#include "transport/srd/tag.h"

#define SRD_FORGET_NS 12000000000u

/* A source, as its target keeps it. */
struct srd_entry {
    bool known;  /* `flow` is the one it has here. */
    bool opened; /* It has had one: `issued` counts. */
    uint32_t flow;
    uint64_t tag;
    uint64_t issued; /* In ticks: the tag of the newest flow that was opened. */
};

enum srd_entry_verdict {
    SRD_ENTRY_KNOWN,     /* A packet of the flow that is open. */
    SRD_ENTRY_OPENS,     /* It opens its flow (srd_entry_open). */
    SRD_ENTRY_STALE,     /* It opens none: its sender has to be told. */
    SRD_ENTRY_WRONG_TAG, /* A packet of the open flow, by somebody who does not know it. */
};

enum srd_entry_verdict srd_entry_judge(const struct srd_entry *entry, const struct siphash_key *key,
                                       const struct srd_source *source, uint32_t flow, uint64_t tag,
                                       struct instant now);
/* After SRD_ENTRY_OPENS, for the same arguments. */
void srd_entry_open(struct srd_entry *entry, uint32_t flow, uint64_t tag, struct instant now);

#endif
