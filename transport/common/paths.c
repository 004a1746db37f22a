/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/common/paths.h"

void paths_init(struct paths *paths, struct path *first, struct path *others, uint8_t count)
{
    CHECK(count >= 1 && count <= PATHS_MAX);
    *paths =
        (struct paths){.first = first, .others = others, .count = count, .own_route = PATH_NONE};
}

/* The next path that has room, beginning with the one in turn. */
static uint8_t next_with_room(const struct paths *paths, struct instant now)
{
    for (uint8_t past = 0; past < paths->count; past++) {
        const uint8_t at = (uint8_t)((paths->turn + past) % paths->count);
        if (path_room(paths_at(paths, at), now) != 0) {
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
        const struct path *path = paths_at(paths, at);
        if (rtt_known(&path->rtt) && path_room(path, now) != 0 &&
            (best == PATH_NONE || path->rtt.smoothed_ns < paths_at(paths, best)->rtt.smoothed_ns)) {
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

bool paths_have_room(const struct paths *paths, struct instant now)
{
    return next_with_room(paths, now) != PATH_NONE;
}

struct instant paths_room_at(const struct paths *paths, struct instant now)
{
    struct instant first = INSTANT_NEVER;
    for (uint8_t at = 0; at < paths->count; at++) {
        const struct instant room = path_room_at(paths_at(paths, at), now);
        first = instant_before(room, first) ? room : first;
    }
    return first;
}

struct instant paths_deadline(const struct paths *paths)
{
    struct instant first = INSTANT_NEVER;
    for (uint8_t at = 0; at < paths->count; at++) {
        const struct instant due = path_deadline(paths_at(paths, at));
        first = instant_before(due, first) ? due : first;
    }
    return first;
}

/* When the newest packet that arrived by another path had left. */
static struct instant sent_elsewhere(const struct paths *paths, uint8_t than)
{
    struct instant newest = {0};
    for (uint8_t at = 0; at < paths->count; at++) {
        const struct path *path = paths_at(paths, at);
        if (at != than && !path->suspect && path->arrived_known &&
            instant_before(newest, path->arrived_sent)) {
            newest = path->arrived_sent;
        }
    }
    return newest;
}

uint8_t paths_on_time(struct paths *paths, struct instant now)
{
    for (uint8_t at = 0; at < paths->count; at++) {
        switch (path_on_time(paths_at(paths, at), sent_elsewhere(paths, at), now)) {
        case PATH_QUIET: break;
        case PATH_PROBE:
            paths_want_probe(paths, at);
            paths->away |= (uint16_t)(1u << at);
            break;
        case PATH_LEFT: return at;
        }
    }
    return PATH_NONE;
}

/* -- Probes -------------------------------------------------------------------------------------*/

static void take_probe(struct paths *paths, struct paths_probe *probe)
{
    const uint8_t path = (uint8_t)__builtin_ctz(paths->probes);
    paths->probes &= (uint16_t) ~(1u << path);
    /* Its answer could not be told from that to a probe of an own route. */
    paths->own_route = PATH_NONE;
    *probe = (struct paths_probe){.path = path, .round = paths_at(paths, path)->turns};
}

bool paths_next_probe(struct paths *paths, bool in_use, struct instant now,
                      struct paths_probe *probe)
{
    if (paths->probes != 0) {
        take_probe(paths, probe);
        return true;
    }
    for (uint8_t at = 0; at < paths->count && paths->away != 0 && in_use; at++) {
        struct path *away = paths_at(paths, at);
        if (away->turns == 0) {
            paths->away &= (uint16_t) ~(1u << at);
        } else if (path_own_route_due(away, now)) {
            path_own_route_tried(away, now);
            paths->own_route = at;
            *probe = (struct paths_probe){.path = at, .own_route = true};
            return true;
        }
    }
    return false;
}

void paths_on_probe_answered(struct paths *paths, struct instant now)
{
    if (paths->own_route != PATH_NONE) {
        path_own_route_answers(paths_at(paths, paths->own_route), now);
        paths->own_route = PATH_NONE;
    }
}
