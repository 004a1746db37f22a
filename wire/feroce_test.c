/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What FERoCE's board and its host say to each other is what the public sources say.
 * Method  The golden vectors there and back; one octet changed in each must be found; every field
 *         at its ends and at random.
 *         Behaviours FER-01, FER-02, FER-06, FER-24, FER-25, FER-40, FER-42, FER-43, FER-45,
 *         FER-46, FER-47, FER-147.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "wire/feroce.h"
#include "wire/icrc.h"
#include "wire/roce.h"

#define BOARD 0x1601d40a /* 22.1.212.10 */
#define HOST  0x1601d40b

/* Hexadecimal digits with blanks between them; "12x00" stands for 12 octets of 00. */
static size_t octets(const char *text, uint8_t *out)
{
    size_t count = 0;
    while (*text != '\0') {
        if (*text == ' ') {
            text++;
            continue;
        }
        char *end = NULL;
        const unsigned long times = strtoul(text, &end, 10);
        if (*end == 'x') {
            memset(out + count, 0, times);
            count += times;
            text = end + 3;
            continue;
        }
        const char digits[] = {text[0], text[1], '\0'};
        out[count++] = (uint8_t)strtoul(digits, NULL, 16);
        text += 2;
    }
    return count;
}

struct vector {
    const char *name;
    const char *text;
    struct feroce_cm message;
};

#define SIDE_OF_HOST                                                                               \
    {                                                                                              \
        .qpn = 0x11, .rkey = 0x1234, .address = 0x00007f0012340000, .ip = HOST                     \
    }
#define SIDE_OF_BOARD                                                                              \
    {                                                                                              \
        .qpn = 0x100, .ip = BOARD                                                                  \
    }
#define HALF_OF_HOST  "00000011 00000000 00001234 00007f0012340000 1601d40b "
#define HALF_OF_BOARD "00000100 00000000 00000000 0000000000000000 1601d40a "

/* Golden vectors, version 3. */
static const struct vector vectors[] = {
    {"OPEN",
     "03" HALF_OF_HOST "24x00 4321 13x00",
     {.request = FEROCE_OPEN_QP,
      .info_valid = true,
      .local = SIDE_OF_HOST,
      .listening_port = FEROCE_PORT_CM}},
    {"OPEN, reply",
     "33" HALF_OF_BOARD HALF_OF_HOST "4321 13x00",
     {.request = FEROCE_OPEN_QP,
      .ack = FEROCE_ACK,
      .info_valid = true,
      .ack_valid = true,
      .local = SIDE_OF_BOARD,
      .remote = SIDE_OF_HOST,
      .listening_port = FEROCE_PORT_CM}},
    {"CLOSE",
     "09" HALF_OF_HOST HALF_OF_BOARD "4321 13x00",
     {.request = FEROCE_CLOSE_QP,
      .info_valid = true,
      .local = SIDE_OF_HOST,
      .remote = SIDE_OF_BOARD,
      .listening_port = FEROCE_PORT_CM}},
    {"CLOSE, reply",
     "39" HALF_OF_BOARD HALF_OF_HOST "4321 13x00",
     {.request = FEROCE_CLOSE_QP,
      .ack = FEROCE_ACK,
      .info_valid = true,
      .ack_valid = true,
      .local = SIDE_OF_BOARD,
      .remote = SIDE_OF_HOST,
      .listening_port = FEROCE_PORT_CM}},
    {"CLOSE, error",
     "f9 50x00 13x00",
     {.request = FEROCE_CLOSE_QP, .ack = FEROCE_ACK_ERROR, .info_valid = true, .ack_valid = true}},
    {"MODIFY", "07 63x00", {.request = FEROCE_MODIFY_QP_RTS, .info_valid = true}},
    {"MODIFY, reply",
     "37 63x00",
     {.request = FEROCE_MODIFY_QP_RTS, .ack = FEROCE_ACK, .info_valid = true, .ack_valid = true}},
    {"SEND of 16,384 bytes, 10,000 times",
     "01 24x00 00000100 20x00 0000 03 00004000 00002710 00000000",
     {.info_valid = true,
      .remote.qpn = 0x100,
      .meta = {.valid = true, .start = true, .length = 16384, .count = 10000}}},
    {"WRITE each 322 cycles",
     "01 24x00 00000100 20x00 0000 0b 00004000 00002710 00000142",
     {.info_valid = true,
      .remote.qpn = 0x100,
      .meta = {.valid = true,
               .start = true,
               .write = true,
               .length = 16384,
               .count = 10000,
               .frequency = 322}}},
};

