/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srq - shared receive queues, and the numbers by which XRC requests name them.
 */
#include "nic/internal.h"

static uint32_t draw_srqn(struct nic *nic)
{
    for (;;) {
        const uint32_t number = nic->next_srqn;
        nic->next_srqn = (nic->next_srqn + 1) & ROCE_24_BITS;
        if (number != 0 && nic->srqs[number & nic->srq_mask] == NULL) {
            return number;
        }
    }
}

enum status srq_enter(struct nic *nic, struct srq *srq)
{
    CHECK(srq->xrcd != NULL && srq->cq != NULL);
    if (nic->srq_count == nic->limits.xrc_srqs) {
        return STATUS_FULL;
    }
    srq->number = draw_srqn(nic);
    nic->srqs[srq->number & nic->srq_mask] = srq;
    nic->srq_count++;
    srq->xrcd->users++;
    srq->cq->users++;
    return STATUS_OK;
}

void srq_leave(struct nic *nic, struct srq *srq)
{
    CHECK(nic_find_srq(nic, srq->number) == srq);
    nic->srqs[srq->number & nic->srq_mask] = NULL;
    nic->srq_count--;
    srq->xrcd->users--;
    srq->cq->users--;
    srq->number = 0;
}

struct srq *nic_find_srq(const struct nic *nic, uint32_t number)
{
    struct srq *srq = nic->srqs[number & nic->srq_mask];
    return srq != NULL && srq->number == number ? srq : NULL;
}

void nic_forget_srq(struct srq *srq)
{
    list_remove(&srq->event_link);
    srq->events = 0;
}

enum status srq_post_receive(struct srq *srq, uint64_t wr_id, const struct sge *sges,
                             uint32_t sge_count)
{
    return receive_queue_post(&srq->queue, wr_id, sges, sge_count);
}
