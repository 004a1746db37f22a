/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm - requests of programs to the connection manager, and the messages that it sends.
 */
#include "transport/ibta/cm.h"

#include <string.h>

#include "transport/common/timing.h"
#include "transport/ibta/cm_internal.h"
#include "wire/roce.h"

/* A lost message is repeated soon at first, since most peers are near, then as late as the standard
 * demands: together longer than a minute. */
#define FIRST_WAIT_NS 250000000u

/* Twice the packet lifetime of RoCE and the peer's time to acknowledge: 4.096 us * 2^17. */
#define TIMEWAIT_CODE 17

/* Nothing tells whether an RTU arrived. A peer that lacks it asks for it by a second REP. But a
 * peer that does not know whether we hear it may not be allowed another REP. So the RTU is also
 * repeated without being asked for, after 0.25, 0.75 and 1.75 s. */
#define RTU_COPIES 3

/* A farewell that nobody waits for is repeated a few times only. */
#define FAREWELL_TRIES 3

/* -- Tables -------------------------------------------------------------------------------------*/

void cm_init(struct cm *cm, uint64_t seed, uint8_t id_base, uint64_t ca_guid)
{
    memset(cm, 0, sizeof(*cm));
    prng_init(&cm->prng, seed);
    cm->id_base = (uint32_t)id_base << 24;
    cm->ca_guid = ca_guid;
    for (uint32_t i = 0; i < CM_BUCKETS; i++) {
        list_init(&cm->local[i]);
        list_init(&cm->remote[i]);
        list_init(&cm->connected[i]);
    }
    list_init(&cm->outbox);
    list_init(&cm->timed);
    cm->deadline = INSTANT_NEVER;
}

void cm_note_crowded_out(struct cm *cm)
{
    cm->counters.crowded_out++;
}

void cm_connection_init(struct cm_connection *connection)
{
    memset(connection, 0, sizeof(*connection));
    list_init(&connection->by_local);
    list_init(&connection->by_remote);
    list_init(&connection->by_qpn);
    list_init(&connection->out);
    list_init(&connection->timed);
    connection->deadline = INSTANT_NEVER;
}

struct cm_connection *cm_find_local(struct cm *cm, uint32_t local_id, const uint8_t peer[16])
{
    struct list *head = cm_local_bucket(cm, local_id);
    for (struct list *node = head->next; node != head; node = node->next) {
        struct cm_connection *connection = CONTAINER_OF(node, struct cm_connection, by_local);
        if (connection->local_id == local_id && memcmp(connection->destination, peer, 16) == 0) {
            return connection;
        }
    }
    return NULL;
}

static bool is_sidr(const struct cm_connection *connection)
{
    return connection->state >= CM_STATE_SIDR_REQ_SENT;
}

struct cm_connection *cm_find_remote(struct cm *cm, uint32_t remote_id, const uint8_t peer[16],
                                     bool sidr)
{
    struct list *head = cm_remote_bucket(cm, remote_id, peer);
    for (struct list *node = head->next; node != head; node = node->next) {
        struct cm_connection *connection = CONTAINER_OF(node, struct cm_connection, by_remote);
        if (connection->remote_id == remote_id && is_sidr(connection) == sidr &&
            memcmp(connection->destination, peer, 16) == 0) {
            return connection;
        }
    }
    return NULL;
}

static bool id_is_taken(struct cm *cm, uint32_t id)
{
    struct list *head = cm_local_bucket(cm, id);
    for (struct list *node = head->next; node != head; node = node->next) {
        if (CONTAINER_OF(node, struct cm_connection, by_local)->local_id == id) {
            return true;
        }
    }
    return false;
}

void cm_enlist(struct cm *cm, struct cm_connection *connection)
{
    do {
        connection->local_id = cm->id_base | (uint32_t)(prng_next(&cm->prng) >> 40);
    } while (connection->local_id == 0 || id_is_taken(cm, connection->local_id));
    list_append(cm_local_bucket(cm, connection->local_id), &connection->by_local);
}

/* -- Time ---------------------------------------------------------------------------------------*/

void cm_set_deadline(struct cm *cm, struct cm_connection *connection, struct instant deadline)
{
    connection->deadline = deadline;
    if (list_empty(&connection->timed)) {
        list_append(&cm->timed, &connection->timed);
    }
    if (instant_before(deadline, cm->deadline)) {
        cm->deadline = deadline;
    }
}

void cm_clear_deadline(struct cm_connection *connection)
{
    connection->deadline = INSTANT_NEVER;
    list_remove(&connection->timed);
}

