/* SPDX-License-Identifier: BSD-2-Clause
 *
 * machine - the parameters of RoCE NICs, for experiments.
 */
#ifndef LAB_ROCE_MACHINE_H
#define LAB_ROCE_MACHINE_H

#include "lab/lab.h"
#include "lab/roce/roce.h"

#define ROCE_PARAMETER_COUNT (ROCE_SETTING_COUNT + 7)
extern const struct lab_document roce_document;
/* Those of a NIC and its network come first. */
extern const struct lab_parameter roce_parameters[ROCE_PARAMETER_COUNT];

/* The run's settings of a NIC and its network. */
struct roce_settings roce_settings_of(struct lab_run *run);

#endif
