/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sysfs_tree_efa - the tree of virtual files of an EFA device, which is on a bus: the files of its
 * verbs are below its PCI function, and link to its driver. There is no rdma_cm device.
 *
 * A kernel's own function of the same number is hidden; programs that see ours see no other device
 * of verbs.
 */
#include "kernel/sysfs_tree.h"

/* Function 0 of slot 31 on bus 0: by this the device is called rdmap0s31. */
#define BUS      "pci0000:00"
#define FUNCTION "0000:00:1f.0"
#define DEVICES  "../../devices/" BUS "/" FUNCTION

static const struct sysfs_entry device[] = {
    LINK("device", "../../../" FUNCTION),
    TEXT("fw_ver", FIRMWARE_EFA),
    TEXT("node_desc", LIVE_DEVICE_EFA),
    VALUE("node_guid", value_guid),
    TEXT("node_type", "7: unspecified"),
    DIRECTORY("ports", sysfs_ports),
    LINK("subsystem", "../../../../../class/infiniband"),
    VALUE("sys_image_guid", value_guid),
    END,
};

static const struct sysfs_entry uverbs[] = {
    TEXT("abi_version", STRING(UVERBS_ABI)),
    TEXT("dev", UVERBS_NUMBER),
    LINK("device", "../../../" FUNCTION),
    TEXT("ibdev", LIVE_DEVICE_EFA),
    LINK("subsystem", "../../../../../class/infiniband_verbs"),
    END,
};

static const struct sysfs_entry infiniband[] = {DIRECTORY(LIVE_DEVICE_EFA, device), END};
static const struct sysfs_entry infiniband_verbs[] = {DIRECTORY("uverbs0", uverbs), END};

/* A range of addresses, and six more: the function has none. */
#define NO_RANGE "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"

static const struct sysfs_entry function[] = {
    TEXT("class", "0x020000"), /* A network controller, as lspci calls the adapters. */
    VALUE("device", value_part_id),
    LINK("driver", "../../../bus/pci/drivers/efa"),
    TEXT("enable", "1"),
    DIRECTORY("infiniband", infiniband),
    DIRECTORY("infiniband_verbs", infiniband_verbs),
    TEXT("irq", "0"),
    VALUE("local_cpulist", value_local_cpulist),
    VALUE("local_cpus", value_local_cpus),
    TEXT("numa_node", "-1"),
    TEXT("resource", NO_RANGE NO_RANGE NO_RANGE NO_RANGE NO_RANGE NO_RANGE
         "0x0000000000000000 0x0000000000000000 0x0000000000000000"),
    TEXT("revision", "0x00"),
    LINK("subsystem", "../../../bus/pci"),
    VALUE("subsystem_device", value_part_id),
    VALUE("subsystem_vendor", value_vendor_id),
    VALUE("vendor", value_vendor_id),
    END,
};

static const struct sysfs_entry bus[] = {DIRECTORY(FUNCTION, function), END};
static const struct sysfs_entry devices[] = {SHARED(BUS, bus), END};

/* -- /sys/bus -----------------------------------------------------------------------------------*/

static const struct sysfs_entry driver[] = {LINK(FUNCTION, "../../" DEVICES), END};
static const struct sysfs_entry pci_drivers[] = {SHARED("efa", driver), END};
static const struct sysfs_entry pci_devices[] = {LINK(FUNCTION, "../" DEVICES), END};
static const struct sysfs_entry pci[] = {SHARED("devices", pci_devices),
                                         SHARED("drivers", pci_drivers), END};
static const struct sysfs_entry buses[] = {SHARED("pci", pci), END};

/* -- /sys/class ---------------------------------------------------------------------------------*/

static const struct sysfs_entry class_infiniband[] = {
    LINK(LIVE_DEVICE_EFA, DEVICES "/infiniband/" LIVE_DEVICE_EFA), END};
static const struct sysfs_entry class_verbs[] = {
    TEXT("abi_version", "6"), LINK("uverbs0", DEVICES "/infiniband_verbs/uverbs0"), END};
static const struct sysfs_entry classes[] = {
    SHARED("infiniband", class_infiniband),
    SHARED("infiniband_mad", sysfs_class_mad),
    SHARED("infiniband_verbs", class_verbs),
    END,
};

/* -- The rest -----------------------------------------------------------------------------------*/

static const struct sysfs_entry dev_infiniband[] = {DEVICE("uverbs0", UVERBS_NUMBER), END};
static const struct sysfs_entry dev[] = {SHARED("infiniband", dev_infiniband), END};
static const struct sysfs_entry sys[] = {SHARED("bus", buses), SHARED("class", classes),
                                         SHARED("devices", devices), END};
static const struct sysfs_entry root[] = {SHARED("dev", dev), SHARED("sys", sys), END};

const struct sysfs_entry sysfs_root_efa = SHARED("", root);
