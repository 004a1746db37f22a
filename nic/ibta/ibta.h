/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ibta - the services of the InfiniBand architecture, as the NIC's seam (nic/engine.h) asks for
 * them; for the files of this folder and nic/engine.c only.
 */
#ifndef NIC_IBTA_IBTA_H
#define NIC_IBTA_IBTA_H

#include "nic/service.h"

/* The effect of a finished memory move. */
enum move_action {
    MOVE_REQUEST,      /* RC: acknowledge, perhaps complete a receive. */
    MOVE_ATOMIC,       /* RC: an atomic or a FLUSH, the response is ready. */
    MOVE_RESPONSE,     /* RC: perhaps a READ or atomic is complete. */
    MOVE_UNRELIABLE,   /* UC, UD: perhaps complete a receive. */
    MOVE_BLOCK_PLACE,  /* Blocks: a packet of a SEND or WRITE. */
    MOVE_BLOCK_ATOMIC, /* Blocks: the result is known. */
    MOVE_BLOCK_DATA,   /* Blocks: data of our READ, or the result of our atomic. */
};

/* -- arrival.c: the validation of every packet that names a queue pair (IBTA 9.6). */
bool ibta_admits(const struct qp *qp, const struct nic_arrival *arrival, uint32_t traits);
void ibta_begin_move(struct qp *qp, const struct roce_packet *packet, enum move_action action,
                     struct nic_move *move);
/* The first valid packet in RTR establishes communication (IBTA 11.6.3.1). */
void ibta_note_established(struct qp *qp);

/* -- departure.c: the common part of all packets that leave, of every service. */
void departure_start(struct qp *qp, struct nic_departure *departure, uint8_t opcode,
                     struct psn psn);
void departure_set_payload(struct qp *qp, struct nic_departure *departure, uint32_t bytes);
/* Bytes [offset, offset + bytes) of a request as payload. False: a key no longer allows it. */
bool departure_gather(struct qp *qp, struct work *work, uint32_t offset, uint32_t bytes,
                      struct nic_departure *departure);
/* The packet is complete: encodes its headers. */
void departure_seal(struct qp *qp, struct nic_departure *departure);
/* The last packet of a request leaves for the first time. */
void departure_count_request(struct qp *qp, const struct work *work);
/* May the request at the cursor leave, as far as its memory and the queue pair go? A request that
 * fails before its first packet waits for its turn to complete, behind those in flight. `gathered`:
 * departure_gather comes next, and judges a payload of one packet as well as this does. */
bool departure_may_begin(struct qp *qp, bool gathered);
/* Has the request before the cursor failed, and waits for its turn to complete? Then nothing behind
 * it leaves. */
bool departure_is_behind_failure(const struct qp *qp);
/* Is the memory allowed that the request reads from, or that its answer goes into? Judged before
 * its first packet. */
bool work_memory_allowed(const struct qp *qp, struct work *work);
/* A bind or local invalidate, in send-queue order. False: it is not allowed. */
bool qp_execute_local(struct qp *qp, const struct work *work);

/* -- rc.c: life, time and completion of a reliable connection. */
size_t rc_nic_bytes(const struct nic_limits *limits);
void rc_nic_init(struct nic *nic, void *memory);
bool rc_make_room(struct qp *qp, uint32_t reads);
void rc_withdraw(struct qp *qp);
void rc_start_receiving(struct qp *qp);
void rc_start_sending(struct qp *qp);
void rc_retune(struct qp *qp, struct instant now);
void rc_drain(struct qp *qp);
bool rc_may_limit(const struct qp *qp, uint32_t reads);
void rc_limit(struct qp *qp, uint32_t reads);
bool rc_ready(const struct qp *qp);
/* Lists the queue pair if there is anything to pull: after most acknowledgements, nothing is. */
void rc_schedule_if_due(struct qp *qp);
void rc_on_blocked(struct qp *qp, struct instant now);
struct instant rc_deadline(const struct qp *qp);
void rc_arm_timer(struct qp *qp);
/* The deadline of a connection that its rate makes pause; without the pause, it would be `due`. The
 * end of a wait for the peer's receives (RNR) is no deadline during the pause, as nothing may leave
 * then. */
