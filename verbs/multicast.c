/* SPDX-License-Identifier: BSD-2-Clause
 *
 * multicast - queue pairs in multicast groups, with the answers of the kernel's uverbs.
 */
#include <string.h>

#include "verbs/internal.h"

/* On Ethernet the GID says it all: the LID is not looked at. */
static int change(struct ibv_qp *ibv, const union ibv_gid *gid,
                  enum status (*how)(struct live *, const struct gid *, struct qp *))
{
    struct live *live = live_of(ibv->context);
    struct gid group;
    if (is_efa()) {
        return EOPNOTSUPP;
    }
    if (is_closed(ibv->context)) {
        return EBADF;
    }
    memcpy(group.bytes, gid->raw, sizeof(group.bytes));
    live_lock(live);
    const enum status status = how(live, &group, qp_of(ibv)->core);
    live_unlock(live);
    return status_errno(status);
}

EXPORT int ibv_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    return change(ibv, gid, live_attach);
}

EXPORT int ibv_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    return change(ibv, gid, live_detach);
}
