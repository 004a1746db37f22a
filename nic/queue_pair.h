/* SPDX-License-Identifier: BSD-2-Clause
 *
 * queue_pair - creation, attributes and posting: the program's side of a queue pair.
 *
 * Purpose    Everything a program asks of a queue pair; the wire's side is nic/nic.h.
 * Inputs     qp_create, qp_modify, qp_post_send, qp_post_receive.
 * Outputs    Completions in its completion queues, events, packets pulled through nic/nic.h.
 * Ownership  The caller owns the memory (qp_bytes) and keeps it in place until qp_destroy.
 * Time       Passed in where a timer may start.
 * Units      Bytes, work requests.
 * Limits     struct nic_limits.
 * Source     IBTA Vol. 1 chapters 10.2 and 10.3 (states), 11.2.5 (modify).
 */
#ifndef NIC_QUEUE_PAIR_H
#define NIC_QUEUE_PAIR_H

#include <stddef.h>

#include "base/check.h"
#include "base/instant.h"
#include "base/status.h"
#include "nic/completion_queue.h"
#include "nic/receive_queue.h"
#include "nic/region.h"
#include "nic/types.h"

struct nic;
struct qp;

struct qp_capacity {
    uint32_t sends, receives; /* Work requests; what is granted is at least what was asked. */
    uint32_t send_sges, receive_sges; /* At most NIC_SGE_MAX. */
    uint32_t inline_bytes;
};

struct qp_request {
    enum qp_type type;
    struct pd *pd;
    struct cq *send_cq, *receive_cq; /* XRC initiators have no receive_cq. */
    struct srq *srq;                 /* NULL: the queue pair has receives of its own. */
    struct xrcd *xrcd;               /* XRC targets only, which have none of the objects above. */
    struct qp_capacity capacity;
    bool signal_all;  /* Every send request completes visibly; SRD: always. */
    bool unsolicited; /* SRD: WRITEs with immediate data, ours and to us, consume no receive. */
    void *context;    /* Returned by qp_context: the verbs object. */
};

/* All attributes, the NIC's view of struct ibv_qp_attr. */
struct qp_attributes {
    uint8_t state, current_state; /* enum qp_state. */
    uint8_t path_mtu;             /* enum path_mtu. */
    uint8_t port;
    uint32_t qkey;
    struct psn_value {
        uint32_t receive, send;
    } psn;
    uint32_t destination_qpn;
    uint16_t access; /* enum access bits. */
    uint16_t pkey_index;
    struct nic_av av;
    bool notify_when_drained;
    bool draining;
    uint8_t max_reads_out; /* max_rd_atomic: initiator depth. */
    uint8_t max_reads_in;  /* max_dest_rd_atomic: responder resources. */
    uint8_t min_rnr_timer; /* 5-bit code. */
    uint8_t timeout;       /* 5-bit exponent: 4.096 us << timeout; 0: never. */
    uint8_t retry_count;   /* 0..7 */
    uint8_t rnr_retry;     /* 0..7; 7: for ever. */
};

/* A send work request as verbs hand it over. Pointers are read during the call only. */
struct send_request {
    uint64_t wr_id;
    enum work_kind kind;
    uint32_t flags;         /* enum work_flag bits. */
    const struct sge *sges; /* With WORK_INLINE the memory they name is copied at once. */
    uint32_t sge_count;
    uint32_t immediate; /* Wire bytes, untouched; or the key to invalidate. */
    uint64_t remote_address;
    uint32_t remote_key;
    uint64_t compare_or_add, swap;
    struct {
        uint32_t bytes; /* From remote_address on; a FLUSH of all that the key opens: 0. */
        uint8_t placement, selectivity; /* enum roce_placement bits, enum roce_selectivity. */
    } flush;
    const struct nic_av *av;   /* UD, SRD: from the address handle. Copied. */
    uint32_t destination_qpn;  /* UD, SRD. */
    uint32_t destination_qkey; /* SRD, UD; bit 31 set: the queue pair's own Q_Key is used. */
    uint32_t srqn;             /* XRC: the shared receive queue it is for. */
    struct window_bind bind;
};

/* Bytes of memory a queue pair of this shape needs, zeroed; rounds *capacity up to what is granted.
 */
size_t qp_bytes(enum qp_type type, struct qp_capacity *capacity, bool has_srq);

/* Makes a queue pair in RESET in `memory` (qp_bytes, zeroed, 64-byte aligned) with a QPN of its
 * own. STATUS_FULL: no QPN is left; STATUS_INVALID: a capacity above the limits. */
MUST_USE enum status qp_create(struct nic *nic, const struct qp_request *request, void *memory,
                               struct qp **qp);
/* May messages of the peer appear in memory in another order than they were posted? */
bool qp_places_early(const struct qp *qp);

/* Frees the QPN; its completions stay in the completion queues, its events are withdrawn. It must
 * not be attached to a multicast group (nic_is_attached). */
void qp_destroy(struct qp *qp);

/* ibv_modify_qp: judges transition and mask (IBTA 11.2.5.2), then applies all or nothing. With
 * QP_ATTR_AV, the world must have set the vector's `link`. For responder resources of a reliable
 * connection, at RTR or in SQD: STATUS_FULL if other queue pairs have all of them
 * (nic_limits.reads), STATUS_BUSY while the peer waits for the answers to more. */
