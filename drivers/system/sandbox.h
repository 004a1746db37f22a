/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sandbox - a test whether the system allows the calls that a NIC needs.
 *
 * Purpose    A filter of system calls (seccomp) may refuse a call without which peers would wait
 *            for us in vain. Such calls are tried when the NIC is opened, so that its user is told.
 *            Calls that the opening of a NIC makes anyway report their failure by themselves, and
 *            calls that a NIC can do without are not tried (docs/system-calls.md).
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
