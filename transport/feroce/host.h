/* SPDX-License-Identifier: BSD-2-Clause
 *
 * host - the receiver's half of FERoCE's connection manager.
 *
 * Purpose    Opens queue pairs at boards, answers boards that open them, and closes them.
 * Inputs     What is wanted, datagrams of the connection manager, time.
 * Outputs    Messages with where they go; events that say what queue pairs have to do.
 * Units      Nanoseconds; IPv4 addresses in host order.
 * Limits     FEROCE_STREAMS_MAX streams; one OPEN under way at a time; FEROCE_ANSWERS_MAX answers
 *            wait, a request beyond them is lost and counted.
 * Source     feroce-rs (wire/feroce.h).
 *
 * A stream is one queue pair of the world's. It is given to the engine by an offer (a board may
 * take it) or by an open, and is the world's again after the event that ends it.
 *
 * Our choice, in part unlike feroce-rs: a board that finds no idle stream hears NO_QP. A datagram
 * of a wrong length ends an OPEN only if it comes from the board that was asked. Replies from other
 * addresses make an OPEN leave again STRANGERS times at most (host.c): each may take another queue
 * pair of the board. Messages with ack_valid are replies, the others requests.
 */
#ifndef TRANSPORT_FEROCE_HOST_H
#define TRANSPORT_FEROCE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"
#include "wire/feroce.h"

#define FEROCE_STREAMS_MAX 64
#define FEROCE_ANSWERS_MAX 64

struct feroce_host_config {
    enum feroce_cm_version cm_version;
    uint32_t ip;   /* The queue pairs': where boards send data. */
    uint16_t port; /* Where the host listens. */
};

enum feroce_stream_state {
    FEROCE_STREAM_UNUSED,    /* The world's. */
    FEROCE_STREAM_IDLE,      /* Offered: any board may open it. */
    FEROCE_STREAM_QUEUED,    /* Its OPEN waits for another stream's. */
    FEROCE_STREAM_OPENING,   /* OPEN is sent, or about to be. */
    FEROCE_STREAM_ACCEPTING, /* A board has opened it; the queue pair is not ready yet. */
    FEROCE_STREAM_OPEN,
    FEROCE_STREAM_LEAVING, /* The board has closed it; the queue pair is not stopped yet. */
    FEROCE_STREAM_CLOSING, /* CLOSE is sent, or about to be. */
};

enum feroce_host_event_kind {
    FEROCE_HOST_ACCEPT, /* Make the queue pair ready for `remote`: then ..._ready, or ..._refuse. */
    FEROCE_HOST_CONNECTED,   /* The OPEN was answered by `remote`. */
    FEROCE_HOST_PEER_CLOSED, /* Stop the queue pair: then feroce_host_stopped. */
    FEROCE_HOST_REFUSED,     /* The OPEN came to nothing: `reason`. The stream is unused. */
    FEROCE_HOST_CLOSED,      /* The CLOSE was answered; `reason` is NONE or the error. Unused. */
    FEROCE_HOST_GAVE_UP,     /* No answer, or none that counts. Unused. */
};

enum feroce_host_reason {
    FEROCE_HOST_NO_REASON,
    FEROCE_HOST_NO_QP, /* The board has no such queue pair, or no other one. */
    FEROCE_HOST_ERROR, /* The board says ERROR: to a CLOSE sent again, that it is closed already. */
    FEROCE_HOST_NAK,   /* The board has never had such a queue pair. */
    FEROCE_HOST_LENGTH, /* A datagram that is not 64 octets. */
    FEROCE_HOST_WRONG,  /* The last attempt ended with a reply that is none to this request. */
    FEROCE_HOST_SILENT, /* It ended with none. */
    FEROCE_HOST_REASONS,
};

const char *feroce_host_reason_name(enum feroce_host_reason reason);

struct feroce_host_event {
    enum feroce_host_event_kind kind;
    enum feroce_host_reason reason;
    uint32_t index;            /* The stream's. */
    struct feroce_side remote; /* ACCEPT, CONNECTED. */
};

