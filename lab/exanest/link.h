/* SPDX-License-Identifier: BSD-2-Clause
 *
 * link - a cable between two FPGAs: both directions of an ExAurora link, in picoseconds.
 *
 * Purpose    Joins the serializers and deserializers of hardware/exanest/exaurora.h by wires.
 * Inputs     exanest_link_step; the unit at an end puts words into its serializer and takes words
 *            from its deserializer.
 * Ownership  A link owns its wires until exanest_link_close.
 * Time       Pieces leave and arrive at picoseconds, between the cycles of the datapath. No unit
 *            can see them before the next cycle. So a step plays the pieces since the last one, and
 *            no event is scheduled for them.
 * Limits     Both ends have the same clock.
 * Source     Xirouchakis 6.3.
 */
#ifndef LAB_EXANEST_LINK_H
#define LAB_EXANEST_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/exanest/exaurora.h"

#define EXANEST_WIRE_PS 420000u /* Aurora, transceivers and wire: L_pma, our choice. */

struct exanest_link_config {
    struct exanest_serializer_config serializer;
    struct exanest_deserializer_config deserializer;
    uint32_t wire_ps;
};

/* A piece on the wire, and the time when it will have come. */
struct exanest_flying {
    uint64_t at_ps;
    struct exanest_piece piece;
};

struct exanest_lane;

struct exanest_direction {
    struct exanest_lane *lane; /* NULL: nobody looks. */
    struct exanest_serializer serializer;
    struct exanest_deserializer deserializer;
    uint64_t free_ps; /* When the line is. */
    uint64_t used_ps; /* The line was, so far. */
    struct exanest_flying *flying;
    uint32_t mask, head, tail;
    bool flow_flies; /* A flow-control word is among them. */
};

struct exanest_link {
    struct exanest_direction ways[2]; /* Way i begins at end i. */
    uint64_t wire_ps;
    uint64_t now_ps; /* Everything before this has happened. */
};

struct exanest_link_config exanest_link_default(void);
void exanest_link_open(struct exanest_link *link, const struct exanest_link_config *config);
void exanest_link_close(struct exanest_link *link);

/* An edge of the datapath's clock: what happened on the wires up to now, then a cycle of all four
 * FIFOs. `now_ps` never falls. */
void exanest_link_step(struct exanest_link *link, uint64_t now_ps);

/* Would steps change nothing until somebody puts or takes a word? */
bool exanest_link_idle(const struct exanest_link *link);

/* The units at an end: words go in by the one, and come out by the other. */
static inline struct exanest_serializer *exanest_link_in(struct exanest_link *link, uint32_t end)
{
    return &link->ways[end].serializer;
}

static inline struct exanest_deserializer *exanest_link_out(struct exanest_link *link, uint32_t end)
{
    return &link->ways[!end].deserializer;
}

#endif
