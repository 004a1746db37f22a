/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The request queue takes what a host writes, in order, and releases what start flags say.
 * Method  Random bursts over many wraps against a plain list. Behaviours FNX-01 to FNX-04.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "hardware/forth/request_queue.h"

static struct forth_queue *make(bool full_by_pointer)
{
    struct forth_queue *queue = calloc(1, sizeof(*queue));
    forth_queue_init(queue, full_by_pointer);
    return queue;
}

/* Writes request number `n` into its slot, in DWords or QWords. */
static void write_request(struct forth_queue *queue, uint32_t n, bool start, bool dwords)
{
    const struct forth_request request = {.source = UINT64_C(0x100000000) + n,
                                          .destination = n,
                                          .words = (uint16_t)(1 + n % 512),
                                          .node = n & 0x7f,
                                          .start = start};
    const uint32_t offset = n % FORTH_QUEUE_REQUESTS * 16;
    uint64_t words[2];
    forth_request_encode(&request, words);
    for (uint32_t i = 0; i < 2; i++) {
        if (dwords) {
            forth_queue_write(queue, offset + 8 * i, words[i] & UINT32_MAX, 4);
            forth_queue_write(queue, offset + 8 * i + 4, words[i] >> 32, 4);
        } else {
            forth_queue_write(queue, offset + 8 * i, words[i], 8);
        }
    }
}

static void expect_next(const struct forth_queue *queue, uint32_t n)
{
    struct forth_request request;
    assert_true(forth_queue_released(queue));
    assert_int_equal(forth_queue_next(queue, &request), FORTH_GOOD);
    assert_true(request.source == UINT64_C(0x100000000) + n);
    assert_int_equal(request.destination, n);
    assert_int_equal(request.words, 1 + n % 512);
}

/* FNX-01: bursts of either width make the same entry. */
static void test_widths(void **state)
{
    (void)state;
    struct forth_queue *one = make(false), *other = make(false);
    for (uint32_t n = 0; n < 100; n++) {
        write_request(one, n, n % 3 == 0, true);
        write_request(other, n, n % 3 == 0, false);
    }
    assert_memory_equal(one, other, sizeof(*one));
    free(one);
    free(other);
}

/* FNX-02, FNX-04: strictly in order, over many wraps, whatever the bursts. */
static void test_order_over_wraps(void **state)
{
    (void)state;
    struct forth_queue *queue = make(false);
    struct prng prng;
    uint32_t written = 0, served = 0;
    prng_init(&prng, 1);
    while (served < 5 * FORTH_QUEUE_REQUESTS) {
        uint64_t burst = prng_below(&prng, 700);
        while (burst-- > 0 && written - served < FORTH_QUEUE_REQUESTS) {
            write_request(queue, written++, burst == 0 || prng_below(&prng, 4) == 0,
                          prng_below(&prng, 2));
        }
        for (uint64_t i = prng_below(&prng, 700); i > 0 && forth_queue_released(queue); i--) {
            expect_next(queue, served++);
            forth_queue_advance(queue);
        }
    }
    assert_int_equal(queue->refused, 0);
    free(queue);
}

/* FNX-02: 1,024 requests pending, or 1,023 where pointers alone tell; one more is refused,
 * reported, and overwrites nothing. */
static void test_full(void **state)
{
    (void)state;
    for (int by_pointer = 0; by_pointer < 2; by_pointer++) {
        struct forth_queue *queue = make(by_pointer);
        const uint32_t room = FORTH_QUEUE_REQUESTS - (uint32_t)by_pointer;
        for (uint32_t n = 0; n < room; n++) {
            write_request(queue, n, n + 1 == room, false);
        }
        assert_int_equal(queue->pending, room);
        write_request(queue, room, true, false);
        assert_int_equal(queue->refused, 1);
        for (uint32_t n = 0; n < room; n++) {
            expect_next(queue, n);
            forth_queue_advance(queue);
        }
        assert_false(forth_queue_released(queue));
        write_request(queue, room, true, true); /* Now it may come. */
        expect_next(queue, room);
        free(queue);
    }
}

/* FNX-03: without a start flag nothing is released; with one, all before it and nothing behind. */
static void test_clustering(void **state)
{
    (void)state;
    struct forth_queue *queue = make(false);
    for (uint32_t n = 0; n < 5; n++) {
        write_request(queue, n, false, false);
        assert_false(forth_queue_released(queue));
    }
    write_request(queue, 5, true, false);
    write_request(queue, 6, false, false);
    for (uint32_t n = 0; n < 6; n++) {
        expect_next(queue, n);
        forth_queue_advance(queue);
    }
    assert_false(forth_queue_released(queue));
    assert_int_equal(queue->pending, 1);
    free(queue);
}

/* FNX-04: control bit 24 resets both pointers. */
static void test_reset(void **state)
{
    (void)state;
    struct forth_queue *queue = make(false);
    for (uint32_t n = 0; n < 10; n++) {
        write_request(queue, n, true, false);
    }
    forth_queue_advance(queue);
    forth_queue_reset(queue);
    assert_int_equal(queue->head, 0);
    assert_int_equal(queue->tail, 0);
    assert_false(forth_queue_released(queue));
    write_request(queue, 0, true, false);
    expect_next(queue, 0);
    free(queue);
}

/* A request that is none is named, and can be passed over. */
static void test_bad_request(void **state)
{
    (void)state;
    struct forth_queue *queue = make(false);
    struct forth_request request;
    forth_queue_write(queue, 0, 0, 8);
    forth_queue_write(queue, 8, UINT64_C(1) << 59, 8); /* No words. */
    assert_true(forth_queue_released(queue));
    assert_int_equal(forth_queue_next(queue, &request), FORTH_WRONG_LENGTH);
    forth_queue_advance(queue);
    write_request(queue, 1, true, false);
    expect_next(queue, 1);
    free(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths), cmocka_unit_test(test_order_over_wraps),
        cmocka_unit_test(test_full),   cmocka_unit_test(test_clustering),
        cmocka_unit_test(test_reset),  cmocka_unit_test(test_bad_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
