/* SPDX-License-Identifier: BSD-2-Clause
 *
 * firmware - the R5's software: segments transfers, issues blocks, repairs what fails.
 *
 * Purpose    Works off what programs posted and what requesters ask to read, block by block, until
 *            each block is acknowledged or given up.
 * Inputs     exanest_firmware_done: the result of the action that the world did; the driver's
 *            exanest_firmware_bind, _unbind, _on_mapped.
 * Outputs    exanest_firmware_next: the R5's next action, and its cost.
 * Time       Nanoseconds that the world tells. The R5 is slow, so its time is part of the model: an
 *            action is done `cost_ns` after it was asked for, or later if the hardware stalls it.
 * Limits     EXANEST_TIDS blocks in flight; EXANEST_CHANNELS transfers;
 *            EXANEST_READ_QUEUE read requests that wait for a channel.
 * Source     Xirouchakis 4, 4.1, 5.1, 5.2, 6.2. The rule for notifications is in an appendix that
 *            is missing: that the block with the notification is held back is our choice.
 *
 * The firmware never touches hardware: it says what it does next, the world does it after its cost,
 * fills in what was asked for, and says so. One action is out at a time, as on one core.
 *
 * One pass of its loop: a response is read and judged; a read request is taken if the response's
 * bit says that one waits and the queue has room; the scratchpad is polled; a transfer is begun;
 * `issues_per_pass` blocks are issued; one timer and one event of the driver are looked at. So the
 * time between two looks at the responses is bounded, whatever there is to do. A pass that found
 * nothing ends in EXANEST_DO_SLEEP, where the R5 itself would poll on: to simulate 1,024 cores that
 * poll in vain costs more than it shows. `polls_when_idle` has them do it.
 *
 * Transfers that can issue a block stand in a list, each once: first come, first served, one block
 * a turn. So nothing is ever searched among 1,024.
 */
#ifndef HARDWARE_EXANEST_FIRMWARE_H
#define HARDWARE_EXANEST_FIRMWARE_H

#include "hardware/exanest/request_history.h"
#include "hardware/exanest/scratchpad.h"
#include "hardware/exanest/segmentation.h"
#include "hardware/exanest/timers.h"

#define EXANEST_READ_QUEUE    64u /* Our choice; the document says only that it can be full. */
#define EXANEST_REQUEST_LANES 12u /* 32-bit words of a read request. */
#define EXANEST_NONE          UINT16_MAX

/* -- Parameters ---------------------------------------------------------------------------------*/

/* The R5's time, in nanoseconds. */
struct exanest_firmware_costs {
    uint32_t response_read;   /* R5 response poll: 1 PL read. */
    uint32_t request_read;    /* R5 PL read of the request; `request_reads` of them. */
    uint32_t descriptor_read; /* A PL read: is a descriptor Done, or in Error? */
    uint32_t context_read;    /* RESEND_PACKET: the peer is asked which packets of a block it
                               * has. */
    uint32_t lookup;          /* Channel lookup: once a transfer. */
    uint32_t segment;         /* Segmentation: once a block. */
    uint32_t build;           /* Before the descriptor's stores; */
    uint32_t store;           /* each of them. */
    uint32_t control_store;   /* Each of three; overlaps the memory read. */
    uint32_t response_handle; /* The work on a valid response. */
    uint32_t poll;            /* A look at the scratchpad. */
    uint32_t update;          /* A transfer descriptor is written. */
};

/* All our choice: the document's figure with the R5's share is lost. Lookup and segmentation take
 * 0.39 us, a descriptor 0.30 us with its three stores, which strict mode makes and the rows that
 * were fitted run in. The share of the response makes a block cost 2 us together (EXA-A12). A
 * context is asked for by three stores to the packetizer, 0.70 us to the peer and as much back
 * (EXA-A7), and four PL reads of the mailbox: a bitmap, and the sequence to which it belongs. */
#define EXANEST_FIRMWARE_COSTS                                                                     \
    {                                                                                              \
        .response_read = 130, .request_read = 130, .descriptor_read = 130, .lookup = 190,          \
        .segment = 200, .build = 75, .store = 75, .response_handle = 1370, .context_read = 2145    \
    }

enum exanest_sequences {
    EXANEST_STRICT,     /* 0 at each new use of a TID: what the document states. */
    EXANEST_CONTINUING, /* One more at each use, so W4 is always stored. */
};

