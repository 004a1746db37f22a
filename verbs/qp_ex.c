/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qp_ex - the ibv_wr_* way of posting: requests are built between wr_start and wr_complete, then
 * posted all together or not at all.
 */
#include <stdlib.h>
#include <string.h>

#include "drivers/system/poisoned.h"
#include "verbs/checking.h"
#include "verbs/efa.h"
#include "verbs/internal.h"
#include "verbs/newer.h"
#include "verbs/strict.h"

/* A request under construction. */
struct draft {
    struct send_request request;
    struct ibv_mw *mw;
    uint32_t first_sge, first_byte;
    uint32_t inline_bytes;
    bool inlined;
};

struct builder {
    pthread_mutex_t mutex; /* From wr_start to wr_complete or wr_abort. */
    uint64_t offered;      /* IBV_QP_EX_WITH_* asked for at creation. */
    int reason;            /* First thing that went wrong; 0: nothing. */
    struct draft *drafts;
    uint32_t count, max;
    struct sge *sges; /* `max` times the queue pair's send SGEs. */
    uint8_t *bytes;   /* `max` times its inline bytes. */
    uint32_t sges_each, bytes_each;
    struct send_request *requests; /* `max`, and an SGE for each that is inline: for wr_complete. */
    struct sge *inlined;
};

static struct verbs_qp *ex_of(struct ibv_qp_ex *ex)
{
    return CONTAINER_OF(ex, struct verbs_qp, ex);
}

/* (mutex) Each draft has a place of its own for SGEs and for inline bytes. */
static void builder_check(const struct builder *builder)
{
    CHECK(builder->count <= builder->max && builder->reason >= 0);
    CHECK(builder->drafts != NULL && builder->sges != NULL && builder->bytes != NULL);
    CHECK(builder->requests != NULL && builder->inlined != NULL);
}

static void draft_check(const struct builder *builder, const struct draft *draft)
{
    const uint32_t index = (uint32_t)(draft - builder->drafts);
    CHECK(index < builder->count);
    CHECK(draft->first_sge == index * builder->sges_each);
    CHECK(draft->first_byte == index * builder->bytes_each);
    CHECK(draft->inline_bytes <= builder->bytes_each);
    CHECK(draft->inlined || draft->inline_bytes == 0);
    CHECK(draft->request.sge_count <= builder->sges_each);
}

static void spoil(struct builder *builder, int reason)
{
    INVARIANTS(CHECK(reason > 0));
    if (builder->reason == 0) {
        builder->reason = reason;
    }
}

/* The flag that the program must have set when it made the queue pair, to send this. */
#define NEED(argument, name, number, verbs, completion, traits)                                    \
    case WORK_##name: return IBV_QP_EX_WITH_##verbs;

static uint64_t needs(enum work_kind kind)
{
    switch (kind) {
        WORK_KINDS(NEED, 0)
    }
    UNREACHABLE("a work kind outside its enum");
}

/* The next draft; NULL if something is wrong already, or with this. */
static struct draft *draft(struct ibv_qp_ex *ex, enum work_kind kind)
{
    struct builder *builder = ex_of(ex)->builder;
    INVARIANTS(builder_check(builder));
    if ((builder->offered & needs(kind)) == 0) {
        spoil(builder, EOPNOTSUPP);
        return NULL;
    }
    if (builder->count == builder->max) {
        spoil(builder, ENOMEM);
        return NULL;
    }
    const uint32_t index = builder->count++;
    struct draft *draft = &builder->drafts[index];
    *draft = (struct draft){
        .request = {.wr_id = ex->wr_id, .kind = kind, .flags = ex->wr_flags},
        .first_sge = index * builder->sges_each,
        .first_byte = index * builder->bytes_each,
    };
    INVARIANTS(draft_check(builder, draft));
    return draft;
}

static struct draft *newest(struct ibv_qp_ex *ex)
{
    struct builder *builder = ex_of(ex)->builder;
    INVARIANTS(builder_check(builder));
    if (builder->count == 0) {
        spoil(builder, EINVAL);
        return NULL;
    }
    INVARIANTS(draft_check(builder, &builder->drafts[builder->count - 1]));
    return &builder->drafts[builder->count - 1];
}

/* -- Operations ---------------------------------------------------------------------------------*/

