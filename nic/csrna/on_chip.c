/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/csrna/on_chip.h"

#include "nic/csrna/pending_fifo.h"
#include "nic/csrna/pending_table.h"
#include "nic/csrna/qpc_requester.h"
#include "nic/csrna/sq_table.h"

/* The fields that the source names, as wide as they must be. It gives no widths but that of the
 * index in its FIFO; these add up to its 40 bytes. A queue pair's requests are counted up to 48,
 * as many as wait with its oocap of 16. Not counted: the operation, which the source doesn't
 * mention, and the waiting memory, which stands for what a unit would hold anyway. */
enum {
    OOCAP_USUAL = 16,
    QPN_BITS = 24,
    FLAG_BITS = 1, /* dma_posted, is_vld, dma_rtn. */
    CHANNEL_BITS = 2,
    FIFO_INDEX_BITS = 8,
    INDEX_BITS = 6,
    COUNT_BITS = 6,
    ELEMENT_BITS = FLAG_BITS + QPN_BITS + CHANNEL_BITS + INDEX_BITS,
    RECORD_BITS = FLAG_BITS + QPN_BITS + COUNT_BITS + FLAG_BITS
};

_Static_assert(QPC_QPN_LIMIT == 1 << QPN_BITS, "a QPN fits");
_Static_assert(QPC_CHANNELS <= 1 << CHANNEL_BITS, "a channel fits");
_Static_assert(QPC_OOCAP_MAX <= 1 << INDEX_BITS, "an index fits");
_Static_assert(QPC_CHANNELS *OOCAP_USUAL < 1 << COUNT_BITS, "a count fits");
_Static_assert(sizeof(((struct qpc_requester *)0)->free[0]) * 8 == FIFO_INDEX_BITS,
               "the index FIFO is the one we have");

uint32_t on_chip_order_bits(void)
{
    const uint32_t fifos = COUNT_OF(((struct pending_fifo *)0)->rings);
    return QPC_CHANNELS * (FIFO_INDEX_BITS + fifos * ELEMENT_BITS + RECORD_BITS);
}

uint32_t on_chip_order_bytes(void)
{
    return (on_chip_order_bits() + 7) / 8;
}

struct on_chip_memory on_chip_memory(uint32_t oocap, uint32_t cache_entries, uint32_t qps)
{
    struct on_chip_memory memory = {
        .sq_table_bytes = sq_table_bytes(qps),
        .cache_bytes = (uint64_t)cache_entries * sizeof(struct qpc),
        .order_bytes = (uint64_t)oocap * on_chip_order_bytes(),
    };
    memory.total_bytes = memory.sq_table_bytes + memory.cache_bytes + memory.order_bytes;
    return memory;
}
