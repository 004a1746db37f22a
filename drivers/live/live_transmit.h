/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_transmit - from the engines to the ports.
 */
#ifndef DRIVERS_LIVE_TRANSMIT_H
#define DRIVERS_LIVE_TRANSMIT_H

#include "nic/nic.h"
#include "wire/cm.h"

struct live;

/* Sends the packets that are ready, as far as links have room. Returns how many left. */
uint32_t live_transmit(struct live *live);
/* Transmits a management datagram to the peer's QP 1. */
void live_transmit_mad(struct live *live, const struct nic_av *av, const uint8_t mad[CM_MAD_BYTES]);

#endif
