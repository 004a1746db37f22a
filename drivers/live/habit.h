/* SPDX-License-Identifier: BSD-2-Clause
 *
 * habit - the regular doings of a program, and the decisions that a live NIC bases on them.
 *
 * Purpose    Decides who drives the NIC, which posts wait for company, when to send, when to look
 *            at the clock and at sockets, which accesses to a peer's memory are done directly, and
 *            how long the thread naps.
 * Inputs     The program's doings: posts, polls, and whether a poll found completions.
 * Outputs    Verdicts; live_progress.c and live_transmit.c act on them.
 * Ownership  One struct habit a NIC, in the NIC's memory.
 * Units      Nanoseconds, bytes, polls.
 * Limits     The constants below.
 * Source     docs/decisions/0009.
 */
#ifndef DRIVERS_HABIT_H
#define DRIVERS_HABIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/instant.h"

/* Packets that are taken in between two looks at queue pairs that want to send. */
#define HABIT_QUANTUM 32
/* Rounds of a program before we believe that it polls. Each time it turned out that it had stopped
 * with packets waiting, we want to see HABIT_BELIEF_LOST_FACTOR times as many. */
#define HABIT_POLLS_TO_BELIEVE     32
#define HABIT_BELIEF_LOST_FACTOR   8
#define HABIT_POLLS_TO_BELIEVE_MAX (1u << 20)
/* A program that answers each packet gets at most this number of packets in a round: sending can
 * wait for its answer, but only once. */
#define HABIT_DEFER_MAX 2
/* Rounds of a polling program between two looks at the clock while no packet comes in. */
#define HABIT_ROUNDS_PER_CLOCK 16
/* Rounds that bring packets between two looks at timers. A program that was stopped finds that all
 * timers have run out, but first reads the packets that came meanwhile. */
#define HABIT_ROUNDS_PER_TIME 64
/* Polls of a driving program that find completions, without a round of the NIC. */
#define HABIT_REAPS_PER_ROUND 8
/* Rounds of a busy thread between two looks at UDP sockets that no peer is known to use. */
#define HABIT_ROUNDS_PER_UDP 16

/* HABIT_POSTS_TO_BELIEVE posts in company, each polled for within HABIT_POST_POLLED_NS, make a
 * habit; HABIT_LONE_POSTS_MAX single posts end it. A post waits for company for HABIT_HOLDS_MAX
 * polls at most (docs/decisions/0009). */
#define HABIT_POSTS_TO_BELIEVE 64
#define HABIT_POST_POLLED_NS   500
#define HABIT_LONE_POSTS_MAX   16
#define HABIT_HOLDS_MAX        8
/* A message from this size on does not wait: to copy it takes longer than company saves, and the
 * peer copies meanwhile. Over UDP company saves a system call, which carries up to 64 KB. */
#define HABIT_LARGE_BYTES     2048
#define HABIT_LARGE_BYTES_UDP 32768

/* Direct placement costs a system call a packet. It is worth that only up to this size, and only
 * while the program waits for each write instead of posting many. */
#define HABIT_PLACE_BYTES_MAX    65536
#define HABIT_PLACE_UNPOLLED_MAX 4
/* With memory that is mapped here, a WRITE from this size on is faster than by the ring, which
 * copies twice, however many are under way. */
#define HABIT_MAPPED_BYTES 2048
/* From this size on a WRITE even waits until it can be done so. */
#define HABIT_MAPPED_WAITS_BYTES 65536
/* A READ that is fetched takes one copy. A READ that is answered by packets takes two, and so does
 * each READ behind it until no request is in flight. From this size on, it takes less time to wait
 * for that. */
#define HABIT_READ_WAITS_BYTES 2048
/* A READ that is alone is fetched by a system call of ours if it has HABIT_FETCH_BYTES_ALWAYS
 * bytes. With HABIT_FETCH_BYTES_LONE bytes it is fetched if the program waits for each READ, or if
 * one of the last HABIT_SMALL_READS_MAX READs was large: UCX sends a short READ up to a 512-byte
 * boundary first, and if that one went by packets, the large one behind it would too. */
