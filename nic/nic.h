/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nic - one device: the contract between the protocol engines and a world.
 *
 * Purpose    A world tells the NIC what happened, and asks what it wants done next. The NIC never
 *            calls the world.
 * Inputs     nic_on_packet, nic_on_moved, nic_on_gather_failed, nic_on_time.
 * Outputs    nic_next_qp + nic_next_packet, nic_next_event, nic_next_notification, nic_deadline.
 * Ownership  The caller gives all memory (nic_bytes) and keeps it in place.
 * Units      Nanoseconds, bytes.
 * Limits     struct nic_limits, fixed at init.
 * Source     docs/decisions and ARCHITECTURE.md, "the contract".
 */
#ifndef NIC_NIC_H
#define NIC_NIC_H

#include <stddef.h>

#include "base/instant.h"
#include "base/list.h"
#include "base/prng.h"
#include "nic/counters.h"
#include "nic/queue_pair.h"
#include "nic/region.h"
#include "nic/srd.h"
#include "nic/types.h"
#include "transport/ibta/dcqcn.h"
#include "transport/ibta/rc_policy.h"
#include "wire/block.h"
#include "wire/roce.h"

/* Which protocol reliable connections speak over a network (docs/block-transport.md). */
enum nic_transport {
    NIC_TRANSPORT_RC,
    NIC_TRANSPORT_BLOCK, /* Blocks with every peer that understands them. */
    NIC_TRANSPORT_AUTO,  /* RC first; blocks once it lost packets or the route proved long. */
};

/* The place of a payload that comes before its turn. */
enum block_place {
    BLOCK_PLACE_EARLY, /* It is placed at once, if no program may read that memory yet. */
    BLOCK_PLACE_HOLD,  /* It is kept in the hold pool: bytes appear in ascending order. */
};

struct block_limits {
    enum nic_transport transport;
    enum block_place place;
    uint32_t window;   /* Blocks a connection has under way, each way: 64..1024, a power of two. */
    uint32_t contexts; /* The NIC's: blocks that came in part. A power of two, at least 16. */
    uint32_t held;     /* The NIC's: payloads kept until their turn. */
    uint32_t reads;    /* READ blocks a connection has asked for and not got, each way. */
    uint32_t paths;    /* A connection's: at most BLOCK_PATHS_MAX. */
    uint32_t peers;    /* Links that blocks may go over (nic_av.peer). */
    uint32_t connections; /* With memory for blocks at a time; 0: all. Others go on by RC. */
    bool beyond_mtu;      /* Packets may carry more than the path MTU, if it is `mtu`. */
    /* NIC_TRANSPORT_AUTO: a connection asks for blocks when it reaches one of these. */
    uint32_t auto_losses;        /* Timeouts and sequence NAKs; 0: not for losses. */
    uint64_t auto_round_trip_ns; /* The shortest round trip; 0: not for round trips. */
};

struct nic_limits {
    uint32_t qps;      /* Queue pairs; at most 2^20. */
    uint32_t xrc_srqs; /* Shared receive queues with a number; at most 2^20. */
    uint32_t regions;  /* Memory regions and windows together. */
    uint32_t sends_per_qp, receives_per_qp, receives_per_srq;
    uint32_t sges;         /* Per request; at most NIC_SGE_MAX. */
    uint32_t inline_bytes; /* Per request; at most UINT16_MAX. */
    uint32_t reads_per_qp; /* Initiator depth and responder resources. */
    uint32_t reads;        /* Responder resources of all queue pairs; 0: reads_per_qp for each. */
    uint32_t cq_entries;
    enum path_mtu mtu;
    uint32_t groups, attachments; /* Multicast: groups, and queue pairs in all of them. */
    /* QPNs are qpn_base + [0, qpn_span), a power of two; 0: all there are. */
    uint32_t qpn_base, qpn_span;
    uint8_t key_bits;          /* The length of lkeys and rkeys; 0: 32. */
    uint8_t lkey_bits;         /* An lkey is the region's rkey with these bits changed. */
    struct rc_policy rc;       /* Facts about the world for reliable connections. */
    struct block_limits block; /* All 0: no queue pair ever speaks blocks. */
    struct srd_limits srd;     /* All 0: there are no queue pairs of SRD. */
    struct dcqcn_policy dcqcn; /* How RC and UC heed congestion; all 0: dcqcn_policy_default. */
    bool long_way;             /* No packet takes a short way: for tests that compare. */
};

