/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parameters of RoCE NICs and their network, and what they make of a machine.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/roce/machine.h"

#define PS_PER_NS 1e3

static const char *const others[] = {
    "csRNA: N. Kang and others, Towards Connection-Scalable RNIC Architecture, 2023",
    "csRNA-gem5: N. Kang and others, csRNA, the authors' public gem5 model, "
    "github.com/ncsg-group/csRNA at cd075c6",
    "Neugebauer: R. Neugebauer and others, Understanding PCIe performance for end host "
    "networking, SIGCOMM 2018 (slides of the talk)",
    "pcie-model: R. Neugebauer, the public model of that publication, "
    "github.com/pcie-bench/pcie-model at 1fe7cde, model/pcie.py",
    "mlx5e: A. Shochat, net/mlx5e: TX latency optimization to save DMA reads, Linux commit "
    "88a85f99e51f, 2015",
    "HPCC-ns3: Y. Li and others, the public simulator of HPCC (SIGCOMM 2019), "
    "github.com/alibaba-edu/High-Precision-Congestion-Control at a8c61bd, mix/topology.txt",
    "DCQCN: Y. Zhu and others, Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015",
    NULL,
};

const struct lab_document roce_document = {
    .title = "RoCEv2 NICs with numbers, of several publications",
    .sections = "",
    .others = others,
    .note =
        "No document describes this NIC: it is what several publications say of the parts of such "
        "NICs, and where they say nothing, our choice. No product was measured. Rows compare the "
        "machine with arithmetic on its own parameters, with another machine of the laboratory, "
        "and with what its protocols promise.",
};

