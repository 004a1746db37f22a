/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_socket - a UDP socket that sends as a board does: no fragments, an IPv4 address of its own.
 *
 * Purpose    For parties of RoCEv2 that are no NIC of ours: a board of FERoCE, a hardware design.
 * Ownership  The caller closes the descriptor (descriptor_close).
 * Units      Addresses and ports in host order.
 */
#ifndef DRIVERS_UDP_SOCKET_H
#define DRIVERS_UDP_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bound to `ip` and `port`; -1, with a reason in `error`, and errno. It takes the interface's MTU
 * for the path's. Without a checksum the UDP header has 0 there, as RoCEv2 asks. */
int udp_socket_open(uint32_t ip, uint16_t port, bool has_checksum, char *error, size_t error_bytes);

#endif
