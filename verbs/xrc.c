/* SPDX-License-Identifier: BSD-2-Clause
 *
 * xrc - XRC domains, and the targets that programs share by them.
 *
 * A domain is known by the inode of a file, so that those who have the file can open it; one
 * without a file is its opener's alone. A NIC belongs to one process, and so do its domains: the
 * contexts and libraries of that process share them.
 *
 * A target outlives the handle it was made with: the last handle to be destroyed takes it away, and
 * its events go to every handle (ibv_open_qp).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "verbs/checking.h"
#include "verbs/internal.h"
#include "verbs/strict.h"

/* -- Domains ------------------------------------------------------------------------------------*/

struct domain {
    struct list node;
    struct xrcd core;
    struct list targets;     /* struct xrc_target */
    const struct live *live; /* A child of fork inherits those of another one. */
    bool has_file;
    dev_t device;
    ino_t inode;
    uint32_t opened;
};

struct verbs_xrcd {
    struct ibv_xrcd ibv;
    struct domain *domain;
};

/* Guarded, like all that hangs on them, by the live lock. */
static struct list domains = {&domains, &domains};

/* (locked) It is there as long as it is open; its targets are among its users. */
static void domain_check(const struct domain *domain)
{
    CHECK(domain->opened > 0 && domain->live != NULL);
    CHECK(list_empty(&domain->targets) || domain->core.users > 0);
    list_check(&domain->node);
    list_check(&domain->targets);
}

static struct domain *domain_of(struct ibv_xrcd *xrcd)
{
    return CONTAINER_OF(xrcd, struct verbs_xrcd, ibv)->domain;
}

struct xrcd *xrcd_core(struct ibv_xrcd *xrcd)
{
    return &domain_of(xrcd)->core;
}

static struct domain *find_domain(const struct live *live, const struct stat *file)
{
    for (struct list *node = domains.next; node != &domains; node = node->next) {
        struct domain *domain = CONTAINER_OF(node, struct domain, node);
        if (domain->live == live && domain->has_file && domain->device == file->st_dev &&
            domain->inode == file->st_ino) {
            return domain;
        }
    }
    return NULL;
}

static struct domain *make_domain(const struct live *live, const struct stat *file)
{
    struct domain *domain = calloc(1, sizeof(*domain));
    if (domain == NULL) {
        return fail(ENOMEM);
    }
    list_init(&domain->targets);
    domain->live = live;
    if (file != NULL) {
        domain->has_file = true;
        domain->device = file->st_dev;
        domain->inode = file->st_ino;
    }
    list_append(&domains, &domain->node);
    return domain;
}

/* The answers of the kernel's verbs to a file that has or has not a domain yet. */
static struct domain *open_domain(const struct live *live, const struct stat *file, int flags)
{
    struct domain *domain = file == NULL ? NULL : find_domain(live, file);
    if (domain == NULL) {
        return file != NULL && !(flags & O_CREAT) ? fail(EAGAIN) : make_domain(live, file);
    }
    return flags & O_EXCL ? fail(EINVAL) : domain;
}

struct ibv_xrcd *xrcd_open(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
    const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    if ((attr->comp_mask & both) != both || (attr->oflags & ~(O_CREAT | O_EXCL))) {
        return fail(EINVAL);
    }
    if ((attr->comp_mask & ~both) || !live_offers(LIVE_OFFER_XRC)) {
        return fail(EOPNOTSUPP);
    }
    struct stat file;
    if (attr->fd != -1 && fstat(attr->fd, &file) != 0) {
        return NULL;
    }
    struct verbs_xrcd *xrcd = object_make(context, sizeof(*xrcd));
    if (xrcd == NULL) {
        return NULL;
    }
    struct live *live = live_of(context);
    live_lock(live);
    xrcd->domain = open_domain(live, attr->fd == -1 ? NULL : &file, attr->oflags);
    if (xrcd->domain != NULL) {
        xrcd->domain->opened++;
        INVARIANTS(domain_check(xrcd->domain));
    }
    live_unlock(live);
    if (xrcd->domain == NULL) {
        const int reason = errno;
        object_free(context, xrcd);
        return fail(reason);
    }
    xrcd->ibv.context = context;
    return &xrcd->ibv;
}

int xrcd_close(struct ibv_xrcd *ibv)
{
    struct domain *domain = domain_of(ibv);
    struct live *live = live_of(ibv->context);
    live_lock(live);
    INVARIANTS(domain_check(domain));
    CHECK(domain->live == live);
    const bool last = domain->opened == 1;
    const bool busy = last && domain->core.users > 0;
    if (!busy) {
        domain->opened--;
    }
    if (last && !busy) {
        CHECK(list_empty(&domain->targets));
        list_remove(&domain->node);
    }
    live_unlock(live);
    if (busy) {
        return checking_busy("XRC domain");
    }
    if (last) {
        free(domain);
    }
    object_free(ibv->context, CONTAINER_OF(ibv, struct verbs_xrcd, ibv));
    return 0;
}

/* -- Targets ------------------------------------------------------------------------------------*/

