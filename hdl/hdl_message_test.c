/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Messages come out as they went in, and what another process sends can do no harm: each
 *         field that is wrong is refused with a reason, a part of a message waits for the rest, and
 *         random octets are judged (FER-134).
 * Method  Random messages of every type, cut at every place and with single bits flipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/prng.h"
#include "hdl/message.h"

static struct prng dice;
static uint8_t content[HDL_FRAME_BYTES_MAX];

static enum hdl_sender sender_of(enum hdl_message_type type)
{
    const bool models = type == HDL_HELLO || type >= HDL_VIOLATION;
    return models ? HDL_FROM_MODEL : HDL_FROM_NONIC;
}

static char scopes[HDL_HELLO_PORTS_MAX][HDL_SCOPE_BYTES];

static void random_hello(struct hdl_hello *hello)
{
    hello->abi = HDL_ABI;
    hello->ports = (uint32_t)prng_below(&dice, HDL_HELLO_PORTS_MAX + 1);
    for (uint32_t i = 0; i < hello->ports; i++) {
        hello->port[i].number = (uint32_t)prng_next(&dice);
        hello->port[i].width_bits = (uint32_t)prng_next(&dice);
        const uint32_t letters = (uint32_t)prng_below(&dice, HDL_SCOPE_BYTES);
        for (uint32_t letter = 0; letter < letters; letter++) {
            scopes[i][letter] = (char)('!' + prng_below(&dice, '~' - '!' + 1));
        }
        scopes[i][letters] = '\0';
        hello->port[i].scope = scopes[i];
    }
}

static struct hdl_port_config random_config(void)
{
    return (struct hdl_port_config){.width_bits = 8u << prng_below(&dice, 8),
                                    .frame_bytes = 60 + (uint32_t)prng_below(&dice, 16325),
                                    .frames = 2 + (uint32_t)prng_below(&dice, 65535),
                                    .line_fs_per_byte = prng_below(&dice, 1000000),
                                    .paused_by = (uint32_t)prng_next(&dice),
                                    .ready_ppm = 1 + (uint32_t)prng_below(&dice, 1000000),
                                    .gap_ppm = (uint32_t)prng_below(&dice, 1000000),
                                    .seed = prng_next(&dice),
                                    .cut_through = prng_chance(&dice, 500000)};
}

/* All bytes that have no meaning are 0, so that structs can be compared. */
static void random_message(enum hdl_message_type type, struct hdl_message *message)
{
    memset(message, 0, sizeof(*message));
    message->type = type;
    message->port = (uint32_t)prng_below(&dice, HDL_PORTS_MAX);
    message->time_ps = prng_next(&dice);
    switch (type) {
    case HDL_HELLO: random_hello(&message->hello); break;
    case HDL_PORT: message->config = random_config(); break;
    case HDL_TRACE:
        message->trace.path = (const char *)content;
        message->trace.to_ps = prng_next(&dice);
        message->trace.bytes = 1 + (uint32_t)prng_below(&dice, HDL_PATH_BYTES_MAX);
        break;
    case HDL_RESET: message->reset = prng_below(&dice, 2) == 1; break;
    case HDL_FRAME:
        message->frame.at_ps = prng_next(&dice);
        message->frame.data = content;
        message->frame.bad = prng_below(&dice, 2) == 1;
        message->frame.bytes = 60 + (uint32_t)prng_below(&dice, HDL_FRAME_BYTES_MAX - 59);
        if (message->frame.bad && prng_below(&dice, 2) == 1) {
            message->frame.bytes = 1 + (uint32_t)prng_below(&dice, 59);
        }
        break;
    case HDL_PAUSE:
        message->pause.at_ps = message->time_ps;
        message->pause.priority = (uint32_t)prng_below(&dice, HDL_CLASSES);
        message->pause.quanta = (uint32_t)prng_below(&dice, 65536);
        break;
    case HDL_GRANT: message->period_fs = HDL_PERIOD_FS_MIN + prng_below(&dice, 1000000); break;
    case HDL_VIOLATION:
        message->violation.rule = (enum hdl_rule)prng_below(&dice, HDL_RULES);
        message->violation.at_ps = message->time_ps;
        message->violation.edge = prng_next(&dice);
        message->violation.frame = prng_next(&dice);
        break;
    case HDL_COUNTERS: message->counters.beats_sent = prng_next(&dice); break;
    case HDL_DONE:
    case HDL_FINISH: break;
    default: UNREACHABLE("type");
    }
}

