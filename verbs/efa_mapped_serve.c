/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/efa_mapped_serve.h"

#include <string.h>

#include "nic/srd.h"
#include "wire/efa.h"

/* Descriptors of one queue that are taken before the next queue has its turn. */
#define TURN 32

/* -- Completions --------------------------------------------------------------------------------*/

/* The phase, by which a reader knows that the entry is new, becomes visible after all else. */
static void tell(struct mapped_cq *to, struct efa_completion *completion)
{
    uint8_t entry[EFA_COMPLETION_ENTRY_BYTES];
    uint8_t *place = to->memory + (size_t)(to->next % to->entries) * sizeof(entry);
    uint64_t first;
    completion->phase = (to->next / to->entries & 1) == 0;
    efa_encode_completion(completion, entry);
    memcpy(&first, entry, sizeof(first));
    memcpy(place + sizeof(first), entry + sizeof(first), sizeof(entry) - sizeof(first));
    atomic_store_explicit((_Atomic uint64_t *)(void *)place, first, memory_order_release);
    to->next++;
}

/* A request has its number in the lower 16 bits of its wr_id, and its operation above them. */
static struct efa_completion completion_of(const struct verbs_cq *cq)
{
    const struct completion *from = &cq->current;
    struct efa_completion completion = {
        .id = (uint16_t)from->wr_id,
        .status = from->vendor_error,
        .operation = (uint8_t)(from->wr_id >> 16),
        .receive = completion_is_receive(from),
        .qpn = (uint16_t)from->qpn,
    };
    if (completion.receive) {
        completion.operation = from->kind == COMPLETION_RECEIVE ? EFA_SEND : EFA_WRITE;
        completion.has_immediate = (from->flags & COMPLETION_HAS_IMMEDIATE) != 0;
        completion.unsolicited = cq->current_unsolicited;
        completion.bytes = from->bytes;
        completion.handle = (uint16_t)cq->current_slid;
        completion.source_qpn = (uint16_t)from->source_qpn;
        completion.immediate = be32toh(from->immediate);
        memcpy(completion.source, cq->current_source.bytes, sizeof(completion.source));
    }
    return completion;
}

bool efa_serve_cq(struct mapped_cq *mine)
{
    struct live *live = live_of(mine->cq->ex.context);
    bool moved = false;
    live_lock(live);
    for (uint32_t i = 0; i < TURN && efa_take_current(mine->cq); i++) {
        struct efa_completion completion = completion_of(mine->cq);
        tell(mine, &completion);
        moved = true;
    }
    live_unlock(live);
    return moved;
}

/* -- Requests -----------------------------------------------------------------------------------*/

/* The writer broke the rules of the queue itself: what it writes means nothing any more. */
static void fail_queue(struct mapped_qp *mine)
{
    const struct qp_attributes attributes = {.state = QP_ERR};
    struct ibv_qp *ibv = &mine->qp->ex.qp_base;
    struct live *live = live_of(ibv->context);
    mine->failed = true;
    live_lock(live);
    (void)!qp_modify(mine->qp->core, &attributes, QP_ATTR_STATE, live_now(live));
    ibv->state = (enum ibv_qp_state)qp_state_of(mine->qp->core);
    live_flush(live);
    live_unlock(live);
}

static void tell_refused(const struct mapped_qp *mine, const struct efa_send *send,
                         enum srd_status status)
{
    const struct ibv_qp *ibv = &mine->qp->ex.qp_base;
    struct efa_completion completion = {.id = send->id,
                                        .status = (uint8_t)status,
                                        .operation = send->operation,
                                        .qpn = (uint16_t)ibv->qp_num};
    tell(mine->ends, &completion);
}

static enum work_kind kind_of(const struct efa_send *send)
{
    switch (send->operation) {
    case EFA_READ: return WORK_READ;
    case EFA_WRITE: return send->has_immediate ? WORK_WRITE_IMMEDIATE : WORK_WRITE;
    default: return send->has_immediate ? WORK_SEND_IMMEDIATE : WORK_SEND;
    }
}

/* (locked) The address behind a handle's number; false: there is no such handle. */
static bool find_address(struct ibv_context *context, uint16_t handle, struct nic_av *av)
{
    const uint32_t *handles = context_of(context)->handles;
    const struct live *live = live_of(context);
    if (handle >= SRD_HOSTS_MAX || handles == NULL || handles[handle] == 0) {
        return false;
    }
    *av = (struct nic_av){.source = live_own_address(live, 0),
                          .destination = *srd_host_gid(live_nic(live_of(context)), handle),
                          .hop_limit = 64};
    return true;
}

static uint32_t fill_sges(const struct efa_send *send, struct sge sges[EFA_SGES_MAX])
{
    if (send->is_inline) {
        sges[0] =
            (struct sge){.address = (uintptr_t)send->inline_data, .bytes = send->inline_bytes};
        return send->inline_bytes > 0;
    }
    for (uint32_t i = 0; i < send->local_count; i++) {
        sges[i] = (struct sge){send->local[i].address, send->local[i].bytes, send->local[i].key};
    }
    return send->local_count;
}