static void assert_same_side(const struct feroce_side *a, const struct feroce_side *b)
{
    assert_int_equal(a->qpn, b->qpn);
    assert_int_equal(a->psn, b->psn);
    assert_int_equal(a->rkey, b->rkey);
    assert_int_equal(a->ip, b->ip);
    assert_true(a->address == b->address);
}

static void assert_same(const struct feroce_cm *a, const struct feroce_cm *b)
{
    assert_int_equal(a->request, b->request);
    assert_int_equal(a->ack, b->ack);
    assert_int_equal(a->info_valid, b->info_valid);
    assert_int_equal(a->ack_valid, b->ack_valid);
    assert_same_side(&a->local, &b->local);
    assert_same_side(&a->remote, &b->remote);
    assert_int_equal(a->listening_port, b->listening_port);
    assert_int_equal(a->meta.valid, b->meta.valid);
    assert_int_equal(a->meta.start, b->meta.start);
    assert_int_equal(a->meta.immediate, b->meta.immediate);
    assert_int_equal(a->meta.write, b->meta.write);
    assert_int_equal(a->meta.length, b->meta.length);
    assert_int_equal(a->meta.count, b->meta.count);
    assert_int_equal(a->meta.frequency, b->meta.frequency);
}

/* FER-01: the golden messages, there and back; each octet matters or is one that has to be 0. */
static void test_golden_messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        uint8_t golden[128], made[FEROCE_CM_BYTES];
        assert_int_equal(octets(vectors[i].text, golden), FEROCE_CM_BYTES);
        feroce_cm_encode(FEROCE_CM_3, &vectors[i].message, made);
        assert_memory_equal(made, golden, FEROCE_CM_BYTES);
        struct feroce_cm got;
        assert_true(feroce_cm_decode(FEROCE_CM_3, golden, FEROCE_CM_BYTES, &got));
        assert_same(&got, &vectors[i].message);
        for (size_t at = 0; at < FEROCE_CM_BYTES; at++) {
            golden[at] ^= 0x01;
            assert_true(feroce_cm_decode(FEROCE_CM_3, golden, FEROCE_CM_BYTES, &got));
            feroce_cm_encode(FEROCE_CM_3, &got, made);
            /* FER-06: pads are not looked at, and are 0 when sent. */
            const bool is_pad = at == 1 || at == 5 || at == 25 || at == 29;
            assert_int_equal(memcmp(made, golden, FEROCE_CM_BYTES) == 0, !is_pad);
            assert_int_equal(made[at], is_pad ? 0 : golden[at]);
            golden[at] ^= 0x01;
        }
    }
}

