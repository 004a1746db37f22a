/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parameters of csRNA's machine, and what they make of a NIC.
 */
#include <math.h>

#include "lab/csrna/machine.h"

#define PS_PER_NS 1e3

/* Rows that parameters were fitted to. */
#define PEAK    "CSR-A1"
#define LATENCY "CSR-A5"
#define COMPETE "CSR-A12.compete"
#define FORMULA "CSR-A14"
#define TABLE   "CSR-A15"
#define DECLINE "CSR-O-connectx"

static const char *const others[] = {
    "csRNA-gem5: N. Kang and others, csRNA, the authors' public gem5 model, "
    "github.com/ncsg-group/csRNA at cd075c6 (the public model)",
    "ICCD22: N. Kang and others, csRNA: Connection-Scalable RDMA NIC Architecture in Datacenter "
    "Environment, ICCD 2022, doi 10.1109/ICCD56317.2022.00065 (abstract)",
    NULL,
};

const struct lab_document csrna_document = {
    .title = "Kang et al.: Towards Connection-Scalable RNIC Architecture (2023)",
    .sections =
        "abstract 1 2.1 2.2 3 4.1 4.3 4.3.1 4.3.2 4.3.3 4.3.4 4.4 4.5 4.6 4.7 5.1 5.2 5.3 7 "
        "table figure formula",
    .others = others,
    .note =
        "No row that is reproduced is independent evidence. The document prints two results of its "
        "NIC, 66.4 M/s and 3.89 us, and a parameter was fitted to each. The shapes of its curves "
        "are sentences, whose bounds are ours; the curves themselves are not in the text at hand. "
        "In table 1 a KB is read as 1,024 bytes and an MB as 1,000 of these: no other reading "
        "gives all of its figures to the last digit.",
};

