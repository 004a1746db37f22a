/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_direct - EFA's direct calls (efadv_*), which libefa.so.1 has the names of. Each has its own
 * way to fail: a positive errno, a negative one, or NULL with errno.
 *
 * A program says how long its structures are: no field behind that is read or written, and what is
 * behind ours has to be 0, since it asks for what is not known here.
 *
 * Hardware's queues (query_cq, query_qp_wqs) are offered with --map-queues, completion counters
 * not.
 */
#include <string.h>

#include "verbs/efa_mapped.h"

/* Does a structure of `inlen` bytes have the field? */
#define HAS(type, field, inlen)                                                                    \
    ((inlen) >= offsetof(struct type, field) + sizeof(((struct type *)NULL)->field))

#define CAPS_SRD                                                                                   \
    ((uint32_t)(EFA_CAPS_RDMA_READ | EFA_CAPS_RDMA_WRITE | EFA_CAPS_UNSOLICITED_WRITE_RECV |       \
                EFA_CAPS_RNR_RETRY))

/* Bytes of an entry of the send queue, plain and with more inline data; the queue has room for as
 * many plain ones as the device has sends. */
#define ENTRY_BYTES      64
#define ENTRY_WIDE_BYTES 128

static bool is_ours(const struct ibv_context *context)
{
    return is_efa() && device_is_ours(context);
}

/* The structure as far as it is known here; what the program's lacks is 0. False: it asks for
 * more. */
static bool copy_known(void *known, size_t known_bytes, const void *from, uint32_t inlen)
{
    const uint8_t *bytes = from;
    for (size_t i = known_bytes; i < inlen; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    memset(known, 0, known_bytes);
    memcpy(known, from, inlen < known_bytes ? inlen : known_bytes);
    return true;
}

/* The program's structure gets what is known, as far as it goes, and 0 behind it. */
static void give(void *to, uint32_t inlen, const void *known, size_t known_bytes)
{
    memset(to, 0, inlen);
    memcpy(to, known, inlen < known_bytes ? inlen : known_bytes);
    initialised(to, inlen);
}

/* -- Queries ------------------------------------------------------------------------------------*/

/* RDMA is told of where there is room for its longest request. */
static uint32_t caps_of(uint32_t inlen)
{
    uint32_t caps = EFA_CAPS_CQ_WITH_SGID | CAPS_SRD;
    if (!HAS(efa_device_attr, max_rdma_size, inlen)) {
        caps &= ~(uint32_t)(EFA_CAPS_RDMA_READ | EFA_CAPS_RDMA_WRITE);
    }
    return HAS(efa_device_attr, device_caps, inlen) ? caps : 0;
}

static int query_device(struct ibv_context *context, struct efadv_device_attr *attr, uint32_t inlen)
{
    if (!is_ours(context)) {
        return EOPNOTSUPP;
    }
    if (!HAS(efa_device_attr, inline_buf_size, inlen)) {
        return EINVAL;
    }
    const struct nic_limits *limits = limits_of(context);
    const struct efa_device_attr known = {
        .max_sq_wr = limits->sends_per_qp,
        .max_rq_wr = limits->receives_per_qp,
        .max_sq_sge = (uint16_t)limits->sges,
        .max_rq_sge = (uint16_t)limits->sges,
        .inline_buf_size = (uint16_t)limits->inline_bytes,
        .inline_buf_size_ex = (uint16_t)limits->inline_bytes,
        .device_caps = caps_of(inlen),
        .max_rdma_size = SRD_RDMA_BYTES_MAX,
    };
    give(attr, inlen, &known, sizeof(known));
    return 0;
}

static int query_ah(struct ibv_ah *ah, struct efadv_ah_attr *attr, uint32_t inlen)
{
    if (!is_ours(ah->context)) {
        return EOPNOTSUPP;
    }
    if (!HAS(efa_ah_attr, ahn, inlen)) {
        return EINVAL;
    }
    const struct efa_ah_attr known = {.ahn = ah_of(ah)->host};
    give(attr, inlen, &known, sizeof(known));
    return 0;
}

/* There is one way into memory, which has no number. */
static int query_mr(struct ibv_mr *mr, struct efadv_mr_attr *attr, uint32_t inlen)
{
    if (!is_ours(mr->context)) {
        return EOPNOTSUPP;
    }
    if (!HAS(efa_mr_attr, rdma_recv_ic_id, inlen)) {
        return EINVAL;
    }
    memset(attr, 0, inlen);
    initialised(attr, inlen);
    return 0;
}

static int get_max_sq_depth(struct ibv_context *context, struct efadv_sq_depth_attr *programs,
                            uint32_t inlen)
{
    struct efa_sq_depth_attr attr;
    if (!is_ours(context)) {
        return -EOPNOTSUPP;
    }
    const struct nic_limits *limits = limits_of(context);
    if (!HAS(efa_sq_depth_attr, max_inline_data, inlen)) {
        return -EINVAL;
    }
    memcpy(&attr, programs, sizeof(attr));
    if (attr.comp_mask != 0 || attr.max_send_sge > limits->sges || attr.max_rdma_sge > 1 ||
        attr.max_inline_data > limits->inline_bytes) {
        return -EINVAL;
    }
    const uint32_t wide = attr.flags & EFA_SQ_INLINE_WRITE;
    return (int)(limits->sends_per_qp / (wide != 0 ? ENTRY_WIDE_BYTES / ENTRY_BYTES : 1));
}

static int get_max_rq_depth(struct ibv_context *context, struct efadv_rq_depth_attr *programs,
                            uint32_t inlen)
{
    struct efa_rq_depth_attr attr = {0};
    if (!is_ours(context)) {
        return -EOPNOTSUPP;
    }
    if (!HAS(efa_rq_depth_attr, max_recv_sge, inlen)) {
        return -EINVAL;
    }
    memcpy(&attr, programs, offsetof(struct efa_rq_depth_attr, max_recv_sge) + sizeof(uint32_t));
    if (attr.comp_mask != 0 || attr.max_recv_sge > limits_of(context)->sges) {
        return -EINVAL;
    }
    return (int)efa_receives_max(limits_of(context), attr.max_recv_sge);
}

/* -- Completion queues --------------------------------------------------------------------------*/

static struct ibv_cq_ex *create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
                                   struct efadv_cq_init_attr *programs, uint32_t inlen)
{
    struct efa_cq_init_attr efa;
    if (!is_ours(context)) {
        return fail(EOPNOTSUPP);
    }
    if (!HAS(efa_cq_init_attr, wc_flags, inlen) ||
        !copy_known(&efa, sizeof(efa), programs, inlen) || efa.comp_mask != 0) {
        return fail(EINVAL);
    }
    if ((efa.wc_flags & ~(uint64_t)(EFA_WC_WITH_SGID | EFA_WC_WITH_IS_UNSOLICITED)) != 0 ||
        efa.flags != 0) {
        return fail(EOPNOTSUPP);
    }
    struct ibv_cq_ex *cq = cq_create_ex(context, attr);
    if (cq != NULL) {
        efa_offer(cq, efa.wc_flags);
    }
    return cq;
}

