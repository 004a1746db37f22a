/* SPDX-License-Identifier: BSD-2-Clause
 *
 * state - the structs of a NIC and of a queue pair, for the files of this room: the services
 * (nic/service.h) and the engines that call them.
 */
#ifndef NIC_STATE_H
#define NIC_STATE_H

#include "base/list.h"
#include "nic/arrival.h"
#include "nic/multicast.h"
#include "nic/nic.h"
#include "nic/peers.h"
#include "nic/pool.h"
#include "nic/timer_wheel.h"
#include "transport/common/work.h"
#include "transport/ibta/dcqcn.h"
#include "transport/ibta/rc_requester.h"
#include "transport/ibta/rc_responder.h"
#include "transport/ibta/segmentation.h"
#include "transport/ibta/uc_responder.h"

/* Which protocol a queue pair speaks. XRC's two halves are halves of a reliable connection. */
enum engine {
    ENGINE_RC,
    ENGINE_UC,
    ENGINE_UD,
    ENGINE_SRD,          /* A program's queue pair of SRD: never on the wire. */
    ENGINE_FLOW,         /* A carrier: the NIC's own, for all SRD with one process. */
    ENGINE_RC_OR_BLOCKS, /* A reliable connection that has memory for blocks, and may speak them. */
};

/* Queue pairs that may have something to send, in turn. An array, because a list through the queue
 * pairs would cost a cache miss to find the next one. A queue pair is in it once at most; one that
 * leaves out of turn leaves a hole. */
struct ready_ring {
    struct qp **slots; /* mask + 1 of them, more than there are queue pairs. */
    uint32_t mask;
    uint32_t head, tail; /* Free-running. */
};

struct nic {
    struct nic_limits limits;
    struct prng prng;
    struct region_table regions;
    struct nic_counters counters;
    struct qp **qps; /* By QPN & qp_mask. */
    uint32_t qp_mask;
    uint32_t qp_count;
    uint32_t next_qpn; /* Where the search for a free QPN starts, from qpn_base on: late reuse. */
    uint32_t qpn_span_mask;
    struct srq **srqs; /* By number & srq_mask: those that XRC requests can name. */
    uint32_t srq_mask;
    uint32_t srq_count;
    uint32_t next_srqn;
    struct ready_ring ready;
    struct timer_wheel timers;
    struct qp *last_posted; /* NULL: none, or it is gone. */
    struct instant now;     /* The time that the world told last; completions get it. */
    bool turns_taken;       /* The world keeps the turns: nic_unready was called. */
    struct list cqs_to_notify;
    struct list datagram_qps; /* All UD queue pairs. */
    struct list qps_with_events, cqs_with_events, srqs_with_events;
    struct roce_packet departing; /* The packet that departure_start and the engine fill in. */
    struct multicast_table multicast;
    struct pool reads;      /* Responder resources; the unit is one of them. */
    struct pool streams;    /* Memory for blocks; the unit is one connection. */
    struct nic_peer *peers; /* limits.block.peers of them; NULL: this NIC speaks no blocks. */
    struct qp *holder;      /* May have held payloads whose turn has come (nic_next_held). */
    struct block_shared *block_shared; /* Shared by all queue pairs with blocks. */
    struct srd_shared *srd;            /* NULL: this NIC speaks no SRD. */
    struct ecn_state *ecn;             /* By QPN & qp_mask. */
};

/* Congestion of a connected queue pair; touched only once there is any (ibta/ecn.h). */
struct ecn_state {
    struct instant cnp_allowed_at; /* No CNP leaves before. */
    struct dcqcn limiter;          /* Valid if qp.limited; zeroed otherwise, but for one instant. */
};

enum qp_listing {
    QP_LISTED_NOWHERE,
    QP_LISTED_READY,
    QP_LISTED_WAITING, /* On a list of the world's: its link has no room. */
};

/* Does block_watch.c watch a stream of RC that may become blocks, and for what? */
enum qp_watching {
    WATCH_NOTHING,
    WATCH_ROUND_TRIPS, /* And losses. */
    WATCH_LOSSES,
    WATCH_TROUBLED, /* Too many losses, or too long round trips. */
};

/* In the order of use, so that a packet touches few cache lines: nic_prefetch_qp asks for the first
 * QP_HOT_BYTES. */
