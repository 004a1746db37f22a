/* SPDX-License-Identifier: BSD-2-Clause
 *
 * work - send work requests and the ring they wait in, shared by the RC, UC and UD engines.
 *
 * Purpose    Keeps posted work in order between posting, transmission and completion.
 * Inputs     send_queue_reserve / send_queue_publish when a program posts.
 * Outputs    Three positions: oldest not completed, next to transmit, first free.
 * Ownership  The caller gives the slot memory and keeps it in place.
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

/* The traits of a kind of request. Each kind is one of SEND, WRITE, READ, atomic, FLUSH and
 * local. */
enum work_trait {
    WORK_ON_RC = 1 << 0, /* The services that carry it (10.8.3). */
    WORK_ON_UC = 1 << 1,
    WORK_ON_UD = 1 << 2,
    WORK_ON_XRC = 1 << 3,
    WORK_IS_SEND = 1 << 4,
    WORK_IS_WRITE = 1 << 5,
    WORK_IS_READ = 1 << 6,
    WORK_IS_ATOMIC = 1 << 7, /* It is about 8 aligned bytes, takes one packet, and is answered. */
    WORK_IS_LOCAL = 1 << 8,  /* It happens at the requester only, and takes no PSN. */
    WORK_HAS_IMMEDIATE = 1 << 9,
    WORK_HAS_OPERANDS = 1 << 10, /* Values to compare, to swap, to add. */
    WORK_BRINGS_DATA = 1 << 11,  /* Its answer's data are written to its SGEs. */
    WORK_ON_SRD = 1 << 13,
    WORK_IS_FLUSH = 1 << 12, /* It carries nothing, takes one packet, and is answered. */
};

#define WORK_ON_CONNECTED (WORK_ON_RC | WORK_ON_UC | WORK_ON_XRC)
#define WORK_ON_RELIABLE  (WORK_ON_RC | WORK_ON_XRC)
#define WORK_ON_DATAGRAMS (WORK_ON_UD | WORK_ON_SRD)
#define WORK_ON_ANY       (WORK_ON_CONNECTED | WORK_ON_DATAGRAMS)
/* A window is for the queue pair that bound it, and no request comes in on an XRC initiator. */
#define WORK_ON_WINDOWED (WORK_ON_RC | WORK_ON_UC)

/* Every kind of send work request. X(argument, name, number, verbs, completion, traits): `number`
 * is that of IBV_WR_<verbs>, which ibv_wr_... offer as IBV_QP_EX_WITH_<verbs>; it completes as
 * COMPLETION_<completion>. How each kind becomes packets: transport/ibta/segmentation.c. */
/* clang-format off */
#define WORK_KINDS(X, argument)                                                                    \
    X(argument, WRITE, 0, RDMA_WRITE, WRITE, WORK_ON_CONNECTED | WORK_ON_SRD | WORK_IS_WRITE)      \
    X(argument, WRITE_IMMEDIATE, 1, RDMA_WRITE_WITH_IMM, WRITE,                                    \
      WORK_ON_CONNECTED | WORK_ON_SRD | WORK_IS_WRITE | WORK_HAS_IMMEDIATE)                        \
    X(argument, SEND, 2, SEND, SEND, WORK_ON_CONNECTED | WORK_ON_DATAGRAMS | WORK_IS_SEND)         \
    X(argument, SEND_IMMEDIATE, 3, SEND_WITH_IMM, SEND,                                            \
      WORK_ON_CONNECTED | WORK_ON_DATAGRAMS | WORK_IS_SEND | WORK_HAS_IMMEDIATE)                   \
    X(argument, READ, 4, RDMA_READ, READ,                                                          \
      WORK_ON_RELIABLE | WORK_ON_SRD | WORK_IS_READ | WORK_BRINGS_DATA)                            \
    X(argument, COMPARE_SWAP, 5, ATOMIC_CMP_AND_SWP, COMPARE_SWAP,                                 \
      WORK_ON_RELIABLE | WORK_IS_ATOMIC | WORK_HAS_OPERANDS | WORK_BRINGS_DATA)                    \
    X(argument, FETCH_ADD, 6, ATOMIC_FETCH_AND_ADD, FETCH_ADD,                                     \
      WORK_ON_RELIABLE | WORK_IS_ATOMIC | WORK_HAS_OPERANDS | WORK_BRINGS_DATA)                    \
    X(argument, LOCAL_INVALIDATE, 7, LOCAL_INV, LOCAL_INVALIDATE,                                  \
      WORK_ON_WINDOWED | WORK_IS_LOCAL)                                                            \
    X(argument, BIND_WINDOW, 8, BIND_MW, BIND_WINDOW, WORK_ON_WINDOWED | WORK_IS_LOCAL)            \
    X(argument, SEND_INVALIDATE, 9, SEND_WITH_INV, SEND, WORK_ON_RC | WORK_IS_SEND)                \
    X(argument, FLUSH, 14, FLUSH, FLUSH, WORK_ON_RELIABLE | WORK_IS_FLUSH)                         \
    X(argument, ATOMIC_WRITE, 15, ATOMIC_WRITE, ATOMIC_WRITE, WORK_ON_RELIABLE | WORK_IS_ATOMIC)
/* clang-format on */

#define WORK_NUMBER(argument, name, number, verbs, completion, traits) WORK_##name = (number),
enum work_kind {
    WORK_KINDS(WORK_NUMBER, 0)
};

/* The kinds that have at least one of these traits, as a set: bit k is for the kind of number k.
 * A constant if the traits are. */
#define WORK_BIT(wanted, name, number, verbs, completion, traits)                                  \
    | (((traits) & (wanted)) != 0 ? 1u << (number) : 0)
