/* SPDX-License-Identifier: BSD-2-Clause
 *
 * life - a program's queue pair of SRD: its requests go to peers, and it leaves.
 */
#include <string.h>

#include "nic/srd/srd.h"

static struct srd_request *request_of(struct list *node)
{
    return CONTAINER_OF(node, struct srd_request, node);
}

/* -- Handing over -------------------------------------------------------------------------------*/

static void fill(struct srd_request *request, struct qp *qp, struct work *work)
{
    request->qp = qp;
    request->wr_id = work->wr_id;
    request->remote_address = work->remote_address;
    request->remote_key = work->remote_key;
    request->bytes = work->bytes;
    request->immediate = work->immediate;
    request->kind = work->kind;
    request->qkey = work->datagram.qkey;
    request->target_qpn = srd_qpn_of(work->datagram.qpn);
    request->cut = 0;
    request->parts = 0;
    request->status = SRD_STATUS_OK;
    request->tries = qp->attributes.rnr_retry;
    request->inlined = (work->flags & WORK_INLINE) != 0;
    request->unsolicited = qp->unsolicited && work->kind == WORK_WRITE_IMMEDIATE;
    request->sge_count = work->sge_count;
    if (request->inlined) {
        memcpy(request->bytes_inline, work_inline(work), work->bytes);
    } else {
        memcpy(request->sges, work_sges(work), work->sge_count * sizeof(struct sge));
    }
}

/* The memory must be there before anything of the request leaves. */
static enum srd_status judge(const struct srd_request *request)
{
    struct segment segments[SRD_SGES_MAX];
    uint32_t count;
    const bool reads = request->kind == WORK_READ;
    const uint32_t longest = request->kind == WORK_SEND || request->kind == WORK_SEND_IMMEDIATE
                                 ? request->qp->nic->limits.srd.send_bytes
                                 : SRD_RDMA_BYTES_MAX;
    if (request->bytes > longest) {
        return SRD_STATUS_LOCAL_BAD_LENGTH;
    }
    const bool there =
        srd_gather(request, 0, request->bytes, reads ? ACCESS_LOCAL_WRITE : 0, segments, &count);
    return there ? SRD_STATUS_OK : SRD_STATUS_LOCAL_BAD_LKEY;
}

static struct srd_source target_of(const struct work *work)
{
    const struct nic_av *av = work->datagram.av;
    return srd_source_of(&av->destination, (uint8_t)(work->datagram.qpn >> 16));
}

/* `peer`: NULL if there is no room to know that process. */
static void hand_one_over(struct qp *qp, struct work *work, struct srd_peer *peer,
                          struct instant now)
{
    struct nic *nic = qp->nic;
    struct srd_request *request = request_of(list_pop(&nic->srd->requests_free));
    fill(request, qp, work);
    request->since = now;
    list_append(&qp->out.srd.requests, &request->node);
    qp->out.srd.lent++;
    qp->sends.head++;
    qp->sends.next = qp->sends.head;
    request->status =
        work->status == COMPLETION_FLUSHED ? (uint8_t)SRD_STATUS_FLUSHED : (uint8_t)judge(request);
    if (request->status == SRD_STATUS_OK && peer == NULL) {
        request->status = SRD_STATUS_LOCAL_BAD_AH;
    }
    request->peer = peer;
    if (request->status == SRD_STATUS_OK) {
        srd_set_av(peer, work->datagram.av);
        srd_post(peer, request);
        return;
    }
    srd_complete(request);
    if (peer != NULL) {
        srd_update(peer, now);
    }
}

void srd_hand_over(struct qp *qp, struct instant now)
{
    while (srd_has_posts(qp)) {
        struct work *work = send_queue_at(&qp->sends, qp->sends.head);
        const struct srd_source target = target_of(work);
        struct srd_peer *peer;
        if (list_empty(&qp->nic->srd->requests_free) ||
            srd_meet_peer(qp->nic, &target, work->datagram.av, SRD_WE, &peer) == SRD_MET_LATER) {
            qp->nic->srd->starved = true;
            return;
        }
        hand_one_over(qp, work, peer, now);
    }
}

