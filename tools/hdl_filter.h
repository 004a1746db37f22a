/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_filter - Verilog as Verilator 5.006 takes it.
 *
 * Purpose    This Verilator, which is Debian 12's, refuses some constructs that other tools accept.
 *            Text comes in and text goes out, so nothing here opens a file.
 */
#ifndef TOOLS_HDL_FILTER_H
#define TOOLS_HDL_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes the text to `out`, with these changes:
 * - Behind `timescale and its two times the line ends. A `line directive keeps the numbers of lines
 *   as they are; `file` is the name that it gives.
 * - Variables of functions and tasks are `automatic` instead of `static`. They begin anew with each
 *   call, so `told` gets a warning for each, with file and line.
 * - They are not `const`, which changes nothing in a correct design.
 * Comments, strings and all else stay. */
void hdl_filter(const char *file, const char *text, size_t bytes, FILE *out, FILE *told);

/* `message` is a line of Verilator's. If it is an error of one of these constructs, or of one that
 * no filter mends, `told` gets a line with file and line of it and its remedy. */
void hdl_remedy(const char *message, FILE *told);

#endif
