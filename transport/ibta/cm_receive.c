/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_receive - the connection manager's reaction to messages.
 */
#include <string.h>

#include "transport/common/timing.h"
#include "transport/ibta/cm.h"
#include "transport/ibta/cm_internal.h"

/* A round of the state machine: the message, its sender, and the event to report. */
struct arrival {
    const uint8_t *source, *destination;
    const struct cm_message *message;
    struct cm_connection *spare;
    struct instant now;
    struct cm_event *event;
};

static void tell(const struct arrival *arrival, enum cm_event_kind kind,
                 struct cm_connection *connection)
{
    *arrival->event = (struct cm_event){
        .kind = connection->abandoned ? CM_EVENT_NONE : kind,
        .connection = connection,
        .message = arrival->message,
    };
}

/* -- Answers without a connection ---------------------------------------------------------------*/

static void answer_stray(struct cm *cm, const struct arrival *arrival, enum cm_attribute attribute,
                         struct cm_message *answer)
{
    answer->transaction_id = arrival->message->transaction_id;
    answer->attribute = (uint16_t)attribute;
    answer->local_id = arrival->message->remote_id;
    answer->remote_id = arrival->message->local_id;
    cm_post_stray(cm, arrival->destination, arrival->source, answer);
}

/* The peer speaks of a connection that is not here: after a REP it has to know. */
static void on_unmatched(struct cm *cm, const struct arrival *arrival)
{
    cm->counters.unmatched++;
    if (arrival->message->attribute == CM_REP) {
        struct cm_message rej = {
            .rej = {.about = CM_ABOUT_REP, .reason = CM_REASON_INVALID_COMMUNICATION_ID}};
        answer_stray(cm, arrival, CM_REJ, &rej);
    } else if (arrival->message->attribute == CM_DREQ) {
        struct cm_message drep = {0};
        answer_stray(cm, arrival, CM_DREP, &drep);
    }
}

/* -- Requests -----------------------------------------------------------------------------------*/

static void adopt(struct cm *cm, const struct arrival *arrival, struct cm_connection *connection,
                  enum cm_state state)
{
    const struct cm_message *message = arrival->message;
    memcpy(connection->source, arrival->destination, 16);
    memcpy(connection->destination, arrival->source, 16);
    connection->transaction_id = message->transaction_id;
    connection->opened_by = message->transaction_id;
    connection->remote_id = message->local_id;
    connection->state = (uint8_t)state;
    connection->unproven = true;
    connection->credit = 0;
    cm_credit(connection);
    cm_enlist(cm, connection);
    list_append(cm_remote_bucket(cm, connection->remote_id, connection->destination),
                &connection->by_remote);
}

static void send_mra(struct cm *cm, struct cm_connection *connection, enum cm_about about,
                     uint8_t service_timeout)
{
    struct cm_message mra = {.mra = {.about = (uint8_t)about, .service_timeout = service_timeout}};
    cm_post(cm, connection, CM_MRA, &mra);
}

static void refuse_req(struct cm *cm, const struct arrival *arrival, enum cm_reason reason)
{
    struct cm_message rej = {.rej = {.about = CM_ABOUT_REQ, .reason = (uint16_t)reason}};
    answer_stray(cm, arrival, CM_REJ, &rej);
}

/* A SIDR_REP repeats the request's ID where other messages have the sender's own. */
static void refuse_sidr(struct cm *cm, const struct arrival *arrival, enum cm_sidr_status status)
{
    const struct cm_message *request = arrival->message;
    const struct cm_message reply = {
        .transaction_id = request->transaction_id,
        .attribute = CM_SIDR_REP,
        .local_id = request->local_id,
        .sidr_rep = {.status = (uint8_t)status, .service_id = request->sidr_req.service_id},
    };
    cm_post_stray(cm, arrival->destination, arrival->source, &reply);
}

/* Requests in a version that we do not speak are answered in ours (12.6.7.2, 12.11.2). No
 * connection of ours can have any other message of that version. */
static void refuse_version(struct cm *cm, const struct arrival *arrival)
{
    if (arrival->message->attribute == CM_REQ) {
        refuse_req(cm, arrival, CM_REASON_INVALID_CLASS_VERSION);
    } else if (arrival->message->attribute == CM_SIDR_REQ) {
        refuse_sidr(cm, arrival, CM_SIDR_UNSUPPORTED_VERSION);
    }
}

