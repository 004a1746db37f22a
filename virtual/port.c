/* SPDX-License-Identifier: BSD-2-Clause
 *
 * port - the port and its GID table: one address, which the NIC's number gives.
 *
 * NIC N has the address 10.77.H.L, where H and L are the two bytes of N + 1, and the LID N + 1 for
 * programs that know no GIDs.
 */
#include <string.h>

#include "base/bytes.h"
#include "virtual/world.h"

enum {
    NETWORK = 0x0a4d,   /* 10.77 */
    LOOPBACK_INDEX = 1, /* The network of a run has lo alone. */
};

static struct gid gid_of(uint32_t number)
{
    struct gid gid = {.bytes = {[10] = 0xff, [11] = 0xff}};
    store_be16(gid.bytes + 12, NETWORK);
    store_be16(gid.bytes + 14, (uint16_t)(number + 1));
    return gid;
}

void *world_find(const struct gid *gid)
{
    const uint32_t number = load_be16(gid->bytes + 14) - 1u;
    const struct gid expected = gid_of(number);
    return number < BOX_ARENAS_MAX && gid_equal(gid, &expected)
               ? (void *)(uintptr_t)world_page()->links[number]
               : NULL;
}

enum live_personality live_personality(void)
{
    return LIVE_ROCE;
}

uint64_t live_guid(const struct live *live)
{
    const struct gid gid = gid_of(live->number);
    return UINT64_C(0x0200000000000000) | load_be32(gid.bytes + 12);
}

uint32_t live_gid_count(const struct live *live)
{
    (void)live;
    return 1;
}

bool live_gid(const struct live *live, uint32_t index, struct live_gid *gid)
{
    const struct gid own = gid_of(live->number);
    *gid = (struct live_gid){.gid = own, .address = own, .interface_index = LOOPBACK_INDEX};
    return index == 0;
}

struct gid live_own_address(const struct live *live, uint32_t index)
{
    CHECK(index == 0);
    return gid_of(live->number);
}

struct gid live_own_gid(const struct live *live, uint32_t index)
{
    return live_own_address(live, index);
}

bool live_gid_is_gone(const struct live *live, uint32_t index)
{
    (void)live;
    (void)index;
    return false;
}

uint32_t live_interface(const struct live *live)
{
    (void)live;
    return LOOPBACK_INDEX;
}

enum live_port live_port_state(const struct live *live)
{
    (void)live;
    return LIVE_PORT_ACTIVE;
}

/* It never changes. */
void live_port_refresh(struct live *live)
{
    (void)live;
}

enum path_mtu live_active_mtu(const struct live *live)
{
    return nic_limits(live->nic)->mtu;
}

bool live_has_memory_wire(const struct live *live)
{
    (void)live;
    return false;
}

uint16_t live_lid(struct live *live)
{
    return (uint16_t)(live->number + 1);
}

bool live_gid_of_lid(struct live *live, uint16_t lid, struct gid *gid)
{
    (void)live;
    *gid = gid_of(lid - 1u);
    return world_find(gid) != NULL;
}
