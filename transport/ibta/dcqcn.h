/* SPDX-License-Identifier: BSD-2-Clause
 *
 * dcqcn - the rate of a flow that is told of congestion: DCQCN's rate control.
 *
 * Purpose    The reaction point. A congestion notification cuts the rate; while none comes, time
 *            and bytes that were sent raise it again, until it is the line's and nothing is
 *            limited.
 * Inputs     dcqcn_on_cnp for each notification, dcqcn_on_sent for each packet that left.
 * Outputs    dcqcn_limits (does it limit anything still?), dcqcn_due (when the next packet may
 *            leave), dcqcn_rate.
 * Ownership  Caller owns the struct, one for each flow; zeroed memory limits nothing. The policy
 *            stays in place. Nothing is allocated.
 * Time       Instants are arguments and do not go backwards. It wants no timer of its own: the next
 *            call makes up for the steps of timers.
 * Units      Bytes a second, bytes, nanoseconds. Integers only, so that a run in virtual time
 *            repeats everywhere.
 * Limits     Rates below 2^40 bytes a second. Notifications closer together than cnp_ns are one.
 * Source     Zhu and others, "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015),
 *            chapter 3; IEEE 802.1Qau (QCN) for the hyper increase. docs/decisions/0036.
 */
#ifndef TRANSPORT_IBTA_DCQCN_H
#define TRANSPORT_IBTA_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"

/* Parameters; the names of the publication stand behind. dcqcn.c says where the defaults come from.
 */
struct dcqcn_policy {
    uint64_t line_rate;     /* Where a flow begins that was not limited. */
    uint64_t least_rate;    /* No cut goes below. */
    uint64_t additive_rate; /* R_AI */
    uint64_t hyper_rate;    /* R_HAI */
    uint64_t cnp_ns;        /* N: the least time between two notifications of a flow. */
    uint64_t alpha_ns;      /* K: alpha falls when no notification came for this time. */
    uint64_t timer_ns;      /* T: the rate rises each time that this time has passed, ... */
    uint64_t counter_bytes; /* B: ... and each time that this many bytes were sent. */
    uint64_t late_ns;       /* A late sender catches up on at most this time. */
    uint8_t rounds;         /* F: the steps that lead back to the rate before the cut. */
    uint8_t gain_shift;     /* g = 2^-gain_shift. */
};

struct dcqcn_policy dcqcn_policy_default(void);

struct dcqcn {
    uint64_t rate;             /* Rc; 0: nothing is limited, and nothing below is valid. */
    uint64_t target;           /* Rt */
    uint64_t sent_bytes;       /* Since the counter came round last. */
    struct instant cnp_at;     /* The newest notification that was heeded. */
    struct instant alpha_at;   /* When alpha falls next, */
    struct instant timer_at;   /* and when the rate rises. */
    struct instant paid_until; /* The pace has been paid for all sent bytes, up to then. */
    uint32_t alpha;            /* A part of DCQCN_ALPHA_ONE. */
    uint16_t timer_steps;      /* Since the last notification; they saturate. */
    uint16_t counter_steps;
};

#define DCQCN_ALPHA_ONE (UINT32_C(1) << 30)

/* A notification came. False: too soon after another one, and nothing changes. */
MUST_USE bool dcqcn_on_cnp(struct dcqcn *dcqcn, const struct dcqcn_policy *policy,
                           struct instant now);

/* A packet of `bytes` left. If nothing is limited, nothing changes. */
void dcqcn_on_sent(struct dcqcn *dcqcn, const struct dcqcn_policy *policy, uint32_t bytes,
                   struct instant now);

/* False: nothing is limited, any more or yet. */
bool dcqcn_limits(struct dcqcn *dcqcn, const struct dcqcn_policy *policy, struct instant now);

/* When the next packet may leave, while something is limited. */
static inline struct instant dcqcn_due(const struct dcqcn *dcqcn)
{
    return dcqcn->paid_until;
}

/* The rate as of the last call; 0: nothing is limited. */
static inline uint64_t dcqcn_rate(const struct dcqcn *dcqcn)
{
    return dcqcn->rate;
}

/* All invariants: at the entry and at the end of each call above that changes something. */
void dcqcn_check(const struct dcqcn *dcqcn, const struct dcqcn_policy *policy);
void dcqcn_policy_check(const struct dcqcn_policy *policy);

#endif
