/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_routes - several routes to a peer: from several UDP source ports, between several addresses.
 *
 * Switches choose among equal routes by addresses and ports, so each route has a source port of its
 * own. A port takes a socket; it only sends, because everything is received at the RoCE port. These
 * sockets are a process's own even where it shares its address, because nothing comes in by them.
 * Like the others they are unconnected and forbid fragmentation, so we know the bytes that the ICRC
 * covers (docs/decisions/0005, 0026).
 */
#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/random.h"
#include "drivers/system/socket_address.h"
#include "drivers/system/system.h"
#include "drivers/udp/udp_port.h"

/* RoCE's source ports: the upper quarter of all (IBTA A17.3.2.1). */
#define SOURCE_PORT_FIRST 0xc000
#define SOURCE_PORT_SPAN  0x4000
#define SOURCE_PORT_TRIES 16

/* No peer's part has this number: the first packet that takes a route finds the pairs. */
#define NOTHING_YET UINT8_MAX
_Static_assert(NIC_ROUTES_TAUGHT_MAX < NOTHING_YET, "it is none of the peer's parts");

static struct udp_link *udp_link_of(struct link *link)
{
    return CONTAINER_OF(link, struct udp_link, link);
}

static uint32_t index_of(const struct udp_port *port, const struct gid *gid)
{
    uint32_t index = 0;
    while (!gid_equal(&port->addresses->entries[index].gid, gid)) {
        index++;
        CHECK(index < port->addresses->count);
    }
    return index;
}

/* -- Sockets ------------------------------------------------------------------------------------*/

/* With several interfaces each address sends by its own one, whatever the system's routes prefer:
 * otherwise two addresses in one subnet would send by the same interface. */
static bool is_steered(const struct address_set *set, const struct address *address)
{
    return set->words > 1 && !address->loopback;
}

static bool steer(int fd, const struct address *address)
{
    const uint32_t index = htonl(address->interface_index);
    CHECK(!address->loopback);
    return inet_is_ipv4(address->gid.bytes)
               ? setsockopt(fd, IPPROTO_IP, IP_UNICAST_IF, &index, sizeof(index)) == 0
               : setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_IF, &index, sizeof(index)) == 0;
}

/* Drops all datagrams that come: those of strangers to this port would fill a buffer that nobody
 * reads. */
