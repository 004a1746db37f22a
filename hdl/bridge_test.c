/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A frame of a design becomes a datagram, is answered, or is dropped by name; a datagram
 *         becomes a frame whose headers and ICRC agree, whatever its sender's
 *         identification was. ARP and echo are answered (FER-138, FER-157), wrong ICRCs are told
 *         with the found and the expected one (FER-139), and ICRCs that leave are right for
 *         identification 0 (FER-140).
 * Method  The frames are laid out byte by byte here, with an ICRC that is divided bit by bit. Every
 *         bit of a good frame is flipped, every length of it is tried, and each verdict has a frame
 *         that gets it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "hdl/bridge.h"

#define DESIGN 0x7f000014u
#define PEER   0x0a0b0c0du
#define ROCE   4791

static const uint8_t design_mac[6] = {0x00, 0x0a, 0x35, 1, 2, 3};

static struct bridge bridge;
static struct inet_datagram datagram;

struct bytes {
    uint8_t at[2 * HDL_FRAME_BYTES_MAX];
    uint32_t count;
};

/* -- The model ----------------------------------------------------------------------------------*/

static uint16_t sum_of(const uint8_t *bytes, uint32_t count, uint32_t sum)
{
    for (uint32_t i = 0; i < count; i++) {
        sum += (uint32_t)bytes[i] << (i % 2 == 0 ? 8 : 0);
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)sum;
}

/* The four bytes as they stand on the wire, as a big-endian number; `ip` up to the ICRC. */
static uint32_t model_icrc(const uint8_t *ip, uint32_t count)
{
    uint32_t crc = 0xffffffff;
    for (uint32_t i = 0; i < count + 8; i++) {
        const uint32_t at = i - 8;
        const bool masked =
            i < 8 || at == 1 || at == 8 || at == 10 || at == 11 || at == 26 || at == 27 || at == 32;
        crc ^= masked ? 0xff : ip[at];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
        }
    }
    return __builtin_bswap32(~crc);
}

/* The fields of a frame of the design. */
struct fields {
    uint16_t identification, flags, source_port, destination_port;
    uint8_t tos, ttl;
    bool checksum;
};

static const struct fields plain = {
    .flags = 0x4000, .source_port = 1000, .destination_port = 2000, .ttl = 64};

static void put_ip_checksum(uint8_t *ip)
{
    store_be16(ip + 10, 0);
    store_be16(ip + 10, (uint16_t)~sum_of(ip, 20, 0));
}

static void put_icrc(struct bytes *frame)
{
    store_be32(frame->at + frame->count - 4, model_icrc(frame->at + 14, frame->count - 14 - 4));
}

/* From the design to the peer, with the payload that stands in frame->at + 42 already. */
static void lay_out(struct bytes *frame, const struct fields *fields, uint32_t payload_bytes)
{
    uint8_t *ip = frame->at + 14, *udp = ip + 20;
    memset(frame->at, 0x33, 6);
    memcpy(frame->at + 6, design_mac, 6);
    store_be16(frame->at + 12, 0x0800);
    ip[0] = 0x45;
    ip[1] = fields->tos;
    store_be16(ip + 2, (uint16_t)(28 + payload_bytes));
    store_be16(ip + 4, fields->identification);
    store_be16(ip + 6, fields->flags);
    ip[8] = fields->ttl;
    ip[9] = 17;
    store_be32(ip + 12, DESIGN);
    store_be32(ip + 16, PEER);
    put_ip_checksum(ip);
    store_be16(udp, fields->source_port);
    store_be16(udp + 2, fields->destination_port);
    store_be16(udp + 4, (uint16_t)(8 + payload_bytes));
    store_be16(udp + 6, 0);
    frame->count = 42 + payload_bytes;
    if (fields->checksum) {
        const uint32_t pseudo = sum_of(ip + 12, 8, 17 + 8 + payload_bytes);
        const uint16_t sum = (uint16_t)~sum_of(udp, 8 + payload_bytes, pseudo);
        store_be16(udp + 6, sum == 0 ? 0xffff : sum);
    }
    if (fields->destination_port == ROCE && payload_bytes >= 16) {
        put_icrc(frame);
    }
}

