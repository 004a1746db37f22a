/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_internal - functions that the files of the connection manager share.
 */
#ifndef TRANSPORT_IBTA_CM_INTERNAL_H
#define TRANSPORT_IBTA_CM_INTERNAL_H

#include "base/bytes.h"
#include "transport/ibta/cm.h"

/* Times in messages: this times 2^code. */
#define CM_TIME_UNIT_NS UINT64_C(4096)

static inline struct list *cm_local_bucket(struct cm *cm, uint32_t id)
{
    return &cm->local[id % CM_BUCKETS];
}

/* Peers count their communication IDs up, or draw them: either spreads. */
static inline struct list *cm_remote_bucket(struct cm *cm, uint32_t id, const uint8_t gid[16])
{
    const uint32_t from = load_be32(gid + 12) * 0x9e3779b1u;
    return &cm->remote[(id ^ id >> 24 ^ from >> 16) % CM_BUCKETS];
}

/* Likewise by the number of the peer's queue pair. */
static inline struct list *cm_qpn_bucket(struct cm *cm, uint32_t qpn, const uint8_t gid[16])
{
    const uint32_t from = load_be32(gid + 12) * 0x9e3779b1u;
    return &cm->connected[(qpn ^ qpn >> 16 ^ from >> 16) % CM_BUCKETS];
}

struct cm_connection *cm_find_local(struct cm *cm, uint32_t local_id, const uint8_t peer[16]);
/* By the peer's communication ID; `sidr` tells request IDs, which have a space of their own. */
struct cm_connection *cm_find_remote(struct cm *cm, uint32_t remote_id, const uint8_t peer[16],
                                     bool sidr);

/* cm_match.c: the connection that a message from `peer` is about; not for requests and SIDR_REPs.
 * The message names our communication ID, but for a REJ from a peer that gave up before it learned
 * it. */
struct cm_connection *cm_find(struct cm *cm, const struct cm_message *message,
                              const uint8_t peer[16]);
/* Does the message have the other facts that the connection's peer knows, and that a stranger who
 * guesses IDs does not? */
bool cm_is_genuine(const struct cm_connection *connection, const struct cm_message *message);

/* cm_match.c: from now on the peer's queue pair is the connection's. A peer that names none (QPN 0)
 * may have many connections. */
void cm_note_connected(struct cm *cm, struct cm_connection *connection);
/* The connection that has the peer's queue pair; NULL: none. */
struct cm_connection *cm_find_connected(struct cm *cm, uint32_t qpn, const uint8_t peer[16]);

/* All invariants of a connection: for the entry and the end of each function that changes it. */
void cm_connection_check(struct cm *cm, const struct cm_connection *connection);

/* Gives a connection its communication ID, which is random. So a peer that names it proves that it
 * hears us, and messages to an earlier process find no connection. */
void cm_enlist(struct cm *cm, struct cm_connection *connection);

/* Puts `message` into the outbox, as the connection's. */
void cm_post(struct cm *cm, struct cm_connection *connection, enum cm_attribute attribute,
             struct cm_message *message);
/* The connection's last message once more. */
void cm_post_again(struct cm *cm, struct cm_connection *connection);
/* A message on behalf of no connection. */
void cm_post_stray(struct cm *cm, const uint8_t source[16], const uint8_t destination[16],
                   const struct cm_message *message);
void cm_post_rej(struct cm *cm, struct cm_connection *connection, enum cm_about about,
                 enum cm_reason reason, const void *private_data, size_t private_bytes);

/* The peer has sent one more request: two more messages may be sent to it. */
void cm_credit(struct cm_connection *connection);

/* Waits for an answer to the message that was just posted, and repeats it up to `tries` times. */
void cm_await(struct cm *cm, struct cm_connection *connection, uint8_t tries, struct instant now);
void cm_set_deadline(struct cm *cm, struct cm_connection *connection, struct instant deadline);
void cm_clear_deadline(struct cm_connection *connection);

/* The connection is over: packets of it may still be on their way. */
void cm_enter_timewait(struct cm *cm, struct cm_connection *connection, struct instant now);
/* cm_leave.c: the farewell is over; CM_EVENT_RELEASED. */
void cm_give_back(struct cm_connection *connection, struct cm_event *event);
/* Forgets the peer; the connection can be used anew. */
void cm_become_idle(struct cm_connection *connection);

#endif
