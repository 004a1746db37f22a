/* SPDX-License-Identifier: BSD-2-Clause
 *
 * node - a network interface with its memory, on a fabric: the tables at work, in their time.
 *
 * Purpose    Experiments run these nodes, which load, store and transfer, in cycles.
 * Time       Picoseconds, which are also the ticks of the tables; the costs are cycles.
 * Limits     LANT_ACCESSES_MAX beats that wait to be issued on a node.
 * Source     Lant 3.3, 3.4, 5.2, 6.1, 6.2.
 *
 * A packet is one event where it leaves and one where it has come. The output takes, in this
 * order: answers, loads and stores, words that an operation is complete, the DMA engine's packets,
 * reports.
 */
#ifndef LAB_LANT_NODE_H
#define LAB_LANT_NODE_H

#include "hardware/lant/answers.h"
#include "hardware/lant/routing.h"
#include "lab/lant/fabric.h"
#include "lab/lant/watch.h"
#include "transport/lant/atomics.h"
#include "transport/lant/rdma_sender.h"
#include "transport/lant/rdma_target.h"
#include "transport/lant/reorder.h"
#include "transport/lant/shm_access.h"
#include "transport/lant/shm_target.h"

#define LANT_ACCESSES_MAX 1024u
#define LANT_DELAYED_MAX  128u

/* In cycles; parameters.c says where they come from. */
struct lant_costs {
    uint32_t shm_issue, shm_beat, shm_receive, shm_done;
    uint32_t rdma_setup, ram, rdma_receive, rdma_done;
    uint32_t row;         /* From an RDMA_ACK's last flit until its row is free. */
    uint32_t early_timer; /* From a footer to the early acknowledgement. */
    uint32_t t_gen;
    uint32_t memory; /* From the interface to memory and back, beyond the other costs. */
    bool cut_through;
};

/* Timers that follow from the distance, where nodes stand in a torus (5.2.2.1). */
struct lant_distance_timers {
    bool used;          /* Else every packet has the same timer. */
    uint64_t base, hop; /* Ticks: `base` and `hop` for each hop. */
    struct lant_torus torus;
};

/* How long receivers remember and numbers rest is not the caller's to say: lant_world_open works it
 * out from timeouts, retries and segments. */
struct lant_node_config {
    struct lant_costs costs;
    struct lant_shm_config shm;
    struct lant_rdma_config rdma;
    struct lant_shm_target_config shm_target;
    struct lant_rdma_target_config rdma_target;
    struct lant_inbound_config inbound;
    uint32_t notifications; /* In each of the two queues. */
    uint32_t burst_window;  /* Bursts for which the DMA engine has no answer of the bus. */
    uint32_t early_timers;  /* RDMA's; 0: no early acknowledgement. */
    uint64_t memory_bytes;
    uint32_t reorder;   /* Packets of the buffer for keyholes; 0: they go on as they come. */
    uint32_t in_charge; /* The node whose CPU hears of accelerators' failures. */
    struct lant_distance_timers timers;
    struct lant_atomics_config atomics; /* Off, unless it has entries. */
    bool believes_crc; /* Receivers take any CRC for right: what the code is worth. */
};

/* The document's values, and our choices where it has none, in picoseconds. */
struct lant_node_config lant_node_default(void);

/* A program on a node. Any of the calls may be NULL. */
struct lant_program {
    void *context;
    void (*on_done)(void *context, const struct lant_shm_done *done);
    /* All data of the transfer have left: what send() waits for. */
    void (*on_pushed)(void *context, uint32_t tag);
    void (*on_notification)(void *context, enum lant_queue queue,
                            const struct lant_notification *notification);
    /* Without on_notification: there is something for lant_node_poll. */
    void (*on_ready)(void *context, enum lant_queue queue);
    /* A packet of a keyhole, for whoever reads behind its address. */
    void (*on_stream)(void *context, const struct lant_packet *packet);
    /* A peer's store has changed the 8 bytes at this local address. */
    void (*on_stored)(void *context, uint64_t address);
};

struct lant_world;

/* A packet at a node: from its arrival until its answer has left. */
struct lant_visit {
    struct sim_event event;
    struct list place; /* In a queue of the node. */
    struct lant_node *node;
    uint64_t ready_ps; /* An answer's first flit can leave. */
    bool judged;       /* Data of RDMA that `write` says how to write. */
    uint8_t local_id;  /* By which memory answers. */
    uint8_t strobe;
    uint64_t address, data;
    uint32_t tag; /* An atomic's. */
    struct lant_rdma_write write;
    struct lant_packet packet; /* The packet that came; then the answer to it. */
};

struct lant_dma {
    bool active, first;   /* A descriptor is in progress, and no packet of it has left. */
    uint64_t ready_ps;    /* The next packet's first flit can leave. */
    uint32_t unanswered;  /* Bursts without an answer of the bus. */
    uint32_t early;       /* Packets under way that were acknowledged early, */
    uint32_t waiting;     /* and that wait for a timer to be so. */
    struct sim_event bus; /* The bus answers. */
};

