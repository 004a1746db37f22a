/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_cq - completions as an EFA device has them: a sender is named by the number of its address
 * handle, and the vendor's error is EFA's status.
 */
#include <stdlib.h>
#include <string.h>

#include "verbs/efa.h"

/* Statuses of efa_io_defs.h that datagrams may end with. */
enum efa_status {
    EFA_OK = 0,
    EFA_FLUSHED = 1,
    EFA_QP_INTERNAL_ERROR = 2,
    EFA_INVALID_LKEY = 5,
    EFA_BAD_LENGTH = 6,
};

bool efa_note_sources(struct cq *cq)
{
    cq->sources = calloc((size_t)cq->mask + 1, sizeof(*cq->sources));
    return cq->sources != NULL;
}

/* -- One completion -----------------------------------------------------------------------------*/

static enum efa_status status_of(const struct completion *completion)
{
    switch (completion->status) {
    case COMPLETION_SUCCESS: return EFA_OK;
    case COMPLETION_FLUSHED: return EFA_FLUSHED;
    case COMPLETION_LOCAL_LENGTH: return EFA_BAD_LENGTH;
    case COMPLETION_LOCAL_PROTECTION: return EFA_INVALID_LKEY;
    default: return EFA_QP_INTERNAL_ERROR;
    }
}

/* (locked) The `ahead`th completion that waits, as a program sees it. */
static struct completion shown(const struct verbs_cq *cq, uint32_t ahead, uint32_t *slid)
{
    struct completion completion = *cq_peek(&cq->core, ahead);
    const bool receive = completion_is_receive(&completion);
    const bool came = receive && completion.status == COMPLETION_SUCCESS;
    completion.qpn = efa_qpn_of(completion.qpn);
    completion.source_qpn = efa_qpn_of(completion.source_qpn);
    completion.bytes = receive ? completion.bytes : 0;
    completion.flags &= COMPLETION_HAS_IMMEDIATE;
    completion.service_level = 0;
    completion.vendor_error = (uint8_t)status_of(&completion);
    *slid = came ? efa_ah_number(cq_peek_source(&cq->core, ahead)) : 0;
    return completion;
}

/* -- Plain queues -------------------------------------------------------------------------------*/

/* (locked) */
static int take(struct verbs_cq *cq, struct ibv_wc *wc, int count)
{
    const uint32_t waiting = cq_count(&cq->core);
    const uint32_t taken = (uint32_t)count < waiting ? (uint32_t)count : waiting;
    for (uint32_t i = 0; i < taken; i++) {
        uint32_t slid;
        const struct completion completion = shown(cq, i, &slid);
        wc_fill(&completion, &wc[i]);
        wc[i].slid = (uint16_t)slid;
    }
    cq_drop(&cq->core, taken);
    return (int)taken;
}

int efa_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
    struct verbs_cq *cq = cq_of(ibv);
    struct live *live = live_of(ibv->context);
    live_lock(live);
    const bool armed = cq->core.arming != CQ_NOT_ARMED;
    int total = count > 0 ? take(cq, wc, count) : 0;
    if (total > 0) {
        live_reaped(live, armed);
    } else if (count > 0) {
        live_progress(live, armed);
        total = take(cq, wc, count);
    }
    const bool overrun = cq->core.overrun && total == 0;
    live_unlock(live);
    initialised(wc, (size_t)total * sizeof(*wc));
    return overrun ? -1 : total;
}

/* The device has no solicited events. */
int efa_request_notify(struct ibv_cq *ibv, int solicited_only)
{
    struct live *live = live_of(ibv->context);
    if (solicited_only != 0) {
        return EOPNOTSUPP;
    }
    live_lock(live);
    cq_arm(&cq_of(ibv)->core, false);
    live_will_block(live);
    live_unlock(live);
    return 0;
}

/* -- Extended queues ----------------------------------------------------------------------------*/

static struct verbs_cq *ex_of(struct ibv_cq_ex *ex)
{
    return CONTAINER_OF(ex, struct verbs_cq, ex);
}

/* (locked) */
static bool take_current(struct verbs_cq *cq)
{
    if (cq_count(&cq->core) == 0) {
        return false;
    }
    cq->current = shown(cq, 0, &cq->current_slid);
    cq->current_source = *cq_peek_source(&cq->core, 0);
    cq_drop(&cq->core, 1);
    cq->ex.status = (enum ibv_wc_status)cq->current.status;
    cq->ex.wr_id = cq->current.wr_id;
    return true;
}

static int ex_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct verbs_cq *cq = ex_of(ex);
    struct live *live = live_of(ex->context);
    if (attr->comp_mask != 0) {
        return EINVAL;
    }
    live_lock(live);
    const bool armed = cq->core.arming != CQ_NOT_ARMED;
    bool found = take_current(cq);
    if (found) {
        live_reaped(live, armed);
    } else {
        live_progress(live, armed);
        found = take_current(cq);
    }
    live_unlock(live);
    return found ? 0 : ENOENT;
}

static int ex_next_poll(struct ibv_cq_ex *ex)
{
    struct live *live = live_of(ex->context);
    live_lock(live);
    const bool found = take_current(ex_of(ex));
    live_unlock(live);
    return found ? 0 : ENOENT;
}

static uint32_t ex_read_slid(struct ibv_cq_ex *ex)
{
    return ex_of(ex)->current_slid;
}

static int read_sgid(struct efadv_cq *direct, union ibv_gid *gid)
{
    const struct verbs_cq *cq =
        CONTAINER_OF((struct efa_cq *)(void *)direct, struct verbs_cq, direct);
    if (cq->current_slid != EFA_AH_NONE) {
        return -ENOENT; /* The program knows it by its address handle. */
    }
    memcpy(gid->raw, cq->current_source.bytes, sizeof(gid->raw));
    initialised(gid, sizeof(*gid));
    return 0;
}

void efa_offer_sgid(struct ibv_cq_ex *ex)
{
    ex_of(ex)->direct.wc_read_sgid = read_sgid;
}

void efa_fill_polls(struct ibv_cq_ex *ex)
{
    ex->start_poll = ex_start_poll;
    ex->next_poll = ex_next_poll;
    ex->read_slid = ex_read_slid;
}
