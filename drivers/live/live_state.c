/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_state - the functions of a live NIC that all others may call: its lock, its time, and its
 * properties.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/box_page.h"
#include "base/bytes.h"
#include "drivers/live/live_internal.h"
#include "drivers/system/clock.h"

void live_check(const struct live *live)
{
    const struct link *nowhere = &live->links.nowhere;
    live_check_locked(live);
    CHECK(live->nic != NULL && live->manager.cm != NULL);
    CHECK(live->addresses.count >= 1 && live->addresses.count <= ADDRESS_MAX);
    CHECK(!live->inherited || live->shm == NULL);
    CHECK(live->inherited || !live->thread.udp_watched || live->thread.poll_fd >= 0);
    CHECK(list_empty(&live->links.waiting) || live->links.parked);
    CHECK(nowhere->holders == 0 && list_empty(&nowhere->parked));
}

bool live_offers(enum live_offer what)
{
    (void)what;
    return true;
}

const struct live_arena *live_arena(void)
{
    return NULL;
}

struct nic *live_nic(struct live *live)
{
    return live->nic;
}

uint64_t live_guid(const struct live *live)
{
    CHECK(live->addresses.count > 0);
    /* An EUI-64 of our own making: the locally administered bit is set, the rest is the address. */
    const uint8_t *gid = live->addresses.entries[0].gid.bytes;
    return 0x0200000000000000u | (uint64_t)(load_be32(gid + 8) & 0xffffff) << 32 |
           load_be32(gid + 12);
}

enum path_mtu live_active_mtu(const struct live *live)
{
    return live->addresses.mtu;
}

const char *live_device_text(const struct live *live)
{
    return live->addresses.text;
}

bool live_has_memory_wire(const struct live *live)
{
    return live->shm != NULL;
}

bool live_is_strict(const struct live *live)
{
    return live->config.strict;
}

bool live_maps_queues(const struct live *live)
{
    return live->config.map_queues;
}

bool live_is_shared(const struct live *live)
{
    return live->addresses.shared;
}

bool live_is_inherited(const struct live *live)
{
    return live->inherited;
}

void live_lock(struct live *live)
{
    lock_take(&live->lock);
}

bool live_lock_unless_held(struct live *live)
{
    const bool held = lock_is_held_here(&live->lock);
    if (!held) {
        lock_take(&live->lock);
    }
    return !held;
}

static void end_verb_in_box(void)
{
    if (page_verb_ended((struct box_page *)BOX_PAGE_ADDRESS)) {
        const int before = errno;
        (void)syscall(BOX_ASK, (long)BOX_ASK_TURN, 0L, NULL);
        errno = before;
    }
}

/* Each verb ends here. */
void live_unlock(struct live *live)
{
    const bool is_boxed = live->is_boxed;
    lock_release(&live->lock);
    if (UNLIKELY(is_boxed)) {
        end_verb_in_box();
    }
}

struct instant live_now(struct live *live)
{
    INVARIANTS(live_check_locked(live));
    live->now = clock_now();
    return live->now;
}

void live_listen(struct live *live, const struct live_listener *listener)
{
    INVARIANTS(live_check_locked(live));
    live->listener = *listener;
}

void live_set_owner(struct live *live, const struct live_owner *owner)
{
    live->owner = *owner;
}
