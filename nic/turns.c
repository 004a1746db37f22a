/* SPDX-License-Identifier: BSD-2-Clause
 *
 * turns - the ready ring: queue pairs that may have something to send, in turn.
 */
#include "nic/internal.h"

/* The ring is full of holes: closes them. */
static void close_holes(struct ready_ring *ready)
{
    uint32_t to = ready->head;
    for (uint32_t from = ready->head; from != ready->tail; from++) {
        struct qp *qp = ready->slots[from & ready->mask];
        if (qp != NULL) {
            ready->slots[to & ready->mask] = qp;
            qp->ready_at = to++;
        }
    }
    ready->tail = to;
}

static void ready_append(struct ready_ring *ready, struct qp *qp)
{
    if (ready->head == ready->tail) {
        /* At the start, the ring's memory is in a cache. */
        ready->head = ready->tail = 0;
    } else if (ready->tail - ready->head > ready->mask) {
        close_holes(ready);
    }
    qp->listing = QP_LISTED_READY;
    qp->ready_at = ready->tail;
    ready->slots[ready->tail++ & ready->mask] = qp;
}

static void skip_holes(struct ready_ring *ready)
{
    while (ready->head != ready->tail && ready->slots[ready->head & ready->mask] == NULL) {
        ready->head++;
    }
}

static void ready_remove(struct ready_ring *ready, const struct qp *qp)
{
    ready->slots[qp->ready_at & ready->mask] = NULL;
    skip_holes(ready);
}

void nic_schedule(struct qp *qp)
{
    if (qp->listing == QP_LISTED_NOWHERE) {
        ready_append(&qp->nic->ready, qp);
    }
}

void nic_unlist(struct qp *qp)
{
    if (qp->listing == QP_LISTED_READY) {
        ready_remove(&qp->nic->ready, qp);
    } else if (qp->listing == QP_LISTED_WAITING) {
        list_remove(&qp->node);
    }
    qp->listing = QP_LISTED_NOWHERE;
}

struct qp *nic_next_qp(struct nic *nic)
{
    const struct ready_ring *ready = &nic->ready;
    return ready->head == ready->tail ? NULL : ready->slots[ready->head & ready->mask];
}

const struct qp *nic_ready_qp(const struct nic *nic, uint32_t ahead)
{
    const struct ready_ring *ready = &nic->ready;
    return ahead < ready->tail - ready->head ? ready->slots[(ready->head + ahead) & ready->mask]
                                             : NULL;
}

void nic_unready(struct nic *nic, struct qp *qp)
{
    CHECK(qp->listing == QP_LISTED_READY);
    ready_remove(&nic->ready, qp);
    qp->listing = QP_LISTED_NOWHERE;
    nic->turns_taken = true;
}

void nic_rotate(struct nic *nic, struct qp *qp)
{
    if (qp->listing == QP_LISTED_READY) {
        ready_remove(&nic->ready, qp);
        ready_append(&nic->ready, qp);
    }
}

void nic_enlist_waiting(struct qp *qp, struct list *waiting)
{
    CHECK(qp->listing == QP_LISTED_READY);
    ready_remove(&qp->nic->ready, qp);
    list_append(waiting, &qp->node);
    qp->listing = QP_LISTED_WAITING;
}

void nic_unpark(struct nic *nic, struct list *waiting)
{
    struct list *node;
    while ((node = list_pop(waiting)) != NULL) {
        struct qp *qp = CONTAINER_OF(node, struct qp, node);
        ready_append(&nic->ready, qp);
    }
}
