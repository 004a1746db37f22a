/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every bit of every header of the block transport is where docs/block-transport.md puts
 *         it, in both directions, and bytes that are no packet are refused with the right name.
 * Method  One packet of each opcode is written by hand, bytes and fields. Every bit of it is turned
 *         in turn, and every length tried, each in a buffer of exactly that size, so that a
 *         sanitizer sees one byte read too far: what decodes must encode to the same bytes, and
 *         which bits are refused is listed by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "wire/block.h"

/* -- Packets written by hand ------------------------------------------------------------------- */

static const uint8_t send_bytes[] = {
    0xc4, 0x90, 0xff, 0xff, 0x00, 0xab, 0xcd, 0xef, /* SE, pad 1; destination QPN */
    0x80, 0x12, 0x34, 0x56,                         /* A, TSN */
    0xde, 0xad, 0xbe, 0xef, 0xff, 0xff, 0xff, 0xfe, /* session, BN */
    0x00, 0x00, 0x00, 0x02,                         /* index */
    0x0c, 0x3e, 0x83, 0x05,                         /* 000011 000011 1 1 1 0 1 000 0011 round 5 */
    0x00, 0x02, 0x0c, 0x03, 0x01, 0x02, 0x03, 0x04, /* 131 x 1024 + 3, RN */
    0x31, 0x32, 0x33, 0x34, 'a',  'b',  'c',  0x00, /* immediate data; payload, pad */
};

static const uint8_t write_bytes[] = {
    0xc5, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x07, /* BTH */
    0x00, 0xff, 0xff, 0xff,                         /* TSN */
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x2a, /* session, BN */
    0x00, 0x00, 0x00, 0x00,                         /* index */
    0x00, 0x08, 0x0f, 0xff,                         /* 000000 000000 1 0 0 0 0 000 1111 round 255 */
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* VA */
    0x21, 0x22, 0x23, 0x24, 0x00, 0x00, 0x00, 0x04, /* rkey, message length */
    0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* RN, no tag */
    'w',  'x',  'y',  'z',                          /* payload */
};

static const uint8_t read_bytes[] = {
    0xc6, 0x00, 0xff, 0xff, 0x00, 0x00, 0x01, 0x00, /* BTH */
    0x80, 0x00, 0x00, 0x01,                         /* A, TSN */
    0x0a, 0x0b, 0x0c, 0x0d, 0x00, 0x00, 0x00, 0x03, /* session, BN */
    0x00, 0x00, 0x00, 0x01,                         /* index */
    0x00, 0x18, 0x81, 0x02,                         /* 000000 000001 1 0 0 0 1 000 0001 round 2 */
    0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, /* VA */
    0x01, 0x02, 0x03, 0x04, 0x00, 0x04, 0x10, 0x01, /* rkey, 65 x 4096 + 1 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, /* wanted: position 1 */
};

static const uint8_t atomic_bytes[] = {
    0xc7, 0x00, 0xff, 0xff, 0x00, 0x10, 0x20, 0x30, /* BTH */
    0x80, 0x00, 0x00, 0x02,                         /* A, TSN */
    0x51, 0x52, 0x53, 0x54, 0x00, 0x00, 0x01, 0x00, /* session, BN */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, /* index; M */
    0x00, 0x00, 0x7f, 0xff, 0x00, 0x00, 0x10, 0x08, /* VA */
    0x61, 0x62, 0x63, 0x64, 0x00, 0x00, 0x00, 0x01, /* rkey, fetch-add */
    0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, /* addend */
    0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, /* compare */
};

static const uint8_t data_bytes[] = {
    0xc8, 0x20, 0xff, 0xff, 0x00, 0x00, 0x00, 0x09, /* pad 2; destination QPN */
    0x00, 0x00, 0x00, 0x03,                         /* TSN */
    0x0a, 0x0b, 0x0c, 0x0d, 0x00, 0x00, 0x00, 0x03, /* session, BN */
    0x00, 0x00, 0x00, 0x01,                         /* index */
    0x04, 0x18, 0x80, 0x01,                         /* 000001 000001 1 0 0 0 1 000 0000 round 1 */
    0xaa, 0xbb, 0x00, 0x00,                         /* payload, pad */
};