MUST_USE enum status qp_modify(struct qp *qp, const struct qp_attributes *attributes, uint32_t mask,
                               struct instant now);
/* The attributes that a change of state needs and `mask` lacks, and those of `mask` that it takes
 * not. Both 0: there is no such change, or nothing is wrong with the mask. */
void qp_judge_change(enum qp_type type, enum qp_state from, enum qp_state to, uint32_t mask,
                     uint32_t *missing, uint32_t *excess);
void qp_query(const struct qp *qp, struct qp_attributes *attributes);
/* Reliable connections: was no request taken, because all came with other PSNs than the first that
 * is expected? Gives it, and one that came. */
bool qp_waits_for_psn(const struct qp *qp, uint32_t *first, uint32_t *came);

/* STATUS_INVALID: wrong state, kind or flags for the service, a datagram without an address vector,
 * too many SGEs, inline too long, a FLUSH that carries something or asks for nothing that is known.
 * STATUS_UNSUPPORTED: a FLUSH on a connection that may come to speak blocks, which have none.
 * STATUS_FULL: no room. Nothing is transmitted here: nic_next_packet does. */
MUST_USE enum status qp_post_send(struct qp *qp, const struct send_request *request);
/* Posts several requests: all of them, or none. */
MUST_USE enum status qp_post_sends(struct qp *qp, const struct send_request *requests,
                                   uint32_t count);
MUST_USE enum status qp_post_receive(struct qp *qp, uint64_t wr_id, const struct sge *sges,
                                     uint32_t sge_count);

/* Takes its completions out of the completion queues; returns how many there were. */
uint32_t qp_forget_completions(struct qp *qp);

uint32_t qp_number(const struct qp *qp);

/* The payload bytes of the newest send request; 0: it has none, or there is no request. */
uint32_t qp_newest_payload(const struct qp *qp);
/* For a world that works at its own times, apart from the program. Numbers run on modulo 2^32. */
struct qp_progress {
    uint32_t posted; /* Requests that were posted, */
    uint32_t passed; /* and those whose last packet was pulled; less again while it resends. */
    uint32_t done;   /* Those that are complete. */
    /* Completions that anybody put into its completion queues; a poll may set the number back. */
    uint32_t completions;
};
struct qp_progress qp_progress_of(const struct qp *qp);
/* The data of the request at this position, which was posted and is not complete. */
uint32_t qp_request_bytes(const struct qp *qp, uint32_t position);
/* The world's link to its peer; NULL: none, or one for each request. */
const void *qp_link(const struct qp *qp);
enum qp_type qp_type_of(const struct qp *qp);
/* Which kinds of requests queue pairs of a type send: a set as work_kinds() makes (IBTA 10.8.3). */
uint32_t qp_kinds(enum qp_type type);
enum qp_state qp_state_of(const struct qp *qp);
void *qp_context(const struct qp *qp);
const struct nic_av *qp_av(const struct qp *qp);
struct pd *qp_pd(const struct qp *qp);

/* The queue pair as the rule of nic/reach.h sees it. The names of domains and queue pairs are their
 * addresses; an XRC target has a domain only while a request is looked at. */
struct reach_qp qp_view(const struct qp *qp);
/* The terms that the queue pair needs of its peer's responder. */
struct reach_terms qp_terms(const struct qp *qp);
/* The first bytes of a responder are at this address of a reliable connection. A world lets local
 * peers read them while none of their packets is under way. */
#define QP_AWAITED_BYTES 32
uintptr_t qp_awaited(const struct qp *qp);
/* A peer's: would a request of this PSN that begins a message be in order? It is not if the message
 * before it has not come whole. */
bool qp_awaits(const uint8_t bytes[QP_AWAITED_BYTES], uint32_t psn);
/* The world's note that it found the peer's queue pair to expect the PSN that came next, and which
 * state of that queue pair it looked at (not 0). The note is gone once a program modifies `qp`. */
void qp_note_agreed(struct qp *qp, uint32_t state);
uint32_t qp_agreed(const struct qp *qp);
/* The capacity that was granted; of receives none if they come from a shared queue. */
struct qp_capacity qp_capacity_of(const struct qp *qp);
bool qp_signals_all(const struct qp *qp);

/* The condition of a reliable connection, for people to read. 0: not known, or no limit. */
struct qp_report {
    bool sends_blocks, receives_blocks;
    bool pauses; /* The peer had no receive (RNR NAK). */
    uint64_t round_trip_ns;
    uint64_t losses; /* Packets taken for lost; with RC: how often it began to send again. */
    uint8_t paths;
    uint64_t window_bytes, flight_bytes;
};
void qp_report_of(const struct qp *qp, struct qp_report *report);

/* The PSNs of a reliable connection, for a world that keeps contexts apart from queue pairs. */
struct qp_flow {
    struct psn next, unacked; /* PSN after the newest sent; oldest not acknowledged. */
    struct psn expected;      /* The next request to execute. */
    bool resending;           /* The next request packet was sent before. */
};
struct qp_flow qp_flow_of(const struct qp *qp);

#endif
