/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Messages are found in a ring that a front end writes, whenever the reader has its turn.
 * Method  Memory as a front end leaves it, and a device that has no completions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "tools/feroce_receive.h"

enum {
    SLOTS = 8,
    WORDS = 4
};

static int poll_nothing(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
    (void)cq;
    (void)entries;
    (void)wc;
    return 0;
}

uint64_t receive_now_ns(void)
{
    return 1;
}

bool stream_post(struct stream *stream, const struct wishes *wishes, uint64_t buffer)
{
    (void)stream;
    (void)wishes;
    (void)buffer;
    return true;
}

static uint32_t memory[(SLOTS + 1) * WORDS];
static struct ibv_context context = {.ops.poll_cq = poll_nothing};
static struct ibv_cq cq = {.context = &context};
static struct stream stream;
static const struct wishes wishes = {.check = FEROCE_CHECK_COUNTER,
                                     .write_ring = true,
                                     .buf_size = WORDS * 4,
                                     .wrap = SLOTS * WORDS * 4};

static int begin(void **state)
{
    (void)state;
    memset(memory, 0xff, sizeof(memory));
    stream = (struct stream){.cq = &cq, .memory = (uint8_t *)memory};
    feroce_checker_init(&stream.checker, FEROCE_CHECK_COUNTER);
    feroce_checker_open(&stream.checker);
    return 0;
}

static void write_message(uint32_t slot, uint32_t number)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        memory[slot * WORDS + i] = number * WORDS + i;
    }
}

static void take(uint64_t messages, uint64_t overwritten)
{
    assert_true(stream_take(&stream, &wishes));
    assert_int_equal(stream.messages, messages);
    assert_int_equal(stream.overwritten, overwritten);
    assert_int_equal(stream.checker.repeated, 0);
    assert_int_equal(stream.checker.missing, overwritten * WORDS);
}

/* A generator that starts again, once for each number of messages of either start. */
static void test_starts(void **state)
{
    for (uint32_t first = 1; first < 2 * SLOTS; first++) {
        for (uint32_t second = 1; second < SLOTS; second++) {
            (void)begin(state);
            for (uint32_t i = 0; i < first; i++) {
                write_message(i % SLOTS, i);
                take(i + 1, 0);
            }
            for (uint32_t i = 0; i < second; i++) {
                write_message(i, first + i);
            }
            take(first + second, 0);
        }
    }
}

/* The second message lies where the tenth does. */
static void test_lap(void **state)
{
    (void)state;
    write_message(0, 0);
    take(1, 0);
    write_message(1, 1 + SLOTS);
    take(2, SLOTS);
}

static void test_nothing(void **state)
{
    (void)state;
    take(0, 0);
    write_message(1, 1);
    take(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_starts, begin),
        cmocka_unit_test_setup(test_lap, begin),
        cmocka_unit_test_setup(test_nothing, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
