/* SPDX-License-Identifier: BSD-2-Clause
 *
 * paths - the choice of a path, out of those that one sender has, and their probes.
 *
 * Purpose    Spreads packets over the paths that have room, keeps small messages on the quickest
 *            one, avoids those that do not answer, and brings back those that left their route.
 * Inputs     paths_choose for each block or packet; paths_on_time; paths_want_probe;
 *            paths_on_probe_answered.
 * Outputs    The path's number; the next probe; which path is left.
 * Ownership  Caller owns the struct and the paths. Nothing is allocated.
 * Units      Bytes as they count in a window.
 * Limits     16 paths: a path's number has 4 bits.
 * Source     docs/block-transport.md, "What the requester sends, and when" (paths) and "Timers".
 */
#ifndef TRANSPORT_COMMON_PATHS_H
#define TRANSPORT_COMMON_PATHS_H

#include "transport/common/path.h"

#define PATHS_MAX 16
#define PATH_NONE 0xff

struct paths {
    struct path *first, *others; /* The others need not lie behind the first one. */
    uint8_t count;
    uint8_t turn;      /* The next path in turn. */
    uint8_t own_route; /* The only path whose own route is being probed; PATH_NONE: none. */
    uint16_t probes;   /* One bit for each path: a probe is due; ... */
    uint16_t away;     /* ... it may have left its own route. */
};

/* `others`: count - 1 of them. */
void paths_init(struct paths *paths, struct path *first, struct path *others, uint8_t count);

static inline struct path *paths_at(const struct paths *paths, uint32_t path)
{
    return path == 0 ? paths->first : &paths->others[path - 1];
}

/* The path for a block or packet; PATH_NONE: none has room now. `urgent`: a small message whose
 * latency counts takes the path with the lowest recent delay instead of the next one. */
uint8_t paths_choose(struct paths *paths, bool urgent, struct instant now);

bool paths_have_room(const struct paths *paths, struct instant now);

/* When one of them will have room; INSTANT_NEVER: not before news. */
struct instant paths_room_at(const struct paths *paths, struct instant now);

struct instant paths_deadline(const struct paths *paths);

/* Notes which probes are due. A path that is left from now on, whose packets in flight go elsewhere
 * at once; asked again until it is PATH_NONE. */
MUST_USE uint8_t paths_on_time(struct paths *paths, struct instant now);

/* -- Probes -------------------------------------------------------------------------------------*/

/* This path is to be probed. */
static inline void paths_want_probe(struct paths *paths, uint8_t path)
{
    paths->probes |= (uint16_t)(1u << path);
}

struct paths_probe {
    uint8_t path;
    uint8_t round;  /* How often the path has left its route. */
    bool own_route; /* By its own route, which the path has left: `round` is 0. */
};
/* The next probe; false: none is due. A path that works by another route than its own asks now and
 * then whether that one does, too: but not while nothing is under way (`in_use`). */
MUST_USE bool paths_next_probe(struct paths *paths, bool in_use, struct instant now,
                               struct paths_probe *probe);
/* An answer to a probe came. If no probe has left since one by a path's own route, the path takes
 * that again. If the answer is to one from before, and the route is dead, the path will leave it
 * again. */
void paths_on_probe_answered(struct paths *paths, struct instant now);

#endif
