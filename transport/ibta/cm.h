/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm - the InfiniBand connection manager: two QP 1s agree on the queue pairs of a connection.
 *
 * Purpose    The states of connections and of service ID resolutions (SIDR), with retransmission,
 *            duplicates, stray messages and time limits.
 * Inputs     cm_request and its neighbours from a program; cm_on_message; cm_on_time.
 * Outputs    cm_next_message; one event per message or expired timer; cm_deadline.
 * Ownership  Connections are the caller's memory, which stays in place until cm_release says so.
 * Units      Nanoseconds; GIDs of 16 bytes.
 * Limits     CM_STRAYS_MAX answers to messages that belong to nobody wait at a time.
 * Source     IBTA Vol. 1, 12.6 (messages: what an answer repeats of what it answers), 12.9 (state
 *            machines; 12.9.8.3.1: stale connections), 12.10 (REJ), 12.11 (SIDR); Linux,
 *            drivers/infiniband/core/cm.c.
 */
#ifndef TRANSPORT_IBTA_CM_H
#define TRANSPORT_IBTA_CM_H

#include "base/instant.h"
#include "base/list.h"
#include "base/prng.h"
#include "base/status.h"
#include "wire/cm.h"

#define CM_BUCKETS    1024
#define CM_STRAYS_MAX 256
#define CM_SAID_MAX   64

/* Time codes that we put into messages: an answer takes up to 4.3 s, a slow program up to 69 s.
 * While our program looks at a REP, we ask the peer to wait for 0.5 s, then each time for twice as
 * long. The peer repeats nothing meanwhile, and only its REP makes us repeat an RTU that was
 * lost. */
#define CM_RESPONSE_TIMEOUT      20
#define CM_SERVICE_TIMEOUT       24
#define CM_SERVICE_TIMEOUT_FIRST 17
#define CM_RETRIES               15

/* A program may connect a little before its peer listens, or before the peer knows that the queue
 * pair's earlier connection ended. A request that finds no listener, or is refused as stale, is
 * sent again after 8, 16, ... 128 ms, a quarter of a second in all. */
#define CM_REFUSALS_MAX     5
#define CM_REFUSAL_PAUSE_NS UINT64_C(8000000)

enum cm_state {
    CM_STATE_IDLE,
    CM_STATE_REQ_SENT,
    CM_STATE_REQ_RECEIVED,
    CM_STATE_REP_SENT,
    CM_STATE_REP_RECEIVED,
    CM_STATE_ESTABLISHED,
    CM_STATE_DREQ_SENT,
    CM_STATE_TIMEWAIT, /* Packets of the connection may still be on their way. */
    CM_STATE_SIDR_REQ_SENT,
    CM_STATE_SIDR_REQ_RECEIVED,
    CM_STATE_SIDR_REP_SENT,
};

struct cm_connection {
    struct list by_local, by_remote; /* In cm.local; in cm.remote if the peer asked us. */
    struct list by_qpn;              /* In cm.connected, while the peer's queue pair is ours. */
    struct list out;                 /* In cm.outbox: `message` is to be sent. */
    struct list timed;               /* In cm.timed: `deadline` counts. */
    uint8_t source[16], destination[16];
    uint32_t process; /* Which process behind `destination`; the world's number; 0: unknown. */
    uint64_t transaction_id; /* That of the message sent last. */
    uint64_t opened_by;      /* That of the REQ or SIDR_REQ: answers repeat it. */
    uint64_t service_id;
    uint32_t local_id, remote_id; /* 0: not yet known. */
    uint32_t local_qpn, remote_qpn;
    uint64_t peer_guid; /* If the peer asked: the CA GUID in its REQ. */
    uint8_t state;      /* enum cm_state. */
    bool asked;         /* Ours was the REQ. */
    bool abandoned;     /* By its owner: only the farewell is left. */
    bool unproven;      /* The peer asked, and has not said anything that only our answer told. */
    uint16_t credit;    /* Unproven: bytes that may still be sent there. */
    uint8_t tries_left;
    uint8_t refusals; /* That may pass, as often as the program was not told of one. */
    uint8_t patience; /* The service timeout that our next MRA about a REP names. */
    uint64_t wait_ns; /* Before the next retransmission. */
    struct instant deadline;
    uint8_t message[CM_MAD_BYTES]; /* Sent last: again, should the peer not have got it. */
};