static void fill(struct prng *prng, uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)prng_next(prng);
    }
}

/* A frame of a RoCE packet of 16 + `more` bytes. */
static void lay_out_roce(struct bytes *frame, uint32_t more)
{
    struct prng prng;
    struct fields fields = plain;
    prng_init(&prng, 1);
    fill(&prng, frame->at + 42, 16 + more);
    fields.identification = 77;
    fields.destination_port = ROCE;
    lay_out(frame, &fields, 16 + more);
}

static enum bridge_verdict leave(const struct bytes *frame)
{
    return bridge_leave(&bridge, frame->at, frame->count, &datagram);
}

static int set_up(void **state)
{
    (void)state;
    bridge_init(&bridge, DESIGN);
    return 0;
}

/* -- Frames that leave --------------------------------------------------------------------------*/

static void test_leaves(void **state)
{
    (void)state;
    static struct bytes frame;
    struct prng prng;
    uint32_t roce = 0;
    prng_init(&prng, 2);

    for (uint32_t round = 0; round < 20000; round++) {
        const bool is_roce = prng_chance(&prng, 500000);
        const uint32_t bytes = (is_roce ? 16 : 0) + (uint32_t)prng_below(&prng, 300);
        const struct fields fields = {
            .identification = (uint16_t)prng_next(&prng),
            .flags = prng_chance(&prng, 500000) ? 0x4000 : 0,
            .source_port = (uint16_t)(1 + prng_below(&prng, 65535)),
            .destination_port = is_roce ? ROCE : (uint16_t)(5000 + prng_below(&prng, 60000)),
            .tos = (uint8_t)prng_next(&prng),
            .ttl = (uint8_t)(1 + prng_below(&prng, 255)),
            .checksum = !is_roce && prng_chance(&prng, 500000)};
        fill(&prng, frame.at + 42, bytes);
        lay_out(&frame, &fields, bytes);
        const uint32_t without = frame.count;
        while (frame.count < 60) {
            frame.at[frame.count++] = 0; /* As a MAC pads it. */
        }
        assert_int_equal(leave(&frame), BRIDGE_LEFT);
        assert_int_equal(datagram.peer_ip, PEER);
        assert_int_equal(datagram.peer_port, fields.destination_port);
        assert_int_equal(datagram.own_port, fields.source_port);
        assert_int_equal(datagram.variant.traffic_class, fields.tos);
        assert_int_equal(datagram.variant.hop_limit, fields.ttl);
        assert_int_equal(datagram.payload_bytes, bytes);
        if (is_roce) {
            frame.count = without;
            store_be16(frame.at + 18, 0);
            store_be16(frame.at + 20, 0x4000);
            put_icrc(&frame);
            roce++;
        }
        assert_memory_equal(datagram.payload, frame.at + 42, bytes);
    }
    assert_int_equal(bridge.counts[BRIDGE_LEFT], 20000);
    assert_int_equal(bridge.roce_left, roce);
    assert_int_equal(bridge.trailing, 0);
}

/* The verdict on a frame of RoCE of which one bit is another one. */
static enum bridge_verdict verdict_of(uint32_t bit)
{
    switch (bit / 8) {
    case 12:
    case 13: return BRIDGE_ETHERTYPE;
    case 14: return bit % 8 == 1 || bit % 8 == 3 ? BRIDGE_OPTIONS : BRIDGE_IPV4;
    case 36:
    case 37: return BRIDGE_LEFT; /* To another port than RoCE's. */
    case 38:
    case 39: return BRIDGE_UDP_LENGTH;
    case 40:
    case 41: return BRIDGE_UDP_CHECKSUM;
    case 46: return BRIDGE_LEFT; /* Masked. */
    default:
        return bit == 8 * 6   ? BRIDGE_GROUP_SOURCE
               : bit < 8 * 12 ? BRIDGE_LEFT
               : bit < 8 * 34 ? BRIDGE_IPV4_CHECKSUM
                              : BRIDGE_ICRC;
    }
}

static void test_every_bit(void **state)
{
    (void)state;
    static struct bytes frame, flipped;
    lay_out_roce(&frame, 100);
    for (uint32_t bit = 0; bit < 8 * frame.count; bit++) {
        flipped = frame;
        flipped.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(leave(&flipped), verdict_of(bit));
        if (bit / 8 == 46) {
            assert_int_equal(datagram.payload[4], flipped.at[46]);
        }
    }
}

