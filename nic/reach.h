/* SPDX-License-Identifier: BSD-2-Clause
 *
 * reach - the one rule of access to memory.
 *
 * Purpose    Judges an access to memory by plain values: by a view of the queue pair that it goes
 *            through, and one of what its key opens. The engines judge packets and work requests by
 *            this rule (nic/region.c, nic/ibta/, nic/block/). A local peer that writes and reads
 *            without its target's engine judges its own access by the same rule, with views made of
 *            what the target published (drivers/shm/shm_board.c).
 * Inputs     Copies: a caller first copies words that another process may change.
 * Outputs    A verdict: the first reason against the access, in the order of the enum.
 * Ownership  Nothing is kept.
 * Threads    Any.
 * Limits     A start plus its bytes does not wrap (region_add sees to it).
 * Source     IBTA Vol. 1, 9.6 (state, peer), 9.7.4.1.5 (rights), 10.6.3 and 10.6.7 (keys, windows).
 *
 * The cases, by packets and directly (a local peer makes the access itself):
 *
 *   terms       a responder of RC judges PSN, length and READs in each packet; a local peer asks
 *               whether the two halves agree on them, and sends packets where they do not, so that
 *               the responder judges: REACH_OTHER_PSN, REACH_OTHER_MTU, REACH_OTHER_READS
 *   RC          by packets in RTR, RTS, SQD and SQE; directly in RTR and RTS
 *   UC          by packets, which are WRITEs only; directly: REACH_WRONG_SERVICE
 *   XRC         by packets, in the domain of the shared receive queue that a request names;
 *               directly: REACH_WRONG_SERVICE, because that queue is known with the request only
 *   UD          nothing is reached by key: REACH_WRONG_SERVICE
 *   windows     type 1 for its protection domain, type 2 for the queue pair that it is bound to,
 *               unbound REACH_UNKNOWN_KEY; never an lkey; directly: REACH_WINDOW
 *   zero-based  a start of 0, whatever memory it stands for; directly, too
 *   on-demand   like others, but the copy may find no memory; directly: REACH_ON_DEMAND, because
 *               the peer's copy would end half-way without anybody to be told
 *   null        local work reaches every address of it; nobody else has rights
 *   0 bytes     need no valid key (C9-88), unless they are to be flushed
 *   FLUSH       by packets; directly: REACH_NO_RIGHT, because the peer's NIC orders it behind what
 *               came before
 */
#ifndef NIC_REACH_H
#define NIC_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "nic/types.h"

enum reach_verdict {
    REACH_ALLOWED,
    /* The queue pair does not allow the access. */
    REACH_UNKNOWN_QP,
    REACH_WRONG_SERVICE,
    REACH_WRONG_STATE,
    REACH_WRONG_PEER,
    REACH_NO_RIGHT, /* It does not grant this right to its peer. */
    /* The key does not allow the access. */
    REACH_UNKNOWN_KEY,  /* Or a window that is not bound. */
    REACH_WRONG_DOMAIN, /* Another protection domain, or another queue pair for a type 2 window. */
    REACH_OUT_OF_BOUNDS,
    REACH_FORBIDDEN, /* Not granted; a window grants nothing to local work. */
    /* Packets may reach the memory; a local peer may not directly. */
    REACH_WINDOW,
    REACH_ON_DEMAND,
    /* The access has to go by packets, which the responder judges, because the two halves of the
     * connection do not agree. */
    REACH_OTHER_PSN, /* The queue pair expects another PSN, or nobody knows which. */
    REACH_OTHER_MTU,
    REACH_OTHER_READS, /* It answers fewer READs at a time than the requester asks. */
    REACH_VERDICT_COUNT,
};

enum region_kind {
    REGION_MEMORY,        /* ibv_mr. */
    REGION_WINDOW_TYPE_1, /* ibv_mw, bound by ibv_bind_mw; judged by protection domain. */
    REGION_WINDOW_TYPE_2, /* ibv_mw, bound by a posted request; judged by queue pair (2B). */
};

/* Access bits that let a peer in. */
#define ACCESS_REMOTE_WRITES ((uint32_t)(ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC))
#define ACCESS_FLUSH         ((uint32_t)(ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT))
#define ACCESS_REMOTE        (ACCESS_REMOTE_WRITES | ACCESS_REMOTE_READ | ACCESS_FLUSH)
/* The rights that a local peer can use directly. */
#define REACH_DIRECT ((uint32_t)(ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ))

/* The user on whose behalf an access is made. Both numbers are only compared; 0 is no domain and no
 * queue pair. */
struct reach_user {
    uint64_t domain; /* The protection domain. */
    uint64_t name;   /* The queue pair; 0: work of the program itself. */
};

/* The terms on which both halves of a connection have to agree, beside their PSNs. */
struct reach_terms {
    uint32_t mtu_bytes;
    uint32_t
        reads; /* READs and atomics at a time: asked by a requester, answered by a responder. */
};

