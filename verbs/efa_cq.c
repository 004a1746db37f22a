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

/* (locked) The number of a host to which the context has an address handle. */
static uint32_t known(const struct verbs_cq *cq, uint16_t host)
{
    const uint32_t *handles = context_of(cq->ex.context)->handles;
    return handles != NULL && handles[host] > 0 ? host : EFA_AH_NONE;
}

/* (locked) The same by its GID, whose number stays while there is a handle. */
static uint32_t number_of(const struct verbs_cq *cq, struct nic *nic, const struct gid *gid)
{
    uint16_t host;
    if (srd_hold_host(nic, gid, &host) != STATUS_OK) {
        return EFA_AH_NONE;
    }
    srd_let_host_go(nic, host);
    return known(cq, host);
}

/* (locked) The sender of a receive, and its address. */
static uint32_t sender_of(const struct verbs_cq *cq, uint32_t ahead, struct gid *source)
{
    const struct completion *completion = cq_peek(&cq->core, ahead);
    struct nic *nic = live_nic(live_of(cq->ex.context));
    if (!completion_is_receive(completion) || completion->status != COMPLETION_SUCCESS) {
        return 0;
    }
    if (completion->flags & COMPLETION_HAS_GRH) { /* UD. */
        *source = *cq_peek_source(&cq->core, ahead);
        return number_of(cq, nic, source);
    }
    *source = *srd_host_gid(nic, completion->host);
    return known(cq, completion->host);
}

/* (locked) The `ahead`th completion that waits, as a program sees it. */
static struct completion shown(const struct verbs_cq *cq, uint32_t ahead)
{
    struct completion completion = *cq_peek(&cq->core, ahead);
    const bool receive = completion_is_receive(&completion);
    completion.qpn = efa_qpn_of(completion.qpn);
    completion.source_qpn = efa_qpn_of(completion.source_qpn);
    completion.bytes = receive ? completion.bytes : 0;
    completion.flags &= COMPLETION_HAS_IMMEDIATE;
    completion.service_level = 0;
    completion.pkey_index = 0;
    completion.kind = completion.kind == COMPLETION_READ ? COMPLETION_SEND : completion.kind;
    if (!receive) {
        efa_send_polled(completion.qpn);
    }
    if (completion.vendor_error == 0) { /* SRD has said it. */
        completion.vendor_error = (uint8_t)status_of(&completion);
    }
    return completion;
}

/* -- Plain queues -------------------------------------------------------------------------------*/

/* (locked) */
static int take(struct verbs_cq *cq, struct ibv_wc *wc, int count)
{
    const uint32_t waiting = cq_count(&cq->core);
    const uint32_t taken = (uint32_t)count < waiting ? (uint32_t)count : waiting;
    for (uint32_t i = 0; i < taken; i++) {
        struct gid source;
        const struct completion completion = shown(cq, i);
        wc_fill(&completion, &wc[i]);
        wc[i].slid = (uint16_t)sender_of(cq, i, &source);
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

bool efa_take_current(struct verbs_cq *cq)
{
    if (cq_count(&cq->core) == 0) {
        return false;
    }
    cq->current_unsolicited = cq_peek(&cq->core, 0)->flags & COMPLETION_UNSOLICITED;
    cq->current_slid = sender_of(cq, 0, &cq->current_source);
    cq->current = shown(cq, 0);
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
    bool found = efa_take_current(cq);
    if (found) {
        live_reaped(live, armed);
    } else {
        live_progress(live, armed);
        found = efa_take_current(cq);
    }
    live_unlock(live);
    return found ? 0 : ENOENT;
}

static int ex_next_poll(struct ibv_cq_ex *ex)
{
    struct live *live = live_of(ex->context);
    live_lock(live);
    const bool found = efa_take_current(ex_of(ex));
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

static bool is_unsolicited(struct efadv_cq *direct)
{
    return CONTAINER_OF((struct efa_cq *)(void *)direct, struct verbs_cq, direct)
        ->current_unsolicited;
}

void efa_offer(struct ibv_cq_ex *ex, uint64_t wc_flags)
{
    struct efa_cq *direct = &ex_of(ex)->direct;
    direct->wc_read_sgid = wc_flags & EFA_WC_WITH_SGID ? read_sgid : NULL;
    direct->wc_is_unsolicited = wc_flags & EFA_WC_WITH_IS_UNSOLICITED ? is_unsolicited : NULL;
}

void efa_fill_polls(struct ibv_cq_ex *ex)
{
    ex->start_poll = ex_start_poll;
    ex->next_poll = ex_next_poll;
    ex->read_slid = ex_read_slid;
}