static void test_every_length(void **state)
{
    (void)state;
    static struct bytes frame;
    lay_out_roce(&frame, 100);
    const uint32_t whole = frame.count;
    for (frame.count = 0; frame.count < whole; frame.count++) {
        assert_int_equal(leave(&frame), BRIDGE_CUT_OFF);
    }
    /* Bytes behind the packet are not looked at, but counted. */
    frame.count = whole + 4;
    assert_int_equal(leave(&frame), BRIDGE_LEFT);
    assert_int_equal(datagram.payload_bytes, 116);
    assert_int_equal(bridge.trailing, 1);
}

/* FER-139. */
static void test_wrong_icrc(void **state)
{
    (void)state;
    static struct bytes frame;
    lay_out_roce(&frame, 8);
    const uint32_t right = load_be32(frame.at + frame.count - 4);
    store_be32(frame.at + frame.count - 4, 0x12345678);
    assert_int_equal(leave(&frame), BRIDGE_ICRC);
    assert_int_equal(bridge.icrc.found, 0x12345678);
    assert_int_equal(bridge.icrc.expected, right);
    assert_int_equal(bridge.counts[BRIDGE_ICRC], 1);
    assert_int_equal(bridge.roce_left, 0);
}

/* -- Every verdict ------------------------------------------------------------------------------*/

/* A frame of a UDP datagram with other values at one place of 16 bits; the IPv4 checksum fits. */
static enum bridge_verdict with(uint32_t at, uint16_t value)
{
    static struct bytes frame;
    memset(frame.at, 0, 200);
    lay_out(&frame, &plain, 100);
    store_be16(frame.at + at, value);
    if (at >= 14 && at < 34) {
        put_ip_checksum(frame.at + 14);
    }
    return leave(&frame);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        uint32_t at;
        uint16_t value;
        enum bridge_verdict verdict;
    } rows[] = {
        {6, 0xffff, BRIDGE_GROUP_SOURCE},
        {6, 0x0100, BRIDGE_GROUP_SOURCE},
        {12, 0x8100, BRIDGE_VLAN},
        {12, 0x88a8, BRIDGE_VLAN},
        {12, 0x86dd, BRIDGE_IPV6},
        {12, 0x8808, BRIDGE_PAUSE},
        {12, 0x88b5, BRIDGE_ETHERTYPE},
        {12, 100, BRIDGE_ETHERTYPE},
        {12, 0x0806, BRIDGE_ARP},
        {14, 0x4600, BRIDGE_OPTIONS},
        {14, 0x4f00, BRIDGE_OPTIONS},
        {14, 0x4400, BRIDGE_IPV4},
        {14, 0x6500, BRIDGE_IPV4},
        {14, 0x5500, BRIDGE_IPV4},
        {16, 19, BRIDGE_IPV4},
        {16, 20, BRIDGE_UDP_LENGTH},
        {16, 27, BRIDGE_UDP_LENGTH},
        {16, 127, BRIDGE_UDP_LENGTH},
        {16, 129, BRIDGE_CUT_OFF},
        {20, 0x8000, BRIDGE_IPV4},
        {20, 0x2000, BRIDGE_FRAGMENT},
        {20, 0x4001, BRIDGE_FRAGMENT},
        {20, 0x1fff, BRIDGE_FRAGMENT},
        {22, 0x0011, BRIDGE_TTL},
        {22, 0x4006, BRIDGE_PROTOCOL},
        {22, 0x4001, BRIDGE_ICMP},
        {26, 0x7f01, BRIDGE_SOURCE},
        {28, 0x0015, BRIDGE_SOURCE},
        {24, 0x0000, BRIDGE_LEFT},
        {30, 0xffff, BRIDGE_LEFT},
        {34, 0, BRIDGE_UDP_PORT},
        {36, 0, BRIDGE_UDP_PORT},
        {38, 107, BRIDGE_UDP_LENGTH},
        {38, 109, BRIDGE_UDP_LENGTH},
        {38, 0, BRIDGE_UDP_LENGTH},
        {40, 0x1234, BRIDGE_UDP_CHECKSUM},
        {36, ROCE, BRIDGE_ICRC},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(with(rows[i].at, rows[i].value), rows[i].verdict);
    }
    static struct bytes frame;
    struct fields fields = plain;
    fields.destination_port = ROCE;
    lay_out(&frame, &fields, 15);
    assert_int_equal(leave(&frame), BRIDGE_NO_ROCE);
    lay_out_roce(&frame, 0);
    frame.at[24] ^= 1;
    assert_int_equal(leave(&frame), BRIDGE_IPV4_CHECKSUM);
    for (enum bridge_verdict i = 0; i < BRIDGE_VERDICT_COUNT; i++) {
        assert_true(strlen(bridge_verdict_text(i)) > 3);
    }
}

