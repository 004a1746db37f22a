/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa - an EFA device's verbs, where they differ from those of RoCE.
 *
 * Purpose    Queue pairs, address handles, requests and completions with the rules, errors and
 *            fields of rdma-core's provider for EFA. Each file of verbs/ asks this one where a
 *            program sees such a device (is_efa).
 * Inputs     What programs hand in.
 * Outputs    0 or errno; NULL with errno where a pointer is returned.
 * Threads    Any. (locked): with the live lock.
 * Source     rdma-core, providers/efa (verbs.c, efa_io_defs.h).
 */
#ifndef VERBS_EFA_H
#define VERBS_EFA_H

#include "verbs/efa_newer.h"
#include "verbs/internal.h"

/* -- Numbers of queue pairs ---------------------------------------------------------------------
 * A program of EFA knows 16 bits: the process' slot and an index. In nic/ a QPN has the slot in the
 * upper 8 of its 24 bits. */

static inline uint32_t efa_number_of(uint32_t qpn)
{
    return (qpn & 0xff00) << 8 | (qpn & 0xff);
}

static inline uint32_t efa_qpn_of(uint32_t number)
{
    return (number >> 8 & 0xff00) | (number & 0xff);
}

/* -- Address handles ----------------------------------------------------------------------------*/

/* The number (ahn) that stands for none. */
#define EFA_AH_NONE 0xffffu

/* -- efa_qp.c: queue pairs ----------------------------------------------------------------------*/

/* A queue pair that is to be made, by a call of verbs (NULL) or by a direct one. */
int efa_judge_qp(const struct nic_limits *limits, const struct ibv_qp_init_attr_ex *attr,
                 const struct efa_qp_init_attr *efa);
void efa_round_capacity(struct ibv_qp_cap *cap);
/* A queue pair is there, and goes. A slot of its send queue is taken until the completion is
 * polled. */
void efa_qp_made(struct verbs_qp *qp);
void efa_qp_gone(struct verbs_qp *qp);
/* Takes `count` slots. False: fewer are free. */
MUST_USE bool efa_take_slots(struct verbs_qp *qp, uint32_t count);
void efa_give_slots(struct verbs_qp *qp, uint32_t count);
/* The queue pair was reset: all slots are free. */
void efa_qp_reset(struct verbs_qp *qp);
/* (locked) The completion of a send of the queue pair that programs call `qpn` was polled. */
void efa_send_polled(uint32_t qpn);
/* The receives of so many SGEs that a queue has room for. */
uint32_t efa_receives_max(const struct nic_limits *limits, uint32_t sges);
/* Has the device all attributes of this mask? Their values, and when they may be set, are judged as
 * for any other device; but for one that others let pass. */
int efa_judge_modify(const struct ibv_qp_attr *attr, uint32_t mask);

/* -- efa_post.c: requests -----------------------------------------------------------------------*/

/* The state of the queue pair, and the flags of a send request. */
int efa_judge_send(const struct ibv_qp *qp, uint32_t flags);
/* (locked) Posts one that is judged. ENOMEM: its queue is full. */
int efa_post_request(struct ibv_qp *qp, const struct send_request *request);
int efa_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int efa_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* -- efa_cq.c: completions ----------------------------------------------------------------------*/

/* The queue keeps the senders' addresses from now on. False: there is no memory. */
MUST_USE bool efa_note_sources(struct cq *cq);
/* (locked) Takes the oldest completion into cq->current. False: there is none. */
bool efa_take_current(struct verbs_cq *cq);
int efa_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int efa_request_notify(struct ibv_cq *cq, int solicited_only);
/* The functions of an extended queue that differ. */
void efa_fill_polls(struct ibv_cq_ex *ex);
/* Programs may ask it for what they asked for when they made it: EFA_WC_WITH_... */
void efa_offer(struct ibv_cq_ex *ex, uint64_t wc_flags);

/* -- efa_context.c ------------------------------------------------------------------------------*/

/* Puts EFA's functions, and refusals, in the places of those slots that differ. */
void efa_fill_slots(struct verbs_context *verbs);

#endif
