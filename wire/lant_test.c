/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The flits of Lant's packets are as wire/lant.h says, bit by bit.
 * Method  Flits that another program computed; each field alone at its ends, in its place; packets
 *         of all types there and back by chance. Behaviours LNI-01, 02, 04, 09 and 10. The codes
 *         are tested in lant_codes_test.c, what is refused in lant_shape_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "wire/lant_test_packet.h"

#define ROUNDS 20000

/* -- Flits by hand ------------------------------------------------------------------------------*/

/* The flits come from an independent computation: a Python program that writes the fields as binary
 * digits, from bit 63 down, makes the Hamming code place by place, and divides bit by bit for the
 * CRC. */
static const struct golden {
    struct lant_packet packet;
    uint64_t flits[6];
    uint32_t count;
} golden[] = {
    {{.header = {.destination = 0x14805,
                 .type = LANT_AR,
                 .epoch = 1,
                 .priority = 3,
                 .lock = true,
                 .address = 0x11110000,
                 .strobe = 0xff,
                 .size = 3,
                 .protection = 2},
      .footer = {.source = 0x14403,
                 .row = 5,
                 .generation = 0xa7,
                 .bus_id = 0x42,
                 .operation = 0x9ab,
                 .offset = 0x1cdef}},
     {0x0520144000007853, 0x00044440003fda51, 0x05100c001453a171, 0x9abe6f7837016c0d},
     4},
    {{.header = {.destination = 0x3fffff,
                 .type = LANT_AW,
                 .payload = 1,
                 .age = 15,
                 .epoch = 3,
                 .priority = 3,
                 .address = 0x3fffffffff8,
                 .strobe = 0x0f,
                 .size = 2,
                 .protection = 7},
      .footer = {.row = 15,
                 .bus_id = 0xff,
                 .generation = 0xff,
                 .operation = 0xfff,
                 .offset = 0x1ffff,
                 .attempt = 7},
      .payload = {0x0706050403020100}},
     {0xfffffc80800ff03a, 0xfffffffffe03d76e, 0x0706050403020100, 0x000000003c7fffda,
      0xffffffff9c26b717},
     5},
    {{.header = {.destination = 0x14805,
                 .type = LANT_RDMA_WRITE_REGISTER,
                 .payload = 2,
                 .packets = 3,
                 .priority = 1,
                 .address = 0x2a000001000,
                 .strobe = 0x03,
                 .size = 3},
      .footer = {.source = 0x14403,
                 .class = LANT_CLASS_RDMA,
                 .row = 9,
                 .generation = 0x5c,
                 .operation = 0x3d7},
      .payload = {0x0706050403020100, 0x0f0e0d0c0b0a0908}},
     {0x052015810030102c, 0xa80000040000d859, 0x0706050403020100, 0x0f0e0d0c0b0a0908,
      0x05100d00242e0042, 0x3d700000c41a7621},
     6},
    {{.header = {.destination = 0x14403,
                 .type = LANT_RDMA_UNREGISTERED,
                 .payload = 1,
                 .age = 2,
                 .keyhole = true,
                 .extended = true,
                 .address = 0x2000,
                 .strobe = 0xff,
                 .size = 3,
                 .sequence = 0xdeadbeef,
                 .total = 0x1fffffe},
      .footer = {.source = 0x14805,
                 .class = LANT_CLASS_RDMA,
                 .generation = 0x5c,
                 .bus_id = 1,
                 .operation = 0x3d8,
                 .offset = 131071,
                 .attempt = 2},
      .payload = {0x0f0e0d0c0b0a0908}},
     {0x05100dc08002064e, 0x00000008003fd864, 0xdeadbeefffffff28, 0x0f0e0d0c0b0a0908,
      0x05201500002e0082, 0x3d8ffffa3d61cde2},
     6},
    {{.header = {.destination = 0x14403, .type = LANT_RDMA_ACK, .priority = 1},
      .footer = {.source = 0x14805,
                 .class = LANT_CLASS_RDMA,
                 .row = 9,
                 .response = LANT_NACK_CRC,
                 .generation = 0x5c,
                 .operation = 0x3d7,
                 .attempt = 1}},
     {0x05100e0000001054, 0x0000000000000000, 0x05201500262e001c, 0x3d700001c24756d8},
     4},
    {{.header = {.destination = 0x14805,
                 .type = LANT_COMPLETION_NOTIFICATION,
                 .payload = 1,
                 .age = 1,
                 .epoch = 2,
                 .priority = 2,
                 .address = 0x1000,
                 .strobe = 0xff,
                 .size = 3},
      .footer = {.source = 0x14403,
                 .class = LANT_CLASS_NOTIFICATION,
                 .row = 0x3fff,
                 .generation = 0x5c,
                 .operation = 0x3d7},
      .payload = {0x000004003d712345}},
     {0x052016408001a068, 0x00000004003fd825, 0x000004003d712345, 0x05100efffc2e007e,
      0x3d700000f44c274a},
     5},
};

