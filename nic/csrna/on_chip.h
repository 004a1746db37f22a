/* SPDX-License-Identifier: BSD-2-Clause
 *
 * on_chip - how much memory of the chip connections take.
 *
 * Source: csRNA 4.7, table 1; specification A14, CSR-42.
 */
#ifndef NIC_CSRNA_ON_CHIP_H
#define NIC_CSRNA_ON_CHIP_H

#include <stdint.h>

struct on_chip_memory {
    uint64_t sq_table_bytes;
    uint64_t cache_bytes;
    uint64_t order_bytes; /* The memory for answering out of order: the source's formula 2. */
    uint64_t total_bytes;
};

/* `oocap` as in QPC_OOCAP_MAX; a cache of `cache_entries`; `qps` in the send queue table. */
struct on_chip_memory on_chip_memory(uint32_t oocap, uint32_t cache_entries, uint32_t qps);

/* Formula 2 for oocap 1, from the fields: the index FIFOs of three channels, two pending FIFOs and
 * the pending record table. In bits; and in bytes, as the source gives it: 40. */
uint32_t on_chip_order_bits(void);
uint32_t on_chip_order_bytes(void);

#endif