const struct lab_parameter roce_parameters[ROCE_PARAMETER_COUNT] = {
    LAB_REAL("doorbell", "ns", 250, 0, 1e6, "csRNA-gem5: writes, doorbells",
             "PCIe, one way: the processor's write to the NIC"),
    LAB_REAL("read", "ns", 500, 0, 1e6, "csRNA 5.1", "PCIe round trip of a DMA read"),
    LAB_REAL("write", "ns", 250, 0, 1e6, "csRNA-gem5", "PCIe, one way: the NIC's writes"),
    LAB_REAL("pcie", "Gb/s", 125.92, 1, 1e4, "Neugebauer: 62.96 for 8 lanes",
             "PCIe bandwidth of each direction: generation 3, 16 lanes"),
    LAB_WHOLE("tlp", "B", 256, 64, 4096, "OC", "the most data of a TLP (MPS)"),
    LAB_WHOLE("tlp_asks", "B", 512, 64, 4096, "OC", "the most that a TLP asks for (MRRS)"),
    LAB_WHOLE("tlp_request", "B", 24, 0, 256, "pcie-model: TLP_MWr_Hdr_Szs, 64 bits",
              "what a write or a read request takes beside its data"),
    LAB_WHOLE("tlp_completion", "B", 20, 0, 256, "pcie-model: TLP_CplD_Hdr_Szs",
              "what a completion of a read takes beside its data"),
    LAB_WORD("wqe_by", "read doorbell", "OC; mlx5e: Blue Flame",
             "how a work request comes: the NIC reads it, or a doorbell for one has it in it"),
    LAB_WHOLE("wqe", "B", 64, 16, 4096, "OC", "a work request in the host's memory"),
    LAB_WHOLE("cqe", "B", 64, 16, 128, "OC", "a completion in the host's memory"),
    LAB_WHOLE("context", "B", 256, 64, 4096, "csRNA 4.7", "a context in the host's memory"),
    LAB_WHOLE("cache", "", 1024, 0, 1048576, "OC", "contexts on the chip; 0: all"),
    LAB_REAL("send", "ns", 50, 0, 1e6, "OC", "from a packet's data to its line"),
    LAB_REAL("receive", "ns", 50, 0, 1e6, "OC", "from the line to a packet's context"),
    LAB_REAL("complete", "ns", 60, 0, 1e6, "OC", "from visible data to the completion's write"),
    LAB_REAL("packets", "M/s", 200, 0.001, 1e6, "OC", "the most packets of a NIC, each way"),
    LAB_WHOLE("room", "B", 32768, 1, 1e9, "OC", "bytes before the line that stop the NIC"),
    LAB_REAL("rate", "Gb/s", 100, 0.1, 1e4, "HPCC-ns3", "rate of a line"),
    LAB_REAL("link", "ns", 1000, 0, 1e9, "HPCC-ns3: 0.001 ms", "latency of a line"),
    LAB_REAL("switch", "ns", 200, 0, 1e6, "OC", "what a switch takes, from head to head"),
    LAB_WORD("flow", "pfc lfc none", "OC", "what switches do when frames take too much room"),
    LAB_WHOLE("buffer", "B", 524288, 0, 1e9, "OC",
              "room of a class of an input, its headroom included; 0: no bound, and no pauses"),
    LAB_WHOLE("queue", "B", 0, 0, 1e9, "OC", "room of a class of an output; 0: no bound"),
    LAB_WORD("ecn", "on off", "DCQCN", "whether switches mark packets"),
    LAB_WHOLE("mark", "B", 200000, 0, 1e9, "DCQCN: K_max, beyond which all are marked",
              "the queue of an output beyond which packets are marked"),
    LAB_REAL("fec", "ns", 0, 0, 1e6, "OC", "forward error correction of a line"),
    LAB_WHOLE("gap", "B", 0, 0, 1024, "OC", "a longer gap behind every frame"),
    LAB_WHOLE("quanta", "", 65535, 2, 65535, "OC", "for which a pause asks"),
    LAB_WHOLE("xoff", "B", 0, 0, 1e9, "OC",
              "of an input, beyond which it asks for a pause; 0: the room less the headroom"),
    LAB_WORD("paths", "flow one", "OC",
             "which of several shortest paths a packet takes: its flow's, or its destination's"),
    LAB_WORD("work", "write send read", "OC", "RDMA WRITE, SEND or RDMA READ"),
    LAB_WHOLE("payload", "B", 65536, 1, 16777216, "OC", "a message"),
    LAB_WHOLE("depth", "", 16, 1, 4096, "OC", "messages of a connection under way"),
    LAB_WHOLE("nodes", "", 2, 2, 4096, "OC", "nodes of a star"),
    LAB_WHOLE("senders", "", 8, 1, 1024, "OC", "nodes that send to one"),
    LAB_REAL("duration", "us", 1000, 1, 1e6, "OC", "the time for which messages are posted"),
    LAB_REAL("warm", "us", 200, 0, 1e6, "OC", "the time before anything is measured"),
};

/* -- Settings -----------------------------------------------------------------------------------*/

struct roce_settings roce_settings_default(void)
{
    struct roce_settings settings;
    for (uint32_t i = 0; i < ROCE_SETTING_COUNT; i++) {
        settings.values[i] = roce_parameters[i].value;
    }
    return settings;
}

static int index_of(const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < ROCE_SETTING_COUNT; i++) {
        if (strlen(roce_parameters[i].name) == bytes &&
            memcmp(roce_parameters[i].name, name, bytes) == 0) {
            return (int)i;
        }
    }
    return -1;
}

bool roce_set(struct roce_settings *settings, const char *assignment, char *error,
              size_t error_bytes)
{
    const size_t bytes = strcspn(assignment, "=");
    const int index = index_of(assignment, bytes);
    if (assignment[bytes] != '=' || index < 0) {
        (void)snprintf(error, error_bytes, "%s: no parameter of the machine roce, NAME=VALUE",
                       assignment);
        return false;
    }
    const struct lab_parameter *parameter = &roce_parameters[index];
    double read;
    if (!lab_parse_value(parameter, assignment + bytes + 1, &read, error, error_bytes) ||
        !lab_judge_value(parameter, read, error, error_bytes)) {
        return false;
    }
    settings->values[index] = read;
    return true;
}