static void wr_atomic(struct ibv_qp_ex *ex, enum work_kind kind, uint32_t rkey, uint64_t address,
                      uint64_t compare_or_add, uint64_t swap)
{
    struct draft *made = draft(ex, kind);
    if (made != NULL) {
        made->request.remote_key = rkey;
        made->request.remote_address = address;
        made->request.compare_or_add = compare_or_add;
        made->request.swap = swap;
    }
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t address,
                              uint64_t compare, uint64_t swap)
{
    wr_atomic(ex, WORK_COMPARE_SWAP, rkey, address, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t address, uint64_t add)
{
    wr_atomic(ex, WORK_FETCH_ADD, rkey, address, add, 0);
}

static void wr_rdma(struct ibv_qp_ex *ex, enum work_kind kind, uint32_t rkey, uint64_t address,
                    uint32_t immediate)
{
    struct draft *made = draft(ex, kind);
    if (made != NULL) {
        made->request.remote_key = rkey;
        made->request.remote_address = address;
        made->request.immediate = immediate;
    }
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t address)
{
    wr_rdma(ex, WORK_READ, rkey, address, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t address)
{
    wr_rdma(ex, WORK_WRITE, rkey, address, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t address, __be32 imm)
{
    wr_rdma(ex, WORK_WRITE_IMMEDIATE, rkey, address, imm);
}

/* A FLUSH of all that a key opens carries no address: the program's address and length are
 * ignored. */
static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t address, size_t bytes,
                     uint8_t type, uint8_t level)
{
    struct draft *made = draft(ex, WORK_FLUSH);
    if (made == NULL) {
        return;
    }
    const bool range = level == IBV_FLUSH_RANGE;
    if (range && bytes > UINT32_MAX) {
        spoil(ex_of(ex)->builder, EINVAL);
        return;
    }
    made->request.remote_key = rkey;
    made->request.remote_address = range ? address : 0;
    made->request.flush.bytes = range ? (uint32_t)bytes : 0;
    made->request.flush.placement = type;
    made->request.flush.selectivity = level;
}

static void wr_send(struct ibv_qp_ex *ex)
{
    wr_rdma(ex, WORK_SEND, 0, 0, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    wr_rdma(ex, WORK_SEND_IMMEDIATE, 0, 0, imm);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    wr_rdma(ex, WORK_SEND_INVALIDATE, 0, 0, rkey);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    wr_rdma(ex, WORK_LOCAL_INVALIDATE, 0, 0, rkey);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *info)
{
    struct draft *made = draft(ex, WORK_BIND_WINDOW);
    if (made == NULL) {
        return;
    }
    const int reason = mw == NULL || mw->type != IBV_MW_TYPE_2
                           ? EINVAL
                           : bind_request(mw, info, rkey, &made->request.bind);
    made->mw = mw;
    if (reason != 0) {
        spoil(ex_of(ex)->builder, reason);
    }
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *header, uint16_t header_bytes, uint16_t mss)
{
    (void)header;
    (void)header_bytes;
    (void)mss;
    spoil(ex_of(ex)->builder, EOPNOTSUPP);
}

/* -- Contents of requests -----------------------------------------------------------------------*/

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t number)
{
    struct draft *made = newest(ex);
    if (made != NULL) {
        made->request.srqn = number;
    }
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct draft *made = newest(ex);
    if (made != NULL) {
        made->request.av = ah == NULL ? NULL : &ah_of(ah)->av;
        made->request.destination_qpn = qpn;
        made->request.destination_qkey = qkey;
    }
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_sge *sges)
{
    struct builder *builder = ex_of(ex)->builder;
    struct draft *made = newest(ex);
    if (made == NULL) {
        return;
    }
    if (count > builder->sges_each) {
        spoil(builder, EINVAL);
        return;
    }
    if (count > 0) { /* NULL may stand for none. */
        memcpy(builder->sges + made->first_sge, sges, count * sizeof(*sges));
    }
    made->request.sge_count = (uint32_t)count;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t address, uint32_t bytes)
{
    const struct ibv_sge sge = {.addr = address, .length = bytes, .lkey = lkey};
    wr_set_sge_list(ex, 1, &sge);
}

static void add_inline(struct ibv_qp_ex *ex, struct draft *made, const void *from, size_t bytes)
{
    struct builder *builder = ex_of(ex)->builder;
    INVARIANTS(draft_check(builder, made));
    if (bytes > builder->bytes_each - made->inline_bytes) {
        spoil(builder, EINVAL);
        return;
    }
    if (bytes > 0) { /* NULL may stand for none. */
        memcpy(builder->bytes + made->first_byte + made->inline_bytes, from, bytes);
    }
    made->inline_bytes += (uint32_t)bytes;
    made->inlined = true;
    INVARIANTS(draft_check(builder, made));
}

/* The value travels with the request, like inline data. */
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t address,
                            const void *value)
{
    struct draft *made = draft(ex, WORK_ATOMIC_WRITE);
    if (made != NULL) {
        made->request.remote_key = rkey;
        made->request.remote_address = address;
        add_inline(ex, made, value, 8);
    }
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *from, size_t bytes)
{
    struct draft *made = newest(ex);
    if (made != NULL) {
        made->inline_bytes = 0;
        add_inline(ex, made, from, bytes);
    }
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t count,
                                    const struct ibv_data_buf *buffers)
{
    struct draft *made = newest(ex);
    if (made == NULL) {
        return;
    }
    made->inline_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        add_inline(ex, made, buffers[i].addr, buffers[i].length);
    }
}

