/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No response is lost, no read request is forged, and the R5 reads each in the number of
 *         reads that the document names.
 * Method  Packets by hand; then by chance, damaged or not, held against two queues.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "hardware/exanest/rt_mailbox.h"
#include "hardware/exanest/test_beats.h"

#define OWN 17u

static struct exanest_rt_mailbox *new_mailbox(void)
{
    struct exanest_rt_mailbox *mailbox = calloc(1, sizeof(*mailbox));
    const struct exanest_rt_mailbox_parameters parameters = exanest_rt_mailbox_defaults(OWN);
    assert_non_null(mailbox);
    exanest_rt_mailbox_init(mailbox, &parameters);
    return mailbox;
}

static struct test_packet response(uint32_t tid, uint32_t sequence, uint32_t status)
{
    const struct exanest_header header = {
        .target = {.coordinate = OWN, .va = exanest_peripheral_va(EXANEST_RT_RESPONSES, 0)},
        .type = EXANEST_ACKNOWLEDGEMENT,
        .has_footer = true,
        .priority = true};
    const struct exanest_footer footer = {.tid = (uint16_t)tid,
                                          .source = 5,
                                          .sequence = (uint16_t)sequence,
                                          .status = (uint8_t)status};
    return test_packet(&header, &footer, NULL);
}

/* A request as a user wrote it, with a forged domain, coordinate and channel. */
static struct exanest_read_request forged(uint32_t id)
{
    return (struct exanest_read_request){.source = 0x1000 + id,
                                         .target = {.coordinate = 2, .va = 3},
                                         .address = {.coordinate = 4, .va = 5},
                                         .data = 0x123456789abcdef0,
                                         .bytes = 1000,
                                         .request_id = id,
                                         .pdid = 666,
                                         .coordinate = 666,
                                         .channel = 666};
}

static struct test_packet request(uint32_t id)
{
    const struct exanest_read_request fields = forged(id);
    struct exanest_word words[EXANEST_READ_REQUEST_WORDS];
    exanest_read_request_encode(&fields, words);
    const struct exanest_header header = {
        .target = {.coordinate = OWN, .va = exanest_peripheral_va(EXANEST_RT_READ_REQUESTS, 0)},
        .pdid = 42,
        .type = EXANEST_READ_REQUEST,
        .bytes = sizeof(words),
        .has_footer = true,
        .priority = true};
    const struct exanest_footer footer = {.tid = 77, .source = 5};
    return test_packet(&header, &footer, words);
}

/* False: the mailbox isn't ready. */
static bool send(struct exanest_rt_mailbox *mailbox, const struct test_packet *packet)
{
    for (uint32_t i = 0; i < packet->count; i++) {
        if (!exanest_rt_mailbox_ready(mailbox, &packet->beats[i])) {
            assert_int_equal(packet->beats[i].part, EXANEST_HEADER);
            exanest_rt_mailbox_waits(mailbox);
            return false;
        }
        exanest_rt_mailbox_take(mailbox, &packet->beats[i]);
    }
    return true;
}

/* The status of the next acknowledgement; -1: none. */
static int next_answer(struct exanest_rt_mailbox *mailbox)
{
    struct exanest_beat beat;
    struct test_sent sent = {0};
    for (uint32_t i = 0; i < 20; i++) {
        exanest_rt_mailbox_step(mailbox);
        if (exanest_rt_mailbox_offer(mailbox, &beat)) {
            exanest_rt_mailbox_taken(mailbox);
            assert_int_equal(test_collect(&sent, &beat), 1);
            assert_int_equal(sent.header.target.coordinate, 5);
            assert_int_equal(sent.header.target.va, exanest_peripheral_va(EXANEST_PACKETIZER, 0));
            assert_int_equal(sent.header.aux & 0x3ff, 77);
            return sent.header.aux >> 10;
        }
    }
    assert_true(exanest_rt_mailbox_idle(mailbox));
    return -1;
}

static struct exanest_response read_response(struct exanest_rt_mailbox *mailbox)
{
    return exanest_response_decode(exanest_rt_mailbox_read_response(mailbox));
}

