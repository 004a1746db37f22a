/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/counters.h"

#include "base/check.h"

const char *nic_counter_name(enum nic_counter counter)
{
    switch (counter) {
#define NIC_COUNTER_NAME(name)                                                                     \
    case COUNTER_##name: return #name;
        NIC_COUNTERS(NIC_COUNTER_NAME)
#undef NIC_COUNTER_NAME
    case COUNTER_COUNT: break;
    }
    UNREACHABLE("a counter outside its enum");
}
