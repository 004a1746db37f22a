/* SPDX-License-Identifier: BSD-2-Clause
 *
 * exadma - ExaNeSt's send unit: descriptors go in, memory is read, packets come out.
 *
 * Purpose    Joins descriptors, scheduler, barrel shifter, and for each output port slots, control
 *            registers and ExaNetizer.
 * Inputs     Host: the AXI slave's channels, or exanest_exadma_write and _read for single accesses.
 *            Memory: exanest_exadma_on_read_beat. Network: exanest_exadma_taken.
 *            Driver: exanest_scheduler_map(&exadma->scheduler, ...).
 * Outputs    Memory: exanest_exadma_next_read. Network: exanest_exadma_offer, a beat for each port.
 * Ownership  The caller owns the struct and exanest_exadma_bytes of memory for its slots.
 * Time       Calls between two steps belong to the cycle that the first of them began: at most
 *            one beat of memory, one of each port, one handshake of each AXI channel.
 * Limits     32 ports, 16 slots each, 8 protection domains at once.
 * Source     Xirouchakis 5. The variations are those that rows of lab/exanest/experiments name.
 *
 * A step goes from the network back to the host, so that each unit sees its predecessor's output at
 * the end of the cycle before. From the store of W3 to the header: scheduler 5, memory, barrel
 * shifter 2, slot 1, header 1 (EXA-A7).
 */
#ifndef HARDWARE_EXANEST_EXADMA_H
#define HARDWARE_EXANEST_EXADMA_H

#include "hardware/exanest/barrel_shifter.h"
#include "hardware/exanest/control_slot.h"
#include "hardware/exanest/exanetizer.h"
#include "hardware/exanest/output_buffer.h"
#include "hardware/exanest/pending_list.h"
#include "hardware/exanest/scheduler.h"

struct exanest_exadma_config {
    uint32_t coordinate;        /* Our own. */
    uint32_t ports;             /* 1..32. */
    uint32_t slots;             /* A port: EXANEST_SLOTS, at most 16. */
    uint32_t scheduler_cycles;  /* EXANEST_SCHEDULER_CYCLES. */
    uint32_t scheduler_entries; /* EXANEST_TIDS, or fewer to see it full. */
    uint32_t shifter_cycles;    /* EXANEST_SHIFTER_CYCLES. */
    uint32_t control_bytes;     /* 16 (5.2), or 32 (5.3.1.2). */
    /* Variations; all off in the document's unit. */
    uint32_t reads_max;      /* EXA-A11: 1 is one AXI read at a time. 0: any number. */
    bool holds_slot;         /* EXA-A11: a slot is free only `hold_cycles` after the footer. */
    uint32_t hold_cycles;    /* At most 65535. */
    bool cuts_at_source;     /* EXA-A19: packets end at lines of the source as well. */
    uint32_t shifter_bubble; /* EXA-A19: cycles without a beat between two commands. */
    bool drains;             /* EXA-A27: a block before the next one. */
    bool shares_buffer;      /* EXA-A25: one output buffer for all ports. */
    bool takes_pieces;       /* EXA-A24: descriptors of parts of blocks (firmware_pieces.c). */
};

/* The document's values, for one port. */
#define EXANEST_EXADMA_USUAL                                                                       \
    ((struct exanest_exadma_config){.ports = 1,                                                    \
                                    .slots = EXANEST_SLOTS,                                        \
                                    .scheduler_cycles = EXANEST_SCHEDULER_CYCLES,                  \
                                    .scheduler_entries = EXANEST_TIDS,                             \
                                    .shifter_cycles = EXANEST_SHIFTER_CYCLES,                      \
                                    .control_bytes = 16})

struct exanest_exadma_port {
    struct exanest_exanetizer exanetizer;
    struct exanest_control_slot control;
};

