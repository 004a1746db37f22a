/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/block/contexts.h"

#include "base/align.h"
#include "transport/block/hold.h"
#include "wire/block.h"

#define RESERVE (BLOCK_CONTEXT_NONE - 1)

static size_t tags_bytes(uint32_t count)
{
    return line_aligned(count * sizeof(uint32_t));
}

size_t block_contexts_bytes(uint32_t count)
{
    return tags_bytes(count) + line_aligned(count * sizeof(struct block_context));
}

void block_contexts_init(struct block_contexts *contexts, uint32_t count, void *memory)
{
    CHECK(count >= BLOCK_CONTEXT_WAYS && (count & (count - 1)) == 0);
    *contexts = (struct block_contexts){
        .tags = memory,
        .entries = (struct block_context *)(void *)((uint8_t *)memory + tags_bytes(count)),
        .set_mask = count / BLOCK_CONTEXT_WAYS - 1,
    };
}

void block_chain_init(struct block_chain *chain, uint32_t owner, uint32_t base,
                      struct block_context *reserve)
{
    *chain = (struct block_chain){.owner = owner,
                                  .base = base,
                                  .reserve = reserve,
                                  .head = BLOCK_CONTEXT_NONE,
                                  .tail = BLOCK_CONTEXT_NONE};
}

/* -- The table ----------------------------------------------------------------------------------*/

/* Blocks that follow each other lie in sets that follow each other. */
static uint32_t set_of(const struct block_contexts *contexts, const struct block_chain *chain,
                       uint32_t number)
{
    return ((number + chain->owner * 0x9e3779b1u) & contexts->set_mask) * BLOCK_CONTEXT_WAYS;
}

static uint32_t tag_of(const struct block_chain *chain, uint32_t number)
{
    return (number * 0x85ebca6bu ^ chain->owner * 0xc2b2ae35u) | 1;
}

static struct block_context *at(const struct block_contexts *contexts,
                                const struct block_chain *chain, uint32_t id)
{
    if (id == BLOCK_CONTEXT_NONE) {
        return NULL;
    }
    return id == RESERVE ? chain->reserve : &contexts->entries[id];
}

static uint32_t id_of(const struct block_contexts *contexts, const struct block_context *context)
{
    return context == context->owner->reserve ? RESERVE : (uint32_t)(context - contexts->entries);
}

struct block_context *block_contexts_first(const struct block_contexts *contexts,
                                           const struct block_chain *chain)
{
    return at(contexts, chain, chain->head);
}

struct block_context *block_contexts_next(const struct block_contexts *contexts,
                                          const struct block_context *context)
{
    return at(contexts, context->owner, context->next);
}

struct block_context *block_contexts_find(const struct block_contexts *contexts,
                                          const struct block_chain *chain, uint32_t number)
{
    if (chain->count == 0) {
        return NULL;
    }
    /* Mostly it is the oldest block's or the newest one's. */
    struct block_context *context = at(contexts, chain, chain->head);
    if (context->number == number) {
        return context;
    }
    context = at(contexts, chain, chain->tail);
    if (context->number == number) {
        return context;
    }
    const uint32_t set = set_of(contexts, chain, number);
    const uint32_t tag = tag_of(chain, number);
    for (uint32_t way = set; way < set + BLOCK_CONTEXT_WAYS; way++) {
        context = &contexts->entries[way];
        if (contexts->tags[way] == tag && context->number == number && context->owner == chain) {
            return context;
        }
    }
    return NULL;
}

/* -- Chains -------------------------------------------------------------------------------------*/

/* The context behind which `number` belongs; NULL: in front of all. */
static struct block_context *place_in_chain(const struct block_contexts *contexts,
                                            const struct block_chain *chain, uint32_t number)
{
    struct block_context *last = at(contexts, chain, chain->tail);
    if (last == NULL || block_number_before(last->number, number)) {
        return last;
    }
    struct block_context *before = block_contexts_find(contexts, chain, number - 1);
    if (before != NULL) {
        return before;
    }
    struct block_context *context = at(contexts, chain, chain->head);
    while (context != NULL && block_number_before(context->number, number)) {
        before = context;
        context = block_contexts_next(contexts, context);
    }
    return before;
}

static void link_in(struct block_contexts *contexts, struct block_context *context)
{
    struct block_chain *chain = context->owner;
    const uint32_t id = id_of(contexts, context);
    struct block_context *before = place_in_chain(contexts, chain, context->number);
    uint32_t *link = before == NULL ? &chain->head : &before->next;
    context->next = *link;
    *link = id;
    if (context->next == BLOCK_CONTEXT_NONE) {
        chain->tail = id;
    }
    chain->count++;
}

