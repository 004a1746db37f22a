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
 * Units      Nanoseconds, bytes, block numbers (BN).
 * Limits     struct block_limits.
 * Source     docs/block-transport.md; docs/decisions/0025.
 *
 * The files: block.c (the seam's verbs; does a stream speak RC or blocks?), block_arrival.c (the
 * stream of each packet), block_watch.c (is RC good enough?), block_hello.c (negotiation),
 * block_challenge.c (does the peer receive at the addresses that it named?), block_send.c (our
 * requests, on transport/block/requester.h), block_receive.c (the peer's requests, on
 * transport/block/responder.h), block_check.c (invariants).
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
    bool marked;       /* A router marked it: congestion (ECN). */
};

/* The values that the two ends agreed on for one stream. */
struct block_terms {
    uint32_t session;
    uint32_t window;  /* Blocks: W_blk. */
    uint32_t reads;   /* READ blocks asked for and not complete: R_blk. */
    uint64_t trip_ns; /* From HELLO to WELCOME; 0: not known. The first timers come from it. */
    uint32_t payload_bytes; /* Every packet but a message's last has it: at least the path MTU. */
    uint8_t path_count;
    bool shared_receives; /* The responder's receives are in a shared queue. */
};

/* A queue pair's memory for blocks (qp->block). The states of sender and receiver are opaque here:
 * each says how many bytes it takes (a multiple of 64). The memory is not zeroed: it has what an
 * earlier session, or another queue pair, left there. */
struct block_streams {
    struct block_sender *sender;     /* block_send.c */
    struct block_receiver *receiver; /* block_receive.c */
    struct hello_ask ask;            /* HELLO_AGREED: our requests are blocks. */
    struct hello_answer answer;      /* There is a session: the peer's requests are blocks. */
    uint16_t offer;                  /* HELLO's payload_bytes. */
    bool stays_rc;                   /* The peer refused blocks, or did not answer
                                        (NIC_TRANSPORT_BLOCK). */
    struct block_terms sending, receiving;
};

size_t block_send_bytes(const struct nic_limits *limits);
size_t block_receive_bytes(const struct nic_limits *limits);
/* Begins without a session. */
void block_receive_init(struct block_receiver *receiver);
/* Memory that all queue pairs of a NIC share: contexts and held payloads (nic->block_shared). It is
 * zeroed and 64-byte aligned. */
size_t block_shared_bytes(const struct nic_limits *limits);
void block_shared_init(struct nic *nic, void *memory);

/* -- block.c ------------------------------------------------------------------------------------*/

/* A queue pair of ENGINE_RC takes memory, and is of ENGINE_RC_OR_BLOCKS. False: there is none left,
 * which is counted; the queue pair goes on by RC. */
bool block_join(struct qp *qp);

/* Completes a packet: its headers and its destination. The segments of its payload, if it has any,
 * were gathered before. */
void block_seal(struct qp *qp, const struct block_packet *packet, struct nic_departure *departure);

/* -- block_end.c: qp_fail_work and qp_fail_oldest (nic/service.h), then block_withdraw. */
void block_withdraw(struct qp *qp);
void block_fail_work(struct qp *qp, struct work *work, enum completion_status status);
bool block_fail_oldest(struct qp *qp);
/* Gives back the stream's contexts, held payloads and taken receives: at reset, at destruction, and
 * in the error state (in which a refusal is still sent: docs/block-transport.md, "Refusals"). */
void block_receive_withdraw(struct qp *qp);

/* Something happened to the queue pair: lists it if there is something to send, and sets its
 * timer. */
void block_went_on(struct qp *qp, struct instant now);

/* The route of path number `path` out of `paths`, after it has left a route `turns` times. */
uint8_t block_route_of(const struct qp *qp, uint32_t path, uint32_t paths, uint32_t turns);

/* The most that a packet of any stream carries: less than the next MTU, which an interface that
 * took it would have. */
static inline uint32_t block_payload_most(const struct nic_limits *limits)
{
    const uint32_t mtu = path_mtu_bytes(limits->mtu);
    return limits->block.beyond_mtu && limits->mtu < PATH_MTU_4096 ? 2 * mtu - BLOCK_PAYLOAD_STEP
                                                                   : mtu;
}

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

/* Shall the stream of our requests become one of blocks, now that there is something to send? Then
 * no new message begins; when the stream is drained, a HELLO asks the peer. */
bool block_hello_wants(struct qp *qp, struct instant now);
/* The program may have given the queue pair another peer address (in SQD). */
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

/* The next challenge or response of the link; this queue pair sends it for all of the link. */
bool block_challenge_next(struct qp *qp, struct instant now, struct nic_departure *departure);
void block_challenge_on_challenge(struct qp *qp, const struct block_arrival *arrival);
void block_challenge_on_response(struct qp *qp, const struct block_arrival *arrival);
/* The peer sent something that is worth a packet of ours. */
void block_challenge_heard(const struct qp *qp);

/* -- Trouble: block_watch.c ---------------------------------------------------------------------*/

void block_watch_begin(struct qp *qp);

/* Is the link one for blocks, with room for packets of a full MTU? */
bool block_fits(const struct qp *qp);
/* Would the peer take blocks, as far as is known? It has to answer probes, and must not have left a
 * HELLO without an answer of late. */
bool block_may_help(const struct qp *qp, struct instant now);

/* -- Our requests: block_send.c -----------------------------------------------------------------*/

/* From now on, requests leave by blocks. The RC requester is drained. */
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
/* The deadline has come. True: a packet has waited in vain for its answer, and *overdue says since
 * when (its `qp` is not set). Then one of the next two functions is called. */
bool block_send_on_deadline(struct qp *qp, struct instant now, struct nic_overdue *overdue);
void block_send_on_timeout(struct qp *qp, struct instant now);
void block_send_on_unread(struct qp *qp, struct instant now);
/* The link has no room. The timeout runs all the same, as a peer that never makes room is dead. */
void block_send_on_blocked(struct qp *qp, struct instant now);
/* Is every request done that has begun? */
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
/* Are there answers or BLK_DATA packets to be sent? */
bool block_receive_ready(const struct qp *qp);
bool block_receive_next(struct qp *qp, struct instant now, struct nic_departure *departure);
/* The payload of a BLK_DATA could not be read. */
void block_receive_on_gather_failed(struct qp *qp, const struct nic_departure *departure);
/* In SQD: may the peer wait for the results of up to `reads` READs and atomics from now on? */
bool block_receive_may_limit(const struct qp *qp, uint32_t reads);
void block_receive_limit_results(struct qp *qp, uint32_t reads);
/* Was nothing executed since the session began, nor a shared receive taken? Then the session can be
 * dropped, and no program sees it. */
bool block_receive_untouched(const struct qp *qp);
void block_receive_check(const struct qp *qp);

/* -- Invariants: block_check.c ------------------------------------------------------------------*/

/* The terms that both ends agreed on, or will. Between two calls of RC and of this folder. */
void block_streams_check(const struct qp *qp);
void block_peer_check(const struct nic_peer *peer);
/* A packet whose headers are written. */
void block_departure_check(const struct nic_departure *departure);

#endif
