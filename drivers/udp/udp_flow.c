/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_flow - a limit for the bytes in flight to a peer: those that its receive buffer holds.
 *
 * UDP silently drops datagrams for which a receiver has no room, and UC and UD have no
 * acknowledgements that would pace them. So between nonics a probe is sent after a part of the
 * window (a quarter, or a sixteenth): a packet with an opcode from the range that IBTA leaves to
 * manufacturers (wire/roce.h), which other NICs drop. The receiver answers the probe when its turn
 * comes. Since a socket is a queue, all packets that were sent before have then been taken in. A
 * peer that never answers is not a nonic, and is not limited here. Where several processes share an
 * address, each is a peer, with a socket and a link of its own. Packets from several ports
 * (udp_routes.c) arrive at one socket, so they are counted together. A probe takes the route of the
 * packet in front of it, since another route may be dead; an answer takes the route of the newest
 * packet.
 */
#include "drivers/system/local_socket.h"
#include "drivers/udp/udp_port.h"

#define SOME_QPN 2

/* The most bytes in flight to one peer, of all queue pairs together: more would be no gain, unless
 * the round trip is long. */
#define FLIGHT_BYTES_MAX (2 << 20)
/* After ANSWER_NS, a probe or its answer counts as lost: a busy peer gets a core sooner. Until then
 * another probe is sent each AGAIN_NS, because each may be lost, or its route dead. */
#define ANSWER_NS 20000000
#define AGAIN_NS  2000000

/* Windows in a row without an answer, 5 s: nobody seems to be there. */
#define UNANSWERED_MAX 250

/* Bytes are counted at the link that has the window. A link without room asks no earlier than the
 * room ended. */
static void udp_flow_check(const struct udp_link *first)
{
    CHECK(first->first == first);
    CHECK(first->answers <= UDP_ANSWERS_NO);
    /* Both were sent: the numbers begin again behind the largest. */
    CHECK(first->sent - first->confirmed <= INT64_MAX && first->sent - first->probed <= INT64_MAX);
    CHECK(first->unanswered <= UNANSWERED_MAX);
    CHECK(first->blocked_at.ns == 0 || first->asked_at.ns >= first->blocked_at.ns);
}

bool udp_link_answers(const struct link *base)
{
    const struct udp_link *link = CONTAINER_OF_CONST(base, struct udp_link, link);
    return link->answers == UDP_ANSWERS_YES && link->unanswered < UNANSWERED_MAX;
}

static bool is_far(const struct udp_link *first)
{
    return first->routes != NULL && first->routes->told->far;
}

static uint64_t window_of(const struct udp_port *port, const struct udp_link *first)
{
    const uint64_t safe = udp_port_safe_bytes(port);
    return is_far(first) || safe < FLIGHT_BYTES_MAX ? safe : FLIGHT_BYTES_MAX;
}

/* The bytes after which a probe is sent. After fewer bytes, more of the window would be in use, but
 * more probes would be sent. */
static uint64_t asked_after(const struct udp_port *port, const struct udp_link *first)
{
    return window_of(port, first) / (is_far(first) ? 16 : 4);
}

void udp_flow_sent(struct udp_port *port, struct udp_link *link, uint32_t bytes)
{
    struct udp_link *first = link->first;
    INVARIANTS(udp_flow_check(first));
    first->sent += bytes + UDP_PACKET_COST;
    if (UNLIKELY(first->routes != NULL)) {
        first->routes->newest = link;
    }
    if (first->answers != UDP_ANSWERS_NO &&
        first->sent - first->probed >= asked_after(port, first)) {
        udp_flow_probe(port, link);
    }
}

static int own_slot(const struct udp_port *port)
{
    return port->addresses->shared ? (int)port->addresses->slot : LOCAL_NO_SLOT;
}

static int slot_of(uint16_t slot)
{
    return slot < SHARE_SLOTS ? slot : LOCAL_NO_SLOT;
}

/* The probe is a packet like any other: it may be the last, shorter segment of a call. */
static void send_probe(struct udp_port *port, struct udp_link *link, uint8_t opcode, uint64_t sent,
                       int link_slot)
{
    uint8_t bytes[ROCE_PROBE_BYTES];
    struct roce_probe probe = {.opcode = opcode,
                               .sent = sent,
                               .link_slot = (uint16_t)link_slot,
                               .sender_slot = (uint16_t)own_slot(port)};
    if (link->link.slot != LOCAL_NO_SLOT) {
        /* It names some queue pair of the process, which leads it to the process's socket. */
        probe.destination_qpn = (uint32_t)link->link.slot * SHARE_QPN_SPAN + SOME_QPN;
    }
    roce_probe_encode(&probe, bytes);
    udp_port_transmit_headers(port, link, bytes, sizeof(bytes));
}

