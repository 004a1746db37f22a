/* SPDX-License-Identifier: BSD-2-Clause
 *
 * paths - the choice of a path, out of those that one sender has.
 *
 * Purpose    Spreads packets over the paths that have room, keeps small messages on the quickest
 *            one, and avoids those that do not answer.
 * Inputs     paths_choose for each block or packet; paths_on_time.
 * Outputs    The path's number; which path is to be probed or left.
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
    struct path *path;
    uint8_t count;
    uint8_t turn; /* The next path in turn. */
};

void paths_init(struct paths *paths, struct path *path, uint8_t count);

/* The path for a block or packet; PATH_NONE: none has room now. `urgent`: a small message whose
 * latency counts takes the path with the lowest recent delay instead of the next one. */
uint8_t paths_choose(struct paths *paths, bool urgent, struct instant now);

/* When one of them will have room; INSTANT_NEVER: not before news. */
struct instant paths_room_at(const struct paths *paths, struct instant now);

struct instant paths_deadline(const struct paths *paths);

/* The event that is due, and on which path; asked again until it is PATH_QUIET. */
struct paths_event {
    enum path_event event;
    uint8_t path;
};
MUST_USE struct paths_event paths_on_time(struct paths *paths, struct instant now);

#endif