static const uint8_t answer_bytes[] = {
    0xc9, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x0b, /* BTH */
    0x00, 0x00, 0x00, 0x63,                         /* the 100th answer */
    0x01, 0x23, 0x45, 0x67, 0xff, 0xff, 0xff, 0xf0, /* session, base */
    0x00, 0x00, 0x00, 0x20, 0x93, 0x00, 0x00, 0x44, /* limit; more, answers a probe, path 3, TSN */
    0x00, 0x00, 0x30, 0x39, 0x01, 0x0e, 0x02, 0x05, /* delay; RNR, code 14, 2 CE, 5 duplicates */
    0xff, 0xff, 0xff, 0xf0, 0x01, 0x00, 0x00, 0x00, /* record: BN, round 1, incomplete */
    0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, /* positions 63, 2, 0 */
    0xff, 0xff, 0xff, 0xf2, 0x00, 0x03, 0x00, 0x00, /* record: BN, a run */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x11, /* of 17 blocks, across the wrap */
};

static const uint8_t probe_bytes[] = {
    0xca, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x0d, /* BTH */
    0x80, 0x00, 0x00, 0x04,                         /* A, TSN */
    0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, /* session, BN */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0f, 0x00, /* path 15 */
};

static const uint8_t hello_bytes[] = {
    0xcb, 0x00, 0xff, 0xff,
    0x00, 0x00, 0x00, 0x0f, /* BTH */
    0x00, 0x00, 0x00, 0x05, /* TSN */
    0x01, 0x21, 0x03, 0x04,
    0xca, 0xfe, 0xf0, 0x0d, /* version 1, 2 GIDs, SRQ, 1024, 4 paths; nonce */
    0x10, 0xff, 0xff, 0xfe,
    0x00, 0x01, 0x02, 0x03, /* READ depth, next PSN; QPN */
    0x04, 0x00, 0x00, 0x10,
    0x00, 0x00, 0x00, 0x00, /* W_blk 1024, R_blk 16 */
    0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, /* 0 */
    0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, /* ::ffff: */
    0x00, 0x00, 0xff, 0xff,
    0x0a, 0x00, 0x00, 0x02, /* 10.0.0.2 */
    0xfd, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, /* fd00:: */
    0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x01, /* 1 */
};

static const uint8_t welcome_bytes[] = {
    0xcc, 0x00, 0xff, 0xff, 0x00, 0x01, 0x02, 0x03, /* BTH */
    0x00, 0x00, 0x00, 0x06,                         /* TSN */
    0x01, 0x00, 0x03, 0x01, 0xca, 0xfe, 0xf0, 0x0d, /* version 1, no GID, 1024, 1 path; nonce */
    0x00, 0xff, 0xff, 0xfe, 0x00, 0x00, 0x00, 0x0f, /* PSN, QPN */
    0x00, 0x40, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, /* W_blk 64, R_blk 4 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 0 */
};

static const uint8_t challenge_bytes[] = {
    0xcd, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x07, /* BTH */
    0xca, 0xfe, 0xf0, 0x0d, 0xf1, 0xe2, 0xd3, 0xc4, 0xb5, 0xa6, 0x97, 0x88, /* session, number */
};

static const uint8_t response_bytes[] = {
    0xce, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x12, 0x00, 0x00, 0x00, 0x08, /* BTH */
    0xca, 0xfe, 0xf0, 0x0d, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01, /* session, number */
};

/* Bits that cannot be turned without another verdict than BLOCK_GOOD, and which. A list ends with
 * byte 0. */
struct refused_bits {
    uint8_t at, bits;
    enum block_verdict verdict;
};

