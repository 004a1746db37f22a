/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_multicast - multicast groups: a socket for each group that was joined, and links to groups.
 *
 * A socket that is bound to the group itself gets the packets to the group and no others, and every
 * such socket of the machine gets a copy (docs/decisions/0011).
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/system.h"
#include "drivers/udp/udp_port.h"

/* -- Receiving ----------------------------------------------------------------------------------*/

static bool set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

/* Groups are joined on one interface: that of our first address of the family. */
static const struct address *address_for(const struct udp_port *port, const struct gid *group)
{
    for (uint32_t i = 0; i < port->addresses->count; i++) {
        const struct address *address = &port->addresses->entries[i];
        if (address->fd >= 0 && inet_is_ipv4(address->gid.bytes) == inet_is_ipv4(group->bytes)) {
            return address;
        }
    }
    return NULL;
}

/* The socket gets only packets that come by the interface on which we joined the group, whatever
 * others joined. */
static bool bind_ipv4(int fd, const struct gid *group, uint32_t interface_index)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
    memcpy(&at.sin_addr, group->bytes + 12, 4);
    const struct ip_mreqn member = {.imr_multiaddr = at.sin_addr,
                                    .imr_ifindex = (int)interface_index};
    return set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0) &&
           system_bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
           setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof(member)) == 0;
}

static bool bind_ipv6(int fd, const struct gid *group, uint32_t interface_index)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6,
                              .sin6_port = htons(ROCE_UDP_PORT),
                              .sin6_scope_id = interface_index};
    memcpy(&at.sin6_addr, group->bytes, 16);
    const struct ipv6_mreq member = {.ipv6mr_multiaddr = at.sin6_addr,
                                     .ipv6mr_interface = interface_index};
    return set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
           set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0) &&
           system_bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
           setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &member, sizeof(member)) == 0;
}

/* The event of a socket names its place in port->groups. */
static bool watch_group(const struct udp_port *port, int operation, uint32_t index)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    CHECK(index < UDP_GROUPS_MAX && port->groups[index].fd >= 0);
    return system_epoll_change(port->groups_fd, operation, port->groups[index].fd, &event) == 0;
}

/* Each group once: its socket has all datagrams of the group. */
static void groups_check(const struct udp_port *port)
{
    CHECK(port->group_count <= UDP_GROUPS_MAX);
    for (uint32_t i = 0; i < port->group_count; i++) {
        CHECK(inet_is_multicast(port->groups[i].gid.bytes));
        for (uint32_t k = 0; k < i; k++) {
            CHECK(!gid_equal(&port->groups[i].gid, &port->groups[k].gid));
        }
    }
}

enum status udp_port_join(struct udp_port *port, const struct gid *group)
{
    const struct address *address = address_for(port, group);
    if (address == NULL) {
        return STATUS_INVALID;
    }
    if (port->group_count == UDP_GROUPS_MAX) {
        return STATUS_FULL;
    }
    const bool ipv4 = inet_is_ipv4(group->bytes);
    const int fd =
        descriptor_own(system_socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return STATUS_FULL;
    }
    port->groups[port->group_count] =
        (struct address){.gid = *group, .interface_index = address->interface_index, .fd = fd};
    udp_show_variants(fd, ipv4, true);
    const bool good = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) &&
                      udp_prepare_socket(port, fd, ipv4) &&
                      (ipv4 ? bind_ipv4 : bind_ipv6)(fd, group, address->interface_index) &&
                      watch_group(port, EPOLL_CTL_ADD, port->group_count);
    if (!good) {
        descriptor_close(fd);
        return STATUS_FULL;
    }
    port->group_count++;
    INVARIANTS(groups_check(port));
    return STATUS_OK;
}

void udp_port_leave(struct udp_port *port, const struct gid *group)
{
    uint32_t index = 0;
    INVARIANTS(groups_check(port));
    while (!gid_equal(&port->groups[index].gid, group)) {
        index++;
        CHECK(index < port->group_count);
    }
    descriptor_close(port->groups[index].fd);
    port->groups[index] = port->groups[--port->group_count];
    if (index < port->group_count && port->groups_fd >= 0) { /* A child of fork has none. */
        CHECK(watch_group(port, EPOLL_CTL_MOD, index));
    }
}

/* -- Sending ------------------------------------------------------------------------------------*/

/* The socket sends by our own interface, also to programs of this machine, and by itself no
 * further: each link says how far its packets go. */
static bool prepare_sender(int fd, bool ipv4, uint32_t interface_index)
{
    const int index = (int)interface_index;
    if (ipv4) {
        const struct ip_mreqn by = {.imr_ifindex = index};
        return setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof(by)) == 0 &&
               set_option(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 1) &&
               set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, 0);
    }
    return set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, index) &&
           set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1) &&
           set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 0);
}

struct link *udp_port_group_link(struct udp_port *port, const struct gid *source,
                                 const struct gid *group, uint8_t hop_limit)
{
    struct udp_link *link = udp_find_link(port, source, group, LOCAL_NO_SLOT, hop_limit);
    if (link == NULL) {
        return NULL;
    }
    link->to_group = true;
    /* A group is not one peer with one buffer, so nobody is asked how full it is. */
    link->answers = UDP_ANSWERS_NO;
    CHECK(inet_is_multicast(group->bytes) && link->routes == NULL);
    const struct address *address = address_for(port, group);
    CHECK(address != NULL); /* The source is of the group's family. */
    if (!prepare_sender(link->fd, inet_is_ipv4(group->bytes), address->interface_index)) {
        return NULL;
    }
    link_table_hold(&port->links, &link->link);
    return &link->link;
}

void udp_groups_steer(struct udp_port *port)
{
    struct link *base = NULL;
    while ((base = link_table_next(&port->links, base)) != NULL) {
        const struct udp_link *link = CONTAINER_OF(base, struct udp_link, link);
        const struct address *address = link->to_group ? address_for(port, &base->peer) : NULL;
        if (address != NULL) {
            (void)prepare_sender(link->fd, inet_is_ipv4(base->peer.bytes),
                                 address->interface_index);
        }
    }
}
