/* SPDX-License-Identifier: BSD-2-Clause
 *
 * congestion - the load that one path may carry at a time, from its round trips and losses.
 *
 * Purpose    A window in bytes and a pace: steered by queueing delay, cut by loss where the delay
 *            agrees, and competitive where somebody else keeps the queue full.
 * Inputs     congestion_on_report for each acknowledgement, congestion_on_silence for a timeout,
 *            congestion_undo when packets that were taken for lost turn out to have arrived.
 * Outputs    congestion_window (bytes that may be in flight), congestion_rate (bytes a second).
 * Ownership  Caller owns the struct, one for each path of a queue pair; the policy stays in place.
 *            Nothing is allocated.
 * Time       Instants are arguments; it wants no timer of its own.
 * Units      Bytes as they count in a window (payload and packet_cost), nanoseconds, bytes a
 *            second. Integers only, so that a run in virtual time repeats everywhere.
 * Limits     A window of two packets at least; below that only the pace falls. 1 GiB at most.
 *            Delays should be the network's alone: a world that cannot subtract the delays of
 *            machines sets agree_percent to 50.
 * Source     Kumar and others, "Swift" (SIGCOMM 2020), as the Falcon transport specification prints
 *            it (10.3); Arun and Balakrishnan, "Copa" (NSDI 2018), for the competitive mode; RFC
 *            3168 and RFC 8257 for marks. The differences, and the reasons for them: congestion.c.
 */
#ifndef TRANSPORT_COMMON_CONGESTION_H
#define TRANSPORT_COMMON_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/instant.h"

enum congestion_mode {
    CONGESTION_STARTING,    /* The window doubles in a round trip. */
    CONGESTION_DELAY,       /* It keeps the queue near the target. */
    CONGESTION_COMPETITIVE, /* Somebody else fills the queue: only loss counts. */
};

/* The news of one acknowledgement. */
struct congestion_report {
    struct instant now;
    uint32_t acked_bytes; /* Newly known to have arrived. */
    uint32_t lost_bytes;  /* Newly taken for lost. */
    uint32_t ce_packets;  /* Arrived with the network's mark. */
    /* A round trip less the time that the peer held its answer; 0: no sample. */
    uint32_t delay_ns;
    uint32_t base_ns;     /* The least of the recent past (rtt_least_ns); 0: unknown. */
    uint32_t smoothed_ns; /* 0: unknown. */
    bool app_limited;     /* The program, not the window, kept us from sending more. */
};

/* Parameters; congestion.c says where the defaults come from. */
struct congestion_policy {
    uint64_t target_ns;      /* A queue's swing: the delay may rise by this, ... */
    uint64_t target_most_ns; /* ... and by at most this, as ... */
    uint8_t target_percent;  /* ... this part of an empty path's round trip. */
    uint32_t start_packets;  /* The first window in packets, or ... */
    uint32_t start_bytes;    /* ... in bytes, if that is more. */
    uint32_t least_packets;  /* The least window. */
    uint32_t most_bytes;     /* The largest. */
    uint32_t grow_bytes;     /* Growth in a round trip, after a cut. */
    uint16_t cut_256ths;     /* The part of the window that a loss leaves, and ... */
    uint16_t silence_256ths; /* ... that a timeout leaves. */
    uint16_t drain_256ths;   /* The part of our share of the empty path after a delay cut, ... */
    uint16_t shallow_256ths; /* ... but at least this part of the window. */
    uint8_t fall_percent;    /* A fall by this part of the queue shows that a cut had an effect. */
    /* If the queue is more than this part of the target, each loss counts. */
    uint8_t agree_percent;
    uint8_t heavy_percent;       /* Losses beyond this count, however short the queue ... */
    uint8_t heavy_packets;       /* ... once this many packets too many are lost. */
    uint8_t stubborn_cuts;       /* Delay cuts in a row without effect: somebody fills the queue. */
    uint8_t competitive_rounds;  /* Rounds after which we look whether somebody still does. */
    uint8_t undo_rounds;         /* Rounds within which a cut for loss can be undone. */
    uint8_t silences;            /* Timeouts in a row that lead to the least window. */
    uint8_t ce_shift;            /* Marks: weight of a round in the moving average, 2^-n. */
    uint16_t start_pace_percent; /* Pace: of a window in a round trip, while starting ... */
    uint16_t pace_percent;       /* ... and later. */
};

struct congestion_policy congestion_policy_default(void);

#define CONGESTION_BYTES_MAX 96

/* A round is a round trip of time. */
struct congestion {
    uint64_t window;          /* Bytes, with 8 bits behind the point, as all windows here. */
    uint64_t before_loss;     /* The window before the first cut of an episode of losses. */
    uint64_t before_delay;    /* Likewise, before the first of delay cuts in a row. */
    struct instant round_end; /* INSTANT_NEVER: nothing was reported yet. */
    uint32_t packet_bytes;
    uint32_t smoothed_ns; /* The newest report's. */
    uint32_t round_acked; /* Bytes of this round ... */
    uint32_t round_lost;
    uint32_t round_marked;
    uint32_t round_delay_ns; /* ... and the least queueing delay of it; UINT32_MAX: no sample. */
    uint32_t trip_ns;        /* The round trip with that delay. */
    uint32_t queue_ns;       /* The newest complete round's with a sample; UINT32_MAX: none. */
    uint32_t trough_ns;      /* The least round trip since it fell last, and ... */
    uint32_t peak_ns;        /* ... the longest. */
    uint32_t loss_score;     /* Bytes lost beyond the share that is borne. */
    uint16_t marked;         /* Moving average of the marked share, of 2^16. */
    uint8_t mode;            /* enum congestion_mode. */
    uint8_t cuts;            /* Delay cuts in a row. */
    uint8_t settling;        /* Rounds to wait until a cut can have shown its effect. */
    uint8_t rounds;          /* In the competitive mode; it saturates, as these do: */
    uint8_t calm_rounds;     /* since the last cut; */
    uint8_t loss_rounds;     /* since the last cut for loss. */
    uint8_t silences;        /* In a row. */
};

void congestion_init(struct congestion *congestion, const struct congestion_policy *policy,
                     uint32_t packet_bytes);

void congestion_on_report(struct congestion *congestion, const struct congestion_policy *policy,
                          const struct congestion_report *report);

/* The path's timeout passed without a word from the peer. */
void congestion_on_silence(struct congestion *congestion, const struct congestion_policy *policy,
                           struct instant now);

/* The packets whose loss led to the last cut had arrived. The window is again what it was before
 * the first cut of that episode. */
void congestion_undo(struct congestion *congestion, const struct congestion_policy *policy);

/* Bytes that may be in flight. */
uint32_t congestion_window(const struct congestion *congestion,
                           const struct congestion_policy *policy);

/* Bytes a second at which they should leave; UINT64_MAX: as they come. */
uint64_t congestion_rate(const struct congestion *congestion,
                         const struct congestion_policy *policy);

#endif
