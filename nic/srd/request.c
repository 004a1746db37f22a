/* SPDX-License-Identifier: BSD-2-Clause
 *
 * request - requests that are under way: the parts they are cut into, and their ends.
 */

#include "nic/srd/srd.h"

/* Parts of READs that are under way to one peer: 16 MB of full packets. It answers one after the
 * other, and has no room for much more (SRD_SHARES). */
#define READS_AHEAD 64

/* -- Ends ---------------------------------------------------------------------------------------*/

enum completion_status srd_completion_status(enum srd_status status)
{
    switch (status) {
    case SRD_STATUS_OK: return COMPLETION_SUCCESS;
    case SRD_STATUS_FLUSHED: return COMPLETION_FLUSHED;
    case SRD_STATUS_LOCAL_QP_ERROR:
    case SRD_STATUS_LOCAL_UNSUPPORTED:
    case SRD_STATUS_LOCAL_BAD_AH: return COMPLETION_LOCAL_QP_OPERATION;
    case SRD_STATUS_LOCAL_BAD_LKEY: return COMPLETION_LOCAL_PROTECTION;
    case SRD_STATUS_LOCAL_BAD_LENGTH: return COMPLETION_LOCAL_LENGTH;
    case SRD_STATUS_BAD_ADDRESS: return COMPLETION_REMOTE_ACCESS;
    case SRD_STATUS_ABORT: return COMPLETION_REMOTE_ABORTED;
    case SRD_STATUS_BAD_QPN: return COMPLETION_REMOTE_INVALID_RD_REQUEST;
    case SRD_STATUS_NO_RECEIVE: return COMPLETION_RNR_RETRY_EXCEEDED;
    case SRD_STATUS_BAD_LENGTH:
    case SRD_STATUS_FEATURE_MISMATCH: return COMPLETION_REMOTE_INVALID_REQUEST;
    case SRD_STATUS_BAD_STATUS: return COMPLETION_BAD_RESPONSE;
    case SRD_STATUS_UNRESPONSIVE:
    case SRD_STATUS_UNREACHABLE: return COMPLETION_RESPONSE_TIMEOUT;
    case SRD_STATUS_UNKNOWN_PEER: return COMPLETION_REMOTE_OPERATION;
    }
    UNREACHABLE("a status outside its enum");
}

/* EFA's READs complete as SENDs do. */
static enum completion_kind completion_kind(const struct srd_request *request)
{
    const bool write = request->kind == WORK_WRITE || request->kind == WORK_WRITE_IMMEDIATE;
    return write ? COMPLETION_WRITE : COMPLETION_SEND;
}

void srd_feed(struct nic *nic)
{
    if (!nic->srd->starved) {
        return;
    }
    nic->srd->starved = false;
    for (uint32_t i = 0; i < 256; i++) {
        struct qp *qp = nic->qps[i];
        if (qp != NULL && qp->engine == ENGINE_SRD && srd_has_posts(qp)) {
            nic_schedule(qp);
        }
    }
}

void srd_free_request(struct srd_request *request)
{
    struct qp *qp = request->qp;
    list_remove(&request->to_cut);
    list_remove(&request->node);
    list_append(&qp->nic->srd->requests_free, &request->node);
    qp->out.srd.lent--;
    srd_feed(qp->nic);
}

static void count_end(struct nic *nic, const struct srd_request *request, enum srd_status status)
{
    static const struct {
        enum nic_counter all, requests, bytes, errors;
    } counters[] = {
        {COUNTER_rdma_sends, COUNTER_srd_send_wrs, COUNTER_srd_send_bytes, COUNTER_srd_send_wr_err},
        {COUNTER_rdma_writes, COUNTER_srd_rdma_write_wrs, COUNTER_srd_rdma_write_bytes,
         COUNTER_srd_rdma_write_wr_err},
        {COUNTER_rdma_reads, COUNTER_srd_rdma_read_wrs, COUNTER_srd_rdma_read_bytes,
         COUNTER_srd_rdma_read_wr_err},
    };
    const uint32_t kind =
        request->kind == WORK_READ ? 2 : completion_kind(request) == COMPLETION_WRITE;
    if (status == SRD_STATUS_OK) {
        nic_count(nic, counters[kind].all);
        nic_count(nic, counters[kind].requests);
        nic->counters.values[counters[kind].bytes] += request->bytes;
        return;
    }
    nic_count(nic, COUNTER_send_err);
    nic_count(nic, counters[kind].errors);
    if (status == SRD_STATUS_UNRESPONSIVE || status == SRD_STATUS_UNREACHABLE) {
        nic_count(nic, COUNTER_srd_unresponsive_remote);
    }
}

void srd_complete(struct srd_request *request)
{
    struct qp *qp = request->qp;
    const enum srd_status status = (enum srd_status)request->status;
    const struct completion completion = {
        .wr_id = request->wr_id,
        .bytes = request->bytes,
        .qpn = qp->number,
        .status = (uint8_t)srd_completion_status(status),
        .vendor_error = request->status,
        .kind = (uint8_t)completion_kind(request),
    };
    count_end(qp->nic, request, status);
    srd_free_request(request);
    qp_complete_send(qp, &completion);
    if (qp->state == QP_SQD && qp->out.srd.lent == 0) {
        qp_note_drained(qp);
    }
}

