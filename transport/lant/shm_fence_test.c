/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A fence is passed when every store that it covers is done at its peer, not earlier and
 *         not later; it reports exactly the failures of what it covers.
 * Method  Cases by hand; then stores, loads, answers, failures and fences by chance, with a list of
 *         the names of what each fence covers as the model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/shm_rig.h"

static void start(struct rig *rig)
{
    const struct lant_shm_config config = rig_config();
    rig_init(rig, &config);
}

static enum lant_shm_fence_state look(struct rig *rig, uint32_t fence)
{
    return lant_shm_fence_look(&rig->shm, fence);
}

/* LNI-34: an early acknowledgement is not enough; stores after the fence do not matter. */
static void test_early_is_not_done(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    (void)rig_ask(&rig, rig_store(1, RIG_PEER, 8), 0);
    assert_true(rig_send(&rig, 0));
    assert_int_equal(rig_done(&rig, 0).kind, LANT_SHM_EARLY);
    const struct lant_packet first = rig.packet;
    const uint32_t fence = lant_shm_fence_begin(&rig.shm, LANT_ALL_NODES);
    const uint32_t here = lant_shm_fence_begin(&rig.shm, RIG_PEER);
    const uint32_t other = lant_shm_fence_begin(&rig.shm, RIG_PEER + 1);
    (void)rig_ask(&rig, rig_store(2, RIG_PEER, 16), 0);
    assert_int_equal(look(&rig, fence), LANT_SHM_FENCE_WAITS);
    assert_int_equal(look(&rig, here), LANT_SHM_FENCE_WAITS);
    assert_int_equal(look(&rig, other), LANT_SHM_FENCE_PASSED);
    assert_true(rig_send(&rig, 0));
    (void)rig_answer(&rig, &rig.packet, LANT_OKAY, 0, 0);
    assert_int_equal(look(&rig, fence), LANT_SHM_FENCE_WAITS);
    (void)rig_answer(&rig, &first, LANT_OKAY, 0, 0);
    assert_int_equal(look(&rig, fence), LANT_SHM_FENCE_PASSED);
    assert_int_equal(look(&rig, here), LANT_SHM_FENCE_PASSED);
    lant_shm_fence_end(&rig.shm, fence);
}

/* A store that waits for its address is covered, from the list into its row; a load is not. */
static void test_pending(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    (void)rig_ask(&rig, rig_load(1, RIG_PEER, 8), 0);
    const uint32_t none = lant_shm_fence_begin(&rig.shm, LANT_ALL_NODES);
    assert_int_equal(look(&rig, none), LANT_SHM_FENCE_PASSED);
    assert_int_equal(rig_ask(&rig, rig_store(2, RIG_PEER, 8), 0), LANT_SHM_PENDING);
    const uint32_t fence = lant_shm_fence_begin(&rig.shm, LANT_ALL_NODES);
    assert_int_equal(rig_ask(&rig, rig_store(3, RIG_PEER, 8), 0), LANT_SHM_PENDING);
    assert_true(rig_send(&rig, 0));
    (void)rig_answer(&rig, &rig.packet, LANT_OKAY, 0, 0);
    assert_int_equal(look(&rig, fence), LANT_SHM_FENCE_WAITS);
    assert_true(rig_send(&rig, 0));
    (void)rig_answer(&rig, &rig.packet, LANT_SLVERR, 0, 0);
    assert_int_equal(look(&rig, fence), LANT_SHM_FENCE_FAILED);
    assert_int_equal(look(&rig, none), LANT_SHM_FENCE_PASSED);
}

/* There are 64, and each can be had again. */
static void test_numbers(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    for (uint32_t i = 0; i < LANT_SHM_FENCES_MAX; i++) {
        assert_int_equal(lant_shm_fence_begin(&rig.shm, LANT_ALL_NODES), i);
    }
    assert_int_equal(lant_shm_fence_begin(&rig.shm, LANT_ALL_NODES), LANT_SHM_NO_FENCES);
    lant_shm_fence_end(&rig.shm, 17);
    assert_int_equal(lant_shm_fence_begin(&rig.shm, LANT_ALL_NODES), 17);
}

/* -- By chance ----------------------------------------------------------------------------------*/

#define NODES  3u
#define STORES 3000u
#define FENCES 8u

struct model {
    uint32_t count;
    bool store[STORES], finished[STORES], failed[STORES];
    uint8_t node[STORES];
    struct {
        bool open;
        uint32_t number, before, node; /* It covers what is before this name. */
        bool covers[STORES];
    } fences[FENCES];
    struct lant_packet sent[64]; /* Not answered yet, perhaps twice the same. */
    uint32_t sent_count;
    uint32_t passed, failures;
};

