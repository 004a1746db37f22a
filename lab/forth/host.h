/* SPDX-License-Identifier: BSD-2-Clause
 *
 * host - a node's processor: messages of a plan that it posts, messages of which it learns.
 *
 * Purpose    A stream (machine.h) posts what its host is ready to post, and tells it what has come.
 *            The host says when a program would know.
 * Inputs     A plan; forth_host_next when the NIC could take a request, forth_host_came.
 * Outputs    A tally of messages, from the wish to send them until the receiver's host knows.
 * Ownership  The caller owns hosts and times; the plan must live as long.
 * Time       A processor does one thing at a time, what has come before what is to be sent: a call
 *            takes `call_ps` until its request can be written, and an arrival `interrupt_ps`.
 * Units      Messages by number: those of node n to node m, in the order of the plan.
 * Source     Our choice; the document measures with programs that look at memory (4.2).
 */
#ifndef LAB_FORTH_HOST_H
#define LAB_FORTH_HOST_H

#include "lab/forth/machine.h"
#include "lab/plan.h"
#include "lab/reading.h"

struct forth_hosts;

enum forth_host_job {
    FORTH_HOST_RESTS,
    FORTH_HOST_CALLS,
    FORTH_HOST_LEARNS,
};

struct forth_host {
    struct forth_hosts *hosts;
    uint32_t self;
    struct sim_event done;               /* The job is. */
    struct sim_event wanted;             /* The next message is. */
    uint8_t job;                         /* enum forth_host_job. */
    bool ready;                          /* The call is over: the next request can be written. */
    uint32_t next;                       /* Message of the plan. */
    uint32_t posted_to[FORTH_PORTS_MAX]; /* Messages to each node so far. */
    uint32_t arrived_head, arrived_tail; /* In `arrived`: those of which it is to learn. */
    uint32_t *arrived;                   /* Places of messages in `hosts->began_ps`. */
    uint64_t busy_ps;
};

struct forth_hosts {
    struct forth_machine *machine;
    const struct lab_plan *plan;
    uint64_t call_ps, interrupt_ps;
    uint32_t window; /* Requests in a NIC's queue, at most. */
    struct forth_host *hosts;
    uint32_t *first;    /* By sender * nodes + receiver: the place of its first message. */
    uint64_t *began_ps; /* By place. */
    uint32_t *bytes;    /* By place. */
    struct lab_tally tally;
};

/* Opens a host for each node of a machine that is open. `hosts` must not move afterwards. */
void forth_hosts_open(struct forth_hosts *hosts, struct forth_machine *machine,
                      const struct lab_plan *plan);
void forth_hosts_close(struct forth_hosts *hosts);
/* All begin to send what the plan says. */
void forth_hosts_begin(struct forth_hosts *hosts);

/* The NIC can take a request. False: the host has none now, and kicks its node when it has. */
bool forth_host_next(struct forth_host *host, uint32_t *to, uint32_t *qwords);
/* Message `number` of node `from` has come whole. */
void forth_host_came(struct forth_host *host, uint32_t from, uint64_t number);

/* The host has posted all, and knows of all that came. */
bool forth_host_over(const struct forth_host *host);

#endif