/* FER-24: version 2 of OPEN and its reply, octet by octet. */
static void test_version_2(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "03 11000000 00000000 34120000 00003412007f0000 0bd40116 24x00 2143 13x00",
        "33 00010000 00000000 00000000 0000000000000000 0ad40116"
        "11000000 00000000 34120000 00003412007f0000 0bd40116 2143 13x00"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        uint8_t golden[128], made[FEROCE_CM_BYTES];
        assert_int_equal(octets(texts[i], golden), FEROCE_CM_BYTES);
        feroce_cm_encode(FEROCE_CM_2, &vectors[i].message, made);
        assert_memory_equal(made, golden, FEROCE_CM_BYTES);
        struct feroce_cm got;
        assert_true(feroce_cm_decode(FEROCE_CM_2, golden, FEROCE_CM_BYTES, &got));
        assert_same(&got, &vectors[i].message);
        /* The pad stands behind the field, and is not looked at. */
        golden[4] = golden[8] = golden[28] = golden[32] = 0xff;
        assert_true(feroce_cm_decode(FEROCE_CM_2, golden, FEROCE_CM_BYTES, &got));
        assert_same(&got, &vectors[i].message);
        /* FER-25: as version 3 it makes one suspicious; the same message of version 3 does not. */
        assert_true(feroce_cm_suspect(golden, FEROCE_PORT_CM));
        feroce_cm_encode(FEROCE_CM_3, &vectors[i].message, made);
        assert_false(feroce_cm_suspect(made, FEROCE_PORT_CM));
    }
    /* The port alone is enough. */
    struct feroce_cm message = {.listening_port = 0x4322};
    uint8_t made[FEROCE_CM_BYTES];
    feroce_cm_encode(FEROCE_CM_2, &message, made);
    assert_true(feroce_cm_suspect(made, 0x4322));
    assert_false(feroce_cm_suspect(made, 0x4321));
    /* A port that reads the same both ways says nothing. */
    message.listening_port = 0x4343;
    feroce_cm_encode(FEROCE_CM_2, &message, made);
    assert_false(feroce_cm_suspect(made, 0x4343));
}

static struct feroce_side random_side(struct prng *prng, int round)
{
    const uint64_t all = round == 0 ? 0 : round == 1 ? UINT64_MAX : prng_next(prng);
    const uint64_t more = round == 0 ? 0 : round == 1 ? UINT64_MAX : prng_next(prng);
    return (struct feroce_side){.qpn = all & 0xffffff,
                                .psn = all >> 24 & 0xffffff,
                                .rkey = (uint32_t)more,
                                .ip = (uint32_t)(more >> 32),
                                .address = all * 3 + more};
}

/* FER-01: every field at 0, at its greatest and at random values, in both versions. */
static void test_fields(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (int round = 0; round < 20000; round++) {
        const uint64_t bits = round == 0 ? 0 : round == 1 ? UINT64_MAX : prng_next(&prng);
        const uint64_t more = round == 0 ? 0 : round == 1 ? UINT64_MAX : prng_next(&prng);
        const struct feroce_cm sent = {
            .request = bits & 7,
            .ack = bits >> 3 & 7,
            .info_valid = bits >> 6 & 1,
            .ack_valid = bits >> 7 & 1,
            .local = random_side(&prng, round),
            .remote = random_side(&prng, round),
            .listening_port = (uint16_t)(bits >> 8),
            .meta = {.valid = bits >> 24 & 1,
                     .start = bits >> 25 & 1,
                     .immediate = bits >> 26 & 1,
                     .write = bits >> 27 & 1,
                     .length = (uint32_t)(bits >> 32),
                     .count = (uint32_t)more,
                     .frequency = (uint32_t)(more >> 32)},
        };
        for (int version = FEROCE_CM_2; version <= FEROCE_CM_3; version++) {
            uint8_t bytes[FEROCE_CM_BYTES];
            struct feroce_cm got;
            feroce_cm_encode((enum feroce_cm_version)version, &sent, bytes);
            assert_true(
                feroce_cm_decode((enum feroce_cm_version)version, bytes, sizeof(bytes), &got));
            assert_same(&got, &sent);
            assert_int_equal(bytes[51] & 0xf0, 0);
        }
    }
}

/* FER-02: of 63 or 65 octets nothing is a message. */
static void test_length(void **state)
{
    (void)state;
    uint8_t bytes[128] = {0x03};
    struct feroce_cm got = {.listening_port = 77};
    for (size_t count = 0; count <= sizeof(bytes); count++) {
        assert_int_equal(feroce_cm_decode(FEROCE_CM_3, bytes, count, &got),
                         count == FEROCE_CM_BYTES);
        assert_int_equal(got.listening_port, count < FEROCE_CM_BYTES ? 77 : 0);
        struct feroce_cm_1 old;
        assert_int_equal(feroce_cm_1_decode(bytes, count, &old), count == FEROCE_CM_1_BYTES);
    }
}

