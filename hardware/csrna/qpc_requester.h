/* SPDX-License-Identifier: BSD-2-Clause
 *
 * qpc_requester - lets a unit go on while contexts are missing: free indices, and what waits.
 *
 * A request for a context carries an index; what the unit wants the context for waits in its memory
 * at that index. So answers may come in any order. Without a free index the unit stalls, and
 * nothing else does.
 *
 * Source: csRNA 4.4.
 */
#ifndef HARDWARE_CSRNA_QPC_REQUESTER_H
#define HARDWARE_CSRNA_QPC_REQUESTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "hardware/csrna/qpc.h"

struct qpc_requester {
    uint8_t *memory; /* Waiting memory: oocap entries. */
    uint32_t info_bytes;
    uint32_t oocap;
    uint64_t used;               /* Bit i: index i is out. */
    uint8_t free[QPC_OOCAP_MAX]; /* The index FIFO. */
    uint32_t free_head, free_count;
};

/* Waiting memory for `oocap` entries; `info_bytes` is what the entry's type takes. */
static inline size_t qpc_requester_bytes(uint32_t oocap, uint32_t info_bytes)
{
    return (size_t)oocap * info_bytes;
}

/* `oocap` is 1 .. QPC_OOCAP_MAX. The caller owns `memory`, aligned as its entries need. */
void qpc_requester_init(struct qpc_requester *requester, uint32_t oocap, uint32_t info_bytes,
                        void *memory);

/* Takes the index that has been free longest; -1: none is free. */
int qpc_requester_reserve(struct qpc_requester *requester);

/* Where the info of `index`, which is out, waits. */
static inline void *qpc_requester_info(const struct qpc_requester *requester, uint32_t index)
{
    CHECK(index < requester->oocap && (requester->used >> index & 1));
    return requester->memory + (size_t)index * requester->info_bytes;
}

/* Gives `index`, which is out, back: it has been answered. */
void qpc_requester_release(struct qpc_requester *requester, uint32_t index);

#endif
