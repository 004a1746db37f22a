/* SPDX-License-Identifier: BSD-2-Clause
 *
 * state - what a NIC is, and what this world does not have.
 */
#include <stdio.h>

#include "virtual/world.h"

/* Memory is never lent here (world.h). */
atomic_bool live_has_lent;

static void refuse(enum live_offer what)
{
    static const char *const said[] = {
        [LIVE_OFFER_XRC] = "XRC: a program can do with RC and shared receive queues",
        [LIVE_OFFER_ALLOCATORS] = "parent domains with allocators of the program: objects have to "
                                  "lie in memory that the machine reaches",
    };
    static atomic_bool told[COUNT_OF(said)];
    if (!atomic_exchange(&told[what], true)) {
        fprintf(stderr, "nonic: the NICs of 'nonic repeat --machine' do not offer %s\n",
                said[what]);
    }
}

bool live_offers(enum live_offer what)
{
    refuse(what);
    return false;
}

struct nic *live_nic(struct live *live)
{
    return live->nic;
}

bool live_is_strict(const struct live *live)
{
    return live->strict;
}

bool live_maps_queues(const struct live *live)
{
    (void)live;
    return false;
}

bool live_is_shared(const struct live *live)
{
    (void)live;
    return false;
}

bool live_is_inherited(const struct live *live)
{
    return live->is_inherited;
}

void live_listen(struct live *live, const struct live_listener *listener)
{
    live->listener = *listener;
}

void live_set_owner(struct live *live, const struct live_owner *owner)
{
    live->owner = *owner;
}
