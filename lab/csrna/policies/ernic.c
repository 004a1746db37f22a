/* SPDX-License-Identifier: BSD-2-Clause
 *
 * eRNIC: the contexts of all its connections are on the chip, and it takes no more of them (1).
 */
#include "lab/csrna/policies.h"

const struct csrna_policy_kind csrna_ernic = {
    .order = QPC_FCFS, .refuses = true, .contexts = "ernic"};
