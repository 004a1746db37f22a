/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd - scalable reliable datagrams in a NIC: what the engine's files share.
 *
 * Purpose    A program's queue pair (ENGINE_SRD) has states, receives and a queue of requests, and
 *            is never on the wire. For each process that it talks to there is a peer, with a
 *            carrier (ENGINE_FLOW): a queue pair of the NIC's own that is pulled from, has the
 *            timer and the link, and sends everything for that process. One more carrier, the
 *            port, sends challenges to processes of which nothing is kept.
 * Ownership  All memory is the NIC's from nic_init on.
 * Source     nic/srd.h; transport/srd.
 *
 *     hosts.c      addresses, and what the peers at each hold of what all share
 *     contacts.c   processes that are known
 *     memory.c     the memory of all of that
 *     ways.c       several addresses and ports of ours and of a process
 *     peers.c      processes with which something goes on
 *     target.c     which request may do what here, and messages that came in part
 *     request.c    requests under way, their parts, and their ends
 *     read.c       READs: answering them, and the data that come back
 *     challenge.c  the port
 *     flow.c       a carrier's departures, deadlines, and the ends of parts
 *     life.c       a program's queue pair: its requests go to peers, and it leaves
 *     arrival.c    packets that came, and the moves that they make
 *
 * Each of these calls only files above it in this list.
 */
#ifndef NIC_SRD_SRD_H
#define NIC_SRD_SRD_H

#include "nic/routes.h"
#include "nic/service.h"
#include "nic/srd.h"
#include "transport/srd/entry.h"
#include "transport/srd/receiver.h"
#include "transport/srd/rest.h"
#include "transport/srd/sender.h"

/* Carriers have these QPNs of the slot, which no packet may name. */
#define SRD_CARRIER_FIRST 0xc100u
/* A target without a receive asks for a pause of 64 us << 4. */
#define SRD_WAIT_CODE 4u
/* Challenges that wait to leave, and the most in a second. */
#define SRD_CHALLENGES       64u
#define SRD_CHALLENGE_GAP_NS 1000000u
/* A peer with which nothing goes on rests after this. */
#define SRD_REST_NS 1000000000u
/* One address gets at most this part of what all share, rounded up. */
#define SRD_SHARES 4u

#define SRD_HANDLES_MAX ((1u << 23) - 1) /* Address handles of one host. */

struct srd_host {
    struct gid gid;
    uint16_t next;         /* In its bucket, or on the free list: a number + 1; 0 ends it. */
    uint16_t guest;        /* That number + 1; 0: it has no peers. */
    uint32_t handles : 23; /* Address handles of programs. */
    uint32_t contacts : 9; /* Processes there: a slot has 8 bits. */
};
_Static_assert(sizeof(struct srd_host) == 24, "there may be 65,534 of them");

/* Peers at one address, and how much they hold of what all share. */
struct srd_guest {
    uint16_t next; /* On the free list: a number + 1. */
    uint16_t peers;
    uint32_t incoming; /* Messages that came in part. */
    uint32_t reading;  /* READs to be answered. */
};

/* A process that is known. Zeroed memory: a new one. */
struct srd_contact {
    uint32_t next : 24; /* In its bucket, or on the free list: a number + 1; 0 ends it. */
    uint32_t slot : 8;
    uint16_t host; /* SRD_NO_HOST: a free one. */
    uint16_t peer; /* That number + 1; 0: it rests, and `rest` is valid. */
    struct srd_rest rest;
};
#define SRD_NO_HOST UINT16_MAX
_Static_assert(sizeof(struct srd_contact) <= 60, "with its bucket, a contact takes 64 bytes");

/* A posted request, from when its queue pair handed it over until it completes. */
struct srd_request {
    struct list node;   /* In its queue pair's list. */
    struct list to_cut; /* In its peer's list, while not all of it was cut into parts. */
    struct qp *qp;
    struct srd_peer *peer;
    struct instant since; /* When it was handed over. */
    uint64_t wr_id, remote_address;
    uint32_t remote_key, bytes, immediate, qkey;
    uint32_t cut;   /* Bytes that were cut into parts. */
    uint32_t parts; /* Under way. */
    uint16_t target_qpn;
    uint8_t kind;   /* enum work_kind. */
    uint8_t status; /* enum srd_status: of the first part that failed. */
    uint8_t tries;
    uint8_t sge_count;
    bool inlined;
    bool unsolicited;
    union {
        struct sge sges[SRD_SGES_MAX];
        uint8_t bytes_inline[SRD_INLINE_MAX];
    };
};

