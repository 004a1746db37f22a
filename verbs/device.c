/* SPDX-License-Identifier: BSD-2-Clause
 *
 * device - the list of devices, and what a device can do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/address.h"
#include "verbs/internal.h"
#include "verbs/newer.h"

/* Provider libraries look behind the public struct for their own tables: there is nothing of theirs
 * there, but memory there must be. */
static struct {
    struct ibv_device ibv;
    uint8_t behind[4096];
} device = {
    .ibv = {.node_type = IBV_NODE_CA,
            .transport_type = IBV_TRANSPORT_IB,
            .name = DEVICE_NAME,
            .dev_name = "uverbs0",
            .dev_path = "/sys/class/infiniband_verbs/uverbs0",
            .ibdev_path = "/sys/class/infiniband/" DEVICE_NAME},
};

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
    if (count != NULL) {
        *count = 0;
    }
    struct ibv_device **list = calloc(2, sizeof(*list));
    if (list == NULL) {
        return fail(ENOMEM);
    }
    const bool here = process_live() != NULL;
    if (!here && errno != ENODEV) {
        const int reason = errno;
        free(list);
        return fail(reason);
    }
    if (here) {
        list[0] = &device.ibv;
    }
    if (count != NULL) {
        *count = here ? 1 : 0;
        initialised(count, sizeof(*count));
    }
    return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *ibv)
{
    return ibv->name;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *ibv)
{
    (void)ibv;
    struct live *live = process_live();
    return live == NULL ? 0 : __builtin_bswap64(live_guid(live));
}

EXPORT int ibv_get_device_index(struct ibv_device *ibv)
{
    (void)ibv;
    return 0;
}

/* -- What it can do -----------------------------------------------------------------------------*/

/* Nobody's: the number Soft-RoCE goes by, too. */
#define VENDOR_ID 0xffffff

void device_describe(struct live *live, struct ibv_device_attr *attr)
{
    const struct nic_limits *limits = nic_limits(live_nic(live));
    memset(attr, 0, sizeof(*attr));
    snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", NONIC_VERSION);
    attr->node_guid = __builtin_bswap64(live_guid(live));
    attr->sys_image_guid = attr->node_guid;
    attr->max_mr_size = UINT64_MAX;
    attr->vendor_id = VENDOR_ID;
    attr->hw_ver = HARDWARE_VERSION;
    attr->page_size_cap = ~UINT64_C(0xfff);
    attr->max_qp = (int)limits->qps;
    attr->max_qp_wr = (int)limits->sends_per_qp;
    attr->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID |
                             IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_MEM_WINDOW |
                             IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
                             IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC;
    attr->max_sge = (int)limits->sges;
    attr->max_sge_rd = (int)limits->sges;
    attr->max_cq = 1 << 16;
    attr->max_cqe = (int)limits->cq_entries;
    attr->max_mr = (int)limits->regions;
    attr->max_pd = 1 << 16;
    attr->max_qp_rd_atom = (int)limits->reads_per_qp;
    attr->max_res_rd_atom = (int)(limits->reads_per_qp * limits->qps);
    attr->max_qp_init_rd_atom = (int)limits->reads_per_qp;
    /* Our atomics are even atomic with the CPU's own. We report IBV_ATOMIC_HCA all the same, as
     * every real NIC does: UCX expects it. */
    attr->atomic_cap = IBV_ATOMIC_HCA;
    attr->max_mw = (int)limits->regions;
    attr->max_mcast_grp = (int)limits->groups;
    attr->max_mcast_qp_attach = (int)limits->attachments;
    attr->max_total_mcast_qp_attach = (int)limits->attachments;
    attr->max_ah = 1 << 20;
    attr->max_srq = 1 << 16;
    attr->max_srq_wr = (int)limits->receives_per_srq;
    attr->max_srq_sge = (int)limits->sges;
    attr->max_pkeys = 1;
    attr->local_ca_ack_delay = 15;
    attr->phys_port_cnt = 1;
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    device_describe(live_of(context), attr);
    initialised(attr, sizeof(*attr));
    return 0;
}

