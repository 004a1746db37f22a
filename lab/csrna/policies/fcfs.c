/* SPDX-License-Identifier: BSD-2-Clause
 *
 * First come, first served: a miss holds up everybody (3, figure 2).
 */
#include "lab/csrna/policies.h"

const struct csrna_policy_kind csrna_fcfs = {.order = QPC_FCFS};