struct nic;
struct nic_routes;

/* Bytes of zeroed, 64-byte aligned memory a NIC needs. */
size_t nic_bytes(const struct nic_limits *limits);
struct nic *nic_init(const struct nic_limits *limits, uint64_t seed, void *memory);

const struct nic_limits *nic_limits(const struct nic *nic);
struct region_table *nic_regions(struct nic *nic);
struct nic_counters *nic_counters(struct nic *nic);
void nic_count(struct nic *nic, enum nic_counter counter);

/* The time, for calls without one that complete something (posting to a queue pair that failed). */
void nic_note_time(struct nic *nic, struct instant now);

/* All invariants of all queue pairs, between two calls; for tests. */
void nic_check(const struct nic *nic);

/* Says whether the NIC at the other end of a link (nic_av.peer) has lately answered a probe, as
 * every nonic does. Before that, it gets no data of READs by blocks. */
void nic_note_answers(struct nic *nic, uint32_t peer, bool answers);
/* The addresses and ports by which that NIC is reached: the world fills in its part when it makes
 * the link. NULL: this NIC speaks no blocks, or block_limits.peers is smaller. */
struct nic_routes *nic_peer_routes(struct nic *nic, uint32_t peer);
/* The link is gone, and another one may get its number. */
void nic_forget_peer(struct nic *nic, uint32_t peer);

/* -- Arrival ------------------------------------------------------------------------------------
 * The world checks what only it can (the ICRC), and hands over the frame:
 *
 *     if (nic_on_packet(nic, &frame, now, &move) == NIC_MOVES) {
 *         move_memory(&move);
 *         nic_on_moved(nic, &move, NIC_MOVED, now);
 *     }
 *
 * To move memory is to copy move.prefix, then the payload, over move.segments in order, or to do
 * the atomic or the flush that move.kind names. (tests/contract compiles and runs these examples.)
 *
 * Effects that a program can see (completions, acknowledgements) happen in nic_on_moved, so a
 * world where copying takes time calls it later. A move that is `in_order` finishes behind all
 * earlier ones of its queue pair; the others in any order. */

struct nic_frame {
    const uint8_t *headers; /* From the BTH on. */
    const uint8_t *payload; /* With its pad, without ICRC; NULL: it stands behind the headers. */
    uint32_t headers_bytes, payload_bytes;
    struct gid source, destination;
    struct instant arrived; /* May be later than `now`; 0 ns: the world does not know. */
    uint8_t traffic_class;  /* DSCP and ECN bits as received, 0 if the world does not see them. */
    uint8_t hop_limit;
    uint32_t flow_label; /* 20 bits; 0 over IPv4. */
    struct nic_piggyback piggyback;
    bool placed; /* An RC WRITE without immediate data, or an RC READ request, whose sender judged
                    the memory and wrote or read it (docs/decisions/0003). It is not believed of
                    any other packet. */
};

enum nic_move_kind {
    NIC_MOVE_NOTHING, /* No bytes; call nic_on_moved at once. */
    NIC_MOVE_SCATTER, /* Payload to segments. */
    NIC_MOVE_ATOMIC,  /* The 8 bytes at segments[0] become nic_atomic_result, all at once. */
    NIC_MOVE_FLUSH,   /* The bytes of earlier moves are visible to all; if flush.persistent,
                         those in flush.range are on their medium. */
};

/* The operation on 8 bytes, which are a number in the host's byte order. */
enum nic_atomic {
    NIC_COMPARE_SWAP, /* If the number is `compare`, it becomes `swap_or_add`. */
    NIC_FETCH_ADD,    /* `swap_or_add` is added. */
    NIC_STORE,        /* The number becomes `swap_or_add`. */
};

