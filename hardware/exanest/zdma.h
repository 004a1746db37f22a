/* SPDX-License-Identifier: BSD-2-Clause
 *
 * zdma - the engine that ExaNeSt had before: small packets, few of them under way, no software.
 *
 * Purpose    The baseline of comparisons. AXI2EXA cuts a write into packets and sends them;
 *            EXA2AXI writes the packets that come to memory and answers each.
 * Inputs     exanest_zdma_start, by software. Beats of reads, answers to writes: from memory.
 *            exanest_zdma_take: words from the crossbar.
 * Outputs    exanest_zdma_next_read and exanest_zdma_next_write to memory. exanest_zdma_offer:
 *            packets and answers. The transfer's outcome: exanest_zdma_state.
 * Time       A unit that is idle needs no steps.
 * Limits     One transfer at a time. EXANEST_ZDMA_OUTSTANDING_MAX packets under way, of which
 *            EXANEST_ZDMA_BUFFERS have not left yet. Only writes: a request to read is refused.
 * Source     Xirouchakis 3 (packet types 5 to 8), 7: packets of 64 bytes, 6 outstanding
 *            transactions. The document says no more, so all the rest is our choice.
 *
 * A packet (type 6) goes to the zDMA of the target: its address is that peripheral's, with bits
 * 31..0 of the memory's in bits 31..0, and bits 38..32 of it in the header's `aux`. It ends at a
 * line of `packet` bytes of the target. An answer (type 8, a header alone) returns its transaction
 * ID: the slot (bits 5..0) and how often the slot was used before (9..6).
 *
 * There is no retransmission: a packet that is refused, or not answered in time, fails the
 * transfer. A packet that did not come whole is not written at all. A whole one is written each
 * time it comes, so a network that makes copies may write old bytes over new ones.
 */
#ifndef HARDWARE_EXANEST_ZDMA_H
#define HARDWARE_EXANEST_ZDMA_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/exanest/axi.h"
#include "hardware/exanest/beat.h"
#include "hardware/exanest/intake.h"
#include "hardware/exanest/replies.h"

#define EXANEST_ZDMA_PACKET          64u /* 7: bytes of payload, */
#define EXANEST_ZDMA_OUTSTANDING     6u  /* and transactions. */
#define EXANEST_ZDMA_OUTSTANDING_MAX 64u
#define EXANEST_ZDMA_BUFFERS         8u
#define EXANEST_ZDMA_ARRIVALS        4u

struct exanest_zdma_config {
    uint32_t coordinate;      /* Our own. */
    uint16_t packet;          /* Bytes: a power of two, 16 .. 256. */
    uint8_t outstanding;      /* 1 .. EXANEST_ZDMA_OUTSTANDING_MAX: read, sent or not answered. */
    uint8_t packet_cycles;    /* From one packet's read of memory to the next one's, at least 1. */
    uint8_t reply_cycles;     /* Until an answer leaves. */
    uint32_t timeout_cycles;  /* Without an answer, while some are due. */
    uint32_t patience_cycles; /* Until answers that cannot leave hold nothing up (replies.h). */
};

/* The cycles are our choice: those of the send unit's scheduler and of the receiver's answers, and
 * the packetizer's 100 us. */
static inline struct exanest_zdma_config exanest_zdma_defaults(uint32_t coordinate)
{
    return (struct exanest_zdma_config){.coordinate = coordinate,
                                        .packet = EXANEST_ZDMA_PACKET,
                                        .outstanding = EXANEST_ZDMA_OUTSTANDING,
                                        .packet_cycles = 5,
                                        .reply_cycles = 4,
                                        .timeout_cycles = 15000,
                                        .patience_cycles = EXANEST_PATIENCE_CYCLES};
}

/* The transfer that software asks for. Hardware knows the owner of the registers to which it
 * stored. */
struct exanest_zdma_transfer {
    uint64_t source;
    struct exanest_target target;
    uint32_t bytes;
    uint16_t pdid;
};