/* The frame's bytes lie elsewhere when they have come. */
static void assert_same(const struct hdl_message *sent, struct hdl_message *came)
{
    if (sent->type == HDL_FRAME) {
        assert_memory_equal(sent->frame.data, came->frame.data, sent->frame.bytes);
        came->frame.data = sent->frame.data;
    } else if (sent->type == HDL_TRACE) {
        assert_memory_equal(sent->trace.path, came->trace.path, sent->trace.bytes);
        came->trace.path = sent->trace.path;
    }
    uint8_t first[HDL_MESSAGE_BYTES_MAX], second[HDL_MESSAGE_BYTES_MAX];
    const uint32_t bytes = hdl_message_encode(sent, first);
    assert_int_equal(hdl_message_encode(came, second), bytes);
    assert_memory_equal(first, second, bytes);
    assert_int_equal(came->type, sent->type);
    assert_int_equal(came->port, sent->port);
    assert_true(came->time_ps == sent->time_ps);
}

static void test_round(void **state)
{
    (void)state;
    uint8_t bytes[HDL_MESSAGE_BYTES_MAX];
    for (int turn = 0; turn < 2000; turn++) {
        const enum hdl_message_type type = (enum hdl_message_type)(1 + turn % HDL_FINISH);
        struct hdl_message sent, came;
        uint32_t used;
        random_message(type, &sent);
        const uint32_t count = hdl_message_encode(&sent, bytes);
        assert_null(hdl_message_decode(bytes, count, sender_of(type), &came, &used));
        assert_int_equal(used, count);
        assert_same(&sent, &came);
        const uint32_t cut = (uint32_t)prng_below(&dice, count);
        assert_null(hdl_message_decode(bytes, cut, sender_of(type), &came, &used));
        assert_int_equal(used, 0);
    }
}

/* A message that is accepted says all that its octets say: encoded again, they are the same. */
static void judge(const uint8_t *bytes, uint32_t count, enum hdl_sender sender)
{
    struct hdl_message message;
    uint8_t again[HDL_MESSAGE_BYTES_MAX];
    uint32_t used;
    const char *wrong = hdl_message_decode(bytes, count, sender, &message, &used);
    if (wrong == NULL && used > 0 && !(message.type == HDL_HELLO && message.hello.abi != HDL_ABI)) {
        assert_in_range(used, HDL_MESSAGE_HEADER_BYTES, count);
        assert_int_equal(hdl_message_encode(&message, again), used);
        assert_memory_equal(again, bytes, used);
    }
}

static void test_flipped(void **state)
{
    (void)state;
    static uint8_t bytes[HDL_MESSAGE_BYTES_MAX];
    for (int turn = 0; turn < 20000; turn++) {
        const enum hdl_message_type type = (enum hdl_message_type)(1 + turn % HDL_FINISH);
        struct hdl_message sent;
        random_message(type, &sent);
        const uint32_t count = hdl_message_encode(&sent, bytes);
        const uint32_t reach = count < 80 ? count : 80;
        const uint64_t bit = prng_below(&dice, 8 * (uint64_t)reach);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        judge(bytes, count, sender_of(type));
    }
    for (int turn = 0; turn < 100000; turn++) {
        const uint32_t count = (uint32_t)prng_below(&dice, 300);
        for (uint32_t i = 0; i < count; i++) {
            bytes[i] = (uint8_t)prng_next(&dice);
        }
        bytes[0] %= 16;
        bytes[1] %= 32;
        memset(bytes + 5, 0, 3);
        judge(bytes, count, turn % 2 == 0 ? HDL_FROM_MODEL : HDL_FROM_NONIC);
    }
}

/* A valid message of `type` of which `octets` at `at` are others is refused for `reason`. */
static void expect_wrong(enum hdl_message_type type, uint32_t at, uint64_t value, uint32_t octets,
                         const char *reason)
{
    uint8_t bytes[HDL_MESSAGE_BYTES_MAX];
    struct hdl_message message;
    uint32_t used;
    do {
        random_message(type, &message);
    } while (type == HDL_FRAME && message.frame.bytes < HDL_FRAME_BYTES_MIN); /* A bad one. */
    (void)hdl_message_encode(&message, bytes);
    memcpy(bytes + at, &value, octets);
    const char *wrong = hdl_message_decode(bytes, sizeof(bytes), sender_of(type), &message, &used);
    assert_non_null(wrong);
    if (strstr(wrong, reason) == NULL) {
        fail_msg("'%s', not for '%s'", wrong, reason);
    }
    assert_int_equal(used, 0);
}

