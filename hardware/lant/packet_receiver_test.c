/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets come out whole and once, in order, and nothing of a bad one does; a broken packet
 *         costs no other. C3 gives memory nothing before the CRC is right; C4 knows what is for
 *         whom.
 * Method  Cases by hand; then packets by chance, with wrong bits, missing and added flits, held
 *         against lant_decode of what was sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/lant/answer_receiver.h"
#include "hardware/lant/request_receiver.h"
#include "hardware/lant/test_packets.h"

static void assert_same(const struct lant_packet *one, const struct lant_packet *other)
{
    uint64_t flits[LANT_PACKET_FLITS_MAX], others[LANT_PACKET_FLITS_MAX];
    const uint32_t count = lant_encode(one, flits);
    assert_int_equal(lant_encode(other, others), count);
    assert_memory_equal(flits, others, count * sizeof(flits[0]));
}

/* -- What both have in common -------------------------------------------------------------------*/

/* The first `count` of a packet's flits. */
static void send(struct lant_packet_receiver *receiver, const uint64_t *flits, uint32_t count,
                 bool ends)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct lant_flit flit = {flits[i], ends && i + 1 == count};
        assert_true(lant_packet_receiver_ready(receiver));
        lant_packet_receiver_take(receiver, &flit);
        assert_false(lant_packet_receiver_ready(receiver)); /* One a cycle. */
        lant_packet_receiver_step(receiver);
    }
}

/* LNI-12: the parts on the receiving side. */
static void test_parts(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t payload = 0; payload <= LANT_PAYLOAD_FLITS_MAX; payload++) {
        for (uint32_t extended = 0; extended <= (payload > 0 ? 1 : 0); extended++) {
            const struct lant_packet packet = test_packet(&prng, payload, extended);
            struct lant_packet_receiver receiver;
            uint64_t flits[LANT_PACKET_FLITS_MAX];
            const uint32_t count = lant_encode(&packet, flits);
            lant_packet_receiver_init(&receiver, 1);
            for (uint32_t i = 0; i < count; i++) {
                const struct lant_flit flit = {flits[i], i + 1 == count};
                const uint32_t head = 2 + extended;
                assert_int_equal(receiver.part, i < head                 ? LANT_HEAD1 + i
                                                : i < head + payload     ? LANT_BODY
                                                : i < head + payload + 1 ? LANT_FOOT1
                                                                         : LANT_FOOT2);
                assert_null(lant_packet_receiver_offer(&receiver));
                for (uint32_t wait = 0; wait < i % 3; wait++) {
                    lant_packet_receiver_step(&receiver); /* Nothing comes: nothing changes. */
                }
                lant_packet_receiver_take(&receiver, &flit);
                lant_packet_receiver_step(&receiver);
            }
            const struct lant_arrival *arrival = lant_packet_receiver_offer(&receiver);
            assert_non_null(arrival);
            assert_int_equal(arrival->verdict, LANT_WHOLE);
            assert_same(&arrival->packet, &packet);
            lant_packet_receiver_taken(&receiver);
            assert_true(lant_packet_receiver_idle(&receiver));
        }
    }
}

/* All places in use: the next packet's last flit waits, and nothing is lost. */
static void test_full(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);
    struct lant_packet packets[3];
    struct lant_packet_receiver receiver;
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    lant_packet_receiver_init(&receiver, 2);
    for (uint32_t i = 0; i < 3; i++) {
        packets[i] = test_packet(&prng, i, false);
        const uint32_t count = lant_encode(&packets[i], flits);
        send(&receiver, flits, count - (i == 2), i < 2);
        if (i == 2) {
            const struct lant_flit last = {flits[count - 1], true};
            assert_false(lant_packet_receiver_ready(&receiver));
            lant_packet_receiver_step(&receiver);
            assert_same(&lant_packet_receiver_offer(&receiver)->packet, &packets[0]);
            lant_packet_receiver_taken(&receiver);
            assert_true(lant_packet_receiver_ready(&receiver));
            lant_packet_receiver_take(&receiver, &last);
            lant_packet_receiver_step(&receiver);
        }
    }
    for (uint32_t i = 1; i < 3; i++) {
        assert_same(&lant_packet_receiver_offer(&receiver)->packet, &packets[i]);
        lant_packet_receiver_taken(&receiver);
    }
}

enum misuse {
    NOTHING,
    WRONG_BIT,
    TWO_WRONG_BITS, /* In one flit. */
    CUT_SHORT,
    LENGTHENED,
    MISUSES,
};

