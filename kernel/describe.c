/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/describe.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "kernel/personality.h"
#include "world/world.h"

uint64_t guid_describe(const struct live *live)
{
    return personality_shown()->has_guid ? live_guid(live) : 0;
}

/* Numbers of any device. */
static void describe_common(const struct live *live, const struct nic_limits *limits,
                            struct ibv_device_attr *attr)
{
    CHECK(limits->qps <= INT32_MAX && limits->regions <= INT32_MAX);
    CHECK(limits->reads <= INT32_MAX && limits->attachments <= INT32_MAX);
    CHECK(limits->cq_entries < INT32_MAX); /* ibv_create_cq takes an int, too. */
    memset(attr, 0, sizeof(*attr));
    snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", personality_shown()->firmware);
    attr->node_guid = __builtin_bswap64(guid_describe(live));
    attr->sys_image_guid = attr->node_guid;
    attr->max_mr_size = UINT64_MAX;
    attr->page_size_cap = ~UINT64_C(0xfff);
    attr->vendor_id = personality_shown()->vendor_id;
    attr->vendor_part_id = personality_shown()->vendor_part_id;
    attr->hw_ver = personality_shown()->hardware_version;
    attr->max_qp = (int)limits->qps;
    attr->max_qp_wr = (int)limits->sends_per_qp;
    attr->max_sge = (int)limits->sges;
    attr->max_cq = 1 << 16;
    attr->max_cqe = (int)limits->cq_entries;
    attr->max_mr = (int)limits->regions;
    attr->max_pd = 1 << 16;
    attr->max_pkeys = 1;
    attr->phys_port_cnt = 1;
}

static void describe_roce(const struct nic_limits *limits, struct ibv_device_attr *attr)
{
    attr->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID |
                             IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_MEM_WINDOW |
                             IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
                             IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SRQ_RESIZE |
                             (limits->xrc_srqs == 0 ? 0u : IBV_DEVICE_XRC);
    attr->max_sge_rd = (int)limits->sges;
    attr->max_qp_rd_atom = (int)limits->reads_per_qp;
    attr->max_res_rd_atom = (int)limits->reads;
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
    attr->local_ca_ack_delay = 15;
}

/* The numbers of address handles have 16 bits, of which one stands for none. */
static void describe_efa(struct ibv_device_attr *attr)
{
    attr->max_sge_rd = 1;
    attr->max_ah = UINT16_MAX;
}

void device_describe(struct live *live, struct ibv_device_attr *attr)
{
    const struct nic_limits *limits = nic_limits(live_nic(live));
    describe_common(live, limits, attr);
    switch (live_personality()) {
    case LIVE_ROCE: describe_roce(limits, attr); break;
    case LIVE_EFA: describe_efa(attr); break;
    }
}

/* -- Ports --------------------------------------------------------------------------------------*/

enum {
    LANES_4 = 2,
    LANES_8 = 4,
    EDR = 32, /* 25 Gb/s each. */
    HDR = 64  /* 50 Gb/s each. */
};

unsigned int port_lanes(uint8_t width)
{
    switch (width) {
    case 2: return 4;
    case 4: return 8;
    case 8: return 12;
    case 16: return 2;
    default: return 1;
    }
}

unsigned int port_lane_speed(uint8_t speed, const char **name)
{
    static const struct {
        uint8_t code;
        unsigned tenths;
        const char *name;
    } speeds[] = {{1, 25, " SDR"},   {2, 50, " DDR"},   {4, 100, " QDR"},  {8, 100, " FDR10"},
                  {16, 140, " FDR"}, {32, 250, " EDR"}, {64, 500, " HDR"}, {128, 1000, " NDR"}};
    for (size_t i = 0; i < COUNT_OF(speeds); i++) {
        if (speeds[i].code == speed) {
            *name = speeds[i].name;
            return speeds[i].tenths;
        }
    }
    *name = "";
    return 0;
}

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
    const bool memory = live_has_memory_wire(live);
    attr->active_width = memory ? LANES_8 : LANES_4;
    attr->active_speed = memory ? HDR : EDR;
}

/* As Linux' Soft-RoCE says it: a port that is switched off is disabled, and one without a carrier
 * polls for a peer. */
static void describe_state(const struct live *live, struct ibv_port_attr *attr)
{
    switch (live_port_state(live)) {
    case LIVE_PORT_ACTIVE:
        attr->state = IBV_PORT_ACTIVE;
        attr->phys_state = LINK_UP;
        return;
    case LIVE_PORT_POLLING: attr->phys_state = POLLING; break;
    case LIVE_PORT_DISABLED: attr->phys_state = DISABLED; break;
    }
    CHECK(attr->phys_state != 0);
    attr->state = IBV_PORT_DOWN;
}

/* As the driver says of every adapter; the longest message is that of SRD. */
static void describe_efa_port(struct live *live, struct ibv_port_attr *attr)
{
    attr->active_width = LANES_4;
    attr->active_speed = EDR;
    attr->max_msg_sz = nic_limits(live_nic(live))->srd.send_bytes;
    attr->lmc = 1;
}

static void describe_roce_port(struct live *live, struct ibv_port_attr *attr)
{
    attr->port_cap_flags = IBV_PORT_IP_BASED_GIDS;
    attr->max_msg_sz = 0x80000000u;
    attr->lid = live_lid(live);
    attr->flags = IBV_QPF_GRH_REQUIRED;
    describe_lanes(live, attr);
}

void port_describe(struct live *live, struct ibv_port_attr *attr)
{
    live_port_refresh(live);
    *attr = (struct ibv_port_attr){
        .max_mtu = IBV_MTU_4096,
        .active_mtu = (enum ibv_mtu)live_active_mtu(live),
        .gid_tbl_len = (int)personality_shown()->gid_entries,
        .pkey_tbl_len = 1,
        .max_vl_num = 1,
        .link_layer = personality_shown()->link_layer,
    };
    switch (live_personality()) {
    case LIVE_ROCE: describe_roce_port(live, attr); break;
    case LIVE_EFA: describe_efa_port(live, attr); break;
    }
    CHECK(live_gid_count(live) <= LIVE_GIDS_MAX);
    describe_state(live, attr);
}
