/* SPDX-License-Identifier: BSD-2-Clause
 *
 * slots - the free slots of queues as hardware counts them (`nonic run --strict`).
 *
 * Purpose    Here a slot is free when its work is done. On hardware it is free when the program has
 *            polled: in a send queue the completion of that request or of a later one, in a receive
 *            queue the completion of that receive. These functions count slots as hardware does.
 * Inputs     Everything that is posted, and every completion that is polled, goes through here; or
 *            nothing does, and there is no account, which costs nothing.
 * Outputs    STATUS_FULL for what hardware has no slot for.
 * Ownership  The account is in the queues: send_queue.polled, receive_queue.unpolled.
 * Units      Requests.
 * Limits     UINT16_MAX receives in a queue.
 * Source     docs/decisions/0043.
 */
#ifndef NIC_SLOTS_H
#define NIC_SLOTS_H

#include "base/status.h"
#include "nic/nic.h"

/* As qp_post_sends, qp_post_receive, srq_post_receive: STATUS_FULL also without a slot. */
MUST_USE enum status slots_post_sends(struct qp *qp, const struct send_request *requests,
                                      uint32_t count);
MUST_USE enum status slots_post_receive(struct qp *qp, uint64_t wr_id, const struct sge *sges,
                                        uint32_t sge_count);
MUST_USE enum status slots_post_shared(struct srq *srq, uint64_t wr_id, const struct sge *sges,
                                       uint32_t sge_count);

/* The program has taken these from a completion queue. */
void slots_polled(struct nic *nic, const struct completion *completions, uint32_t count);

/* -- For this room: requests that end without a completion that could be polled -----------------*/

/* Frees the slots of `receives` receives of the queue pair's queue, its own or a shared one. */
void slots_give_back(struct qp *qp, uint32_t receives);
/* The queue pair is reset or destroyed: frees all its own slots, and that of the shared receive in
 * use. */
void slots_reset(struct qp *qp);

#endif
