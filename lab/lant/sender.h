/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sender - programs that work off a plan: transfers, stores or loads, and when each was over.
 *
 * Purpose    The programs of lant/one, one on each node.
 * Inputs     A world that is open, a plan, and who has to see a message's end.
 * Outputs    A tally of messages; how many failed, or came with wrong bytes.
 * Ownership  The caller owns the struct; world and plan must live as long.
 * Time       A processor does one thing at a time, what it looks at before what it calls: a call
 *            takes `call_ps` until the interface has it, a look `look_ps`.
 * Units      Bytes; a node has a pool that it sends from, and behind it a place for each message
 *            that another node can have under way to it.
 * Limits     LANT_SENDER_WINDOW_MAX messages of a node under way.
 * Source     Our choice.
 */
#ifndef LAB_LANT_SENDER_H
#define LAB_LANT_SENDER_H

#include "lab/lant/node.h"
#include "lab/plan.h"
#include "lab/reading.h"

#define LANT_SENDER_WINDOW_MAX 32u

/* The words of the parameter "work". */
enum lant_sender_work {
    LANT_SENDER_TRANSFERS,
    LANT_SENDER_STORES,
    LANT_SENDER_LOADS,
};

enum lant_sender_job {
    LANT_SENDER_RESTS,
    LANT_SENDER_CALLS,
    LANT_SENDER_LOOKS,
};

struct lant_sender_slot {
    bool busy;
    bool sent;     /* The sender's interface has told the end, */
    bool received; /* and the receiver's. */
    bool failed;
    uint32_t to, bytes;
    uint32_t looks; /* Those at its end that a processor has yet to take. */
    uint32_t beats; /* Those of a store or load that have no answer on the bus yet, */
    uint32_t open;  /* and those of which the peer's answer is still to come. */
    uint64_t began_ps;
};

struct lant_senders;

struct lant_sender {
    struct lant_senders *all;
    struct lant_node *node;
    struct sim_event done;   /* The job is. */
    struct sim_event wanted; /* The next message is. */
    uint8_t job;             /* enum lant_sender_job. */
    uint32_t slot;           /* The call's; or the look's, by sender * window + slot. */
    uint32_t next;           /* Message of the plan. */
    uint32_t first, count;   /* In `looks`. */
    uint32_t *looks;         /* A ring: messages whose end this node is to see. */
    uint64_t busy_ps;
    struct lant_sender_slot slots[LANT_SENDER_WINDOW_MAX];
};

struct lant_senders {
    struct lant_world *world;
    const struct lab_plan *plan;
    enum lant_sender_work work;
    bool receivers_look; /* The receiver sees a message's end; else the sender does. */
    uint32_t window;
    uint64_t call_ps, look_ps;
    uint32_t spacing; /* Bytes from a place to the next. */
    struct lant_sender *senders;
    struct lab_tally tally;
    uint32_t failed, wrong; /* Messages. */
};

/* The memory that each node needs. */
uint64_t lant_senders_memory(const struct lab_plan *plan, uint32_t window);
/* The members up to look_ps are the caller's to set. All begin at once. */
void lant_senders_open(struct lant_senders *all);
void lant_senders_close(struct lant_senders *all);

#endif
