/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/common/paths.h"

void paths_init(struct paths *paths, struct path *path, uint8_t count)
{
    CHECK(count >= 1 && count <= PATHS_MAX);
    *paths = (struct paths){.path = path, .count = count};
}

/* The next path that has room, beginning with the one in turn. */
static uint8_t next_with_room(const struct paths *paths, struct instant now)
{
    for (uint8_t past = 0; past < paths->count; past++) {
        const uint8_t at = (uint8_t)((paths->turn + past) % paths->count);
        if (path_room(&paths->path[at], now) != 0) {
            return at;
        }
    }
    return PATH_NONE;
}

/* The quickest path with room. A path without a known round trip gets its turn elsewhere, not
 * here. */
static uint8_t quickest_with_room(const struct paths *paths, struct instant now)
{
    uint8_t best = PATH_NONE;
    for (uint8_t at = 0; at < paths->count; at++) {
        const struct path *path = &paths->path[at];
        if (rtt_known(&path->rtt) && path_room(path, now) != 0 &&
            (best == PATH_NONE || path->rtt.smoothed_ns < paths->path[best].rtt.smoothed_ns)) {
            best = at;
        }
    }
    return best;
}

uint8_t paths_choose(struct paths *paths, bool urgent, struct instant now)
{
    if (urgent) {
        const uint8_t quickest = quickest_with_room(paths, now);
        if (quickest != PATH_NONE) {
            return quickest;
        }
    }
    const uint8_t chosen = next_with_room(paths, now);
    if (chosen != PATH_NONE) {
        paths->turn = (uint8_t)((chosen + 1) % paths->count);
    }
    return chosen;
}

struct instant paths_room_at(const struct paths *paths, struct instant now)
{
    struct instant first = INSTANT_NEVER;
    for (uint8_t at = 0; at < paths->count; at++) {
        const struct instant room = path_room_at(&paths->path[at], now);
        first = instant_before(room, first) ? room : first;
    }
    return first;
}

struct instant paths_deadline(const struct paths *paths)
{
    struct instant first = INSTANT_NEVER;
    for (uint8_t at = 0; at < paths->count; at++) {
        const struct instant due = path_deadline(&paths->path[at]);
        first = instant_before(due, first) ? due : first;
    }
    return first;
}

/* When the newest packet that arrived by another path had left. */
static struct instant sent_elsewhere(const struct paths *paths, uint8_t than)
{
    struct instant newest = {0};
    for (uint8_t at = 0; at < paths->count; at++) {
        const struct path *path = &paths->path[at];
        if (at != than && !path->suspect && path->arrived_known &&
            instant_before(newest, path->arrived_sent)) {
            newest = path->arrived_sent;
        }
    }
    return newest;
}

struct paths_event paths_on_time(struct paths *paths, struct instant now)
{
    for (uint8_t at = 0; at < paths->count; at++) {
        const enum path_event event =
            path_on_time(&paths->path[at], sent_elsewhere(paths, at), now);
        if (event != PATH_QUIET) {
            return (struct paths_event){.event = event, .path = at};
        }
    }
    return (struct paths_event){.event = PATH_QUIET};
}