/* Returns how many flits there are then. */
static uint32_t misuse(uint64_t *flits, uint32_t count, enum misuse kind, struct prng *prng)
{
    const uint32_t at = (uint32_t)prng_below(prng, count);
    const uint32_t bit = (uint32_t)prng_below(prng, 64);
    switch (kind) {
    case TWO_WRONG_BITS:
        flits[at] ^= UINT64_C(1) << (bit + 1 + prng_below(prng, 63)) % 64;
        flits[at] ^= UINT64_C(1) << bit;
        return count;
    case WRONG_BIT: flits[at] ^= UINT64_C(1) << bit; return count;
    case CUT_SHORT: return 1 + (uint32_t)prng_below(prng, count - 1);
    case LENGTHENED:
        for (uint32_t i = 0; i < 3; i++) {
            flits[count++] = prng_next(prng);
        }
        return count;
    case NOTHING:
    case MISUSES: break;
    }
    return count;
}

/* Each verdict is that of lant_decode on all that came, and comes as often. */
static void test_damage(void **state)
{
    (void)state;
    struct prng prng;
    struct lant_packet_receiver receiver;
    uint64_t verdicts[LANT_VERDICT_COUNT] = {0}, repairs = 0;
    prng_init(&prng, 3);
    lant_packet_receiver_init(&receiver, 1);
    for (uint32_t round = 0; round < 30000; round++) {
        uint64_t flits[LANT_PACKET_FLITS_MAX + 3];
        const uint32_t payload = (uint32_t)prng_below(&prng, prng_below(&prng, 2) == 0 ? 3 : 65);
        struct lant_packet packet =
            test_packet(&prng, payload, payload > 0 && prng_below(&prng, 4) == 0);
        struct lant_packet decoded;
        uint32_t repaired;
        if (prng_below(&prng, 8) == 0) { /* Unknown, or one that is not so long. */
            packet.header.type = (uint8_t)prng_below(&prng, 16);
        }
        const uint32_t count = misuse(flits, lant_encode(&packet, flits),
                                      (enum misuse)prng_below(&prng, MISUSES), &prng);
        const enum lant_verdict verdict = lant_decode(flits, count, &decoded, &repaired);
        verdicts[verdict]++;
        /* What has not its length is dropped before anything is mended. */
        const bool fits = verdict != LANT_SHORT && verdict != LANT_LENGTH_WRONG;
        repairs += fits ? repaired : 0;
        send(&receiver, flits, count, true);
        const struct lant_arrival *arrival = lant_packet_receiver_offer(&receiver);
        if (verdict != LANT_WHOLE && verdict != LANT_CRC_WRONG && verdict != LANT_TYPE_UNKNOWN) {
            assert_null(arrival);
            continue;
        }
        assert_int_equal(arrival->verdict, verdict);
        assert_int_equal(arrival->packet.footer.row, decoded.footer.row);
        if (verdict == LANT_WHOLE) {
            assert_same(&arrival->packet, &packet);
        }
        lant_packet_receiver_taken(&receiver);
        assert_true(lant_packet_receiver_idle(&receiver));
    }
    for (uint32_t i = 0; i < LANT_VERDICT_COUNT; i++) {
        assert_int_equal(receiver.counters.packets[i], verdicts[i]);
    }
    assert_true(verdicts[LANT_WHOLE] > 5000 && verdicts[LANT_CRC_WRONG] > 5000);
    assert_true(verdicts[LANT_SHORT] > 100 && verdicts[LANT_HEAD_DAMAGED] > 100);
    assert_true(verdicts[LANT_LENGTH_WRONG] > 100 && verdicts[LANT_FOOT_DAMAGED] > 100);
    assert_true(verdicts[LANT_TYPE_UNKNOWN] > 100 && verdicts[LANT_MALFORMED] > 100);
    assert_int_equal(receiver.counters.repaired, repairs);
}

/* -- C3 -----------------------------------------------------------------------------------------*/

/* Before the last flit has come, nothing may be given. */
static void request(struct lant_request_receiver *receiver, const uint64_t *flits, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct lant_flit flit = {flits[i], i + 1 == count};
        struct lant_request_beat beat;
        assert_false(lant_request_receiver_offer(receiver, &beat));
        lant_request_receiver_take(receiver, &flit);
        lant_request_receiver_step(receiver);
    }
}