void cm_refuse(struct cm *cm, const uint8_t source[16], const uint8_t destination[16],
               const struct cm_message *request)
{
    const struct arrival arrival = {
        .source = source, .destination = destination, .message = request};
    if (request->attribute == CM_REQ) {
        refuse_req(cm, &arrival, CM_REASON_INVALID_SERVICE_ID);
        return;
    }
    CHECK(request->attribute == CM_SIDR_REQ);
    refuse_sidr(cm, &arrival, CM_SIDR_UNSUPPORTED);
}

/* The peer repeats its REQ: it has not got our answer, or there is none yet. Or the network held a
 * copy back. */
static void on_repeated_req(struct cm *cm, const struct arrival *arrival,
                            struct cm_connection *connection)
{
    cm->counters.out_of_state++;
    switch ((enum cm_state)connection->state) {
    case CM_STATE_REQ_RECEIVED:
        cm_credit(connection);
        send_mra(cm, connection, CM_ABOUT_REQ, CM_SERVICE_TIMEOUT);
        return;
    case CM_STATE_REP_SENT:
        cm_credit(connection);
        cm_post_again(cm, connection);
        return;
    case CM_STATE_DREQ_SENT:
    case CM_STATE_TIMEWAIT:
        /* Only a peer that never heard of our REP heeds it. */
        refuse_req(cm, arrival, CM_REASON_STALE_CONNECTION);
        return;
    case CM_STATE_ESTABLISHED: return;
    case CM_STATE_IDLE:
    case CM_STATE_REQ_SENT:
    case CM_STATE_REP_RECEIVED:
    case CM_STATE_SIDR_REQ_SENT:
    case CM_STATE_SIDR_REQ_RECEIVED:
    case CM_STATE_SIDR_REP_SENT: break;
    }
    UNREACHABLE("no peer's request leads to this state");
}

/* The peer's queue pair is no more in this connection, or it could not be in another one. A program
 * that believes in this connection is told of its end, and the peer as well (12.9.8.3.1). In
 * REP_RECEIVED our program is about to answer, and the peer will refuse that. */
static void end_stale(struct cm *cm, const struct arrival *arrival, struct cm_connection *stale)
{
    cm->counters.stale++;
    if (stale->state != CM_STATE_REP_RECEIVED) {
        CHECK(cm_disconnect(cm, stale, arrival->now) == STATUS_OK);
    }
}

static void on_req(struct cm *cm, const struct arrival *arrival)
{
    const struct cm_message *message = arrival->message;
    struct cm_connection *connection =
        cm_find_remote(cm, message->local_id, arrival->source, false);
    if (connection != NULL && connection->opened_by == message->transaction_id) {
        on_repeated_req(cm, arrival, connection);
        return;
    }
    if (connection != NULL && connection->state != CM_STATE_TIMEWAIT &&
        connection->state != CM_STATE_DREQ_SENT && connection->state != CM_STATE_ESTABLISHED) {
        refuse_req(cm, arrival, CM_REASON_DUPLICATE_LOCAL_COMMUNICATION_ID);
        return;
    }
    struct cm_connection *stale = cm_find_connected(cm, message->req.qpn, arrival->source);
    if (stale != NULL) {
        refuse_req(cm, arrival, CM_REASON_STALE_CONNECTION);
        end_stale(cm, arrival, stale);
        return;
    }
    if (arrival->spare == NULL) {
        cm->counters.crowded_out++;
        return;
    }
    if (connection != NULL) {
        /* The peer uses the ID anew: the end of the old connection escaped us. */
        list_remove(&connection->by_remote);
    }
    connection = arrival->spare;
    adopt(cm, arrival, connection, CM_STATE_REQ_RECEIVED);
    connection->service_id = message->req.service_id;
    connection->remote_qpn = message->req.qpn;
    connection->peer_guid = message->req.ca_guid;
    tell(arrival, CM_EVENT_REQUESTED, connection);
}

