/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_match - the connection that a message is about. May the connection's peer have sent the
 * message, and which connection has the queue pair that it names?
 */
#include <string.h>

#include "transport/ibta/cm.h"
#include "transport/ibta/cm_internal.h"

/* A peer that asked us, and gave up before it learned our communication ID, is known by the CA GUID
 * of its REQ (IBTA 12.6.7.2), as in Linux. */
static struct cm_connection *find_given_up(struct cm *cm, const struct cm_message *message,
                                           const uint8_t peer[16])
{
    const struct cm_rej *rej = &message->rej;
    struct cm_connection *connection = cm_find_remote(cm, message->local_id, peer, false);
    const bool waits = connection != NULL && (connection->state == CM_STATE_REQ_RECEIVED ||
                                              connection->state == CM_STATE_REP_SENT);
    return waits && rej->reason == CM_REASON_TIMEOUT &&
                   rej->information_bytes >= sizeof(connection->peer_guid) &&
                   load_be64(rej->information) == connection->peer_guid
               ? connection
               : NULL;
}

struct cm_connection *cm_find(struct cm *cm, const struct cm_message *message,
                              const uint8_t peer[16])
{
    if (message->attribute == CM_REJ && message->remote_id == 0) {
        return find_given_up(cm, message, peer);
    }
    struct cm_connection *connection = cm_find_local(cm, message->remote_id, peer);
    /* A known peer's other connection is none of this one's business. */
    if (connection != NULL && connection->remote_id != 0 &&
        connection->remote_id != message->local_id) {
        return NULL;
    }
    return connection;
}

/* An answer repeats the transaction ID of the message that it answers, and the messages from REQ to
 * RTU have the same one (12.6.6 to 12.6.9). Linux sends them so, and checks only the QPN of a
 * DREQ. */
bool cm_is_genuine(const struct cm_connection *connection, const struct cm_message *message)
{
    switch ((enum cm_attribute)message->attribute) {
    case CM_DREQ: return message->dreq_qpn == connection->local_qpn;
    case CM_DREP: return message->transaction_id == connection->transaction_id;
    case CM_REP:
    case CM_RTU:
    case CM_REJ:
    case CM_MRA: return message->transaction_id == connection->opened_by;
    case CM_REQ:
    case CM_SIDR_REQ:
    case CM_SIDR_REP: break;
    }
    UNREACHABLE("a message that is not about a connection");
}

/* -- Queue pairs --------------------------------------------------------------------------------*/

/* Packets name a queue pair by its address and its number, which processes that share an address
 * have from ranges of their own: so do we. */
void cm_note_connected(struct cm *cm, struct cm_connection *connection)
{
    if (connection->remote_qpn != 0) {
        list_append(cm_qpn_bucket(cm, connection->remote_qpn, connection->destination),
                    &connection->by_qpn);
    }
}

struct cm_connection *cm_find_connected(struct cm *cm, uint32_t qpn, const uint8_t peer[16])
{
    struct list *head = cm_qpn_bucket(cm, qpn, peer);
    for (struct list *node = head->next; node != head; node = node->next) {
        struct cm_connection *connection = CONTAINER_OF(node, struct cm_connection, by_qpn);
        if (connection->remote_qpn == qpn && memcmp(connection->destination, peer, 16) == 0) {
            return connection;
        }
    }
    return NULL;
}