/* Up to 64 packets of a request: an instance of its peer's sender. */
struct srd_part {
    struct srd_instance instance;
    struct list node; /* In its peer's list of READs that ask, or on the free list. */
    struct srd_peer *peer;
    struct srd_request *request; /* NULL: the part is free, or only its moves still go on. */
    uint32_t offset, bytes;
    /* READ: */
    bool reads;
    bool answered;   /* The target takes the request. */
    uint64_t wanted; /* DATA packets that have not come, ... */
    uint64_t moving; /* ... and those of them whose bytes are on their way. */
    struct instant news_at, taken_at;
};

/* A READ of a peer that is being answered. */
struct srd_read {
    struct list node; /* In its peer's list, or on the free list. */
    struct qp *target;
    uint64_t address;
    uint64_t wanted;
    uint32_t key, bytes, psn;
    uint16_t chunk_bytes;
    uint8_t path; /* That of the READ. */
};

/* A message that comes in, while it has a receive. */
struct srd_incoming {
    struct srd_assembly assembly;
    struct list node;  /* In its target's list, or on the free list. */
    struct qp *target; /* NULL: it left. */
    struct srd_peer *peer;
    struct completion completion;
    uint16_t chunk_bytes; /* As its first packet said. */
    bool lent;            /* `room` has a receive that was taken from the queue. */
    _Alignas(8) uint8_t room[sizeof(struct receive) + SRD_SGES_MAX * sizeof(struct sge)];
};

static inline struct receive *srd_receive_of(struct srd_incoming *incoming)
{
    return (struct receive *)(void *)incoming->room;
}

/* State of an active process to which there are several routes. */
struct srd_ways {
    struct srd_peer *next; /* In its bucket, by `filed`: its receiver's flow. */
    uint32_t filed;
    bool of_target; /* The responses that are owed are about the flow that leads here. */
    uint8_t turns[SRD_FLOW_PATHS]; /* How often the peer's paths have left their routes. */
    struct proof known;            /* The peer knows our addresses; asked about again and again. */
    struct nic_routes routes;
    struct nic_responses responses;
    struct nic_av av; /* The newest packet that left by another route than the first has it. */
    struct path paths[SRD_FLOW_PATHS - 1];
    struct path_record records[(SRD_FLOW_PATHS - 1) * SRD_PATH_RECORDS];
};
_Static_assert(sizeof(struct srd_ways) <= 2560, "several ways take 2.5 KB more");

/* Who begins something with a process? */
enum srd_caller {
    SRD_WE,   /* A program here. */
    SRD_THEY, /* A packet of it came. */
};

/* A process with which something goes on, or did lately. */
struct srd_peer {
    struct qp qp; /* The carrier. */
    struct srd_contact *contact;
    struct srd_guest *guest;
    struct srd_peer *next_of_flow; /* In its bucket, by `filed`: ... */
    uint32_t filed;                /* ... its sender's flow when it was looked at last. */
    struct list by_use;            /* The one that was used last is the last one. */
    struct srd_source source;
    uint16_t host;
    bool there; /* Not a free one. */
    enum srd_caller caller;
    struct srd_ways *ways; /* NULL: there is the first one alone. */
    struct srd_entry entry;
    struct instant heard_at; /* A packet of its flow. */
    struct instant used_at;
    struct instant deadline;
    struct list to_cut; /* Requests. */
    struct list asking; /* Parts of READs, ... */
    uint32_t asking_count;
    uint8_t barren;               /* Times that parts asked since data came last. */
    struct instant ask_at;        /* ... the first of which may have to ask again then. */
    struct instant data_at;       /* When data came last, ... */
    uint32_t data_flow, data_psn; /* ... and the newest READ that any came for. */
    struct list reads;            /* To be answered. */
    uint32_t data_sent;           /* TSN of DATA. */
    bool answered;                /* The last packet was an answer. */
    struct srd_receiver receiver;
    struct srd_sender sender;
    struct path_record path_records[SRD_PATH_RECORDS];
};

