/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/forth/lanes.h"

#define HALF_FULL   (FORTH_ELASTIC_WORDS / 2)
#define LANE_WORDS  (2 * FORTH_SKEW_WORDS_MAX)
#define ALL_CONTROL 0xfu

static bool is_idle(struct forth_word word)
{
    return word.control == ALL_CONTROL && word.data == FORTH_IDLE_WORD.data;
}

static bool is_sop(struct forth_word word)
{
    return word.control != 0 && word.data >> 24 == FORTH_SOP;
}

/* -- Elastic buffer -----------------------------------------------------------------------------*/

static void elastic_append(struct forth_elastic *elastic, struct forth_word word)
{
    elastic->words[(elastic->head + elastic->count) % FORTH_ELASTIC_WORDS] = word;
    elastic->count++;
}

void forth_elastic_init(struct forth_elastic *elastic)
{
    *elastic = (struct forth_elastic){.head = 0};
    while (elastic->count < HALF_FULL) {
        elastic_append(elastic, FORTH_IDLE_WORD);
    }
}

/* Goes back to half full, where a whole frame fits with the largest drift either way. */
void forth_elastic_put(struct forth_elastic *elastic, struct forth_word word)
{
    if (is_idle(word) && elastic->count > HALF_FULL) {
        elastic->dropped++;
    } else if (elastic->count == FORTH_ELASTIC_WORDS) {
        elastic->lost++;
    } else {
        elastic_append(elastic, word);
    }
}

struct forth_word forth_elastic_take(struct forth_elastic *elastic)
{
    const struct forth_word word = elastic->words[elastic->head];
    if (elastic->count == 0) {
        elastic->lost++;
        return FORTH_IDLE_WORD;
    }
    if (is_idle(word) && elastic->count < HALF_FULL) {
        elastic->repeated++; /* The comma was given, and stays in the buffer. */
        return word;
    }
    elastic->head = (elastic->head + 1) % FORTH_ELASTIC_WORDS;
    elastic->count--;
    return word;
}

/* -- Two lanes ----------------------------------------------------------------------------------*/

static struct forth_word first(const struct forth_deskew *deskew, uint32_t lane)
{
    return deskew->words[lane][deskew->head[lane]];
}

static void drop_first(struct forth_deskew *deskew, uint32_t lane)
{
    deskew->head[lane] = (deskew->head[lane] + 1) % LANE_WORDS;
    deskew->count[lane]--;
}

/* A lane that is held for longer than the FIFO is deep waits for a start that does not come. */
void forth_deskew_put(struct forth_deskew *deskew, const struct forth_word words[FORTH_LANES])
{
    for (uint32_t lane = 0; lane < FORTH_LANES; lane++) {
        if (deskew->count[lane] > FORTH_SKEW_WORDS_MAX) {
            deskew->errors++;
            drop_first(deskew, lane);
        }
        const uint32_t at = (deskew->head[lane] + deskew->count[lane]) % LANE_WORDS;
        deskew->words[lane][at] = words[lane];
        deskew->count[lane]++;
    }
}

bool forth_deskew_take(struct forth_deskew *deskew, struct forth_word words[FORTH_LANES])
{
    if (deskew->count[0] == 0 || deskew->count[1] == 0) {
        return false;
    }
    for (uint32_t lane = 0; lane < FORTH_LANES; lane++) {
        /* This lane shows a start, the other is behind: it catches up, this one is held. */
        if (is_sop(first(deskew, lane)) && !is_sop(first(deskew, 1 - lane))) {
            drop_first(deskew, 1 - lane);
            return false;
        }
    }
    for (uint32_t lane = 0; lane < FORTH_LANES; lane++) {
        words[lane] = first(deskew, lane);
        drop_first(deskew, lane);
    }
    return true;
}
