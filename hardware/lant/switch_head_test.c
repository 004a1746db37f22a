/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A switch mends every H1 that can be mended, and a packet that cannot arrive does not go
 *         round for ever. Its changes to a packet leave the rest valid.
 * Method  Each wrong bit of H1; a ring of switches that are configured wrongly, so that a packet
 *         would never leave it; each network behind the same call; answers of DECERR, decoded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/lant/lfsr.h"
#include "hardware/lant/switch_head.h"
#include "hardware/lant/test_packets.h"

static uint64_t head_of(uint32_t destination, uint32_t age, uint32_t epoch)
{
    const struct lant_header header = {.destination = destination,
                                       .type = LANT_RDMA_WRITE,
                                       .payload = 3,
                                       .age = (uint8_t)age,
                                       .epoch = (uint8_t)epoch};
    const struct lant_footer footer = {0};
    return lant_flit_encode(&header, &footer, LANT_HEAD1, 0);
}

static struct lant_switch prototype(uint32_t self)
{
    return (struct lant_switch){.network = LANT_NETWORK_PLACES,
                                .places = lant_places_prototype(self)};
}

static uint32_t age_of(uint64_t flit)
{
    struct lant_header header;
    assert_int_equal(lant_head_decode(flit, &header), LANT_CLEAN);
    return header.age;
}

/* LNI-79, LNI-08, LNI-74: any one wrong bit is mended, and the packet goes where it was meant to;
 * any two are noticed, and it goes nowhere. */
static void test_damage(void **state)
{
    (void)state;
    const struct lant_switch self = prototype(0x14403);
    const uint64_t sound = head_of(0x14805, 0, 0);
    struct lant_switch_counters counters = {0};
    for (uint32_t one = 0; one < 64; one++) {
        struct lant_switching switching =
            lant_switch_judge(&self, sound ^ UINT64_C(1) << one, 0, one);
        assert_int_equal(switching.verdict, LANT_SWITCH_FORWARD);
        assert_int_equal(switching.port, 0);
        assert_int_equal(switching.flit, sound);
        assert_true(switching.repaired);
        lant_switch_count(&counters, &switching);
        for (uint32_t two = 0; two < one; two++) {
            switching =
                lant_switch_judge(&self, sound ^ UINT64_C(1) << one ^ UINT64_C(1) << two, 0, one);
            assert_int_equal(switching.verdict, LANT_SWITCH_DAMAGED);
            lant_switch_count(&counters, &switching);
        }
    }
    assert_int_equal(counters.repaired, 64);
    assert_int_equal(counters.packets[LANT_SWITCH_FORWARD], 64);
    assert_int_equal(counters.packets[LANT_SWITCH_DAMAGED], 2016);
    const struct lant_switch there = prototype(0x14805);
    const struct lant_switching arrived = lant_switch_judge(&there, sound, 0, 0);
    assert_int_equal(arrived.verdict, LANT_SWITCH_DELIVER);
    assert_int_equal(arrived.port, 4);
    assert_false(arrived.repaired);
}

/* Two switches that send each other the packets for cabinet 9. Returns the hops until it is
 * dropped, or `most`; an epoch has `epoch_hops`. */
static uint32_t hops_in_loop(bool ageing, bool epochs, uint32_t epoch_hops, uint32_t most,
                             enum lant_switch_verdict *why)
{
    struct lant_switch switches[2] = {prototype(lant_node((struct lant_place){1, 0, 0})),
                                      prototype(lant_node((struct lant_place){2, 0, 0}))};
    const uint32_t nowhere = lant_node((struct lant_place){9, 0, 0});
    uint64_t flit = head_of(nowhere, 0, 3);
    for (uint32_t hops = 0; hops < most; hops++) {
        struct lant_switch *self = &switches[hops % 2];
        self->ageing = ageing;
        self->epochs = epochs;
        const struct lant_switching switching =
            lant_switch_judge(self, flit, 3 + hops / epoch_hops, hops);
        *why = switching.verdict;
        if (switching.verdict != LANT_SWITCH_FORWARD) {
            return hops;
        }
        assert_int_equal(switching.port, 3);
        flit = switching.flit;
        assert_int_equal(age_of(flit), ageing ? hops + 1 : 0);
    }
    return most;
}

