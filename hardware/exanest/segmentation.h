/* SPDX-License-Identifier: BSD-2-Clause
 *
 * segmentation - cuts a transfer into blocks that one context of the receiver can track.
 *
 * Purpose    A block has at most 16 KB and crosses no 16 KB line of the destination: so each of its
 *            packets has a bit of its own in the receiver's bitmap of 64.
 * Limits     Transfers of up to 4 GB.
 * Source     Xirouchakis 4, 4.1.1.
 *
 * EXANEST_CUT_SOURCE is the mistake that row EXA-A19 needs: its blocks end at lines of the source,
 * and may then touch 65 lines of 256 bytes at the destination.
 */
#ifndef HARDWARE_EXANEST_SEGMENTATION_H
#define HARDWARE_EXANEST_SEGMENTATION_H

#include "wire/exanest.h"

enum exanest_cut {
    EXANEST_CUT_DESTINATION, /* The choice of this model's source. */
    EXANEST_CUT_SOURCE,
};

/* `remaining` is not 0. */
static inline uint32_t exanest_block_bytes(enum exanest_cut cut, uint64_t source,
                                           uint64_t destination, uint32_t remaining)
{
    const uint64_t line = cut == EXANEST_CUT_SOURCE ? source : destination;
    const uint32_t room = EXANEST_BLOCK_BYTES_MAX - (uint32_t)(line % EXANEST_BLOCK_BYTES_MAX);
    return remaining < room ? remaining : room;
}

#endif
