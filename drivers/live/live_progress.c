/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_progress - the rounds of the NIC, driven by programs or by our thread.
 *
 * A program that polls its completion queues drives the NIC from its own thread (HABIT_POLLED);
 * ours then only looks once a millisecond whether it still does. When it stops, or is about to
 * block, our thread takes over (HABIT_WATCHED): it works while packets come, and then sleeps in the
 * kernel, after telling local peers to ring the doorbell. So a spinning program is not slowed by a
 * second spinner, a passive one makes progress without calling us, and an idle one costs nothing.
 * habit.h decides when.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "drivers/live/habit.h"
#include "drivers/live/live_cm.h"
#include "drivers/live/live_direct.h"
#include "drivers/live/live_faults.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_lend.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_port.h"
#include "drivers/live/live_progress.h"
#include "drivers/live/live_receive.h"
#include "drivers/live/live_stat.h"
#include "drivers/live/live_stopped.h"
#include "drivers/live/live_transmit.h"
#include "drivers/live/live_wake.h"
#include "drivers/shm/shm_layout.h"
#include "drivers/stat_server.h"
#include "drivers/system/clock.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/presence.h"
#include "drivers/system/system.h"

/* The time for a program's last packets to leave, when the device is slower than the program. */
#define LAST_WORDS_MS 200
/* The time that a process which ends waits for its peers to confirm the disconnection, if packets
 * were lost: cm_hurry repeats it for this time, and live_leave waits longer for us. */
#define TAKE_LEAVE_NS UINT64_C(1400000000)

/* The time after which the thread goes on when the system has refused it something. */
#define STARVED_NS 1000000
#define REFUSED_NS 1000000

/* More calls than all processes that may share an address need to be let in. */
#define SERVES_MAX 64
/* More datagrams of 64 bytes than a socket holds. */
#define DATAGRAMS_A_ROUND   64
#define DATAGRAM_ROUNDS_MAX 1024

/* Passes on the completion and event notifications that the engines have ready. */
static void notify_of_news(struct live *live)
{
    struct cq *cq;
    while ((cq = nic_next_notification(live->nic)) != NULL) {
        if (live->listener.on_completion_event != NULL) {
            live->listener.on_completion_event(cq);
        }
    }
    struct nic_event event;
    while (nic_next_event(live->nic, &event)) {
        if (event.kind == NIC_EVENT_ENTERED_ERROR) {
            live_withdraw_qp(live, event.qp);
            live_settle_locked(live);
        } else if (live->listener.on_async_event != NULL) {
            live->listener.on_async_event(&event);
        }
    }
}

static inline void live_notify(struct live *live)
{
    if (UNLIKELY(nic_has_news(live->nic))) {
        notify_of_news(live);
    }
}

static void check_time(struct live *live)
{
    habit_note_time(&live->habit);
    if (instant_reached(live->now, nic_deadline(live->nic))) {
        live_check_retries(live);
    }
    if (instant_reached(live->now, live->manager.due)) {
        live_cm_on_time(live);
    }
    if (UNLIKELY(instant_reached(live->now, live->port.due))) {
        live_port_on_time(live);
    }
}

/* A round brought packets. */
static void check_time_if_late(struct live *live)
{
    if (habit_is_time_late(&live->habit)) {
        check_time(live);
    }
}

/* A look of the thread. */
static uint32_t take_in(struct live *live, bool look_at_udp)
{
    const uint32_t count = live_receive(live, habit_quantum(&live->habit), look_at_udp);
    habit_note_look(&live->habit, count);
    return count;
}

/* Receives, serves timers, sends. False: no packet came in, and none went out. */
static bool go_round(struct live *live)
{
    INVARIANTS(live_check(live));
    live->now = clock_now();
    const bool look_at_udp = habit_looks_at_udp(&live->habit, udp_port_is_used(&live->udp));
    const uint32_t received = take_in(live, look_at_udp);
    if (received == 0) {
        check_time(live);
    } else {
        check_time_if_late(live);
    }
    const uint32_t sent = live_transmit(live);
    live_notify(live);
    return received + sent > 0;
}

