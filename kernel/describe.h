/* SPDX-License-Identifier: BSD-2-Clause
 *
 * describe - properties of the device and its port, the same for verbs, sysfs and netlink.
 *
 * Purpose    One place for each fact that a program can ask for in several ways.
 * Inputs     A NIC, as it is now.
 * Outputs    The structures of ibv_query_device and ibv_query_port.
 * Ownership  The caller's.
 * Threads    Any; not with the live lock held.
 * Units      Of infiniband/verbs.h.
 * Source     ibv_query_device(3), ibv_query_port(3).
 */
#ifndef KERNEL_DESCRIBE_H
#define KERNEL_DESCRIBE_H

#include <infiniband/verbs.h>

/* Values that files of a device have as well as its row of personality.h. */
#define HARDWARE_ROCE 1
#define FIRMWARE_EFA  "0.0.0.0"

struct live;

/* The GUID of the device, in host byte order. */
uint64_t guid_describe(const struct live *live);
void device_describe(struct live *live, struct ibv_device_attr *attr);
void port_describe(struct live *live, struct ibv_port_attr *attr);

/* The lanes that `active_width` of a port stands for. */
unsigned int port_lanes(uint8_t width);
/* The speed of a lane, in units of 100 Mb/s, and the name that Linux adds to it. 0 and "": it is
 * unknown. */
unsigned int port_lane_speed(uint8_t speed, const char **name);

#endif
