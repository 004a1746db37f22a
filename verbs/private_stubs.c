/* SPDX-License-Identifier: BSD-2-Clause
 *
 * private_stubs - names of rdma-core's private nodes, which provider libraries import.
 *
 * Programs such as perftest link libmlx5 and libefa, which register themselves with whatever
 * libibverbs is there and would drive hardware through it. They find no device of theirs here, so
 * registering is accepted, and everything else answers that it is not supported.
 *
 * rdma-core gives all of these names a new node whenever one of them changes its meaning. A
 * provider looks them up in the node of its own version, so each name is in each node that ever had
 * it. The meaning is of no interest here: an answer serves any number of names, in all nodes.
 *
 * The compiler shall not optimize this file together with others (meson.build): it would not see
 * which symbols the assembler's directives name.
 */
#include "verbs/internal.h"

/* -- Names and nodes ----------------------------------------------------------------------------*/

#define NAMED(answer, name, node) __asm__(".symver stub_" #answer ", " #name node);
#define IN_65(answer, name)       NAMED(answer, name, "@@IBVERBS_PRIVATE_65")
#define IN_64(answer, name)       NAMED(answer, name, "@IBVERBS_PRIVATE_64")
#define IN_59(answer, name)       NAMED(answer, name, "@IBVERBS_PRIVATE_59")
#define IN_57(answer, name)       NAMED(answer, name, "@IBVERBS_PRIVATE_57")
#define IN_34(answer, name)       NAMED(answer, name, "@IBVERBS_PRIVATE_34")
#define IN_33(answer, name)       NAMED(answer, name, "@IBVERBS_PRIVATE_33")
#define IN_25(answer, name)       NAMED(answer, name, "@IBVERBS_PRIVATE_25")

/* The node of rdma-core 25 to 32; of 33; of 34 to 56; of 57 and 58; of 59 to 63; of 64; of 65. */
#define SINCE_65(answer, name) IN_65(answer, name)
#define SINCE_64(answer, name) IN_64(answer, name) SINCE_65(answer, name)
#define SINCE_59(answer, name) IN_59(answer, name) SINCE_64(answer, name)
#define SINCE_34(answer, name) IN_34(answer, name) IN_57(answer, name) SINCE_59(answer, name)
#define SINCE_33(answer, name) IN_33(answer, name) SINCE_34(answer, name)
#define SINCE_25(answer, name) IN_25(answer, name) SINCE_33(answer, name)

/* Called by constructors of provider libraries. */
IN_25(nothing, verbs_register_driver_25)
IN_33(nothing, verbs_register_driver_33)
IN_34(nothing, verbs_register_driver_34)
IN_57(nothing, verbs_register_driver_57)
IN_59(nothing, verbs_register_driver_59)
IN_64(nothing, verbs_register_driver_64)
IN_65(nothing, verbs_register_driver_65)

/* Programs call these two. */
SINCE_25(gid_type, ibv_query_gid_type)
SINCE_34(opcode_text, ibv_wr_opcode_str)

/* libefa logs that a device is none of its own. */
SINCE_34(nothing, __verbs_log)