/* -- Start, complete, abort ---------------------------------------------------------------------*/

static void wr_start(struct ibv_qp_ex *ex)
{
    struct builder *builder = ex_of(ex)->builder;
    pthread_mutex_lock(&builder->mutex);
    builder->count = 0;
    builder->reason = 0;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    pthread_mutex_unlock(&ex_of(ex)->builder->mutex);
}

/* Where a draft's SGEs or inline bytes lie now that all are drawn up. */
static void settle(struct builder *builder, struct draft *made, struct sge *inlined)
{
    INVARIANTS(draft_check(builder, made));
    if (made->inlined) {
        *inlined = (struct sge){.address = (uintptr_t)(builder->bytes + made->first_byte),
                                .bytes = made->inline_bytes};
        made->request.sges = inlined;
        made->request.sge_count = 1;
        made->request.flags |= WORK_INLINE;
    } else {
        made->request.sges = builder->sges + made->first_sge;
        made->request.flags &= ~(uint32_t)WORK_INLINE;
    }
}

static void tell_sends(const struct verbs_qp *qp, const struct builder *builder)
{
    for (uint32_t i = 0; i < builder->count; i++) {
        const struct send_request *request = &builder->requests[i];
        post_tell_send(live_of(qp->ex.qp_base.context), qp->core, request->kind,
                       builder->drafts[i].inlined, request->sges, request->sge_count);
    }
}

static void settle_all(struct builder *builder)
{
    for (uint32_t i = 0; i < builder->count; i++) {
        settle(builder, &builder->drafts[i], &builder->inlined[i]);
        builder->requests[i] = builder->drafts[i].request;
    }
}

static ALWAYS_INLINE int post_all(struct verbs_qp *qp, struct builder *builder, bool strict)
{
    settle_all(builder);
    if (memory_is_watched()) {
        tell_sends(qp, builder);
    }
    const enum status status = strict
                                   ? slots_post_sends(qp->core, builder->requests, builder->count)
                                   : qp_post_sends(qp->core, builder->requests, builder->count);
    for (uint32_t i = 0; i < builder->count && status == STATUS_OK; i++) {
        if (builder->drafts[i].mw != NULL) {
            builder->drafts[i].mw->rkey = builder->drafts[i].request.bind.key;
        }
    }
    return status_errno(status);
}

/* The error so far; if there is none, the domains of the datagrams' handles are judged. */
static int judge_handles(const struct verbs_qp *qp)
{
    const struct builder *builder = qp->builder;
    int reason = builder->reason;
    for (uint32_t i = 0; i < builder->count && reason == 0; i++) {
        const struct nic_av *av = builder->drafts[i].request.av;
        if (av != NULL && CONTAINER_OF_CONST(av, struct verbs_ah, av)->pd != qp_pd(qp->core)) {
            reason = strict_refuse(STRICT_AH_DOMAIN);
        }
    }
    return reason;
}

/* Made twice, like the calls that post. */
static ALWAYS_INLINE int complete(struct ibv_qp_ex *ex, bool strict)
{
    struct verbs_qp *qp = ex_of(ex);
    struct builder *builder = qp->builder;
    struct live *live = live_of(ex->qp_base.context);
    INVARIANTS(builder_check(builder));
    int reason = strict ? judge_handles(qp) : builder->reason;
    if (reason == 0 && builder->count > 0) {
        live_lock(live);
        post_note_time(live, qp->core);
        reason = post_all(qp, builder, strict);
        live_posted(live, qp->core);
        live_unlock(live);
    }
    pthread_mutex_unlock(&builder->mutex);
    return reason;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    return complete(ex, false);
}

static int wr_complete_strictly(struct ibv_qp_ex *ex)
{
    return strict_if_full(complete(ex, true), STRICT_SEND_SLOTS);
}

/* Programs of an EFA device have other names for queue pairs. */
static int wr_complete_efa(struct ibv_qp_ex *ex)
{
    struct builder *builder = ex_of(ex)->builder;
    for (uint32_t i = 0; i < builder->count; i++) {
        struct send_request *request = &builder->drafts[i].request;
        int reason = efa_judge_send(&ex->qp_base, request->flags);
        if (work_kind_in(~work_kinds(WORK_IS_SEND), request->kind) && request->sge_count > 1) {
            reason = EINVAL; /* RDMA has one SGE. */
        }
        if (reason != 0) {
            spoil(builder, reason);
        }
        request->destination_qpn = efa_number_of(request->destination_qpn);
    }
    const uint32_t count = builder->reason == 0 ? builder->count : 0;
    if (!efa_take_slots(ex_of(ex), count)) {
        spoil(builder, ENOMEM);
        return complete(ex, false);
    }
    const int reason = complete(ex, false);
    if (reason != 0) {
        efa_give_slots(ex_of(ex), count);
    }
    return reason;
}

