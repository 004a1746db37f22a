/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/faults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/check.h"
#include "base/prng.h"
#include "drivers/fault_words.h"
#include "wire/block.h"
#include "wire/roce.h"

#define POSITIONS_MAX 64
/* A reordered packet comes after the next 1..3, or after this long if none follows. */
#define REORDER_PACKETS_MAX 3
#define REORDER_NS          1000000
/* Reordered packets that wait: as many as faults reorder in a row, if each leaves in time. */
#define REORDERED_MAX 8

enum fault_kind {
    FAULT_DROP,
    FAULT_DUPLICATE,
    FAULT_REORDER,
    FAULT_CORRUPT,
    FAULT_DELAY,
    FAULT_KINDS,
};

static const char *const kind_names[FAULT_KINDS] = {"drop", "dup", "reorder", "corrupt", "delay"};

struct fault {
    uint32_t millionths;
    uint64_t positions[POSITIONS_MAX];
    uint32_t position_count;
};

/* A record of the queue; headers and payload follow. */
struct held {
    struct faults_packet packet;
    uint64_t due_packet;     /* Goes out behind this packet number, ... */
    struct instant due_time; /* ... or at this time, whichever comes first. */
    uint32_t bytes;          /* The bytes that it takes in the queue, this struct included. */
    bool reordered;          /* The list `reordered` gives its turn, not its place in the queue. */
    bool taken;
};
_Static_assert(sizeof(struct held) <= FAULTS_HELD_COST, "what a held packet takes");

/* Packets lie in a ring in the order in which they came, and their room is free again in that
 * order. All delays are equal, so that this is also the order in which delayed ones are due. Places
 * count bytes and never go back. */
struct queue {
    uint8_t *ring;             /* NULL: the specification never holds a packet. */
    uint64_t first, next, end; /* Those before `next` are taken, or reordered. */
    struct held *reordered[REORDERED_MAX];
    uint32_t reordered_count;
    struct held *due; /* The packet that faults_due named. */
    uint32_t waiting; /* Packets that are not yet taken. */
};

struct faults {
    struct prng prng;
    struct fault kinds[FAULT_KINDS];
    uint64_t delay_ns;
    uint32_t directions;
    uint64_t packets; /* Packets that were decided so far. */
    struct queue queue;
};

/* -- The specification --------------------------------------------------------------------------*/

/* strtoull takes signs and spaces, and makes a large number of a negative one. */
static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* "0.01" or "#3". */
static bool parse_when(const char *text, struct fault *fault)
{
    if (text[0] != '#') {
        return fault_probability(text, &fault->millionths);
    }
    char *end;
    errno = 0;
    const unsigned long long position = strtoull(text + 1, &end, 10);
    if (!is_digit(text[1]) || *end != '\0' || errno != 0 || position == 0 ||
        fault->position_count == POSITIONS_MAX) {
        return false;
    }
    fault->positions[fault->position_count++] = position;
    return true;
}

static bool parse_value(void *owner, const char *key, const char *value)
{
    struct faults *faults = owner;
    if (strcmp(key, "seed") == 0) {
        char *end;
        const unsigned long long seed = strtoull(value, &end, 0);
        prng_init(&faults->prng, seed);
        return is_digit(value[0]) && *end == '\0';
    }
    if (strcmp(key, "dir") == 0) {
        faults->directions = strcmp(value, "tx") == 0     ? FAULT_SENDING
                             : strcmp(value, "rx") == 0   ? FAULT_RECEIVING
                             : strcmp(value, "both") == 0 ? FAULT_SENDING | FAULT_RECEIVING
                                                          : 0;
        return faults->directions != 0;
    }
    for (int kind = 0; kind < FAULT_KINDS; kind++) {
        if (strcmp(key, kind_names[kind]) != 0) {
            continue;
        }
        if (kind == FAULT_DELAY) {
            return fault_time(value, &value, &faults->delay_ns) && *value == ':' &&
                   parse_when(value + 1, &faults->kinds[kind]);
        }
        return parse_when(value, &faults->kinds[kind]);
    }
    return false;
}

static bool may_strike(const struct faults *faults, enum fault_kind kind)
{
    return faults->kinds[kind].millionths != 0 || faults->kinds[kind].position_count != 0;
}