#define HABIT_FETCH_BYTES_ALWAYS 16384
#define HABIT_FETCH_BYTES_LONE   HABIT_READ_WAITS_BYTES
#define HABIT_SMALL_READS_MAX    4

/* The thread looks whether the program still polls: first after HABIT_LOOK_NS_FIRST, because many
 * programs poll their queue a few times and their memory from then on, then each HABIT_LOOK_NS. A
 * program that makes less than HABIT_ROUNDS_OF_POLLER rounds meanwhile leaves the work to the
 * thread. A program that computes for long between two polls would be taken for one that stopped
 * each time that it takes over, so only HABIT_FIRST_LOOKS_MAX looks of a NIC come as soon. */
#define HABIT_LOOK_NS_FIRST    50000
#define HABIT_FIRST_LOOKS_MAX  4
#define HABIT_LOOK_NS          1000000
#define HABIT_ROUNDS_OF_POLLER 16
/* The thread goes on looking for packets this long before it sleeps: a sleep and a doorbell cost
 * more than this. */
#define HABIT_LINGER_NS 20000
/* In a stream one call of the sender brings up to 64 packets, which are taken in before the next
 * ones come. */
#define HABIT_STREAM           16 /* Packets of a look. */
#define HABIT_LINGER_STREAM_NS 50000
/* How soon the thread looks again for things that nobody announces, such as room on a full ring: a
 * ring is emptied in less. */
#define HABIT_WAIT_NS      50000
#define HABIT_SLEEP_NS_MAX UINT64_C(60000000000)
/* A thread that has work all the time looks at its descriptors this often, with one system call. */
#define HABIT_BUSY_LOOK_NS 10000000

/* The driver of the NIC. */
enum habit_driver {
    HABIT_WATCHED, /* The thread: it sleeps in the kernel until a packet comes. */
    HABIT_POLLED,  /* Programs that poll; the thread only looks whether they still do. */
};

struct habit {
    uint32_t batch;          /* Requests that may wait for one another. */
    uint8_t driver;          /* enum habit_driver. */
    bool polled_since_flush; /* A program's round came after its last posting. */
    bool deferred;           /* The last round received, and left sending to the next round. */
    uint32_t reaps;          /* Polls that found completions since the last round. */
    uint32_t first_looks;    /* Looks that came soon, so far, ... */
    bool looks_soon;         /* ... and the next one does. */
    uint32_t idle_polls;     /* Rounds of programs without a packet, in a row. */
    uint32_t polls; /* Rounds and posts of programs since it was last believed that none polls. */
    uint32_t polls_to_believe; /* After this number of them we believe that the program polls. */
    bool doubted;              /* The thread took over, and no program has polled since. */
    struct {
        uint32_t polls, posts; /* polls_to_believe and posts.to_believe, */
        bool together;
    } before;                     /* ... when the thread took over. */
    uint32_t rounds_without_time; /* Rounds with packets since we looked at timers. */
    uint32_t rounds_without_udp;  /* Rounds of the thread without a peer over UDP. */
    bool streaming;               /* The thread has seen a stream since it began to rest. */
    struct {
        bool together;       /* Posts may wait for one another, ... */
        uint32_t waiting;    /* ... and this number of them do, ... */
        uint32_t holds;      /* ... since this number of polls. */
        uint32_t since_idle; /* Posts since the last poll that found nothing. */
        uint32_t streak;     /* Posts in a row that were not alone, each soon polled for. */
        uint32_t to_believe; /* This number of those are a habit. */
        uint32_t lone;       /* In a row: single posts between polls that found nothing. */
        bool polled;         /* The program has polled since the last post. */
        struct instant at;   /* When the last post was done with; not kept while together. */
    } posts;
    struct {
        uint32_t small_reads; /* READ requests since a large one. */
        uint32_t unpolled;    /* Direct writes and reads since the program last took completions. */
    } direct;
};