/* Once it is complete, another thread may build. */
static int wr_complete_checked(struct ibv_qp_ex *ex)
{
    struct verbs_qp *qp = ex_of(ex);
    struct builder *builder = qp->builder;
    const uint32_t count = builder->reason == 0 ? builder->count : 0;
    settle_all(builder);
    const struct send_request first = builder->requests[0];
    checking_before_sends(qp, builder->requests, count, __builtin_return_address(0),
                          __builtin_frame_address(0));
    const int reason =
        live_is_strict(live_of(ex->qp_base.context)) ? wr_complete_strictly(ex) : wr_complete(ex);
    checking_after_sends(qp, &first, count, reason);
    return reason;
}

void qp_ex_in_child(struct verbs_qp *qp)
{
    if (qp->extended && qp->builder != NULL) {
        pthread_mutex_init(&qp->builder->mutex, NULL);
    }
}

/* -- Making and freeing -------------------------------------------------------------------------*/

#define OFFER(kinds, name, number, verbs, completion, traits)                                      \
    | (work_kind_in(kinds, number) ? (uint64_t)IBV_QP_EX_WITH_##verbs : 0)

static uint64_t offered_by(enum ibv_qp_type type)
{
    const uint32_t kinds = qp_kinds((enum qp_type)type);
    return 0 WORK_KINDS(OFFER, kinds);
}

static void fill_operations(struct ibv_qp_ex *ex)
{
    const bool strict = live_is_strict(live_of(ex->qp_base.context));
    ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
    ex->wr_bind_mw = wr_bind_mw;
    ex->wr_local_inv = wr_local_inv;
    ex->wr_rdma_read = wr_rdma_read;
    ex->wr_rdma_write = wr_rdma_write;
    ex->wr_rdma_write_imm = wr_rdma_write_imm;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_send_inv = wr_send_inv;
    ex->wr_send_tso = wr_send_tso;
    ex->wr_set_ud_addr = wr_set_ud_addr;
    ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_start = wr_start;
    ex->wr_complete = is_efa()       ? wr_complete_efa
                      : is_checked() ? wr_complete_checked
                      : strict       ? wr_complete_strictly
                                     : wr_complete;
    ex->wr_abort = wr_abort;
    ex->wr_atomic_write = wr_atomic_write;
    CONTAINER_OF(ex, struct qp_ex_45, ex)->wr_flush = wr_flush;
}

int qp_ex_init(struct verbs_qp *qp, uint64_t send_ops, uint32_t sends)
{
    if (send_ops & ~offered_by(qp->ex.qp_base.qp_type)) {
        return EOPNOTSUPP;
    }
    struct builder *builder = calloc(1, sizeof(*builder));
    if (builder == NULL) {
        return ENOMEM;
    }
    builder->offered = send_ops;
    builder->max = sends;
    const struct qp_capacity capacity = qp_capacity_of(qp->core);
    INVARIANTS(CHECK(sends == capacity.sends));
    builder->sges_each = capacity.send_sges;
    builder->bytes_each = capacity.inline_bytes;
    builder->drafts = calloc(sends, sizeof(*builder->drafts));
    builder->sges = calloc((size_t)sends * builder->sges_each + 1, sizeof(*builder->sges));
    builder->bytes = calloc((size_t)sends * builder->bytes_each + 1, 1);
    builder->requests = calloc(sends, sizeof(*builder->requests));
    builder->inlined = calloc(sends, sizeof(*builder->inlined));
    pthread_mutex_init(&builder->mutex, NULL);
    qp->builder = builder;
    if (builder->drafts == NULL || builder->sges == NULL || builder->bytes == NULL ||
        builder->requests == NULL || builder->inlined == NULL) {
        return ENOMEM; /* The caller destroys the queue pair, with the parts that were made. */
    }
    INVARIANTS(builder_check(builder));
    fill_operations(&qp->ex);
    return 0;
}

bool qp_ex_flushes(const struct verbs_qp *qp)
{
    return qp->extended && (qp->builder->offered & IBV_QP_EX_WITH_FLUSH) != 0;
}

void qp_ex_free(struct verbs_qp *qp)
{
    struct builder *builder = qp->builder;
    if (builder == NULL) {
        return;
    }
    pthread_mutex_destroy(&builder->mutex);
    free(builder->drafts);
    free(builder->sges);
    free(builder->bytes);
    free(builder->requests);
    free(builder->inlined);
    free(builder);
}