enum exanest_resend {
    EXANEST_RESEND_BLOCK,
    EXANEST_RESEND_TRANSFER, /* The policy with which EXA-A24 compares, */
    EXANEST_RESEND_PACKET,   /* and a what-if: only the packets that the peer lacks
                              * (firmware_pieces.c). */
};

enum exanest_path_policy {
    EXANEST_PATH_OF_TRANSFER,
    EXANEST_PATH_ALTERNATES, /* The next path with each 16 KB line of the destination (EXA-A25). */
};

struct exanest_firmware_config {
    struct exanest_firmware_costs costs;
    uint8_t sequences;          /* enum exanest_sequences. */
    uint8_t cut;                /* enum exanest_cut. */
    uint8_t resend;             /* enum exanest_resend. */
    uint8_t path_policy;        /* enum exanest_path_policy. */
    uint8_t paths;              /* Output ports of the send unit: 1..32. */
    uint8_t request_reads;      /* 12, or a divisor of it from 2 on: wider reads of the mailbox. */
    uint8_t control_bytes;      /* A TID's place in a control segment: 16, or 32. */
    uint8_t retries_max;        /* For each block. */
    uint8_t decode_retries_max; /* R_dec: after decode errors. */
    bool decode_is_fault;       /* berr3_is_fault (receiver.h). */
    bool notifies_early;        /* The marked block is not held back until the others are done. */
    bool polls_when_idle;
    uint16_t writes_outstanding, reads_outstanding; /* W_blk: blocks of a transfer. */
    uint16_t tids;                                  /* 1..EXANEST_TIDS. */
    uint16_t issues_per_pass;
    uint64_t block_timeout_ns;   /* T_blk. */
    uint64_t back_off_ns;        /* NACK_NO_CONTEXT: twice as long each time, */
    uint64_t fault_wait_ns;      /* and page faults likewise, if no event of the driver comes. */
    uint64_t descriptor_poll_ns; /* Until a descriptor that is not Done is looked at again. */
};

struct exanest_firmware_config exanest_firmware_defaults(void);
/* Row EXA-A22: response and issue of a block take `block_ns` together, in strict mode. */
void exanest_firmware_set_block_cost(struct exanest_firmware_costs *costs, uint32_t block_ns);
/* What-if: hardware takes responses, so they cost the R5 nothing. */
void exanest_firmware_set_hardware_responses(struct exanest_firmware_costs *costs);

/* -- Actions ------------------------------------------------------------------------------------*/

enum exanest_do {
    EXANEST_DO_WORK,            /* The R5 computes. */
    EXANEST_DO_READ_RESPONSE,   /* One 32-bit read of the mailbox: `value` of done. */
    EXANEST_DO_READ_REQUEST,    /* The world fills words[0..count) with 32 bits of the mailbox. */
    EXANEST_DO_POLL,            /* exanest_scratchpad_poll: `value`, and `channel` = 64 * page. */
    EXANEST_DO_READ_TRANSFER,   /* The world fills words[0..8) from the scratchpad. */
    EXANEST_DO_STORE,           /* `value` to `address` of the send unit; done when it is taken. */
    EXANEST_DO_READ_DESCRIPTOR, /* W3 of `tid`, of which the upper half suffices: `value`. */
    EXANEST_DO_UPDATE,          /* exanest_scratchpad_update. */
    EXANEST_DO_SLEEP, /* Until `until`, or until there is something: a response, a request (if
                       * `takes_requests`), a posted transfer, an event of the driver. If it is
                       * there already, not at all. */
    EXANEST_DO_READ_CONTEXT, /* At the receiver of `tid`'s block: `value` is the bitmap of the
                              * context; 0 if there is none of the block's sequence, or if it
                              * has refused a packet. */
};

struct exanest_firmware_action {
    uint8_t what;  /* enum exanest_do. */
    uint8_t count; /* READ_REQUEST. */
    uint8_t path;  /* STORE: the segment of a control packet. */
    uint8_t word;  /* STORE: 0..3: W1..W4; 0..2 of a control packet. */
    bool control;  /* STORE: of a control packet. */
    bool takes_requests;
    uint16_t tid;
    uint16_t channel; /* READ_TRANSFER, UPDATE; the world's answer to POLL. */
    uint32_t cost_ns;
    uint32_t address;                       /* STORE, READ_DESCRIPTOR: of W3, in the send unit. */
    uint64_t value;                         /* STORE. */
    uint64_t until;                         /* SLEEP; UINT64_MAX: no timer runs. */
    struct exanest_progress progress;       /* UPDATE. */
    uint64_t words[EXANEST_TRANSFER_WORDS]; /* The world's answer. */
};