static const struct refused_bits refused_in_bth[] = {
    {1, 0x0f, BLOCK_WRONG_VERSION}, {1, 0x40, BLOCK_RESERVED_BITS}, {2, 0xff, BLOCK_WRONG_PKEY},
    {3, 0xff, BLOCK_WRONG_PKEY},    {4, 0xff, BLOCK_RESERVED_BITS}, {8, 0x7f, BLOCK_RESERVED_BITS},
    {0, 0xff, BLOCK_GOOD},
};

#define REFUSED_WITHOUT_PAYLOAD                                                                    \
    {                                                                                              \
        1, 0x30, BLOCK_WRONG_PAD                                                                   \
    }
#define REFUSED_IN_BXH                                                                             \
    {                                                                                              \
        26, 0x70, BLOCK_UNKNOWN_FLAGS                                                              \
    }
/* Version, count of GIDs, flags, and what is 0. */
#define REFUSED_IN_HXH                                                                             \
    {12, 0xff, BLOCK_OTHER_VERSION}, {13, 0xf0, BLOCK_WRONG_COUNT},                                \
        {13, 0x0e, BLOCK_UNKNOWN_FLAGS}, {24, 0xff, BLOCK_RESERVED_BITS},                          \
        {34, 0xff, BLOCK_RESERVED_BITS}, {35, 0xff, BLOCK_RESERVED_BITS},                          \
        {36, 0xff, BLOCK_RESERVED_BITS}, {37, 0xff, BLOCK_RESERVED_BITS},                          \
        {38, 0xff, BLOCK_RESERVED_BITS}, {39, 0xff, BLOCK_RESERVED_BITS},                          \
        {40, 0xff, BLOCK_RESERVED_BITS}, {41, 0xff, BLOCK_RESERVED_BITS},                          \
        {42, 0xff, BLOCK_RESERVED_BITS},                                                           \
    {                                                                                              \
        43, 0xff, BLOCK_RESERVED_BITS                                                              \
    }

struct example {
    const char *name;
    const uint8_t *bytes;
    size_t count;
    size_t headers_bytes; /* BTH and all that does not repeat. */
    size_t items_bytes;   /* All records or GIDs there can be. */
    uint32_t mtu_bytes;
    struct block_packet packet;
    struct refused_bits refused[20];
};

#define EXAMPLE(text, array, headers, items, mtu)                                                  \
    .name = (text), .bytes = (array), .count = sizeof(array), .headers_bytes = (headers),          \
    .items_bytes = (items), .mtu_bytes = (mtu)

