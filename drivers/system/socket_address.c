/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/socket_address.h"

#include <errno.h>
#include <ifaddrs.h>
#include <string.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/shortage.h"
#include "drivers/system/system.h"
#include "wire/inet.h"
#include "wire/roce.h"

union socket_address socket_address_of(const uint8_t ip[16], uint16_t port, uint32_t scope)
{
    union socket_address address = {.any.sa_family = inet_is_ipv4(ip) ? AF_INET : AF_INET6};
    if (address.any.sa_family == AF_INET) {
        address.v4.sin_port = htons(port);
        memcpy(&address.v4.sin_addr, ip + 12, 4);
    } else {
        address.v6.sin6_port = htons(port);
        memcpy(&address.v6.sin6_addr, ip, 16);
        address.v6.sin6_scope_id = inet_is_link_local(ip) ? scope : 0;
    }
    return address;
}

socklen_t socket_address_bytes(const union socket_address *address)
{
    return address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
}

void socket_address_ip(const union socket_address *address, uint8_t ip[16])
{
    if (address->any.sa_family == AF_INET) {
        memset(ip, 0, 10);
        ip[10] = ip[11] = 0xff;
        memcpy(ip + 12, &address->v4.sin_addr, 4);
    } else {
        memcpy(ip, &address->v6.sin6_addr, 16);
    }
}

/* The interface on which this machine has a link-local address; 0 with errno 0: it is none of its
 * addresses; with another errno: that cannot be told. */
static uint32_t own_scope(const uint8_t ip[16])
{
    struct ifaddrs *list;
    uint32_t scope = 0;
    if (getifaddrs(&list) != 0) {
        return 0;
    }
    for (const struct ifaddrs *at = list; at != NULL && scope == 0; at = at->ifa_next) {
        if (at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET6) {
            struct sockaddr_in6 v6;
            memcpy(&v6, at->ifa_addr, sizeof(v6));
            scope = memcmp(&v6.sin6_addr, ip, 16) == 0 ? v6.sin6_scope_id : 0;
        }
    }
    freeifaddrs(list);
    errno = 0;
    return scope;
}

/* Only an address of this machine can be bound. */
bool address_is_local(const uint8_t ip[16])
{
    if (inet_is_link_local(ip)) {
        return own_scope(ip) != 0;
    }
    const union socket_address address = socket_address_of(ip, 0, 0);
    const int fd =
        descriptor_own(system_socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const bool local =
        fd >= 0 && system_bind(fd, &address.any, socket_address_bytes(&address)) == 0;
    const int reason = local || !(shortage_is(errno) || errno == EADDRINUSE) ? 0 : errno;
    descriptor_close(fd);
    errno = reason;
    return local;
}

bool address_leads(const uint8_t from[16], const uint8_t to[16])
{
    const uint32_t scope = inet_is_link_local(from) ? own_scope(from) : 0;
    const union socket_address here = socket_address_of(from, 0, scope);
    const union socket_address there = socket_address_of(to, ROCE_UDP_PORT, scope);
    const int fd = descriptor_own(system_socket(here.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const bool leads = fd >= 0 && system_bind(fd, &here.any, socket_address_bytes(&here)) == 0 &&
                       system_connect(fd, &there.any, socket_address_bytes(&there)) == 0;
    descriptor_close(fd);
    return leads;
}

bool address_towards(const uint8_t to[16], uint32_t scope, uint8_t from[16])
{
    union socket_address address = socket_address_of(to, ROCE_UDP_PORT, scope);
    socklen_t bytes = socket_address_bytes(&address);
    const int fd =
        descriptor_own(system_socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return false;
    }
    const bool found =
        system_connect(fd, &address.any, bytes) == 0 && getsockname(fd, &address.any, &bytes) == 0;
    descriptor_close(fd);
    if (found) {
        socket_address_ip(&address, from);
    }
    return found;
}
