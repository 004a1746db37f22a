/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_responder - the receiving side of a reliable connection.
 *
 * Purpose    Turns arriving requests into executions in order, replays, and one NAK per gap.
 * Inputs     rc_responder_judge, then exactly one of _accept_* or _refuse, and _on_moved.
 * Outputs    rc_responder_next_reply: acknowledgements and READ/atomic responses in PSN order.
 * Ownership  Caller owns the struct and the array of resources.
 * Units      PSNs are 24 bits and wrap.
 * Limits     As many READs and atomics outstanding as there are resources.
 * Source     IBTA Vol. 1: 9.7.4 (request ladder), 9.7.5 (responses, duplicates),
 *            9.4.4-9.4.5 (READ, atomics). A FLUSH (A19) is to it an atomic without a result.
 */
#ifndef TRANSPORT_IBTA_RC_RESPONDER_H
#define TRANSPORT_IBTA_RC_RESPONDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "transport/common/psn.h"
#include "transport/ibta/incoming.h"
#include "wire/roce.h"

/* READs and atomics a responder can have outstanding: as many as Linux' Soft-RoCE, which perftest
 * asks for on both sides if it is not told otherwise. */
#define RC_RESOURCES_MAX 128

enum rc_stream {
    RC_STREAM_IN_ORDER,
    RC_STREAM_IN_GAP, /* A NAK for `expected` is due or went out; silence until that arrives. */
};

enum rc_verdict {
    RC_VERDICT_EXECUTE,       /* In order: judge memory, then accept or refuse. */
    RC_VERDICT_REPLAY,        /* A duplicate SEND or WRITE: acknowledge again, run nothing. */
    RC_VERDICT_REPLAY_READ,   /* A duplicate READ: respond again, once its key is judged again. */
    RC_VERDICT_REPLAY_ATOMIC, /* A duplicate atomic whose result is kept, or FLUSH (oA19-14). */
    RC_VERDICT_REPORT_GAP,    /* First sign of a loss: ask for it once. */
    RC_VERDICT_IN_GAP,        /* Beyond a gap already reported: dropped in silence. */
    RC_VERDICT_IGNORE,        /* A duplicate too old to answer. */
    RC_VERDICT_WRONG_ORDER,   /* Opcodes out of sequence: an invalid request. */
    RC_VERDICT_WRONG_LENGTH,  /* Payload that does not fit MTU or announced length: likewise. */
    RC_VERDICT_NO_RESOURCES,  /* More READs and atomics than agreed: likewise. */
};

enum rc_resource_state {
    RC_RESOURCE_DONE,    /* Answered; kept for a duplicate. */
    RC_RESOURCE_WAITING, /* An atomic whose memory move is not finished. */
    RC_RESOURCE_READY,   /* Responses are due, from `sent` on. */
};

/* A READ or atomic that was accepted. */
struct rc_resource {
    union {
        uint64_t address;  /* READ: the address that it asks for. */
        uint64_t original; /* Atomic: the value to return. */
    };
    struct psn first;
    uint32_t packets;
    uint32_t begun; /* Response the current round started with: 0, or where a resend began. */
    uint32_t sent;  /* The next response to pull. */
    uint32_t until; /* One past the last response of this round. */
    uint32_t key;
    uint32_t bytes;
    uint32_t srqn : 24; /* XRC: the key is judged in the domain of this shared receive queue. */
    uint32_t state : 2; /* enum rc_resource_state. */
    /* All responses were pulled once: a response that is due is a replay. */
    uint32_t answered : 1;
    uint32_t operation : 5; /* The request: a READ or an atomic. */
};

enum rc_reply_kind {
    RC_REPLY_NONE,
    RC_REPLY_ACK,
    RC_REPLY_NAK, /* Any AETH that is not an ACK. */
    RC_REPLY_READ_RESPONSE,
    RC_REPLY_ATOMIC,
};

struct rc_responder {
    struct psn expected;   /* PSN of the next request to execute. */
    uint32_t msn;          /* Messages executed, 24 bits. */
    uint8_t stream;        /* enum rc_stream. */
    uint8_t pending;       /* NONE, ACK or NAK: newest unsent reply, a later one replaces it. */
    uint8_t syndrome;      /* The syndrome of a pending NAK. */
    uint8_t resource_mask; /* The array has 2^n entries. */
    struct psn pending_psn;
    struct psn moved; /* One past the newest PSN whose memory moves are done. */
    /* In a gap: the farthest PSN that was not taken, `expected` or beyond. Before anything was
     * taken: also one that is behind `expected`. */
    struct psn dropped;
    struct incoming incoming;
    struct rc_resource *resources;
    uint8_t resource_limit; /* max_dest_rd_atomic. */
    uint8_t kept;           /* Entries that are kept: those before `end`. */
    uint8_t due;            /* Entries READY or WAITING. */
    uint8_t due_within; /* The number of entries before `end` that may be due: others are DONE. */
    uint32_t end;       /* Free-running: one past the newest entry. */
};

