/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No flits make lant_decode read outside them, or answer with a packet they do not spell.
 * Method  libFuzzer gives the flits, in a buffer of exactly their size, and what happens to them:
 *         the first byte says whether all codes are made right, which chance would not do, and the
 *         next three which bits are then flipped. A packet that is whole encodes to the flits that
 *         came, but for the bits that were repaired; with right codes, one flip does not damage a
 *         header or the first flit of the footer.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/lant_test_packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

enum {
    FLIPS_MAX = 3,
    CONTROL_BYTES = 1 + FLIPS_MAX,
    FLITS_MAX = 80, /* Longer than any packet. */
};

/* Flits of header, as H1 has it; 0 if the packet has fewer flits. */
static uint32_t heads_of(const uint64_t *flits, uint32_t count)
{
    const uint32_t heads = 2 + (uint32_t)(flits[0] >> 9 & 1);
    return heads + 2 <= count ? heads : 0;
}

/* The decoded packet against the flits that it was made of. */
static void check_whole(const uint64_t *flits, uint32_t count, const struct lant_packet *packet,
                        uint32_t repaired)
{
    uint64_t mended[LANT_PACKET_FLITS_MAX], again[LANT_PACKET_FLITS_MAX];
    const uint32_t heads = 2 + packet->header.extended;
    uint32_t found = 0;

    memcpy(mended, flits, count * sizeof(flits[0]));
    for (uint32_t i = 0; i < count; i++) {
        if (i < heads || i == count - 2) {
            const enum lant_secded secded = lant_secded_check(&mended[i]);
            CHECK(secded != LANT_DAMAGED);
            found += secded == LANT_REPAIRED;
        }
    }
    CHECK(found == repaired);
    CHECK(lant_encode(packet, again) == count);
    CHECK(memcmp(again, mended, count * sizeof(flits[0])) == 0);
}

static void check_head(uint64_t flit, enum lant_verdict verdict)
{
    struct lant_header header;
    const enum lant_secded secded = lant_head_decode(flit, &header);
    CHECK((secded == LANT_DAMAGED) == (verdict == LANT_HEAD_DAMAGED));
    if (secded != LANT_DAMAGED && header.age < LANT_AGE_MAX) {
        struct lant_header older;
        CHECK(lant_secded_check(&flit) == secded);
        CHECK(lant_head_decode(lant_head_aged(flit), &older) == LANT_CLEAN);
        header.age++;
        CHECK(heads_equal(&header, &older));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    if (count < CONTROL_BYTES) {
        return 0;
    }
    const uint8_t control = bytes[0];
    const size_t all = (count - CONTROL_BYTES) / LANT_FLIT_BYTES;
    const uint32_t flits_count = all < FLITS_MAX ? (uint32_t)all : FLITS_MAX;
    uint64_t *flits = calloc(flits_count, sizeof(*flits)); /* Exactly: ASan sees what is behind. */
    CHECK(flits_count == 0 || flits != NULL);
    if (flits_count > 0) {
        memcpy(flits, bytes + CONTROL_BYTES, flits_count * sizeof(*flits));
    }

    const bool shaped = flits_count >= LANT_PACKET_FLITS_MIN &&
                        flits_count <= LANT_PACKET_FLITS_MAX && heads_of(flits, flits_count) != 0;
    const bool sealed = (control & 1) && shaped;
    const uint32_t flips = sealed ? control >> 1 & 3 : 0;
    if (sealed) {
        seal(flits, flits_count, heads_of(flits, flits_count));
    }
    for (uint32_t i = 0; i < flips; i++) {
        const uint32_t bit = bytes[1 + i];
        const uint32_t at = bit >> 6 & 1 ? flits_count - 2 : bit >> 7 & 1;
        flits[at] ^= UINT64_C(1) << (bit & 63);
    }

    struct lant_packet packet;
    uint32_t repaired;
    const enum lant_verdict verdict = lant_decode(flits, flits_count, &packet, &repaired);
    CHECK(verdict < LANT_VERDICT_COUNT);
    CHECK(!(sealed && flips <= 1) || (verdict != LANT_HEAD_DAMAGED &&
                                      verdict != LANT_FOOT_DAMAGED && verdict != LANT_CRC_WRONG));
    if (verdict == LANT_WHOLE) {
        check_whole(flits, flits_count, &packet, repaired);
    }
    if (flits_count >= LANT_PACKET_FLITS_MIN) {
        check_head(flits[0], verdict);
    }
    free(flits);
    return 0;
}
