/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The rate is what the publication's rules make of it, whenever it is asked for; no flood
 *         of notifications stops a flow, and when they end the line's rate comes back.
 * Method  Random worlds in steps of 5 us beside a model in floating point that turns each timer
 *         when its time has come; a second controller that is asked seldom; rules one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/ibta/dcqcn.h"

#define US   1000u
#define MS   1000000u
#define STEP (5 * US)

/* -- The publication's rules, in floating point -------------------------------------------------*/

struct model {
    const struct dcqcn_policy *policy;
    bool active;
    double rate, target, alpha, bytes;
    uint64_t alpha_at, timer_at, cnp_at;
    uint32_t timer, counter;
    uint64_t fast, additive, hyper; /* Steps of each kind. */
};

static double gain(const struct model *model)
{
    return 1.0 / (double)(1u << model->policy->gain_shift);
}

static void model_rise(struct model *model)
{
    const double line = (double)model->policy->line_rate;
    const uint32_t rounds = model->policy->rounds;
    if (model->timer < rounds && model->counter < rounds) {
        model->fast++;
    } else if (model->timer > rounds && model->counter > rounds) {
        const uint32_t least = model->timer < model->counter ? model->timer : model->counter;
        model->target += (least - rounds) * (double)model->policy->hyper_rate;
        model->hyper++;
    } else {
        model->target += (double)model->policy->additive_rate;
        model->additive++;
    }
    model->target = model->target > line ? line : model->target;
    model->rate = (model->rate + model->target) / 2;
    model->active = line - model->rate >= 1;
}

static void model_step(struct model *model, uint64_t now_ns)
{
    if (model->active && now_ns == model->alpha_at) {
        model->alpha *= 1 - gain(model);
        model->alpha_at += model->policy->alpha_ns;
    }
    if (model->active && now_ns == model->timer_at) {
        model_rise(model);
        model->timer++;
        model->timer_at += model->policy->timer_ns;
    }
}

static void model_cnp(struct model *model, uint64_t now_ns)
{
    const struct dcqcn_policy *policy = model->policy;
    if (model->active && now_ns - model->cnp_at < policy->cnp_ns) {
        return;
    }
    if (!model->active) {
        model->rate = (double)policy->line_rate;
        model->alpha = 1;
    }
    model->active = true;
    model->target = model->rate;
    model->rate *= 1 - model->alpha / 2;
    model->rate =
        model->rate < (double)policy->least_rate ? (double)policy->least_rate : model->rate;
    model->alpha = (1 - gain(model)) * model->alpha + gain(model);
    model->cnp_at = now_ns;
    model->alpha_at = now_ns + policy->alpha_ns;
    model->timer_at = now_ns + policy->timer_ns;
    model->bytes = model->timer = model->counter = 0;
}

static void model_sent(struct model *model, uint32_t bytes)
{
    if (!model->active) {
        return;
    }
    model->bytes += bytes;
    while (model->active && model->bytes >= (double)model->policy->counter_bytes) {
        model->bytes -= (double)model->policy->counter_bytes;
        model_rise(model);
        model->counter++;
    }
}

/* -- Beside it ----------------------------------------------------------------------------------*/

struct world {
    struct dcqcn_policy policy;
    struct model model;
    struct dcqcn asked, seldom; /* At each step; only when something happens. */
    uint64_t now_ns;
    struct prng prng;
    uint64_t notified, unlimited;
};

static void expect_alike(struct world *world)
{
    const struct instant now = {world->now_ns};
    const bool limited = dcqcn_limits(&world->asked, &world->policy, now);
    const double model = world->model.active ? world->model.rate : (double)world->policy.line_rate;
    const double rate =
        limited ? (double)dcqcn_rate(&world->asked) : (double)world->policy.line_rate;
    const double apart = rate > model ? rate - model : model - rate;
    /* 2^-20 of alpha is not seen at each of its uses. */
    if (apart > model / 1000 + 4) {
        fail_msg("at %llu us: %f bytes a second for %f", (unsigned long long)world->now_ns / 1000,
                 rate, model);
    }
    world->unlimited += !limited;
}

/* Where the one is free a step before the other, nothing happens until they agree. */
static bool agree(const struct world *world)
{
    return world->model.active == (dcqcn_rate(&world->asked) != 0);
}

static void happen(struct world *world, uint32_t chance)
{
    const struct instant now = {world->now_ns};
    if (prng_chance(&world->prng, chance)) {
        const bool heeded = dcqcn_on_cnp(&world->asked, &world->policy, now);
        assert_int_equal(dcqcn_on_cnp(&world->seldom, &world->policy, now), heeded);
        model_cnp(&world->model, world->now_ns);
        world->notified += heeded;
    }
    if (prng_chance(&world->prng, 300000)) {
        const uint32_t bytes = (uint32_t)prng_below(&world->prng, 400000);
        dcqcn_on_sent(&world->asked, &world->policy, bytes, now);
        dcqcn_on_sent(&world->seldom, &world->policy, bytes, now);
        model_sent(&world->model, bytes);
    }
}

