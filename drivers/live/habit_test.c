/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The doings of a program decide who drives the NIC, which posts wait, which accesses are
 *         done directly, and when the NIC looks at clock, sockets and timers.
 * Method  Tables: a row has the doings of a program, a letter for each, and the verdict.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "drivers/live/habit.h"

#define BATCH 32

struct step {
    char what;
    uint32_t times;
};

static struct instant now;

static bool has_slept; /* Letter 's' or 'S'; not with 'w'. */

static void poll(struct habit *habit, bool armed, uint32_t found)
{
    habit_note_round(habit);
    bool drives = habit_shows_poller(habit, armed);
    if (drives && habit->doubted) {
        drives = habit_returned(habit, has_slept);
    }
    if (habit_wants_time_of_poll(habit)) {
        habit_time_poll(habit, now);
    }
    if (habit_held_long(habit)) {
        habit_note_sending(habit);
    }
    if (found == 0) {
        drives |= habit_note_idle(habit);
    } else {
        habit_note_packets(habit);
    }
    if (habit_sends_now(habit, found)) {
        habit_note_sending(habit);
    }
    if (drives) {
        habit_drive(habit);
    }
}

static bool over_udp;

static void post(struct habit *habit, uint32_t bytes, bool placed)
{
    habit_note_post(habit);
    if (habit_may_hold(habit) && habit_holds(habit, bytes, over_udp)) {
        return;
    }
    habit_note_sending(habit);
    if (habit_wants_time_of_post(habit, placed)) {
        habit_time_post(habit, now);
    }
}

/* Posts, a poll for them that finds completions, and one that finds nothing. */
static void exchange(struct habit *habit, uint32_t posts, uint64_t polled_after_ns, bool placed)
{
    for (uint32_t i = 0; i < posts; i++) {
        post(habit, 64, placed);
    }
    now.ns += polled_after_ns;
    poll(habit, false, 1);
    poll(habit, false, 0);
}

static void do_once(struct habit *habit, char what)
{
    now.ns += 1000;
    switch (what) {
    case 'i': poll(habit, false, 0); return;
    case 'f': poll(habit, false, 1); return;
    case 'a': poll(habit, true, 1); return;
    case 'A': poll(habit, true, 0); return;
    case 'p': post(habit, 64, false); return;
    case 'c': exchange(habit, 2, 499, false); return; /* Company, soon polled for. */
    case 'l': exchange(habit, 2, 500, false); return; /* Company, late polled for. */
    case 'd': exchange(habit, 2, 499, true); return;  /* Company that was placed directly. */
    case '1': exchange(habit, 1, 499, false); return;
    case 'b': (void)habit_will_block(habit); return;
    case 's':
    case 'w': habit_stopped(habit, HABIT_LOOK_NS, true); return;
    case 'S': habit_stopped(habit, HABIT_LOOK_NS_FIRST, true); return;
    case 'r': habit_stopped(habit, HABIT_LOOK_NS, false); return;
    case 'm': habit_was_missed(habit); return;
    default: UNREACHABLE("no such step");
    }
}

static struct habit after(const struct step *steps, uint32_t batch)
{
    struct habit habit;
    habit_init(&habit, batch);
    for (; steps->what != '\0'; steps++) {
        for (uint32_t i = 0; i < steps->times; i++) {
            has_slept = steps->what == 'w' ? false : steps->what == 's' ? true : has_slept;
            do_once(&habit, steps->what);
        }
    }
    return habit;
}

