/* SPDX-License-Identifier: BSD-2-Clause
 *
 * experiments - functions that the experiments on FORTH's system share.
 */
#ifndef LAB_FORTH_EXPERIMENTS_H
#define LAB_FORTH_EXPERIMENTS_H

#include <stdio.h>
#include <string.h>

#include "lab/forth/machine.h"
#include "lab/forth/station.h"
#include "lab/lab.h"

/* Members that all experiments on this document share, and an experiment's claims. */
#define FORTH_COMMON                                                                               \
    .document = &forth_document, .parameters = forth_parameters,                                   \
    .parameter_count = FORTH_PARAMETER_COUNT
#define FORTH_CLAIMS(list) .claims = (list), .claim_count = COUNT_OF(list)

#define EXPERIMENT(symbol) extern const struct lab_experiment symbol;
#include "lab/forth/experiments.def"
#undef EXPERIMENT

#define FORTH_SWITCHED_NODES 4u
#define FORTH_QWORD_BYTES    8u

/* -- Functions that experiments share -----------------------------------------------------------*/

/* The claim's id, and the row's own word behind it. */
const char *forth_row_id(char *id, const char *claim, const char *which, ...)
    __attribute__((format(printf, 3, 4)));
/* The sum of the times of a message's parts between two nodes without a switch, in ns: post, read,
 * the way over the links until enough is there, write. */
double forth_one_way_ns(struct lab_run *run, uint32_t qwords);
/* Half of the time from one ball of a ping-pong to the next, in ns. */
double forth_ping_pong_ns(struct lab_run *run, uint32_t nodes, bool switched, uint32_t qwords);

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
