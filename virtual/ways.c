/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ways - to peers: an address vector's link is a number, by which the machine knows the peer's NIC.
 */
#include <stdio.h>

#include "virtual/world.h"

enum status live_resolve(struct live *live, struct nic_av *av, uint32_t destination_qpn)
{
    (void)live;
    (void)destination_qpn;
    av->link = world_find(&av->destination);
    av->window_bytes = 0;
    return av->link == NULL ? STATUS_INVALID : STATUS_OK;
}

static enum status refuse_groups(void)
{
    static atomic_bool told;
    if (!atomic_exchange(&told, true)) {
        fprintf(stderr, "nonic: the NICs of 'nonic repeat --machine' do not offer multicast: its "
                        "network has no groups\n");
    }
    return STATUS_UNSUPPORTED;
}

enum status live_resolve_datagrams(struct live *live, struct nic_av *av)
{
    return inet_is_multicast(av->destination.bytes) ? refuse_groups() : live_resolve(live, av, 0);
}

/* There is nothing behind a number. */
void live_release(struct live *live, const struct nic_av *av)
{
    (void)live;
    (void)av;
}

/* The machine's packets have the headers that their address vectors name, without being told. */
void live_show_variants(struct live *live)
{
    (void)live;
}

enum status live_attach(struct live *live, const struct gid *group, struct qp *qp)
{
    (void)live;
    (void)group;
    (void)qp;
    return refuse_groups();
}

enum status live_detach(struct live *live, const struct gid *group, struct qp *qp)
{
    return live_attach(live, group, qp);
}
