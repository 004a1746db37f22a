/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl - the parts of `nonic hdl`. Each gets its own arguments, argv[0] being its name, and returns
 * the exit status.
 */
#ifndef TOOLS_HDL_H
#define TOOLS_HDL_H

int hdl_build(int argc, char **argv);
int hdl_compare_captures(int argc, char **argv);
/* No command for people: what it reads and writes is a convention of Verilator's. */
int hdl_filter_pipe(int argc, char **argv);
int hdl_lab(int argc, char **argv);
int hdl_live(int argc, char **argv);
int hdl_replay(int argc, char **argv);

#endif
