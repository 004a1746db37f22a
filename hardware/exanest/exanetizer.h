/* SPDX-License-Identifier: BSD-2-Clause
 *
 * exanetizer - makes packets from an output port's slots and control registers.
 *
 * Purpose    One packet after the other, header to footer without a gap; control packets first,
 *            but never inside another packet. Sums the payload and completes header and footer.
 * Inputs     The output buffer and the control slot; exanest_exanetizer_taken (Ready).
 * Outputs    exanest_exanetizer_offer: the beat of this cycle, the same one until it is taken.
 * Time       It looks at slots that were filled in earlier cycles.
 * Source     Xirouchakis 5.3.5.
 *
 * The slot is free when its last word of payload has been taken. The footer is copied then: the
 * scheduler may write the registers of the slot anew while the network does not take the footer.
 */
#ifndef HARDWARE_EXANEST_EXANETIZER_H
#define HARDWARE_EXANEST_EXANETIZER_H

#include "hardware/exanest/beat.h"
#include "hardware/exanest/control_slot.h"
#include "hardware/exanest/output_buffer.h"

enum exanest_exanetizer_state {
    EXANEST_EXANETIZER_IDLE,
    EXANEST_SEND_HEADER,
    EXANEST_SEND_PAYLOAD,
    EXANEST_PAYLOAD_WAIT,
    EXANEST_SEND_FOOTER,
    EXANEST_SEND_CONTROL_HEADER,
    EXANEST_SEND_CONTROL_PAYLOAD,
    EXANEST_SEND_CONTROL_FOOTER,
};

struct exanest_exanetizer_counters {
    uint64_t packets, bytes; /* Data, and its payload. */
    uint64_t control_packets;
    uint64_t waits; /* Cycles in which a beat was not taken. */
};

struct exanest_exanetizer {
    uint8_t state;
    uint8_t port;
    bool taken; /* The beat was, in this cycle. */
    /* Variation (EXA-A11): a slot is free only `hold_cycles` after the footer was taken. */
    bool holds_slot;
    uint16_t hold_cycles;
    uint8_t slot;
    uint8_t sent, words; /* Words of payload that were offered, and the number of all. */
    uint32_t crc;
    struct exanest_footer footer;
    struct exanest_beat beat;
    struct exanest_exanetizer_counters counters;
};

void exanest_exanetizer_step(struct exanest_exanetizer *exanetizer,
                             struct exanest_output_buffer *buffer,
                             struct exanest_control_slot *control);

static inline bool exanest_exanetizer_offer(const struct exanest_exanetizer *exanetizer,
                                            struct exanest_beat *beat)
{
    if (exanetizer->state == EXANEST_EXANETIZER_IDLE || exanetizer->taken) {
        return false;
    }
    *beat = exanetizer->beat;
    return true;
}

static inline void exanest_exanetizer_taken(struct exanest_exanetizer *exanetizer)
{
    CHECK(exanetizer->state != EXANEST_EXANETIZER_IDLE && !exanetizer->taken);
    exanetizer->taken = true;
}

/* At rest: only a filled slot or a control packet gives it something to do. */
static inline bool exanest_exanetizer_idle(const struct exanest_exanetizer *exanetizer)
{
    return exanetizer->state == EXANEST_EXANETIZER_IDLE;
}

void exanest_exanetizer_check(const struct exanest_exanetizer *exanetizer,
                              const struct exanest_output_buffer *buffer,
                              const struct exanest_control_slot *control);

#endif
