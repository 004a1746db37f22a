/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qp_memory - from the SGEs of a message to judged segments of memory.
 */
#include "nic/internal.h"

#include "transport/common/timing.h"

static enum gather_verdict gather(const struct qp *qp, const struct pd *pd, const struct sge *sges,
                                  uint32_t sge_count, uint32_t offset, uint32_t bytes,
                                  uint32_t access, struct segment *segments, uint32_t *count)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < sge_count && bytes > 0; i++) {
        if (offset >= sges[i].bytes) {
            offset -= sges[i].bytes;
            continue;
        }
        const uint32_t left = sges[i].bytes - offset;
        const uint32_t part = left < bytes ? left : bytes;
        if (region_judge(&qp->nic->regions, sges[i].key, pd, NULL, sges[i].address + offset, part,
                         access, &segments[used]) != REACH_ALLOWED) {
            return GATHER_FORBIDDEN;
        }
        used++;
        bytes -= part;
        offset = 0;
    }
    *count = used;
    return bytes == 0 ? GATHER_GOOD : GATHER_TOO_SHORT;
}

enum gather_verdict sges_gather(const struct qp *qp, const struct sge *sges, uint32_t sge_count,
                                uint32_t offset, uint32_t bytes, uint32_t access,
                                struct segment *segments, uint32_t *count)
{
    return gather(qp, qp->pd, sges, sge_count, offset, bytes, access, segments, count);
}

enum gather_verdict receive_gather(const struct qp *qp, const struct receive *receive,
                                   uint32_t offset, uint32_t bytes, struct segment *segments,
                                   uint32_t *count)
{
    const struct pd *pd = qp_srq(qp) == NULL ? qp->pd : qp->shared.srq->pd;
    return gather(qp, pd, receive->sges, receive->sge_count, offset, bytes, ACCESS_LOCAL_WRITE,
                  segments, count);
}

const struct receive *qp_take_shared(struct qp *qp, struct receive *copy)
{
    struct srq *srq = qp->shared.srq;
    struct receive_queue *queue = &srq->queue;
    const struct receive *shared = receive_queue_first(queue);
    if (shared == NULL) {
        return NULL;
    }
    /* Other queue pairs take receives while this one is filled, so it is copied out of its slot. */
    __builtin_memcpy(copy, shared, sizeof(*shared) + shared->sge_count * sizeof(struct sge));
    receive_queue_drop(queue);
    receive_queue_look_ahead(queue);
    if (srq->limit_armed != 0 && receive_queue_count(queue) < srq->limit_armed) {
        srq->limit_armed = 0;
        if (srq->events == 0) {
            list_append(&qp->nic->srqs_with_events, &srq->event_link);
        }
        srq->events |= 1u << NIC_EVENT_SRQ_LIMIT_REACHED;
    }
    return copy;
}

const struct receive *qp_take_receive(struct qp *qp)
{
    if (!qp->shares) {
        qp->current = receive_queue_first(&qp->receives);
        receive_queue_look_ahead(&qp->receives);
        return qp->current;
    }
    qp->current = qp_take_shared(qp, qp->shared.taken);
    return qp->current;
}

void qp_release_receive(struct qp *qp)
{
    CHECK(qp->current != NULL);
    if (!qp->shares) {
        receive_queue_drop(&qp->receives);
    }
    qp->current = NULL;
}

uint8_t qp_credits(const struct qp *qp)
{
    /* A shared queue makes no promise to one queue pair (IBTA 9.7.7.2). */
    return qp->shares ? ROCE_AETH_CREDITS_UNLIMITED
                      : credits_encode(receive_queue_count(&qp->receives));
}
