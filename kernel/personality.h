/* SPDX-License-Identifier: BSD-2-Clause
 *
 * personality - what differs between the kinds of NIC that programs may see (`nonic run --nic`): a
 * RoCE device, or an EFA device (Elastic Fabric Adapter).
 *
 * Purpose    One table of what is known before there is a NIC: names and numbers. Its files are
 *            trees of their own (sysfs_tree.h); describe.h has what a NIC decides.
 * Inputs     What the environment names (live_personality).
 * Outputs    A row, the same for the life of a process.
 * Ownership  Static.
 * Threads    Any.
 * Source     Linux Documentation/ABI/stable/sysfs-class-infiniband; for EFA what its devices and
 *            its driver say (docs/efa.md).
 */
#ifndef KERNEL_PERSONALITY_H
#define KERNEL_PERSONALITY_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "nic/counters.h"

/* A counter of a port as a driver names it: a sum of ours. */
struct named_counter {
    const char *name;
    enum nic_counter first, last;
};

struct personality {
    const char *device_name;
    const char *device_folder; /* Where its files are: "/sys/class/infiniband/NAME". */
    const char *firmware;
    const char *protocol; /* As netlink names it; NULL: it names none. */
    uint32_t vendor_id, vendor_part_id, hardware_version;
    enum ibv_node_type node_type;
    enum ibv_transport_type transport_type;
    uint8_t link_layer; /* IBV_LINK_LAYER_... */
    const char *link_layer_name;
    enum ibv_gid_type gid_type;
    const char *gid_type_name;
    /* The entries of the GID table, of which those behind the last address are empty. */
    uint32_t gid_entries;
    bool has_guid;       /* False: all GUIDs are 0. */
    bool has_interfaces; /* Programs are told which network interface is behind a GID. */
    bool has_cm_device;  /* There is an rdma_cm device, by which librdmacm connects. */
    /* By the driver's names. NULL: all that the NIC counts, by its own. */
    const struct named_counter *counters;
    size_t counter_count;
};

const struct personality *personality_shown(void);

/* The counters of the port: how many, and each. */
uint32_t counters_described(void);
struct named_counter counter_described(uint32_t index);

#endif
