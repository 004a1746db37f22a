/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_faults - `--fault` of the commands of `nonic hdl`.
 */
#ifndef TOOLS_HDL_FAULTS_H
#define TOOLS_HDL_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/parts/design.h"

#define HDL_FAULT_HELP                                                                             \
    "  --fault SPEC          badfcs=P, truncate=P: frames to a design with a wrong FCS, or cut;\n" \
    "                        reset=P, reset=TIME: it is reset at an edge, or at a time as 100us\n"

/* Adds those of `text`. False: it is not understood, and why is printed. */
bool hdl_read_faults(const char *text, struct sim_design_fault_rates *rates);
/* As it, but for a design that is on a network: the words that are not of hardware are added to
 * `network`. False also if it has no room for them. */
bool hdl_split_faults(const char *text, struct sim_design_fault_rates *rates, char *network,
                      size_t bytes);
/* A line with the faults that struck a design; none if none did. */
void hdl_print_faults(const char *name, const struct sim_design *design);

#endif
