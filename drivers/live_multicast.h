/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_multicast - who is attached decides which groups are joined.
 */
#ifndef DRIVERS_LIVE_MULTICAST_H
#define DRIVERS_LIVE_MULTICAST_H

#include "nic/nic.h"

struct live;

/* A packet for a group; the way to a group. */
void live_group_arrival(struct live *live, const struct nic_frame *frame);
MUST_USE enum status live_resolve_group(struct live *live, struct nic_av *av);

#endif
