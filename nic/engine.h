/* SPDX-License-Identifier: BSD-2-Clause
 *
 * engine - the functions of a protocol engine that a NIC calls.
 *
 * Purpose    The seam between what every queue pair has (numbers, states, queues, keys, turns) and
 *            the protocol it speaks: the direction from the NIC down to its engines. These call
 *            the NIC by nic/service.h. engine.c alone names the engines: each verb is a row with a
 *            column for each of them, so that a compiler says where a new one is missing.
 * Inputs     A queue pair in the state that the verb is for; packets that were decoded.
 * Outputs    Moves, departures, deadlines; completions by way of nic/service.h.
 * Ownership  An engine's state lies in the queue pair (struct qp: in, out), or in the NIC's pools.
 * Units      Nanoseconds, bytes.
 * Limits     Headers of NIC_HEADERS_BYTES_MAX.
 * Source     ARCHITECTURE.md, "An engine's seam"; docs/decisions/0020.
 *
 * The engine decides in which order the moves of a queue pair may finish, and says so in each move
 * (nic_move.in_order).
 */
#ifndef NIC_ENGINE_H
#define NIC_ENGINE_H

#include "nic/state.h"

enum engine engine_of_type(enum qp_type type);

/* -- Memory -------------------------------------------------------------------------------------*/

/* The memory of a NIC, for all of its queue pairs. */
size_t engine_nic_bytes(const struct nic_limits *limits);
void engine_nic_init(struct nic *nic, void *memory);
/* A reliable connection in INIT or SQD gets memory for `reads` READs and atomics of the peer,
 * unless it has enough already. False: there is none left, which is counted. */
MUST_USE bool engine_make_room(struct qp *qp, uint32_t reads);

/* -- Life: qp_modify's transitions --------------------------------------------------------------*/

void engine_start_receiving(struct qp *qp);
void engine_start_sending(struct qp *qp);
/* In SQD the program changed qp->attributes. */
void engine_retune(struct qp *qp, struct instant now);
/* In SQD: may the peer have `reads` READs and atomics outstanding from now on? Not fewer than it
 * waits for. */
bool engine_may_limit(const struct qp *qp, uint32_t reads);
void engine_limit(struct qp *qp, uint32_t reads);
/* From RTS to SQD: nothing more begins; qp_note_drained when all that was begun is done. */
void engine_drain(struct qp *qp);
/* The queue pair is reset or destroyed: it forgets all that came in part, and gives back memory. */
void engine_withdraw(struct qp *qp);
/* The world or the program puts the queue pair into the error state. An engine does so itself by
 * qp_enter_error (nic/service.h). */
void engine_enter_error(struct qp *qp);

/* -- Arrival ------------------------------------------------------------------------------------*/

/* A packet for this queue pair, of any service, from anybody: judges service and sender. True:
 * there is a move to make. */
bool engine_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                      struct nic_move *move);
/* A frame of the block transport, for any queue pair. Returns what nic_on_packet returns. */
/* The short way of nic_on_packet. False: the frame takes the long way. */
bool engine_on_plain_frame(struct nic *nic, const struct nic_frame *frame, struct instant now,
                           struct nic_move *move, bool *moves);
/* The acknowledgement that came with a frame of at least a BTH. */
bool engine_on_piggyback(struct nic *nic, const struct nic_frame *frame, struct instant now);
enum nic_arrived engine_on_frame(struct nic *nic, const struct nic_frame *frame, struct instant now,
                                 struct nic_move *move);
/* A frame of SRD, for a NIC that has it. */
enum nic_arrived engine_on_srd_frame(struct nic *nic, const struct nic_frame *frame,
                                     struct instant now, struct nic_move *move);
/* A congestion notification for this queue pair, from anybody. */
void engine_on_cnp(struct qp *qp, const struct nic_arrival *arrival, struct instant now);
void engine_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                     struct instant now);

/* nic_next_held, of a queue pair that may have held payloads (nic.holder). */
bool engine_next_held(struct qp *qp, struct nic_move *move);

/* -- Departure ----------------------------------------------------------------------------------*/

/* May engine_next_packet yield something? It may yield nothing all the same. */
bool engine_ready(const struct qp *qp);
/* Fills all of the departure but its queue pair and `more`. Every packet that leaves comes from
 * here. A world may call it directly after a post, without the ready list, so that a small message
 * leaves sooner. */
bool engine_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure);
void engine_on_gather_failed(struct qp *qp, const struct nic_departure *departure);
/* The destination QPN of all that a carrier sends. */
uint32_t engine_destination(const struct qp *qp);
const struct nic_av *engine_carrier_av(const struct qp *qp);
void engine_carrier_by_ring(struct qp *qp, bool by_ring);
/* The link has no room for a packet that is ready. */
void engine_on_blocked(struct qp *qp, struct instant now);

/* The world makes the access itself that a departure allows it to make (nic_departure.direct). */
bool engine_read_target(const struct nic_departure *departure, struct segment *segments,
                        uint32_t *count);
void engine_on_fetched(struct qp *qp, struct instant now);
void engine_on_placed(struct qp *qp, struct instant now);
void engine_wait_to_place(struct qp *qp);

/* -- Time ---------------------------------------------------------------------------------------*/

/* When engine_on_deadline is wanted; INSTANT_NEVER: not at all. */
struct instant engine_deadline(const struct qp *qp);
/* The deadline has come. True: a packet has waited in vain for its answer, and *overdue says since
 * when (its `qp` is not set); then engine_on_timeout or engine_on_unread follows. */
bool engine_on_deadline(struct qp *qp, struct instant now, struct nic_overdue *overdue);
void engine_on_timeout(struct qp *qp, struct instant now);
void engine_on_unread(struct qp *qp, struct instant now);

/* -- Reports and checks -------------------------------------------------------------------------*/

/* The PSNs that a query shows, if the engine has any. */
void engine_query(const struct qp *qp, struct qp_attributes *attributes);
struct qp_flow engine_flow(const struct qp *qp);
/* Fills in what the engine knows of a connected queue pair. */
void engine_report(const struct qp *qp, struct qp_report *report);
/* For tests: is the queue pair listed, and is its timer set, where they have to be? The second
 * function checks all invariants of the engine, which also checks itself. */
void engine_check_duties(const struct qp *qp);
void engine_check(const struct qp *qp);

#endif
