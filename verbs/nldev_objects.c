/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev_objects - the objects of this process, and what other processes are told of them.
 *
 * The lists of verbs objects outlive a fork, but a child's NIC has none of its parent's: only what
 * is of the NIC that is asked about counts. Nor does what is left of a context that was closed,
 * which a kernel would have destroyed (closing.c).
 */
#include "verbs/nldev_objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nic/inventory.h"
#include "verbs/cm_internal.h"

/* Where objects are put. */
struct collection {
    struct live *live;
    pid_t pid;
    struct nldev_resource *to;
    size_t room;
    uint64_t total;
};

/* The next object's place; one that is thrown away if there is no room. */
static struct nldev_resource *add(struct collection *collection, struct nldev_resource *spare,
                                  uint64_t number)
{
    struct nldev_resource *resource = spare;
    if (collection->room > 0) {
        collection->room--;
        resource = collection->to++;
    }
    collection->total++;
    *resource = (struct nldev_resource){.pid = (uint32_t)collection->pid};
    nldev_set(resource, NLDEV_NUMBER, number);
    return resource;
}

static bool is_of(const struct collection *collection, const struct ibv_context *context)
{
    return CONTAINER_OF_CONST(context, struct context, verbs.context)->live == collection->live &&
           !is_closed(context);
}

static uint32_t context_number(const struct ibv_context *context)
{
    return CONTAINER_OF_CONST(context, struct context, verbs.context)->number;
}

static uint32_t domain_number(const struct pd *pd)
{
    return CONTAINER_OF_CONST(pd, struct protection_domain, core)->number;
}

/* -- A kind each --------------------------------------------------------------------------------*/

static void add_context(void *state, struct context *context)
{
    struct nldev_resource spare;
    if (is_of(state, &context->verbs.context)) {
        add(state, &spare, context->number);
    }
}

/* Parent domains and imports are other handles of a domain. */
static void add_pd(void *state, const struct verbs_pd *pd)
{
    struct nldev_resource spare;
    if (is_of(state, pd->ibv.context) && !pd->parent && !pd->imported) {
        struct nldev_resource *resource = add(state, &spare, pd->ibv.handle);
        nldev_set(resource, PD_USERS, pd->core->users);
        nldev_set(resource, PD_CTXN, context_number(pd->ibv.context));
    }
}

static void add_cq(void *state, const struct verbs_cq *cq)
{
    struct nldev_resource spare;
    if (is_of(state, cq->ex.context)) {
        struct nldev_resource *resource = add(state, &spare, cq->ex.handle);
        nldev_set(resource, CQ_ENTRIES, cq->core.capacity);
        nldev_set(resource, CQ_USERS, cq->core.users);
        nldev_set(resource, CQ_CTXN, context_number(cq->ex.context));
    }
}

static void add_srq(void *state, const struct verbs_srq *srq)
{
    struct nldev_resource spare;
    if (is_of(state, srq->ibv.context)) {
        const struct srq *core = &srq->core;
        struct nldev_resource *resource = add(state, &spare, srq->ibv.handle);
        nldev_set(resource, SRQ_PDN, domain_number(core->pd));
        nldev_set(resource, SRQ_TYPE, core->xrcd == NULL ? IBV_SRQT_BASIC : IBV_SRQT_XRC);
        if (core->cq != NULL) {
            nldev_set(resource, SRQ_CQN,
                      CONTAINER_OF_CONST(core->cq, struct verbs_cq, core)->ex.handle);
        }
    }
}

/* A target is of all programs that opened it. */
static bool is_left_over(const struct qp *qp)
{
    const struct verbs_qp *handle = qp_context(qp);
    return qp_type_of(qp) != QP_XRC_TARGET && is_closed(handle->ex.qp_base.context);
}

