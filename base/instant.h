/* SPDX-License-Identifier: BSD-2-Clause
 *
 * instant - a point in time, in nanoseconds since an origin the world chooses.
 *
 * Engines never read a clock: a world passes instants in. A distinct type, so that an instant and
 * a length of time (plain uint64_t, named ..._ns) cannot be mixed up.
 */
#ifndef BASE_INSTANT_H
#define BASE_INSTANT_H

#include <stdbool.h>
#include <stdint.h>

struct instant {
    uint64_t ns;
};

#define INSTANT_NEVER ((struct instant){UINT64_MAX})

static inline bool instant_reached(struct instant now, struct instant deadline)
{
    return now.ns >= deadline.ns;
}

static inline bool instant_before(struct instant a, struct instant b)
{
    return a.ns < b.ns;
}

static inline struct instant instant_earlier(struct instant a, struct instant b)
{
    return instant_before(b, a) ? b : a;
}

/* `at` plus `ns`; saturates at INSTANT_NEVER. */
static inline struct instant instant_after(struct instant at, uint64_t ns)
{
    return (struct instant){ns > UINT64_MAX - at.ns ? UINT64_MAX : at.ns + ns};
}

#endif
