/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lanes - between transceivers and the receiver of link.h: clocks that differ, and two links that
 * are not equally long.
 *
 * Each transceiver's words pass an elastic buffer, which drops or repeats commas between frames so
 * that it neither fills nor runs dry. The words of a pair then pass two FIFOs, one of which is
 * held at a start symbol until the other one shows it too.
 *
 * Source: TR376 3.1.6; specification 2.7, 2.14, FNX-23, FNX-24.
 */
#ifndef HARDWARE_FORTH_LANES_H
#define HARDWARE_FORTH_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/forth/link.h"

#define FORTH_LANES          2
#define FORTH_SKEW_WORDS_MAX 8u
#define FORTH_ELASTIC_WORDS  16u

/* -- Elastic buffer -----------------------------------------------------------------------------*/

struct forth_elastic {
    struct forth_word words[FORTH_ELASTIC_WORDS];
    uint32_t head, count;
    uint64_t dropped, repeated; /* Commas. */
    uint64_t lost; /* Words that found the buffer full, and takes that found it empty. */
};

/* Makes it half full with commas. */
void forth_elastic_init(struct forth_elastic *elastic);
/* Called by the sender's clock, and by the receiver's. */
void forth_elastic_put(struct forth_elastic *elastic, struct forth_word word);
struct forth_word forth_elastic_take(struct forth_elastic *elastic);

/* -- Two lanes ----------------------------------------------------------------------------------*/

struct forth_deskew {
    struct forth_word words[FORTH_LANES][2 * FORTH_SKEW_WORDS_MAX];
    uint32_t head[FORTH_LANES], count[FORTH_LANES];
    uint64_t errors; /* Start symbols further apart than FORTH_SKEW_WORDS_MAX. */
};

/* Zeroed memory is empty. Takes one word of each lane a cycle. */
void forth_deskew_put(struct forth_deskew *deskew, const struct forth_word words[FORTH_LANES]);
/* The words that belong together; false: none are ready yet. */
bool forth_deskew_take(struct forth_deskew *deskew, struct forth_word words[FORTH_LANES]);

#endif