static bool drop_arrivals(int fd)
{
    struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog program = {.len = 1, .filter = &none};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

static bool bind_to(int fd, const struct address *address, uint16_t port)
{
    const union socket_address at =
        socket_address_of(address->gid.bytes, port, address->interface_index);
    return system_bind(fd, &at.any, socket_address_bytes(&at)) == 0;
}

/* Binds to a random port of RoCE's range, so that switches hash two processes, and two runs,
 * differently; if many ports of it are taken, to a port of the kernel's choice. Returns 0 on
 * failure. */
static uint16_t bind_sender(int fd, const struct address *address)
{
    for (int i = 0; i < SOURCE_PORT_TRIES; i++) {
        uint16_t drawn;
        random_draw(&drawn, sizeof(drawn));
        const uint16_t port = (uint16_t)(SOURCE_PORT_FIRST + drawn % SOURCE_PORT_SPAN);
        if (bind_to(fd, address, port)) {
            return port;
        }
    }
    union socket_address at = {.any.sa_family = AF_UNSPEC};
    socklen_t bytes = sizeof(at);
    if (!bind_to(fd, address, 0) || getsockname(fd, &at.any, &bytes) != 0) {
        return 0;
    }
    return ntohs(at.any.sa_family == AF_INET ? at.v4.sin_port : at.v6.sin6_port);
}

static int make_socket(const struct address_set *set, const struct address *address)
{
    const bool ipv4 = inet_is_ipv4(address->gid.bytes);
    const int fd =
        descriptor_own(system_socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd >= 0 && is_steered(set, address) && !steer(fd, address)) {
        descriptor_close(fd);
        return -1;
    }
    return fd;
}

/* The socket for a place; NULL: there is no descriptor or no port. */
static const struct udp_sender *sender_of(struct udp_port *port, uint32_t index, uint32_t place)
{
    const struct address *address = &port->addresses->entries[index];
    struct udp_sender *sender = &port->senders[index][place];
    CHECK(place < NIC_ROUTES_MAX && address->fd >= 0); /* An address with a socket. */
    if (sender->open) {
        return sender;
    }
    const int fd = make_socket(port->addresses, address);
    if (fd < 0) {
        return NULL;
    }
    udp_forbid_fragments(fd, inet_is_ipv4(address->gid.bytes));
    const uint16_t source_port = drop_arrivals(fd) ? bind_sender(fd, address) : 0;
    if (source_port == 0) {
        descriptor_close(fd);
        return NULL;
    }
    *sender = (struct udp_sender){.fd = fd, .port = source_port, .open = true};
    return sender;
}

void udp_senders_steer(struct udp_port *port, uint32_t index)
{
    const struct address *address = &port->addresses->entries[index];
    for (uint32_t i = 0; i < NIC_ROUTES_MAX && is_steered(port->addresses, address); i++) {
        if (port->senders[index][i].open) {
            (void)steer(port->senders[index][i].fd, address);
        }
    }
}

void udp_senders_close(struct udp_port *port)
{
    for (uint32_t i = 0; i < ADDRESS_MAX; i++) {
        for (uint32_t j = 0; j < NIC_ROUTES_MAX; j++) {
            if (port->senders[i][j].open) {
                descriptor_close(port->senders[i][j].fd);
            }
        }
    }
}

void udp_senders_forget(struct udp_port *port)
{
    for (uint32_t i = 0; i < ADDRESS_MAX; i++) {
        for (uint32_t j = 0; j < NIC_ROUTES_MAX; j++) {
            port->senders[i][j] = (struct udp_sender){.fd = -1, .open = true};
        }
    }
}

/* -- Routes that the world offers ---------------------------------------------------------------*/

/* The link's pairs hold links of this port, and the links of routes go with the link. */
static void routes_check(const struct udp_link *link)
{
    const struct udp_routes *routes = link->routes;
    CHECK(routes->told != NULL && routes->pairs[0] == link);
    CHECK(routes->pair_count <= COUNT_OF(routes->pairs));
    for (uint32_t i = 1; i < routes->pair_count; i++) {
        CHECK(routes->pairs[i]->link.routes > 0);
    }
    for (uint32_t i = 0; i < NIC_ROUTES_MAX; i++) {
        const struct udp_link *const both[] = {routes->route_links[0][i],
                                               routes->route_links[1][i]};
        for (uint32_t ecn = 0; ecn < COUNT_OF(both); ecn++) {
            CHECK(both[ecn] == NULL || both[ecn]->link.first == &link->link);
            CHECK(both[ecn] == NULL || both[ecn]->ecn == (ecn == 0 ? 0 : UDP_ECT_0));
            INVARIANTS(both[ecn] == NULL ? (void)0 : udp_link_check(both[ecn]));
        }
    }
}

void udp_port_use_ports(struct udp_port *port, uint32_t ports)
{
    CHECK(ports >= 1 && ports <= NIC_ROUTES_MAX);
    port->ports = (uint8_t)ports;
}

static uint32_t datagram_bytes(const struct address *address)
{
    const uint32_t headers =
        (inet_is_ipv4(address->gid.bytes) ? INET_IPV4_BYTES : INET_IPV6_BYTES) + INET_UDP_BYTES;
    return address->interface_bytes < headers ? 0 : address->interface_bytes - headers;
}

/* The first address of its family that a word stands for; NULL: none. */
static const struct address *first_of_word(const struct address_set *set, uint32_t word, bool ipv4)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct address *address = &set->entries[i];
        if (address->word == word && inet_is_ipv4(address->gid.bytes) == ipv4) {
            return address;
        }
    }
    return NULL;
}