struct exanest_exadma {
    struct exanest_exadma_config config;
    uint32_t active;       /* Bit i: port i sends, or has something to send. */
    uint32_t control_full; /* Bit i: port i's control packet is not sent yet. */
    bool releases;         /* Slots wait for their release (holds_slot). */
    struct exanest_exadma_port *ports;
    struct exanest_output_buffer *buffers;
    struct exanest_shifter shifter;
    struct exanest_scheduler scheduler;
    struct exanest_pending_list list;
};

size_t exanest_exadma_bytes(const struct exanest_exadma_config *config);
/* `memory` is aligned for any object. */
void exanest_exadma_init(struct exanest_exadma *exadma, const struct exanest_exadma_config *config,
                         void *memory);

void exanest_exadma_step(struct exanest_exadma *exadma);

/* Steps change nothing until the host or memory says something. (It may wait for memory.) */
static inline bool exanest_exadma_idle(const struct exanest_exadma *exadma)
{
    return exadma->active == 0 && !exadma->releases && exanest_scheduler_idle(&exadma->scheduler) &&
           exanest_shifter_idle(&exadma->shifter) && exanest_pending_idle(&exadma->list);
}

/* -- Host ---------------------------------------------------------------------------------------*/

/* WREADY; the other channels are the list's (pending_list.h). */
static inline bool exanest_exadma_write_data_ready(const struct exanest_exadma *exadma)
{
    return exanest_pending_write_data_ready(
        &exadma->list, exanest_scheduler_ready(&exadma->scheduler), exadma->control_full);
}

/* The stage of a store. The unit has the word from ANSWER on. */
enum exanest_store_stage {
    EXANEST_STORE_ADDRESS,
    EXANEST_STORE_DATA,
    EXANEST_STORE_ANSWER,
    EXANEST_STORE_DONE,
};

/* One store of the host, begun with stage ADDRESS. */
struct exanest_host_store {
    uint32_t address;
    uint16_t strobe;  /* Bytes of the 16-byte line that are written. */
    uint8_t stage;    /* enum exanest_store_stage. */
    uint8_t response; /* enum exanest_axi_response, in the end. */
    struct exanest_word data;
};

/* A store of 8 bytes; `address` is a multiple of 8. */
struct exanest_host_store exanest_host_store_64(uint32_t address, uint64_t data);

/* Does what can be done in this cycle of the store: three of them at least. True: it is done. */
MUST_USE bool exanest_exadma_write(struct exanest_exadma *exadma, struct exanest_host_store *store);

struct exanest_host_load {
    uint32_t address;
    uint8_t stage;
    uint8_t response;
    struct exanest_word data; /* The whole line of 16 bytes. */
};

MUST_USE bool exanest_exadma_read(struct exanest_exadma *exadma, struct exanest_host_load *load);

/* -- Memory -------------------------------------------------------------------------------------*/

static inline bool exanest_exadma_next_read(struct exanest_exadma *exadma,
                                            struct exanest_memory_read *read)
{
    return exanest_scheduler_next_read(&exadma->scheduler, read);
}

/* RREADY. */
static inline bool exanest_exadma_read_ready(const struct exanest_exadma *exadma)
{
    return exanest_shifter_ready(&exadma->shifter);
}

/* A word of a read, with RREADY; reads of one ID are answered in their order. */
void exanest_exadma_on_read_beat(struct exanest_exadma *exadma,
                                 const struct exanest_read_beat *beat);

/* -- Network ------------------------------------------------------------------------------------*/

static inline bool exanest_exadma_offer(const struct exanest_exadma *exadma, uint32_t port,
                                        struct exanest_beat *beat)
{
    CHECK(port < exadma->config.ports);
    return exanest_exanetizer_offer(&exadma->ports[port].exanetizer, beat);
}

static inline void exanest_exadma_taken(struct exanest_exadma *exadma, uint32_t port)
{
    CHECK(port < exadma->config.ports);
    exanest_exanetizer_taken(&exadma->ports[port].exanetizer);
}

/* Walks through everything: for tests. */
void exanest_exadma_check(const struct exanest_exadma *exadma);

#endif
