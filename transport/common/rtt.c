/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/common/rtt.h"

#define PROBE_DOUBLINGS_MAX 6

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void rtt_init(struct rtt *rtt)
{
    *rtt = (struct rtt){.smoothed_ns = 0};
}

/* Forgets the quarters that the window has left, and begins the one of `now`. */
static void move_window(struct rtt *rtt, const struct rtt_policy *policy, struct instant now)
{
    const uint32_t quarter = (uint32_t)(now.ns / (policy->window_ns / RTT_QUARTERS));
    const uint32_t passed = rtt_known(rtt) ? quarter - rtt->quarter : RTT_QUARTERS;
    for (uint32_t past = 0; past < passed && past < RTT_QUARTERS; past++) {
        rtt->least_ns[(quarter - past) % RTT_QUARTERS] = UINT32_MAX;
    }
    rtt->quarter = quarter;
}

void rtt_sample(struct rtt *rtt, const struct rtt_policy *policy, uint64_t sample_ns,
                struct instant now)
{
    const uint32_t sample = (uint32_t)larger(smaller(sample_ns, UINT32_MAX), 1);
    move_window(rtt, policy, now);
    uint32_t *least = &rtt->least_ns[rtt->quarter % RTT_QUARTERS];
    *least = sample < *least ? sample : *least;
    rtt->newest_ns = sample;
    if (!rtt_known(rtt)) {
        rtt->smoothed_ns = sample;
        rtt->variation_ns = sample / 2;
        return;
    }
    const uint64_t smoothed = rtt->smoothed_ns;
    const uint64_t off = smoothed > sample ? smoothed - sample : sample - smoothed;
    rtt->variation_ns = (uint32_t)((3 * (uint64_t)rtt->variation_ns + off) / 4);
    rtt->smoothed_ns = (uint32_t)larger((7 * smoothed + sample) / 8, 1);
}

uint32_t rtt_least_ns(const struct rtt *rtt)
{
    if (!rtt_known(rtt)) {
        return 0;
    }
    uint32_t least = UINT32_MAX;
    for (uint32_t quarter = 0; quarter < RTT_QUARTERS; quarter++) {
        least = rtt->least_ns[quarter] < least ? rtt->least_ns[quarter] : least;
    }
    return least;
}

uint64_t rtt_rto_ns(const struct rtt *rtt, const struct rtt_policy *policy, uint32_t expiries)
{
    uint64_t timeout = policy->unknown_ns;
    if (rtt_known(rtt)) {
        timeout = rtt->smoothed_ns +
                  larger(4 * (uint64_t)rtt->variation_ns, policy->variation_least_ns) +
                  policy->allowance_ns;
    }
    timeout = larger(timeout, policy->timeout_least_ns);
    for (uint32_t past = 0; past < expiries && timeout < policy->timeout_most_ns; past++) {
        timeout *= 2;
    }
    return smaller(timeout, policy->timeout_most_ns);
}

uint64_t rtt_pto_ns(const struct rtt *rtt, const struct rtt_policy *policy, uint32_t probes)
{
    uint64_t wait = policy->unknown_ns;
    if (rtt_known(rtt)) {
        wait =
            larger(2 * (uint64_t)rtt->smoothed_ns, policy->probe_least_ns) + policy->allowance_ns;
        wait = smaller(wait, rtt_rto_ns(rtt, policy, 0));
    }
    return wait << smaller(probes, PROBE_DOUBLINGS_MAX);
}

uint64_t rtt_tlp_ns(const struct rtt *rtt, const struct rtt_policy *policy)
{
    const uint64_t late =
        rtt->smoothed_ns + larger(rtt->smoothed_ns, 4 * (uint64_t)rtt->variation_ns);
    const uint64_t probe = rtt_pto_ns(rtt, policy, 0);
    return rtt_known(rtt)
               ? smaller(larger(late, policy->tail_least_ns) + policy->allowance_ns, probe)
               : probe;
}
