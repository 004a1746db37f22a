/* SPDX-License-Identifier: BSD-2-Clause
 *
 * contexts - packets of blocks that have come: a NIC's table, and the chain of each stream.
 *
 * Purpose    Keeps what is known of a block that is neither executed nor executed at once. The
 *            table is a cache of 16 ways; what a full set forgets is sent again. Each stream has
 *            one more context of its own, the reserve, for block base: so progress never depends on
 *            the table.
 * Inputs     block_contexts_add, _remove; the chain's owner moves `base`.
 * Outputs    block_contexts_find; block_contexts_first and _next: a stream's, in BN order.
 * Ownership  The caller gives the table's memory (block_contexts_bytes) and owns each chain.
 * Time       An argument: a context that nobody used for 100 ms may be forgotten.
 * Units      BNs are 32 bits and wrap.
 * Limits     A chain has at most as many contexts as its window has blocks.
 * Source     docs/block-transport.md.
 */
#ifndef TRANSPORT_BLOCK_CONTEXTS_H
#define TRANSPORT_BLOCK_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"

#define BLOCK_CONTEXT_WAYS 16
#define BLOCK_CONTEXT_NONE UINT32_MAX
/* A millisecond, nearly: used_at counts these. */
#define BLOCK_CONTEXT_TICK_SHIFT 20
#define BLOCK_CONTEXT_AGE_TICKS  95 /* 100 ms. */

enum block_context_flag {
    BLOCK_CONTEXT_ASKED = 1 << 0,      /* A packet with A came. */
    BLOCK_CONTEXT_LAST = 1 << 1,       /* M: the message's last block. */
    BLOCK_CONTEXT_DECLINED = 1 << 2,   /* A packet was declined in `round`. */
    BLOCK_CONTEXT_IMMEDIATE = 1 << 3,  /* T, as the message's last packet said; */
    BLOCK_CONTEXT_INVALIDATE = 1 << 4, /* K, */
    BLOCK_CONTEXT_SOLICITED = 1 << 5,  /* SE. */
    BLOCK_CONTEXT_RECEIVE = 1 << 6,    /* Its message has taken a shared receive. */
    BLOCK_CONTEXT_BEGUN = 1 << 7,      /* Its atomic is on its way to memory. */
};

struct block_chain;

struct block_context {
    struct block_chain *owner; /* NULL: free. */
    uint64_t arrived;          /* Bit p: position p is held, on its way into memory, or there. */
    uint64_t placed;           /* It is there. */
    uint64_t address;          /* WRITE, READ: of the message's first byte; atomic. */
    union {
        uint64_t wanted;  /* READ. */
        uint64_t compare; /* Atomic. */
    };
    uint64_t swap_or_add;
    uint32_t number, index;
    uint32_t message_bytes; /* Atomic: its kind. */
    uint32_t key;
    uint32_t receive_number;
    uint32_t tag;   /* READ, atomic: the path it came on. */
    uint32_t next;  /* In the chain. */
    uint32_t held;  /* Ring of held payloads. */
    uint32_t birth; /* Tells it from an earlier context of the same block. */
    uint32_t used_at;
    uint8_t opcode;
    uint8_t last_position;
    uint8_t round; /* The last one seen. */
    uint8_t flags; /* enum block_context_flag. */
};
_Static_assert(sizeof(struct block_context) <= 104, "a context is small");

/* A stream's contexts. */
struct block_chain {
    uint32_t owner; /* The queue pair's number. */
    uint32_t base;  /* All blocks before it are executed: none of them has a context. */
    uint32_t head, tail;
    uint32_t count;
    uint32_t births;
    uint32_t forgotten; /* How many were forgotten to make room for others. */
    bool reserve_used;
    struct block_context *reserve; /* In the stream itself. */
};

struct block_contexts {
    uint32_t *tags; /* One for each entry, 0: free; those of a set are a cache line. */
    struct block_context *entries;
    uint32_t set_mask;
    uint32_t used;
};

/* `count` is a power of two, at least BLOCK_CONTEXT_WAYS. */
size_t block_contexts_bytes(uint32_t count);
/* `memory` is zeroed and 64-byte aligned. */
void block_contexts_init(struct block_contexts *contexts, uint32_t count, void *memory);
void block_chain_init(struct block_chain *chain, uint32_t owner, uint32_t base,
                      struct block_context *reserve);

/* NULL: the block has none. */
struct block_context *block_contexts_find(const struct block_contexts *contexts,
                                          const struct block_chain *chain, uint32_t number);
struct block_context *block_contexts_first(const struct block_contexts *contexts,
                                           const struct block_chain *chain);
struct block_context *block_contexts_next(const struct block_contexts *contexts,
                                          const struct block_context *context);

/* Adds a context for a block that has none. All of it is 0 but the members of the chain. Block base
 * always gets one. NULL: all contexts of its set must stay. */
struct block_context *block_contexts_add(struct block_contexts *contexts, struct block_chain *chain,
                                         uint32_t number, struct instant now);
/* Its held payloads are the caller's business. */
void block_contexts_remove(struct block_contexts *contexts, struct block_context *context);

static inline void block_context_touch(struct block_context *context, struct instant now)
{
    context->used_at = (uint32_t)(now.ns >> BLOCK_CONTEXT_TICK_SHIFT);
}

/* A chain is in BN order, begins at base or later, and its contexts are found. */
void block_chain_check(const struct block_contexts *contexts, const struct block_chain *chain);

#endif
