/* SPDX-License-Identifier: BSD-2-Clause
 *
 * beat - one word on ExaNet: what a master shows, and a slave takes, in one cycle.
 *
 * Every unit that sends has `NAME_offer`, which shows a beat without changing anything, and
 * `NAME_taken`, which says that its Ready was there. Every unit that takes has `NAME_ready`, which
 * says whether it takes such a beat in this cycle, and `NAME_take`. A master shows the same beat
 * until it is taken.
 *
 * Source: Xirouchakis 3.2.4.
 */
#ifndef HARDWARE_EXANEST_BEAT_H
#define HARDWARE_EXANEST_BEAT_H

#include "wire/exanest.h"

/* Which of the three Valid signals is up. */
enum exanest_part {
    EXANEST_HEADER,
    EXANEST_PAYLOAD,
    EXANEST_FOOTER,
};

struct exanest_beat {
    enum exanest_part part;
    bool last;       /* The packet's last word: there is no wire for it, the header says it. */
    uint8_t channel; /* Between two routers: the virtual channel (router.h). Elsewhere 0. */
    struct exanest_word word;
};

#endif