void srd_free_part(struct srd_peer *peer, struct srd_part *part)
{
    list_remove(&part->node);
    peer->asking_count -= part->reads;
    part->request = NULL;
    list_append(&peer->qp.nic->srd->parts_free, &part->node);
}

void srd_end_part(struct srd_peer *peer, struct srd_part *part, enum srd_status status)
{
    struct srd_request *request = part->request;
    srd_free_part(peer, part);
    request->parts--;
    if (status != SRD_STATUS_OK && request->status == SRD_STATUS_OK) {
        request->status = (uint8_t)status;
    }
    /* After a failure nothing more of it begins. */
    if (request->parts == 0 &&
        (request->status != SRD_STATUS_OK || request->cut == request->bytes)) {
        srd_complete(request);
    }
}

/* -- Parts --------------------------------------------------------------------------------------*/

bool srd_gather(const struct srd_request *request, uint32_t offset, uint32_t bytes, uint32_t access,
                struct segment *segments, uint32_t *count)
{
    *count = 0;
    if (bytes == 0) {
        return true;
    }
    if (request->inlined) {
        segments[0] = (struct segment){.address = (uintptr_t)(request->bytes_inline + offset),
                                       .bytes = bytes};
        *count = 1;
        return true;
    }
    return sges_gather(request->qp, request->sges, request->sge_count, offset, bytes, access,
                       segments, count) == GATHER_GOOD;
}

static uint32_t part_bytes(const struct srd_request *request, uint32_t chunk_bytes)
{
    const uint32_t rest = request->bytes - request->cut, most = SRD_PACKETS * chunk_bytes;
    return rest < most ? rest : most;
}

/* The receive of a WRITE with immediate data completes when all of it is there, so its last part,
 * which completes it, begins when all parts before it have come. */
static bool may_cut(const struct srd_peer *peer, const struct srd_request *request)
{
    const uint32_t rest = request->bytes - request->cut, chunk_bytes = peer->sender.chunk_bytes;
    if (request->kind == WORK_READ && peer->asking_count >= READS_AHEAD) {
        return false;
    }
    return request->kind != WORK_WRITE_IMMEDIATE || request->parts == 0 ||
           rest > SRD_PACKETS * chunk_bytes;
}

static void cut_one(struct srd_peer *peer, struct srd_request *request, struct instant now)
{
    const uint32_t chunk = peer->sender.chunk_bytes;
    struct srd_part *part =
        CONTAINER_OF(list_pop(&peer->qp.nic->srd->parts_free), struct srd_part, node);
    part->peer = peer;
    part->request = request;
    part->offset = request->cut;
    part->bytes = part_bytes(request, chunk);
    part->answered = false;
    part->moving = 0;
    part->wanted = 0;
    part->instance.bytes = part->bytes;
    part->instance.tries = request->tries;
    request->parts++;
    request->cut += part->bytes;
    part->reads = request->kind == WORK_READ;
    if (part->reads) {
        peer->asking_count++;
        part->wanted = part->bytes == 0 ? 0 : srd_set_of(srd_packets(part->bytes, chunk));
        part->instance.bytes = 0; /* The request carries nothing. */
        part->news_at = now;
        list_append(&peer->asking, &part->node);
    }
    part->instance.packets = (uint8_t)srd_packets(part->instance.bytes, chunk);
    if (request->cut == request->bytes) {
        list_remove(&request->to_cut);
    }
    srd_sender_post(&peer->sender, &part->instance, now);
    part->instance.posted_at = request->since; /* It has waited for its turn since then. */
}

void srd_give_up_waiting(struct srd_peer *peer, enum srd_status status, struct instant now)
{
    struct list *next;
    for (struct list *node = peer->to_cut.next; node != &peer->to_cut; node = next) {
        struct srd_request *request = CONTAINER_OF(node, struct srd_request, to_cut);
        next = node->next;
        if (request->parts == 0 &&
            instant_reached(now, instant_after(request->since, SRD_GIVE_UP_NS))) {
            request->status = (uint8_t)status;
            srd_complete(request);
        }
    }
}

/* Behind others that wait there is nothing new: the carrier has its turn, or its deadline. */
void srd_post(struct srd_peer *peer, struct srd_request *request)
{
    list_append(&peer->to_cut, &request->to_cut);
    if (list_empty(&peer->sender.unsent)) {
        nic_schedule(&peer->qp);
    }
}

/* A failed request waits for its other parts, and has no more. */
void srd_cut(struct srd_peer *peer, struct instant now)
{
    struct list *next;
    for (struct list *node = peer->to_cut.next; node != &peer->to_cut; node = next) {
        struct srd_request *request = CONTAINER_OF(node, struct srd_request, to_cut);
        next = node->next;
        if (!list_empty(&peer->sender.unsent) || list_empty(&peer->qp.nic->srd->parts_free)) {
            return;
        }
        if (request->status != SRD_STATUS_OK) {
            list_remove(node);
        } else if (may_cut(peer, request)) {
            cut_one(peer, request, now);
        }
    }
}