/* The habit of a program of which nothing is known; the thread drives. */
void habit_init(struct habit *habit, uint32_t batch);
void habit_check(const struct habit *habit);

/* -- A poll -------------------------------------------------------------------------------------*/

/* Each poll shows that the program drives, also one that finds completions, and so does each post
 * before it; but a program that polls an armed queue means to block when the queue is empty. True:
 * from now on the program is to drive (habit_drive), unless it is doubted (habit_returned). */
static inline bool habit_shows_poller(struct habit *habit, bool armed)
{
    INVARIANTS(habit_check(habit));
    return habit->driver == HABIT_WATCHED && !armed &&
           (++habit->polls > habit->polls_to_believe || habit->doubted);
}

/* A program that was doubted polls again. `slept`: it has slept since it took over. If not, others
 * had its processor, which says nothing about its habits: what was believed of it before holds, and
 * it is to drive again (true). */
bool habit_returned(struct habit *habit, bool slept);

/* The first poll after a post says something about habits, if its time is known. True: call
 * habit_time_poll. */
static inline bool habit_wants_time_of_poll(struct habit *habit)
{
    const bool first = !habit->posts.polled;
    habit->posts.polled = true;
    return first && !habit->posts.together && habit->posts.streak > 0;
}
void habit_time_poll(struct habit *habit, struct instant now);

/* Have posts waited long enough, so that they are to be sent? */
static inline bool habit_held_long(struct habit *habit)
{
    INVARIANTS(habit_check(habit));
    return habit->posts.waiting > 0 && ++habit->posts.holds > HABIT_HOLDS_MAX;
}

/* The program took its completions. */
static inline void habit_note_reaped(struct habit *habit)
{
    habit->direct.unpolled = 0;
}

/* Completions of requests that are done directly, in a peer's memory, come without a round. True:
 * there were many, and nobody else looks for packets meanwhile. */
static inline bool habit_wants_round(struct habit *habit)
{
    INVARIANTS(habit_check(habit));
    return habit->driver == HABIT_POLLED && ++habit->reaps >= HABIT_REAPS_PER_ROUND;
}

/* The same, with a round of receiving and sending. */
static inline void habit_note_round(struct habit *habit)
{
    habit->reaps = 0;
    habit->direct.unpolled = 0;
    habit->polled_since_flush = true;
}

/* Is this one of the rounds that look at timers though no packet came in? */
static inline bool habit_is_round_of_clock(uint64_t round)
{
    return round % HABIT_ROUNDS_PER_CLOCK == 0;
}

/* Rounds of a program that polls are close together; others may be seconds apart. `round` counts
 * the rounds of programs. True: the clock is to be read before the round. */
static inline bool habit_reads_clock(const struct habit *habit, uint64_t round)
{
    return habit->driver != HABIT_POLLED || habit_is_round_of_clock(round) ||
           habit->idle_polls == 0;
}

/* A program that posts one request and waits for it wants it to leave now. */
static inline void habit_note_end_of_posts(struct habit *habit)
{
    if (habit->posts.since_idle == 0) {
        return;
    }
    habit->posts.lone = habit->posts.since_idle == 1 ? habit->posts.lone + 1 : 0;
    habit->posts.since_idle = 0;
    if (habit->posts.lone > 1) {
        habit->posts.streak = 0;
        habit->posts.together &= habit->posts.lone < HABIT_LONE_POSTS_MAX;
    }
}

/* A round of a program found nothing. True: the program is to drive from now on. */
static inline bool habit_note_idle(struct habit *habit)
{
    INVARIANTS(habit_check(habit));
    habit_note_end_of_posts(habit);
    habit->idle_polls++;
    return habit->driver == HABIT_WATCHED && habit->idle_polls > habit->polls_to_believe;
}

/* A round of a program found packets. */
static inline void habit_note_packets(struct habit *habit)
{
    habit->idle_polls = 0;
}