static void test_golden(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(golden); i++) {
        uint64_t flits[LANT_PACKET_FLITS_MAX];
        struct lant_packet packet;
        uint32_t repaired = 99;
        assert_int_equal(lant_encode(&golden[i].packet, flits), golden[i].count);
        assert_memory_equal(flits, golden[i].flits, golden[i].count * sizeof(flits[0]));
        assert_int_equal(lant_decode(flits, golden[i].count, &packet, &repaired), LANT_WHOLE);
        assert_int_equal(repaired, 0);
        assert_true(packets_equal(&packet, &golden[i].packet));
    }
}

/* -- Field by field -----------------------------------------------------------------------------*/

enum flit {
    H1,
    H2,
    H3,
    F1,
    F2,
};

enum base {
    DATA, /* For a keyhole, of a registered operation. */
    STORE,
    ANSWER, /* A NACK. */
    BASES,
};

static const struct lant_packet bases[BASES] = {
    [DATA] = {.header = {.type = LANT_RDMA_WRITE_REGISTER,
                         .payload = 1,
                         .packets = 1,
                         .keyhole = true,
                         .extended = true},
              .footer = {.class = LANT_CLASS_RDMA}},
    [STORE] = {.header = {.type = LANT_AW, .payload = 1}},
    [ANSWER] = {.header = {.type = LANT_RDMA_ACK}, .footer = {.class = LANT_CLASS_RDMA}},
};

#define MEMBER(name)                                                                               \
    offsetof(struct lant_packet, name), sizeof(((const struct lant_packet *)0)->name)

/* All fields, but for LEN and EXT, which change the count of flits. */
static const struct row {
    size_t offset, bytes;
    enum flit flit;
    uint32_t at, bits;
    enum base base;
    bool illegal; /* Some of the values contradict others. */
} rows[] = {
    {MEMBER(header.destination), H1, 42, 22, DATA, false},
    {MEMBER(header.type), H1, 38, 4, DATA, true},
    {MEMBER(header.packets), H1, 20, 11, DATA, true},
    {MEMBER(header.age), H1, 16, 4, DATA, false},
    {MEMBER(header.epoch), H1, 14, 2, DATA, false},
    {MEMBER(header.priority), H1, 12, 2, DATA, false},
    {MEMBER(header.lock), H1, 11, 1, STORE, false},
    {MEMBER(header.keyhole), H1, 10, 1, DATA, true},
    {MEMBER(header.address), H2, 22, 42, DATA, false},
    {MEMBER(header.strobe), H2, 14, 8, DATA, false},
    {MEMBER(header.size), H2, 11, 3, DATA, false},
    {MEMBER(header.protection), H2, 8, 3, DATA, false},
    {MEMBER(header.sequence), H3, 32, 32, DATA, false},
    {MEMBER(header.total), H3, 7, 25, DATA, false},
    {MEMBER(footer.source), F1, 42, 22, DATA, false},
    {MEMBER(footer.class), F1, 40, 2, ANSWER, true},
    {MEMBER(footer.row), F1, 26, 14, DATA, false},
    {MEMBER(footer.response), F1, 23, 3, ANSWER, false},
    {MEMBER(footer.generation), F1, 15, 8, DATA, false},
    {MEMBER(footer.bus_id), F1, 7, 8, DATA, false},
    {MEMBER(footer.operation), F2, 52, 12, DATA, false},
    {MEMBER(footer.offset), F2, 35, 17, DATA, false},
    {MEMBER(footer.attempt), F2, 32, 3, DATA, false},
};

/* Only the field's bits and the flit's code differ from the base. */
static void check_value(const struct row *row, uint64_t value)
{
    const uint64_t code = row->flit == F2 ? 0xffffffff : 0x7f;
    const uint64_t mask = ((UINT64_C(1) << row->bits) - 1) << row->at;
    struct lant_packet packet = bases[row->base], decoded;
    uint64_t base[LANT_PACKET_FLITS_MAX], flits[LANT_PACKET_FLITS_MAX];
    struct lant_header head;
    uint32_t repaired;

    memcpy((uint8_t *)&packet + row->offset, &value, row->bytes);
    const uint32_t count = lant_encode(&packet, flits);
    assert_int_equal(lant_encode(&bases[row->base], base), count);
    const uint32_t at = row->flit >= F1 ? count - 2 + (row->flit - F1) : (uint32_t)row->flit;
    assert_true((flits[at] & mask) == value << row->at);
    assert_true((flits[at] & ~(mask | code)) == (base[at] & ~(mask | code)));

    assert_int_equal(lant_head_decode(flits[0], &head), LANT_CLEAN);
    assert_true(heads_equal(&head, &packet.header));
    const enum lant_verdict verdict = lant_decode(flits, count, &decoded, &repaired);
    assert_true(verdict == LANT_WHOLE || row->illegal);
    assert_true(verdict != LANT_WHOLE || packets_equal(&decoded, &packet));
}

