/* SPDX-License-Identifier: BSD-2-Clause
 *
 * units - the units of a NIC as csRNA's, around the pure ones of hardware/csrna.
 *
 * units.c has the clock and the units, units_memory.c what they read and write.
 */
#ifndef LAB_ROCE_UNITS_H
#define LAB_ROCE_UNITS_H

#include "hardware/csrna/qp_scheduler.h"
#include "hardware/csrna/qpc_manager.h"
#include "hardware/csrna/qpc_requester.h"
#include "lab/roce/internal.h"

/* Places of queue pairs that a NIC's scheduler knows. */
#define ROCE_SLOTS_MAX (1u << 16)
/* Reads of work requests and contexts that are under way: of a NIC's `wqe_room` visits at most, and
 * a context for each index. */
#define ROCE_READS_MAX 2048u

/* A place of a queue pair. */
struct roce_slot {
    struct roce_connection *connection;
    uint32_t waiting; /* Work requests that were rung for, without their context; */
    uint32_t stale;   /* likewise, of queue pairs that had the place before. */
    uint16_t offset;  /* The next work request's in the send queue, as the scheduler counts. */
};

struct roce_slots_queue {
    uint32_t *slots;
    uint32_t head, tail, mask;
};

/* Reads by one bus, which answers in order. */
struct roce_reads {
    struct sim_event event; /* The oldest one is done. */
    struct roce_units *units;
    uint32_t head, tail;
    struct {
        uint64_t done_ps;
        uint32_t slot;
        bool of_context; /* Else of work requests. */
    } entries[ROCE_READS_MAX];
};

struct roce_units {
    struct roce_node *node;
    const struct roce_units_config *config;
    struct sim_event tick;
    uint64_t next_cycle_ps;
    struct qpc_manager manager;
    struct qpc_requester requesters[QPC_CHANNELS];
    struct qp_scheduler scheduler;
    struct roce_slot *slots;
    uint32_t slot_count;
    struct roce_slots_queue messages; /* Work requests before the requester unit. */
    struct list ready;                /* Packets before the slowest unit, */
    uint32_t ready_count;
    struct list received; /* before the responder unit, */
    struct list answers;  /* and before the requester's window. */
    uint32_t reading_wqes, reading_payloads;
    uint64_t processing_until_ps;
    struct sim_wire board;
    struct roce_reads host_reads, board_reads;
    void *memory[2 + QPC_CHANNELS];
};

/* units.c */
/* There is something to do at `at_ps`, or in the next cycle if that is later. */
void roce_units_wake(struct roce_units *units, uint64_t at_ps);
void roce_units_on_wqes(struct roce_units *units, uint32_t slot);

/* units_memory.c */
void roce_reads_open(struct roce_units *units);
void roce_units_read_wqes(struct roce_units *units, uint32_t slot);
void roce_units_read_context(struct roce_units *units, uint32_t slot);
void roce_units_write_context(struct roce_units *units);

#endif
