/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crossbar - ExaCrossb: whole packets from inputs to outputs, without buffers.
 *
 * Purpose    Chooses per output, round robin, the input whose packet is next, and keeps the output
 *            with it from header to footer.
 * Inputs     The beats that the inputs show in this cycle, each with the output that routing.h
 *            gives for its packet; which outputs take the beat that stands at them.
 * Outputs    Which inputs were taken; the beat at each output.
 * Ownership  The caller owns the struct and the offers. A beat at an output is the crossbar's, to
 *            look at until the next step.
 * Time       One call of exanest_crossbar_step is one 150 MHz cycle. A word taken in cycle t stands
 *            at its output in cycle t + latency.
 * Units      Words; masks in which bit p is port p.
 * Limits     EXANEST_PORTS_MAX ports.
 * Source     Xirouchakis 3.2.2, 6.4. Round robin, and when words stall: our choice.
 *
 * The cycles of latency are registers, one behind the other, of each output. They stop all
 * together, empty ones too, while the last one has a word that is not taken. So the idle cycles
 * between two packets stay between them, and an input sees that its word is not taken.
 *
 * A world's cycle: for each output of exanest_crossbar_shown ask the slave whether it takes
 * exanest_crossbar_beat, and give it; collect the offers; step; tell the inputs that were taken.
 *
 * An input shows the same beat until it is taken (3.2.4). So a header that waits is looked at once,
 * and waiting costs nothing per cycle.
 */
#ifndef HARDWARE_EXANEST_CROSSBAR_H
#define HARDWARE_EXANEST_CROSSBAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "hardware/exanest/beat.h"
#include "hardware/exanest/routing.h"

#define EXANEST_CROSSBAR_LATENCY     2u /* Cycles (3.2.2). */
#define EXANEST_CROSSBAR_IDLE        2u /* Cycles between two packets of an output (3.2.2). */
#define EXANEST_CROSSBAR_LATENCY_MAX 7u
#define EXANEST_CROSSBAR_IDLE_MAX    8u

struct exanest_crossbar_config {
    uint8_t ports;   /* 1 .. EXANEST_PORTS_MAX. */
    uint8_t latency; /* 1 .. EXANEST_CROSSBAR_LATENCY_MAX. */
    uint8_t idle;    /* 0 .. EXANEST_CROSSBAR_IDLE_MAX. */
};

/* An input's beat in this cycle. */
struct exanest_offer {
    struct exanest_beat beat;
    uint8_t output; /* With a header: its packet's, or EXANEST_NO_PORT. Else void. */
};

struct exanest_crossbar_counters {
    uint64_t words, packets;     /* Taken towards an output. */
    uint64_t discarded, dropped; /* Packets for no port, and their words. */
};

struct exanest_crossbar {
    uint8_t ports, latency, idle;
    uint32_t waiting;                            /* Inputs whose header waits for its output. */
    uint32_t engaged;                            /* Inputs in the midst of a packet. */
    uint32_t discarding;                         /* Inputs of `engaged` whose packet is dropped. */
    uint32_t wanted;                             /* Outputs with requests. */
    uint32_t busy;                               /* Outputs in the midst of a packet. */
    uint32_t resting;                            /* Outputs between two packets: all of `rest`. */
    uint32_t full[EXANEST_CROSSBAR_LATENCY_MAX]; /* Register i: outputs with a word in it. */
    uint32_t rest[EXANEST_CROSSBAR_IDLE_MAX]; /* Place i: outputs whose rest began i cycles ago. */
    uint32_t requests[EXANEST_PORTS_MAX];     /* By output: the inputs that wait for it. */
    uint8_t output_of[EXANEST_PORTS_MAX];     /* By input. */
    uint8_t last[EXANEST_PORTS_MAX];          /* By output: the input that was chosen last. */
    uint8_t heads[EXANEST_PORTS_MAX], tails[EXANEST_PORTS_MAX]; /* Free-running. */
    struct exanest_crossbar_counters counters;
    struct exanest_beat words[EXANEST_PORTS_MAX][EXANEST_CROSSBAR_LATENCY_MAX + 1];
};

struct exanest_crossbar_config exanest_crossbar_default(void);
void exanest_crossbar_init(struct exanest_crossbar *crossbar,
                           const struct exanest_crossbar_config *config);

/* Outputs at which a beat stands in this cycle. */
static inline uint32_t exanest_crossbar_shown(const struct exanest_crossbar *crossbar)
{
    return crossbar->full[crossbar->latency - 1];
}

static inline const struct exanest_beat *exanest_crossbar_beat(
    const struct exanest_crossbar *crossbar, uint32_t output)
{
    return &crossbar->words[output][crossbar->heads[output] & EXANEST_CROSSBAR_LATENCY_MAX];
}

/* A cycle. Bits of `offered` say which of `offers` are there; bits of `ready`, which outputs take
 * the beat that stands at them (others are ignored). Returns the inputs that were taken. */
MUST_USE uint32_t exanest_crossbar_step(struct exanest_crossbar *crossbar, uint32_t offered,
                                        const struct exanest_offer offers[], uint32_t ready);

/* Would a cycle without offers change nothing? */
static inline bool exanest_crossbar_idle(const struct exanest_crossbar *crossbar)
{
    uint32_t any = crossbar->engaged | crossbar->waiting | crossbar->resting;
    for (uint32_t i = 0; i < crossbar->latency; i++) {
        any |= crossbar->full[i];
    }
    return any == 0;
}

#endif