enum exanest_zdma_start {
    EXANEST_ZDMA_STARTED,
    EXANEST_ZDMA_BUSY, /* The last transfer is not over. */
    EXANEST_ZDMA_NO_BYTES,
    EXANEST_ZDMA_NOT_MEMORY, /* Bytes at either end are not memory's. */
    EXANEST_ZDMA_START_COUNT,
};

enum exanest_zdma_phase {
    EXANEST_ZDMA_FREE,
    EXANEST_ZDMA_ACTIVE,
    EXANEST_ZDMA_DONE,
    EXANEST_ZDMA_FAILED,
};

/* The state of its transfer that software reads. */
struct exanest_zdma_state {
    uint8_t phase;  /* enum exanest_zdma_phase. */
    uint8_t status; /* enum exanest_status: the first that is not an ACK. */
    bool timed_out;
    uint32_t answered; /* Bytes with an ACK. */
};

/* The verdict on a packet that came. */
enum exanest_zdma_verdict {
    EXANEST_ZDMA_STORED,
    EXANEST_ZDMA_FAULT,      /* The memory refused the write. */
    EXANEST_ZDMA_CORRUPT,    /* Its footer is good, words or their CRC are not. */
    EXANEST_ZDMA_MALFORMED,  /* A write without bytes, or that does not end in memory. */
    EXANEST_ZDMA_UNEXPECTED, /* A packet that does not belong here. */
    EXANEST_ZDMA_DROPPED,    /* Header or footer are bad, or not there. */
    EXANEST_ZDMA_ANSWER,     /* To a packet that waits for it. */
    EXANEST_ZDMA_STALE,      /* An answer that nothing waits for. */
    EXANEST_ZDMA_VERDICT_COUNT,
};

struct exanest_zdma_counters {
    uint64_t starts[EXANEST_ZDMA_START_COUNT];
    uint64_t verdicts[EXANEST_ZDMA_VERDICT_COUNT];
    uint64_t answers[EXANEST_STATUS_COUNT]; /* Answers to our packets, by status. */
    uint64_t replies[EXANEST_STATUS_COUNT]; /* Answers that we gave. */
    uint64_t packets, bytes;                /* Sent. */
    uint64_t done, failed, timeouts;
    uint64_t read_faults; /* Packets that were not sent, since their bytes could not be read. */
    uint64_t unanswered;  /* Packets dropped, as if lost, since their answers found no room. */
    uint64_t waits;       /* Beats that were refused, in cycles. */
};

/* A transaction: from its read of memory to its answer. */
struct exanest_zdma_slot {
    uint8_t uses; /* How often, modulo 16: a late answer is not taken for this one's. */
    bool waits;   /* It was sent, and its answer is due. */
    uint16_t bytes;
};

/* A packet whose bytes come from memory. */
struct exanest_zdma_buffer {
    uint8_t slot;
    bool faulty;
    uint16_t bytes, filled;
    uint64_t source, va;
    struct exanest_word words[EXANEST_PAYLOAD_WORDS_MAX];
};

/* A packet that came, and is written to memory. */
struct exanest_zdma_arrival {
    struct exanest_header header;
    struct exanest_footer footer;
    struct exanest_word words[EXANEST_PAYLOAD_WORDS_MAX];
};

/* The packet that is shown to the crossbar: it does not change before its last word is taken. */
enum exanest_zdma_outlet {
    EXANEST_ZDMA_NOTHING,
    EXANEST_ZDMA_PACKETS,
    EXANEST_ZDMA_REPLIES,
};

