/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every bit of every header of SRD is where its table puts it, in both directions, and
 *         bytes that are no packet are refused with the right name (SRD-20).
 * Method  One packet of each opcode is written by hand, bytes and fields. Every bit of it is turned
 *         in turn, and every length tried, each in a buffer of exactly that size, so that a
 *         sanitizer sees one byte read too far: what decodes must encode to the same bytes, and
 *         which bits are refused is listed by hand. How the fields of a packet have to agree is
 *         tested in srd_judge_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "wire/srd.h"

/* -- Packets written by hand ------------------------------------------------------------------- */

static const uint8_t send_bytes[] = {
    0xd0, 0x10, 0xff, 0xff, 0x00, 0x05, 0xfe, 0xff, /* pad 1; the port of slot 5 */
    0x80, 0x12, 0x34, 0x56,                         /* A, TSN */
    0xde, 0xad, 0xbe, 0xef, 0x01, 0x02, 0x03, 0x04, /* flow, tag */
    0x05, 0x06, 0x07, 0x08, 0xff, 0xff, 0xff, 0xfe, /* tag, PSN */
    0x03, 0xff, 0x01, 0x01, 0x12, 0x34, 0x05, 0x67, /* back 1023, packet 1 of 0..1; QPNs */
    0x0a, 0x0b, 0x0c, 0x0d, 0x3c, 0x10, 0x04, 0x00, /* Q_Key; path 3, I, R, version 1, 1024 */
    0x00, 0x00, 0x04, 0x03, 0x31, 0x32, 0x33, 0x34, /* 1027 bytes, immediate data */
    'a',  'b',  'c',  0x00,                         /* payload, pad */
};

static const uint8_t write_bytes[] = {
    0xd1, 0x00, 0xff, 0xff, 0x00, 0x00, 0xfe, 0xff, /* BTH */
    0x00, 0xff, 0xff, 0xff,                         /* TSN */
    0x00, 0x00, 0x00, 0x01, 0x11, 0x12, 0x13, 0x14, /* flow, tag */
    0x15, 0x16, 0x17, 0x18, 0x00, 0x00, 0x00, 0x2a, /* tag, PSN */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0xfb, /* packet 0 of 0..0; QPNs */
    0x00, 0x00, 0x00, 0x01, 0x0a, 0x10, 0x10, 0x00, /* Q_Key; I, U, version 1, 4096 */
    0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, /* VA */
    0x31, 0x32, 0x33, 0x34, 0x00, 0x00, 0x00, 0x04, /* rkey, bytes */
    0x41, 0x42, 0x43, 0x44, 0x00, 0x00, 0x00, 0x00, /* immediate data */
    'w',  'x',  'y',  'z',                          /* payload */
};

static const uint8_t read_bytes[] = {
    0xd2, 0x00, 0xff, 0xff, 0x00, 0xff, 0xfe, 0xff, /* BTH, slot 255 */
    0x80, 0x00, 0x00, 0x01,                         /* A, TSN */
    0x0a, 0x0b, 0x0c, 0x0d, 0x00, 0x00, 0x00, 0x00, /* flow, tag */
    0x00, 0x00, 0x00, 0x02, 0x80, 0x00, 0x00, 0x00, /* tag, PSN */
    0x00, 0x01, 0x00, 0x00, 0x01, 0x02, 0xff, 0x02, /* back 1; QPNs */
    0x00, 0x00, 0x00, 0x00, 0xf0, 0x10, 0x02, 0x00, /* path 15, version 1, 512 */
    0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, /* VA */
    0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x04, 0x01, /* rkey, 1025 bytes */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, /* wanted: packets 0 and 2 */
};

static const uint8_t data_bytes[] = {
    0xd3, 0x20, 0xff, 0xff, 0x00, 0x09, 0xfe, 0xff, /* pad 2 */
    0x00, 0x00, 0x00, 0x03,                         /* TSN */
    0x0a, 0x0b, 0x0c, 0x0d, 0x01, 0x00, 0x00, 0x00, /* flow, tag */
    0x00, 0x00, 0x00, 0x02, 0x80, 0x00, 0x00, 0x00, /* tag, PSN of the READ */
    0x3f, 0x00, 0x02, 0x00, 0x70, 0x00, 0x00, 0x00, /* packet 63, 512; path 7 */
    0xaa, 0xbb, 0x00, 0x00,                         /* payload, pad */
};

