/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/faults.h"

#include "base/check.h"

const char *sim_fault_name(enum sim_fault fault)
{
    static const char *const names[] = {
#define NAME(name) #name,
        SIM_FAULTS(NAME)
#undef NAME
    };
    CHECK(fault < SIM_FAULT_COUNT);
    return names[fault];
}
