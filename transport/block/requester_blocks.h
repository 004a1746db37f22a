/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requester_blocks - the common part of a requester's files: blocks under way, and their missing
 * packets; for requester*.c only.
 */
#ifndef TRANSPORT_BLOCK_REQUESTER_BLOCKS_H
#define TRANSPORT_BLOCK_REQUESTER_BLOCKS_H

#include "transport/block/requester.h"

static inline struct block_sending *block_at(const struct block_requester *requester, uint32_t bn)
{
    return &requester->blocks[bn & requester->mask];
}

static inline struct work *block_work(const struct send_queue *queue,
                                      const struct block_sending *block)
{
    return send_queue_at(queue, block->work);
}

/* BN one past the last block of a request that was begun. */
static inline uint32_t work_blocks_end(const struct work *work)
{
    return work->first_block + block_message_blocks(work->packets);
}

/* Was something lost on the path in the last second? */
static inline bool block_was_lossy(const struct block_requester *requester, uint8_t path,
                                   struct instant now)
{
    const uint64_t at_ns = requester->lost_at[path].ns;
    return at_ns != 0 && now.ns - at_ns < 1000000000;
}

/* Does `bn` lie in [from, to)? */
static inline bool block_within(uint32_t bn, uint32_t from, uint32_t to)
{
    return bn - from < to - from;
}

/* Have all its positions left (READ: been asked for)? */
static inline bool block_is_sent(const struct block_sending *block)
{
    return block->sent == block_positions(block->last);
}

static inline bool block_is_executed(const struct block_requester *requester, uint32_t bn)
{
    return block_number_before(bn, requester->base);
}

static inline bool block_has_data(const struct block_sending *block)
{
    return block->arrived == block_positions(block->last);
}

static inline struct path *block_path_of(const struct block_requester *requester, uint8_t path)
{
    return paths_at(&requester->paths, path);
}

static inline void block_note_missing(struct block_requester *requester, uint32_t bn)
{
    const uint32_t slot = bn & requester->mask;
    requester->missing[slot / 64] |= UINT64_C(1) << slot % 64;
    requester->resend_at = (struct instant){0};
}

static inline void block_note_found(struct block_requester *requester, uint32_t bn)
{
    const uint32_t slot = bn & requester->mask;
    requester->missing[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

static inline bool block_is_missing(const struct block_requester *requester, uint32_t bn)
{
    const uint32_t slot = bn & requester->mask;
    return (requester->missing[slot / 64] >> slot % 64 & 1) != 0;
}

/* The first block of [from, next) that may have to be re-sent; `next`: none. */
uint32_t block_next_missing(const struct block_requester *requester, uint32_t from);

/* Everything before `base` has been executed. */
void block_advance(struct block_requester *requester, struct send_queue *queue, uint32_t base,
                   struct instant now);
/* The farthest that base may have come: a block that has not left as a whole cannot have been
 * executed, unless it is one of a READ. */
uint32_t block_base_limit(const struct block_requester *requester);
/* The request of a block ends with this status when all before it is done. */
struct block_progress block_end_request(struct block_requester *requester,
                                        const struct send_queue *queue, uint32_t bn,
                                        enum completion_status status, struct instant now);
/* Something moved: the transport timer and its retries start anew. */
void block_note_progress(struct block_requester *requester, struct instant now);
/* `oldest` moves over all that is done. */
void block_settle(struct block_requester *requester);

/* -- requester_room.c */
/* The bytes of a window that positions of a block take. */
uint32_t block_cost_of(const struct block_requester *requester, const struct work *work,
                       uint32_t index, uint64_t positions);

/* The memory that a WRITE is for. */
struct block_range block_range_of(const struct work *work);
/* D of a message that begins now. */
bool block_is_early(const struct block_requester *requester, const struct work *work);
/* May the message begin that is next in the queue? Fence, initiator depth, receives, order. */
bool block_may_begin(const struct block_requester *requester, const struct work *work);
/* May one more block be under way, as many bytes in flight, a packet leave on this path? */
bool block_window_has_room(const struct block_requester *requester, const struct work *work);
bool block_link_has_room(struct block_requester *requester, uint32_t asked_bytes);
bool block_path_has_room(struct block_requester *requester, uint8_t path, struct instant now);
/* Positions that one request of a READ asks for at most. */
uint32_t block_read_positions(const struct block_requester *requester);
/* The round trips are news: is the peer far away? */
void block_note_distance(struct block_requester *requester);
/* There is nothing to send now, but there may be then. */
void block_wake_at(struct block_requester *requester, struct instant at, struct instant now);

/* -- requester_resend.c */
/* Sets out to re-send the next block that is due, if one is: then resend_left is not 0. Else
 * resend_at says when to look again. */
void block_resend_begin(struct block_requester *requester, const struct send_queue *queue,
                        struct instant now);
/* The block to be re-sent finds no room. An older block that is due goes first, if there is one:
 * the first one may be waiting for it. */
void block_resend_give_way(struct block_requester *requester, const struct send_queue *queue,
                           struct instant now);
/* The path of a block that is re-sent has failed: another one, if any has room. */
bool block_resend_path(struct block_requester *requester, struct block_sending *block,
                       struct instant now);
/* How long data may take before they are asked for again. */
uint64_t block_data_patience_ns(const struct block_requester *requester);
/* The newest report of a block, which is not executed; `arrived` is as that says. */
void block_resend_reported(struct block_requester *requester, uint32_t bn,
                           const struct block_record *record, struct instant now);
/* A path is left: its packets in flight go again. */
void block_resend_path_left(struct block_requester *requester, uint8_t path);

/* -- requester_data.c */
/* Does no request before a refused one wait for data any more? Then its turn has come. */
void block_settle_refusal(struct block_requester *requester, const struct send_queue *queue);

/* -- requester_time.c */
void block_stop(struct block_requester *requester);
void block_arm_probe(struct block_requester *requester, struct instant now);

#endif
