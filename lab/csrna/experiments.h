/* SPDX-License-Identifier: BSD-2-Clause
 *
 * experiments - functions that the experiments on csRNA share.
 */
#ifndef LAB_CSRNA_EXPERIMENTS_H
#define LAB_CSRNA_EXPERIMENTS_H

#include "base/check.h"
#include "lab/csrna/machine.h"
#include "lab/lab.h"

#define CSRNA_MILLION 1e6
/* The part of a round over the connections that is measured: a sixth of 51,200 fills every cache
 * several times over. */
#define CSRNA_PART (1.0 / 6)

/* `list` is the array of its claims. */
#define CSRNA_EXPERIMENT(symbol, title, says, depends, list, is_quick, function, why)              \
    const struct lab_experiment symbol = {                                                         \
        .name = title,                                                                             \
        .document = &csrna_document,                                                               \
        .what = says,                                                                              \
        .parameters = csrna_parameters,                                                            \
        .parameter_count = CSRNA_PARAMETER_COUNT,                                                  \
        .uses = depends,                                                                           \
        .claims = list,                                                                            \
        .claim_count = COUNT_OF(list),                                                             \
        .quick = is_quick,                                                                         \
        .run = function,                                                                           \
        .explains = why,                                                                           \
    }

#define EXPERIMENT(symbol) extern const struct lab_experiment symbol;
#include "lab/csrna/experiments.def"
#undef EXPERIMENT

#define CSRNA_POINTS_MAX 16u
#define CSRNA_PER_CORE   512u

/* The mean latency of messages in us. */
double csrna_latency_of(struct lab_run *run, struct csrna_load load, uint32_t qps);
/* The rate in million messages a second. */
double csrna_rate_of(struct lab_run *run, struct csrna_load load, uint32_t qps);

#endif