static void add_qp(struct collection *collection, const struct qp *qp)
{
    struct nldev_resource spare;
    struct qp_attributes attributes;
    if (is_left_over(qp)) {
        return;
    }
    struct nldev_resource *resource = add(collection, &spare, qp_number(qp));
    const enum qp_type type = qp_type_of(qp);
    qp_query(qp, &attributes);
    if (qp_pd(qp) != NULL) {
        nldev_set(resource, QP_PDN, domain_number(qp_pd(qp)));
    }
    nldev_set(resource, QP_TYPE, (uint64_t)type);
    nldev_set(resource, QP_STATE, (uint64_t)attributes.state);
    nldev_set(resource, QP_SEND_PSN, attributes.psn.send);
    if (type == QP_RC || type == QP_UC) {
        nldev_set(resource, QP_PEER, attributes.destination_qpn);
        nldev_set(resource, QP_RECEIVE_PSN, attributes.psn.receive);
    }
    if (type != QP_UD) {
        nldev_set(resource, QP_MIGRATION, IBV_MIG_MIGRATED);
    }
}

static void add_region(struct collection *collection, const struct region *region)
{
    struct nldev_resource spare;
    if (region->kind == REGION_MEMORY &&
        !is_closed(CONTAINER_OF_CONST(region, struct verbs_mr, core)->ibv.context)) {
        /* The upper 24 bits of a key are what the table knows the region by. */
        struct nldev_resource *resource = add(collection, &spare, region->key >> 8);
        nldev_set(resource, MR_PDN, domain_number(region->pd));
        nldev_set(resource, MR_BYTES, region->bytes);
        nldev_set(resource, MR_IOVA, region->start);
        nldev_set(resource, MR_RKEY, region->key);
        nldev_set(resource, MR_LKEY, region->key);
    }
}

/* -- Ids of the connection manager --------------------------------------------------------------*/

/* As Linux counts the states of an id. A connection that is under way and one that stands have the
 * same. */
static uint64_t id_state(const struct rdma_id *id)
{
    enum {
        IDLE,
        ADDR_QUERY,
        ADDR_RESOLVED,
        ROUTE_QUERY,
        ROUTE_RESOLVED,
        CONNECT,
        DISCONNECT,
        ADDR_BOUND,
        LISTEN,
    };
    switch ((enum rdma_id_state)id->state) {
    case RDMA_ID_IDLE: break;
    case RDMA_ID_BOUND: return ADDR_BOUND;
    case RDMA_ID_RESOLVING: return ADDR_QUERY;
    case RDMA_ID_RESOLVED: return ADDR_RESOLVED;
    case RDMA_ID_ROUTING: return ROUTE_QUERY;
    case RDMA_ID_ROUTED: return ROUTE_RESOLVED;
    case RDMA_ID_FINDING:
    case RDMA_ID_CONNECTING:
    case RDMA_ID_REQUESTED:
    case RDMA_ID_CONNECTED: return CONNECT;
    case RDMA_ID_DISCONNECTED: return DISCONNECT;
    case RDMA_ID_LISTENING: return LISTEN;
    }
    return IDLE;
}

static uint64_t half(const uint8_t bytes[8])
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static void set_address(struct nldev_resource *resource, enum nldev_value at,
                        const struct rdma_address *address)
{
    if (address->known) {
        nldev_set(resource, at, address->ipv6 ? AF_INET6 : AF_INET);
        nldev_set(resource, at + 1, address->port);
        nldev_set(resource, at + 2, half(address->ip));
        nldev_set(resource, at + 3, half(address->ip + 8));
    }
}

static void add_id(struct collection *collection, const struct rdma_id *id)
{
    struct nldev_resource spare;
    const struct cm_file *file =
        id->channel == NULL ? NULL : CONTAINER_OF_CONST(id->channel, struct cm_file, channel);
    if (file == NULL || file->live != collection->live) {
        return;
    }
    struct nldev_resource *resource = add(collection, &spare, id->handle);
    nldev_set(resource, CM_ID_TYPE, id->datagrams ? QP_UD : id->unreliable ? QP_UC : QP_RC);
    nldev_set(resource, CM_ID_STATE, id_state(id));
    nldev_set(resource, CM_ID_PORT_SPACE, id->port_space);
    set_address(resource, CM_ID_SOURCE, &id->source);
    set_address(resource, CM_ID_DESTINATION, &id->destination);
}