const struct lab_parameter csrna_parameters[CSRNA_PARAMETER_COUNT] = {
    LAB_REAL("clock", "GHz", 1, 0.1, 10, "5.1", "clock of the NICs"),
    LAB_REAL("read", "ns", 500, 0, 1e6, "5.1", "PCIe round trip of a DMA read"),
    LAB_REAL("write", "ns", 250, 0, 1e6, "csRNA-gem5", "PCIe, one way: writes, doorbells"),
    LAB_REAL("pcie", "Gb/s", 128, 1, 1e4, "5.1", "PCIe bandwidth, of each direction"),
    LAB_WHOLE("access", "B", 32, 0, 4096, "csRNA-gem5", "what an access costs beside its data"),
    LAB_REAL("board", "ns", 100, 0, 1e6, "OC; 4.6: much lower", "access of on-board memory"),
    LAB_REAL("board_rate", "Gb/s", 128, 1, 1e4, "OC: as PCIe", "bandwidth of on-board memory"),
    LAB_REAL("ethernet", "Gb/s", 100, 1, 1e4, "5.1", "rate of links and switch"),
    LAB_REAL("link", "ns", 1000, 0, 1e9, "5.1", "one way from node to node"),
    LAB_WORD("framing", "model headers rocev2", "csRNA-gem5",
             "what packets take of the wire: data alone, behind the switch; the public model's "
             "headers, too; RoCEv2's and Ethernet's"),
    LAB_WHOLE("clients", "", 10, 1, CSRNA_CLIENTS_MAX, "5.1", "clients of the one server"),
    LAB_WHOLE("cores", "", 10, 1, CSRNA_CORES_MAX, "5.1", "cores of the server"),
    LAB_WHOLE("qps", "", 51200, 1, 131072, "5.2", "connections of the server"),
    LAB_WHOLE("payload", "B", 64, 1, 4096, "5.1", "payload of a message"),
    LAB_WHOLE("batch", "", 10, 1, CSRNA_BATCH_MAX, "csRNA-gem5",
              "messages that a connection posts at a time: 1 to this many, by its number"),
    LAB_WORD("work", "write read", "4.1", "RDMA WRITE or RDMA READ"),
    LAB_WORD("direction", "out in", "5.1; 2.2",
             "the server sends to its clients; or they send, and it answers"),
    LAB_WORD("placement", "host board", "4.6", "the memory in which contexts live"),
    LAB_WHOLE("context", "B", 256, 64, 4096, "4.7", "a context, in memory and on the chip"),
    LAB_WHOLE("cache", "", 300, 1, 32768, "5.1", "contexts on the chip"),
    LAB_WHOLE("blocking_cache", "", 3000, 1, 32768, "5.2",
              "contexts on the chip of the blocking NIC, for its latency"),
    LAB_WORD("victims", "lru fifo random", "5.1; csRNA-gem5: fifo",
             "which context has to go when the cache is full"),
    LAB_WORD("write_back", "on off", "OC", "whether changed contexts are written when they go"),
    LAB_WORD("policy", "hiding non-blocking fcfs ernic srnic connectx", "4.3; 4.5; 5.2",
             "latency-hiding, non-blocking, or first come first served; or as that NIC"),
    LAB_WHOLE("ernic", "", 127, 1, 32768, "table 1", "connections and contexts of eRNIC's policy"),
    LAB_WHOLE("srnic", "", 10000, 1, 32768, "table 1: 10K", "those of SRNIC's policy"),
    LAB_FITTED_WHOLE(DECLINE, "connectx", "", 256, 1, 32768,
                     "OC; 2.2: the rate declines beyond 256",
                     "contexts on the chip of ConnectX's policy"),
    LAB_WORD("prefetch", "on off", "4.5", "hiding: the context is read beside the work requests"),
    LAB_WHOLE("oocap", "", 16, 1, 64, "5.3", "out-of-order capacity"),
    LAB_WORD("acks", "on-chip context", "4.4; csRNA-gem5",
             "what an acknowledgement needs at the sender: a window on the chip, or a context"),
    LAB_WHOLE("window", "", 100, 1, 10000, "csRNA-gem5", "packets in flight"),
    LAB_WORD("window_of", "connection nic", "OC; csRNA-gem5: nic", "whose window that is"),
    LAB_FITTED_WHOLE(PEAK, "processing", "cycles", 15, 1, 10000, "OC; csRNA-gem5: 1",
                     "the slowest unit's, a message"),
    LAB_FITTED_REAL(LATENCY, "software", "ns", 390, 0, 1e6, "OC", "from a post to its doorbell"),
    LAB_FITTED_REAL(COMPETE, "jitter", "", 0.5, 0, 1, "OC; 5.2: processes compete",
                    "share by which the software's time varies either way"),
    LAB_REAL("stagger", "ns", 397, 0, 1e6, "OC", "between the first posts of two cores"),
    LAB_WHOLE("wqe_room", "", 64, 1, 1024, "OC",
              "work requests before the requester, those on their way included"),
    LAB_WHOLE("visit_wqes", "", 16, 1, CSRNA_VISIT_WQES_MAX, "OC", "work requests of a visit"),
    LAB_WHOLE("visit_bytes", "B", 8192, 1, 1048576, "OC; 5.3: some KB", "data of a visit"),
    LAB_WHOLE("ready", "", 16, 1, 4096, "OC", "messages with a context before the slowest unit"),
    LAB_WHOLE("payloads", "", 64, 1, 1024, "OC",
              "payloads that are being read or wait for the window"),
    LAB_REAL("backlog", "ns", 1000, 0, 1e6, "OC: 2 reads",
             "work before the wire that stops the requester"),
    LAB_WHOLE("cqe", "B", 16, 1, 64, "OC; csRNA-gem5: 12", "a completion in the host's memory"),
    LAB_WHOLE("mpt", "", 0, 0, 1u << 20, "OC; csRNA-gem5: 40000",
              "regions whose entries are on the chip; 0: address translation costs nothing"),
    LAB_WHOLE("mtt", "", 50000, 1, 1u << 20, "csRNA-gem5", "pages whose entries are on the chip"),
    LAB_WHOLE("mpt_entry", "B", 64, 1, 256, "OC", "a region's entry"),
    LAB_WHOLE("mtt_entry", "B", 8, 1, 256, "OC", "a page's entry"),
    LAB_WORD("regions", "own one", "csRNA-gem5",
             "whether each connection's data lie in a region of their own, or all in one"),
    LAB_REAL("loss", "", 0, 0, 0.1, "OC", "share of packets that the switch loses"),
    LAB_REAL("corrupt", "", 0, 0, 0.1, "OC", "share of packets in which the switch changes a byte"),
    LAB_WHOLE("fifo_index_bits", "bits", 8, 1, 32, "4.4", "an index in a requester's FIFO"),
    LAB_WHOLE("qpn_bits", "bits", 24, 1, 32, "2.2", "the number of a queue pair"),
    LAB_WHOLE("channel_bits", "bits", 2, 1, 8, "figure 5: three channels", "a channel's number"),
    LAB_FITTED_WHOLE(FORMULA, "index_bits", "bits", 6, 1, 32, "OC; 4.7: 40 bytes in all",
                     "an index in the pending FIFO"),
    LAB_FITTED_WHOLE(FORMULA, "count_bits", "bits", 6, 1, 32, "OC; 4.7: 40 bytes in all",
                     "requests of a queue pair that wait"),
    LAB_FITTED_WHOLE(TABLE, "megabyte", "B", 1024000, 1000000, 1048576, "OC; table 1: MB",
                     "an MB of table 1"),
};

