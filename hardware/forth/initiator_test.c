/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The initiator asks the bus for exactly what a request or packet needs, however often it
 *         is disconnected; the FIFO counts words and whole packets.
 * Method  Step by step, and with random disconnects. Behaviours FNX-06, FNX-08, FNX-10, FNX-26.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "hardware/forth/fifo.h"
#include "hardware/forth/initiator.h"

#define NOTIFY_AT 0x7000u

/* FNX-06: a dual address cycle if, and only if, the address is above 4 GB. */
static void test_dual_address(void **state)
{
    (void)state;
    static const uint64_t sources[] = {0, 0xfffffff8, 0x100000000, UINT64_MAX - 4095};
    for (uint32_t i = 0; i < 4; i++) {
        struct forth_fetch fetch = {.state = FORTH_FETCH_IDLE};
        const struct forth_request request = {.source = sources[i], .words = 1};
        forth_fetch_begin(&fetch, &request);
        const struct forth_transfer transfer = forth_fetch_next(&fetch, NOTIFY_AT);
        assert_int_equal(transfer.step, FORTH_STEP_ADDRESS);
        assert_int_equal(transfer.address, sources[i]);
        assert_int_equal(transfer.dual_address, i >= 2);
    }
}

/* FNX-08, FNX-10: one split a request, all its words once, then its notification. */
static void fetch_all(struct prng *prng, uint32_t words, bool notify)
{
    struct forth_fetch fetch = {.state = FORTH_FETCH_IDLE};
    const struct forth_request request = {
        .source = 0x1000, .words = (uint16_t)words, .flags = {.local_notification = notify}};
    forth_fetch_begin(&fetch, &request);
    assert_int_equal(forth_fetch_next(&fetch, NOTIFY_AT).step, FORTH_STEP_ADDRESS);
    forth_fetch_split(&fetch);
    assert_int_equal(forth_fetch_next(&fetch, NOTIFY_AT).step, FORTH_STEP_NONE);
    forth_fetch_ready(&fetch);
    uint32_t moved = 0;
    while (moved < words) {
        const struct forth_transfer transfer = forth_fetch_next(&fetch, NOTIFY_AT);
        assert_int_equal(transfer.step, moved == 0 && fetch.state == FORTH_FETCH_DATA
                                            ? FORTH_STEP_DATA
                                            : FORTH_STEP_REST);
        assert_int_equal(transfer.address, 0x1000 + 8 * moved);
        assert_int_equal(transfer.qwords, words - moved);
        const uint32_t some = (uint32_t)prng_below(prng, transfer.qwords + 1);
        forth_fetch_moved(&fetch, some);
        moved += some;
    }
    if (notify) {
        const struct forth_transfer transfer = forth_fetch_next(&fetch, NOTIFY_AT);
        assert_int_equal(transfer.step, FORTH_STEP_NOTIFY);
        assert_int_equal(transfer.address, NOTIFY_AT);
        forth_fetch_moved(&fetch, 1);
    }
    assert_int_equal(fetch.state, FORTH_FETCH_DONE);
    forth_fetch_end(&fetch);
    assert_int_equal(fetch.state, FORTH_FETCH_IDLE);
}

static void test_fetches(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 4);
    for (uint32_t i = 0; i < 2000; i++) {
        fetch_all(&prng, 1 + (uint32_t)prng_below(&prng, 512), i % 3 == 0);
    }
}

static void test_deliveries(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 5);
    for (uint32_t i = 0; i < 2000; i++) {
        const uint32_t words = 1 + (uint32_t)prng_below(&prng, 512);
        const bool notify = i % 2;
        struct forth_delivery delivery = {.busy = false};
        const struct forth_header header = {.words = (uint16_t)words,
                                            .destination = 0x2000,
                                            .flags = {.remote_notification = notify}};
        forth_delivery_begin(&delivery, &header);
        uint32_t moved = 0;
        bool done = false;
        while (moved < words) {
            assert_false(done);
            const struct forth_transfer transfer = forth_delivery_next(&delivery, NOTIFY_AT);
            assert_int_equal(transfer.step, FORTH_STEP_WRITE);
            assert_int_equal(transfer.address, 0x2000 + 8 * moved);
            const uint32_t some = (uint32_t)prng_below(&prng, transfer.qwords + 1);
            done = forth_delivery_moved(&delivery, some);
            moved += some;
        }
        assert_int_equal(done, !notify);
        if (notify) {
            assert_int_equal(forth_delivery_next(&delivery, NOTIFY_AT).step, FORTH_STEP_NOTIFY);
            assert_true(forth_delivery_moved(&delivery, 1));
        }
        assert_int_equal(forth_delivery_next(&delivery, NOTIFY_AT).step, FORTH_STEP_NONE);
    }
}

/* FNX-26: a packet that becomes whole in the cycle in which another is taken. */
static void test_fifo(void **state)
{
    (void)state;
    struct forth_fifo fifo = {.used = 0};
    forth_fifo_count(&fifo, true, false);
    forth_fifo_count(&fifo, true, false);
    assert_int_equal(fifo.packets, 2);
    forth_fifo_count(&fifo, true, true);
    assert_int_equal(fifo.packets, 2);
    forth_fifo_count(&fifo, false, true);
    forth_fifo_count(&fifo, false, true);
    assert_int_equal(fifo.packets, 0);
    /* Two of the largest packets do not fit; what does not is lost, and counted. */
    assert_int_equal(forth_fifo_put(&fifo, 513), 0);
    assert_false(forth_fifo_has_room(&fifo, 513));
    assert_true(forth_fifo_has_room(&fifo, 510));
    assert_int_equal(forth_fifo_put(&fifo, 513), 3);
    assert_int_equal(fifo.used, FORTH_FIFO_WORDS);
    assert_int_equal(fifo.overflow, 3);
    forth_fifo_take(&fifo, FORTH_FIFO_WORDS);
    assert_int_equal(fifo.used, 0);
    assert_int_equal(fifo.peak, FORTH_FIFO_WORDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dual_address),
        cmocka_unit_test(test_fetches),
        cmocka_unit_test(test_deliveries),
        cmocka_unit_test(test_fifo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
