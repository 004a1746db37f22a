/* SPDX-License-Identifier: BSD-2-Clause
 *
 * experiments - functions that the experiments on networks share.
 */
#ifndef LAB_NETWORK_EXPERIMENTS_H
#define LAB_NETWORK_EXPERIMENTS_H

#include "base/check.h"
#include "lab/network/network.h"

#define NETWORK_COMMON                                                                             \
    .document = &network_document, .parameters = network_parameters,                               \
    .parameter_count = NETWORK_PARAMETER_COUNT
#define NETWORK_CLAIMS(list) .claims = (list), .claim_count = COUNT_OF(list)
/* The parameters that network_config_of asks for. */
#define NETWORK_USES                                                                               \
    "rate link switch switching buffering arbiter arrivals paths frame payload crc "

#define EXPERIMENT(symbol) extern const struct lab_experiment symbol;
#include "lab/network/experiments.def"
#undef EXPERIMENT

#endif