/* LNI-01: 0, 1 and the greatest value, in its place. */
static void test_each_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_value(&rows[i], 0);
        check_value(&rows[i], 1);
        check_value(&rows[i], (UINT64_C(1) << rows[i].bits) - 1);
    }
}

/* LNI-01: LEN and EXT; reserved bits are 0 in all packets. */
static void test_there_and_back(void **state)
{
    (void)state;
    struct prng prng;
    uint32_t extended = 0;
    prng_init(&prng, 1);
    for (int round = 0; round < ROUNDS; round++) {
        const enum lant_type type = (enum lant_type)(1 + round % (LANT_TYPE_COUNT - 1));
        const struct lant_packet sent = any_packet(&prng, type);
        struct lant_packet got;
        uint64_t flits[LANT_PACKET_FLITS_MAX];
        uint32_t repaired = 99;

        const uint32_t count = lant_encode(&sent, flits);
        assert_int_equal(flits[0] >> 31 & 0x7f, sent.header.payload);
        assert_int_equal(flits[0] >> 9 & 1, sent.header.extended);
        assert_int_equal(flits[0] >> 7 & 3, 0);
        assert_int_equal(flits[1] >> 7 & 1, 0);
        assert_int_equal(lant_decode(flits, count, &got, &repaired), LANT_WHOLE);
        assert_int_equal(repaired, 0);
        assert_true(packets_equal(&sent, &got));
        extended += got.header.extended;
    }
    assert_in_range(extended, ROUNDS / 20, ROUNDS / 10);
}

/* -- Sizes and places ---------------------------------------------------------------------------*/

static uint32_t flits_of(enum lant_type type, uint32_t payload_bytes)
{
    struct prng prng;
    prng_init(&prng, 1);
    struct lant_packet packet = any_packet(&prng, type);
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    if (payload_bytes > 0) {
        packet.header.payload = (uint8_t)((payload_bytes + 7) / 8);
        packet.header.extended = false;
    }
    return lant_encode(&packet, flits);
}

/* LNI-02, LNI-09. */
static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(flits_of(LANT_AR, 0), 4);
    assert_int_equal(flits_of(LANT_AW, 0), 5);
    assert_int_equal(flits_of(LANT_R, 8), 5);
    assert_int_equal(flits_of(LANT_B, 0), 4);
    assert_int_equal(flits_of(LANT_RDMA_ACK, 0), 4);
    assert_int_equal(flits_of(LANT_COMPLETION_NOTIFICATION, 0), 5);
    assert_int_equal(flits_of(LANT_ERROR_REPORT, 0), 6);
    for (uint32_t bytes = 1; bytes <= LANT_PAYLOAD_BYTES_MAX; bytes++) {
        for (uint32_t type = LANT_RDMA_WRITE; type <= LANT_RDMA_UNREGISTERED; type++) {
            assert_int_equal(flits_of(type, bytes), 4 + (bytes + 7) / 8);
        }
    }
    const struct lant_header longest = {.payload = LANT_PAYLOAD_FLITS_MAX, .extended = true};
    assert_int_equal(lant_packet_flits(&longest), 69);
    assert_int_equal(LANT_PACKET_FLITS_MAX, 69);

    /* Header and footer in hundredths of a percent of the packet: of 512 and 128 bytes, and of 4 KB
     * if a packet were as long. */
    assert_int_equal(LANT_PACKET_FLITS_MIN * 10000 / flits_of(LANT_RDMA_WRITE, 512), 588);
    assert_int_equal(LANT_PACKET_FLITS_MIN * 10000 / flits_of(LANT_RDMA_WRITE, 128), 2000);
    assert_int_equal((LANT_PACKET_FLITS_MIN * 10000 + 258) / (LANT_PACKET_FLITS_MIN + 512), 78);
}

