/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The cache holds the contexts that were installed last, puts out the right one when it is
 *         full, and hands out changed ones. Behaviours CSR-22, CSR-23, CSR-44.
 * Method  Random uses, changes and installs beside a model that searches an unsorted array; all
 *         small capacities, few and many QPNs, every way to choose a victim. The memory is exactly
 *         qpc_cache_bytes long and guarded by the sanitizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "hardware/csrna/qpc_cache.h"

enum {
    STEPS = 3000,
    ENTRIES_MAX = 400
};

struct known {
    struct qpc context;
    uint64_t used, installed; /* Steps. */
    bool dirty;
};

struct model {
    struct known known[ENTRIES_MAX];
    uint32_t count;
    uint64_t step;
};

static struct known *model_find(struct model *model, uint32_t qpn)
{
    for (uint32_t i = 0; i < model->count; i++) {
        if (model->known[i].context.qpn == qpn) {
            return &model->known[i];
        }
    }
    return NULL;
}

static bool goes_before(const struct qpc_cache *cache, const struct known *a, const struct known *b)
{
    return cache->policy == QPC_VICTIM_LRU ? a->used < b->used : a->installed < b->installed;
}

/* The one that the policy puts out; with QPC_VICTIM_RANDOM, the one that is not there any more. */
static struct known *model_victim(struct model *model, const struct qpc_cache *cache)
{
    struct known *first = NULL;
    for (uint32_t i = 0; i < model->count; i++) {
        struct known *known = &model->known[i];
        if (cache->policy != QPC_VICTIM_RANDOM) {
            first = first == NULL || goes_before(cache, known, first) ? known : first;
        } else if (!qpc_cache_holds(cache, known->context.qpn)) {
            assert_null(first);
            first = known;
        }
    }
    return first;
}

static void model_install(struct model *model, const struct qpc_cache *cache,
                          const struct qpc *context, const struct qpc_victim *victim)
{
    assert_int_equal(victim->evicted, model->count == cache->capacity);
    if (victim->evicted) {
        struct known *first = model_victim(model, cache);
        assert_non_null(first);
        assert_int_equal(victim->dirty, first->dirty);
        if (victim->dirty) { /* CSR-23 */
            assert_int_equal(victim->qpn, first->context.qpn);
            assert_memory_equal(&victim->context, &first->context, QPC_BYTES);
        }
        assert_false(qpc_cache_holds(cache, first->context.qpn));
        *first = model->known[--model->count];
    }
    model->known[model->count++] =
        (struct known){.context = *context, .used = model->step, .installed = model->step};
}

static void install(struct qpc_cache *cache, struct model *model, struct prng *prng, uint32_t qpn)
{
    struct qpc context = {.qpn = qpn};
    struct qpc_victim victim;
    for (size_t i = 0; i < COUNT_OF(context.reserved); i++) {
        context.reserved[i] = (uint32_t)prng_next(prng);
    }
    const struct qpc *place = qpc_cache_install(cache, qpn, &context, &victim);
    assert_memory_equal(place, &context, QPC_BYTES);
    model_install(model, cache, &context, &victim);
}

static void run(uint64_t seed, uint32_t capacity, enum qpc_victim_policy policy)
{
    struct prng prng;
    struct qpc_cache cache;
    static struct model model;
    model = (struct model){0};
    prng_init(&prng, seed);
    void *memory = aligned_alloc(64, qpc_cache_bytes(capacity));
    qpc_cache_init(&cache, capacity, policy, memory);
    const uint32_t qpns = 1 + (uint32_t)prng_below(&prng, 3 * capacity);
    const uint32_t stride = prng_below(&prng, 3) == 0 ? 1024 : 1;
    for (model.step = 0; model.step < STEPS; model.step++) {
        const uint32_t qpn = stride * (uint32_t)prng_below(&prng, qpns);
        struct known *known = model_find(&model, qpn);
        assert_int_equal(qpc_cache_holds(&cache, qpn), known != NULL);
        struct qpc *context = qpc_cache_use(&cache, qpn);
        if (known == NULL) {
            assert_null(context);
            install(&cache, &model, &prng, qpn);
            continue;
        }
        assert_memory_equal(context, &known->context, QPC_BYTES);
        known->used = model.step;
        if (prng_below(&prng, 4) == 0) {
            context->version++;
            qpc_cache_changed(&cache, context);
            known->context.version++;
            known->dirty = true;
        }
    }
    assert_int_equal(cache.count, model.count);
    free(memory);
}