/* LNI-79: both remedies end a livelock; without them it goes on. */
static void test_livelock(void **state)
{
    (void)state;
    enum lant_switch_verdict why;
    assert_int_equal(hops_in_loop(false, false, 10, 10000, &why), 10000);
    assert_int_equal(hops_in_loop(true, false, 10, 10000, &why), LANT_AGE_MAX);
    assert_int_equal(why, LANT_SWITCH_TOO_OLD);
    assert_int_equal(hops_in_loop(false, true, 100, 10000, &why), 200);
    assert_int_equal(why, LANT_SWITCH_LATE);
    assert_int_equal(hops_in_loop(true, true, 3, 10000, &why), 6);
    assert_int_equal(why, LANT_SWITCH_LATE);
}

/* A packet that has come where it belongs is delivered at any age, and its age does not change. */
static void test_delivery(void **state)
{
    (void)state;
    for (uint32_t age = 0; age <= LANT_AGE_MAX; age++) {
        struct lant_switch self = prototype(7);
        self.ageing = true;
        const struct lant_switching here = lant_switch_judge(&self, head_of(7, age, 0), 0, 0);
        const struct lant_switching on = lant_switch_judge(&self, head_of(6, age, 0), 0, 0);
        assert_int_equal(here.verdict, LANT_SWITCH_DELIVER);
        assert_int_equal(age_of(here.flit), age);
        assert_int_equal(on.verdict,
                         age == LANT_AGE_MAX ? LANT_SWITCH_TOO_OLD : LANT_SWITCH_FORWARD);
        assert_int_equal(age_of(on.flit), age == LANT_AGE_MAX ? age : age + 1);
    }
}

/* This epoch and the one before are good, whatever the numbers. */
static void test_epochs(void **state)
{
    (void)state;
    for (uint32_t now = 0; now < 12; now++) {
        for (uint32_t sent = 0; sent < 4; sent++) {
            struct lant_switch self = prototype(7);
            self.epochs = true;
            const bool good = now % 4 == sent || now % 4 == (sent + 1) % 4;
            assert_int_equal(lant_switch_judge(&self, head_of(6, 0, sent), now, 0).verdict,
                             good ? LANT_SWITCH_FORWARD : LANT_SWITCH_LATE);
        }
    }
}

/* LNI-07: 15 hops, and the CRC is right all the same; a bit that was wrong on the way, too. */
static void test_crc_survives(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t round = 0; round < 500; round++) {
        struct lant_packet packet = test_packet(&prng, (uint32_t)prng_below(&prng, 65), false);
        struct lant_packet decoded;
        uint64_t flits[LANT_PACKET_FLITS_MAX];
        uint32_t repaired;
        packet.header.age = 0;
        packet.header.destination = 5;
        const uint32_t count = lant_encode(&packet, flits);
        for (uint32_t hop = 0; hop < LANT_AGE_MAX; hop++) {
            struct lant_switch self = prototype(6 + hop);
            self.ageing = true;
            flits[0] ^= prng_below(&prng, 2) << prng_below(&prng, 64);
            const struct lant_switching switching =
                lant_switch_judge(&self, flits[0], 0, (uint32_t)prng_next(&prng));
            assert_int_equal(switching.verdict, LANT_SWITCH_FORWARD);
            flits[0] = switching.flit;
        }
        assert_int_equal(lant_decode(flits, count, &decoded, &repaired), LANT_WHOLE);
        assert_int_equal(repaired, 0);
        assert_int_equal(decoded.header.age, LANT_AGE_MAX);
        assert_int_equal(decoded.header.destination, 5);
    }
}

