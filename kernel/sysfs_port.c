/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sysfs_port - the virtual files of a port, of any device.
 */
#include "kernel/sysfs_tree.h"

static const struct sysfs_entry pkeys[] = {TEXT("0", "0xffff"), END};

static const struct sysfs_entry gid_attrs[] = {TABLE("ndevs", gid_netdevs_table),
                                               TABLE("types", gid_types_table), END};

static const struct sysfs_entry port[] = {
    VALUE("cap_mask", value_cap_mask),
    TABLE("counters", port_counters_table),
    DIRECTORY("gid_attrs", gid_attrs),
    TABLE("gids", gids_table),
    TABLE("hw_counters", hw_counters_table),
    VALUE("lid", value_lid),
    VALUE("lid_mask_count", value_lid_mask_count),
    VALUE("link_layer", value_link_layer),
    VALUE("phys_state", value_phys_state),
    DIRECTORY("pkeys", pkeys),
    VALUE("rate", value_rate),
    VALUE("sm_lid", value_sm_lid),
    VALUE("sm_sl", value_sm_sl),
    VALUE("state", value_state),
    END,
};

const struct sysfs_entry sysfs_ports[] = {DIRECTORY("1", port), END};

const struct sysfs_entry sysfs_class_mad[] = {TEXT("abi_version", "5"), END};
