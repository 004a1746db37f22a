/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_stopped - a peer of this machine that does not run.
 */
#ifndef DRIVERS_LIVE_STOPPED_H
#define DRIVERS_LIVE_STOPPED_H

#include "drivers/link.h"

struct live;

/* A queue pair connects by that link over UDP. A peer on this machine is known by its socket from
 * now on. */
void live_meet_peer(struct live *live, struct link *link);
/* Judges the transport timers that are due: has the peer not answered, or not run? */
void live_check_retries(struct live *live);

#endif