static void test_who_drives(void **state)
{
    (void)state;
    static const struct {
        struct step steps[7];
        enum habit_driver driver;
    } rows[] = {
        {{{'p', 1000}}, HABIT_WATCHED},
        {{{'i', 32}}, HABIT_WATCHED},
        {{{'i', 33}}, HABIT_POLLED},
        {{{'f', 32}}, HABIT_WATCHED},
        {{{'f', 33}}, HABIT_POLLED},
        /* A poll of an armed queue comes before a sleep; but many polls that find nothing do
         * not. */
        {{{'a', 1000}}, HABIT_WATCHED},
        {{{'A', 33}}, HABIT_POLLED},
        {{{'f', 33}, {'b', 1}}, HABIT_WATCHED},
        {{{'f', 20}, {'b', 1}, {'f', 32}}, HABIT_WATCHED},
        {{{'f', 20}, {'b', 1}, {'f', 33}}, HABIT_POLLED},
        {{{'f', 33}, {'s', 1}, {'f', 32}}, HABIT_WATCHED},
        {{{'f', 33}, {'s', 1}, {'f', 33}}, HABIT_POLLED},
        /* It stopped with packets waiting: now eight times as many polls are needed. */
        {{{'f', 33}, {'s', 1}, {'m', 1}, {'f', 256}}, HABIT_WATCHED},
        {{{'f', 33}, {'s', 1}, {'m', 1}, {'f', 257}}, HABIT_POLLED},
        {{{'f', 33}, {'s', 1}, {'m', 1}, {'b', 1}, {'f', 33}}, HABIT_POLLED},
        /* It waited for its processor: it drives from its first poll on, and is believed as before,
         * unless it means to block. */
        {{{'f', 33}, {'w', 1}, {'m', 1}, {'f', 1}}, HABIT_POLLED},
        {{{'f', 33}, {'w', 1}, {'m', 1}, {'a', 1}}, HABIT_WATCHED},
        /* It ran all the time, and polls memory perhaps. */
        {{{'f', 33}, {'r', 1}, {'m', 1}, {'f', 256}}, HABIT_WATCHED},
        {{{'f', 33}, {'w', 1}, {'m', 1}, {'b', 1}, {'f', 1}}, HABIT_WATCHED},
        {{{'f', 33}, {'w', 1}, {'m', 1}, {'f', 1}, {'s', 1}, {'f', 32}}, HABIT_WATCHED},
        {{{'f', 33}, {'w', 1}, {'m', 1}, {'f', 1}, {'s', 1}, {'f', 33}}, HABIT_POLLED},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct habit habit = after(rows[i].steps, BATCH);
        if (habit.driver != rows[i].driver) {
            fail_msg("row %zu", i);
        }
    }
}

static void test_evidence_has_a_limit(void **state)
{
    (void)state;
    const struct habit habit = after((const struct step[]){{'m', 100}, {'\0', 0}}, BATCH);
    assert_in_range(habit.polls_to_believe, HABIT_POLLS_TO_BELIEVE_MAX,
                    HABIT_POLLS_TO_BELIEVE_MAX * HABIT_BELIEF_LOST_FACTOR);
}

