/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_requester - the sending side of a reliable connection.
 *
 * Purpose    Turns posted work into request packets, acknowledgements and responses into progress,
 *            and losses into resending from the oldest unacknowledged PSN.
 * Inputs     rc_requester_on_ack, rc_requester_on_response, rc_requester_on_time.
 * Outputs    rc_requester_next (one packet per pull), rc_requester_completed (finished work).
 * Ownership  Caller owns the struct and the send queue. Nothing is allocated.
 * Time       `now` is an argument; retry_at and resume_at say when on_time or next is wanted.
 * Units      PSNs are 24 bits and wrap; flight is counted in bytes, and a packet for its policy's
 *            packet_cost beside its payload.
 * Limits     At most 2^23 - 1 PSNs in flight.
 * Source     IBTA Vol. 1: 9.7.3 (PSNs), 9.7.5 (ACK/NAK), 9.7.6 (retries), 9.7.7.2 (credits), 9.9.2
 *            (errors).
 */
#ifndef TRANSPORT_IBTA_RC_REQUESTER_H
#define TRANSPORT_IBTA_RC_REQUESTER_H

#include "base/check.h"
#include "base/instant.h"
#include "transport/common/work.h"
#include "transport/ibta/rc_policy.h"
#include "wire/roce.h"

/* A READ request asks for at most this many response packets at a time if the path limits the bytes
 * in flight. So responses are clocked by requests. */
#define RC_READ_CHUNK_PACKETS 16

enum rc_requester_mode {
    RC_REQUESTER_SENDING,
    RC_REQUESTER_WAITING_RNR, /* The peer asked for a pause; resume_at is valid. */
    RC_REQUESTER_STOPPED,     /* Failed: only flushes are left. */
};

struct rc_requester {
    struct psn next;    /* One past the newest PSN ever sent. */
    struct psn send;    /* PSN of the next packet; not `next` while resending. */
    struct psn unacked; /* Oldest PSN that is not acknowledged. */
    struct psn gap;     /* The last PSN whose missing response made us send again. */
    struct psn resumed; /* Where a READ was last asked to go on; else no PSN that matters. */
    struct psn asked;   /* One past the newest PSN that is to be answered: `unacked` if none is. */
    bool gap_known : 1;
    bool refusal : 1; /* A request was refused for good, but READs before it lack responses. */
    bool credits_known : 1; /* The responder limits us: credit_serial is valid. */
    bool window_shut : 1;   /* It was full, and a quarter of it is not free yet. */
    bool reads_wait : 1;    /* READs wait for an idle queue pair: the last idle one was fetched. */
    bool asks : 1;          /* The next packet asks for an acknowledgement (rc_requester_ask). */
    uint8_t mode : 2;       /* enum rc_requester_mode. */
    uint8_t retry_limit, retries_left;
    uint8_t rnr_limit, rnr_left;
    uint8_t reads_max, reads_out; /* READ requests and atomics without their last response. */
    uint8_t timeout_code : 5;
    bool writes_wait : 1; /* WRITEs of several packets, likewise (rc_requester_wait_to_place). */
    uint32_t mtu_bytes;
    uint32_t window_max; /* Bytes in flight the path can hold; 0: no limit. */
    /* The bytes that we allow in flight now: halved by a loss, grown by progress; 0: no limit. */
    uint32_t window;
    uint32_t cost;            /* Running total of flight bytes up to `next`. */
    uint32_t serial;          /* SSN of the newest message. */
    uint32_t credit_serial;   /* LSN: messages up to this SSN have a receive waiting. */
    struct instant retry_at;  /* INSTANT_NEVER: nothing is in flight. */
    struct instant resume_at; /* Valid while waiting out an RNR NAK. */
    const struct rc_policy *policy;
};

struct rc_requester_config {
    struct psn first_psn;
    uint32_t mtu_bytes;
    uint32_t window_bytes; /* 0: no limit. */
    uint8_t retry_limit, rnr_limit, reads_max, timeout_code;
    const struct rc_policy *policy; /* Its world's; in place as long as the requester is. */
};