/* -- Programs -----------------------------------------------------------------------------------*/

/* A watched socket costs its sender and us a wake-up call per datagram even when nobody sleeps, so
 * a socket that is polled is taken off the list altogether. */
static void watch_udp(struct live *live, bool watch)
{
    if (live->thread.udp_watched == watch) {
        return;
    }
    live->thread.udp_watched = watch;
    for (uint32_t i = 0; i < udp_port_fd_count(&live->udp); i++) {
        const int fd = udp_port_fd(&live->udp, i);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (system_epoll_change(live->thread.poll_fd, watch ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd,
                                &event) != 0 &&
            watch && errno != EEXIST) {
            live->thread.udp_watched = false; /* We try again at the next rest, which is short. */
        }
    }
}

static void set_awake(struct live *live)
{
    if (live->thread.asleep) {
        live->thread.asleep = false;
        if (live->shm != NULL) {
            shm_port_wake(live->shm);
        }
    }
}

static void take_over_from_thread(struct live *live)
{
    INVARIANTS(CHECK(live->habit.driver == HABIT_WATCHED));
    habit_drive(&live->habit);
    live->thread.poller = clock_of_thread(pthread_self());
    live->thread.poller_sleeps = (uint64_t)clock_sleeps();
    live->thread.lock_sleeps = live->lock.sleeps;
    /* The thread goes on watching sockets that nobody polls, because no peer is reached over
     * them. */
    watch_udp(live, !udp_port_is_used(&live->udp));
    set_awake(live);
    live_wake(live);
}

/* Has the thread that drove slept, and not just for our lock? Or is it another one that polls? */
static bool has_slept(const struct live *live)
{
    const uint64_t sleeps = (uint64_t)clock_sleeps();
    return sleeps == 0 ||
           sleeps - live->thread.poller_sleeps > live->lock.sleeps - live->thread.lock_sleeps ||
           live->thread.poller != clock_of_thread(pthread_self());
}

static void note_poll(struct live *live, bool armed)
{
    struct habit *habit = &live->habit;
    if (habit_shows_poller(habit, armed) &&
        (!habit->doubted || habit_returned(habit, has_slept(live)))) {
        take_over_from_thread(live);
    }
    if (habit_wants_time_of_poll(&live->habit)) {
        habit_time_poll(&live->habit, clock_now());
    }
    if (habit_held_long(&live->habit)) {
        live_transmit(live);
    }
}

void live_progress(struct live *live, bool armed)
{
    INVARIANTS(live_check(live));
    struct habit *habit = &live->habit;
    atomic_store_explicit(&live->thread.rounds, live->thread.rounds + 1, memory_order_relaxed);
    habit_note_round(habit);
    note_poll(live, armed);
    if (habit_reads_clock(habit, live->thread.rounds)) {
        live->now = clock_now();
    }
    const bool look_at_udp = udp_port_is_used(&live->udp) || !live->thread.udp_watched;
    const uint32_t count = live_receive(live, habit_quantum(habit), look_at_udp);
    if (count == 0) {
        if (habit_note_idle(habit)) {
            take_over_from_thread(live);
        }
        if (habit_is_round_of_clock(live->thread.rounds)) {
            check_time(live);
            live_lend_wanted(live);
        }
    } else {
        habit_note_packets(habit);
        check_time_if_late(live);
    }
    if (habit_sends_now(habit, count)) {
        live_transmit(live);
    }
    live_notify(live);
    live_wake_for_work(live);
}

void live_reaped(struct live *live, bool armed)
{
    INVARIANTS(live_check(live));
    habit_note_reaped(&live->habit);
    if (habit_wants_round(&live->habit)) {
        live_progress(live, armed);
    } else {
        note_poll(live, armed);
    }
}