/* The owner of the memory that a move writes. */
enum nic_purpose {
    NIC_FOR_PEER,    /* The peer named it: a WRITE or an atomic. */
    NIC_FOR_RECEIVE, /* A receive's: a part of a SEND. */
    NIC_FOR_REQUEST, /* A request's of our own: what a READ or an atomic brings. */
};

struct nic_move {
    enum nic_move_kind kind;
    enum nic_purpose purpose;
    bool in_order; /* It may not finish before earlier moves of its queue pair. */
    uint32_t segment_count;
    const uint8_t *payload;        /* In the frame. */
    uint32_t payload_bytes;        /* NIC_MANAGEMENT: the datagram's; else see `segments`. */
    uint32_t prefix_bytes;         /* NIC_GRH_BYTES for a UD receive, else 0. */
    uint8_t prefix[NIC_GRH_BYTES]; /* Stands in front of the payload. */
    enum nic_atomic atomic;
    uint64_t compare, swap_or_add;
    uint64_t original; /* Written by the world: the value before the atomic. */
    struct {
        struct region_range range;
        bool persistent;
    } flush;
    struct segment segments[NIC_SEGMENT_MAX];

    /* The NIC's own notes for nic_on_moved. */
    struct qp *qp;
    struct work *work; /* READ and atomic responses: the request they belong to. */
    uint32_t psn;
    uint32_t srqn;  /* XRC targets: the queue of the receive in `completion`. */
    uint32_t epoch; /* The queue pair's: a reset in between voids the move. */
    uint32_t birth; /* Blocks: that of the context; 0: the packet has none. */
    uint32_t held;  /* Blocks: the slot of the hold pool that the payload is in. */
    uint8_t position;
    uint8_t action;
    bool ack_request;
    bool completes; /* `completion` is due when the move is done. */
    struct completion completion;
    struct gid source; /* UD: the sender's address. */
};

/* The result of an atomic for the number that was there before. */
static inline uint64_t nic_atomic_result(const struct nic_move *move, uint64_t before)
{
    switch (move->atomic) {
    case NIC_COMPARE_SWAP: return before == move->compare ? move->swap_or_add : before;
    case NIC_FETCH_ADD: return before + move->swap_or_add;
    case NIC_STORE: return move->swap_or_add;
    }
    UNREACHABLE("an atomic outside its enum");
}

/* The acknowledgement that came with a frame of at least a BTH, as a frame of its own. */
#define NIC_ACK_HEADERS_BYTES (ROCE_BTH_BYTES + ROCE_AETH_BYTES)
struct nic_frame nic_piggyback_frame(const struct nic_frame *frame,
                                     uint8_t headers[NIC_ACK_HEADERS_BYTES]);

enum nic_arrived {
    NIC_DONE,       /* Counted, answered or dropped. */
    NIC_MOVES,      /* There is a move to make. */
    NIC_MANAGEMENT, /* A datagram for QP 1, which is the world's: move.payload. */
};
enum nic_arrived nic_on_packet(struct nic *nic, const struct nic_frame *frame, struct instant now,
                               struct nic_move *move);

/* The link of the connected queue pair that a frame names, before it is judged; NULL: none. */
void *nic_frame_link(const struct nic *nic, const struct nic_frame *frame);

enum nic_move_result {
    NIC_MOVED,
    NIC_MOVE_FAULTED, /* Memory was not there, nothing may be assumed written; or it could not be
                         made persistent. */
};
void nic_on_moved(struct nic *nic, struct nic_move *move, enum nic_move_result result,
                  struct instant now);

/* A payload that came before its turn may be placed now: a move as nic_on_packet yields it, whose
 * payload is the NIC's until nic_on_moved. To be asked after each nic_on_moved and nic_on_packet
 * until it returns false; most of the time that is one comparison. */
MUST_USE bool nic_next_held(struct nic *nic, struct nic_move *move);

/* -- Departure ----------------------------------------------------------------------------------
 * The world chooses whom to pull from:
 *
 *     while ((qp = nic_next_qp(nic)) != NULL) {
 *         if (!has_room(nic_qp_link(qp))) {
 *             nic_park(nic, qp, &waiting, now);
 *             continue;
 *         }
 *         if (nic_next_packet(nic, qp, now, &departure)) {
 *             transmit(&departure);
 *             nic_rotate(nic, qp);
 *         }
 *     }
 *
 * It may pull several packets of one queue pair before the next one's turn. */
