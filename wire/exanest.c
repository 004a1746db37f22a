/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/exanest.h"

#include <string.h>

#include "wire/crc32c.h"
#include "wire/fields.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are stored as they are");

static const char *const verdict_names[EXANEST_VERDICT_COUNT] = {
    "good", "wrong EDC", "wrong CRC-8", "unknown type", "wrong length", "reserved bits",
};

const char *exanest_verdict_name(enum exanest_verdict verdict)
{
    CHECK(verdict < EXANEST_VERDICT_COUNT);
    return verdict_names[verdict];
}

/* -- Codes --------------------------------------------------------------------------------------*/

/* A table of the CRC for each byte value. It is made of the effect of each bit: a CRC is linear. */
#define TABLE_2(x, a)                 (x), (x) ^ (a)
#define TABLE_4(x, a, b)              TABLE_2(x, a), TABLE_2((x) ^ (b), a)
#define TABLE_8(x, a, b, c)           TABLE_4(x, a, b), TABLE_4((x) ^ (c), a, b)
#define TABLE_16(x, a, b, c, d)       TABLE_8(x, a, b, c), TABLE_8((x) ^ (d), a, b, c)
#define TABLE_32(x, a, b, c, d, e)    TABLE_16(x, a, b, c, d), TABLE_16((x) ^ (e), a, b, c, d)
#define TABLE_64(x, a, b, c, d, e, f) TABLE_32(x, a, b, c, d, e), TABLE_32((x) ^ (f), a, b, c, d, e)
#define TABLE_128(x, a, b, c, d, e, f, g)                                                          \
    TABLE_64(x, a, b, c, d, e, f), TABLE_64((x) ^ (g), a, b, c, d, e, f)
#define TABLE_256(a, b, c, d, e, f, g, h)                                                          \
    {                                                                                              \
        TABLE_128(0u, a, b, c, d, e, f, g), TABLE_128(h, a, b, c, d, e, f, g)                      \
    }

static const uint16_t crc16_table[256] =
    TABLE_256(0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188);

static const uint8_t crc8_table[256] = TABLE_256(0x07, 0x0e, 0x1c, 0x38, 0x70, 0xe0, 0xc7, 0x89);

uint16_t exanest_crc16(uint16_t crc, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        crc = (uint16_t)(crc << 8 ^ crc16_table[crc >> 8 ^ bytes[i]]);
    }
    return crc;
}

uint8_t exanest_crc8(uint8_t crc, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        crc = crc8_table[crc ^ bytes[i]];
    }
    return crc;
}

uint32_t exanest_payload_crc(uint32_t crc, struct exanest_word word)
{
    return crc32c(crc, &word, sizeof(word));
}

/* -- Places -------------------------------------------------------------------------------------*/

uint32_t exanest_coordinate(struct exanest_place place)
{
    return (uint32_t)(placed(place.x, 15, 7) | placed(place.y, 8, 7) | placed(place.z, 2, 6) |
                      placed(place.fpga, 0, 2));
}

struct exanest_place exanest_place(uint32_t coordinate)
{
    return (struct exanest_place){
        .x = (uint8_t)field(coordinate, 15, 7),
        .y = (uint8_t)field(coordinate, 8, 7),
        .z = (uint8_t)field(coordinate, 2, 6),
        .fpga = (uint8_t)field(coordinate, 0, 2),
    };
}

/* -- Packets ------------------------------------------------------------------------------------*/

enum {
    EDC_BYTES = 14, /* Covered by the EDC, from byte 0 on. */
    CRC8_FROM = 4,
    CRC8_BYTES = 11, /* Covered by the CRC-8: not the payload's CRC. */
};

static uint16_t edc_of(struct exanest_word word)
{
    uint8_t bytes[EXANEST_WORD_BYTES];
    memcpy(bytes, &word, sizeof(bytes));
    return exanest_crc16(0xffff, bytes, EDC_BYTES);
}

static uint8_t crc8_of(struct exanest_word word)
{
    uint8_t bytes[EXANEST_WORD_BYTES];
    memcpy(bytes, &word, sizeof(bytes));
    return exanest_crc8(0, bytes + CRC8_FROM, CRC8_BYTES);
}

static bool type_known(uint32_t type)
{
    return type >= EXANEST_WRITE && type <= EXANEST_FLOW_RATE;
}

static bool length_good(const struct exanest_header *header)
{
    return header->bytes <= EXANEST_PAYLOAD_BYTES_MAX &&
           exanest_payload_words(header->target.va, header->bytes) <= EXANEST_PAYLOAD_WORDS_MAX &&
           (header->has_footer || header->bytes == 0);
}