static bool is_over_udp(const struct qp *qp)
{
    const struct link *link = qp_link(qp);
    return link != NULL && link->kind == LINK_UDP;
}

void live_posted(struct live *live, struct qp *qp)
{
    INVARIANTS(live_check_locked(live));
    struct habit *habit = &live->habit;
    atomic_store_explicit(&live->thread.posts, live->thread.posts + 1, memory_order_relaxed);
    habit_note_post(habit);
    if (live->config.batch > 1) {
        nic_foresee(live->nic, qp);
    }
    if (habit_may_hold(habit) && habit_holds(habit, qp_newest_payload(qp), is_over_udp(qp))) {
        return;
    }
    const uint32_t placed = habit->direct.unpolled;
    live_flush(live);
    if (habit_wants_time_of_post(habit, habit->direct.unpolled != placed)) {
        habit_time_post(habit, clock_now());
    }
}

void live_flush(struct live *live)
{
    INVARIANTS(live_check(live));
    if (habit_reads_clock_to_flush(&live->habit)) {
        live->now = clock_now();
    }
    live_transmit(live);
    live_notify(live);
    live_wake_for_work(live);
}

void live_will_block(struct live *live)
{
    INVARIANTS(live_check(live));
    live_lend_wanted(live);
    const bool drove = habit_will_block(&live->habit);
    live->now = clock_now();
    live_transmit(live);
    live_wake_for_work(live);
    if (drove && live->thread.started) {
        live_wake(live);
    }
}

/* -- The thread ---------------------------------------------------------------------------------*/

/* A process cannot be let in, so that its listener stays readable and ends each sleep at once.
 * Until there are descriptors again we look often, but do not spin. Packets come in at each
 * look. */
static void pause_if_starved(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    if (local_starved()) {
        lock_release(&live->lock);
        system_sleep(STARVED_NS);
        lock_take_unbiased(&live->lock);
        live->now = clock_now();
    }
}

/* A process that has ended sends no more, and all packets that it has sent lie here, also in a ring
 * for which it has only called. They are taken in before its end is told, as on a wire, because a
 * program that disconnects, or refuses a connection, would lose them otherwise. Others may go on
 * sending, so the number of looks is limited. */
static void take_what_came(struct live *live)
{
    for (uint32_t i = 0; live->shm != NULL && i < SERVES_MAX && shm_port_serve(live->shm); i++) {
    }
    (void)live_receive(live, SHM_SLOTS, false);
    for (uint32_t i = 0; i < DATAGRAM_ROUNDS_MAX; i++) {
        if (live_receive(live, DATAGRAMS_A_ROUND, true) == 0) {
            return;
        }
    }
}

static void tell_ends(struct live *live)
{
    INVARIANTS(live_check(live));
    if (live_cm_has_gone(live)) {
        take_what_came(live);
        live_cm_on_gone(live);
    }
}

/* Serves the events that ended a sleep in the kernel. The lock is held. */
static void serve_events(struct live *live, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == live->thread.wake_fd) {
            uint64_t drained;
            (void)!system_read(live->thread.wake_fd, &drained, sizeof(drained));
        } else if (live->thread.stat_fd >= 0 && events[i].data.fd == live->thread.stat_fd) {
            live_serve_stat(live);
        } else if (live->port.watch != NULL && events[i].data.fd == live->port.watch->fd) {
            live_port_serve(live);
        } else if (events[i].data.fd == live->manager.services.fd) {
            live_cm_serve(live);
        } else if (live->manager.presence != NULL &&
                   events[i].data.fd == presence_fd(live->manager.presence)) {
            presence_serve(live->manager.presence);
        } else if (live->shm != NULL && events[i].data.fd == shm_port_fd(live->shm)) {
            shm_port_serve(live->shm);
        } else if (!live->addresses.shared || !live_receive_shared(live, events[i].data.fd)) {
            take_in(live, true);
        }
    }
    tell_ends(live);
    pause_if_starved(live);
}

