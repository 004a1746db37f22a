/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rtt - the time of a round trip: smoothed, its variation, its recent minimum, and the timers that
 * follow from it.
 *
 * Purpose    Turns samples of a path into its smoothed round trip, into the least one of the recent
 *            past, and into the times after which silence means something.
 * Inputs     rtt_sample: a round trip that is not ambiguous, less the time the peer held its
 *            answer.
 * Outputs    rtt_least_ns, rtt_tlp_ns (when to ask for an answer), rtt_pto_ns (when to probe),
 *            rtt_rto_ns (when to despair).
 * Ownership  Caller owns the struct. Nothing is allocated.
 * Units      Nanoseconds, 32 bits: a longer round trip counts as 4.29 s.
 * Limits     The minimum is kept by quarters of its window: it covers between three quarters of it
 *            and all of it. A path that is silent for longer keeps its last minimum.
 * Source     RFC 6298 (smoothing), RFC 8985 section 7 (probes), RFC 9002 section 6; the floors were
 *            measured on machines whose processors are shared.
 */
#ifndef TRANSPORT_COMMON_RTT_H
#define TRANSPORT_COMMON_RTT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/instant.h"

#define RTT_QUARTERS 4

struct rtt {
    uint32_t smoothed_ns; /* 0: there was no sample yet. */
    uint32_t variation_ns;
    uint32_t newest_ns;
    uint32_t quarter;                /* Which quarter of all windows the newest sample fell into. */
    uint32_t least_ns[RTT_QUARTERS]; /* Quarter n has n modulo 4; UINT32_MAX: no sample. */
};

struct rtt_policy {
    uint64_t window_ns;      /* The minimum's. */
    uint64_t unknown_ns;     /* Both timers before the first sample. */
    uint64_t tail_least_ns;  /* Tail loss probe: smoothed + max(smoothed, 4 variation), or this. */
    uint64_t probe_least_ns; /* The probe's timer: max(2 smoothed, this) + allowance. */
    uint64_t timeout_least_ns; /* Floor and ceiling of the other one. */
    uint64_t timeout_most_ns;
    uint64_t variation_least_ns; /* Timeout: smoothed + max(4 variation, this) + allowance. */
    /* The time that a batch takes to leave, and that the peer may wait. */
    uint64_t allowance_ns;
};

/* 10 s: a route may change. 1 s: RFC 6298. 2 ms and 10 ms: a process that is not the only one on
 * its processor oversleeps by one tick of 4 ms, and two of them must fit into the timeout. A tail
 * loss probe may be in vain, since it costs one small packet, and nothing is concluded from silence
 * after it: 100 us. */
static inline struct rtt_policy rtt_policy_default(void)
{
    return (struct rtt_policy){
        .window_ns = 10000000000,
        .unknown_ns = 1000000000,
        .tail_least_ns = 100000,
        .probe_least_ns = 2000000,
        .timeout_least_ns = 10000000,
        .timeout_most_ns = 1000000000,
        .variation_least_ns = 1000000,
    };
}

void rtt_init(struct rtt *rtt);
void rtt_sample(struct rtt *rtt, const struct rtt_policy *policy, uint64_t sample_ns,
                struct instant now);

static inline bool rtt_known(const struct rtt *rtt)
{
    return rtt->smoothed_ns != 0;
}

/* The least round trip of the window; 0: there was no sample. */
uint32_t rtt_least_ns(const struct rtt *rtt);

/* The time after which the last packets in flight may be lost, so that one packet is to ask for an
 * answer (RFC 8985 section 7.2); at most that of the first probe. */
uint64_t rtt_tlp_ns(const struct rtt *rtt, const struct rtt_policy *policy);

/* The time to wait for an answer before a probe asks for one. Each unanswered probe doubles it, up
 * to 64 times. */
uint64_t rtt_pto_ns(const struct rtt *rtt, const struct rtt_policy *policy, uint32_t probes);

/* How long silence may last; twice as long for each expiry, up to the policy's most. */
uint64_t rtt_rto_ns(const struct rtt *rtt, const struct rtt_policy *policy, uint32_t expiries);

#endif
