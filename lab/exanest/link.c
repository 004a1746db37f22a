/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/link.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/check.h"
#include "lab/exanest/watch.h"

#define NEVER UINT64_MAX

struct exanest_link_config exanest_link_default(void)
{
    return (struct exanest_link_config){
        .serializer = exanest_serializer_default(),
        .deserializer = exanest_deserializer_default(),
        .wire_ps = EXANEST_WIRE_PS,
    };
}

/* How many pieces a wire can hold: each takes at least half a word or a flow-control word. */
static uint32_t places(const struct exanest_link_config *config)
{
    const struct exanest_line *line = &config->serializer.line;
    const uint32_t shortest = line->half_ps < line->flow_ps ? line->half_ps : line->flow_ps;
    CHECK(shortest > 0);
    return (uint32_t)power_of_two(config->wire_ps / shortest + 4);
}

void exanest_link_open(struct exanest_link *link, const struct exanest_link_config *config)
{
    *link = (struct exanest_link){.wire_ps = config->wire_ps};
    for (uint32_t i = 0; i < 2; i++) {
        struct exanest_direction *way = &link->ways[i];
        exanest_serializer_init(&way->serializer, &config->serializer);
        exanest_deserializer_init(&way->deserializer, &config->deserializer);
        way->mask = places(config) - 1;
        way->flying = malloc((way->mask + 1) * sizeof(*way->flying));
        CHECK(way->flying != NULL);
    }
}

void exanest_link_close(struct exanest_link *link)
{
    free(link->ways[0].flying);
    free(link->ways[1].flying);
}

/* -- Events between two cycles ------------------------------------------------------------------*/

static uint64_t next_arrival(const struct exanest_direction *way)
{
    return way->head == way->tail ? NEVER : way->flying[way->head & way->mask].at_ps;
}

/* When the line will take its next piece; what waits has waited since the last cycle at most. */
static uint64_t next_departure(const struct exanest_link *link, uint32_t i)
{
    const struct exanest_direction *way = &link->ways[i];
    if (!exanest_serializer_due(&way->serializer)) {
        return NEVER;
    }
    return way->free_ps > link->now_ps ? way->free_ps : link->now_ps;
}

static void arrive(struct exanest_link *link, uint32_t i)
{
    struct exanest_direction *way = &link->ways[i];
    const struct exanest_piece *piece = &way->flying[way->head & way->mask].piece;
    if (piece->is_flow) {
        struct exanest_direction *told = &link->ways[!i];
        exanest_serializer_on_flow(&told->serializer, piece->flow);
        way->flow_flies = false;
        if (UNLIKELY(told->lane != NULL)) {
            exanest_lane_stop(told->lane, told->serializer.stopped, link->now_ps);
        }
    } else {
        exanest_deserializer_on_piece(&way->deserializer, piece);
    }
    way->head++;
}

static void depart(struct exanest_link *link, uint32_t i)
{
    struct exanest_direction *way = &link->ways[i];
    const struct exanest_direction *back = &link->ways[!i];
    const bool whole = !back->flow_flies && exanest_deserializer_calm(&back->deserializer);
    CHECK(way->tail - way->head <= way->mask);
    struct exanest_flying *flying = &way->flying[way->tail & way->mask];
    const bool due = exanest_serializer_next(&way->serializer, whole ? 2 : 1, &flying->piece);
    CHECK(due);
    flying->at_ps = link->now_ps + flying->piece.sent_ps + link->wire_ps;
    way->flow_flies |= flying->piece.is_flow;
    way->free_ps = link->now_ps + flying->piece.free_ps;
    way->used_ps += flying->piece.free_ps;
    way->tail++;
    if (UNLIKELY(way->lane != NULL) && !flying->piece.is_flow) {
        exanest_lane_take(way->lane, flying->piece.words, flying->piece.halves, flying->piece.last,
                          link->now_ps, link->now_ps + flying->piece.sent_ps);
    }
}

/* In the order of time; of what happens at once, arrivals come first. */
static void play(struct exanest_link *link, uint64_t until_ps)
{
    for (;;) {
        const uint64_t times[] = {next_arrival(&link->ways[0]), next_arrival(&link->ways[1]),
                                  next_departure(link, 0), next_departure(link, 1)};
        uint32_t first = 0;
        for (uint32_t i = 1; i < 4; i++) {
            first = times[i] < times[first] ? i : first;
        }
        if (times[first] > until_ps) {
            break;
        }
        link->now_ps = times[first];
        if (first < 2) {
            arrive(link, first);
        } else {
            depart(link, first - 2);
        }
    }
    link->now_ps = until_ps;
}

void exanest_link_step(struct exanest_link *link, uint64_t now_ps)
{
    CHECK(now_ps >= link->now_ps);
    play(link, now_ps);
    for (uint32_t i = 0; i < 2; i++) {
        uint8_t flow;
        exanest_serializer_step(&link->ways[i].serializer);
        exanest_deserializer_step(&link->ways[i].deserializer);
        if (exanest_deserializer_next_flow(&link->ways[i].deserializer, &flow)) {
            exanest_serializer_send_flow(&link->ways[!i].serializer, flow);
        }
    }
}

static bool direction_idle(const struct exanest_direction *way)
{
    return way->head == way->tail && !exanest_serializer_due(&way->serializer) &&
           exanest_serializer_idle(&way->serializer) &&
           exanest_deserializer_idle(&way->deserializer);
}

bool exanest_link_idle(const struct exanest_link *link)
{
    return direction_idle(&link->ways[0]) && direction_idle(&link->ways[1]);
}
