/* SPDX-License-Identifier: BSD-2-Clause
 *
 * receiver - one flow, as the process sees it to which it leads.
 *
 * Purpose    Says what is to be done with each packet, collects the packets of a message, and tells
 *            the sender. Queue pairs, keys and receives are the caller's: he asks
 *            srd_receiver_judge, and then says what he did.
 * Inputs     srd_receiver_advance and srd_receiver_judge for each packet; then srd_receiver_settle,
 *            or srd_receiver_open and srd_receiver_move, and srd_receiver_moved.
 * Outputs    A step for each packet; what a move completed; answers.
 * Ownership  Caller owns receivers and assemblies. An assembly is the receiver's from
 *            srd_receiver_open until it is complete, or left and without moves.
 * Time       `now` is an argument and never goes back.
 * Limits     SRD_WINDOW PSNs.
 * Source     Our choice.
 *
 * A message of several packets that needs a receive is collected in an assembly. Only a packet none
 * of whose fellows was judged may open one (window.h), so no message is collected twice, and one
 * that was refused or left never becomes whole. A WRITE without immediate data needs no assembly:
 * each of its packets is a WRITE of its own.
 */
#ifndef TRANSPORT_SRD_RECEIVER_H
#define TRANSPORT_SRD_RECEIVER_H

#include "base/instant.h"
#include "base/list.h"
#include "transport/srd/window.h"

/* The sender gives up a message at this age, and its receiver an assembly. */
#define SRD_GIVE_UP_NS 4000000000u

/* A message that came in part. */
struct srd_assembly {
    struct list node; /* In its receiver's list until it is complete or left. */
    uint32_t first;   /* PSN. */
    uint8_t packets;
    uint8_t moving; /* Packets whose bytes are on their way. */
    bool left;      /* Nothing more is taken; it ends when nothing moves. */
    uint64_t taken; /* Bit i: packet i. */
    struct instant since;
};

/* The next answer, but for the window. */
struct srd_reply {
    bool due;
    bool answers_probe;
    bool echo_there;
    uint8_t echo_path;
    uint8_t ce_marked, duplicates;
    uint32_t echo_tsn;
    struct instant echo_arrived;
    uint32_t answers; /* The number of those that left. */
};

struct srd_receiver {
    uint32_t flow;
    uint64_t tag;
    struct list assemblies;
    uint32_t moving; /* Packets whose bytes are on their way. */
    struct srd_reply reply;
    struct srd_window window;
};

void srd_receiver_init(struct srd_receiver *receiver, uint32_t flow, uint64_t tag, uint32_t base);

/* -- Packets ------------------------------------------------------------------------------------*/

/* A packet of this flow came, of any kind: what it says of other packets, and of its path. An
 * assembly may have to be left now (srd_receiver_outdated). */
void srd_receiver_on_packet(struct srd_receiver *receiver, const struct srd_packet *packet,
                            bool marked, struct instant now);

/* A packet came that was judged before, or is on its way into memory: it was taken for lost. */
void srd_receiver_on_duplicate(struct srd_receiver *receiver);

enum srd_step {
    SRD_STEP_ANSWER,     /* It was judged before: the sender is told again. */
    SRD_STEP_SAME,       /* Fellows were judged: it gets that verdict (srd_receiver_settle). */
    SRD_STEP_OPEN,       /* Nothing of its instance was judged: the caller judges the request. */
    SRD_STEP_CONTINUE,   /* Its message is being collected. */
    SRD_STEP_MOVING,     /* A copy of a packet that is on its way into memory: dropped. */
    SRD_STEP_BEYOND,     /* Beyond the window: dropped. */
    SRD_STEP_CONTRADICT, /* Its message has another number of packets: dropped. */
};

struct srd_judgement {
    enum srd_step step;
    uint8_t judged;                /* SRD_STEP_SAME. */
    struct srd_assembly *assembly; /* SRD_STEP_CONTINUE. */
};

/* Does a request need an assembly? Then its message completes a receive at the target. */
static inline bool srd_is_collected(const struct srd_packet *packet)
{
    return packet->opcode == SRD_SEND || (packet->opcode == SRD_WRITE && packet->has_immediate);
}

struct srd_judgement srd_receiver_judge(const struct srd_receiver *receiver,
                                        const struct srd_packet *packet);

/* -- Deeds of the caller ------------------------------------------------------------------------*/

/* The verdict on a packet whose bytes do not move; SRD_JUDGED_TAKEN only if it has none. */
void srd_receiver_settle(struct srd_receiver *receiver, uint32_t psn, uint8_t judged);
/* The packet opened its message, which `assembly` collects. */
void srd_receiver_open(struct srd_receiver *receiver, struct srd_assembly *assembly,
                       const struct srd_packet *packet, struct instant now);
/* Its bytes are on their way. `assembly`: NULL for a request that is not collected. */
void srd_receiver_move(struct srd_receiver *receiver, struct srd_assembly *assembly, uint32_t psn);

enum srd_moved {
    SRD_MOVED_MORE,     /* Nothing is complete yet. */
    SRD_MOVED_COMPLETE, /* The message is in memory; the assembly is the caller's again. */
    SRD_MOVED_LEFT,     /* Likewise the assembly, which was left: its receive is free. */
};

/* The bytes are in memory. */
enum srd_moved srd_receiver_moved(struct srd_receiver *receiver, struct srd_assembly *assembly,
                                  uint32_t psn);
/* They are not, because memory is not there: the packet is refused. The caller leaves the
 * assembly, if there is one, first; so this is SRD_MOVED_LEFT or SRD_MOVED_MORE. */
enum srd_moved srd_receiver_move_failed(struct srd_receiver *receiver,
                                        struct srd_assembly *assembly, uint32_t psn,
                                        enum srd_status status);

/* An assembly that the sender has given up, or that is too old; NULL: none. */
struct srd_assembly *srd_receiver_outdated(const struct srd_receiver *receiver, struct instant now);
/* When the next one is too old; INSTANT_NEVER: there is none. */
struct instant srd_receiver_deadline(const struct srd_receiver *receiver);
/* The message is not taken any more. True: the assembly is the caller's again; else only once
 * nothing moves (SRD_MOVED_LEFT). */
MUST_USE bool srd_receiver_leave(struct srd_assembly *assembly);

/* -- Answers ------------------------------------------------------------------------------------*/

/* The next answer, if one is due. `wait_code`: for those that found no receive. Fills in what an
 * answer has, but for its destination. */
void srd_receiver_answer(struct srd_receiver *receiver, uint8_t wait_code, struct instant now,
                         struct srd_packet *packet);

/* For tests, and in builds for tests. */
void srd_receiver_check(const struct srd_receiver *receiver);

#endif
