/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The words of ExaNeSt's RDMA engine are as wire/exanest.h says, bit by bit.
 * Method  An example worked out by hand, and check values of the codes; random fields there and
 *         back; every single-bit error, and double ones by chance. Behaviours EXA-01 to EXA-05.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "wire/crc32c.h"
#include "wire/exanest.h"

#define ROUNDS 20000

static uint64_t bits(struct prng *prng, uint32_t count)
{
    return prng_next(prng) >> (64 - count);
}

static struct exanest_target random_target(struct prng *prng)
{
    return exanest_target_decode(prng_next(prng));
}

static bool targets_equal(struct exanest_target a, struct exanest_target b)
{
    return a.coordinate == b.coordinate && a.va == b.va;
}

static struct exanest_header random_header(struct prng *prng)
{
    struct exanest_header header = {
        .target = random_target(prng),
        .pdid = (uint16_t)prng_next(prng),
        .type = (uint8_t)(1 + prng_below(prng, 10)),
        .has_footer = bits(prng, 1),
        .priority = bits(prng, 1),
        .channel = (uint8_t)bits(prng, 2),
        .aux = (uint16_t)bits(prng, 14),
    };
    const uint64_t lane = header.target.va % EXANEST_WORD_BYTES;
    header.bytes = header.has_footer ? (uint16_t)prng_below(prng, 257 - lane) : 0;
    return header;
}

static struct exanest_footer random_footer(struct prng *prng)
{
    return (struct exanest_footer){
        .payload_crc = (uint32_t)prng_next(prng),
        .tid = (uint16_t)bits(prng, 10),
        .source = (uint32_t)bits(prng, 22),
        .sequence = (uint16_t)bits(prng, 14),
        .first = bits(prng, 1),
        .last = bits(prng, 1),
        .notify = bits(prng, 1),
        .path = (uint8_t)bits(prng, 5),
        .status = (uint8_t)bits(prng, 4),
    };
}

static void assert_headers_equal(const struct exanest_header *a, const struct exanest_header *b)
{
    assert_true(targets_equal(a->target, b->target));
    assert_int_equal(a->pdid, b->pdid);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->has_footer, b->has_footer);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->channel, b->channel);
    assert_int_equal(a->aux, b->aux);
}

static void assert_footers_equal(const struct exanest_footer *a, const struct exanest_footer *b)
{
    assert_int_equal(a->payload_crc, b->payload_crc);
    assert_int_equal(a->tid, b->tid);
    assert_int_equal(a->source, b->source);
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->first, b->first);
    assert_int_equal(a->last, b->last);
    assert_int_equal(a->notify, b->notify);
    assert_int_equal(a->path, b->path);
    assert_int_equal(a->status, b->status);
}

/* EXA-02: the check values of the codes (CRC-32C: crc32c_test.c), and words as bytes. */
static void test_codes(void **state)
{
    (void)state;
    const uint8_t *digits = (const uint8_t *)"123456789";
    assert_int_equal(exanest_crc16(0xffff, digits, 9), 0x29b1);
    assert_int_equal(exanest_crc8(0, digits, 9), 0xf4);

    struct prng prng;
    prng_init(&prng, 1);
    for (int round = 0; round < ROUNDS; round++) {
        const struct exanest_word word = {.low = prng_next(&prng), .high = prng_next(&prng)};
        const uint32_t before = (uint32_t)prng_next(&prng);
        assert_int_equal(exanest_payload_crc(before, word), crc32c(before, &word, sizeof(word)));
    }
}