/* LNI-04. */
static void test_places(void **state)
{
    (void)state;
    const uint64_t global = 0x0520140011110000;
    assert_int_equal(lant_global_node(global), 0x14805);
    assert_int_equal(lant_global_address(global), 0x11110000);
    assert_true(lant_global(0x14805, 0x11110000) == global);

    const struct lant_place there = lant_place(0x14805), here = lant_place(0x14403);
    assert_int_equal(there.cabinet, 5);
    assert_int_equal(there.chassis, 2);
    assert_int_equal(there.daughter, 5);
    assert_int_equal(here.cabinet, 5);
    assert_int_equal(here.chassis, 1);
    assert_int_equal(here.daughter, 3);
    for (uint32_t node = 0; node < LANT_NODES_MAX; node++) {
        assert_int_equal(lant_node(lant_place(node)), node);
    }
}

/* LNI-10: the last packet of 64 MB has an offset; an answer's echo tells the operation. */
static void test_echo(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);
    assert_int_equal(LANT_OFFSETS * LANT_PAYLOAD_BYTES_MAX, 64 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        struct lant_packet request = any_packet(&prng, LANT_RDMA_WRITE), got;
        uint64_t flits[LANT_PACKET_FLITS_MAX];
        uint32_t repaired;
        request.footer.offset = round % 2 ? 131071 : request.footer.offset;
        assert_int_equal(lant_decode(flits, lant_encode(&request, flits), &got, &repaired),
                         LANT_WHOLE);

        const struct lant_packet answer = {
            .header = {.destination = got.footer.source, .type = LANT_RDMA_ACK},
            .footer = got.footer,
        };
        assert_int_equal(lant_decode(flits, lant_encode(&answer, flits), &got, &repaired),
                         LANT_WHOLE);
        assert_int_equal(lant_operation_of(&got.footer), lant_operation_of(&request.footer));
        assert_int_equal(got.footer.operation & 0xf, request.footer.operation & 0xf);
        assert_int_equal(lant_sequence_of(&got.footer), lant_sequence_of(&request.footer));
        assert_int_equal(got.footer.offset, request.footer.offset);
    }
}

/* -- Flit by flit -------------------------------------------------------------------------------*/

/* Hardware that makes a packet flit by flit makes the flits that lant_encode makes; and decoding H2
 * alone gives the fields that lant_decode finds in it. */
static void test_flit_by_flit(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT_OF(golden); i++) {
        const struct lant_packet *packet = &golden[i].packet;
        const struct lant_header *header = &packet->header;
        struct lant_header address = {.destination = 1};
        enum lant_part part = LANT_HEAD1;
        uint32_t crc = LANT_CRC_START, left = header->payload, count = 0;
        for (;; part = lant_part_next(header, part, left)) {
            const uint64_t flit = part == LANT_BODY
                                      ? packet->payload[header->payload - left--]
                                      : lant_flit_encode(header, &packet->footer, part, crc);
            assert_int_equal(flit, golden[i].flits[count++]);
            crc = lant_crc_flit(crc, part, flit);
            if (part == LANT_FOOT2) {
                break;
            }
        }
        assert_int_equal(count, golden[i].count);
        assert_int_equal(crc, (uint32_t)golden[i].flits[count - 1]);
        const uint64_t damaged = golden[i].flits[1] ^ UINT64_C(1) << 40;
        assert_int_equal(lant_address_decode(damaged, &address), LANT_REPAIRED);
        assert_int_equal(address.address, header->address);
        assert_int_equal(address.strobe, header->strobe);
        assert_int_equal(address.size, header->size);
        assert_int_equal(address.protection, header->protection);
        assert_int_equal(address.destination, 1);
        address.address = 7;
        assert_int_equal(lant_address_decode(damaged ^ 1 << 20, &address), LANT_DAMAGED);
        assert_int_equal(address.address, 7);
    }
}

/* Byte lanes: what a strobe names, byte by byte. */
static void test_strobes(void **state)
{
    (void)state;
    for (uint32_t strobe = 0; strobe < 256; strobe++) {
        const uint64_t bits = lant_strobe_bits((uint8_t)strobe);
        for (uint32_t byte = 0; byte < 8; byte++) {
            assert_int_equal(bits >> 8 * byte & 0xff, strobe >> byte & 1 ? 0xff : 0);
        }
    }
    for (uint32_t size = 0; size <= 3; size++) {
        for (uint64_t address = 64; address < 72; address += UINT64_C(1) << size) {
            uint32_t strobe = 0;
            for (uint32_t byte = 0; byte < 1u << size; byte++) {
                strobe |= 1u << (address % 8 + byte);
            }
            assert_int_equal(lant_strobe_of(size, address), strobe);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strobes),    cmocka_unit_test(test_golden),
        cmocka_unit_test(test_each_field), cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_sizes),      cmocka_unit_test(test_places),
        cmocka_unit_test(test_echo),       cmocka_unit_test(test_flit_by_flit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
