/* SPDX-License-Identifier: BSD-2-Clause
 *
 * memory - a machine's memory: bytes at simulated addresses.
 *
 * Purpose    Real bytes, which programs and peers reach by address.
 * Inputs     Addresses and lengths that programs and peers choose: all are judged.
 * Ownership  The memory owns its bytes; pointers into it live as long as it does.
 * Time       None: users add what an access takes.
 * Limits     Addresses are physical: nothing is translated, nothing is absent.
 * Source     Parameters of the machines that use it.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define SIM_PAGE_BYTES 4096u

enum sim_memory_verdict {
    SIM_MEMORY_GOOD,
    SIM_MEMORY_OUTSIDE, /* No such address: a bus answers with an abort. */
};

struct sim_memory {
    uint8_t *bytes;
    size_t size; /* Whole pages. */
};

/* `bytes` is rounded up to pages. Zeroed. */
void sim_memory_open(struct sim_memory *memory, size_t bytes);
void sim_memory_close(struct sim_memory *memory);

/* On SIM_MEMORY_GOOD *at points to `length` bytes (not 0) at `address`. */
MUST_USE enum sim_memory_verdict sim_memory_at(const struct sim_memory *memory, uint64_t address,
                                               size_t length, uint8_t **at);

#endif
