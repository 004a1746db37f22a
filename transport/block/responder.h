/* SPDX-License-Identifier: BSD-2-Clause
 *
 * responder - the receiving side of a stream of blocks.
 *
 * Purpose    Says of each packet whether it is new, whether its turn has come, and where its
 *            payload goes: into memory, into the hold pool, or nowhere yet. Keeps base, and says
 *            what an answer is to report.
 * Inputs     block_responder_arrived, block_responder_judge, then one of _begin, _hold, _keep,
 *            _decline; _placed when a move is done; _executed for each block in its turn.
 * Outputs    block_responder_step: what block base is ready for. block_responder_answer.
 * Ownership  Caller owns the struct; contexts and held payloads lie in the NIC's.
 * Units      Block numbers (BN) and receive numbers (RN) are 32 bits and wrap.
 * Limits     A window of at most 1024 blocks. An answer names BLOCK_MISSING_MAX blocks without room
 *            for a context.
 * Source     docs/block-transport.md.
 *
 * Memory, keys and receives are the caller's business. Bits of `arrived` and `placed` are hints for
 * the requester; base alone acknowledges.
 */
#ifndef TRANSPORT_BLOCK_RESPONDER_H
#define TRANSPORT_BLOCK_RESPONDER_H

#include "transport/block/contexts.h"
#include "transport/block/hold.h"
#include "wire/block.h"

#define BLOCK_MISSING_MAX 4
/* Contexts that one answer looks at. */
#define BLOCK_ANSWER_WALK 64
/* A refusal is repeated at most this often: once in a millisecond. */
#define BLOCK_REFUSAL_NS 1000000u

/* The facts of a message that all its packets repeat. */
struct block_message {
    uint64_t address;
    uint32_t start; /* BN of its first block. */
    uint32_t bytes;
    uint32_t key;
    uint32_t receive_number;
    uint32_t tag;
    uint8_t opcode;
    uint8_t flags; /* enum block_context_flag. */
};

struct block_responder_config {
    uint32_t owner; /* The queue pair's number. */
    uint32_t session, window, mtu_bytes;
    uint32_t first_number, first_receive; /* 0, but in tests of the wrap. */
    uint32_t answers; /* Answers that left in earlier sessions, one of which may have been this. */
    bool hold_all;    /* A reorder buffer: nothing is placed before its turn. */
};

/* The newest packet of a path, if one came since the path's last echo. */
struct block_last_arrived {
    struct instant at;
    uint32_t tsn;
    bool valid;
    bool asked; /* It, or one before it, wants an answer. */
};

struct block_responder {
    struct block_chain chain; /* With base. */
    struct block_context reserve;
    struct block_contexts *contexts;
    struct block_hold *hold;
    uint32_t session, window, mtu_bytes;
    uint32_t first_number;
    uint32_t seen;                /* The newest block of which anything came, or that was probed. */
    uint32_t next_receive;        /* RN of the next message that consumes a receive. */
    struct block_message message; /* Half executed, if `inside`; on its way alone, if `moving`. */
    bool inside;
    bool moving; /* Block base is one packet, without context, on its way into memory. */
    bool hold_all;

    /* The next answer. */
    bool answer_due;
    bool answers_probe;
    uint8_t status;    /* enum block_status; of an RNR until an answer or base has gone on. */
    bool refused;      /* `status` is for good. */
    bool read_refused; /* `refused_read` is the block of a READ whose data could not be read. */
    uint8_t missing_count;
    uint32_t missing[BLOCK_MISSING_MAX]; /* Blocks that found no room since the last answer. */
    uint32_t refused_read;
    uint32_t report_after; /* Where the next report goes on, if ... */
    bool report_goes_on;   /* ... there was no room for all blocks; but at base if ... */
    bool report_went_on;   /* ... the last one went on, and ... */
    uint32_t report_base;  /* ... base is where it was. */
    uint32_t answers;      /* Answers so far. */
    struct instant refusal_sent;
    uint8_t newest; /* The path of the newest packet, or of the one that `status` is about. */
    struct block_last_arrived arrived[BLOCK_PATHS_MAX];
    uint8_t ce_marked[BLOCK_PATHS_MAX], duplicates[BLOCK_PATHS_MAX];
};

void block_responder_init(struct block_responder *responder,
                          const struct block_responder_config *config,
                          struct block_contexts *contexts, struct block_hold *hold);
/* Contexts and held payloads are given back; nothing is executed any more. */
void block_responder_withdraw(struct block_responder *responder);

static inline uint32_t block_responder_base(const struct block_responder *responder)
{
    return responder->chain.base;
}

/* -- A packet -----------------------------------------------------------------------------------*/

enum block_arrived {
    BLOCK_ARRIVED_STRANGE, /* It is of another session. */
    BLOCK_ARRIVED_BEYOND,  /* Beyond the window. */
    BLOCK_ARRIVED_BEFORE,  /* A READ before the window. */
    BLOCK_ARRIVED_PROBE,
    BLOCK_ARRIVED_DUPLICATE,     /* Came before: there is nothing to do but to answer. */
    BLOCK_ARRIVED_REPEATED,      /* A READ or an atomic that was executed. */
    BLOCK_ARRIVED_CONTRADICTION, /* It contradicts itself, its block, or its message. */
    BLOCK_ARRIVED_NEW,
};

