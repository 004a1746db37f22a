/* SPDX-License-Identifier: BSD-2-Clause
 *
 * word_fifo - ExAurora's cross-clock FIFO: 256 words, and the cycles until one is seen.
 *
 * Purpose    Words in order; one that is put in is seen `fall_through` cycles later at the other
 *            side.
 * Inputs     exanest_fifo_put, at either side's clock; exanest_fifo_step, once per datapath cycle.
 * Time       While exanest_fifo_settled, steps may be left out.
 * Limits     EXANEST_FIFO_WORDS words; one more place is for the mark that closes a packet whose
 *            end found no room (exaurora.h).
 * Source     Xirouchakis 6.3.
 */
#ifndef HARDWARE_EXANEST_WORD_FIFO_H
#define HARDWARE_EXANEST_WORD_FIFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "hardware/exanest/beat.h"

#define EXANEST_FIFO_WORDS            256u
#define EXANEST_FIFO_PLACES           (EXANEST_FIFO_WORDS + 1)
#define EXANEST_FIFO_FALL_THROUGH     3u /* Cycles (6.3). */
#define EXANEST_FIFO_FALL_THROUGH_MAX 7u

struct exanest_fifo {
    uint8_t fall_through;
    uint16_t head;    /* A place. */
    uint16_t used;    /* Words in it. */
    uint16_t visible; /* Words of `used` that can be seen. */
    uint64_t young;   /* Byte i: how many of the others were put in i steps ago. */
    struct exanest_word words[EXANEST_FIFO_PLACES];
    uint8_t marks[EXANEST_FIFO_PLACES]; /* Bits 1, 0: part; 2: last; 4, 3: channel. */
};

static inline void exanest_fifo_init(struct exanest_fifo *fifo, uint8_t fall_through)
{
    CHECK(fall_through <= EXANEST_FIFO_FALL_THROUGH_MAX);
    fifo->fall_through = fall_through;
    fifo->head = fifo->used = fifo->visible = 0;
    fifo->young = 0;
}

/* Is every word seen that is in it? */
static inline bool exanest_fifo_settled(const struct exanest_fifo *fifo)
{
    return fifo->young == 0;
}

static inline void exanest_fifo_step(struct exanest_fifo *fifo)
{
    const uint32_t at = 8u * fifo->fall_through;
    fifo->young <<= 8;
    fifo->visible = (uint16_t)(fifo->visible + (fifo->young >> at & 0xff));
    fifo->young &= ~(UINT64_C(0xff) << at);
}

static inline void exanest_fifo_put(struct exanest_fifo *fifo, const struct exanest_beat *beat)
{
    CHECK(fifo->used < EXANEST_FIFO_PLACES && beat->channel < 4);
    if (fifo->used == 0) {
        fifo->head = 0; /* An empty FIFO begins where its memory was used last: in the cache. */
    }
    uint32_t place = (uint32_t)fifo->head + fifo->used;
    place = place >= EXANEST_FIFO_PLACES ? place - EXANEST_FIFO_PLACES : place;
    fifo->words[place] = beat->word;
    fifo->marks[place] =
        (uint8_t)((uint32_t)beat->part | (uint32_t)beat->last << 2 | (uint32_t)beat->channel << 3);
    fifo->used++;
    if (fifo->fall_through == 0) {
        fifo->visible++;
    } else {
        CHECK((fifo->young & 0xff) != 0xff);
        fifo->young++;
    }
}

/* There is one that is seen. */
static inline struct exanest_beat exanest_fifo_head(const struct exanest_fifo *fifo)
{
    const uint8_t mark = fifo->marks[fifo->head];
    return (struct exanest_beat){
        .part = (enum exanest_part)(mark & 3),
        .last = (mark >> 2 & 1) != 0,
        .channel = mark >> 3,
        .word = fifo->words[fifo->head],
    };
}

static inline void exanest_fifo_pop(struct exanest_fifo *fifo)
{
    CHECK(fifo->visible > 0);
    fifo->visible--;
    fifo->used--;
    fifo->head = (uint16_t)(fifo->head + 1u == EXANEST_FIFO_PLACES ? 0 : fifo->head + 1u);
}

static inline void exanest_fifo_check(const struct exanest_fifo *fifo)
{
    uint32_t young = 0;
    for (uint32_t i = 0; i < 8; i++) {
        young += (uint32_t)(fifo->young >> (8 * i) & 0xff);
    }
    CHECK(fifo->used <= EXANEST_FIFO_PLACES && fifo->head < EXANEST_FIFO_PLACES);
    CHECK(fifo->visible + young == fifo->used);
}

#endif
