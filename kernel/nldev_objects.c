/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev_objects - the objects of this process, and what other processes are told of them.
 *
 * Ids of the connection manager are the rdma_cm device's; of all others the library knows that made
 * them (process_library).
 */
#include "kernel/nldev_objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/cm_internal.h"
#include "kernel/process.h"

struct nldev_resource *objects_add(struct objects_collection *collection, uint64_t number)
{
    struct nldev_resource *resource = &collection->spare;
    CHECK(collection->room == 0 || collection->to != NULL);
    if (collection->room > 0) {
        collection->room--;
        resource = collection->to++;
    }
    collection->total++;
    *resource = (struct nldev_resource){.pid = (uint32_t)collection->pid};
    nldev_set(resource, NLDEV_NUMBER, number);
    return resource;
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
    case RDMA_ID_IDLE: return IDLE;
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
    UNREACHABLE("a state outside its enum");
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

static void add_id(struct objects_collection *collection, const struct rdma_id *id)
{
    const struct cm_file *file =
        id->channel == NULL ? NULL : CONTAINER_OF_CONST(id->channel, struct cm_file, channel);
    if (file == NULL || file->live != collection->live) {
        return;
    }
    struct nldev_resource *resource = objects_add(collection, id->handle);
    INVARIANTS(cm_id_check(file, CONTAINER_OF_CONST(id, struct cm_id, core)));
    nldev_set(resource, CM_ID_TYPE, id->datagrams ? QP_UD : id->unreliable ? QP_UC : QP_RC);
    nldev_set(resource, CM_ID_STATE, id_state(id));
    nldev_set(resource, CM_ID_PORT_SPACE, id->port_space);
    set_address(resource, CM_ID_SOURCE, &id->source);
    set_address(resource, CM_ID_DESTINATION, &id->destination);
}

/* -- All of a kind ------------------------------------------------------------------------------*/

static void add_ids(struct objects_collection *collection)
{
    const struct cm_id *id;
    for (uint32_t at = 0; (id = cm_handle_each(&at, CM_HANDLE_ID)) != NULL;) {
        add_id(collection, &id->core);
    }
}

uint64_t objects_collect(struct live *live, enum nldev_kind kind, struct nldev_resource *to,
                         size_t *room)
{
    const struct process_library *library = process_attached();
    struct objects_collection collection = {.live = live, .pid = getpid(), .to = to, .room = *room};
    if (kind == NLDEV_CM_ID) {
        add_ids(&collection);
    } else if (library != NULL) {
        library->collect(kind, &collection);
    }
    CHECK(collection.room <= *room && *room - collection.room <= collection.total);
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

/* Keys open memory to everybody who has them. */
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
    CHECK(room == 0 || total == NLDEV_OBJECTS_MAX - room); /* Only where there is none left. */
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