static void on_sidr_req(struct cm *cm, const struct arrival *arrival)
{
    const struct cm_message *message = arrival->message;
    struct cm_connection *connection = cm_find_remote(cm, message->local_id, arrival->source, true);
    if (connection != NULL && connection->opened_by == message->transaction_id) {
        cm->counters.out_of_state++;
        cm_credit(connection);
        if (connection->state == CM_STATE_SIDR_REP_SENT) {
            cm_post_again(cm, connection);
        }
        return;
    }
    if (arrival->spare == NULL) {
        cm->counters.crowded_out++;
        return;
    }
    if (connection != NULL) {
        list_remove(&connection->by_remote);
    }
    adopt(cm, arrival, arrival->spare, CM_STATE_SIDR_REQ_RECEIVED);
    arrival->spare->service_id = message->sidr_req.service_id;
    tell(arrival, CM_EVENT_SIDR_REQUESTED, arrival->spare);
}

/* -- Answers ------------------------------------------------------------------------------------*/

/* Both programs get the reason. */
static void refuse_rep(struct cm *cm, const struct arrival *arrival,
                       struct cm_connection *connection)
{
    connection->remote_id = arrival->message->local_id;
    cm_post_rej(cm, connection, CM_ABOUT_REP, CM_REASON_STALE_CONNECTION, NULL, 0);
    cm_become_idle(connection);
    cm->message = (struct cm_message){
        .attribute = CM_REJ,
        .rej = {.about = CM_ABOUT_REP, .reason = CM_REASON_STALE_CONNECTION},
    };
    tell(arrival, CM_EVENT_REJECTED, connection);
}

static void take_rep(struct cm *cm, const struct arrival *arrival, struct cm_connection *connection)
{
    const struct cm_message *message = arrival->message;
    struct cm_connection *stale = cm_find_connected(cm, message->rep.qpn, arrival->source);
    if (stale != NULL) {
        refuse_rep(cm, arrival, connection);
        end_stale(cm, arrival, stale);
        return;
    }
    connection->remote_id = message->local_id;
    connection->remote_qpn = message->rep.qpn;
    connection->state = CM_STATE_REP_RECEIVED;
    connection->patience = CM_SERVICE_TIMEOUT_FIRST;
    list_remove(&connection->out);
    cm_clear_deadline(connection);
    cm_note_connected(cm, connection);
    tell(arrival, CM_EVENT_REPLIED, connection);
}

static void on_rep(struct cm *cm, const struct arrival *arrival, struct cm_connection *connection)
{
    switch ((enum cm_state)connection->state) {
    case CM_STATE_REQ_SENT: take_rep(cm, arrival, connection); return;
    case CM_STATE_REP_RECEIVED:
        cm->counters.out_of_state++;
        send_mra(cm, connection, CM_ABOUT_REP, connection->patience);
        if (connection->patience < CM_SERVICE_TIMEOUT) {
            connection->patience++;
        }
        return;
    case CM_STATE_ESTABLISHED:
        cm->counters.out_of_state++;
        if (connection->asked) { /* Our RTU was lost. */
            cm_post_again(cm, connection);
        }
        return;
    case CM_STATE_IDLE:
    case CM_STATE_REQ_RECEIVED:
    case CM_STATE_REP_SENT:
    case CM_STATE_DREQ_SENT:
    case CM_STATE_TIMEWAIT:
    case CM_STATE_SIDR_REQ_SENT:
    case CM_STATE_SIDR_REQ_RECEIVED:
    case CM_STATE_SIDR_REP_SENT: cm->counters.out_of_state++; return;
    }
    UNREACHABLE("a state outside its enum");
}

static void on_rtu(struct cm *cm, const struct arrival *arrival, struct cm_connection *connection)
{
    if (connection->state != CM_STATE_REP_SENT) {
        cm->counters.out_of_state++;
        return;
    }
    connection->state = CM_STATE_ESTABLISHED;
    list_remove(&connection->out);
    cm_clear_deadline(connection);
    tell(arrival, CM_EVENT_ESTABLISHED, connection);
}

/* Nobody listens there, or an earlier connection of our queue pair has yet to end. Is the request
 * sent again, so that the program need not know yet? The peer forgets a request that it refused, so
 * the same message is a new request to it. */
static bool asks_again(struct cm *cm, struct cm_connection *connection, struct instant now)
{
    if (connection->refusals == CM_REFUSALS_MAX || connection->tries_left == 0) {
        return false;
    }
    list_remove(&connection->out);
    cm_await(cm, connection, connection->tries_left, now);
    const uint64_t pause_ns = CM_REFUSAL_PAUSE_NS << connection->refusals++;
    cm_set_deadline(cm, connection, instant_after(now, pause_ns));
    return true;
}

