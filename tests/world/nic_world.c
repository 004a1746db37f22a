/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/world/nic_world.h"

#include <stdlib.h>
#include <string.h>

#include "nic/internal.h"

/* A world too lazy to pull looks again this much later. */
#define LAZY_NS 1000

void nic_world_init(struct nic_world *world, uint64_t seed, const struct nic_world_faults *faults,
                    const struct nic_limits *limits)
{
    memset(world, 0, sizeof(*world));
    prng_init(&world->prng, seed);
    world->faults = *faults;
    world->now_ns = 1000;
    for (int i = 0; i < 2; i++) {
        const size_t bytes = (nic_bytes(limits) + 63u) & ~(size_t)63u;
        void *memory = aligned_alloc(64, bytes);
        memset(memory, 0, bytes);
        world->nics[i] = nic_init(limits, prng_next(&world->prng), memory);
        world->gids[i] = (struct gid){{[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1)}};
    }
}

void nic_world_free(struct nic_world *world)
{
    for (uint32_t i = 0; i < world->event_count; i++) {
        free(world->events[i]->move);
        free(world->events[i]);
    }
    free(world->nics[0]);
    free(world->nics[1]);
}

struct instant nic_world_now(const struct nic_world *world)
{
    return (struct instant){world->now_ns};
}

/* -- The event heap -----------------------------------------------------------------------------*/

static bool before(const struct nic_world_event *a, const struct nic_world_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void push(struct nic_world *world, struct nic_world_event *event, uint64_t at_ns)
{
    event->at_ns = at_ns;
    event->order = world->next_order++;
    uint32_t at = world->event_count++;
    while (at > 0 && before(event, world->events[(at - 1) / 2])) {
        world->events[at] = world->events[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    world->events[at] = event;
}

static struct nic_world_event *pop(struct nic_world *world)
{
    struct nic_world_event *first = world->events[0];
    struct nic_world_event *last = world->events[--world->event_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= world->event_count) {
            break;
        }
        if (child + 1 < world->event_count &&
            before(world->events[child + 1], world->events[child])) {
            child++;
        }
        if (!before(world->events[child], last)) {
            break;
        }
        world->events[at] = world->events[child];
        at = child;
    }
    world->events[at] = last;
    return first;
}

/* -- Departure ----------------------------------------------------------------------------------*/

static uint32_t serialize(const struct nic_departure *departure, uint8_t *bytes)
{
    memcpy(bytes, departure->headers, departure->headers_bytes);
    uint32_t count = departure->headers_bytes;
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        const struct segment *segment = &departure->segments[i];
        memcpy(bytes + count, (const void *)(uintptr_t)segment->address, segment->bytes);
        count += segment->bytes;
    }
    memset(bytes + count, 0, departure->pad_bytes);
    return count + departure->pad_bytes;
}

static void launch(struct nic_world *world, uint8_t to, const uint8_t *bytes, uint32_t count)
{
    if (world->faults.cut || prng_chance(&world->prng, world->faults.drop) ||
        world->event_count >= NIC_WORLD_PACKETS_MAX - 2) {
        world->lost++;
        return;
    }
    struct nic_world_event *event = calloc(1, sizeof(*event));
    event->node = to;
    event->count = count;
    memcpy(event->bytes, bytes, count);
    uint64_t latency_ns = world->faults.latency_ns;
    if (prng_chance(&world->prng, world->faults.reorder)) {
        latency_ns += prng_below(&world->prng, 4 * latency_ns + 1);
    }
    push(world, event, world->now_ns + latency_ns);
}

static void pull(struct nic_world *world, uint8_t node)
{
    struct nic *nic = world->nics[node];
    struct nic_departure departure;
    uint8_t bytes[ROCE_PACKET_BYTES_MAX];
    struct qp *qp;
    while ((qp = nic_next_qp(nic)) != NULL) {
        if (prng_chance(&world->prng, world->faults.lazy)) {
            return;
        }
        if (!nic_next_packet(nic, qp, nic_world_now(world), &departure)) {
            continue;
        }
        CHECK(departure.payload_bytes + departure.pad_bytes <= ROCE_PAYLOAD_BYTES_MAX);
        const uint32_t count = serialize(&departure, bytes);
        launch(world, !node, bytes, count);
        if (prng_chance(&world->prng, world->faults.duplicate)) {
            launch(world, !node, bytes, count);
        }
        nic_rotate(nic, qp);
    }
}

/* -- Arrival ------------------------------------------------------------------------------------*/

static void digest(struct nic_world *world, const uint8_t *bytes, uint32_t count)
{
    uint64_t hash = world->digest ^ world->now_ns;
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    world->digest = hash;
}

static void move_memory(struct nic_move *move)
{
    const uint8_t *payload = move->payload;
    uint64_t *target = (uint64_t *)(uintptr_t)move->segments[0].address;
    switch (move->kind) {
    case NIC_MOVE_NOTHING: return;
    case NIC_MOVE_COMPARE_SWAP:
        move->original = *target;
        *target = *target == move->compare ? move->swap_or_add : *target;
        return;
    case NIC_MOVE_FETCH_ADD:
        move->original = *target;
        *target += move->swap_or_add;
        return;
    case NIC_MOVE_ATOMIC_WRITE: memcpy(target, payload, sizeof(*target)); return;
    case NIC_MOVE_SCATTER: break;
    }
    uint32_t prefix = move->prefix_bytes;
    const uint8_t *from = move->prefix;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        uint8_t *to = (uint8_t *)(uintptr_t)move->segments[i].address;
        for (uint32_t k = 0; k < move->segments[i].bytes; k++) {
            if (prefix > 0) {
                *to++ = *from++;
                prefix--;
            } else {
                *to++ = *payload++;
            }
        }
    }
}