/* FER-147: version 1, big-endian, 44 octets. */
static void test_version_1(void **state)
{
    (void)state;
    uint8_t golden[128], made[FEROCE_CM_1_BYTES];
    assert_int_equal(octets("01 000011 000100 123456 654321 00001234 00007f0012340000 07 1601d40b "
                            "0000000000040000 00040000 12b7",
                            golden),
                     FEROCE_CM_1_BYTES);
    const struct feroce_cm_1 message = {.info_valid = true,
                                        .remote_qpn = 0x11,
                                        .local_qpn = 0x100,
                                        .remote_psn = 0x123456,
                                        .local_psn = 0x654321,
                                        .rkey = 0x1234,
                                        .remote_address = 0x00007f0012340000,
                                        .meta_valid = true,
                                        .start = true,
                                        .write = true,
                                        .remote_ip = HOST,
                                        .offset = 0x40000,
                                        .length = 0x40000,
                                        .udp_port = ROCE_UDP_PORT};
    feroce_cm_1_encode(&message, made);
    assert_memory_equal(made, golden, sizeof(made));
    for (size_t at = 0; at < FEROCE_CM_1_BYTES; at++) {
        struct feroce_cm_1 got;
        golden[at] ^= 0x01;
        assert_true(feroce_cm_1_decode(golden, FEROCE_CM_1_BYTES, &got));
        feroce_cm_1_encode(&got, made);
        assert_memory_equal(made, golden, sizeof(made));
        golden[at] ^= 0x01;
    }
}

/* -- Frames -------------------------------------------------------------------------------------*/

/* A packet of the board as bytes from the Ethernet header to the ICRC. */
static size_t make_frame(const struct feroce_frame *frame, const struct roce_packet *packet,
                         const uint8_t *payload, uint8_t *out)
{
    uint8_t *roce = out + FEROCE_FRAME_HEADERS_BYTES;
    const size_t headers = roce_encode_headers(packet, roce);
    const struct inet_flow flow = inet_flow_ipv4(frame->source_ip, frame->source_port,
                                                 frame->destination_ip, frame->destination_port);
    const uint32_t icrc = icrc_compute(&flow, frame->identification, roce, headers, payload, 16);
    memcpy(roce + headers, payload, 16);
    store_le32(roce + headers + 16, icrc);
    feroce_frame_encode(frame, headers + 16 + 4, out);
    return FEROCE_FRAME_HEADERS_BYTES + headers + 16 + 4;
}

static const struct {
    const char *text;
    struct roce_packet packet;
} packets[] = {
    {"4500003c00004000401166991601d40a1601d40b 865712b700280000 0440ffff0000001180000000"
     "00000000010000000200000003000000 7cf3eb54",
     {.opcode = 0x04}},
    {"4500004c00004000401166891601d40a1601d40b 865712b700380000 0a40ffff0000001180000005"
     "00000000123456780000123400000010 00000000010000000200000003000000 bb21001a",
     {.opcode = 0x0a, .psn = 5}},
    {"4500005000004000401166851601d40a1601d40b 865712b7003c0000 0b40ffff0000001180000006"
     "00000000123456780000123400000010 00bc614e 00000000010000000200000003000000 d429564c",
     {.opcode = 0x0b, .psn = 6}},
};

static const struct feroce_frame board_frame = {
    .destination_mac = {1, 2, 3, 4, 5, 6},
    .source_mac = {0x00, 0x0a, 0x35, 0xde, 0xad, 0x00},
    .source_ip = BOARD,
    .destination_ip = HOST,
    .source_port = FEROCE_PORT_DATA_FROM,
    .destination_port = ROCE_UDP_PORT,
};