static void fill(const struct udp_port *port, const struct address *self, struct nic_routes *routes)
{
    routes->ports = port->ports;
    CHECK(port->ports >= 1 && port->ports <= NIC_ROUTES_MAX);
    routes->datagram_bytes = datagram_bytes(self);
    routes->grant_bytes = udp_port_safe_bytes(port);
    routes->own_count = 0;
    for (uint32_t word = 0; word < port->addresses->words; word++) {
        const struct address *other =
            word == self->word
                ? NULL
                : first_of_word(port->addresses, word, inet_is_ipv4(self->gid.bytes));
        if (other != NULL && routes->own_count < NIC_ROUTE_GIDS_MAX) {
            routes->own[routes->own_count++] = other->gid;
            routes->datagram_bytes = datagram_bytes(other) < routes->datagram_bytes
                                         ? datagram_bytes(other)
                                         : routes->datagram_bytes;
        }
    }
}

void udp_port_describe_routes(const struct udp_port *port, const struct gid *self,
                              struct nic_routes *routes)
{
    fill(port, &port->addresses->entries[index_of(port, self)], routes);
}

/* The count of bytes that probes carry begins at a random number, which nobody can guess: a peer
 * that repeats it has received a probe. */
static void count_from_anywhere(struct udp_link *link)
{
    uint64_t drawn;
    if (random_secret(&drawn, sizeof(drawn))) {
        link->sent = link->probed = link->confirmed = drawn;
        link->answers = UDP_ANSWERS_UNKNOWN;
    }
}

bool udp_port_offer_routes(struct udp_port *port, struct link *base, struct nic_routes *told)
{
    struct udp_link *link = udp_link_of(base);
    if (link->routes == NULL) {
        link->routes = calloc(1, sizeof(*link->routes));
        if (link->routes == NULL) {
            return false;
        }
        fill(port, &port->addresses->entries[index_of(port, &base->self)], told);
        link->routes->told = told;
        link->routes->taught = NOTHING_YET;
        link->routes->pairs[0] = link;
        count_from_anywhere(link);
    }
    INVARIANTS(routes_check(link));
    return link->routes->told == told;
}

void udp_routes_free(struct udp_routes *routes)
{
    for (uint32_t ecn = 0; ecn < 2 && routes != NULL; ecn++) {
        for (uint32_t i = 0; i < NIC_ROUTES_MAX; i++) {
            free(routes->route_links[ecn][i]);
        }
    }
    free(routes);
}

void udp_routes_forget_sockets(struct udp_routes *routes)
{
    for (uint32_t ecn = 0; ecn < 2 && routes != NULL; ecn++) {
        for (uint32_t i = 0; i < NIC_ROUTES_MAX; i++) {
            if (routes->route_links[ecn][i] != NULL) {
                routes->route_links[ecn][i]->fd = -1;
            }
        }
    }
}

void udp_routes_note_markable(struct udp_routes *routes, int fd)
{
    for (uint32_t ecn = 0; ecn < 2 && routes != NULL; ecn++) {
        for (uint32_t i = 0; i < NIC_ROUTES_MAX; i++) {
            if (routes->route_links[ecn][i] != NULL && routes->route_links[ecn][i]->fd == fd) {
                routes->route_links[ecn][i]->socket_ecn = UDP_ECT_0;
            }
        }
    }
}

/* Takes the kernel's number, because numbers that the NIC draws itself can be computed from keys
 * that peers got. Without one no address is challenged, and none is proven. */
void udp_port_draw(struct nic_routes *routes)
{
    uint64_t drawn;
    if (UNLIKELY(routes->random == 0) && random_secret(&drawn, sizeof(drawn))) {
        routes->random = drawn;
    }
}

/* -- Routes in use ------------------------------------------------------------------------------*/

/* Has the system a route? Nothing is sent for this. */
static bool leads_there(const struct udp_port *port, const struct nic_route *route)
{
    const struct address *address = &port->addresses->entries[index_of(port, &route->source)];
    const union socket_address to =
        socket_address_of(route->destination.bytes, ROCE_UDP_PORT, address->interface_index);
    const int fd = make_socket(port->addresses, address);
    const bool leads = fd >= 0 && bind_to(fd, address, 0) &&
                       system_connect(fd, &to.any, socket_address_bytes(&to)) == 0;
    descriptor_close(fd);
    return leads;
}

