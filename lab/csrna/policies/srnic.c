/* SPDX-License-Identifier: BSD-2-Clause
 *
 * SRNIC, as the document has it: "a fixed connection capacity" (5.2), all contexts on the chip. How
 * SRNIC itself keeps contexts small is not modelled.
 */
#include "lab/csrna/policies.h"

const struct csrna_policy_kind csrna_srnic = {
    .order = QPC_FCFS, .refuses = true, .contexts = "srnic"};