void udp_flow_probe(struct udp_port *port, struct udp_link *link)
{
    struct udp_link *first = link->first;
    INVARIANTS(udp_flow_check(first));
    first->probed = first->sent;
    port->counters.probes_sent++;
    send_probe(port, link, ROCE_OPCODE_PROBE, first->sent, first->link.slot);
}

/* The route of the newest packet between its addresses: packets by another route may be lost for
 * ever, and blocks leave a route that is dead. */
static struct udp_link *as_of_late(struct udp_link *link)
{
    return LIKELY(link->routes == NULL) || link->routes->newest == NULL ? link
                                                                        : link->routes->newest;
}

/* Is it still worth while to wait for an answer? */
static bool waits(struct udp_port *port, struct udp_link *link, struct instant now)
{
    if (link->blocked_at.ns == 0) {
        link->blocked_at = now;
        link->asked_at = now;
    }
    if (instant_reached(now, instant_after(link->blocked_at, ANSWER_NS))) {
        return false;
    }
    if (instant_reached(now, instant_after(link->asked_at, AGAIN_NS))) {
        link->asked_at = now;
        udp_flow_probe(port, as_of_late(link));
    }
    return true;
}

static bool has_room(struct udp_port *port, struct udp_link *link, struct instant now)
{
    if (link->answers == UDP_ANSWERS_NO || link->sent - link->confirmed < window_of(port, link)) {
        return true;
    }
    if (waits(port, link, now)) {
        return false;
    }
    if (link->answers == UDP_ANSWERS_UNKNOWN) {
        link->answers = UDP_ANSWERS_NO;
    }
    port->counters.probes_lost++;
    if (link->unanswered < UNANSWERED_MAX) {
        link->unanswered++;
    }
    link->confirmed = link->sent;
    link->blocked_at.ns = 0;
    INVARIANTS(udp_flow_check(link));
    return true;
}

/* We do not know yet which route the next packet takes, so each of the peer's sockets has to have
 * room. A link with a stream of blocks sends in both directions, if only answers: so both ends call
 * this function. */
static bool others_have_room(struct udp_port *port, const struct udp_routes *routes,
                             struct instant now)
{
    bool room = true;
    if (routes->told->blocks) {
        udp_port_observe(port);
        udp_port_draw(routes->told);
    }
    if (UNLIKELY(routes->told->doubts)) {
        routes->told->doubts = false;
        udp_flow_probe(port, as_of_late(routes->pairs[0]));
    }
    for (uint32_t i = 1; i < routes->pair_count && room; i++) {
        room = has_room(port, routes->pairs[i], now);
    }
    return room;
}

bool udp_link_has_room(struct udp_port *port, struct link *base, struct instant now)
{
    struct udp_link *link = CONTAINER_OF(base, struct udp_link, link);
    INVARIANTS(udp_flow_check(link->first));
    if (UNLIKELY(port->blocked)) {
        return false;
    }
    return has_room(port, link, now) &&
           (LIKELY(link->routes == NULL) || others_have_room(port, link->routes, now));
}

/* Each probe is answered and then forgotten: anybody may send one, with any source address and
 * slot. */
static void on_probe(struct udp_port *port, const struct gid *peer, const struct gid *self,
                     const struct roce_probe *probe)
{
    struct link *link = udp_port_passing_link(port, self, peer, slot_of(probe->sender_slot));
    if (link != NULL) {
        send_probe(port, as_of_late(CONTAINER_OF(link, struct udp_link, link)), ROCE_OPCODE_ANSWER,
                   probe->sent, slot_of(probe->link_slot));
        port->answering = true;
    }
}

static void on_answer(struct udp_port *port, const struct gid *peer, const struct gid *self,
                      const struct roce_probe *answer)
{
    struct link *base = udp_port_known_link(port, self, peer, slot_of(answer->link_slot));
    if (base == NULL) {
        return;
    }
    struct udp_link *link = CONTAINER_OF(base, struct udp_link, link);
    INVARIANTS(udp_flow_check(link));
    if (answer->sent - link->confirmed <= link->sent - link->confirmed) {
        port->counters.probes_answered++;
        link->answers = UDP_ANSWERS_YES;
        link->unanswered = 0;
        link->confirmed = answer->sent;
        link->blocked_at.ns = 0;
    }
}

bool udp_flow_on_datagram(struct udp_port *port, const struct gid *source,
                          const struct gid *destination, const uint8_t *bytes, size_t count)
{
    struct roce_probe probe;
    if (bytes[0] != ROCE_OPCODE_PROBE && bytes[0] != ROCE_OPCODE_ANSWER) {
        return false;
    }
    if (roce_probe_decode(bytes, count, &probe)) {
        if (probe.opcode == ROCE_OPCODE_PROBE) {
            on_probe(port, source, destination, &probe);
        } else {
            on_answer(port, source, destination, &probe);
        }
    }
    return true;
}

bool udp_port_has_waiting(const struct udp_port *port)
{
    return port->blocked;
}
