/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_packet - one packet into a port, or as bytes.
 */
#ifndef DRIVERS_LIVE_PACKET_H
#define DRIVERS_LIVE_PACKET_H

#include "drivers/link.h"
#include "nic/nic.h"

struct live;

MUST_USE bool live_has_room(struct live *live, struct link *link);
/* Transmits a packet, which is not done directly. False: its payload is not there. */
MUST_USE bool live_transmit_packet(struct live *live, struct link *link,
                                   const struct nic_departure *departure);
/* Transmits a packet as bytes, from the BTH to an ICRC for identification 0. */
void live_transmit_raw(struct live *live, struct link *link, struct inet_variant variant,
                       const uint8_t *bytes, uint32_t count);
/* Writes a whole departure as such bytes, and returns how many there are. 0: its payload is not
 * there. */
MUST_USE uint32_t live_serialize(const struct link *link, const struct nic_departure *departure,
                                 uint8_t *bytes);
/* Sends all packets that were transmitted. */
void live_flush_ports(struct live *live);
/* The addresses and ports of packets that leave by that link: each route over UDP has its own. */
MUST_USE struct inet_flow live_flow_of(const struct link *link, const struct nic_av *av);
/* Adds pads and ICRC behind `count` bytes from the BTH on. Returns how many there are then. */
MUST_USE uint32_t live_seal(const struct link *link, const struct nic_av *av, uint8_t *bytes,
                            size_t count, size_t pad_bytes);

#endif
