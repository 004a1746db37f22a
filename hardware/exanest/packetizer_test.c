/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A message goes out as its user stored it, with the domain that the kernel gave, and again
 *         until it is acknowledged, given back, or was sent too often.
 * Method  A packetizer whose packets a test takes and answers, or doesn't; then by chance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "hardware/exanest/packetizer.h"
#include "hardware/exanest/test_beats.h"

#define OWN     17u
#define TIMEOUT 200u
#define BACKOFF 50u
#define RETRIES 3u

static struct exanest_packetizer *new_packetizer(void)
{
    struct exanest_packetizer *packetizer = calloc(1, sizeof(*packetizer));
    const struct exanest_packetizer_parameters parameters = {.coordinate = OWN,
                                                             .timeout_cycles = TIMEOUT,
                                                             .backoff_cycles = BACKOFF,
                                                             .retries = RETRIES};
    assert_non_null(packetizer);
    exanest_packetizer_init(packetizer, &parameters);
    for (uint32_t c = 0; c < EXANEST_PACKETIZER_CHANNELS; c++) {
        exanest_packetizer_give(packetizer, c, (uint16_t)(100 + c));
    }
    return packetizer;
}

static void post(struct exanest_packetizer *packetizer, uint32_t channel, uint64_t va,
                 uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += 8) {
        assert_int_equal(
            exanest_packetizer_store(packetizer, channel, at,
                                     0x0706050403020100 + at * UINT64_C(0x0101010101010101)),
            EXANEST_STORE_GOOD);
    }
    const struct exanest_target target = {.coordinate = 3, .va = va};
    assert_int_equal(exanest_packetizer_store(packetizer, channel, EXANEST_PACKETIZER_TARGET,
                                              exanest_target_encode(target)),
                     EXANEST_STORE_GOOD);
    assert_int_equal(
        exanest_packetizer_store(packetizer, channel, EXANEST_PACKETIZER_COMMAND, bytes),
        EXANEST_STORE_GOOD);
}

static uint32_t phase_of(const struct exanest_packetizer *packetizer, uint32_t channel)
{
    return exanest_packetizer_state(packetizer, channel).phase;
}

/* Steps until a packet has left. Returns the cycles that it took, or UINT32_MAX if none left in
 * `cycles` cycles. */
static uint32_t next_packet(struct exanest_packetizer *packetizer, struct test_sent *sent,
                            uint32_t cycles)
{
    for (uint32_t i = 0; i < cycles; i++) {
        struct exanest_beat beat;
        exanest_packetizer_step(packetizer);
        if (exanest_packetizer_offer(packetizer, &beat)) {
            exanest_packetizer_taken(packetizer);
            const int whole = test_collect(sent, &beat);
            assert_true(whole >= 0);
            if (whole == 1) {
                return i;
            }
        }
    }
    return UINT32_MAX;
}

static void answer(struct exanest_packetizer *packetizer, const struct test_sent *sent,
                   enum exanest_status status)
{
    const struct exanest_header header = {
        .target = {.coordinate = OWN, .va = exanest_peripheral_va(EXANEST_PACKETIZER, 0)},
        .pdid = sent->header.pdid,
        .type = EXANEST_ACKNOWLEDGEMENT,
        .priority = true,
        .aux = exanest_aux(status, sent->footer.tid)};
    const struct test_packet packet = test_packet(&header, NULL, NULL);
    assert_true(exanest_packetizer_ready(packetizer, &packet.beats[0]));
    exanest_packetizer_take(packetizer, &packet.beats[0]);
}

/* Every lane and many lengths; the domain is the channel's. */
static void test_packets(void **state)
{
    (void)state;
    struct exanest_packetizer *packetizer = new_packetizer();
    struct test_sent sent;
    for (uint32_t lane = 0; lane < 16; lane++) {
        for (uint32_t bytes = 1; bytes <= 256 - lane; bytes += bytes < 40 ? 1 : 9) {
            const uint32_t channel = bytes % 16;
            post(packetizer, channel, 0x500 + lane, bytes);
            assert_true(next_packet(packetizer, &sent, 100) < 100);
            assert_int_equal(sent.header.type, EXANEST_WRITE);
            assert_int_equal(sent.header.pdid, 100 + channel);
            assert_int_equal(sent.header.bytes, bytes);
            assert_true(sent.header.priority && sent.footer.first && sent.footer.last);
            assert_int_equal(sent.footer.source, OWN);
            assert_int_equal(sent.footer.tid % 16, channel);
            const uint8_t *payload = (const uint8_t *)sent.payload;
            for (uint32_t i = 0; i < 16 * sent.words; i++) {
                const bool inside = i >= lane && i < lane + bytes;
                assert_int_equal(payload[i], inside ? i - lane : 0);
            }
            answer(packetizer, &sent, EXANEST_ACK);
            assert_int_equal(phase_of(packetizer, channel), EXANEST_CHANNEL_DONE);
        }
    }
    post(packetizer, 2, exanest_peripheral_va(EXANEST_RT_READ_REQUESTS, 0), 48);
    assert_true(next_packet(packetizer, &sent, 100) < 100);
    assert_int_equal(sent.header.type, EXANEST_READ_REQUEST);
    post(packetizer, 3, exanest_peripheral_va(EXANEST_RT_RESPONSES, 0), 48);
    assert_true(next_packet(packetizer, &sent, 100) < 100);
    assert_int_equal(sent.header.type, EXANEST_WRITE); /* Never what the R5 takes for a response. */
    free(packetizer);
}

