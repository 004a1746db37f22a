/* SPDX-License-Identifier: BSD-2-Clause
 *
 * not_offered - calls of newer versions of verbs for objects that this device does not have.
 *
 * A DMA handle says to which processor's cache PCI Express shall bring data: there is no such bus.
 * A dma-buf is memory of other devices. A completion counter counts completions that a completion
 * queue reports one by one, which is no faster here.
 * The calls that make such an object fail, so the calls that take one never get one of ours.
 */
#include "verbs/internal.h"
#include "verbs/newer.h"

#define REFUSE(name, ...)                                                                          \
    EXPORT int name(__VA_ARGS__)                                                                   \
    {                                                                                              \
        return EOPNOTSUPP;                                                                         \
    }
#define REFUSE_POINTER(type, name, ...)                                                            \
    EXPORT type *name(__VA_ARGS__)                                                                 \
    {                                                                                              \
        return fail(EOPNOTSUPP);                                                                   \
    }
#define U __attribute__((unused))

REFUSE_POINTER(struct ibv_dmah, ibv_alloc_dmah, U struct ibv_context *context,
               U struct ibv_dmah_init_attr *attr)
REFUSE(ibv_dealloc_dmah, U struct ibv_dmah *handle)

EXPORT int ibv_dm_export_dmabuf_fd(U struct ibv_dm *dm)
{
    errno = EOPNOTSUPP;
    return -1;
}

REFUSE(_ibv_query_comp_cntr_caps, U struct ibv_context *context, U struct ibv_comp_cntr_caps *caps,
       U size_t caps_bytes)
REFUSE_POINTER(struct ibv_comp_cntr, ibv_create_comp_cntr, U struct ibv_context *context,
               U struct ibv_comp_cntr_init_attr *attr)
REFUSE(ibv_destroy_comp_cntr, U struct ibv_comp_cntr *counter)
REFUSE(ibv_set_comp_cntr, U struct ibv_comp_cntr *counter, U uint64_t value)
REFUSE(ibv_set_err_comp_cntr, U struct ibv_comp_cntr *counter, U uint64_t value)
REFUSE(ibv_inc_comp_cntr, U struct ibv_comp_cntr *counter, U uint64_t amount)
REFUSE(ibv_inc_err_comp_cntr, U struct ibv_comp_cntr *counter, U uint64_t amount)
REFUSE(ibv_read_comp_cntr, U struct ibv_comp_cntr *counter, U uint64_t *value)
REFUSE(ibv_read_err_comp_cntr, U struct ibv_comp_cntr *counter, U uint64_t *value)
REFUSE(ibv_qp_attach_comp_cntr, U struct ibv_qp *qp, U struct ibv_comp_cntr *counter,
       U struct ibv_qp_attach_comp_cntr_attr *attr)
