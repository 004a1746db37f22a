/* SPDX-License-Identifier: BSD-2-Clause */
#include "box/ports.h"

#include <errno.h>
#include <string.h>

#include "base/box_address.h"
#include "wire/inet.h"

/* Ports that nobody named: those that Linux gives out, or part of them. */
enum {
    FREE_FIRST = 49152,
    FREE_COUNT = 16384,
};

/* -- Addresses ----------------------------------------------------------------------------------*/

/* A claim of any IPv6 address mostly stands for IPv4's, too. */
static bool has_ipv4(const struct box_port *port)
{
    return inet_is_ipv4(port->address) || (inet_is_any(port->address) && !port->ipv6_only);
}

static bool has_ipv6(const struct box_port *port)
{
    return !inet_is_ipv4(port->address);
}

static bool same_address(const struct box_port *one, const struct box_port *other)
{
    return memcmp(one->address, other->address, sizeof(one->address)) == 0;
}

static bool is_loopback(const uint8_t address[16])
{
    static const uint8_t ipv6[16] = {[15] = 1};
    return inet_is_loopback_ipv4(address) || memcmp(address, ipv6, sizeof(ipv6)) == 0;
}

static bool same_port(const struct box_port *one, const struct box_port *other)
{
    return one->space == other->space && one->port == other->port;
}

/* -- Claims -------------------------------------------------------------------------------------*/

/* 0, or the errno with which Linux refuses the port. */
static int conflict(const struct ports_claim *claim, uint32_t host, const struct box_port *wanted)
{
    const struct box_port *port = &claim->port;
    const bool meet = (has_ipv4(port) && has_ipv4(wanted)) || (has_ipv6(port) && has_ipv6(wanted));
    if (!claim->taken || claim->at.host != host || !same_port(port, wanted) || !meet) {
        return 0;
    }
    if (inet_is_any(port->address) || inet_is_any(wanted->address)) {
        return EADDRNOTAVAIL;
    }
    return same_address(port, wanted) ? EADDRINUSE : 0;
}

static int check(const struct ports *ports, uint32_t host, const struct box_port *wanted)
{
    int failure = 0;
    for (uint32_t i = 0; i < PORTS_MAX && failure == 0; i++) {
        failure = conflict(&ports->claims[i], host, wanted);
    }
    return failure;
}

static int choose(struct ports *ports, uint32_t host, struct box_port *wanted)
{
    if (wanted->port != 0) {
        return check(ports, host, wanted);
    }
    for (uint32_t i = 0; i < FREE_COUNT; i++) {
        wanted->port = (uint16_t)(FREE_FIRST + ports->next++ % FREE_COUNT);
        if (check(ports, host, wanted) == 0) {
            return 0;
        }
    }
    return EADDRNOTAVAIL;
}

int64_t ports_claim(struct ports *ports, uint32_t nic, const struct ports_place *at,
                    struct box_port *port)
{
    const int failure = choose(ports, at->host, port);
    if (failure != 0) {
        return -failure;
    }
    for (uint32_t i = 0; i < PORTS_MAX; i++) {
        if (!ports->claims[i].taken) {
            ports->claims[i] =
                (struct ports_claim){.taken = true, .nic = nic, .at = *at, .port = *port};
            return i;
        }
    }
    return -ENOMEM;
}

static struct ports_claim *claim_of(struct ports *ports, uint32_t nic, uint64_t claim)
{
    return claim < PORTS_MAX && ports->claims[claim].taken && ports->claims[claim].nic == nic
               ? &ports->claims[claim]
               : NULL;
}

bool ports_offer(struct ports *ports, uint32_t nic, uint64_t claim)
{
    struct ports_claim *its = claim_of(ports, nic, claim);
    if (its != NULL) {
        its->offered = true;
    }
    return its != NULL;
}

bool ports_release(struct ports *ports, uint32_t nic, uint64_t claim)
{
    struct ports_claim *its = claim_of(ports, nic, claim);
    if (its != NULL) {
        its->taken = false;
    }
    return its != NULL;
}

void ports_forget(struct ports *ports, uint32_t nic)
{
    for (uint32_t i = 0; i < PORTS_MAX; i++) {
        if (ports->claims[i].nic == nic) {
            ports->claims[i].taken = false;
        }
    }
}

/* -- Finding ------------------------------------------------------------------------------------*/

static bool serves(const struct ports_claim *claim, uint32_t host, const struct box_port *wanted)
{
    const struct box_port *port = &claim->port;
    const bool has = inet_is_ipv4(wanted->address) ? has_ipv4(port) : has_ipv6(port);
    uint32_t node, function;
    if (!claim->taken || !claim->offered || !same_port(port, wanted) || !has ||
        (!inet_is_any(port->address) && !same_address(port, wanted))) {
        return false;
    }
    return is_loopback(wanted->address)
               ? claim->at.host == host
               : box_address_read(wanted->address, &node, &function) && claim->at.node == node;
}

int64_t ports_find(const struct ports *ports, uint32_t host, const struct box_port *port)
{
    for (uint32_t i = 0; i < PORTS_MAX; i++) {
        if (serves(&ports->claims[i], host, port)) {
            return ports->claims[i].nic;
        }
    }
    return -ENOENT;
}
