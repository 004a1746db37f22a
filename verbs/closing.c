/* SPDX-License-Identifier: BSD-2-Clause
 *
 * closing - a device is closed while objects that were made on it are in use.
 *
 * A kernel destroys them: its peers reach nothing of them any more, whatever the program still
 * holds. Here the program's handles have the objects inside, so that they stay, out of everybody's
 * reach, until the program destroys them; and with them the context, which they name.
 */
#include <stdlib.h>

#include "nic/inventory.h"
#include "verbs/internal.h"

/* The file that a context shares with those who imported it is closed with the last of them. */
void unlock_settled(struct live *live)
{
    const bool settled = live_settled(live);
    live_unlock(live);
    if (!settled) {
        (void)!live_settle(live);
    }
}

static bool is_gone(const struct ibv_context *ibv, uint64_t file)
{
    const struct context *context = CONTAINER_OF_CONST(ibv, struct context, verbs.context);
    return context->file == file && atomic_load(&context->closed);
}

/* A target has a handle in each program part that opened it, also by another file, and stays until
 * all of them are closed. */
static bool qp_is_gone(const struct qp *core, uint64_t file)
{
    const struct verbs_qp *qp = qp_context(core);
    if (qp_type_of(core) != QP_XRC_TARGET) {
        return is_gone(qp->ex.qp_base.context, file);
    }
    const struct verbs_qp *handle;
    for (uint32_t i = 0; (handle = xrc_target_handle(qp, i)) != NULL; i++) {
        if (!context_is_over(handle->ex.qp_base.context)) {
            return false;
        }
    }
    return true;
}

/* As after a reset: it takes no packet, completes nothing, and says nothing. */
static void end_qp(struct live *live, struct qp *core)
{
    const struct qp_attributes reset = {.state = QP_RESET};
    const struct gid *group;
    while ((group = nic_group_of(live_nic(live), core)) != NULL) {
        const struct gid own = *group;
        CHECK(live_detach(live, &own, core) == STATUS_OK);
    }
    live_withdraw_qp(live, core);
    const struct nic_av av = *qp_av(core);
    CHECK(qp_modify(core, &reset, QP_ATTR_STATE, live_now(live)) == STATUS_OK);
    CHECK(!nic_is_attached(live_nic(live), core));
    live_release(live, &av);
}

static const struct ibv_context *context_of_region(const struct region *region)
{
    return region->kind == REGION_MEMORY
               ? CONTAINER_OF_CONST(region, struct verbs_mr, core)->ibv.context
               : CONTAINER_OF_CONST(region, struct verbs_mw, core)->ibv.context;
}

void context_end_objects(struct live *live, uint64_t file)
{
    struct nic *nic = live_nic(live);
    struct qp *qp;
    struct region *region;
    struct srq *srq;
    /* The last acknowledgements may still wait for something to travel with. */
    live_flush(live);
    for (uint32_t at = 0; (qp = nic_each_qp(nic, &at)) != NULL;) {
        if (qp_is_gone(qp, file)) {
            end_qp(live, qp);
        }
    }
    for (uint32_t at = 0; (region = nic_each_region(nic, &at)) != NULL;) {
        if (is_gone(context_of_region(region), file)) {
            live_withdraw_region(live, region);
            region_shut(nic_regions(nic), region);
            CHECK(region->bound == NULL && (region->kind != REGION_MEMORY || region->bytes == 0));
        }
    }
    for (uint32_t at = 0; (srq = nic_each_srq(nic, &at)) != NULL;) {
        if (is_gone(CONTAINER_OF(srq, struct verbs_srq, core)->ibv.context, file)) {
            CHECK(srq->number != 0); /* Only those that requests can name are in the table. */
            srq_leave(nic, srq);
        }
    }
}

/* -- How long a context stays -------------------------------------------------------------------*/

bool context_hold(struct ibv_context *ibv)
{
    struct context *context = context_of(ibv);
    if (atomic_load_explicit(&context->closed, memory_order_relaxed)) {
        errno = EBADF;
        return false;
    }
    atomic_fetch_add_explicit(&context->holders, 1, memory_order_relaxed);
    return true;
}

void context_release(struct ibv_context *ibv)
{
    struct context *context = context_of(ibv);
    const uint32_t before = atomic_fetch_sub(&context->holders, 1);
    CHECK(before > 0);
    if (before == 1) {
        CHECK(is_closed(ibv)); /* The program was the holder that never goes before that. */
        context_free(context);
    }
}
