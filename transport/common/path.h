/* SPDX-License-Identifier: BSD-2-Clause
 *
 * path - one route of datagrams that are answered, as their sender sees it.
 *
 * Purpose    Numbers transmissions, learns from echoes which of them arrived and how long that
 *            took, says which are to be taken for lost, how much may leave now, when to probe, and
 *            when the path is to be left.
 * Inputs     path_sent, path_on_echo, path_on_arrived, path_on_lost, path_on_spurious,
 *            path_on_time.
 * Outputs    TSNs; path_lost and when it would say so; path_room and when there is some;
 *            path_deadline.
 * Ownership  Caller owns the struct and the records, and keeps the policy. Nothing is allocated.
 * Time       `now` is an argument and never goes back.
 * Units      Bytes as they count in a window; nanoseconds; TSNs are 24 bits and wrap.
 * Routes       A path that is silent to two probes in a row may use a route that is dead for ever,
 *              whatever its peer does. From the second probe on, each probe, and all packets after
 *              it, take another route (path.turns). A path does not know which routes there are. A
 *              peer that only paused makes a path leave its route, too, so that route is tried
 *              again (*_home).
 * Limits     A path remembers about two round trips of sending: packets share a record that leave
 *            within a 32nd of the smoothed round trip, or less if it has fewer records. Echoes of
 *            forgotten packets are old.
 * Source     docs/block-transport.md: "Words and numbers" (TSN), "What the requester sends, and
 *            when" (loss), "Timers"; RFC 8985 (time-based loss detection, tail probes), per path.
 */
#ifndef TRANSPORT_COMMON_PATH_H
#define TRANSPORT_COMMON_PATH_H

#include "base/check.h"
#include "base/instant.h"
#include "transport/common/congestion.h"
#include "transport/common/psn.h"
#include "transport/common/rtt.h"

/* The records of a path, a power of two: the usual number, and the fewest that a caller may give
 * it. With fewer, the times at which packets are taken for lost are coarser. */
#define PATH_RECORDS       64
#define PATH_RECORDS_LEAST 16

/* TSNs that left at about one time. Between the first and the last, times are interpolated. */
struct path_record {
    struct instant sent_at; /* The first one, and ... */
    uint32_t span_ns;       /* ... how long after it the last one. */
    uint32_t bytes_before;  /* All that the path had sent before them, modulo 2^32. */
    struct psn first;
    uint32_t packets;
};
_Static_assert(sizeof(struct path_record) == 24, "a path has many");

struct path_policy {
    struct rtt_policy rtt;
    struct congestion_policy congestion;
    uint64_t reordering_least_ns; /* A datagram may be this late behind later ones of its path. */
    uint64_t
        revive_ns; /* A path or route that was left is tried after this, then after twice ... */
    uint64_t revive_most_ns;       /* ... as long, up to this. */
    uint8_t revive_answers;        /* Consecutive answers that bring it back. */
    uint8_t reordering_recoveries; /* Recoveries for which a wider reordering window lasts. */
};

struct path_policy path_policy_default(void);
/* For a ring in memory, which loses nothing, and whose sender waits for room. A delay there tells
 * that the peer's process does not run: no reason to slow down. */
struct path_policy path_policy_of_ring(void);

struct path {
    const struct path_policy *policy;
    struct path_record *records; /* In the order of sending, a ring. */
    uint32_t record_mask;
    uint32_t record_next;  /* Where the next one goes; positions run free. */
    uint32_t record_count; /* Valid ones before it. */

    struct psn next;    /* TSN of the next transmission. */
    struct psn arrived; /* The newest that is known to have arrived: valid if ... */
    bool arrived_known; /* ... one is. */
    bool filled;        /* The window was full since the last report. */
    bool suspect;       /* Left: nothing but small probes until answers come back. */
    uint8_t answers;    /* A suspect's answers in a row. */
    uint8_t probes;     /* Unanswered since the last news; a suspect's: since the last answer. */
    uint8_t expiries;   /* Timeouts since the last news. */
    uint8_t turns;      /* Times that it took another route, since its own seemed dead. */
    uint8_t own_route_tries; /* Tries of its own route since then. */
    uint8_t reordering;      /* The reordering window, in quarters of the least round trip. */
    uint8_t recoveries;      /* Since it was widened, without another reason. */
    uint32_t packet_bytes;