/* EXA-02: the worked example, byte for byte. */
static void test_worked_example(void **state)
{
    (void)state;
    static const uint8_t expected[4][17] = {
        "\x78\x56\x34\x12\x00\x04\x08\x02\x05\x00\x81\x42\x04\x00\x71\xe5",
        "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07",
        "\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x00\x00\x00\x00",
        "\xc6\x95\x33\x6c\x03\x00\x08\x02\x01\xc0\x00\x00\x00\x00\x00\x83",
    };
    const struct exanest_place place = {.x = 1, .y = 2, .z = 0, .fpga = 1};
    const struct exanest_place source = {.x = 1, .y = 2, .z = 0, .fpga = 0};
    const struct exanest_header header = {
        .target = {.coordinate = exanest_coordinate(place), .va = 0x12345678},
        .pdid = 5,
        .type = EXANEST_WRITE,
        .bytes = 20,
        .has_footer = true,
        .aux = 1};
    uint32_t crc = 0;
    for (int i = 1; i <= 2; i++) {
        struct exanest_word word;
        memcpy(&word, expected[i], sizeof(word));
        crc = exanest_payload_crc(crc, word);
    }
    assert_int_equal(crc, 0x6c3395c6);
    const struct exanest_footer footer = {.payload_crc = crc,
                                          .tid = 3,
                                          .source = exanest_coordinate(source),
                                          .sequence = 1,
                                          .first = true,
                                          .last = true};
    const struct exanest_word first = exanest_header_encode(&header);
    const struct exanest_word last = exanest_footer_encode(&footer);
    assert_memory_equal(&first, expected[0], sizeof(first));
    assert_memory_equal(&last, expected[3], sizeof(last));
    assert_int_equal(exanest_packet_words(&header), 4);
}

/* EXA-01: 16, 32, 48 .. 288 bytes are the sizes of a packet; 0 and 256 bytes of payload encode. */
static void test_shapes(void **state)
{
    (void)state;
    uint32_t seen[EXANEST_PACKET_WORDS_MAX + 1] = {0};
    for (uint32_t bytes = 0; bytes <= 256; bytes++) {
        for (uint64_t lane = 0; lane < 16; lane++) {
            struct exanest_header header = {
                .target = {.va = lane}, .type = 1, .bytes = (uint16_t)bytes, .has_footer = true};
            const uint32_t words = exanest_payload_words(lane, bytes);
            assert_int_equal(words, bytes == 0 ? 0 : (lane + bytes - 1) / 16 + 1);
            if (words > 16) {
                continue;
            }
            struct exanest_header got;
            struct exanest_word word = exanest_header_encode(&header);
            assert_int_equal(exanest_header_decode(word, &got), EXANEST_GOOD);
            assert_headers_equal(&got, &header);
            seen[exanest_packet_words(&got)]++;
            header.has_footer = false;
            if (bytes == 0) {
                word = exanest_header_encode(&header);
                assert_int_equal(exanest_header_decode(word, &got), EXANEST_GOOD);
                seen[exanest_packet_words(&got)]++;
            }
        }
    }
    for (uint32_t words = 1; words <= EXANEST_PACKET_WORDS_MAX; words++) {
        assert_true(seen[words] != 0);
    }
    assert_int_equal(seen[0], 0);
}

/* The word with a right error code whatever its fields are. */
static struct exanest_word with_edc(struct exanest_word word)
{
    uint8_t bytes[16];
    memcpy(bytes, &word, sizeof(bytes));
    word.high = (word.high & 0xffffffffffff) | (uint64_t)exanest_crc16(0xffff, bytes, 14) << 48;
    return word;
}

/* EXA-01: what a sender of our own would never say is refused, and nothing is decoded. */
static void test_refused(void **state)
{
    (void)state;
    struct exanest_header good = {.type = 1, .bytes = 256, .has_footer = true}, got = {.pdid = 99};
    const struct exanest_word word = exanest_header_encode(&good);
    struct exanest_word wrong = word;
    wrong.low |= 1; /* 256 bytes from lane 1 on: 17 words. */
    assert_int_equal(exanest_header_decode(wrong, &got), EXANEST_WRONG_EDC);
    assert_int_equal(exanest_header_decode(with_edc(wrong), &got), EXANEST_WRONG_LENGTH);
    wrong = word;
    wrong.high += UINT64_C(1) << 21; /* 257 bytes. */
    assert_int_equal(exanest_header_decode(with_edc(wrong), &got), EXANEST_WRONG_LENGTH);
    wrong = word;
    wrong.high ^= UINT64_C(1) << 30; /* Payload, but no footer. */
    assert_int_equal(exanest_header_decode(with_edc(wrong), &got), EXANEST_WRONG_LENGTH);
    for (uint64_t type = 0; type < 32; type++) {
        wrong = word;
        wrong.high = (wrong.high & ~(UINT64_C(31) << 16)) | type << 16;
        const bool known = type >= 1 && type <= 10;
        struct exanest_header any;
        assert_int_equal(exanest_header_decode(with_edc(wrong), &any),
                         known ? EXANEST_GOOD : EXANEST_UNKNOWN_TYPE);
    }
    const struct exanest_footer footer = {.tid = 1};
    struct exanest_footer footer_got = {.tid = 99};
    for (uint32_t bit = 90; bit < 120; bit++) {
        wrong = exanest_footer_encode(&footer);
        wrong.high ^= UINT64_C(1) << (bit - 64);
        assert_int_equal(exanest_footer_decode(wrong, &footer_got), EXANEST_WRONG_CRC8);
        uint8_t bytes[16];
        memcpy(bytes, &wrong, sizeof(bytes));
        bytes[15] = exanest_crc8(0, bytes + 4, 11);
        memcpy(&wrong, bytes, sizeof(bytes));
        assert_int_equal(exanest_footer_decode(wrong, &footer_got), EXANEST_RESERVED_BITS);
    }
    assert_int_equal(got.pdid, 99);
    assert_int_equal(footer_got.tid, 99);
    assert_string_equal(exanest_verdict_name(EXANEST_GOOD), "good");
    assert_string_equal(exanest_verdict_name(EXANEST_RESERVED_BITS), "reserved bits");
}