/* -- All of a kind ------------------------------------------------------------------------------*/

static void add_ids(struct collection *collection)
{
    const struct cm_id *id;
    for (uint32_t at = 0; (id = cm_handle_each(&at, CM_HANDLE_ID)) != NULL;) {
        add_id(collection, &id->core);
    }
}

static void add_qps(struct collection *collection)
{
    const struct qp *qp;
    for (uint32_t at = 0; (qp = nic_each_qp(live_nic(collection->live), &at)) != NULL;) {
        add_qp(collection, qp);
    }
}

static void add_regions(struct collection *collection)
{
    const struct region *region;
    for (uint32_t at = 0; (region = nic_each_region(live_nic(collection->live), &at)) != NULL;) {
        add_region(collection, region);
    }
}

uint64_t objects_collect(struct live *live, enum nldev_kind kind, struct nldev_resource *to,
                         size_t *room)
{
    struct collection collection = {.live = live, .pid = getpid(), .to = to, .room = *room};
    switch (kind) {
    case NLDEV_PD: pd_each(add_pd, &collection); break;
    case NLDEV_CQ: cq_each(add_cq, &collection); break;
    case NLDEV_QP: add_qps(&collection); break;
    case NLDEV_CM_ID: add_ids(&collection); break;
    case NLDEV_MR: add_regions(&collection); break;
    case NLDEV_CTX: context_each(add_context, &collection); break;
    case NLDEV_SRQ: srq_each(add_srq, &collection); break;
    case NLDEV_KINDS: CHECK(false);
    }
    *room = collection.room;
    return collection.total;
}

/* -- As text ------------------------------------------------------------------------------------*/

static size_t tell_totals(struct live *live, char *text, size_t bytes)
{
    size_t used = 0;
    for (enum nldev_kind kind = 0; kind < NLDEV_KINDS && used < bytes; kind++) {
        size_t room = 0;
        const uint64_t total = objects_collect(live, kind, NULL, &room);
        used += (size_t)snprintf(text + used, bytes - used, NLDEV_TOTAL " %s %" PRIu64 "\n",
                                 nldev_kind_name(kind), total);
    }
    return used < bytes ? used : 0;
}

/* They open memory to whoever has them. */
static void hide_keys(struct nldev_resource *region)
{
    region->present &= ~(1u << MR_RKEY | 1u << MR_LKEY);
}

static size_t tell_kind(struct live *live, enum nldev_kind kind, bool root, char *text,
                        size_t bytes)
{
    size_t room = NLDEV_OBJECTS_MAX;
    struct nldev_resource *found = malloc(NLDEV_OBJECTS_MAX * sizeof(*found));
    if (found == NULL) {
        return SIZE_MAX;
    }
    const uint64_t total = objects_collect(live, kind, found, &room);
    size_t used = (size_t)snprintf(text, bytes, NLDEV_TOTAL " %s %" PRIu64 "\n",
                                   nldev_kind_name(kind), total);
    for (size_t i = 0; i < NLDEV_OBJECTS_MAX - room && used < bytes; i++) {
        if (kind == NLDEV_MR && !root) {
            hide_keys(&found[i]);
        }
        used += nldev_print(&found[i], text + used, bytes - used);
    }
    free(found);
    return used < bytes ? used : 0;
}

size_t objects_tell(struct live *live, const char *wish, bool root, char *text, size_t bytes)
{
    if (strcmp(wish, NLDEV_WISH_TOTALS) == 0) {
        return tell_totals(live, text, bytes);
    }
    for (enum nldev_kind kind = 0; kind < NLDEV_KINDS; kind++) {
        if (strcmp(wish, nldev_kind_name(kind)) == 0) {
            return tell_kind(live, kind, root, text, bytes);
        }
    }
    return 0;
}