/* -- State --------------------------------------------------------------------------------------*/

/* Values of a transfer's `last_status` beside enum exanest_status. */
enum exanest_transfer_status {
    EXANEST_LAST_TIMEOUT = 0x100,
    EXANEST_LAST_SOURCE_FAULT,
    EXANEST_LAST_REFUSED, /* Length, path or addresses are wrong, or the channel is for reads. */
};

enum exanest_tid_state {
    EXANEST_TID_FREE,
    EXANEST_TID_ARMED,    /* Its words are being stored. */
    EXANEST_TID_INFLIGHT, /* The only state in which a response counts. */
    EXANEST_TID_SETTLING, /* It will be stored again, when its old instance is Done or in Error. */
    EXANEST_TID_RETRY_WAIT,
    EXANEST_TID_FAULT_WAIT,
};

/* Why a block was given up, or looked at. */
enum exanest_cause {
    EXANEST_CAUSE_NONE,
    EXANEST_CAUSE_FAULT,
    EXANEST_CAUSE_NO_CONTEXT,
    EXANEST_CAUSE_CRC,
    EXANEST_CAUSE_DECODE,
    EXANEST_CAUSE_TIMEOUT,
    EXANEST_CAUSE_MAPPED, /* The driver says that a fault of its source is repaired. */
    EXANEST_CAUSE_PIECES, /* A piece was sent, others are to follow. */
};

struct exanest_firmware_block {
    uint64_t missing;  /* RESEND_PACKET: lines that the peer lacks, and that are not sent yet. */
    uint32_t offset;   /* In its transfer. */
    uint16_t bytes;    /* 1..16384. */
    uint16_t channel;  /* The transfer's. */
    uint16_t sequence; /* The sequence in W4 of the descriptor, also while the TID is free, */
    uint8_t path;      /* likewise. */
    uint8_t state;     /* enum exanest_tid_state. */
    uint8_t cause;     /* enum exanest_cause. */
    uint8_t retries, decode_errors;
    uint8_t waits : 6;
    bool unsent : 1; /* The send unit had not sent it when its timer was set last. */
    bool unread : 1; /* Its time was over, but its answer may lie in the mailbox. */
};

struct exanest_firmware_transfer {
    uint64_t source;
    uint64_t target, address; /* struct exanest_target, encoded. */
    uint64_t data[2];
    uint32_t bytes;
    uint32_t cut;   /* Bytes that have been cut into blocks. */
    uint32_t acked; /* Bytes. */
    uint16_t outstanding, retransmissions, last_status;
    uint16_t next; /* In the list of those that can issue. */
    uint8_t state; /* enum exanest_transfer_state. */
    uint8_t path;
    bool notify, listed;
    bool waits;      /* Chained: the transfer of the channel before has not ended. */
    bool failed;     /* Ends in ERROR when no block of it is out. */
    bool restarting; /* EXANEST_RESEND_TRANSFER: begins anew when no block of it is out. */
};

struct exanest_firmware_counters {
    uint64_t passes, sleeps;
    /* PL reads, by what for; of the first, how many found nothing. */
    uint64_t response_reads, response_reads_empty, request_reads, descriptor_reads;
    uint64_t descriptor_stores, control_stores, sequence_stores; /* 64 bits; the last are W4. */
    uint64_t acks, nacks[EXANEST_STATUS_COUNT];
    uint64_t stale;     /* Responses of an old sequence, or to a TID that waits for none. */
    uint64_t malformed; /* Responses with a status that no receiver sends. */
    uint64_t blocks, bytes, controls; /* First transmissions only; controls: with
                                       * retransmissions. */
    uint64_t retransmits, retransmitted_bytes, restarts;
    uint64_t context_reads, pieces; /* RESEND_PACKET. */
    uint64_t timeouts;              /* The block had been sent. */
    uint64_t timeouts_unsent;       /* The send unit had not come to it: the timer was set anew. */
    uint64_t not_done;              /* Looks at descriptors that were neither Done nor in Error. */
    uint64_t mapped;                /* Blocks re-issued on the driver's word. */
    uint64_t tid_waits;             /* Passes that could issue nothing, for want of a TID. */
    uint64_t posts_refused, posts_busy;
    uint64_t writes_done, writes_failed, reads_done, reads_failed;
    uint64_t reads_taken, reads_duplicate, reads_unbound, reads_malformed;
    uint64_t read_queue_full; /* Passes that left a request in the mailbox. */
};