/* A packet that came in may have completed a request: the program sees that first, and its next
 * post leaves together with the acknowledgement, in one system call. False: sending waits for the
 * next round because of that. */
static inline bool habit_sends_now(struct habit *habit, uint32_t received)
{
    INVARIANTS(habit_check(habit));
    const bool company = received > 0 && habit->posts.waiting > 0;
    const bool now = received == 0 || (!company && (received > HABIT_DEFER_MAX || habit->deferred));
    habit->deferred |= !now;
    return now;
}

/* All packets that are ready leave. */
static inline void habit_note_sending(struct habit *habit)
{
    INVARIANTS(habit_check(habit));
    habit->deferred = false;
    habit->posts.waiting = 0;
    habit->posts.holds = 0;
}

/* Packets of each peer to take in at a time. */
static inline uint32_t habit_quantum(const struct habit *habit)
{
    INVARIANTS(CHECK(habit->batch > 0)); /* Nothing would ever be taken in. */
    return habit->batch < HABIT_QUANTUM ? habit->batch : HABIT_QUANTUM;
}

/* A round brought packets. True: it is time to look at timers all the same. */
static inline bool habit_is_time_late(struct habit *habit)
{
    INVARIANTS(habit_check(habit));
    return ++habit->rounds_without_time >= HABIT_ROUNDS_PER_TIME;
}

static inline void habit_note_time(struct habit *habit)
{
    habit->rounds_without_time = 0;
}

/* -- A post -------------------------------------------------------------------------------------*/

static inline void habit_note_post(struct habit *habit)
{
    INVARIANTS(habit_check(habit));
    habit->polls++;
    habit->posts.since_idle++;
    habit->posts.polled = false;
}

/* May the post wait for company, unless it is large? */
static inline bool habit_may_hold(const struct habit *habit)
{
    INVARIANTS(habit_check(habit));
    return habit->posts.together && habit->driver == HABIT_POLLED &&
           habit->posts.waiting + 1 < habit->batch;
}

/* The post may wait. True: it does. */
static inline bool habit_holds(struct habit *habit, uint32_t bytes, bool over_udp)
{
    const bool holds = bytes < (over_udp ? HABIT_LARGE_BYTES_UDP : HABIT_LARGE_BYTES);
    habit->posts.waiting += holds;
    INVARIANTS(habit_check(habit));
    return holds;
}

/* The post has left. `placed`: it was written into the peer's memory directly, so it is done and
 * says nothing about habits. True: the time is wanted (habit_time_post). */
static inline bool habit_wants_time_of_post(struct habit *habit, bool placed)
{
    habit->posts.streak += habit->posts.since_idle > 1 && !placed && habit->batch > 1;
    return habit->posts.streak > 0 && !habit->posts.together;
}

static inline void habit_time_post(struct habit *habit, struct instant now)
{
    habit->posts.at = now;
}

/* A program sends. True: the clock is to be read. (A program that polls has just read it.) */
static inline bool habit_reads_clock_to_flush(struct habit *habit)
{
    const bool reads = habit->driver != HABIT_POLLED || !habit->polled_since_flush;
    habit->polled_since_flush = false;
    return reads;
}

/* -- The driver ---------------------------------------------------------------------------------*/

static inline void habit_drive(struct habit *habit)
{
    INVARIANTS(habit_check(habit));
    habit->driver = HABIT_POLLED;
    habit->doubted = false;
    habit->looks_soon = habit->first_looks < HABIT_FIRST_LOOKS_MAX;
    habit->first_looks += habit->looks_soon;
}

/* The program is about to block: nothing that it does next shows that it polls. True: the thread is
 * to be woken, if there is one. */
bool habit_will_block(struct habit *habit);

/* The thread has seen, in `look_ns`, that no program polls any more. `away`: it hardly ran, so that
 * this may say nothing about it. habit_was_missed: the thread also found work to do. */
void habit_stopped(struct habit *habit, uint64_t look_ns, bool away);
void habit_was_missed(struct habit *habit);

