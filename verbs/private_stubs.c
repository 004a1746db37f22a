/* SPDX-License-Identifier: BSD-2-Clause
 *
 * private_stubs - names of rdma-core's private node that provider libraries import.
 *
 * Programs such as perftest link libmlx5 and libefa, which register themselves with whatever
 * libibverbs is there and would drive hardware through it. They find no device of theirs here, so
 * registering is accepted, and everything else answers that it is not supported.
 */
#include <stdarg.h>

#include "verbs/internal.h"

/* These have no public prototypes; arguments are not looked at, so none are declared. */
#define STUB(name)                                                                                 \
    EXPORT int name(void);                                                                         \
    EXPORT int name(void)                                                                          \
    {                                                                                              \
        return EOPNOTSUPP;                                                                         \
    }
#define STUB_POINTER(name)                                                                         \
    EXPORT void *name(void);                                                                       \
    EXPORT void *name(void)                                                                        \
    {                                                                                              \
        return fail(EOPNOTSUPP);                                                                   \
    }
#define STUB_NOTHING(name)                                                                         \
    EXPORT void name(void);                                                                        \
    EXPORT void name(void)                                                                         \
    {                                                                                              \
    }

/* Called by constructors of provider libraries. */
STUB_NOTHING(verbs_register_driver_34)
/* libefa logs that a device is none of its own. */
STUB_NOTHING(__verbs_log)
STUB_NOTHING(verbs_set_ops)
STUB_NOTHING(verbs_uninit_context)
STUB_NOTHING(verbs_init_cq)
STUB_POINTER(verbs_open_device)
STUB_POINTER(_verbs_init_and_alloc_context)

/* A variable in rdma-core; false, as it is there until a kernel says otherwise. */
EXPORT extern bool verbs_allow_disassociate_destroy;
EXPORT bool verbs_allow_disassociate_destroy;

STUB(__ioctl_final_num_attrs)
STUB(execute_ioctl)
STUB(ibv_cmd_advise_mr)
STUB(ibv_cmd_alloc_dm)
STUB(ibv_cmd_alloc_mw)
STUB(ibv_cmd_alloc_pd)
STUB(ibv_cmd_attach_mcast)
STUB(ibv_cmd_close_xrcd)
STUB(ibv_cmd_create_ah)
STUB(ibv_cmd_create_counters)
STUB(ibv_cmd_create_cq)
STUB(ibv_cmd_create_cq_ex)
STUB(ibv_cmd_create_flow)
STUB(ibv_cmd_create_flow_action_esp)
STUB(ibv_cmd_create_qp)
STUB(ibv_cmd_create_qp_ex)
STUB(ibv_cmd_create_qp_ex2)
STUB(ibv_cmd_create_rwq_ind_table)
STUB(ibv_cmd_create_srq)
STUB(ibv_cmd_create_srq_ex)
STUB(ibv_cmd_create_wq)
STUB(ibv_cmd_dealloc_mw)
STUB(ibv_cmd_dealloc_pd)
STUB(ibv_cmd_dereg_mr)
STUB(ibv_cmd_destroy_ah)
STUB(ibv_cmd_destroy_counters)
STUB(ibv_cmd_destroy_cq)
STUB(ibv_cmd_destroy_flow)
STUB(ibv_cmd_destroy_flow_action)
STUB(ibv_cmd_destroy_qp)
STUB(ibv_cmd_destroy_rwq_ind_table)
STUB(ibv_cmd_destroy_srq)
STUB(ibv_cmd_destroy_wq)
STUB(ibv_cmd_detach_mcast)
STUB(ibv_cmd_free_dm)
STUB(ibv_cmd_get_context)
STUB(ibv_cmd_modify_cq)
STUB(ibv_cmd_modify_flow_action_esp)
STUB(ibv_cmd_modify_qp)
STUB(ibv_cmd_modify_qp_ex)
STUB(ibv_cmd_modify_srq)
STUB(ibv_cmd_modify_wq)
STUB(ibv_cmd_open_qp)
STUB(ibv_cmd_open_xrcd)
STUB(ibv_cmd_poll_cq)
STUB(ibv_cmd_post_recv)
STUB(ibv_cmd_post_send)
STUB(ibv_cmd_post_srq_recv)
STUB(ibv_cmd_query_context)
STUB(ibv_cmd_query_device_any)
STUB(ibv_cmd_query_mr)
STUB(ibv_cmd_query_port)
STUB(ibv_cmd_query_qp)
STUB(ibv_cmd_query_srq)
STUB(ibv_cmd_read_counters)
STUB(ibv_cmd_reg_dm_mr)
STUB(ibv_cmd_reg_dmabuf_mr)
STUB(ibv_cmd_reg_mr)
STUB(ibv_cmd_req_notify_cq)
STUB(ibv_cmd_rereg_mr)
STUB(ibv_cmd_resize_cq)
STUB(ibv_read_ibdev_sysfs_file)
