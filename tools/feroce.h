/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce - `nonic feroce`: a front end without its FPGA, its receiver, and the command that tells
 * it to send.
 *
 * Each gets its own arguments, argv[0] being its name, and returns the exit status.
 */
#ifndef TOOLS_FEROCE_H
#define TOOLS_FEROCE_H

int feroce_board_main(int argc, char **argv);
int feroce_ctl_main(int argc, char **argv);

#endif
