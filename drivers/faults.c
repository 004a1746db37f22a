/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/faults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "wire/roce.h"

#define POSITIONS_MAX 64
/* A reordered packet comes after the next 1..3, or after this long if none follows. */
#define REORDER_PACKETS_MAX 3
#define REORDER_NS          1000000

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

struct held {
    struct link *link;
    uint32_t count;
    uint64_t due_packet;     /* Goes out behind this packet number, ... */
    struct instant due_time; /* ... or at this time, whichever comes first. */
    uint8_t bytes[ROCE_PACKET_BYTES_MAX];
};

struct faults {
    struct prng prng;
    struct fault kinds[FAULT_KINDS];
    uint64_t delay_ns;
    uint32_t directions;
    uint64_t packets; /* Decided so far. */
    struct held *held[FAULTS_HELD_MAX];
    uint32_t held_count;
};

/* -- The specification --------------------------------------------------------------------------*/

static bool parse_number(const char *text, const char **end, double *value)
{
    char *after;
    errno = 0;
    *value = strtod(text, &after);
    *end = after;
    return after != text && errno == 0;
}

static bool parse_probability(const char *text, uint32_t *millionths)
{
    const char *end;
    double value;
    if (!parse_number(text, &end, &value) || *end != '\0' || !(value >= 0 && value <= 1)) {
        return false;
    }
    *millionths = (uint32_t)(value * 1e6 + 0.5);
    return true;
}

static bool parse_duration(const char *text, const char **end, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double value;
    if (!parse_number(text, end, &value) || !(value >= 0 && value < 1e6)) {
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        const size_t length = strlen(units[i].unit);
        if (strncmp(*end, units[i].unit, length) == 0) {
            *ns = (uint64_t)(value * units[i].ns);
            *end += length;
            return true;
        }
    }
    return false;
}

/* "0.01" or "#3". */
static bool parse_when(const char *text, struct fault *fault)
{
    if (text[0] != '#') {
        return parse_probability(text, &fault->millionths);
    }
    char *end;
    errno = 0;
    const unsigned long long position = strtoull(text + 1, &end, 10);
    if (end == text + 1 || *end != '\0' || errno != 0 || position == 0 ||
        fault->position_count == POSITIONS_MAX) {
        return false;
    }
    fault->positions[fault->position_count++] = position;
    return true;
}

static bool parse_value(struct faults *faults, const char *key, const char *value)
{
    if (strcmp(key, "seed") == 0) {
        char *end;
        const unsigned long long seed = strtoull(value, &end, 0);
        prng_init(&faults->prng, seed);
        return end != value && *end == '\0';
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
            return parse_duration(value, &value, &faults->delay_ns) && *value == ':' &&
                   parse_when(value + 1, &faults->kinds[kind]);
        }
        return parse_when(value, &faults->kinds[kind]);
    }
    return false;
}

static bool parse(struct faults *faults, const char *spec, char *error, size_t error_bytes)
{
    char copy[1024];
    if (strlen(spec) >= sizeof(copy)) {
        snprintf(error, error_bytes, "fault specification is too long");
        return false;
    }
    strcpy(copy, spec);
    char *rest = copy;
    char *word;
    while ((word = strsep(&rest, ",")) != NULL) {
        char *value = strchr(word, '=');
        if (value != NULL) {
            *value++ = '\0';
        }
        if (value == NULL || !parse_value(faults, word, value)) {
            snprintf(
                error, error_bytes,
                "fault '%s%s%s' is not understood; valid: drop=P, dup=P, reorder=P, corrupt=P, "
                "delay=TIME:P with P a probability such as 0.01 or a packet's position such as "
                "#3, TIME such as 50us; seed=N; dir=tx|rx|both",
                word, value == NULL ? "" : "=", value == NULL ? "" : value);
            return false;
        }
    }
    return true;
}

struct faults *faults_open(const char *spec, char *error, size_t error_bytes)
{
    struct faults *faults = calloc(1, sizeof(*faults));
    if (faults == NULL) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    faults->directions = FAULT_SENDING;
    prng_init(&faults->prng, 1);
    if (!parse(faults, spec, error, error_bytes)) {
        free(faults);
        return NULL;
    }
    return faults;
}

void faults_close(struct faults *faults)
{
    if (faults == NULL) {
        return;
    }
    for (uint32_t i = 0; i < faults->held_count; i++) {
        free(faults->held[i]);
    }
    free(faults);
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
        .corrupt = strikes(faults, FAULT_CORRUPT),
    };
    if (decision.corrupt) {
        decision.corrupt_bit = (uint32_t)prng_below(&faults->prng, (uint64_t)count * 8);
    }
    if (strikes(faults, FAULT_DELAY)) {
        decision.delay_ns = faults->delay_ns;
    }
    return decision;
}

bool faults_hold(struct faults *faults, struct link *link, const uint8_t *bytes, uint32_t count,
                 struct instant now, const struct fault_decision *decision)
{
    CHECK(count <= ROCE_PACKET_BYTES_MAX);
    if (faults->held_count == FAULTS_HELD_MAX) {
        return false;
    }
    struct held *held = malloc(sizeof(*held));
    if (held == NULL) {
        return false;
    }
    held->link = link;
    held->count = count;
    held->due_packet = decision->reorder
                           ? faults->packets + 1 + prng_below(&faults->prng, REORDER_PACKETS_MAX)
                           : UINT64_MAX;
    held->due_time = instant_after(now, decision->delay_ns != 0 ? decision->delay_ns : REORDER_NS);
    memcpy(held->bytes, bytes, count);
    faults->held[faults->held_count++] = held;
    return true;
}

uint32_t faults_release(struct faults *faults, struct instant now, struct link **link,
                        uint8_t *bytes)
{
    for (uint32_t i = 0; i < faults->held_count; i++) {
        struct held *held = faults->held[i];
        if (faults->packets < held->due_packet && !instant_reached(now, held->due_time)) {
            continue;
        }
        faults->held[i] = faults->held[--faults->held_count];
        const uint32_t count = held->count;
        *link = held->link;
        memcpy(bytes, held->bytes, count);
        free(held);
        return count;
    }
    return 0;
}

uint32_t faults_held(const struct faults *faults)
{
    return faults->held_count;
}