/* -- ARP and echo -------------------------------------------------------------------------------*/

static struct bytes *arp(uint16_t operation, uint32_t sender, uint32_t target)
{
    static struct bytes frame;
    static const uint8_t begin[] = {8, 6, 0, 1, 8, 0, 6, 4};
    memset(frame.at, 0xff, 6);
    memcpy(frame.at + 6, design_mac, 6);
    memcpy(frame.at + 12, begin, sizeof(begin));
    store_be16(frame.at + 20, operation);
    memcpy(frame.at + 22, design_mac, 6);
    store_be32(frame.at + 28, sender);
    memset(frame.at + 32, 0, 6);
    store_be32(frame.at + 38, target);
    memset(frame.at + 42, 0, 18);
    frame.count = 60;
    return &frame;
}

static void check_arp_answer(uint32_t sender, uint32_t target)
{
    uint8_t answer[42];
    memcpy(answer, design_mac, 6);
    memcpy(answer + 6, (uint8_t[]){2, 0}, 2);
    store_be32(answer + 8, target);
    memcpy(answer + 12, (uint8_t[]){8, 6, 0, 1, 8, 0, 6, 4, 0, 2, 2, 0}, 12);
    store_be32(answer + 24, target);
    store_be32(answer + 28, target);
    memcpy(answer + 32, design_mac, 6);
    store_be32(answer + 38, sender);
    assert_int_equal(bridge.frame_bytes, sizeof(answer));
    assert_memory_equal(bridge.frame, answer, sizeof(answer));
}

static void test_arp(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);
    for (int i = 0; i < 1000; i++) {
        const uint32_t target = (uint32_t)prng_next(&prng), sender = i % 2 == 0 ? DESIGN : 0;
        assert_int_equal(leave(arp(1, sender, target)), BRIDGE_ANSWERED);
        check_arp_answer(sender, target);
    }
    assert_true(bridge.has_spoken);
    /* Nobody else has the design's address. */
    assert_int_equal(leave(arp(1, DESIGN, DESIGN)), BRIDGE_HEARD);
    assert_int_equal(leave(arp(1, 0, DESIGN)), BRIDGE_HEARD);
    assert_int_equal(leave(arp(2, DESIGN, PEER)), BRIDGE_HEARD);
    assert_int_equal(leave(arp(2, 0, PEER)), BRIDGE_SOURCE);
    assert_int_equal(leave(arp(1, PEER, PEER)), BRIDGE_SOURCE);
    assert_int_equal(leave(arp(3, DESIGN, PEER)), BRIDGE_ARP);
    for (uint32_t bit = 8 * 14; bit < 8 * 28; bit++) {
        struct bytes frame = *arp(1, DESIGN, PEER);
        frame.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        /* One bit makes no reply of a request. */
        assert_int_equal(leave(&frame), BRIDGE_ARP);
    }
    struct bytes frame = *arp(1, DESIGN, PEER);
    for (frame.count = 0; frame.count < 42; frame.count++) {
        assert_int_equal(leave(&frame), BRIDGE_CUT_OFF);
    }
}

/* Before a design speaks, its MAC address is one that is made up, and a question finds the real
 * one. */
