/* SPDX-License-Identifier: BSD-2-Clause
 *
 * call_nic - what programs' processes ask for their NICs, which are a machine's (base/box_ask.h).
 */
#include <errno.h>

#include "base/box_ask.h"
#include "box/calls.h"
#include "box/machine.h"

enum {
    NAP_NS = 2000, /* as turn.c's: another thread may store without a call what a poller looks at */
    NAP_NS_MAX = 1000000,
    POLLS_A_DOUBLING = 64, /* nearly: of the time for which a thread has polled in vain */
    STEP_NS_MIN = 100,
};

static enum call_next answer(struct thread *thread, int64_t result)
{
    turn_answer(thread, result);
    return CALL_ANSWERED;
}

/* Others can see that it was made. */
static void note_deed(struct box *box, struct thread *thread)
{
    barren_over(box, thread);
    box->progress++;
    box->deeds++;
}

/* The call is over, but the thread goes on when its wait is. */
static enum call_next sleep_in(struct box *box, struct thread *thread, struct wait wait)
{
    turn_answer(thread, 0);
    turn_called(box, thread, 0);
    thread->wait = wait;
    return CALL_WAITS;
}

/* A thread that reads clocks between its polls does not sleep, for it may have a time-out. It gets
 * on by a part of the time for which it has polled, but not beyond the moment at which somebody is
 * due: so it sees what comes when it comes, and its time-outs a little late. */
static void get_on(struct box *box, struct thread *thread)
{
    struct box_page *page = box->page;
    const uint64_t step_ns = (page->clock_ns - thread->polls_since_ns) / POLLS_A_DOUBLING;
    if (step_ns > STEP_NS_MIN && page->clock_ns < thread->grant_ns) {
        const uint64_t left_ns = thread->grant_ns - page->clock_ns;
        page->clock_ns += step_ns < left_ns ? step_ns : left_ns;
    }
}

/* A completion queue was empty. A program that looks again and again, and reads no clock between,
 * sleeps until something happens: a poll may take long. */
static enum call_next park(struct box *box, struct thread *thread, struct seat *seat)
{
    const struct empty_poll now = {.clock_reads = box->page->clock_reads, .calls = thread->calls};
    const bool is_next = now.calls == thread->empty.calls + 1;
    const bool is_again = is_next && now.clock_reads == thread->empty.clock_reads;
    thread->empty = now;
    barren_polled(box, thread);
    if (machine_has_changed(seat, thread) || !is_next) {
        thread->polls_since_ns = box->page->clock_ns;
        thread->nap_ns = NAP_NS;
        return answer(thread, 0);
    }
    if (!is_again) {
        get_on(box, thread);
        thread->nap_ns = NAP_NS;
        return answer(thread, 0);
    }
    const uint64_t deadline_ns = box->page->clock_ns + thread->nap_ns;
    thread->nap_ns = thread->nap_ns < NAP_NS_MAX ? thread->nap_ns * 2 : NAP_NS_MAX;
    return sleep_in(box, thread, (struct wait){.kind = WAIT_POLLS, .deadline_ns = deadline_ns});
}

static enum call_next news(struct box *box, struct thread *thread, struct seat *seat)
{
    const uint64_t alarm_ns = machine_alarm(seat);
    return machine_has_news(box, thread->process) || alarm_ns <= box->page->clock_ns
               ? answer(thread, 0)
               : sleep_in(box, thread, (struct wait){.kind = WAIT_NEWS, .deadline_ns = alarm_ns});
}

static enum call_next send_datagram(struct box *box, struct thread *thread, struct seat *seat)
{
    struct box_datagram datagram;
    note_deed(box, thread);
    return answer(thread,
                  tracee_read(thread->id, thread->call.argument[2], &datagram, sizeof(datagram))
                      ? machine_send(seat, &datagram)
                      : -EFAULT);
}

