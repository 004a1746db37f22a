/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_progress - the rounds of the NIC, driven by programs or by our thread.
 */
#ifndef DRIVERS_LIVE_PROGRESS_H
#define DRIVERS_LIVE_PROGRESS_H

struct live;

/* The thread: its argument is the NIC. */
void *live_thread(void *argument);
/* Sends all packets that are ready, and writes counters and capture. The caller does not hold the
 * lock. */
void live_finish(struct live *live);

#endif
