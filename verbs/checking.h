/* SPDX-License-Identifier: BSD-2-Clause
 *
 * checking - a program whose calls are judged by rules (`nonic run --check`, checker/).
 *
 * Purpose    Tells the checker what the program asks for and gets, and ThreadSanitizer, if it
 *            watches the program, which memory is the NIC's meanwhile (drivers/system/raced.h).
 *            Each finding becomes a line of the report that NONIC_CHECK names; the command does
 *            the rest with it.
 * Inputs     The calls of this room, where objects are made, changed and destroyed; for requests
 *            and completions there are functions of their own in the places of the usual ones
 *            (checked.c), so that a program that is not checked pays nothing.
 * Threads    Any. One of them is in the checker at a time, and may take the live lock there: none
 *            of these functions is called with it.
 * Limits     The checker's tables have no memory for an object: it is not judged.
 */
#ifndef VERBS_CHECKING_H
#define VERBS_CHECKING_H

#include "checker/checker.h"
#include "verbs/internal.h"

/* The program is checked: it does not change once there is a device. */
extern bool checking;

static ALWAYS_INLINE bool is_checked(void)
{
    return UNLIKELY(checking);
}

/* Before the first object is made. Again: no change. */
void checking_begin(struct live *live);
void checking_in_child(void);

/* Takes the checker for a call; nobody else comes in between. */
struct checker *checking_enter(void);
/* The same for a call of a queue pair or another queue, which goes on until checking_leave_queue:
 * it may not be another process's, nor that of another thread (`sole`). */
struct checker *checking_enter_queue(struct ibv_context *context, struct sole *sole, uint32_t qpn);
void checking_leave_queue(struct sole *sole);
/* Writes what was found into the report. */
void checking_leave(void);

/* EBUSY: the object is in use. A program that is checked hears of it. Not locked. */
int checking_busy(const char *object);

/* -- For a program that is checked --------------------------------------------------------------*/

/* The number by which the checker knows it. */
uint32_t checking_srq_number(const struct verbs_srq *srq);
void checking_qp_made(const struct verbs_qp *qp, bool signal_all);
void checking_cq_made(const struct verbs_cq *cq);
void checking_cq_resized(const struct verbs_cq *cq);
void checking_srq_made(const struct verbs_srq *srq);
void checking_srq_resized(const struct verbs_srq *srq);
/* Before it goes, or goes to another state. */
void checking_qp_ends(const struct verbs_qp *qp);
/* Once it is out of reach of the program, and before its number may be another one's. */
void checking_qp_gone(uint32_t qpn);
void checking_cq_gone(uint32_t number);
void checking_srq_gone(const struct verbs_srq *srq);
void checking_region_made(void);
/* It is out of reach of everybody. */
void checking_region_gone(uint32_t key);
/* Before it goes. */
void checking_handle_gone(const struct nic_av *handle);
/* A rule of verbs/strict.h is broken, which is not refused. */
void checking_strict(const char *wrong);

void checking_event_taken(const struct verbs_cq *cq);
void checking_events_acked(const struct ibv_cq *cq, uint32_t count);
/* Likewise, for an object that `call` destroys: asynchronous events. */
void checking_waits_for_async(const char *call, uint32_t count);
/* It has waited long for the program to acknowledge the queue's events. */
void checking_cq_ends(const struct verbs_cq *cq);

/* In the checker: a completion was taken. */
void checking_polled(struct checker *checker, const struct completion *completion);
/* `poll` fills cq->current. */
int checking_poll(struct verbs_cq *cq, int (*poll)(struct ibv_cq_ex *ex));
/* ibv_modify_qp has answered `reason` for a queue pair that was in `before`. */
void checking_modified(const struct verbs_qp *qp, const struct qp_attributes *attributes,
                       uint32_t mask, enum qp_state before, int reason);

/* Around a call, from `code` with `stack`, that posts these requests: all or none. The first takes
 * the checker, the second gives it back. */
void checking_before_sends(struct verbs_qp *qp, const struct send_request *requests, uint32_t count,
                           const void *code, const void *stack);
void checking_after_sends(struct verbs_qp *qp, const struct send_request *requests, uint32_t count,
                          int reason);

/* -- In the places of others (checked.c) --------------------------------------------------------*/

int checked_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int checked_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int checked_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
#endif
