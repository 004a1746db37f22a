/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/forth/node.h"

#define ENABLE_ALL 0xfu
#define ENABLES    0x6u /* Command register: memory, master. */

uint64_t forth_node_cycle(const struct forth_node *node)
{
    return forth_bus_cycle(&node->bus);
}

void forth_node_count(struct forth_node *node, enum forth_counter counter, uint64_t amount)
{
    if (amount > 0) {
        forth_count(&node->registers, counter, (uint32_t)amount);
    }
}

uint8_t *forth_node_memory(struct forth_node *node, uint64_t address, size_t length)
{
    uint8_t *at = NULL;
    CHECK(sim_memory_at(&node->memory, address, length, &at) == SIM_MEMORY_GOOD);
    return at;
}

uint32_t forth_node_pending(const struct forth_node *node)
{
    return node->queue.pending + node->voqs.count;
}

uint32_t forth_node_pending_to(const struct forth_node *node, uint32_t to)
{
    return node->queue.pending + node->voqs.to[to % FORTH_PORTS_MAX].count;
}

/* -- The driver ---------------------------------------------------------------------------------*/

uint32_t forth_node_read(struct forth_node *node, uint32_t offset)
{
    if (offset == FORTH_SAMPLE_DATA) {
        return forth_sampler_read(&node->sampler);
    }
    return forth_registers_read(&node->registers, offset, node->queue.head, node->queue.tail);
}

static void software_reset(struct forth_node *node)
{
    forth_node_reset_link(node);
    forth_node_reset_dma(node);
}

/* Loopback mode: packets that go out come in again. */
static void loop_back(struct forth_node *node, bool loops)
{
    if (loops && node->out->to != &node->end) {
        node->peer = node->out->to;
        node->out->to = &node->end;
    } else if (!loops && node->out->to == &node->end) {
        node->out->to = node->peer;
    }
}

void forth_node_write(struct forth_node *node, uint32_t offset, uint32_t value)
{
    if (offset >= FORTH_BAR1_QUEUE) {
        forth_queue_write(&node->queue, offset - FORTH_BAR1_QUEUE, value, 4);
    } else if (offset == FORTH_SAMPLE_INTERVAL) {
        forth_sampler_set_interval(&node->sampler, value);
    } else if (offset == FORTH_SAMPLE_COUNT) {
        forth_sampler_set_count(&node->sampler, value);
    } else {
        const enum forth_command command = forth_registers_write(&node->registers, offset, value);
        if (command & FORTH_COMMAND_RESET_QUEUE) {
            forth_queue_reset(&node->queue);
            forth_voqs_init(&node->voqs);
            node->fetch_queued = false;
        }
        if (command & FORTH_COMMAND_SOFTWARE_RESET) {
            software_reset(node);
        }
        loop_back(node, forth_registers_loops_back(&node->registers));
    }
    forth_node_fetch(node);
    forth_node_kick(node);
}

void forth_node_configure(struct forth_node *node, uint32_t offset, uint32_t value)
{
    forth_config_write(&node->config_space, offset, value, ENABLE_ALL);
    node->bus.latency_timer = forth_config_latency_timer(&node->config_space);
    if (node->irq && !forth_config_interrupts(&node->config_space)) {
        node->irq = false;
        forth_node_count(node, FORTH_irq_active, forth_node_cycle(node) - node->irq_from);
    }
    forth_node_fetch(node);
}

/* -- Construction -------------------------------------------------------------------------------*/

void forth_node_open(struct forth_node *node, struct forth_fabric *fabric, struct forth_link *out,
                     const struct forth_node_config *config)
{
    *node = (struct forth_node){
        .end = {.in = node->end.in}, .fabric = fabric, .out = out, .config = *config};
    prng_init(&node->prng, config->seed);
    sim_memory_open(&node->memory, config->memory_bytes);
    forth_config_init(&node->config_space);
    forth_registers_init(&node->registers);
    forth_queue_init(&node->queue, config->full_by_pointer);
    forth_voqs_init(&node->voqs);
    forth_node_attach_bus(node);
    forth_node_attach_link(node);
    forth_node_configure(node, FORTH_CONFIG_LATENCY, config->latency_timer << 8);
    forth_node_configure(node, FORTH_CONFIG_COMMAND, ENABLES);
    forth_node_write(node, FORTH_REGISTER_CONTROL, 1);
}

void forth_node_close(struct forth_node *node)
{
    sim_memory_close(&node->memory);
}