static inline uint32_t work_kinds(uint32_t traits)
{
    return 0 WORK_KINDS(WORK_BIT, traits);
}

/* Is the kind in the set? Programs choose it, so it may be any number. */
static inline bool work_kind_in(uint32_t kinds, uint32_t kind)
{
    return kind < 32 && (kinds >> kind & 1) != 0;
}

/* The ends that work comes to. X(argument, name, number, verbs): `number` is that of
 * IBV_WC_<verbs>. */
#define COMPLETION_KINDS(X, argument)                                                              \
    X(argument, SEND, 0, SEND)                                                                     \
    X(argument, WRITE, 1, RDMA_WRITE)                                                              \
    X(argument, READ, 2, RDMA_READ)                                                                \
    X(argument, COMPARE_SWAP, 3, COMP_SWAP)                                                        \
    X(argument, FETCH_ADD, 4, FETCH_ADD)                                                           \
    X(argument, BIND_WINDOW, 5, BIND_MW)                                                           \
    X(argument, LOCAL_INVALIDATE, 6, LOCAL_INV)                                                    \
    X(argument, FLUSH, 8, FLUSH)                                                                   \
    X(argument, ATOMIC_WRITE, 9, ATOMIC_WRITE)                                                     \
    X(argument, RECEIVE, 128, RECV)                                                                \
    X(argument, RECEIVE_WRITE_IMMEDIATE, 129, RECV_RDMA_WITH_IMM)

#define COMPLETION_NUMBER(argument, name, number, verbs) COMPLETION_##name = (number),
enum completion_kind {
    COMPLETION_KINDS(COMPLETION_NUMBER, 0)
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
    COMPLETION_REMOTE_INVALID_RD_REQUEST = 15,
    COMPLETION_REMOTE_ABORTED = 16,
    COMPLETION_RESPONSE_TIMEOUT = 20,
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
    union {
        struct psn first;     /* PSN of the first packet. */
        uint32_t first_block; /* Block transport: BN of the first block. */
    };
    uint32_t packets; /* PSNs it takes, or packets of blocks; 0 for local work. */
    union {
        uint32_t serial;         /* SSN: number of the message, for end-to-end credits (9.7.7.2). */
        uint32_t receive_number; /* Block transport: RN. */
    };
    union {
        uint32_t cost;    /* Requester's running total of flight bytes before this request. */
        uint32_t awaited; /* Block transport: packets of data that have not come. */
    };
    uint32_t srqn; /* XRC: the shared receive queue it is for. */
    union {
        struct {
            uint64_t compare_or_add, swap;
        } atomic;
        struct {
            uint32_t bytes;                 /* From remote_address on. */
            uint8_t placement, selectivity; /* enum roce_placement bits, enum roce_selectivity. */
        } flush;
        struct {
            const void *av; /* In the slot's own tail: a copy, since handles may be destroyed. */
            uint32_t qpn, qkey;
        } datagram;
        struct {
            uint64_t bytes;
            uint32_t window,
                region;           /* By key: the objects may be gone when the bind's turn comes. */
            uint32_t access, key; /* The rights and key that the window is to get. */
        } bind;
    };
};

struct send_queue {
    uint8_t *slots;
    uint32_t slot_bytes;
    uint32_t mask;
    uint32_t limit; /* The program's max_send_wr. */
    /* Kept for its owner: what the program may put behind struct work. */
    uint16_t inline_max;
    uint8_t sge_max;
    uint32_t head; /* Oldest not completed. */
    uint32_t next; /* Being transmitted. */
    uint32_t tail; /* First free. */
    /* nic/slots.c alone uses it: behind the newest request whose completion the program polled. */
    uint32_t polled;
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

/* Has the request at least one of these traits? This is asked dozens of times a packet, so it is
 * one test of a bit. The kind is below 32, as it was judged when the request was posted. */
static inline bool work_is(const struct work *work, uint32_t traits)
{
    return (work_kinds(traits) >> (work->kind & 31) & 1) != 0;
}

static inline bool work_is_local(const struct work *work)
{
    return work_is(work, WORK_IS_LOCAL);
}

/* A SEND or WRITE, with an immediate value or without: most requests. */
static inline bool work_is_plain(const struct work *work)
{
    const uint32_t plain =
        1u << WORK_SEND | 1u << WORK_SEND_IMMEDIATE | 1u << WORK_WRITE | 1u << WORK_WRITE_IMMEDIATE;
    return work_kind_in(plain, work->kind);
}

static inline bool work_is_atomic(const struct work *work)
{
    return work_is(work, WORK_IS_ATOMIC);
}

/* Completed by a response of its own, not by a plain acknowledgement. */
static inline bool work_wants_response(const struct work *work)
{
    return work_is(work, WORK_IS_READ | WORK_IS_ATOMIC | WORK_IS_FLUSH);
}

/* ... which is one packet, as is the request: atomics and FLUSHes, but not READs. */
static inline bool work_is_single(const struct work *work)
{
    return work_is(work, WORK_IS_ATOMIC | WORK_IS_FLUSH);
}

/* ... which brings data home. */
static inline bool work_wants_data(const struct work *work)
{
    return work_is(work, WORK_BRINGS_DATA);
}

/* Takes a receive of the peer's. */
static inline bool work_takes_receive(const struct work *work)
{
    return work_is(work, WORK_IS_SEND | WORK_HAS_IMMEDIATE);
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

/* PSNs a message of `bytes` takes at an MTU: a message of zero bytes is one packet. Small ones do
 * without the division. */
static inline uint32_t packets_of(uint32_t bytes, uint32_t mtu_bytes)
{
    return bytes <= mtu_bytes ? 1 : (bytes - 1) / mtu_bytes + 1;
}

#endif