static uint64_t ns(struct lab_run *run, const char *name)
{
    return (uint64_t)llround(lab_value(run, name) * PS_PER_NS);
}

static uint64_t byte_fs(struct lab_run *run, const char *name)
{
    return (uint64_t)llround(8e6 / lab_value(run, name));
}

static uint32_t whole(struct lab_run *run, const char *name)
{
    return (uint32_t)lab_value(run, name);
}

static uint32_t whole_or_default(struct lab_run *run, const char *name)
{
    return (uint32_t)lab_value_or_default(run, name);
}

struct csrna_load csrna_load_of(struct lab_run *run)
{
    return (struct csrna_load){
        .clients = whole(run, "clients"),
        .cache_entries = whole(run, "cache"),
        .victims = (enum qpc_victim_policy)lab_word(run, "victims"),
        .window_of = (enum csrna_window_of)lab_word(run, "window_of"),
        .prefetch = lab_word(run, "prefetch") == CSRNA_ON,
        .processing = whole(run, "processing"),
        .mpt_entries = whole_or_default(run, "mpt"),
        .share = 1,
    };
}

/* All policies' numbers are asked for, so that experiments depend on the same ones always. */
uint32_t csrna_contexts(struct lab_run *run, const struct csrna_load *load)
{
    uint32_t contexts = load->cache_entries;
    for (uint32_t i = 0; i < CSRNA_POLICIES; i++) {
        const char *name = csrna_policy_kinds[i]->contexts;
        const uint32_t own = name != NULL ? whole_or_default(run, name) : contexts;
        contexts = i == load->policy ? own : contexts;
    }
    return contexts;
}

struct csrna_config csrna_config_of(struct lab_run *run, const struct csrna_load *load)
{
    const uint32_t window = whole(run, "window");
    const bool of_nic = load->window_of == CSRNA_WINDOW_OF_NIC;
    return (struct csrna_config){
        .policy = csrna_policy_kinds[load->policy],
        .placement = load->placement,
        .acks = (enum csrna_acks)lab_word(run, "acks"),
        .prefetch = load->prefetch,
        .write_back = lab_word(run, "write_back") == CSRNA_ON,
        .oocap = load->oocap,
        .cache_entries = csrna_contexts(run, load),
        .victims = load->victims,
        .processing = load->processing,
        .qp_window = of_nic ? UINT32_MAX : window,
        .nic_window = of_nic ? window : UINT32_MAX,
        .ack_each = of_nic || window < CSRNA_BATCH_MAX,
        .cycle_ps = (uint64_t)llround(1e3 / lab_value(run, "clock")),
        .read_ps = ns(run, "read"),
        .write_ps = ns(run, "write"),
        .board_ps = ns(run, "board"),
        .pcie_byte_fs = byte_fs(run, "pcie"),
        .board_byte_fs = byte_fs(run, "board_rate"),
        .access_bytes = whole(run, "access"),
        .context_bytes = whole(run, "context"),
        .cqe_bytes = whole(run, "cqe"),
        .mpt_entries = load->mpt_entries,
        .mtt_entries = whole_or_default(run, "mtt"),
        .mpt_bytes = whole_or_default(run, "mpt_entry"),
        .mtt_bytes = whole_or_default(run, "mtt_entry"),
        .own_regions = whole_or_default(run, "regions") == CSRNA_REGIONS_OWN,
        .message_bytes = load->bytes,
        .wqe_room = whole(run, "wqe_room"),
        .visit_wqes = whole(run, "visit_wqes"),
        .visit_bytes = whole(run, "visit_bytes"),
        .ready = whole(run, "ready"),
        .payloads = whole(run, "payloads"),
        .backlog_ps = ns(run, "backlog"),
    };
}

static uint32_t millionths(struct lab_run *run, const char *name)
{
    return (uint32_t)llround(lab_value(run, name) * 1e6);
}

struct csrna_world csrna_world_of(struct lab_run *run, const struct csrna_load *load)
{
    struct csrna_world world = {
        .cores = whole(run, "cores"),
        .output = {.wire = {.byte_fs = byte_fs(run, "ethernet"), .latency_ps = ns(run, "link")},
                   .switching = SIM_CUT_THROUGH,
                   .buffer_ps = SIM_UNBOUNDED_PS},
        .software_ps = ns(run, "software"),
        .write_ps = ns(run, "write"),
        .faults.millionths = {[SIM_FAULT_drop] = millionths(run, "loss"),
                              [SIM_FAULT_damage] = millionths(run, "corrupt")},
        .batch = 1,
    };
    if (load->one_at_a_time) {
        world.jitter_ps = (uint64_t)llround((double)world.software_ps * lab_value(run, "jitter"));
        world.stagger_ps = ns(run, "stagger");
    } else {
        world.batch = whole(run, "batch");
    }
    return world;
}
