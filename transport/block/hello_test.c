/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A stream ends up in one protocol at both ends, whatever becomes of HELLO and WELCOME.
 * Method  Each rule by itself; then two ends over a channel that loses, repeats, delays and keeps
 *         what was sent in an earlier life, where a request of RC follows every fallback and a
 *         block every agreement. Executed requests of either kind are counted at both ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/block/hello.h"

#define MS UINT64_C(1000000)

static struct instant at_ms(uint64_t ms)
{
    return (struct instant){ms * MS};
}

static const struct hello_question usual = {
    .nonce = 77, .psn = {500}, .sender_qpn = 9, .mtu_code = 3};
static const struct hello_standing ready = {
    .serves = true, .between = true, .expected = {500}, .peer_qpn = 9, .mtu_code = 3};

/* -- The requester ------------------------------------------------------------------------------*/

static void expect_hello_at(struct hello_ask *ask, uint64_t ms)
{
    assert_int_equal(hello_ask_deadline(ask).ns, ms * MS);
    assert_int_equal(hello_ask_on_time(ask, (struct instant){ms * MS - 1}), HELLO_GOES_ON);
    assert_false(ask->due);
    assert_int_equal(hello_ask_on_time(ask, at_ms(ms)), HELLO_GOES_ON);
    assert_true(ask->due);
    hello_ask_sent(ask, at_ms(ms));
}

/* EXA-74 */
static void test_five_times_and_no_more(void **state)
{
    (void)state;
    struct hello_ask ask = {0};
    hello_ask_begin(&ask, 77, psn_of(500), false, 1);
    assert_int_equal(hello_ask_deadline(&ask).ns, UINT64_MAX);
    hello_ask_sent(&ask, at_ms(100));
    expect_hello_at(&ask, 105);
    expect_hello_at(&ask, 115);
    expect_hello_at(&ask, 135);
    expect_hello_at(&ask, 175);
    assert_int_equal(hello_ask_on_time(&ask, (struct instant){200 * MS - 1}), HELLO_GOES_ON);
    assert_false(ask.due);
    assert_int_equal(hello_ask_deadline(&ask).ns, 200 * MS);
    assert_int_equal(hello_ask_on_time(&ask, at_ms(200)), HELLO_FALLS_BACK);
    assert_int_equal(ask.state, HELLO_NOT_ASKED);
    assert_false(hello_ask_on_welcome(&ask, 77, psn_of(500)));
    assert_int_equal(hello_ask_on_time(&ask, at_ms(900)), HELLO_GOES_ON);
}

static void test_one_that_insists_goes_on_to_its_end(void **state)
{
    (void)state;
    struct hello_ask ask = {0};
    hello_ask_begin(&ask, 77, psn_of(500), true, 1000 * MS);
    hello_ask_sent(&ask, at_ms(0));
    uint64_t at = 0;
    for (uint64_t pause = 5; pause <= 320; pause *= 2) {
        at += pause;
        expect_hello_at(&ask, at);
    }
    expect_hello_at(&ask, at + 320);
    assert_int_equal(hello_ask_deadline(&ask).ns, 1000 * MS);
    assert_false(hello_ask_is_overdue(&ask, at_ms(999)));
    assert_true(hello_ask_is_overdue(&ask, at_ms(1000)));
    hello_ask_wait_on(&ask, at_ms(1000)); /* The peer does not run. */
    assert_false(hello_ask_is_overdue(&ask, at_ms(1999)));
    assert_int_equal(hello_ask_on_time(&ask, at_ms(1999)), HELLO_GOES_ON);
    assert_int_equal(hello_ask_on_time(&ask, at_ms(2000)), HELLO_FAILS);
}

static void test_a_link_without_room_is_not_waited_for_for_ever(void **state)
{
    (void)state;
    struct hello_ask ask = {0};
    hello_ask_begin(&ask, 77, psn_of(500), false, 1);
    hello_ask_blocked(&ask, at_ms(100));
    hello_ask_blocked(&ask, at_ms(110));
    assert_int_equal(hello_ask_deadline(&ask).ns, 200 * MS);
    assert_int_equal(hello_ask_on_time(&ask, at_ms(200)), HELLO_FALLS_BACK);
}

