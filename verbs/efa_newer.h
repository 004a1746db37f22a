/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_newer - the structures of efadv.h as rdma-core 65 has them, and its functions.
 * docs/decisions/0030.
 *
 * The header that this is compiled with may be of version 44 or newer, or not be there at all. So
 * each structure has a name of our own here; programs of older versions hand in shorter ones, and
 * say how long (`inlen`).
 */
#ifndef VERBS_EFA_NEWER_H
#define VERBS_EFA_NEWER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* -- Structures ---------------------------------------------------------------------------------*/

struct efa_device_attr {
    uint64_t comp_mask;
    uint32_t max_sq_wr, max_rq_wr;
    uint16_t max_sq_sge, max_rq_sge;
    uint16_t inline_buf_size;
    uint16_t inline_buf_size_ex; /* Since 49: with send queue entries of 128 bytes. */
    uint32_t device_caps;        /* EFA_CAPS_... */
    uint32_t max_rdma_size;
};

enum {
    EFA_CAPS_RDMA_READ = 1 << 0,
    EFA_CAPS_RNR_RETRY = 1 << 1,
    EFA_CAPS_CQ_WITH_SGID = 1 << 2,
    EFA_CAPS_RDMA_WRITE = 1 << 3,
    EFA_CAPS_UNSOLICITED_WRITE_RECV = 1 << 4,
};

struct efa_ah_attr {
    uint64_t comp_mask;
    uint16_t ahn;
    uint8_t reserved[6];
};

/* A queue pair of a driver's own kind. */
enum {
    EFA_QP_TYPE_SRD = 0,
};

struct efa_qp_init_attr {
    uint64_t comp_mask;
    uint32_t driver_qp_type;
    uint16_t flags;
    uint8_t sl;
    uint8_t reserved;
    uint64_t wr_flags; /* EFA_WR_WITH_HINTS */
};

enum {
    EFA_QP_UNSOLICITED_WRITE_RECV = 1 << 0,
    EFA_QP_INLINE_WRITE = 1 << 1,
};

enum {
    EFA_WR_WITH_HINTS = 1 << 0,
};

struct efa_cq_init_attr {
    uint64_t comp_mask;
    uint64_t wc_flags; /* EFA_WC_WITH_... */
    uint64_t flags;
    struct {
        uint8_t *buffer;
        uint64_t length;
        uint64_t offset;
        int32_t fd;
        uint8_t reserved[4];
    } ext_mem_dmabuf;
};

enum {
    EFA_WC_WITH_SGID = 1 << 0,
    EFA_WC_WITH_IS_UNSOLICITED = 1 << 1,
};

struct efa_sq_depth_attr {
    uint64_t comp_mask;
    uint32_t flags; /* EFA_SQ_INLINE_WRITE */
    uint32_t max_send_sge;
    uint32_t max_rdma_sge;
    uint32_t max_inline_data;
};

enum {
    EFA_SQ_INLINE_WRITE = 1 << 0,
};

struct efa_rq_depth_attr {
    uint64_t comp_mask;
    uint32_t max_recv_sge;
};

/* The numbers of a region's interconnects: which are there, and each. */
struct efa_mr_attr {
    uint64_t comp_mask;
    uint16_t ic_id_validity;
    uint16_t recv_ic_id, rdma_read_ic_id, rdma_recv_ic_id;
};

/* Where mapped queues are (efa_mapped.h). */
struct efa_wq_attr {
    uint64_t comp_mask;
    uint8_t *buffer;
    uint32_t entry_size, num_entries;
    uint32_t *doorbell;
    uint32_t max_batch; /* Entries that one ring of the doorbell may announce. */
    uint16_t caps;
    uint8_t reserved[2];
};

struct efa_cq_attr {
    uint64_t comp_mask;
    uint8_t *buffer;
    uint32_t entry_size, num_entries;
    uint32_t *doorbell; /* NULL: nothing is told of entries that were read. */
};

/* Programs call through the pointers, which are there if they asked for them: struct efadv_cq, and
 * struct efadv_qp. */
struct efadv_cq;
struct efa_cq {
    uint64_t comp_mask;
    int (*wc_read_sgid)(struct efadv_cq *cq, union ibv_gid *gid);
    bool (*wc_is_unsolicited)(struct efadv_cq *cq);
};

