/* SPDX-License-Identifier: BSD-2-Clause
 *
 * work - send work requests and the ring they wait in, shared by the RC, UC and UD engines.
 *
 * Purpose    Keeps posted work in order between posting, transmission and completion.
 * Inputs     send_queue_reserve / send_queue_publish when a program posts.
 * Outputs    Three positions: oldest not completed, next to transmit, first free.
 * Ownership  The caller gives the slot memory and keeps it in place.
 * Threads    One caller at a time.
 * Time       Not used.
 * Units      Bytes; positions run free modulo 2^32 and are masked on access.
 * Limits     `limit` requests.
 * Source     IBTA Vol. 1 chapter 10.8 (work requests); numeric values as verbs programs know them.
 */
#ifndef TRANSPORT_COMMON_WORK_H
#define TRANSPORT_COMMON_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/common/psn.h"

/* What a send work request asks for: the values of enum ibv_wr_opcode. */
enum work_kind {
    WORK_WRITE = 0,
    WORK_WRITE_IMMEDIATE = 1,
    WORK_SEND = 2,
    WORK_SEND_IMMEDIATE = 3,
    WORK_READ = 4,
    WORK_COMPARE_SWAP = 5,
    WORK_FETCH_ADD = 6,
    WORK_LOCAL_INVALIDATE = 7,
    WORK_BIND_WINDOW = 8,
    WORK_SEND_INVALIDATE = 9,
    WORK_ATOMIC_WRITE = 15,
};

/* Flags of a send work request: the values of enum ibv_send_flags. */
enum work_flag {
    WORK_FENCE = 1 << 0,
    WORK_SIGNALED = 1 << 1,
    WORK_SOLICITED = 1 << 2,
    WORK_INLINE = 1 << 3,
};

/* The values of enum ibv_wc_status. */
enum completion_status {
    COMPLETION_SUCCESS,
    COMPLETION_LOCAL_LENGTH,
    COMPLETION_LOCAL_QP_OPERATION,
    COMPLETION_LOCAL_EEC_OPERATION,
    COMPLETION_LOCAL_PROTECTION,
    COMPLETION_FLUSHED,
    COMPLETION_WINDOW_BIND,
    COMPLETION_BAD_RESPONSE,
    COMPLETION_LOCAL_ACCESS,
    COMPLETION_REMOTE_INVALID_REQUEST,
    COMPLETION_REMOTE_ACCESS,
    COMPLETION_REMOTE_OPERATION,
    COMPLETION_RETRY_EXCEEDED,
    COMPLETION_RNR_RETRY_EXCEEDED,
};

/* A scatter/gather element as a program posts it: the layout of struct ibv_sge. */
struct sge {
    uint64_t address;
    uint32_t bytes;
    uint32_t key;
};

/* One posted request. Its SGEs, or its inline bytes, follow it in the slot. */
struct work {
    uint64_t wr_id;
    uint64_t remote_address;
    uint32_t remote_key;
    uint32_t bytes;     /* Whole message. */
    uint32_t immediate; /* Wire bytes, untouched; or the key to invalidate. */
    uint8_t kind;       /* enum work_kind. */
    uint8_t flags;      /* enum work_flag bits. */
    uint8_t sge_count;
    uint8_t status;         /* enum completion_status a request that failed locally ends with. */
    bool started;           /* PSNs are assigned; local work: executed. */
    uint16_t moves_pending; /* Response payloads on their way into memory. */
    struct psn first;       /* PSN of the first packet. */
    uint32_t packets;       /* PSNs it takes; 0 for local work. */
    uint32_t serial;        /* SSN: number of the message, for end-to-end credits (9.7.7.2). */
    uint32_t cost;          /* Requester's running total of flight bytes before this request. */
    uint32_t srqn;          /* XRC: the shared receive queue it is for. */
    union {
        struct {
            uint64_t compare_or_add, swap;
        } atomic;
        struct {
            const void *path; /* In the slot's own tail: a copy, since handles may be destroyed. */
            uint32_t qpn, qkey;
        } datagram;
        struct {
            uint64_t bytes;
            uint32_t window,
                region;           /* By key: the objects may be gone when the bind's turn comes. */
            uint32_t access, key; /* What the window is to get. */
        } bind;
    };
};

struct send_queue {
    uint8_t *slots;
    uint32_t slot_bytes;
    uint32_t mask;
    uint32_t limit;      /* The program's max_send_wr. */
    uint32_t tail_bytes; /* Room behind struct work: for SGEs or inline bytes. */
    uint32_t head;       /* Oldest not completed. */
    uint32_t next;       /* Being transmitted. */
    uint32_t tail;       /* First free. */
};

/* Memory for `limit` requests with `tail_bytes` behind each. */
size_t send_queue_bytes(uint32_t limit, uint32_t tail_bytes);
void send_queue_init(struct send_queue *queue, uint32_t limit, uint32_t tail_bytes, void *memory);

static inline struct work *send_queue_at(const struct send_queue *queue, uint32_t position)
{
    return (struct work *)(void *)(queue->slots +
                                   (size_t)(position & queue->mask) * queue->slot_bytes);
}

static inline uint32_t send_queue_count(const struct send_queue *queue)
{
    return queue->tail - queue->head;
}

static inline bool send_queue_full(const struct send_queue *queue)
{
    return send_queue_count(queue) >= queue->limit;
}

static inline struct sge *work_sges(struct work *work)
{
    return (struct sge *)(void *)(work + 1);
}

static inline uint8_t *work_inline(struct work *work)
{
    return (uint8_t *)(work + 1);
}

/* Local work takes no PSN: it happens at the requester only. */
static inline bool work_is_local(const struct work *work)
{
    return work->kind == WORK_LOCAL_INVALIDATE || work->kind == WORK_BIND_WINDOW;
}

static inline bool work_is_atomic(const struct work *work)
{
    return work->kind == WORK_COMPARE_SWAP || work->kind == WORK_FETCH_ADD ||
           work->kind == WORK_ATOMIC_WRITE;
}

/* Completed by a response of its own, not by a plain acknowledgement. */
static inline bool work_wants_response(const struct work *work)
{
    return work->kind == WORK_READ || work_is_atomic(work);
}

/* ... which brings data home. */
static inline bool work_wants_data(const struct work *work)
{
    return work_wants_response(work) && work->kind != WORK_ATOMIC_WRITE;
}

/* One past the last PSN of a request that was started. */
static inline struct psn work_end(const struct work *work)
{
    return psn_after(work->first, work->packets);
}

/* Is `psn` one of a request that was started? */
static inline bool work_covers(const struct work *work, struct psn psn)
{
    return psn_count(work->first, psn) < work->packets;
}

/* PSNs a message of `bytes` takes at an MTU: a message of zero bytes is one packet. */
static inline uint32_t packets_of(uint32_t bytes, uint32_t mtu_bytes)
{
    return bytes == 0 ? 1 : bytes / mtu_bytes + (bytes % mtu_bytes != 0);
}

#endif