_Static_assert(sizeof(struct srd_peer) <= 2560, "an active process takes 2.5 KB");

struct srd_challenged {
    struct nic_av av;
    struct srd_source source;
    uint32_t flow, psn;
    uint8_t reason;
};

struct srd_shared {
    struct qp port;
    struct siphash_key key;
    uint32_t boot;
    uint8_t slot;
    struct path_policy policy;
    struct path_policy ring_policy; /* For peers to whom a ring leads. */
    struct srd_host *hosts;
    uint16_t *host_buckets; /* By GID. */
    uint32_t host_mask;
    uint32_t hosts_made; /* Those behind were never used. */
    uint16_t hosts_free;
    struct srd_guest *guests;
    uint16_t guests_free;
    struct srd_contact *contacts;
    uint32_t *contact_buckets; /* By GID and slot. */
    uint32_t contact_mask;
    uint32_t contacts_made, contacts_free;
    uint32_t contact_found; /* The last time; it may be free, or another process's meanwhile. */
    uint32_t contact_hand;  /* The search for one that may be forgotten goes on here. */
    struct srd_peer *peers;
    struct nic_routes routes; /* Ours. */
    struct srd_ways *ways;    /* One for each peer, untouched until it has several. */
    struct srd_peer **way_buckets;
    struct srd_peer **flow_buckets; /* By the flow of the sender. */
    uint32_t flow_mask;
    uint32_t peers_made, peers_there;
    uint32_t peers_called; /* Those of them that are there since a packet of theirs came. */
    uint32_t next_carrier; /* QPN of the next one that is made. */
    struct list peers_by_use, peers_free;
    struct srd_request *requests;
    struct list requests_free;
    struct srd_part *parts;
    struct list parts_free;
    struct srd_incoming *incoming;
    struct list incoming_free;
    struct srd_read *reads;
    struct list reads_free;
    struct srd_transmission *packets;
    struct list packets_free;
    bool starved; /* A queue pair waits for a free request, or a free peer. */
    struct srd_challenged challenges[SRD_CHALLENGES];
    uint32_t challenge_head, challenge_tail;
    struct instant challenge_at; /* Earlier than a burst of them allows. */
};

/* -- hosts.c ------------------------------------------------------------------------------------*/

void srd_make_hosts(struct nic *nic);
/* A number for a GID that nobody else can guess. */
uint64_t srd_hash(const struct nic *nic, const uint8_t *gid);
/* Finds the host of that GID, or makes it; UINT32_MAX: there is no room. `hash`: srd_hash of it. */
uint32_t srd_make_host(struct nic *nic, const uint8_t *gid, uint64_t hash);
/* If it has neither handles nor contacts, it is free. */
void srd_free_host(struct nic *nic, uint32_t host);
/* The host gets a peer, or has one less. */
struct srd_guest *srd_host_gets_peer(struct nic *nic, uint32_t host);
void srd_host_loses_peer(struct nic *nic, uint32_t host);
/* Has the host as many peers as one may have that were not begun here? */
bool srd_host_is_full(const struct nic *nic, const uint8_t *gid);
/* Does something of which there are `all` have room for one more, if the host has `held`? */
static inline bool srd_may_hold(uint32_t held, uint32_t all)
{
    return held < (all + SRD_SHARES - 1) / SRD_SHARES;
}

/* -- contacts.c ---------------------------------------------------------------------------------*/

/* NULL: nothing is kept of that process. */
struct srd_contact *srd_find_contact(const struct nic *nic, const struct srd_source *source);
/* For a process of which nothing is kept. NULL: there is no room. */
struct srd_contact *srd_make_contact(struct nic *nic, const struct srd_source *source);

/* -- memory.c -----------------------------------------------------------------------------------*/

size_t srd_nic_bytes(const struct nic_limits *limits);
void srd_nic_init(struct nic *nic, void *memory);

/* -- ways.c -------------------------------------------------------------------------------------*/

/* Did the frame come from an address of the peer to one of ours, the first ones or others? */
bool srd_is_of_way(const struct srd_peer *peer, const struct nic_frame *frame);
/* The peer of whose flow the packet is, from whichever address of its; NULL: none. */
struct srd_peer *srd_find_way(const struct nic *nic, const struct nic_frame *frame,
                              const struct srd_packet *packet);
