/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/udp/udp_port.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/socket_address.h"
#include "drivers/system/system.h"

/* The size that we ask for; the kernel grants less where net.core.rmem_max is lower. */
#define RECEIVE_BYTES_WANTED (8 << 20)
#define SEND_BYTES_WANTED    RECEIVE_BYTES_WANTED
/* One queue pair's share: enough to keep both sides busy while an acknowledgement of the other side
 * waits for the end of a round; a larger window only costs cache misses. */
#define WINDOW_BYTES_MAX (1 << 20)
#define TURN_BYTES       (1 << 19)

/* -- Opening ------------------------------------------------------------------------------------*/

static void set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

/* An unconnected socket that forbids fragmentation sends identification 0 in every datagram, or the
 * index within a segmented call: so we know the bytes that the ICRC covers. With PROBE instead of
 * DO it takes the interface's MTU for the path's, as a NIC does, and believes no ICMP message that
 * names a smaller one: anybody can send one. */
void udp_forbid_fragments(int fd, bool ipv4)
{
    /* The hop limit of a plain packet costs no control data, whatever the system's default is. */
    if (ipv4) {
        set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
        set_option(fd, IPPROTO_IP, IP_TTL, INET_HOP_LIMIT);
    } else {
        set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
        set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, INET_HOP_LIMIT);
    }
    set_option(fd, SOL_SOCKET, SO_SNDBUF, SEND_BYTES_WANTED);
}

bool udp_prepare_socket(struct udp_port *port, int fd, bool ipv4)
{
    udp_forbid_fragments(fd, ipv4);
    if (!ipv4) {
        /* Soft-RoCE and hardware leave the UDP checksum 0, over IPv6 too: the ICRC does its work.
         */
        set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
    }
    /* The order matters: SO_RCVBUF would take back the size that a privileged user has got by
     * SO_RCVBUFFORCE. */
    set_option(fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BYTES_WANTED);
    set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES_WANTED);
    set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
    int granted = 0;
    socklen_t bytes = sizeof(granted);
    if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &bytes) != 0 || granted <= 0) {
        return false;
    }
    if (port->receive_bytes == 0 || (uint32_t)granted < port->receive_bytes) {
        port->receive_bytes = (uint32_t)granted;
    }
    int segment = 0;
    bytes = sizeof(segment);
    port->segmenting =
        port->segmenting && getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, &bytes) == 0;
    return true;
}

static void let_mark(int fd, bool ipv4, bool on)
{
    set_option(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TOS : IPV6_TCLASS,
               on ? UDP_ECT_0 : 0);
}

static void tell_class(int fd, bool ipv4, bool on)
{
    set_option(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_RECVTOS : IPV6_RECVTCLASS, on);
}

void udp_show_variants(int fd, bool ipv4, bool on)
{
    tell_class(fd, ipv4, on);
    if (ipv4) {
        set_option(fd, IPPROTO_IP, IP_RECVTTL, on);
    } else {
        set_option(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, on);
        set_option(fd, IPPROTO_IPV6, IPV6_FLOWINFO, on);
    }
}

/* The sockets of a shared address belonged to other processes before, which may have let them tell
 * more. The common socket belongs to all, so options that are on stay on there. */
static void choose_told(const struct udp_port *port)
{
    for (uint32_t i = 0; i < port->addresses->count; i++) {
        const struct address *address = &port->addresses->entries[i];
        const bool ipv4 = inet_is_ipv4(address->gid.bytes);
        set_option(address->fd, SOL_SOCKET, SO_TIMESTAMPNS, port->observing);
        udp_show_variants(address->fd, ipv4, port->showing);
        if (port->observing || port->markable[i]) {
            tell_class(address->fd, ipv4, true);
        }
        let_mark(address->fd, ipv4, port->markable[i]);
        if (port->markable[i] && address->share != NULL) {
            tell_class(share_common_socket(address->share), ipv4, true);
        }
        if (port->showing && address->share != NULL) {
            udp_show_variants(share_common_socket(address->share), ipv4, true);
        }
    }
}

