/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_flow - keeps what is in flight to a peer within what its receive buffer holds.
 *
 * UDP drops silently what a receiver has no room for, and UC and UD have no acknowledgements that
 * would pace them. So between nonics a probe follows every so many bytes: a packet with an opcode
 * from the range IBTA leaves to manufacturers, which others drop. The receiver answers it when its
 * turn comes; since a socket is a queue, everything sent before has then been taken in. A peer that
 * never answers is not a nonic, and is not limited here.
 */
#include <string.h>

#include "base/bytes.h"
#include "drivers/udp_port.h"
#include "transport/ibta/rc_requester.h"

#define OPCODE_PROBE  0xc0
#define OPCODE_ANSWER 0xc1
#define PROBE_BYTES   (ROCE_BTH_BYTES + 8 + ROCE_ICRC_BYTES)

/* More in flight to one peer, of all queue pairs together, than this gains nothing. */
#define FLIGHT_BYTES_MAX (2 << 20)
/* A probe or its answer is lost after this long: longer than a busy peer takes to get a core. */
#define ANSWER_NS 20000000

static uint64_t window_of(const struct udp_port *port)
{
    const uint64_t safe = udp_port_safe_bytes(port);
    return safe < FLIGHT_BYTES_MAX ? safe : FLIGHT_BYTES_MAX;
}

void udp_flow_sent(struct udp_port *port, struct udp_link *link, uint32_t bytes)
{
    link->sent += bytes + RC_PACKET_COST;
    if (link->answers != UDP_ANSWERS_NO && link->sent - link->probed >= window_of(port) / 4) {
        udp_flow_probe(port, link);
    }
}

/* A packet like any other: it may be the last, shorter segment of a call. */
static void send_control(struct udp_port *port, struct udp_link *link, uint8_t opcode,
                         uint64_t value)
{
    uint8_t bytes[ROCE_BTH_BYTES + 8] = {[0] = opcode, [2] = 0xff, [3] = 0xff};
    store_be64(bytes + ROCE_BTH_BYTES, value);
    udp_port_transmit_headers(port, link, bytes, sizeof(bytes));
}

void udp_flow_probe(struct udp_port *port, struct udp_link *link)
{
    link->probed = link->sent;
    port->counters.probes_sent++;
    send_control(port, link, OPCODE_PROBE, link->sent);
}

bool udp_link_has_room(struct udp_port *port, struct link *base, struct instant now)
{
    struct udp_link *link = CONTAINER_OF(base, struct udp_link, link);
    if (link->answers == UDP_ANSWERS_NO || link->sent - link->confirmed < window_of(port)) {
        return true;
    }
    if (link->blocked_at.ns == 0) {
        link->blocked_at = now;
    }
    if (!instant_reached(now, instant_after(link->blocked_at, ANSWER_NS))) {
        port->anyone_waiting = true;
        return false;
    }
    if (link->answers == UDP_ANSWERS_UNKNOWN) {
        link->answers = UDP_ANSWERS_NO;
    }
    port->counters.probes_lost++;
    link->confirmed = link->sent;
    link->blocked_at.ns = 0;
    return true;
}

static struct udp_link *link_to(struct udp_port *port, const struct gid *source,
                                const struct gid *destination)
{
    struct link *link = udp_port_link(port, source, destination);
    return link == NULL ? NULL : CONTAINER_OF(link, struct udp_link, link);
}

bool udp_flow_on_datagram(struct udp_port *port, const struct gid *source,
                          const struct gid *destination, const uint8_t *bytes, size_t count)
{
    if (bytes[0] != OPCODE_PROBE && bytes[0] != OPCODE_ANSWER) {
        return false;
    }
    struct udp_link *link = count == ROCE_BTH_BYTES + 8 ? link_to(port, destination, source) : NULL;
    if (link == NULL) {
        return true;
    }
    const uint64_t value = load_be64(bytes + ROCE_BTH_BYTES);
    if (bytes[0] == OPCODE_PROBE) {
        send_control(port, link, OPCODE_ANSWER, value);
        port->answering = true;
    } else if (value - link->confirmed <= link->sent - link->confirmed) {
        port->counters.probes_answered++;
        link->answers = UDP_ANSWERS_YES;
        link->confirmed = value;
        link->blocked_at.ns = 0;
    }
    return true;
}

void udp_port_unpark(struct udp_port *port, struct nic *nic, struct instant now)
{
    if (!port->anyone_waiting) {
        return;
    }
    port->anyone_waiting = false;
    for (size_t i = 0; i < COUNT_OF(port->buckets); i++) {
        for (struct udp_link *link = port->buckets[i]; link != NULL; link = link->next) {
            if (!list_empty(&link->link.parked) && udp_link_has_room(port, &link->link, now)) {
                nic_unpark(nic, &link->link.parked);
            }
        }
    }
}

bool udp_port_has_waiting(const struct udp_port *port)
{
    return port->anyone_waiting;
}
