/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/csrna/policies.h"

const struct csrna_policy_kind *const csrna_policy_kinds[CSRNA_POLICIES] = {
#define POLICY(word, nic, name) &csrna_##nic,
#include "lab/csrna/policies.def"
#undef POLICY
};

const char *const csrna_policies[CSRNA_POLICIES] = {
#define POLICY(word, nic, name) name,
#include "lab/csrna/policies.def"
#undef POLICY
};