void udp_port_observe(struct udp_port *port)
{
    if (!port->observing) {
        port->observing = true;
        choose_told(port);
    }
}

void udp_port_show_variants(struct udp_port *port)
{
    if (!port->showing && udp_port_fd_count(port) > 0) {
        port->showing = true;
        choose_told(port);
    }
}

static struct udp_link *udp_link_of(struct link *link)
{
    return CONTAINER_OF(link, struct udp_link, link);
}

static void note_markable(struct udp_link *link, int fd)
{
    if (link->fd == fd) {
        link->ecn = link->socket_ecn = UDP_ECT_0;
    }
    if (link->unmarked != NULL && link->unmarked->fd == fd) {
        link->unmarked->socket_ecn = UDP_ECT_0;
    }
    udp_routes_note_markable(link->routes, fd);
}

/* Packets that are in the batch already may leave either way. */
void udp_port_serve_connections(struct udp_port *port, const struct gid *self)
{
    uint32_t index = 0;
    while (index < port->addresses->count &&
           !gid_equal(&port->addresses->entries[index].gid, self)) {
        index++;
    }
    const struct address *address = &port->addresses->entries[index];
    if (index == port->addresses->count || address->fd < 0 || address->loopback ||
        port->markable[index]) {
        return;
    }
    port->markable[index] = true;
    choose_told(port);
    struct link *link = NULL;
    while ((link = link_table_next(&port->links, link)) != NULL) {
        note_markable(udp_link_of(link), address->fd);
    }
    for (uint32_t i = 0; i < UDP_PASSING_MAX; i++) {
        note_markable(&port->passing[i], address->fd);
    }
}

bool udp_port_open(struct udp_port *port, const struct address_set *addresses, char *error,
                   size_t error_bytes)
{
    memset(port, 0, sizeof(*port));
    port->addresses = addresses;
    CHECK(addresses->count <= ADDRESS_MAX);
    link_table_init(&port->links);
    port->segmenting = true;
    port->ports = 1;
    port->groups_fd = descriptor_own(system_epoll_create(EPOLL_CLOEXEC));
    if (port->groups_fd < 0) {
        snprintf(error, error_bytes, "no descriptor for multicast: %s", strerror(errno));
        return false;
    }
    for (uint32_t i = 0; i < addresses->count && udp_port_fd_count(port) > 0; i++) {
        const struct address *address = &addresses->entries[i];
        const bool ipv4 = inet_is_ipv4(address->gid.bytes);
        if (!udp_prepare_socket(port, address->fd, ipv4) ||
            (address->share != NULL &&
             !udp_prepare_socket(port, share_common_socket(address->share), ipv4))) {
            snprintf(error, error_bytes, "UDP socket: %s", strerror(errno));
            return false;
        }
    }
    if (addresses->shared) {
        choose_told(port);
    }
    port->batch = calloc(UDP_BATCH_MAX, sizeof(*port->batch));
    port->pieces = calloc(UDP_PIECES_MAX, sizeof(*port->pieces));
    port->arena = malloc((size_t)UDP_BATCH_MAX * UDP_COPIED_BYTES_MAX);
    port->tails = malloc((size_t)UDP_BATCH_MAX * UDP_TAIL_BYTES);
    port->inbox = calloc(1, sizeof(*port->inbox));
    /* Pages that nothing was received into are not taken from the system. */
    port->receive_buffer = malloc((size_t)UDP_MESSAGES_MAX * UDP_RECEIVE_STRIDE);
    port->bounce = malloc(BLOCK_PACKET_BYTES_MAX);
    port->passing = calloc(UDP_PASSING_MAX, sizeof(*port->passing));
    port->layout = udp_layout_make();
    port->waiting = udp_waiting_make();
    port->handover.bytes = addresses->shared ? malloc(SHARE_HANDOVER_BYTES_MAX) : NULL;
    if (port->passing == NULL || port->layout == NULL || port->waiting == NULL ||
        port->batch == NULL || port->pieces == NULL || port->arena == NULL || port->tails == NULL ||
        port->inbox == NULL || port->receive_buffer == NULL || port->bounce == NULL ||
        (addresses->shared && port->handover.bytes == NULL)) {
        snprintf(error, error_bytes, "no memory for the UDP port");
        return false;
    }
    return true;
}