/* Everything a pull can yield. */
struct rc_outgoing {
    struct work *work;
    enum roce_operation operation;
    struct psn psn;
    uint32_t offset; /* In the message, of the payload or of the bytes to read. */
    uint32_t bytes;  /* Payload, or bytes to read. */
    bool last;       /* Last packet of its message. */
    bool ack_request;
    bool resent; /* This PSN went out before. */
    bool alone;  /* Nothing else is in flight. */
};

/* The meaning of an arriving acknowledgement or response. */
enum rc_requester_verdict {
    RC_STALE,        /* Old or impossible PSN: nothing changes. */
    RC_PROGRESS,     /* Work may have completed; sending may go on. */
    RC_RESPONSE,     /* A response in order: its payload belongs at `offset` of `work`. */
    RC_IMPLIED_NAK,  /* It shows that a response was lost: resending begins. */
    RC_SEQUENCE_NAK, /* The peer misses a request: resending begins. */
    RC_RNR_NAK,      /* The peer has no receive: waiting begins. */
    RC_FAILED,    /* `work` ends with `status` when its turn comes, and nothing is sent any more. */
    RC_BAD_ORDER, /* Likewise: a response whose opcode does not fit the request or its place. */
    RC_BAD_LENGTH,   /* Likewise: a response of another length than the request asked for. */
    RC_BAD_SYNDROME, /* Likewise: a response whose AETH does not acknowledge. */
};

/* A READ response or an atomic acknowledgement. */
struct rc_response {
    struct psn psn;
    uint8_t operation; /* enum roce_operation. */
    uint8_t syndrome;  /* With `msn`: of the AETH. MIDDLE has none. */
    uint32_t msn;
    uint32_t bytes; /* Payload. */
};

struct rc_progress {
    enum rc_requester_verdict verdict;
    struct work *work;
    uint32_t offset;
    enum completion_status status;
};

void rc_requester_init(struct rc_requester *requester, const struct rc_requester_config *config);

/* The settings that a program may change while nothing is sent (SQD): limits of retries, timeout,
 * depth. */
void rc_requester_retune(struct rc_requester *requester, const struct rc_requester_config *config);

/* The next packet or local work (packets == 0: execute it now, in order). False: nothing may be
 * sent now. `draining`: no message is begun that has not been. */
bool rc_requester_next(struct rc_requester *requester, struct send_queue *queue, bool draining,
                       struct instant now, struct rc_outgoing *out);

/* The short way of rc_requester_next, for a SEND or WRITE of one packet that leaves for the first
 * time: its request, and whether the packet asks for an acknowledgement. rc_requester_plain says
 * whether that at the cursor, which is plain (work_is_plain), may leave so now; NULL: it takes the
 * long way. */
struct work *rc_requester_plain(const struct rc_requester *requester,
                                const struct send_queue *queue);
bool rc_requester_next_plain(struct rc_requester *requester, struct send_queue *queue,
                             struct work *work, struct instant now);

/* Is nothing in flight? */
static inline bool rc_requester_is_alone(const struct rc_requester *requester)
{
    return psn_equal(requester->unacked, requester->send);
}

/* Would rc_requester_next yield something now? Reads only. */
bool rc_requester_ready(const struct rc_requester *requester, const struct send_queue *queue,
                        bool draining, struct instant now);

MUST_USE struct rc_progress rc_requester_on_ack(struct rc_requester *requester,
                                                struct send_queue *queue, struct psn psn,
                                                uint8_t syndrome, uint32_t msn, struct instant now);

/* Judges opcode, AETH and length of the next response in order (IBTA 9.7.5.1, 9.9.2.4). */
MUST_USE struct rc_progress rc_requester_on_response(struct rc_requester *requester,
                                                     struct send_queue *queue,
                                                     const struct rc_response *response,
                                                     struct instant now);

