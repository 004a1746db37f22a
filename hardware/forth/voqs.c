/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/forth/voqs.h"

#define NOWHERE FORTH_QUEUE_REQUESTS

static void forth_voqs_check(const struct forth_voqs *voqs)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FORTH_PORTS_MAX; i++) {
        CHECK((voqs->waiting >> i & 1) == (voqs->to[i].count > 0));
        count += voqs->to[i].count;
    }
    CHECK(count == voqs->count && (count == FORTH_QUEUE_REQUESTS) == (voqs->free == NOWHERE));
}

void forth_voqs_init(struct forth_voqs *voqs)
{
    voqs->free = 0;
    voqs->count = 0;
    voqs->waiting = 0;
    for (uint32_t i = 0; i < FORTH_PORTS_MAX; i++) {
        voqs->to[i].count = 0;
    }
    for (uint32_t i = 0; i < FORTH_QUEUE_REQUESTS; i++) {
        voqs->next[i] = (uint16_t)(i + 1);
    }
}

bool forth_voqs_put(struct forth_voqs *voqs, const struct forth_request *request)
{
    INVARIANTS(forth_voqs_check(voqs));
    const uint32_t to = request->node % FORTH_PORTS_MAX;
    const uint16_t place = voqs->free;
    if (place == NOWHERE) {
        return false;
    }
    voqs->free = voqs->next[place];
    voqs->requests[place] = *request;
    if (voqs->to[to].count++ == 0) {
        voqs->to[to].first = place;
    } else {
        voqs->next[voqs->to[to].last] = place;
    }
    voqs->to[to].last = place;
    voqs->waiting |= UINT64_C(1) << to;
    voqs->count++;
    INVARIANTS(forth_voqs_check(voqs));
    return true;
}

const struct forth_request *forth_voqs_first(const struct forth_voqs *voqs, uint32_t to)
{
    CHECK(to < FORTH_PORTS_MAX && voqs->to[to].count > 0);
    return &voqs->requests[voqs->to[to].first];
}

void forth_voqs_drop_first(struct forth_voqs *voqs, uint32_t to)
{
    INVARIANTS(forth_voqs_check(voqs));
    CHECK(to < FORTH_PORTS_MAX && voqs->to[to].count > 0);
    const uint16_t place = voqs->to[to].first;
    voqs->to[to].first = voqs->next[place];
    voqs->next[place] = voqs->free;
    voqs->free = place;
    if (--voqs->to[to].count == 0) {
        voqs->waiting &= ~(UINT64_C(1) << to);
    }
    voqs->count--;
    INVARIANTS(forth_voqs_check(voqs));
}