struct faults *faults_open(const char *spec, char *error, size_t error_bytes)
{
    static const char valid[] =
        "drop=P, dup=P, reorder=P, corrupt=P, delay=TIME:P with P a probability such as 0.01 or a "
        "packet's position such as #3, TIME such as 50us; seed=N; dir=tx|rx|both";
    struct faults *faults = calloc(1, sizeof(*faults));
    if (faults == NULL) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    faults->directions = FAULT_SENDING;
    prng_init(&faults->prng, 1);
    if (!fault_words_read(spec, parse_value, faults, valid, error, error_bytes)) {
        free(faults);
        return NULL;
    }
    if (may_strike(faults, FAULT_DELAY) || may_strike(faults, FAULT_REORDER)) {
        faults->queue.ring = aligned_alloc(CACHE_LINE_BYTES, FAULTS_HELD_BYTES);
        if (faults->queue.ring == NULL) {
            snprintf(error, error_bytes, "no memory for packets that are held");
            free(faults);
            return NULL;
        }
    }
    return faults;
}

void faults_close(struct faults *faults)
{
    if (faults != NULL) {
        free(faults->queue.ring);
        free(faults);
    }
}

bool faults_apply(const struct faults *faults, enum fault_direction direction)
{
    return faults != NULL && (faults->directions & (uint32_t)direction) != 0;
}

/* -- Decisions ----------------------------------------------------------------------------------*/

static bool strikes(struct faults *faults, enum fault_kind kind)
{
    const struct fault *fault = &faults->kinds[kind];
    for (uint32_t i = 0; i < fault->position_count; i++) {
        if (fault->positions[i] == faults->packets) {
            return true;
        }
    }
    return prng_chance(&faults->prng, fault->millionths);
}

struct fault_decision faults_decide(struct faults *faults, uint32_t count)
{
    faults->packets++;
    struct fault_decision decision = {
        .drop = strikes(faults, FAULT_DROP),
        .duplicate = strikes(faults, FAULT_DUPLICATE),
        .reorder = strikes(faults, FAULT_REORDER),
        .corrupt = strikes(faults, FAULT_CORRUPT) && count > 0, /* There may be no byte. */
    };
    if (decision.corrupt) {
        decision.corrupt_bit = (uint32_t)prng_below(&faults->prng, (uint64_t)count * 8);
    }
    if (strikes(faults, FAULT_DELAY)) {
        decision.delay_ns = faults->delay_ns;
    }
    return decision;
}

/* -- Packets that are held ----------------------------------------------------------------------*/

/* Records lie from `first` to `end`, which only grow; all before `next` wait for nothing but the
 * number of packets that pass. */
static void queue_check(const struct queue *queue)
{
    CHECK(queue->first <= queue->next && queue->next <= queue->end);
    CHECK(queue->end - queue->first <= FAULTS_HELD_BYTES);
    CHECK(queue->ring != NULL || queue->end == 0);
    CHECK(queue->reordered_count <= REORDERED_MAX && queue->reordered_count <= queue->waiting);
    for (uint32_t i = 0; i < queue->reordered_count; i++) {
        CHECK(queue->reordered[i]->reordered && !queue->reordered[i]->taken);
    }
}

static struct held *held_at(const struct queue *queue, uint64_t place)
{
    return (struct held *)(void *)(queue->ring + place % FAULTS_HELD_BYTES);
}

/* The next record of `bytes` bytes, in one piece; NULL: no room. The bytes that are left at the
 * ring's end become a record without a packet. */
static struct held *append(struct queue *queue, uint32_t bytes)
{
    CHECK(bytes >= FAULTS_HELD_COST && bytes % CACHE_LINE_BYTES == 0);
    const uint32_t left = FAULTS_HELD_BYTES - (uint32_t)(queue->end % FAULTS_HELD_BYTES);
    const uint32_t unused = left < bytes ? left : 0;
    if (queue->ring == NULL || queue->end - queue->first + unused + bytes > FAULTS_HELD_BYTES) {
        return NULL;
    }
    if (unused > 0) {
        *held_at(queue, queue->end) = (struct held){.bytes = unused, .taken = true};
    }
    struct held *held = held_at(queue, queue->end + unused);
    *held = (struct held){.bytes = bytes};
    queue->end += unused + bytes;
    return held;
}