static struct exanest_read_request read_request(struct exanest_rt_mailbox *mailbox)
{
    uint32_t parts[12];
    struct exanest_word words[EXANEST_READ_REQUEST_WORDS];
    for (uint32_t i = 0; i < 12; i++) {
        parts[i] = exanest_rt_mailbox_read_request(mailbox);
    }
    memcpy(words, parts, sizeof(words));
    return exanest_read_request_decode(words);
}

/* EXA-58, EXA-50: one read a response, four an entry, twelve a request; the bit that tells of
 * requests. */
static void test_reads(void **state)
{
    (void)state;
    struct exanest_rt_mailbox *mailbox = new_mailbox();
    assert_false(read_response(mailbox).valid);
    assert_int_equal(exanest_rt_mailbox_read_request(mailbox), 0);
    for (uint32_t i = 0; i < 3; i++) {
        const struct test_packet packet = response(1000 + i, 16381 + i, i);
        assert_true(send(mailbox, &packet));
    }
    assert_false(exanest_rt_mailbox_empty(mailbox));
    struct exanest_response one = read_response(mailbox);
    assert_true(one.valid && !one.requests_wait);
    assert_int_equal(one.tid, 1000);
    assert_int_equal(one.sequence, 16381);
    for (uint32_t i = 0; i < 2; i++) {
        const struct test_packet packet = request(i);
        assert_true(send(mailbox, &packet));
        assert_int_equal(next_answer(mailbox), EXANEST_ACK);
    }
    one = read_response(mailbox);
    assert_true(one.valid && one.requests_wait);
    assert_int_equal(one.status, 1);
    for (uint32_t i = 0; i < 24; i++) {
        assert_int_equal(mailbox->requests, i < 12 ? 2 : 1);
        (void)exanest_rt_mailbox_read_request(mailbox);
    }
    assert_int_equal(mailbox->requests, 0);
    one = read_response(mailbox);
    assert_true(one.valid && !one.requests_wait);
    assert_false(read_response(mailbox).valid);
    assert_true(exanest_rt_mailbox_empty(mailbox));
    free(mailbox);
}

/* EXA-54: what a user forged is overwritten; the rest is as it was. */
static void test_forgery(void **state)
{
    (void)state;
    struct exanest_rt_mailbox *mailbox = new_mailbox();
    const struct test_packet packet = request(9);
    assert_true(send(mailbox, &packet));
    const struct exanest_read_request got = read_request(mailbox);
    const struct exanest_read_request want = forged(9);
    assert_int_equal(got.pdid, 42);
    assert_int_equal(got.coordinate, 5);
    assert_int_equal(got.channel, 77);
    assert_int_equal(got.source, want.source);
    assert_int_equal(got.target.va, want.target.va);
    assert_int_equal(got.address.coordinate, want.address.coordinate);
    assert_int_equal(got.data, want.data);
    assert_int_equal(got.bytes, want.bytes);
    assert_int_equal(got.request_id, want.request_id);
    free(mailbox);
}

/* EXA-49: full of requests it refuses them and still takes responses. */
static void test_full_of_requests(void **state)
{
    (void)state;
    struct exanest_rt_mailbox *mailbox = new_mailbox();
    for (uint32_t i = 0; i < 70; i++) {
        const struct test_packet packet = request(i);
        assert_true(send(mailbox, &packet));
        assert_int_equal(next_answer(mailbox), i < 64 ? EXANEST_ACK : EXANEST_NACK_FULL);
    }
    const struct test_packet one = response(3, 4, 0);
    assert_true(send(mailbox, &one));
    assert_true(read_response(mailbox).valid);
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(read_request(mailbox).request_id, i);
    }
    assert_int_equal(mailbox->counters.refused[EXANEST_NACK_FULL], 6);
    assert_int_equal(mailbox->counters.requests_max, 64);
    free(mailbox);
}