static enum call_next receive_datagram(struct thread *thread, struct seat *seat)
{
    struct box_datagram datagram;
    if (!machine_receive(seat, &datagram)) {
        return answer(thread, 0);
    }
    return answer(thread,
                  tracee_write(thread->id, thread->call.argument[2], &datagram, sizeof(datagram))
                      ? 1
                      : -EFAULT);
}

/* Claims it, or finds who did. */
static enum call_next take_port(struct thread *thread, struct seat *seat)
{
    struct box_port port;
    const uint64_t about = thread->call.argument[2];
    if (!tracee_read(thread->id, about, &port, sizeof(port))) {
        return answer(thread, -EFAULT);
    }
    if (thread->call.argument[0] == BOX_ASK_FIND) {
        return answer(thread, machine_find(seat, &port));
    }
    const int64_t claim = machine_claim(seat, &port);
    return answer(thread, tracee_write(thread->id, about, &port, sizeof(port)) ? claim : -EFAULT);
}

static enum call_next settle(struct box *box, struct thread *thread, const struct seat *seat)
{
    const uint64_t settled_ns = machine_settled_ns(seat);
    return settled_ns <= box->page->clock_ns
               ? answer(thread, 0)
               : sleep_in(box, thread,
                          (struct wait){.kind = WAIT_SLEEP, .deadline_ns = settled_ns});
}

static enum call_next serve(struct box *box, struct thread *thread, struct seat *seat)
{
    const uint64_t about = thread->call.argument[2];
    switch ((enum box_ask)thread->call.argument[0]) {
    case BOX_ASK_ATTACH:
        note_deed(box, thread);
        return answer(thread, machine_attach(box, seat, about));
    case BOX_ASK_CLOSE:
        note_deed(box, thread);
        machine_detach(box, seat);
        return answer(thread, 0);
    case BOX_ASK_DOORBELL:
        note_deed(box, thread);
        return answer(thread, about != 0 && machine_ring(seat, about) ? 0 : -EFAULT);
    case BOX_ASK_POKE: return answer(thread, machine_ring(seat, 0) ? 0 : -EFAULT);
    case BOX_ASK_FORGET: return answer(thread, machine_forget(seat, about) ? 0 : -EFAULT);
    case BOX_ASK_SETTLE: return settle(box, thread, seat);
    case BOX_ASK_POLL: return park(box, thread, seat);
    case BOX_ASK_NEWS: return news(box, thread, seat);
    case BOX_ASK_ALARM: machine_set_alarm(seat, about); return answer(thread, 0);
    case BOX_ASK_SEND: return send_datagram(box, thread, seat);
    case BOX_ASK_RECEIVE: return receive_datagram(thread, seat);
    case BOX_ASK_CLAIM:
    case BOX_ASK_FIND: return take_port(thread, seat);
    case BOX_ASK_OFFER:
        note_deed(box, thread);
        return answer(thread, machine_offer(seat, about) ? 0 : -EINVAL);
    case BOX_ASK_RELEASE: return answer(thread, machine_release(seat, about) ? 0 : -EINVAL);
    case BOX_ASK_OPEN:
    case BOX_ASK_PLACE:
    case BOX_ASK_TURN: break;
    }
    return answer(thread, -EINVAL);
}

ENTER(enter_ask)
{
    if (thread->call.argument[0] == BOX_ASK_TURN) {
        thread->calls--; /* It ends a verb, and stands between no two polls. */
        return answer(thread, 0);
    }
    if (box->machine == NULL) {
        return answer(thread, -ENOSYS);
    }
    machine_catch_up(box);
    if (thread->call.argument[0] == BOX_ASK_OPEN) {
        note_deed(box, thread);
        return answer(thread, machine_make(box, thread->process));
    }
    if (thread->call.argument[0] == BOX_ASK_PLACE) {
        note_deed(box, thread);
        return answer(
            thread, machine_start_on(box, thread->process, thread->call.argument[2]) ? 0 : -ENODEV);
    }
    struct seat *seat = machine_seat(box, thread->process, thread->call.argument[1]);
    return seat == NULL ? answer(thread, -EBADF) : serve(box, thread, seat);
}