/* EXA-73 */
static void test_only_the_welcome_that_was_asked_for(void **state)
{
    (void)state;
    struct hello_ask ask = {0};
    assert_false(hello_ask_on_welcome(&ask, 0, psn_of(0)));
    hello_ask_begin(&ask, 77, psn_of(500), false, 1);
    assert_false(hello_ask_on_welcome(&ask, 77, psn_of(500))); /* Nothing has left yet. */
    hello_ask_sent(&ask, at_ms(1));
    assert_false(hello_ask_on_welcome(&ask, 78, psn_of(500)));
    assert_false(hello_ask_on_welcome(&ask, 77, psn_of(501)));
    assert_true(hello_ask_on_welcome(&ask, 77, psn_of(500)));
    assert_int_equal(hello_ask_trip_ns(&ask, at_ms(1)), 1); /* By a clock that was not looked at. */
    assert_int_equal(hello_ask_trip_ns(&ask, at_ms(4)), 3 * MS);
    assert_false(hello_ask_on_welcome(&ask, 77, psn_of(500)));
    assert_int_equal(ask.state, HELLO_AGREED);
    assert_false(ask.due);
    expect_hello_at(&ask, 6);
    assert_int_equal(hello_ask_trip_ns(&ask, at_ms(9)), 3 * MS);
    /* Until a block was answered. */
    expect_hello_at(&ask, 16);
    expect_hello_at(&ask, 36);
    hello_ask_confirm(&ask);
    assert_int_equal(hello_ask_deadline(&ask).ns, UINT64_MAX);
    assert_int_equal(hello_ask_on_time(&ask, at_ms(500)), HELLO_GOES_ON);
    assert_false(ask.due);
}

/* -- The responder ------------------------------------------------------------------------------*/

/* EXA-73 */
static void test_each_refusal(void **state)
{
    (void)state;
    struct hello_answer answer = {0};
    struct hello_question question = usual;
    struct hello_standing standing = ready;
    assert_int_equal(hello_judge(&answer, &question, &standing), HELLO_NEW);
    standing.serves = false;
    assert_int_equal(hello_judge(&answer, &question, &standing), HELLO_WRONG_STATE);
    standing = ready;
    question.sender_qpn++;
    assert_int_equal(hello_judge(&answer, &question, &standing), HELLO_WRONG_QPN);
    question = usual;
    question.mtu_code++;
    assert_int_equal(hello_judge(&answer, &question, &standing), HELLO_WRONG_MTU);
    question = usual;
    question.psn = psn_after(question.psn, 1);
    assert_int_equal(hello_judge(&answer, &question, &standing), HELLO_WRONG_PSN);
    question = usual;
    question.reads = standing.reads;
    assert_int_equal(hello_judge(&answer, &question, &standing), HELLO_NEW);
    question.reads++;
    assert_int_equal(hello_judge(&answer, &question, &standing), HELLO_WRONG_READS);
    question = usual;
    standing.between = false;
    assert_int_equal(hello_judge(&answer, &question, &standing), HELLO_MIDST);
}

/* It is said once for each HELLO, and leaves a session as it is. */
static void test_a_refusal_says_what_was_asked(void **state)
{
    (void)state;
    struct hello_answer answer = {0};
    struct hello_question other = usual;
    hello_accept(&answer, &usual);
    other.nonce = 78;
    hello_refuse(&answer, &other);
    assert_true(hello_answer_due(&answer) && answer.due && answer.session);
    assert_int_equal(answer.nonce, usual.nonce);
    assert_int_equal(answer.refused.nonce, 78);
    hello_drop(&answer);
    assert_false(hello_answer_due(&answer));
}

static void test_who_is_refused_goes_on_by_rc(void **state)
{
    (void)state;
    struct hello_ask ask = {0};
    assert_false(hello_ask_on_refusal(&ask, 0, psn_of(0)));
    hello_ask_begin(&ask, 77, psn_of(500), true, 1000 * MS);
    assert_false(hello_ask_on_refusal(&ask, 77, psn_of(500))); /* Nothing has left yet. */
    hello_ask_sent(&ask, at_ms(1));
    assert_false(hello_ask_on_refusal(&ask, 78, psn_of(500)));
    assert_false(hello_ask_on_refusal(&ask, 77, psn_of(501)));
    assert_true(hello_ask_on_refusal(&ask, 77, psn_of(500)));
    assert_int_equal(ask.state, HELLO_NOT_ASKED);
    assert_int_equal(hello_ask_deadline(&ask).ns, UINT64_MAX);
    assert_false(ask.due || hello_ask_on_welcome(&ask, 77, psn_of(500)));
    hello_ask_begin(&ask, 79, psn_of(500), false, 1);
    hello_ask_sent(&ask, at_ms(2));
    assert_true(hello_ask_on_welcome(&ask, 79, psn_of(500)));
    assert_false(hello_ask_on_refusal(&ask, 79, psn_of(500))); /* It was welcomed before. */
}