/* EXA-55: without an answer it's sent again at each timeout, until there were too many. */
static void test_timeout(void **state)
{
    (void)state;
    struct exanest_packetizer *packetizer = new_packetizer();
    struct test_sent first, sent;
    post(packetizer, 5, 0x500, 48);
    assert_true(next_packet(packetizer, &first, 100) < 100);
    for (uint32_t i = 1; i <= RETRIES; i++) {
        /* 200 cycles of silence, and 5 words: the last one is taken in the 4th cycle behind. */
        assert_int_equal(next_packet(packetizer, &sent, 1000), TIMEOUT - 1 + 4);
        assert_int_equal(sent.footer.tid, first.footer.tid);
        assert_int_equal(sent.footer.sequence, i);
        assert_memory_equal(sent.payload, first.payload, 48);
    }
    assert_int_equal(next_packet(packetizer, &sent, 1000), UINT32_MAX);
    assert_int_equal(phase_of(packetizer, 5), EXANEST_CHANNEL_FAILED);
    assert_int_equal(packetizer->counters.timeouts, RETRIES + 1);
    assert_int_equal(packetizer->counters.retransmissions, RETRIES);
    assert_int_equal(packetizer->counters.failed, 1);
    assert_true(exanest_packetizer_idle(packetizer));
    post(packetizer, 5, 0x500,
         48); /* The channel can be used again; a late ACK is the old one's. */
    assert_true(next_packet(packetizer, &sent, 100) < 100);
    answer(packetizer, &first, EXANEST_ACK);
    assert_int_equal(phase_of(packetizer, 5), EXANEST_CHANNEL_WAITING);
    assert_int_equal(packetizer->counters.stale, 1);
    answer(packetizer, &sent, EXANEST_ACK);
    assert_int_equal(phase_of(packetizer, 5), EXANEST_CHANNEL_DONE);
    free(packetizer);
}

/* EXA-55: a NACK brings the message back, at once if it was corrupt, else after a time. */
static void test_nack(void **state)
{
    (void)state;
    struct exanest_packetizer *packetizer = new_packetizer();
    struct test_sent sent;
    post(packetizer, 5, 0x500, 48);
    assert_true(next_packet(packetizer, &sent, 100) < 100);
    answer(packetizer, &sent, EXANEST_NACK_CRC);
    assert_int_equal(next_packet(packetizer, &sent, 100), 4);
    answer(packetizer, &sent, EXANEST_NACK_FULL);
    assert_int_equal(phase_of(packetizer, 5), EXANEST_CHANNEL_BACKOFF);
    answer(packetizer, &sent, EXANEST_NACK_FULL); /* A second copy's: nothing more to do. */
    assert_int_equal(next_packet(packetizer, &sent, 100), BACKOFF - 1 + 4);
    assert_int_equal(exanest_packetizer_state(packetizer, 5).retries, 2);
    assert_int_equal(exanest_packetizer_state(packetizer, 5).last_status, EXANEST_NACK_FULL);
    answer(packetizer, &sent, EXANEST_NACK_FULL);
    assert_true(next_packet(packetizer, &sent, 100) < 100);
    answer(packetizer, &sent, EXANEST_NACK_DECODE);
    assert_int_equal(phase_of(packetizer, 5), EXANEST_CHANNEL_FAILED);
    assert_int_equal(exanest_packetizer_load(packetizer, 5, EXANEST_PACKETIZER_STATE),
                     EXANEST_CHANNEL_FAILED | EXANEST_NACK_DECODE << 4 | RETRIES << 8);
    free(packetizer);
}