static const struct example examples[] = {
    {EXAMPLE("block SEND", send_bytes, 40, 0, 1024),
     .packet = {.opcode = BLOCK_SEND,
                .solicited = true,
                .ack_request = true,
                .destination_qpn = 0xabcdef,
                .tsn = 0x123456,
                .session = 0xdeadbeef,
                .number = 0xfffffffe,
                .index = 2,
                .position = 3,
                .last_position = 3,
                .last_block = true,
                .early = true,
                .has_immediate = true,
                .resent = true,
                .path = 3,
                .round = 5,
                .message_bytes = 134147,
                .receive_number = 0x01020304,
                .tag = 0x34333231,
                .payload_bytes = 3},
     .refused = {REFUSED_IN_BXH}},
    {EXAMPLE("block WRITE", write_bytes, 52, 0, 256),
     .packet = {.opcode = BLOCK_WRITE,
                .destination_qpn = 7,
                .tsn = 0xffffff,
                .session = 1,
                .number = 42,
                .last_block = true,
                .path = 15,
                .round = 255,
                .address = 0x1112131415161718,
                .key = 0x21222324,
                .message_bytes = 4,
                .receive_number = 0x80000000,
                .payload_bytes = 4},
     .refused = {REFUSED_IN_BXH}},
    {EXAMPLE("block READ", read_bytes, 52, 0, 4096),
     .packet = {.opcode = BLOCK_READ,
                .ack_request = true,
                .destination_qpn = 256,
                .tsn = 1,
                .session = 0x0a0b0c0d,
                .number = 3,
                .index = 1,
                .last_position = 1,
                .last_block = true,
                .resent = true,
                .path = 1,
                .round = 2,
                .address = 0xf1f2f3f4f5f6f7f8,
                .key = 0x01020304,
                .message_bytes = 266241,
                .wanted = 2},
     .refused = {REFUSED_WITHOUT_PAYLOAD, REFUSED_IN_BXH}},
    {EXAMPLE("block Atomic", atomic_bytes, 60, 0, 1024),
     .packet = {.opcode = BLOCK_ATOMIC,
                .ack_request = true,
                .destination_qpn = 0x102030,
                .tsn = 2,
                .session = 0x51525354,
                .number = 256,
                .last_block = true,
                .address = 0x7fff00001008,
                .key = 0x61626364,
                .atomic = {BLOCK_FETCH_ADD, 0x7172737475767778, 0x8182838485868788}},
     .refused = {REFUSED_WITHOUT_PAYLOAD, REFUSED_IN_BXH}},
    {EXAMPLE("block Data", data_bytes, 28, 0, 4096),
     .packet = {.opcode = BLOCK_DATA,
                .destination_qpn = 9,
                .tsn = 3,
                .session = 0x0a0b0c0d,
                .number = 3,
                .index = 1,
                .position = 1,
                .last_position = 1,
                .last_block = true,
                .resent = true,
                .round = 1,
                .payload_bytes = 2},
     .refused = {REFUSED_IN_BXH}},
    {EXAMPLE("block Answer", answer_bytes, 36, 64, 1024),
     .packet = {.opcode = BLOCK_ANSWER,
                .destination_qpn = 11,
                .tsn = 99,
                .session = 0x01234567,
                .answer = {.base = 0xfffffff0,
                           .receive_limit = 32,
                           .more = true,
                           .answers_probe = true,
                           .echo_path = 3,
                           .echo_tsn = 0x44,
                           .echo_delay_ns = 12345,
                           .status = BLOCK_STATUS_RNR,
                           .rnr_code = 14,
                           .ce_marked = 2,
                           .duplicates = 5,
                           .record_count = 2,
                           .records = {{0xfffffff0, 1, BLOCK_STATE_INCOMPLETE, 0x8000000000000005},
                                       {0xfffffff2, 0, BLOCK_STATE_RUN, 17}}}},
     .refused = {REFUSED_WITHOUT_PAYLOAD,
                 {32, 0xfc, BLOCK_UNKNOWN_VALUE}, /* Status 1 with another bit below 8: 0, 3, 5. */
                 {33, 0xe0, BLOCK_UNKNOWN_VALUE},
                 {41, 0xf8, BLOCK_UNKNOWN_VALUE}, /* State 0: 1, 2 and 4 are states, too. */
                 {42, 0xff, BLOCK_RESERVED_BITS},
                 {43, 0xff, BLOCK_RESERVED_BITS},
                 {57, 0xfc, BLOCK_UNKNOWN_VALUE}, /* State 3: 2 and 1, but not 7. */
                 {58, 0xff, BLOCK_RESERVED_BITS},
                 {59, 0xff, BLOCK_RESERVED_BITS}}},
    {EXAMPLE("block Probe", probe_bytes, 28, 0, 1024),
     .packet = {.opcode = BLOCK_PROBE,
                .ack_request = true,
                .destination_qpn = 13,
                .tsn = 4,
                .session = 0x01234567,
                .number = 0x89abcdef,
                .path = 15},
     .refused = {REFUSED_WITHOUT_PAYLOAD, REFUSED_IN_BXH}},
    {EXAMPLE("block HELLO", hello_bytes, 44, 48, 1024),
     .packet = {.opcode = BLOCK_HELLO,
                .destination_qpn = 15,
                .tsn = 5,
                .hello = {.gid_count = 2,
                          .shared_receives = true,
                          .mtu_code = 3,
                          .paths = 4,
                          .reads = 16,
                          .nonce = 0xcafef00d,
                          .next_psn = 0xfffffe,
                          .sender_qpn = 0x010203,
                          .window = 1024,
                          .read_queue = 16,
                          .gids = {{[10] = 0xff, 0xff, 10, 0, 0, 2}, {0xfd, [15] = 1}}}},
     .refused = {REFUSED_WITHOUT_PAYLOAD, REFUSED_IN_HXH}},
    {EXAMPLE("block WELCOME", welcome_bytes, 44, 48, 1024),
     .packet = {.opcode = BLOCK_WELCOME,
                .destination_qpn = 0x010203,
                .tsn = 6,
                .hello = {.mtu_code = 3,
                          .paths = 1,
                          .nonce = 0xcafef00d,
                          .next_psn = 0xfffffe,
                          .sender_qpn = 15,
                          .window = 64,
                          .read_queue = 4}},
     /* Without GIDs a payload asks for zeroes. */
     .refused = {REFUSED_WITHOUT_PAYLOAD,
                 REFUSED_IN_HXH,
                 {32, 0xff, BLOCK_WRONG_COUNT},
                 {33, 0xff, BLOCK_WRONG_COUNT}}},
    {EXAMPLE("block CHALLENGE", challenge_bytes, 24, 0, 1024),
     .packet = {.opcode = BLOCK_CHALLENGE,
                .destination_qpn = 17,
                .tsn = 7,
                .session = 0xcafef00d,
                .challenge = 0xf1e2d3c4b5a69788},
     .refused = {REFUSED_WITHOUT_PAYLOAD}},
    {EXAMPLE("block RESPONSE", response_bytes, 24, 0, 1024),
     .packet = {.opcode = BLOCK_RESPONSE,
                .destination_qpn = 18,
                .tsn = 8,
                .session = 0xcafef00d,
                .challenge = 0xffffffff00000001},
     .refused = {REFUSED_WITHOUT_PAYLOAD}},
};

