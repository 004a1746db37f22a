/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/personality.h"

#include "base/check.h"
#include "kernel/describe.h"
#include "world/world.h"

/* Nobody's: the number Soft-RoCE goes by, too. */
#define VENDOR_NOBODY 0xffffff

/* The numbers of its bus; of the second generation, since perftest posts to a first one by an older
 * call, which has no READ. */
#define VENDOR_AMAZON 0x1d0f
#define PART_EFA      0xefa1
#define HARDWARE_EFA  0xefa0

/* The driver's names of what is counted here, too. Everything that is dropped is one number there;
 * `nonic stat` and --stats have a reason for each. */
#define ONE(name, counter)                                                                         \
    {                                                                                              \
        name, COUNTER_##counter, COUNTER_##counter                                                 \
    }

static const struct named_counter efa_counters[] = {
    ONE("tx_bytes", sent_bytes),
    ONE("tx_pkts", sent_pkts),
    ONE("rx_bytes", rcvd_bytes),
    ONE("rx_pkts", rcvd_pkts),
    {"rx_drops", COUNTER_drop_short, COUNTER_drop_srd_flood},
    ONE("send_bytes", srd_send_bytes),
    ONE("send_wrs", rdma_sends),
    ONE("recv_bytes", srd_recv_bytes),
    ONE("recv_wrs", rdma_recvs),
    ONE("rdma_read_wrs", srd_rdma_read_wrs),
    ONE("rdma_read_bytes", srd_rdma_read_bytes),
    ONE("rdma_read_wr_err", srd_rdma_read_wr_err),
    ONE("rdma_read_resp_bytes", srd_rdma_read_resp_bytes),
    ONE("rdma_write_wrs", srd_rdma_write_wrs),
    ONE("rdma_write_bytes", srd_rdma_write_bytes),
    ONE("rdma_write_wr_err", srd_rdma_write_wr_err),
    ONE("rdma_write_recv_bytes", srd_rdma_write_recv_bytes),
    ONE("retrans_bytes", srd_retrans_bytes),
    ONE("retrans_pkts", retransmitted_pkts),
    ONE("retrans_timeout_events", timeouts),
    ONE("unresponsive_remote_events", srd_unresponsive_remote),
    ONE("impaired_remote_conn_events", srd_impaired_remote_conn),
};

/* The table has room for addresses that come later, as that of every RoCE device. */
enum {
    GIDS_ROCE = 16
};
_Static_assert(GIDS_ROCE >= LIVE_GIDS_MAX, "every address has an entry");

static const struct personality personalities[] = {
    [LIVE_ROCE] = {.device_name = LIVE_DEVICE_ROCE,
                   .device_folder = "/sys/class/infiniband/" LIVE_DEVICE_ROCE,
                   .firmware = NONIC_VERSION,
                   .protocol = "roce",
                   .vendor_id = VENDOR_NOBODY,
                   .hardware_version = HARDWARE_ROCE,
                   .node_type = IBV_NODE_CA,
                   .transport_type = IBV_TRANSPORT_IB,
                   .link_layer = IBV_LINK_LAYER_ETHERNET,
                   .link_layer_name = "Ethernet",
                   .gid_type = IBV_GID_TYPE_ROCE_V2,
                   .gid_type_name = "RoCE v2",
                   .gid_entries = GIDS_ROCE,
                   .has_guid = true,
                   .has_interfaces = true,
                   .has_cm_device = true},
    [LIVE_EFA] = {.device_name = LIVE_DEVICE_EFA,
                  .device_folder = "/sys/class/infiniband/" LIVE_DEVICE_EFA,
                  .firmware = FIRMWARE_EFA,
                  .vendor_id = VENDOR_AMAZON,
                  .vendor_part_id = PART_EFA,
                  .hardware_version = HARDWARE_EFA,
                  .node_type = IBV_NODE_UNSPECIFIED,
                  .transport_type = IBV_TRANSPORT_UNSPECIFIED,
                  .link_layer = IBV_LINK_LAYER_UNSPECIFIED,
                  .link_layer_name = "Unknown",
                  .gid_type = IBV_GID_TYPE_IB,
                  .gid_type_name = "IB/RoCE v1",
                  .gid_entries = 1,
                  .counters = efa_counters,
                  .counter_count = COUNT_OF(efa_counters)},
};

const struct personality *personality_shown(void)
{
    const enum live_personality wanted = live_personality();
    CHECK(wanted < COUNT_OF(personalities));
    return &personalities[wanted];
}

uint32_t counters_described(void)
{
    return personality_shown()->counters == NULL ? COUNTER_COUNT
                                                 : (uint32_t)personality_shown()->counter_count;
}

struct named_counter counter_described(uint32_t index)
{
    CHECK(index < counters_described());
    if (personality_shown()->counters != NULL) {
        return personality_shown()->counters[index];
    }
    const enum nic_counter own = (enum nic_counter)index;
    return (struct named_counter){nic_counter_name(own), own, own};
}
