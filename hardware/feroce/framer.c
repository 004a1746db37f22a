/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/feroce/framer.h"

#include <string.h>

static bool is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

void feroce_framer_init(struct feroce_framer *framer, const struct feroce_framer_config *config)
{
    CHECK(is_power_of_two(config->width_bytes) && is_power_of_two(config->pmtu_bytes));
    CHECK(config->width_bytes >= FEROCE_FRAMER_WIDTH_MIN &&
          config->width_bytes <= FEROCE_FRAMER_WIDTH_MAX);
    CHECK(config->pmtu_bytes >= FEROCE_FRAMER_PMTU_MIN &&
          config->pmtu_bytes <= FEROCE_FRAMER_PMTU_MAX);
    memset(framer, 0, sizeof(*framer));
    framer->config = *config;
    framer->words = (uint16_t)(FEROCE_FRAMER_BYTES / config->width_bytes - 1);
    framer->begins = true;
}

static uint32_t words_of(const struct feroce_framer *framer, uint32_t bytes)
{
    return (bytes + framer->config.width_bytes - 1) / framer->config.width_bytes;
}

/* The place of the word that lies `behind` the oldest one. */
static uint8_t *word_at(struct feroce_framer *framer, uint32_t behind)
{
    const uint32_t place = (framer->head + behind) % (framer->words + 1u);
    return framer->memory + place * framer->config.width_bytes;
}

void feroce_framer_check(const struct feroce_framer *framer)
{
    CHECK(framer->used <= framer->words && framer->head <= framer->words);
    CHECK(framer->part <= framer->used && framer->packet_count <= framer->used - framer->part);
    CHECK((framer->packet_count == 0) == (framer->used == framer->part));
    CHECK(framer->growing < framer->config.pmtu_bytes);
    CHECK(framer->growing == framer->part * framer->config.width_bytes);
    CHECK(!framer->taken || framer->packet_count > 0);
    CHECK(!framer->given || framer->used < framer->words);
    if (framer->packet_count > 0) {
        CHECK(framer->left < words_of(framer, framer->packets[framer->packet_head].bytes));
    } else {
        CHECK(framer->left == 0);
    }
}

/* -- In -----------------------------------------------------------------------------------------*/

static enum feroce_beat_verdict judge(const struct feroce_framer *framer,
                                      const struct feroce_beat *beat)
{
    if (beat->count == 0) {
        return FEROCE_BEAT_EMPTY;
    }
    if (beat->count > framer->config.width_bytes) {
        return FEROCE_BEAT_WIDE;
    }
    if (beat->count % 4 != 0) {
        return FEROCE_BEAT_ODD;
    }
    return beat->last || beat->count == framer->config.width_bytes ? FEROCE_BEAT_GOOD
                                                                   : FEROCE_BEAT_PARTIAL;
}

enum feroce_beat_verdict feroce_framer_take(struct feroce_framer *framer,
                                            const struct feroce_beat *beat)
{
    CHECK(feroce_framer_ready(framer) && !framer->given);
    const enum feroce_beat_verdict verdict = judge(framer, beat);
    framer->counters.beats[verdict]++;
    if (verdict == FEROCE_BEAT_GOOD) {
        framer->given = true;
        framer->beat = *beat;
    }
    return verdict;
}

/* The beat comes into the FIFO; its packet may be whole with it. */
static void put(struct feroce_framer *framer)
{
    const struct feroce_beat *beat = &framer->beat;
    memcpy(word_at(framer, framer->used), beat->bytes, beat->count);
    framer->used++;
    framer->part++;
    framer->growing = (uint16_t)(framer->growing + beat->count);
    framer->given = false;
    if (!beat->last && framer->growing < framer->config.pmtu_bytes) {
        return;
    }
    const uint32_t place =
        (uint32_t)(framer->packet_head + framer->packet_count) % FEROCE_FRAMER_WORDS;
    framer->packets[place] =
        (struct feroce_cut){.bytes = framer->growing, .first = framer->begins, .last = beat->last};
    framer->packet_count++;
    framer->begins = beat->last;
    framer->part = framer->growing = 0;
    framer->counters.packets++;
    framer->counters.messages += beat->last;
}

/* -- Out ----------------------------------------------------------------------------------------*/

bool feroce_framer_packet(const struct feroce_framer *framer, struct feroce_cut *packet)
{
    if (framer->packet_count == 0) {
        return false;
    }
    *packet = framer->packets[framer->packet_head];
    return true;
}

bool feroce_framer_offer(const struct feroce_framer *framer, struct feroce_beat *beat)
{
    if (framer->packet_count == 0 || framer->taken) {
        return false;
    }
    const uint32_t width = framer->config.width_bytes;
    const uint32_t rest = framer->packets[framer->packet_head].bytes - framer->left * width;
    beat->count = (uint8_t)(rest < width ? rest : width);
    beat->last = rest <= width;
    memcpy(beat->bytes, framer->memory + framer->head * width, beat->count);
    return true;
}

void feroce_framer_taken(struct feroce_framer *framer)
{
    CHECK(framer->packet_count > 0 && !framer->taken);
    framer->taken = true;
}

/* The oldest word is gone, and with its last one the oldest packet. */
static void drop(struct feroce_framer *framer)
{
    framer->head = (uint16_t)((framer->head + 1u) % (framer->words + 1u));
    framer->used--;
    framer->left++;
    framer->taken = false;
    if (framer->left == words_of(framer, framer->packets[framer->packet_head].bytes)) {
        framer->packet_head = (uint16_t)((framer->packet_head + 1u) % FEROCE_FRAMER_WORDS);
        framer->packet_count--;
        framer->left = 0;
    }
}

void feroce_framer_step(struct feroce_framer *framer)
{
    INVARIANTS(feroce_framer_check(framer));
    if (framer->taken) {
        drop(framer);
    }
    if (framer->given) {
        put(framer);
    }
    INVARIANTS(feroce_framer_check(framer));
}
