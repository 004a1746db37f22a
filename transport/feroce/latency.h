/* SPDX-License-Identifier: BSD-2-Clause
 *
 * latency - the time from a message's last packet until its acknowledgement.
 *
 * One message of a queue pair is watched at a time: the next one whose last packet leaves. If a
 * packet of the queue pair is sent again meanwhile, nobody can tell which of the two was
 * acknowledged, and the message does not count.
 *
 * Units      Nanoseconds.
 * Source     The slides have the board measure latency from ACKs; how it chooses is our choice.
 */
#ifndef TRANSPORT_FEROCE_LATENCY_H
#define TRANSPORT_FEROCE_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/instant.h"
#include "transport/common/psn.h"

struct feroce_ack_timer {
    bool runs;
    struct psn last; /* The message's last packet. */
    struct instant sent;
};

struct feroce_latency {
    uint64_t messages, sum_ns, least_ns, most_ns;
};

/* The packet leaves now. */
static inline void feroce_ack_timer_sent(struct feroce_ack_timer *timer, struct psn psn,
                                         bool is_last, bool resent, struct instant now)
{
    if (resent) {
        timer->runs = false;
    } else if (is_last && !timer->runs) {
        *timer = (struct feroce_ack_timer){.runs = true, .last = psn, .sent = now};
    }
}

/* All packets up to `acked` are acknowledged, fewer than 2^23 of them new. */
static inline void feroce_ack_timer_acked(struct feroce_ack_timer *timer, struct psn acked,
                                          struct instant now, struct feroce_latency *latency)
{
    if (!timer->runs || psn_distance(timer->last, acked) < 0) {
        return;
    }
    const uint64_t ns = now.ns - timer->sent.ns;
    timer->runs = false;
    latency->least_ns = latency->messages == 0 || ns < latency->least_ns ? ns : latency->least_ns;
    latency->most_ns = ns > latency->most_ns ? ns : latency->most_ns;
    latency->sum_ns += ns;
    latency->messages++;
}

static inline uint64_t feroce_latency_mean_ns(const struct feroce_latency *latency)
{
    return latency->messages == 0 ? 0 : latency->sum_ns / latency->messages;
}

#endif
