/* SPDX-License-Identifier: BSD-2-Clause
 *
 * share_route - for which of the processes that share an address is a packet?
 *
 * Purpose    Decides by the destination QPN; for QPN 1, which all have, by the MAD.
 * Inputs     A packet whose ICRC was right.
 * Outputs    A share_route.
 * Ownership  Nothing.
 * Threads    Any.
 * Time       Not used.
 * Units      Bytes.
 * Limits     None.
 * Source     IBTA Vol. 1, 12.6 (communication management messages), 13.4.3 (MAD header).
 */
#ifndef DRIVERS_SHARE_ROUTE_H
#define DRIVERS_SHARE_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of three: ours, another slot's, or nobody's. */
struct share_route {
    bool mine;     /* Or nothing that makes sense: whoever read it judges it. */
    uint32_t slot; /* The owner's, if it is neither ours nor nobody's. */
    bool nobody;
};

/* A packet from its BTH on, without ICRC, at least ROCE_BTH_BYTES. */
struct share_route share_route(uint32_t own_slot, const uint8_t *packet, size_t bytes);

/* A MAD from its base header on. Requests are for whoever listens, which live_cm_route.c finds out;
 * messages that answer name the id their receiver chose, whose upper 8 bits are its slot. */
struct share_route share_route_mad(uint32_t own_slot, const uint8_t *mad, size_t bytes);

/* That slot; LOCAL_NO_SLOT: the MAD answers nobody. */
int share_slot_of_mad(const uint8_t *mad, size_t bytes);

#endif
