/* SPDX-License-Identifier: BSD-2-Clause
 *
 * holds - when a seed holds a thread back, for how long, and where.
 *
 * A thread is held back somewhere behind a call, or behind a verb, most of which make no call. Each
 * of the two has draws of its own, in the order of the thread's own doings. So a time is what it is
 * with or without the others: a thread that finds a lock taken makes more calls, but no more verbs.
 */
#include <sys/syscall.h>

#include "box/internal.h"

#define THREAD_STREAMS UINT64_C(0x9e3779b97f4a7c15)
#define VERB_STREAMS   UINT64_C(0x5851f42d4c957f2d)

enum {
    STEPS_LOG = 12, /* steps away from a call's end: at most two to the power of this */
    RETURNS = 8,    /* or returns into the program's own code */
    GAP = 4, /* calls, or verbs, between two that a thread is held behind, in the beginning */
    GROWTH = 16,
    OCTAVES = 8,
};

void holds_begin(const struct box *box, struct thread *thread)
{
    const uint64_t own = box->options.seed ^ THREAD_STREAMS * (uint64_t)(thread->number + 1);
    prng_init(&thread->holds[HOLD_BEHIND_CALL].draws, own);
    prng_init(&thread->holds[HOLD_BEHIND_VERB].draws, own ^ VERB_STREAMS);
}

static bool is_wanted(const struct box_options *options, uint64_t hold)
{
    for (size_t i = 0; options->holds != NULL && i < options->hold_count; i++) {
        if (options->holds[i] == hold) {
            return true;
        }
    }
    return options->holds == NULL;
}

/* The loader maps libraries, which nobody else sees, and makes many of a short program's calls. */
static bool is_loading(const struct thread *thread)
{
    const uint64_t *loader = thread->process->loader, at = thread->call.at.rip;
    return at >= loader[0] && at < loader[1];
}

struct way draw_way(struct prng *from, unsigned most_log)
{
    const uint64_t most = UINT64_C(1) << prng_below(from, most_log + 1);
    const int steps = (int)prng_below(from, most) + 1;
    const int returns = (int)prng_below(from, RETURNS) + 1;
    const bool by_returns = prng_below(from, 2) == 0;
    return by_returns ? (struct way){1 << most_log, returns} : (struct way){steps, INT32_MAX};
}

/* Short times are as likely as long ones: some mistakes need a microsecond, others that a thread is
 * late by more than what another one sleeps. */
static uint64_t draw_time(struct prng *from, uint64_t most_ns)
{
    return prng_below(from, (most_ns >> prng_below(from, OCTAVES)) + 1);
}

void holds_count_verbs(const struct box *box, struct thread *thread)
{
    thread->verbs += thread->verbs_given - box->page->verbs_left;
    thread->verbs_given = box->page->verbs_left;
}

void holds_give_verbs(struct box *box, struct thread *thread)
{
    holds_count_verbs(box, thread);
    const uint64_t at = thread->holds[HOLD_BEHIND_VERB].at;
    const uint64_t left = at > thread->verbs ? at - thread->verbs : 1;
    thread->verbs_given = !box->draws_holds ? 0 : left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
    box->page->verbs_left = thread->verbs_given;
}

/* Often in the beginning, so that a thread that makes few calls is held as well as one that makes
 * many. */
static bool is_due(struct hold_stream *stream, uint64_t moments)
{
    if (moments < stream->at) {
        return false;
    }
    stream->at = moments + 1 + prng_below(&stream->draws, 2 * (GAP + moments / GROWTH));
    return true;
}

static bool asks_for_turn(const struct thread *thread)
{
    return thread->call.number == BOX_ASK && thread->call.argument[0] == BOX_ASK_TURN;
}

bool holds_is_asked(const struct box *box, const struct thread *thread)
{
    return asks_for_turn(thread) && thread->verbs_given != 0 && box->page->verbs_left == 0;
}

bool holds_draw(struct box *box, struct thread *thread, struct hold *drawn)
{
    if (!box->draws_holds || is_loading(thread)) {
        return false;
    }
    holds_count_verbs(box, thread);
    const enum hold_kind kind = asks_for_turn(thread) ? HOLD_BEHIND_VERB : HOLD_BEHIND_CALL;
    struct hold_stream *stream = &thread->holds[kind];
    if (!is_due(stream, kind == HOLD_BEHIND_VERB ? thread->verbs : thread->calls)) {
        return false;
    }
    holds_give_verbs(box, thread);
    drawn->held_ns = draw_time(&stream->draws, box->options.hold_ns);
    drawn->way = draw_way(&stream->draws, STEPS_LOG);
    const uint64_t hold =
        box_hold((uint32_t)thread->number, HOLD_KINDS * stream->drawn++ + (uint32_t)kind);
    if (box->result->holds < BOX_HOLDS_MAX) {
        box->result->hold[box->result->holds] = hold;
    }
    box->result->holds++;
    return is_wanted(&box->options, hold);
}