/* No more requests may begin, so no later packet asks for an answer to those in flight. If no
 * answer to them is under way, the newest packet in flight is to go once more, and asks. True: it
 * is ready. */
bool rc_requester_ask(struct rc_requester *requester, struct send_queue *queue);
/* The packet that was pulled last asks for an acknowledgement, though it need not. */
void rc_requester_on_asked(struct rc_requester *requester);
/* The packet does not leave, because the payload of `work` is not there: the answer that it asked
 * for is not under way. */
void rc_requester_on_unsent(struct rc_requester *requester, const struct work *work);

/* The packet that was pulled last, `alone`, is done by other means, and no answer will come: a
 * READ request has its data, or a WRITE's payload is in its place. */
void rc_requester_on_fetched(struct rc_requester *requester, struct send_queue *queue,
                             struct instant now);
void rc_requester_on_placed(struct rc_requester *requester, struct send_queue *queue,
                            struct instant now);

/* WRITEs of several packets wait for an idle queue pair from now on, since the world can place them
 * then; one that it did not place ends that. */
void rc_requester_wait_to_place(struct rc_requester *requester);

/* The oldest request with packets in flight; NULL if there is none. */
struct work *rc_requester_oldest(const struct rc_requester *requester,
                                 const struct send_queue *queue);

/* When the requester wants to be told the time: rc_requester_on_time, unless it pauses, as the peer
 * asked it to; then it is ready again. */
struct instant rc_requester_deadline(const struct rc_requester *requester);
bool rc_requester_pauses(const struct rc_requester *requester);
/* Packets that are not acknowledged had left by then. */
struct instant rc_requester_waits_since(const struct rc_requester *requester);
/* The next timeout fails the requester. */
bool rc_requester_last_try(const struct rc_requester *requester);

/* The deadline was reached. RC_STALE: too early; RC_SEQUENCE_NAK: resending begins; RC_FAILED. */
MUST_USE struct rc_progress rc_requester_on_time(struct rc_requester *requester,
                                                 struct send_queue *queue, struct instant now);

/* The deadline was reached, but the peer has not read the packets that it is to answer: the timer
 * starts anew, with all retries. */
void rc_requester_wait_on(struct rc_requester *requester, struct instant now);

/* A rate may keep back the packets that are to be sent again. While it does, the timer starts anew,
 * and no retry is spent on it. */
void rc_requester_postpone(struct rc_requester *requester, struct instant now);

/* Starts the transport timer though nothing was sent: the link has no room, and a peer that never
 * makes any must be noticed like one that never answers. */
void rc_requester_blocked(struct rc_requester *requester, struct instant now);
/* Nothing waits for an answer or for room: the timer that runs is for nothing. */
void rc_requester_relax(struct rc_requester *requester);

/* The oldest request if it is finished, else NULL. The caller completes it and advances
 * queue->head. */
struct work *rc_requester_completed(const struct rc_requester *requester,
                                    const struct send_queue *queue);

/* Nothing is in flight and nothing half sent: the drained condition of SQD. */
bool rc_requester_drained(const struct rc_requester *requester, const struct send_queue *queue);

/* The requester's position, for observers. */
struct rc_standing {
    struct psn next, unacked; /* One past the newest PSN ever sent; the oldest not acknowledged. */
    bool resending;           /* The next packet went out before. */
    bool pauses;              /* The peer had no receive (RNR NAK). */
};
struct rc_standing rc_requester_standing(const struct rc_requester *requester);

/* The bytes in flight, as a window counts them, and the bytes that may be; 0: no limit. */
struct rc_load {
    uint32_t flight_bytes, window_bytes;
};
struct rc_load rc_requester_load(const struct rc_requester *requester,
                                 const struct send_queue *queue);

/* All invariants: at the entry and at the end of each call above that has the queue. */
void rc_requester_check(const struct rc_requester *requester, const struct send_queue *queue);

#endif
