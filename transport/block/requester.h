/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requester - the sending side of a stream of blocks.
 *
 * Purpose    Turns posted work into packets of numbered blocks, turns answers and data into
 *            progress, and sends exactly the lost packets again.
 * Inputs     block_requester_on_answer, block_requester_on_data, block_requester_on_moved,
 *            block_requester_on_time.
 * Outputs    block_requester_next (one packet per pull), block_requester_completed (finished work).
 * Ownership  Caller gives the memory (block_requester_bytes) and owns the send queue. Nothing is
 *            allocated.
 * Time       `now` is an argument; block_requester_deadline says when on_time is wanted.
 * Units      Block numbers (BN) and receive numbers (RN) are 32 bits, TSNs 24; all wrap. Flight is
 *            counted in bytes, and a packet for packet_cost beside its payload.
 * Limits     BLOCK_WINDOW_MAX blocks under way.
 * Source     docs/block-transport.md: "Words and numbers", "What the requester sends, and when",
 *            "Refusals", "Timers".
 */
#ifndef TRANSPORT_BLOCK_REQUESTER_H
#define TRANSPORT_BLOCK_REQUESTER_H

#include "base/check.h"
#include "base/instant.h"
#include "transport/block/ranges.h"
#include "transport/common/paths.h"
#include "transport/common/work.h"
#include "wire/block.h"

#define BLOCK_REQUESTER_BLOCKS_LEAST 64
/* A round trip that no machine's own delays explain. */
#define BLOCK_FAR_NS 1000000

/* The known state of a block that is under way. */
enum block_sending_state {
    BLOCK_SENDING_QUIET,      /* Nobody misses anything of it, as far as we know. */
    BLOCK_SENDING_INCOMPLETE, /* Positions are missing, or all of it: once lost, they go again. */
    BLOCK_SENDING_NO_CONTEXT, /* Again, after a pause. */
    BLOCK_SENDING_ORDER,      /* Again, once base has come to its message. */
    BLOCK_SENDING_DUE, /* Again, now: a pause of the receiver's is over, its path was left. */
};

struct block_sending {
    uint64_t sent; /* Positions that have left; of a READ, that were asked for. */
    /* As the newest report has it; of a READ or atomic: positions whose data have come. */
    uint64_t arrived;
    struct instant due;  /* READ, atomic: when data are asked for again; else a pause's end. */
    uint32_t work;       /* Position in the send queue. */
    struct psn newest;   /* TSN of its newest packet. */
    uint32_t again_from; /* Declined, it goes again before its turn only if base is here. */
    uint8_t last;        /* Last position. */
    uint8_t path;
    uint8_t round;
    uint8_t state;       /* enum block_sending_state. */
    uint8_t pauses;      /* In a row, for want of a context. */
    bool early : 1;      /* D. */
    bool wants_data : 1; /* A READ or an atomic. */
    bool atomic : 1;
    bool echoed : 1;      /* `newest`, or a later one of its path, had come when it was reported. */
    bool data_missed : 1; /* Data came that had left behind data that did not. */
};
_Static_assert(sizeof(struct block_sending) <= 48, "a block under way is less than a cache line");

enum block_requester_mode {
    BLOCK_REQUESTER_SENDING,
    BLOCK_REQUESTER_PAUSING, /* The peer has no receive; resume_at is valid. */
    BLOCK_REQUESTER_REFUSED, /* A request was refused; data of earlier ones are still to come. */
    BLOCK_REQUESTER_STOPPED, /* Failed: only flushes are left. */
};

