/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_multicast - multicast groups, joined as long as queue pairs are attached to them.
 */
#ifndef DRIVERS_LIVE_MULTICAST_H
#define DRIVERS_LIVE_MULTICAST_H

#include "nic/nic.h"

struct live;

/* live_group_arrival: a packet for a group has come. live_resolve_group: finds the link to a
 * group. */
void live_group_arrival(struct live *live, const struct nic_frame *frame);
MUST_USE enum status live_resolve_group(struct live *live, struct nic_av *av);

#endif