struct packet {
    struct exanest_word words[EXANEST_PACKET_WORDS_MAX];
    uint32_t count;
};

static struct packet random_packet(struct prng *prng)
{
    struct exanest_header header = random_header(prng);
    struct packet packet = {0};
    packet.words[packet.count++] = exanest_header_encode(&header);
    struct exanest_footer footer = random_footer(prng);
    footer.payload_crc = 0;
    for (uint32_t i = 0; i < exanest_payload_words(header.target.va, header.bytes); i++) {
        const struct exanest_word word = {prng_next(prng), prng_next(prng)};
        footer.payload_crc = exanest_payload_crc(footer.payload_crc, word);
        packet.words[packet.count++] = word;
    }
    if (header.has_footer) {
        packet.words[packet.count++] = exanest_footer_encode(&footer);
    }
    return packet;
}

/* A receiver's verdict. It counts words by the header that it got. */
static bool packet_good(const struct packet *packet)
{
    struct exanest_header header;
    struct exanest_footer footer;
    if (exanest_header_decode(packet->words[0], &header) != EXANEST_GOOD ||
        exanest_packet_words(&header) != packet->count) {
        return false;
    }
    if (!header.has_footer) {
        return true;
    }
    uint32_t crc = 0;
    for (uint32_t i = 1; i < packet->count - 1; i++) {
        crc = exanest_payload_crc(crc, packet->words[i]);
    }
    return exanest_footer_decode(packet->words[packet->count - 1], &footer) == EXANEST_GOOD &&
           footer.payload_crc == crc;
}

static void flip(struct packet *packet, uint32_t bit)
{
    struct exanest_word *word = &packet->words[bit / 128];
    *(bit % 128 < 64 ? &word->low : &word->high) ^= UINT64_C(1) << bit % 64;
}

/* EXA-03: no single error in header, payload or footer gets past, nor do double ones. */
static void test_flipped_bits(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);
    for (int round = 0; round < 50; round++) {
        struct packet packet = random_packet(&prng);
        assert_true(packet_good(&packet));
        for (uint32_t bit = 0; bit < 128 * packet.count; bit++) {
            flip(&packet, bit);
            assert_false(packet_good(&packet));
            flip(&packet, bit);
        }
        for (int i = 0; i < 2000; i++) {
            const uint32_t one = (uint32_t)prng_below(&prng, 128 * packet.count);
            const uint32_t other = (uint32_t)prng_below(&prng, 128 * packet.count);
            flip(&packet, one);
            flip(&packet, other);
            assert_int_equal(packet_good(&packet), one == other);
            flip(&packet, one);
            flip(&packet, other);
        }
    }
}