struct exanest_firmware {
    struct exanest_firmware_config config;
    struct exanest_firmware_counters counters;
    /* The loop. */
    uint8_t step;
    uint8_t job; /* The work that takes several actions. */
    uint8_t stage;
    uint8_t out;        /* 1 + enum exanest_do of the action that is out; 0: none. */
    bool acted;         /* This pass found something to do. */
    bool requests_wait; /* By the last response word. */
    bool piece;         /* JOB_STORE: of a part of a block. */
    uint16_t job_tid;
    uint16_t update;   /* The channel whose descriptor is to be updated; or EXANEST_NONE. */
    uint16_t issued;   /* In this pass. */
    bool answers_wait; /* The last read of a response found one: there may be more. */
    uint32_t work_ns;
    uint64_t words[EXANEST_DESCRIPTOR_WORDS]; /* The words that are being stored. */
    uint32_t lanes[EXANEST_REQUEST_LANES];    /* The request that is being read. */
    /* Pages. */
    uint16_t bound, pages_fresh;
    uint16_t pdid[EXANEST_PAGES];
    uint32_t fresh_page;            /* The page of which a channel was begun last. */
    uint64_t fresh[EXANEST_PAGES];  /* Bit c: posted, but not read yet. */
    uint64_t active[EXANEST_PAGES]; /* Bit c: the channel has a transfer. */
    /* TIDs. */
    uint16_t free_head, free_count;
    uint16_t ready_head, ready_tail; /* Transfers that can issue; EXANEST_NONE: none. */
    uint16_t mapped_groups;          /* Bit g: mapped[g] is not 0. */
    uint64_t mapped[EXANEST_TIDS / 64];
    uint16_t free[EXANEST_TIDS]; /* A ring: the TID that was used last comes last. */
    struct exanest_timers timers;
    struct exanest_firmware_block blocks[EXANEST_TIDS];
    struct exanest_firmware_transfer transfers[EXANEST_CHANNELS];
    /* Reads that wait for a channel, in order of arrival. */
    uint16_t queued;
    bool queue_changed; /* A request, or a channel, has become free since the queue was seen. */
    struct exanest_read_request queue[EXANEST_READ_QUEUE];
    struct exanest_request_history history;
};

/* 1,024 of them are simulated. */
_Static_assert(sizeof(struct exanest_firmware) + sizeof(struct exanest_scratchpad) < 200 * 1024,
               "an R5 takes too much memory");

/* The configuration must be within the limits stated above. */
void exanest_firmware_init(struct exanest_firmware *firmware,
                           const struct exanest_firmware_config *config);

/* The R5's next action. None is out. */
void exanest_firmware_next(struct exanest_firmware *firmware, uint64_t now,
                           struct exanest_firmware_action *action);
/* It is done; `action` is the one of exanest_firmware_next, with the world's answer. */
void exanest_firmware_done(struct exanest_firmware *firmware,
                           const struct exanest_firmware_action *action, uint64_t value,
                           uint64_t now);

/* The driver binds a page, as in the scratchpad. False: as there. */
MUST_USE bool exanest_firmware_bind(struct exanest_firmware *firmware, uint32_t page,
                                    uint16_t pdid);
/* False: the page is not bound, or has transfers. Requests that wait for a channel, or were only
 * posted, are forgotten. */
MUST_USE bool exanest_firmware_unbind(struct exanest_firmware *firmware, uint32_t page);
/* A page fault of block `tid` is repaired. Any number, at any time. */
void exanest_firmware_on_mapped(struct exanest_firmware *firmware, uint32_t tid);

/* Nothing is under way, nothing waits. */
bool exanest_firmware_idle(const struct exanest_firmware *firmware);

void exanest_firmware_check(const struct exanest_firmware *firmware);
/* Walks through everything: for tests. */
void exanest_firmware_check_all(const struct exanest_firmware *firmware);

#endif
