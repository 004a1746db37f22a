/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A table of contexts finds what was added until it is removed or forgotten; chains are in
 *         BN order whatever the order of adding; block base always has room; nothing is forgotten
 *         that may not be.
 * Method  Random calls for several streams against plain arrays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "transport/block/contexts.h"
#include "transport/block/hold.h"

enum {
    STREAMS = 3,
    BLOCKS = 40,
    ENTRIES = 32,
};

struct model {
    struct prng prng;
    struct block_contexts contexts;
    void *memory;
    struct block_chain chains[STREAMS];
    struct block_context reserves[STREAMS];
    bool there[STREAMS][BLOCKS]; /* By distance from the stream's first base. */
    uint32_t first[STREAMS];
    struct instant now;
};

static uint32_t draw(struct model *model, uint32_t below)
{
    return (uint32_t)(prng_next(&model->prng) % below);
}

static void make(struct model *model, uint64_t seed)
{
    memset(model, 0, sizeof(*model));
    prng_init(&model->prng, seed);
    const size_t bytes = block_contexts_bytes(ENTRIES);
    model->memory = memset(aligned_alloc(64, bytes), 0, bytes);
    model->now = (struct instant){1000000000};
    block_contexts_init(&model->contexts, ENTRIES, model->memory);
    for (uint32_t i = 0; i < STREAMS; i++) {
        model->first[i] = i == 0 ? (uint32_t)-10 : draw(model, 1000);
        block_chain_init(&model->chains[i], 2 + draw(model, 100), model->first[i],
                         &model->reserves[i]);
    }
}

/* The chain is what the model says, but for what was forgotten. */
static void compare(struct model *model)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < STREAMS; i++) {
        const struct block_chain *chain = &model->chains[i];
        block_chain_check(&model->contexts, chain);
        uint32_t count = 0;
        for (uint32_t at = 0; at < BLOCKS; at++) {
            const struct block_context *context =
                block_contexts_find(&model->contexts, chain, model->first[i] + at);
            assert_true((context != NULL) == model->there[i][at]);
            count += model->there[i][at];
        }
        assert_int_equal(chain->count, count);
        used += count - chain->reserve_used;
    }
    assert_int_equal(model->contexts.used, used);
}

/* Marks the contexts that the table forgot in favour of another. */
static void note_forgotten(struct model *model)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        for (uint32_t at = 0; at < BLOCKS; at++) {
            if (model->there[i][at] && block_contexts_find(&model->contexts, &model->chains[i],
                                                           model->first[i] + at) == NULL) {
                model->there[i][at] = false;
                model->chains[i].forgotten--;
            }
        }
        assert_int_equal(model->chains[i].forgotten, 0);
    }
}

static void add(struct model *model, uint32_t stream, uint32_t at)
{
    struct block_chain *chain = &model->chains[stream];
    struct block_context *context =
        block_contexts_add(&model->contexts, chain, model->first[stream] + at, model->now);
    note_forgotten(model);
    assert_true(context != NULL || model->first[stream] + at != chain->base);
    if (context == NULL) {
        return;
    }
    assert_ptr_equal(context->owner, chain);
    assert_int_equal(context->number, model->first[stream] + at);
    assert_int_equal(context->held, BLOCK_HOLD_NONE);
    assert_int_equal(context->arrived, 0);
    /* Some hold a receive: these are never forgotten. */
    context->flags = draw(model, 3) == 0 ? BLOCK_CONTEXT_RECEIVE : 0;
    model->there[stream][at] = true;
}

static void step(struct model *model)
{
    const uint32_t stream = draw(model, STREAMS);
    struct block_chain *chain = &model->chains[stream];
    const uint32_t base = chain->base - model->first[stream];
    const uint32_t at = base + draw(model, BLOCKS - base);
    if (draw(model, 2) == 0) {
        model->now.ns += draw(model, 30) * 1000000;
    }
    if (!model->there[stream][at]) {
        add(model, stream, at);
    } else if (draw(model, 3) == 0) {
        block_contexts_remove(&model->contexts, block_contexts_find(&model->contexts, chain,
                                                                    chain->base + at - base));
        model->there[stream][at] = false;
    }
    if (base + 1 < BLOCKS && !model->there[stream][base] && draw(model, 20) == 0) {
        chain->base++;
    }
}

/* EXA-95 EXA-96 */
static void a_table_keeps_what_it_may_not_forget(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct model model;
        make(&model, seed);
        for (uint32_t i = 0; i < 200; i++) {
            step(&model);
            compare(&model);
        }
        free(model.memory);
    }
}

static struct block_context *fill(struct model *model, uint32_t count)
{
    struct block_context *first = NULL;
    for (uint32_t i = 0; i < count; i++) {
        /* Every other block: all of one set. */
        struct block_context *context = block_contexts_add(&model->contexts, &model->chains[0],
                                                           model->first[0] + 2 + 2 * i, model->now);
        first = i == 0 ? context : first;
    }
    return first;
}

/* A context stays if it is held, in motion, in order, or of a shared receive; the others go after
 * 100 ms. */
static void only_what_costs_nothing_is_forgotten(void **state)
{
    (void)state;
    enum {
        PLAIN,
        HELD,
        MOVING,
        RECEIVE,
        IN_ORDER,
        YOUNG,
        CASES
    };
    for (int what = 0; what < CASES; what++) {
        struct model model;
        make(&model, 1);
        struct block_context *victim = fill(&model, 16);
        for (struct block_context *context = block_contexts_next(&model.contexts, victim);
             context != NULL; context = block_contexts_next(&model.contexts, context)) {
            context->flags = BLOCK_CONTEXT_RECEIVE;
        }
        victim->held = what == HELD ? 1 : BLOCK_HOLD_NONE;
        victim->arrived = what == MOVING ? 3 : 1;
        victim->placed = 1;
        victim->flags = what == RECEIVE ? BLOCK_CONTEXT_RECEIVE : 0;
        victim->index = what == IN_ORDER ? 2 : 0;
        model.now.ns += what == YOUNG ? 90000000 : 110000000;
        const bool room = block_contexts_add(&model.contexts, &model.chains[0], model.first[0] + 36,
                                             model.now) != NULL;
        assert_true(room == (what == PLAIN));
        assert_int_equal(model.chains[0].forgotten, what == PLAIN);
        assert_non_null(
            block_contexts_add(&model.contexts, &model.chains[0], model.first[0], model.now));
        block_chain_check(&model.contexts, &model.chains[0]);
        free(model.memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_keeps_what_it_may_not_forget),
        cmocka_unit_test(only_what_costs_nothing_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
