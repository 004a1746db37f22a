/* SPDX-License-Identifier: BSD-2-Clause
 *
 * node - a board in time: its servers around the engine of transport/feroce.
 *
 * Purpose    Generator, queues, memory write, reader, memory read and line, one after the other.
 * Ownership  The machine owns it; it must not move.
 * Units      Cycles of the board's clock where the name says so.
 * Limits     FEROCE_SENT_MAX packets of a queue pair between sending and acknowledgement.
 * Source     RTL2026 and RTL2024 (wire/feroce.h); hardware/feroce/timing.h.
 *
 * Stack 2026: a queue fills a packet in its framer, the memory write stores it, and only then the
 * reader can find it (FER-63). Stack 2024 has neither: a packet streams from the generator to the
 * line. A packet that the memory read has begun leaves, even if it is acknowledged meanwhile.
 */
#ifndef LAB_FEROCE_NODE_H
#define LAB_FEROCE_NODE_H

#include "lab/feroce/packet.h"
#include "lab/feroce/setup.h"
#include "transport/feroce/generator.h"

#define FEROCE_SENT_MAX    2048u
#define FEROCE_READY_MAX   128u
#define FEROCE_OUTPUT_MAX  64u
#define FEROCE_REQUESTS    16u /* Work requests that wait. */
#define FEROCE_ARP_TRIES   4u
#define FEROCE_ARP_WAIT_PS (UINT64_C(36) * 1000 * 1000 * 1000 * 1000)

/* A packet that is whole in its framer. */
struct feroce_ready {
    struct feroce_message message;
    uint32_t bytes;
    bool last;
};

struct feroce_sent {
    uint64_t tail_ps;  /* Its last bit on the line; 0: it has not begun. */
    uint64_t begun_ps; /* Its BTH, in front of the UDP/IP stack. */
    uint32_t bytes;
    bool is_last;
};

/* One queue of a board. */
struct feroce_queue_server {
    struct feroce_node *node;
    uint32_t index;
    struct sim_event event; /* A packet is filled, or the generator is due. */
    struct feroce_generator generator;
    bool filling;
    struct feroce_message message;
    uint32_t left; /* Bytes of the message that are not in the framer. */
    bool first;
    uint64_t next_message_ps; /* The generator's pace. */
    struct feroce_ready ready[FEROCE_READY_MAX];
    uint32_t ready_first, ready_count, ready_bytes, ready_requests;
    struct feroce_sent sent[FEROCE_SENT_MAX];
    uint64_t transfer_ps; /* The BTH of the message's first packet; 0: none is under way. */
    uint64_t messages, acked_bytes, acked_packets, dropped; /* Acknowledged; dropped: not in RTS. */
};

/* The last values of what a monitor measures, in cycles. */
#define FEROCE_MONITORED 256u
struct feroce_monitor {
    uint64_t count;
    uint64_t cycles[FEROCE_MONITORED];
};

struct feroce_design;

struct feroce_node {
    struct feroce_machine *machine;
    struct sim *sim;
    uint32_t number;
    struct feroce_timing timing;
    struct feroce_board board;
    void *memory;
    struct sim_port port;
    struct feroce_design *design; /* In the place of all servers; NULL: they are the board. */
    struct feroce_queue_server queues[FEROCE_QPS_MAX];
    /* Memory write. */
    struct sim_event write;
    bool writing;
    uint32_t write_index, write_turn;
    /* Reader: the time of its next visit, and whether it waits for work. */
    struct sim_event read;
    uint64_t visit_ps;
    bool asleep, blocked;
    struct feroce_packet_on_line *in_hand;
    /* Memory read, headers, ICRC. */
    struct sim_event send;
    struct feroce_packet_on_line *output[FEROCE_OUTPUT_MAX];
    uint32_t output_first, output_count;
    bool sending;
    uint32_t ahead; /* Packets handed on and not on the line. */
    uint16_t identification;
    struct sim_event timer;
    /* Counters and times of its work. */
    uint64_t messages, acked_bytes, acks;
    uint64_t packets, resent;
    uint64_t frame_bytes, payload_bytes; /* Without preamble and gap. */
    uint64_t last_ack_ps, last_nak_ps, first_resend_ps, failed_ps;
    uint64_t oldest_resends; /* Packets sent again whose PSN is CPL + 1. */
    uint64_t unresolved, arp_requests;
    uint8_t syndrome; /* The queue pair's that failed last. */
    uint64_t cm_replies;
    struct feroce_monitor latency, transfer;
    uint32_t bad_icrcs;
};

void feroce_node_open(struct feroce_node *node, struct feroce_machine *machine, uint32_t number);
void feroce_node_close(struct feroce_node *node);

/* Its engine's time. */
struct instant feroce_node_now(const struct feroce_node *node);
/* An ACK as it stands on the wire, handed to the board at once. */
enum feroce_arrival feroce_node_answer(struct feroce_node *node, const uint8_t *bytes, size_t count,
                                       bool icrc_is_right);

/* -- Monitors -----------------------------------------------------------------------------------*/

static inline uint32_t feroce_node_psn_diff(const struct feroce_node *node, uint32_t index)
{
    const struct feroce_window *window = &node->board.window.windows[index];
    return psn_count(window->acked, window->written);
}

static inline void feroce_monitor_note(struct feroce_monitor *monitor, uint64_t cycles)
{
    monitor->cycles[monitor->count++ % FEROCE_MONITORED] = cycles;
}

/* The mean of the last 2^k values, in cycles; 0: there are fewer, or they are not kept. */
static inline double feroce_monitor_mean(const struct feroce_monitor *monitor, uint32_t k)
{
    const uint64_t values = UINT64_C(1) << k;
    if (values > FEROCE_MONITORED || monitor->count < values) {
        return 0;
    }
    uint64_t sum = 0;
    for (uint64_t i = monitor->count - values; i < monitor->count; i++) {
        sum += monitor->cycles[i % FEROCE_MONITORED];
    }
    return (double)sum / (double)values;
}

#endif