/* CSR-22, CSR-23; CSR-44: capacity 1 is one of them. */
static void test_least_recently_used(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity < 80; capacity++) {
        run(capacity, capacity, QPC_VICTIM_LRU);
    }
    run(1, 300, QPC_VICTIM_LRU);
}

static void test_first_in_first_out(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity < 80; capacity++) {
        run(capacity, capacity, QPC_VICTIM_FIFO);
    }
    run(1, 300, QPC_VICTIM_FIFO);
}

static void test_random(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity < 80; capacity++) {
        run(capacity, capacity, QPC_VICTIM_RANDOM);
    }
    run(1, 300, QPC_VICTIM_RANDOM);
}

/* The share of uses that find their context, after two rounds, if `qpns` are used in turn. */
static double hits_in_turn(enum qpc_victim_policy policy, uint32_t qpns)
{
    enum {
        CAPACITY = 300,
        ROUNDS = 10
    };
    struct qpc_cache cache;
    struct qpc_victim victim;
    void *memory = aligned_alloc(64, qpc_cache_bytes(CAPACITY));
    uint32_t hits = 0;
    qpc_cache_init(&cache, CAPACITY, policy, memory);
    for (uint32_t i = 0; i < (2 + ROUNDS) * qpns; i++) {
        const struct qpc context = {.qpn = i % qpns};
        if (qpc_cache_use(&cache, i % qpns) != NULL) {
            hits += i >= 2 * qpns;
        } else {
            qpc_cache_install(&cache, i % qpns, &context, &victim);
        }
    }
    free(memory);
    return (double)hits / (ROUNDS * qpns);
}

/* In turn, the context that has to go is always the next one to be used; unless chance decides. */
static void test_in_turn(void **state)
{
    (void)state;
    assert_true(hits_in_turn(QPC_VICTIM_LRU, 301) == 0);
    assert_true(hits_in_turn(QPC_VICTIM_FIFO, 301) == 0);
    assert_true(hits_in_turn(QPC_VICTIM_RANDOM, 301) > 0.9);
    assert_true(hits_in_turn(QPC_VICTIM_RANDOM, 400) > 0.4);
    assert_true(hits_in_turn(QPC_VICTIM_RANDOM, 3000) < 0.01);
}

/* A full cache of the greatest size, whose only other bucket is the last one. */
static void test_greatest(void **state)
{
    (void)state;
    struct qpc_cache cache;
    struct qpc_victim victim;
    void *memory = aligned_alloc(64, qpc_cache_bytes(QPC_CACHE_ENTRIES_MAX));
    qpc_cache_init(&cache, QPC_CACHE_ENTRIES_MAX, QPC_VICTIM_FIFO, memory);
    const uint32_t first = cache.bucket_mask + 1 - QPC_CACHE_ENTRIES_MAX;
    for (uint32_t i = 0; i < QPC_CACHE_ENTRIES_MAX; i++) {
        const struct qpc context = {.qpn = first + i};
        qpc_cache_install(&cache, first + i, &context, &victim);
        assert_false(victim.evicted);
    }
    for (uint32_t i = 0; i < QPC_CACHE_ENTRIES_MAX; i++) {
        assert_true(qpc_cache_holds(&cache, first + i));
    }
    for (uint32_t i = 0; i < QPC_CACHE_ENTRIES_MAX; i++) {
        const uint32_t qpn = 2 * (cache.bucket_mask + 1) - 1 - i; /* Buckets from the last down. */
        const struct qpc context = {.qpn = qpn};
        qpc_cache_install(&cache, qpn, &context, &victim);
        assert_true(victim.evicted && !victim.dirty);
    }
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_recently_used),
        cmocka_unit_test(test_first_in_first_out),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_in_turn),
        cmocka_unit_test(test_greatest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
