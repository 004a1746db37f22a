/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_lend - when memory of regions is made for local peers to map, and when it becomes private
 * again.
 *
 * Purpose    Pages of private memory are exchanged only while the program has one thread, and that
 *            thread is in a call of ours: then nobody writes into them. They are exchanged back
 *            before the region is given back, before the program forks or starts a thread, and
 *            before it gives advice about them or moves them.
 * Inputs     The program's calls.
 * Threads    As drivers/live: the lock is held.
 * Source     docs/decisions/0061.
 */
#ifndef DRIVERS_LIVE_LEND_H
#define DRIVERS_LIVE_LEND_H

#include "world/world.h"

/* Once the ports are open. */
void live_begin_lending(struct live *live);

/* A region has been published. */
void live_lend_new(struct live *live, const struct region *region);

/* A program's thread is in a call of ours, with nothing to do: a peer may have asked for memory. */
void live_lend_wanted(struct live *live);

#endif
