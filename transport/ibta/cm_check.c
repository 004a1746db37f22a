/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_check - the invariants of a connection, and of an id, between two calls.
 */
#include "transport/ibta/cm_internal.h"
#include "transport/ibta/rdma_cm_internal.h"

/* Does time end this state, or repeat its message? */
static bool is_timed(enum cm_state state)
{
    switch (state) {
    case CM_STATE_REQ_SENT:
    case CM_STATE_REP_SENT:
    case CM_STATE_DREQ_SENT:
    case CM_STATE_TIMEWAIT:
    case CM_STATE_SIDR_REQ_SENT: return true;
    case CM_STATE_IDLE:
    case CM_STATE_REQ_RECEIVED:
    case CM_STATE_REP_RECEIVED:
    case CM_STATE_ESTABLISHED:
    case CM_STATE_SIDR_REQ_RECEIVED:
    case CM_STATE_SIDR_REP_SENT: return false;
    }
    UNREACHABLE("a state outside its enum");
}

/* Is the peer's queue pair this connection's, and no other's? */
static bool is_connected(enum cm_state state)
{
    return state == CM_STATE_REP_SENT || state == CM_STATE_REP_RECEIVED ||
           state == CM_STATE_ESTABLISHED;
}

/* A connection that we asked for is not in cm.remote, and each side has states that the other one
 * has not. */
static void check_side(const struct cm_connection *connection)
{
    CHECK(!connection->asked || list_empty(&connection->by_remote));
    switch ((enum cm_state)connection->state) {
    case CM_STATE_REQ_SENT:
    case CM_STATE_REP_RECEIVED:
    case CM_STATE_SIDR_REQ_SENT: CHECK(connection->asked); return;
    case CM_STATE_REQ_RECEIVED:
    case CM_STATE_REP_SENT:
    case CM_STATE_SIDR_REQ_RECEIVED:
    case CM_STATE_SIDR_REP_SENT: CHECK(!connection->asked); return;
    case CM_STATE_IDLE:
        CHECK(!connection->asked && connection->remote_id == 0);
        CHECK(list_empty(&connection->by_local) && list_empty(&connection->by_remote));
        return;
    case CM_STATE_ESTABLISHED:
    case CM_STATE_DREQ_SENT:
    case CM_STATE_TIMEWAIT: return;
    }
    UNREACHABLE("a state outside its enum");
}

void cm_connection_check(struct cm *cm, const struct cm_connection *connection)
{
    const bool timed = !list_empty(&connection->timed);
    check_side(connection);
    CHECK(timed == is_timed((enum cm_state)connection->state) ||
          (connection->state == CM_STATE_ESTABLISHED && connection->asked));
    CHECK(!list_empty(&connection->by_qpn) ==
          (is_connected((enum cm_state)connection->state) && connection->remote_qpn != 0));
    CHECK(timed == (connection->deadline.ns != UINT64_MAX));
    CHECK(!timed || !instant_before(connection->deadline, cm->deadline));
    CHECK(connection->tries_left <= CM_RETRIES && connection->refusals <= CM_REFUSALS_MAX);
    CHECK(!connection->abandoned || connection->state == CM_STATE_DREQ_SENT);
    /* Answers name our communication ID: it leads here, and nowhere else. */
    CHECK(connection->state == CM_STATE_IDLE ||
          cm_find_local(cm, connection->local_id, connection->destination) == connection);
    CHECK(cm->stray_tail - cm->stray_head <= CM_STRAYS_MAX);
}

/* -- Ids ----------------------------------------------------------------------------------------*/

static bool asks(enum rdma_id_state state)
{
    return state == RDMA_ID_RESOLVING || state == RDMA_ID_ROUTING || state == RDMA_ID_FINDING;
}

void rdma_id_check(struct rdma_cm *manager, const struct rdma_id *id)
{
    cm_connection_check(&manager->cm, &id->connection);
    CHECK((id->state == RDMA_ID_LISTENING) == !list_empty(&id->listening));
    CHECK(asks((enum rdma_id_state)id->state) || list_empty(&id->asking));
    CHECK(id->alive || (id->state == RDMA_ID_IDLE && id->channel == NULL && id->listener == NULL));
    /* Before it connects, and while it listens, there is no connection. */
    CHECK(id->connection.state == CM_STATE_IDLE || id->connection.abandoned ||
          (id->state >= RDMA_ID_CONNECTING && id->state != RDMA_ID_LISTENING));
    switch (id->connection.state) {
    case CM_STATE_REQ_SENT:
    case CM_STATE_REP_RECEIVED:
    case CM_STATE_SIDR_REQ_SENT: CHECK(id->state == RDMA_ID_CONNECTING); return;
    case CM_STATE_REQ_RECEIVED:
    case CM_STATE_SIDR_REQ_RECEIVED: CHECK(id->state == RDMA_ID_REQUESTED); return;
    case CM_STATE_REP_SENT: CHECK(id->state == RDMA_ID_CONNECTED); return;
    default: return;
    }
}
