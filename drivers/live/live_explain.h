/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_explain - messages to the user why a program does not reach its peer, each once.
 */
#ifndef DRIVERS_LIVE_EXPLAIN_H
#define DRIVERS_LIVE_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/instant.h"
#include "nic/types.h"

/* The program was told that ... */
struct live_explained {
    bool machine;        /* ... its peer is on another machine, which it does not reach, ... */
    bool no_ring;        /* ... shared memory does not lead there, ... */
    bool crowd;          /* ... the peer's queue of callers was full, ... */
    bool no_udp;         /* ... or no UDP leads there. */
    pid_t other_layout;  /* ... this process has other rings than ours, ... */
    pid_t other_version; /* ... or cannot be asked for its ports: the latest one of each. */
    struct instant others_due; /* When to look again for processes that have other rings. */
};

/* Tells that the peer is on another machine, and this program's address is not for others. */
void live_explain_machine(struct live_explained *explained);
/* Tells that no ring leads to the peer. True: the reason is known. */
bool live_explain_no_ring(struct live_explained *explained, const struct gid *peer, uint32_t slot,
                          bool of_other_user);
/* With --wire shm: tells that no connection leaves from `source`, which is not the first
 * address. */
void live_explain_source(struct live_explained *explained, const struct gid *first,
                         const struct gid *source);
/* Tells that the peer's queue of callers is full, and stays so. */
void live_explain_crowded(struct live_explained *explained, const struct gid *peer);
/* With --wire shm: tells that there are processes on this machine whose rings are of another
 * layout. The side that fails first may be theirs, and an old build does not say why. */
void live_explain_other_layouts(struct live_explained *explained, struct instant now);
/* This process answered a question for a port, and we cannot read its answer; 0: none did. */
void live_explain_other_version(struct live_explained *explained, pid_t pid);
/* Tells that there is no UDP at all (`taken`), or none between addresses of different versions of
 * IP. */
void live_explain_no_udp(struct live_explained *explained, bool taken, const struct gid *source,
                         const struct gid *destination);

#endif
