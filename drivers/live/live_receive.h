/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_receive - from the ports into the engines.
 */
#ifndef DRIVERS_LIVE_RECEIVE_H
#define DRIVERS_LIVE_RECEIVE_H

#include "drivers/udp/udp_port.h"
#include "nic/nic.h"

struct live;

/* Takes in up to `quantum` packets of each peer. Returns how many came, without placed records,
 * which are no reason to stay awake. */
uint32_t live_receive(struct live *live, uint32_t quantum, bool look_at_udp);
/* Takes in packets from `fd`, a descriptor of an address that processes share. False: it is none of
 * these. */
bool live_receive_shared(struct live *live, int fd);
/* Takes in one packet. */
void live_arrival(struct live *live, const struct nic_frame *frame);

#endif
