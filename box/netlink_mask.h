/* SPDX-License-Identifier: BSD-2-Clause
 *
 * netlink_mask - what the kernel tells of its interfaces, without times and counters of this
 * machine.
 */
#ifndef BOX_NETLINK_MASK_H
#define BOX_NETLINK_MASK_H

#include <stddef.h>
#include <stdint.h>

/* Makes 0 of what differs from run to run in an answer, which is aligned for 4 bytes. No length
 * changes. An answer that is not as rtnetlink(7) has it keeps what stands behind the mistake: its
 * bytes are in a program's memory by now. */
void netlink_mask(uint8_t *answer, size_t bytes);

#endif