struct block_requester {
    struct block_sending *blocks; /* By BN & mask. */
    uint32_t mask;
    uint32_t window; /* W_blk. */
    uint32_t base;   /* All before it are executed, as far as we know. */
    uint32_t oldest; /* ... and, if they want data, have it. */
    uint32_t next;   /* BN of the next block to begin. */
    uint32_t mtu_bytes;
    uint32_t packet_cost;
    uint32_t link_window;    /* Bytes in flight that the link can hold; 0: no limit. And ... */
    uint32_t far_window;     /* ... if its shortest round trip is long. */
    uint32_t read_window;    /* Bytes that READs may ask for at a time; 0: no limit. */
    uint32_t read_flight;    /* Asked for, and not here. */
    uint32_t receive_number; /* RN of the next message that takes a receive. */
    uint32_t receive_limit;
    uint32_t plain_end;   /* BN behind the newest block that is no READ and no atomic. */
    uint32_t receive_end; /* BN behind the newest message that takes one. */
    uint32_t refused;     /* Send queue position of the oldest refused request. */
    uint32_t resending;   /* BN, if ... */
    uint64_t resend_left; /* ... positions of it are left. */
    uint32_t blocks_read, blocks_read_max; /* READ blocks asked for and not complete. */
    uint8_t reads_out, reads_max;          /* READs and atomics that are not done. */
    uint8_t atomics_open; /* From the oldest without its result on: the peer keeps as many results
                             as reads_max. */
    uint8_t mode;         /* enum block_requester_mode. */
    uint8_t retry_limit, retries_left;
    uint8_t rnr_limit, rnr_left;
    uint8_t timeout_code;
    uint8_t read_silences; /* Times that data did not come in time, up to 6; and ... */
    uint8_t silences;      /* ... that answers did not. */
    bool receives_limited; /* receive_limit is valid. */
    bool receive_taken;    /* receive_end is valid: such a message is under way. */
    bool paused;           /* `resumed` is valid: base has not moved since the pause. */
    bool answered;         /* `answer` is valid. */
    bool declined;         /* Something that came before its turn was; base != next. */
    bool far;              /* far_window holds. */
    bool link_shut;        /* It was full, and too little of it is free yet for a batch. */
    /* The path of the newest packet: a block that is half sent there goes on first. */
    uint8_t current;
    uint16_t open;            /* One bit for each path: a block is half sent there, open_block. */
    struct psn answer;        /* The newest one's count. */
    struct instant retry_at;  /* INSTANT_NEVER: nothing is under way. */
    struct instant resume_at; /* Valid while pausing. */
    struct instant probe_at;  /* When a probe asks for an answer, if none came before. */
    struct instant wake_at;   /* Time alone makes sending go on. */
    struct instant resend_at; /* No block of `missing` is due before. */
    struct instant data_at;   /* When data came last. */
    uint32_t open_block[BLOCK_PATHS_MAX];
    uint64_t missing[BLOCK_WINDOW_MAX / 64]; /* By BN & mask: to be looked at for re-sending. */
    struct psn resumed[BLOCK_PATHS_MAX];     /* TSNs from here on left after the last pause. */
    struct instant lost_at[BLOCK_PATHS_MAX]; /* When something was lost last; 0: never. */
    const struct path_policy *policy;
    struct paths paths;
    struct block_ranges ranges;
};

struct block_requester_config {
    uint32_t first_block, first_receive; /* 0, but in tests: BN and RN. */
    struct psn first_tsn;
    uint32_t window;      /* Blocks; not more than the memory is for. */
    uint32_t read_blocks; /* READ blocks asked for and not complete; at least 1. */
    uint32_t mtu_bytes;
    uint32_t packet_cost;
    uint32_t link_window_bytes; /* 0: no limit. */
    /* Not less than link_window_bytes: for routes with a round trip of BLOCK_FAR_NS or more. */
    uint32_t far_window_bytes;
    uint64_t trip_ns; /* A first guess; 0: none. */
    uint8_t path_count;
    uint8_t retry_limit, rnr_limit, reads_max, timeout_code;
    const struct path_policy *policy; /* In place as long as the requester is. */
};

/* The memory, 8-byte aligned, for `blocks` (a power of two, 64 to 1024) and `path_count` paths. */
size_t block_requester_bytes(uint32_t blocks, uint8_t path_count);
struct block_requester *block_requester_init(void *memory, uint32_t blocks,
                                             const struct block_requester_config *config,
                                             struct instant now);

/* The settings that a program may change while nothing is sent (SQD): limits of retries, timeout,
 * depth. */
void block_requester_retune(struct block_requester *requester,
                            const struct block_requester_config *config, struct instant now);

/* Everything a pull can yield. */
struct block_outgoing {
    struct work *work; /* NULL: a probe. */
    uint8_t opcode;    /* enum block_opcode; local work has none. */
    uint8_t position, last_position;
    uint8_t path, round;
    bool last_block;
    bool last;  /* The last packet of its message. */
    bool early; /* D. */
    bool ack_request;
    bool resent;
    bool alone;     /* Nothing else is under way. */
    bool own_route; /* A probe of its path's own route, which the path has left. */
    uint32_t number, index;
    struct psn tsn;
    uint32_t offset, bytes; /* Payload, and where it lies in the message. */
    uint64_t wanted;        /* READ. */
};

