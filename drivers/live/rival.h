/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rival - a program that spins, and waits for the processor on which our thread looks for packets.
 *
 * Purpose    Says when the thread is to sleep at once instead of lingering. A program that polls
 *            its memory sees what a packet brought only when it has a processor again. Where both
 *            have the same one, each microsecond of lingering is lost to the program.
 * Inputs     How long the program's thread had run, when ours went to sleep, when it woke, and
 *            after the first round since.
 * Outputs    A verdict. live_progress.c acts on it.
 * Units      Nanoseconds.
 * Source     docs/decisions/0065-passive-targets.md.
 */
#ifndef DRIVERS_RIVAL_H
#define DRIVERS_RIVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/instant.h"

struct rival {
    struct instant at; /* When this was last told, ... */
    uint64_t ran_ns;   /* ... and how long the program's thread had run by then. */
    bool spins;        /* It ran while ours slept, and nobody has asked since ours woke. */
};

/* `ran_ns` here and below: 0 if the system does not tell. */
static inline void rival_note_sleep(struct rival *rival, struct instant now, uint64_t ran_ns)
{
    *rival = (struct rival){.at = now, .ran_ns = ran_ns};
}

static inline void rival_note_wake(struct rival *rival, struct instant now, uint64_t ran_ns)
{
    const bool spins = ran_ns - rival->ran_ns > (now.ns - rival->at.ns) / 2;
    *rival = (struct rival){.at = now, .ran_ns = ran_ns, .spins = spins};
}

/* Is the answer of rival_waits known to be no? Then nobody needs to look how long the program's
 * thread ran. */
static inline bool rival_is_known(const struct rival *rival)
{
    return !rival->spins;
}

/* Does the program's thread wait for our processor? It ran while ours slept, and has hardly run
 * since. The answer holds until the next sleep. */
static inline bool rival_waits(struct rival *rival, struct instant now, uint64_t ran_ns)
{
    const bool waits = rival->spins && ran_ns - rival->ran_ns < (now.ns - rival->at.ns) / 4;
    rival->spins = false;
    return waits;
}

#endif
