/* SPDX-License-Identifier: BSD-2-Clause
 *
 * on_chip - the memory of the chip that connections take.
 *
 * Source: csRNA 4.7, table 1; CSR-42.
 */
#ifndef HARDWARE_CSRNA_ON_CHIP_H
#define HARDWARE_CSRNA_ON_CHIP_H

#include <stdint.h>

struct on_chip_memory {
    uint64_t sq_table_bytes;
    uint64_t cache_bytes;
    uint64_t order_bytes; /* The memory for answering out of order: the source's formula 2. */
    uint64_t total_bytes;
};

/* How wide the fields are that answering out of order takes, in bits. The source gives two of
 * them: `fifo_index` is 8, and a queue pair's number has 24 by the InfiniBand specification. */
struct on_chip_widths {
    uint32_t fifo_index; /* An index in a requester's FIFO. */
    uint32_t qpn;
    uint32_t channel;
    uint32_t index; /* The index in an element of the pending FIFO. */
    uint32_t count; /* The requests of a queue pair that wait: pnd_cnt. */
};

/* Formula 2 for oocap 1, from the fields: the index FIFOs of three channels, two pending FIFOs and
 * the pending record table. In bits, and in whole bytes. Not counted: the operation, which the
 * source doesn't mention, and the waiting memory: it stands for what a unit would hold anyway. */
uint32_t on_chip_order_bits(const struct on_chip_widths *widths);
uint32_t on_chip_order_bytes(const struct on_chip_widths *widths);

/* `oocap` as in QPC_OOCAP_MAX; a cache of `cache_entries` of `context_bytes`; `qps` in the send
 * queue table. */
struct on_chip_memory on_chip_memory(const struct on_chip_widths *widths, uint32_t oocap,
                                     uint32_t cache_entries, uint32_t context_bytes, uint32_t qps);

#endif
