/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ticks - time as Lant's tables know it: ticks of the caller's choice, which never go back.
 *
 * The laboratory's are cycles of 6.4 ns, a live NIC's nanoseconds.
 */
#ifndef TRANSPORT_LANT_TICKS_H
#define TRANSPORT_LANT_TICKS_H

#include <stdint.h>

/* A deadline that does not come. */
#define LANT_NEVER UINT64_MAX

/* `ticks` may be LANT_NEVER. */
static inline uint64_t lant_time_after(uint64_t now, uint64_t ticks)
{
    return ticks > LANT_NEVER - now ? LANT_NEVER : now + ticks;
}

#endif
