/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hold - payloads that came before their turn, of all queue pairs of a NIC.
 *
 * Purpose    Copies a payload into a slot and keeps it until it may be placed. The slots of one
 *            block form a ring in the order of their positions.
 * Inputs     block_hold_add: a payload, and the ring of its block.
 * Outputs    block_hold_first, block_hold_detach: the lowest position of a ring, and its payload.
 * Ownership  The caller gives the memory (block_hold_bytes). A slot that was detached stays taken
 *            until block_hold_release: a world may still copy out of it.
 * Units      Bytes; a ring is known by its last slot.
 * Limits     As many slots as given at init, each of one MTU; 64 slots in a ring.
 * Source     docs/block-transport.md.
 */
#ifndef TRANSPORT_BLOCK_HOLD_H
#define TRANSPORT_BLOCK_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define BLOCK_HOLD_NONE UINT32_MAX

struct block_hold_slot {
    uint32_t next; /* In the ring of its block; of a free slot: the next free one. */
    uint16_t bytes;
    uint8_t position;
    bool taken;
};

struct block_hold {
    struct block_hold_slot *slots;
    uint8_t *payloads;
    uint32_t slot_bytes;
    uint32_t count, used;
    uint32_t free;  /* The first of those that were given back; BLOCK_HOLD_NONE: none. */
    uint32_t fresh; /* This one and all behind it were never taken: their pages are untouched. */
};

size_t block_hold_bytes(uint32_t slots, uint32_t mtu_bytes);
/* `memory` is zeroed and 64-byte aligned. */
void block_hold_init(struct block_hold *hold, uint32_t slots, uint32_t mtu_bytes, void *memory);

/* Copies a payload of a position that is not in `*ring` yet; BLOCK_HOLD_NONE is an empty ring.
 * False: there is no room, and nothing changes. */
MUST_USE bool block_hold_add(struct block_hold *hold, uint32_t *ring, uint8_t position,
                             const uint8_t *payload, uint32_t bytes);

/* The slot with the lowest position of a ring that is not empty. */
uint32_t block_hold_first(const struct block_hold *hold, uint32_t ring);
uint8_t block_hold_position(const struct block_hold *hold, uint32_t slot);
uint32_t block_hold_length(const struct block_hold *hold, uint32_t slot);
const uint8_t *block_hold_payload(const struct block_hold *hold, uint32_t slot);

/* Takes the first slot out of its ring; it stays taken. */
uint32_t block_hold_detach(struct block_hold *hold, uint32_t *ring);
void block_hold_release(struct block_hold *hold, uint32_t slot);
/* Releases all slots of a ring. */
void block_hold_drop(struct block_hold *hold, uint32_t *ring);

/* The slots that are not taken are all on the list of free ones. */
void block_hold_check(const struct block_hold *hold);

#endif