/* LNI-14: no beat before the last flit; a damaged packet gives no payload, whichever bit it is. */
static void test_store_and_forward(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 4);
    struct lant_request_receiver receiver;
    const struct lant_packet packet = test_packet(&prng, 6, false);
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    const uint32_t count = lant_encode(&packet, flits);
    for (uint32_t bit = 0; bit <= 64 * count; bit++) {
        uint64_t damaged[LANT_PACKET_FLITS_MAX];
        struct lant_request_beat beat;
        uint32_t beats = 0;
        (void)lant_encode(&packet, damaged);
        if (bit < 64 * count) {
            damaged[bit / 64] ^= UINT64_C(1) << bit % 64;
        }
        lant_request_receiver_init(&receiver, 2, false);
        request(&receiver, damaged, count);
        /* H1, H2 and F1 mend a bit; AGE and the codes do not count. */
        const bool is_mended = bit / 64 < 2 || bit / 64 == count - 2 || bit == 64 * count;
        while (lant_request_receiver_offer(&receiver, &beat)) {
            assert_false(beat.unverified);
            assert_int_equal(beat.beat, beats);
            assert_int_equal(beat.verdict, is_mended ? LANT_WHOLE : LANT_CRC_WRONG);
            assert_int_equal(beat.data, is_mended ? packet.payload[beats] : 0);
            assert_int_equal(beat.packet->footer.source, packet.footer.source);
            lant_request_receiver_taken(&receiver);
            assert_false(lant_request_receiver_offer(&receiver, &beat));
            lant_request_receiver_step(&receiver);
            beats++;
        }
        assert_int_equal(beats, is_mended ? 6 : 1);
        assert_true(lant_request_receiver_idle(&receiver));
    }
}

/* What LNI-14 is there for: cut through, memory has the wrong data before anybody knows. */
static void test_cut_through(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 5);
    struct lant_request_receiver receiver;
    uint64_t given = 0;
    lant_request_receiver_init(&receiver, 2, true);
    for (uint32_t round = 0; round < 2000; round++) {
        const uint32_t payload = (uint32_t)prng_below(&prng, 9);
        const struct lant_packet packet = test_packet(&prng, payload, payload > 4);
        uint64_t flits[LANT_PACKET_FLITS_MAX + 3];
        const uint32_t count = misuse(flits, lant_encode(&packet, flits),
                                      (enum misuse)prng_below(&prng, MISUSES), &prng);
        struct lant_packet decoded;
        uint32_t repaired, unverified = 0, closing = 0;
        const enum lant_verdict verdict = lant_decode(flits, count, &decoded, &repaired);
        for (uint32_t i = 0; i < count + 2; i++) {
            const struct lant_flit flit = {flits[i < count ? i : 0], i + 1 == count};
            struct lant_request_beat beat;
            if (lant_request_receiver_offer(&receiver, &beat)) {
                assert_int_equal(beat.unverified, !beat.last);
                assert_true(!beat.unverified || payload == 0 ||
                            beat.data == flits[(payload > 4 ? 3 : 2) + beat.beat]);
                assert_true(beat.unverified || beat.verdict == verdict);
                unverified += beat.unverified;
                closing += !beat.unverified;
                lant_request_receiver_taken(&receiver);
            }
            if (i < count) {
                lant_request_receiver_take(&receiver, &flit);
            }
            lant_request_receiver_step(&receiver);
        }
        assert_true(lant_request_receiver_idle(&receiver));
        assert_int_equal(closing, verdict <= LANT_TYPE_UNKNOWN);
        assert_true(verdict != LANT_WHOLE || unverified == (payload == 0 ? 1 : payload));
        given += verdict == LANT_WHOLE ? 0 : unverified;
        assert_int_equal(receiver.damaged, given);
    }
    assert_true(given > 1000);
}

/* -- C4 -----------------------------------------------------------------------------------------*/

static void answer(struct lant_answer_receiver *receiver, const struct lant_packet *packet,
                   uint32_t wrong)
{
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    const uint32_t count = lant_encode(packet, flits);
    flits[count - 1] ^= wrong;
    for (uint32_t i = 0; i < count; i++) {
        const struct lant_flit flit = {flits[i], i + 1 == count};
        assert_true(lant_answer_receiver_ready(receiver));
        lant_answer_receiver_take(receiver, &flit);
        lant_answer_receiver_step(receiver);
    }
}

