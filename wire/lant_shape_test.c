/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What is no packet is refused with the right name, and no packet is.
 * Method  Each type with each length; single contradictions by hand, with right codes around them;
 *         packets that were cut off, or have flits too many; flits by chance. Behaviour LNI-03, but
 *         for the memory, which belongs to the receiver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "wire/lant_test_packet.h"

static enum lant_verdict judge(const uint64_t *flits, uint32_t count)
{
    struct lant_packet packet;
    uint32_t repaired;
    return lant_decode(flits, count, &packet, &repaired);
}

static enum lant_verdict judge_packet(const struct lant_packet *packet)
{
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    return judge(flits, lant_encode(packet, flits));
}

/* LNI-03: cut off at each flit, also between F1 and its place; a flit too many. */
static void test_counts(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t type = 1; type < LANT_TYPE_COUNT; type++) {
        const struct lant_packet packet = any_packet(&prng, type);
        uint64_t flits[LANT_PACKET_FLITS_MAX + 1] = {0};
        const uint32_t whole = lant_encode(&packet, flits);
        for (uint32_t count = 0; count <= LANT_PACKET_FLITS_MAX + 1; count++) {
            const enum lant_verdict expected = count < LANT_PACKET_FLITS_MIN ? LANT_SHORT
                                               : count == whole              ? LANT_WHOLE
                                                                             : LANT_LENGTH_WRONG;
            assert_int_equal(judge(flits, count), expected);
        }
        /* F1 is missing. */
        flits[whole - 2] = flits[whole - 1];
        assert_int_equal(judge(flits, whole - 1),
                         whole == LANT_PACKET_FLITS_MIN ? LANT_SHORT : LANT_LENGTH_WRONG);
    }
}

/* LNI-03: what LEN may not be, with as many flits as it says. */
static void test_longer_than_any(void **state)
{
    (void)state;
    for (uint32_t payload = LANT_PAYLOAD_FLITS_MAX + 1; payload < 128; payload++) {
        uint64_t flits[128 + LANT_PACKET_FLITS_MIN] = {0};
        flits[0] = lant_secded((uint64_t)LANT_RDMA_WRITE << 38 | (uint64_t)payload << 31);
        assert_int_equal(judge(flits, LANT_PACKET_FLITS_MIN + payload), LANT_LENGTH_WRONG);
    }
}

/* LNI-03: whoever sent it can be told so. */
static void test_unknown_types(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);
    for (uint32_t type = 0; type < 16; type++) {
        struct lant_packet sent = any_packet(&prng, LANT_RDMA_WRITE), got;
        uint64_t flits[LANT_PACKET_FLITS_MAX];
        uint32_t repaired;
        if (type >= 1 && type < LANT_TYPE_COUNT) {
            continue;
        }
        sent.header.type = (uint8_t)type;
        const uint32_t count = lant_encode(&sent, flits);
        assert_int_equal(lant_decode(flits, count, &got, &repaired), LANT_TYPE_UNKNOWN);
        assert_true(footers_equal(&got.footer, &sent.footer));
        assert_true(heads_equal(&got.header, &sent.header));
        /* The CRC is judged first: the type is not to blame. */
        flits[count - 1] ^= 1;
        assert_int_equal(judge(flits, count), LANT_CRC_WRONG);
    }
}

/* LNI-03: each type with each length. */
static void test_lengths(void **state)
{
    (void)state;
    static const uint8_t limits[LANT_TYPE_COUNT][2] = {
        [LANT_AR] = {0, 0},
        [LANT_AW] = {1, 1},
        [LANT_B] = {0, 0},
        [LANT_RDMA_WRITE] = {1, 64},
        [LANT_RDMA_WRITE_REGISTER] = {1, 64},
        [LANT_RDMA_UNREGISTERED] = {1, 64},
        [LANT_RDMA_ACK] = {0, 0},
        [LANT_COMPLETION_NOTIFICATION] = {1, 1},
        [LANT_ERROR_REPORT] = {2, 2},
    };
    struct prng prng;
    prng_init(&prng, 3);
    for (uint32_t type = 1; type < LANT_TYPE_COUNT; type++) {
        for (uint32_t payload = 0; payload <= LANT_PAYLOAD_FLITS_MAX; payload++) {
            struct lant_packet packet = any_packet(&prng, type);
            const uint8_t response = packet.footer.response;
            const bool nack = response == 4 || response == 5 || response == 7;
            packet.header.payload = (uint8_t)payload;
            const uint32_t operands = packet.header.packets == LANT_COMPARE_SWAP ? 2 : 1;
            const bool fits = type == LANT_ATOMIC ? payload == operands
                              : type == LANT_R
                                  ? payload == !nack
                                  : payload >= limits[type][0] && payload <= limits[type][1];
            assert_int_equal(judge_packet(&packet), fits ? LANT_WHOLE : LANT_MALFORMED);
        }
    }
}

