/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sender - one flow, as the process sees it from which it leads.
 *
 * Purpose    Opens the flow, numbers packets, sends again what was lost, and says how each instance
 *            of a message ended. Only the caller knows the messages.
 * Inputs     srd_sender_post; srd_sender_on_answer, srd_sender_on_challenge; srd_sender_on_time.
 * Outputs    srd_sender_next: the next packet; srd_sender_ended: instances that ended, in any
 *            order; srd_sender_deadline.
 * Ownership  Caller owns the sender, the instances from srd_sender_ended on, and the records of
 *            packets under way, which senders take from a list that they share.
 * Time       `now` is an argument and never goes back.
 * Units      Bytes, nanoseconds.
 * Limits     SRD_WINDOW PSNs, from the oldest one on whose verdict is not known; SRD_FLOW_PATHS
 *            paths, of which a flow begins with one.
 * Source     Our choice; docs/block-transport.md has what a path does.
 *
 * An instance that found no receive is sent again with other PSNs: the receiver has refused the
 * first ones for good, so that no late copy of them is ever taken.
 */
#ifndef TRANSPORT_SRD_SENDER_H
#define TRANSPORT_SRD_SENDER_H

#include "base/list.h"
#include "base/prng.h"
#include "transport/common/paths.h"
#include "transport/srd/receiver.h"

#define SRD_IDLE_NS       30000000000u /* A flow that was idle is begun anew. */
#define SRD_FLOW_PATHS    4            /* At a time. */
#define SRD_PATH_RECORDS  PATH_RECORDS_LEAST
#define SRD_RETRY_FOREVER 7u /* The number of tries that means so in verbs. */
/* How much a packet counts beside its payload: the longest headers, and those of UDP and IP. */
#define SRD_PACKET_COST (SRD_PAYLOAD_HEADERS_BYTES_MAX + ROCE_ICRC_BYTES + 28u)

/* A message, or up to 64 packets of a longer one, with PSNs of its own. */
struct srd_instance {
    struct list node;
    uint32_t bytes; /* All payload: that of the last packet follows from it. */
    uint8_t packets;
    uint8_t tries; /* After it found no receive: 0..6, or SRD_RETRY_FOREVER. */
    /* The sender's: */
    uint8_t begun;    /* Packets that left once. */
    uint8_t taken;    /* Packets that were taken. */
    uint8_t status;   /* enum srd_status, when it has ended. */
    uint8_t refusals; /* How often it waited for a receive less than the receiver said. */
    uint32_t first;   /* PSN; valid while it has PSNs. */
    struct instant posted_at, first_sent, wait_until;
};

/* A packet under way. */
struct srd_transmission {
    struct list node;
    struct srd_instance *instance;
    uint32_t psn;
    /* When it left the last time: */
    uint32_t tsn : 24;
    uint32_t path : 7;
    uint32_t again : 1; /* Not for the first time. */
};
_Static_assert(sizeof(struct srd_transmission) == 32, "there are thousands");

enum srd_flow_state {
    SRD_FLOW_NONE,
    SRD_FLOW_GREETS, /* HELLO is to be answered by a challenge. */
    SRD_FLOW_OPEN,
};

struct srd_sender {
    enum srd_flow_state state;
    uint32_t flow;
    uint64_t tag;
    uint32_t boot;                  /* The life of the process there; valid if ... */
    bool boot_known;                /* ... it ever answered. */
    uint32_t next;                  /* PSN. */
    uint32_t lowest;                /* The first PSN whose verdict is open. */
    uint64_t open[SRD_WINDOW / 64]; /* PSNs whose verdict is open. */
    /* Up to which PSN the last answer described all verdicts: others may only look lost. */
    uint32_t described;
    bool described_all;
    struct list unsent;  /* Instances without PSNs, in the order of posting. */
    struct list sent;    /* With PSNs, in their order; all but the last one have begun whole. */
    struct list waiting; /* Found no receive. */
    struct list ended;   /* The caller takes them. */
    struct list flight[SRD_FLOW_PATHS];   /* Transmissions of each path, in the order of sending. */
    struct list lost;                     /* Transmissions that are to leave again. */
    struct list *records;                 /* Free transmissions. */
    uint32_t hellos;                      /* How many left since the greeting began. */
    struct instant hello_at, hello_since; /* The next one; the first one. */
    struct instant used_at;
    struct instant ask_at;   /* When a probe asks about packets of the only path; see ask_later. */
    struct instant heard_at; /* An answer, or the challenge that opened the flow. */
    uint32_t chunk_bytes;
    const struct path_policy *policy;
    struct path_record *path_records;
    struct paths paths; /* Valid while the flow is open. */
    struct path path;   /* The first one. */
};

