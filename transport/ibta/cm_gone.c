/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_gone - messages on behalf of a process that is gone. A kernel would send them; there is none,
 * so they are made here and received as if they had come.
 */
#include <string.h>

#include "transport/ibta/cm.h"
#include "transport/ibta/cm_internal.h"

static struct cm_message rej_of(const struct cm_connection *connection, enum cm_about about,
                                enum cm_reason reason)
{
    return (struct cm_message){
        .transaction_id = connection->opened_by,
        .attribute = CM_REJ,
        .local_id = connection->remote_id,
        .remote_id = connection->local_id,
        .rej = {.about = (uint8_t)about, .reason = (uint16_t)reason},
    };
}

/* A requester that is gone has not learned our communication ID. */
static struct cm_message rej_of_requester(const struct cm_connection *connection)
{
    struct cm_message rej = rej_of(connection, CM_ABOUT_OTHER, CM_REASON_TIMEOUT);
    rej.remote_id = 0;
    store_be64(rej.rej.information, connection->peer_guid);
    rej.rej.information_bytes = sizeof(connection->peer_guid);
    return rej;
}

static struct cm_message end_of(const struct cm_connection *connection, enum cm_attribute attribute)
{
    return (struct cm_message){
        .transaction_id = connection->transaction_id,
        .attribute = (uint16_t)attribute,
        .local_id = connection->remote_id,
        .remote_id = connection->local_id,
        .dreq_qpn = attribute == CM_DREQ ? connection->local_qpn : 0,
    };
}

/* Each moves the connection on, so that none is said twice. False: nothing is to be said. */
static bool speak_for(const struct cm_connection *connection, struct cm_message *message)
{
    switch ((enum cm_state)connection->state) {
    case CM_STATE_REQ_SENT:
        *message = rej_of(connection, CM_ABOUT_REQ, CM_REASON_CONSUMER);
        return true;
    case CM_STATE_REQ_RECEIVED: *message = rej_of_requester(connection); return true;
    case CM_STATE_REP_RECEIVED:
        *message = rej_of(connection, CM_ABOUT_OTHER, CM_REASON_CONSUMER);
        return true;
    case CM_STATE_REP_SENT:
    case CM_STATE_ESTABLISHED: *message = end_of(connection, CM_DREQ); return true;
    case CM_STATE_DREQ_SENT: *message = end_of(connection, CM_DREP); return true;
    case CM_STATE_SIDR_REQ_SENT:
        *message = (struct cm_message){
            .transaction_id = connection->opened_by,
            .attribute = CM_SIDR_REP,
            .local_id = connection->local_id,
            .sidr_rep = {.status = CM_SIDR_REJECTED, .service_id = connection->service_id}};
        return true;
    case CM_STATE_IDLE:
    case CM_STATE_TIMEWAIT:
    case CM_STATE_SIDR_REQ_RECEIVED:
    case CM_STATE_SIDR_REP_SENT: return false;
    }
    UNREACHABLE("a state outside its enum");
}

/* The process behind the address, as the world numbers it, or as the ID says that it chose. */
static bool is_of(const struct cm_connection *connection, const uint8_t peer[16], uint32_t slot)
{
    const uint32_t its =
        connection->process != 0 ? connection->process - 1 : connection->remote_id >> 24;
    return its == slot && memcmp(connection->destination, peer, 16) == 0;
}

bool cm_speak_for(const struct cm *cm, const uint8_t peer[16], uint32_t slot, uint32_t *at,
                  struct cm_mad *mad)
{
    for (; *at < CM_BUCKETS; (*at)++) {
        const struct list *head = &cm->local[*at];
        for (const struct list *node = head->next; node != head; node = node->next) {
            const struct cm_connection *connection =
                CONTAINER_OF_CONST(node, struct cm_connection, by_local);
            struct cm_message message;
            if (is_of(connection, peer, slot) && speak_for(connection, &message)) {
                *mad = (struct cm_mad){.process = slot + 1};
                memcpy(mad->source, connection->destination, 16);
                memcpy(mad->destination, connection->source, 16);
                cm_encode(&message, mad->bytes);
                return true;
            }
        }
    }
    return false;
}
