/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/interfaces.h"

#include <string.h>

#include "wire/inet.h"

enum live_port interfaces_port(const struct interfaces *interfaces)
{
    enum live_port best = LIVE_PORT_DISABLED;
    for (uint32_t i = 0; i < interfaces->count; i++) {
        const struct interface_address *address = &interfaces->addresses[i];
        const enum live_port port = !address->up       ? LIVE_PORT_DISABLED
                                    : address->carrier ? LIVE_PORT_ACTIVE
                                                       : LIVE_PORT_POLLING;
        best = port < best ? port : best;
    }
    return best;
}

/* An address that no interface lists is there as long as its interface is. */
static void interfaces_check(const struct interfaces *interfaces)
{
    CHECK(interfaces->count <= INTERFACES_ADDRESSES_MAX);
    for (uint32_t i = 0; i < interfaces->count; i++) {
        const struct interface_address *one = &interfaces->addresses[i];
        CHECK(one->present || !one->unlisted);
    }
}

static bool is_active(const struct interfaces *interfaces)
{
    return interfaces_port(interfaces) == LIVE_PORT_ACTIVE;
}

static uint32_t port_change(bool before, bool now)
{
    return before == now ? 0 : now ? LIVE_CHANGE_PORT_UP : LIVE_CHANGE_PORT_DOWN;
}

static void set_link(struct interfaces *interfaces, const struct rtnetlink_message *message)
{
    for (uint32_t i = 0; i < interfaces->count; i++) {
        struct interface_address *address = &interfaces->addresses[i];
        if (address->interface_index == message->interface_index) {
            address->up = message->up;
            address->carrier = message->carrier;
        }
    }
}

/* Another interface may get its number next. A loopback address stays with its interface, which
 * cannot be removed. */
static uint32_t remove_link(struct interfaces *interfaces, uint32_t interface_index)
{
    uint32_t changes = 0;
    for (uint32_t i = 0; i < interfaces->count; i++) {
        struct interface_address *address = &interfaces->addresses[i];
        if (address->interface_index == interface_index) {
            changes |= address->present && !address->unlisted ? LIVE_CHANGE_GIDS : 0;
            address->present = address->unlisted;
            address->up = address->carrier = false;
            address->interface_index = address->unlisted ? interface_index : 0;
        }
    }
    return changes;
}

/* Each interface may have the same link-local address. */
static bool is_that(const struct interface_address *one, const struct rtnetlink_message *message)
{
    return memcmp(one->gid.bytes, message->address, 16) == 0 &&
           (!inet_is_link_local(message->address) ||
            one->interface_index == message->interface_index);
}

/* The address of the message; NULL: it is none of ours. */
static struct interface_address *find(struct interfaces *interfaces,
                                      const struct rtnetlink_message *message)
{
    for (uint32_t i = 0; i < interfaces->count; i++) {
        struct interface_address *one = &interfaces->addresses[i];
        if (!one->unlisted && is_that(one, message)) {
            return one;
        }
    }
    return NULL;
}

bool interfaces_concern(const struct interfaces *interfaces,
                        const struct rtnetlink_message *message)
{
    const bool link = message->kind == RTNETLINK_LINK || message->kind == RTNETLINK_LINK_GONE;
    const bool address =
        message->kind == RTNETLINK_ADDRESS || message->kind == RTNETLINK_ADDRESS_GONE;
    for (uint32_t i = 0; i < interfaces->count; i++) {
        const struct interface_address *one = &interfaces->addresses[i];
        if ((link && one->interface_index == message->interface_index) ||
            (address && is_that(one, message))) {
            return true;
        }
    }
    return false;
}

/* Two interfaces may have one address; where it was first, it stays. */
static uint32_t add_address(struct interfaces *interfaces, const struct rtnetlink_message *message)
{
    struct interface_address *address = find(interfaces, message);
    if (address == NULL || address->present) {
        return 0;
    }
    /* Nothing is known of an interface that it was not on before. */
    const bool moved = address->interface_index != message->interface_index;
    address->interface_index = message->interface_index;
    address->present = true;
    return LIVE_CHANGE_GIDS | (moved ? INTERFACES_DOUBT : 0);
}

/* The interface may still have the address, with another prefix, or another interface may have
 * it. */
static uint32_t remove_address(struct interfaces *interfaces,
                               const struct rtnetlink_message *message)
{
    struct interface_address *address = find(interfaces, message);
    if (address == NULL || !address->present ||
        address->interface_index != message->interface_index) {
        return 0;
    }
    address->present = false;
    return LIVE_CHANGE_GIDS | INTERFACES_DOUBT;
}

uint32_t interfaces_apply(struct interfaces *interfaces, const struct rtnetlink_message *message)
{
    const bool active = is_active(interfaces);
    uint32_t changes = 0;
    INVARIANTS(interfaces_check(interfaces));
    switch (message->kind) {
    case RTNETLINK_LINK: set_link(interfaces, message); break;
    case RTNETLINK_LINK_GONE: changes = remove_link(interfaces, message->interface_index); break;
    case RTNETLINK_ADDRESS: changes = add_address(interfaces, message); break;
    case RTNETLINK_ADDRESS_GONE: changes = remove_address(interfaces, message); break;
    case RTNETLINK_OVERRUN: changes = INTERFACES_DOUBT; break;
    case RTNETLINK_OTHER:
    case RTNETLINK_DONE:
    case RTNETLINK_REFUSED: break;
    }
    INVARIANTS(interfaces_check(interfaces));
    return changes | port_change(active, is_active(interfaces));
}

void interfaces_begin(struct interfaces *fresh, const struct interfaces *known)
{
    *fresh = *known;
    for (uint32_t i = 0; i < fresh->count; i++) {
        struct interface_address *address = &fresh->addresses[i];
        address->present = address->unlisted;
        address->up = address->carrier = false;
    }
}

void interfaces_read(struct interfaces *fresh, const struct rtnetlink_message *message)
{
    if (message->kind == RTNETLINK_LINK) {
        set_link(fresh, message);
    } else if (message->kind == RTNETLINK_ADDRESS) {
        (void)add_address(fresh, message);
    }
}

uint32_t interfaces_replace(struct interfaces *known, const struct interfaces *fresh)
{
    uint32_t changes = port_change(is_active(known), is_active(fresh));
    for (uint32_t i = 0; i < known->count; i++) {
        changes |=
            known->addresses[i].present != fresh->addresses[i].present ? LIVE_CHANGE_GIDS : 0;
    }
    CHECK(known->count == fresh->count); /* A reading is of the same addresses. */
    INVARIANTS(interfaces_check(fresh));
    *known = *fresh;
    return changes;
}