/* A name without an end, one with this in it, and one with something behind its end. */
static void expect_wrong_scope(const char *scope)
{
    uint8_t bytes[HDL_MESSAGE_BYTES_MAX], *name = bytes + HDL_MESSAGE_HEADER_BYTES + 12;
    const struct hdl_message sent = {.type = HDL_HELLO,
                                     .hello = {.abi = HDL_ABI, .ports = 1, .port[0].scope = ""}};
    struct hdl_message came;
    uint32_t used;
    const uint32_t count = hdl_message_encode(&sent, bytes);
    assert_null(hdl_message_decode(bytes, count, HDL_FROM_MODEL, &came, &used));
    memcpy(name, scope, strlen(scope));
    for (uint32_t i = 0; i < 3; i++) {
        const char *wrong = hdl_message_decode(bytes, count, HDL_FROM_MODEL, &came, &used);
        assert_non_null(wrong);
        assert_string_equal(wrong, "a name that is none");
        memset(name, i == 0 ? 'a' : 0, HDL_SCOPE_BYTES);
        name[5] = 'a';
    }
}

static void test_wrong(void **state)
{
    (void)state;
    expect_wrong(HDL_DONE, 0, 0, 1, "type");
    expect_wrong(HDL_DONE, 0, HDL_FINISH + 1, 1, "type");
    expect_wrong(HDL_DONE, 0, 255, 1, "type");
    expect_wrong(HDL_DONE, 0, HDL_GRANT, 1, "type"); /* nonic's. */
    expect_wrong(HDL_GRANT, 0, HDL_DONE, 1, "type"); /* The simulator's. */
    expect_wrong(HDL_DONE, 1, HDL_PORTS_MAX, 1, "port");
    expect_wrong(HDL_DONE, 2, 1, 2, "mean nothing");
    expect_wrong(HDL_DONE, 4, 1, 4, "length");
    expect_wrong(HDL_DONE, 16, 1, 8, "mean nothing");
    expect_wrong(HDL_FRAME, 2, 2, 2, "mean nothing");
    expect_wrong(HDL_FRAME, 2, (HDL_FRAME_BYTES_MIN - 1) << 16, 6, "too short"); /* And good. */
    expect_wrong(HDL_FRAME, 4, 0, 4, "length");
    expect_wrong(HDL_FRAME, 4, HDL_FRAME_BYTES_MAX + 1, 4, "length");
    expect_wrong(HDL_FRAME, 4, UINT32_MAX, 4, "length");
    expect_wrong(HDL_COUNTERS, 4, sizeof(struct hdl_counters) - 1, 4, "length");
    expect_wrong(HDL_VIOLATION, 2, HDL_RULES, 2, "rule");
    expect_wrong(HDL_HELLO, 4, 3, 4, "length");
    expect_wrong(HDL_HELLO, 4, 4 + 5, 4, "part of a port");
    const uint32_t port_bytes = 8 + HDL_SCOPE_BYTES;
    expect_wrong(HDL_HELLO, 4, 4 + port_bytes * (HDL_HELLO_PORTS_MAX + 1), 4, "length");
    expect_wrong_scope("a b");
    expect_wrong_scope("a\nb");
    expect_wrong_scope("\x80");
    expect_wrong(HDL_HELLO, HDL_MESSAGE_HEADER_BYTES, 0, 4, "greeting");
    expect_wrong(HDL_PORT, HDL_MESSAGE_HEADER_BYTES, 96, 4, "power of two");
    expect_wrong(HDL_PAUSE, 2, HDL_CLASSES, 2, "class");
    expect_wrong(HDL_PAUSE, 16, 65536, 8, "long");
    expect_wrong(HDL_GRANT, 16, HDL_PERIOD_FS_MIN - 1, 8, "short");
    expect_wrong(HDL_RESET, 2, 3, 2, "mean nothing");
    expect_wrong(HDL_TRACE, 4, 0, 4, "length");
}

/* A message of another version has only its number. */
static void test_other_abi(void **state)
{
    (void)state;
    uint8_t bytes[HDL_MESSAGE_BYTES_MAX];
    struct hdl_message message = {.type = HDL_HELLO,
                                  .hello = {.abi = HDL_ABI + 1, .ports = 1, .port[0].scope = ""}};
    uint32_t used;
    const uint32_t count = hdl_message_encode(&message, bytes);
    assert_null(hdl_message_decode(bytes, count, HDL_FROM_MODEL, &message, &used));
    assert_int_equal(used, count);
    assert_int_equal(message.hello.abi, HDL_ABI + 1);
    assert_int_equal(message.hello.ports, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round), cmocka_unit_test(test_flipped),
                                       cmocka_unit_test(test_wrong),
                                       cmocka_unit_test(test_other_abi)};
    prng_init(&dice, 20261128);
    for (uint32_t i = 0; i < sizeof(content); i++) {
        content[i] = (uint8_t)(1 + prng_below(&dice, 255));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