/* -- Directly, in a peer's memory ---------------------------------------------------------------*/

/* Does the program wait for each of its requests, instead of posting many? */
static inline bool habit_is_one_by_one(const struct habit *habit)
{
    return !habit->posts.together && habit->direct.unpolled <= HABIT_PLACE_UNPOLLED_MAX;
}

/* The peer's program may spin on its memory, or sleep. Instead of waiting until the peer's NIC
 * runs, we do the write from here. A program with many writes under way is faster by the ring.
 * `more`: the queue pair has more to send behind it. */
static inline bool habit_places(const struct habit *habit, bool more, uint32_t bytes)
{
    return !more && habit_is_one_by_one(habit) && bytes <= HABIT_PLACE_BYTES_MAX;
}

static inline void habit_note_direct(struct habit *habit)
{
    habit->direct.unpolled++;
}

static inline void habit_note_read(struct habit *habit, uint32_t bytes)
{
    habit->direct.small_reads =
        bytes >= HABIT_FETCH_BYTES_ALWAYS ? 0 : habit->direct.small_reads + 1;
}

/* A READ is done without the peer's NIC, in one copy instead of two, whatever the peer's program
 * does meanwhile. A peer that is awake answers small READs as fast, and many at a time faster. */
enum habit_fetch {
    HABIT_FETCH_NEVER,
    HABIT_FETCH_FROM_SLEEPER, /* If the peer is not awake. */
    HABIT_FETCH_ALWAYS,
};
enum habit_fetch habit_fetches(const struct habit *habit, bool more, uint32_t bytes);

/* -- The thread ---------------------------------------------------------------------------------*/

/* A round of the thread, with or without a peer over UDP: does it look at UDP sockets? */
bool habit_looks_at_udp(struct habit *habit, bool used);

/* The time until the next look; one that comes soon follows a program's taking over. */
static inline uint64_t habit_first_look_ns(struct habit *habit)
{
    INVARIANTS(habit_check(habit));
    const bool soon = habit->looks_soon;
    habit->looks_soon = false;
    return soon ? HABIT_LOOK_NS_FIRST : HABIT_LOOK_NS;
}

/* Between two looks of the thread, which are `look_ns` apart, programs made `rounds` and `posts`,
 * and the thread that drives ran for `ran_ns`: do they still poll? A thread that runs and makes no
 * round does not. Others may have the processor of one that does not run: only a long look tells.
 * Posts of large messages take long, so that there are few rounds. */
static inline bool habit_is_polling(uint64_t look_ns, uint64_t rounds, uint64_t posts,
                                    uint64_t ran_ns)
{
    return look_ns < HABIT_LOOK_NS ? rounds > 0 || ran_ns < look_ns / 2
                                   : rounds > 0 && rounds + posts >= HABIT_ROUNDS_OF_POLLER;
}

/* A look of the thread has brought `count` packets. */
static inline void habit_note_look(struct habit *habit, uint32_t count)
{
    habit->streaming = habit->streaming || count >= HABIT_STREAM;
}

/* Has no packet come since `last_packet`, for long enough? Then the thread rests. */
static inline bool habit_rests(struct habit *habit, struct instant now, struct instant last_packet)
{
    const uint64_t linger_ns = habit->streaming ? HABIT_LINGER_STREAM_NS : HABIT_LINGER_NS;
    const bool rests = now.ns - last_packet.ns > linger_ns;
    habit->streaming = habit->streaming && !rests;
    return rests;
}

/* Has the thread been busy since `last_look`, for HABIT_BUSY_LOOK_NS? Then it looks at its
 * descriptors. */
static inline bool habit_looks_up(struct instant now, struct instant last_look)
{
    return instant_reached(now, instant_after(last_look, HABIT_BUSY_LOOK_NS));
}

/* How long the thread sleeps before a deadline. */
uint64_t habit_nap_ns(struct instant now, struct instant deadline);

#endif
