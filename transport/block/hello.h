/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hello - the negotiation by which a stream of a reliable connection becomes one of blocks.
 *
 * Purpose    The requester asks (HELLO) at a point where none of its PSNs is outstanding; the
 *            responder agrees (WELCOME) if it stands at the same point. A requester that hears
 *            nothing goes on with RC from the same PSN.
 * Inputs     hello_ask_begin, hello_ask_on_welcome, hello_ask_on_time; hello_judge.
 * Outputs    hello_ask_due, hello_answer_due: a HELLO, a WELCOME is to leave.
 * Time       An argument; hello_ask_deadline says when hello_ask_on_time is wanted.
 * Units      Nanoseconds, PSNs.
 * Limits     Five HELLOs, unless the stream insists.
 * Source     docs/block-transport.md, "How a stream begins".
 */
#ifndef TRANSPORT_BLOCK_HELLO_H
#define TRANSPORT_BLOCK_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"
#include "transport/common/psn.h"

/* The second HELLO leaves 5 ms after the first one. Each further pause is twice as long, up to
 * HELLO_PAUSE_MAX_NS. */
#define HELLO_SECOND_NS    UINT64_C(5000000)
#define HELLO_PAUSE_MAX_NS (64 * HELLO_SECOND_NS)
/* The requester gives up HELLO_LAST_NS after the first HELLO: on a busy machine a process may wait
 * tens of milliseconds for a processor, and a stream that is given up is RC for long. */
#define HELLO_LAST_NS UINT64_C(100000000)
/* A link that did not answer is not asked again for 10 s. */
#define HELLO_SILENCE_NS UINT64_C(10000000000)

/* -- The requester ------------------------------------------------------------------------------*/

enum hello_asking {
    HELLO_NOT_ASKED, /* The stream is RC. */
    HELLO_ASKED,     /* No request leaves until the stream is RC or blocks. */
    HELLO_AGREED,    /* The stream is blocks. There is no way back. HELLO is repeated until a
                        block is known to be executed. Until then a late HELLO of an earlier stream,
                        at the same PSN, may take the responder's session away. */
};

struct hello_ask {
    uint8_t state;        /* enum hello_asking. */
    bool due;             /* A HELLO is to leave now. */
    bool insists;         /* The link has spoken blocks: HELLO goes on as a lost packet would. */
    bool clock_runs;      /* `began` is valid. */
    bool confirmed;       /* The responder executed a block. */
    uint8_t sent;         /* HELLOs; stops at 255. */
    uint32_t nonce;       /* The newest question's. */
    struct psn psn;       /* The stream's next one. */
    struct instant began; /* When the first one left, or found no room to leave. */
    struct instant left;  /* When the newest HELLO left. */
    struct instant next;  /* INSTANT_NEVER while one is due. */
    uint64_t limit_ns;    /* One that insists fails this long after `began`; UINT64_MAX: never. */
};

/* A HELLO is to leave. `nonce` is the caller's choice; nobody else can guess it. */
void hello_ask_begin(struct hello_ask *ask, uint32_t nonce, struct psn psn, bool insists,
                     uint64_t limit_ns);
/* The link has no room for the HELLO that is due. The time to give up runs meanwhile. */
void hello_ask_blocked(struct hello_ask *ask, struct instant now);
/* The HELLO that was due has left. */
void hello_ask_sent(struct hello_ask *ask, struct instant now);

/* The HELLO that is due asks for other terms, by another nonce: a WELCOME to an earlier one is too
 * late. */
void hello_ask_otherwise(struct hello_ask *ask, uint32_t nonce);

struct instant hello_ask_deadline(const struct hello_ask *ask);

enum hello_outcome {
    HELLO_GOES_ON,    /* Nothing, or a HELLO is due again. */
    HELLO_FALLS_BACK, /* Nobody answers: the stream is RC, from the PSN where it stood. */
    HELLO_FAILS,      /* One that insisted waited too long. */
};
/* The next on_time would be HELLO_FAILS. A peer that has not read the question cannot have answered
 * it: then hello_ask_wait_on starts its time anew. */
MUST_USE bool hello_ask_is_overdue(const struct hello_ask *ask, struct instant now);
void hello_ask_wait_on(struct hello_ask *ask, struct instant now);
MUST_USE enum hello_outcome hello_ask_on_time(struct hello_ask *ask, struct instant now);

/* True: the peer answered that it will not have blocks on this stream, which is RC from the PSN
 * where it stood. False: that is too late, or answers no question of this stream. */
MUST_USE bool hello_ask_on_refusal(struct hello_ask *ask, uint32_t nonce, struct psn psn);
/* True: the stream is blocks from now on. False: the WELCOME is too late, or answers no question of
 * this stream, or was agreed before. */
MUST_USE bool hello_ask_on_welcome(struct hello_ask *ask, uint32_t nonce, struct psn psn);
/* The round trip of the answer that came just now, if it answers the newest HELLO. On a route of
 * more than 5 ms it may be longer (an answer to an earlier HELLO), which costs one probe too many.
 * At least 1 ns: a caller that reads the clock seldom may have read it once for both. */
uint64_t hello_ask_trip_ns(const struct hello_ask *ask, struct instant now);

/* The responder executed a block of the session. */
void hello_ask_confirm(struct hello_ask *ask);

/* -- The responder ------------------------------------------------------------------------------*/

struct hello_answer {
    bool session; /* `nonce` is the session's. */
    bool due;     /* A WELCOME is to leave. */
    bool refuses; /* One that refuses `refused` is to leave. */
    uint32_t nonce;
    struct psn psn;
    struct hello_question {
        uint32_t nonce;
        struct psn psn;
        uint32_t sender_qpn;
        uint8_t mtu_code;
        uint8_t reads; /* READs and atomics that it asks for at a time. */
    } refused;
};

static inline bool hello_answer_due(const struct hello_answer *answer)
{
    return answer->due || answer->refuses;
}

/* Where the responder stands. */
struct hello_standing {
    bool serves;   /* A state in which requests are executed: RTR, RTS, SQD. */
    bool between;  /* No message is half received. */
    bool executed; /* A block of the session was executed. */
    struct psn expected;
    uint32_t peer_qpn;
    uint8_t mtu_code;
    uint8_t reads; /* It answers at a time. */
};

enum hello_verdict {
    HELLO_NEW,   /* A session begins, in place of an unused one if there was one. */
    HELLO_AGAIN, /* It is welcomed once more: the WELCOME was lost. */
    HELLO_WRONG_STATE,
    HELLO_WRONG_QPN,
    HELLO_WRONG_MTU,
    HELLO_WRONG_PSN,
    HELLO_WRONG_READS,
    HELLO_MIDST,    /* A message is half received. */
    HELLO_EXECUTED, /* The session is in use; this is another one's HELLO. */
};
MUST_USE enum hello_verdict hello_judge(const struct hello_answer *answer,
                                        const struct hello_question *question,
                                        const struct hello_standing *standing);
/* The verdict was HELLO_NEW or HELLO_AGAIN. */
void hello_accept(struct hello_answer *answer, const struct hello_question *question);
/* Any other verdict, while the queue pair executes requests: the peer is told to go on by RC. RC's
 * packets show whether the two halves fit each other. */
void hello_refuse(struct hello_answer *answer, const struct hello_question *question);
/* A request of RC came where the session would have begun: the peer fell back. Or reset. */
void hello_drop(struct hello_answer *answer);

#endif
