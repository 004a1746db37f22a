/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_wire - two designs back to back: a line from port 0 of each to port 0 of the other one.
 */
#ifndef TOOLS_HDL_WIRE_H
#define TOOLS_HDL_WIRE_H

#include "tools/hdl_design.h"

struct hdl_wire_wishes {
    const struct hdl_wishes *plain;
    const struct sim_design_fault_rates *faults;
    const char *replay, *capture; /* NULL: none. */
    uint64_t delay_ps;            /* From the last bit at one end to the last bit at the other. */
    uint64_t rest_ps;             /* The run ends when no frame passed for this time, */
    uint64_t until_ps;            /* and at this time; 0: never. */
};

/* Returns the status. */
int hdl_wire(const struct hdl_wire_wishes *wishes, char *const paths[2]);

#endif
