/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_icarus - a design under Icarus Verilog as a model (hdl/model.h).
 *
 * Purpose    Icarus' vvp runs in a process of its own, and its ports with it. The model's ports
 *            are mirrors (hdl/mirror.h) of those: they show what has happened up to each edge.
 * Errors     A process that ends, says what it may not say (hdl/message.h), or does not answer for
 *            a minute, fails the run with a reason.
 */
#ifndef TOOLS_HDL_ICARUS_H
#define TOOLS_HDL_ICARUS_H

#include <limits.h>

#include "hdl/model.h"

/* Whether a file is what iverilog makes. */
bool hdl_is_icarus(const char *path);

/* Never ends. NULL, and printed: its module for vvp is not beside it. */
const struct hdl_model_ops *hdl_load_icarus(const char *path);

/* The module for vvp that belongs to OUT.vvp: OUT.vpi. */
void hdl_icarus_module(const char *path, char module[PATH_MAX]);

#endif