struct srd_sender_config {
    uint32_t chunk_bytes; /* The payload of a packet: a multiple of SRD_CHUNK_STEP. */
    struct list *records; /* Free ones of struct srd_transmission. */
    const struct path_policy *policy;
    struct path_record *path_records; /* SRD_PATH_RECORDS of them. */
};

void srd_sender_init(struct srd_sender *sender, const struct srd_sender_config *config);
/* Another policy from now on, which stays in place. */
void srd_sender_use(struct srd_sender *sender, const struct path_policy *policy);

/* The open flow gets further paths: `count` of them, with SRD_PATH_RECORDS of `records` for each,
 * which all stay in place until the flow ends. */
void srd_sender_widen(struct srd_sender *sender, struct path *others, struct path_record *records,
                      uint8_t count, struct instant now);

/* Sends an instance, whose caller's fields are set. */
void srd_sender_post(struct srd_sender *sender, struct srd_instance *instance, struct instant now);
/* The caller does not want it any more: its PSNs are given up, and it is the caller's. */
void srd_sender_withdraw(struct srd_sender *sender, struct srd_instance *instance);
/* An instance that has ended, with its status; NULL: none. */
struct srd_instance *srd_sender_ended(struct srd_sender *sender);
/* Has a peer that once answered said nothing for so long that an instance is given up? */
bool srd_sender_is_silent(const struct srd_sender *sender, struct instant now);
/* Is nothing under way, nor to be sent? */
bool srd_sender_is_idle(const struct srd_sender *sender);

/* -- Departure ----------------------------------------------------------------------------------*/

enum srd_leaving {
    SRD_LEAVES_NOTHING,
    SRD_LEAVES_HELLO,
    SRD_LEAVES_PROBE,
    SRD_LEAVES_PACKET, /* Packet `packet.index` of `instance`. */
};

struct srd_departure {
    enum srd_leaving kind;
    struct srd_instance *instance;
};

/* May srd_sender_next yield something? */
bool srd_sender_ready(const struct srd_sender *sender, struct instant now);
/* The next packet. Fills in all that a HELLO or probe has but its destination; of a request: all
 * but opcode, queue pairs and what the message is. `prng` draws the names of new flows. */
struct srd_departure srd_sender_next(struct srd_sender *sender, struct prng *prng,
                                     struct instant now, struct srd_packet *packet);

/* -- Arrival ------------------------------------------------------------------------------------*/

enum srd_heard {
    SRD_HEARD,
    SRD_HEARD_STALE,      /* Not of this flow, or not what it waits for. */
    SRD_HEARD_IMPOSSIBLE, /* It speaks of packets that never left. */
};
enum srd_heard srd_sender_on_answer(struct srd_sender *sender, const struct srd_packet *packet,
                                    struct instant now);
enum srd_heard srd_sender_on_challenge(struct srd_sender *sender, const struct srd_packet *packet,
                                       struct instant now);

/* -- Time ---------------------------------------------------------------------------------------*/

/* When srd_sender_on_time is due, or srd_sender_ready may have changed. */
struct instant srd_sender_deadline(const struct srd_sender *sender, struct instant now);
/* The part of it that is for a probe about packets of which none has asked. */
static inline struct instant srd_sender_asks_at(const struct srd_sender *sender)
{
    return sender->state == SRD_FLOW_OPEN ? sender->ask_at : INSTANT_NEVER;
}
/* True: the flow's timeout passed without a word from the peer. */
bool srd_sender_on_time(struct srd_sender *sender, struct instant now);
/* How long an answer may take, by whichever path; doubled `doublings` times. */
uint64_t srd_sender_patience_ns(const struct srd_sender *sender, uint32_t doublings);
/* Have so many timeouts passed in a row that packets leave at the least rate? */
bool srd_sender_is_impaired(const struct srd_sender *sender);

/* For tests, and in builds for tests. */
void srd_sender_check(const struct srd_sender *sender);

#endif