static void on_rej(struct cm *cm, const struct arrival *arrival, struct cm_connection *connection)
{
    const uint16_t reason = arrival->message->rej.reason;
    if (connection->state == CM_STATE_REQ_SENT &&
        (reason == CM_REASON_INVALID_SERVICE_ID || reason == CM_REASON_STALE_CONNECTION) &&
        asks_again(cm, connection, arrival->now)) {
        return;
    }
    switch ((enum cm_state)connection->state) {
    case CM_STATE_REQ_SENT:
    case CM_STATE_REQ_RECEIVED:
    case CM_STATE_REP_SENT:
    case CM_STATE_REP_RECEIVED:
        list_remove(&connection->out);
        cm_become_idle(connection);
        tell(arrival, CM_EVENT_REJECTED, connection);
        return;
    case CM_STATE_DREQ_SENT:
        /* The other side knows nothing of this connection. */
        cm_enter_timewait(cm, connection, arrival->now);
        if (connection->abandoned) {
            cm_give_back(connection, arrival->event);
        } else {
            tell(arrival, CM_EVENT_DISCONNECTED, connection);
        }
        return;
    case CM_STATE_ESTABLISHED:
        /* The peer has given up, forgotten, or not wanted it after all, and does not know that we
         * believe in the connection: our RTU is lost, or its first packet overtook its REJ. */
        list_remove(&connection->out);
        cm_enter_timewait(cm, connection, arrival->now);
        tell(arrival, CM_EVENT_DISCONNECTED, connection);
        return;
    case CM_STATE_IDLE:
    case CM_STATE_TIMEWAIT:
    case CM_STATE_SIDR_REQ_SENT:
    case CM_STATE_SIDR_REQ_RECEIVED:
    case CM_STATE_SIDR_REP_SENT: cm->counters.out_of_state++; return;
    }
    UNREACHABLE("a state outside its enum");
}

/* The peer's program is slow: it gets the time it asks for before we repeat ourselves. */
static void on_mra(struct cm *cm, const struct arrival *arrival, struct cm_connection *connection)
{
    const uint8_t about = arrival->message->mra.about;
    const bool expected = (connection->state == CM_STATE_REQ_SENT && about == CM_ABOUT_REQ) ||
                          (connection->state == CM_STATE_REP_SENT && about == CM_ABOUT_REP);
    if (!expected) {
        cm->counters.out_of_state++;
        return;
    }
    list_remove(&connection->out);
    /* Unlike those of a queue pair, a time code of 0 is the shortest. */
    const uint64_t patience_ns = CM_TIME_UNIT_NS << arrival->message->mra.service_timeout;
    cm_set_deadline(cm, connection, instant_after(arrival->now, patience_ns + connection->wait_ns));
    connection->wait_ns = ack_timeout_ns(CM_RESPONSE_TIMEOUT);
}

static void on_dreq(struct cm *cm, const struct arrival *arrival, struct cm_connection *connection)
{
    struct cm_message drep = {0};
    switch ((enum cm_state)connection->state) {
    case CM_STATE_REP_SENT:
    case CM_STATE_ESTABLISHED:
    case CM_STATE_DREQ_SENT:
        if (connection->abandoned) {
            /* Both sides say farewell. */
            cm_give_back(connection, arrival->event);
            answer_stray(cm, arrival, CM_DREP, &drep);
            return;
        }
        connection->transaction_id = arrival->message->transaction_id;
        cm_post(cm, connection, CM_DREP, &drep);
        cm_enter_timewait(cm, connection, arrival->now);
        tell(arrival, CM_EVENT_DISCONNECTED, connection);
        return;
    case CM_STATE_TIMEWAIT:
        cm->counters.out_of_state++;
        connection->transaction_id = arrival->message->transaction_id;
        cm_post(cm, connection, CM_DREP, &drep);
        return;
    case CM_STATE_IDLE:
    case CM_STATE_REQ_SENT:
    case CM_STATE_REQ_RECEIVED:
    case CM_STATE_REP_RECEIVED:
    case CM_STATE_SIDR_REQ_SENT:
    case CM_STATE_SIDR_REQ_RECEIVED:
    case CM_STATE_SIDR_REP_SENT: cm->counters.out_of_state++; return;
    }
    UNREACHABLE("a state outside its enum");
}