static void link_out(struct block_contexts *contexts, struct block_context *context)
{
    struct block_chain *chain = context->owner;
    const uint32_t id = id_of(contexts, context);
    uint32_t before = BLOCK_CONTEXT_NONE;
    uint32_t *link = &chain->head;
    while (*link != id) {
        before = *link;
        link = &at(contexts, chain, before)->next;
    }
    *link = context->next;
    if (chain->tail == id) {
        chain->tail = before;
    }
    chain->count--;
}

void block_contexts_remove(struct block_contexts *contexts, struct block_context *context)
{
    struct block_chain *chain = context->owner;
    link_out(contexts, context);
    if (context == chain->reserve) {
        chain->reserve_used = false;
    } else {
        contexts->tags[context - contexts->entries] = 0;
        contexts->used--;
    }
    context->owner = NULL;
}

/* -- Making room --------------------------------------------------------------------------------*/

/* A forgotten context costs its owner only that the packets come again: it holds no payload and no
 * receive, and it is of no message in its turn. */
static bool forgettable(const struct block_context *context, uint32_t now)
{
    return context->held == BLOCK_HOLD_NONE && !(context->flags & BLOCK_CONTEXT_RECEIVE) &&
           context->arrived == context->placed &&
           block_number_before(context->owner->base, context->number - context->index) &&
           now - context->used_at >= BLOCK_CONTEXT_AGE_TICKS;
}

/* A free way of the set, or that of the context longest unused; BLOCK_CONTEXT_NONE: none. */
static uint32_t find_room(const struct block_contexts *contexts, uint32_t set, uint32_t now)
{
    uint32_t oldest = BLOCK_CONTEXT_NONE;
    for (uint32_t way = set; way < set + BLOCK_CONTEXT_WAYS; way++) {
        if (contexts->tags[way] == 0) {
            return way;
        }
        const struct block_context *context = &contexts->entries[way];
        if (forgettable(context, now) &&
            (oldest == BLOCK_CONTEXT_NONE ||
             now - context->used_at > now - contexts->entries[oldest].used_at)) {
            oldest = way;
        }
    }
    return oldest;
}

static struct block_context *take_room(struct block_contexts *contexts, struct block_chain *chain,
                                       uint32_t number, uint32_t now)
{
    const uint32_t way = find_room(contexts, set_of(contexts, chain, number), now);
    if (way == BLOCK_CONTEXT_NONE) {
        return NULL;
    }
    struct block_context *context = &contexts->entries[way];
    if (contexts->tags[way] != 0) {
        context->owner->forgotten++;
        block_contexts_remove(contexts, context);
    }
    contexts->tags[way] = tag_of(chain, number);
    contexts->used++;
    return context;
}

struct block_context *block_contexts_add(struct block_contexts *contexts, struct block_chain *chain,
                                         uint32_t number, struct instant now)
{
    const uint32_t ticks = (uint32_t)(now.ns >> BLOCK_CONTEXT_TICK_SHIFT);
    struct block_context *context;
    if (number == chain->base) {
        CHECK(!chain->reserve_used);
        chain->reserve_used = true;
        context = chain->reserve;
    } else {
        context = take_room(contexts, chain, number, ticks);
        if (context == NULL) {
            return NULL;
        }
    }
    *context = (struct block_context){.owner = chain,
                                      .number = number,
                                      .held = BLOCK_HOLD_NONE,
                                      .birth = ++chain->births,
                                      .used_at = ticks};
    link_in(contexts, context);
    return context;
}

void block_chain_check(const struct block_contexts *contexts, const struct block_chain *chain)
{
    uint32_t count = 0;
    const struct block_context *before = NULL;
    for (const struct block_context *context = block_contexts_first(contexts, chain);
         context != NULL; context = block_contexts_next(contexts, context)) {
        CHECK(context->owner == chain);
        CHECK(!block_number_before(context->number, chain->base));
        CHECK(before == NULL || block_number_before(before->number, context->number));
        CHECK(block_contexts_find(contexts, chain, context->number) == context);
        CHECK((context->placed & ~context->arrived) == 0);
        before = context;
        count++;
    }
    CHECK(count == chain->count);
    CHECK((chain->tail == BLOCK_CONTEXT_NONE) == (before == NULL));
    CHECK(before == NULL || chain->tail == id_of(contexts, before));
}
