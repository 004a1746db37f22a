/* SPDX-License-Identifier: BSD-2-Clause
 *
 * memory - a machine's memory: bytes, pages that may be absent, and how long they take.
 *
 * Purpose    Real bytes at simulated addresses, behind a translation that can fault.
 * Inputs     Addresses and lengths that programs and peers choose: all are judged.
 * Outputs    A pointer to the bytes, or the reason why there is none.
 * Ownership  The memory owns its bytes; pointers into it live as long as it does.
 * Threads    One world, one thread.
 * Time       Latencies are parameters that users of the memory add; it has no clock.
 * Units      Bytes, picoseconds.
 * Limits     Pages of 4 KB.
 * Source     Parameters of the machines that use it.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define SIM_PAGE_BYTES 4096u

enum sim_memory_verdict {
    SIM_MEMORY_GOOD,
    SIM_MEMORY_OUTSIDE, /* No such address: a bus answers with an abort. */
    SIM_MEMORY_ABSENT,  /* The page is not there: a fault that can be served. */
    SIM_MEMORY_CROSSES, /* The pages are not neighbours in memory: ask for fewer bytes. */
};

struct sim_memory {
    uint8_t *bytes;
    size_t size;    /* Whole pages. */
    uint32_t pages; /* The number of virtual pages. */
    uint32_t
        *frames; /* The frame + 1 of each virtual page; 0: absent. NULL: addresses are physical. */
    uint64_t latency_ps, fault_ps; /* The time of an access; the time of bringing a page in. */
    uint64_t faults;
};

/* `bytes` is rounded up to pages. Zeroed. */
void sim_memory_open(struct sim_memory *memory, size_t bytes, uint64_t latency_ps);
void sim_memory_close(struct sim_memory *memory);

/* From here on addresses are virtual, 0 .. pages * SIM_PAGE_BYTES, and every page is absent. */
void sim_memory_translate(struct sim_memory *memory, uint32_t pages, uint64_t fault_ps);
void sim_memory_map(struct sim_memory *memory, uint32_t page, uint32_t frame);
void sim_memory_unmap(struct sim_memory *memory, uint32_t page);

/* On SIM_MEMORY_GOOD *at points to `length` bytes (not 0) at `address`. */
MUST_USE enum sim_memory_verdict sim_memory_at(struct sim_memory *memory, uint64_t address,
                                               size_t length, uint8_t **at);

#endif