/* -- Leaving ------------------------------------------------------------------------------------*/

/* Withdraws the parts of a request from its peer. One whose data move stays until they have. */
static void withdraw(struct srd_request *request)
{
    struct srd_shared *shared = request->qp->nic->srd;
    for (uint32_t i = 0; request->parts != 0 && i < request->qp->nic->limits.srd.parts; i++) {
        struct srd_part *part = &shared->parts[i];
        if (part->request != request) {
            continue;
        }
        if (!part->answered) {
            srd_sender_withdraw(&request->peer->sender, &part->instance);
        }
        part->request = NULL;
        request->parts--;
        if (part->moving == 0) {
            srd_free_part(request->peer, part);
        }
    }
}

/* The request ends, with a completion or without. Others of its peer may end meanwhile. */
static void flush(struct srd_request *request, bool completes)
{
    struct srd_peer *peer = request->peer;
    withdraw(request);
    if (completes) {
        request->status = SRD_STATUS_FLUSHED;
        srd_complete(request);
    } else {
        srd_free_request(request);
    }
    srd_update(peer, peer->qp.nic->now);
}

static void flush_requests(struct qp *qp, bool completes)
{
    while (!list_empty(&qp->out.srd.requests)) {
        flush(request_of(qp->out.srd.requests.next), completes);
    }
}

/* -- Hosts that nobody has a handle for ---------------------------------------------------------*/

static struct srd_request *first_for(const struct qp *qp, uint16_t host)
{
    for (struct list *node = qp->out.srd.requests.next; node != &qp->out.srd.requests;
         node = node->next) {
        if (request_of(node)->peer->host == host) {
            return request_of(node);
        }
    }
    return NULL;
}

/* Requests that were not handed over keep their place: each ends when its turn comes, and those in
 * front do now. */
static void flush_posts(struct qp *qp, const struct gid *gid)
{
    struct send_queue *sends = &qp->sends;
    for (uint32_t i = sends->head; i != sends->tail; i++) {
        struct work *work = send_queue_at(sends, i);
        const struct nic_av *av = work->datagram.av;
        if (gid_equal(&av->destination, gid)) {
            work->status = COMPLETION_FLUSHED;
        }
    }
    while (sends->head != sends->tail && !list_empty(&qp->nic->srd->requests_free) &&
           send_queue_at(sends, sends->head)->status == COMPLETION_FLUSHED) {
        hand_one_over(qp, send_queue_at(sends, sends->head), NULL, qp->nic->now);
    }
}

void srd_flush_host(struct nic *nic, uint16_t host)
{
    CHECK(!srd_host_is_held(nic, host));
    for (uint32_t i = 0; i < nic->limits.qpn_span; i++) {
        struct qp *qp = nic->qps[i];
        struct srd_request *request;
        if (qp == NULL || qp->engine != ENGINE_SRD) {
            continue;
        }
        while ((request = first_for(qp, host)) != NULL) {
            flush(request, true);
        }
        flush_posts(qp, srd_host_gid(nic, host));
    }
}

/* -- States -------------------------------------------------------------------------------------*/

void srd_drain(struct qp *qp)
{
    if (qp->out.srd.lent == 0) {
        qp_note_drained(qp);
    }
}

void srd_withdraw(struct qp *qp)
{
    srd_leave_target(qp);
    srd_forget_reads_of(qp);
    flush_requests(qp, false);
}

void srd_enter_error(struct qp *qp)
{
    if (qp->state == QP_ERR) {
        return;
    }
    srd_leave_target(qp);
    srd_forget_reads_of(qp);
    flush_requests(qp, true);
    qp_enter_error(qp);
}

void srd_check_duties(const struct qp *qp)
{
    CHECK(qp->listing != QP_LISTED_NOWHERE || qp->nic->turns_taken || !srd_has_posts(qp) ||
          qp->nic->srd->starved);
    CHECK(receive_queue_count(&qp->receives) + qp->in.srd.lent <= qp->receives.limit);
}