static const uint8_t answer_bytes[] = {
    0xd4, 0x00, 0xff, 0xff, 0x00, 0x0b, 0xfe, 0xff, /* BTH */
    0x00, 0x00, 0x00, 0x63,                         /* the 100th answer */
    0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, /* flow, tag */
    0xfe, 0xdc, 0xba, 0x98, 0xff, 0xff, 0xff, 0xf0, /* tag, CUM */
    0x3c, 0x00, 0x00, 0x44, 0x00, 0x00, 0x30, 0x39, /* path 3, m, p, TSN; delay */
    0x02, 0x05, 0x02, 0x00, 0x01, 0x00, 0x00, 0x00, /* 2 CE, 5 duplicates, 2 records; credits */
    0xff, 0xff, 0xff, 0xf1, 0x01, 0x00, 0x05, 0x00, /* record: PSN, no receive, wait code 5 */
    0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, /* PSNs 63, 2, 0 from there on */
    0x00, 0x00, 0x00, 0x33, 0x02, 0x09, 0x00, 0x00, /* record across the wrap: refused, 9 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
};

static const uint8_t hello_bytes[76] = {
    0xd5, 0x00, 0xff, 0xff, 0x00, 0x0f, 0xfe, 0xff, /* BTH */
    0x00, 0x00, 0x00, 0x05,                         /* TSN */
    0xca, 0xfe, 0xf0, 0x0d, 0x01, 0x00, 0xab, 0x00, /* flow, version 1, slot; the rest is 0 */
};

static const uint8_t challenge_bytes[] = {
    0xd6, 0x00, 0xff, 0xff, 0x00, 0x01, 0xfe, 0xff, /* BTH */
    0x00, 0x00, 0x00, 0x06,                         /* TSN */
    0xca, 0xfe, 0xf0, 0x0d, 0x01, 0x02, 0x03, 0x04, /* flow, tag */
    0x05, 0x06, 0x07, 0x08, 0xb0, 0x07, 0xb0, 0x07, /* tag, boot */
    0x01, 0x03, 0x0a, 0x00, 0x12, 0x34, 0x56, 0x78, /* version 1, stale, window 2^10; PSN */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 0 */
};

static const uint8_t probe_bytes[] = {
    0xd7, 0x00, 0xff, 0xff, 0x00, 0x0d, 0xfe, 0xff, /* BTH */
    0x80, 0x00, 0x00, 0x04,                         /* A, TSN */
    0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, /* flow, tag */
    0xfe, 0xdc, 0xba, 0x98, 0x00, 0x00, 0x00, 0x07, /* tag, PSN */
    0x00, 0x07, 0x12, 0x00, 0xff, 0x00, 0x00, 0x00, /* back 7, round 18; slot 255 */
    0x00, 0x00, 0x00, 0x00, 0x20, 0x10, 0x00, 0x00, /* path 2, version 1 */
};

