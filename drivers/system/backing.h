/* SPDX-License-Identifier: BSD-2-Clause
 *
 * backing - the pages behind private memory of the program: exchanged for pages that other
 * processes can map, and exchanged back.
 *
 * Purpose    Nobody can map the private memory of a program. Its bytes are copied into a file in
 *            memory (memfd), which takes the place of the pages. Addresses and contents stay.
 * Inputs     Whole pages. Bytes that another thread, or the kernel on its behalf, writes meanwhile
 *            would be lost: so backing_is_alone comes first, and the caller, the program's only
 *            thread, is in a call of ours.
 * Outputs    A descriptor for peers: the file is mapped from its begin on, is longer than the
 *            memory (which mremap may let grow), and cannot change its size.
 * Ownership  The descriptor is the caller's. Pages that are shared stay so until backing_return.
 * Threads    The program's only one.
 * Time       A memory copy, and 1 to 2 us a page.
 * Limits     A child of fork does not have pages that are shared: they are returned before.
 *            A process that reaches into the memory by the process's number, and is not one of our
 *            peers, can lose bytes that it writes during the exchange.
 * Source     mremap(2), memfd_create(2); docs/decisions/0061.
 */
#ifndef DRIVERS_BACKING_H
#define DRIVERS_BACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

/* Is the calling thread the only one but `own` of ours that may write into the process's memory?
 * No other threads, no requests that the kernel carries out by itself (io_uring, AIO), no device
 * that may have the memory. False also if nobody can tell. */
MUST_USE bool backing_is_alone(unsigned own);

/* Is it ordinary memory, as malloc gives it? No file's, no stack, not locked, not special in any
 * way that pages of a file would not be. */
MUST_USE bool backing_is_ordinary(uint64_t start, uint64_t bytes);

/* Shares the memory. -1: no memory for it, or a limit; it is as it was. */
MUST_USE int backing_share(uint64_t start, uint64_t bytes);

/* Gives the memory pages of its own again, where it is still of that descriptor's. False: not all
 * of it, for want of memory. */
MUST_USE bool backing_return(uint64_t start, uint64_t bytes, int fd);

#endif