struct qp {
    /* Posting. */
    struct send_queue sends;
    struct nic *nic;
    uint32_t number;
    uint32_t successor;  /* QPN that was posted to after this one the last time. */
    uint8_t type;        /* enum qp_type. */
    uint8_t state;       /* enum qp_state. */
    uint8_t listing : 2; /* enum qp_listing. */
    bool cnp_due : 1;    /* A CNP is to leave. */
    bool limited : 1;    /* CNPs came: nic.ecn has its rate. */
    bool paused : 1;     /* Data waits until its rate lets it leave. */
    bool signal_all : 1;
    bool reply_turn : 1;  /* Replies and requests take turns. */
    bool last_words : 1;  /* In error, as we refused a request: the NAK still leaves. */
    bool spoilt : 1;      /* In error, as a move failed: moves behind it are void. */
    bool established : 1; /* COMMUNICATION_ESTABLISHED was told. */
    bool drained : 1;     /* SQ_DRAINED was told. */
    bool unsolicited : 1; /* SRD: WRITEs with immediate data consume no receive. */
    uint8_t watching : 2; /* enum qp_watching. */
    bool resending : 1;   /* RC was resending when block_watch looked last. */
    bool asks_turn : 1;   /* Blocks: RC asks whether there is anything to pull now. */
    bool shares : 1;      /* Its receives are those of shared queues: `shared` is valid. */
    uint8_t engine;       /* enum engine. */
    uint16_t mtu_bytes;

    /* Completing. */
    uint32_t epoch;      /* Counts resets: a memory move begun before one is void. */
    uint32_t send_epoch; /* Counts flushes of sends: one voids moves of responses. */
    uint32_t ready_at;   /* Its position in nic.ready. */
    uint32_t agreed;     /* A note of the world's (qp_note_agreed); 0 after each change. */
    struct pd *pd;
    union {
        struct cq *send_cq;
        struct xrcd *xrcd; /* XRC targets, which send nothing. */
    };
    struct cq *receive_cq;
    const struct receive *current; /* The receive a SEND is being placed in. */

    /* The protocol. */
    union {
        struct rc_requester rc;
        struct psn next_psn; /* UC, UD. */
        struct {
            struct list requests; /* Handed over to peers. */
            uint32_t lent;        /* How many: they count as posted until they complete. */
        } srd;
    } out;
    union {
        struct rc_responder rc;
        struct uc_responder uc;
        struct list ud; /* In nic.datagram_qps. */
        struct {
            struct list incoming; /* Messages that came in part. */
            uint32_t lent;        /* Receives that they hold. */
        } srd;
    } in;
    struct timer_node timer;
    void *context;
    uint32_t events; /* 1 << enum nic_event_kind, not yet collected. */
    union {
        uint32_t srqn;   /* XRC targets: the shared receive queue of the newest message. */
        uint32_t losses; /* If `watching`: since the stream began as RC, or fell back to it. */
    };
    struct qp_attributes attributes;

    struct block_streams *block; /* ENGINE_RC_OR_BLOCKS. */

    /* Seldom needed. */
    union {
        struct receive_queue receives; /* Its own. */
        struct {
            struct srq *srq;       /* XRC target: only while a request is looked at, like `pd`. */
            struct receive *taken; /* Copy of a shared receive. */
        } shared;
    };
    struct list node; /* In a waiting list of the world's. */
    struct list event_link;
};

#define QP_HOT_BYTES 384
_Static_assert(offsetof(struct qp, epoch) == 64, "what posting needs is a cache line");
_Static_assert(sizeof(struct qp) <= 448, "seven cache lines: docs/decisions/0009");
_Static_assert(offsetof(struct qp, attributes.av) + sizeof(struct nic_av) <= QP_HOT_BYTES,
               "the way to the peer is near the protocol's state");

/* The shared queue that its receives come from; NULL: they are its own, or of an XRC target that
 * looks at no request. */
static inline struct srq *qp_srq(const struct qp *qp)
{
    return qp->shares ? qp->shared.srq : NULL;
}

/* The queue that the next receive comes from; of an XRC target, while a request is looked at. */
static inline const struct receive_queue *qp_receives(const struct qp *qp)
{
    return qp->shares ? &qp->shared.srq->queue : &qp->receives;
}

/* Does the receive in use (qp.current) lie in a copy of a shared one? */
static inline bool qp_holds_shared(const struct qp *qp)
{
    return qp->current != NULL && qp->shares;
}

/* The number of a queue pair in the timer wheel. */
static inline uint32_t qp_timer_id(const struct qp *qp)
{
    return qp->number & qp->nic->qp_mask;
}

/* The membership bit does not matter between a full and a limited member (A17.4.7). */
static inline bool nic_pkey_matches(const struct roce_packet *packet)
{
    return (packet->pkey & 0x7fff) == (ROCE_DEFAULT_PKEY & 0x7fff);
}

/* From now on no CNP is due, and no rate limits the queue pair. */
static inline void qp_forget_congestion(struct qp *qp)
{
    qp->cnp_due = false;
    qp->paused = false;
    if (qp->limited) {
        qp->limited = false;
        qp->nic->ecn[qp_timer_id(qp)].limiter = (struct dcqcn){0};
    }
}

/* Have posted requests not been sent yet? */
static inline bool qp_has_sends(const struct qp *qp)
{
    return qp->sends.next != qp->sends.tail;
}

#endif