/* Sleeps by ppoll: epoll_wait has no time below a millisecond, and older kernels and many filters
 * of system calls do not know epoll_pwait2. If ppoll fails, a short sleep takes its place. */
static int wait_for_events(int fd, struct epoll_event *events, int room, uint64_t timeout_ns)
{
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000),
                                     .tv_nsec = (long)(timeout_ns % 1000000000)};
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    CHECK(fd >= 0 && room > 0);
    const int count = ppoll(&ready, 1, &timeout, NULL);
    if (count < 0 && errno != EINTR) {
        system_sleep((long)(timeout_ns < REFUSED_NS ? timeout_ns : REFUSED_NS));
    }
    return count == 0 ? 0 : system_epoll(fd, events, room);
}

/* Sleeps without the lock, until an event comes or the time is over. */
static void sleep_in_kernel(struct live *live, uint64_t timeout_ns)
{
    struct epoll_event events[8];
    INVARIANTS(live_check(live));
    lock_release(&live->lock);
    const int count = wait_for_events(live->thread.poll_fd, events, COUNT_OF(events), timeout_ns);
    lock_take_unbiased(&live->lock);
    live->now = clock_now();
    serve_events(live, events, count);
}

/* The driving program's rounds and posts since the last look, and how long its thread ran
 * meanwhile. */
struct since {
    uint64_t rounds, posts, ran_ns;
    struct instant at;
    clockid_t poller;
};

/* `away`: it hardly ran, as far as the system tells. */
static bool still_polls(struct live *live, struct since *since, uint64_t look_ns, bool *away)
{
    const struct instant now = clock_now();
    const uint64_t rounds = atomic_load_explicit(&live->thread.rounds, memory_order_relaxed);
    const uint64_t posts = atomic_load_explicit(&live->thread.posts, memory_order_relaxed);
    uint64_t ran_ns = since->ran_ns;
    const bool lives = clock_read_ran(since->poller, &ran_ns) || rounds > since->rounds;
    const bool polls = lives && habit_is_polling(look_ns, rounds - since->rounds,
                                                 posts - since->posts, ran_ns - since->ran_ns);
    *away = ran_ns != 0 && ran_ns - since->ran_ns < (now.ns - since->at.ns) / 4;
    since->at = now;
    since->rounds = rounds;
    since->posts = posts;
    since->ran_ns = ran_ns;
    return polls;
}

/* While programs poll, the thread looks now and then whether they still do. The lock is biased to
 * them, so the thread looks without the lock. */
static void look_on(struct live *live)
{
    struct epoll_event events[8];
    struct since since = {.rounds = live->thread.rounds,
                          .posts = live->thread.posts,
                          .at = clock_now(),
                          .poller = live->thread.poller};
    uint64_t next_ns = habit_first_look_ns(&live->habit), look_ns = next_ns;
    int count = 0;
    bool polled = true, away = false;
    INVARIANTS(CHECK(live->habit.driver == HABIT_POLLED));
    (void)clock_read_ran(since.poller, &since.ran_ns);
    lock_release(&live->lock);
    while (count == 0 && polled) {
        look_ns = next_ns;
        count = wait_for_events(live->thread.poll_fd, events, COUNT_OF(events), look_ns);
        polled = count > 0 || still_polls(live, &since, look_ns, &away);
        next_ns = HABIT_LOOK_NS;
    }
    lock_take_unbiased(&live->lock);
    live->now = clock_now();
    serve_events(live, events, count);
    if (live->habit.driver == HABIT_POLLED && !polled) {
        habit_stopped(&live->habit, look_ns, away);
        if (go_round(live)) {
            habit_was_missed(&live->habit);
        }
    }
}

