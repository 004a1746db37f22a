/* SPDX-License-Identifier: BSD-2-Clause
 *
 * scheduler - gives every active transaction one packet in turn, and asks memory for its bytes.
 *
 * Purpose    A FIFO of transaction identifiers. The one in front is taken, its next packet gets a
 *            slot, the barrel shifter a command, memory a read or two; then it goes to the end.
 * Inputs     exanest_scheduler_enqueue, _renewed (software), _fault (an output buffer);
 *            exanest_scheduler_map (the driver).
 * Outputs    exanest_scheduler_next_read; descriptors written back, slots, commands.
 * Time       One step is one cycle: DEQUEUE, READ, SLOT, CALCULATE, then a cycle for each read, in
 *            the last of which the descriptor is written back. No slot free: it goes to the end of
 *            the FIFO behind SLOT.
 * Limits     EXANEST_TIDS transactions, each at most once in the FIFO; 8 protection domains.
 * Source     Xirouchakis 5.1, 5.3.2, 5.3.4. Domains have 16 bits and AXI has 8 IDs: the map between
 *            them is our choice. A page fault ends a transaction (5.3.4), which then comes anew.
 *
 * A transaction whose source cannot be read is marked `killed`, and dropped when it comes to the
 * front of the FIFO; then its error is published. If it is not in the FIFO any more, at once. A
 * fault carries the sequence of its packet: that of an older instance is ignored.
 *
 * While no slot is free the FIFO goes round, three cycles for each transaction. The time until a
 * slot becomes free decides which transaction is then in front. If the port sends a packet every 20
 * cycles exactly, or every other even number, some transactions get more turns than others.
 *
 * Where the source is silent: a transaction that cannot be sent (no length, no such port, a domain
 * without channel) is answered by Error as well. A transaction that is over already is dropped. A
 * new W3 of a transaction that is still active, which software must not write, makes it begin
 * again.
 */
#ifndef HARDWARE_EXANEST_SCHEDULER_H
#define HARDWARE_EXANEST_SCHEDULER_H

#include "hardware/exanest/barrel_shifter.h"
#include "hardware/exanest/output_buffer.h"
#include "hardware/exanest/pending_list.h"

#define EXANEST_SCHEDULER_CYCLES 5u /* A packet: our choice, 40 cycles / 8 slots. */

enum exanest_scheduler_state {
    EXANEST_SCHEDULER_IDLE,
    EXANEST_SCHEDULER_DEQUEUE,
    EXANEST_SCHEDULER_READ,
    EXANEST_SCHEDULER_SLOT,
    EXANEST_SCHEDULER_CALCULATE,
    EXANEST_SCHEDULER_READ_1, /* AR1. */
    EXANEST_SCHEDULER_READ_2, /* AR2: behind the source's 4 KB line. */
    EXANEST_SCHEDULER_PAUSE,  /* Only with more than the usual cycles. */
};

/* The outcome of a turn of the transaction in front. */
enum exanest_turn {
    EXANEST_TURN_SENDS,
    EXANEST_TURN_NO_SLOT,
    EXANEST_TURN_OVER,         /* Done or Error is set. */
    EXANEST_TURN_KILLED,       /* From here on: Error. */
    EXANEST_TURN_WRONG_LENGTH, /* Not 1..16384, or less than was sent. */
    EXANEST_TURN_WRONG_PATH,   /* No such port. */
    EXANEST_TURN_NO_CHANNEL,   /* The domain is not mapped. */
    EXANEST_TURN_COUNT,
};

struct exanest_scheduler_config {
    uint32_t ports;      /* 1..32. */
    uint32_t coordinate; /* Our own: the source of all packets. */
    uint32_t entries;    /* Places in the FIFO: 1..1024. */
    uint32_t cycles;     /* A packet: 5 at least. */
    uint32_t reads_max;  /* Reads under way; 0: any number. (EXA-A11: 1.) */
    /* Variations. */
    bool cuts_at_source; /* Packets end at 256-byte lines of the source as well (EXA-A19). */
    bool drains;         /* A block is sent before the next one gets a turn (EXA-A27). */
    bool shares_buffer;  /* All ports use the first output buffer (EXA-A25). */
};

