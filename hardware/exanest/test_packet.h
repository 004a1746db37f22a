/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_packet - packets for tests: each word of one says which packet it belongs to.
 *
 * The header's PDID and `aux` carry the packet's number, so a packet without payload has one, too.
 */
#ifndef HARDWARE_EXANEST_TEST_PACKET_H
#define HARDWARE_EXANEST_TEST_PACKET_H

#include <string.h>

#include "hardware/exanest/beat.h"

#define TEST_PACKET_NUMBERS (UINT32_C(1) << 30)

struct test_packet {
    uint32_t count;
    struct exanest_beat beats[EXANEST_PACKET_WORDS_MAX];
};

/* `words`: 1 is a header, 2 header and footer, 3..18 have payload. */
static inline struct test_packet test_packet(struct exanest_target target, uint32_t words,
                                             uint32_t number)
{
    const struct exanest_header header = {
        .target = {target.coordinate, target.va & ~(uint64_t)15},
        .pdid = (uint16_t)number,
        .type = words < 3 ? EXANEST_ACKNOWLEDGEMENT : EXANEST_WRITE,
        .bytes = (uint16_t)(words < 3 ? 0 : (words - 2) * EXANEST_WORD_BYTES),
        .has_footer = words > 1,
        .aux = (uint16_t)(number >> 16),
    };
    const struct exanest_footer footer = {.tid = number & 0x3ff, .sequence = number >> 10 & 0x3fff};
    struct test_packet packet = {.count = words};
    for (uint32_t i = 0; i < words; i++) {
        packet.beats[i] = (struct exanest_beat){
            .part = EXANEST_PAYLOAD,
            .word = {(uint64_t)number << 32 | i, ~((uint64_t)number << 32 | i)},
        };
    }
    packet.beats[words - 1].last = true;
    if (words > 1) {
        packet.beats[words - 1].part = EXANEST_FOOTER;
        packet.beats[words - 1].word = exanest_footer_encode(&footer);
    }
    packet.beats[0].part = EXANEST_HEADER;
    packet.beats[0].word = exanest_header_encode(&header);
    return packet;
}

static inline uint32_t test_packet_number(struct exanest_word header_word)
{
    struct exanest_header header;
    CHECK(exanest_header_decode(header_word, &header) == EXANEST_GOOD);
    return (uint32_t)header.aux << 16 | header.pdid;
}

/* The same word of the same packet, whatever its channel. */
static inline bool test_beat_equal(const struct exanest_beat *a, const struct exanest_beat *b)
{
    return a->part == b->part && a->last == b->last && a->word.low == b->word.low &&
           a->word.high == b->word.high;
}

#endif