/* Software may not store these values. */
static void test_stores(void **state)
{
    (void)state;
    struct exanest_packetizer *packetizer = new_packetizer();
    static const struct {
        uint32_t channel, offset;
        uint64_t value;
        enum exanest_store_verdict verdict;
    } rows[] = {
        {16, 0, 0, EXANEST_STORE_NO_REGISTER},
        {UINT32_MAX, 0, 0, EXANEST_STORE_NO_REGISTER},
        {0, 4, 0, EXANEST_STORE_NO_REGISTER},
        {0, EXANEST_PACKETIZER_STATE, 0, EXANEST_STORE_NO_REGISTER},
        {0, UINT32_MAX - 7, 0, EXANEST_STORE_NO_REGISTER},
        {0, EXANEST_PACKETIZER_COMMAND, 257, EXANEST_STORE_LENGTH},
        {0, EXANEST_PACKETIZER_COMMAND, UINT64_MAX, EXANEST_STORE_LENGTH},
        {0, EXANEST_PACKETIZER_COMMAND, UINT64_C(1) << 32 | 8, EXANEST_STORE_LENGTH},
        {0, EXANEST_PACKETIZER_TARGET, 1, EXANEST_STORE_GOOD},
        {0, EXANEST_PACKETIZER_COMMAND, 256, EXANEST_STORE_LENGTH},
        {0, EXANEST_PACKETIZER_COMMAND, 255, EXANEST_STORE_GOOD},
        {0, 0, 0, EXANEST_STORE_BUSY},
        {0, EXANEST_PACKETIZER_COMMAND, 8, EXANEST_STORE_BUSY},
        {0, EXANEST_PACKETIZER_COMMAND, 0, EXANEST_STORE_GOOD},
        {0, 0, 0, EXANEST_STORE_GOOD},
    };
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(
            exanest_packetizer_store(packetizer, rows[i].channel, rows[i].offset, rows[i].value),
            rows[i].verdict);
    }
    assert_true(exanest_packetizer_idle(packetizer));
    assert_int_equal(exanest_packetizer_load(packetizer, 16, 0), 0);
    struct exanest_packetizer fresh;
    exanest_packetizer_init(&fresh, &packetizer->parameters);
    assert_int_equal(exanest_packetizer_store(&fresh, 0, 0, 1), EXANEST_STORE_NO_DOMAIN);
    free(packetizer);
}

/* The data came, so software gives the channel back; also while its packet is leaving.
 * The packet ends as a packet. */
static void test_give_back(void **state)
{
    (void)state;
    struct exanest_packetizer *packetizer = new_packetizer();
    struct test_sent sent;
    struct exanest_beat beat;
    post(packetizer, 1, 0x500, 48);
    assert_true(next_packet(packetizer, &sent, 100) < 100);
    assert_int_equal(exanest_packetizer_store(packetizer, 1, EXANEST_PACKETIZER_COMMAND, 0),
                     EXANEST_STORE_GOOD);
    assert_int_equal(phase_of(packetizer, 1), EXANEST_CHANNEL_FREE);
    assert_int_equal(next_packet(packetizer, &sent, 1000), UINT32_MAX);
    post(packetizer, 1, 0x500, 48);
    exanest_packetizer_step(packetizer);
    assert_true(exanest_packetizer_offer(packetizer, &beat));
    exanest_packetizer_taken(packetizer);
    assert_int_equal(test_collect(&sent, &beat), 0);
    exanest_packetizer_give(packetizer, 1, 7); /* The kernel takes it from the process. */
    assert_true(next_packet(packetizer, &sent, 100) < 100);
    assert_int_equal(sent.header.pdid, 101);
    assert_int_equal(phase_of(packetizer, 1), EXANEST_CHANNEL_FREE);
    for (uint32_t at = 0; at <= EXANEST_PACKETIZER_TARGET; at += 8) {
        assert_int_equal(exanest_packetizer_load(packetizer, 1, at), 0); /* Nothing is left. */
    }
    answer(packetizer, &sent, EXANEST_ACK);
    assert_int_equal(packetizer->counters.stale, 1);
    free(packetizer);
}

/* An answer to an earlier copy, while the next one is leaving. */
static void test_answer_while_sending(void **state)
{
    (void)state;
    struct exanest_packetizer *packetizer = new_packetizer();
    struct test_sent sent, again;
    struct exanest_beat beat;
    post(packetizer, 1, 0x500, 48);
    assert_true(next_packet(packetizer, &sent, 100) < 100);
    do {
        exanest_packetizer_step(packetizer);
    } while (!exanest_packetizer_offer(packetizer, &beat));
    answer(packetizer, &sent, EXANEST_ACK);
    assert_int_equal(phase_of(packetizer, 1), EXANEST_CHANNEL_SENDING);
    assert_true(next_packet(packetizer, &again, 100) < 100);
    assert_int_equal(phase_of(packetizer, 1), EXANEST_CHANNEL_DONE);
    assert_true(exanest_packetizer_idle(packetizer));
    free(packetizer);
}