/* EXA-73 */
static void test_another_life_gives_way_until_a_block_was_executed(void **state)
{
    (void)state;
    struct hello_answer answer = {0};
    struct hello_question old = usual, true_one = usual;
    struct hello_standing standing = ready;
    true_one.nonce = 78;
    hello_accept(&answer, &old);
    assert_true(answer.session && answer.due);
    assert_int_equal(hello_judge(&answer, &old, &standing), HELLO_AGAIN);
    assert_int_equal(hello_judge(&answer, &true_one, &standing), HELLO_NEW);
    hello_accept(&answer, &true_one);
    assert_int_equal(answer.nonce, 78);
    standing.executed = true;
    assert_int_equal(hello_judge(&answer, &old, &standing), HELLO_EXECUTED);
    assert_int_equal(hello_judge(&answer, &true_one, &standing), HELLO_AGAIN);
    hello_drop(&answer);
    assert_false(answer.session || answer.due);
}

/* -- Both ---------------------------------------------------------------------------------------*/

enum kind {
    ASK,
    WELCOME,
    RC_REQUEST,
    RC_ACK,
    BLOCK,
    BLOCK_ACK,
};

struct message {
    enum kind kind;
    uint32_t nonce;
    struct psn psn;
    uint64_t at_ns; /* When it comes; UINT64_MAX: never, it is free. */
};

#define MESSAGES_MAX 256

/* One stream: its requester sends `sent` requests, one at a time, by whatever it speaks. */
struct stream {
    struct prng prng;
    uint32_t loss;
    uint64_t late_ns;
    struct message messages[MESSAGES_MAX];
    uint64_t now_ns, retry_ns;
    struct hello_ask ask;
    struct hello_answer answer;
    struct psn next, expected;
    bool outstanding;                      /* A request is not acknowledged. */
    bool executed;                         /* A block of the session. */
    uint32_t blocks_sent, blocks_executed; /* Numbers of the newest ones. */
    uint32_t acknowledged, done;           /* Requests. */
    uint32_t agreed, fell_back;
};

static void send(struct stream *stream, enum kind kind, uint32_t nonce, struct psn psn)
{
    for (uint32_t copy = 0; copy < 2; copy++) {
        if (prng_chance(&stream->prng, copy == 0 ? stream->loss : 800000)) {
            continue;
        }
        for (uint32_t i = 0; i < MESSAGES_MAX; i++) {
            if (stream->messages[i].at_ns == UINT64_MAX) {
                stream->messages[i] = (struct message){
                    kind, nonce, psn,
                    stream->now_ns + 1 + prng_below(&stream->prng, stream->late_ns)};
                break;
            }
        }
    }
}

static void send_request(struct stream *stream)
{
    stream->outstanding = true;
    stream->retry_ns = stream->now_ns + 10 * MS;
    if (stream->ask.state == HELLO_AGREED) {
        send(stream, BLOCK, stream->ask.nonce, psn_of(stream->blocks_sent));
    } else {
        send(stream, RC_REQUEST, 0, stream->next);
    }
}

static void on_rc_request(struct stream *stream, const struct message *message)
{
    const bool in_turn = psn_equal(message->psn, stream->expected);
    if (stream->answer.session && stream->executed) {
        return;
    }
    if (in_turn) {
        if (stream->answer.session) {
            hello_drop(&stream->answer);
        }
        stream->expected = psn_after(stream->expected, 1);
        stream->done++;
    }
    if (psn_distance(message->psn, stream->expected) > 0) {
        send(stream, RC_ACK, 0, message->psn);
    }
}

static void on_block(struct stream *stream, const struct message *message)
{
    if (!stream->answer.session || stream->answer.nonce != message->nonce) {
        return;
    }
    if (message->psn.value == stream->blocks_executed + 1) {
        stream->blocks_executed++;
        stream->executed = true;
        stream->done++;
    }
    send(stream, BLOCK_ACK, message->nonce, psn_of(stream->blocks_executed));
}