static const uint8_t path_challenge_bytes[] = {
    0xd8, 0x00, 0xff, 0xff, 0x00, 0x02, 0xfe, 0xff, /* BTH */
    0x00, 0x00, 0x00, 0x07,                         /* TSN */
    0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, /* flow, tag */
    0xfe, 0xdc, 0xba, 0x98, 0xf1, 0xe2, 0xd3, 0xc4, /* tag, number */
    0xb5, 0xa6, 0x97, 0x88, 0x03, 0x00, 0x82, 0x10, /* number; slot 3; of the target, 2 GIDs */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* ::ffff:10.0.0.2 */
    0x00, 0x00, 0xff, 0xff, 0x0a, 0x00, 0x00, 0x02, 0xfd, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, /* fd00::5 */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,                         /* no third one */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

static const uint8_t path_response_bytes[84] = {
    0xd9, 0x00, 0xff, 0xff, 0x00, 0x02, 0xfe, 0xff, /* BTH */
    0x00, 0x00, 0x00, 0x08,                         /* TSN */
    0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, /* flow, tag */
    0xfe, 0xdc, 0xba, 0x98, 0xf1, 0xe2, 0xd3, 0xc4, /* tag, number */
    0xb5, 0xa6, 0x97, 0x88, 0x00, 0x00, 0x00, 0x10, /* number; slot 0, of the sender, no GIDs */
};

/* Bits that cannot be turned without another verdict than SRD_GOOD, and which. A list ends with
 * byte 0. */
struct refused_bits {
    uint8_t at, bits;
    enum srd_verdict verdict;
};

static const struct refused_bits refused_in_bth[] = {
    {1, 0x0f, SRD_WRONG_VERSION}, {1, 0xc0, SRD_RESERVED_BITS}, {2, 0xff, SRD_WRONG_PKEY},
    {3, 0xff, SRD_WRONG_PKEY},    {4, 0xff, SRD_RESERVED_BITS}, {6, 0xff, SRD_WRONG_PORT},
    {7, 0xff, SRD_WRONG_PORT},    {8, 0x7f, SRD_RESERVED_BITS}, {0, 0xff, SRD_GOOD},
};

/* Requests: both names of the slot; back, version and zeroes. */
#define REFUSED_IN_FXH                                                                             \
    {5, 0xff, SRD_WRONG_PORT}, {28, 0xfc, SRD_WRONG_BACK}, {34, 0xff, SRD_WRONG_PORT},             \
        {41, 0xf0, SRD_OTHER_VERSION}, {40, 0x01, SRD_RESERVED_BITS},                              \
    {                                                                                              \
        41, 0x0f, SRD_RESERVED_BITS                                                                \
    }
#define REFUSED(at, bits, verdict)                                                                 \
    {                                                                                              \
        (at), (bits), (verdict)                                                                    \
    }
#define REFUSED_PAD REFUSED(1, 0x30, SRD_WRONG_PAD)
/* A chunk of one bit is one of 0 without it. */
#define REFUSED_CHUNK_BELOW_64 REFUSED(43, 0x3f, SRD_WRONG_CHUNK)

struct example {
    const char *name;
    const uint8_t *bytes;
    size_t count;
    size_t headers_bytes; /* BTH and all that does not repeat. */
    struct srd_packet packet;
    struct refused_bits refused[28];
};

#define EXAMPLE(text, array, headers)                                                              \
    .name = (text), .bytes = (array), .count = sizeof(array), .headers_bytes = (headers)

static const struct example examples[] = {
    {EXAMPLE("SRD SEND", send_bytes, 52),
     .packet = {.opcode = SRD_SEND,
                .ack_request = true,
                .destination_qpn = 0x5feff,
                .tsn = 0x123456,
                .flow = 0xdeadbeef,
                .tag = 0x0102030405060708,
                .path = 3,
                .psn = 0xfffffffe,
                .back = 1023,
                .index = 1,
                .last = 1,
                .source_qpn = 0x1234,
                .target_qpn = 0x0567,
                .qkey = 0x0a0b0c0d,
                .chunk_bytes = 1024,
                .has_immediate = true,
                .resent = true,
                .message_bytes = 1027,
                .immediate = 0x34333231,
                .payload_bytes = 3},
     .refused = {REFUSED_IN_FXH,
                 REFUSED(1, 0x30, SRD_WRONG_PAYLOAD),  /* 2 or 0 bytes, or none at all. */
                 REFUSED(30, 0x01, SRD_WRONG_PAYLOAD), /* Packet 0 is full. */
                 REFUSED(30, 0xfe, SRD_WRONG_INDEX),   /* Behind the last one. */
                 REFUSED(31, 0x01, SRD_WRONG_INDEX),   /* The last one is packet 0, */
                 REFUSED(31, 0xc0, SRD_WRONG_INDEX),   /* or beyond 63; */
                 REFUSED(31, 0x3e, SRD_WRONG_PAYLOAD), /* or others than 1027 bytes need. */
                 REFUSED(40, 0x08, SRD_WRONG_FLAGS),   /* Immediate data without I. */
                 REFUSED(40, 0x02, SRD_WRONG_FLAGS),   /* A SEND always takes a receive. */
                 REFUSED(42, 0xf0, SRD_WRONG_CHUNK),   /* 5,120 and more. */
                 REFUSED(42, 0x04, SRD_WRONG_CHUNK),   /* 0. */
                 REFUSED(42, 0x0b, SRD_WRONG_PAYLOAD), REFUSED_CHUNK_BELOW_64,
                 REFUSED(43, 0xc0, SRD_WRONG_PAYLOAD), REFUSED(44, 0xff, SRD_WRONG_PAYLOAD),
                 REFUSED(45, 0xff, SRD_WRONG_PAYLOAD), REFUSED(46, 0xff, SRD_WRONG_PAYLOAD),
                 REFUSED(47, 0xff, SRD_WRONG_PAYLOAD)}},
    {EXAMPLE("SRD WRITE", write_bytes, 68),
     .packet = {.opcode = SRD_WRITE,
                .destination_qpn = 0xfeff,
                .tsn = 0xffffff,
                .flow = 1,
                .tag = 0x1112131415161718,
                .psn = 42,
                .source_qpn = 2,
                .target_qpn = 0xfb,
                .qkey = 1,
                .chunk_bytes = 4096,
                .has_immediate = true,
                .unsolicited = true,
                .address = 0x2122232425262728,
                .key = 0x31323334,
                .message_bytes = 4,
                .immediate = 0x44434241,
                .payload_bytes = 4},
     .refused = {REFUSED_IN_FXH,
                 /* 1 to 3 bytes of 4 may be those of one instance out of several. */
                 REFUSED(30, 0xff, SRD_WRONG_INDEX), REFUSED(31, 0xc0, SRD_WRONG_INDEX),
                 REFUSED(31, 0x3f, SRD_WRONG_PAYLOAD), /* Not the last: it is not full. */
                 REFUSED(40, 0x08, SRD_WRONG_FLAGS),
                 REFUSED(42, 0xef, SRD_WRONG_CHUNK), /* Beyond 4,096. */
                 REFUSED(42, 0x10, SRD_WRONG_CHUNK), REFUSED(43, 0xff, SRD_WRONG_CHUNK),
                 REFUSED(59, 0x04, SRD_WRONG_PAYLOAD), /* 4 bytes of none. */
                 REFUSED(64, 0xff, SRD_RESERVED_BITS), REFUSED(65, 0xff, SRD_RESERVED_BITS),
                 REFUSED(66, 0xff, SRD_RESERVED_BITS), REFUSED(67, 0xff, SRD_RESERVED_BITS)}},
    {EXAMPLE("SRD READ", read_bytes, 68),
     .packet = {.opcode = SRD_READ,
                .ack_request = true,
                .destination_qpn = 0xfffeff,
                .tsn = 1,
                .flow = 0x0a0b0c0d,
                .tag = 2,
                .path = 15,
                .psn = 0x80000000,
                .back = 1,
                .source_qpn = 0x0102,
                .target_qpn = 0xff02,
                .chunk_bytes = 512,
                .message_bytes = 1025,
                .address = 0xf1f2f3f4f5f6f7f8,
                .key = 0x01020304,
                .wanted = 5},
     .refused = {REFUSED_IN_FXH,
                 REFUSED_PAD,
                 REFUSED(30, 0xff, SRD_WRONG_INDEX),
                 REFUSED(31, 0xff, SRD_WRONG_INDEX),
                 REFUSED(40, 0x0a, SRD_WRONG_FLAGS),
                 REFUSED(42, 0xf2, SRD_WRONG_CHUNK),
                 REFUSED_CHUNK_BELOW_64,
                 REFUSED(42, 0x0d, SRD_WRONG_WANTED),
                 /* Two packets or one, */ REFUSED(43, 0xc0, SRD_WRONG_WANTED), /* as here. */
                 REFUSED(56, 0xff, SRD_WRONG_INDEX), /* More than 64 x 512. */
                 REFUSED(57, 0xff, SRD_WRONG_INDEX),
                 REFUSED(58, 0x80, SRD_WRONG_INDEX),
                 REFUSED(58, 0x04, SRD_WRONG_WANTED), /* 1 byte. */
                 REFUSED(59, 0x01, SRD_WRONG_WANTED), /* 1,024. */
                 REFUSED(60, 0xff, SRD_WRONG_WANTED),
                 REFUSED(61, 0xff, SRD_WRONG_WANTED),
                 REFUSED(62, 0xff, SRD_WRONG_WANTED),
                 REFUSED(63, 0xff, SRD_WRONG_WANTED),
                 REFUSED(64, 0xff, SRD_WRONG_WANTED),
                 REFUSED(65, 0xff, SRD_WRONG_WANTED),
                 REFUSED(66, 0xff, SRD_WRONG_WANTED),
                 REFUSED(67, 0xf8, SRD_WRONG_WANTED)}},
    {EXAMPLE("SRD Data", data_bytes, 36),
     .packet = {.opcode = SRD_DATA,
                .destination_qpn = 0x9feff,
                .tsn = 3,
                .flow = 0x0a0b0c0d,
                .tag = 0x0100000000000002,
                .path = 7,
                .psn = 0x80000000,
                .index = 63,
                .chunk_bytes = 512,
                .payload_bytes = 2},
     .refused = {REFUSED(28, 0xc0, SRD_WRONG_INDEX), REFUSED(29, 0xff, SRD_RESERVED_BITS),
                 REFUSED(30, 0xf2, SRD_WRONG_CHUNK), REFUSED(31, 0x3f, SRD_WRONG_CHUNK),
                 REFUSED(32, 0x0f, SRD_RESERVED_BITS), REFUSED(33, 0xff, SRD_RESERVED_BITS),
                 REFUSED(34, 0xff, SRD_RESERVED_BITS), REFUSED(35, 0xff, SRD_RESERVED_BITS)}},
    {EXAMPLE("SRD Answer", answer_bytes, 44),
     .packet = {.opcode = SRD_ANSWER,
                .destination_qpn = 0xbfeff,
                .tsn = 99,
                .flow = 0x01234567,
                .tag = 0x89abcdeffedcba98,
                .answer = {.taken_before = 0xfffffff0,
                           .more = true,
                           .answers_probe = true,
                           .echo_path = 3,
                           .echo_tsn = 0x44,
                           .echo_delay_ns = 12345,
                           .ce_marked = 2,
                           .duplicates = 5,
                           .credits = 256,
                           .record_count = 2,
                           .records = {{0xfffffff1, SRD_KIND_NO_RECEIVE, 0, 5, 0x8000000000000005},
                                       {0x33, SRD_KIND_REFUSED, SRD_STATUS_BAD_QPN, 0, 1}}}},
     .refused = {REFUSED_PAD, REFUSED(24, 0xff, SRD_WRONG_RECORD), /* CUM far from its records, */
                 REFUSED(25, 0xff, SRD_WRONG_RECORD), REFUSED(26, 0xfc, SRD_WRONG_RECORD),
                 REFUSED(27, 0x0e, SRD_WRONG_RECORD), REFUSED(28, 0x01, SRD_RESERVED_BITS),
                 REFUSED(38, 0xff, SRD_WRONG_COUNT), REFUSED(39, 0xff, SRD_RESERVED_BITS),
                 REFUSED(42, 0xff, SRD_RESERVED_BITS), REFUSED(43, 0xff, SRD_RESERVED_BITS)}},
    {EXAMPLE("SRD HELLO", hello_bytes, 76),
     .packet = {.opcode = SRD_HELLO,
                .destination_qpn = 0xffeff,
                .tsn = 5,
                .flow = 0xcafef00d,
                .source_qpn = 0xab00},
     .refused = {REFUSED_PAD, REFUSED(16, 0xff, SRD_OTHER_VERSION),
                 REFUSED(17, 0xff, SRD_RESERVED_BITS), REFUSED(19, 0xff, SRD_RESERVED_BITS)}},
    {EXAMPLE("SRD CHALLENGE", challenge_bytes, 44),
     .packet = {.opcode = SRD_CHALLENGE,
                .destination_qpn = 0x1feff,
                .tsn = 6,
                .flow = 0xcafef00d,
                .tag = 0x0102030405060708,
                .challenge = {0xb007b007, SRD_REASON_STALE, 0x12345678}},
     .refused = {REFUSED_PAD, REFUSED(28, 0xff, SRD_OTHER_VERSION),
                 REFUSED(29, 0x02, SRD_RESERVED_BITS), /* Reason 1 echoes no PSN. */
                 REFUSED(29, 0xfd, SRD_UNKNOWN_VALUE), REFUSED(30, 0xff, SRD_UNKNOWN_VALUE),
                 REFUSED(31, 0xff, SRD_RESERVED_BITS), REFUSED(36, 0xff, SRD_RESERVED_BITS),
                 REFUSED(37, 0xff, SRD_RESERVED_BITS), REFUSED(38, 0xff, SRD_RESERVED_BITS),
                 REFUSED(39, 0xff, SRD_RESERVED_BITS), REFUSED(40, 0xff, SRD_RESERVED_BITS),
                 REFUSED(41, 0xff, SRD_RESERVED_BITS), REFUSED(42, 0xff, SRD_RESERVED_BITS),
                 REFUSED(43, 0xff, SRD_RESERVED_BITS)}},
    {EXAMPLE("SRD Probe", probe_bytes, 44),
     .packet = {.opcode = SRD_PROBE,
                .ack_request = true,
                .destination_qpn = 0xdfeff,
                .tsn = 4,
                .flow = 0x01234567,
                .tag = 0x89abcdeffedcba98,
                .path = 2,
                .psn = 7,
                .back = 7,
                .index = 18,
                .source_qpn = 0xff00},
     .refused = {REFUSED_PAD, REFUSED(28, 0xfc, SRD_WRONG_BACK), REFUSED(31, 0xff, SRD_WRONG_INDEX),
                 REFUSED(33, 0xff, SRD_RESERVED_BITS), REFUSED(34, 0xff, SRD_WRONG_FLAGS),
                 REFUSED(35, 0xff, SRD_WRONG_FLAGS), REFUSED(36, 0xff, SRD_WRONG_FLAGS),
                 REFUSED(37, 0xff, SRD_WRONG_FLAGS), REFUSED(38, 0xff, SRD_WRONG_FLAGS),
                 REFUSED(39, 0xff, SRD_WRONG_FLAGS), REFUSED(40, 0x0e, SRD_WRONG_FLAGS),
                 REFUSED(40, 0x01, SRD_RESERVED_BITS), REFUSED(41, 0xf0, SRD_OTHER_VERSION),
                 REFUSED(41, 0x0f, SRD_RESERVED_BITS), REFUSED(42, 0xff, SRD_WRONG_CHUNK),
                 REFUSED(43, 0xff, SRD_WRONG_CHUNK)}},
    {EXAMPLE("SRD PATH CHALLENGE", path_challenge_bytes, 84),
     .packet = {.opcode = SRD_PATH_CHALLENGE,
                .destination_qpn = 0x2feff,
                .tsn = 7,
                .flow = 0x01234567,
                .tag = 0x89abcdeffedcba98,
                .source_qpn = 0x0300,
                .path_challenge = {.number = 0xf1e2d3c4b5a69788,
                                   .of_target = true,
                                   .gid_count = 2,
                                   .gids = {{[10] = 0xff, 0xff, 10, 0, 0, 2},
                                            {[0] = 0xfd, [15] = 5}}}},
     .refused = {REFUSED_PAD, REFUSED(33, 0xff, SRD_RESERVED_BITS),
                 REFUSED(34, 0x7c, SRD_RESERVED_BITS),
                 REFUSED(34, 0x02, SRD_RESERVED_BITS), /* The second address is not 0. */
                 REFUSED(35, 0xf0, SRD_OTHER_VERSION), REFUSED(35, 0x0f, SRD_RESERVED_BITS)}},
    {EXAMPLE("SRD PATH RESPONSE", path_response_bytes, 84),
     .packet = {.opcode = SRD_PATH_RESPONSE,
                .destination_qpn = 0x2feff,
                .tsn = 8,
                .flow = 0x01234567,
                .tag = 0x89abcdeffedcba98,
                .path_challenge.number = 0xf1e2d3c4b5a69788},
     .refused = {REFUSED_PAD, REFUSED(33, 0xff, SRD_RESERVED_BITS),
                 REFUSED(34, 0x7c, SRD_RESERVED_BITS), REFUSED(35, 0xf0, SRD_OTHER_VERSION),
                 REFUSED(35, 0x0f, SRD_RESERVED_BITS)}},
};

/* -- Decoding and encoding --------------------------------------------------------------------- */

/* Decodes a copy in a buffer of exactly its size, in one place. */
static enum srd_verdict decode_copy(const uint8_t *bytes, size_t count, struct srd_packet *packet)
{
    uint8_t *copy = malloc(count);
    assert_true(count == 0 || copy != NULL);
    memcpy(copy, bytes, count);
    const enum srd_verdict verdict = srd_decode(copy, count, NULL, 0, packet);
    free(copy);
    return verdict;
}

/* Likewise headers in one place; the payload, which is not to be read, does not exist. */
static enum srd_verdict decode_split(const uint8_t *bytes, size_t headers_bytes,
                                     size_t padded_bytes, struct srd_packet *packet)
{
    uint8_t *copy = malloc(headers_bytes), elsewhere;
    assert_true(headers_bytes == 0 || copy != NULL);
    memcpy(copy, bytes, headers_bytes);
    const enum srd_verdict verdict =
        srd_decode(copy, headers_bytes, &elsewhere, padded_bytes, packet);
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
        struct srd_packet expected = example->packet, packet;
        uint8_t elsewhere;
        const size_t padded_bytes =
            has_payload(example) ? example->count - example->headers_bytes : 0;
        const size_t headers_bytes = example->count - padded_bytes;

        memset(&packet, 0, sizeof(packet));
        assert_int_equal(srd_decode(example->bytes, example->count, NULL, 0, &packet), SRD_GOOD);
        expected.payload = has_payload(example) ? example->bytes + headers_bytes : NULL;
        assert_memory_equal(&packet, &expected, sizeof(packet));

        memset(&packet, 0, sizeof(packet));
        assert_int_equal(
            srd_decode(example->bytes, headers_bytes, &elsewhere, padded_bytes, &packet), SRD_GOOD);
        expected.payload = has_payload(example) ? &elsewhere : NULL;
        assert_memory_equal(&packet, &expected, sizeof(packet));

        /* Every bit of the headers is written, and no byte behind them. */
        uint8_t room[SRD_HEADERS_BYTES_MAX + 1], untouched[SRD_HEADERS_BYTES_MAX + 1];
        memset(room, 0xa5, sizeof(room));
        memset(untouched, 0xa5, sizeof(untouched));
        assert_int_equal(srd_encode(&expected, room), headers_bytes);
        assert_memory_equal(room, example->bytes, headers_bytes);
        assert_memory_equal(room + headers_bytes, untouched, sizeof(room) - headers_bytes);
        assert_string_equal(srd_opcode_name(example->bytes[0]), example->name);
    }
}