/* The next packet, or local work (packets == 0: execute it now, in order). False: nothing may be
 * sent now. `draining`: no message is begun that has not been. */
bool block_requester_next(struct block_requester *requester, struct send_queue *queue,
                          bool draining, struct instant now, struct block_outgoing *out);

/* May block_requester_next yield something, now or later, if nothing comes in? */
bool block_requester_ready(const struct block_requester *requester, const struct send_queue *queue);

/* The meaning of an arriving packet. */
enum block_requester_verdict {
    BLOCK_STALE,      /* Old: nothing changes. */
    BLOCK_IMPOSSIBLE, /* It names packets or blocks that never were: nothing changes. */
    BLOCK_PROGRESS,   /* Work may have completed; sending may go on. */
    BLOCK_DATA_COMES, /* Its payload belongs at `offset` of `work`. */
    BLOCK_PAUSE,      /* The peer has no receive: waiting begins. */
    BLOCK_FAILED,     /* `work` ends with its status when its turn comes. */
    BLOCK_BAD_ORDER,  /* Likewise: data for another place than its block has. */
    BLOCK_BAD_LENGTH, /* Likewise: data of another length. */
};

struct block_progress {
    enum block_requester_verdict verdict;
    struct work *work;
    uint32_t offset;
};

/* A packet that block_judge found consistent, of this stream's session. `came`: when an answer
 * reached this machine. */
MUST_USE struct block_progress block_requester_on_answer(struct block_requester *requester,
                                                         struct send_queue *queue,
                                                         const struct block_packet *packet,
                                                         struct instant came, struct instant now);
MUST_USE struct block_progress block_requester_on_data(struct block_requester *requester,
                                                       struct send_queue *queue,
                                                       const struct block_packet *packet,
                                                       struct instant now);

/* Data that had come (BLOCK_DATA_COMES) are in memory. */
void block_requester_on_moved(struct block_requester *requester, struct work *work);

/* -- Time ---------------------------------------------------------------------------------------*/

struct instant block_requester_deadline(const struct block_requester *requester);

/* The deadline was reached. True: requests waited for the whole transport timer without an answer;
 * then block_requester_on_timeout or block_requester_wait_on follows. Else there may be something
 * to send. */
MUST_USE bool block_requester_on_time(struct block_requester *requester, struct instant now);
/* Requests that are not answered had left by then. */
struct instant block_requester_waits_since(const struct block_requester *requester);
/* The next timeout fails the requester. */
bool block_requester_last_try(const struct block_requester *requester);
/* BLOCK_PROGRESS: a retry was counted. BLOCK_FAILED; `work` may be NULL: the queue is empty. */
MUST_USE struct block_progress block_requester_on_timeout(struct block_requester *requester,
                                                          struct send_queue *queue,
                                                          struct instant now);
/* The peer has not read the packets that it is to answer: the timer starts anew with all
 * retries. */
void block_requester_wait_on(struct block_requester *requester, struct instant now);
/* The link has no room: the transport timer runs though nothing was sent, if a request waits. */
void block_requester_blocked(struct block_requester *requester, const struct send_queue *queue,
                             bool draining, struct instant now);
/* Does the timer run for a request that may no longer begin, or took no packet? It stands then. */
void block_requester_relax(struct block_requester *requester, const struct send_queue *queue,
                           bool draining);

/* -- Completing ---------------------------------------------------------------------------------*/

/* The oldest request if it is finished, else NULL. The caller completes it and advances
 * queue->head. */
struct work *block_requester_completed(const struct block_requester *requester,
                                       const struct send_queue *queue);

/* The request that a block under way belongs to; NULL: it is none that waits for anything. */
struct work *block_requester_work_of(const struct block_requester *requester,
                                     const struct send_queue *queue, uint32_t number);

/* Nothing is under way and nothing half sent: the drained condition of SQD. */
bool block_requester_drained(const struct block_requester *requester,
                             const struct send_queue *queue);

/* All invariants: at the entry and at the end of each call above that has the queue. */
void block_requester_check(const struct block_requester *requester, const struct send_queue *queue);

#endif