static void on_hello(struct stream *stream, const struct message *message)
{
    const struct hello_question question = {
        .nonce = message->nonce, .psn = message->psn, .sender_qpn = 9, .mtu_code = 3};
    struct hello_standing standing = ready;
    standing.expected = stream->expected;
    standing.executed = stream->executed;
    const enum hello_verdict verdict = hello_judge(&stream->answer, &question, &standing);
    if (verdict == HELLO_NEW) {
        stream->blocks_executed = 0;
        stream->executed = false;
    }
    if (verdict == HELLO_NEW || verdict == HELLO_AGAIN) {
        hello_accept(&stream->answer, &question);
        stream->answer.due = false;
        send(stream, WELCOME, message->nonce, message->psn);
    }
}

static void acknowledge(struct stream *stream)
{
    stream->outstanding = false;
    stream->acknowledged++;
    assert_int_equal(stream->acknowledged, stream->done); /* Executed once, not less, not more. */
}

static void arrive(struct stream *stream, const struct message *message)
{
    switch (message->kind) {
    case ASK: on_hello(stream, message); return;
    case WELCOME:
        stream->agreed += hello_ask_on_welcome(&stream->ask, message->nonce, message->psn);
        return;
    case RC_REQUEST: on_rc_request(stream, message); return;
    case BLOCK: on_block(stream, message); return;
    case RC_ACK:
        if (stream->outstanding && stream->ask.state == HELLO_NOT_ASKED &&
            psn_equal(message->psn, stream->next)) {
            stream->next = psn_after(stream->next, 1);
            acknowledge(stream);
        }
        return;
    case BLOCK_ACK:
        if (stream->outstanding && stream->ask.state == HELLO_AGREED &&
            message->nonce == stream->ask.nonce && message->psn.value == stream->blocks_sent) {
            hello_ask_confirm(&stream->ask);
            acknowledge(stream);
        }
        return;
    }
}

/* The requester acts on time when no answer comes. */
static void act(struct stream *stream)
{
    const struct instant now = {stream->now_ns};
    if (hello_ask_on_time(&stream->ask, now) == HELLO_FALLS_BACK) {
        stream->fell_back++;
    }
    if (stream->ask.due) {
        hello_ask_sent(&stream->ask, now);
        send(stream, ASK, stream->ask.nonce, stream->ask.psn);
    }
    if (stream->ask.state == HELLO_ASKED) {
        return;
    }
    if (!stream->outstanding) {
        const bool rc = stream->ask.state == HELLO_NOT_ASKED;
        if (rc && prng_below(&stream->prng, 4) == 0) {
            hello_ask_begin(&stream->ask, (uint32_t)prng_next(&stream->prng), stream->next, false,
                            0);
            return;
        }
        stream->blocks_sent += !rc;
        send_request(stream);
    } else if (stream->now_ns >= stream->retry_ns) {
        send_request(stream);
    }
}

static void step(struct stream *stream)
{
    stream->now_ns += MS / 4;
    for (uint32_t i = 0; i < MESSAGES_MAX; i++) {
        if (stream->messages[i].at_ns <= stream->now_ns) {
            const struct message message = stream->messages[i];
            stream->messages[i].at_ns = UINT64_MAX;
            arrive(stream, &message);
        }
    }
    act(stream);
}

/* EXA-73 EXA-109 */
static void test_both_ends_agree(void **state)
{
    (void)state;
    uint32_t agreed = 0, fell_back = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct stream stream = {.next = {0xfffffe}, .expected = {0xfffffe}};
        prng_init(&stream.prng, seed);
        stream.loss = (uint32_t)prng_below(&stream.prng, 700000);
        stream.late_ns = 1 + prng_below(&stream.prng, 300 * MS);
        for (uint32_t i = 0; i < MESSAGES_MAX; i++) {
            stream.messages[i].at_ns = UINT64_MAX;
        }
        for (uint32_t steps = 0; stream.acknowledged < 20; steps++) {
            assert_true(steps < 100000);
            step(&stream);
        }
        agreed += stream.agreed;
        fell_back += stream.fell_back;
    }
    assert_true(agreed > 1000);
    assert_true(fell_back > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_five_times_and_no_more),
        cmocka_unit_test(test_one_that_insists_goes_on_to_its_end),
        cmocka_unit_test(test_a_link_without_room_is_not_waited_for_for_ever),
        cmocka_unit_test(test_only_the_welcome_that_was_asked_for),
        cmocka_unit_test(test_each_refusal),
        cmocka_unit_test(test_a_refusal_says_what_was_asked),
        cmocka_unit_test(test_who_is_refused_goes_on_by_rc),
        cmocka_unit_test(test_another_life_gives_way_until_a_block_was_executed),
        cmocka_unit_test(test_both_ends_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