static enum srd_verdict refused(const struct refused_bits *list, size_t at, uint8_t bit)
{
    for (; list->at != 0; list++) {
        if (list->at == at && (list->bits & bit) != 0) {
            return list->verdict;
        }
    }
    return SRD_GOOD;
}

/* The bytes behind HELLO's slot, and those of addresses that are not there. */
static bool is_zero(const struct example *example, size_t at)
{
    return (example->bytes == hello_bytes && at > 19) ||
           (example->bytes == path_challenge_bytes && at >= 36 + 2 * 16) ||
           (example->bytes == path_response_bytes && at >= 36);
}

/* SRD-20. The records of an answer are turned in a test of their own. */
static void test_turned_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        const struct example *example = &examples[i];
        const size_t count = example->bytes == answer_bytes ? 44 : example->count;
        for (size_t bit = 8; bit < 8 * count; bit++) {
            uint8_t bytes[SRD_HEADERS_BYTES_MAX], headers[SRD_HEADERS_BYTES_MAX];
            const size_t at = bit / 8;
            const uint8_t mask = (uint8_t)(0x80 >> bit % 8);
            struct srd_packet packet;

            memcpy(bytes, example->bytes, example->count);
            bytes[at] ^= mask;
            enum srd_verdict expected = refused(refused_in_bth, at, mask);
            expected = expected == SRD_GOOD ? refused(example->refused, at, mask) : expected;
            expected = is_zero(example, at) ? SRD_RESERVED_BITS : expected;
            assert_int_equal(decode_copy(bytes, example->count, &packet), expected);
            if (expected == SRD_GOOD) {
                assert_memory_equal(headers, bytes, srd_encode(&packet, headers));
            }
        }
    }
}

