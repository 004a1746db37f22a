/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/csrna/internal.h"

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

uint64_t csrna_port_move(struct csrna_nic *nic, struct csrna_port *port, uint32_t bytes)
{
    const uint64_t now_ps = nic->sim->now_ps;
    port->free_ps = port->free_ps > now_ps ? port->free_ps : now_ps;
    take_port(nic, port, bytes);
    return port->free_ps;
}

uint64_t csrna_nic_write_cqe(struct csrna_nic *nic)
{
    return csrna_port_move(nic, &nic->pcie_out, nic->config.cqe_bytes);
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

/* -- Contexts -----------------------------------------------------------------------------------*/

static bool on_board(const struct csrna_nic *nic)
{
    return nic->config.placement == CSRNA_BOARD;
}

/* The oldest access that has not begun takes its place on its port. */
static void begin_access(struct csrna_nic *nic)
{
    struct csrna_accesses *accesses = &nic->accesses;
    const uint32_t at = accesses->head++ % CSRNA_ACCESSES_MAX;
    const uint32_t bytes = nic->config.context_bytes, qpn = accesses->entries[at].qpn;
    const bool writes = accesses->entries[at].writes;
    struct csrna_port *port = on_board(nic) ? &nic->board : writes ? &nic->pcie_out : &nic->pcie_in;
    const uint64_t now_ps = nic->sim->now_ps;
    accesses->begun_ps = port->free_ps > now_ps ? port->free_ps : now_ps;
    if (writes) {
        csrna_port_move(nic, port, bytes);
    } else {
        csrna_read_bytes(nic, on_board(nic) ? &nic->board_reads : &nic->pcie_reads, port, bytes,
                         (struct csrna_dma){.kind = CSRNA_DMA_CONTEXT, .number = qpn});
    }
}

static void begin_accesses(struct csrna_nic *nic)
{
    struct csrna_accesses *accesses = &nic->accesses;
    while (accesses->head != accesses->tail && accesses->begun_ps <= nic->sim->now_ps) {
        begin_access(nic);
    }
    if (accesses->head != accesses->tail && !sim_event_scheduled(&accesses->event)) {
        sim_schedule(nic->sim, &accesses->event, accesses->begun_ps);
    }
}

void csrna_on_accesses(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    begin_accesses(CONTAINER_OF(event, struct csrna_accesses, event)->nic);
}

static void access_context(struct csrna_nic *nic, uint32_t qpn, bool writes)
{
    struct csrna_accesses *accesses = &nic->accesses;
    CHECK(accesses->tail - accesses->head < CSRNA_ACCESSES_MAX);
    const uint32_t at = accesses->tail++ % CSRNA_ACCESSES_MAX;
    accesses->entries[at].qpn = qpn;
    accesses->entries[at].writes = writes;
    begin_accesses(nic);
}

void csrna_read_context(struct csrna_nic *nic, uint32_t qpn)
{
    csrna_qp_of_number(nic, qpn)->began_ps = nic->sim->now_ps;
    access_context(nic, qpn, false);
}

/* Nobody waits until it is written: a later reader comes behind it. */
void csrna_write_context(struct csrna_nic *nic, const struct qpc_victim *victim)
{
    if (nic->config.write_back) {
        csrna_qp_of_number(nic, victim->qpn)->context = victim->context;
        access_context(nic, victim->qpn, true);
    }
}

/* -- Reads --------------------------------------------------------------------------------------*/

void csrna_read_wqes(struct csrna_nic *nic, uint32_t slot)
{
    csrna_translated_read(nic, nic->qps[slot].wqes * SQ_WQE_BYTES,
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
