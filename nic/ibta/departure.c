/* SPDX-License-Identifier: BSD-2-Clause
 *
 * departure - the common part of all packets that leave, of every service.
 */
#include "nic/ibta/ibta.h"

void departure_start(struct qp *qp, struct nic_departure *departure, uint8_t opcode, struct psn psn)
{
    struct roce_packet *packet = &qp->nic->departing;
    packet->opcode = opcode;
    packet->solicited = false;
    packet->migration_request = true;
    packet->pad_bytes = 0;
    packet->version = 0;
    packet->byte4 = 0;
    packet->ack_request = false;
    packet->reserved7 = 0;
    packet->pkey = ROCE_DEFAULT_PKEY;
    packet->psn = psn.value;
    packet->payload = NULL;
    packet->payload_bytes = 0;
    departure->payload_bytes = 0;
    departure->pad_bytes = 0;
    departure->route = 0;
    departure->ecn = NIC_ECN_OF_PATH;
    departure->segment_count = 0;
    departure->alone = false;
    departure->direct.kind = NIC_DIRECT_NONE;
    departure->more_sends = qp->sends.next != qp->sends.tail;
}

void departure_set_payload(struct qp *qp, struct nic_departure *departure, uint32_t bytes)
{
    const uint8_t pad = roce_pad_bytes(bytes);
    qp->nic->departing.payload_bytes = bytes;
    qp->nic->departing.pad_bytes = pad;
    departure->payload_bytes = bytes;
    departure->pad_bytes = pad;
}

void departure_seal(struct qp *qp, struct nic_departure *departure)
{
    const struct roce_packet *packet = &qp->nic->departing;
    departure->headers_bytes = (uint32_t)roce_encode_headers(packet, departure->headers);
    departure->destination_qpn = packet->destination_qpn;
    departure->psn = packet->psn;
    departure->reply = roce_opcode(packet->opcode)->traits & ROCE_IS_RESPONSE;
}

bool departure_gather(struct qp *qp, struct work *work, uint32_t offset, uint32_t bytes,
                      struct nic_departure *departure)
{
    departure_set_payload(qp, departure, bytes);
    if (bytes == 0) {
        return true;
    }
    if (work->flags & WORK_INLINE) {
        departure->segments[0] =
            (struct segment){.address = (uintptr_t)(work_inline(work) + offset), .bytes = bytes};
        departure->segment_count = 1;
        return true;
    }
    return sges_gather(qp, work_sges(work), work->sge_count, offset, bytes, 0, departure->segments,
                       &departure->segment_count) == GATHER_GOOD;
}

bool work_memory_allowed(const struct qp *qp, struct work *work)
{
    if (work_is_local(work) || (work->flags & WORK_INLINE)) {
        return true;
    }
    const uint32_t access = work_wants_data(work) ? ACCESS_LOCAL_WRITE : 0;
    const struct sge *sges = work_sges(work);
    for (uint32_t i = 0; i < work->sge_count; i++) {
        struct segment segment;
        if (sges[i].bytes != 0 &&
            region_judge(&qp->nic->regions, sges[i].key, qp->pd, NULL, sges[i].address,
                         sges[i].bytes, access, &segment) != REACH_ALLOWED) {
            return false;
        }
    }
    return true;
}

bool departure_may_begin(struct qp *qp, bool gathered)
{
    struct send_queue *queue = &qp->sends;
    if (queue->next == queue->tail) {
        return true;
    }
    struct work *work = send_queue_at(queue, queue->next);
    if (!work->started && work_wants_response(work) && qp->attributes.max_reads_out == 0) {
        work->status = COMPLETION_LOCAL_QP_OPERATION;
    }
    const bool judged_later = gathered && work->bytes <= qp->mtu_bytes && !work_wants_data(work);
    if (!work->started && !judged_later && work->status == COMPLETION_SUCCESS &&
        !work_memory_allowed(qp, work)) {
        work->status = COMPLETION_LOCAL_PROTECTION;
    }
    return work->status == COMPLETION_SUCCESS;
}

bool departure_is_behind_failure(const struct qp *qp)
{
    const struct send_queue *queue = &qp->sends;
    for (uint32_t at = queue->next; at != queue->head; at--) {
        const struct work *work = send_queue_at(queue, at - 1);
        if (work->status != COMPLETION_SUCCESS || !work_is_local(work)) {
            return work->status != COMPLETION_SUCCESS;
        }
    }
    return false;
}

void departure_count_request(struct qp *qp, const struct work *work)
{
    if (work_is(work, WORK_IS_WRITE)) {
        nic_count(qp->nic, COUNTER_rdma_writes);
    } else if (work_is(work, WORK_IS_SEND)) {
        nic_count(qp->nic, COUNTER_rdma_sends);
    } else if (work_is(work, WORK_IS_READ)) {
        nic_count(qp->nic, COUNTER_rdma_reads);
    } else if (work_is(work, WORK_IS_FLUSH)) {
        nic_count(qp->nic, COUNTER_rdma_flushes);
    } else {
        nic_count(qp->nic, COUNTER_rdma_atomics);
    }
}

bool qp_execute_local(struct qp *qp, const struct work *work)
{
    if (work->kind == WORK_LOCAL_INVALIDATE) {
        return window_invalidate(&qp->nic->regions, work->immediate, qp, qp->pd);
    }
    struct region_table *regions = &qp->nic->regions;
    const struct window_bind bind = {
        .window = region_find_generation(regions, work->bind.window),
        .region = region_find(regions, work->bind.region),
        .address = work->remote_address,
        .bytes = work->bind.bytes,
        .access = work->bind.access,
        .key = work->bind.key,
    };
    return bind.window != NULL && bind.window->kind != REGION_MEMORY &&
           window_bind_execute(regions, &bind, qp, qp->pd);
}
