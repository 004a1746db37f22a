/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pending_list - the 1024 descriptors of the send unit, and the AXI slave by which they are
 * written.
 *
 * Purpose    Keeps the descriptors. Software writes and reads them by single AXI accesses; the
 *            scheduler reads them whole and writes back how much has been sent.
 * Inputs     The AXI channels: exanest_pending_write_address, _write_data, _read_address. They may
 *            be called in a cycle in which the matching _ready is true.
 * Outputs    A write's effect on other units (struct exanest_pending_effect); the AXI answers.
 * Ownership  The caller owns the struct; zeroed memory is a list at start.
 * Time       Calls between two steps belong to the cycle of the first; the state machines change
 *            with the second.
 * Units      Byte addresses; words of 128 bits with a strobe bit for each byte.
 * Limits     One write and one read at a time, single accesses only: a burst is answered with an
 *            error. A strobe enables whole lanes of 32 bits.
 * Source     Xirouchakis 5.2, 5.3.1.1, 5.3.1.2. Where these differ: W3 starts a transaction
 *            (5.3.1.1), not W4 (5.2); a control packet's place has 16 bytes (5.2), and 32 (5.3.1.2)
 *            is an option. The transitions of the state machines are our choice.
 *
 * The document's memory is 2 banks of 4 lanes of 1024 x 32 bits. Here a descriptor's eight lanes
 * stand side by side: bank 0 is W1 and W2, bank 1 is W3 and W4.
 */
#ifndef HARDWARE_EXANEST_PENDING_LIST_H
#define HARDWARE_EXANEST_PENDING_LIST_H

#include "hardware/exanest/axi.h"

#define EXANEST_DESCRIPTOR_BYTES  32u
#define EXANEST_DESCRIPTORS_BYTES (EXANEST_TIDS * EXANEST_DESCRIPTOR_BYTES)
/* Where the segments of control packets begin, one for each port. */
#define EXANEST_CONTROL_AT 0x8000u

enum exanest_write_state {
    EXANEST_WRITE_IDLE,
    EXANEST_WRITE_CONTROL,
    EXANEST_WRITE_DATA,
    EXANEST_WRITE_ACK,
};

enum exanest_read_state {
    EXANEST_READ_IDLE,
    EXANEST_READ_WAIT,
    EXANEST_READ_READY,
};

struct exanest_access {
    uint32_t address;
    uint16_t left; /* Beats of the access that are still to come; more than 1: a burst. */
    uint8_t id;
    uint8_t response; /* enum exanest_axi_response. */
};

struct exanest_pending_counters {
    uint64_t writes, reads;
    uint64_t bursts;        /* Refused. */
    uint64_t wrong_strobes; /* Refused: part of a lane. */
    uint64_t wrong_places;  /* Refused: nothing stands at the address. */
};

struct exanest_pending_config {
    uint32_t ports;         /* Segments for control packets. */
    uint32_t control_bytes; /* A TID's place in one: 16, or 32. 0 means 16. */
    bool takes_pieces;      /* What-if: bits 62 and 61 of W3 can be written (no_first, no_last). */
};

struct exanest_pending_list {
    struct exanest_pending_config config;
    uint8_t write_state, write_next; /* Now, and from the next step on. */
    uint8_t read_state, read_next;
    struct exanest_access write, read;
    struct exanest_word read_word;
    struct exanest_pending_counters counters;
    uint64_t words[EXANEST_TIDS][EXANEST_DESCRIPTOR_WORDS];
};

/* EXA-05: 262,144 bits. */
_Static_assert(sizeof(((struct exanest_pending_list *)0)->words) * 8 == 262144, "5.3.1.1");

void exanest_pending_init(struct exanest_pending_list *list,
                          const struct exanest_pending_config *config);
void exanest_pending_step(struct exanest_pending_list *list);

static inline bool exanest_pending_idle(const struct exanest_pending_list *list)
{
    return list->write_next == EXANEST_WRITE_IDLE && list->read_next == EXANEST_READ_IDLE &&
           list->write_state == EXANEST_WRITE_IDLE && list->read_state == EXANEST_READ_IDLE;
}

/* -- Writes -------------------------------------------------------------------------------------*/

enum exanest_pending_event {
    EXANEST_PENDING_NOTHING,
    EXANEST_PENDING_RENEWED, /* W3's upper half of `tid` was written, with DB = 1: it waits. */
    EXANEST_PENDING_ENQUEUE, /* The same with DB = 0: o_enqueue. */
    EXANEST_PENDING_CONTROL, /* `data` is the next store of a control packet. */
};

struct exanest_pending_effect {
    uint8_t event; /* enum exanest_pending_event. */
    uint8_t port;
    uint16_t tid;
    uint64_t data;
};

/* AWREADY: is a write's address taken in this cycle? */
static inline bool exanest_pending_write_address_ready(const struct exanest_pending_list *list)
{
    return list->write_state == EXANEST_WRITE_IDLE && list->write_next == EXANEST_WRITE_IDLE;
}

/* `beats` is AWLEN + 1. */
void exanest_pending_write_address(struct exanest_pending_list *list, uint32_t address, uint8_t id,
                                   uint32_t beats);

/* WREADY. `enqueue_ready`: the scheduler can take a TID; `control_full`: ports whose control packet
 * is still to be sent. */
bool exanest_pending_write_data_ready(const struct exanest_pending_list *list, bool enqueue_ready,
                                      uint32_t control_full);

struct exanest_pending_effect exanest_pending_write_data(struct exanest_pending_list *list,
                                                         struct exanest_word data, uint16_t strobe);

/* BVALID, and BREADY by this call. False: there is no answer in this cycle. */
bool exanest_pending_next_write_answer(struct exanest_pending_list *list, uint8_t *id,
                                       enum exanest_axi_response *response);

/* -- Reads --------------------------------------------------------------------------------------*/

/* ARREADY. */
static inline bool exanest_pending_read_address_ready(const struct exanest_pending_list *list)
{
    return list->read_state == EXANEST_READ_IDLE && list->read_next == EXANEST_READ_IDLE;
}

void exanest_pending_read_address(struct exanest_pending_list *list, uint32_t address, uint8_t id,
                                  uint32_t beats);

/* RVALID, and RREADY by this call. A burst is answered with as many errors. */
bool exanest_pending_next_read_beat(struct exanest_pending_list *list,
                                    struct exanest_read_beat *beat);

/* -- The other port: scheduler and control packets ----------------------------------------------*/

static inline struct exanest_descriptor exanest_pending_descriptor(
    const struct exanest_pending_list *list, uint32_t tid)
{
    CHECK(tid < EXANEST_TIDS);
    return exanest_descriptor_decode(list->words[tid]);
}

/* Write-back: what software cannot write. The rest of W3 stays as it is by now. */
void exanest_pending_publish(struct exanest_pending_list *list, uint32_t tid, uint32_t sent,
                             bool done, bool error);

void exanest_pending_check(const struct exanest_pending_list *list);

#endif