/* FER-46: the golden frames, with FER-40 (octets 1 and 4, P_Key), 42, 43 and 45 in them. */
static void test_golden_frames(void **state)
{
    (void)state;
    uint8_t payload[16], golden[256], made[256];
    octets("00000000010000000200000003000000", payload);
    for (size_t i = 0; i < COUNT_OF(packets); i++) {
        struct roce_packet packet = packets[i].packet;
        packet.migration_request = packet.ack_request = true;
        packet.pkey = ROCE_DEFAULT_PKEY;
        packet.destination_qpn = 0x11;
        packet.reth.address = 0x12345678;
        packet.reth.key = 0x1234;
        packet.reth.bytes = 16;
        store_be32(&packet.immediate, 12345678); /* Decimal. */
        const size_t bytes = make_frame(&board_frame, &packet, payload, made);
        assert_int_equal(octets(packets[i].text, golden), bytes - 14);
        assert_memory_equal(made + 14, golden, bytes - 14);
        assert_memory_equal(made, board_frame.destination_mac, 6);
        assert_memory_equal(made + 6, board_frame.source_mac, 6);
        assert_int_equal(load_be16(made + 12), 0x0800);
    }
}

/* FER-43: the class is the upper three bits of DSCP. FER-45: the checksum stays right. */
static void test_class(void **state)
{
    (void)state;
    for (uint8_t service_class = 0; service_class < 8; service_class++) {
        struct feroce_frame frame = board_frame;
        frame.service_class = service_class;
        frame.identification = (uint16_t)(service_class * 9999);
        uint8_t out[FEROCE_FRAME_HEADERS_BYTES];
        feroce_frame_encode(&frame, 4096, out);
        assert_int_equal(out[15] >> 2, service_class * 8);
        assert_int_equal(out[15] & 3, 0);
        assert_int_equal(load_be16(out + 16), 20 + 8 + 4096);
        assert_int_equal(load_be16(out + 38), 8 + 4096);
        uint32_t sum = 0;
        for (int i = 0; i < 20; i += 2) {
            sum += load_be16(out + 14 + i);
        }
        assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}

/* FER-47: of the octets from the IP header to the BTH's end the ICRC does not see 1, 8, 10, 11, 26,
 * 27 and 32, and no others; wire/icrc.h gives the same value. */
static void test_icrc_masks(void **state)
{
    (void)state;
    uint8_t bytes[256];
    const size_t count = octets(packets[1].text, bytes);
    const struct inet_flow flow = inet_flow_ipv4(BOARD, FEROCE_PORT_DATA_FROM, HOST, ROCE_UDP_PORT);
    const uint32_t right = load_le32(bytes + count - 4);
    const uint8_t *bth = bytes + 28;
    assert_int_equal(icrc_compute(&flow, 0, bth, 28, bth + 28, 16), right);
    assert_int_equal(icrc_finish(icrc_extend(
                         icrc_packet(icrc_prefix(&flow, 0, count - 28), bth, 12), bth + 12, 32)),
                     right);
    for (size_t at = 28; at < count - 4; at++) {
        bytes[at] ^= 0x10;
        assert_int_equal(icrc_compute(&flow, 0, bth, 28, bth + 28, 16) == right, at == 32);
        bytes[at] ^= 0x10;
    }
    /* The headers in front of the BTH are given as a flow, identification and size. */
    for (int bit = 0; bit < 16; bit++) {
        struct inet_flow other = flow;
        assert_true(icrc_compute(&flow, (uint16_t)(1 << bit), bth, 28, bth + 28, 16) != right);
        other.source_port ^= (uint16_t)(1 << bit);
        assert_true(icrc_compute(&other, 0, bth, 28, bth + 28, 16) != right);
        other = flow;
        other.destination[12 + bit / 4] ^= (uint8_t)(1 << bit % 4);
        assert_true(icrc_compute(&other, 0, bth, 28, bth + 28, 16) != right);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_messages), cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_fields),          cmocka_unit_test(test_length),
        cmocka_unit_test(test_version_1),       cmocka_unit_test(test_golden_frames),
        cmocka_unit_test(test_class),           cmocka_unit_test(test_icrc_masks),
    };
    return cmocka_run_group_tests_name("feroce", tests, NULL, NULL);
}