void cm_await(struct cm *cm, struct cm_connection *connection, uint8_t tries, struct instant now)
{
    connection->tries_left = tries;
    connection->wait_ns = FIRST_WAIT_NS;
    cm_set_deadline(cm, connection, instant_after(now, connection->wait_ns));
}

struct instant cm_deadline(const struct cm *cm)
{
    return cm->deadline;
}

void cm_enter_timewait(struct cm *cm, struct cm_connection *connection, struct instant now)
{
    connection->state = CM_STATE_TIMEWAIT;
    list_remove(&connection->by_qpn);
    cm_set_deadline(cm, connection, instant_after(now, ack_timeout_ns(TIMEWAIT_CODE)));
}

void cm_become_idle(struct cm_connection *connection)
{
    connection->state = CM_STATE_IDLE;
    connection->asked = false;
    connection->remote_id = 0;
    cm_clear_deadline(connection);
    list_remove(&connection->by_local);
    list_remove(&connection->by_remote);
    list_remove(&connection->by_qpn);
}

/* -- Sending ------------------------------------------------------------------------------------*/

/* Anybody can send a request from an address that is not its own: then our answers go to a
 * stranger. A peer has to prove that it hears us. Until then we send it no more than three times
 * the bytes that it sent (as QUIC does, RFC 9000, 8.1). Two thirds of that are for the manager's
 * messages, which are all of one size. One third is left to the packets of the NIC once a queue
 * pair is made. */
#define CREDIT_PER_REQUEST (2 * CM_MAD_BYTES)

/* Answers on behalf of no connection: one, and two copies. */
#define STRAY_COPIES 2
/* To peers that hear us. */
#define COPIES 3

void cm_credit(struct cm_connection *connection)
{
    if (connection->credit <= UINT16_MAX - CREDIT_PER_REQUEST) {
        connection->credit += CREDIT_PER_REQUEST;
    }
}

/* Before each message of a connection is sent: it is paid for. */
static bool pay(struct cm *cm, struct cm_connection *connection)
{
    if (!connection->unproven) {
        return true;
    }
    if (connection->credit < CM_MAD_BYTES) {
        cm->counters.unafforded++;
        return false;
    }
    connection->credit -= CM_MAD_BYTES;
    return true;
}

void cm_post_again(struct cm *cm, struct cm_connection *connection)
{
    if (list_empty(&connection->out)) {
        list_append(&cm->outbox, &connection->out);
    }
}

void cm_post(struct cm *cm, struct cm_connection *connection, enum cm_attribute attribute,
             struct cm_message *message)
{
    message->transaction_id = connection->transaction_id;
    message->attribute = (uint16_t)attribute;
    message->attribute_modifier = 0;
    message->local_id = connection->local_id;
    message->remote_id = connection->remote_id;
    cm_encode(message, connection->message);
    cm_post_again(cm, connection);
}

static void post_alone(struct cm *cm, const uint8_t source[16], const uint8_t destination[16],
                       const struct cm_message *message, uint8_t copies)
{
    if (cm->stray_tail - cm->stray_head == CM_STRAYS_MAX) {
        cm->counters.crowded_out++;
        return;
    }
    struct cm_mad *mad = &cm->strays[cm->stray_tail++ % CM_STRAYS_MAX];
    memcpy(mad->source, source, 16);
    memcpy(mad->destination, destination, 16);
    mad->process = 0;
    mad->copies = copies;
    cm_encode(message, mad->bytes);
}

void cm_post_stray(struct cm *cm, const uint8_t source[16], const uint8_t destination[16],
                   const struct cm_message *message)
{
    post_alone(cm, source, destination, message, STRAY_COPIES);
}

/* A copy of a paid message is paid for, too. */
static void write_mad(struct cm_connection *connection, struct cm_mad *mad)
{
    const bool copied = !connection->unproven || connection->credit >= CM_MAD_BYTES;
    mad->copies = connection->unproven ? copied : COPIES;
    memcpy(mad->source, connection->source, 16);
    memcpy(mad->destination, connection->destination, 16);
    mad->process = connection->process;
    memcpy(mad->bytes, connection->message, sizeof(mad->bytes));
}

bool cm_next_message(struct cm *cm, struct cm_mad *mad)
{
    if (cm->stray_head != cm->stray_tail) {
        *mad = cm->strays[cm->stray_head++ % CM_STRAYS_MAX];
        cm->counters.sent++;
        return true;
    }
    struct list *node;
    while ((node = list_pop(&cm->outbox)) != NULL) {
        struct cm_connection *connection = CONTAINER_OF(node, struct cm_connection, out);
        if (pay(cm, connection)) {
            write_mad(connection, mad);
            cm->counters.sent++;
            return true;
        }
    }
    return false;
}

