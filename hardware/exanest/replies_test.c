/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each answer has the form and the place that its asker expects, in order and in time.
 * Method  Replies are put in, and taken out again beat by beat, with a Ready that comes and goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/exanest/replies.h"
#include "hardware/exanest/test_beats.h"

#define OWN 77u

static const struct exanest_footer asker = {.tid = 513, .source = 0x2abcde, .sequence = 16383};

/* Steps until the next packet is whole. */
static struct test_sent next_sent(struct exanest_replies *replies, struct prng *prng)
{
    struct test_sent sent = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        struct exanest_beat beat, again;
        if (exanest_replies_offer(replies, &beat)) {
            assert_true(exanest_replies_offer(replies, &again));
            assert_memory_equal(&beat, &again, sizeof(beat));
            if (prng_below(prng, 2) == 0) {
                exanest_replies_taken(replies);
                const int whole = test_collect(&sent, &beat);
                assert_true(whole >= 0);
                if (whole == 1) {
                    return sent;
                }
            }
        }
        exanest_replies_step(replies);
    }
    fail_msg("no reply");
    return sent;
}

/* EXA-06: the sequence of a response is that of the transaction. */
static void test_forms(void **state)
{
    (void)state;
    struct prng prng;
    struct exanest_replies replies;
    prng_init(&prng, 1);
    exanest_replies_init(&replies, OWN, 4, 0, 4);
    exanest_replies_put_response(&replies, 12, &asker, EXANEST_NACK_NO_CONTEXT);
    exanest_replies_put_acknowledgement(&replies, 13, &asker, EXANEST_NACK_FULL);
    assert_int_equal(exanest_replies_room(&replies), 2);
    struct test_sent sent = next_sent(&replies, &prng);
    assert_int_equal(sent.header.type, EXANEST_ACKNOWLEDGEMENT);
    assert_int_equal(sent.header.target.coordinate, asker.source);
    assert_int_equal(sent.header.target.va, exanest_peripheral_va(EXANEST_RT_RESPONSES, 0));
    assert_int_equal(sent.header.pdid, 12);
    assert_true(sent.header.has_footer && sent.header.priority);
    assert_int_equal(sent.footer.tid, asker.tid);
    assert_int_equal(sent.footer.sequence, asker.sequence);
    assert_int_equal(sent.footer.source, OWN);
    assert_int_equal(sent.footer.status, EXANEST_NACK_NO_CONTEXT);
    sent = next_sent(&replies, &prng);
    assert_int_equal(sent.header.type, EXANEST_ACKNOWLEDGEMENT);
    assert_int_equal(sent.header.target.coordinate, asker.source);
    assert_int_equal(sent.header.target.va, exanest_peripheral_va(EXANEST_PACKETIZER, 0));
    assert_true(!sent.header.has_footer && sent.header.priority);
    assert_int_equal(sent.header.aux, exanest_aux(EXANEST_NACK_FULL, asker.tid));
    assert_true(exanest_replies_idle(&replies));
}

/* The unit that is told, by type and priority; no answer is ever answered. */
static void test_askers(void **state)
{
    (void)state;
    for (uint32_t type = EXANEST_WRITE; type <= EXANEST_FLOW_RATE; type++) {
        for (uint32_t priority = 0; priority < 2; priority++) {
            const struct exanest_header header = {.type = (uint8_t)type, .priority = priority};
            const bool packetizer =
                type == EXANEST_READ_REQUEST || (type == EXANEST_WRITE && priority);
            const bool transaction =
                type == EXANEST_CONTROL || (type == EXANEST_WRITE && !priority);
            assert_int_equal(exanest_asker(&header), packetizer    ? EXANEST_ASKER_PACKETIZER
                                                     : transaction ? EXANEST_ASKER_TRANSACTION
                                                                   : EXANEST_ASKER_NONE);
            struct exanest_replies replies;
            exanest_replies_init(&replies, OWN, 0, 0, 1);
            assert_int_equal(exanest_replies_answer(&replies, &header, &asker, EXANEST_ACK),
                             packetizer || transaction);
            assert_int_equal(exanest_replies_room(&replies), packetizer || transaction ? 0 : 1);
        }
    }
}

/* EXA-56: 16 bytes, at the address given, at any lane: 1 word or 2. */
static void test_notifications(void **state)
{
    (void)state;
    struct prng prng;
    struct exanest_replies replies;
    prng_init(&prng, 2);
    exanest_replies_init(&replies, OWN, 4, 0, 2);
    for (uint32_t lane = 0; lane < 64; lane++) {
        const struct exanest_control control = {
            .address = {.coordinate = 3, .va = 0x123450 + lane},
            .data = {prng_next(&prng), prng_next(&prng)},
            .tid = 5,
            .sequence = 6,
        };
        exanest_replies_put_notification(&replies, 9, &control);
        const struct test_sent sent = next_sent(&replies, &prng);
        assert_int_equal(sent.header.type, EXANEST_NOTIFICATION);
        assert_int_equal(sent.header.bytes, 16);
        assert_int_equal(sent.header.pdid, 9);
        assert_int_equal(sent.header.target.coordinate, 3);
        assert_int_equal(sent.header.target.va, control.address.va);
        assert_int_equal(sent.words, lane % 16 == 0 ? 1 : 2);
        const uint8_t *bytes = (const uint8_t *)sent.payload;
        assert_memory_equal(bytes + lane % 16, control.data, 16);
        for (uint32_t i = 0; i < 16u * sent.words; i++) {
            assert_true((i >= lane % 16 && i < lane % 16 + 16) || bytes[i] == 0);
        }
        assert_int_equal(sent.footer.tid, 5);
    }
}

static void test_delay(void **state)
{
    (void)state;
    struct exanest_replies replies;
    struct exanest_beat beat;
    exanest_replies_init(&replies, OWN, 4, 0, 2);
    exanest_replies_put_response(&replies, 0, &asker, EXANEST_ACK);
    for (uint32_t i = 0; i < 4; i++) {
        assert_false(exanest_replies_offer(&replies, &beat));
        exanest_replies_step(&replies);
    }
    assert_true(exanest_replies_offer(&replies, &beat));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_askers),
        cmocka_unit_test(test_notifications),
        cmocka_unit_test(test_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
