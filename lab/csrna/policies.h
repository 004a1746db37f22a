/* SPDX-License-Identifier: BSD-2-Clause
 *
 * policies - in which order a NIC answers requests for contexts, and which it has on the chip.
 *
 * The first three are the document's own, and differ in the order alone. The others stand for NICs
 * with which the document compares csRNA (5.2, table 1): the document says how many connections
 * they take or serve at their best, and nothing else of them is modelled. All have the units, buses
 * and wires of csRNA's machine.
 */
#ifndef LAB_CSRNA_POLICIES_H
#define LAB_CSRNA_POLICIES_H

#include <stdbool.h>

#include "hardware/csrna/qpc_manager.h"

enum csrna_policy {
#define POLICY(word, nic, name) CSRNA_##word,
#include "lab/csrna/policies.def"
#undef POLICY
    CSRNA_POLICIES
};

struct csrna_policy_kind {
    enum qpc_policy order;
    bool hides;           /* WQEs are read at once, and their context beside them. */
    bool refuses;         /* It takes no more connections than it has contexts on the chip. */
    const char *contexts; /* The parameter with their number; NULL: the load says it. */
};

#define POLICY(word, nic, name) extern const struct csrna_policy_kind csrna_##nic;
#include "lab/csrna/policies.def"
#undef POLICY

/* By enum csrna_policy. */
extern const struct csrna_policy_kind *const csrna_policy_kinds[CSRNA_POLICIES];
extern const char *const csrna_policies[CSRNA_POLICIES];

#endif
