/* SPDX-License-Identifier: BSD-2-Clause
 *
 * timing - when flits leave and arrive, without stepping the controllers.
 *
 * Purpose    The sums by which a world that moves whole packets knows what the bridging controllers
 *            would do. timing_test proves them against these, for every length.
 * Inputs     A packet's length; when it begins; until when the packet before it is busy.
 * Outputs    Cycles.
 * Ownership  Values only.
 * Threads    No state.
 * Time       Cycles of 6.4 ns. A cycle is what is between two steps of a controller.
 * Units      Cycles, flits.
 * Limits     Payload must be there in time, and whoever takes flits takes one each cycle; a world
 *            in which that is not so adds what it waits.
 * Source     Lant D ("N cycles for an N-flit packet" of store and forward); specification 2.1.
 *
 * Sending: a request that is given in cycle t has its H1 at the output in cycle t + 1, if the
 * controller is idle; flit i follows in cycle t + 1 + i. The next packet's H1 comes in the cycle
 * behind the last flit: no cycle is lost between packets.
 * Receiving: a packet whose H1 is taken in cycle t, and then a flit a cycle, is released to memory
 * in cycle t + flits, and gives memory a beat in each cycle from then on. With cut-through it would
 * give payload beat i in cycle t + 3 + i, that of a load in t + 2 (one later with H3).
 */
#ifndef HARDWARE_LANT_TIMING_H
#define HARDWARE_LANT_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/lant.h"

/* From a request to its H1 at the output. What Table 3.6 gives for issue and receipt (14 + flits
 * and so on, specification 5) has this cycle in it: whoever takes those numbers does not add it. */
#define LANT_ISSUE_CYCLES 1u

/* -- C1, C2 -------------------------------------------------------------------------------------*/

/* When H1 stands at the output: of a request given in cycle `given`, where the packet before it
 * leaves the output free from cycle `free` on. */
static inline uint64_t lant_send_begins(uint64_t given, uint64_t free)
{
    const uint64_t ready = given + LANT_ISSUE_CYCLES;
    return ready > free ? ready : free;
}

/* When the last flit stands there, and from when on the output is free for the next packet. */
static inline uint64_t lant_send_ends(uint64_t begins, uint32_t flits)
{
    return begins + flits - 1;
}

static inline uint64_t lant_send_free(uint64_t begins, uint32_t flits)
{
    return begins + flits;
}

/* -- C3, C4 -------------------------------------------------------------------------------------*/

/* Cycles that memory is given a packet: a beat of payload each, or the one of a load. C4 gives its
 * packets as a whole, in one cycle. */
static inline uint32_t lant_release_beats(const struct lant_header *header)
{
    return header->payload == 0 ? 1 : header->payload;
}

/* The first beat: of a packet whose last flit is taken in cycle `arrives`, where memory is free of
 * the packet before from cycle `free` on. */
static inline uint64_t lant_release_begins(uint64_t arrives, uint64_t free)
{
    return arrives + 1 > free ? arrives + 1 : free;
}

/* From H1 to the release of a packet that comes without gaps: store and forward. */
static inline uint32_t lant_release_cycles(uint32_t flits)
{
    return flits;
}

/* The same to its first beat, if it were cut through. */
static inline uint32_t lant_cut_through_cycles(const struct lant_header *header)
{
    return 2u + (header->extended ? 1 : 0) + (header->payload > 0 ? 1 : 0);
}

#endif
