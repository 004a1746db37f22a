/* SPDX-License-Identifier: BSD-2-Clause
 *
 * odd - a device that does all that the documents allow and that devices seldom do (`nonic run
 * --odd`), so that a program which relies on more breaks here and not at a customer's.
 *
 * Purpose    Undefined fields of completions have any value, events come for nothing, and objects
 *            are larger than was asked for.
 * Inputs     NONIC_ODD: the seed.
 * Outputs    The same decisions for the same calls in the same order.
 * Threads    Any.
 * Source     ibv_poll_cq(3), notes; ibv_get_cq_event(3), notes; ibv_create_qp(3), ibv_create_cq(3).
 */
#ifndef VERBS_ODD_H
#define VERBS_ODD_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "base/check.h"
#include "nic/completion_queue.h"
#include "nic/nic.h"

/* It does not change once there is a device. */
extern bool odd_wanted;

static ALWAYS_INLINE bool is_odd(void)
{
    return UNLIKELY(odd_wanted);
}

/* Before the first object is made. */
void odd_begin(void);

/* Fields that are not defined get any value. */
void odd_completion(struct ibv_wc *wc);
/* The same, for a queue that shows its fields by functions. */
void odd_current(struct completion *current);
/* Shall an event come now, without a completion? */
bool odd_event(void);
/* Makes what a program asks for larger, within the device's limits. */
void odd_capacity(struct ibv_qp_cap *cap, bool has_srq, const struct nic_limits *limits);
uint32_t odd_entries(uint32_t entries, uint32_t most);

#endif