    struct instant arrived_sent; /* When `arrived` left, and ... */
    /* ... how long after that we knew, with the time that the peer held it. */
    uint64_t arrived_ns;
    struct instant probe_at;       /* INSTANT_NEVER: nothing is out. */
    struct instant doubt_at;       /* When the first one that counts is due; and how long ... */
    struct instant timeout_at;     /* ... silence is borne after that. */
    struct instant recovery_until; /* Losses until then belong to one recovery. */
    struct instant widened_until;  /* Spurious losses until then belong to one widening. */
    struct instant own_route_at;   /* Away: when its own route is tried; else when it came back. */
    struct instant paid_until;     /* The pace has been paid for all sent bytes, up to then. */
    uint32_t sent_bytes;           /* All that was ever sent, modulo 2^32 ... */
    uint32_t settled_bytes;        /* ... up to the newest that is known to have arrived ... */
    uint32_t asked_bytes;          /* ... and up to the last that asked for an answer. */
    uint32_t lost_bytes;           /* Not reported to the controller yet; nor are ... */
    uint32_t ce_packets;           /* ... these packets, which came with the network's mark. */
    /* Bytes taken for lost, halved with each recovery; and ... */
    uint32_t recovery_lost;
    uint32_t recovery_spurious; /* ... those of them that had come. */
    struct rtt rtt;
    struct congestion congestion;
};

struct path_config {
    struct psn first_tsn;
    uint32_t packet_bytes; /* A full packet, as it counts in a window. */
    uint64_t trip_ns;      /* A first guess, such as the negotiation's round trip; 0: none. */
    bool other_route;      /* It was measured by another route: no least one of this one. */
    struct path_record *records;
    uint32_t record_count; /* A power of two, PATH_RECORDS_LEAST or more. */
    const struct path_policy *policy;
};

void path_init(struct path *path, const struct path_config *config, struct instant now);

/* The path has another policy from now on, and its window is as at the begin. */
void path_use(struct path *path, const struct path_policy *policy);

/* A datagram leaves: its TSN. `asks`: it wants an answer. Probes count, too. */
struct psn path_sent(struct path *path, uint32_t bytes, bool asks, struct instant now);

/* Should the next transmission ask for an answer, because enough of the window left without? */
bool path_wants_answer(const struct path *path);

/* Is a transmission under way that asked for an answer? */
static inline bool path_awaits_answer(const struct path *path)
{
    return (int32_t)(path->asked_bytes - path->settled_bytes) > 0;
}

enum path_echo {
    PATH_ECHO_NEWS,       /* Newer than all before. */
    PATH_ECHO_OLD,        /* Not newer, or forgotten: nothing changes, but its marks count. */
    PATH_ECHO_IMPOSSIBLE, /* Never sent, or from too far back: the peer is mistaken, or none. */
};

/* An answer echoes a transmission that arrived, held for `held_ns`, and tells how many came with
 * the network's mark. */
struct path_echo_report {
    struct psn tsn;
    uint32_t held_ns;
    uint32_t ce_packets;
};
MUST_USE enum path_echo path_on_echo(struct path *path, const struct path_echo_report *echo,
                                     struct instant now);

/* A transmission is known to have arrived by other means, such as a bit in a report: an answer
 * echoes one path only. No sample of the round trip. */
enum path_echo path_on_arrived(struct path *path, struct psn tsn, struct instant now);

/* Is a transmission that nobody reported to be taken for lost? Yes, if one that left after it on
 * this path is known to have arrived, and a late packet would have come by now. */
bool path_lost(const struct path *path, struct psn tsn, struct instant now);

/* When path_lost will say so if nothing is heard; INSTANT_NEVER: not by that rule. */
struct instant path_loss_deadline(const struct path *path, struct psn tsn);

/* The caller took `bytes` for lost and will send them again. */
void path_on_lost(struct path *path, uint32_t bytes, struct instant now);

/* The peer got `packets` twice: they had not been lost. If half of the bytes that were taken for
 * lost lately had come, the reason to slow down was wrong, too. */
void path_on_spurious(struct path *path, uint32_t packets, struct instant now);

/* The bytes in flight; the bytes that may leave now under window and pace; and the time when there
 * is room again (INSTANT_NEVER: not before news). The last packet may overshoot. */
uint32_t path_flight(const struct path *path);
uint32_t path_room(const struct path *path, struct instant now);
struct instant path_room_at(const struct path *path, struct instant now);

enum path_event {
    PATH_QUIET,
    PATH_PROBE, /* Send a probe here now, even if there is no room. */
    PATH_LEFT,  /* It is suspect from now on: its packets in flight go elsewhere at once. */
};

/* When path_on_time is due. */
struct instant path_deadline(const struct path *path);

/* `elsewhere`: when the newest packet that is known to have arrived by another path had left; an
 * instant of 0: none. A path that is silent while all others are is not to blame. */
MUST_USE enum path_event path_on_time(struct path *path, struct instant elsewhere,
                                      struct instant now);

/* A path that works, but not by its own route: is its own route to be probed now? */
bool path_own_route_due(const struct path *path, struct instant now);

/* That probe leaves. An unanswered one makes the next one wait twice as long. */
void path_own_route_tried(struct path *path, struct instant now);

/* The probe was answered: the path takes its own route. */
void path_own_route_answers(struct path *path, struct instant now);

#endif
