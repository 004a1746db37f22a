/* SPDX-License-Identifier: BSD-2-Clause
 *
 * csRNA without hiding: a miss holds up nobody else (4.3).
 */
#include "lab/csrna/policies.h"

const struct csrna_policy_kind csrna_non_blocking = {.order = QPC_NONBLOCKING};
