/* SPDX-License-Identifier: BSD-2-Clause
 *
 * streams - the block transport's part of the NIC's seam, which nic/engine.c calls. nic/engine.h
 * says what each function does.
 */
#ifndef NIC_BLOCK_STREAMS_H
#define NIC_BLOCK_STREAMS_H

#include "nic/service.h"

/* -- Memory: a NIC's (0 bytes: none of its queue pairs speaks blocks), a queue pair's. */
size_t block_nic_bytes(const struct nic_limits *limits);
void block_nic_init(struct nic *nic, void *memory);
/* Gives back the memory for blocks; from now on the queue pair is one of ENGINE_RC. */
void block_leave(struct qp *qp);
/* A move that began before the queue pair was reset has finished: frees its slot of the hold
 * pool. */
void block_void_move(struct nic *nic, const struct nic_move *move);

/* -- The seam's verbs. */
/* A connection gets its peer: it speaks RC only, or watches for trouble, or asks for blocks at
 * once. */
void block_start_watching(struct qp *qp);
void block_retune(struct qp *qp, struct instant now);
bool block_may_limit(const struct qp *qp, uint32_t reads);
void block_limit(struct qp *qp, uint32_t reads);
void block_drain(struct qp *qp);
/* qp_enter_error, then the streams of blocks give back what they hold. */
void block_enter_error(struct qp *qp);
bool block_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                     struct nic_move *move);
void block_on_cnp(struct qp *qp, const struct nic_arrival *arrival, struct instant now);
void block_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                    struct instant now);
bool block_next_held(struct qp *qp, struct nic_move *move);
bool block_ready(const struct qp *qp);
bool block_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure);
void block_on_gather_failed(struct qp *qp, const struct nic_departure *departure);
void block_on_blocked(struct qp *qp, struct instant now);
void block_on_fetched(struct qp *qp, struct instant now);
void block_on_placed(struct qp *qp, struct instant now);
struct instant block_deadline(const struct qp *qp);
bool block_on_deadline(struct qp *qp, struct instant now, struct nic_overdue *overdue);
void block_on_timeout(struct qp *qp, struct instant now);
void block_on_unread(struct qp *qp, struct instant now);
void block_report(const struct qp *qp, struct qp_report *report);
void block_check_duties(const struct qp *qp);
void block_check(const struct qp *qp);

/* -- block_watch.c: the stream of requests begins as RC, or has fallen back to it. */
/* For a queue pair that watches (qp->watching) and whose requests leave by RC. The first function:
 * a packet left. The second: a packet came, or the timer ran out. */
void block_watch_departure(struct qp *qp, const struct nic_departure *departure,
                           struct instant now);
void block_watch(struct qp *qp, struct instant now);
/* Losses and the round trip, of a queue pair that watches. */
void block_watch_report(const struct qp *qp, struct qp_report *report);

/* -- block_arrival.c: a frame whose opcode is one of the block transport's. */
enum nic_arrived block_on_frame(struct nic *nic, const struct nic_frame *frame, struct instant now,
                                struct nic_move *move);

#endif