/* The fate of a datagram. */
enum feroce_host_arrival {
    FEROCE_HOST_TAKEN,
    FEROCE_HOST_NOT_64,     /* Octets. */
    FEROCE_HOST_UNKNOWN,    /* A request other than OPEN and CLOSE. */
    FEROCE_HOST_FULL,       /* An OPEN, and no stream is idle: answered NO_QP. */
    FEROCE_HOST_REPEATED,   /* An OPEN that was answered before: answered again. */
    FEROCE_HOST_TOO_SOON,   /* Likewise, less than 100 ms ago, or not yet: silence. */
    FEROCE_HOST_NOT_OURS,   /* A CLOSE of a queue pair that is not open: answered NO_QP. */
    FEROCE_HOST_NOT_THEIRS, /* A CLOSE of another board's: answered NAK. */
    FEROCE_HOST_ENDING,     /* A CLOSE while the stream closes: silence. */
    FEROCE_HOST_MISFIT,     /* A wrong reply: it costs an OPEN one of its attempts. */
    FEROCE_HOST_STRANGER,   /* A reply from another address. */
    FEROCE_HOST_UNASKED,    /* A reply to nothing. */
    FEROCE_HOST_LOST,       /* Too many answers wait. */
    FEROCE_HOST_ARRIVALS,
};

const char *feroce_host_arrival_name(enum feroce_host_arrival arrival);

struct feroce_stream {
    enum feroce_stream_state state;
    struct feroce_side local, remote;
    uint32_t peer_ip; /* Where messages go: the address that datagrams come from, not loc_ip. */
    uint16_t peer_port;
    struct instant answered; /* When its OPEN was answered last. */
    /* Its request. */
    bool to_send;
    bool was_sent;
    uint8_t attempts; /* Left, beside the one under way. */
    uint8_t strangers;
    uint64_t attempt_ns;
    struct instant deadline;
};

struct feroce_answer {
    struct feroce_cm message;
    uint32_t ip;
    uint16_t port;
};

/* A stream that is opened, closed by its board and not yet looked at has two events. */
#define FEROCE_HOST_EVENTS_MAX (2 * FEROCE_STREAMS_MAX)

struct feroce_host {
    struct feroce_host_config config;
    struct feroce_stream streams[FEROCE_STREAMS_MAX];
    uint32_t next_open; /* The queue of OPENs goes on from here. */
    struct feroce_answer answers[FEROCE_ANSWERS_MAX];
    uint32_t first_answer, answer_count;
    struct feroce_host_event events[FEROCE_HOST_EVENTS_MAX];
    uint32_t first_event, event_count;
    uint64_t arrivals[FEROCE_HOST_ARRIVALS];
    uint64_t cm_version_suspect;
};

void feroce_host_init(struct feroce_host *host, const struct feroce_host_config *config);

/* The stream is unused. Its PSN is 0 and its IP the host's; those of `local` do not count. */
void feroce_host_offer(struct feroce_host *host, uint32_t index, const struct feroce_side *local);
/* Likewise; 2 attempts of 2 s. */
void feroce_host_open(struct feroce_host *host, uint32_t index, const struct feroce_side *local,
                      uint32_t ip, uint16_t port);
/* ACCEPT: feroce_host_ready: the queue pair is ready, and the board gets its answer.
 * feroce_host_refuse: there is no queue pair for it; the answer is ERROR, and the stream is
 * unused. */
void feroce_host_ready(struct feroce_host *host, uint32_t index, struct instant now);
void feroce_host_refuse(struct feroce_host *host, uint32_t index);
/* PEER_CLOSED: the queue pair is stopped. The board gets its answer, and the stream is unused. */
void feroce_host_stopped(struct feroce_host *host, uint32_t index);
/* CLOSE, once: 2 attempts of 2 s; in haste 1 of 0.5 s. False: the stream is unused at once, since
 * it was only offered, or its OPEN is waiting or under way. A queue pair that the board opens for
 * that OPEN stays open. */
bool feroce_host_close(struct feroce_host *host, uint32_t index, bool in_haste);

enum feroce_host_arrival feroce_host_on_cm(struct feroce_host *host, const uint8_t *bytes,
                                           size_t count, uint32_t from_ip, uint16_t from_port,
                                           struct instant now);
/* The next message. The world takes all events before it tells of the next datagram or deadline. */
MUST_USE bool feroce_host_next(struct feroce_host *host, struct instant now,
                               uint8_t out[FEROCE_CM_BYTES], uint32_t *ip, uint16_t *port);
struct instant feroce_host_deadline(const struct feroce_host *host);
void feroce_host_on_time(struct feroce_host *host, struct instant now);
MUST_USE bool feroce_host_next_event(struct feroce_host *host, struct feroce_host_event *event);

#endif