/* Each field stands where the tables say, and comes back as it went in. */
static void test_packet_fields(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);
    for (int round = 0; round < ROUNDS; round++) {
        const struct exanest_header header = random_header(&prng);
        const struct exanest_word first = exanest_header_encode(&header);
        struct exanest_header header_got;
        assert_int_equal(exanest_header_decode(first, &header_got), EXANEST_GOOD);
        assert_headers_equal(&header_got, &header);
        const struct exanest_footer footer = random_footer(&prng);
        const struct exanest_word last = exanest_footer_encode(&footer);
        struct exanest_footer footer_got;
        assert_int_equal(exanest_footer_decode(last, &footer_got), EXANEST_GOOD);
        assert_footers_equal(&footer_got, &footer);
    }
    const struct exanest_header header = {.pdid = 0xabcd,
                                          .type = 10,
                                          .bytes = 0,
                                          .has_footer = true,
                                          .priority = true,
                                          .channel = 2,
                                          .aux = exanest_aux(EXANEST_NACK_FULL, 0x155)};
    assert_true((exanest_header_encode(&header).high & 0xffffffffffff) ==
                (0xabcd | UINT64_C(10) << 16 | UINT64_C(1) << 30 | UINT64_C(1) << 31 |
                 UINT64_C(2) << 32 | UINT64_C(0x155) << 34 | UINT64_C(5) << 44));
    const struct exanest_footer footer = {.payload_crc = 0x12345678,
                                          .tid = 0x2aa,
                                          .source = 0x200001,
                                          .sequence = 0x1234,
                                          .notify = true,
                                          .path = 0x15,
                                          .status = 0xa};
    const struct exanest_word word = exanest_footer_encode(&footer);
    assert_true(word.low == (0x12345678 | UINT64_C(0x2aa) << 32 | UINT64_C(0x200001) << 42));
    assert_true((word.high & 0xffffffffffffff) ==
                (0x1234 | UINT64_C(1) << 16 | UINT64_C(0x15) << 17 | UINT64_C(0xa) << 22));
}

/* EXA-04: 22 bits of coordinate and 42 of address; what stands behind the prefix 111. */
static void test_addresses(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 4);
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t word = prng_next(&prng);
        const struct exanest_target target = exanest_target_decode(word);
        assert_int_equal(target.coordinate, word >> 42);
        assert_true(target.va == (word & 0x3ffffffffff));
        assert_true(exanest_target_encode(target) == word);
        assert_int_equal(exanest_va_is_peripheral(target.va), (word >> 39 & 7) == 7);
        const uint32_t coordinate = (uint32_t)bits(&prng, 22);
        const struct exanest_place place = exanest_place(coordinate);
        assert_int_equal(exanest_coordinate(place), coordinate);
    }
    const struct exanest_place place = {.x = 0x7f, .y = 1, .z = 2, .fpga = 3};
    assert_int_equal(exanest_coordinate(place), 0x7f << 15 | 1 << 8 | 2 << 2 | 3);
    const uint64_t va = exanest_peripheral_va(EXANEST_SYSTEM_MAILBOXES, 0x50000);
    assert_true(va == UINT64_C(0x38200050000));
    assert_true(exanest_va_is_peripheral(va));
    assert_int_equal(exanest_va_peripheral(va), EXANEST_SYSTEM_MAILBOXES);
    assert_false(exanest_va_is_peripheral(va ^ UINT64_C(1) << 39));
    assert_false(exanest_va_is_peripheral(UINT64_C(7) << 42));
}

static struct exanest_descriptor random_descriptor(struct prng *prng)
{
    const uint16_t ends[] = {1, 16384, (uint16_t)bits(prng, 15)};
    return (struct exanest_descriptor){
        .source = prng_next(prng),
        .target = random_target(prng),
        .waits = bits(prng, 1),
        .error = bits(prng, 1),
        .notify = bits(prng, 1),
        .no_first = bits(prng, 1),
        .no_last = bits(prng, 1),
        .acked = bits(prng, 1),
        .done = bits(prng, 1),
        .sent = ends[prng_below(prng, 3)],
        .successor = (uint16_t)bits(prng, 10),
        .chained = bits(prng, 1),
        .bytes = ends[prng_below(prng, 3)],
        .pdid = (uint16_t)prng_next(prng),
        .sequence = (uint16_t)bits(prng, 14),
        .path = (uint8_t)bits(prng, 5),
    };
}