bool faults_hold(struct faults *faults, const struct faults_packet *packet, struct instant now,
                 const struct fault_decision *decision)
{
    struct queue *queue = &faults->queue;
    const uint32_t count = (uint32_t)packet->headers_bytes + packet->payload_bytes;
    CHECK(count <= BLOCK_PACKET_BYTES_MAX);
    INVARIANTS(queue_check(queue));
    /* The number is drawn also without room: the faults of later packets must not depend on
     * that. */
    const uint64_t passing =
        decision->reorder ? 1 + prng_below(&faults->prng, REORDER_PACKETS_MAX) : 0;
    const bool reordered = decision->reorder && queue->reordered_count < REORDERED_MAX;
    if (!reordered && decision->delay_ns == 0) {
        return false;
    }
    struct held *held = append(queue, (uint32_t)line_aligned(FAULTS_HELD_COST + count));
    if (held == NULL) {
        return false;
    }
    uint8_t *bytes = (uint8_t *)held + FAULTS_HELD_COST;
    memcpy(bytes, packet->bytes, count);
    held->packet = *packet;
    held->packet.bytes = bytes;
    held->due_packet = reordered ? faults->packets + passing : UINT64_MAX;
    held->due_time = instant_after(now, decision->delay_ns != 0 ? decision->delay_ns : REORDER_NS);
    held->reordered = reordered;
    if (reordered) {
        queue->reordered[queue->reordered_count++] = held;
    }
    queue->waiting++;
    INVARIANTS(queue_check(queue));
    return true;
}

/* The delayed packet that is due before all others; NULL: none waits. */
static struct held *next_delayed(struct queue *queue)
{
    while (queue->next != queue->end) {
        struct held *held = held_at(queue, queue->next);
        if (!held->taken && !held->reordered) {
            return held;
        }
        CHECK(held->bytes > 0); /* Else this would not end. */
        queue->next += held->bytes;
    }
    return NULL;
}

const struct faults_packet *faults_due(struct faults *faults, struct instant now)
{
    struct queue *queue = &faults->queue;
    INVARIANTS(queue_check(queue));
    if (LIKELY(queue->waiting == 0)) {
        return NULL;
    }
    for (uint32_t i = 0; i < queue->reordered_count; i++) {
        struct held *held = queue->reordered[i];
        if (faults->packets >= held->due_packet || instant_reached(now, held->due_time)) {
            queue->due = held;
            return &held->packet;
        }
    }
    queue->due = next_delayed(queue);
    if (queue->due != NULL && !instant_reached(now, queue->due->due_time)) {
        queue->due = NULL;
    }
    return queue->due == NULL ? NULL : &queue->due->packet;
}

void faults_take(struct faults *faults)
{
    struct queue *queue = &faults->queue;
    CHECK(queue->due != NULL && !queue->due->taken && queue->waiting > 0);
    queue->due->taken = true;
    queue->waiting--;
    for (uint32_t i = 0; i < queue->reordered_count; i++) {
        if (queue->reordered[i] == queue->due) {
            queue->reordered_count--;
            memmove(&queue->reordered[i], &queue->reordered[i + 1],
                    (queue->reordered_count - i) * sizeof(queue->reordered[0]));
        }
    }
    queue->due = NULL;
    INVARIANTS(queue_check(queue));
}

void faults_settle(struct faults *faults)
{
    struct queue *queue = &faults->queue;
    while (queue->first != queue->end && held_at(queue, queue->first)->taken) {
        queue->first += held_at(queue, queue->first)->bytes;
    }
    if (queue->next < queue->first) {
        queue->next = queue->first;
    }
    INVARIANTS(queue_check(queue));
}

const struct faults_packet *faults_each_held(const struct faults *faults, uint64_t *at)
{
    const struct queue *queue = &faults->queue;
    uint64_t place = *at < queue->first ? queue->first : *at;
    while (place != queue->end) {
        const struct held *held = held_at(queue, place);
        place += held->bytes;
        if (!held->taken) {
            *at = place;
            return &held->packet;
        }
    }
    return NULL;
}

struct instant faults_deadline(struct faults *faults)
{
    struct instant deadline = INSTANT_NEVER;
    if (faults == NULL || faults->queue.waiting == 0) {
        return deadline;
    }
    const struct held *delayed = next_delayed(&faults->queue);
    if (delayed != NULL) {
        deadline = delayed->due_time;
    }
    for (uint32_t i = 0; i < faults->queue.reordered_count; i++) {
        const struct instant due = faults->queue.reordered[i]->due_time;
        deadline = instant_before(due, deadline) ? due : deadline;
    }
    return deadline;
}

uint32_t faults_held(const struct faults *faults)
{
    return faults->queue.waiting;
}