/* The connection goes: its last message is sent on its own. */
static void detach_message(struct cm *cm, struct cm_connection *connection)
{
    if (list_empty(&connection->out)) {
        return;
    }
    list_remove(&connection->out);
    if (!pay(cm, connection)) {
        return;
    }
    if (cm->stray_tail - cm->stray_head == CM_STRAYS_MAX) {
        cm->counters.crowded_out++;
        return;
    }
    struct cm_mad *mad = &cm->strays[cm->stray_tail++ % CM_STRAYS_MAX];
    write_mad(connection, mad);
}

void cm_post_rej(struct cm *cm, struct cm_connection *connection, enum cm_about about,
                 enum cm_reason reason, const void *private_data, size_t private_bytes)
{
    struct cm_message rej = {.rej = {.about = (uint8_t)about, .reason = (uint16_t)reason}};
    if (reason == CM_REASON_TIMEOUT) {
        /* A peer that gave up waiting never learned our communication ID: the GUID says who we
         * are. */
        for (size_t i = 0; i < 8; i++) {
            rej.rej.information[i] = (uint8_t)(cm->ca_guid >> (56 - 8 * i));
        }
        rej.rej.information_bytes = 8;
    }
    if (private_bytes > 0) {
        CHECK(private_bytes <= CM_REJ_PRIVATE_BYTES);
        memcpy(rej.private_data, private_data, private_bytes);
    }
    cm_post(cm, connection, CM_REJ, &rej);
}

/* -- Requests of programs -----------------------------------------------------------------------*/

/* The lower half is the communication ID. The upper half is random: it tells earlier connections
 * with this ID apart, and nobody who has not seen the message can guess it. */
static uint64_t draw_transaction(struct cm *cm, const struct cm_connection *connection)
{
    return (prng_next(&cm->prng) & ~UINT64_C(0xffffffff)) | connection->local_id;
}

static void begin(struct cm *cm, struct cm_connection *connection, const uint8_t source[16],
                  const uint8_t destination[16])
{
    memcpy(connection->source, source, 16);
    memcpy(connection->destination, destination, 16);
    cm_enlist(cm, connection);
    connection->asked = true;
    connection->unproven = false;
    connection->refusals = 0;
    connection->remote_id = 0;
    connection->transaction_id = draw_transaction(cm, connection);
    connection->opened_by = connection->transaction_id;
}

enum status cm_request(struct cm *cm, struct cm_connection *connection, const uint8_t source[16],
                       const uint8_t destination[16], struct cm_message *req, struct instant now)
{
    INVARIANTS(cm_connection_check(cm, connection));
    if (connection->state != CM_STATE_IDLE) {
        return STATUS_INVALID;
    }
    begin(cm, connection, source, destination);
    connection->service_id = req->req.service_id;
    connection->local_qpn = req->req.qpn & ROCE_24_BITS;
    req->req.ca_guid = cm->ca_guid;
    req->req.remote_response_timeout = CM_RESPONSE_TIMEOUT;
    req->req.local_response_timeout = CM_RESPONSE_TIMEOUT;
    req->req.max_cm_retries = CM_RETRIES;
    req->req.pkey = 0xffff;
    memcpy(req->req.primary.local_gid, source, 16);
    memcpy(req->req.primary.remote_gid, destination, 16);
    req->req.primary.local_lid = CM_PERMISSIVE_LID;
    req->req.primary.remote_lid = CM_PERMISSIVE_LID;
    cm_post(cm, connection, CM_REQ, req);
    connection->state = CM_STATE_REQ_SENT;
    cm_await(cm, connection, CM_RETRIES, now);
    INVARIANTS(cm_connection_check(cm, connection));
    return STATUS_OK;
}

enum status cm_reply(struct cm *cm, struct cm_connection *connection, struct cm_message *rep,
                     struct instant now)
{
    INVARIANTS(cm_connection_check(cm, connection));
    if (connection->state != CM_STATE_REQ_RECEIVED) {
        return STATUS_INVALID;
    }
    connection->local_qpn = rep->rep.qpn & ROCE_24_BITS;
    rep->rep.ca_guid = cm->ca_guid;
    cm_post(cm, connection, CM_REP, rep);
    connection->state = CM_STATE_REP_SENT;
    cm_note_connected(cm, connection);
    cm_await(cm, connection, CM_RETRIES, now);
    INVARIANTS(cm_connection_check(cm, connection));
    return STATUS_OK;
}

