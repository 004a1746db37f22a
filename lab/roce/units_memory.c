/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The units' reads and writes: work requests, and contexts in the host's memory or the board's.
 */
#include "lab/roce/units.h"

static void on_reads(struct sim *sim, struct sim_event *event)
{
    struct roce_reads *reads = CONTAINER_OF(event, struct roce_reads, event);
    struct roce_units *units = reads->units;
    while (reads->head != reads->tail) {
        const uint32_t at = reads->head % ROCE_READS_MAX, slot = reads->entries[at].slot;
        if (reads->entries[at].done_ps > sim->now_ps) {
            sim_schedule(sim, event, reads->entries[at].done_ps);
            break;
        }
        reads->head++;
        if (reads->entries[at].of_context) {
            /* The engine's own state is the truth: a context only says whose it is. */
            const struct qpc context = {.qpn = slot};
            qpc_manager_on_fetched(&units->manager, slot, &context);
        } else {
            roce_units_on_wqes(units, slot);
        }
    }
    roce_units_wake(units, sim->now_ps);
}

void roce_reads_open(struct roce_units *units)
{
    units->host_reads.units = units->board_reads.units = units;
    sim_event_init(&units->host_reads.event, on_reads);
    sim_event_init(&units->board_reads.event, on_reads);
}

static void add(struct roce_reads *reads, uint64_t done_ps, uint32_t slot, bool of_context)
{
    const uint32_t at = reads->tail++ % ROCE_READS_MAX;
    CHECK(reads->tail - reads->head <= ROCE_READS_MAX);
    reads->entries[at].done_ps = done_ps;
    reads->entries[at].slot = slot;
    reads->entries[at].of_context = of_context;
    if (reads->tail - reads->head == 1) {
        sim_schedule(reads->units->node->roce->sim, &reads->event, done_ps);
    }
}

void roce_units_read_wqes(struct roce_units *units, uint32_t slot)
{
    struct roce_node *node = units->node;
    const uint32_t bytes = units->scheduler.qps[slot].visited * node->roce->config.wqe_bytes;
    add(&units->host_reads, roce_pcie_read(node, bytes), slot, false);
}

static uint64_t move_on_board(struct roce_units *units)
{
    const struct roce *roce = units->node->roce;
    const struct sim_wire_kind bus = {.byte_fs = units->config->board_byte_fs};
    const uint32_t bytes = roce->config.context_bytes + units->config->access_bytes;
    return sim_wire_send(&units->board, roce->sim->now_ps, sim_wire_ps(&bus, bytes)).tail_ps;
}

void roce_units_read_context(struct roce_units *units, uint32_t slot)
{
    struct roce_node *node = units->node;
    node->counters.contexts_read++;
    if (units->config->on_board) {
        add(&units->board_reads, move_on_board(units) + units->config->board_ps, slot, true);
    } else {
        add(&units->host_reads, roce_pcie_read(node, node->roce->config.context_bytes), slot, true);
    }
}

/* Nobody waits until it is written: a later reader comes behind it. */
void roce_units_write_context(struct roce_units *units)
{
    if (!units->config->writes_back) {
        return;
    }
    if (units->config->on_board) {
        (void)move_on_board(units);
    } else {
        (void)roce_pcie_write(units->node, units->node->roce->config.context_bytes);
    }
}
