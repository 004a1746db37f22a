/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_wake - the length of the thread's sleep, and the wake-up that ends it early; whether the
 * program spins meanwhile.
 */
#ifndef DRIVERS_LIVE_WAKE_H
#define DRIVERS_LIVE_WAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/instant.h"
#include "drivers/live/rival.h"

struct live;

struct live_thread {
    pthread_t id;
    bool started;
    atomic_bool stopping;
    int poll_fd;                 /* epoll: the descriptors that end the thread's sleep. */
    int wake_fd;                 /* eventfd: ends the thread's sleep. */
    int stat_fd;                 /* Listening socket of `nonic stat`; -1: none. */
    bool udp_watched;            /* The UDP sockets are among those of `poll_fd`. */
    bool asleep;                 /* Peers were told to ring the doorbell. */
    struct instant sleeps_until; /* 0 ns: it does not sleep for long. */
    clockid_t poller;            /* The clock of the program's thread that drives, or drove last. */
    uint64_t poller_sleeps;      /* How often it had slept when it took over, ... */
    uint64_t lock_sleeps;        /* ... and threads of the program for our lock. */
    struct rival rival;          /* The poller, while it does not drive. */
    _Atomic uint64_t rounds;     /* All rounds of programs so far: do they go on? */
    _Atomic uint64_t posts;      /* All calls that posted. */
};

/* The time when the thread has work to do, if no packet comes. */
struct instant live_deadline(const struct live *live);
void live_wake(struct live *live);
/* The thread is about to sleep; it has slept. */
void live_note_sleep(struct live *live);
void live_note_wake(struct live *live);
/* Does the program wait for the processor that the thread has? Asked after a round. */
bool live_gives_way(struct live *live);
/* The thread sleeps, but a timer has been started that runs out before it wakes, or requests are
 * left that nobody else sends: for UC and UD, no acknowledgement comes to wake it. */
void live_wake_for_work(struct live *live);

#endif
