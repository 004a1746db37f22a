/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Times and rates of a RoCE machine, by hand: what rows compare it with.
 */
#include "lab/roce/experiments.h"

#define MTU 4096u
/* Headers of InfiniBand: BTH; RETH of a WRITE's first packet and a READ; AETH of the first and the
 * last answer. */
#define BTH  12u
#define RETH 16u
#define AETH 4u
/* Ethernet's header and FCS, IPv4's, UDP's, the ICRC; preamble and gap. */
#define FRAME  50u
#define AROUND 20u
#define BEFORE 8u

static uint64_t bus_ps(const struct roce_config *config, uint64_t bytes)
{
    return bytes * config->pcie.byte_fs / 1000;
}

/* `header` for each TLP of data. */
static uint64_t tlps(const struct roce_config *config, uint64_t bytes, uint64_t header)
{
    const uint64_t most = config->pcie.payload_bytes;
    return bytes + (bytes + most - 1) / most * header;
}

static uint64_t line_ps(const struct roce_config *config, uint64_t bytes)
{
    return bytes * config->line.byte_fs / 1000;
}

/* A frame with FCS. */
static uint64_t frame_of(uint64_t headers, uint64_t payload)
{
    const uint64_t bytes = FRAME + headers + (payload + 3) / 4 * 4;
    return bytes < SIM_ETHERNET_BYTES_MIN ? SIM_ETHERNET_BYTES_MIN : bytes;
}

static uint32_t packets_of_message(uint32_t bytes)
{
    return bytes == 0 ? 1 : (bytes + MTU - 1) / MTU;
}

/* The headers of the first packet and of the last one, beside the BTH. */
static uint64_t first_of(enum roce_work work)
{
    return work == ROCE_WRITE ? RETH : work == ROCE_READ ? AETH : 0;
}

static uint64_t last_of(enum roce_work work)
{
    return work == ROCE_READ ? AETH : 0;
}

/* From the first packet's first bit to the last one's last, preambles included. */
static uint64_t frames_ps(const struct roce_config *config, enum roce_work work, uint32_t bytes)
{
    const uint32_t packets = packets_of_message(bytes), last = bytes - (packets - 1) * MTU;
    if (packets == 1) {
        return line_ps(config, BEFORE + frame_of(BTH + first_of(work), last));
    }
    return line_ps(config, AROUND + frame_of(BTH + first_of(work), MTU)) +
           (packets - 2) * line_ps(config, AROUND + frame_of(BTH, MTU)) +
           line_ps(config, BEFORE + frame_of(BTH + last_of(work), last));
}

/* From a packet that is whole in one NIC to the first thing that is done for it in the other. */
static uint64_t way_ps(const struct roce_config *config)
{
    return config->send_ps + 2 * (config->line.latency_ps + config->switches.line.fec_ps) +
           config->switches.delay_ps + config->receive_ps;
}

static uint64_t read_ps(const struct roce_config *config, uint64_t bytes)
{
    return bus_ps(config, tlps(config, bytes, config->pcie.completion_header_bytes)) +
           config->pcie.read_ps;
}

uint64_t roce_sum_ps(const struct roce_config *config, enum roce_work work, uint32_t bytes)
{
    const uint32_t last = bytes - (packets_of_message(bytes) - 1) * MTU;
    const uint64_t doorbell_ps =
        bus_ps(config, 8 + config->pcie.write_header_bytes) + config->pcie.doorbell_ps;
    uint64_t sum_ps = doorbell_ps + read_ps(config, config->wqe_bytes);
    if (work == ROCE_READ) {
        sum_ps += line_ps(config, BEFORE + frame_of(BTH + RETH, 0)) + way_ps(config);
    }
    return sum_ps + read_ps(config, bytes < MTU ? bytes : MTU) + frames_ps(config, work, bytes) +
           way_ps(config) + bus_ps(config, tlps(config, last, config->pcie.write_header_bytes)) +
           config->pcie.write_ps;
}

double roce_line_gbps(const struct roce_config *config, uint32_t bytes)
{
    const uint32_t packets = packets_of_message(bytes), last = bytes - (packets - 1) * MTU;
    const uint64_t on_line = (packets - 1) * (AROUND + frame_of(BTH, MTU)) + AROUND +
                             frame_of(BTH, last) + (packets > 1 ? RETH : 0);
    const uint64_t alone = AROUND + frame_of(BTH + RETH, last);
    return 8e6 / (double)config->line.byte_fs * bytes / (double)(packets > 1 ? on_line : alone);
}

double roce_pcie_gbps(const struct roce_config *config, uint32_t bytes)
{
    const uint32_t packets = packets_of_message(bytes), last = bytes - (packets - 1) * MTU;
    const uint64_t header = config->pcie.completion_header_bytes;
    const uint64_t on_bus = 8 + config->pcie.write_header_bytes +
                            tlps(config, config->wqe_bytes, header) +
                            (packets - 1) * tlps(config, MTU, header) + tlps(config, last, header);
    const uint64_t written = config->pcie.write_header_bytes;
    const uint64_t far = (packets - 1) * tlps(config, MTU, written) + tlps(config, last, written);
    return 8e6 / (double)config->pcie.byte_fs * bytes / (double)(on_bus > far ? on_bus : far);
}