/* The flow that leads here may be another one. */
void srd_file_way(struct srd_peer *peer);
void srd_forget_ways(struct srd_peer *peer);
/* An answer came: does the flow send enough to be worth several ways? */
void srd_consider_ways(struct srd_peer *peer);
/* A packet of a peer that has ways leaves: by which? */
void srd_lead(struct srd_peer *peer, const struct srd_packet *packet,
              struct nic_departure *departure);
/* The next response or challenge to a peer that has ways; false: there is none. */
bool srd_next_of_ways(struct srd_peer *peer, struct instant now, struct nic_departure *departure,
                      struct srd_packet *packet);
void srd_on_path_challenge(struct srd_peer *peer, const struct nic_frame *frame,
                           const struct srd_packet *packet);
void srd_on_path_response(struct srd_peer *peer, const struct srd_packet *packet,
                          struct instant now);
/* A packet of a peer that has ways came. */
void srd_ways_heard(struct srd_peer *peer, const struct srd_packet *packet);
/* Somebody says that the peer does not know our flow at another address: perhaps it has rested. */
void srd_ways_missed(struct srd_peer *peer);
void srd_ways_check(const struct srd_peer *peer);

/* -- peers.c ------------------------------------------------------------------------------------*/

void srd_make_port(struct nic *nic);
/* The process, if something goes on with it; NULL: nothing does. */
struct srd_peer *srd_peer_of_contact(const struct nic *nic, const struct srd_contact *contact);
/* The peer whose sender has that flow, from an address of which the frame came; NULL: none. */
struct srd_peer *srd_find_flow(const struct nic *nic, const struct nic_frame *frame, uint32_t flow);
enum srd_met {
    SRD_MET,
    SRD_MET_LATER, /* There is no peer for it now, or none that its caller may have. */
    SRD_MET_NEVER, /* There is no room for a contact. */
};
/* The peer of that process: the one that is there, or one that is made, with a way to it. */
enum srd_met srd_meet_peer(struct nic *nic, const struct srd_source *source,
                           const struct nic_av *av, enum srd_caller caller, struct srd_peer **peer);
/* From now on packets to it have the fields of that vector; its way is its own. */
void srd_set_av(struct srd_peer *peer, const struct nic_av *av);
/* Something was under way with it now. */
void srd_touch_peer(struct srd_peer *peer);
/* The sender may have another flow. */
void srd_file_flow(struct srd_peer *peer);
/* When the peer may rest; INSTANT_NEVER: not before something else happens. */
struct instant srd_rest_at(const struct srd_peer *peer);
/* The peer is free, and its contact rests. */
void srd_rest(struct srd_peer *peer);
static inline struct srd_peer *srd_peer_of(struct qp *qp)
{
    return CONTAINER_OF(qp, struct srd_peer, qp);
}
static inline bool srd_is_port(const struct qp *qp)
{
    return qp == &qp->nic->srd->port;
}
struct srd_source srd_source_of(const struct gid *gid, uint8_t slot);

/* -- request.c ----------------------------------------------------------------------------------*/

/* Requests that were posted and not handed over. */
static inline bool srd_has_posts(const struct qp *qp)
{
    return qp->state == QP_RTS && qp->sends.head != qp->sends.tail;
}
/* The peer gets a request. */
void srd_post(struct srd_peer *peer, struct srd_request *request);
/* Gives the peer's sender a part of the next request, if it has none to send. */
void srd_cut(struct srd_peer *peer, struct instant now);
/* The peer says nothing, which ended a part: requests that have waited as long for their turn end
 * likewise. */
void srd_give_up_waiting(struct srd_peer *peer, enum srd_status status, struct instant now);
/* A part is done: `status` is SRD_STATUS_OK, or why not. The part is free. */
void srd_end_part(struct srd_peer *peer, struct srd_part *part, enum srd_status status);
void srd_free_part(struct srd_peer *peer, struct srd_part *part);
/* The request has no parts under way: it completes, or is forgotten. */
void srd_complete(struct srd_request *request);
void srd_free_request(struct srd_request *request);
/* Queue pairs that waited for a free request or peer have their turn again. */
void srd_feed(struct nic *nic);
/* The memory of a part of a request, judged. */
bool srd_gather(const struct srd_request *request, uint32_t offset, uint32_t bytes, uint32_t access,
                struct segment *segments, uint32_t *count);

