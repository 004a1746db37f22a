/* SPDX-License-Identifier: BSD-2-Clause
 *
 * memory - the moves engines ask for, done in this process's memory.
 *
 * The last bytes of a remote write land last, because programs poll memory for them. Memory of
 * on-demand regions may not be there: it is reached through the kernel, which reports missing
 * pages. Other memory may have been unmapped under us: such a copy fails as well (guard.h).
 * A flush of persistent memory writes it to its file before the call returns (msync), which waits
 * for the device.
 */
#ifndef DRIVERS_MEMORY_H
#define DRIVERS_MEMORY_H

#include <stdbool.h>

#include "nic/nic.h"

/* Performs a move; `payload` is the packet's. */
enum nic_move_result memory_move(struct nic_move *move);

/* Can the segments be read, each of at most a packet's payload? Looks at their first and last
 * bytes, which lie on all pages they have. */
bool memory_is_there(const struct segment *segments, uint32_t count);

/* Copies the segments to `to`, one behind the other. False: one of them is not there. */
bool memory_gather(const struct segment *segments, uint32_t count, uint8_t *to);

#endif
