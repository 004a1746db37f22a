/* SPDX-License-Identifier: BSD-2-Clause
 *
 * machine - the NICs of a run that are the laboratory's: their arenas, their virtual time, and the
 * memory of programs, which they read and write.
 *
 * Purpose    A program's process has an engine in an arena (base/box_ask.h); the machine
 *            (lab/roce/roce.h) drives it here. An event of the machine runs when no thread has a
 *            clock before it, so its time and that of threads is one.
 * Time       Nanoseconds since the programs began, rounded up from the machine's picoseconds.
 */
#ifndef BOX_MACHINE_H
#define BOX_MACHINE_H

#include "box/internal.h"

struct seat;
struct box_datagram;
struct box_port;

/* If the run has a machine. False: box->result->error says why it cannot be made. */
bool machine_open(struct box *box);
/* The digest learns of all that happened. */
void machine_close(struct box *box);

/* machine_say.c: lines about the nodes that asked for most contexts. The NICs were made by
 * `owners`, in this order. */
struct roce;
void machine_say(const struct roce *roce, const pid_t *owners, uint32_t nics, char *into,
                 size_t bytes);

/* When its next event is due; NEVER: there is none, or no machine. */
uint64_t machine_next_ns(const struct box *box);
/* Its time is `at_ns` from now on, if it was earlier: runs all events that are due. */
void machine_reach(struct box *box, uint64_t at_ns);
/* The thread's clock is not before the machine's. */
void machine_catch_up(struct box *box);

/* The process is on this node from now on, and so is what it starts. False: there is none such. */
bool machine_start_on(const struct box *box, struct process *process, uint64_t node);

/* A new NIC for the process, and its arena: its number, or an errno below 0. */
int64_t machine_make(struct box *box, struct process *process);
/* The NIC of this number, which is the process's; NULL: it is none. */
struct seat *machine_seat(const struct box *box, const struct process *process, uint64_t number);
/* Its engine is `engine`, in its arena. 0, or an errno below 0. */
int64_t machine_attach(struct box *box, struct seat *seat, uint64_t engine);
void machine_detach(struct box *box, struct seat *seat);
/* The process ended, or became another program: so do its NICs. */
void machine_leave(struct box *box, const struct process *process);

/* Requests were posted to a queue pair, or (0) something else changed. False: it lies elsewhere. */
bool machine_ring(struct seat *seat, uint64_t qp);
/* A queue pair is about to be destroyed. */
bool machine_forget(struct seat *seat, uint64_t qp);
/* The first moment at which all that its engine has judged by now is in memory; it may be over. */
uint64_t machine_settled_ns(const struct seat *seat);
/* Something that the program can see has happened since the thread last asked. */
bool machine_has_changed(struct seat *seat, struct thread *thread);
/* A NIC of the process has what BOX_ASK_NEWS waits for, but for its alarm. */
bool machine_has_news(const struct box *box, const struct process *process);
/* The thread is in the middle of an engine. */
bool machine_is_inside(const struct box *box, const struct thread *thread);

/* manager.c: for the process's connection manager, as base/box_ask.h has it; an errno is below
 * 0. */
int64_t machine_send(struct seat *seat, const struct box_datagram *datagram);
bool machine_receive(struct seat *seat, struct box_datagram *datagram);
void machine_set_alarm(struct seat *seat, uint64_t at_ns);
/* When its alarm is due. If that is over, there is none any more. */
uint64_t machine_alarm(struct seat *seat);
int64_t machine_claim(struct seat *seat, struct box_port *port);
bool machine_offer(struct seat *seat, uint64_t claim);
bool machine_release(struct seat *seat, uint64_t claim);
int64_t machine_find(const struct seat *seat, const struct box_port *port);

#endif