struct efadv_qp;
struct efa_qp {
    uint64_t comp_mask;
    void (*wr_set_processing_hints)(struct efadv_qp *qp, uint32_t hints);
};

/* -- Functions ----------------------------------------------------------------------------------*/

struct efadv_device_attr;
struct efadv_ah_attr;
struct efadv_qp_init_attr;
struct efadv_cq_init_attr;
struct efadv_cq_attr;
struct efadv_wq_attr;
struct efadv_sq_depth_attr;
struct efadv_rq_depth_attr;
struct efadv_mr_attr;
struct efadv_comp_cntr_init_attr;
struct ibv_comp_cntr;
struct ibv_comp_cntr_init_attr;

/* X(the result, the name behind "efadv_", the parameters, the arguments). */
#define EFA_CALLS(X)                                                                               \
    X(struct ibv_qp *, create_driver_qp,                                                           \
      (struct ibv_pd * pd, struct ibv_qp_init_attr * attr, uint32_t type), (pd, attr, type))       \
    X(struct ibv_qp *, create_qp_ex,                                                               \
      (struct ibv_context * context, struct ibv_qp_init_attr_ex * attr,                            \
       struct efadv_qp_init_attr * efa_attr, uint32_t inlen),                                      \
      (context, attr, efa_attr, inlen))                                                            \
    X(int, query_ah, (struct ibv_ah * ah, struct efadv_ah_attr * attr, uint32_t inlen),            \
      (ah, attr, inlen))                                                                           \
    X(int, query_device,                                                                           \
      (struct ibv_context * context, struct efadv_device_attr * attr, uint32_t inlen),             \
      (context, attr, inlen))                                                                      \
    X(struct efadv_cq *, cq_from_ibv_cq_ex, (struct ibv_cq_ex * cq), (cq))                         \
    X(struct ibv_cq_ex *, create_cq,                                                               \
      (struct ibv_context * context, struct ibv_cq_init_attr_ex * attr,                            \
       struct efadv_cq_init_attr * efa_attr, uint32_t inlen),                                      \
      (context, attr, efa_attr, inlen))                                                            \
    X(int, query_mr, (struct ibv_mr * mr, struct efadv_mr_attr * attr, uint32_t inlen),            \
      (mr, attr, inlen))                                                                           \
    X(int, query_qp_wqs,                                                                           \
      (struct ibv_qp * qp, struct efadv_wq_attr * sq, struct efadv_wq_attr * rq, uint32_t inlen),  \
      (qp, sq, rq, inlen))                                                                         \
    X(int, query_cq, (struct ibv_cq * cq, struct efadv_cq_attr * attr, uint32_t inlen),            \
      (cq, attr, inlen))                                                                           \
    X(int, get_max_sq_depth,                                                                       \
      (struct ibv_context * context, struct efadv_sq_depth_attr * attr, uint32_t inlen),           \
      (context, attr, inlen))                                                                      \
    X(int, get_max_rq_depth,                                                                       \
      (struct ibv_context * context, struct efadv_rq_depth_attr * attr, uint32_t inlen),           \
      (context, attr, inlen))                                                                      \
    X(struct efadv_qp *, qp_from_ibv_qp_ex, (struct ibv_qp_ex * qp), (qp))                         \
    X(struct ibv_comp_cntr *, create_comp_cntr,                                                    \
      (struct ibv_context * context, struct ibv_comp_cntr_init_attr * attr,                        \
       struct efadv_comp_cntr_init_attr * efa_attr, uint32_t inlen),                               \
      (context, attr, efa_attr, inlen))

#define EFA_DECLARE(result, name, parameters, arguments) result efadv_##name parameters;
#define EFA_POINTER(result, name, parameters, arguments) result(*name) parameters;

/* clang-format off */
EFA_CALLS(EFA_DECLARE)

/* libefa.so.1 has the names, and libibverbs.so.1 the functions, which know its objects. */
struct efa_calls {
    EFA_CALLS(EFA_POINTER)
};
/* clang-format on */

extern const struct efa_calls nonic_efa;

#endif
