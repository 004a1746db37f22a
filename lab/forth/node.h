/* SPDX-License-Identifier: BSD-2-Clause
 *
 * node - a host with FORTH's NIC: memory, PCI-X bus, the NIC's units, and a program.
 *
 * Purpose    Puts the pure units of hardware/forth/ on a bus and a link, and lets a program use
 *            them as a driver would.
 * Ownership  The node owns its memory and its NIC, not the links.
 * Source     TR376 2.1, 3.1.
 */
#ifndef LAB_FORTH_NODE_H
#define LAB_FORTH_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "hardware/forth/config_space.h"
#include "hardware/forth/credit.h"
#include "hardware/forth/fifo.h"
#include "hardware/forth/initiator.h"
#include "hardware/forth/registers.h"
#include "hardware/forth/request_queue.h"
#include "hardware/forth/sampler.h"
#include "hardware/forth/voqs.h"
#include "lab/forth/bus.h"
#include "lab/forth/link.h"
#include "sim/memory.h"

#define FORTH_BAR1_QUEUE      0x4000u
#define FORTH_SAMPLE_INTERVAL 0x7cu
#define FORTH_SAMPLE_COUNT    0xd0u
#define FORTH_SAMPLE_DATA     0xd4u

struct forth_node_config {
    uint32_t index;
    struct sim_clock pci, net;
    uint32_t lanes;
    size_t memory_bytes;
    uint32_t read_overhead;  /* PCI cycles of a DMA read beside data and memory, */
    uint32_t write_overhead; /* and of a DMA write. */
    uint32_t post;           /* PCI cycles of writing a request. */
    uint32_t memory_cycles;  /* PCI cycles from the split response to the data, */
    uint32_t jitter;         /* and the most further ones, at random. */
    uint64_t seed;           /* For that. */
    uint32_t latency_timer;
    uint32_t to_pci, to_net; /* Net cycles until the other clock domain sees a packet. */
    /* The part of a packet that must be here before the bus may take it. */
    uint32_t part, of_parts;
    uint32_t credit; /* Net cycles for which a credit occupies the link. */
    uint64_t refresh_ps;
    /* The room where the link leads: a crosspoint's, a NIC's FIFO's, or FORTH_BUFFER_UNBOUNDED. */
    uint32_t window_words;
    uint32_t queues; /* From bus to network, one for each destination; 1: one FIFO for all. */
    bool full_by_pointer;
    bool core_shared;      /* The host posts while the core waits for fetched data. */
    bool credits_coalesce; /* One credit reports all changes of the counter. */
    bool crc_ignored;      /* Wrong packets are taken for good ones. */
    bool samples_apart;    /* A sample counts from the one before, not from the first one. */
};

struct forth_node;

/* The program on the host. A callback may post, and may change memory. */
struct forth_program {
    /* Gives the next request to write into the queue; false: none now. Called when the node holds
     * the bus. */
    bool (*post)(struct forth_node *node, struct forth_request *request);
    /* The NIC has read the data of a request, or cannot. */
    void (*fetched)(struct forth_node *node, const struct forth_request *request);
    /* A packet's payload is in memory. `flagged`: its body CRC was wrong. */
    void (*delivered)(struct forth_node *node, const struct forth_header *header, bool flagged);
    /* A notification has been written: its source buffer is free (local), or data came (remote). */
    void (*notified)(struct forth_node *node, bool remote, uint64_t word);
    void (*interrupted)(struct forth_node *node);
    void *owner;
};

/* The true numbers, to be compared with the counters of the NIC. */
struct forth_truth {
    uint64_t posted, fetched, delivered, qwords_out, qwords_in, flagged, header_errors, bad_credits;
    uint64_t local_notifications, remote_notifications, interrupts, credits_in, credits_out;
    uint64_t packets_out, bad_requests, aborts;
};