/* -- Decoding and encoding --------------------------------------------------------------------- */

/* Decodes a copy in a buffer of exactly its size, in one place. */
static enum block_verdict decode_copy(const uint8_t *bytes, size_t count,
                                      struct block_packet *packet)
{
    uint8_t *copy = malloc(count);
    assert_true(count == 0 || copy != NULL);
    memcpy(copy, bytes, count);
    const enum block_verdict verdict = block_decode(copy, count, NULL, 0, packet);
    free(copy);
    return verdict;
}

/* Likewise headers in one place; the payload, which is not to be read, does not exist. */
static enum block_verdict decode_split(const uint8_t *bytes, size_t headers_bytes,
                                       size_t padded_bytes, struct block_packet *packet)
{
    uint8_t *copy = malloc(headers_bytes), elsewhere;
    assert_true(headers_bytes == 0 || copy != NULL);
    memcpy(copy, bytes, headers_bytes);
    const enum block_verdict verdict =
        block_decode(copy, headers_bytes, &elsewhere, padded_bytes, packet);
    free(copy);
    return verdict;
}

static bool has_payload(const struct example *example)
{
    return example->packet.payload_bytes != 0;
}

static void test_examples(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        const struct example *example = &examples[i];
        struct block_packet expected = example->packet, packet;
        uint8_t headers[BLOCK_HEADERS_BYTES_MAX];
        const size_t padded_bytes =
            has_payload(example) ? example->count - example->headers_bytes : 0;
        const size_t headers_bytes = example->count - padded_bytes;

        memset(&packet, 0, sizeof(packet));
        assert_int_equal(block_decode(example->bytes, example->count, NULL, 0, &packet),
                         BLOCK_GOOD);
        expected.payload = has_payload(example) ? example->bytes + headers_bytes : NULL;
        assert_memory_equal(&packet, &expected, sizeof(packet));

        memset(&packet, 0, sizeof(packet));
        assert_int_equal(
            block_decode(example->bytes, headers_bytes, headers, padded_bytes, &packet),
            BLOCK_GOOD);
        expected.payload = has_payload(example) ? headers : NULL;
        assert_memory_equal(&packet, &expected, sizeof(packet));

        /* Every bit of the headers is written, and no byte behind them. */
        uint8_t room[BLOCK_HEADERS_BYTES_MAX + 1], untouched[BLOCK_HEADERS_BYTES_MAX + 1];
        memset(room, 0xa5, sizeof(room));
        memset(untouched, 0xa5, sizeof(untouched));
        assert_int_equal(block_encode(&expected, room), headers_bytes);
        assert_memory_equal(room, example->bytes, headers_bytes);
        assert_memory_equal(room + headers_bytes, untouched, sizeof(room) - headers_bytes);
        assert_int_equal(block_judge(&packet, example->mtu_bytes), BLOCK_CONSISTENT);
        assert_string_equal(block_opcode_name(example->bytes[0]), example->name);
    }
}

