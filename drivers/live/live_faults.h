/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_faults - a bad network between the engines and the ports.
 */
#ifndef DRIVERS_LIVE_FAULTS_H
#define DRIVERS_LIVE_FAULTS_H

#include "base/instant.h"
#include "drivers/link.h"
#include "nic/nic.h"

struct live;

/* The ring that was full when a held packet was due. */
struct live_full {
    const struct link *link;
    uint32_t read;         /* This much had been read, ... */
    uint64_t waited_ns;    /* ... and no more for this time, ... */
    struct instant looked; /* ... when we last looked. */
};

/* Like live_transmit_packet and live_transmit_raw, on the bad network. */
MUST_USE bool live_transmit_with_faults(struct live *live, struct link *link,
                                        const struct nic_departure *departure);
void live_transmit_raw_with_faults(struct live *live, struct link *link,
                                   struct inet_variant variant, uint8_t *bytes, uint32_t count);
/* Held packets whose time has come, and packets that were transmitted before, leave. Returns how
 * many of the former. */
uint32_t live_flush_with_faults(struct live *live);
/* The process ends: waits for held packets whose time has not come, or sends them early. */
void live_drain_held(struct live *live);

#endif