/* -- challenge.c --------------------------------------------------------------------------------*/

/* Answers a packet of somebody of whom nothing is kept. */
void srd_challenge(struct nic *nic, const struct nic_frame *frame, const struct srd_packet *packet,
                   enum srd_reason reason, struct instant now);
bool srd_next_challenge(struct qp *qp, struct instant now, struct nic_departure *departure);

/* -- flow.c -------------------------------------------------------------------------------------*/

bool srd_flow_ready(const struct qp *qp);
bool srd_flow_next(struct qp *qp, struct instant now, struct nic_departure *departure);
void srd_flow_on_gather_failed(struct qp *qp, const struct nic_departure *departure);
struct instant srd_flow_deadline(const struct qp *qp);
void srd_flow_on_deadline(struct qp *qp, struct instant now);
void srd_flow_check(const struct qp *qp);
/* After anything changed: parts that ended, the carrier's turn, its timer. */
void srd_update(struct srd_peer *peer, struct instant now);

/* -- arrival.c ----------------------------------------------------------------------------------*/

enum nic_arrived srd_on_frame(struct nic *nic, const struct nic_frame *frame, struct instant now,
                              struct nic_move *move);
void srd_on_moved(struct qp *qp, const struct nic_move *move, enum nic_move_result result,
                  struct instant now);
/* -- target.c -----------------------------------------------------------------------------------*/

/* The verdict on a packet of an instance of which nothing was judged before. */
enum srd_allowed {
    SRD_ALLOWED,
    SRD_REFUSED,    /* `judged` says how. */
    SRD_NOT_JUDGED, /* There is no room for its message. */
};
struct srd_target {
    enum srd_allowed allowed;
    uint8_t judged;
    struct qp *qp;
    struct srd_incoming *incoming; /* NULL: it needs none. */
    bool spoilt;                   /* The receive's own memory is bad. */
};
/* The queue pair that a request is for; NULL: there is none that takes it. */
struct qp *srd_target_of(struct srd_peer *peer, const struct srd_packet *packet);
/* May the peer read and write memory here? */
bool srd_may_reach(const struct srd_peer *peer);
struct srd_target srd_judge_target(struct srd_peer *peer, const struct srd_packet *packet);
/* The message is taken no more: its receive is free once nothing moves. */
void srd_leave(struct srd_incoming *incoming);
void srd_free_incoming(struct srd_incoming *incoming);
void srd_complete_incoming(struct srd_incoming *incoming);
void srd_leave_target(struct qp *qp);
void srd_leave_outdated(struct srd_peer *peer, struct instant now);
/* Memory for a packet of SEND or WRITE. SRD_JUDGED_NOT: it is there; else the verdict. */
uint8_t srd_place(struct srd_target *target, const struct srd_packet *packet,
                  struct nic_move *move);

/* -- read.c -------------------------------------------------------------------------------------*/

/* Judges a peer's READ, and keeps it. SRD_JUDGED_NOT: there is no room. */
uint8_t srd_take_read(struct srd_peer *peer, const struct srd_packet *packet);
/* The next DATA packet; false: there is none. */
bool srd_next_data(struct srd_peer *peer, struct nic_departure *departure,
                   struct srd_packet *packet);
/* DATA came. True: there is a move to make. */
bool srd_on_data(struct srd_peer *peer, const struct srd_packet *packet, struct nic_move *move);
void srd_on_data_moved(struct srd_peer *peer, struct srd_part *part, uint32_t index,
                       enum nic_move_result result, struct instant now);
/* The instance of a READ ended well: the target has taken it. */
void srd_read_taken(struct srd_peer *peer, struct srd_part *part, struct instant now);
/* Parts whose data do not come ask again, or are given up. */
void srd_ask_again(struct srd_peer *peer, struct instant now);
struct instant srd_ask_deadline(const struct srd_peer *peer);
void srd_forget_reads_of(struct qp *qp);

/* -- life.c: ENGINE_SRD's part of the seam ------------------------------------------------------*/

/* Requests that were posted go to their peers. */
void srd_hand_over(struct qp *qp, struct instant now);
void srd_drain(struct qp *qp);
void srd_withdraw(struct qp *qp);
void srd_enter_error(struct qp *qp);
void srd_check_duties(const struct qp *qp);

#endif