struct exanest_scheduler_counters {
    uint64_t turns[EXANEST_TURN_COUNT];
    uint64_t second_reads;
    uint64_t faults, stale_faults; /* Reported; those of an older instance. */
    uint64_t chained;              /* Successors that were enqueued. */
    uint64_t enqueued_twice;       /* Was in the FIFO already. */
};

struct exanest_scheduler {
    struct exanest_scheduler_config config;
    uint8_t state;   /* enum exanest_scheduler_state. */
    uint8_t pause;   /* Cycles that are left of it. */
    bool in_hand;    /* `tid` has left the FIFO, and its turn is not over. */
    bool renewed;    /* Software has written its W3 meanwhile, */
    bool again;      /* and so that it is to be enqueued. */
    bool read_shown; /* READ_1, READ_2: the read waits to be taken. */
    uint8_t turn;    /* enum exanest_turn: what SLOT has found out. */
    uint8_t slot, axi_id;
    uint16_t tid;
    uint16_t packet_bytes;
    uint16_t second_bytes; /* The packet's, behind the source's 4 KB line. */
    uint16_t reads;        /* Under way. */
    struct exanest_memory_read read;
    struct exanest_descriptor descriptor;
    uint8_t channels; /* Bit i: channel i belongs to pdids[i]. */
    uint16_t pdids[EXANEST_AXI_IDS];
    struct exanest_scheduler_counters counters;
    uint16_t head, count;
    uint64_t queued[EXANEST_TIDS / 64], killed[EXANEST_TIDS / 64];
    uint16_t fifo[EXANEST_TIDS];
};

void exanest_scheduler_init(struct exanest_scheduler *scheduler,
                            const struct exanest_scheduler_config *config);

/* The driver gives a channel, which is an AXI ID and a context of the SMMU, to a domain. */
void exanest_scheduler_map(struct exanest_scheduler *scheduler, uint32_t channel, uint16_t pdid);

/* i_enqueue_r: is there room for one more? The one in hand keeps its place. */
static inline bool exanest_scheduler_ready(const struct exanest_scheduler *scheduler)
{
    return (uint32_t)scheduler->count + scheduler->in_hand < scheduler->config.entries;
}

/* Software has written W3: the next instance of the transaction begins, here or, if it waits for
 * its predecessor, later. */
void exanest_scheduler_enqueue(struct exanest_scheduler *scheduler, uint32_t tid);
void exanest_scheduler_renewed(struct exanest_scheduler *scheduler, uint32_t tid);

/* A packet of the transaction could not be read. */
void exanest_scheduler_fault(struct exanest_scheduler *scheduler, struct exanest_pending_list *list,
                             uint32_t tid, uint32_t sequence);

/* ARVALID, and ARREADY by this call. */
bool exanest_scheduler_next_read(struct exanest_scheduler *scheduler,
                                 struct exanest_memory_read *read);
/* The last beat of a read has come. */
void exanest_scheduler_read_done(struct exanest_scheduler *scheduler);

/* `buffers` are those of the ports (or one, if they share it). A slot is named to the shifter by
 * exanest_slot_name. */
void exanest_scheduler_step(struct exanest_scheduler *scheduler, struct exanest_pending_list *list,
                            struct exanest_output_buffer *buffers, struct exanest_shifter *shifter);

static inline uint32_t exanest_slot_name(uint32_t buffer, uint32_t slot)
{
    return buffer * EXANEST_SLOTS_MAX + slot;
}

/* Nothing to do until something is enqueued. */
static inline bool exanest_scheduler_idle(const struct exanest_scheduler *scheduler)
{
    return scheduler->state == EXANEST_SCHEDULER_IDLE && scheduler->count == 0;
}

/* Walks through the FIFO: for tests. */
void exanest_scheduler_check(const struct exanest_scheduler *scheduler);

#endif
