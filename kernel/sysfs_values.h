/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sysfs_values - the contents of the virtual files of sysfs_tree.c, from the process's NIC.
 */
#ifndef KERNEL_SYSFS_VALUES_H
#define KERNEL_SYSFS_VALUES_H

#include "kernel/sysfs.h"

#define UVERBS_NUMBER  "231:192"
#define RDMA_CM_NUMBER "10:123"
#define UVERBS_ABI     1
#define RDMA_CM_ABI    4

bool value_vendor_id(char value[SYSFS_VALUE_BYTES]);
bool value_part_id(char value[SYSFS_VALUE_BYTES]);
bool value_link_layer(char value[SYSFS_VALUE_BYTES]);
bool value_guid(char value[SYSFS_VALUE_BYTES]);
bool value_state(char value[SYSFS_VALUE_BYTES]);
bool value_phys_state(char value[SYSFS_VALUE_BYTES]);
bool value_rate(char value[SYSFS_VALUE_BYTES]);
bool value_lid(char value[SYSFS_VALUE_BYTES]);
bool value_sm_lid(char value[SYSFS_VALUE_BYTES]);
bool value_sm_sl(char value[SYSFS_VALUE_BYTES]);
bool value_lid_mask_count(char value[SYSFS_VALUE_BYTES]);
bool value_cap_mask(char value[SYSFS_VALUE_BYTES]);
bool value_local_cpulist(char value[SYSFS_VALUE_BYTES]);
bool value_local_cpus(char value[SYSFS_VALUE_BYTES]);

/* Numbered entries, one for each GID. */
extern const struct sysfs_table gids_table, gid_types_table, gid_netdevs_table;
/* The network interface behind the GIDs. */
extern const struct sysfs_table netdev_table;
extern const struct sysfs_table port_counters_table, hw_counters_table;

#endif
