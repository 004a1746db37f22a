/* SPDX-License-Identifier: BSD-2-Clause
 *
 * experiments - functions that the experiments on Lant's network interface share.
 */
#ifndef LAB_LANT_EXPERIMENTS_H
#define LAB_LANT_EXPERIMENTS_H

#include "base/check.h"
#include "lab/lab.h"
#include "lab/plan.h"

#define LANT_PARAMETER_COUNT (111 + LAB_PLAN_PARAMETER_COUNT)
extern const struct lab_document lant_document;
extern const struct lab_parameter lant_parameters[LANT_PARAMETER_COUNT];

#define LANT_COMMON                                                                                \
    .document = &lant_document, .parameters = lant_parameters,                                     \
    .parameter_count = LANT_PARAMETER_COUNT
#define LANT_CLAIMS(list) .claims = (list), .claim_count = COUNT_OF(list)

static inline uint32_t lant_whole(struct lab_run *run, const char *name)
{
    return (uint32_t)lab_value(run, name);
}

#define EXPERIMENT(symbol) extern const struct lab_experiment symbol;
#include "lab/lant/experiments.def"
#undef EXPERIMENT

#endif
