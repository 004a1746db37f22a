/* SPDX-License-Identifier: BSD-2-Clause
 *
 * service - the functions of the NIC that a protocol engine may call.
 *
 * Purpose    The direction downward: an engine (nic/ibta/, nic/block/) calls these functions and
 *            the objects below (regions, receive queues, routes), and nothing else of nic/. None of
 *            them calls an engine. So whatever depends on the engine is an argument (a deadline) or
 *            the engine's own business after the call (a queue pair that enters the error state).
 * Inputs     A queue pair, and what is to become of it.
 * Outputs    Completions, events, counters, its turn, its timer.
 * Ownership  As nic/nic.h says.
 * Time       Deadlines are arguments; completions get the time that the world told last.
 * Units      Nanoseconds, bytes.
 * Limits     Those of the NIC.
 * Source     ARCHITECTURE.md, "An engine's seam"; docs/decisions/0020.
 */
#ifndef NIC_SERVICE_H
#define NIC_SERVICE_H

#include "nic/inventory.h"
#include "nic/slots.h"
#include "nic/state.h"

/* -- Finding, counting, telling: service.c, srq.c, peers.c. nic_count (nic/nic.h) counts. */
/* NULL: no such shared receive queue. */
struct srq *nic_find_srq(const struct nic *nic, uint32_t number);
/* The state of the NIC at the other end; NULL: the link is not one for blocks. */
struct nic_peer *nic_peer_of(const struct qp *qp);
/* Counts the reason. Returns false. */
bool nic_drop(struct nic *nic, enum nic_counter reason);
void qp_raise(struct qp *qp, enum nic_event_kind kind);

/* -- Turns and time: turns.c, service.c. The queue pair is to be pulled from. */
void nic_schedule(struct qp *qp);
/* The engine wants to be asked at `deadline`: engine_on_deadline. If an earlier deadline is set,
 * that one comes first, and the later one is asked for then. */
void nic_arm_timer(struct qp *qp, struct instant deadline);

/* -- Completions and errors: qp_complete.c. */
/* `srqn`: XRC targets, whose receives complete where the shared queue says. */
void qp_complete_receive(struct qp *qp, uint32_t srqn, const struct completion *completion);
void qp_complete_work(struct qp *qp, struct work *work, enum completion_status status);
/* A request that is in the queue no more. */
void qp_complete_send(struct qp *qp, const struct completion *completion);
/* The queue pair enters the error state: everything posted is flushed. */
void qp_enter_error(struct qp *qp);
/* `work` ends with `status`; for RC everything else is flushed, UC and UD enter SQE. */
void qp_fail_work(struct qp *qp, struct work *work, enum completion_status status);
/* The oldest request has to complete now. True: it has failed, and the queue pair with it. */
bool qp_fail_oldest(struct qp *qp);
/* The send queue of a draining queue pair is empty: told once, if the program asked. */
void qp_note_drained(struct qp *qp);
/* The receive in use is bad: it completes with `status`. */
void qp_spoil_receive(struct qp *qp, enum completion_status status);
/* A part of a SEND or WRITE is in memory (`there`), or its memory is not there: then the receive
 * that it completes or fills completes with an error, and all that comes behind it in order is
 * void. */
void qp_finish_receive(struct qp *qp, const struct nic_move *move, bool there);

/* -- Receives and memory: qp_memory.c; slots_give_back (nic/slots.h). */
const struct receive *qp_take_receive(struct qp *qp);
/* The next shared receive, copied to `copy`; NULL: there is none. */
const struct receive *qp_take_shared(struct qp *qp, struct receive *copy);
/* A message has filled the receive in use: removes it from its queue. */
void qp_release_receive(struct qp *qp);
uint8_t qp_credits(const struct qp *qp);

enum gather_verdict {
    GATHER_GOOD,
    GATHER_TOO_SHORT, /* The SGEs end before the bytes do. */
    GATHER_FORBIDDEN, /* A key does not allow it. */
};
/* From SGEs to judged segments. */
enum gather_verdict sges_gather(const struct qp *qp, const struct sge *sges, uint32_t sge_count,
                                uint32_t offset, uint32_t bytes, uint32_t access,
                                struct segment *segments, uint32_t *count);
/* The memory for a part of a message that fills `receive`. The receives of a shared queue lie in
 * the queue's protection domain, which need not be the queue pair's. */
enum gather_verdict receive_gather(const struct qp *qp, const struct receive *receive,
                                   uint32_t offset, uint32_t bytes, struct segment *segments,
                                   uint32_t *count);

#endif
