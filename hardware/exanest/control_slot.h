/* SPDX-License-Identifier: BSD-2-Clause
 *
 * control_slot - the four registers of an output port that hold its next control packet.
 *
 * Purpose    Collects the three stores of software; builds header and footer of the descriptor.
 * Inputs     exanest_control_store; exanest_control_consume, when the packet has been sent.
 * Outputs    `ready` and the fields of the packet, which stay until they are consumed.
 * Ownership  The caller owns the struct; zeroed memory is an empty slot.
 * Limits     One packet. While it is there, software gets no WREADY for this port.
 * Source     Xirouchakis 5.2, 5.3.1.2.
 *
 * Where the source is silent: a store for another TID than the one before begins a new packet. The
 * packet's destination is the descriptor's, but the start of its 16-byte line: the header counts
 * words by the address, and a control packet has two.
 */
#ifndef HARDWARE_EXANEST_CONTROL_SLOT_H
#define HARDWARE_EXANEST_CONTROL_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/exanest.h"

#define EXANEST_CONTROL_STORES 3u
#define EXANEST_CONTROL_BYTES  32u

struct exanest_control_slot {
    bool ready;
    uint8_t stage; /* Stores that have come: 0..2. */
    uint16_t tid;
    uint64_t stores[EXANEST_CONTROL_STORES];
    struct exanest_header header;
    struct exanest_word payload[2];
    struct exanest_footer footer; /* Without the CRCs. */
    uint64_t restarts;            /* Packets that were begun and then left for another TID. */
};

/* The slot must not be ready. `descriptor` is that of `tid`, `source` is the own coordinate, `port`
 * the slot's. True: it was the third store, and the packet is ready. */
bool exanest_control_store(struct exanest_control_slot *slot, uint32_t tid, uint64_t data,
                           const struct exanest_descriptor *descriptor, uint32_t source,
                           uint32_t port);

/* packetizer_slot_consume. */
void exanest_control_consume(struct exanest_control_slot *slot);

void exanest_control_slot_check(const struct exanest_control_slot *slot);

#endif
