/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rest - all that has to be known of two flows, one in each direction, while nothing goes on.
 *
 * Purpose    A process may know very many others, and talk to few at a time. So a sender and a
 *            receiver can be laid to rest in 48 bytes, and go on later as if they had never rested.
 * Inputs     A sender, a receiver, and what is kept of its source.
 * Outputs    The same, as they were.
 * Ownership  Caller owns all.
 * Time       `now` is an argument and never goes back.
 * Limits     A sender rests only while srd_sender_is_idle, a receiver only while
 *            srd_receiver_may_rest. A path forgets its window, and a round trip of 65 ms or more.
 * Source     Our choice.
 */
#ifndef TRANSPORT_SRD_REST_H
#define TRANSPORT_SRD_REST_H

#include "transport/srd/entry.h"
#include "transport/srd/sender.h"

/* Zeroed memory: nothing is known of either flow. */
struct srd_rest {
    /* The sender. Times of 32 bits are in ticks (tag.h), and wrap after 48 days: then a flow seems
     * to have been used lately, and is kept for 30 s more. */
    uint64_t tag;
    uint64_t tsn : 24;
    uint64_t issued : 40; /* The receiver's: in ticks, as srd_entry.issued. */
    uint32_t flow, next, boot, used_at;

    /* The receiver. */
    uint32_t heard_flow, base, heard_at;
    uint32_t taken : 11; /* PSNs from `base` on that were taken. */
    uint32_t known : 1;
    uint32_t opened : 1;
    /* The sender's: */
    uint32_t open : 1; /* Its flow is there. */
    uint32_t boot_known : 1;
    uint32_t trip_us : 16; /* The round trip of its path; 0: not known. */
};
_Static_assert(sizeof(struct srd_rest) == 48, "a process may know a hundred thousand others");

void srd_rest_sender(struct srd_rest *rest, const struct srd_sender *sender);
/* `sender` is as srd_sender_init left it. */
void srd_resume_sender(const struct srd_rest *rest, struct srd_sender *sender, struct instant now);

/* Is nothing of the flow under way, and has it no verdict that a copy would have to hear, other
 * than that its packet was taken? */
bool srd_receiver_may_rest(const struct srd_receiver *receiver);

/* The receiver of a source, and when it was heard last. If nothing was heard for SRD_FORGET_NS, it
 * is forgotten: then it need not be one that may rest. */
void srd_rest_receiver(struct srd_rest *rest, const struct srd_entry *entry,
                       const struct srd_receiver *receiver, struct instant heard_at,
                       struct instant now);
/* The record of the source, for the same source and key. */
struct srd_entry srd_rest_entry(const struct srd_rest *rest, const struct siphash_key *key,
                                const struct srd_source *source, struct instant now);
/* Likewise; *heard_at comes back to the tick. */
void srd_resume_receiver(const struct srd_rest *rest, const struct siphash_key *key,
                         const struct srd_source *source, struct srd_entry *entry,
                         struct srd_receiver *receiver, struct instant *heard_at,
                         struct instant now);

/* May both be forgotten? Then all tags that the source had are too old to open a flow. */
bool srd_rest_may_go(const struct srd_rest *rest, struct instant now);
/* For how many ticks nothing has happened. */
uint32_t srd_rest_age(const struct srd_rest *rest, struct instant now);

#endif