/* EXA-05: all fields there and back, 1 and 16384 bytes; where each stands. */
static void test_descriptor(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 5);
    for (int round = 0; round < ROUNDS; round++) {
        const struct exanest_descriptor sent = random_descriptor(&prng);
        uint64_t words[EXANEST_DESCRIPTOR_WORDS];
        exanest_descriptor_encode(&sent, words);
        const struct exanest_descriptor got = exanest_descriptor_decode(words);
        assert_true(got.source == sent.source && targets_equal(got.target, sent.target));
        assert_true(got.waits == sent.waits && got.error == sent.error);
        assert_true(got.notify == sent.notify && got.acked == sent.acked);
        assert_true(got.no_first == sent.no_first && got.no_last == sent.no_last);
        assert_true(got.done == sent.done && got.chained == sent.chained);
        assert_int_equal(got.sent, sent.sent);
        assert_int_equal(got.successor, sent.successor);
        assert_int_equal(got.bytes, sent.bytes);
        assert_int_equal(got.pdid, sent.pdid);
        assert_int_equal(got.sequence, sent.sequence);
        assert_int_equal(got.path, sent.path);
    }
    const struct exanest_descriptor all = {.waits = true,
                                           .error = true,
                                           .done = true,
                                           .sent = 16384,
                                           .successor = 0x2aa,
                                           .chained = true,
                                           .bytes = 16384,
                                           .pdid = 0x1234,
                                           .sequence = 0x2bcd,
                                           .path = 0x15};
    uint64_t words[EXANEST_DESCRIPTOR_WORDS];
    exanest_descriptor_encode(&all, words);
    assert_true(words[2] ==
                (UINT64_C(1) << 63 | UINT64_C(1) << 60 | UINT64_C(1) << 57 | UINT64_C(16384) << 42 |
                 UINT64_C(0x2aa) << 32 | UINT64_C(1) << 31 | UINT64_C(16384) << 16 | 0x1234));
    assert_true(words[3] == (0x2bcd << 5 | 0x15));
    const struct exanest_descriptor flags = {.notify = true, .acked = true};
    exanest_descriptor_encode(&flags, words);
    assert_true(words[2] == (UINT64_C(1) << 59 | UINT64_C(1) << 58));
    const struct exanest_descriptor piece = {.no_first = true, .no_last = true};
    exanest_descriptor_encode(&piece, words);
    assert_true(words[2] == (UINT64_C(1) << 62 | UINT64_C(1) << 61));
}

static void test_control(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 6);
    for (int round = 0; round < ROUNDS; round++) {
        const struct exanest_control sent = {.address = random_target(&prng),
                                             .data = {prng_next(&prng), prng_next(&prng)},
                                             .tid = (uint16_t)bits(&prng, 10),
                                             .sequence = (uint16_t)bits(&prng, 14),
                                             .bytes = (uint16_t)bits(&prng, 15)};
        struct exanest_word words[2];
        exanest_control_encode(&sent, words);
        assert_true(words[0].low == exanest_target_encode(sent.address));
        assert_true(words[0].high == sent.data[0] && words[1].low == sent.data[1]);
        assert_true(words[1].high ==
                    (sent.tid | (uint64_t)sent.sequence << 10 | (uint64_t)sent.bytes << 24));
        const struct exanest_control got = exanest_control_decode(words);
        assert_true(targets_equal(got.address, sent.address));
        assert_memory_equal(got.data, sent.data, sizeof(got.data));
        assert_int_equal(got.tid, sent.tid);
        assert_int_equal(got.sequence, sent.sequence);
        assert_int_equal(got.bytes, sent.bytes);
    }
}

static void test_response(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const struct exanest_response sent = {.valid = round & 1,
                                              .requests_wait = round >> 1 & 1,
                                              .status = (uint8_t)(round % 16),
                                              .tid = (uint16_t)(round * 7 % EXANEST_TIDS),
                                              .sequence =
                                                  (uint16_t)(round * 13 % EXANEST_SEQUENCES)};
        const uint32_t word = exanest_response_encode(&sent);
        assert_int_equal(word, sent.tid | (uint32_t)sent.sequence << 10 |
                                   (uint32_t)sent.status << 24 |
                                   (uint32_t)sent.requests_wait << 30 | (uint32_t)sent.valid << 31);
        const struct exanest_response got = exanest_response_decode(word);
        assert_true(got.valid == sent.valid && got.requests_wait == sent.requests_wait);
        assert_int_equal(got.status, sent.status);
        assert_int_equal(got.tid, sent.tid);
        assert_int_equal(got.sequence, sent.sequence);
    }
}