enum nic_direct_kind {
    NIC_DIRECT_NONE,
    NIC_DIRECT_WRITE,
    NIC_DIRECT_READ
};

/* The access that a world which reaches the peer's memory may make itself, instead of sending the
 * packet. The world judges it as the peer's NIC would. */
struct nic_direct {
    enum nic_direct_kind kind;
    uint32_t message_bytes; /* The length of the whole request. */
    /* The range that the key has to open: for the first packet of a WRITE, all of the message. */
    uint64_t address;
    uint32_t key, bytes;
};

/* May routers mark a packet instead of dropping it (ECN)? */
enum nic_ecn {
    NIC_ECN_OF_PATH, /* Yes, if there may be routers on the way: CNPs tell the sender. */
    NIC_ECN_CAPABLE, /* Yes: ECT(0). */
    NIC_ECN_NOT,     /* No, because no sender would slow down: Not-ECT. */
};

struct nic_departure {
    struct qp *qp;
    const struct nic_av *av;
    uint32_t destination_qpn;
    uint8_t headers[NIC_HEADERS_BYTES_MAX]; /* BTH and extended headers, encoded. */
    uint32_t headers_bytes;
    uint32_t payload_bytes; /* Sum of the segments. */
    uint8_t pad_bytes;
    uint8_t route; /* By which addresses and port it leaves (nic/routes.h). 0: those of `av`. */
    uint8_t ecn;   /* enum nic_ecn. */
    uint32_t segment_count;
    struct segment segments[NIC_SEGMENT_MAX];
    struct nic_direct direct;
    struct nic_piggyback piggyback;
    bool alone; /* An RC request, and every request of this queue pair before it is acknowledged. */
    bool more_sends; /* Further send requests wait behind this packet. */
    bool more;       /* The queue pair is still ready: the next pull may yield something. */
    uint32_t psn;    /* As in the headers, of a packet of RC. */

    /* The engine's own note. */
    bool reply;
};

/* A queue pair that wants to send, without taking it off the ready list; NULL if none does. */
struct qp *nic_next_qp(struct nic *nic);

/* The queue pair `ahead` places behind the next one; NULL: none, or it left. */
const struct qp *nic_ready_qp(const struct nic *nic, uint32_t ahead);

/* A world that knows which queue pair is next has its state prefetched. This changes nothing but
 * time. nic_prefetch_packet reads a packet's headers (at least ROCE_HEADERS_BYTES_MAX bytes are
 * readable), before they are judged. */
void nic_prefetch_qp(const struct qp *qp);
void nic_prefetch_packet(const struct nic *nic, const uint8_t *headers);

/* `qp` was posted to. Programs tend to post to their connections in the same order again, so the
 * memory of the queue pair that came next the last time is prefetched. */
void nic_foresee(struct nic *nic, struct qp *qp);

/* The link (nic_av.link) of the next packet of `qp`: its address vector's, or for UD the next
 * request's. */
void *nic_qp_link(const struct qp *qp);

/* The destination QPN of the next request of a UD queue pair that has one, or of a carrier of SRD
 * (nic/srd.h). */
uint32_t nic_qp_destination(const struct qp *qp);
/* The address of a carrier's peer, which has no link (nic_av.link); NULL: `qp` is no carrier. */
const struct nic_av *nic_carrier_av(const struct qp *qp);
/* The packets of a carrier go by a ring in memory from now on, or by a network. */
void nic_carrier_by_ring(struct qp *qp, bool by_ring);

/* The next packet of `qp`. False: it has nothing (more) to send now and left the ready list. */
bool nic_next_packet(struct nic *nic, struct qp *qp, struct instant now,
                     struct nic_departure *departure);

/* Takes a ready queue pair off the list, for a world that knows by other means when to pull from
 * it. nic_next_packet may still be called. */
void nic_unready(struct nic *nic, struct qp *qp);

/* Moves a ready queue pair behind the others, so that all get their turn. */
void nic_rotate(struct nic *nic, struct qp *qp);