struct lant_node_counters {
    uint64_t sent, received;
    uint64_t verdicts[LANT_VERDICT_COUNT];
    uint64_t repaired;
    uint64_t dropped_full; /* More packets at nodes than the world has room for. */
    uint64_t reports;
    uint64_t reorder_busy, reorder_far; /* Packets of keyholes that were dropped. */
    uint64_t notifications[LANT_QUEUE_COUNT];
};

struct lant_node {
    struct lant_world *world;
    uint32_t index;
    struct lant_program program;
    uint8_t *memory;
    void *tombstones, *recent, *atomics_memory;
    struct lant_ranges ranges;
    struct lant_shm shm;
    struct lant_shm_target shm_target;
    struct lant_atomics atomics;
    uint64_t atomics_free_ps; /* Their unit, which reads and writes memory, can take the next. */
    struct lant_inbound inbound;
    struct lant_reorder *reorder; /* NULL: none. */
    struct lant_rdma rdma;
    struct lant_errors errors;
    struct lant_notifications notifications[LANT_QUEUE_COUNT];
    struct lant_node_counters counters;
    /* The output. */
    struct sim_event output; /* It is free, or something is ready. */
    uint64_t free_ps;
    bool sending; /* The packet of `last` leaves until free_ps. */
    struct lant_ends last;
    bool last_ends; /* It is the last packet of the transfer `last_tag`. */
    uint32_t last_tag;
    struct list answers; /* By the time at which they are ready. */
    struct lant_dma dma;
    /* Beats that wait to be issued, and the results of those that were. */
    struct sim_event issue, done, notify, timer;
    struct {
        uint32_t first, count;
        struct {
            struct lant_shm_request request;
            uint64_t ready_ps;
        } ring[LANT_ACCESSES_MAX];
    } beats;
    struct {
        uint32_t first, count;
        struct {
            struct lant_shm_done done;
            uint64_t at_ps;
        } ring[LANT_DELAYED_MAX];
    } delayed;
    /* Transfers that have ended: when their notifications are due. */
    struct {
        uint32_t first, count;
        uint64_t at_ps[LANT_RDMA_ENDED_MAX];
    } ended[LANT_QUEUE_COUNT];
    struct list held;  /* Requests for which the CAM has no room, in their order. */
    struct list words; /* Notifications that an operation is complete, for which the queue has no
                        * room. */
    uint64_t answered_ps[2][LANT_INBOUND_ENTRIES_MAX]; /* By direction and local ID: memory's last
                                                        * answer. */
    struct lant_rdma_target rdma_target; /* At the end: large, and touched in parts. */
};

struct lant_world {
    struct sim *sim;
    struct lant_node_config config;
    struct lant_fabric fabric;
    struct sim_pool visits;
    struct lant_watch *watch; /* The caller's; NULL: nobody looks. */
    struct lant_node *nodes;
    uint32_t count;
};

/* False: the topology is wrong, and `error` says how. `world` must not move afterwards. */
MUST_USE bool lant_world_open(struct lant_world *world, const struct lant_node_config *config,
                              const struct lant_fabric_config *fabric, struct sim *sim,
                              uint64_t seed, char *error, size_t error_bytes);
void lant_world_close(struct lant_world *world);
/* No node has anything to do, and nothing is on its way. */
bool lant_world_idle(const struct lant_world *world);

/* A load or store of the node's program; `bytes` are those of a store. False: no room, or it is
 * none that lant_shm_access_judge finds good. */
MUST_USE bool lant_node_access(struct lant_node *node, const struct lant_shm_access *access,
                               const uint8_t *bytes);
/* A transfer out of the node's memory. One that fails before all has left is only notified. */
MUST_USE enum lant_submit lant_node_submit(struct lant_node *node, enum lant_queue queue,
                                           const struct lant_work *work);

/* The oldest notification, of a node whose program has no on_notification. False: none. */
MUST_USE bool lant_node_poll(struct lant_node *node, enum lant_queue queue,
                             struct lant_notification *notification);

static inline uint64_t lant_cycles(uint64_t cycles)
{
    return cycles * LANT_CYCLE_PS;
}

/* -- Between the files --------------------------------------------------------------------------*/

/* node_output.c */
void lant_node_pump(struct lant_node *node);
void lant_node_on_output(struct sim *sim, struct sim_event *event);
void lant_node_on_bus(struct sim *sim, struct sim_event *event);
/* A packet of the DMA engine has been answered, or its time is over. */
void lant_node_packets_over(struct lant_node *node);
/* node_input.c */
void lant_node_on_frame(void *nodes, uint32_t index, struct lant_frame *frame);
void lant_node_take_notifications(struct lant_node *node);
/* node.c */
void lant_node_settle(struct lant_node *node);
struct lant_visit *lant_node_visit(struct lant_node *node, sim_action act);
void lant_node_notify(struct lant_node *node, enum lant_queue queue,
                      const struct lant_notification *notification);

#endif