struct rc_reply {
    enum rc_reply_kind kind;
    struct psn psn;
    uint8_t syndrome; /* ACK, NAK. */
    uint32_t msn;
    enum roce_operation operation; /* READ responses. */
    const struct rc_resource *resource;
    uint32_t offset; /* READ responses: from the resource's address. */
    uint32_t bytes;
};

/* Entries of the array for `limit` resources. */
uint32_t rc_resource_entries(uint32_t limit);
void rc_responder_init(struct rc_responder *responder, struct psn expected, uint32_t mtu_bytes,
                       uint32_t resource_limit, struct rc_resource *resources);

/* Other memory, of rc_resource_entries(`room`), for READs and atomics: for at least as many as the
 * limit. */
void rc_responder_move(struct rc_responder *responder, uint32_t room,
                       struct rc_resource *resources);
/* From now on `limit` resources, for which there is room. The oldest READs and atomics are
 * forgotten, as if new READs had come. One that was never answered must not be among them. */
bool rc_responder_may_limit(const struct rc_responder *responder, uint32_t limit);
void rc_responder_set_limit(struct rc_responder *responder, uint32_t limit);

/* Decide about a request. Reads the state, changes nothing. */
MUST_USE enum rc_verdict rc_responder_judge(const struct rc_responder *responder,
                                            const struct roce_packet *packet);

/* The next request to execute, and whether a request is that one. */
struct psn rc_responder_expected(const struct rc_responder *responder);
bool rc_responder_is_next(const struct rc_responder *responder, const struct roce_packet *packet);
/* Was the request that came when `before` was expected found valid: in order, well-formed,
 * permitted? A SEND is that, too, when there is no receive yet. */
bool rc_responder_found_valid(const struct rc_responder *responder, struct psn before);

/* The short way of both for a SEND or WRITE of one packet, of as many bytes as it says: would it be
 * judged EXECUTE? Then it is accepted without its headers. */
bool rc_responder_takes_plain(const struct rc_responder *responder, struct psn psn, uint32_t bytes);
void rc_responder_accept_plain(struct rc_responder *responder, uint8_t opcode);

/* A SEND or WRITE packet that was judged EXECUTE and whose memory is allowed. The stream advances;
 * acknowledgements wait for rc_responder_on_moved. */
void rc_responder_accept(struct rc_responder *responder, const struct roce_packet *packet);

/* The memory of an accepted packet has been written; moves finish in PSN order. */
void rc_responder_on_moved(struct rc_responder *responder, struct psn psn, bool ack_request);

/* A READ or atomic that was judged EXECUTE and is allowed. An atomic is answered after
 * rc_responder_on_atomic; a READ at once, unless its requester has the data already. */
void rc_responder_accept_read(struct rc_responder *responder, const struct roce_packet *packet);
void rc_responder_accept_fetched(struct rc_responder *responder, const struct roce_packet *packet);
void rc_responder_accept_atomic(struct rc_responder *responder, const struct roce_packet *packet);
void rc_responder_on_atomic(struct rc_responder *responder, struct psn psn, uint64_t original);

/* Answers of the other verdicts; `psn` is that of the packet that is dropped. */
void rc_responder_replay(struct rc_responder *responder, struct psn psn);
/* Was nothing taken yet, because requests came with other PSNs, such as *came? */
bool rc_responder_waits(const struct rc_responder *responder, struct psn first, struct psn *came);
void rc_responder_replay_response(struct rc_responder *responder, const struct roce_packet *packet);
void rc_responder_report_gap(struct rc_responder *responder, struct psn psn);
void rc_responder_pass_over(struct rc_responder *responder, struct psn psn);

/* Refuses the request at `psn`: an RNR NAK (the stream waits for it again) or a fatal NAK. */
void rc_responder_refuse(struct rc_responder *responder, struct psn psn, uint8_t syndrome);

/* Is there anything to pull? */
bool rc_responder_ready(const struct rc_responder *responder);

/* Is the next reply a READ's response? */
bool rc_responder_next_is_data(const struct rc_responder *responder);

/* The short way of the next reply. owes_ack: it is an ACK, and no READ or atomic waits for its
 * responses; rc_responder_next_ack takes it, and returns its PSN. owes_other: it may be anything
 * else. */
bool rc_responder_owes_ack(const struct rc_responder *responder);
bool rc_responder_owes_other(const struct rc_responder *responder);
struct psn rc_responder_next_ack(struct rc_responder *responder);

/* The next reply; `credits` is the credit code ACKs carry. kind RC_REPLY_NONE: nothing now. */
struct rc_reply rc_responder_next_reply(struct rc_responder *responder, uint8_t credits);

/* All invariants: at the entry and at the end of each call above that changes something. */
void rc_responder_check(const struct rc_responder *responder);

#endif
