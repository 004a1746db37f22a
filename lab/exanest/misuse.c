/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/misuse.h"

#include <string.h>

#include "base/check.h"

#define NONE EXANEST_MISUSED_MAX

void exanest_misuse_init(struct exanest_misuse *misuse, struct sim_faults *faults,
                         struct prng *prng)
{
    memset(misuse, 0, sizeof(*misuse));
    misuse->faults = faults;
    misuse->prng = prng;
    misuse->going = misuse->coming = NONE;
}

static uint32_t free_places(const struct exanest_misuse *misuse)
{
    return EXANEST_MISUSED_MAX - (uint32_t)__builtin_popcount(misuse->held) -
           (misuse->coming != NONE);
}

bool exanest_misuse_ready(const struct exanest_misuse *misuse)
{
    return misuse->coming != NONE || free_places(misuse) >= 2;
}

static uint32_t free_place(const struct exanest_misuse *misuse)
{
    const uint32_t used = misuse->held | (misuse->coming == NONE ? 0 : 1u << misuse->coming);
    CHECK(used != UINT32_MAX);
    return (uint32_t)__builtin_ctz(~used);
}

/* Flips one bit of one word. */
static void damage(struct exanest_misuse *misuse, struct exanest_misused *packet)
{
    const uint32_t at = (uint32_t)prng_below(misuse->prng, packet->count);
    const uint32_t bit = (uint32_t)prng_below(misuse->prng, 128);
    struct exanest_word *word = &packet->beats[at].word;
    if (bit < 64) {
        word->low ^= UINT64_C(1) << bit;
    } else {
        word->high ^= UINT64_C(1) << (bit - 64);
    }
}

static void hold(struct exanest_misuse *misuse, uint32_t place)
{
    struct exanest_misused *packet = &misuse->packets[place];
    packet->due = misuse->now;
    if (sim_fault_strikes(misuse->faults, SIM_FAULT_reorder, misuse->prng)) {
        packet->due += 1 + prng_below(misuse->prng, EXANEST_REORDER_CYCLES);
    }
    if (sim_fault_strikes(misuse->faults, SIM_FAULT_late, misuse->prng)) {
        packet->due += prng_below(misuse->prng, EXANEST_LATE_CYCLES);
    }
    misuse->orders[place] = misuse->order++;
    misuse->held |= 1u << place;
}

/* A notification goes from an FPGA's receiver to its memory: no network lies between. Nothing
 * would repair its loss, since its block has been answered and forgotten. */
static bool stays_inside(const struct exanest_misused *packet)
{
    struct exanest_header header;
    return exanest_header_decode(packet->beats[0].word, &header) == EXANEST_GOOD &&
           header.type == EXANEST_NOTIFICATION;
}

/* The packet is whole: which fault strikes it? */
static void judge(struct exanest_misuse *misuse)
{
    const uint32_t place = misuse->coming;
    struct exanest_misused *packet = &misuse->packets[place];
    if (stays_inside(packet)) {
        packet->due = misuse->now;
        misuse->coming = NONE;
        misuse->orders[place] = misuse->order++;
        misuse->held |= 1u << place;
        return;
    }
    const bool twice = sim_fault_strikes(misuse->faults, SIM_FAULT_duplicate, misuse->prng);
    if (twice) {
        const uint32_t other = free_place(misuse);
        misuse->packets[other] = *packet;
        hold(misuse, other);
    }
    misuse->coming = NONE;
    if (sim_fault_strikes(misuse->faults, SIM_FAULT_drop, misuse->prng)) {
        return;
    }
    if (!twice && sim_fault_strikes(misuse->faults, SIM_FAULT_damage, misuse->prng)) {
        damage(misuse, packet);
    }
    hold(misuse, place);
}

void exanest_misuse_take(struct exanest_misuse *misuse, const struct exanest_beat *beat)
{
    if (misuse->coming == NONE) {
        misuse->coming = (uint8_t)free_place(misuse);
        misuse->packets[misuse->coming].count = 0;
    }
    struct exanest_misused *packet = &misuse->packets[misuse->coming];
    CHECK(packet->count < EXANEST_PACKET_WORDS_MAX);
    packet->beats[packet->count++] = *beat;
    if (beat->last) {
        judge(misuse);
    }
}

bool exanest_misuse_offer(const struct exanest_misuse *misuse, struct exanest_beat *beat)
{
    if (misuse->going == NONE) {
        return false;
    }
    *beat = misuse->packets[misuse->going].beats[misuse->sent];
    return true;
}

void exanest_misuse_taken(struct exanest_misuse *misuse)
{
    CHECK(misuse->going != NONE);
    misuse->sent++;
    if (misuse->sent == misuse->packets[misuse->going].count) {
        misuse->held &= ~(1u << misuse->going);
        misuse->going = NONE;
    }
}

void exanest_misuse_step(struct exanest_misuse *misuse)
{
    misuse->now++;
    if (misuse->going != NONE) {
        return;
    }
    for (uint32_t left = misuse->held; left != 0; left &= left - 1) {
        const uint32_t place = (uint32_t)__builtin_ctz(left);
        if (misuse->packets[place].due <= misuse->now &&
            (misuse->going == NONE || misuse->orders[place] < misuse->orders[misuse->going])) {
            misuse->going = (uint8_t)place;
            misuse->sent = 0;
        }
    }
}