static void close_groups(struct udp_port *port)
{
    for (uint32_t i = 0; i < port->group_count; i++) {
        descriptor_close(port->groups[i].fd);
    }
    if (port->addresses != NULL) {
        descriptor_close(port->groups_fd);
    }
}

static void drop_all(struct udp_port *port)
{
    struct link *link = NULL;
    while ((link = link_table_next(&port->links, link)) != NULL) {
        udp_routes_rest(udp_link_of(link));
    }
    while ((link = link_table_next(&port->links, NULL)) != NULL) {
        udp_port_drop(port, link);
    }
    link_table_close(&port->links);
}

void udp_port_close(struct udp_port *port)
{
    close_groups(port);
    udp_senders_close(port);
    if (port->addresses != NULL) {
        port->batch_count = 0; /* The caller has flushed the batch, or does not want it any more. */
        drop_all(port);
    }
    free(port->passing);
    free(port->layout);
    free(port->waiting);
    free(port->batch);
    free(port->pieces);
    free(port->arena);
    free(port->tails);
    free(port->inbox);
    free(port->receive_buffer);
    free(port->bounce);
    free(port->handover.bytes);
    memset(port, 0, sizeof(*port));
}

void udp_port_forget_sockets(struct udp_port *port)
{
    struct link *base = NULL;
    while ((base = link_table_next(&port->links, base)) != NULL) {
        struct udp_link *link = udp_link_of(base);
        link->fd = -1;
        if (link->unmarked != NULL) {
            link->unmarked->fd = -1;
        }
        udp_routes_forget_sockets(link->routes);
    }
    udp_senders_forget(port);
    for (uint32_t i = 0; i < port->group_count; i++) {
        port->groups[i].fd = -1;
    }
    port->groups_fd = -1;
    for (uint32_t i = 0; i < UDP_PASSING_MAX && port->passing != NULL; i++) {
        port->passing[i].fd = -1;
    }
    if (port->waiting != NULL) {
        udp_waiting_forget(port);
    }
}

uint32_t udp_port_safe_bytes(const struct udp_port *port)
{
    /* The kernel charges less than twice the bytes that we count. A queue pair may exceed the limit
     * by one turn. */
    const uint32_t half = port->receive_bytes / 2, turn = port->receive_bytes / 16;
    return half - (turn < TURN_BYTES ? turn : TURN_BYTES);
}

uint32_t udp_port_window_bytes(const struct udp_port *port)
{
    const uint32_t safe = udp_port_safe_bytes(port);
    return safe < WINDOW_BYTES_MAX ? safe : WINDOW_BYTES_MAX;
}

uint32_t udp_port_fd_count(const struct udp_port *port)
{
    const struct address_set *set = port->addresses;
    return set == NULL || set->count == 0 || set->entries[0].fd < 0 ? 0 : set->count + 1;
}

int udp_port_fd(const struct udp_port *port, uint32_t index)
{
    CHECK(index < udp_port_fd_count(port));
    return index < port->addresses->count ? port->addresses->entries[index].fd : port->groups_fd;
}

uint64_t udp_port_bad_icrc(const struct udp_port *port)
{
    return port->counters.bad_icrc + port->counters.implausible_identification;
}

/* -- Links --------------------------------------------------------------------------------------*/

/* The flow says what the socket puts into the headers: the ICRC covers both. A window has one link
 * of the peer, and the links of its routes count there. */
