/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/csrna/on_chip.h"

#include "hardware/csrna/pending_fifo.h"
#include "hardware/csrna/sq_table.h"

/* dma_posted, is_vld, dma_rtn. */
#define FLAG_BITS 1u

uint32_t on_chip_order_bits(const struct on_chip_widths *widths)
{
    const uint32_t fifos = COUNT_OF(((struct pending_fifo *)0)->rings);
    const uint32_t element = FLAG_BITS + widths->qpn + widths->channel + widths->index;
    const uint32_t record = FLAG_BITS + widths->qpn + widths->count + FLAG_BITS;
    return QPC_CHANNELS * (widths->fifo_index + fifos * element + record);
}

uint32_t on_chip_order_bytes(const struct on_chip_widths *widths)
{
    return (on_chip_order_bits(widths) + 7) / 8;
}

struct on_chip_memory on_chip_memory(const struct on_chip_widths *widths, uint32_t oocap,
                                     uint32_t cache_entries, uint32_t context_bytes, uint32_t qps)
{
    struct on_chip_memory memory = {
        .sq_table_bytes = sq_table_bytes(qps),
        .cache_bytes = (uint64_t)cache_entries * context_bytes,
        .order_bytes = (uint64_t)oocap * on_chip_order_bytes(widths),
    };
    memory.total_bytes = memory.sq_table_bytes + memory.cache_bytes + memory.order_bytes;
    return memory;
}