static enum block_verdict refused(const struct refused_bits *list, size_t at, uint8_t bit)
{
    for (; list->at != 0; list++) {
        if (list->at == at && (list->bits & bit) != 0) {
            return list->verdict;
        }
    }
    return BLOCK_GOOD;
}

/* EXA-72 */
static void test_turned_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        const struct example *example = &examples[i];
        for (size_t bit = 8; bit < 8 * example->count; bit++) {
            uint8_t bytes[BLOCK_HEADERS_BYTES_MAX], headers[BLOCK_HEADERS_BYTES_MAX];
            const size_t at = bit / 8;
            const uint8_t mask = (uint8_t)(0x80 >> bit % 8);
            struct block_packet packet;

            memcpy(bytes, example->bytes, example->count);
            bytes[at] ^= mask;
            enum block_verdict expected = refused(refused_in_bth, at, mask);
            expected = expected == BLOCK_GOOD ? refused(example->refused, at, mask) : expected;
            assert_int_equal(decode_copy(bytes, example->count, &packet), expected);
            if (expected == BLOCK_GOOD) {
                assert_memory_equal(headers, bytes, block_encode(&packet, headers));
            }
        }
    }
}

/* EXA-72: where the known values of a byte end. */
static void test_unknown_values(void **state)
{
    (void)state;
    static const struct {
        uint8_t at, last;
    } bytes_with_values[] = {{32, 4}, {33, 31}, {41, 4}, {57, 4}};
    for (size_t i = 0; i < COUNT_OF(bytes_with_values); i++) {
        for (unsigned value = 0; value < 256; value++) {
            uint8_t bytes[sizeof(answer_bytes)];
            struct block_packet packet;
            memcpy(bytes, answer_bytes, sizeof(bytes));
            bytes[bytes_with_values[i].at] = (uint8_t)value;
            assert_int_equal(decode_copy(bytes, sizeof(bytes), &packet),
                             value <= bytes_with_values[i].last ? BLOCK_GOOD : BLOCK_UNKNOWN_VALUE);
        }
    }
}

/* The verdict on an example that is cut or continued with zeros. A header of GIDs says how many
 * there are. */
static enum block_verdict model_length(const struct example *example, size_t count)
{
    if (count < example->headers_bytes) {
        return BLOCK_SHORT;
    }
    const size_t more = count - example->headers_bytes;
    if (has_payload(example)) {
        const size_t pad = example->bytes[1] >> 4 & 3;
        if (more % 4 != 0 || more < pad) {
            return BLOCK_WRONG_PAD;
        }
        return more - pad > 4096 ? BLOCK_TOO_LONG : BLOCK_GOOD;
    }
    if (example->items_bytes == 0) {
        return more != 0 ? BLOCK_TOO_LONG : BLOCK_GOOD;
    }
    if (more % 16 != 0 || more > example->items_bytes) {
        return BLOCK_WRONG_COUNT;
    }
    return example->bytes[0] == BLOCK_ANSWER || count == example->count ? BLOCK_GOOD
                                                                        : BLOCK_WRONG_COUNT;
}