void udp_link_check(const struct udp_link *link)
{
    const bool ipv4 = inet_is_ipv4(link->link.peer.bytes);
    CHECK(link->link.kind == LINK_UDP && ipv4 == inet_is_ipv4(link->link.self.bytes));
    CHECK(memcmp(link->flow.source, link->link.self.bytes, 16) == 0);
    CHECK(memcmp(link->flow.destination, link->link.peer.bytes, 16) == 0);
    CHECK(link->flow.destination_port == ROCE_UDP_PORT && link->flow.source_port != 0);
    CHECK(link->to.ss_family == (ipv4 ? AF_INET : AF_INET6));
    CHECK((link->ecn | link->socket_ecn | UDP_ECT_0) == UDP_ECT_0);
    CHECK(link->first != NULL && link->first->first == link->first && link->link.first != NULL);
    CHECK(link->answers <= UDP_ANSWERS_NO);
}

static void aim(struct udp_link *link, const struct address *address)
{
    const union socket_address to =
        socket_address_of(link->link.peer.bytes, ROCE_UDP_PORT, address->interface_index);
    memcpy(&link->to, &to, sizeof(to));
    link->to_bytes = socket_address_bytes(&to);
}

static const struct address *address_of(const struct udp_port *port, const struct gid *gid)
{
    for (uint32_t i = 0; i < port->addresses->count; i++) {
        if (gid_equal(&port->addresses->entries[i].gid, gid)) {
            return &port->addresses->entries[i];
        }
    }
    return NULL;
}

/* The address of ours to send from; NULL: it is none of ours, has no UDP, or is of another family
 * than the destination. */
static const struct address *source_towards(const struct udp_port *port, const struct gid *source,
                                            const struct gid *destination)
{
    if (inet_is_ipv4(source->bytes) != inet_is_ipv4(destination->bytes)) {
        return NULL;
    }
    const struct address *address = address_of(port, source);
    return address == NULL || address->fd < 0 ? NULL : address;
}

void udp_init_link(const struct udp_port *port, struct udp_link *link,
                   const struct address *address, const struct gid *destination, int slot,
                   uint8_t hop_limit)
{
    const bool markable = port->markable[address - port->addresses->entries];
    const struct link_name name = {
        .self = &address->gid, .peer = destination, .slot = slot, .hop_limit = hop_limit};
    CHECK(address >= port->addresses->entries &&
          address < port->addresses->entries + port->addresses->count);
    memset(link, 0, sizeof(*link));
    link_init(&link->link, LINK_UDP, &name);
    memcpy(link->flow.source, address->gid.bytes, 16);
    memcpy(link->flow.destination, destination->bytes, 16);
    link->flow.source_port = ROCE_UDP_PORT;
    link->flow.destination_port = ROCE_UDP_PORT;
    link->fd = address->fd;
    link->ecn = link->socket_ecn = markable ? UDP_ECT_0 : 0;
    link->first = link;
    aim(link, address);
}

static struct udp_link *make_link(struct udp_port *port, const struct link_name *name)
{
    const struct address *address = source_towards(port, name->self, name->peer);
    struct udp_link *link = address == NULL ? NULL : malloc(sizeof(*link));
    if (link == NULL) {
        return NULL;
    }
    udp_init_link(port, link, address, name->peer, name->slot, name->hop_limit);
    if (!link_table_add(&port->links, &link->link)) {
        free(link);
        return NULL;
    }
    port->peers += !inet_is_multicast(name->peer->bytes);
    INVARIANTS(udp_link_check(link));
    return link;
}

struct udp_link *udp_find_link(struct udp_port *port, const struct gid *source,
                               const struct gid *destination, int slot, uint8_t hop_limit)
{
    const struct link_name name = {
        .self = source, .peer = destination, .slot = slot, .hop_limit = hop_limit};
    struct link *known = link_table_find(&port->links, &name);
    return known != NULL ? udp_link_of(known) : make_link(port, &name);
}

struct link *udp_port_known_link(struct udp_port *port, const struct gid *source,
                                 const struct gid *destination, int slot)
{
    const struct link_name name = {.self = source, .peer = destination, .slot = slot};
    return link_table_find(&port->links, &name);
}

