/* SPDX-License-Identifier: BSD-2-Clause
 *
 * tombstones - operations that have been completed lately.
 *
 * Purpose    A packet that comes late, or once more, to an operation that is complete is known
 *            again: it is not written, it opens nothing, and it can be acknowledged again.
 * Inputs     lant_tombstones_plant: an operation is complete, or a completion notification came.
 * Outputs    Whether an operation is remembered.
 * Ownership  The caller gives the memory (lant_tombstones_bytes): a simulated network interface
 *            remembers 256 operations, a live one 65,536, in 2.4 MB.
 * Time       Ticks of the caller's choice. All tombstones live equally long.
 * Units      Operations of 20 bits; packets of 512 bytes.
 * Limits     LANT_TOMBSTONES_MAX. The oldest makes room: only protection is lost, and counted.
 * Source     Our choice: the thesis has none.
 */
#ifndef TRANSPORT_LANT_TOMBSTONES_H
#define TRANSPORT_LANT_TOMBSTONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/lant/operation_key.h"

#define LANT_TOMBSTONES     256u
#define LANT_TOMBSTONES_MAX 65536u

/* A complete operation. */
struct lant_buried {
    uint32_t source, operation;
    uint16_t packets; /* 0: not registered; its completion notification came. */
    uint64_t base;    /* Where it was written. */
};

struct lant_tombstone {
    uint64_t key, base, expires;
    uint32_t next; /* In its chain of the hash table. */
    uint16_t packets;
};

struct lant_tombstones {
    uint32_t capacity, bits;
    uint32_t oldest, count; /* A ring. */
    uint64_t lifetime;
    uint64_t evicted; /* Made room before their time was over. */
    uint32_t *chains; /* 2^bits of them: the newest stone of each. */
    struct lant_tombstone *stones;
};

size_t lant_tombstones_bytes(uint32_t capacity);
/* `memory` is aligned for uint64_t; its contents do not matter. */
void lant_tombstones_init(struct lant_tombstones *tombstones, uint32_t capacity, uint64_t lifetime,
                          void *memory);

/* A registered operation, of which this packet was a part: its registering one, */
bool lant_tombstones_has_register(const struct lant_tombstones *tombstones, uint64_t now,
                                  const struct lant_buried *operation);
/* or any of its packets, by the address; */
bool lant_tombstones_has_packet(const struct lant_tombstones *tombstones, uint64_t now,
                                uint32_t source, uint32_t operation, uint64_t address);
/* one that was not registered: by its notification. */
bool lant_tombstones_has_notification(const struct lant_tombstones *tombstones, uint64_t now,
                                      uint32_t source, uint32_t operation);

void lant_tombstones_plant(struct lant_tombstones *tombstones, uint64_t now,
                           const struct lant_buried *buried);

/* When the oldest has stood long enough. */
static inline uint64_t lant_tombstones_deadline(const struct lant_tombstones *tombstones)
{
    return tombstones->count == 0 ? LANT_NEVER : tombstones->stones[tombstones->oldest].expires;
}

/* Removes tombstones whose time is over. */
void lant_tombstones_on_time(struct lant_tombstones *tombstones, uint64_t now);

void lant_tombstones_check(const struct lant_tombstones *tombstones);

#endif
