/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic - the command's parts: one function for each sub-command.
 *
 * Each gets its own arguments, argv[0] being its name, and returns the exit status.
 */
#ifndef TOOLS_NONIC_H
#define TOOLS_NONIC_H

#include <stddef.h>

int command_run(int argc, char **argv);
int command_info(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_lab(int argc, char **argv);
int command_bench(int argc, char **argv);

/* Exit status of a wrong command line. */
#define EXIT_USAGE 2

#endif