struct roce_settings roce_settings_of(struct lab_run *run)
{
    struct roce_settings settings;
    for (uint32_t i = 0; i < ROCE_SETTING_COUNT; i++) {
        settings.values[i] = lab_value_or_default(run, roce_parameters[i].name);
    }
    return settings;
}

/* -- Configurations -----------------------------------------------------------------------------*/

static double value(const struct roce_settings *settings, const char *name)
{
    const int index = index_of(name, strlen(name));
    CHECK(index >= 0);
    return settings->values[index];
}

static uint64_t ns(const struct roce_settings *settings, const char *name)
{
    return (uint64_t)llround(value(settings, name) * PS_PER_NS);
}

static uint32_t whole(const struct roce_settings *settings, const char *name)
{
    return (uint32_t)value(settings, name);
}

static uint64_t byte_fs(const struct roce_settings *settings, const char *name)
{
    return (uint64_t)llround(8e6 / value(settings, name));
}

static uint64_t bound(const struct roce_settings *settings, const char *name)
{
    return whole(settings, name) == 0 ? SIM_NO_BOUND : whole(settings, name);
}

static struct roce_pcie pcie_of(const struct roce_settings *settings)
{
    return (struct roce_pcie){
        .byte_fs = byte_fs(settings, "pcie"),
        .payload_bytes = whole(settings, "tlp"),
        .request_bytes = whole(settings, "tlp_asks"),
        .write_header_bytes = whole(settings, "tlp_request"),
        .request_header_bytes = whole(settings, "tlp_request"),
        .completion_header_bytes = whole(settings, "tlp_completion"),
        .read_ps = ns(settings, "read"),
        .write_ps = ns(settings, "write"),
        .doorbell_ps = ns(settings, "doorbell"),
    };
}

static struct sim_ethernet_switch_kind switches_of(const struct roce_settings *settings)
{
    static const enum sim_flow_control flows[] = {SIM_PFC, SIM_LFC, SIM_NO_FLOW_CONTROL};
    const bool bounded = whole(settings, "buffer") > 0;
    return (struct sim_ethernet_switch_kind){
        .line = {.fec_ps = ns(settings, "fec"), .extra_bytes = whole(settings, "gap")},
        .delay_ps = ns(settings, "switch"),
        .input = {.flow = bounded ? flows[whole(settings, "flow")] : SIM_NO_FLOW_CONTROL,
                  .xoff_bytes = whole(settings, "xoff"),
                  .xon_bytes = whole(settings, "xoff") / 2,
                  .room_bytes = bound(settings, "buffer")},
        .output_bytes = bound(settings, "queue"),
        .ecn_bytes = whole(settings, "ecn") == 0 ? whole(settings, "mark") : SIM_NO_BOUND,
        .quanta = (uint16_t)whole(settings, "quanta"),
    };
}

struct roce_config roce_config_of(const struct roce_settings *settings)
{
    return (struct roce_config){
        .pcie = pcie_of(settings),
        .doorbell_carries = whole(settings, "wqe_by") == 1,
        .wqe_bytes = whole(settings, "wqe"),
        .cqe_bytes = whole(settings, "cqe"),
        .context_bytes = whole(settings, "context"),
        .contexts = whole(settings, "cache"),
        .send_ps = ns(settings, "send"),
        .receive_ps = ns(settings, "receive"),
        .complete_ps = ns(settings, "complete"),
        .packet_ps = (uint64_t)llround(1e6 / value(settings, "packets")),
        .one_path = whole(settings, "paths") == 1,
        .room_bytes = whole(settings, "room"),
        .line = {.byte_fs = byte_fs(settings, "rate"), .latency_ps = ns(settings, "link")},
        .switches = switches_of(settings),
    };
}