/* The link's addresses as an address vector, for nic/routes.h. */
static struct nic_av path_of(const struct udp_link *link)
{
    return (struct nic_av){.source = link->link.self, .destination = link->link.peer};
}

/* A pair of addresses is a link like any other, to a socket of the peer, whose buffer is counted.
 * The link stays as long as it is a pair. */
static struct udp_link *pair_of(struct udp_port *port, struct udp_link *link,
                                const struct nic_route *route)
{
    struct udp_link *pair =
        leads_there(port, route)
            ? udp_find_link(port, &route->source, &route->destination, link->link.slot, 0)
            : NULL;
    port->counters.routes_missed += pair == NULL;
    return pair != NULL ? pair : link;
}

static void leave_pairs(struct udp_link *link)
{
    struct udp_routes *routes = link->routes;
    for (uint32_t i = 1; i < routes->pair_count; i++) {
        INVARIANTS(CHECK(routes->pairs[i]->link.routes > 0));
        routes->pairs[i]->link.routes--;
    }
    routes->pair_count = 0;
    routes->taught = NOTHING_YET;
}

/* The link of route 0 may remember this one as the newest. */
static void forget_route_link(const struct udp_link *route_link)
{
    struct udp_routes *routes = route_link->first->routes;
    if (routes != NULL && routes->newest == route_link) {
        routes->newest = NULL;
    }
}

void udp_routes_rest(struct udp_link *link)
{
    struct udp_routes *routes = link->routes;
    for (uint32_t ecn = 0; ecn < 2 && routes != NULL; ecn++) {
        for (uint32_t i = 0; i < NIC_ROUTES_MAX; i++) {
            if (routes->route_links[ecn][i] != NULL) {
                forget_route_link(routes->route_links[ecn][i]);
                routes->route_links[ecn][i]->first = link;
            }
        }
    }
    if (routes != NULL) {
        leave_pairs(link);
    }
}

static void find_pairs(struct udp_port *port, struct udp_link *link)
{
    struct udp_routes *routes = link->routes;
    const struct nic_av av = path_of(link);
    leave_pairs(link);
    INVARIANTS(CHECK(nic_routes_pairs(routes->told) <= COUNT_OF(routes->pairs)));
    routes->pair_count = (uint8_t)nic_routes_pairs(routes->told);
    for (uint32_t i = 1; i < routes->pair_count; i++) {
        const struct nic_route route = nic_routes_at(routes->told, &av, i);
        routes->pairs[i] = pair_of(port, link, &route);
        routes->pairs[i]->link.routes++;
    }
}

/* Without a socket it leads from that which all packets of the address have. */
void udp_routes_use_port(struct udp_port *port, struct udp_link *link, uint32_t place)
{
    const struct udp_sender *sender = sender_of(port, index_of(port, &link->link.self), place);
    if (sender != NULL) {
        link->fd = sender->fd;
        link->socket_ecn = 0;
        link->flow.source_port = sender->port;
    }
    port->counters.routes_missed += sender == NULL;
}

/* Makes `route_link` lead by that route. A route that the system does not give is route 0 under
 * another number. */
static void aim_route_link(struct udp_port *port, struct udp_link *link,
                           struct udp_link *route_link, uint32_t number, bool ecn_capable)
{
    const struct nic_av av = path_of(link);
    const struct nic_route route = nic_routes_at(link->routes->told, &av, number);
    struct udp_link *pair = link->routes->pairs[route.pair];
    CHECK(route.pair < link->routes->pair_count && route.port < NIC_ROUTES_MAX);
    const uint32_t index = index_of(port, &pair->link.self);
    const struct address *address = &port->addresses->entries[index];
    const bool own_port = route.port > 0 || (pair != link && is_steered(port->addresses, address));
    udp_init_link(port, route_link, address, &pair->link.peer, pair->link.slot, 0);
    route_link->link.first = &link->link;
    route_link->first = pair;
    route_link->ecn = ecn_capable ? UDP_ECT_0 : 0;
    if (own_port) {
        udp_routes_use_port(port, route_link, route.port);
    }
    INVARIANTS(udp_link_check(route_link));
}

