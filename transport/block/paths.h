/* SPDX-License-Identifier: BSD-2-Clause
 *
 * paths - the choice of a path for each block, out of the paths of one stream.
 *
 * Purpose    Spreads blocks over the paths that have room, keeps small messages on the quickest
 *            one, and avoids those that do not answer.
 * Inputs     block_paths_choose for each block; block_paths_on_time.
 * Outputs    The path's number; which path is to be probed or left.
 * Ownership  Caller owns the struct and the paths. Nothing is allocated.
 * Units      Bytes as they count in a window.
 * Limits     16 paths: a path's number has 4 bits.
 * Source     docs/block-transport.md, "What the requester sends, and when" (paths) and "Timers".
 */
#ifndef TRANSPORT_BLOCK_PATHS_H
#define TRANSPORT_BLOCK_PATHS_H

#include "transport/block/path.h"
#include "wire/block.h"

#define BLOCK_PATH_NONE 0xff

struct block_paths {
    struct block_path *path;
    uint8_t count;
    uint8_t turn; /* The next path in turn. */
};

void block_paths_init(struct block_paths *paths, struct block_path *path, uint8_t count);

/* The path for a block; BLOCK_PATH_NONE: none has room now. `urgent`: a small message whose latency
 * counts takes the path with the lowest recent delay instead of the next one. */
uint8_t block_paths_choose(struct block_paths *paths, bool urgent, struct instant now);

/* When one of them will have room; INSTANT_NEVER: not before news. */
struct instant block_paths_room_at(const struct block_paths *paths, struct instant now);

struct instant block_paths_deadline(const struct block_paths *paths);

/* The event that is due, and on which path; asked again until it is BLOCK_PATH_QUIET. */
struct block_paths_event {
    enum block_path_event event;
    uint8_t path;
};
MUST_USE struct block_paths_event block_paths_on_time(struct block_paths *paths,
                                                      struct instant now);

#endif
