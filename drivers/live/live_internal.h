/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_internal - a live NIC as the live_*.c files see it. Each part is a struct of the header that
 * stands beside its file, and belongs to that file.
 */
#ifndef DRIVERS_LIVE_INTERNAL_H
#define DRIVERS_LIVE_INTERNAL_H

#include "drivers/address.h"
#include "drivers/capture.h"
#include "drivers/faults.h"
#include "drivers/live/habit.h"
#include "drivers/live/live.h"
#include "drivers/live/live_cm.h"
#include "drivers/live/live_explain.h"
#include "drivers/live/live_faults.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_port.h"
#include "drivers/live/live_wake.h"
#include "drivers/odd.h"
#include "drivers/shm/shm_port.h"
#include "drivers/system/lock.h"
#include "drivers/system/memory.h"
#include "drivers/system/poisoned.h"
#include "drivers/system/raced.h"
#include "drivers/udp/udp_port.h"

struct live {
    struct live_config config;
    struct live_listener listener;
    struct live_owner owner;
    struct lock lock;
    bool inherited; /* By a child of fork: live_forked. */
    bool is_boxed;  /* Seeds hold its programs' threads back behind verbs (base/box_page.h). */

    struct nic *nic;
    void *nic_memory;
    size_t nic_memory_bytes;
    struct instant now; /* When the clock was last read. */

    struct address_set addresses;
    struct live_interfaces port;
    struct udp_port udp;
    struct shm_port *shm;    /* NULL: not wanted, or the system does not give one. */
    struct capture *capture; /* NULL: none. */
    bool is_watched;         /* Capture, faults or a sanitizer see all: nothing goes directly. */
    struct faults *faults;   /* NULL: none. */
    struct live_full full;

    struct live_links links;
    struct live_manager manager;
    struct live_explained explained;
    struct live_thread thread;
    struct habit habit;

    struct udp_counters udp_seen; /* The port's counts that the NIC's already include. */
    uint32_t fetched_bytes;       /* Fetched in the present round of sending. */
};

/* live_state.c, where a round begins: the parts are there, and no queue pair waits unseen. */
void live_check(const struct live *live);

/* The entry of a function that world/ calls "(locked)". */
static inline void live_check_locked(const struct live *live)
{
    CHECK(lock_is_held_here(&live->lock));
}

/* Makes a move in the program's memory, of which a sanitizer is told; oddly, if that is wanted. */
static inline enum nic_move_result live_move(const struct live *live, struct nic_move *move)
{
    if (UNLIKELY(live->is_watched) && move->kind != NIC_MOVE_FLUSH) {
        poison_judge(move->segments, move->segment_count, true, "a packet for",
                     qp_number(move->qp));
        if (move->kind == NIC_MOVE_SCATTER && move->purpose == NIC_FOR_PEER) {
            race_touch_for_peer(qp_number(move->qp), true, move->segments, move->segment_count);
        }
        return odd_move(move);
    }
    return memory_move(move);
}

#endif
