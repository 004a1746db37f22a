/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crossbar - FORTH's buffered crossbar: a small buffer at every crosspoint, a scheduler at every
 * output, and credits that tell every input's node what has left.
 *
 * Purpose    Moves packets of any size, uncut, from N inputs to N outputs without loss.
 * Ownership  The crossbar owns its ports and crosspoints, not the links nor the packets' memory.
 * Units      QWords, a packet's overhead of FORTH_OVERHEAD_WORDS included.
 * Limits     FORTH_PORTS_MAX ports.
 * Source     TR376 3.2.
 */
#ifndef LAB_FORTH_CROSSBAR_H
#define LAB_FORTH_CROSSBAR_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/forth/credit.h"
#include "hardware/forth/scheduler.h"
#include "lab/forth/link.h"

struct crossbar_config {
    uint32_t ports;
    struct sim_clock clock;
    uint32_t sync;   /* Cycles until the other clock domain sees a packet or a departure. */
    uint32_t decide; /* Cycles that an output scheduler takes to choose, */
    uint32_t inform; /* and until its interface knows the choice. */
    uint32_t lead; /* The output begins to choose the next packet at this number of cycles before a
                    * packet's end. */
    enum forth_arbiter arbiter;
    uint32_t weight;       /* Turns of input 0, if the arbiter has weights. */
    uint32_t change_over;  /* Cycles between packets of different crosspoints. */
    uint32_t credit;       /* Cycles of the link that a credit occupies. */
    uint64_t refresh_ps;   /* A credit that has not changed is repeated this often; 0: never. */
    uint32_t buffer_words; /* The buffer of a crosspoint. */
    uint32_t node_words;   /* The incoming FIFO of the attached node; or FORTH_BUFFER_UNBOUNDED. */
    bool crc_ignored;      /* Packets with a wrong header go where the wrong header says. */
};

struct crosspoint {
    struct list packets; /* Their heads have come; they have not begun to leave. */
    uint32_t words;      /* The words of `packets`. */
    uint32_t peak;       /* Most words that were ever in the buffer. */
    uint32_t leaving;    /* Words of the packet that left last, */
    uint64_t left_ps;    /* and when all of it is gone. */
    uint32_t track;      /* The number of its track in the trace. */
};

struct crossbar;

struct crossbar_port {
    struct sim_event serve; /* The output is to choose. The members up to `end` serve that. */
    struct crossbar *crossbar;
    struct forth_link *out;     /* To the attached node. */
    struct forth_window window; /* The words that the attached node has room for. */
    uint32_t index;
    int chosen;             /* The input whose packet waits for room at the node; -1: none. */
    int served;             /* The input whose packet went last. */
    uint64_t packet_end_ps; /* When the packet that went last ends. */
    uint64_t informed_ps;   /* When the interface knows the choice that is made last. */
    uint64_t told_ps;       /* The time from which on the newest departure can be told. */
    uint32_t refreshes_due;
    bool ahead; /* The choice that is made last began before the last packet's end. */
    uint64_t packets_out, words_out;
    struct forth_output_scheduler scheduler;
    struct forth_credit_scheduler credits;
    struct forth_end end; /* The attached node's words come in here. */
    uint64_t packets_in, words_in;
    struct sim_event tell; /* A credit is to be sent. */
    struct sim_event refresh;
    uint64_t gap_ps; /* Idle times before packets that waited when the one before ended, summed. */
    uint64_t discarded, bad_credits, unrepaired;
    uint64_t overflows; /* Packets that a crosspoint had no room for. */
};

struct crossbar {
    struct forth_fabric *fabric;
    struct crossbar_config config;
    struct crossbar_port *ports;
    struct crosspoint *points; /* [input * ports + output]. */
    uint8_t route[FORTH_NODES];
    uint64_t cycle_ps;
    uint64_t flight_ps_last; /* The newest packet: from its head in to its first word out. */
};

/* Allocates ports and crosspoints. Routes: flow f to output f modulo the ports. */
void crossbar_open(struct crossbar *crossbar, struct forth_fabric *fabric,
                   const struct crossbar_config *config);
void crossbar_close(struct crossbar *crossbar);

/* The link by which `port` sends to its node. Then the port's end may be sent to. */
void crossbar_attach(struct crossbar *crossbar, uint32_t port, struct forth_link *out);

/* Words in every crosspoint as tracks of the fabric's trace. */
void crossbar_trace(struct crossbar *crossbar, struct sim_trace *trace);

static inline struct forth_end *crossbar_end(struct crossbar *crossbar, uint32_t port)
{
    return &crossbar->ports[port].end;
}

static inline const struct crosspoint *crossbar_point(const struct crossbar *crossbar,
                                                      uint32_t input, uint32_t output)
{
    return &crossbar->points[input * crossbar->config.ports + output];
}

#endif
