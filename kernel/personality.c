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
static const struct named_counter efa_counters[] = {
    {"tx_bytes", COUNTER_sent_bytes, COUNTER_sent_bytes},
    {"tx_pkts", COUNTER_sent_pkts, COUNTER_sent_pkts},
    {"rx_bytes", COUNTER_rcvd_bytes, COUNTER_rcvd_bytes},
    {"rx_pkts", COUNTER_rcvd_pkts, COUNTER_rcvd_pkts},
    {"rx_drops", COUNTER_drop_short, COUNTER_drop_stale_response},
    {"send_wrs", COUNTER_rdma_sends, COUNTER_rdma_sends},
    {"recv_wrs", COUNTER_rdma_recvs, COUNTER_rdma_recvs},
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
