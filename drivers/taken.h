/* SPDX-License-Identifier: BSD-2-Clause
 *
 * taken - UDP port 4791 where somebody else has it at every address.
 *
 * Purpose    Names the owner that keeps nonic from UDP: another program, or the kernel's own
 *            Soft-RoCE.
 * Inputs     taken_everywhere.
 * Outputs    A sentence for people.
 * Ownership  Nothing is kept.
 * Threads    Any.
 * Limits     Only /proc and /sys are read: without them nothing is said.
 * Source     proc_pid_net(5).
 */
#ifndef DRIVERS_TAKEN_H
#define DRIVERS_TAKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

/* True: a socket bound to any address has the port, and `text` says whose it is. */
MUST_USE bool taken_everywhere(char *text, size_t text_bytes);

#endif
