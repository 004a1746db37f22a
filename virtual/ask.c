/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ask - the call by which the box is asked, and the lock, which is not held meanwhile.
 *
 * The mutex keeps the program's threads from each other. box_arena.inside keeps the box from
 * stopping its holder in the middle of an engine.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "virtual/world.h"

static __thread int32_t own_id; /* of this thread; 0: not asked for yet */

static int32_t this_thread(void)
{
    if (UNLIKELY(own_id == 0)) {
        own_id = (int32_t)syscall(SYS_gettid);
    }
    return own_id;
}

void live_lock(struct live *live)
{
    pthread_mutex_lock(&live->mutex);
    live->arena->head.inside = this_thread();
}

static void release(struct live *live)
{
    live->arena->head.inside = 0;
    pthread_mutex_unlock(&live->mutex);
}

/* Each verb ends here: others go first if they are due, so that a program which calls nothing but
 * verbs does not keep them waiting, or if the seed says so. */
void live_unlock(struct live *live)
{
    release(live);
    world_charge(COST_VERB);
    const bool is_asked = page_verb_ended(world_page());
    if (UNLIKELY(is_asked || world_page()->clock_ns >= world_page()->due_ns) &&
        !live->is_inherited) {
        (void)world_ask(BOX_ASK_TURN, live->number, NULL);
    }
}

bool live_lock_unless_held(struct live *live)
{
    const bool held = live->arena->head.inside == this_thread();
    if (!held) {
        live_lock(live);
    }
    return !held;
}

/* In a child of fork another thread goes on, in another process: nobody is inside there. */
void world_forget_thread(struct live *live)
{
    own_id = 0;
    live->arena->head.inside = 0;
    pthread_mutex_init(&live->mutex, NULL);
}

int64_t world_ask(enum box_ask what, uint32_t number, const void *about)
{
    const int before = errno;
    const long answer = syscall(BOX_ASK, (long)what, (long)number, about);
    const int64_t result = answer < 0 ? -(int64_t)errno : (int64_t)answer;
    errno = before;
    return result;
}

int64_t world_ask_unlocked(struct live *live, enum box_ask what, const void *about)
{
    release(live);
    const int64_t result = world_ask(what, live->number, about);
    live_lock(live);
    return result;
}

void world_charge(uint64_t cost_ns)
{
    struct box_page *page = world_page();
    page->clock_ns += page_cost(page, cost_ns);
}

struct instant live_now(struct live *live)
{
    (void)live;
    return (struct instant){BOX_MONOTONIC_NS + world_page()->clock_ns};
}