/* EXA-72 */
static void test_lengths(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        const struct example *example = &examples[i];
        for (size_t count = 0; count < 4200; count++) {
            uint8_t bytes[4200] = {0};
            struct block_packet packet;

            memcpy(bytes, example->bytes, count < example->count ? count : example->count);
            const enum block_verdict expected = model_length(example, count);
            assert_int_equal(decode_copy(bytes, count, &packet), expected);

            /* In two places. Headers have one length, and nothing is behind what has no payload. */
            const bool items = example->items_bytes != 0;
            const size_t headers_bytes = items ? example->count : example->headers_bytes;
            if (count >= headers_bytes) {
                const size_t more = count - headers_bytes;
                assert_int_equal(decode_split(bytes, headers_bytes, more, &packet),
                                 items && more != 0 ? BLOCK_TOO_LONG : expected);
                assert_int_equal(decode_split(bytes, headers_bytes + 4, more, &packet),
                                 items ? BLOCK_WRONG_COUNT : BLOCK_TOO_LONG);
            } else if (!items) {
                assert_int_equal(decode_split(bytes, count, 0, &packet), BLOCK_SHORT);
            }
        }
    }
}

/* EXA-72: the longest of each format, by its own sums. */
static void test_greatest_lengths(void **state)
{
    (void)state;
    uint8_t bytes[BLOCK_HEADERS_BYTES_MAX];
    struct block_packet packet = {.opcode = BLOCK_ANSWER, .answer.record_count = 4};

    assert_int_equal(BLOCK_HEADERS_BYTES_MAX, 100);
    assert_int_equal(BLOCK_PAYLOAD_HEADERS_BYTES_MAX, 52);
    assert_int_equal(BLOCK_PACKET_BYTES_MAX, 52 + 4096 + 4);
    assert_int_equal(block_encode(&packet, bytes), 100);
    packet = (struct block_packet){.opcode = BLOCK_HELLO, .hello.gid_count = 3};
    assert_int_equal(block_encode(&packet, bytes), 92);
}

/* EXA-73: a greeting that tells a payload is as long as the longest packet with it. */
static void test_greetings_with_zeroes(void **state)
{
    (void)state;
    uint8_t bytes[BLOCK_PACKET_BYTES_MAX] = {0};
    struct block_packet packet = {.opcode = BLOCK_WELCOME,
                                  .hello = {.mtu_code = 3, .paths = 1, .payload_bytes = 1408}};
    const size_t headers = block_encode(&packet, bytes);
    assert_int_equal(headers, 44);
    assert_int_equal(BLOCK_GREETING_ZEROES(1408), 52 + 1408 - 44);
    for (size_t count = 44; count < 52 + 1408 + 4; count++) {
        const bool right = count == 52 + 1408;
        const enum block_verdict verdict = right ? BLOCK_GOOD : BLOCK_WRONG_COUNT;
        assert_int_equal(block_decode(bytes, count, NULL, 0, &packet), verdict);
        assert_int_equal(block_decode(bytes, 44, bytes + 44, count - 44, &packet), verdict);
        assert_true(!right || (packet.hello.payload_bytes == 1408 && packet.payload_bytes == 0));
    }
    bytes[1] = 0x10; /* A pad. */
    assert_int_equal(block_decode(bytes, 52 + 1408, NULL, 0, &packet), BLOCK_WRONG_PAD);
}

