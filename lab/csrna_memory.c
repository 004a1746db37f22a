/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/csrna_internal.h"

#include <stdlib.h>
#include <string.h>

static uint64_t access_ps(const struct csrna_nic *nic, const struct csrna_port *port,
                          uint32_t bytes)
{
    return (bytes + nic->config.access_bytes) * port->byte_fs / 1000;
}

static void take_port(struct csrna_nic *nic, struct csrna_port *port, uint32_t bytes)
{
    port->bytes += bytes + nic->config.access_bytes;
    port->free_ps += access_ps(nic, port, bytes);
}

/* Evicted contexts are written while nothing else wants the bus: in the time since it was last
 * free. */
static void write_victims(struct csrna_nic *nic, struct csrna_port *port, uint64_t now_ps)
{
    const uint64_t each_ps = access_ps(nic, port, QPC_BYTES);
    while (port->victims > 0 && port->free_ps + each_ps <= now_ps) {
        port->victims--;
        take_port(nic, port, QPC_BYTES);
    }
}

uint64_t csrna_port_move(struct csrna_nic *nic, struct csrna_port *port, uint32_t bytes)
{
    const uint64_t now_ps = nic->sim->now_ps;
    write_victims(nic, port, now_ps);
    port->free_ps = port->free_ps > now_ps ? port->free_ps : now_ps;
    take_port(nic, port, bytes);
    return port->free_ps;
}

uint64_t csrna_nic_write_cqe(struct csrna_nic *nic)
{
    struct csrna_port *port = &nic->pcie;
    const uint64_t now_ps = nic->sim->now_ps;
    if (now_ps < nic->cqes_begin_ps && nic->cqes < CSRNA_CQES_MAX) {
        nic->cqes++;
        port->bytes += CSRNA_CQE_BYTES;
        port->free_ps += CSRNA_CQE_BYTES * port->byte_fs / 1000;
        return port->free_ps;
    }
    nic->cqes_begin_ps = port->free_ps > now_ps ? port->free_ps : now_ps;
    nic->cqes = 1;
    return csrna_port_move(nic, port, CSRNA_CQE_BYTES);
}

void csrna_read_bytes(struct csrna_nic *nic, struct csrna_reads *reads, struct csrna_port *port,
                      uint32_t bytes, struct csrna_dma dma)
{
    CHECK(reads->tail - reads->head < CSRNA_DMA_MAX);
    /* There is nothing to read, but the answer keeps its place in the order of reads. */
    dma.done_ps =
        bytes == 0 ? nic->sim->now_ps : csrna_port_move(nic, port, bytes) + port->latency_ps;
    if (reads->head != reads->tail) {
        const uint64_t last_ps = reads->entries[(reads->tail - 1) % CSRNA_DMA_MAX].done_ps;
        dma.done_ps = dma.done_ps > last_ps ? dma.done_ps : last_ps;
    } else {
        sim_schedule(nic->sim, &reads->event, dma.done_ps);
    }
    reads->entries[reads->tail++ % CSRNA_DMA_MAX] = dma;
}

struct csrna_qp *csrna_qp_of_number(struct csrna_nic *nic, uint32_t qpn)
{
    return &nic->qps[nic->slots[qpn & nic->slot_mask]];
}

uint32_t csrna_nic_slot(const struct csrna_nic *nic, const struct qp *qp)
{
    return nic->slots[qp_number(qp) & nic->slot_mask];
}

void csrna_read_context(struct csrna_nic *nic, uint32_t qpn)
{
    csrna_qp_of_number(nic, qpn)->began_ps = nic->sim->now_ps;
    const struct csrna_dma dma = {.kind = CSRNA_DMA_CONTEXT, .number = qpn};
    if (nic->config.on_board) {
        csrna_read_bytes(nic, &nic->board_reads, &nic->board, QPC_BYTES, dma);
    } else {
        csrna_read_bytes(nic, &nic->pcie_reads, &nic->pcie, QPC_BYTES, dma);
    }
}

/* A later reader finds the context in memory, or still on its way there. If the management blocks,
 * it waits until the context is written. */
void csrna_write_context(struct csrna_nic *nic, const struct qpc_victim *victim)
{
    csrna_qp_of_number(nic, victim->qpn)->context = victim->context;
    struct csrna_port *port = nic->config.on_board ? &nic->board : &nic->pcie;
    if (nic->config.policy == CSRNA_FCFS) {
        nic->manager_until_ps = csrna_port_move(nic, port, QPC_BYTES) + nic->config.write_ps;
        return;
    }
    write_victims(nic, port, nic->sim->now_ps);
    if (port->victims < CSRNA_VICTIMS_MAX) {
        port->victims++;
    } else {
        csrna_port_move(nic, port, QPC_BYTES);
    }
}

void csrna_read_wqes(struct csrna_nic *nic, uint32_t slot)
{
    csrna_read_bytes(nic, &nic->pcie_reads, &nic->pcie, nic->qps[slot].wqes * SQ_WQE_BYTES,
                     (struct csrna_dma){.kind = CSRNA_DMA_WQES, .number = slot});
}

void csrna_on_reads(struct sim *sim, struct sim_event *event)
{
    struct csrna_reads *reads = CONTAINER_OF(event, struct csrna_reads, event);
    while (reads->head != reads->tail) {
        const struct csrna_dma dma = reads->entries[reads->head % CSRNA_DMA_MAX];
        if (dma.done_ps > sim->now_ps) {
            sim_schedule(sim, event, dma.done_ps);
            break;
        }
        reads->head++;
        csrna_on_read(reads->nic, &dma);
    }
    csrna_wake(reads->nic, sim->now_ps);
}

/* -- The simulator's own ------------------------------------------------------------------------*/

void *csrna_zeroed(size_t bytes)
{
    uint8_t *base = calloc(1, bytes + 128);
    CHECK(base != NULL);
    uint8_t *aligned = base + 128 - ((uintptr_t)base & 63);
    memcpy(aligned - sizeof(base), &base, sizeof(base));
    return aligned;
}

void csrna_free(void *memory)
{
    void *base;
    memcpy(&base, (uint8_t *)memory - sizeof(base), sizeof(base));
    free(base);
}
