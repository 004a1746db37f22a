/* SPDX-License-Identifier: BSD-2-Clause
 *
 * dcqcn - see dcqcn.h.
 */
#include "transport/ibta/dcqcn.h"

#define RATE_MAX (UINT64_C(1) << 40)
#define SECOND   UINT64_C(1000000000)

/* The publication's: N 50 us, K and T 55 us, B 10 MB, g 1/256, F 5, R_AI 40 Mb/s, a line of 40
 * Gb/s. It prints no R_HAI; QCN's is ten times R_AI. Ours are the last two. 10 Mb/s are a packet of
 * 4 KB in 3.3 ms, and the fair share of 100 flows in 1 Gb/s. A program's thread is late by less
 * than half a millisecond as a rule, and a sender that may not catch up on that does not reach its
 * rate. */
struct dcqcn_policy dcqcn_policy_default(void)
{
    return (struct dcqcn_policy){
        .line_rate = 5000000000,
        .additive_rate = 5000000,
        .hyper_rate = 50000000,
        .cnp_ns = 50000,
        .alpha_ns = 55000,
        .timer_ns = 55000,
        .counter_bytes = 10000000,
        .rounds = 5,
        .gain_shift = 8,
        .least_rate = 1250000,
        .late_ns = 500000,
    };
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* -- Up -----------------------------------------------------------------------------------------*/

/* One of the two, `timer` or bytes, has come round. Back to the target first; then it moves, and
 * moves faster once both have come round more often than the steps back took. */
static void rise(struct dcqcn *dcqcn, const struct dcqcn_policy *policy)
{
    const uint64_t most = larger(dcqcn->timer_steps, dcqcn->counter_steps);
    const uint64_t least = smaller(dcqcn->timer_steps, dcqcn->counter_steps);
    if (least > policy->rounds) {
        dcqcn->target += (least - policy->rounds) * policy->hyper_rate;
    } else if (most >= policy->rounds) {
        dcqcn->target += policy->additive_rate;
    }
    dcqcn->target = smaller(dcqcn->target, policy->line_rate);
    /* Rounded up, so that the target is reached. */
    dcqcn->rate = (dcqcn->rate + dcqcn->target + 1) / 2;
}

static void count_step(uint16_t *steps)
{
    *steps = (uint16_t)(*steps + (*steps != UINT16_MAX));
}

static void release(struct dcqcn *dcqcn)
{
    const struct instant cnp_at = dcqcn->cnp_at;
    *dcqcn = (struct dcqcn){.cnp_at = cnp_at};
}

/* Does the steps of the timers that are due by now, in order. The loop ends: each turn of the
 * rate's timer raises the rate, and at the line's rate nothing is limited. */
static void catch_up(struct dcqcn *dcqcn, const struct dcqcn_policy *policy, struct instant now)
{
    while (dcqcn->rate != 0) {
        const bool alpha_first = !instant_before(dcqcn->timer_at, dcqcn->alpha_at);
        const struct instant next = alpha_first ? dcqcn->alpha_at : dcqcn->timer_at;
        if (!instant_reached(now, next)) {
            return;
        }
        if (alpha_first) {
            dcqcn->alpha -= dcqcn->alpha >> policy->gain_shift;
            dcqcn->alpha_at = instant_after(next, policy->alpha_ns);
            continue;
        }
        rise(dcqcn, policy);
        count_step(&dcqcn->timer_steps);
        dcqcn->timer_at = instant_after(next, policy->timer_ns);
        if (dcqcn->rate == policy->line_rate) {
            release(dcqcn);
        }
    }
}

bool dcqcn_limits(struct dcqcn *dcqcn, const struct dcqcn_policy *policy, struct instant now)
{
    INVARIANTS(dcqcn_check(dcqcn, policy));
    catch_up(dcqcn, policy, now);
    INVARIANTS(dcqcn_check(dcqcn, policy));
    return dcqcn->rate != 0;
}

/* -- Down ---------------------------------------------------------------------------------------*/

/* Half of alpha's part of the rate is taken away. 20 of alpha's 30 bits, so that it fits. */
static uint64_t cut_of(const struct dcqcn *dcqcn)
{
    return dcqcn->rate * (dcqcn->alpha >> 10) >> 21;
}

bool dcqcn_on_cnp(struct dcqcn *dcqcn, const struct dcqcn_policy *policy, struct instant now)
{
    INVARIANTS(dcqcn_check(dcqcn, policy));
    catch_up(dcqcn, policy, now);
    if (dcqcn->rate == 0) {
        *dcqcn =
            (struct dcqcn){.rate = policy->line_rate, .paid_until = now, .alpha = DCQCN_ALPHA_ONE};
    } else if (!instant_reached(now, instant_after(dcqcn->cnp_at, policy->cnp_ns))) {
        return false;
    }
    dcqcn->target = dcqcn->rate;
    dcqcn->rate = larger(dcqcn->rate - cut_of(dcqcn), policy->least_rate);
    dcqcn->alpha -= dcqcn->alpha >> policy->gain_shift;
    dcqcn->alpha += DCQCN_ALPHA_ONE >> policy->gain_shift;
    dcqcn->cnp_at = now;
    dcqcn->alpha_at = instant_after(now, policy->alpha_ns);
    dcqcn->timer_at = instant_after(now, policy->timer_ns);
    dcqcn->sent_bytes = 0;
    dcqcn->timer_steps = dcqcn->counter_steps = 0;
    INVARIANTS(dcqcn_check(dcqcn, policy));
    return true;
}

/* -- Sending ------------------------------------------------------------------------------------*/

void dcqcn_on_sent(struct dcqcn *dcqcn, const struct dcqcn_policy *policy, uint32_t bytes,
                   struct instant now)
{
    if (!dcqcn_limits(dcqcn, policy, now)) {
        return;
    }
    const uint64_t oldest = now.ns > policy->late_ns ? now.ns - policy->late_ns : 0;
    const struct instant from = {larger(dcqcn->paid_until.ns, oldest)};
    dcqcn->paid_until = instant_after(from, bytes * SECOND / dcqcn->rate);
    dcqcn->sent_bytes += bytes;
    while (dcqcn->rate != 0 && dcqcn->sent_bytes >= policy->counter_bytes) {
        dcqcn->sent_bytes -= policy->counter_bytes;
        rise(dcqcn, policy);
        count_step(&dcqcn->counter_steps);
        if (dcqcn->rate == policy->line_rate) {
            release(dcqcn);
        }
    }
    INVARIANTS(dcqcn_check(dcqcn, policy));
}

/* -- Invariants ---------------------------------------------------------------------------------*/

void dcqcn_policy_check(const struct dcqcn_policy *policy)
{
    CHECK(policy->least_rate >= 1 && policy->least_rate < policy->line_rate);
    CHECK(policy->line_rate < RATE_MAX);
    CHECK(policy->additive_rate >= 1 && policy->additive_rate < RATE_MAX);
    CHECK(policy->hyper_rate < RATE_MAX);
    CHECK(policy->alpha_ns >= 1 && policy->timer_ns >= 1 && policy->counter_bytes >= 1);
    CHECK(policy->gain_shift >= 1 && policy->gain_shift <= 20);
}

void dcqcn_check(const struct dcqcn *dcqcn, const struct dcqcn_policy *policy)
{
    if (dcqcn->rate == 0) {
        CHECK(dcqcn->target == 0 && dcqcn->alpha == 0);
        return;
    }
    CHECK(dcqcn->rate >= policy->least_rate && dcqcn->rate < policy->line_rate);
    CHECK(dcqcn->target >= dcqcn->rate && dcqcn->target <= policy->line_rate);
    CHECK(dcqcn->alpha <= DCQCN_ALPHA_ONE);
    CHECK(dcqcn->sent_bytes < policy->counter_bytes);
    CHECK(dcqcn->timer_at.ns - dcqcn->cnp_at.ns >= policy->timer_ns);
    CHECK(dcqcn->alpha_at.ns - dcqcn->cnp_at.ns >= policy->alpha_ns);
}
