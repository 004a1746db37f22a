/* SPDX-License-Identifier: BSD-2-Clause
 *
 * flow - busy senders on one switch of Ethernet, and a receiver that pauses.
 *
 * Purpose    The fate of frames when more come than can leave: lost, paused, marked, shared.
 * Ownership  The world owns hosts, switch and frames; nothing is allocated while it runs.
 * Units      Bytes of frames with FCS.
 * Limits     FLOW_SENDERS_MAX senders; frames carry no payload, but know their sender and number.
 * Source     sim/parts/ethernet_switch.h.
 *
 * Senders are the switch's ports 0 to `senders` - 1, the receiver is the next one. It sends frames
 * of its own to the senders in turn, of another class, as long as they send. It pauses the switch's
 * output to it; the switch pauses a sender's line.
 */
#ifndef LAB_NETWORK_FLOW_H
#define LAB_NETWORK_FLOW_H

#include "lab/lab.h"
#include "sim/parts/ethernet_switch.h"
#include "sim/pool.h"

#define FLOW_SENDERS_MAX 8u

struct flow_config {
    struct sim_ethernet_switch_kind kind;
    uint32_t senders;
    uint32_t frame_bytes, reverse_bytes; /* The latter 0: the receiver sends none. */
    enum sim_ecn ecn;
    bool unpaused;             /* The first sender's input has no flow control, and any room. */
    uint64_t start_ps;         /* When the first sender begins; the receiver begins at 0. */
    uint64_t stagger_ps;       /* The time between the starts of two senders. */
    uint64_t hold_ps, go_ps;   /* Between these the receiver's pause holds; equal: never. */
    uint64_t warm_ps, stop_ps; /* Counting begins at warm_ps; senders stop at stop_ps. */
};

struct flow_world;

struct flow_frame {
    struct sim_frame frame;
    uint32_t source, number;
    uint64_t sent_ps; /* Its last bit was out of its sender. */
};

struct flow_host {
    struct sim_port port;
    struct flow_world *world;
    struct sim_event start;
    uint32_t index;
    uint32_t made, came;
    uint32_t expected[FLOW_SENDERS_MAX + 1]; /* The least next number, by source. */
    uint32_t counted[FLOW_SENDERS_MAX + 1];  /* Frames of that source between warm and stop. */
};

struct flow_world {
    struct sim sim;
    struct flow_config config;
    struct sim_ethernet_switch middle;
    struct flow_host hosts[FLOW_SENDERS_MAX + 1];
    struct sim_pool pool;
    struct lab_run *run;
    struct sim_trace *trace;
    struct sim_capture *capture;
    uint32_t track;
    uint64_t lost[SIM_LOSSES];
    uint64_t ce; /* Frames that came to the receiver with CE. */
    uint64_t disordered;
    /* The sum and the number of latencies at the receiver, from the last bit out of the sender to
     * the last bit in. */
    uint64_t latency_ps, latencies;
};

void flow_open(struct flow_world *world, struct lab_run *run, const struct flow_config *config);
/* Runs until every frame has come to an end. */
void flow_run(struct flow_world *world);
/* Fails the run if a frame is unaccounted for, or came out of order; frees. */
void flow_close(struct flow_world *world);

static inline uint64_t flow_lost(const struct flow_world *world)
{
    return world->lost[SIM_NO_ROOM_AT_INPUT] + world->lost[SIM_NO_ROOM_AT_OUTPUT];
}

#endif