struct cm_mad {
    uint8_t source[16], destination[16];
    uint32_t process; /* As in the connection. */
    uint8_t copies;   /* As many more of it may be sent unasked. */
    uint8_t bytes[CM_MAD_BYTES];
};

/* An answer that nobody acknowledges. */
struct cm_said {
    struct cm_mad mad;
    struct instant at; /* 0 ns: none. */
    uint8_t copies;    /* To be sent. */
};

struct cm_counters {
    uint64_t received, sent, retransmitted;
    uint64_t malformed;    /* Not a message we speak: cm_decode's verdict was not CM_GOOD. */
    uint64_t unmatched;    /* About a connection that is not, or no longer, here; or with a
                            * transaction ID, QPN or CA GUID that is not the connection's. */
    uint64_t out_of_state; /* Not expected in the connection's state; mostly duplicates. */
    uint64_t crowded_out;  /* No memory for a new connection, or no room for a stray answer. */
    uint64_t stale;        /* A REQ or REP with a queue pair that is connected already. */
    uint64_t unafforded;   /* Not sent: the limit of a peer that may not hear us was reached. */
};

struct cm {
    struct prng prng;
    uint32_t id_base;                  /* Upper 8 bits of our communication IDs. */
    uint64_t ca_guid;                  /* Host byte order. */
    struct list local[CM_BUCKETS];     /* Connections by our communication ID ... */
    struct list remote[CM_BUCKETS];    /* ... and by the peer's, if the peer asked. */
    struct list connected[CM_BUCKETS]; /* By the peer's QPN: REP_SENT, REP_RECEIVED, ESTABLISHED. */
    struct list outbox, timed;
    struct instant deadline; /* The earliest in `timed`, or earlier. */
    struct cm_mad strays[CM_STRAYS_MAX];
    uint32_t stray_head, stray_tail;  /* Free-running. */
    struct cm_said said[CM_SAID_MAX]; /* The latest. */
    uint32_t said_count;              /* Free-running. */
    struct cm_counters counters;
    struct cm_message message; /* The one an event speaks of. */
};

enum cm_event_kind {
    CM_EVENT_NONE,
    CM_EVENT_REQUESTED, /* The spare connection is in use now, in REQ_RECEIVED. */
    CM_EVENT_REPLIED,
    CM_EVENT_ESTABLISHED, /* The peer is ready: its RTU came. */
    CM_EVENT_REJECTED,
    CM_EVENT_UNREACHABLE,  /* The peer did not answer. */
    CM_EVENT_DISCONNECTED, /* By the peer (answered), or our own wish was answered or given up. */
    CM_EVENT_TIMEWAIT_OVER,
    CM_EVENT_SIDR_REQUESTED, /* The spare connection is in use now, in SIDR_REQ_RECEIVED. */
    CM_EVENT_SIDR_REPLIED,
    CM_EVENT_RELEASED, /* A connection that cm_release could not let go is the caller's again. */
};

struct cm_event {
    enum cm_event_kind kind;
    struct cm_connection *connection;
    /* The message that came, valid until the next call; NULL: a time ran out. */
    const struct cm_message *message;
};

/* `id_base`: the upper 8 bits that distinguish this manager from others behind the same GID. */
void cm_init(struct cm *cm, uint64_t seed, uint8_t id_base, uint64_t ca_guid);

void cm_connection_init(struct cm_connection *connection);

/* In these, `message` has its union's member and private data filled; the manager does the rest.
 * STATUS_INVALID: not in this state. */

/* IDLE: asks `destination` for a connection. */
MUST_USE enum status cm_request(struct cm *cm, struct cm_connection *connection,
                                const uint8_t source[16], const uint8_t destination[16],
                                struct cm_message *req, struct instant now);
