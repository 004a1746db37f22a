/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Notifications come out as they went in; a full queue holds whoever has one, and counts.
 * Method  One queue filled by hand; then puts and takes by chance, held against two numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/notifications.h"

static struct lant_notifications queue;

static void put(uint32_t tag)
{
    lant_notifications_put(&queue, &(struct lant_notification){.tag = tag});
}

/* LNI-42's queue: the 65th waits until one was taken. */
static void test_full(void **state)
{
    (void)state;
    struct lant_notification notification;
    lant_notifications_init(&queue, LANT_NOTIFICATIONS_DEPTH);
    assert_false(lant_notifications_take(&queue, &notification));
    for (uint32_t i = 0; i < 64; i++) {
        assert_true(lant_notifications_admit(&queue));
        put(i);
    }
    assert_int_equal(queue.held, 0);
    /* A caller that asks again and again is counted as held once. */
    assert_false(lant_notifications_admit(&queue));
    assert_false(lant_notifications_admit(&queue));
    assert_int_equal(queue.held, 1);
    assert_true(lant_notifications_take(&queue, &notification));
    assert_int_equal(notification.tag, 0);
    assert_true(lant_notifications_admit(&queue));
    put(64);
    assert_false(lant_notifications_admit(&queue));
    assert_int_equal(queue.held, 2);
    for (uint32_t i = 1; i <= 64; i++) {
        assert_true(lant_notifications_take(&queue, &notification));
        assert_int_equal(notification.tag, i);
    }
    assert_int_equal(queue.given, 65);
    assert_int_equal(queue.count_max, 64);
}

static void test_random(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t depth = 1; depth <= 5; depth++) {
        uint32_t in = 0, out = 0;
        lant_notifications_init(&queue, depth);
        for (uint32_t i = 0; i < 5000; i++) {
            struct lant_notification notification;
            if (prng_chance(&prng, 500000)) {
                const bool room = lant_notifications_admit(&queue);
                assert_int_equal(room, in - out < depth);
                if (room) {
                    put(in++);
                }
            } else {
                assert_int_equal(lant_notifications_take(&queue, &notification), in != out);
                if (in != out) {
                    assert_int_equal(notification.tag, out++);
                }
            }
            lant_notifications_check(&queue);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