struct link *udp_port_link(struct udp_port *port, const struct gid *source,
                           const struct gid *destination, int slot)
{
    struct udp_link *link = udp_find_link(port, source, destination, slot, 0);
    if (link == NULL) {
        return NULL;
    }
    link_table_hold(&port->links, &link->link);
    INVARIANTS(udp_link_check(link));
    return &link->link;
}

void udp_port_release(struct udp_port *port, struct link *link)
{
    INVARIANTS(udp_link_check(udp_link_of(link)));
    link_table_release(&port->links, link);
    if (link->holders == 0) {
        udp_routes_rest(udp_link_of(link));
    }
}

/* Flushes first, because packets of the batch refer to the link. */
void udp_port_drop(struct udp_port *port, struct link *base)
{
    struct udp_link *link = udp_link_of(base);
    if (port->batch_count > 0) {
        udp_port_flush(port);
    }
    CHECK(base->routes == 0); /* A link that is here by it would lead into freed memory. */
    CHECK(port->batch_count == 0);
    udp_routes_free(link->routes);
    link_table_remove(&port->links, base);
    port->peers -= !inet_is_multicast(base->peer.bytes);
    free(link->unmarked);
    free(link);
}

/* Packets of the batch refer to links, so they leave before their link leads elsewhere. */
static struct udp_link *next_passing(struct udp_port *port)
{
    struct udp_link *link = &port->passing[port->passing_next++ % UDP_PASSING_MAX];
    for (uint32_t i = 0; i < port->batch_count; i++) {
        if (port->batch[i].link == link) {
            udp_port_flush(port);
            break;
        }
    }
    return link;
}

/* The passing link of that name and route; NULL: there is none. */
static struct udp_link *find_passing(struct udp_port *port, const struct link_name *name,
                                     uint8_t route)
{
    for (uint32_t i = 0; i < UDP_PASSING_MAX; i++) {
        struct udp_link *link = &port->passing[i];
        if (link_has_name(&link->link, name) && link->route == route) {
            return link;
        }
    }
    return NULL;
}

static struct udp_link *make_passing(struct udp_port *port, const struct link_name *name,
                                     const struct address *address)
{
    struct udp_link *link = next_passing(port);
    udp_init_link(port, link, address, name->peer, name->slot, 0);
    link->answers = UDP_ANSWERS_NO; /* An answer would not find this link. */
    return link;
}

struct link *udp_port_passing_link(struct udp_port *port, const struct gid *source,
                                   const struct gid *destination, int slot)
{
    const struct link_name name = {.self = source, .peer = destination, .slot = slot};
    const struct address *address = source_towards(port, source, destination);
    if (address == NULL) {
        return NULL;
    }
    struct link *known = link_table_find(&port->links, &name);
    if (known != NULL) {
        return known;
    }
    struct udp_link *link = find_passing(port, &name, 0);
    link = link != NULL ? link : make_passing(port, &name, address);
    INVARIANTS(udp_link_check(link));
    return &link->link;
}

struct link *udp_port_passing_route(struct udp_port *port, const struct gid *source,
                                    const struct gid *destination, uint8_t route)
{
    const struct link_name name = {.self = source, .peer = destination, .slot = LOCAL_NO_SLOT};
    const struct address *address = source_towards(port, source, destination);
    CHECK(route >= 1 && route <= NIC_ROUTES_MAX);
    if (address == NULL) {
        return NULL;
    }
    struct udp_link *link = find_passing(port, &name, route);
    if (link == NULL) {
        link = make_passing(port, &name, address);
        link->route = route;
        link->ecn = 0;
        const int cancellation = uncancelled_begin();
        udp_routes_use_port(port, link, route - 1u); /* May open a socket: rarely. */
        uncancelled_end(cancellation);
    }
    INVARIANTS(udp_link_check(link));
    return &link->link;
}
