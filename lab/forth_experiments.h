/* SPDX-License-Identifier: BSD-2-Clause
 *
 * forth_experiments - what the experiments on FORTH's system share.
 */
#ifndef LAB_FORTH_EXPERIMENTS_H
#define LAB_FORTH_EXPERIMENTS_H

#include <stdio.h>
#include <string.h>

#include "lab/forth_machine.h"
#include "lab/lab.h"
#include "sim/station.h"

#define FORTH_DOCUMENT "FORTH-ICS TR376: multi-gigabit NIC and buffered crossbar (2006)"

#define FORTH_EXPERIMENT(symbol, title, says, function, why)                                       \
    const struct lab_experiment symbol = {                                                         \
        .name = title,                                                                             \
        .document = FORTH_DOCUMENT,                                                                \
        .what = says,                                                                              \
        .parameters = forth_parameters,                                                            \
        .parameter_count = FORTH_PARAMETER_COUNT,                                                  \
        .run = function,                                                                           \
        .explains = why,                                                                           \
    }

/* In the order of the list. */
extern const struct lab_experiment forth_one_way, forth_to_itself, forth_three_to_one, forth_sizes,
    forth_round_trip, forth_direct, forth_ping_pong, forth_cut_through, forth_all_to_all,
    forth_saturation, forth_soak, forth_xdd, forth_postmark, forth_files;

/* -- A yard: a crossbar with stations, without hosts --------------------------------------------*/

struct forth_yard {
    struct lab_run *run;
    struct sim *sim; /* Its own world, */
    struct sim own;  /* unless it shares a world with others. */
    struct forth_fabric fabric;
    struct crossbar crossbar;
    uint32_t count;
    struct station *stations;
    struct forth_link *up, *down;
};

void forth_yard_open(struct forth_yard *yard, struct lab_run *run, uint32_t nodes);
/* Opens a yard in a world that exists already. */
void forth_yard_open_in(struct forth_yard *yard, struct lab_run *run, struct sim *sim,
                        uint32_t nodes);
/* A station's usual set-up: all sizes, to all others, as much as the link takes. */
struct station_config forth_station_config(struct lab_run *run, uint32_t index, uint32_t nodes);
void forth_yard_station(struct forth_yard *yard, const struct station_config *config);
/* Checks that no byte is wrong, and that no packet is missing or repeated but for the errors that
 * were asked for. Otherwise the run fails. */
void forth_yard_check(const struct forth_yard *yard);
void forth_yard_close(struct forth_yard *yard);

#endif
