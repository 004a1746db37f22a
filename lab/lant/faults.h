/* SPDX-License-Identifier: BSD-2-Clause
 *
 * faults - a sender and the fault injector behind its line: the measurements of chapter 5.
 *
 * Purpose    Sends messages, one after the other, through a network that spoils packets, and says
 *            how long each took until its last packet was acknowledged.
 * Time       Picoseconds, which go on from message to message; the injector counts whole cycles.
 * Units      A message is a number of packets of 512 bytes.
 * Limits     Packets under way: LANT_ROWS_MAX. A packet goes again seven times at most.
 * Source     Lant 5.3.
 *
 * The sender is transport/lant's, as a node has it. The cost of a message: `setup` for each
 * descriptor that the DMA engine starts, `packet_ps` of the line for each packet, and the network.
 * A packet has its row from its first flit on, and enters the network with its last one. Failed
 * packets go again when the message has been issued (5.3.3); each waits for the answer of the one
 * before, unless `pipelined`. There is no early acknowledgement: chapter 5 had none. The
 * notification that all bytes have come is not part of the measurement, and is acknowledged at
 * once.
 */
#ifndef LAB_LANT_FAULTS_H
#define LAB_LANT_FAULTS_H

#include "hardware/lant/fault_injector.h"
#include "transport/lant/rdma_sender.h"

struct lant_fault_pair_config {
    struct lant_fault_config network;
    uint64_t packet_ps; /* A packet's time on the line. */
    uint32_t setup_cycles;
    uint16_t rows;  /* Packets under way. */
    bool pipelined; /* Packets that go again do not wait for answers. */
    /* Go-back-N: packets that were sent behind a failed one and are not answered fail, too. */
    bool goes_back;
};

struct lant_fault_message {
    uint64_t ps;             /* From the descriptor to the last answer. */
    uint64_t packets, again; /* First copies, and others. */
};

struct lant_fault_pair {
    struct lant_fault_pair_config config;
    struct lant_rdma rdma;
    struct lant_fault_injector network;
    uint64_t now_ps;
    uint64_t engine_ps; /* When the DMA engine can do something. */
    bool waits;         /* It cannot, before an answer. */
    bool entering;      /* `packet` enters the network at `enter_ps`, or when it can. */
    uint64_t enter_ps;
    struct lant_ends packet;
    bool goes_back[LANT_ROWS_MAX]; /* By row: whatever the answer is, the packet failed. */
};

/* The probability, in 2^32nds, that one of `bits` bits is wrong. */
uint64_t lant_fault_threshold(double bit_error_rate, uint32_t bits);

void lant_fault_pair_open(struct lant_fault_pair *pair,
                          const struct lant_fault_pair_config *config);

/* Sends a message and waits for its end. False: a packet failed eight times. */
MUST_USE bool lant_fault_pair_send(struct lant_fault_pair *pair, uint32_t packets,
                                   struct lant_fault_message *message);

#endif
