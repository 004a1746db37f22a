/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_beats - packets as beats, for the tests of units that take or send them.
 */
#ifndef HARDWARE_EXANEST_TEST_BEATS_H
#define HARDWARE_EXANEST_TEST_BEATS_H

#include <string.h>

#include "hardware/exanest/beat.h"

#define TEST_BEATS_MAX (EXANEST_PACKET_WORDS_MAX + 2) /* Two more than there should be. */

struct test_packet {
    uint32_t count;
    struct exanest_beat beats[TEST_BEATS_MAX];
    struct exanest_header header;
    struct exanest_footer footer;
};

static inline void test_put(struct test_packet *packet, enum exanest_part part,
                            struct exanest_word word)
{
    packet->beats[packet->count++] = (struct exanest_beat){.part = part, .word = word};
}

/* `payload`: `header->bytes` bytes, which are put at the lanes of the target. The footer's CRC is
 * added. */
static inline struct test_packet test_packet(const struct exanest_header *header,
                                             const struct exanest_footer *footer,
                                             const void *payload)
{
    struct test_packet packet = {.header = *header};
    struct exanest_word words[EXANEST_PAYLOAD_WORDS_MAX] = {{0, 0}};
    test_put(&packet, EXANEST_HEADER, exanest_header_encode(header));
    if (header->bytes != 0 && payload != NULL) {
        memcpy((uint8_t *)words + header->target.va % EXANEST_WORD_BYTES, payload, header->bytes);
    }
    uint32_t crc = 0;
    for (uint32_t i = 0; i < exanest_payload_words(header->target.va, header->bytes); i++) {
        crc = exanest_payload_crc(crc, words[i]);
        test_put(&packet, EXANEST_PAYLOAD, words[i]);
    }
    if (header->has_footer) {
        packet.footer = *footer;
        packet.footer.payload_crc = crc;
        test_put(&packet, EXANEST_FOOTER, exanest_footer_encode(&packet.footer));
    }
    packet.beats[packet.count - 1].last = true;
    return packet;
}

/* Flips one of the 128 bits of a beat. */
static inline void test_flip(struct test_packet *packet, uint32_t beat, uint32_t bit)
{
    struct exanest_word *word = &packet->beats[beat].word;
    if (bit < 64) {
        word->low ^= UINT64_C(1) << bit;
    } else {
        word->high ^= UINT64_C(1) << (bit - 64);
    }
}

static inline void test_remove(struct test_packet *packet, uint32_t beat)
{
    packet->count--;
    memmove(&packet->beats[beat], &packet->beats[beat + 1],
            (packet->count - beat) * sizeof(packet->beats[0]));
}

static inline void test_insert(struct test_packet *packet, uint32_t before,
                               struct exanest_beat beat)
{
    memmove(&packet->beats[before + 1], &packet->beats[before],
            (packet->count - before) * sizeof(packet->beats[0]));
    packet->beats[before] = beat;
    packet->count++;
}

/* A packet that a unit has sent, put together again. */
struct test_sent {
    struct exanest_header header;
    struct exanest_footer footer;
    struct exanest_word payload[EXANEST_PAYLOAD_WORDS_MAX];
    uint32_t words;
};

/* Takes the next beat. 1: the packet is complete. -1: it isn't as it has to be. */
static inline int test_collect(struct test_sent *sent, const struct exanest_beat *beat)
{
    if (beat->part == EXANEST_HEADER) {
        *sent = (struct test_sent){0};
        if (exanest_header_decode(beat->word, &sent->header) != EXANEST_GOOD) {
            return -1;
        }
        return !beat->last ? 0 : sent->header.has_footer ? -1 : 1;
    }
    if (beat->part == EXANEST_PAYLOAD) {
        if (beat->last || sent->words == EXANEST_PAYLOAD_WORDS_MAX) {
            return -1;
        }
        sent->payload[sent->words++] = beat->word;
        return 0;
    }
    uint32_t crc = 0;
    for (uint32_t i = 0; i < sent->words; i++) {
        crc = exanest_payload_crc(crc, sent->payload[i]);
    }
    const bool good =
        beat->last && sent->header.has_footer &&
        sent->words == exanest_payload_words(sent->header.target.va, sent->header.bytes) &&
        exanest_footer_decode(beat->word, &sent->footer) == EXANEST_GOOD &&
        sent->footer.payload_crc == crc;
    return good ? 1 : -1;
}

#endif
