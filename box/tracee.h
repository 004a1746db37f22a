/* SPDX-License-Identifier: BSD-2-Clause
 *
 * tracee - what ptrace(2) does with one stopped thread: registers, memory, steps, calls of ours.
 *
 * Outputs: functions that return a bool say false if the thread is gone, or its memory not there.
 */
#ifndef BOX_TRACEE_H
#define BOX_TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

typedef struct user_regs_struct registers;

bool tracee_registers(pid_t thread, registers *into);
bool tracee_set_registers(pid_t thread, const registers *from);

/* All `bytes`, or false. */
bool tracee_read(pid_t thread, uint64_t address, void *into, size_t bytes);
bool tracee_write(pid_t thread, uint64_t address, const void *from, size_t bytes);

/* A text that ends within `bytes`; false also if it is longer. */
bool tracee_read_text(pid_t thread, uint64_t address, char *into, size_t bytes);

/* Waits until `thread` stops or ends; false: there is no such thread. `status` is waitpid's. */
bool tracee_wait(pid_t thread, int *status);

/* Makes a call in the place of a thread that stands at the end of a call (an exit stop), where it
 * stands again afterwards. Returns the call's result, or -ESRCH if the thread is gone. */
int64_t tracee_call(pid_t thread, long number, const uint64_t arguments[6]);

/* Lets a stopped thread call a function of its program, with `arguments`; the stack below `stack`
 * is the function's. The thread is not to run on afterwards: a call of the kernel that it is in is
 * given up. Its registers are as before. False: it did not return, within a second. */
bool tracee_run(pid_t thread, uint64_t function, const uint64_t arguments[4], uint64_t stack,
                uint64_t *result);

/* The thread's registers that ptrace does not count among the general ones (vectors, floating
 * point). Returns the bytes that were stored, at most `bytes`; 0: none could be had. */
size_t tracee_vectors(pid_t thread, void *into, size_t bytes);

#endif