static void run(uint64_t seed, struct model *sum)
{
    struct world world = {.policy = dcqcn_policy_default(), .now_ns = MS};
    prng_init(&world.prng, seed);
    if (seed % 2 == 0) { /* So that the three kinds of steps mix. */
        world.policy.counter_bytes = 300000;
        world.policy.alpha_ns = 35 * US;
        world.policy.line_rate = 1250000000;
    }
    world.model = (struct model){.policy = &world.policy};
    uint32_t chance = 0;
    for (uint32_t step = 0; step < 40000; step++, world.now_ns += STEP) {
        if (step % 2000 == 0) {
            static const uint32_t chances[] = {0, 300, 3000, 30000, 1000000};
            chance = chances[prng_below(&world.prng, 5)];
        }
        model_step(&world.model, world.now_ns);
        expect_alike(&world);
        if (agree(&world)) {
            happen(&world, chance);
        }
    }
    const struct instant end = {world.now_ns};
    assert_int_equal(dcqcn_limits(&world.asked, &world.policy, end),
                     dcqcn_limits(&world.seldom, &world.policy, end));
    assert_int_equal(dcqcn_rate(&world.asked), dcqcn_rate(&world.seldom));
    assert_int_equal(world.asked.paid_until.ns, world.seldom.paid_until.ns);
    assert_true(world.notified > 0);
    sum->fast += world.model.fast;
    sum->additive += world.model.additive;
    sum->hyper += world.model.hyper;
    sum->counter += world.unlimited > 0;
}

static void test_beside_the_model(void **state)
{
    (void)state;
    struct model sum = {0};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        run(seed, &sum);
    }
    /* Rules that nobody exercised are rules that nobody tested. */
    assert_true(sum.fast > 1000 && sum.additive > 1000 && sum.hyper > 100);
    assert_true(sum.counter > 10);
}

/* -- One by one ---------------------------------------------------------------------------------*/

/* From the publication's table; Mb/s are 125,000 bytes a second. */
static void test_published_parameters(void **state)
{
    (void)state;
    const struct dcqcn_policy policy = dcqcn_policy_default();
    assert_int_equal(policy.line_rate, UINT64_C(40000) * 125000);
    assert_int_equal(policy.additive_rate, 40 * 125000);
    assert_int_equal(policy.hyper_rate, 10 * policy.additive_rate);
    assert_int_equal(policy.cnp_ns, 50 * US);
    assert_int_equal(policy.alpha_ns, 55 * US);
    assert_int_equal(policy.timer_ns, 55 * US);
    assert_int_equal(policy.counter_bytes, 10000000);
    assert_int_equal(policy.rounds, 5);
    assert_int_equal(1u << policy.gain_shift, 256);
    dcqcn_policy_check(&policy);
}

static void test_one_notification(void **state)
{
    (void)state;
    const struct dcqcn_policy policy = dcqcn_policy_default();
    struct dcqcn dcqcn = {0};
    const uint64_t line = policy.line_rate, begin = MS;
    assert_false(dcqcn_limits(&dcqcn, &policy, (struct instant){begin}));
    assert_true(dcqcn_on_cnp(&dcqcn, &policy, (struct instant){begin}));
    assert_int_equal(dcqcn_rate(&dcqcn), line / 2);
    /* Each round takes half of what is missing; nothing is limited once that is no byte. */
    uint64_t missing = line / 2, rounds = 0;
    while (
        dcqcn_limits(&dcqcn, &policy, (struct instant){begin + (rounds + 1) * policy.timer_ns})) {
        missing /= 2;
        rounds++;
        assert_int_equal(dcqcn_rate(&dcqcn), line - missing);
    }
    assert_int_equal(missing, 1);
    assert_in_range(rounds, 25, 35);
}

static void test_haste_is_ignored(void **state)
{
    (void)state;
    const struct dcqcn_policy policy = dcqcn_policy_default();
    struct dcqcn dcqcn = {0};
    assert_true(dcqcn_on_cnp(&dcqcn, &policy, (struct instant){MS}));
    const uint64_t rate = dcqcn_rate(&dcqcn);
    for (uint64_t ns = MS; ns < MS + policy.cnp_ns; ns += 1000) {
        assert_false(dcqcn_on_cnp(&dcqcn, &policy, (struct instant){ns}));
        assert_int_equal(dcqcn_rate(&dcqcn), rate);
    }
    assert_true(dcqcn_on_cnp(&dcqcn, &policy, (struct instant){MS + policy.cnp_ns}));
    assert_int_equal(dcqcn_rate(&dcqcn), rate / 2);
}

