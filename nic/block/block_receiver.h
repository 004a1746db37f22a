/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_receiver - the state of the peer's stream in a queue pair; for block_receive*.c and tests.
 *
 * block_receive.c judges packets, block_place.c finds their place in memory, block_receives.c finds
 * the receive of a message, block_execute.c executes complete blocks in turn, block_reply.c
 * answers.
 */
#ifndef NIC_BLOCK_BLOCK_RECEIVER_H
#define NIC_BLOCK_BLOCK_RECEIVER_H

#include "nic/block/block.h"
#include "transport/block/responder.h"

/* Messages that have taken a shared receive before their turn, and the SGEs it may have. */
#define BLOCK_OPEN_MAX  16
#define BLOCK_OPEN_SGES 4
/* The number of receives by which a SEND may be ahead of its turn: its receive is compared with
 * each. */
#define BLOCK_RECEIVES_AHEAD 256

struct block_shared {
    struct block_contexts contexts;
    struct block_hold hold;
};

/* A copy of a shared receive. */
struct block_taken {
    uint32_t start; /* The message's first block. */
    bool used;
    uint64_t receive[(sizeof(struct receive) + BLOCK_OPEN_SGES * sizeof(struct sge)) / 8];
};

/* Data of a READ block that are due. */
struct block_read {
    uint64_t wanted;
    uint64_t address; /* Where the message begins. */
    uint32_t key, message_bytes;
    uint32_t number, index;
    uint8_t last_position, path, round;
    bool last_block;
    bool repeated; /* It was answered before. */
};

/* The result of an atomic, kept for duplicates. */
struct block_result {
    uint8_t original[8]; /* As on the wire. */
    uint32_t number;
    uint8_t kind; /* enum block_atomic_kind. */
    uint8_t path, round;
    bool kept, due;
    bool answered; /* At least once: if it is due, it is sent again. */
};

struct block_receiver {
    struct block_responder stream;
    uint8_t path_count;
    bool current;           /* qp->shared.taken is the shared receive of the message at base, ... */
    uint32_t current_start; /* ... which begins here. */
    uint32_t open_limit;    /* BLOCK_OPEN_MAX, but in tests. */
    uint32_t open_count;
    uint32_t reads_room, reads_limit, reads_head, reads_count;
    uint32_t results_limit, results_next, results_due;
    uint32_t forgotten; /* The part of stream.chain.forgotten that is counted already. */
    uint32_t data_tsn[BLOCK_PATHS_MAX];
    uint8_t turns[BLOCK_PATHS_MAX]; /* How often each path has left its route, as the probes say. */
    struct block_taken open[BLOCK_OPEN_MAX];
    struct block_read *reads;     /* reads_room entries. */
    struct block_result *results; /* nic_limits.reads_per_qp entries. */
};

static inline struct block_receiver *receiver_of(const struct qp *qp)
{
    return qp->block->receiver;
}

/* The verdict on a piece of a message that is to be placed. */
enum block_admission {
    BLOCK_ADMITTED,
    BLOCK_DECLINED, /* Not before its turn. */
    BLOCK_LATER,    /* There is no receive. */
    BLOCK_REFUSED,  /* As struct block_refusal says. */
};

struct block_refusal {
    enum block_status status;
    enum nic_counter counter;
    enum completion_status receive; /* Not SUCCESS: the receive is bad, and completes with this. */
};

/* A packet's payload, or one that was held. */
struct block_piece {
    struct block_message message;
    uint64_t offset; /* In the message. */
    const uint8_t *payload;
    uint32_t bytes;
    uint32_t number;
    uint8_t position;
    bool first, last; /* Packet of its message. */
    bool opens;       /* Nothing of its block was judged before. */
    bool in_order, turn;
};

/* -- block_place.c */
/* Judges the piece. Writes its memory to *move, or the reason against it to *refusal. */
enum block_admission block_admit(struct qp *qp, const struct block_piece *piece,
                                 struct nic_move *move, struct block_refusal *refusal);
void block_begin_move(struct qp *qp, uint32_t number, enum move_action action,
                      struct nic_move *move);
/* Begins the move of an admitted piece. `birth` is that of its context, 0 without a context. */
void block_begin_place(struct qp *qp, const struct block_piece *piece, uint32_t birth,
                       struct nic_move *move);
/* Returns false, as all refusals do. If the receive is bad, it completes. */
bool block_refuse_piece(struct qp *qp, const struct block_piece *piece,
                        const struct block_refusal *refusal);

/* -- block_check.c */
void block_receiver_check(const struct qp *qp);
/* A piece that agrees with its message. */
void block_piece_check(const struct qp *qp, const struct block_piece *piece);

/* -- block_execute.c */
/* All of block base is in memory. If it ends a message, the message takes effect. False: it is
 * refused. */
bool block_finish(struct qp *qp, const struct block_message *message);
/* The READ of a block, for the first time or again. False: it is refused. */
bool block_answer_read(struct qp *qp, const struct block_read *read);
/* Executes what is complete, block by block. */
void block_progress(struct qp *qp);

/* -- block_receives.c */
/* Finds the receive of a SEND for *receive. A shared receive is taken from its queue. */
enum block_admission block_find_receive(struct qp *qp, const struct block_piece *piece,
                                        const struct receive **receive);
/* Is there a receive for a WRITE with immediate data? */
bool block_have_receive(struct qp *qp, const struct block_piece *piece);
/* The receive of the message at base leaves its queue; returns its wr_id. */
uint64_t block_use_receive(struct qp *qp, const struct block_message *message);
/* The open messages' receives: flushed in the error state, else dropped. */
void block_drop_receives(struct qp *qp);
uint32_t block_receive_limit(const struct qp *qp);

/* -- block_reply.c */
/* The route of replies to packets of path number `path`. */
uint8_t block_route_back(const struct qp *qp, uint8_t path);
bool block_refuse(struct qp *qp, const struct block_refusal *refusal);
bool block_refuse_request(struct qp *qp, enum nic_counter counter);
/* Refuses a READ that was executed: its memory can no longer be read. */
bool block_refuse_data(struct qp *qp, uint32_t number, enum nic_counter counter);
/* Refuses a request for now, because there is no receive yet. */
void block_refuse_for_now(struct qp *qp);
/* The refusal that follows from the verdict on an access. */
struct block_refusal block_access_refusal(enum reach_verdict verdict);
/* Is there room for the READ among those to be answered, perhaps in place of one that was answered
 * before? */
bool block_read_fits(const struct block_receiver *receiver, const struct block_read *read);
/* Enters a READ block that fits. */
void block_add_read(struct qp *qp, const struct block_read *read);
/* A place for the result of an atomic; NULL: there is none, or the oldest result is still to be
 * sent. */
struct block_result *block_result_room(struct block_receiver *receiver);
/* An atomic that was executed is to be answered again, if its result is kept. */
void block_repeat_result(struct qp *qp, const struct block_packet *packet);

#endif
