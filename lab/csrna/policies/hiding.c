/* SPDX-License-Identifier: BSD-2-Clause
 *
 * csRNA: a miss holds up nobody else, and its context comes while the work request does (4.5).
 */
#include "lab/csrna/policies.h"

const struct csrna_policy_kind csrna_hiding = {.order = QPC_NONBLOCKING, .hides = true};
