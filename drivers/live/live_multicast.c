/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_multicast - multicast groups, joined as long as queue pairs are attached to them.
 *
 * With each wire, groups are reached over UDP sockets: the kernel makes the copies.
 */
#include <errno.h>

#include "drivers/live/live_internal.h"
#include "drivers/live/live_multicast.h"
#include "drivers/live/live_resolve.h"

/* With addresses of 127.0.0.0/8 alone, only IPv4 groups work. An IPv6 group stands for an IPv4
 * group then, because some programs know IPv6 groups only. */
static struct gid group_here(const struct live *live, const struct gid *group)
{
    const struct address_set *set = &live->addresses;
    bool stands_in = group->bytes[0] == 0xff;
    for (uint32_t i = 0; i < set->count; i++) {
        stands_in &= inet_is_loopback_ipv4(set->entries[i].gid.bytes);
    }
    struct gid here = *group;
    if (stands_in) {
        inet_group_stand_in(group->bytes, here.bytes);
    }
    return here;
}

static enum status attach(struct live *live, const struct gid *group, struct qp *qp)
{
    const bool joined = nic_has_group(live->nic, group);
    enum status status = nic_attach(live->nic, group, qp);
    if (status != STATUS_OK || joined) {
        return status;
    }
    status = udp_port_join(&live->udp, group);
    if (status != STATUS_OK) {
        CHECK(nic_detach(live->nic, group, qp) == STATUS_OK);
    }
    return status;
}

enum status live_attach(struct live *live, const struct gid *group, struct qp *qp)
{
    INVARIANTS(live_check_locked(live));
    const struct gid here = group_here(live, group);
    return attach(live, &here, qp);
}

enum status live_detach(struct live *live, const struct gid *group, struct qp *qp)
{
    INVARIANTS(live_check_locked(live));
    const struct gid here = group_here(live, group);
    const enum status status = nic_detach(live->nic, &here, qp);
    if (status == STATUS_OK && !nic_has_group(live->nic, &here)) {
        udp_port_leave(&live->udp, &here);
    }
    return status;
}

enum status live_resolve_group(struct live *live, struct nic_av *av)
{
    /* A hop limit of 0 reaches the subnet like 1 does (IBTA 8.3.6), where IP would not let it leave
     * the machine. For the wire of shared memory, which does not leave the machine, 0 is right. */
    const uint8_t reach = av->hop_limit == 0 ? 1 : av->hop_limit;
    const uint8_t hop_limit = live->config.wire == LIVE_WIRE_SHM ? 0 : reach;
    av->destination = group_here(live, &av->destination);
    errno = 0;
    av->link = udp_port_group_link(&live->udp, &av->source, &av->destination, hop_limit);
    return av->link == NULL ? live_unreachable(errno) : STATUS_OK;
}

void live_group_arrival(struct live *live, const struct nic_frame *frame)
{
    struct nic_delivery delivery;
    struct nic_move move;
    if (!nic_on_multicast(live->nic, frame, &delivery)) {
        return;
    }
    while (nic_next_delivery(live->nic, &delivery, live->now, &move)) {
        nic_on_moved(live->nic, &move, live_move(live, &move), live->now);
    }
}
