/* SPDX-License-Identifier: BSD-2-Clause
 *
 * work_queues - transfers that wait for the DMA engine, and which of them is next.
 *
 * Purpose    Two queues, the CPU's and the FPGA's, by turns; behind them the large transfers, which
 *            are cut into segments, so that small ones need not wait for all of a large one.
 * Inputs     lant_work_submit: a transfer; lant_work_on_segment: a segment has ended.
 * Outputs    lant_work_next: one operation to issue; whether all segments of a transfer have ended.
 * Limits     LANT_WORKS_MAX transfers in each queue. A large transfer counts towards
 *            LANT_PARENTS_MAX until its notification is taken, not only until it has been issued.
 * Source     Lant 3.3.4.2, 5.2.3.1, 6.3; LNI-68..73. The order of the queues is our choice.
 *
 * The order: of the two queues the one with the more urgent head if priorities are on, else by
 * turns; large transfers, first come, first served, when both are empty, whatever their priority.
 * Retransmissions go before all of these, which is the sender's affair (rdma_sender.h).
 *
 * A large transfer waits as long as the two queues are never empty (LNI-72). `large_after` bounds
 * the wait: a segment goes after that number of other operations. A less urgent transfer waits for
 * the more urgent ones without a bound.
 */
#ifndef TRANSPORT_LANT_WORK_QUEUES_H
#define TRANSPORT_LANT_WORK_QUEUES_H

#include "transport/lant/descriptor.h"

#define LANT_WORKS_MAX     256u
#define LANT_PARENTS_MAX   64u
#define LANT_SEGMENT_BYTES (64u * 1024)
#define LANT_PRIORITIES    4
#define LANT_NO_PARENT     UINT16_MAX

enum lant_queue {
    LANT_QUEUE_CPU,
    LANT_QUEUE_FPGA,
    LANT_QUEUE_COUNT,
};

struct lant_work_config {
    uint16_t capacity; /* Each queue's. */
    uint16_t parents;  /* Large transfers. */
    uint32_t segment_bytes;
    uint32_t large_after; /* 0: no bound. */
    bool priorities;      /* Else the descriptors' priorities only travel in their packets. */
};

#define LANT_WORK_DEFAULTS                                                                         \
    ((struct lant_work_config){.capacity = 64, .parents = 16, .segment_bytes = LANT_SEGMENT_BYTES})

/* A transfer that a program asks for. */
struct lant_work {
    struct lant_descriptor descriptor;
    uint32_t tag;     /* The program's: comes back in the notification. 20 bits of it travel. */
    bool no_notif;    /* No local notification. */
    uint64_t timeout; /* Ticks of this operation's timers; 0: the usual ones. */
};

/* An operation to issue: all of a transfer, or a segment of one. */
struct lant_work_operation {
    uint64_t source, destination;
    uint32_t bytes;
    uint32_t tag;
    uint64_t timeout;
    uint16_t parent; /* LANT_NO_PARENT: it is no segment. */
    uint8_t queue;   /* enum lant_queue. */
    uint8_t priority;
    bool no_notif;     /* Each segment but the last; a transfer if the program said so. */
    bool may_register; /* The caller has not forbidden it. */
    bool keyhole;
    bool last; /* After it no data of the transfer is left to push. */
};

/* A large transfer, from its submission until its notification was taken. */
struct lant_parent {
    struct lant_work work;
    uint64_t source, destination; /* Where the next segment begins, */
    uint32_t remaining;           /* and how much is left to issue. */
    uint32_t segment_bytes;       /* As it was at submission: later changes are for later ones. */
    uint32_t outstanding;         /* Segments issued and not ended. */
    uint32_t operation;           /* The segment's that ended last. */
    uint32_t status;              /* LANT_STATUS_ of all of them. */
    uint8_t queue, attempts;
};

struct lant_work_entry {
    struct lant_work work;
    uint16_t next;
};

struct lant_work_list {
    uint16_t head, tail; /* If `count` is not 0. */
    uint16_t count;
};

struct lant_work_queue {
    struct lant_work_list lists[LANT_PRIORITIES];
    uint16_t count, count_max;
    uint16_t free; /* The first of the free entries. */
    struct lant_work_entry entries[LANT_WORKS_MAX];
};

struct lant_work_queues {
    struct lant_work_config config;
    uint8_t turn;      /* The queue that is asked first. */
    uint32_t in_a_row; /* Operations that went before the large transfer that waits. */
    struct lant_work_queue queues[LANT_QUEUE_COUNT];
    uint64_t parents_free;            /* A bit for each parent. */
    uint16_t large_head, large_count; /* Parents with something left to issue. */
    uint16_t large_ring[LANT_PARENTS_MAX];
    struct lant_parent parents[LANT_PARENTS_MAX];
    uint64_t submitted[LANT_SUBMIT_COUNT]; /* By verdict. */
    uint64_t segments;
};

void lant_work_init(struct lant_work_queues *work, const struct lant_work_config *config);

/* The largest transfer, and segment, of transfers that are submitted from now on: a multiple of
 * 512, or 0 for no segmentation. False: it is neither, and nothing has changed. */
MUST_USE bool lant_work_set_segment(struct lant_work_queues *work, uint32_t bytes);

/* A keyhole transfer is not segmented: its receiver counts the packets of one operation. */
MUST_USE enum lant_submit lant_work_submit(struct lant_work_queues *work, enum lant_queue queue,
                                           const struct lant_work *wanted);

bool lant_work_waits(const struct lant_work_queues *work);
/* The next operation, which is then the caller's. False: there is none. */
bool lant_work_next(struct lant_work_queues *work, struct lant_work_operation *operation);

/* An operation with this parent has ended, with `status`. After an error no further segment is
 * issued; those under way end by themselves. True: all have ended. The caller then reads the
 * notification from the parent, and releases it. */
MUST_USE bool lant_work_on_segment(struct lant_work_queues *work,
                                   const struct lant_work_operation *segment, uint32_t identifier,
                                   uint32_t status, uint8_t attempts);
void lant_work_release(struct lant_work_queues *work, uint32_t parent);

void lant_work_check(const struct lant_work_queues *work);

#endif
