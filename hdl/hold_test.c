/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The clock waits when, and only when, an answer is owed for longer than H or nothing has
 *         passed for H, and runs on at once when something has come (FER-152).
 * Method  Stories by hand; random histories against a model that looks at the whole history; and a
 *         window on a line with a peer that is slow, which is what the rule is for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/prng.h"
#include "hdl/hold.h"

#define H          UINT64_C(5000000) /* 5 us, in ps. */
#define CYCLE_PS   6400
#define EVENTS_MAX 4000

static void test_owed(void **state)
{
    (void)state;
    struct hold hold = hold_begin(H);
    assert_false(hold_waits(&hold, H));
    hold_left(&hold, 1000);
    /* Later frames and beats do not postpone it. */
    for (uint64_t now = 1000; now <= 1000 + H; now += CYCLE_PS) {
        hold_moved(&hold, now);
        hold_left(&hold, now);
        assert_false(hold_waits(&hold, now));
    }
    hold_left(&hold, 1001 + H);
    assert_true(hold_waits(&hold, 1001 + H));
    /* It runs on at once when a frame comes, and the next debt begins with the next frame. */
    hold_came(&hold, 1001 + H);
    assert_false(hold_waits(&hold, 1001 + H));
    hold_moved(&hold, 5 * H);
    assert_false(hold_waits(&hold, 6 * H));
    hold_left(&hold, 6 * H);
    assert_false(hold_waits(&hold, 7 * H));
    hold_moved(&hold, 7 * H + 1);
    assert_true(hold_waits(&hold, 7 * H + 1));
}

static void test_silence(void **state)
{
    (void)state;
    struct hold hold = hold_begin(H);
    hold_came(&hold, 1000);
    assert_false(hold_waits(&hold, 1000 + H));
    assert_true(hold_waits(&hold, 1001 + H));
    hold_waited(&hold, 1001 + H);
    assert_false(hold_waits(&hold, 1001 + 2 * H));
    assert_true(hold_waits(&hold, 1002 + 2 * H));
}

static void test_off(void **state)
{
    (void)state;
    struct hold hold = hold_begin(HOLD_OFF);
    hold_left(&hold, 1);
    assert_false(hold_waits(&hold, UINT64_MAX));
}

/* -- The rule, of the whole history -------------------------------------------------------------*/

enum what {
    LEFT,
    CAME,
    MOVED,
    WAITED
};

static struct {
    enum what what;
    uint64_t at_ps;
} history[EVENTS_MAX];

/* "Owed" is the time of the first frame that left since the last one came; a wait moves it to its
 * own end. */
static bool model_waits(uint32_t count, uint64_t now_ps)
{
    uint64_t owed_ps = UINT64_MAX, passed_ps = 0;
    uint32_t first = count;
    while (first > 0 && history[first - 1].what != CAME) {
        first--;
    }
    for (uint32_t i = first; i < count && owed_ps == UINT64_MAX; i++) {
        owed_ps = history[i].what == LEFT ? history[i].at_ps : owed_ps;
    }
    for (uint32_t i = 0; i < count; i++) {
        passed_ps = history[i].at_ps;
        if (history[i].what == WAITED && owed_ps < history[i].at_ps) {
            owed_ps = history[i].at_ps;
        }
    }
    return now_ps - passed_ps > H || (owed_ps < now_ps && now_ps - owed_ps > H);
}

static void test_random(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (int round = 0; round < 50; round++) {
        struct hold hold = hold_begin(H);
        uint64_t now_ps = 0;
        uint32_t waits = 0;
        for (uint32_t i = 0; i < 400; i++) {
            now_ps += 1 + prng_below(&prng, prng_chance(&prng, 100000) ? 2 * H : H / 8);
            assert_int_equal(hold_waits(&hold, now_ps), model_waits(i, now_ps));
            enum what what = (enum what)prng_below(&prng, 3);
            if (hold_waits(&hold, now_ps)) {
                waits++;
                what = prng_chance(&prng, 500000) ? CAME : WAITED;
            }
            (what == LEFT    ? hold_left
             : what == CAME  ? hold_came
             : what == MOVED ? hold_moved
                             : hold_waited)(&hold, now_ps);
            history[i].what = what;
            history[i].at_ps = now_ps;
        }
        assert_in_range(waits, 5, 300);
    }
}

/* -- A slow peer --------------------------------------------------------------------------------*/

/* A sender with a window of 16 frames of 3.4 us each, and a timeout of 46.5 us of its own time,
 * against a peer that answers only while the clock stands. With a rule of silence alone, or of
 * beats, the window would outlast the timeout. Returns how often the timer ran out. */
static uint32_t timeouts(uint64_t after_ps)
{
    enum {
        FRAME_PS = 3400000,
        WINDOW = 16,
        FRAMES = 600,
        RTO_PS = 46500000
    };
    struct hold hold = hold_begin(after_ps);
    uint32_t sent = 0, acknowledged = 0, count = 0;
    uint64_t free_ps = 0, progress_ps = 0;
    for (uint64_t now_ps = 0; acknowledged < FRAMES && count < 1000; now_ps += CYCLE_PS) {
        if (free_ps > now_ps) {
            hold_moved(&hold, now_ps); /* Beats pass. */
        } else if (sent < FRAMES && sent - acknowledged < WINDOW) {
            hold_left(&hold, now_ps);
            sent++;
            free_ps = now_ps + FRAME_PS;
        }
        if (hold_waits(&hold, now_ps)) {
            acknowledged = sent;
            progress_ps = now_ps;
            hold_came(&hold, now_ps);
        } else if (acknowledged < sent && now_ps - progress_ps > RTO_PS) {
            count++;
            sent = acknowledged;
            progress_ps = now_ps;
        }
    }
    return count;
}

static void test_purpose(void **state)
{
    (void)state;
    assert_int_equal(timeouts(H), 0);
    assert_int_equal(timeouts(HOLD_OFF), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_owed),   cmocka_unit_test(test_silence), cmocka_unit_test(test_off),
        cmocka_unit_test(test_random), cmocka_unit_test(test_purpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
