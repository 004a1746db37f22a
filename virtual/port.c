/* SPDX-License-Identifier: BSD-2-Clause
 *
 * port - the port and its GID table: one address (base/box_address.h). NIC N has the LID N + 1, for
 * programs that know no GIDs.
 */
#include "base/box_address.h"
#include "virtual/world.h"

enum {
    LOOPBACK_INDEX = 1, /* The network of a run has lo alone. */
};

struct gid world_gid(uint32_t number)
{
    const struct box_place *place = &world_page()->place[number];
    struct gid gid;
    box_address(place->node, place->function, gid.bytes);
    return gid;
}

int world_number(const struct gid *gid)
{
    uint32_t node, function;
    if (!box_address_read(gid->bytes, &node, &function)) {
        return -1;
    }
    for (int i = 0; i < BOX_ARENAS_MAX; i++) {
        const struct box_place *place = &world_page()->place[i];
        if (place->link != 0 && place->node == node && place->function == function) {
            return i;
        }
    }
    return -1;
}

void *world_find(const struct gid *gid)
{
    const int number = world_number(gid);
    return number < 0 ? NULL : (void *)(uintptr_t)world_page()->place[number].link;
}

enum live_personality live_personality(void)
{
    return LIVE_ROCE;
}

uint64_t live_guid(const struct live *live)
{
    const struct gid gid = world_gid(live->number);
    return UINT64_C(0x0200000000000000) | load_be32(gid.bytes + 12);
}

uint32_t live_gid_count(const struct live *live)
{
    (void)live;
    return 1;
}

bool live_gid(const struct live *live, uint32_t index, struct live_gid *gid)
{
    const struct gid own = world_gid(live->number);
    *gid = (struct live_gid){.gid = own, .address = own, .interface_index = LOOPBACK_INDEX};
    return index == 0;
}

struct gid live_own_address(const struct live *live, uint32_t index)
{
    CHECK(index == 0);
    return world_gid(live->number);
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
    if (lid == 0 || lid > BOX_ARENAS_MAX) {
        return false;
    }
    *gid = world_gid(lid - 1u);
    return world_find(gid) != NULL;
}
