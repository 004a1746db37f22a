/* SPDX-License-Identifier: BSD-2-Clause
 *
 * system_mailbox - queues of small messages in the memory of processes.
 *
 * Purpose    Writes each message and notification into the next slot of a process's queue, which
 *            the process polls in its cache.
 * Inputs     exanest_system_mailbox_take: words from the crossbar. The kernel's configuration; how
 *            far a process has read. The memory's answers.
 * Outputs    exanest_system_mailbox_next_write: slots to memory. exanest_system_mailbox_offer:
 *            acknowledgements.
 * Ownership  The caller owns the struct. The slots lie in the process's memory.
 * Time       A unit that is idle needs no steps.
 * Units      Slots of 64 bytes: 56 of the message, then 8 that say whose it is.
 * Limits     EXANEST_SYSTEM_QUEUES queues of at most EXANEST_SYSTEM_SLOTS slots; one message at a
 *            time, so that a slot that could not be written is used by the next one.
 * Source     Xirouchakis 3.1, 4.1.2. The document says nothing of how: all of that is our choice.
 *
 * A message is acknowledged when it is in memory. A message for another domain, for no queue or of
 * no size is refused with NACK_DECODE; for a full queue with NACK_FULL. A notification has no one
 * who would send it again: what becomes of it is counted. A message whose acknowledgement is late
 * or lost comes again and is stored again: programs that mind number their messages.
 */
#ifndef HARDWARE_EXANEST_SYSTEM_MAILBOX_H
#define HARDWARE_EXANEST_SYSTEM_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/exanest/axi.h"
#include "hardware/exanest/beat.h"
#include "hardware/exanest/intake.h"
#include "hardware/exanest/replies.h"

#define EXANEST_SYSTEM_QUEUES        16u /* As many as the firmware has pages. */
#define EXANEST_SYSTEM_SLOTS         256u
#define EXANEST_SYSTEM_SLOT_BYTES    64u
#define EXANEST_SYSTEM_SLOT_WORDS    (EXANEST_SYSTEM_SLOT_BYTES / EXANEST_WORD_BYTES)
#define EXANEST_SYSTEM_MESSAGE_BYTES (EXANEST_SYSTEM_SLOT_BYTES - 8u)

struct exanest_system_mailbox_parameters {
    uint32_t coordinate; /* Our own. */
    uint16_t reply_cycles;
    uint8_t replies;
    uint32_t patience_cycles; /* Until answers that cannot leave hold nothing up (replies.h). */
};

/* Our choice. */
static inline struct exanest_system_mailbox_parameters exanest_system_mailbox_defaults(
    uint32_t coordinate)
{
    return (struct exanest_system_mailbox_parameters){.coordinate = coordinate,
                                                      .reply_cycles = 4,
                                                      .replies = 4,
                                                      .patience_cycles = EXANEST_PATIENCE_CYCLES};
}

/* The last 8 bytes of a slot. `lap` tells a poller that the slot was written anew. */
struct exanest_system_tag {
    uint16_t lap;    /* Bits 15..0: how often the queue was filled before, plus 1. */
    uint16_t bytes;  /* Bits 24..16. */
    uint32_t source; /* Bits 46..25: the coordinate. */
    bool notifies;   /* Bit 47: a completion notification. */
};

struct exanest_system_tag exanest_system_tag_decode(uint64_t word);

/* The outcome of an arrived message. */
enum exanest_system_verdict {
    EXANEST_SYSTEM_STORED,
    EXANEST_SYSTEM_FULL,
    EXANEST_SYSTEM_FAULT,        /* The memory refused the write. */
    EXANEST_SYSTEM_CORRUPT,      /* Its footer is good, words or their CRC are not. */
    EXANEST_SYSTEM_NO_QUEUE,     /* The kernel has opened none of this number. */
    EXANEST_SYSTEM_WRONG_DOMAIN, /* The queue is another domain's. */
    EXANEST_SYSTEM_WRONG_SIZE,   /* No bytes, more than a slot takes, or a part of a block. */
    EXANEST_SYSTEM_UNEXPECTED,   /* A packet that does not belong here. */
    EXANEST_SYSTEM_DROPPED,      /* Header or footer are bad, or not there. */
    EXANEST_SYSTEM_VERDICT_COUNT,
};