enum status cm_confirm(struct cm *cm, struct cm_connection *connection, struct cm_message *rtu,
                       struct instant now)
{
    INVARIANTS(cm_connection_check(cm, connection));
    if (connection->state != CM_STATE_REP_RECEIVED) {
        return STATUS_INVALID;
    }
    cm_post(cm, connection, CM_RTU, rtu);
    connection->state = CM_STATE_ESTABLISHED;
    cm_await(cm, connection, RTU_COPIES, now);
    INVARIANTS(cm_connection_check(cm, connection));
    return STATUS_OK;
}

enum status cm_note_established(struct cm *cm, struct cm_connection *connection)
{
    INVARIANTS(cm_connection_check(cm, connection));
    if (connection->state != CM_STATE_REP_SENT) {
        return STATUS_INVALID;
    }
    connection->state = CM_STATE_ESTABLISHED;
    connection->unproven = false;
    cm_clear_deadline(connection);
    INVARIANTS(cm_connection_check(cm, connection));
    return STATUS_OK;
}

void cm_drop(struct cm *cm, struct cm_connection *connection)
{
    INVARIANTS(cm_connection_check(cm, connection));
    CHECK(connection->state == CM_STATE_REQ_RECEIVED);
    list_remove(&connection->out);
    cm_become_idle(connection);
    INVARIANTS(cm_connection_check(cm, connection));
}

enum status cm_reject(struct cm *cm, struct cm_connection *connection, enum cm_reason reason,
                      const void *private_data, size_t private_bytes)
{
    INVARIANTS(cm_connection_check(cm, connection));
    if (private_bytes > CM_REJ_PRIVATE_BYTES) {
        return STATUS_INVALID;
    }
    switch ((enum cm_state)connection->state) {
    case CM_STATE_REQ_RECEIVED:
        cm_post_rej(cm, connection, CM_ABOUT_REQ, reason, private_data, private_bytes);
        break;
    case CM_STATE_REP_RECEIVED:
        cm_post_rej(cm, connection, CM_ABOUT_REP, reason, private_data, private_bytes);
        break;
    case CM_STATE_IDLE:
    case CM_STATE_REQ_SENT:
    case CM_STATE_REP_SENT:
    case CM_STATE_ESTABLISHED:
    case CM_STATE_DREQ_SENT:
    case CM_STATE_TIMEWAIT:
    case CM_STATE_SIDR_REQ_SENT:
    case CM_STATE_SIDR_REQ_RECEIVED:
    case CM_STATE_SIDR_REP_SENT: return STATUS_INVALID;
    }
    cm_become_idle(connection);
    INVARIANTS(cm_connection_check(cm, connection));
    return STATUS_OK;
}

static void send_dreq(struct cm *cm, struct cm_connection *connection, uint8_t tries,
                      struct instant now)
{
    struct cm_message dreq = {.dreq_qpn = connection->remote_qpn};
    connection->transaction_id = draw_transaction(cm, connection);
    cm_post(cm, connection, CM_DREQ, &dreq);
    connection->state = CM_STATE_DREQ_SENT;
    list_remove(&connection->by_qpn);
    cm_await(cm, connection, tries, now);
}

enum status cm_disconnect(struct cm *cm, struct cm_connection *connection, struct instant now)
{
    INVARIANTS(cm_connection_check(cm, connection));
    switch ((enum cm_state)connection->state) {
    case CM_STATE_ESTABLISHED:
    case CM_STATE_REP_SENT:
        send_dreq(cm, connection, CM_RETRIES, now);
        INVARIANTS(cm_connection_check(cm, connection));
        return STATUS_OK;
    case CM_STATE_DREQ_SENT:
    case CM_STATE_TIMEWAIT: return STATUS_OK;
    case CM_STATE_IDLE:
    case CM_STATE_REQ_SENT:
    case CM_STATE_REQ_RECEIVED:
    case CM_STATE_REP_RECEIVED:
    case CM_STATE_SIDR_REQ_SENT:
    case CM_STATE_SIDR_REQ_RECEIVED:
    case CM_STATE_SIDR_REP_SENT: return STATUS_INVALID;
    }
    UNREACHABLE("a state outside its enum");
}