/* SRD-20: every value of every byte of a record that is not a number or a set, beside the rule. */
static void test_records(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 256; kind++) {
        for (unsigned status = 0; status < 256; status++) {
            for (unsigned wait = 0; wait < 16; wait++) {
                uint8_t bytes[sizeof(answer_bytes)];
                struct srd_packet packet;
                memcpy(bytes, answer_bytes, sizeof(bytes));
                bytes[48] = (uint8_t)kind;
                bytes[49] = (uint8_t)status;
                bytes[50] = (uint8_t)wait;
                const bool refuses =
                    status == 7 || status == 9 || status == 11 || status == 14 || status == 18;
                enum srd_verdict expected = SRD_GOOD;
                if (kind > 2 || wait > 13 || (kind == 2 && !refuses)) {
                    expected = SRD_UNKNOWN_VALUE;
                } else if ((kind != 2 && status != 0) || (kind != 1 && wait != 0)) {
                    expected = SRD_RESERVED_BITS;
                }
                assert_int_equal(decode_copy(bytes, sizeof(bytes), &packet), expected);
                bytes[51] = 1;
                expected = expected == SRD_GOOD ? SRD_RESERVED_BITS : expected;
                assert_int_equal(decode_copy(bytes, sizeof(bytes), &packet), expected);
            }
        }
    }
}

