/* SPDX-License-Identifier: BSD-2-Clause
 *
 * socket_address - addresses in the form of sockets, and in the form of all other code.
 *
 * Purpose    One way to and from 16 bytes (IPv6, or IPv4 mapped), and questions about them to the
 *            system.
 * Inputs     Addresses.
 * Outputs    A sockaddr for one socket call; whether an address is ours; the address of ours that
 *            leads to a peer.
 * Ownership  Nothing is kept.
 * Time       Each question to the system opens a socket.
 * Units      Ports in host byte order.
 * Limits     IPv4 and IPv6, without scopes.
 */
#ifndef DRIVERS_SOCKET_ADDRESS_H
#define DRIVERS_SOCKET_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/check.h"

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* A link-local address (fe80::/10) is one on the interface `scope`; others have none. */
union socket_address socket_address_of(const uint8_t ip[16], uint16_t port, uint32_t scope);
socklen_t socket_address_bytes(const union socket_address *address);
/* Its family is AF_INET or AF_INET6. */
void socket_address_ip(const union socket_address *address, uint8_t ip[16]);

/* Is it an address of this machine? False with errno 0: it is not; with another: it could not be
 * found out just now. */
MUST_USE bool address_is_local(const uint8_t ip[16]);

/* May datagrams to `to` leave from this address of ours? */
MUST_USE bool address_leads(const uint8_t from[16], const uint8_t to[16]);

/* The address that this machine would send from, as its routes say; false: there is no way,
 * and errno says why. */
MUST_USE bool address_towards(const uint8_t to[16], uint32_t scope, uint8_t from[16]);

#endif