static void ask(struct prng *prng, struct rig *rig, struct model *model, uint64_t now)
{
    const uint32_t node = (uint32_t)prng_below(prng, NODES);
    struct lant_shm_request request = rig_store(model->count, node, 8 * prng_below(prng, 12));
    request.store = prng_chance(prng, 700000);
    request.lock = prng_chance(prng, 100000);
    if (model->count < STORES && rig_ask(rig, request, now) <= LANT_SHM_PENDING) {
        model->store[model->count] = request.store;
        model->node[model->count++] = (uint8_t)node;
    }
}

static void answer(struct prng *prng, struct rig *rig, struct model *model, uint64_t now)
{
    if (model->sent_count == 0) {
        return;
    }
    const uint32_t i = (uint32_t)prng_below(prng, model->sent_count);
    const struct lant_packet packet = model->sent[i];
    const uint64_t dice = prng_below(prng, 10);
    if (dice < 8 || model->sent_count == COUNT_OF(model->sent)) { /* Else once more later. */
        model->sent[i] = model->sent[--model->sent_count];
    }
    (void)rig_answer(rig, &packet,
                     dice < 2    ? LANT_NACK_CRC
                     : dice == 2 ? LANT_DECERR
                                 : LANT_OKAY,
                     0, now);
}

static void take_done(struct rig *rig, struct model *model, uint64_t now)
{
    struct lant_shm_done done;
    while (lant_shm_next_done(&rig->shm, now, &done)) {
        if (lant_shm_done_final(&done)) {
            assert_false(model->finished[done.token]);
            model->finished[done.token] = true;
            model->failed[done.token] = done.kind == LANT_SHM_FAILED ||
                                        done.kind == LANT_SHM_DENIED || done.response != LANT_OKAY;
        }
    }
}

static void begin_or_end(struct prng *prng, struct rig *rig, struct model *model)
{
    const uint32_t i = (uint32_t)prng_below(prng, FENCES);
    if (model->fences[i].open) {
        if (look(rig, model->fences[i].number) != LANT_SHM_FENCE_WAITS) {
            lant_shm_fence_end(&rig->shm, model->fences[i].number);
            model->fences[i].open = false;
        }
        return;
    }
    const uint32_t node =
        prng_chance(prng, 300000) ? LANT_ALL_NODES : (uint32_t)prng_below(prng, NODES);
    model->fences[i].open = true;
    model->fences[i].number = lant_shm_fence_begin(&rig->shm, node);
    model->fences[i].before = model->count;
    for (uint32_t j = 0; j < model->count; j++) {
        model->fences[i].covers[j] = model->store[j] && !model->finished[j] &&
                                     (node == LANT_ALL_NODES || model->node[j] == node);
    }
}

static void compare(struct rig *rig, struct model *model)
{
    for (uint32_t i = 0; i < FENCES; i++) {
        bool waits = false, failed = false;
        if (!model->fences[i].open) {
            continue;
        }
        for (uint32_t j = 0; j < model->fences[i].before; j++) {
            waits |= model->fences[i].covers[j] && !model->finished[j];
            failed |= model->fences[i].covers[j] && model->failed[j];
        }
        assert_int_equal(look(rig, model->fences[i].number), waits    ? LANT_SHM_FENCE_WAITS
                                                             : failed ? LANT_SHM_FENCE_FAILED
                                                                      : LANT_SHM_FENCE_PASSED);
        model->passed += !waits && !failed;
        model->failures += !waits && failed;
    }
}

static void one_step(struct prng *prng, struct rig *rig, struct model *model, uint64_t now)
{
    switch (prng_below(prng, 6)) {
    case 0:
    case 1: ask(prng, rig, model, now); break;
    case 2:
        if (model->sent_count < COUNT_OF(model->sent) && rig_send(rig, now)) {
            model->sent[model->sent_count] = rig->packet;
            model->sent_count += prng_chance(prng, 900000);
        }
        break;
    case 3:
    case 4: answer(prng, rig, model, now); break;
    default: begin_or_end(prng, rig, model); break;
    }
    lant_shm_on_time(&rig->shm, &rig->errors, now);
    take_done(rig, model, now);
    compare(rig, model);
}

static void test_random(void **state)
{
    (void)state;
    static struct model model;
    uint32_t passed = 0, failures = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct prng prng;
        struct rig rig;
        struct lant_shm_config config = rig_config();
        prng_init(&prng, seed);
        config.rows = (uint16_t)(1 + prng_below(&prng, 24));
        config.early_timers = (uint16_t)prng_below(&prng, 6);
        config.timeout = 60;
        config.retries = 2;
        rig_init(&rig, &config);
        model = (struct model){0};
        for (uint64_t now = 0; now < 2500; now++) {
            one_step(&prng, &rig, &model, now);
        }
        (void)rig_fail_all(&rig, 2500);
        take_done(&rig, &model, 1000000);
        compare(&rig, &model);
        assert_true(lant_shm_idle(&rig.shm));
        for (uint32_t i = 0; i < model.count; i++) {
            assert_true(model.finished[i]);
        }
        passed += model.passed;
        failures += model.failures;
    }
    assert_true(passed > 1000 && failures > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_early_is_not_done),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
