/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/live/habit.h"

void habit_init(struct habit *habit, uint32_t batch)
{
    *habit = (struct habit){
        .batch = batch,
        .driver = HABIT_WATCHED,
        .polls_to_believe = HABIT_POLLS_TO_BELIEVE,
        .posts.to_believe = HABIT_POSTS_TO_BELIEVE,
    };
}

/* Belief is lost by a factor, up to a limit; a post that waits has room in the batch, and not for
 * many polls. */
void habit_check(const struct habit *habit)
{
    CHECK(habit->driver <= HABIT_POLLED);
    CHECK(habit->polls_to_believe >= HABIT_POLLS_TO_BELIEVE &&
          habit->polls_to_believe < HABIT_POLLS_TO_BELIEVE_MAX * HABIT_BELIEF_LOST_FACTOR);
    CHECK(habit->posts.to_believe >= HABIT_POSTS_TO_BELIEVE &&
          habit->posts.to_believe < HABIT_POLLS_TO_BELIEVE_MAX * HABIT_BELIEF_LOST_FACTOR);
    CHECK(habit->posts.waiting > 0 || habit->posts.holds == 0);
    CHECK(habit->posts.holds <= HABIT_HOLDS_MAX + 1);
    CHECK(habit->rounds_without_time <= HABIT_ROUNDS_PER_TIME);
    CHECK(habit->posts.waiting == 0 || habit->posts.waiting < habit->batch);
    CHECK(habit->reaps <= HABIT_REAPS_PER_ROUND);
    CHECK(habit->first_looks <= HABIT_FIRST_LOOKS_MAX);
    CHECK(habit->rounds_without_udp < HABIT_ROUNDS_PER_UDP);
}

void habit_time_poll(struct habit *habit, struct instant now)
{
    INVARIANTS(habit_check(habit));
    const bool soon = now.ns - habit->posts.at.ns < HABIT_POST_POLLED_NS;
    habit->posts.streak = soon ? habit->posts.streak : 0;
    habit->posts.together = habit->posts.streak >= habit->posts.to_believe;
}

bool habit_will_block(struct habit *habit)
{
    INVARIANTS(habit_check(habit));
    const bool drove = habit->driver == HABIT_POLLED;
    habit->idle_polls = 0;
    habit->polls = 0;
    habit->polls_to_believe = HABIT_POLLS_TO_BELIEVE;
    habit->driver = HABIT_WATCHED;
    habit->doubted = false;
    return drove;
}

static void want_more(uint32_t *to_believe)
{
    if (*to_believe < HABIT_POLLS_TO_BELIEVE_MAX) {
        *to_believe *= HABIT_BELIEF_LOST_FACTOR;
    }
}

void habit_stopped(struct habit *habit, uint64_t look_ns, bool away)
{
    INVARIANTS(habit_check(habit));
    habit->driver = HABIT_WATCHED;
    habit->polls = 0;
    habit->doubted = away;
    habit->before.polls = habit->polls_to_believe;
    habit->before.posts = habit->posts.to_believe;
    habit->before.together = habit->posts.together;
    /* Requests waited for a poll that did not come, and a first look does not wait for it. */
    if (habit->posts.waiting > 0 && look_ns == HABIT_LOOK_NS) {
        habit->posts.together = false;
        habit->posts.streak = 0;
        want_more(&habit->posts.to_believe);
    }
}

bool habit_returned(struct habit *habit, bool slept)
{
    INVARIANTS(habit_check(habit));
    CHECK(habit->doubted);
    habit->doubted = false;
    if (!slept) {
        habit->polls_to_believe = habit->before.polls;
        habit->posts.to_believe = habit->before.posts;
        habit->posts.together = habit->before.together;
    }
    return !slept;
}

void habit_was_missed(struct habit *habit)
{
    want_more(&habit->polls_to_believe);
    INVARIANTS(habit_check(habit));
}

enum habit_fetch habit_fetches(const struct habit *habit, bool more, uint32_t bytes)
{
    const bool lone = bytes >= HABIT_FETCH_BYTES_LONE;
    if (bytes >= HABIT_FETCH_BYTES_ALWAYS ||
        (lone && habit->direct.small_reads <= HABIT_SMALL_READS_MAX)) {
        return HABIT_FETCH_ALWAYS;
    }
    if (more || !habit_is_one_by_one(habit)) {
        return HABIT_FETCH_NEVER;
    }
    return lone ? HABIT_FETCH_ALWAYS : HABIT_FETCH_FROM_SLEEPER;
}

bool habit_looks_at_udp(struct habit *habit, bool used)
{
    const bool looks = used || ++habit->rounds_without_udp >= HABIT_ROUNDS_PER_UDP;
    habit->rounds_without_udp = looks ? 0 : habit->rounds_without_udp;
    INVARIANTS(habit_check(habit));
    return looks;
}

uint64_t habit_nap_ns(struct instant now, struct instant deadline)
{
    if (instant_reached(now, deadline)) {
        return 0;
    }
    const uint64_t ns = deadline.ns - now.ns;
    return ns > HABIT_SLEEP_NS_MAX ? HABIT_SLEEP_NS_MAX : ns;
}
