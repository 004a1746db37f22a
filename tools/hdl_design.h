/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_design - calls that the commands of `nonic hdl` share, around a compiled design. They print
 *              errors.
 */
#ifndef TOOLS_HDL_DESIGN_H
#define TOOLS_HDL_DESIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/parts/design.h"

#define PS_PER_US 1000000.0

/* The object stays loaded. NULL: it is no design. */
const struct hdl_model_ops *hdl_load(const char *path);
/* Writes all signals from the next edge on, as FST. */
bool hdl_trace(struct sim_design *design, const char *path);
/* Prints the first violations of each port that were not printed yet. Returns how many rules were
 * broken in all. */
uint64_t hdl_print_violations(struct sim_design *design);
/* The value of the option --name. */
bool hdl_read_number(const char *name, const char *text, double least, double most, double *value);

#endif