struct forth_node {
    struct forth_end end;
    struct forth_fabric *fabric;
    struct forth_link *out;
    struct forth_end *peer; /* Where the link leads when it is not looped back. */
    struct forth_node_config config;
    struct forth_program program;
    struct sim_memory memory;
    struct forth_bus bus;
    struct forth_bus_user host, reader, writer;
    /* The unit holds the bus for an operation that a reset has ended. */
    bool reader_stale, writer_stale;
    /* The NIC. */
    struct forth_config_space config_space;
    struct forth_registers registers;
    struct forth_queue queue;
    struct forth_voqs voqs; /* Its requests, if there is more than one queue to the network. */
    struct forth_sampler sampler;
    struct forth_fetch fetch;
    struct forth_delivery delivery;
    struct forth_fifo host2net, net2host;
    struct forth_window windows[FORTH_NODES];
    struct forth_ledger ledger;
    /* The world's side of it. */
    struct forth_request next; /* The program's next request, if `has_next`. */
    bool has_next;
    struct forth_packet *filling; /* The packet that the fetch fills. */
    bool fetch_queued;            /* Its request is still the queue's head: there was no reset. */
    struct list outgoing[FORTH_PORTS_MAX]; /* By queue to the network. */
    uint64_t sendable;                     /* Bit i: queue i has a packet. */
    uint32_t words_to[FORTH_PORTS_MAX];    /* The part of Host2Net that each queue uses. */
    uint32_t fetched_last, sent_last;      /* The queues whose turn was last. */
    struct list incoming;
    struct sim_event transmit, split, room, forward, refresh, sample;
    uint32_t leaving, leaving_queue; /* Words of the packet that is leaving Host2Net, */
    uint64_t leaving_from_ps;
    /* How often the ledger's value has changed since the last credit was sent. */
    uint32_t credits_due;
    uint32_t quiet_refreshes;
    /* Words of the tenure under way: those that the host has, and all. */
    uint32_t forwarded, to_forward;
    uint64_t forward_from_ps;
    uint64_t fetch_from, delivery_from, split_from; /* PCI cycles. */
    uint64_t blocked_from_ps, irq_from;
    bool blocked, irq;
    uint32_t samples_out, samples_in; /* QWords at the sampler's start. */
    uint32_t notifications;
    struct prng prng;
    uint64_t credit_told_ps; /* When the last credit that changed a window came. */
    uint32_t fifo_track;     /* The track in the trace that shows the words in Host2Net. */
    struct forth_truth truth;
};

void forth_node_open(struct forth_node *node, struct forth_fabric *fabric, struct forth_link *out,
                     const struct forth_node_config *config);
void forth_node_close(struct forth_node *node);

/* Says that the program has something to post. */
void forth_node_kick(struct forth_node *node);

/* Requests that the NIC has not begun to serve, or is serving; those of them that would have to be
 * served before another one for `to`. */
uint32_t forth_node_pending(const struct forth_node *node);
uint32_t forth_node_pending_to(const struct forth_node *node, uint32_t to);

/* The driver, outside of measured time: registers by offset from BAR1, and configuration space. */
uint32_t forth_node_read(struct forth_node *node, uint32_t offset);
void forth_node_write(struct forth_node *node, uint32_t offset, uint32_t value);
void forth_node_configure(struct forth_node *node, uint32_t offset, uint32_t value);

/* Memory of the host. `length` bytes at `address` must lie in it. */
uint8_t *forth_node_memory(struct forth_node *node, uint64_t address, size_t length);

/* -- Between the files of a node ----------------------------------------------------------------*/

uint64_t forth_node_cycle(const struct forth_node *node); /* The PCI cycle now. */
void forth_node_count(struct forth_node *node, enum forth_counter counter, uint64_t amount);
static inline uint64_t forth_node_pci_ps(const struct forth_node *node, uint64_t cycles)
{
    return sim_clock_at(node->config.pci, cycles);
}
/* A word on the link begins with bits 63..56, in memory with bits 7..0. */
void forth_node_swap_words(void *to, const void *from, uint32_t words);
void forth_node_count_dma(struct forth_node *node); /* For the timer and the sampler. */
/* A write of one word, if there is memory at its address. */
void forth_node_notify(struct forth_node *node, uint64_t address, uint64_t word);
void forth_node_attach_bus(struct forth_node *node);    /* forth_dma.c */
void forth_node_attach_writer(struct forth_node *node); /* forth_delivery.c */
void forth_node_attach_link(struct forth_node *node);   /* forth_net.c */
void forth_node_fetch(
    struct forth_node *node); /* Begins every fetch and delivery that can begin. */
void forth_node_deliver(struct forth_node *node);
void forth_node_transmit(struct forth_node *node); /* A packet or a credit is ready to be sent. */
void forth_node_forwarded(struct forth_node *node, uint32_t words);
/* The time at which Host2Net has room for `words` words of a queue, 0 for now; UINT64_MAX: not
 * before another packet begins. */
uint64_t forth_node_room_ps(struct forth_node *node, uint32_t queue, uint32_t words);
/* The queue to the network in which packets for `to` wait. */
static inline uint32_t forth_node_queue(const struct forth_node *node, uint32_t to)
{
    return node->config.queues > 1 ? to % FORTH_PORTS_MAX : 0;
}
void forth_node_show_fifo(struct forth_node *node); /* Shows its level in the trace. */
void forth_node_reset_link(struct forth_node *node);
void forth_node_reset_dma(struct forth_node *node);

#endif