/* No packet came for a while: sleeps until a doorbell, a datagram or a deadline. */
static void rest(struct live *live)
{
    INVARIANTS(CHECK(!live->thread.asleep && live->thread.sleeps_until.ns == 0));
    if (live->shm != NULL && !shm_port_sleep(live->shm)) {
        shm_port_wake(live->shm);
        return;
    }
    live->thread.asleep = true;
    watch_udp(live, true);
    if (nic_next_qp(live->nic) == NULL) {
        /* Nobody announces room on a full ring, for which queue pairs or held packets wait. */
        const bool waiting = !list_empty(&live->links.waiting) ||
                             (live->shm != NULL && shm_port_has_waiting(live->shm)) ||
                             udp_port_has_waiting(&live->udp) || !live->thread.udp_watched ||
                             instant_reached(live->now, faults_deadline(live->faults));
        live->links.parked = waiting;
        live->thread.sleeps_until = waiting ? (struct instant){0} : live_deadline(live);
        sleep_in_kernel(live, waiting ? HABIT_WAIT_NS
                                      : habit_nap_ns(clock_now(), live->thread.sleeps_until));
        live->thread.sleeps_until = (struct instant){0};
    }
    if (live->habit.driver == HABIT_WATCHED) {
        set_awake(live);
    }
}

void live_finish(struct live *live)
{
    lock_take_unbiased(&live->lock);
    if (live->thread.started) {
        INVARIANTS(live_check(live)); /* Only a NIC that was opened whole has a thread. */
        live_flush(live);
        live_drain_held(live);
    }
    udp_port_drain(&live->udp, LAST_WORDS_MS);
    if (live->config.stats) {
        live_print_stats(live);
    }
    capture_flush(live->capture);
    lock_release(&live->lock);
}

/* The peers that we were connected with have been told of the disconnection (DREQ). This ends,
 * mostly at once, when none of them owes an answer. It is needed because nobody would repeat a lost
 * message when this process is gone. */
static void take_leave(struct live *live)
{
    CHECK(live->thread.stopping);
    lock_take_unbiased(&live->lock);
    live->habit.driver = HABIT_WATCHED;
    live->now = clock_now();
    cm_hurry(&live->manager.cm->cm, live->now);
    live->manager.due = live->now;
    const struct instant end = instant_after(live->now, TAKE_LEAVE_NS);
    while (cm_is_parting(&live->manager.cm->cm) && !instant_reached(live->now, end)) {
        if (!go_round(live)) {
            rest(live); /* Until the next datagram, doorbell or deadline. */
        }
    }
    live_cm_say_again(live);
    lock_release(&live->lock);
}

void *live_thread(void *argument)
{
    struct live *live = argument;
    race_enter();
    CHECK(live->thread.poll_fd >= 0 && live->thread.wake_fd >= 0);
    if (live->shm != NULL) {
        shm_port_own(live->shm);
    }
    lock_take_unbiased(&live->lock);
    struct instant last_packet = clock_now(), last_look = last_packet;
    while (!live->thread.stopping) {
        if (live->habit.driver == HABIT_POLLED) {
            look_on(live);
            last_packet = last_look = clock_now();
            continue;
        }
        const bool worked = go_round(live);
        last_packet = worked ? live->now : last_packet;
        if (live_gives_way(live) ||
            (!worked && habit_rests(&live->habit, live->now, last_packet))) {
            capture_flush(live->capture);
            live_note_sleep(live);
            rest(live);
            live_note_wake(live);
            last_packet = last_look = clock_now();
        }
        if (habit_looks_up(live->now, last_look)) {
            sleep_in_kernel(live, 0);
            last_look = live->now;
        }
        /* A program that wants the lock gets it between two rounds. */
        lock_release(&live->lock);
        lock_take_unbiased(&live->lock);
    }
    lock_release(&live->lock);
    if (live->owner.on_leaving != NULL) {
        live->owner.on_leaving();
    }
    take_leave(live);
    live_finish(live);
    if (live->shm != NULL) {
        shm_port_disown(live->shm);
    }
    race_leave();
    return NULL;
}