/* (locked) SRD_STATUS_OK, or the status with which it ends; *full: it has to wait. */
static enum srd_status post(struct mapped_qp *mine, const struct efa_send *send, bool *full)
{
    struct ibv_qp *ibv = &mine->qp->ex.qp_base;
    struct nic_av *av = &mine->to[mine->sent % mine->send_entries];
    struct sge sges[EFA_SGES_MAX];
    if (!find_address(ibv->context, send->handle, av)) {
        return SRD_STATUS_LOCAL_BAD_AH;
    }
    const struct send_request request = {
        .wr_id = send->id | (uint64_t)send->operation << 16,
        .kind = kind_of(send),
        .flags = WORK_SIGNALED | (send->is_inline ? WORK_INLINE : 0),
        .sges = sges,
        .sge_count = fill_sges(send, sges),
        .immediate = htobe32(send->immediate),
        .av = av,
        .destination_qpn = efa_number_of(send->destination_qpn),
        .destination_qkey = send->qkey,
        .remote_address = send->remote.address,
        .remote_key = send->remote.key,
    };
    const int reason = efa_post_request(ibv, &request);
    *full = reason == ENOMEM;
    return reason == 0 ? SRD_STATUS_OK : SRD_STATUS_LOCAL_UNSUPPORTED;
}

/* Descriptors that the doorbell announces; more than the queue has: that is nonsense. */
static uint32_t announced(const struct mapped_qp *mine, size_t doorbell, uint16_t taken)
{
    const uint32_t count = atomic_load_explicit(
        (_Atomic uint32_t *)(void *)(mine->memory + doorbell), memory_order_acquire);
    return (uint16_t)(count - taken);
}

/* (locked) False: it has to wait, or the queue failed. */
static bool take_send(struct mapped_qp *mine)
{
    const uint32_t at = mine->sent % mine->send_entries;
    uint8_t entry[EFA_SEND_ENTRY_BYTES]; /* Its writer may be at work. */
    struct efa_send send;
    bool full = false;
    memcpy(entry, mine->memory + SENDS + (size_t)at * sizeof(entry), sizeof(entry));
    enum srd_status status = efa_decode_send(entry, &send);
    if (send.phase != (mine->sent / mine->send_entries & 1)) {
        status =
            SRD_STATUS_LOCAL_QP_ERROR; /* The doorbell was rung before the descriptor was there. */
        mine->failed = true;
    } else if (status == SRD_STATUS_OK) {
        status = post(mine, &send, &full);
    }
    if (full) {
        return false;
    }
    if (status != SRD_STATUS_OK) {
        tell_refused(mine, &send, status);
    }
    mine->sent++;
    return !mine->failed;
}

bool efa_serve_sends(struct mapped_qp *mine)
{
    struct ibv_qp *ibv = &mine->qp->ex.qp_base;
    const uint16_t before = mine->sent;
    const uint32_t count = announced(mine, DOORBELL_SENDS, mine->sent);
    if (count == 0 || (ibv->state != IBV_QPS_RTS && ibv->state != IBV_QPS_SQD)) {
        return false;
    }
    mine->failed |= count > mine->send_entries;
    live_lock(live_of(ibv->context));
    for (uint32_t i = 0; i < TURN && i < count && !mine->failed && take_send(mine); i++) {
    }
    live_posted(live_of(ibv->context), mine->qp->core);
    live_unlock(live_of(ibv->context));
    if (mine->failed) {
        fail_queue(mine);
    }
    return mine->sent != before;
}

/* Takes one receive, which has a descriptor for each of its SGEs; false: it has to wait, or the
 * queue failed. */
static bool take_receive(struct mapped_qp *mine, uint32_t count)
{
    struct ibv_sge sges[EFA_SGES_MAX];
    struct ibv_recv_wr wr = {.sg_list = sges}, *bad;
    struct efa_receive receive = {0};
    uint32_t used = 0;
    while (!receive.last && used < count) {
        uint8_t entry[EFA_RECEIVE_ENTRY_BYTES];
        const uint32_t at = (mine->received + used) % mine->receive_entries;
        memcpy(entry, mine->receives + (size_t)at * sizeof(entry), sizeof(entry));
        efa_decode_receive(entry, &receive);
        mine->failed |= receive.first != (used == 0) || used == EFA_SGES_MAX;
        if (mine->failed) {
            return false;
        }
        wr.wr_id = used == 0 ? receive.id : wr.wr_id;
        sges[used++] =
            (struct ibv_sge){receive.buffer.address, receive.buffer.bytes, receive.buffer.key};
    }
    wr.num_sge = (int)used;
    const int reason = receive.last ? efa_post_recv(&mine->qp->ex.qp_base, &wr, &bad) : ENOMEM;
    mine->failed |= reason != 0 && reason != ENOMEM;
    mine->received = (uint16_t)(mine->received + (reason == 0 ? used : 0));
    return reason == 0;
}

bool efa_serve_receives(struct mapped_qp *mine)
{
    const struct ibv_qp *ibv = &mine->qp->ex.qp_base;
    const uint16_t before = mine->received;
    uint32_t count = announced(mine, DOORBELL_RECEIVES, mine->received);
    if (count == 0 || ibv->state == IBV_QPS_RESET || ibv->state == IBV_QPS_ERR) {
        return false;
    }
    mine->failed |= count > mine->receive_entries;
    for (uint32_t i = 0; i < TURN && count > 0 && !mine->failed && take_receive(mine, count); i++) {
        count = announced(mine, DOORBELL_RECEIVES, mine->received);
    }
    if (mine->failed) {
        fail_queue(mine);
    }
    return mine->received != before;
}
