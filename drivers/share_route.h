/* SPDX-License-Identifier: BSD-2-Clause
 *
 * share_route - the owner of a packet among the processes that share an address.
 *
 * Purpose    Decides by the destination QPN; for QPN 1, which all have, by the MAD.
 * Inputs     A packet whose ICRC was right.
 * Outputs    A share_route.
 * Threads    Any.
 * Source     IBTA Vol. 1, 12.6 (communication management messages), 13.4.3 (MAD header).
 */
#ifndef DRIVERS_SHARE_ROUTE_H
#define DRIVERS_SHARE_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of three: ours, another slot's, or nobody's. */
struct share_route {
    bool mine;     /* Or it makes no sense: the process that read it judges it. */
    uint32_t slot; /* The owner's, if it is neither ours nor nobody's. */
    bool nobody;
};

/* A packet from its BTH on, without ICRC, at least ROCE_BTH_BYTES. */
struct share_route share_route(uint32_t own_slot, const uint8_t *packet, size_t bytes);

/* A MAD from its base header on. A request is for the process that listens, which live_cm_route.c
 * finds. A message that answers names the id that its receiver chose, and the id's upper 8 bits are
 * the receiver's slot. */
struct share_route share_route_mad(uint32_t own_slot, const uint8_t *mad, size_t bytes);

/* The slot in a MAD that answers; LOCAL_NO_SLOT: the MAD answers nobody. */
int share_slot_of_mad(const uint8_t *mad, size_t bytes);

#endif