enum status cm_sidr_request(struct cm *cm, struct cm_connection *connection,
                            const uint8_t source[16], const uint8_t destination[16],
                            struct cm_message *request, struct instant now)
{
    INVARIANTS(cm_connection_check(cm, connection));
    if (connection->state != CM_STATE_IDLE) {
        return STATUS_INVALID;
    }
    begin(cm, connection, source, destination);
    connection->service_id = request->sidr_req.service_id;
    request->sidr_req.pkey = 0xffff;
    cm_post(cm, connection, CM_SIDR_REQ, request);
    connection->state = CM_STATE_SIDR_REQ_SENT;
    cm_await(cm, connection, CM_RETRIES, now);
    INVARIANTS(cm_connection_check(cm, connection));
    return STATUS_OK;
}

/* A SIDR_REP repeats the request's ID where other messages have the sender's own. */
static void post_sidr_rep(struct cm *cm, struct cm_connection *connection, struct cm_message *reply)
{
    const uint32_t own = connection->local_id;
    connection->local_id = connection->remote_id;
    cm_post(cm, connection, CM_SIDR_REP, reply);
    connection->local_id = own;
}

enum status cm_sidr_reply(struct cm *cm, struct cm_connection *connection, struct cm_message *reply)
{
    INVARIANTS(cm_connection_check(cm, connection));
    if (connection->state != CM_STATE_SIDR_REQ_RECEIVED) {
        return STATUS_INVALID;
    }
    reply->sidr_rep.service_id = connection->service_id;
    post_sidr_rep(cm, connection, reply);
    connection->state = CM_STATE_SIDR_REP_SENT;
    INVARIANTS(cm_connection_check(cm, connection));
    return STATUS_OK;
}

/* -- Letting go ---------------------------------------------------------------------------------*/

/* A peer that has not got our REP heeds a REJ of its REQ, but no DREQ; one that has, and has not
 * sent its RTU, heeds a REJ that names both IDs, as Linux sends it. */
static void take_back_rep(struct cm *cm, struct cm_connection *connection)
{
    struct cm_message rej = {.transaction_id = connection->opened_by,
                             .attribute = CM_REJ,
                             .local_id = connection->local_id,
                             .remote_id = connection->remote_id,
                             .rej = {.reason = CM_REASON_CONSUMER}};
    const enum cm_about abouts[] = {CM_ABOUT_REQ, CM_ABOUT_OTHER};
    for (size_t i = 0; i < COUNT_OF(abouts) && pay(cm, connection); i++) {
        rej.rej.about = (uint8_t)abouts[i];
        post_alone(cm, connection->source, connection->destination, &rej,
                   connection->unproven ? 0 : COPIES);
    }
}

static void say_farewell(struct cm *cm, struct cm_connection *connection, struct instant now)
{
    switch ((enum cm_state)connection->state) {
    case CM_STATE_REQ_SENT:
        cm_post_rej(cm, connection, CM_ABOUT_OTHER, CM_REASON_TIMEOUT, NULL, 0);
        return;
    case CM_STATE_REQ_RECEIVED:
        cm_post_rej(cm, connection, CM_ABOUT_REQ, CM_REASON_CONSUMER, NULL, 0);
        return;
    case CM_STATE_REP_RECEIVED:
        cm_post_rej(cm, connection, CM_ABOUT_REP, CM_REASON_CONSUMER, NULL, 0);
        return;
    case CM_STATE_REP_SENT:
        take_back_rep(cm, connection);
        send_dreq(cm, connection, FAREWELL_TRIES, now);
        return;
    case CM_STATE_ESTABLISHED: send_dreq(cm, connection, FAREWELL_TRIES, now); return;
    case CM_STATE_SIDR_REQ_RECEIVED: {
        struct cm_message reply = {
            .sidr_rep = {.status = CM_SIDR_REJECTED, .service_id = connection->service_id}};
        post_sidr_rep(cm, connection, &reply);
        return;
    }
    case CM_STATE_IDLE:
    case CM_STATE_DREQ_SENT:
    case CM_STATE_TIMEWAIT:
    case CM_STATE_SIDR_REQ_SENT:
    case CM_STATE_SIDR_REP_SENT: return;
    }
    UNREACHABLE("a state outside its enum");
}

bool cm_release(struct cm *cm, struct cm_connection *connection, struct instant now)
{
    INVARIANTS(cm_connection_check(cm, connection));
    say_farewell(cm, connection, now);
    if (connection->state == CM_STATE_DREQ_SENT) {
        connection->abandoned = true;
        if (connection->tries_left > FAREWELL_TRIES) {
            connection->tries_left = FAREWELL_TRIES;
        }
        INVARIANTS(cm_connection_check(cm, connection));
        return false;
    }
    detach_message(cm, connection);
    cm_become_idle(connection);
    INVARIANTS(cm_connection_check(cm, connection));
    return true;
}