/* The verdict on an example that is cut or continued with zeros. */
static enum srd_verdict model_length(const struct example *example, size_t count)
{
    const size_t more = count - example->headers_bytes;
    if (count < example->headers_bytes) {
        return SRD_SHORT;
    }
    if (example->bytes == answer_bytes) {
        return more == 32 ? SRD_GOOD : SRD_WRONG_COUNT;
    }
    if (!has_payload(example)) {
        return more != 0 ? SRD_TOO_LONG : SRD_GOOD;
    }
    const size_t pad = example->bytes[1] >> 4 & 3;
    if (more % 4 != 0 || more < pad) {
        return SRD_WRONG_PAD;
    }
    if (more - pad > 4096) {
        return SRD_TOO_LONG;
    }
    const size_t bytes = more - pad;
    const bool fits =
        example->bytes == data_bytes ? bytes >= 1 && bytes <= 512 : count == example->count;
    return fits ? SRD_GOOD : SRD_WRONG_PAYLOAD;
}

/* SRD-20 */
static void test_lengths(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        const struct example *example = &examples[i];
        for (size_t count = 0; count < 4200; count++) {
            uint8_t bytes[4200] = {0};
            struct srd_packet packet;

            memcpy(bytes, example->bytes, count < example->count ? count : example->count);
            const enum srd_verdict expected = model_length(example, count);
            assert_int_equal(decode_copy(bytes, count, &packet), expected);

            /* In two places. Headers have one length, and nothing is behind what has no payload. */
            const bool answer = example->bytes == answer_bytes;
            const size_t headers_bytes = answer ? example->count : example->headers_bytes;
            if (count >= headers_bytes) {
                const size_t more = count - headers_bytes;
                assert_int_equal(decode_split(bytes, headers_bytes, more, &packet),
                                 answer && more != 0 ? SRD_TOO_LONG : expected);
                assert_int_equal(decode_split(bytes, headers_bytes + 4, more, &packet),
                                 answer ? SRD_WRONG_COUNT : SRD_TOO_LONG);
            } else if (!answer) {
                assert_int_equal(decode_split(bytes, count, 0, &packet), SRD_SHORT);
            }
        }
    }
}