/* The four networks behind one call: the arithmetic itself is routing_test's. */
static void test_networks(void **state)
{
    (void)state;
    const struct lant_switch dragonfly = {
        .network = LANT_NETWORK_DRAGONFLY,
        .ageing = true,
        .group = 0,
        .router = 1,
        .dragonfly = {.groups = 5, .routers = 4, .hosts = 3, .globals = 2, .valiant = true}};
    const struct lant_switch tree = {
        .network = LANT_NETWORK_FAT_TREE, .level = 1, .position = 2, .tree = {4, 3, 0}};
    const struct lant_switch torus = {
        .network = LANT_NETWORK_TORUS, .self = 5, .torus = {2, {4, 4}}};
    const uint32_t host = lant_node((struct lant_place){0, 1, 2});
    const uint32_t far = lant_node((struct lant_place){1, 0, 0});
    assert_int_equal(lant_switch_judge(&dragonfly, head_of(host, 3, 0), 0, 0).port, 2);
    /* Age 0: any of its global ports; later: to the owner of the one link. */
    assert_in_range(lant_switch_judge(&dragonfly, head_of(far, 0, 0), 0, 0).port, 6, 7);
    assert_int_equal(lant_switch_judge(&dragonfly, head_of(far, 1, 0), 0, 0).port, 3);
    assert_int_equal(lant_switch_judge(&tree, head_of(9, 0, 0), 0, 0).port, 2);
    assert_in_range(lant_switch_judge(&tree, head_of(63, 0, 0), 0, 0).port, 4, 7);
    assert_int_equal(lant_switch_judge(&torus, head_of(6, 0, 0), 0, 0).port, 0);
    assert_int_equal(lant_switch_judge(&torus, head_of(1, 0, 0), 0, 0).port, 3);
    assert_int_equal(lant_switch_judge(&torus, head_of(5, 0, 0), 0, 0).port, 4);
    assert_int_equal(lant_switch_judge(&dragonfly, head_of(5 << 14, 0, 0), 0, 0).verdict,
                     LANT_SWITCH_REFUSE);
    assert_int_equal(lant_switch_judge(&tree, head_of(64, 0, 0), 0, 0).verdict, LANT_SWITCH_REFUSE);
    assert_int_equal(lant_switch_judge(&torus, head_of(16, 0, 0), 0, 0).verdict,
                     LANT_SWITCH_REFUSE);
}

/* A destination that does not exist: DECERR to its sender, if F1 can be read, and never to an
 * answer. The answer is a packet that its receiver finds whole. */
static void test_refusal(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);
    uint32_t answers = 0, silences = 0;
    for (uint32_t round = 0; round < 20000; round++) {
        struct lant_packet packet = test_packet(&prng, (uint32_t)prng_below(&prng, 4), false);
        struct lant_packet answer, decoded;
        uint64_t flits[LANT_PACKET_FLITS_MAX], out[LANT_PACKET_FLITS_MAX];
        uint32_t repaired;
        const bool is_answer = packet.header.payload == 0 && prng_below(&prng, 2) == 0;
        if (is_answer) {
            packet.header = (struct lant_header){.destination = 1, .type = LANT_B};
        }
        const uint32_t count = lant_encode(&packet, flits);
        const uint32_t foot = count - 2, damaged = (uint32_t)prng_below(&prng, 3);
        if (damaged > 0) {
            flits[damaged == 1 ? foot : 1 + prng_below(&prng, count - 1)] ^= 3u << 20;
        }
        const enum lant_verdict verdict = lant_decode(flits, count, &decoded, &repaired);
        const bool expected = !is_answer && verdict != LANT_FOOT_DAMAGED;
        const enum lant_response why = round % 2 == 0 ? LANT_DECERR : LANT_NACK_CRC;
        assert_int_equal(lant_switch_refusal(flits, count, 77, 6, why, &answer), expected);
        answers += expected;
        silences += !expected;
        if (expected) {
            assert_int_equal(lant_decode(out, lant_encode(&answer, out), &decoded, &repaired),
                             LANT_WHOLE);
            assert_int_equal(decoded.header.destination, packet.footer.source);
            assert_int_equal(decoded.header.epoch, 2);
            assert_int_equal(decoded.footer.source, 77);
            assert_int_equal(decoded.footer.response, why);
            assert_int_equal(decoded.footer.row, packet.footer.row);
            assert_int_equal(decoded.header.type,
                             packet.header.type == LANT_AR ? LANT_R : LANT_RDMA_ACK);
        }
    }
    assert_true(answers > 5000 && silences > 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_livelock),
        cmocka_unit_test(test_delivery),     cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_crc_survives), cmocka_unit_test(test_networks),
        cmocka_unit_test(test_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
