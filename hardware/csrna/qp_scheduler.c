/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/csrna/qp_scheduler.h"

#include <string.h>

void qp_scheduler_init(struct qp_scheduler *scheduler,
                       const struct qp_scheduler_parameters *parameters, void *memory)
{
    CHECK(parameters->qps >= 1 && parameters->qps <= QP_SLOTS_MAX);
    CHECK(parameters->sq_wqes >= 1 && parameters->sq_wqes <= 65536 &&
          (parameters->sq_wqes & (parameters->sq_wqes - 1)) == 0);
    CHECK(parameters->visit_wqes >= 1 && parameters->visit_wqes <= UINT8_MAX);
    CHECK(parameters->window >= 1);
    *scheduler = (struct qp_scheduler){.parameters = *parameters, .qps = memory};
    memset(memory, 0, qp_scheduler_bytes(parameters->qps));
}

static void list(struct qp_scheduler *scheduler, uint32_t slot)
{
    scheduler->qps[slot].turn = QP_LISTED;
    if (scheduler->listed == 0) {
        scheduler->first = slot;
    } else {
        scheduler->qps[scheduler->last].next = slot;
    }
    scheduler->last = slot;
    scheduler->listed++;
}

/* Puts `slot`, which is neither in the row nor in a visit, where it belongs. */
static void settle(struct qp_scheduler *scheduler, uint32_t slot)
{
    struct qp_scheduled *qp = &scheduler->qps[slot];
    if (qp->pending == 0) {
        qp->turn = QP_RESTS;
    } else if (qp->in_flight < scheduler->parameters.window) {
        list(scheduler, slot);
    } else if (qp->turn != QP_BLOCKED) {
        qp->turn = QP_BLOCKED;
        scheduler->blocked++;
    }
}

enum status qp_scheduler_doorbell(struct qp_scheduler *scheduler,
                                  const struct qp_doorbell *doorbell)
{
    if (doorbell->slot >= scheduler->parameters.qps || doorbell->count == 0) {
        return STATUS_INVALID;
    }
    struct qp_scheduled *qp = &scheduler->qps[doorbell->slot];
    const uint32_t sq_wqes = scheduler->parameters.sq_wqes;
    if (doorbell->offset != ((qp->offset + qp->pending) & (sq_wqes - 1))) {
        return STATUS_INVALID;
    }
    if (doorbell->count > sq_wqes - qp->pending) {
        return STATUS_FULL;
    }
    scheduler->coalesced += qp->pending != 0;
    qp->pending += doorbell->count;
    if (qp->turn == QP_RESTS) {
        settle(scheduler, doorbell->slot);
    }
    return STATUS_OK;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

bool qp_scheduler_next(struct qp_scheduler *scheduler, struct qp_visit *visit)
{
    if (scheduler->listed == 0) {
        return false;
    }
    const uint32_t slot = scheduler->first;
    struct qp_scheduled *qp = &scheduler->qps[slot];
    scheduler->first = qp->next;
    scheduler->listed--;
    /* A message has at least one packet, so more WQEs than the window takes need not be read. */
    const uint32_t room = scheduler->parameters.window - qp->in_flight;
    qp->turn = QP_VISITED;
    qp->visited = (uint8_t)least(least(qp->pending, scheduler->parameters.visit_wqes), room);
    *visit = (struct qp_visit){.slot = slot, .wqes = qp->visited, .offset = qp->offset};
    return true;
}

uint32_t qp_scheduler_take(struct qp_scheduler *scheduler, uint32_t slot,
                           const struct qp_message *messages)
{
    CHECK(slot < scheduler->parameters.qps);
    struct qp_scheduled *qp = &scheduler->qps[slot];
    CHECK(qp->turn == QP_VISITED);
    uint64_t bytes = 0;
    uint32_t taken = 0;
    while (taken < qp->visited && qp->in_flight < scheduler->parameters.window) {
        bytes += messages[taken].bytes;
        if (taken > 0 && bytes > scheduler->parameters.visit_bytes) {
            break;
        }
        qp->in_flight += messages[taken].packets;
        taken++;
    }
    qp->pending -= taken;
    qp->offset = (uint16_t)((qp->offset + taken) & (scheduler->parameters.sq_wqes - 1));
    settle(scheduler, slot);
    return taken;
}

void qp_scheduler_acknowledged(struct qp_scheduler *scheduler, uint32_t slot, uint32_t packets)
{
    CHECK(slot < scheduler->parameters.qps);
    struct qp_scheduled *qp = &scheduler->qps[slot];
    CHECK(packets <= qp->in_flight);
    qp->in_flight -= packets;
    if (qp->turn == QP_BLOCKED) {
        settle(scheduler, slot);
    }
}
