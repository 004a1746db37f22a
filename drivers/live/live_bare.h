/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_bare - a live NIC without ports, threads and a NIC: for fuzzers that look at one part of it.
 *
 * The fuzzer replaces, by the linker, the functions that would call the ports, other processes and
 * the clock.
 */
#ifndef DRIVERS_LIVE_BARE_H
#define DRIVERS_LIVE_BARE_H

#include "drivers/live/live.h"

/* Makes one with these GIDs, and with a connection manager for which nobody makes ids. */
struct live *live_bare_make(const struct gid *gids, uint32_t count);
/* The caller has taken back the ids that it gave as stock. */
void live_bare_drop(struct live *live);
/* (locked) Time has passed; live_now says what time it is. */
void live_bare_on_time(struct live *live);

#endif
