/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic - the command's parts: one function for each sub-command.
 *
 * Each gets its own arguments, argv[0] being its name, and returns the exit status.
 */
#ifndef TOOLS_NONIC_H
#define TOOLS_NONIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int command_run(int argc, char **argv);
/* The seed that `nonic run --odd` has without one; 0: it is drawn. */
extern uint64_t run_seed;
/* The folder of the library beside that of live NICs, with a slash; empty: that one. */
extern const char *run_world;
int command_at(int argc, char **argv);
int command_info(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_feroce(int argc, char **argv);

/* The full path of one of the command's parts, wherever it was built or installed. False: `error`
 * says why there is none that can be read (parts.c). */
bool find_part(const char *name, char *path, size_t bytes, char *error, size_t error_bytes);

/* Becomes one of the command's parts that are programs: it has these arguments, and its exit status
 * is the command's. Returns only if it cannot be started: standard error says why, and 1 is the
 * exit status (parts.c). */
int run_part(const char *name, char **argv);

/* Programs that are started from now on load nonic's libibverbs before any other. False: standard
 * error says why not (run.c). */
bool preload_library(void);
/* In front of what the variable of the environment has, with a colon between the two. */
void put_before(const char *variable, const char *value);
/* Likewise a part of nonic that is a library. */
bool preload_part(const char *name);

/* Becomes this program, on nonic. Returns only if it cannot be started: standard error says why,
 * and this is the exit status (run.c). */
int run_program(char **program);

/* Warns on standard error if nonic cannot be loaded into this program, and says what to do; the
 * program is looked for as execvp does (program.c). */
void warn_of_program(const char *name);

/* Exit status of a wrong command line. */
#define EXIT_USAGE 2

#endif