struct xrc_target {
    struct list node;        /* In its domain's list. */
    struct list handles;     /* struct handle */
    struct verbs_qp *holder; /* The block that the core lies in, even if its handle is gone. */
    /* Handles that are gone, and whose events are still to be acknowledged. */
    uint32_t ending;
};

struct handle {
    struct list node;
    struct verbs_qp *qp;
};

/* (locked) Requests can name it as long as it has a handle. It is there until the events of its
 * last handle are acknowledged, and so is the block that its core lies in. */
static void target_check(const struct xrc_target *target)
{
    CHECK(target->holder != NULL);
    CHECK(!list_empty(&target->handles) || target->ending > 0);
    CHECK(list_empty(&target->handles) == list_empty(&target->node));
    list_check(&target->node);
    list_check(&target->handles);
}

static bool add_handle(struct xrc_target *target, struct verbs_qp *qp)
{
    struct handle *handle = calloc(1, sizeof(*handle));
    if (handle == NULL) {
        return false;
    }
    handle->qp = qp;
    list_append(&target->handles, &handle->node);
    qp->target = target;
    return true;
}

bool xrc_target_add(struct ibv_xrcd *xrcd, struct verbs_qp *qp)
{
    struct xrc_target *target = calloc(1, sizeof(*target));
    if (target == NULL) {
        return false;
    }
    target->holder = qp;
    list_init(&target->handles);
    if (!add_handle(target, qp)) {
        free(target);
        return false;
    }
    list_append(&domain_of(xrcd)->targets, &target->node);
    INVARIANTS(target_check(target));
    return true;
}

struct verbs_qp *xrc_target_handle(const struct verbs_qp *qp, uint32_t index)
{
    struct list *handles = &qp->target->handles;
    struct list *node = handles->next;
    while (node != handles && index > 0) {
        node = node->next;
        index--;
    }
    return node == handles ? NULL : CONTAINER_OF(node, struct handle, node)->qp;
}

static void remove_handle(struct xrc_target *target, const struct verbs_qp *qp)
{
    for (struct list *node = target->handles.next; node != &target->handles; node = node->next) {
        struct handle *handle = CONTAINER_OF(node, struct handle, node);
        if (handle->qp == qp) {
            list_remove(&handle->node);
            free(handle);
            return;
        }
    }
    UNREACHABLE("a handle that its target does not know");
}

bool xrc_target_drop(struct verbs_qp *qp)
{
    struct xrc_target *target = qp->target;
    INVARIANTS(target_check(target));
    remove_handle(target, qp);
    target->ending++;
    if (!list_empty(&target->handles)) {
        return false;
    }
    list_remove(&target->node);
    INVARIANTS(target_check(target));
    return true;
}

struct verbs_qp *xrc_target_end(struct verbs_qp *qp)
{
    struct xrc_target *target = qp->target;
    struct verbs_qp *holder = target->holder;
    INVARIANTS(target_check(target));
    CHECK(target->ending > 0);
    if (--target->ending != 0 || !list_empty(&target->handles)) {
        return NULL;
    }
    free(target);
    return holder;
}

bool xrc_target_holds(const struct verbs_qp *qp)
{
    return qp->target->holder == qp;
}

static struct xrc_target *find_target(struct domain *domain, uint32_t number)
{
    for (struct list *node = domain->targets.next; node != &domain->targets; node = node->next) {
        struct xrc_target *target = CONTAINER_OF(node, struct xrc_target, node);
        INVARIANTS(target_check(target));
        if (qp_number(target->holder->core) == number) {
            return target;
        }
    }
    return NULL;
}

/* A further handle for the target `number`; 0 or errno. Locked. */
static int open_target(struct ibv_xrcd *xrcd, uint32_t number, struct verbs_qp *qp)
{
    struct xrc_target *target = find_target(domain_of(xrcd), number);
    if (target == NULL) {
        return EINVAL;
    }
    qp->core = target->holder->core;
    return add_handle(target, qp) ? 0 : ENOMEM;
}

struct ibv_qp *xrc_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
    const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    if ((attr->comp_mask & needed) != needed || attr->qp_type != IBV_QPT_XRC_RECV) {
        return fail(EINVAL);
    }
    if (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)) {
        return fail(EOPNOTSUPP);
    }
    if (!STRICT_JOINS(context, attr->xrcd)) {
        return NULL;
    }
    struct verbs_qp *qp = object_make(context, sizeof(*qp));
    if (qp == NULL) {
        return NULL;
    }
    const struct ibv_qp_init_attr shown = {
        .qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL,
        .qp_type = IBV_QPT_XRC_RECV};
    struct live *live = live_of(context);
    live_lock(live);
    const int reason = open_target(attr->xrcd, attr->qp_num, qp);
    if (reason == 0) {
        qp->ex.qp_base.context = context;
        qp_fill_public(NULL, &shown, qp);
    }
    live_unlock(live);
    if (reason != 0) {
        object_free(context, qp);
        return fail(reason);
    }
    return &qp->ex.qp_base;
}