struct exanest_system_mailbox_counters {
    uint64_t verdicts[EXANEST_SYSTEM_VERDICT_COUNT];
    uint64_t answers[EXANEST_STATUS_COUNT]; /* Sent, by status. */
    uint64_t notifications_lost;            /* Not stored, whatever the reason. */
    uint64_t unanswered; /* Messages dropped, as if lost, since their answers found no room. */
    uint64_t bad_heads;  /* Reads that a process claimed and that were impossible. */
    uint64_t waits;      /* Beats that were refused, in cycles. */
};

struct exanest_system_queue {
    bool open;
    uint16_t pdid;
    uint16_t slots;       /* 1..EXANEST_SYSTEM_SLOTS. */
    uint64_t va;          /* Slot 0's; a multiple of 64. */
    uint32_t head, tail;  /* Slots ever read, and ever written. Free-running. */
    uint32_t place, laps; /* Where the next one goes. */
};

struct exanest_system_mailbox {
    struct exanest_system_mailbox_parameters parameters;
    uint8_t queue;                /* The one whose slot is being written: */
    uint8_t written;              /* this number of its words have left; */
    bool writing;                 /* it is being written, or waits for the memory's answer; */
    bool forgotten;               /* its queue was closed or opened anew meanwhile. */
    struct exanest_header header; /* The message's that is being written. */
    struct exanest_footer footer;
    struct exanest_word slot[EXANEST_SYSTEM_SLOT_WORDS];
    struct exanest_word payload[EXANEST_SYSTEM_SLOT_WORDS + 1]; /* The incoming packet's. */
    struct exanest_intake intake;
    struct exanest_replies replies;
    struct exanest_system_mailbox_counters counters;
    struct exanest_system_queue queues[EXANEST_SYSTEM_QUEUES];
};

void exanest_system_mailbox_init(struct exanest_system_mailbox *mailbox,
                                 const struct exanest_system_mailbox_parameters *parameters);

/* The kernel opens a queue, empty, or closes it. */
void exanest_system_mailbox_open(struct exanest_system_mailbox *mailbox, uint32_t queue,
                                 uint16_t pdid, uint64_t va, uint32_t slots);
void exanest_system_mailbox_close(struct exanest_system_mailbox *mailbox, uint32_t queue);

/* A process says how many slots it has read since its queue was opened. False: it can't have. */
bool exanest_system_mailbox_read(struct exanest_system_mailbox *mailbox, uint32_t queue,
                                 uint32_t head);

bool exanest_system_mailbox_ready(const struct exanest_system_mailbox *mailbox,
                                  const struct exanest_beat *beat);
void exanest_system_mailbox_take(struct exanest_system_mailbox *mailbox,
                                 const struct exanest_beat *beat);
/* A beat is there and exanest_system_mailbox_ready said no: counts. */
static inline void exanest_system_mailbox_waits(struct exanest_system_mailbox *mailbox)
{
    mailbox->counters.waits++;
}

bool exanest_system_mailbox_next_write(struct exanest_system_mailbox *mailbox,
                                       struct exanest_memory_write *write);
void exanest_system_mailbox_on_write_response(struct exanest_system_mailbox *mailbox,
                                              enum exanest_axi_response response);

bool exanest_system_mailbox_offer(const struct exanest_system_mailbox *mailbox,
                                  struct exanest_beat *beat);
void exanest_system_mailbox_taken(struct exanest_system_mailbox *mailbox);

static inline void exanest_system_mailbox_step(struct exanest_system_mailbox *mailbox)
{
    exanest_replies_step(&mailbox->replies);
}

static inline bool exanest_system_mailbox_idle(const struct exanest_system_mailbox *mailbox)
{
    return !mailbox->writing && exanest_replies_idle(&mailbox->replies);
}

#endif
