/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/request_history.h"

static uint32_t set_of(struct exanest_request_key key)
{
    uint32_t mixed = key.coordinate * 0x9e3779b1u;
    mixed = (mixed ^ key.channel ^ (uint32_t)key.pdid << 10) * 0x85ebca6bu;
    mixed = (mixed ^ mixed >> 15 ^ key.request_id) * 0xc2b2ae35u;
    return mixed >> 25;
}

static bool same(const struct exanest_request_key *a, const struct exanest_request_key *b)
{
    return a->coordinate == b->coordinate && a->request_id == b->request_id &&
           a->channel == b->channel && a->pdid == b->pdid;
}

bool exanest_history_has(const struct exanest_request_history *history,
                         struct exanest_request_key key)
{
    const uint32_t set = set_of(key);
    for (uint32_t way = 0; way < history->count[set]; way++) {
        if (same(&history->keys[set][way], &key)) {
            return true;
        }
    }
    return false;
}

void exanest_history_add(struct exanest_request_history *history, struct exanest_request_key key)
{
    const uint32_t set = set_of(key);
    history->keys[set][history->next[set]] = key;
    history->next[set] = (uint8_t)((history->next[set] + 1) % EXANEST_HISTORY_WAYS);
    if (history->count[set] < EXANEST_HISTORY_WAYS) {
        history->count[set]++;
    }
}

/* Keeps the others in their order, the oldest first. */
static void forget_in_set(struct exanest_request_history *history, uint32_t set, uint16_t pdid)
{
    struct exanest_request_key kept[EXANEST_HISTORY_WAYS];
    const uint32_t count = history->count[set];
    const uint32_t oldest = count < EXANEST_HISTORY_WAYS ? 0 : history->next[set];
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct exanest_request_key *key =
            &history->keys[set][(oldest + i) % EXANEST_HISTORY_WAYS];
        if (key->pdid != pdid) {
            kept[left++] = *key;
        }
    }
    for (uint32_t i = 0; i < left; i++) {
        history->keys[set][i] = kept[i];
    }
    history->count[set] = (uint8_t)left;
    history->next[set] = (uint8_t)(left % EXANEST_HISTORY_WAYS);
}

void exanest_history_forget(struct exanest_request_history *history, uint16_t pdid)
{
    for (uint32_t set = 0; set < EXANEST_HISTORY_SETS; set++) {
        forget_in_set(history, set, pdid);
    }
}
