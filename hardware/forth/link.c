/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/forth/link.h"

#include "base/bytes.h"

/* -- Sending ------------------------------------------------------------------------------------*/

static struct forth_word data_word(uint32_t data)
{
    return (struct forth_word){data, 0};
}

uint32_t forth_link_encode(const uint16_t *credits, uint32_t credit_count,
                           const struct forth_frame *frame, struct forth_word *out)
{
    uint32_t count = 0;
    out[count++] = FORTH_SOP_WORD;
    for (uint32_t i = 0; i < credit_count; i++) {
        out[count++] = data_word((uint32_t)credits[i] << 16);
    }
    if (frame == NULL) {
        return count;
    }
    out[count++] = data_word((uint32_t)(frame->header >> 32));
    out[count++] = data_word((uint32_t)frame->header);
    out[count++] = data_word((uint32_t)frame->header_crc << 16);
    for (uint32_t i = 0; i < 2 * frame->qwords; i++) {
        out[count++] = data_word(load_be32(frame->payload + (size_t)4 * i));
    }
    out[count++] = data_word(frame->body_crc);
    return count;
}

/* -- Receiving ----------------------------------------------------------------------------------*/

static bool is_data(struct forth_word word)
{
    return word.control == 0;
}

static bool is_sop(struct forth_word word)
{
    return (word.control & 8) && word.data >> 24 == FORTH_SOP;
}

static enum forth_rx_event on_credit(struct forth_receiver *receiver, struct forth_word word)
{
    return forth_credit_decode((uint16_t)(word.data >> 16), &receiver->credit) == FORTH_GOOD
               ? FORTH_RX_CREDIT
               : FORTH_RX_CREDIT_PARITY;
}

static enum forth_rx_event on_header_crc(struct forth_receiver *receiver, struct forth_word word)
{
    const bool good = word.data >> 16 == forth_header_crc(receiver->header_word) &&
                      forth_header_decode(receiver->header_word, &receiver->header) == FORTH_GOOD;
    if (!good) {
        receiver->state = FORTH_RX_SKIPPING;
        receiver->skipped = 0;
        return FORTH_RX_HEADER_CRC;
    }
    receiver->state = FORTH_RX_DATA_HIGH;
    receiver->left = receiver->header.words;
    receiver->crc = FORTH_BODY_CRC_BEGIN;
    return FORTH_RX_HEADER;
}

static enum forth_rx_event on_qword(struct forth_receiver *receiver, struct forth_word word)
{
    uint8_t bytes[8];
    receiver->qword = (uint64_t)receiver->high << 32 | word.data;
    store_be64(bytes, receiver->qword);
    receiver->crc = forth_body_crc(receiver->crc, bytes, sizeof(bytes));
    receiver->left--;
    receiver->last = receiver->left == 0;
    receiver->state = receiver->last ? FORTH_RX_BODY_CHECK : FORTH_RX_DATA_HIGH;
    return FORTH_RX_QWORD;
}

static enum forth_rx_event on_data(struct forth_receiver *receiver, struct forth_word word)
{
    switch ((enum forth_rx_state)receiver->state) {
    case FORTH_RX_START: /* The packet is longer than its header said: counted once. */
        receiver->state = FORTH_RX_SKIPPING;
        receiver->skipped = 1;
        return FORTH_RX_ALIGNMENT;
    case FORTH_RX_OPENED:
        if (word.data >> 31) {
            return on_credit(receiver, word);
        }
        receiver->header_word = (uint64_t)word.data << 32;
        receiver->state = FORTH_RX_HEADER_LOW;
        return FORTH_RX_NOTHING;
    case FORTH_RX_HEADER_LOW:
        receiver->header_word |= word.data;
        receiver->state = FORTH_RX_HEADER_CHECK;
        return FORTH_RX_NOTHING;
    case FORTH_RX_HEADER_CHECK: return on_header_crc(receiver, word);
    case FORTH_RX_DATA_HIGH:
        receiver->high = word.data;
        receiver->state = FORTH_RX_DATA_LOW;
        return FORTH_RX_NOTHING;
    case FORTH_RX_DATA_LOW: return on_qword(receiver, word);
    case FORTH_RX_BODY_CHECK:
        receiver->state = FORTH_RX_START;
        return word.data == receiver->crc ? FORTH_RX_END : FORTH_RX_BODY_CRC;
    case FORTH_RX_SKIPPING: receiver->skipped++; return FORTH_RX_NOTHING;
    }
    UNREACHABLE("a state outside its enum");
}

enum forth_rx_event forth_receive(struct forth_receiver *receiver, struct forth_word word)
{
    if (is_data(word)) {
        return on_data(receiver, word);
    }
    /* The line is idle, or a frame begins: a packet that is still open has ended too soon. */
    const enum forth_rx_state state = receiver->state;
    const bool open =
        state != FORTH_RX_START && state != FORTH_RX_OPENED && state != FORTH_RX_SKIPPING;
    receiver->state = is_sop(word) ? FORTH_RX_OPENED : FORTH_RX_START;
    return open ? FORTH_RX_ALIGNMENT : FORTH_RX_NOTHING;
}

/* -- Alignment ----------------------------------------------------------------------------------*/

/* The byte at which SOP stands; -1: nowhere. */
static int begins_at(struct forth_word word)
{
    for (int byte = 0; byte < 4; byte++) {
        const bool control = word.control >> (3 - byte) & 1;
        const uint32_t value = word.data >> (24 - 8 * byte) & 0xff;
        if (control && value == FORTH_SOP) {
            return byte;
        }
    }
    return -1;
}

/* SOP stands first in its word, so it tells the offset; idle words look the same at any offset. */
struct forth_word forth_align(struct forth_aligner *aligner, struct forth_word raw)
{
    const int begin = begins_at(raw);
    if (begin >= 0) {
        aligner->offset = (uint8_t)begin;
    }
    const uint32_t shift = 8u * aligner->offset;
    const uint64_t both = (uint64_t)aligner->previous.data << 32 | raw.data;
    const uint32_t flags = (uint32_t)aligner->previous.control << 4 | raw.control;
    aligner->previous = raw;
    return (struct forth_word){
        .data = (uint32_t)(both >> (32 - shift)),
        .control = (uint8_t)(flags >> (4 - aligner->offset) & 0xf),
    };
}
