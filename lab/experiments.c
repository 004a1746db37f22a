/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/lab.h"

#define EXPERIMENT(symbol) extern const struct lab_experiment symbol;
#include "lab/machines.def"
#undef EXPERIMENT

#define EXPERIMENT(symbol) &symbol,
const struct lab_experiment *const lab_experiments[] = {
#include "lab/machines.def"
    NULL,
};