/* Packets of the batch refer to links, so the batch leaves before the links lead elsewhere. */
static void follow_peer(struct udp_port *port, struct udp_link *link)
{
    struct udp_routes *routes = link->routes;
    udp_port_flush(port);
    find_pairs(port, link);
    for (uint32_t ecn = 0; ecn < 2; ecn++) {
        for (uint32_t i = 0; i < NIC_ROUTES_MAX; i++) {
            if (routes->route_links[ecn][i] != NULL) {
                forget_route_link(routes->route_links[ecn][i]);
                aim_route_link(port, link, routes->route_links[ecn][i], i, ecn);
            }
        }
    }
    routes->newest = NULL;
    routes->taught = routes->told->taught;
    INVARIANTS(routes_check(link));
}

/* The link for packets that routers must not mark, though they leave from a socket that lets
 * routers mark: also for links that have no routes. Without memory these packets may be marked. */
static struct link *unmarked_link(struct udp_link *link)
{
    if (link->unmarked == NULL) {
        link->unmarked = malloc(sizeof(*link->unmarked));
        if (link->unmarked == NULL) {
            return &link->link;
        }
        *link->unmarked = *link;
        link->unmarked->ecn = 0;
        link->unmarked->routes = NULL;
        link->unmarked->unmarked = NULL;
        link->unmarked->in_flush = false;
        list_init(&link->unmarked->link.parked);
        list_init(&link->unmarked->link.waiting);
        list_init(&link->unmarked->link.member);
        INVARIANTS(udp_link_check(link->unmarked));
    }
    return &link->unmarked->link;
}

/* Follows changes of the peer's addresses, and makes a route that no packet took before. This opens
 * sockets: rarely, but under the NIC's lock. */
static void find_route(struct udp_port *port, struct udp_link *link, uint8_t route,
                       bool ecn_capable)
{
    struct udp_link **route_link = &link->routes->route_links[ecn_capable][route];
    if (link->routes->taught != link->routes->told->taught) {
        follow_peer(port, link);
    }
    if (*route_link == NULL) {
        *route_link = malloc(sizeof(**route_link));
        if (*route_link != NULL) {
            aim_route_link(port, link, *route_link, route, ecn_capable);
        }
    }
    INVARIANTS(routes_check(link));
}

struct link *udp_port_route(struct udp_port *port, struct link *base, uint8_t route,
                            enum nic_ecn ecn)
{
    struct udp_link *link = udp_link_of(base);
    struct udp_routes *routes = link->routes;
    const bool ecn_capable = ecn == NIC_ECN_CAPABLE;
    CHECK(base->kind == LINK_UDP && route < NIC_ROUTES_MAX);
    INVARIANTS(udp_link_check(link));
    /* A packet of SRD may take a link without routes, which has no marks to give. */
    if (route == 0 && (udp_link_suits(base, ecn) || (ecn_capable && routes == NULL))) {
        return base;
    }
    if (route == 0 && !ecn_capable) {
        return unmarked_link(link);
    }
    CHECK(routes != NULL && ecn != NIC_ECN_OF_PATH);
    if (UNLIKELY(routes->taught != routes->told->taught ||
                 routes->route_links[ecn_capable][route] == NULL)) {
        const int cancellation = uncancelled_begin();
        find_route(port, link, route, ecn_capable);
        uncancelled_end(cancellation);
    }
    struct udp_link *route_link = routes->route_links[ecn_capable][route];
    return route_link != NULL ? &route_link->link : base;
}

const struct inet_flow *udp_link_flow(const struct link *link)
{
    return &CONTAINER_OF_CONST(link, struct udp_link, link)->flow;
}