struct exanest_zdma {
    struct exanest_zdma_config config;
    uint64_t now, deadline;
    /* The transfer. */
    struct exanest_zdma_transfer transfer;
    struct exanest_zdma_state state;
    bool failing;    /* No more packets; those under way are waited for. */
    uint8_t wait;    /* Cycles until the next packet may be cut. */
    uint8_t waiting; /* Slots whose answer is due. */
    uint32_t cut;    /* Bytes for which packets were made. */
    uint64_t free;   /* Bit s: slot s is. */
    /* Buffers, free-running. Those from `left` on are to be sent, those from `read` on are being
     * filled, those from `asked` on are to be asked for, and those from `made` on are free. */
    uint32_t left, read, asked, made;
    uint16_t asked_bytes; /* Bytes of the last read for buffer `asked`, if its source crosses a
                           * page. */
    uint8_t outlet;       /* enum exanest_zdma_outlet. */
    uint8_t count, sent;  /* Words of the packet that is being sent; 0: none. */
    uint8_t sending;      /* Its slot. */
    /* Arrivals, free-running. Those from `answered` on wait for memory's answer, those from
     * `written` on are to be written, and those from `arrived` on are free. */
    uint32_t answered, written, arrived;
    uint8_t written_words; /* Words of arrival `written` that have gone. */
    struct exanest_intake intake;
    struct exanest_replies replies;
    struct exanest_zdma_counters counters;
    struct exanest_word packet[EXANEST_PACKET_WORDS_MAX];
    struct exanest_zdma_slot slots[EXANEST_ZDMA_OUTSTANDING_MAX];
    struct exanest_zdma_buffer buffers[EXANEST_ZDMA_BUFFERS];
    struct exanest_zdma_arrival arrivals[EXANEST_ZDMA_ARRIVALS];
};

void exanest_zdma_init(struct exanest_zdma *zdma, const struct exanest_zdma_config *config);

/* Bit s: there is a slot s. */
static inline uint64_t exanest_zdma_slots(const struct exanest_zdma *zdma)
{
    return UINT64_MAX >> (EXANEST_ZDMA_OUTSTANDING_MAX - zdma->config.outstanding);
}

/* Where the bytes of an address in a target's memory are sent to, and the header's `aux`. */
static inline uint64_t exanest_zdma_va(uint64_t va)
{
    return exanest_peripheral_va(EXANEST_ZDMA, (uint32_t)va);
}

static inline uint16_t exanest_zdma_aux(uint64_t va)
{
    return (uint16_t)(va >> 32 & 0x7f);
}

/* -- Software -----------------------------------------------------------------------------------*/

enum exanest_zdma_start exanest_zdma_start(struct exanest_zdma *zdma,
                                           const struct exanest_zdma_transfer *transfer);

static inline struct exanest_zdma_state exanest_zdma_state(const struct exanest_zdma *zdma)
{
    return zdma->state;
}

/* -- Memory -------------------------------------------------------------------------------------*/

/* Its `axi_id` is 0: the engine has a port of its own, and its reads are answered in order. */
bool exanest_zdma_next_read(struct exanest_zdma *zdma, struct exanest_memory_read *read);
void exanest_zdma_on_read_beat(struct exanest_zdma *zdma, const struct exanest_read_beat *beat);

bool exanest_zdma_next_write(struct exanest_zdma *zdma, struct exanest_memory_write *write);
void exanest_zdma_on_write_response(struct exanest_zdma *zdma, enum exanest_axi_response response);

/* -- The crossbar -------------------------------------------------------------------------------*/

bool exanest_zdma_ready(const struct exanest_zdma *zdma, const struct exanest_beat *beat);
void exanest_zdma_take(struct exanest_zdma *zdma, const struct exanest_beat *beat);
/* A beat is there and exanest_zdma_ready said no: counts. */
static inline void exanest_zdma_waits(struct exanest_zdma *zdma)
{
    zdma->counters.waits++;
}

bool exanest_zdma_offer(const struct exanest_zdma *zdma, struct exanest_beat *beat);
void exanest_zdma_taken(struct exanest_zdma *zdma);

void exanest_zdma_step(struct exanest_zdma *zdma);

static inline bool exanest_zdma_idle(const struct exanest_zdma *zdma)
{
    return zdma->state.phase != EXANEST_ZDMA_ACTIVE && zdma->arrived == zdma->answered &&
           zdma->outlet == EXANEST_ZDMA_NOTHING && exanest_replies_idle(&zdma->replies);
}

void exanest_zdma_check(const struct exanest_zdma *zdma);

#endif
