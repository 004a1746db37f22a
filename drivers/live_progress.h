/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_progress - the rounds of the NIC, driven by programs or by our thread.
 */
#ifndef DRIVERS_LIVE_PROGRESS_H
#define DRIVERS_LIVE_PROGRESS_H

struct live;

/* The thread: its argument is the NIC. */
void *live_thread(void *argument);
/* All that is ready leaves, counters and capture are written. Not locked. */
void live_finish(struct live *live);

#endif