/* The types, as a bit each, in which a field may be other than it is in all the others. */
#define BIT(type) (1u << (type))
#define SHM       (BIT(LANT_AR) | BIT(LANT_AW) | BIT(LANT_R) | BIT(LANT_B))
#define ANSWERS   (BIT(LANT_R) | BIT(LANT_B) | BIT(LANT_RDMA_ACK))
#define DATA      (7u << LANT_RDMA_WRITE) /* These three types follow each other. */
#define ALL       ((1u << LANT_TYPE_COUNT) - 2)

/* Changes one thing; returns the types that may have it like that. */
static uint32_t change(struct lant_packet *packet, uint32_t which)
{
    struct lant_header *header = &packet->header;
    struct lant_footer *footer = &packet->footer;
    switch (which) {
    case 0:
        header->packets = 1; /* In ATOMIC: to add, which has one operand. */
        header->payload = header->type == LANT_ATOMIC ? 1 : header->payload;
        return BIT(LANT_RDMA_WRITE_REGISTER) | BIT(LANT_ATOMIC);
    case 1: header->packets = 1024; return BIT(LANT_RDMA_WRITE_REGISTER);
    case 2: header->packets = 1025; return 0;
    case 3: header->packets = 2047; return 0;
    case 4: header->packets = 0; return ALL & ~(BIT(LANT_RDMA_WRITE_REGISTER) | BIT(LANT_ATOMIC));
    case 5: header->lock = true; return SHM;
    case 6: header->keyhole = true; return DATA;
    case 7:
        header->keyhole = true;
        header->extended = true;
        return DATA;
    case 8:
        header->keyhole = false;
        header->extended = true;
        return 0;
    case 9: header->address = 1; return ALL & ~ANSWERS;
    case 10: header->strobe = 1; return ALL & ~ANSWERS;
    case 11:
        /* Not of a load's answer, whose payload would have to change as well. */
        footer->response = LANT_NACK_BUSY;
        header->payload = header->type == LANT_R ? 0 : header->payload;
        return ANSWERS;
    case 12: footer->class = LANT_CLASS_SHM; return SHM | BIT(LANT_ERROR_REPORT) | BIT(LANT_ATOMIC);
    case 13:
        footer->class = LANT_CLASS_RDMA;
        return DATA | BIT(LANT_RDMA_ACK) | BIT(LANT_ERROR_REPORT);
    case 14:
        footer->class = LANT_CLASS_NOTIFICATION;
        return BIT(LANT_COMPLETION_NOTIFICATION) | BIT(LANT_RDMA_ACK) | BIT(LANT_ERROR_REPORT);
    case 15: footer->class = 3; return 0;
    case 16: header->packets = 4; return BIT(LANT_RDMA_WRITE_REGISTER);
    default: UNREACHABLE("change");
    }
}

/* LNI-03, LNI-W-4. */
static void test_contradictions(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 4);
    for (uint32_t round = 0; round < 17 * (LANT_TYPE_COUNT - 1) * 100; round++) {
        const uint32_t type = 1 + round / 17 % (LANT_TYPE_COUNT - 1);
        struct lant_packet packet = any_packet(&prng, type);
        const uint32_t allowed = change(&packet, round % 17);
        assert_int_equal(judge_packet(&packet), allowed & BIT(type) ? LANT_WHOLE : LANT_MALFORMED);
    }
}

static void test_reserved_bits(void **state)
{
    (void)state;
    static const struct {
        uint32_t flit, bit;
    } reserved[] = {{0, 7}, {0, 8}, {1, 7}};
    struct prng prng;
    prng_init(&prng, 5);
    for (uint32_t type = 1; type < LANT_TYPE_COUNT; type++) {
        for (size_t i = 0; i < COUNT_OF(reserved); i++) {
            const struct lant_packet packet = any_packet(&prng, type);
            uint64_t flits[LANT_PACKET_FLITS_MAX];
            const uint32_t count = lant_encode(&packet, flits);
            seal(flits, count, 2 + packet.header.extended);
            assert_int_equal(judge(flits, count), LANT_WHOLE);
            flits[reserved[i].flit] ^= UINT64_C(1) << reserved[i].bit;
            seal(flits, count, 2 + packet.header.extended);
            assert_int_equal(judge(flits, count), LANT_MALFORMED);
        }
    }
}

/* Flits by chance are no packet, and those of none are not either. */
static void test_noise(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 6);
    for (int round = 0; round < 20000; round++) {
        uint64_t flits[LANT_PACKET_FLITS_MAX];
        const uint32_t count = (uint32_t)prng_below(&prng, LANT_PACKET_FLITS_MAX + 1);
        for (uint32_t i = 0; i < count; i++) {
            flits[i] = round % 2 ? prng_next(&prng) : lant_secded(prng_next(&prng));
        }
        const enum lant_verdict verdict = judge(flits, count);
        assert_true(verdict != LANT_WHOLE && verdict < LANT_VERDICT_COUNT);
        memset(flits, round % 2 ? 0xff : 0, sizeof(flits));
        assert_int_not_equal(judge(flits, count), LANT_WHOLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),         cmocka_unit_test(test_longer_than_any),
        cmocka_unit_test(test_unknown_types),  cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_contradictions), cmocka_unit_test(test_reserved_bits),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