/* Memory takes its time: the move and what follows from it happen later, in order. */
static void defer(struct nic_world *world, struct nic_world_event *event,
                  const struct nic_move *move)
{
    event->is_move = true;
    event->move = malloc(sizeof(*move));
    *event->move = *move;
    uint64_t done_ns = world->now_ns + prng_below(&world->prng, world->faults.move_ns);
    if (move->in_order && done_ns < world->move_done_ns[event->node]) {
        done_ns = world->move_done_ns[event->node];
    }
    world->move_done_ns[event->node] = done_ns;
    push(world, event, done_ns);
}

/* Returns true if the event lives on. */
static bool arrive(struct nic_world *world, struct nic_world_event *event)
{
    const struct nic_frame frame = {
        .headers = event->bytes,
        .headers_bytes = event->count,
        .source = world->gids[!event->node],
        .destination = world->gids[event->node],
        .hop_limit = 64,
    };
    digest(world, event->bytes, event->count);
    world->delivered++;
    struct nic_move move;
    struct nic *nic = world->nics[event->node];
    if (nic_on_packet(nic, &frame, nic_world_now(world), &move) != NIC_MOVES) {
        return false;
    }
    if (world->faults.move_ns != 0) {
        defer(world, event, &move);
        return true;
    }
    move_memory(&move);
    nic_on_moved(nic, &move, NIC_MOVED, nic_world_now(world));
    return false;
}

static void finish_move(struct nic_world *world, struct nic_world_event *event)
{
    move_memory(event->move);
    nic_on_moved(world->nics[event->node], event->move, NIC_MOVED, nic_world_now(world));
}

/* What must hold of every engine at any time. */
static void check_engines(const struct nic_world *world)
{
    for (int i = 0; i < 2; i++) {
        const struct nic *nic = world->nics[i];
        for (uint32_t n = 0; n <= nic->qp_mask; n++) {
            if (nic->qps[n] != NULL) {
                qp_check(nic->qps[n]);
            }
        }
    }
}

bool nic_world_step(struct nic_world *world)
{
    check_engines(world);
    pull(world, 0);
    pull(world, 1);
    uint64_t timer_ns = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        const struct instant deadline = nic_deadline(world->nics[i]);
        timer_ns = deadline.ns < timer_ns ? deadline.ns : timer_ns;
    }
    const bool lazy_left =
        nic_next_qp(world->nics[0]) != NULL || nic_next_qp(world->nics[1]) != NULL;
    const uint64_t event_ns = world->event_count > 0 ? world->events[0]->at_ns : UINT64_MAX;
    const uint64_t soon_ns = world->now_ns + LAZY_NS;
    if (lazy_left && event_ns > soon_ns && timer_ns > soon_ns) {
        world->now_ns = soon_ns;
        return true;
    }
    if (event_ns == UINT64_MAX && timer_ns == UINT64_MAX) {
        return false;
    }
    if (event_ns <= timer_ns) {
        struct nic_world_event *event = pop(world);
        world->now_ns = event->at_ns > world->now_ns ? event->at_ns : world->now_ns;
        if (event->is_move) {
            finish_move(world, event);
        } else if (arrive(world, event)) {
            return true;
        }
        free(event->move);
        free(event);
        return true;
    }
    world->now_ns = timer_ns > world->now_ns ? timer_ns : world->now_ns;
    nic_on_time(world->nics[0], nic_world_now(world));
    nic_on_time(world->nics[1], nic_world_now(world));
    return true;
}