/* Damaged acknowledgements, other packets, another domain's answer: counted, no more. */
static void test_unexpected(void **state)
{
    (void)state;
    struct exanest_packetizer *packetizer = new_packetizer();
    struct test_sent sent;
    post(packetizer, 1, 0x500, 48);
    assert_true(next_packet(packetizer, &sent, 100) < 100);
    struct exanest_header header = {.pdid = 101,
                                    .type = EXANEST_ACKNOWLEDGEMENT,
                                    .aux = exanest_aux(EXANEST_ACK, sent.footer.tid)};
    struct test_packet packet = test_packet(&header, NULL, NULL);
    test_flip(&packet, 0, 100);
    exanest_packetizer_take(packetizer, &packet.beats[0]);
    header.aux = exanest_aux((enum exanest_status)9, sent.footer.tid);
    packet = test_packet(&header, NULL, NULL);
    exanest_packetizer_take(packetizer, &packet.beats[0]);
    header.aux = exanest_aux(EXANEST_ACK, sent.footer.tid);
    header.has_footer = true;
    packet = test_packet(&header, &sent.footer, NULL);
    exanest_packetizer_take(packetizer, &packet.beats[0]);
    exanest_packetizer_take(packetizer, &packet.beats[1]);
    assert_int_equal(packetizer->counters.unexpected, 3);
    sent.header.pdid = 102;
    answer(packetizer, &sent, EXANEST_ACK);
    assert_int_equal(packetizer->counters.stale, 1);
    assert_int_equal(phase_of(packetizer, 1), EXANEST_CHANNEL_WAITING);
    free(packetizer);
}

/* Channels take turns: one that is always ready does not keep the others waiting. */
static void test_turns(void **state)
{
    (void)state;
    struct exanest_packetizer *packetizer = new_packetizer();
    struct test_sent sent;
    static const uint32_t order[] = {0, 5, 15, 0};
    post(packetizer, 0, 0x500, 8);
    post(packetizer, 5, 0x500, 8);
    post(packetizer, 15, 0x500, 8);
    for (uint32_t i = 0; i < COUNT_OF(order); i++) {
        assert_true(next_packet(packetizer, &sent, 100) < 100);
        assert_int_equal(sent.footer.tid % 16, order[i]);
        answer(packetizer, &sent, EXANEST_ACK);
        if (order[i] == 0) {
            post(packetizer, 0, 0x500, 8);
        }
    }
    free(packetizer);
}

/* Any stores, any answers of any time: each message ends once, and the packets of one message are
 * all alike. EXA-55, EXA-71. */
static void test_random(void **state)
{
    (void)state;
    struct prng prng;
    struct exanest_packetizer *packetizer = new_packetizer();
    struct test_sent sent, past[8] = {0};
    prng_init(&prng, 7);
    for (uint32_t i = 0; i < 200000; i++) {
        struct exanest_beat beat;
        const uint32_t channel = (uint32_t)prng_below(&prng, 18);
        const uint32_t offset = (uint32_t)prng_below(&prng, 0x120);
        if (prng_below(&prng, 40) == 0) {
            (void)exanest_packetizer_store(packetizer, channel, offset, prng_next(&prng));
            (void)exanest_packetizer_store(packetizer, channel, EXANEST_PACKETIZER_COMMAND,
                                           prng_below(&prng, 300));
        }
        exanest_packetizer_step(packetizer);
        if (prng_below(&prng, 3) != 0 && exanest_packetizer_offer(packetizer, &beat)) {
            exanest_packetizer_taken(packetizer);
            const int whole = test_collect(&sent, &beat);
            assert_true(whole >= 0);
            if (whole == 1) {
                past[prng_below(&prng, 8)] = sent;
            }
        }
        if (prng_below(&prng, 20) == 0) {
            answer(packetizer, &past[prng_below(&prng, 8)],
                   (enum exanest_status)prng_below(&prng, EXANEST_STATUS_COUNT));
        }
    }
    const struct exanest_packetizer_counters *counters = &packetizer->counters;
    assert_true(counters->done > 100 && counters->failed > 100 && counters->stale > 100);
    assert_true(counters->timeouts > 100 && counters->given_back > 10);
    while (!exanest_packetizer_idle(packetizer)) {
        (void)next_packet(packetizer, &sent, 10);
    }
    uint64_t packets = 0;
    for (uint32_t i = 0; i < EXANEST_TYPES; i++) {
        packets += counters->packets[i];
    }
    assert_true(packets <= counters->messages + counters->retransmissions);
    assert_true(counters->done + counters->failed <= counters->messages);
    assert_true(counters->done + counters->failed + counters->given_back >= counters->messages);
    free(packetizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets),    cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_nack),       cmocka_unit_test(test_stores),
        cmocka_unit_test(test_give_back),  cmocka_unit_test(test_answer_while_sending),
        cmocka_unit_test(test_unexpected), cmocka_unit_test(test_turns),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