static void on_drep(struct cm *cm, const struct arrival *arrival, struct cm_connection *connection)
{
    if (connection->state != CM_STATE_DREQ_SENT) {
        cm->counters.out_of_state++;
        return;
    }
    list_remove(&connection->out);
    if (connection->abandoned) {
        cm_give_back(connection, arrival->event);
        return;
    }
    cm_enter_timewait(cm, connection, arrival->now);
    tell(arrival, CM_EVENT_DISCONNECTED, connection);
}

static void on_sidr_rep(struct cm *cm, const struct arrival *arrival)
{
    struct cm_connection *connection =
        cm_find_local(cm, arrival->message->local_id, arrival->source);
    if (connection == NULL || connection->state != CM_STATE_SIDR_REQ_SENT ||
        arrival->message->transaction_id != connection->opened_by) {
        cm->counters.unmatched++;
        return;
    }
    if (arrival->message->sidr_rep.status == CM_SIDR_UNSUPPORTED &&
        asks_again(cm, connection, arrival->now)) {
        return;
    }
    list_remove(&connection->out);
    cm_become_idle(connection);
    tell(arrival, CM_EVENT_SIDR_REPLIED, connection);
}

/* A message that is about a connection of ours. */
static void deliver(struct cm *cm, const struct arrival *arrival, struct cm_connection *connection)
{
    switch ((enum cm_attribute)arrival->message->attribute) {
    case CM_REP: on_rep(cm, arrival, connection); return;
    case CM_RTU: on_rtu(cm, arrival, connection); return;
    case CM_REJ: on_rej(cm, arrival, connection); return;
    case CM_MRA: on_mra(cm, arrival, connection); return;
    case CM_DREQ: on_dreq(cm, arrival, connection); return;
    case CM_DREP: on_drep(cm, arrival, connection); return;
    case CM_REQ:
    case CM_SIDR_REQ:
    case CM_SIDR_REP: break;
    }
    UNREACHABLE("an attribute that cm_decode does not let through");
}

static void dispatch(struct cm *cm, const struct arrival *arrival)
{
    const enum cm_attribute attribute = (enum cm_attribute)arrival->message->attribute;
    if (attribute == CM_REQ) {
        on_req(cm, arrival);
        return;
    }
    if (attribute == CM_SIDR_REQ) {
        on_sidr_req(cm, arrival);
        return;
    }
    if (attribute == CM_SIDR_REP) {
        on_sidr_rep(cm, arrival);
        return;
    }
    struct cm_connection *connection = cm_find(cm, arrival->message, arrival->source);
    if (connection == NULL) {
        on_unmatched(cm, arrival);
        return;
    }
    if (!cm_is_genuine(connection, arrival->message)) {
        cm->counters.unmatched++;
        return;
    }
    INVARIANTS(cm_connection_check(cm, connection));
    /* It names our communication ID, which only our answer told. */
    connection->unproven &= arrival->message->remote_id != connection->local_id;
    deliver(cm, arrival, connection);
    INVARIANTS(cm_connection_check(cm, connection));
}

void cm_on_message(struct cm *cm, const uint8_t source[16], const uint8_t destination[16],
                   const uint8_t *bytes, size_t count, struct cm_connection *spare,
                   struct instant now, struct cm_event *event)
{
    *event = (struct cm_event){.kind = CM_EVENT_NONE};
    cm->counters.received++;
    const struct arrival arrival = {.source = source,
                                    .destination = destination,
                                    .message = &cm->message,
                                    .spare = spare,
                                    .now = now,
                                    .event = event};
    const enum cm_verdict verdict = cm_decode(bytes, count, &cm->message);
    if (verdict != CM_GOOD) {
        cm->counters.malformed++;
        if (verdict == CM_WRONG_VERSION) {
            cm_decode_opening(bytes, &cm->message);
            refuse_version(cm, &arrival);
        }
        return;
    }
    dispatch(cm, &arrival);
    if (event->connection != NULL) {
        INVARIANTS(cm_connection_check(cm, event->connection));
    }
}