struct instant rc_paced_deadline(const struct qp *qp, struct instant due);
static inline struct instant ibta_deadline(const struct qp *qp, struct instant due)
{
    return LIKELY(!qp->paused) ? due : rc_paced_deadline(qp, due);
}
bool rc_on_deadline(struct qp *qp, struct nic_overdue *overdue);
/* The rate holds back the packets that are to be sent again, so the timeout is put off. */
void rc_postpone(struct qp *qp, struct instant now);
void rc_on_timeout(struct qp *qp, struct instant now);
void rc_on_unread(struct qp *qp, struct instant now);
void rc_query(const struct qp *qp, struct qp_attributes *attributes);
struct qp_flow rc_flow(const struct qp *qp);
void rc_report(const struct qp *qp, struct qp_report *report);
/* Completes every request that is finished, in order; fails the queue pair if one went wrong. */
void rc_collect(struct qp *qp);
/* The requester sends nothing any more: `work` ends with `status` once the requests before it are
 * complete, whose data may still be on its way into memory; everything behind it is flushed. */
void rc_fail_in_turn(struct qp *qp, struct work *work, enum completion_status status);
/* Requests are done: pushes their completions, sets the timer, and lists the queue pair if there is
 * more to send. */
void rc_go_on(struct qp *qp);

/* -- rc_check.c */
void rc_check_duties(const struct qp *qp);
void rc_check(const struct qp *qp);

/* -- rc_receive.c, rc_request.c, rc_refuse.c, xrc.c */
bool rc_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                  struct nic_move *move);
void rc_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result);
bool rc_on_request(struct qp *qp, const struct nic_arrival *arrival, struct nic_move *move);
bool xrc_on_request(struct qp *qp, const struct nic_arrival *arrival, struct nic_move *move);
/* A fatal refusal: the NAK goes out, the queue pair is in error. Returns false. */
bool rc_refuse(struct qp *qp, uint32_t psn, uint8_t syndrome, enum nic_counter counter);
/* The counter of a refusal because of a key. */
enum nic_counter rc_access_counter(enum reach_verdict verdict);
/* NULL: no such shared receive queue. */
const struct pd *xrc_domain_of(const struct nic *nic, uint32_t srqn);

void rc_on_acknowledge(struct qp *qp, struct psn psn, uint8_t syndrome, uint32_t msn,
                       struct instant now);

/* -- rc_short.c: nic_on_packet and rc_next_packet of the packets that are most frequent. False: it
 * takes the long way, and nothing has changed. *moves: there is a move to make. */
bool rc_short_on_packet(struct nic *nic, const struct nic_frame *frame, struct instant now,
                        struct nic_move *move, bool *moves);
/* The acknowledgement that came with a frame. */
bool rc_short_on_piggyback(struct nic *nic, const struct nic_frame *frame, struct instant now);
bool rc_short_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure);

/* -- rc_flush.c */
bool rc_on_flush(struct qp *qp, const struct roce_packet *packet, struct nic_move *move);

/* -- rc_send.c */
bool rc_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure);
/* The two halves of rc_next_packet; the headers are not encoded yet (departure_seal). `draining`:
 * no new message begins. */
bool rc_next_reply(struct qp *qp, struct instant now, struct nic_departure *departure);
bool rc_next_request(struct qp *qp, bool draining, struct instant now,
                     struct nic_departure *departure);
void rc_on_gather_failed(struct qp *qp, const struct nic_departure *departure);
bool rc_read_target(const struct nic_departure *departure, struct segment *segments,
                    uint32_t *count);
void rc_on_fetched(struct qp *qp, struct instant now);
void rc_on_placed(struct qp *qp, struct instant now);
void rc_wait_to_place(struct qp *qp);

/* -- unreliable.c */
void uc_start_receiving(struct qp *qp);
void ud_start_receiving(struct qp *qp);
void unreliable_start_sending(struct qp *qp);
void unreliable_drain(struct qp *qp);
void unreliable_on_gather_failed(struct qp *qp);
void unreliable_check_duties(const struct qp *qp);
bool uc_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct instant now,
                  struct nic_move *move);
bool ud_on_packet(struct qp *qp, const struct nic_arrival *arrival, struct nic_move *move);
void unreliable_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result);
bool uc_next_packet(struct qp *qp, struct instant now, struct nic_departure *departure);
bool ud_next_packet(struct qp *qp, struct nic_departure *departure);

#endif