static void test_asks(void **state)
{
    (void)state;
    static const uint8_t made_up[6] = {2, 0, 127, 0, 0, 20};
    datagram = (struct inet_datagram){.peer_ip = PEER, .peer_port = 1, .own_port = 2};
    assert_int_equal(bridge_come(&bridge, &datagram), BRIDGE_CAME);
    assert_memory_equal(bridge.frame, made_up, 6);
    bridge_ask(&bridge, PEER);
    uint8_t question[42];
    memset(question, 0xff, 6);
    memcpy(question + 6, (uint8_t[]){2, 0, 10, 11, 12, 13, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, 16);
    memcpy(question + 22, (uint8_t[]){2, 0, 10, 11, 12, 13, 10, 11, 12, 13, 0, 0, 0, 0, 0, 0}, 16);
    store_be32(question + 38, DESIGN);
    assert_int_equal(bridge.frame_bytes, sizeof(question));
    assert_memory_equal(bridge.frame, question, sizeof(question));
    assert_false(bridge.has_spoken);
    assert_int_equal(leave(arp(2, DESIGN, PEER)), BRIDGE_HEARD);
    assert_true(bridge.has_spoken);
    assert_int_equal(bridge_come(&bridge, &datagram), BRIDGE_CAME);
    assert_memory_equal(bridge.frame, design_mac, 6);
    assert_memory_equal(bridge.frame + 6, question + 6, 6);
}

static void test_echo(void **state)
{
    (void)state;
    static struct bytes frame;
    struct prng prng;
    prng_init(&prng, 4);
    for (uint32_t bytes = 8; bytes < 1500; bytes++) {
        uint8_t *ip = frame.at + 14, *icmp = ip + 20;
        fill(&prng, frame.at + 34, bytes);
        struct fields fields = plain;
        fields.tos = (uint8_t)bytes;
        lay_out(&frame, &fields, bytes - 8);
        fill(&prng, icmp, bytes);
        ip[9] = 1;
        put_ip_checksum(ip);
        memcpy(icmp, (uint8_t[]){8, 0, 0, 0}, 4);
        store_be16(icmp + 2, (uint16_t)~sum_of(icmp, bytes, 0));
        assert_int_equal(leave(&frame), BRIDGE_ANSWERED);
        assert_int_equal(bridge.frame_bytes, frame.count);
        /* The answer, made of the question. */
        icmp[0] = 0;
        store_be16(icmp + 2, 0);
        store_be16(icmp + 2, (uint16_t)~sum_of(icmp, bytes, 0));
        store_be32(ip + 12, PEER);
        store_be32(ip + 16, DESIGN);
        put_ip_checksum(ip);
        memcpy(frame.at, design_mac, 6);
        memcpy(frame.at + 6, (uint8_t[]){2, 0, 10, 11, 12, 13}, 6);
        assert_memory_equal(bridge.frame, frame.at, frame.count);
        memcpy(frame.at + 6, design_mac, 6);
        store_be32(ip + 12, DESIGN);
        put_ip_checksum(ip);
        assert_int_equal(leave(&frame), BRIDGE_ICMP); /* A reply. */
        icmp[0] = 8;
        assert_int_equal(leave(&frame), BRIDGE_ICMP); /* A wrong checksum. */
    }
}

/* -- Datagrams that come ------------------------------------------------------------------------*/

/* A datagram of every identification that a peer may have had. */
static void test_comes(void **state)
{
    (void)state;
    static struct bytes sent, expected_frame;
    struct prng prng;
    prng_init(&prng, 5);
    for (uint32_t identification = 0; identification < 65536; identification++) {
        const bool is_roce = identification % 8 != 7;
        const uint32_t bytes = (is_roce ? 16 : 0) + (uint32_t)prng_below(&prng, 64);
        const struct fields fields = {.identification = is_roce ? (uint16_t)identification : 0,
                                      .flags = 0x4000,
                                      .source_port = (uint16_t)prng_next(&prng),
                                      .destination_port = is_roce ? ROCE : 0x4321,
                                      .tos = (uint8_t)prng_next(&prng),
                                      .ttl = (uint8_t)prng_next(&prng)};
        fill(&prng, sent.at + 42, bytes);
        lay_out(&sent, &fields, bytes);
        store_be32(sent.at + 26, PEER);
        store_be32(sent.at + 30, DESIGN);
        put_ip_checksum(sent.at + 14);
        if (is_roce) {
            put_icrc(&sent);
        }
        expected_frame = sent;
        memcpy(expected_frame.at, (uint8_t[]){2, 0, 127, 0, 0, 20, 2, 0, 10, 11, 12, 13}, 12);
        datagram = (struct inet_datagram){
            .peer_ip = PEER,
            .peer_port = fields.source_port,
            .own_port = fields.destination_port,
            .variant = {.traffic_class = fields.tos, .hop_limit = fields.ttl},
            .payload = sent.at + 42,
            .payload_bytes = bytes};
        assert_int_equal(bridge_come(&bridge, &datagram), BRIDGE_CAME);
        assert_int_equal(bridge.frame_bytes, sent.count);
        assert_memory_equal(bridge.frame, expected_frame.at, sent.count);
        if (is_roce) {
            const uint32_t bit = (uint32_t)prng_below(&prng, 8 * bytes);
            sent.at[42 + bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(bridge_come(&bridge, &datagram),
                             bit / 8 == 4 ? BRIDGE_CAME : BRIDGE_CAME_ICRC);
        }
    }
}

static void test_lengths_that_come(void **state)
{
    (void)state;
    static uint8_t payload[65507];
    datagram =
        (struct inet_datagram){.peer_ip = PEER, .peer_port = 9, .own_port = 10, .payload = payload};
    for (uint32_t bytes = 0; bytes <= sizeof(payload); bytes += bytes < 20000 ? 1 : 1009) {
        datagram.payload_bytes = bytes;
        const bool fits = 42 + bytes <= HDL_FRAME_BYTES_MAX;
        assert_int_equal(bridge_come(&bridge, &datagram), fits ? BRIDGE_CAME : BRIDGE_CAME_LONG);
        assert_true(!fits || bridge.frame_bytes == 42 + bytes);
    }
    datagram.own_port = ROCE;
    for (datagram.payload_bytes = 0; datagram.payload_bytes < 16; datagram.payload_bytes++) {
        assert_int_equal(bridge_come(&bridge, &datagram), BRIDGE_CAME_NO_ROCE);
    }
}

/* From a design to another one: whatever leaves here, comes there. */
static void test_two(void **state)
{
    (void)state;
    static struct bridge other;
    static struct bytes frame;
    struct prng prng;
    prng_init(&prng, 6);
    bridge_init(&other, PEER);
    uint32_t left = 0;
    for (uint32_t round = 0; round < 200000; round++) {
        lay_out_roce(&frame, (uint32_t)prng_below(&prng, 40));
        for (uint64_t i = prng_below(&prng, 4); i > 0; i--) {
            frame.at[prng_below(&prng, frame.count)] = (uint8_t)prng_next(&prng);
        }
        put_ip_checksum(frame.at + 14);
        if (prng_chance(&prng, 900000) && load_be16(frame.at + 36) == ROCE) {
            put_icrc(&frame);
        }
        if (leave(&frame) != BRIDGE_LEFT || datagram.peer_ip != PEER) {
            continue;
        }
        const uint32_t bytes = datagram.payload_bytes;
        const struct inet_datagram back = {.peer_ip = DESIGN,
                                           .peer_port = datagram.own_port,
                                           .own_port = datagram.peer_port,
                                           .variant = datagram.variant,
                                           .payload = datagram.payload,
                                           .payload_bytes = bytes};
        assert_int_equal(bridge_come(&other, &back), BRIDGE_CAME);
        assert_memory_equal(other.frame + 42, datagram.payload, bytes);
        assert_int_equal(other.frame_bytes, 42 + bytes);
        left++;
    }
    assert_in_range(left, 50000, 199999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_leaves, set_up),
        cmocka_unit_test_setup(test_every_bit, set_up),
        cmocka_unit_test_setup(test_every_length, set_up),
        cmocka_unit_test_setup(test_wrong_icrc, set_up),
        cmocka_unit_test_setup(test_names, set_up),
        cmocka_unit_test_setup(test_arp, set_up),
        cmocka_unit_test_setup(test_asks, set_up),
        cmocka_unit_test_setup(test_echo, set_up),
        cmocka_unit_test_setup(test_comes, set_up),
        cmocka_unit_test_setup(test_lengths_that_come, set_up),
        cmocka_unit_test_setup(test_two, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
