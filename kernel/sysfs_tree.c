/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sysfs_tree - the tree of virtual files: where a kernel's virtual RDMA device has them.
 *
 * As there, a class holds links to the devices. A kernel's own device of the same number is hidden:
 * programs that see ours have no libibverbs to use that one with.
 */
#include <stddef.h>

#include "kernel/describe.h"
#include "kernel/sysfs_values.h"

#define DIRECTORY(called, of)                                                                      \
    {                                                                                              \
        .name = called, .kind = SYSFS_DIRECTORY, .entries = of                                     \
    }
#define SHARED(called, of)                                                                         \
    {                                                                                              \
        .name = called, .kind = SYSFS_DIRECTORY, .shared = true, .entries = of                     \
    }
#define TABLE(called, of)                                                                          \
    {                                                                                              \
        .name = called, .kind = SYSFS_DIRECTORY, .table = &of                                      \
    }
#define VALUE(called, function)                                                                    \
    {                                                                                              \
        .name = called, .kind = SYSFS_FILE, .value = function                                      \
    }
#define TEXT(called, content)                                                                      \
    {                                                                                              \
        .name = called, .kind = SYSFS_FILE, .text = content "\n"                                   \
    }
#define LINK(called, target)                                                                       \
    {                                                                                              \
        .name = called, .kind = SYSFS_LINK, .text = target                                         \
    }
#define DEVICE(called, number)                                                                     \
    {                                                                                              \
        .name = called, .kind = SYSFS_DEVICE, .text = number                                       \
    }
#define WRITTEN(number) #number
#define STRING(number)  WRITTEN(number)
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

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
    TEXT("link_layer", "Ethernet"),
    VALUE("phys_state", value_phys_state),
    DIRECTORY("pkeys", pkeys),
    VALUE("rate", value_rate),
    VALUE("sm_lid", value_sm_lid),
    VALUE("sm_sl", value_sm_sl),
    VALUE("state", value_state),
    END,
};

static const struct sysfs_entry ports[] = {DIRECTORY("1", port), END};

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
    TEXT("hw_rev", STRING(HARDWARE_VERSION)),
    TEXT("node_desc", DEVICE_NAME),
    VALUE("node_guid", value_guid),
    TEXT("node_type", "1: CA"),
    DIRECTORY("ports", ports),
    LINK("subsystem", "../../../../class/infiniband"),
    VALUE("sys_image_guid", value_guid),
    END,
};

static const struct sysfs_entry uverbs[] = {
    TEXT("abi_version", STRING(UVERBS_ABI)),
    TEXT("dev", UVERBS_NUMBER),
    TEXT("ibdev", DEVICE_NAME),
    LINK("device", "../../infiniband/" DEVICE_NAME "/device"),
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

static const struct sysfs_entry virtual_infiniband[] = {DIRECTORY(DEVICE_NAME, device), END};
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
    LINK(DEVICE_NAME, "../../devices/virtual/infiniband/" DEVICE_NAME), END};
/* Management datagrams have no device here: there is the version that readers of the files above
 * (libibumad) look for, and nothing to open. */
static const struct sysfs_entry class_mad[] = {TEXT("abi_version", "5"), END};
static const struct sysfs_entry class_verbs[] = {
    TEXT("abi_version", "6"), LINK("uverbs0", "../../devices/virtual/infiniband_verbs/uverbs0"),
    END};
static const struct sysfs_entry class_misc[] = {
    LINK("rdma_cm", "../../devices/virtual/misc/rdma_cm"), END};
static const struct sysfs_entry classes[] = {
    SHARED("infiniband", class_infiniband),
    SHARED("infiniband_mad", class_mad),
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

const struct sysfs_entry sysfs_root = SHARED("", root);