/* Full of responses it waits; none is lost. */
static void test_full_of_responses(void **state)
{
    (void)state;
    struct exanest_rt_mailbox *mailbox = new_mailbox();
    for (uint32_t i = 0; i < 64; i++) {
        const struct test_packet packet = response(i, i, 0);
        assert_true(send(mailbox, &packet));
    }
    const struct test_packet more = response(64, 64, 0), other = request(0);
    assert_false(send(mailbox, &more));
    assert_false(send(mailbox, &other));
    assert_int_equal(read_response(mailbox).tid, 0);
    assert_true(send(mailbox, &more));
    for (uint32_t i = 1; i <= 64; i++) {
        assert_int_equal(read_response(mailbox).tid, i);
    }
    assert_int_equal(mailbox->counters.waits, 2);
    free(mailbox);
}

/* A damaged packet, or one that does not belong here: its sender is told, and nothing is stored. */
static void test_refused(void **state)
{
    (void)state;
    struct exanest_rt_mailbox *mailbox = new_mailbox();
    struct test_packet packet = request(1);
    test_flip(&packet, 2, 5);
    assert_true(send(mailbox, &packet));
    assert_int_equal(next_answer(mailbox), EXANEST_NACK_CRC);
    packet = request(1);
    test_remove(&packet, 2);
    assert_true(send(mailbox, &packet));
    assert_int_equal(next_answer(mailbox), EXANEST_NACK_CRC);
    for (uint32_t beat = 0; beat < 5; beat += 4) { /* Header; footer. */
        packet = request(1);
        test_flip(&packet, beat, 50);
        assert_true(send(mailbox, &packet));
        assert_int_equal(next_answer(mailbox), -1);
    }
    packet = response(1, 1, 0);
    test_flip(&packet, 1, 0); /* Not 0 without payload. */
    assert_true(send(mailbox, &packet));
    packet = response(1, 1, EXANEST_STATUS_COUNT);
    assert_true(send(mailbox, &packet));
    static const uint8_t bytes[32] = {0};
    const struct exanest_footer footer = {.tid = 77, .source = 5};
    struct exanest_header header = {.target.va = exanest_peripheral_va(EXANEST_RT_RESPONSES, 0),
                                    .type = EXANEST_WRITE,
                                    .bytes = 32,
                                    .has_footer = true,
                                    .priority = true};
    packet = test_packet(&header, &footer, bytes); /* A user's attempt to forge a response. */
    assert_true(send(mailbox, &packet));
    assert_int_equal(next_answer(mailbox), EXANEST_NACK_DECODE);
    header.type = EXANEST_READ_REQUEST;
    packet = test_packet(&header, &footer, bytes);
    assert_true(send(mailbox, &packet));
    assert_int_equal(next_answer(mailbox), EXANEST_NACK_DECODE);
    header = (struct exanest_header){.target.va = exanest_peripheral_va(EXANEST_RT_RESPONSES, 0),
                                     .type = EXANEST_ACKNOWLEDGEMENT};
    packet = test_packet(&header, NULL, NULL); /* An acknowledgement that went astray. */
    assert_true(send(mailbox, &packet));
    assert_int_equal(next_answer(mailbox), -1);
    assert_true(exanest_rt_mailbox_empty(mailbox));
    assert_int_equal(mailbox->counters.dropped, 3);
    assert_int_equal(mailbox->counters.unexpected, 4);
    free(mailbox);
}