/* Its link has no room: takes a ready queue pair off the list and appends it to `waiting`, a list
 * of the caller's. Its transport timer runs, since a peer that never makes room is a dead peer. */
void nic_park(struct nic *nic, struct qp *qp, struct list *waiting, struct instant now);

/* The link has room again: makes every queue pair on `waiting` ready. */
void nic_unpark(struct nic *nic, struct list *waiting);

/* The payload of a pulled packet could not be read: memory of an on-demand region is not there. */
void nic_on_gather_failed(const struct nic_departure *departure);

/* A READ that was just pulled and is `alone`: instead of sending the request the world may put the
 * data into *segments itself. False: the SGEs do not allow it, as the response will show. */
MUST_USE bool nic_read_target(const struct nic_departure *departure,
                              struct segment segments[NIC_SEGMENT_MAX], uint32_t *count);

/* The world has done so: no response will come. */
void nic_on_fetched(const struct nic_departure *departure, struct instant now);

/* A WRITE packet that was just pulled and is `alone`: the world has put its payload where it
 * belongs, and no acknowledgement will come. */
void nic_on_placed(const struct nic_departure *departure, struct instant now);

/* The world can place WRITEs of this queue pair, which speaks RC: those of several packets become
 * `alone`, since they wait for the acknowledgements of all before them. One that is not placed ends
 * that. */
void nic_wait_to_place(struct qp *qp);

/* -- Time ---------------------------------------------------------------------------------------
 * Whenever anything above was done, and when the deadline has come:
 *
 *     if (instant_reached(now, nic_deadline(nic))) {
 *         nic_on_time(nic, now);
 *     }
 */

/* When nic_on_time is wanted; may be earlier than anything is due, never later. */
struct instant nic_deadline(const struct nic *nic);
void nic_on_time(struct nic *nic, struct instant now);

/* The transport timer measures the network. A world that can see whether the peer has read the
 * packet that it is to answer does not call nic_on_time. It asks for each queue pair whose timer
 * has run out, and then calls one of the two functions below. */
struct nic_overdue {
    struct qp *qp;
    struct instant since; /* All packets that wait for an ACK had left by then. */
    bool last;            /* No retry is left: a timeout ends the connection. */
};
MUST_USE bool nic_next_overdue(struct nic *nic, struct instant now, struct nic_overdue *overdue);
/* No answer came: packets are sent again, or the connection ends. */
void nic_on_timeout(struct nic *nic, struct qp *qp, struct instant now);
/* The peer has not read the packet: the timer starts anew, and nothing is sent again. */
void nic_on_unread(struct nic *nic, struct qp *qp, struct instant now);

/* -- Events and notifications -------------------------------------------------------------------*/

struct nic_event {
    enum nic_event_kind kind;
    struct qp *qp; /* Exactly one of the three is set. */
    struct cq *cq;
    struct srq *srq;
};

/* The next asynchronous event; false if there is none. A queue pair enters the error state with its
 * NIC_EVENT_QP_FATAL. */
bool nic_next_event(struct nic *nic, struct nic_event *event);
/* The next completion queue whose arming fired; NULL if none. */
struct cq *nic_next_notification(struct nic *nic);
/* Is there a notification, or an event? */
bool nic_has_news(const struct nic *nic);

/* A completion queue or shared receive queue is about to go: withdraw what is pending for it. */
void nic_forget_cq(struct cq *cq);
void nic_forget_srq(struct srq *srq);

/* Makes a shared receive queue, whose `xrcd` and `cq` are set, one that XRC requests can name:
 * gives it its number and counts it in both. STATUS_FULL: no number is left. */
MUST_USE enum status srq_enter(struct nic *nic, struct srq *srq);
/* Takes the name back for good: later requests for it are refused, and completions still due are
 * dropped. */
void srq_leave(struct nic *nic, struct srq *srq);

/* Posts to a shared receive queue. STATUS_INVALID: too many SGEs; STATUS_FULL: no room. */
MUST_USE enum status srq_post_receive(struct srq *srq, uint64_t wr_id, const struct sge *sges,
                                      uint32_t sge_count);

#endif