int device_query_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                    struct ibv_device_attr_ex *attr, size_t attr_bytes)
{
    if (input != NULL && input->comp_mask != 0) {
        return EINVAL;
    }
    if (attr_bytes < sizeof(attr->orig_attr)) {
        return EINVAL;
    }
    struct ibv_device_attr_ex full = {0};
    device_describe(live_of(context), &full.orig_attr);
    full.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    full.odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
                                                   IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
                                                   IBV_ODP_SUPPORT_ATOMIC;
    full.odp_caps.per_transport_caps.uc_odp_caps =
        IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE;
    full.odp_caps.per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
    full.odp_caps.per_transport_caps.rc_odp_caps |= IBV_ODP_SUPPORT_SRQ_RECV | ODP_SUPPORT_FLUSH;
    full.xrc_odp_caps = full.odp_caps.per_transport_caps.rc_odp_caps;
    full.odp_caps.per_transport_caps.rc_odp_caps |= ODP_SUPPORT_ATOMIC_WRITE;
    full.max_dm_size = DM_BYTES_MAX;
    full.completion_timestamp_mask = UINT64_MAX;
    full.hca_core_clock = 1000000; /* kHz: timestamps count nanoseconds. */
    full.device_cap_flags_ex =
        full.orig_attr.device_cap_flags | DEVICE_FLUSH_GLOBAL | DEVICE_FLUSH_PERSISTENT;
    full.phys_port_cnt_ex = 1;
    memset(attr, 0, attr_bytes);
    memcpy(attr, &full, attr_bytes < sizeof(full) ? attr_bytes : sizeof(full));
    initialised(attr, attr_bytes);
    return 0;
}

/* -- Ports --------------------------------------------------------------------------------------*/

_Static_assert(GID_TABLE_ENTRIES >= ADDRESS_MAX, "every address has an entry");

enum {
    LANES_4 = 2,
    LANES_8 = 4,
    EDR = 32, /* 25 Gb/s each. */
    HDR = 64  /* 50 Gb/s each. */
};

/* Physical states (PortInfo, IBTA 14.2.5.6), which verbs.h has no names for. */
enum {
    POLLING = 2,
    DISABLED = 3,
    LINK_UP = 5,
};

/* A port by what carries its packets: programs choose by it how to send what. Local peers share no
 * link, but each two of them move some 10 GB/s; UCX divides what it reads here by the processes of
 * the machine. It would take NDR for a port of two paths, and read by two queue pairs at once. */
static void describe_lanes(const struct live *live, struct ibv_port_attr *attr)
{
    struct live_ports ports;
    live_describe_ports(live, &ports);
    attr->active_width = ports.shm ? LANES_8 : LANES_4;
    attr->active_speed = ports.shm ? HDR : EDR;
}

/* As Linux' Soft-RoCE says it: a port that is switched off is disabled, and one without a carrier
 * polls for a peer. */
static void describe_state(const struct live *live, struct ibv_port_attr *attr)
{
    switch (live_port_state(live)) {
    case INTERFACES_PORT_IS_ACTIVE:
        attr->state = IBV_PORT_ACTIVE;
        attr->phys_state = LINK_UP;
        return;
    case INTERFACES_PORT_POLLING: attr->phys_state = POLLING; break;
    case INTERFACES_PORT_DISABLED: attr->phys_state = DISABLED; break;
    }
    attr->state = IBV_PORT_DOWN;
}

void port_describe(struct live *live, struct ibv_port_attr *attr)
{
    live_port_refresh(live);
    *attr = (struct ibv_port_attr){
        .max_mtu = IBV_MTU_4096,
        .active_mtu = (enum ibv_mtu)live_active_mtu(live),
        .gid_tbl_len = GID_TABLE_ENTRIES,
        .port_cap_flags = IBV_PORT_IP_BASED_GIDS,
        .max_msg_sz = 0x80000000u,
        .pkey_tbl_len = 1,
        .lid = live_lid(live),
        .max_vl_num = 1,
        .link_layer = IBV_LINK_LAYER_ETHERNET,
        .flags = IBV_QPF_GRH_REQUIRED,
    };
    describe_state(live, attr);
    describe_lanes(live, attr);
}

int port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
               size_t attr_bytes)
{
    if (port != 1) {
        return EINVAL;
    }
    struct port_attr_49 full = {0};
    port_describe(live_of(context), &full.attr);
    full.active_speed_ex = full.attr.active_speed;
    memset(attr, 0, attr_bytes);
    memcpy(attr, &full, attr_bytes < sizeof(full) ? attr_bytes : sizeof(full));
    initialised(attr, attr_bytes);
    return 0;
}