static void test_opcodes(void **state)
{
    (void)state;
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const bool known = opcode >= 0xc4 && opcode <= 0xce;
        uint8_t bytes[64] = {(uint8_t)opcode, 0, 0xff, 0xff};
        struct block_packet packet;
        struct roce_packet roce;

        assert_int_equal(block_is((uint8_t)opcode), known);
        assert_int_equal(block_opcode_name((uint8_t)opcode) != NULL, known);
        if (known) {
            /* So a NIC has to ask block_is only of what roce_decode does not know. */
            assert_int_equal(roce_decode(bytes, sizeof(bytes), &roce), ROCE_UNKNOWN_OPCODE);
        } else {
            assert_int_equal(decode_copy(bytes, sizeof(bytes), &packet), BLOCK_UNKNOWN_OPCODE);
        }
    }
}

static void test_names(void **state)
{
    (void)state;
    for (unsigned a = 0; a < BLOCK_VERDICT_COUNT; a++) {
        for (unsigned b = 0; b < a; b++) {
            assert_string_not_equal(block_verdict_name(a), block_verdict_name(b));
        }
    }
    for (unsigned a = 0; a < BLOCK_JUDGEMENT_COUNT; a++) {
        for (unsigned b = 0; b < a; b++) {
            assert_string_not_equal(block_judgement_name(a), block_judgement_name(b));
        }
    }
}

/* Values wider than their fields are cut, and do not spill into the neighbours. */
static void test_wide_values(void **state)
{
    (void)state;
    struct block_packet packet = {.opcode = BLOCK_PROBE,
                                  .destination_qpn = 0xff000001,
                                  .tsn = 0xff000002,
                                  .position = 0xc1,
                                  .last_position = 0xc2,
                                  .path = 0xf3};
    uint8_t bytes[BLOCK_HEADERS_BYTES_MAX];

    assert_int_equal(block_encode(&packet, bytes), 28);
    assert_memory_equal(bytes + 4, "\x00\x00\x00\x01\x00\x00\x00\x02", 8);
    assert_memory_equal(bytes + 24, "\x04\x20\x03\x00", 4);
    packet = (struct block_packet){.opcode = BLOCK_ANSWER,
                                   .answer = {.echo_path = 0xf5, .echo_tsn = 0xff000003}};
    assert_int_equal(block_encode(&packet, bytes), 36);
    assert_memory_equal(bytes + 24, "\x05\x00\x00\x03", 4);
    packet = (struct block_packet){.opcode = BLOCK_HELLO,
                                   .hello = {.next_psn = 0xff000004, .sender_qpn = 0xff000005}};
    assert_int_equal(block_encode(&packet, bytes), 44);
    assert_memory_equal(bytes + 20, "\x00\x00\x00\x04\x00\x00\x00\x05", 8);
    packet.hello.reads = 128;
    assert_int_equal(block_encode(&packet, bytes), 44);
    assert_int_equal(bytes[20], 128);
}

/* A key to invalidate is a number, immediate data are bytes. */
static void test_tag(void **state)
{
    (void)state;
    struct block_packet packet = {.opcode = BLOCK_SEND};
    uint8_t bytes[BLOCK_HEADERS_BYTES_MAX];

    block_set_invalidate_key(&packet, 0x01020304);
    block_encode(&packet, bytes);
    assert_memory_equal(bytes + 36, "\x01\x02\x03\x04", 4);
    assert_int_equal(block_invalidate_key(&packet), 0x01020304);
    memcpy(&packet.tag, "abcd", 4);
    block_encode(&packet, bytes);
    assert_memory_equal(bytes + 36, "abcd", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),         cmocka_unit_test(test_turned_bits),
        cmocka_unit_test(test_unknown_values),   cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_greatest_lengths), cmocka_unit_test(test_greetings_with_zeroes),
        cmocka_unit_test(test_opcodes),          cmocka_unit_test(test_names),
        cmocka_unit_test(test_wide_values),      cmocka_unit_test(test_tag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