static struct efadv_cq *cq_from_ibv_cq_ex(struct ibv_cq_ex *cq)
{
    return is_ours(cq->context) ? (void *)&CONTAINER_OF(cq, struct verbs_cq, ex)->direct
                                : fail(EOPNOTSUPP);
}

static bool maps_queues(const struct ibv_context *context)
{
    return is_ours(context) &&
           live_maps_queues(CONTAINER_OF_CONST(context, struct context, verbs.context)->live);
}

static int query_cq(struct ibv_cq *cq, struct efadv_cq_attr *attr, uint32_t inlen)
{
    struct efa_cq_attr known;
    if (!maps_queues(cq->context)) {
        return EOPNOTSUPP;
    }
    if (!HAS(efa_cq_attr, num_entries, inlen)) {
        return EINVAL;
    }
    const int reason = efa_map_cq(cq_of(cq), &known);
    if (reason == 0) {
        give(attr, inlen, &known, sizeof(known));
    }
    return reason;
}

/* -- Queue pairs --------------------------------------------------------------------------------*/

static struct ibv_qp *create_driver_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
                                       uint32_t type)
{
    const struct efa_qp_init_attr efa = {.driver_qp_type = type};
    if (!is_ours(pd->context)) {
        return fail(EOPNOTSUPP);
    }
    return attr->qp_type != IBV_QPT_DRIVER ? fail(EINVAL) : qp_create_plain(pd, attr, &efa);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                   struct efadv_qp_init_attr *programs, uint32_t inlen)
{
    struct efa_qp_init_attr efa;
    if (!is_ours(context)) {
        return fail(EOPNOTSUPP);
    }
    if (attr->qp_type != IBV_QPT_DRIVER || !HAS(efa_qp_init_attr, driver_qp_type, inlen) ||
        !copy_known(&efa, sizeof(efa), programs, inlen) || efa.comp_mask != 0 ||
        efa.reserved != 0) {
        return fail(EINVAL);
    }
    return qp_create_direct(context, attr, &efa);
}

/* A hint may be taken or not. */
static void ignore_hints(struct efadv_qp *qp, uint32_t hints)
{
    (void)qp;
    (void)hints;
}

static struct efadv_qp *qp_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
    static struct efa_qp direct = {.wr_set_processing_hints = ignore_hints};
    if (qp == NULL) {
        return fail(EINVAL); /* rdma-core's tests ask of queue pairs without ibv_wr_*. */
    }
    return is_ours(qp->qp_base.context) ? (void *)&direct : fail(EOPNOTSUPP);
}

static int query_qp_wqs(struct ibv_qp *qp, struct efadv_wq_attr *sq, struct efadv_wq_attr *rq,
                        uint32_t inlen)
{
    struct efa_wq_attr sends, receives;
    if (!maps_queues(qp->context)) {
        return EOPNOTSUPP;
    }
    if (!HAS(efa_wq_attr, max_batch, inlen)) {
        return EINVAL;
    }
    const int reason = efa_map_qp(qp_of(qp), &sends, &receives);
    if (reason == 0) {
        give(sq, inlen, &sends, sizeof(sends));
        give(rq, inlen, &receives, sizeof(receives));
    }
    return reason;
}

static struct ibv_comp_cntr *create_comp_cntr(struct ibv_context *context,
                                              struct ibv_comp_cntr_init_attr *attr,
                                              struct efadv_comp_cntr_init_attr *efa_attr,
                                              uint32_t inlen)
{
    (void)context;
    (void)attr;
    (void)efa_attr;
    (void)inlen;
    return fail(EOPNOTSUPP);
}

#define CALL(result, name, parameters, arguments) .name = name,
/* clang-format off */
EXPORT const struct efa_calls nonic_efa = {
    EFA_CALLS(CALL)
};
/* clang-format on */
