/* SPDX-License-Identifier: BSD-2-Clause
 *
 * tag - the proof that the sender of a flow received a challenge not long ago.
 *
 * Purpose    A receiver keeps nothing of those whom it challenges: all that it has to know of them
 *            comes back in the tag of each packet.
 * Inputs     The process' key, who asked, which flow, and when.
 * Outputs    A tag; of a tag, when it was issued.
 * Units      SRD_TICK_NS of time.
 * Limits     A tag names its time modulo 2^24 ticks (4.5 hours), but no other time has its code:
 *            the code is over the whole time.
 * Source     Our choice.
 */
#ifndef TRANSPORT_SRD_TAG_H
#define TRANSPORT_SRD_TAG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"
#include "base/siphash.h"

#define SRD_TICK_NS   976562u /* About 1/1024 s. */
#define SRD_TAG_TICKS 8192u   /* A tag opens a flow for so long: 8 s. */

/* A process that sends: its address and its slot there. */
struct srd_source {
    uint8_t gid[16];
    uint8_t slot;
};

static inline uint64_t srd_ticks(struct instant at)
{
    return at.ns / SRD_TICK_NS;
}

uint64_t srd_tag_make(const struct siphash_key *key, const struct srd_source *source, uint32_t flow,
                      uint64_t ticks);

/* When a tag was issued, at most 2^24 ticks before `now_ticks`. */
uint64_t srd_tag_issued(uint64_t tag, uint64_t now_ticks);

/* Was this tag issued to that source for that flow, at most 2^24 ticks ago? Then *issued says
 * when. */
MUST_USE bool srd_tag_read(const struct siphash_key *key, const struct srd_source *source,
                           uint32_t flow, uint64_t tag, uint64_t now_ticks, uint64_t *issued);

#endif
