/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ConnectX-5, of which the document knows that it caches contexts (1), and that its rate declines
 * beyond 256 connections (2.2). That it serves them in their order is what the document supposes of
 * such NICs (3): a guess, and no measurement.
 */
#include "lab/csrna/policies.h"

const struct csrna_policy_kind csrna_connectx = {.order = QPC_FCFS, .contexts = "connectx"};