/* Imported, and not called without a device. */
SINCE_25(refuse, __ioctl_final_num_attrs)
SINCE_25(no_pointer, _verbs_init_and_alloc_context)
SINCE_25(refuse, execute_ioctl)
SINCE_25(refuse, ibv_cmd_advise_mr)
SINCE_25(refuse, ibv_cmd_alloc_dm)
SINCE_25(refuse, ibv_cmd_alloc_mw)
SINCE_25(refuse, ibv_cmd_alloc_pd)
SINCE_25(refuse, ibv_cmd_attach_mcast)
SINCE_25(refuse, ibv_cmd_close_xrcd)
SINCE_25(refuse, ibv_cmd_create_ah)
SINCE_25(refuse, ibv_cmd_create_counters)
SINCE_25(refuse, ibv_cmd_create_cq)
SINCE_25(refuse, ibv_cmd_create_cq_ex)
SINCE_34(refuse, ibv_cmd_create_cq_ex2)
SINCE_25(refuse, ibv_cmd_create_flow)
SINCE_25(refuse, ibv_cmd_create_flow_action_esp)
SINCE_25(refuse, ibv_cmd_create_qp)
SINCE_25(refuse, ibv_cmd_create_qp_ex)
SINCE_25(refuse, ibv_cmd_create_qp_ex2)
SINCE_25(refuse, ibv_cmd_create_rwq_ind_table)
SINCE_25(refuse, ibv_cmd_create_srq)
SINCE_25(refuse, ibv_cmd_create_srq_ex)
SINCE_25(refuse, ibv_cmd_create_wq)
SINCE_25(refuse, ibv_cmd_dealloc_mw)
SINCE_25(refuse, ibv_cmd_dealloc_pd)
SINCE_25(refuse, ibv_cmd_dereg_mr)
SINCE_25(refuse, ibv_cmd_destroy_ah)
SINCE_25(refuse, ibv_cmd_destroy_counters)
SINCE_25(refuse, ibv_cmd_destroy_cq)
SINCE_25(refuse, ibv_cmd_destroy_flow)
SINCE_25(refuse, ibv_cmd_destroy_flow_action)
SINCE_25(refuse, ibv_cmd_destroy_qp)
SINCE_25(refuse, ibv_cmd_destroy_rwq_ind_table)
SINCE_25(refuse, ibv_cmd_destroy_srq)
SINCE_25(refuse, ibv_cmd_destroy_wq)
SINCE_25(refuse, ibv_cmd_detach_mcast)
SINCE_25(refuse, ibv_cmd_free_dm)
SINCE_25(refuse, ibv_cmd_get_context)
SINCE_25(refuse, ibv_cmd_modify_cq)
SINCE_25(refuse, ibv_cmd_modify_flow_action_esp)
SINCE_25(refuse, ibv_cmd_modify_qp)
SINCE_25(refuse, ibv_cmd_modify_qp_ex)
SINCE_25(refuse, ibv_cmd_modify_srq)
SINCE_25(refuse, ibv_cmd_modify_wq)
SINCE_25(refuse, ibv_cmd_open_qp)
SINCE_25(refuse, ibv_cmd_open_xrcd)
SINCE_25(refuse, ibv_cmd_poll_cq)
SINCE_25(refuse, ibv_cmd_post_recv)
SINCE_25(refuse, ibv_cmd_post_send)
SINCE_25(refuse, ibv_cmd_post_srq_recv)
SINCE_25(refuse, ibv_cmd_query_context)
IN_33(refuse, ibv_cmd_query_device)
IN_25(refuse, ibv_cmd_query_device)
IN_25(refuse, ibv_cmd_query_device_ex)
IN_25(refuse, ibv_get_fw_ver)
IN_34(refuse, ibv_cmd_query_device)
SINCE_33(refuse, ibv_cmd_query_device_any)
SINCE_25(refuse, ibv_cmd_query_mr)
SINCE_25(refuse, ibv_cmd_query_port)
SINCE_25(refuse, ibv_cmd_query_qp)
SINCE_25(refuse, ibv_cmd_query_srq)
SINCE_25(refuse, ibv_cmd_read_counters)
SINCE_25(refuse, ibv_cmd_reg_dm_mr)
SINCE_34(refuse, ibv_cmd_reg_dmabuf_mr)
SINCE_25(refuse, ibv_cmd_reg_mr)
SINCE_25(refuse, ibv_cmd_req_notify_cq)
SINCE_25(refuse, ibv_cmd_rereg_mr)
SINCE_25(refuse, ibv_cmd_resize_cq)
SINCE_25(refuse, ibv_read_ibdev_sysfs_file)
SINCE_25(no_flag, verbs_allow_disassociate_destroy)
SINCE_25(nothing, verbs_init_cq)
SINCE_25(no_pointer, verbs_open_device)
SINCE_25(nothing, verbs_set_ops)
SINCE_25(nothing, verbs_uninit_context)
SINCE_59(refuse, ibv_cmd_alloc_dmah)
SINCE_59(refuse, ibv_cmd_export_dmabuf_fd)
SINCE_59(refuse, ibv_cmd_free_dmah)
SINCE_59(refuse, ibv_cmd_query_port_speed)
SINCE_59(refuse, ibv_cmd_reg_mr_ex)
SINCE_64(no_pointer, ibv_dmabuf_heap_alloc)
SINCE_64(no_pointer, ibv_dmabuf_heap_cc_shared_init)
SINCE_64(nothing, ibv_dmabuf_heap_destroy)
SINCE_64(nothing, ibv_dmabuf_heap_free)
SINCE_65(refuse, ibv_cmd_create_comp_cntr)
SINCE_65(refuse, ibv_cmd_destroy_comp_cntr)
SINCE_65(refuse, ibv_cmd_inc_comp_cntr)
SINCE_65(refuse, ibv_cmd_inc_err_comp_cntr)
SINCE_65(refuse, ibv_cmd_qp_attach_comp_cntr)
SINCE_65(refuse, ibv_cmd_query_comp_cntr_caps)
SINCE_65(refuse, ibv_cmd_read_comp_cntr)
SINCE_65(refuse, ibv_cmd_read_err_comp_cntr)
SINCE_65(refuse, ibv_cmd_set_comp_cntr)
SINCE_65(refuse, ibv_cmd_set_err_comp_cntr)

/* -- Answers ------------------------------------------------------------------------------------*/

/* Arguments are not looked at, so none are declared. */
EXPORT int stub_refuse(void);
EXPORT void *stub_no_pointer(void);
EXPORT void stub_nothing(void);
EXPORT int stub_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
                         unsigned int *type);
EXPORT const char *stub_opcode_text(enum ibv_wr_opcode opcode);
/* A variable in rdma-core; false, as it is there until a kernel says otherwise. */
EXPORT extern bool stub_no_flag;

EXPORT bool stub_no_flag;

int stub_refuse(void)
{
    return EOPNOTSUPP;
}

void *stub_no_pointer(void)
{
    return fail(EOPNOTSUPP);
}

void stub_nothing(void)
{
}

int stub_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, unsigned int *type)
{
    return gid_query_type(context, port, index, type);
}

const char *stub_opcode_text(enum ibv_wr_opcode opcode)
{
    return opcode_text(opcode);
}