static void test_read_request(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 7);
    for (int round = 0; round < ROUNDS; round++) {
        const struct exanest_read_request sent = {.source = prng_next(&prng),
                                                  .target = random_target(&prng),
                                                  .address = random_target(&prng),
                                                  .data = prng_next(&prng),
                                                  .bytes = (uint32_t)prng_next(&prng),
                                                  .request_id = (uint32_t)prng_next(&prng),
                                                  .pdid = (uint16_t)prng_next(&prng),
                                                  .coordinate = (uint32_t)bits(&prng, 22),
                                                  .channel = (uint16_t)bits(&prng, 10)};
        struct exanest_word words[EXANEST_READ_REQUEST_WORDS];
        exanest_read_request_encode(&sent, words);
        assert_true(words[0].low == sent.source && words[1].high == sent.data);
        assert_true(words[0].high == exanest_target_encode(sent.target));
        assert_true(words[1].low == exanest_target_encode(sent.address));
        assert_true(words[2].low == ((uint64_t)sent.request_id << 32 | sent.bytes));
        assert_true(words[2].high ==
                    (sent.pdid | (uint64_t)sent.coordinate << 16 | (uint64_t)sent.channel << 38));
        const struct exanest_read_request got = exanest_read_request_decode(words);
        assert_true(got.source == sent.source && got.data == sent.data);
        assert_true(targets_equal(got.target, sent.target));
        assert_true(targets_equal(got.address, sent.address));
        assert_true(got.bytes == sent.bytes && got.request_id == sent.request_id);
        assert_int_equal(got.pdid, sent.pdid);
        assert_int_equal(got.coordinate, sent.coordinate);
        assert_int_equal(got.channel, sent.channel);
    }
}

static struct exanest_transfer random_transfer(struct prng *prng)
{
    return (struct exanest_transfer){
        .source = prng_next(prng),
        .target = random_target(prng),
        .bytes = (uint32_t)prng_next(prng),
        .notify = bits(prng, 1),
        .read = bits(prng, 1),
        .chain = bits(prng, 1),
        .path = (uint8_t)bits(prng, 5),
        .state = (uint16_t)prng_next(prng),
        .address = random_target(prng),
        .data = {prng_next(prng), prng_next(prng)},
        .acked = (uint32_t)prng_next(prng),
        .retransmissions = (uint16_t)prng_next(prng),
        .last_status = (uint16_t)prng_next(prng),
        .doorbell = prng_next(prng),
    };
}

static void test_transfer(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 8);
    for (int round = 0; round < ROUNDS; round++) {
        const struct exanest_transfer sent = random_transfer(&prng);
        uint64_t words[EXANEST_TRANSFER_WORDS];
        uint8_t memory[64];
        exanest_transfer_encode(&sent, words);
        memcpy(memory, words, sizeof(memory));
        uint16_t flags;
        memcpy(&flags, memory + 0x14, sizeof(flags));
        assert_int_equal(flags, sent.notify | sent.read << 1 | sent.path << 3 | sent.chain << 8);
        assert_memory_equal(memory, &sent.source, 8);
        assert_memory_equal(memory + 0x10, &sent.bytes, 4);
        assert_memory_equal(memory + 0x16, &sent.state, 2);
        assert_memory_equal(memory + 0x20, sent.data, 16);
        assert_memory_equal(memory + 0x30, &sent.acked, 4);
        assert_memory_equal(memory + 0x34, &sent.retransmissions, 2);
        assert_memory_equal(memory + 0x36, &sent.last_status, 2);
        assert_memory_equal(memory + 0x38, &sent.doorbell, 8);
        words[2] |= UINT64_C(1) << 34 | UINT64_C(0x7f) << 41; /* Reserved: ignored. */
        const struct exanest_transfer got = exanest_transfer_decode(words);
        assert_true(targets_equal(got.target, sent.target));
        assert_true(targets_equal(got.address, sent.address));
        assert_true(got.source == sent.source && got.bytes == sent.bytes);
        assert_true(got.notify == sent.notify && got.read == sent.read && got.chain == sent.chain);
        assert_true(got.path == sent.path && got.state == sent.state && got.acked == sent.acked);
        assert_memory_equal(got.data, sent.data, sizeof(got.data));
        assert_int_equal(got.retransmissions, sent.retransmissions);
        assert_int_equal(got.last_status, sent.last_status);
        assert_true(got.doorbell == sent.doorbell);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),        cmocka_unit_test(test_worked_example),
        cmocka_unit_test(test_shapes),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_flipped_bits), cmocka_unit_test(test_packet_fields),
        cmocka_unit_test(test_addresses),    cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_control),      cmocka_unit_test(test_response),
        cmocka_unit_test(test_read_request), cmocka_unit_test(test_transfer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