/* A packet's relation to the stream. */
struct block_case {
    enum block_arrived arrived;
    struct block_context *context; /* NULL: its block has none. */
    bool in_order;                 /* Its message's turn has come. */
    bool turn;   /* Its own turn has come: all that precedes it is executed or on its way into
                  * memory. A refusal is pronounced only then, so that it is the one RC would
                  * give. */
    bool length; /* The contradiction is one of lengths. */
};
/* Changes nothing. */
MUST_USE struct block_case block_responder_judge(const struct block_responder *responder,
                                                 const struct block_packet *packet);

/* A packet of the session and within its window came, at `at` by the world's clock. The next answer
 * echoes it, and may be due now. */
void block_responder_arrived(struct block_responder *responder, const struct block_packet *packet,
                             bool marked, struct instant at, struct instant now);
/* It came before. */
void block_responder_duplicate(struct block_responder *responder,
                               const struct block_packet *packet);

enum block_where {
    BLOCK_INTO_MEMORY,
    BLOCK_INTO_HOLD,
    BLOCK_NOWHERE, /* It must not be seen before its turn, and there is no room: to be declined. */
};
/* Where the payload of a new SEND or WRITE packet may go, as far as order is concerned. */
MUST_USE enum block_where block_responder_where(const struct block_responder *responder,
                                                const struct block_packet *packet,
                                                const struct block_case *it);

/* Is it all of block base, so that no context is needed? */
static inline bool block_responder_is_alone(const struct block_responder *responder,
                                            const struct block_packet *packet,
                                            const struct block_case *it)
{
    return packet->last_position == 0 && packet->number == responder->chain.base &&
           (it->context == NULL || it->context->arrived == 0);
}

/* The context of a packet's block, made if need be; NULL: there is no room, which is reported. */
struct block_context *block_responder_context(struct block_responder *responder,
                                              const struct block_packet *packet,
                                              struct instant now);
/* The payload is on its way into memory; without a context the packet is all of block base. */
void block_responder_begin(struct block_responder *responder, struct block_context *context,
                           const struct block_packet *packet);
/* Copies the payload. False: there is no room, and it has to come again. */
MUST_USE bool block_responder_hold(struct block_responder *responder, struct block_context *context,
                                   const struct block_packet *packet);
/* A READ, or a further piece of it, or an atomic, which waits for its turn. */
void block_responder_keep(struct block_responder *responder, struct block_context *context,
                          const struct block_packet *packet);
/* It has to come again. True: the first time in its block's round. */
bool block_responder_decline(struct block_responder *responder, const struct block_packet *packet,
                             struct instant now);

/* -- Memory moves -------------------------------------------------------------------------------*/

/* The context of a move that began with `birth`; NULL: it was forgotten meanwhile. */
struct block_context *block_responder_moved(const struct block_responder *responder,
                                            uint32_t number, uint32_t birth);
void block_responder_placed(struct block_responder *responder, struct block_context *context,
                            uint8_t position);
/* The memory was not there: it has to come again. */
void block_responder_unplaced(struct block_responder *responder, struct block_context *context,
                              uint8_t position);

/* -- Block base ---------------------------------------------------------------------------------*/

enum block_step {
    BLOCK_STEP_WAIT,    /* Packets or moves are missing. */
    BLOCK_STEP_READ,    /* Its READ, */
    BLOCK_STEP_ATOMIC,  /* its atomic is to be executed, */
    BLOCK_STEP_HELD,    /* its first held payload to be placed. */
    BLOCK_STEP_DONE,    /* All of it is in memory. */
    BLOCK_STEP_INVALID, /* It does not continue the message before it. */
};
/* The next step for block base; its context in *context. */
MUST_USE enum block_step block_responder_step(const struct block_responder *responder,
                                              struct block_context **context);
/* The held payload that is to be placed leaves its ring, but stays in the pool. */
uint32_t block_responder_detach(struct block_responder *responder, struct block_context *context);
/* It cannot be placed now: the packet has to come again. */
void block_responder_drop_held(struct block_responder *responder, struct block_context *context);

/* May the message go on, or begin, at block base? */
bool block_responder_follows(const struct block_responder *responder,
                             const struct block_message *message);
/* The facts of a message that a context, or a packet, has. */
struct block_message block_message_of_context(const struct block_context *context);
struct block_message block_message_of_packet(const struct block_packet *packet);

/* Block base is executed: a context or, if it had none, its packet's message. */
void block_responder_executed(struct block_responder *responder, struct block_context *context);
void block_responder_executed_alone(struct block_responder *responder);
/* Does the message consume a receive? */
bool block_message_consumes(const struct block_message *message);
/* All contexts of the message go: its receive was taken back. */
void block_responder_forget(struct block_responder *responder, uint32_t start);

/* -- Answers ------------------------------------------------------------------------------------*/

/* There is no receive: the message of block base is to come again. */
void block_responder_refuse_for_now(struct block_responder *responder);
/* The stream ends with this status, which answers all later packets. */
void block_responder_refuse(struct block_responder *responder, enum block_status status);
/* Data of a READ that was executed could not be read. */
void block_responder_refuse_read(struct block_responder *responder, uint32_t number);
/* Fills all of the answer that the stream knows: the receive limit is the caller's. */
void block_responder_answer(struct block_responder *responder, struct instant now,
                            struct block_answer *answer);

void block_responder_check(const struct block_responder *responder);

#endif
