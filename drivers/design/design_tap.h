/* SPDX-License-Identifier: BSD-2-Clause
 *
 * design_tap - a TAP device: an interface of this machine whose other end is this process.
 *
 * Purpose    The frames of a hardware design stand on a network as they are: ARP, VLAN tags, IPv6
 *            and whatever else the design speaks by itself.
 * Inputs     Whole frames, without FCS.
 * Ownership  The caller closes the descriptor (descriptor_close). The device goes with it, unless
 *            it was there before.
 * Errors     It needs CAP_NET_ADMIN in its network namespace, or a device that root has made for
 *            this user.
 * Source     Linux, Documentation/networking/tuntap.rst.
 */
#ifndef DRIVERS_DESIGN_TAP_H
#define DRIVERS_DESIGN_TAP_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define DESIGN_TAP_NAME_BYTES IFNAMSIZ /* With the zero behind it. */

/* May an interface have this name, as it stands? */
bool design_tap_is_name(const char *name);

/* Makes the device, or takes the one that is there, and sets it up if this process may do that. The
 * name is one (design_tap_is_name). -1: a reason is in `error`. */
int design_tap_open(const char *name, char *error, size_t error_bytes);

/* False, with errno. */
bool design_tap_send(int fd, const uint8_t *frame, uint32_t bytes);

/* Returns the bytes of the next frame, which is cut at `room`; 0: none has come (EAGAIN), or
 * somebody has deleted the device (EBADFD). */
MUST_USE uint32_t design_tap_receive(int fd, uint8_t *frame, uint32_t room);

/* Frames to this process for which the device had no room since it is there. */
uint64_t design_tap_lost(const char *name);

#endif