#undef ibv_query_port
/* The exported symbol is of programs whose struct ended before `port_cap_flags2`. */
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port,
                          struct _compat_ibv_port_attr *attr)
{
    return port_query(context, port, (struct ibv_port_attr *)(void *)attr,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

EXPORT int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
    if (port != 1) {
        return EINVAL;
    }
    struct ibv_port_attr attr;
    port_describe(live_of(context), &attr);
    const unsigned lanes = attr.active_width == LANES_8 ? 8 : 4;
    const unsigned lane_gbps = attr.active_speed == HDR ? 50 : 25;
    *speed = (uint64_t)lanes * lane_gbps * 10;
    initialised(speed, sizeof(*speed));
    return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    (void)context;
    if (port != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = 0xffff;
    initialised(pkey, sizeof(*pkey));
    return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    (void)context;
    if (port != 1 || pkey != 0xffff) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

/* -- GIDs ---------------------------------------------------------------------------------------*/

static bool in_gid_table(uint32_t port, uint32_t index)
{
    return port == 1 && index < GID_TABLE_ENTRIES;
}

/* False: not in the table, or an empty entry. */
static bool find_gid(struct ibv_context *context, uint32_t port, uint32_t index,
                     struct live_gid *found)
{
    struct live *live = live_of(context);
    live_port_refresh(live);
    return port == 1 && live_gid(live, index, found);
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    if (index < 0 || !in_gid_table(port, (uint32_t)index)) {
        errno = EINVAL;
        return -1;
    }
    struct live_gid found;
    *gid = (union ibv_gid){0};
    if (find_gid(context, port, (uint32_t)index, &found)) {
        memcpy(gid->raw, found.gid.bytes, sizeof(gid->raw));
    }
    initialised(gid, sizeof(*gid));
    return 0;
}

static void fill_entry(const struct live_gid *found, uint32_t index, struct ibv_gid_entry *entry,
                       size_t entry_bytes)
{
    memset(entry, 0, entry_bytes);
    *entry = (struct ibv_gid_entry){.gid_index = index,
                                    .port_num = 1,
                                    .gid_type = IBV_GID_TYPE_ROCE_V2,
                                    .ndev_ifindex = found->interface_index};
    memcpy(entry->gid.raw, found->gid.bytes, sizeof(entry->gid.raw));
    initialised(entry, entry_bytes);
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                             struct ibv_gid_entry *entry, uint32_t flags, size_t entry_bytes)
{
    if (flags != 0 || entry_bytes < sizeof(*entry)) {
        return flags != 0 ? EOPNOTSUPP : EINVAL;
    }
    struct live_gid found;
    if (!find_gid(context, port, index, &found)) {
        return in_gid_table(port, index) ? ENODATA : EINVAL;
    }
    fill_entry(&found, index, entry, entry_bytes);
    return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                    size_t max_entries, uint32_t flags, size_t entry_bytes)
{
    struct live *live = live_of(context);
    struct live_gid found;
    size_t count = 0;
    if (flags != 0) {
        return -EOPNOTSUPP;
    }
    if (entry_bytes < sizeof(*entries)) {
        return -EINVAL;
    }
    live_port_refresh(live);
    for (uint32_t i = 0; i < live_gid_count(live); i++) {
        if (!live_gid(live, i, &found)) {
            continue;
        }
        if (count == max_entries) {
            return -EINVAL;
        }
        uint8_t *at = (uint8_t *)entries + count++ * entry_bytes;
        fill_entry(&found, i, (struct ibv_gid_entry *)(void *)at, entry_bytes);
    }
    return (ssize_t)count;
}

/* Sysfs numbering: 0 is RoCE v1, 1 is RoCE v2. */
int gid_query_type(struct ibv_context *context, uint8_t port, unsigned int index,
                   unsigned int *type)
{
    if (!in_gid_table(port, index)) {
        errno = EINVAL;
        return -1;
    }
    /* What sysfs says of an empty entry counts as a GID of the first kind. */
    struct live_gid found;
    *type = find_gid(context, port, index, &found) ? 1 : 0;
    initialised(type, sizeof(*type));
    return 0;
}
