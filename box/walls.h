/* SPDX-License-Identifier: BSD-2-Clause
 *
 * walls - namespaces in which processes, ports, names and shared memory are the run's own.
 *
 * Source: namespaces(7), user_namespaces(7). No privilege is needed where the system lets users
 * make namespaces.
 */
#ifndef BOX_WALLS_H
#define BOX_WALLS_H

#include <stdbool.h>
#include <stddef.h>

/* Calls `run` in a child that is the first process of new namespaces: of users, processes, mounts,
 * networks (loopback alone, or `has_nodes`: with it the addresses of a machine's nodes, of
 * base/box_address.h), names and shared memory. /tmp, /var/tmp and /dev/shm are empty there, but
 * for those of their entries that `keep` names (NULL at its end). Returns the child's exit status,
 * or -1: `error` says why there is no such child, and what lets it be. */
int walls_run(const char *const *keep, bool has_nodes, int (*run)(void *), void *context,
              char *error, size_t error_bytes);

/* loopback.c: the interface of a new network namespace. */
bool loopback_raise(bool has_nodes);

#endif
