/* SPDX-License-Identifier: BSD-2-Clause
 *
 * memcheck - programs that run under valgrind's memcheck: what the NIC does with their memory.
 *
 * Purpose    valgrind watches all code of a process, nonic's as well, and sees what arrives. It
 *            does not see that memory of a request is to be sent, before it is, nor by whom: so it
 *            is asked when the request is posted, and reports undefined and freed bytes there.
 * Inputs     A range of the program's memory.
 * Outputs    valgrind's report, with the calls that led here.
 * Threads    Any.
 * Time       Asking costs four rotations of a register and an exchange of a register with itself,
 *            which do nothing outside of valgrind; it is asked where a program is watched.
 * Source     <valgrind/valgrind.h>, <valgrind/memcheck.h>: requests by clients.
 */
#ifndef DRIVERS_MEMCHECK_H
#define DRIVERS_MEMCHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Does memcheck watch the program? Another tool of valgrind does not. */
bool memcheck_is_noted(void);

/* Reports the first byte that is not the program's. */
void memcheck_addressable(const void *memory, size_t bytes);
/* The same, and the first that was never written. */
void memcheck_defined(const void *memory, size_t bytes);

#endif