/* Notifications at the pace that is heeded leave no time for any rise. */
static void test_flood(void **state)
{
    (void)state;
    const struct dcqcn_policy policy = dcqcn_policy_default();
    struct dcqcn dcqcn = {0};
    uint64_t ns = MS, sent = 0;
    const uint32_t packet = 1106;
    for (; ns < 201 * MS; ns += 10 * US) {
        (void)!dcqcn_on_cnp(&dcqcn, &policy, (struct instant){ns});
        if (instant_reached((struct instant){ns}, dcqcn_due(&dcqcn))) {
            dcqcn_on_sent(&dcqcn, &policy, packet, (struct instant){ns});
            sent += packet;
        }
    }
    assert_int_equal(dcqcn_rate(&dcqcn), policy.least_rate);
    /* A fifth of a second at the least rate. */
    assert_in_range(sent, policy.least_rate / 5, policy.least_rate / 5 + 300000);
    /* 1,000 additive steps lead to the line, and a few to where the target is. */
    uint64_t calm = 0;
    while (dcqcn_limits(&dcqcn, &policy, (struct instant){ns + calm})) {
        calm += policy.timer_ns;
    }
    assert_in_range(calm, 50 * MS, 60 * MS);
}

/* A sender that asks as often as it likes gets the rate; a late sender catches up on `late_ns`. */
static void test_pace(void **state)
{
    (void)state;
    struct dcqcn_policy policy = dcqcn_policy_default();
    policy.timer_ns = policy.alpha_ns = UINT64_C(1000000000000); /* The rate stays. */
    struct dcqcn dcqcn = {0};
    uint64_t ns = MS, sent = 0;
    for (int cut = 0; cut < 6; cut++, ns += 50 * US) {
        assert_true(dcqcn_on_cnp(&dcqcn, &policy, (struct instant){ns}));
    }
    const uint64_t rate = dcqcn_rate(&dcqcn), begin = ns;
    dcqcn.paid_until = (struct instant){ns};
    for (; ns < begin + 50 * MS; ns += 1000) {
        while (instant_reached((struct instant){ns}, dcqcn_due(&dcqcn))) {
            dcqcn_on_sent(&dcqcn, &policy, 4178, (struct instant){ns});
            sent += 4178;
        }
    }
    assert_in_range(sent, rate / 20 - 4178, rate / 20 + 4178);
    ns += 30 * MS; /* Late. */
    uint64_t at_once = 0;
    while (instant_reached((struct instant){ns}, dcqcn_due(&dcqcn))) {
        dcqcn_on_sent(&dcqcn, &policy, 4178, (struct instant){ns});
        at_once += 4178;
    }
    assert_in_range(at_once, rate / 2000 - 4178, rate / 2000 + 4178);
}

/* A flow that was idle for a year is asked once, and is free. */
static void test_long_silence(void **state)
{
    (void)state;
    const struct dcqcn_policy policy = dcqcn_policy_default();
    struct dcqcn dcqcn = {0};
    assert_true(dcqcn_on_cnp(&dcqcn, &policy, (struct instant){MS}));
    assert_false(dcqcn_limits(&dcqcn, &policy, (struct instant){UINT64_C(31536000000000000)}));
    dcqcn_on_sent(&dcqcn, &policy, 1, (struct instant){UINT64_C(31536000000000001)});
    assert_int_equal(dcqcn_rate(&dcqcn), 0);
}

/* A notification begins a new count of bytes: the rate rises when all of them have been sent. */
static void test_bytes_are_counted_anew(void **state)
{
    (void)state;
    const struct dcqcn_policy policy = dcqcn_policy_default();
    struct dcqcn dcqcn = {0};
    const struct instant now = {MS};
    assert_true(dcqcn_on_cnp(&dcqcn, &policy, now));
    const uint64_t cut = dcqcn_rate(&dcqcn);
    dcqcn_on_sent(&dcqcn, &policy, (uint32_t)policy.counter_bytes - 1, now);
    assert_int_equal(dcqcn_rate(&dcqcn), cut);
    dcqcn_on_sent(&dcqcn, &policy, 1, now);
    assert_int_equal(dcqcn_rate(&dcqcn), (cut + policy.line_rate) / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beside_the_model),
        cmocka_unit_test(test_published_parameters),
        cmocka_unit_test(test_one_notification),
        cmocka_unit_test(test_haste_is_ignored),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_long_silence),
        cmocka_unit_test(test_bytes_are_counted_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
