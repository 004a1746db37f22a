/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sysfs_tree - the tree of virtual files of a RoCE device: where a kernel's virtual one has them.
 *
 * As there, a class holds links to the devices. A kernel's own device of the same number is hidden:
 * programs that see ours have no libibverbs to use that one with.
 */
#include "kernel/sysfs_tree.h"

/* The NIC's place on a bus, as programs expect it: a NIC made of software is near every
 * processor. */
static const struct sysfs_entry bus_device[] = {
    TEXT("device", "0x0000"),
    TEXT("enable", "1"),
    VALUE("local_cpulist", value_local_cpulist),
    VALUE("local_cpus", value_local_cpus),
    TABLE("net", netdev_table),
    TEXT("numa_node", "-1"),
    TEXT("vendor", "0x0000"),
    END,
};

static const struct sysfs_entry device[] = {
    TEXT("board_id", "nonic"),
    DIRECTORY("device", bus_device),
    TEXT("fw_ver", NONIC_VERSION),
    TEXT("hca_type", "nonic"),
    TEXT("hw_rev", STRING(HARDWARE_ROCE)),
    TEXT("node_desc", LIVE_DEVICE_ROCE),
    VALUE("node_guid", value_guid),
    TEXT("node_type", "1: CA"),
    DIRECTORY("ports", sysfs_ports),
    LINK("subsystem", "../../../../class/infiniband"),
    VALUE("sys_image_guid", value_guid),
    END,
};

static const struct sysfs_entry uverbs[] = {
    TEXT("abi_version", STRING(UVERBS_ABI)),
    TEXT("dev", UVERBS_NUMBER),
    TEXT("ibdev", LIVE_DEVICE_ROCE),
    LINK("device", "../../infiniband/" LIVE_DEVICE_ROCE "/device"),
    LINK("subsystem", "../../../../class/infiniband_verbs"),
    END,
};

static const struct sysfs_entry rdma_cm[] = {
    TEXT("abi_version", STRING(RDMA_CM_ABI)),
    TEXT("dev", RDMA_CM_NUMBER),
    LINK("subsystem", "../../../../class/misc"),
    END,
};

/* -- /sys/devices/virtual and /sys/class --------------------------------------------------------*/

static const struct sysfs_entry virtual_infiniband[] = {DIRECTORY(LIVE_DEVICE_ROCE, device), END};
static const struct sysfs_entry virtual_verbs[] = {DIRECTORY("uverbs0", uverbs), END};
static const struct sysfs_entry virtual_misc[] = {DIRECTORY("rdma_cm", rdma_cm), END};
static const struct sysfs_entry virtual_devices[] = {
    SHARED("infiniband", virtual_infiniband),
    SHARED("infiniband_verbs", virtual_verbs),
    SHARED("misc", virtual_misc),
    END,
};
static const struct sysfs_entry devices[] = {SHARED("virtual", virtual_devices), END};

static const struct sysfs_entry class_infiniband[] = {
    LINK(LIVE_DEVICE_ROCE, "../../devices/virtual/infiniband/" LIVE_DEVICE_ROCE), END};
static const struct sysfs_entry class_verbs[] = {
    TEXT("abi_version", "6"), LINK("uverbs0", "../../devices/virtual/infiniband_verbs/uverbs0"),
    END};
static const struct sysfs_entry class_misc[] = {
    LINK("rdma_cm", "../../devices/virtual/misc/rdma_cm"), END};
static const struct sysfs_entry classes[] = {
    SHARED("infiniband", class_infiniband),
    SHARED("infiniband_mad", sysfs_class_mad),
    SHARED("infiniband_verbs", class_verbs),
    SHARED("misc", class_misc),
    END,
};

/* -- The rest -----------------------------------------------------------------------------------*/

static const struct sysfs_entry dev_infiniband[] = {DEVICE("rdma_cm", RDMA_CM_NUMBER),
                                                    DEVICE("uverbs0", UVERBS_NUMBER), END};
static const struct sysfs_entry dev[] = {SHARED("infiniband", dev_infiniband), END};
static const struct sysfs_entry sys[] = {SHARED("class", classes), SHARED("devices", devices), END};
static const struct sysfs_entry root[] = {SHARED("dev", dev), SHARED("sys", sys), END};

const struct sysfs_entry sysfs_root_roce = SHARED("", root);