static void test_which_posts_wait(void **state)
{
    (void)state;
    static const struct {
        struct step steps[7];
        uint32_t batch, waiting;
    } rows[] = {
        {{{'f', 33}, {'c', 63}, {'p', 2}}, BATCH, 0},
        {{{'f', 33}, {'c', 64}, {'p', 2}}, BATCH, 2},
        /* Posts wait only while the program drives, ... */
        {{{'f', 33}, {'c', 64}, {'b', 1}, {'p', 2}}, BATCH, 0},
        /* ... polls soon, ... */
        {{{'f', 33}, {'c', 63}, {'l', 1}, {'c', 1}, {'p', 2}}, BATCH, 0},
        /* ... and its posts are done by its peer. */
        {{{'f', 33}, {'d', 200}, {'p', 2}}, BATCH, 0},
        /* Some lone posts do not end the habit. */
        {{{'f', 33}, {'c', 64}, {'1', 15}, {'p', 2}}, BATCH, 2},
        {{{'f', 33}, {'c', 64}, {'1', 16}, {'p', 2}}, BATCH, 0},
        {{{'f', 33}, {'c', 64}, {'1', 15}, {'c', 1}, {'1', 15}, {'p', 2}}, BATCH, 2},
        /* They leave when the batch is full, ... */
        {{{'f', 33}, {'c', 64}, {'p', 31}}, BATCH, 31},
        {{{'f', 33}, {'c', 64}, {'p', 32}}, BATCH, 0},
        {{{'f', 33}, {'c', 64}, {'p', 3}}, 4, 3},
        {{{'f', 33}, {'c', 64}, {'p', 4}}, 4, 0},
        {{{'f', 33}, {'c', 200}, {'p', 1}}, 1, 0},
        /* ... when a poll finds nothing, or after eight polls. */
        {{{'f', 33}, {'c', 64}, {'p', 2}, {'i', 1}}, BATCH, 0},
        {{{'f', 33}, {'c', 64}, {'p', 2}, {'f', 8}}, BATCH, 2},
        {{{'f', 33}, {'c', 64}, {'p', 2}, {'f', 9}}, BATCH, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct habit habit = after(rows[i].steps, rows[i].batch);
        if (habit.posts.waiting != rows[i].waiting) {
            fail_msg("row %zu: %u wait", i, habit.posts.waiting);
        }
    }
}

/* A program posted and did not poll: the thread found its posts waiting. */
static void test_a_habit_that_failed(void **state)
{
    (void)state;
    struct step steps[] = {{'f', 33}, {'c', 64}, {'p', 2}, {'s', 1}, {'i', 33}, {'c', 0}, {0}};
    steps[5].times = 8 * 64 - 1;
    assert_false(after(steps, BATCH).posts.together);
    steps[5].times = 8 * 64;
    assert_true(after(steps, BATCH).posts.together);
    /* A look that came soon doubts nothing: the posts have hardly waited. */
    steps[3].what = 'S';
    steps[5].times = 0;
    assert_true(after(steps, BATCH).posts.together);
}

static void test_large_posts_do_not_wait(void **state)
{
    (void)state;
    struct habit habit = after((const struct step[]){{'f', 33}, {'c', 64}, {0}}, BATCH);
    post(&habit, HABIT_LARGE_BYTES - 1, false);
    assert_int_equal(habit.posts.waiting, 1);
    post(&habit, HABIT_LARGE_BYTES, false);
    assert_int_equal(habit.posts.waiting, 0); /* Both posts have left, in their order. */
    over_udp = true;
    post(&habit, HABIT_LARGE_BYTES_UDP - 1, false);
    assert_int_equal(habit.posts.waiting, 1);
    post(&habit, HABIT_LARGE_BYTES_UDP, false);
    assert_int_equal(habit.posts.waiting, 0);
    over_udp = false;
}

static void test_when_a_round_sends(void **state)
{
    (void)state;
    static const struct {
        uint32_t received, waiting;
        bool deferred, sends;
    } rows[] = {
        {0, 0, false, true},  {0, 5, false, true},  {0, 0, true, true},  {1, 0, false, false},
        {2, 0, false, false}, {3, 0, false, true},  {1, 0, true, true},  {2, 0, true, true},
        {1, 1, false, false}, {3, 1, false, false}, {3, 1, true, false}, {32, 0, false, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct habit habit;
        habit_init(&habit, BATCH);
        habit.posts.waiting = rows[i].waiting;
        habit.deferred = rows[i].deferred;
        assert_int_equal(habit_sends_now(&habit, rows[i].received), rows[i].sends);
        assert_int_equal(habit.deferred, rows[i].deferred || !rows[i].sends);
        habit_note_sending(&habit);
        assert_false(habit.deferred);
    }
}

static void test_when_the_clock_is_read(void **state)
{
    (void)state;
    static const struct {
        struct step steps[4];
        uint64_t round;
        bool reads;
    } rows[] = {
        {{{'i', 1}}, 1, true},  /* Rounds may be seconds apart. */
        {{{'f', 40}}, 1, true}, /* A packet came in. */
        {{{'f', 40}, {'i', 1}}, 1, false},
        {{{'f', 40}, {'i', 1}}, 15, false},
        {{{'f', 40}, {'i', 1}}, 16, true},
        {{{'f', 40}, {'i', 1}, {'b', 1}}, 1, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct habit habit = after(rows[i].steps, BATCH);
        assert_int_equal(habit_reads_clock(&habit, rows[i].round), rows[i].reads);
    }
}

static void test_when_a_flush_reads_the_clock(void **state)
{
    (void)state;
    struct habit habit = after((const struct step[]){{'i', 1}, {0}}, BATCH);
    assert_true(habit_reads_clock_to_flush(&habit));
    habit = after((const struct step[]){{'f', 40}, {0}}, BATCH);
    assert_false(habit_reads_clock_to_flush(&habit));
    assert_true(habit_reads_clock_to_flush(&habit)); /* No poll has come since then. */
}

/* Timers and sockets are looked at now and then, however many packets come in. */
static void test_what_is_looked_at_now_and_then(void **state)
{
    (void)state;
    struct habit habit;
    habit_init(&habit, BATCH);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 1; i < HABIT_ROUNDS_PER_TIME; i++) {
            assert_false(habit_is_time_late(&habit));
        }
        assert_true(habit_is_time_late(&habit));
        habit_note_time(&habit);
        assert_true(habit_looks_at_udp(&habit, true));
        for (uint32_t i = 1; i < HABIT_ROUNDS_PER_UDP; i++) {
            assert_false(habit_looks_at_udp(&habit, false));
        }
        assert_true(habit_looks_at_udp(&habit, false));
    }
}

static void test_what_is_fetched(void **state)
{
    (void)state;
    enum {
        NEVER = HABIT_FETCH_NEVER,
        SLEEPER = HABIT_FETCH_FROM_SLEEPER,
        ALWAYS = HABIT_FETCH_ALWAYS
    };
    static const struct {
        uint32_t small_reads, unpolled;
        bool together, more;
        uint32_t bytes;
        int fetch;
    } rows[] = {
        {9, 0, false, false, 16384, ALWAYS}, {9, 9, true, true, 16384, ALWAYS},
        {9, 0, false, false, 16383, ALWAYS}, {9, 5, false, false, 16383, NEVER},
        {9, 0, true, false, 16383, NEVER},   {9, 0, false, true, 16383, NEVER},
        {4, 9, true, true, 2048, ALWAYS},    {5, 9, true, true, 2048, NEVER},
        {4, 9, true, true, 2047, NEVER},     {5, 4, false, false, 2048, ALWAYS},
        {0, 0, false, false, 2047, SLEEPER}, {9, 4, false, false, 1, SLEEPER},
        {9, 5, false, false, 1, NEVER},      {0, 0, false, true, 1, NEVER},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct habit habit;
        habit_init(&habit, BATCH);
        habit.direct.small_reads = rows[i].small_reads;
        habit.direct.unpolled = rows[i].unpolled;
        habit.posts.together = rows[i].together;
        assert_int_equal(habit_fetches(&habit, rows[i].more, rows[i].bytes), rows[i].fetch);
    }
}

/* UCX sends a short READ up to a boundary, and a large one behind it. */
static void test_small_reads_are_counted(void **state)
{
    (void)state;
    struct habit habit;
    habit_init(&habit, BATCH);
    for (uint32_t i = 0; i < 9; i++) {
        habit_note_read(&habit, 100);
    }
    assert_int_equal(habit_fetches(&habit, true, 4096), HABIT_FETCH_NEVER);
    habit_note_read(&habit, 1 << 20);
    for (uint32_t i = 0; i < HABIT_SMALL_READS_MAX; i++) {
        habit_note_read(&habit, 4096);
        assert_int_equal(habit_fetches(&habit, true, 4096), HABIT_FETCH_ALWAYS);
    }
    habit_note_read(&habit, 4096);
    assert_int_equal(habit_fetches(&habit, true, 4096), HABIT_FETCH_NEVER);
}

static void test_what_is_placed(void **state)
{
    (void)state;
    struct habit habit;
    habit_init(&habit, BATCH);
    assert_true(habit_places(&habit, false, HABIT_PLACE_BYTES_MAX));
    assert_false(habit_places(&habit, false, HABIT_PLACE_BYTES_MAX + 1));
    assert_false(habit_places(&habit, true, 1));
    for (uint32_t i = 0; i <= HABIT_PLACE_UNPOLLED_MAX; i++) {
        assert_true(habit_places(&habit, false, 1));
        habit_note_direct(&habit);
    }
    assert_false(habit_places(&habit, false, 1));
    habit_note_reaped(&habit);
    assert_true(habit_places(&habit, false, 1));
    habit.posts.together = true;
    assert_false(habit_places(&habit, false, 1));
}

static void test_how_much_at_a_time(void **state)
{
    (void)state;
    static const uint32_t rows[][2] = {{1, 1}, {31, 31}, {32, 32}, {256, 32}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct habit habit;
        habit_init(&habit, rows[i][0]);
        assert_int_equal(habit_quantum(&habit), rows[i][1]);
    }
}

static void test_naps(void **state)
{
    (void)state;
    static const struct {
        uint64_t now, deadline, nap;
    } rows[] = {
        {5, 5, 0},
        {5, 4, 0},
        {5, 6, 1},
        {0, 60000000000, 60000000000},
        {0, 60000000001, 60000000000},
        {7, UINT64_MAX, 60000000000},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(
            habit_nap_ns((struct instant){rows[i].now}, (struct instant){rows[i].deadline}),
            rows[i].nap);
    }
    assert_false(habit_looks_up((struct instant){10000006}, (struct instant){7}));
    assert_true(habit_looks_up((struct instant){10000007}, (struct instant){7}));
    assert_false(habit_is_polling(HABIT_LOOK_NS, 15, 0, 0));
    assert_true(habit_is_polling(HABIT_LOOK_NS, 16, 0, HABIT_LOOK_NS));
    assert_true(habit_is_polling(HABIT_LOOK_NS, 1, 15, HABIT_LOOK_NS));
    assert_false(habit_is_polling(HABIT_LOOK_NS, 0, 1000, HABIT_LOOK_NS));
    assert_false(habit_is_polling(HABIT_LOOK_NS_FIRST, 0, 0, HABIT_LOOK_NS_FIRST / 2));
    assert_true(habit_is_polling(HABIT_LOOK_NS_FIRST, 0, 0, HABIT_LOOK_NS_FIRST / 2 - 1));
    assert_true(habit_is_polling(HABIT_LOOK_NS_FIRST, 1, 0, HABIT_LOOK_NS_FIRST));
    struct habit habit = after((struct step[]){{'\0', 0}}, 32);
    for (int i = 0; i < 100; i++) {
        habit_drive(&habit);
        assert_int_equal(habit_first_look_ns(&habit),
                         i < HABIT_FIRST_LOOKS_MAX ? HABIT_LOOK_NS_FIRST : HABIT_LOOK_NS);
        assert_int_equal(habit_first_look_ns(&habit), HABIT_LOOK_NS);
    }
}

/* After a stream the thread lingers longer, once. */
static void test_lingering(void **state)
{
    (void)state;
    struct habit habit;
    habit_init(&habit, 1);
    for (uint32_t count = 0; count <= HABIT_STREAM; count += HABIT_STREAM / 2) {
        const uint64_t linger_ns = count < HABIT_STREAM ? 20000 : 50000;
        habit_note_look(&habit, count);
        habit_note_look(&habit, 1);
        assert_false(habit_rests(&habit, (struct instant){linger_ns + 7}, (struct instant){7}));
        assert_true(habit_rests(&habit, (struct instant){linger_ns + 8}, (struct instant){7}));
        assert_true(habit_rests(&habit, (struct instant){20008}, (struct instant){7}));
    }
}

/* A program whose polls all find completions makes a round now and then, if it drives. */
static void test_rounds_of_reapers(void **state)
{
    (void)state;
    struct habit habit = after((struct step[]){{'f', 32}, {'\0', 0}}, 32);
    for (int i = 0; i < 100; i++) {
        assert_false(habit_wants_round(&habit));
    }
    habit_drive(&habit);
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i <= HABIT_REAPS_PER_ROUND; i++) {
            assert_int_equal(habit_wants_round(&habit), i == HABIT_REAPS_PER_ROUND);
        }
        habit_note_round(&habit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_drives),
        cmocka_unit_test(test_evidence_has_a_limit),
        cmocka_unit_test(test_which_posts_wait),
        cmocka_unit_test(test_a_habit_that_failed),
        cmocka_unit_test(test_large_posts_do_not_wait),
        cmocka_unit_test(test_when_a_round_sends),
        cmocka_unit_test(test_when_the_clock_is_read),
        cmocka_unit_test(test_when_a_flush_reads_the_clock),
        cmocka_unit_test(test_what_is_looked_at_now_and_then),
        cmocka_unit_test(test_what_is_fetched),
        cmocka_unit_test(test_small_reads_are_counted),
        cmocka_unit_test(test_what_is_placed),
        cmocka_unit_test(test_how_much_at_a_time),
        cmocka_unit_test(test_naps),
        cmocka_unit_test(test_lingering),
        cmocka_unit_test(test_rounds_of_reapers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