struct reach_qp {
    enum qp_type type;
    enum qp_state state;
    uint32_t granted; /* enum access bits. */
    struct reach_user user;
    struct gid peer;
    uint32_t peer_number;
    struct reach_terms terms; /* As a responder. */
};

/* The requester. */
struct reach_source {
    struct gid gid;
    uint32_t number; /* Its queue pair. */
    struct reach_terms terms;
};

/* The memory that a key opens; all 0: none. */
struct reach_region {
    bool open; /* There is a region with this key, or a window that is bound. */
    bool null; /* A null region: every address. */
    enum region_kind kind;
    uint32_t access;        /* enum access bits. */
    uint64_t domain, owner; /* As in reach_user; `owner`: type 2 windows. */
    uint64_t start, bytes;  /* As peers and SGEs name it. */
    uint64_t memory;        /* The memory address of `start`. */
};

struct reach_access {
    uint64_t address;
    uint32_t bytes;
    uint32_t rights;        /* enum access bits, all of which it takes. */
    uint32_t message_bytes; /* The whole request that it is a part of. */
};

/* -- The steps of the rule, for engines, which need them one by one -----------------------------*/

/* Does a queue pair in that state execute requests? */
static inline bool reach_state_serves(enum qp_state state)
{
    switch (state) {
    case QP_RTR:
    case QP_RTS:
    case QP_SQD:
    case QP_SQE: return true;
    case QP_RESET:
    case QP_INIT:
    case QP_ERR: return false;
    }
    UNREACHABLE("a state outside its enum");
}

static inline bool reach_is_peer(const struct gid *peer, const struct gid *source)
{
    return gid_equal(peer, source);
}

static inline bool reach_grants(uint32_t granted, uint32_t rights)
{
    return (rights & ~granted) == 0;
}

/* Is [address, address + bytes) inside [start, start + size)? Since that does not wrap, an address
 * in front of `start` makes an offset larger than any `size`. */
static inline bool reach_inside(uint64_t start, uint64_t size, uint64_t address, uint64_t bytes)
{
    const uint64_t offset = address - start;
    return offset <= size && bytes <= size - offset;
}

/* Is the key for this user at all? */
static inline enum reach_verdict reach_judge_user(const struct reach_user *user,
                                                  const struct reach_region *region,
                                                  uint32_t rights)
{
    if (LIKELY(region->kind == REGION_MEMORY)) {
        return LIKELY(region->domain == user->domain) ? REACH_ALLOWED : REACH_WRONG_DOMAIN;
    }
    if (user->name == 0 || !(rights & ACCESS_REMOTE)) {
        return REACH_FORBIDDEN;
    }
    const bool mine = region->kind == REGION_WINDOW_TYPE_1 ? region->domain == user->domain
                                                           : region->owner == user->name;
    return mine ? REACH_ALLOWED : REACH_WRONG_DOMAIN;
}

/* Judges the key even for 0 bytes, which a FLUSH may ask for. */
static inline enum reach_verdict reach_judge_named(const struct reach_user *user,
                                                   const struct reach_region *region,
                                                   const struct reach_access *access)
{
    if (UNLIKELY(!region->open)) {
        return REACH_UNKNOWN_KEY;
    }
    const enum reach_verdict verdict = reach_judge_user(user, region, access->rights);
    if (UNLIKELY(verdict != REACH_ALLOWED)) {
        return verdict;
    }
    if (UNLIKELY(!reach_inside(region->start, region->bytes, access->address, access->bytes)) &&
        !region->null) {
        return REACH_OUT_OF_BOUNDS;
    }
    return LIKELY(reach_grants(region->access, access->rights)) ? REACH_ALLOWED : REACH_FORBIDDEN;
}

static inline enum reach_verdict reach_judge_key(const struct reach_user *user,
                                                 const struct reach_region *region,
                                                 const struct reach_access *access)
{
    return UNLIKELY(access->bytes == 0) ? REACH_ALLOWED : reach_judge_named(user, region, access);
}

/* The memory that an address stands for. */
static inline uint64_t reach_memory(const struct reach_region *region, uint64_t address)
{
    return region->memory + (address - region->start);
}

/* -- The whole rule -----------------------------------------------------------------------------*/

/* May `source` make this access through the queue pair? The PSN is not judged here, because it
 * changes with each packet: a caller that judges for a responder compares it itself. */
MUST_USE enum reach_verdict reach_judge(const struct reach_qp *qp,
                                        const struct reach_source *source,
                                        const struct reach_region *region,
                                        const struct reach_access *access);

/* Can a local peer use the queue pair, or the region, directly at all? */
MUST_USE enum reach_verdict reach_judge_direct_qp(const struct reach_qp *qp);
MUST_USE enum reach_verdict reach_judge_direct_region(const struct reach_region *region);

#endif
