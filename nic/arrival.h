/* SPDX-License-Identifier: BSD-2-Clause
 *
 * arrival - a frame that was decoded: what the NIC's engines judge.
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
    bool placed; /* As the frame says; it is believed of an RC WRITE or READ request only. */
};

#endif