/* REQ_RECEIVED: agrees. */
MUST_USE enum status cm_reply(struct cm *cm, struct cm_connection *connection,
                              struct cm_message *rep, struct instant now);
/* REP_RECEIVED: ready to use. */
MUST_USE enum status cm_confirm(struct cm *cm, struct cm_connection *connection,
                                struct cm_message *rtu, struct instant now);
/* REP_SENT: the peer's first packet came, which is as good as its RTU. */
MUST_USE enum status cm_note_established(struct cm *cm, struct cm_connection *connection);
/* REQ_RECEIVED: nobody has time for it now. The connection is IDLE; the peer gets no answer and
 * asks again. */
void cm_drop(struct cm *cm, struct cm_connection *connection);
/* REQ_RECEIVED, REP_RECEIVED: refuses. The connection is IDLE. */
MUST_USE enum status cm_reject(struct cm *cm, struct cm_connection *connection,
                               enum cm_reason reason, const void *private_data,
                               size_t private_bytes);
/* ESTABLISHED, REP_SENT: ends it. A connection that the peer ended is fine, too. */
MUST_USE enum status cm_disconnect(struct cm *cm, struct cm_connection *connection,
                                   struct instant now);
/* IDLE: asks for the UD queue pair behind a service ID. */
MUST_USE enum status cm_sidr_request(struct cm *cm, struct cm_connection *connection,
                                     const uint8_t source[16], const uint8_t destination[16],
                                     struct cm_message *request, struct instant now);
/* SIDR_REQ_RECEIVED: answers. */
MUST_USE enum status cm_sidr_reply(struct cm *cm, struct cm_connection *connection,
                                   struct cm_message *reply);

/* The owner lets go: the peer gets the message that fits the state. False: this farewell still has
 * to be repeated; CM_EVENT_RELEASED follows. */
MUST_USE bool cm_release(struct cm *cm, struct cm_connection *connection, struct instant now);

/* A MAD from `source` came in for our GID `destination`. `spare` is an initialised connection that
 * a request may take; NULL: requests are dropped. */
void cm_on_message(struct cm *cm, const uint8_t source[16], const uint8_t destination[16],
                   const uint8_t *bytes, size_t count, struct cm_connection *spare,
                   struct instant now, struct cm_event *event);

/* Answers a request (REQ, SIDR_REQ) that came in for a service that nobody here has. */
void cm_refuse(struct cm *cm, const uint8_t source[16], const uint8_t destination[16],
               const struct cm_message *request);

/* Time has passed. Call again until the event is CM_EVENT_NONE. */
void cm_on_time(struct cm *cm, struct instant now, struct cm_event *event);
struct instant cm_deadline(const struct cm *cm);

/* The process ends, and its owners have let go: DREQs that wait for an answer are repeated sooner,
 * and for 1.3 s at most. */
void cm_hurry(struct cm *cm, struct instant now);
/* Is there a DREQ that waits for an answer? */
bool cm_is_parting(const struct cm *cm);
/* Copies of answers (DREP, REJ, SIDR_REP) of the last seven seconds, which nobody will repeat when
 * their receiver asks again, come out of cm_next_copy. */
void cm_say_again(struct cm *cm, struct instant now);
bool cm_next_copy(struct cm *cm, struct cm_mad *mad);
/* A message was sent, which cm_say_again may repeat. */
void cm_note_sent(struct cm *cm, const struct cm_mad *mad, struct instant now);

/* The process `slot` behind the address `peer` is gone. Makes the message that a kernel would send
 * on its behalf about one of our connections with it, for cm_on_message. `at`: 0 at first, then its
 * value from the last call. False: no connection is left. */
MUST_USE bool cm_speak_for(const struct cm *cm, const uint8_t peer[16], uint32_t slot, uint32_t *at,
                           struct cm_mad *mad);

/* The world had no room for a request that came: it is counted, and its sender repeats it. */
void cm_note_crowded_out(struct cm *cm);

/* The next message to send; false if there is none. */
bool cm_next_message(struct cm *cm, struct cm_mad *mad);

#endif
