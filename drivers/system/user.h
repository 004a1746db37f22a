/* SPDX-License-Identifier: BSD-2-Clause
 *
 * user - the user of the machine for whom a number from the kernel stands.
 *
 * Purpose    A user namespace may name a part of the machine's users only. To a process there the
 *            kernel gives one and the same number, the overflow ID (65534), for all others. Such a
 *            number says nothing about who it is.
 * Inputs     Numbers of users and of processes, from the kernel.
 * Outputs    Numbers of users that stand for one user alone, or USER_UNKNOWN.
 * Threads    Any. No call is a point where a program's thread may be cancelled.
 * Time       Not used; one call reads one or two small files of /proc.
 * Source     user_namespaces(7), "Unmapped user and group IDs"; proc_pid_status(5),
 *            proc_pid_mem(5), ptrace(2), "Ptrace access mode checking".
 */
#ifndef DRIVERS_USER_H
#define DRIVERS_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/check.h"

/* Nobody has this number (setresuid(2)). Two unknown users are not the same one. */
#define USER_UNKNOWN ((uid_t)-1)

/* Can that number stand for one user alone? The overflow ID can if our user namespace has a name
 * for every user, as the first one of a machine has. */
MUST_USE bool user_is_named(uid_t user);

/* Descriptors that stay with a process, whichever process gets its number later; -1: there is none.
 * The first is for its memory, and leads nowhere once the process has ended or executed another
 * program. The other is a pidfd, readable once the process has ended: until then its number is its
 * own. */
struct user_process {
    int memory, end;
};

/* The effective user of a process as it is now; USER_UNKNOWN: there is no such process in our PID
 * namespace, or its user is not known (with an errno that shortage_is: not just now). `held`, which
 * may be NULL, becomes that process. */
uid_t user_of_process(pid_t process, struct user_process *held);
/* Has that process not ended? */
MUST_USE bool user_process_is_there(const struct user_process *held);
void user_process_close(struct user_process *held);

/* May the calling thread reach, now or once it wants to, memory of processes of other users
 * (CAP_SYS_PTRACE)? */
MUST_USE bool user_may_trace_others(void);

#endif
