/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qpc_manager - answers requests for contexts: from the cache, or once they have come from memory.
 *
 * Purpose    Lets requests of other queue pairs pass one whose context is missing, and keeps those
 *            of one queue pair in order; or, for comparison, blocks at every miss.
 * Inputs     qpc_manager_request (a requester's FIFO), qpc_manager_on_fetched (a context has come).
 * Outputs    qpc_manager_step_pending and qpc_manager_step_requests: one operation of one cycle of
 *            either unit, and what it makes the world do (struct qpc_action).
 * Ownership  The caller owns the memory. A context handed out is in the cache, and the caller's to
 *            look at, or to change if it asked for an update, until the next step.
 * Time       One step is one cycle; nothing here counts them. A unit without work steps for
 *            nothing, so a world may skip those cycles (qpc_manager_..._due).
 * Limits     QPC_OOCAP_MAX requests per channel at once; their (channel, index) all differ.
 * Source     csRNA 4.3.
 *
 * The order of requests is that in which the arbiter takes them: per channel first come, first
 * served, and over the channels round robin. A returned context is worked for before anything is
 * checked.
 *
 * The source's scheme loses the order of a queue pair in two ways, and a record in a third
 * (pending_table.h):
 *
 *   1. A context returns in the midst of a pass. Elements of its queue pair that were checked in
 *      vain are in the online FIFO already, later ones still in the offline FIFO, and would now be
 *      served before them. Here what becomes servable while the online FIFO isn't empty waits for
 *      the next pass: one bit, `stale`.
 *   2. Looking for a returned context's element at the output of the online FIFO, the source puts
 *      others back into its input, behind later ones of their queue pairs. Here nothing is put
 *      back: if that output doesn't show a Type 1 element, checking goes on, which keeps order,
 *      until the element turns up. That also lets Type 2 elements be seen when contexts return all
 *      the time: none starves.
 */
#ifndef HARDWARE_CSRNA_QPC_MANAGER_H
#define HARDWARE_CSRNA_QPC_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardware/csrna/pending_fifo.h"
#include "hardware/csrna/pending_table.h"
#include "hardware/csrna/qpc.h"
#include "hardware/csrna/qpc_cache.h"

enum qpc_policy {
    QPC_NONBLOCKING,
    QPC_FCFS, /* One FIFO over all channels; a miss stops it until its context has come. */
};

struct qpc_manager_parameters {
    enum qpc_policy policy;
    enum qpc_victim_policy victim;
    uint32_t oocap; /* 1 .. QPC_OOCAP_MAX. */
    uint32_t cache_entries;
};

/* Requests of units are reads and updates; prefetches are counted apart. */
struct qpc_counters {
    uint64_t hits;              /* Requests answered from the cache at once. */
    uint64_t misses;            /* Requests that found their context neither cached nor pending. */
    uint64_t prefetches;        /* All prefetches; */
    uint64_t prefetch_hits;     /* those that found the context cached; */
    uint64_t prefetch_pendings; /* those that found it pending. The others asked for it. */
    uint64_t fetches;           /* Contexts asked for. */
    uint64_t type_1;            /* Elements that came to wait for their context. */
    uint64_t type_2;            /* Requests that came to wait for an earlier one. */
    uint64_t conversions;       /* Type 2 that became Type 1: the context had been put out. */
    uint64_t checks;            /* Elements looked at in the offline FIFO. */
    uint64_t swaps;
    uint64_t evictions;
    uint64_t write_backs; /* Evictions whose context was dirty. */
};

struct qpc_answer {
    uint32_t qpn;
    uint8_t channel, index, operation; /* The channel, index and operation of the request. */
    struct qpc *context;               /* NULL for a prefetch. */
};

/* The things that one cycle makes the world do. The flags say which of the other members are
 * valid. */
struct qpc_action {
    bool answers;
    bool fetches;     /* Read the context `fetch_qpn`; say qpc_manager_on_fetched, in order. */
    bool writes_back; /* Write `victim.context` to memory; a later fetch must see it. */
    uint32_t fetch_qpn;
    struct qpc_answer answer;
    struct qpc_victim victim;
};

struct qpc_request_ring {
    uint8_t head, tail; /* Free-running. */
    struct qpc_request requests[256];
};

struct qpc_response {
    uint32_t qpn;
    struct qpc context;
};

struct qpc_manager {
    enum qpc_policy policy;
    uint32_t oocap;
    uint32_t ready; /* Records with `returned`: what checking can serve. */
    bool stale;     /* A context returned in this pass: nothing is served until the next one. */
    bool blocked;   /* QPC_FCFS: `waiting` waits for its context. */
    uint8_t last_channel;
    uint8_t channels_waiting; /* Bit c: requests[c] is not empty. */
    struct qpc_request waiting;
    uint64_t outstanding[QPC_CHANNELS]; /* Bit i: index i is not answered yet. */
    struct qpc_counters counters;
    struct qpc_cache cache;
    struct qpc_response *responses; /* A ring of 3 * oocap. */
    uint32_t response_head, response_count;
    struct qpc_request_ring requests[QPC_CHANNELS]; /* QPC_FCFS: the first, for all. */
    struct pending_table table;
    struct pending_fifo pending;
};

size_t qpc_manager_bytes(const struct qpc_manager_parameters *parameters);
/* `memory` is 64-byte aligned. */
void qpc_manager_init(struct qpc_manager *manager, const struct qpc_manager_parameters *parameters,
                      void *memory);

/* A unit asks for a context. There is room, because every request has an index of its channel. */
void qpc_manager_request(struct qpc_manager *manager, const struct qpc_request *request);

/* The oldest fetch under way, which is for `qpn`, has returned; copies `context`. */
void qpc_manager_on_fetched(struct qpc_manager *manager, uint32_t qpn, const struct qpc *context);

/* One cycle of the pending handling unit. False: there is nothing to do, and `action` is empty.
 * True with an empty action: an element was moved. */
bool qpc_manager_step_pending(struct qpc_manager *manager, struct qpc_action *action);

/* One cycle of the request handling unit; likewise. */
bool qpc_manager_step_requests(struct qpc_manager *manager, struct qpc_action *action);

/* Would the next step of the unit do something? */
static inline bool qpc_manager_pending_due(const struct qpc_manager *manager)
{
    return manager->response_count != 0 || manager->ready != 0;
}

static inline bool qpc_manager_requests_due(const struct qpc_manager *manager)
{
    return manager->channels_waiting != 0 && !manager->blocked;
}

static inline bool qpc_manager_idle(const struct qpc_manager *manager)
{
    return !qpc_manager_pending_due(manager) && !qpc_manager_requests_due(manager);
}

/* Fails a CHECK unless every invariant that can be seen between two steps holds. Slow: for tests.
 */
void qpc_manager_check(struct qpc_manager *manager);
/* Checks only the cheap ones of them: at the end of each step and request. */
void qpc_manager_check_counts(const struct qpc_manager *manager);

#endif
