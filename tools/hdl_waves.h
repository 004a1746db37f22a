/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_waves - a view of a trace for GTKWave: the signals of each port, under their names in the
 *             design.
 *
 * Purpose    `gtkwave FILE.gtkw` shows FILE.fst at the time that matters, with nothing to look for.
 * Limits     Under Icarus, a design whose modules have a finer precision than 1 ps has a trace with
 *            other units, and the time is not the one that was meant.
 */
#ifndef TOOLS_HDL_WAVES_H
#define TOOLS_HDL_WAVES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/parts/design.h"

/* The name of the view of a trace: .gtkw in the place of .fst. False: there is no such name. */
bool hdl_waves_name(const char *trace, char *name, size_t bytes);

/* Writes the view, anew each time, with the marker at a time. False: it cannot be written. */
bool hdl_waves_write(const struct sim_design *design, const char *trace, uint64_t marked_ps);

#endif