/* Each mistake in type, place, size and footer for itself. */
static void test_foreign(void **state)
{
    (void)state;
    static const struct {
        uint8_t type;
        enum exanest_peripheral at;
        uint32_t low;
        uint16_t bytes;
        bool has_footer;
        int answer;
    } rows[] = {
        {EXANEST_READ_REQUEST, EXANEST_RT_READ_REQUESTS, 0, 48, true, EXANEST_ACK},
        {EXANEST_READ_REQUEST, EXANEST_RT_READ_REQUESTS, 0, 32, true, EXANEST_NACK_DECODE},
        {EXANEST_READ_REQUEST, EXANEST_RT_READ_REQUESTS, 1, 48, true, EXANEST_NACK_DECODE},
        {EXANEST_READ_REQUEST, EXANEST_RT_RESPONSES, 0, 48, true, EXANEST_NACK_DECODE},
        {EXANEST_READ_REQUEST, EXANEST_RT_READ_REQUESTS, 0, 0, false, -1},
        {EXANEST_WRITE, EXANEST_RT_READ_REQUESTS, 0, 48, true, EXANEST_NACK_DECODE},
        {EXANEST_NOTIFICATION, EXANEST_RT_READ_REQUESTS, 0, 48, true, -1},
        {EXANEST_ACKNOWLEDGEMENT, EXANEST_RT_READ_REQUESTS, 0, 0, true, -1},
        {EXANEST_ACKNOWLEDGEMENT, EXANEST_RT_RESPONSES, 0, 16, true, -1},
    };
    static const uint8_t payload[48];
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        struct exanest_rt_mailbox *mailbox = new_mailbox();
        const struct exanest_header header = {.target.va =
                                                  exanest_peripheral_va(rows[i].at, rows[i].low),
                                              .type = rows[i].type,
                                              .bytes = rows[i].bytes,
                                              .has_footer = rows[i].has_footer,
                                              .priority = true};
        const struct exanest_footer footer = {.tid = 77, .source = 5};
        const struct test_packet packet = test_packet(&header, &footer, payload);
        assert_true(send(mailbox, &packet));
        assert_int_equal(next_answer(mailbox), rows[i].answer);
        assert_int_equal(exanest_rt_mailbox_empty(mailbox), i != 0);
        assert_int_equal(mailbox->counters.unexpected, i != 0);
        free(mailbox);
    }
}

/* EXA-71: packets by chance against two counts; whatever comes, there is no hang and no CHECK. */
static void test_random(void **state)
{
    (void)state;
    struct prng prng;
    struct exanest_rt_mailbox *mailbox = new_mailbox();
    uint64_t responses = 0, requests = 0, reads = 0, request_reads = 0;
    prng_init(&prng, 5);
    for (uint32_t i = 0; i < 100000; i++) {
        const bool asks = prng_below(&prng, 2);
        struct test_packet packet = asks ? request(i) : response(i % 1024, i % 16384, i % 6);
        const bool spoilt = prng_below(&prng, 4) == 0;
        if (spoilt && prng_below(&prng, 3) == 0) {
            test_flip(&packet, (uint32_t)prng_below(&prng, packet.count),
                      (uint32_t)prng_below(&prng, 128));
        } else if (spoilt) { /* Not the header: a footer alone would end the packet that was cut
                              * off. */
            test_remove(&packet, 1 + (uint32_t)prng_below(&prng, packet.count - 1));
        }
        const bool room = mailbox->requests < 64;
        if (send(mailbox, &packet) && !spoilt) {
            responses += !asks;
            requests += asks && room;
        }
        struct exanest_beat beat;
        for (uint64_t n = prng_below(&prng, 8); n > 0; n--) {
            exanest_rt_mailbox_step(mailbox);
            if (exanest_rt_mailbox_offer(mailbox, &beat)) {
                exanest_rt_mailbox_taken(mailbox);
            }
        }
        const bool rest = i / 1000 % 2; /* Times in which the R5 reads less than comes. */
        if (prng_below(&prng, rest ? 4 : 1) == 0) {
            reads += read_response(mailbox).valid;
        }
        for (uint32_t n = rest ? 2 : 9; n > 0 && mailbox->requests > 0; n--) {
            (void)exanest_rt_mailbox_read_request(mailbox);
            request_reads++;
        }
    }
    assert_int_equal(responses, reads + mailbox->responses);
    assert_int_equal(requests, request_reads / 12 + mailbox->requests);
    assert_int_equal(mailbox->counters.requests, requests);
    assert_int_equal(mailbox->counters.responses_max, 64);
    assert_int_equal(mailbox->counters.requests_max, 64);
    assert_true(mailbox->counters.waits > 0);
    free(mailbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_forgery),
        cmocka_unit_test(test_full_of_requests),
        cmocka_unit_test(test_full_of_responses),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
