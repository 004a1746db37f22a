/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_bare - a live NIC without ports, threads and a NIC: for fuzzers that look at one part of it.
 *
 * What it would ask of its ports, of other processes and of the clock, its user takes by the
 * linker.
 */
#ifndef DRIVERS_LIVE_BARE_H
#define DRIVERS_LIVE_BARE_H

#include "drivers/live.h"

/* With these GIDs, and a connection manager whose ids nobody gives. */
struct live *live_bare_make(const struct gid *gids, uint32_t count);
/* Ids that were given as stock have been taken back. */
void live_bare_drop(struct live *live);
/* (locked) It is later: live_now says when. */
void live_bare_on_time(struct live *live);

#endif
