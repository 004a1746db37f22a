/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_direct - the memory that local peers may reach by themselves.
 */
#ifndef DRIVERS_LIVE_DIRECT_H
#define DRIVERS_LIVE_DIRECT_H

struct live;

/* With the lock held, waits until all withdrawals are settled, or for some milliseconds. */
void live_settle_locked(struct live *live);

#endif
