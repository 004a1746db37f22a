/* SPDX-License-Identifier: BSD-2-Clause
 *
 * engine - what a NIC asks of a protocol engine.
 *
 * Purpose    The seam between what every queue pair has (numbers, states, queues, keys, turns) and
 *            the protocol it speaks: the direction from the NIC down to its engines. These call
 *            the NIC by nic/service.h. engine.c alone names the engines: each verb is a row with a
 *            column for each of them, so that a compiler says where a new one is missing.
 * Inputs     A queue pair in the state that the verb is for; packets that were decoded.
 * Outputs    Moves, departures, deadlines; completions by way of nic/service.h.
 * Ownership  An engine's state lies in the queue pair (struct qp: in, out), or in the NIC's pools.
 * Threads    The NIC's caller.
 * Time       An argument wherever it matters.
 * Units      Nanoseconds, bytes.
 * Limits     Headers of NIC_HEADERS_BYTES_MAX.
 * Source     ARCHITECTURE.md, "An engine's seam"; docs/decisions/0020.
 *
 * In which order the moves of a queue pair may finish is the engine's promise: it says so in each
 * (nic_move.in_order).
 */
#ifndef NIC_ENGINE_H
#define NIC_ENGINE_H

#include "nic/state.h"

enum engine engine_of_type(enum qp_type type);

/* -- Memory -------------------------------------------------------------------------------------*/

/* A NIC's, for all of its queue pairs. */
size_t engine_nic_bytes(const struct nic_limits *limits);
void engine_nic_init(struct nic *nic, void *memory);
/* In INIT or SQD, of a reliable connection: memory for so many READs and atomics of the peer, for
 * which there may be room already. False: there is none left, which is counted. */
MUST_USE bool engine_make_room(struct qp *qp, uint32_t reads);

/* -- Life: qp_modify's transitions --------------------------------------------------------------*/

void engine_start_receiving(struct qp *qp);
void engine_start_sending(struct qp *qp);
/* In SQD the program changed qp->attributes. */
void engine_retune(struct qp *qp, struct instant now);
/* In SQD: may the peer have so many READs and atomics outstanding from now on? Not fewer than it
 * waits for. */
bool engine_may_limit(const struct qp *qp, uint32_t reads);
void engine_limit(struct qp *qp, uint32_t reads);
/* From RTS to SQD: nothing more begins; qp_note_drained when all that was begun is done. */
void engine_drain(struct qp *qp);
/* The queue pair leaves all that comes in, and gives back its memory: it is reset or destroyed. */
void engine_withdraw(struct qp *qp);
/* The world or the program has it enter the error state. An engine does so by itself with
 * qp_enter_error (nic/service.h). */
void engine_enter_error(struct qp *qp);

/* -- Arrival ------------------------------------------------------------------------------------*/

/* A packet for this queue pair, of any service, from anybody: judges all that. True: there is a
 * move to make. */
bool engine_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                      struct nic_move *move);
/* A frame of the block transport; whose it is, and how it answers, is as with nic_on_packet. */
enum nic_arrived engine_on_frame(struct nic *nic, const struct nic_frame *frame, struct instant now,
                                 struct nic_move *move);
/* A congestion notification for this queue pair, from anybody. */
void engine_on_cnp(struct qp *qp, const struct nic_arrival *arrival, struct instant now);
void engine_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                     struct instant now);

/* nic_next_held, of a queue pair that may have such payloads (nic.holder). */
bool engine_next_held(struct qp *qp, struct nic_move *move);

/* -- Departure ----------------------------------------------------------------------------------*/

/* May engine_next_packet yield something? It may yield nothing all the same. */
bool engine_ready(const struct qp *qp);
/* Fills all of the departure but its queue pair and `more`. This is the way of every packet. A
 * world may ask right behind a post, without the ready list: a short way for small messages begins
 * here. */
bool engine_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure);
void engine_on_gather_failed(struct qp *qp, const struct nic_departure *departure);
/* The link has no room for what is ready. */
void engine_on_blocked(struct qp *qp, struct instant now);

/* The world does by itself what a departure says it may (nic_departure.direct). */
bool engine_read_target(const struct nic_departure *departure, struct segment *segments,
                        uint32_t *count);
void engine_on_fetched(struct qp *qp, struct instant now);
void engine_on_placed(struct qp *qp, struct instant now);

/* -- Time ---------------------------------------------------------------------------------------*/

/* When engine_on_deadline is wanted; INSTANT_NEVER: not at all. */
struct instant engine_deadline(const struct qp *qp);
/* The deadline has come. True: what was sent has waited in vain, as `overdue` says (but for the
 * queue pair); then engine_on_timeout or engine_on_unread follows. */
bool engine_on_deadline(struct qp *qp, struct instant now, struct nic_overdue *overdue);
void engine_on_timeout(struct qp *qp, struct instant now);
void engine_on_unread(struct qp *qp, struct instant now);

/* -- Looking ------------------------------------------------------------------------------------*/

/* The PSNs that a query shows, if the engine has any. */
void engine_query(const struct qp *qp, struct qp_attributes *attributes);
struct qp_flow engine_flow(const struct qp *qp);
/* What the engine knows of a connected queue pair is filled in. */
void engine_report(const struct qp *qp, struct qp_report *report);
/* What a queue pair owes the NIC: its turn, its timer. Then all invariants of the engine, which
 * checks itself as well. For tests. */
void engine_check_duties(const struct qp *qp);
void engine_check(const struct qp *qp);

#endif
