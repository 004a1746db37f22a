/* SPDX-License-Identifier: BSD-2-Clause
 *
 * odd - the oddities (drivers/odd.h) that programs see in what calls of verbs give.
 *
 * Source     ibv_poll_cq(3), notes; ibv_get_cq_event(3), notes; ibv_create_qp(3), ibv_create_cq(3).
 */
#ifndef VERBS_ODD_H
#define VERBS_ODD_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "drivers/odd.h"
#include "nic/completion_queue.h"
#include "nic/nic.h"

/* Does a poll of this queue find nothing yet? An event would have said what is there; a queue
 * without a channel has none. */
bool odd_is_late(const struct ibv_comp_channel *channel);
/* Fields that are not defined get any value. */
void odd_completion(struct ibv_wc *wc);
/* The same, for a queue that shows its fields by functions. */
void odd_current(struct completion *current);
/* Completions that one poll brings come in another order, as far as they are of several queues. */
void odd_order(struct ibv_wc *wc, int count);
/* Shall an event come now, without a completion? */
bool odd_event(void);
/* Makes what a program asks for larger, within the device's limits. */
void odd_capacity(struct ibv_qp_cap *cap, bool has_srq, const struct nic_limits *limits);
uint32_t odd_entries(uint32_t entries, uint32_t most);
/* A queue pair is ready to send: the changes (enum live_change) that the port has just now. */
uint32_t odd_changes(void);

#endif
