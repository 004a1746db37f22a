/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sandbox - is this a place where a NIC can live?
 *
 * Purpose    A filter of system calls (seccomp) may refuse a call without which peers would wait
 *            for us in vain. Such calls are tried when the NIC is opened, so that its user is told.
 *            Calls that fail when the NIC is opened tell of themselves, and what a NIC can do
 *            without is not asked for (docs/system-calls.md).
 * Inputs     An epoll descriptor that watches nothing yet.
 * Ownership  None.
 * Threads    Any.
 * Limits     Says nothing of a filter that looks at arguments, or that comes later.
 * Source     seccomp(2).
 */
#ifndef DRIVERS_SANDBOX_H
#define DRIVERS_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

/* False, with errno: a call is refused, and `error` says which. */
bool sandbox_answers(int epoll, char *error, size_t error_bytes);

#endif
