/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/pause.h"

#include <string.h>

#include "base/check.h"

/* Where the fields stand. */
#define DESTINATION 0
#define SOURCE      6
#define TYPE        12
#define OPCODE      14
#define LINK_QUANTA 16
#define VECTOR      16
#define QUANTA      18

#define MAC_CONTROL  0x8808u
#define OPCODE_LINK  0x0001u
#define OPCODE_CLASS 0x0101u

static const uint8_t address[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

static void put(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
}

static uint16_t get(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

struct pause pause_classes(uint8_t classes, uint16_t quanta)
{
    struct pause pause = {.kind = PAUSE_CLASS, .classes = classes};
    for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
        pause.quanta[i] = classes >> i & 1 ? quanta : 0;
    }
    return pause;
}

static void encode_classes(uint8_t out[PAUSE_FRAME_BYTES], const struct pause *pause)
{
    put(out + OPCODE, OPCODE_CLASS);
    put(out + VECTOR, pause->classes);
    for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
        put(out + QUANTA + 2 * i, pause->classes >> i & 1 ? pause->quanta[i] : 0);
    }
}

void pause_encode(uint8_t out[PAUSE_FRAME_BYTES], const struct pause_frame *frame)
{
    memset(out, 0, PAUSE_FRAME_BYTES);
    memcpy(out + DESTINATION, address, sizeof(address));
    memcpy(out + SOURCE, frame->source, sizeof(frame->source));
    put(out + TYPE, MAC_CONTROL);
    switch (frame->pause.kind) {
    case PAUSE_LINK:
        put(out + OPCODE, OPCODE_LINK);
        put(out + LINK_QUANTA, frame->pause.quanta[0]);
        return;
    case PAUSE_CLASS: encode_classes(out, &frame->pause); return;
    }
    UNREACHABLE("a kind of pause outside its enum");
}

static struct pause decode_classes(const uint8_t *bytes)
{
    struct pause pause = {.kind = PAUSE_CLASS, .classes = (uint8_t)get(bytes + VECTOR)};
    for (uint32_t i = 0; i < PAUSE_CLASSES; i++) {
        pause.quanta[i] = pause.classes >> i & 1 ? get(bytes + QUANTA + 2 * i) : 0;
    }
    return pause;
}

enum pause_verdict pause_decode(const uint8_t *bytes, size_t count, struct pause_frame *frame)
{
    if (count != PAUSE_FRAME_BYTES) {
        return PAUSE_WRONG_LENGTH;
    }
    if (memcmp(bytes + DESTINATION, address, sizeof(address)) != 0) {
        return PAUSE_WRONG_ADDRESS;
    }
    if (get(bytes + TYPE) != MAC_CONTROL) {
        return PAUSE_WRONG_TYPE;
    }
    const uint16_t opcode = get(bytes + OPCODE);
    if (opcode != OPCODE_LINK && opcode != OPCODE_CLASS) {
        return PAUSE_UNKNOWN_OPCODE;
    }
    memcpy(frame->source, bytes + SOURCE, sizeof(frame->source));
    frame->pause =
        opcode == OPCODE_LINK ? pause_link(get(bytes + LINK_QUANTA)) : decode_classes(bytes);
    return PAUSE_GOOD;
}

const char *pause_verdict_text(enum pause_verdict verdict)
{
    switch (verdict) {
    case PAUSE_GOOD: return "good";
    case PAUSE_WRONG_LENGTH: return "wrong length";
    case PAUSE_WRONG_ADDRESS: return "wrong destination address";
    case PAUSE_WRONG_TYPE: return "wrong type";
    case PAUSE_UNKNOWN_OPCODE: return "unknown opcode";
    }
    UNREACHABLE("a verdict outside its enum");
}
