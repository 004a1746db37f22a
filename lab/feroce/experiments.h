/* SPDX-License-Identifier: BSD-2-Clause
 *
 * experiments - functions that the experiments on FERoCE's front end share.
 */
#ifndef LAB_FEROCE_EXPERIMENTS_H
#define LAB_FEROCE_EXPERIMENTS_H

#include "base/check.h"
#include "lab/lab.h"

#define FEROCE_PARAMETER_COUNT 60
extern const struct lab_document feroce_document;
extern const struct lab_parameter feroce_parameters[FEROCE_PARAMETER_COUNT];

#define FEROCE_COMMON                                                                              \
    .document = &feroce_document, .parameters = feroce_parameters,                                 \
    .parameter_count = FEROCE_PARAMETER_COUNT
#define FEROCE_CLAIMS(list) .claims = (list), .claim_count = COUNT_OF(list)

static inline uint32_t feroce_whole(struct lab_run *run, const char *name)
{
    return (uint32_t)lab_value(run, name);
}

#define EXPERIMENT(symbol) extern const struct lab_experiment symbol;
#include "lab/feroce/experiments.def"
#undef EXPERIMENT

#endif
