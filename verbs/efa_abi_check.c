/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_abi_check - the layouts that programs of EFA's direct calls were compiled with: as rdma-core
 * 65 has them, and beside the header that this is compiled with.
 */
#include <infiniband/efadv.h>

#include "base/check.h"
#include "verbs/efa_newer.h"

#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define OFFSET(type, field, bytes)                                                                 \
    _Static_assert(offsetof(struct type, field) == (bytes), #type "." #field)
#define SAME(ours, theirs, field)                                                                  \
    _Static_assert(offsetof(struct ours, field) == offsetof(struct theirs, field) &&               \
                       sizeof(((struct ours *)NULL)->field) ==                                     \
                           sizeof(((struct theirs *)NULL)->field),                                 \
                   #theirs "." #field)
#define NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

SIZE(efa_device_attr, 32);
OFFSET(efa_device_attr, inline_buf_size_ex, 22);
SAME(efa_device_attr, efadv_device_attr, comp_mask);
SAME(efa_device_attr, efadv_device_attr, max_sq_wr);
SAME(efa_device_attr, efadv_device_attr, max_rq_wr);
SAME(efa_device_attr, efadv_device_attr, max_sq_sge);
SAME(efa_device_attr, efadv_device_attr, max_rq_sge);
SAME(efa_device_attr, efadv_device_attr, inline_buf_size);
SAME(efa_device_attr, efadv_device_attr, device_caps);
SAME(efa_device_attr, efadv_device_attr, max_rdma_size);
SIZE(efa_ah_attr, 16);
SAME(efa_ah_attr, efadv_ah_attr, ahn);
SIZE(efa_qp_init_attr, 24);
SAME(efa_qp_init_attr, efadv_qp_init_attr, driver_qp_type);
OFFSET(efa_qp_init_attr, flags, 12);
OFFSET(efa_qp_init_attr, sl, 14);
OFFSET(efa_qp_init_attr, wr_flags, 16);
SIZE(efa_cq_init_attr, 56);
SAME(efa_cq_init_attr, efadv_cq_init_attr, wc_flags);
OFFSET(efa_cq_init_attr, flags, 16);
SIZE(efa_cq, 24);
SAME(efa_cq, efadv_cq, wc_read_sgid);
OFFSET(efa_cq, wc_is_unsolicited, 16);
SIZE(efa_qp, 16);
OFFSET(efa_qp, wr_set_processing_hints, 8);
SIZE(efa_sq_depth_attr, 24);
OFFSET(efa_rq_depth_attr, max_recv_sge, 8);
SIZE(efa_mr_attr, 16);
OFFSET(efa_mr_attr, rdma_recv_ic_id, 14);

NUMBER(EFA_CAPS_RDMA_READ, EFADV_DEVICE_ATTR_CAPS_RDMA_READ);
NUMBER(EFA_CAPS_RNR_RETRY, EFADV_DEVICE_ATTR_CAPS_RNR_RETRY);
NUMBER(EFA_CAPS_CQ_WITH_SGID, EFADV_DEVICE_ATTR_CAPS_CQ_WITH_SGID);
NUMBER(EFA_QP_TYPE_SRD, EFADV_QP_DRIVER_TYPE_SRD);
NUMBER(EFA_WC_WITH_SGID, EFADV_WC_EX_WITH_SGID);