/* SRD-20: the longest of each format, by its own sums. */
static void test_greatest_lengths(void **state)
{
    (void)state;
    uint8_t bytes[SRD_HEADERS_BYTES_MAX];
    struct srd_packet packet = {.opcode = SRD_ANSWER, .answer.record_count = 3};

    assert_int_equal(SRD_HEADERS_BYTES_MAX, 92);
    assert_int_equal(SRD_PAYLOAD_HEADERS_BYTES_MAX, 68);
    assert_int_equal(srd_encode(&packet, bytes), 92);
    packet = (struct srd_packet){.opcode = SRD_HELLO};
    assert_int_equal(srd_encode(&packet, bytes), 76);
}

static void test_opcodes(void **state)
{
    (void)state;
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const bool known = opcode >= 0xd0 && opcode <= 0xd9;
        uint8_t bytes[64] = {(uint8_t)opcode, 0, 0xff, 0xff};
        struct srd_packet packet;
        struct roce_packet roce;

        assert_int_equal(srd_is((uint8_t)opcode), known);
        assert_int_equal(srd_opcode_name((uint8_t)opcode) != NULL, known);
        if (known) {
            /* So a NIC has to ask srd_is only of what roce_decode does not know. */
            assert_int_equal(roce_decode(bytes, sizeof(bytes), &roce), ROCE_UNKNOWN_OPCODE);
        } else {
            assert_int_equal(decode_copy(bytes, sizeof(bytes), &packet), SRD_UNKNOWN_OPCODE);
        }
    }
}

