/* SPDX-License-Identifier: BSD-2-Clause
 *
 * arrival - a decoded packet with its addresses, for the NIC's engines, which judge it.
 */
#ifndef NIC_ARRIVAL_H
#define NIC_ARRIVAL_H

#include "nic/types.h"
#include "wire/roce.h"

struct nic_arrival {
    struct roce_packet packet;
    struct gid source, destination;
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint32_t flow_label;
    bool placed; /* As nic_frame.placed; believed only of an RC WRITE or READ request. */
};

#endif