struct exanest_word exanest_header_encode(const struct exanest_header *header)
{
    CHECK(type_known(header->type) && length_good(header));
    CHECK(header->target.coordinate >> EXANEST_COORDINATE_BITS == 0);
    struct exanest_word word = {
        .low = exanest_target_encode(header->target),
        .high = placed(header->pdid, 0, 16) | placed(header->type, 16, 5) |
                placed(header->bytes, 21, 9) | flag(header->has_footer, 30) |
                flag(header->priority, 31) | placed(header->channel, 32, 2) |
                placed(header->aux, 34, 14),
    };
    word.high |= (uint64_t)edc_of(word) << 48;
    return word;
}

enum exanest_verdict exanest_header_decode(struct exanest_word word, struct exanest_header *header)
{
    if (edc_of(word) != word.high >> 48) {
        return EXANEST_WRONG_EDC;
    }
    const struct exanest_header decoded = {
        .target = exanest_target_decode(word.low),
        .pdid = (uint16_t)field(word.high, 0, 16),
        .type = (uint8_t)field(word.high, 16, 5),
        .bytes = (uint16_t)field(word.high, 21, 9),
        .has_footer = field(word.high, 30, 1),
        .priority = field(word.high, 31, 1),
        .channel = (uint8_t)field(word.high, 32, 2),
        .aux = (uint16_t)field(word.high, 34, 14),
    };
    if (!type_known(decoded.type)) {
        return EXANEST_UNKNOWN_TYPE;
    }
    if (!length_good(&decoded)) {
        return EXANEST_WRONG_LENGTH;
    }
    *header = decoded;
    return EXANEST_GOOD;
}

struct exanest_word exanest_footer_encode(const struct exanest_footer *footer)
{
    struct exanest_word word = {
        .low = footer->payload_crc | placed(footer->tid, 32, 10) |
               placed(footer->source, 42, EXANEST_COORDINATE_BITS),
        .high = placed(footer->sequence, 0, 14) | flag(footer->first, 14) | flag(footer->last, 15) |
                flag(footer->notify, 16) | placed(footer->path, 17, 5) |
                placed(footer->status, 22, 4),
    };
    word.high |= (uint64_t)crc8_of(word) << 56;
    return word;
}

enum exanest_verdict exanest_footer_decode(struct exanest_word word, struct exanest_footer *footer)
{
    if (crc8_of(word) != word.high >> 56) {
        return EXANEST_WRONG_CRC8;
    }
    if (field(word.high, 26, 30) != 0) {
        return EXANEST_RESERVED_BITS;
    }
    *footer = (struct exanest_footer){
        .payload_crc = (uint32_t)word.low,
        .tid = (uint16_t)field(word.low, 32, 10),
        .source = (uint32_t)field(word.low, 42, EXANEST_COORDINATE_BITS),
        .sequence = (uint16_t)field(word.high, 0, 14),
        .first = field(word.high, 14, 1),
        .last = field(word.high, 15, 1),
        .notify = field(word.high, 16, 1),
        .path = (uint8_t)field(word.high, 17, 5),
        .status = (uint8_t)field(word.high, 22, 4),
    };
    return EXANEST_GOOD;
}

/* -- Descriptors --------------------------------------------------------------------------------*/

void exanest_descriptor_encode(const struct exanest_descriptor *descriptor,
                               uint64_t words[EXANEST_DESCRIPTOR_WORDS])
{
    CHECK(descriptor->target.coordinate >> EXANEST_COORDINATE_BITS == 0);
    words[0] = descriptor->source;
    words[1] = exanest_target_encode(descriptor->target);
    words[2] = flag(descriptor->waits, 63) | flag(descriptor->no_first, 62) |
               flag(descriptor->no_last, 61) | flag(descriptor->error, 60) |
               flag(descriptor->notify, 59) | flag(descriptor->acked, 58) |
               flag(descriptor->done, 57) | placed(descriptor->sent, 42, 15) |
               placed(descriptor->successor, 32, 10) | flag(descriptor->chained, 31) |
               placed(descriptor->bytes, 16, 15) | descriptor->pdid;
    words[3] = placed(descriptor->sequence, 5, 14) | placed(descriptor->path, 0, 5);
}

struct exanest_descriptor exanest_descriptor_decode(const uint64_t words[EXANEST_DESCRIPTOR_WORDS])
{
    return (struct exanest_descriptor){
        .source = words[0],
        .target = exanest_target_decode(words[1]),
        .waits = field(words[2], 63, 1),
        .no_first = field(words[2], 62, 1),
        .no_last = field(words[2], 61, 1),
        .error = field(words[2], 60, 1),
        .notify = field(words[2], 59, 1),
        .acked = field(words[2], 58, 1),
        .done = field(words[2], 57, 1),
        .sent = (uint16_t)field(words[2], 42, 15),
        .successor = (uint16_t)field(words[2], 32, 10),
        .chained = field(words[2], 31, 1),
        .bytes = (uint16_t)field(words[2], 16, 15),
        .pdid = (uint16_t)field(words[2], 0, 16),
        .sequence = (uint16_t)field(words[3], 5, 14),
        .path = (uint8_t)field(words[3], 0, 5),
    };
}

