/* SPDX-License-Identifier: BSD-2-Clause
 *
 * escape - packets that came before the packet that registers their operation.
 *
 * Purpose    Keeps whole packets beside the way into memory, so that nothing has to wait behind
 *            them, until their operation is registered or their time is over.
 * Inputs     lant_escape_put: a packet; lant_escape_release: an operation is registered.
 * Outputs    lant_escape_next_released: the packets of registered operations, oldest first.
 * Ownership  A value that has copies of the packets. `slots` of them are used.
 * Time       Ticks of the caller's choice. A packet is dropped, silently, when it has waited for
 *            `patience`: its sender has no acknowledgement, and sends it again.
 * Units      Whole packets.
 * Limits     LANT_ESCAPES_MAX packets. A packet that finds no slot is dropped by its owner.
 * Source     Lant 6.2.1.1.
 */
#ifndef TRANSPORT_LANT_ESCAPE_H
#define TRANSPORT_LANT_ESCAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/lant/operation_key.h"

#define LANT_ESCAPES      64u /* Default: 6.5. */
#define LANT_ESCAPES_MAX  256u
#define LANT_ESCAPE_WORDS (LANT_ESCAPES_MAX / 64)

struct lant_escape_slot {
    uint64_t key, address, expires;
    uint16_t older, newer; /* In the order in which they came. */
};

struct lant_escape {
    uint16_t count, used, used_max; /* Slots. */
    uint16_t oldest, newest;
    uint16_t released_count;
    uint64_t patience;
    uint64_t free[LANT_ESCAPE_WORDS];     /* A bit a slot. */
    uint64_t released[LANT_ESCAPE_WORDS]; /* Their operation is registered. */
    struct lant_escape_slot slots[LANT_ESCAPES_MAX];
    struct lant_packet packets[LANT_ESCAPES_MAX];
};

void lant_escape_init(struct lant_escape *escape, uint32_t slots, uint64_t patience);

static inline bool lant_escape_full(const struct lant_escape *escape)
{
    return escape->used == escape->count;
}

/* There is a free slot. */
void lant_escape_put(struct lant_escape *escape, uint64_t now, const struct lant_packet *packet);
/* Packets that wait for this operation, with an address in its range, need to wait no longer.
 * Returns their number. */
uint32_t lant_escape_release(struct lant_escape *escape, uint64_t key, uint64_t base,
                             uint32_t packets);
/* Takes one of these out. False: there is none. */
MUST_USE bool lant_escape_next_released(struct lant_escape *escape, struct lant_packet *packet);

static inline uint64_t lant_escape_deadline(const struct lant_escape *escape)
{
    return escape->used == 0 ? LANT_NEVER : escape->slots[escape->oldest].expires;
}

/* Drops packets that have waited for too long, released or not; returns their number. */
uint32_t lant_escape_on_time(struct lant_escape *escape, uint64_t now);

void lant_escape_check(const struct lant_escape *escape);

#endif
