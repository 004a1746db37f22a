/* SPDX-License-Identifier: BSD-2-Clause
 *
 * PCI Express: two directions, each of which moves one thing after the other. A read is booked when
 * it begins: its latency stands for the request's way and the memory.
 */
#include "lab/roce/internal.h"

static uint64_t span_ps(const struct roce_node *node, uint64_t bytes)
{
    const struct sim_wire_kind bus = {.byte_fs = node->roce->config.pcie.byte_fs};
    return sim_wire_ps(&bus, bytes);
}

/* The number of TLPs that move `bytes` bytes of data; 0 for none. */
static uint64_t tlps(uint32_t bytes, uint32_t most)
{
    return (bytes + most - 1) / most;
}

static uint64_t with_completions(const struct roce_node *node, uint32_t bytes)
{
    const struct roce_pcie *pcie = &node->roce->config.pcie;
    return bytes + tlps(bytes, pcie->payload_bytes) * pcie->completion_header_bytes;
}

static uint64_t with_writes(const struct roce_node *node, uint32_t bytes)
{
    const struct roce_pcie *pcie = &node->roce->config.pcie;
    return bytes + tlps(bytes, pcie->payload_bytes) * pcie->write_header_bytes;
}

static uint64_t move(struct roce_node *node, struct sim_wire *bus, uint64_t bytes)
{
    return sim_wire_send(bus, node->roce->sim->now_ps, span_ps(node, bytes)).tail_ps;
}

/* Requests take their place in the direction of writes, and nothing waits for them there: the
 * latency has their time. */
uint64_t roce_pcie_read(struct roce_node *node, uint32_t bytes)
{
    const struct roce_pcie *pcie = &node->roce->config.pcie;
    (void)move(node, &node->out, tlps(bytes, pcie->request_bytes) * pcie->request_header_bytes);
    return move(node, &node->in, with_completions(node, bytes)) + pcie->read_ps;
}

uint64_t roce_pcie_carry(struct roce_node *node, uint32_t bytes)
{
    return move(node, &node->in, bytes);
}

uint64_t roce_pcie_write(struct roce_node *node, uint32_t bytes)
{
    return move(node, &node->out, with_writes(node, bytes)) + node->roce->config.pcie.write_ps;
}

uint64_t roce_pcie_ring(struct roce_node *node, uint32_t bytes)
{
    return move(node, &node->in, with_writes(node, bytes)) + node->roce->config.pcie.doorbell_ps;
}

uint64_t roce_pcie_completion_ps(const struct roce_node *node)
{
    const struct roce_config *config = &node->roce->config;
    return config->complete_ps + span_ps(node, with_writes(node, config->cqe_bytes));
}

uint64_t roce_pcie_completion(const struct roce_node *node)
{
    return sim_later(node->out.free_ps, node->roce->sim->now_ps) +
           node->roce->config.pcie.write_ps + roce_pcie_completion_ps(node);
}