/* -- Control packets ----------------------------------------------------------------------------*/

void exanest_control_encode(const struct exanest_control *control, struct exanest_word words[2])
{
    words[0] = (struct exanest_word){
        .low = exanest_target_encode(control->address),
        .high = control->data[0],
    };
    words[1] = (struct exanest_word){
        .low = control->data[1],
        .high = placed(control->tid, 0, 10) | placed(control->sequence, 10, 14) |
                placed(control->bytes, 24, 15),
    };
}

struct exanest_control exanest_control_decode(const struct exanest_word words[2])
{
    return (struct exanest_control){
        .address = exanest_target_decode(words[0].low),
        .data = {words[0].high, words[1].low},
        .tid = (uint16_t)field(words[1].high, 0, 10),
        .sequence = (uint16_t)field(words[1].high, 10, 14),
        .bytes = (uint16_t)field(words[1].high, 24, 15),
    };
}

/* -- The R5's mailbox ---------------------------------------------------------------------------*/

uint32_t exanest_response_encode(const struct exanest_response *response)
{
    return (uint32_t)(placed(response->tid, 0, 10) | placed(response->sequence, 10, 14) |
                      placed(response->status, 24, 4) | flag(response->requests_wait, 30) |
                      flag(response->valid, 31));
}

struct exanest_response exanest_response_decode(uint32_t word)
{
    return (struct exanest_response){
        .valid = field(word, 31, 1),
        .requests_wait = field(word, 30, 1),
        .status = (uint8_t)field(word, 24, 4),
        .tid = (uint16_t)field(word, 0, 10),
        .sequence = (uint16_t)field(word, 10, 14),
    };
}

void exanest_read_request_encode(const struct exanest_read_request *request,
                                 struct exanest_word words[EXANEST_READ_REQUEST_WORDS])
{
    words[0] = (struct exanest_word){
        .low = request->source,
        .high = exanest_target_encode(request->target),
    };
    words[1] = (struct exanest_word){
        .low = exanest_target_encode(request->address),
        .high = request->data,
    };
    words[2] = (struct exanest_word){
        .low = (uint64_t)request->request_id << 32 | request->bytes,
        .high = request->pdid | placed(request->coordinate, 16, EXANEST_COORDINATE_BITS) |
                placed(request->channel, 38, 10),
    };
}

struct exanest_read_request exanest_read_request_decode(
    const struct exanest_word words[EXANEST_READ_REQUEST_WORDS])
{
    return (struct exanest_read_request){
        .source = words[0].low,
        .target = exanest_target_decode(words[0].high),
        .address = exanest_target_decode(words[1].low),
        .data = words[1].high,
        .bytes = (uint32_t)words[2].low,
        .request_id = (uint32_t)(words[2].low >> 32),
        .pdid = (uint16_t)words[2].high,
        .coordinate = (uint32_t)field(words[2].high, 16, EXANEST_COORDINATE_BITS),
        .channel = (uint16_t)field(words[2].high, 38, 10),
    };
}

/* -- A program's descriptors --------------------------------------------------------------------*/

void exanest_transfer_encode(const struct exanest_transfer *transfer,
                             uint64_t words[EXANEST_TRANSFER_WORDS])
{
    words[0] = transfer->source;
    words[1] = exanest_target_encode(transfer->target);
    words[2] = transfer->bytes | flag(transfer->notify, 32) | flag(transfer->read, 33) |
               placed(transfer->path, 35, 5) | flag(transfer->chain, 40) |
               placed(transfer->state, 48, 16);
    words[3] = exanest_target_encode(transfer->address);
    words[4] = transfer->data[0];
    words[5] = transfer->data[1];
    words[6] = transfer->acked | placed(transfer->retransmissions, 32, 16) |
               placed(transfer->last_status, 48, 16);
    words[7] = transfer->doorbell;
}

struct exanest_transfer exanest_transfer_decode(const uint64_t words[EXANEST_TRANSFER_WORDS])
{
    return (struct exanest_transfer){
        .source = words[0],
        .target = exanest_target_decode(words[1]),
        .bytes = (uint32_t)words[2],
        .notify = field(words[2], 32, 1),
        .read = field(words[2], 33, 1),
        .chain = field(words[2], 40, 1),
        .path = (uint8_t)field(words[2], 35, 5),
        .state = (uint16_t)field(words[2], 48, 16),
        .address = exanest_target_decode(words[3]),
        .data = {words[4], words[5]},
        .acked = (uint32_t)words[6],
        .retransmissions = (uint16_t)field(words[6], 32, 16),
        .last_status = (uint16_t)field(words[6], 48, 16),
        .doorbell = words[7],
    };
}