/* Table D.4: which table, and which ones start a retransmission. */
static void test_answers(void **state)
{
    (void)state;
    static const struct {
        uint8_t type, class, response, payload, kind;
        bool again;
    } ROWS[] = {
        {LANT_R, 0, LANT_OKAY, 1, LANT_ANSWER_SHM, false},
        {LANT_R, 0, LANT_NACK_CRC, 0, LANT_ANSWER_SHM, true},
        {LANT_B, 0, LANT_LOCKED, 0, LANT_ANSWER_SHM, false},
        {LANT_B, 0, LANT_NACK_LINK, 0, LANT_ANSWER_SHM, true},
        {LANT_RDMA_ACK, 1, LANT_OKAY, 0, LANT_ANSWER_RDMA, false},
        {LANT_RDMA_ACK, 1, LANT_NACK_BUSY, 0, LANT_ANSWER_RDMA, true},
        {LANT_RDMA_ACK, 2, LANT_DECERR, 0, LANT_ANSWER_RDMA, false},
        {LANT_COMPLETION_NOTIFICATION, 2, LANT_OKAY, 1, LANT_ANSWER_NOTIFICATION, false},
        {LANT_AW, 0, LANT_OKAY, 1, LANT_ANSWER_NONE, false},
    };
    struct lant_answer_receiver receiver;
    lant_answer_receiver_init(&receiver, 2);
    for (uint32_t i = 0; i < 2 * COUNT_OF(ROWS); i++) {
        const uint32_t row = i / 2;
        const bool damaged = i % 2 == 1;
        const struct lant_packet packet = {
            .header = {.type = ROWS[row].type, .payload = ROWS[row].payload, .size = 3},
            .footer = {.class = ROWS[row].class, .response = ROWS[row].response, .row = 77}};
        struct lant_answer_arrival arrival;
        answer(&receiver, &packet, damaged);
        const bool any = lant_answer_receiver_offer(&receiver, &arrival);
        assert_int_equal(any, ROWS[row].kind != LANT_ANSWER_NONE &&
                                  (!damaged || ROWS[row].kind == LANT_ANSWER_NOTIFICATION));
        if (any) {
            assert_int_equal(arrival.kind, ROWS[row].kind);
            assert_int_equal(arrival.again, ROWS[row].again);
            assert_int_equal(arrival.damaged, damaged);
            assert_int_equal(arrival.packet->footer.row, 77);
            lant_answer_receiver_taken(&receiver);
        }
        assert_true(lant_answer_receiver_idle(&receiver));
    }
    assert_int_equal(receiver.strays, 2);
    assert_int_equal(receiver.damaged, 7);
    /* What a damaged notification seems to answer means nothing. */
    const struct lant_packet odd = {
        .header = {.type = LANT_COMPLETION_NOTIFICATION, .payload = 1},
        .footer = {.class = LANT_CLASS_NOTIFICATION, .response = LANT_NACK_CRC}};
    struct lant_answer_arrival arrival;
    answer(&receiver, &odd, 1);
    assert_true(lant_answer_receiver_offer(&receiver, &arrival));
    assert_true(arrival.damaged && !arrival.again);
}

/* LNI-03: a length above 64 whose code is right: refused at H1 and counted, and the next packet is
 * whole. */
static void test_impossible_lengths(void **state)
{
    (void)state;
    struct prng prng;
    struct lant_packet_receiver receiver;
    uint64_t flits[3 + 127], whole[LANT_PACKET_FLITS_MAX];
    prng_init(&prng, 3);
    const struct lant_packet good = test_packet(&prng, 3, false);
    const uint32_t count = lant_encode(&good, whole);
    lant_packet_receiver_init(&receiver, 1);
    for (uint32_t length = LANT_PAYLOAD_FLITS_MAX + 1; length < 128; length++) {
        struct lant_header head = good.header;
        head.payload = (uint8_t)length;
        flits[0] = lant_flit_encode(&head, NULL, LANT_HEAD1, 0);
        assert_int_equal(lant_head_decode(flits[0], &head), LANT_CLEAN);
        assert_int_equal(head.payload, length);
        for (uint32_t i = 1; i < length + 3; i++) {
            flits[i] = prng_next(&prng);
        }
        send(&receiver, flits, length + 3, true);
        assert_null(lant_packet_receiver_offer(&receiver));
        send(&receiver, whole, count, true);
        assert_same(&lant_packet_receiver_offer(&receiver)->packet, &good);
        lant_packet_receiver_taken(&receiver);
    }
    assert_int_equal(receiver.counters.packets[LANT_LENGTH_WRONG], 127 - LANT_PAYLOAD_FLITS_MAX);
    assert_int_equal(receiver.counters.packets[LANT_WHOLE], 127 - LANT_PAYLOAD_FLITS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_impossible_lengths),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_store_and_forward),
        cmocka_unit_test(test_cut_through),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
