/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No words of a design make the decoder write outside of a frame, or tell of what cannot
 *         be: an end without a beginning, a good frame of no length, a fault of a good frame.
 * Method  libFuzzer gives words, and how many octets there is room for, in a buffer of exactly that
 *         size. Every fourth word or so is one of data or idle as it stands on a line. A frame that
 *         the decoder calls whole is sent by an encoder and comes back the same.
 */
#include <stdlib.h>

#include "base/check.h"
#include "hdl/xgmii.h"
#include "tests/fuzz/input.h"

enum {
    ROOM_MAX = 300
};

struct reading {
    bool within, faulty;
    struct xgmii_decoder decoder;
    uint8_t *frame;
};

/* The frame comes back from the line as it was. */
static void send_again(const struct reading *reading)
{
    const uint32_t octets = reading->decoder.whole_octets;
    const struct xgmii_frame frame = {.data = reading->frame, .octets = octets - XGMII_FCS_OCTETS};
    struct xgmii_encoder encoder;
    struct xgmii_decoder decoder;
    struct xgmii_word word;
    struct xgmii_events events;
    uint8_t again[ROOM_MAX];
    bool ended = false;
    xgmii_encoder_init(&encoder);
    xgmii_decoder_init(&decoder, ROOM_MAX);
    decoder.frame = again;
    while (!ended) {
        ended = xgmii_encode(&encoder, XGMII_LINK_GOOD, &frame, &word);
        xgmii_decode(&decoder, &word, &events);
    }
    CHECK(events.count == 1 && events.what[0] == XGMII_WHOLE && decoder.whole_octets == octets);
    CHECK(memcmp(again, reading->frame, octets) == 0);
}

static void on_event(struct reading *reading, enum xgmii_event event)
{
    CHECK(event < XGMII_EVENTS);
    CHECK(reading->within == (event != XGMII_BEGUN && event != XGMII_BAD_STRAY));
    if (event == XGMII_BEGUN) {
        reading->within = true;
        reading->faulty = false;
    } else if (event == XGMII_WHOLE || event == XGMII_DROPPED) {
        CHECK(reading->faulty == (event == XGMII_DROPPED));
        reading->within = false;
    } else if (event != XGMII_BAD_STRAY) {
        CHECK(!reading->faulty);
        reading->faulty = true;
    }
    if (event == XGMII_WHOLE) {
        CHECK(reading->decoder.whole_octets >= XGMII_FRAME_OCTETS_MIN &&
              reading->decoder.whole_octets <= reading->decoder.room);
        send_again(reading);
    }
}

static struct xgmii_word take_word(struct input *input)
{
    static const struct xgmii_word common[] = {
        {{0xfb, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5}, 0x01},
        {{7, 7, 7, 7, 7, 7, 7, 7}, 0xff},
        {{0}, 0},
        {{0x9c, 0, 0, 1, 0x9c, 0, 0, 2}, 0x11},
    };
    struct xgmii_word word = {.control = 0};
    const uint8_t kind = take(input);
    if (kind < COUNT_OF(common)) {
        return common[kind];
    }
    word.control = take(input);
    take_bytes(input, word.data, sizeof(word.data));
    return word;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    struct reading reading = {.within = false};
    struct xgmii_events events;
    const uint32_t room =
        XGMII_FRAME_OCTETS_MIN + take(&input) % (ROOM_MAX - XGMII_FRAME_OCTETS_MIN + 1);
    reading.frame = malloc(room); /* Exactly: ASan sees what is behind. */
    CHECK(reading.frame != NULL);
    xgmii_decoder_init(&reading.decoder, room);
    reading.decoder.frame = reading.frame;
    while (input.count > 0) {
        const struct xgmii_word word = take_word(&input);
        xgmii_decode(&reading.decoder, &word, &events);
        for (uint32_t i = 0; i < events.count; i++) {
            on_event(&reading, (enum xgmii_event)events.what[i]);
        }
    }
    free(reading.frame);
    return 0;
}
