/* SPDX-License-Identifier: BSD-2-Clause
 *
 * entropy - random numbers that programs get, and numbers of this machine that are told otherwise.
 */
#include <string.h>

#include "box/internal.h"

void entropy_fill(struct box *box, void *into, size_t bytes)
{
    uint8_t *to = into;
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t drawn = prng_next(&box->entropy);
        memcpy(to + i, &drawn, bytes - i < sizeof(drawn) ? bytes - i : sizeof(drawn));
    }
}

uint64_t number_of(struct numbers *numbers, uint64_t major, uint64_t minor)
{
    int i = 0;
    while (i < numbers->count && (numbers->seen[i][0] != major || numbers->seen[i][1] != minor)) {
        i++;
    }
    if (i == numbers->count && i < BOX_NUMBERS_MAX - 1) {
        numbers->seen[i][0] = major;
        numbers->seen[i][1] = minor;
        numbers->count++;
    }
    return (uint64_t)i;
}