static void test_names(void **state)
{
    (void)state;
    for (unsigned a = 0; a < SRD_VERDICT_COUNT; a++) {
        for (unsigned b = 0; b < a; b++) {
            assert_string_not_equal(srd_verdict_name(a), srd_verdict_name(b));
        }
    }
    for (unsigned status = 0; status < 256; status++) {
        const bool known = status <= 15 || status == 18;
        assert_int_equal(srd_status_name((uint8_t)status) != NULL, known);
    }
}

/* Values wider than their fields are cut, and do not spill into the neighbours. */
static void test_wide_values(void **state)
{
    (void)state;
    struct srd_packet packet = {
        .opcode = SRD_PROBE, .destination_qpn = 0xff00feff, .tsn = 0xff000002, .path = 0xf3};
    uint8_t bytes[SRD_HEADERS_BYTES_MAX];

    assert_int_equal(srd_encode(&packet, bytes), 44);
    assert_memory_equal(bytes + 4, "\x00\x00\xfe\xff\x00\x00\x00\x02", 8);
    assert_memory_equal(bytes + 40, "\x30\x10\x00\x00", 4);
    packet = (struct srd_packet){.opcode = SRD_ANSWER,
                                 .answer = {.echo_path = 0xf5, .echo_tsn = 0xff000003}};
    assert_int_equal(srd_encode(&packet, bytes), 44);
    assert_memory_equal(bytes + 28, "\x50\x00\x00\x03", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_turned_bits),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_greatest_lengths),
        cmocka_unit_test(test_opcodes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_wide_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
