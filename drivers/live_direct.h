/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_direct - what local peers may reach by themselves.
 */
#ifndef DRIVERS_LIVE_DIRECT_H
#define DRIVERS_LIVE_DIRECT_H

struct live;

/* All that was withdrawn is settled, or some milliseconds are over. */
void live_settle_locked(struct live *live);

#endif
