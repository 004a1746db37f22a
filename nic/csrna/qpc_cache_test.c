/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The cache holds what was installed last, puts out the right context when it is full, and
 *         hands out what was changed. Behaviours CSR-22, CSR-23, CSR-44.
 * Method  Random uses, changes and installs beside a model that searches an unsorted array; all
 *         small capacities, few and many QPNs, both ways to choose a victim. The memory is exactly
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
#include "nic/csrna/qpc_cache.h"

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
    if (cache->policy == QPC_VICTIM_LRU) {
        return a->used < b->used;
    }
    const uint32_t bucket_a = a->context.qpn & cache->bucket_mask;
    const uint32_t bucket_b = b->context.qpn & cache->bucket_mask;
    return bucket_a != bucket_b ? bucket_a < bucket_b : a->installed > b->installed;
}

static void model_install(struct model *model, const struct qpc_cache *cache,
                          const struct qpc *context, const struct qpc_victim *victim)
{
    assert_int_equal(victim->evicted, model->count == cache->capacity);
    if (victim->evicted) {
        struct known *first = &model->known[0];
        for (uint32_t i = 1; i < model->count; i++) {
            if (goes_before(cache, &model->known[i], first)) {
                first = &model->known[i];
            }
        }
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

static void test_hash_order(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity < 80; capacity++) {
        run(capacity, capacity, QPC_VICTIM_HASH_ORDER);
    }
    run(1, 300, QPC_VICTIM_HASH_ORDER);
}

/* A full cache of the greatest size, whose only other bucket is the last one. */
static void test_greatest(void **state)
{
    (void)state;
    struct qpc_cache cache;
    struct qpc_victim victim;
    void *memory = aligned_alloc(64, qpc_cache_bytes(QPC_CACHE_ENTRIES_MAX));
    qpc_cache_init(&cache, QPC_CACHE_ENTRIES_MAX, QPC_VICTIM_HASH_ORDER, memory);
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
        cmocka_unit_test(test_hash_order),
        cmocka_unit_test(test_greatest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
