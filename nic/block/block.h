/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block - reliable connections by blocks, as the NIC's seam (nic/engine.h) asks for them; for the
 * files of this folder.
 *
 * Purpose    A queue pair of ENGINE_RC_OR_BLOCKS is a reliable connection whose two streams (our
 *            requests, the peer's requests) are each RoCEv2's RC or blocks. Both begin as RC; a
 *            HELLO that is welcomed turns one into blocks, at a point where no PSN is outstanding.
 * Inputs     The seam's verbs (streams.h), and packets of the block transport (wire/block.h).
 * Outputs    Departures, moves, completions, as those of nic/ibta/.
 * Ownership  struct block_streams lies in memory that the queue pair took from the NIC's pool. A
 *            queue pair without it is of ENGINE_RC.
 * Threads    The NIC's caller.
 * Time       An argument wherever it matters.
 * Units      Nanoseconds, bytes, block numbers (BN).
 * Limits     struct block_limits.
 * Source     docs/block-transport.md; docs/decisions/0025.
 *
 * Who does what: block.c (the seam's verbs, which stream is which), block_arrival.c (whose a packet
 * is), block_watch.c (when RC is not good enough), block_hello.c (negotiation), block_challenge.c
 * (whether the peer receives where it says), block_send.c (our requests, on
 * transport/block/requester.h), block_receive.c (the peer's, on transport/block/responder.h).
 */
#ifndef NIC_BLOCK_BLOCK_H
#define NIC_BLOCK_BLOCK_H

#include "nic/block/streams.h"
#include "nic/ibta/ibta.h"
#include "transport/block/hello.h"
#include "wire/block.h"

/* A packet of the block transport, decoded; its BTH's queue pair exists. */
struct block_arrival {
    struct block_packet packet;
    struct gid source, destination;
    struct instant at; /* When it came in. */
    bool marked;       /* Congestion was met on its way (ECN). */
};

/* What two ends agreed on for one stream. */
struct block_terms {
    uint32_t session;
    uint32_t window;  /* Blocks: W_blk. */
    uint32_t reads;   /* READ blocks asked for and not complete: R_blk. */
    uint64_t trip_ns; /* How long HELLO took; 0: not known. The first timers come from it. */
    uint8_t path_count;
    bool shared_receives; /* The responder's receives are in a shared queue. */
};

/* A queue pair's memory for blocks (qp->block). The halves' own state is opaque here: each tells
 * how many bytes it takes (a multiple of 64). A session finds there what the one before left, or
 * another queue pair. */
struct block_streams {
    struct block_sender *sender;     /* block_send.c */
    struct block_receiver *receiver; /* block_receive.c */
    struct hello_ask ask;            /* Our requests are blocks: HELLO_AGREED. */
    struct hello_answer answer;      /* The peer's are: there is a session. */
    bool stays_rc;                   /* The peer refused; or nobody answered (transport block). */
    struct block_terms sending, receiving;
};

size_t block_send_bytes(const struct nic_limits *limits);
size_t block_receive_bytes(const struct nic_limits *limits);
/* There was no session. */
void block_receive_init(struct block_receiver *receiver);
/* What all queue pairs of a NIC share: contexts, held payloads (nic->block_shared). Zeroed, 64-byte
 * aligned. */
size_t block_shared_bytes(const struct nic_limits *limits);
void block_shared_init(struct nic *nic, void *memory);

/* -- block.c ------------------------------------------------------------------------------------*/

/* A queue pair of ENGINE_RC takes memory, and is of ENGINE_RC_OR_BLOCKS. False: there is none left,
 * which is counted; the queue pair goes on by RC. */
bool block_join(struct qp *qp);

/* A packet is complete: its headers, whom it is for. The payload's segments, if it has any, were
 * gathered before. */
void block_seal(struct qp *qp, const struct block_packet *packet, struct nic_departure *departure);

/* -- block_end.c: as the services of these names (nic/service.h), and as block_enter_error. */
void block_withdraw(struct qp *qp);
void block_fail_work(struct qp *qp, struct work *work, enum completion_status status);
bool block_fail_oldest(struct qp *qp);
/* The stream's contexts, held payloads and taken receives are given back: reset, destruction, and
 * entering the error state (whose answers go on: docs/block-transport.md, "Refusals"). */
void block_receive_withdraw(struct qp *qp);

/* Something happened to the queue pair: what follows is due, or its time will come. */
void block_went_on(struct qp *qp, struct instant now);

/* The route of path `path` of `paths`, which has left its route `turns` times. */
uint8_t block_route_of(const struct qp *qp, uint32_t path, uint32_t paths, uint32_t turns);

static inline bool block_is_spoken(const struct nic_limits *limits)
{
    return limits->block.transport != NIC_TRANSPORT_RC;
}

static inline bool block_sends(const struct qp *qp)
{
    return qp->block->ask.state == HELLO_AGREED;
}

static inline bool block_receives(const struct qp *qp)
{
    return qp->block->answer.session;
}

/* -- Negotiation: block_hello.c -----------------------------------------------------------------*/

/* Does the stream of our requests want to become one of blocks, now that there is something to
 * send? Then no message is begun before it is drained, and the question is asked. */
bool block_hello_wants(struct qp *qp, struct instant now);
/* The route to the peer may be another one. */
void block_hello_rethink(struct qp *qp);
void block_hello_begin(struct qp *qp, struct instant now);
bool block_hello_next(struct qp *qp, struct instant now, struct nic_departure *departure);
bool block_hello_next_welcome(struct qp *qp, struct nic_departure *departure);
void block_hello_on_deadline(struct qp *qp, struct instant now);
void block_hello_on_hello(struct qp *qp, const struct block_arrival *arrival);
void block_hello_on_welcome(struct qp *qp, const struct block_arrival *arrival, struct instant now);
/* The peer's stream is RC again, or over. */
void block_hello_drop_session(struct qp *qp);

/* -- Addresses that the peer named: block_challenge.c -------------------------------------------*/

/* A challenge or a response of the link that this queue pair is to say. */
bool block_challenge_next(struct qp *qp, struct instant now, struct nic_departure *departure);
void block_challenge_on_challenge(struct qp *qp, const struct block_arrival *arrival);
void block_challenge_on_response(struct qp *qp, const struct block_arrival *arrival);
/* The peer sent something that is worth a packet of ours. */
void block_challenge_heard(const struct qp *qp);

/* -- Trouble: block_watch.c ---------------------------------------------------------------------*/

void block_watch_begin(struct qp *qp);

/* The route to the peer takes blocks. */
bool block_fits(const struct qp *qp);
/* May blocks help a troubled stream, as far as the peer is concerned? */
bool block_may_help(const struct qp *qp, struct instant now);

/* -- Our requests: block_send.c -----------------------------------------------------------------*/

/* From now on, what is posted leaves by blocks. The RC requester is drained. */
void block_send_begin(struct qp *qp, const struct block_terms *terms, struct instant now);
/* May block_send_next yield something? It may yield nothing all the same. */
bool block_send_ready(const struct qp *qp);
bool block_send_next(struct qp *qp, struct instant now, struct nic_departure *departure);
void block_send_on_gather_failed(struct qp *qp, const struct nic_departure *departure);
void block_send_on_answer(struct qp *qp, const struct block_arrival *arrival, struct instant now);
/* The result of a READ or an atomic. True: there is a move to make (action MOVE_BLOCK_DATA). */
bool block_send_on_data(struct qp *qp, const struct block_arrival *arrival, struct instant now,
                        struct nic_move *move);
void block_send_on_data_moved(struct qp *qp, const struct nic_move *move,
                              enum nic_move_result result);
/* When something is due: a probe, a re-sending, the end of a pause, giving up. */
struct instant block_send_deadline(const struct qp *qp);
/* The deadline has come. True: what was sent has waited in vain, as `overdue` says (but for the
 * queue pair); then one of the next two follows. */
bool block_send_on_deadline(struct qp *qp, struct instant now, struct nic_overdue *overdue);
void block_send_on_timeout(struct qp *qp, struct instant now);
void block_send_on_unread(struct qp *qp, struct instant now);
/* The link has no room: the clock that gives up runs all the same. */
void block_send_on_blocked(struct qp *qp, struct instant now);
/* Nothing is begun and not done. */
bool block_send_drained(const struct qp *qp);
/* The program changed the timeout or the limits of retries in SQD. */
void block_send_retune(struct qp *qp, struct instant now);
void block_send_report(const struct qp *qp, struct qp_report *report);
void block_send_check(const struct qp *qp);

/* -- The peer's requests: block_receive.c -------------------------------------------------------*/

/* From now on, the peer's requests come by blocks; receive number 0 is the next to be used. */
void block_receive_begin(struct qp *qp, const struct block_terms *terms);
/* SEND, WRITE, READ, atomic or probe. True: there is a move to make (action MOVE_BLOCK_PLACE,
 * MOVE_BLOCK_ATOMIC). */
bool block_receive_on_packet(struct qp *qp, const struct block_arrival *arrival, struct instant now,
                             struct nic_move *move);
void block_receive_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                            struct instant now);
/* A held payload may be placed now (nic_next_held). */
bool block_receive_next_held(struct qp *qp, struct nic_move *move);
/* Answers and BLK_DATA. */
bool block_receive_ready(const struct qp *qp);
bool block_receive_next(struct qp *qp, struct instant now, struct nic_departure *departure);
/* The payload of a BLK_DATA could not be read. */
void block_receive_on_gather_failed(struct qp *qp, const struct nic_departure *departure);
/* In SQD: may the peer wait for so many results of READs and atomics from now on? */
bool block_receive_may_limit(const struct qp *qp, uint32_t reads);
void block_receive_limit_results(struct qp *qp, uint32_t reads);
/* Was nothing executed since the session began, nor a shared receive taken? Then the session can be
 * given up, and nobody notices. */
bool block_receive_untouched(const struct qp *qp);
void block_receive_check(const struct qp *qp);

#endif
